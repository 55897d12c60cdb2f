/*
 * Ranges, marks and counters: each is one word or one record in this thread's lane. Begin and end are two stores and a
 * clock read away from the caller; the checks of nesting stand aside in nesting.c.
 */
#include <string.h>

#include "range/range_internal.h"

/* With nesting checked. Out of line and cold, so that the usual case needs no stack frame. */
__attribute__((noinline, cold)) static void begin_checked(kymo_id id)
{
    kymo__nesting_push(id);
    kymo__lane_put(kymo__tag(KYMO_KIND_BEGIN, id));
}

__attribute__((noinline, cold)) static void end_checked(kymo_id id)
{
    if (kymo_end_checked(id) != KYMO_OK)
        kymo__say("%s", kymo_last_error());
}

void kymo_begin_on(kymo_id id)
{
    const uint32_t on = kymo_on();
    if (KYMO_LIKELY(on == KYMO_ON_RECORD))
        kymo__lane_put(kymo__tag(KYMO_KIND_BEGIN, id));
    else if (on != 0)
        begin_checked(id);
}

void kymo_end_on(kymo_id id)
{
    const uint32_t on = kymo_on();
    if (KYMO_LIKELY(on == KYMO_ON_RECORD))
        kymo__lane_put(kymo__tag(KYMO_KIND_END, id));
    else if (on != 0)
        end_checked(id);
}

void kymo_mark_on(kymo_id id)
{
    if (kymo_on() != 0)
        kymo__lane_put(kymo__tag(KYMO_KIND_MARK, id));
}

void kymo_counter_on(kymo_id id, double value)
{
    uint64_t words[2] = {id, 0};
    if (kymo_on() == 0)
        return;
    memcpy(&words[1], &value, sizeof value);
    kymo__lane_put_record(KYMO_RECORD_COUNTER, words, 2);
}

/* ---- payloads ---- */

enum { TEXT_MAX = 4096 };

static void put_with_payload(enum kymo_record_type type, kymo_id id,
                             const struct kymo_payload *payload)
{
    uint64_t words[1 + TEXT_MAX / 8];
    const bool is_text = payload->type == KYMO_PAYLOAD_TEXT;
    const uint32_t len = is_text ? KYMO__MIN(payload->len, (uint32_t)TEXT_MAX) : 0;
    size_t n = 2;
    if (is_text) {
        n = 1 + (len + 7) / 8;
        words[n - 1] =
            0; /* the rest of the last word; with no text at all, words[0], which is set below */
        if (len > 0)
            memcpy(&words[1], payload->as.text, len);
    } else {
        words[1] = payload->as.u64;
    }
    words[0] = (id & 0xfffffu) | (uint64_t)(payload->type & 0xffu) << 20 | (uint64_t)len << 32;
    kymo__lane_put_record(type, words, n);
}

void kymo_begin_payload(kymo_id id, const struct kymo_payload *payload)
{
    const uint32_t on = kymo_on();
    if (on == 0)
        return;
    if (on & KYMO_ON_CHECK)
        kymo__nesting_push(id);
    put_with_payload(KYMO_RECORD_BEGIN, id, payload);
}

void kymo_mark_payload(kymo_id id, const struct kymo_payload *payload)
{
    if (kymo_on() != 0)
        put_with_payload(KYMO_RECORD_MARK, id, payload);
}

/* ---- by name ---- */

void kymo_push_at(const char *name, const char *file, uint32_t line)
{
    if (kymo_on() != 0)
        kymo_begin_on(kymo_site_intern(name, name != NULL ? strlen(name) : 0, NULL, 0, file, line));
}

void kymo_pop(void)
{
    kymo_end_on(0);
}

/* ---- async ---- */

/* Of this process; the site sits in the low bits, so that the end can tell it without a table. */
static uint64_t n_async;

kymo_async kymo_async_begin(kymo_id id)
{
    if (kymo_on() == 0)
        return 0;
    const kymo_async range = (__atomic_add_fetch(&n_async, 1, __ATOMIC_RELAXED) << 20) | id;
    const uint64_t words[] = {id, range};
    kymo__lane_put_record(KYMO_RECORD_ASYNC_BEGIN, words, 2);
    return range;
}

void kymo_async_end(kymo_async range)
{
    if (range == 0 || kymo_on() == 0)
        return;
    const uint64_t words[] = {range & 0xfffff, range};
    kymo__lane_put_record(KYMO_RECORD_ASYNC_END, words, 2);
}
