/*
 * The range wrapper: ranges that first wait for the GPU, and handles for compiled code. Options are in the enable word.
 */
#include <string.h>

#include "instrument/cuda/internal.h"
#include "instrument/nvtx/internal.h"
#include "instrument/range/internal.h"
#include "switchboard/internal.h"

marey_status marey_nvtx_enable_sized(const struct marey_nvtx_options *options, size_t size)
{
    struct marey_nvtx_options o = {0};
    if (options != NULL)
        memcpy(&o, options, MAREY__MIN(size, sizeof o));
    const uint32_t bits = MAREY_ON_WRAPPER | (o.sync_on_push ? MAREY_ON_SYNC_PUSH : 0) |
                          (o.sync_on_pop ? MAREY_ON_SYNC_POP : 0) |
                          (o.keep_track_of_range_order ? MAREY_ON_ORDER : 0);
    if (!marey__wrapper_switch_on(bits, false))
        return marey__fail(MAREY_ESTATE, "the NVTX range wrapper is already enabled; disable it "
                                         "before enabling it with other options");
    marey_nvtx_attach();
    return MAREY_OK;
}

void marey_nvtx_disable(void)
{
    if (!marey_nvtx_is_enabled())
        return;
    struct marey__stack *const stack =
        marey__stack_get(); /* ends the wrapper's ranges on this thread */
    for (size_t i = stack != NULL ? stack->depth : 0; i-- > 0;)
        if (stack->entries[i] & MAREY__ENTRY_WRAPPER)
            marey__range_end_entry(marey__stack_remove(stack, i));
    marey__wrapper_switch_off();
}

void marey_nvtx_push_on(marey_id id)
{
    const uint32_t on = marey_on();
    if ((on & MAREY_ON_WRAPPER) == 0)
        return;
    if (on & MAREY_ON_SYNC_PUSH)
        marey_cuda_sync();
    marey__range_begin_entry(MAREY__ENTRY_WRAPPER | (id & MAREY__ENTRY_ID), NULL);
}

/* Caller has checked that the pop matches. */
static marey_status pop(uint32_t on)
{
    if (on & MAREY_ON_SYNC_POP)
        marey_cuda_sync();
    marey__range_end_entry(marey__stack_take(0));
    return MAREY_OK;
}

marey_status marey_nvtx_pop_on(const char *name)
{
    const uint32_t on = marey_on();
    if ((on & MAREY_ON_WRAPPER) == 0)
        return MAREY_OK;
    if (on & MAREY_ON_ORDER)
        MAREY_TRY(marey__nesting_check(name, name != NULL ? strlen(name) : 0));
    return pop(on);
}

marey_status marey_nvtx_pop_id_on(marey_id id)
{
    const uint32_t on = marey_on();
    if ((on & MAREY_ON_WRAPPER) == 0)
        return MAREY_OK;
    if (on & MAREY_ON_ORDER)
        MAREY_TRY(marey__nesting_check_id(id));
    return pop(on);
}

/* ---- by handle ---- */

uint64_t marey_nvtx_register(const char *name, size_t len)
{
    marey_nvtx_attach(); /* the program may have set up a tool just before it registers names */
    return marey__handle_of(name, len);
}

void marey_nvtx_push_handle(uint64_t handle)
{
    if (!marey_on())
        return;
    const marey_id id = marey__handle_id(handle);
    marey_begin_on(id != 0 ? id : MAREY_ID("(unregistered)"));
}

void marey_nvtx_pop_handle(void)
{
    marey_end(0);
}
