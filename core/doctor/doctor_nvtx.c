/* NVTX: whether this build can speak it, and whether a tool listens. */
#include <unistd.h>

#include "doctor/internal.h"
#include <marey/nvtx.h>

static void tell_injection(struct marey__doctor *doctor)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    if (path == NULL || path[0] == '\0')
        marey__doctor_tell(doctor, "NVTX_INJECTION64_PATH", MAREY__STATE_OFF, NULL,
                           "not set; 'nsys profile' sets it for its program");
    else if (access(path, R_OK) != 0)
        marey__doctor_tell(doctor, "NVTX_INJECTION64_PATH", MAREY__STATE_MISSING,
                           "set it to the tool's library, or unset it", "%s, which cannot be read",
                           path);
    else
        marey__doctor_tell(doctor, "NVTX_INJECTION64_PATH", MAREY__STATE_OK, NULL, "%s", path);
}

void marey__doctor_nvtx(struct marey__doctor *doctor)
{
    const char *version = marey_nvtx_version();
    if (version[0] != '\0') {
        marey__doctor_tell(doctor, "headers", MAREY__STATE_OK, NULL, "built with NVTX %s", version);
        marey__doctor_tell(doctor, "tool",
                           (marey_on() & MAREY_ON_NVTX) != 0 ? MAREY__STATE_OK : MAREY__STATE_OFF,
                           NULL, "%s", marey_nvtx_state());
    } else {
        marey__doctor_tell(doctor, "headers", MAREY__STATE_MISSING,
                           "pip install nvidia-nvtx, or install a CUDA toolkit, and build again",
                           "this build has none, so ranges reach no NVTX tool");
    }
    tell_injection(doctor);
}
