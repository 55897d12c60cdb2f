/* Built without NVTX's headers: ranges stay in the recording. */
#include "instrument/nvtx/internal.h"

int marey_nvtx_attach(void)
{
    return 0;
}

const char *marey_nvtx_state(void)
{
    return "this marey was built without NVTX's headers, so ranges go to no tool: install the "
           "Python "
           "package nvidia-nvtx or a CUDA toolkit, and build again";
}

const char *marey_nvtx_version(void)
{
    return "";
}

void marey__nvtx_expect(bool allowed)
{
    (void)allowed;
}

bool marey__nvtx_push(marey_id id, const struct marey_payload *payload)
{
    (void)id;
    (void)payload;
    return false;
}

void marey__nvtx_pop(marey_id id)
{
    (void)id;
}

void marey__nvtx_mark(marey_id id, const struct marey_payload *payload)
{
    (void)id;
    (void)payload;
}

void marey__nvtx_async_begin(marey_async range)
{
    (void)range;
}

void marey__nvtx_async_end(marey_async range)
{
    (void)range;
}

void marey__nvtx_after_fork(void)
{
}
