/* NVTX: whether this build can speak it, and whether a tool listens. */
#include <unistd.h>

#include "doctor/doctor_internal.h"
#include <kymo/nvtx.h>

static void tell_injection(struct kymo__doctor *doctor)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    if (path == NULL || path[0] == '\0')
        kymo__doctor_tell(doctor, "NVTX_INJECTION64_PATH", KYMO__STATE_OFF, NULL,
                          "not set; 'nsys profile' sets it for its program");
    else if (access(path, R_OK) != 0)
        kymo__doctor_tell(doctor, "NVTX_INJECTION64_PATH", KYMO__STATE_MISSING,
                          "set it to the tool's library, or unset it", "%s, which cannot be read",
                          path);
    else
        kymo__doctor_tell(doctor, "NVTX_INJECTION64_PATH", KYMO__STATE_OK, NULL, "%s", path);
}

void kymo__doctor_nvtx(struct kymo__doctor *doctor)
{
    const char *version = kymo_nvtx_version();
    if (version[0] != '\0') {
        kymo__doctor_tell(doctor, "headers", KYMO__STATE_OK, NULL, "built with NVTX %s", version);
        kymo__doctor_tell(doctor, "tool",
                          (kymo_on() & KYMO_ON_NVTX) != 0 ? KYMO__STATE_OK : KYMO__STATE_OFF, NULL,
                          "%s", kymo_nvtx_state());
    } else {
        kymo__doctor_tell(doctor, "headers", KYMO__STATE_MISSING,
                          "pip install nvidia-nvtx, or install a CUDA toolkit, and build again",
                          "this build has none, so ranges reach no NVTX tool");
    }
    tell_injection(doctor);
}
