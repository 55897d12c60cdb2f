/*
 * Nesting, checked on request. Each lane keeps the ids its thread has begun; an end that does not fit is told with both
 * names, the stack, the thread and where the range was begun, and takes no effect.
 */
#include <string.h>

#include "range/range_internal.h"

void kymo__nesting_push(kymo_id id)
{
    struct kymo__lane *lane = kymo__lane_get();
    if (lane != NULL && !kymo__lane_push(lane, id))
        kymo__say("no memory to check how ranges nest: ends that fit may be told as wrong");
}

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

static kymo_status mismatch(const struct kymo__lane *lane, const char *popped, size_t len)
{
    struct kymo__buf text = {0};
    kymo__buf_puts(&text, "'");
    kymo__utf8_put(&text, popped, KYMO__MIN(len, 80u));
    if (lane->depth == 0) {
        kymo__buf_puts(&text, "' was popped, but nothing is pushed");
    } else {
        kymo__buf_puts(&text, "' was popped, but '");
        put_name(&text, lane->stack[lane->depth - 1]);
        kymo__buf_puts(&text, "' was pushed last");
        put_place(&text, lane->stack[lane->depth - 1]);
        kymo__buf_puts(&text, "; the stack is ");
        for (size_t i = 0; i < lane->depth; i++) {
            kymo__buf_puts(&text, i > 0 ? " > " : "");
            put_name(&text, lane->stack[i]);
        }
    }
    kymo__buf_printf(&text, ", on thread %lld; nothing was popped", (long long)lane->tid);
    kymo__buf_put(&text, "", 1);
    __atomic_fetch_add(&kymo__record.nesting_errors, 1, __ATOMIC_RELAXED);
    const kymo_status st =
        kymo__fail(KYMO_EMISMATCH, "%s", text.failed ? "ranges do not nest" : text.data);
    kymo__buf_fini(&text);
    return st;
}

/* Names count, not places: a range may be begun in one file and ended in another. `name` NULL fits anything. */
static kymo_status pop(const char *name, size_t len)
{
    struct kymo__lane *lane = kymo__lane_get();
    if (lane == NULL)
        return KYMO_OK; /* off, or no memory: nothing is recorded that could be wrong */
    if (lane->depth == 0)
        return mismatch(lane, name != NULL ? name : "(the last)", name != NULL ? len : 10);
    size_t top_len;
    const kymo_id top = lane->stack[lane->depth - 1];
    const char *top_name = kymo_site_name(top, &top_len);
    if (name != NULL && (len != top_len || memcmp(name, top_name, len) != 0))
        return mismatch(lane, name, len);
    __atomic_store_n(&lane->depth, lane->depth - 1, __ATOMIC_RELAXED);
    kymo__lane_put(kymo__tag(KYMO_KIND_END, top));
    return KYMO_OK;
}

kymo_status kymo_end_checked(kymo_id id)
{
    const uint32_t on = kymo_on();
    if (on == 0)
        return KYMO_OK;
    if ((on & KYMO_ON_CHECK) == 0) {
        kymo__lane_put(kymo__tag(KYMO_KIND_END, id));
        return KYMO_OK;
    }
    size_t len;
    const char *name = kymo_site_name(id, &len);
    return pop(id != 0 ? name : NULL, len);
}

kymo_status kymo_pop_checked(const char *name)
{
    const uint32_t on = kymo_on();
    if (on == 0)
        return KYMO_OK;
    if ((on & KYMO_ON_CHECK) != 0)
        return pop(name, name != NULL ? strlen(name) : 0);
    kymo__lane_put(kymo__tag(KYMO_KIND_END, 0));
    return KYMO_OK;
}
