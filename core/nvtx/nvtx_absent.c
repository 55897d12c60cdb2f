/* Built without NVTX's headers: ranges stay in the recording. */
#include "nvtx/nvtx_internal.h"

int kymo_nvtx_attach(void)
{
    return 0;
}

const char *kymo_nvtx_state(void)
{
    return "this kymo was built without NVTX's headers, so ranges go to no tool: install the "
           "Python "
           "package nvidia-nvtx or a CUDA toolkit, and build again";
}

const char *kymo_nvtx_version(void)
{
    return "";
}

void kymo__nvtx_expect(bool allowed)
{
    (void)allowed;
}

bool kymo__nvtx_push(kymo_id id, const struct kymo_payload *payload)
{
    (void)id;
    (void)payload;
    return false;
}

void kymo__nvtx_pop(kymo_id id)
{
    (void)id;
}

void kymo__nvtx_mark(kymo_id id, const struct kymo_payload *payload)
{
    (void)id;
    (void)payload;
}

void kymo__nvtx_async_begin(kymo_async range)
{
    (void)range;
}

void kymo__nvtx_async_end(kymo_async range)
{
    (void)range;
}

void kymo__nvtx_after_fork(void)
{
}
