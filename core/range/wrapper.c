/*
 * The range wrapper: ranges that wait for the GPU first, and handles for compiled code. Its options are bits of the
 * enable word, so that a push finds all it needs in the one load that it makes anyway.
 */
#include <string.h>

#include "cuda/cuda_internal.h"
#include "nvtx/nvtx_internal.h"
#include "range/range_internal.h"
#include "switchboard/switchboard_internal.h"

kymo_status kymo_nvtx_enable_sized(const struct kymo_nvtx_options *options, size_t size)
{
    struct kymo_nvtx_options o = {0};
    if (options != NULL)
        memcpy(&o, options, KYMO__MIN(size, sizeof o));
    const uint32_t bits = KYMO_ON_WRAPPER | (o.sync_on_push ? KYMO_ON_SYNC_PUSH : 0) |
                          (o.sync_on_pop ? KYMO_ON_SYNC_POP : 0) |
                          (o.keep_track_of_range_order ? KYMO_ON_ORDER : 0);
    if (!kymo__wrapper_switch_on(bits, false))
        return kymo__fail(KYMO_ESTATE, "the NVTX range wrapper is already enabled; disable it "
                                       "before enabling it with other options");
    kymo_nvtx_attach();
    return KYMO_OK;
}

/* Ranges of the wrapper that this thread has open. */
static void end_own(void)
{
    struct kymo__stack *const stack = kymo__stack_get();
    for (size_t i = stack != NULL ? stack->depth : 0; i-- > 0;)
        if (stack->entries[i] & KYMO__ENTRY_WRAPPER)
            kymo__range_end_entry(kymo__stack_remove(stack, i));
}

void kymo_nvtx_disable(void)
{
    if (!kymo_nvtx_is_enabled())
        return;
    end_own();
    kymo__wrapper_switch_off();
}

void kymo_nvtx_push_on(kymo_id id)
{
    const uint32_t on = kymo_on();
    if ((on & KYMO_ON_WRAPPER) == 0)
        return;
    if (on & KYMO_ON_SYNC_PUSH)
        kymo_cuda_sync();
    kymo__range_begin_entry(KYMO__ENTRY_WRAPPER | (id & KYMO__ENTRY_ID), NULL);
}

/* What is popped fits. */
static kymo_status pop(uint32_t on)
{
    if (on & KYMO_ON_SYNC_POP)
        kymo_cuda_sync();
    kymo__range_end_entry(kymo__stack_take(0));
    return KYMO_OK;
}

kymo_status kymo_nvtx_pop_on(const char *name)
{
    const uint32_t on = kymo_on();
    if ((on & KYMO_ON_WRAPPER) == 0)
        return KYMO_OK;
    if (on & KYMO_ON_ORDER)
        KYMO_TRY(kymo__nesting_check(name, name != NULL ? strlen(name) : 0));
    return pop(on);
}

kymo_status kymo_nvtx_pop_id_on(kymo_id id)
{
    const uint32_t on = kymo_on();
    if ((on & KYMO_ON_WRAPPER) == 0)
        return KYMO_OK;
    if (on & KYMO_ON_ORDER)
        KYMO_TRY(kymo__nesting_check_id(id));
    return pop(on);
}

/* ---- by handle ---- */

uint64_t kymo_nvtx_register(const char *name, size_t len)
{
    kymo_nvtx_attach(); /* whoever registers names may have set up a tool just before */
    return kymo__handle_of(name, len);
}

void kymo_nvtx_push_handle(uint64_t handle)
{
    if (!kymo_on())
        return;
    const kymo_id id = kymo__handle_id(handle);
    kymo_begin_on(id != 0 ? id : KYMO_ID("(unregistered)"));
}

void kymo_nvtx_pop_handle(void)
{
    kymo_end(0);
}
