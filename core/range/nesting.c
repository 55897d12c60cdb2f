/*
 * Nesting, checked on request. Each thread keeps a stack of what it has begun; an end that does not fit is told with both
 * names, the stack, the thread and where the range was begun, and takes no effect.
 */
#include <string.h>

#include "range/range_internal.h"

static void put_name(struct kymo__buf *out, kymo_id id)
{
    enum { LONGEST = 80 };
    size_t len;
    const char *name = kymo_site_name(id, &len);
    kymo__utf8_put(out, name, KYMO__MIN(len, (size_t)LONGEST));
    if (len > LONGEST)
        kymo__buf_puts(out, "...");
}

static void put_place(struct kymo__buf *out, kymo_id id)
{
    const struct kymo__site *site = kymo__intern_get(id);
    if (site != NULL && site->file[0] != '\0')
        kymo__buf_printf(out, " (begun at %s:%u)", site->file, site->line);
}

static kymo_id id_at(const struct kymo__stack *stack, size_t i)
{
    return stack->entries[i] & KYMO__ENTRY_ID;
}

static void put_stack(struct kymo__buf *out, const struct kymo__stack *stack)
{
    for (size_t i = 0; i < stack->depth; i++) {
        kymo__buf_puts(out, i > 0 ? " > " : "");
        put_name(out, id_at(stack, i));
    }
}

static kymo_status mismatch(const struct kymo__stack *stack, const char *popped, size_t len)
{
    struct kymo__buf text = {0};
    kymo__buf_puts(&text, "'");
    kymo__utf8_put(&text, popped, KYMO__MIN(len, 80u));
    if (stack->depth == 0) {
        kymo__buf_puts(&text, "' was popped, but nothing is pushed");
    } else {
        const kymo_id top = id_at(stack, stack->depth - 1);
        kymo__buf_puts(&text, "' was popped, but '");
        put_name(&text, top);
        kymo__buf_puts(&text, "' was pushed last");
        put_place(&text, top);
        kymo__buf_puts(&text, "; the stack is ");
        put_stack(&text, stack);
    }
    kymo__buf_printf(&text, ", on thread %lld; nothing was popped", (long long)stack->tid);
    kymo__buf_put(&text, "", 1);
    __atomic_fetch_add(&kymo__record.nesting_errors, 1, __ATOMIC_RELAXED);
    const kymo_status st =
        kymo__fail(KYMO_EMISMATCH, "%s", text.failed ? "ranges do not nest" : text.data);
    kymo__buf_fini(&text);
    return st;
}

/* Names count, not places: a range may be begun in one file and ended in another. */
kymo_status kymo__nesting_check(const char *name, size_t len)
{
    const struct kymo__stack *const stack = kymo__stack_get();
    if (stack == NULL)
        return KYMO_OK; /* no memory, which was said: nothing is known that could be wrong */
    if (stack->depth == 0)
        return mismatch(stack, name != NULL ? name : "(the last)", name != NULL ? len : 10);
    if (name == NULL)
        return KYMO_OK;
    size_t top_len;
    const char *top_name = kymo_site_name(id_at(stack, stack->depth - 1), &top_len);
    return len == top_len && memcmp(name, top_name, len) == 0 ? KYMO_OK : mismatch(stack, name, len);
}

kymo_status kymo__nesting_check_id(kymo_id id)
{
    const struct kymo__stack *const stack = kymo__stack_get();
    if (KYMO_LIKELY(stack != NULL && stack->depth > 0 && id_at(stack, stack->depth - 1) == id))
        return KYMO_OK;
    size_t len;
    const char *name = kymo_site_name(id, &len);
    return kymo__nesting_check(id != 0 ? name : NULL, len);
}

kymo_status kymo_end_checked(kymo_id id)
{
    if ((kymo_on() & KYMO_ON_CHECKED) == 0) {
        kymo_end_on(id);
        return KYMO_OK;
    }
    KYMO_TRY(kymo__nesting_check_id(id));
    kymo__range_end_entry(kymo__stack_take(0));
    return KYMO_OK;
}

kymo_status kymo_pop_checked(const char *name)
{
    if ((kymo_on() & KYMO_ON_CHECKED) == 0) {
        kymo_end_on(0);
        return KYMO_OK;
    }
    KYMO_TRY(kymo__nesting_check(name, name != NULL ? strlen(name) : 0));
    kymo__range_end_entry(kymo__stack_take(0));
    return KYMO_OK;
}
