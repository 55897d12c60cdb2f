/* What a launcher or the user has set for the programs to come: rank, run, KYMO and its options. */
#include <stdio.h>
#include <string.h>

#include "doctor/doctor_internal.h"
#include "record/record_internal.h"
#include <kymo/switchboard.h>

static void tell_number(struct kymo__doctor *doctor, const char *thing, int number, const char *from)
{
    if (from == NULL)
        kymo__doctor_tell(doctor, thing, KYMO__STATE_OFF, NULL, "no variable says");
    else
        kymo__doctor_amount_as(doctor, thing, KYMO__STATE_OK, NULL, number, "count", "%d, by %s",
                               number, from);
}

static void tell_rank(struct kymo__doctor *doctor)
{
    struct kymo__launch launch;
    char id[64];
    kymo__identity_launch(&launch);
    if (launch.rank >= 0 && launch.world_size > 0 && launch.rank >= launch.world_size)
        kymo__doctor_tell(doctor, "rank", KYMO__STATE_LIMITED,
                          "unset the variables that another launcher left behind",
                          "%d by %s does not fit a world of %d by %s", launch.rank,
                          launch.rank_from, launch.world_size, launch.world_from);
    else
        tell_number(doctor, "rank", launch.rank, launch.rank_from);
    tell_number(doctor, "world size", launch.world_size, launch.world_from);
    tell_number(doctor, "local rank", launch.local_rank, launch.local_from);
    if (kymo__identity_run_id(id, sizeof id))
        kymo__doctor_tell(doctor, "run id", KYMO__STATE_OK, NULL, "%s", id);
    else
        kymo__doctor_tell(doctor, "run id", KYMO__STATE_OFF, NULL,
                          "none given: each run makes its own");
}

void kymo__doctor_launcher(struct kymo__doctor *doctor)
{
    const char *path = getenv("KYMO"), *options = getenv("KYMO_OPTIONS");
    tell_rank(doctor);
    if (path != NULL && path[0] != '\0')
        kymo__doctor_tell(doctor, "KYMO", KYMO__STATE_OK, NULL, "%s: programs record there", path);
    else
        kymo__doctor_tell(
            doctor, "KYMO", KYMO__STATE_OFF, NULL,
            "not set: programs record under 'kymo run', or when they start it themselves");
    if (options == NULL || options[0] == '\0')
        kymo__doctor_tell(doctor, "KYMO_OPTIONS", KYMO__STATE_OFF, NULL, "not set");
    else if (kymo_options_check(options) == KYMO_OK)
        kymo__doctor_tell(doctor, "KYMO_OPTIONS", KYMO__STATE_OK, NULL, "%s", options);
    else
        kymo__doctor_tell(
            doctor, "KYMO_OPTIONS", KYMO__STATE_MISSING,
            "mend it, or nothing is recorded: 'kymo run --options help' lists what there is", "%s",
            kymo_last_error());
}
