/*
 * A library that emits NVTX ranges. It contains its own NVTX, which finds its tool at the first
 * call, independently of the rest of the process.
 */
#include <stdint.h>

#include <nvtx3/nvToolsExt.h>

#define EXPORT __attribute__((visibility("default")))
#define TURN() __asm__ volatile("" ::: "memory")

EXPORT void speak_text(uint64_t n);
EXPORT void speak_text(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        nvtxRangePushA("bench");
        TURN();
        nvtxRangePop();
    }
}

EXPORT void speak_registered(uint64_t n);
EXPORT void speak_registered(uint64_t n)
{
    static nvtxDomainHandle_t domain;
    static nvtxEventAttributes_t event = {.version = NVTX_VERSION,
                                          .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                          .messageType = NVTX_MESSAGE_TYPE_REGISTERED};
    if (domain == NULL) {
        domain = nvtxDomainCreateA("speaker");
        event.message.registered = nvtxDomainRegisterStringA(domain, "bench");
    }
    for (uint64_t i = 0; i < n; i++) {
        nvtxDomainRangePushEx(domain, &event);
        TURN();
        nvtxDomainRangePop(domain);
    }
}
