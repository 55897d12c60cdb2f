/*
 * Optional nesting checks. An end that does not match is reported with both names, the stack and the place, and
 * ignored.
 */
#include <string.h>

#include "instrument/range/internal.h"

static void put_name(struct marey__buf *out, marey_id id)
{
    enum { LONGEST = 80 };
    size_t len;
    const char *name = marey_site_name(id, &len);
    marey__utf8_put(out, name, MAREY__MIN(len, (size_t)LONGEST));
    if (len > LONGEST)
        marey__buf_puts(out, "...");
}

static void put_place(struct marey__buf *out, marey_id id)
{
    const struct marey__site *site = marey__intern_get(id);
    if (site != NULL && site->file[0] != '\0')
        marey__buf_printf(out, " (begun at %s:%u)", site->file, site->line);
}

static marey_id id_at(const struct marey__stack *stack, size_t i)
{
    return stack->entries[i] & MAREY__ENTRY_ID;
}

static void put_stack(struct marey__buf *out, const struct marey__stack *stack)
{
    for (size_t i = 0; i < stack->depth; i++) {
        marey__buf_puts(out, i > 0 ? " > " : "");
        put_name(out, id_at(stack, i));
    }
}

static marey_status mismatch(const struct marey__stack *stack, const char *popped, size_t len)
{
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_puts(&text, "'");
    marey__utf8_put(&text, popped, MAREY__MIN(len, 80u));
    if (stack->depth == 0) {
        marey__buf_puts(&text, "' was popped, but nothing is pushed");
    } else {
        const marey_id top = id_at(stack, stack->depth - 1);
        marey__buf_puts(&text, "' was popped, but '");
        put_name(&text, top);
        marey__buf_puts(&text, "' was pushed last");
        put_place(&text, top);
        marey__buf_puts(&text, "; the stack is ");
        put_stack(&text, stack);
    }
    marey__buf_printf(&text, ", on thread %lld; nothing was popped", (long long)stack->tid);
    marey__buf_put(&text, "", 1);
    __atomic_fetch_add(&marey__record.nesting_errors, 1, __ATOMIC_RELAXED);
    return marey__fail(MAREY_EMISMATCH, "%s", text.failed ? "ranges do not nest" : text.data);
}

/* Compares names, not places: a range may begin in one file and end in another. */
marey_status marey__nesting_check(const char *name, size_t len)
{
    const struct marey__stack *const stack = marey__stack_get();
    if (stack == NULL)
        return MAREY_OK; /* out of memory, already reported: nothing is known to be wrong */
    if (stack->depth == 0)
        return mismatch(stack, name != NULL ? name : "(the last)", name != NULL ? len : 10);
    if (name == NULL)
        return MAREY_OK;
    size_t top_len;
    const char *top_name = marey_site_name(id_at(stack, stack->depth - 1), &top_len);
    return len == top_len && memcmp(name, top_name, len) == 0 ? MAREY_OK : mismatch(stack, name, len);
}

marey_status marey__nesting_check_id(marey_id id)
{
    const struct marey__stack *const stack = marey__stack_get();
    if (MAREY_LIKELY(stack != NULL && stack->depth > 0 && id_at(stack, stack->depth - 1) == id))
        return MAREY_OK;
    size_t len;
    const char *name = marey_site_name(id, &len);
    return marey__nesting_check(id != 0 ? name : NULL, len);
}

marey_status marey_end_checked(marey_id id)
{
    if ((marey_on() & MAREY_ON_CHECKED) == 0) {
        marey_end_on(id);
        return MAREY_OK;
    }
    MAREY_TRY(marey__nesting_check_id(id));
    marey__range_end_entry(marey__stack_take(0));
    return MAREY_OK;
}

marey_status marey_pop_checked(const char *name)
{
    if ((marey_on() & MAREY_ON_CHECKED) == 0) {
        marey_end_on(0);
        return MAREY_OK;
    }
    MAREY_TRY(marey__nesting_check(name, name != NULL ? strlen(name) : 0));
    marey__range_end_entry(marey__stack_take(0));
    return MAREY_OK;
}
