/* NVTX: whether this build can speak it, and whether a tool listens. */
#include <unistd.h>

#include "doctor/internal.h"
#include <marey/nvtx.h>

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
                              "this build has none, so ranges reach no NVTX tool");
    }
    report_injection(doctor);
}
