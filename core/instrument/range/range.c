/*
 * Ranges, marks and counters: each is one word or one record in this thread's lane. Begin and end cost the caller two
 * stores and a clock read. Other users, a nesting check or an NVTX tool, cost nothing in the usual case: one comparison
 * of the enable word, which is loaded anyway.
 */
#include <string.h>

#include "instrument/nvtx/internal.h"
#include "instrument/range/internal.h"

/* The bits that select where a range goes. The wrapper's bit is included, since its stack must have all ranges. */
#define PLACES (MAREY_ON_RECORD | MAREY_ON_CHECKED | MAREY_ON_NVTX | MAREY_ON_WRAPPER)

static void put_with_payload(enum marey_record_type type, marey_id id,
                             const struct marey_payload *payload);

/* A tool's own work stays outside: its push comes first, its pop last. */
void marey__range_begin_entry(marey__entry entry, const struct marey_payload *payload)
{
    const uint32_t on = marey_on();
    const marey_id id = entry & MAREY__ENTRY_ID;
    if ((on & MAREY_ON_NVTX) && marey__nvtx_push(id, payload))
        entry |= MAREY__ENTRY_NVTX;
    marey__stack_push(entry);
    if (on & MAREY_ON_RECORD) {
        if (payload != NULL)
            put_with_payload(MAREY_RECORD_BEGIN, id, payload);
        else
            marey__lane_put(marey__tag(MAREY_KIND_BEGIN, id));
    }
}

void marey__range_end_entry(marey__entry entry)
{
    if (entry == 0)
        return;
    if (marey_on() & MAREY_ON_RECORD)
        marey__lane_put(marey__tag(MAREY_KIND_END, entry & MAREY__ENTRY_ID));
    if (entry & MAREY__ENTRY_NVTX)
        marey__nvtx_pop(entry & MAREY__ENTRY_ID);
}

/* Not inlined, so that the usual case needs no stack frame. */
__attribute__((noinline)) static void begin_otherwise(marey_id id)
{
    marey__range_begin_entry(id & MAREY__ENTRY_ID, NULL);
}

/* A range that began before the stack existed is not on it: then only the recording gets the end. */
void marey_end_unchecked(marey_id id)
{
    const marey__entry entry = marey__stack_take(id);
    if (entry != 0)
        marey__range_end_entry(entry);
    else if (marey_on() & MAREY_ON_RECORD)
        marey__lane_put(marey__tag(MAREY_KIND_END, id));
}

__attribute__((noinline)) static void end_otherwise(marey_id id, uint32_t on)
{
    if ((on & MAREY_ON_CHECKED) == 0)
        marey_end_unchecked(id);
    else if (marey_end_checked(id) != MAREY_OK)
        marey__say("%s", marey_last_error());
}

void marey_begin_on(marey_id id)
{
    const uint32_t on = marey_on() & PLACES;
    if (MAREY_LIKELY(on == MAREY_ON_RECORD))
        marey__lane_put(marey__tag(MAREY_KIND_BEGIN, id));
    else if (on != 0)
        begin_otherwise(id);
}

void marey_end_on(marey_id id)
{
    const uint32_t on = marey_on() & PLACES;
    if (MAREY_LIKELY(on == MAREY_ON_RECORD))
        marey__lane_put(marey__tag(MAREY_KIND_END, id));
    else if (on != 0)
        end_otherwise(id, on);
}

void marey_mark_on(marey_id id)
{
    const uint32_t on = marey_on();
    if (on & MAREY_ON_RECORD)
        marey__lane_put(marey__tag(MAREY_KIND_MARK, id));
    if (MAREY_UNLIKELY(on & MAREY_ON_NVTX))
        marey__nvtx_mark(id, NULL);
}

void marey_counter_on(marey_id id, double value)
{
    uint64_t words[2] = {id, 0};
    if ((marey_on() & MAREY_ON_RECORD) == 0)
        return;
    memcpy(&words[1], &value, sizeof value);
    marey__lane_put_record(MAREY_RECORD_COUNTER, words, 2);
}

/* ---- payloads ---- */

enum { TEXT_MAX = 4096 };

