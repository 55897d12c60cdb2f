/* A library that has NVTX inside, as each library does that was compiled with its headers. */
#include <nvtx3/nvToolsExt.h>

__attribute__((visibility("default"))) void tell(const char *what);
void tell(const char *what)
{
    const nvtxDomainHandle_t domain = nvtxDomainCreateA("of a library");
    const nvtxEventAttributes_t event = {.version = NVTX_VERSION,
                                         .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                         .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
                                         .message.registered =
                                             nvtxDomainRegisterStringA(domain, TOLD_NAME)};
    nvtxDomainRangePushEx(domain, &event);
    nvtxMarkA(what);
    nvtxDomainRangePop(domain);
}
