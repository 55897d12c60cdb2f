/* What a launcher or the user has set for the programs to come: rank, run, MAREY and its options. */
#include <stdio.h>
#include <string.h>

#include "doctor/internal.h"
#include "record/internal.h"
#include <marey/switchboard.h>

static void tell_number(struct marey__doctor *doctor, const char *thing, int number, const char *from)
{
    if (from == NULL)
        marey__doctor_tell(doctor, thing, MAREY__STATE_OFF, NULL, "no variable says");
    else
        marey__doctor_amount_as(doctor, thing, MAREY__STATE_OK, NULL, number, "count", "%d, by %s",
                                number, from);
}

static void tell_rank(struct marey__doctor *doctor)
{
    struct marey__launch launch;
    char id[64];
    marey__identity_launch(&launch);
    if (launch.rank >= 0 && launch.world_size > 0 && launch.rank >= launch.world_size)
        marey__doctor_tell(doctor, "rank", MAREY__STATE_LIMITED,
                           "unset the variables that another launcher left behind",
                           "%d by %s does not fit a world of %d by %s", launch.rank,
                           launch.rank_from, launch.world_size, launch.world_from);
    else
        tell_number(doctor, "rank", launch.rank, launch.rank_from);
    tell_number(doctor, "world size", launch.world_size, launch.world_from);
    tell_number(doctor, "local rank", launch.local_rank, launch.local_from);
    if (marey__identity_run_id(id, sizeof id))
        marey__doctor_tell(doctor, "run id", MAREY__STATE_OK, NULL, "%s", id);
    else
        marey__doctor_tell(doctor, "run id", MAREY__STATE_OFF, NULL,
                           "none given: each run makes its own");
}

void marey__doctor_launcher(struct marey__doctor *doctor)
{
    const char *path = getenv("MAREY"), *options = getenv("MAREY_OPTIONS");
    tell_rank(doctor);
    if (path != NULL && path[0] != '\0')
        marey__doctor_tell(doctor, "MAREY", MAREY__STATE_OK, NULL, "%s: programs record there", path);
    else
        marey__doctor_tell(
            doctor, "MAREY", MAREY__STATE_OFF, NULL,
            "not set: programs record under 'marey run', or when they start it themselves");
    if (options == NULL || options[0] == '\0')
        marey__doctor_tell(doctor, "MAREY_OPTIONS", MAREY__STATE_OFF, NULL, "not set");
    else if (marey_options_check(options) == MAREY_OK)
        marey__doctor_tell(doctor, "MAREY_OPTIONS", MAREY__STATE_OK, NULL, "%s", options);
    else
        marey__doctor_tell(
            doctor, "MAREY_OPTIONS", MAREY__STATE_MISSING,
            "mend it, or nothing is recorded: 'marey run --options help' lists what there is", "%s",
            marey_last_error());
}