static void put_with_payload(enum marey_record_type type, marey_id id,
                             const struct marey_payload *payload)
{
    uint64_t words[1 + TEXT_MAX / 8];
    const bool is_text = payload->type == MAREY_PAYLOAD_TEXT;
    const uint32_t len = is_text ? MAREY__MIN(payload->len, (uint32_t)TEXT_MAX) : 0;
    size_t n = 2;
    if (is_text) {
        n = 1 + (len + 7) / 8;
        words[n - 1] = 0; /* the rest of the last word; for empty text, words[0], which is set below */
        if (len > 0)
            memcpy(&words[1], payload->as.text, len);
    } else {
        words[1] = payload->as.u64;
    }
    words[0] = (id & 0xfffffu) | (uint64_t)(payload->type & 0xffu) << 20 | (uint64_t)len << 32;
    marey__lane_put_record(type, words, n);
}

void marey_begin_payload(marey_id id, const struct marey_payload *payload)
{
    const uint32_t on = marey_on() & PLACES;
    if (on == MAREY_ON_RECORD)
        put_with_payload(MAREY_RECORD_BEGIN, id, payload);
    else if (on != 0)
        marey__range_begin_entry(id & MAREY__ENTRY_ID, payload);
}

void marey_mark_payload(marey_id id, const struct marey_payload *payload)
{
    const uint32_t on = marey_on();
    if (on & MAREY_ON_RECORD)
        put_with_payload(MAREY_RECORD_MARK, id, payload);
    if (on & MAREY_ON_NVTX)
        marey__nvtx_mark(id, payload);
}

/* ---- by name ---- */

void marey_push_at(const char *name, const char *file, uint32_t line)
{
    if ((marey_on() & PLACES) != 0)
        marey_begin_on(marey_site_intern(name, name != NULL ? strlen(name) : 0, NULL, 0, file, line));
}

void marey_pop(void)
{
    marey_end_on(0);
}

/* ---- async ---- */

/* The number is unique in this process; the site is in the low bits, so that the end needs no table. */
static marey_async next_async(marey_id id)
{
    static uint64_t n;
    return (__atomic_add_fetch(&n, 1, __ATOMIC_RELAXED) << 20) | (id & MAREY__ENTRY_ID);
}

static void put_async(enum marey_record_type type, marey_async range)
{
    const uint64_t words[] = {range & MAREY__ENTRY_ID, range};
    if (marey_on() & MAREY_ON_RECORD)
        marey__lane_put_record(type, words, 2);
}

marey_async marey_async_begin(marey_id id)
{
    const uint32_t on = marey_on() & (MAREY_ON_RECORD | MAREY_ON_NVTX);
    if (on == 0)
        return 0;
    const marey_async range = next_async(id);
    if (on & MAREY_ON_NVTX)
        marey__nvtx_async_begin(range);
    put_async(MAREY_RECORD_ASYNC_BEGIN, range);
    return range;
}

void marey_async_end(marey_async range)
{
    const uint32_t on = marey_on();
    if (range == 0 || on == 0)
        return;
    put_async(MAREY_RECORD_ASYNC_END, range);
    if (on & MAREY_ON_NVTX)
        marey__nvtx_async_end(range);
}

/* ---- into the recording only ---- */

void marey_put_begin(marey_id id)
{
    if (marey_on() & MAREY_ON_RECORD)
        marey__lane_put(marey__tag(MAREY_KIND_BEGIN, id));
}

void marey_put_begin_payload(marey_id id, const struct marey_payload *payload)
{
    if (marey_on() & MAREY_ON_RECORD)
        put_with_payload(MAREY_RECORD_BEGIN, id, payload);
}

void marey_put_end(marey_id id)
{
    if (marey_on() & MAREY_ON_RECORD)
        marey__lane_put(marey__tag(MAREY_KIND_END, id));
}

void marey_put_end_of(marey_id id)
{
    const uint64_t words[] = {id & MAREY__ENTRY_ID};
    if (marey_on() & MAREY_ON_RECORD)
        marey__lane_put_record(MAREY_RECORD_END_OF, words, MAREY__COUNT_OF(words));
}

void marey_put_mark(marey_id id, const struct marey_payload *payload)
{
    if ((marey_on() & MAREY_ON_RECORD) == 0)
        return;
    if (payload != NULL)
        put_with_payload(MAREY_RECORD_MARK, id, payload);
    else
        marey__lane_put(marey__tag(MAREY_KIND_MARK, id));
}

marey_async marey_put_async_begin(marey_id id)
{
    if ((marey_on() & MAREY_ON_RECORD) == 0)
        return 0;
    const marey_async range = next_async(id);
    put_async(MAREY_RECORD_ASYNC_BEGIN, range);
    return range;
}

void marey_put_async_end(marey_async range)
{
    if (range != 0)
        put_async(MAREY_RECORD_ASYNC_END, range);
}
