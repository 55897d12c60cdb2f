/* Settings of a launcher or the user for programs: rank, run, MAREY and its options, the NVTX tool. */
#include <unistd.h>

#include "doctor/internal.h"
#include "record/internal.h"
#include <marey/nvtx.h>
#include <marey/switchboard.h>

static void report_number(struct marey__doctor *doctor, const char *thing, int number,
                          const char *from)
{
    if (from == NULL)
        marey__doctor_off(doctor, thing, "unknown: no launcher variable is set");
    else
        marey__doctor_amount_as(doctor, thing, NULL, number, "count", "%d, by %s", number, from);
}

static void report_rank(struct marey__doctor *doctor)
{
    struct marey__launch launch;
    char id[64];
    marey__identity_launch(&launch);
    if (launch.rank >= 0 && launch.world_size > 0 && launch.rank >= launch.world_size)
        marey__doctor_limited(doctor, "rank", "unset the variables that another launcher left behind",
                              "%d by %s does not fit a world of %d by %s", launch.rank,
                              launch.rank_from, launch.world_size, launch.world_from);
    else
        report_number(doctor, "rank", launch.rank, launch.rank_from);
    report_number(doctor, "world size", launch.world_size, launch.world_from);
    report_number(doctor, "local rank", launch.local_rank, launch.local_from);
    if (marey__identity_run_id(id, sizeof id))
        marey__doctor_ok(doctor, "run id", "%s", id);
    else
        marey__doctor_off(doctor, "run id", "none given: each run makes its own");
}

void marey__doctor_launcher(struct marey__doctor *doctor)
{
    const char *path = getenv("MAREY"), *options = getenv("MAREY_OPTIONS");
    report_rank(doctor);
    if (path != NULL && path[0] != '\0')
        marey__doctor_ok(doctor, "MAREY", "%s: programs record there", path);
    else
        marey__doctor_off(
            doctor, "MAREY",
            "not set: programs record under 'marey run', or when they start it themselves");
    if (options == NULL || options[0] == '\0')
        marey__doctor_off(doctor, "MAREY_OPTIONS", "not set");
    else if (marey_options_check(options) == MAREY_OK)
        marey__doctor_ok(doctor, "MAREY_OPTIONS", "%s", options);
    else
        marey__doctor_missing(
            doctor, "MAREY_OPTIONS",
            "correct it, or nothing is recorded: 'marey run --options help' lists what there is",
            "%s", marey_last_error());
}

/* ---- NVTX: whether this build has it, and whether a tool is attached ---- */

static void report_injection(struct marey__doctor *doctor)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    if (path == NULL || path[0] == '\0')
        marey__doctor_off(doctor, "NVTX_INJECTION64_PATH",
                          "not set; 'nsys profile' sets it for its program");
    else if (access(path, R_OK) != 0)
        marey__doctor_missing(doctor, "NVTX_INJECTION64_PATH",
                              "set it to the tool's library, or unset it",
                              "%s, which cannot be read", path);
    else
        marey__doctor_ok(doctor, "NVTX_INJECTION64_PATH", "%s", path);
}

void marey__doctor_nvtx(struct marey__doctor *doctor)
{
    const char *version = marey_nvtx_version();
    if (version[0] != '\0') {
        marey__doctor_ok(doctor, "headers", "built with NVTX %s", version);
        marey__doctor_add(doctor, "tool",
                          (marey_on() & MAREY_ON_NVTX) != 0 ? MAREY__STATE_OK : MAREY__STATE_OFF,
                          NULL, "%s", marey_nvtx_state());
    } else {
        marey__doctor_missing(doctor, "headers",
                              "pip install nvidia-nvtx, or install a CUDA toolkit, and build again",
                              "not in this build: ranges do not reach NVTX tools");
    }
    report_injection(doctor);
}
