/*
 * A minimal NVTX tool: a library for NVTX_INJECTION64_PATH that counts pushes and pops. The cost of
 * a range with it is the cost of marey and NVTX.
 */
#include <nvtx3/nvToolsExt.h>

#define EXPORT __attribute__((visibility("default")))

static _Thread_local int depth;

static int push(const nvtxEventAttributes_t *event)
{
    (void)event;
    return depth++;
}

static int pop(void)
{
    return --depth;
}

static int domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    (void)domain;
    return push(event);
}

static int domain_pop(nvtxDomainHandle_t domain)
{
    (void)domain;
    return pop();
}

static int set(const NvtxExportTableCallbacks *callbacks, NvtxCallbackModule module, unsigned id,
               void (*function)(void))
{
    NvtxFunctionTable table;
    unsigned size = 0;
    if (!callbacks->GetModuleFunctionTable(module, &table, &size) || id >= size)
        return 0;
    *table[id] = function;
    return 1;
}

#define SET(module, name, function)                                                                \
    set(callbacks, NVTX_CB_MODULE_##module, NVTX_CBID_##module##_##name, (void (*)(void))(function))

EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    return callbacks != NULL && SET(CORE, RangePushEx, push) && SET(CORE, RangePop, pop) &&
           SET(CORE2, DomainRangePushEx, domain_push) && SET(CORE2, DomainRangePop, domain_pop);
}
