/*
 * Ranges, marks and counters: each is one word or one record in this thread's lane. Begin and end are two stores and a
 * clock read away from the caller. Whoever else wants to know of them, a check of nesting or an NVTX tool, costs the
 * usual case nothing: that is told by one comparison of the enable word, which was loaded anyway.
 */
#include <string.h>

#include "nvtx/nvtx_internal.h"
#include "range/range_internal.h"

/*
 * The bits that say where a range goes; with the first alone, it takes the quick way. The wrapper's is among them
 * because it keeps a stack, which is right only with all ranges on it.
 */
#define PLACES (KYMO_ON_RECORD | KYMO_ON_CHECKED | KYMO_ON_NVTX | KYMO_ON_WRAPPER)

static void put_with_payload(enum kymo_record_type type, kymo_id id,
                             const struct kymo_payload *payload);

/* A tool's own work stays outside: its push comes first, its pop last. */
void kymo__range_begin_entry(kymo__entry entry, const struct kymo_payload *payload)
{
    const uint32_t on = kymo_on();
    const kymo_id id = entry & KYMO__ENTRY_ID;
    if ((on & KYMO_ON_NVTX) && kymo__nvtx_push(id, payload))
        entry |= KYMO__ENTRY_NVTX;
    kymo__stack_push(entry);
    if (on & KYMO_ON_RECORD) {
        if (payload != NULL)
            put_with_payload(KYMO_RECORD_BEGIN, id, payload);
        else
            kymo__lane_put(kymo__tag(KYMO_KIND_BEGIN, id));
    }
}

void kymo__range_end_entry(kymo__entry entry)
{
    if (entry == 0)
        return;
    if (kymo_on() & KYMO_ON_RECORD)
        kymo__lane_put(kymo__tag(KYMO_KIND_END, entry & KYMO__ENTRY_ID));
    if (entry & KYMO__ENTRY_NVTX)
        kymo__nvtx_pop(entry & KYMO__ENTRY_ID);
}

/* Out of line, so that the usual case needs no stack frame. */
__attribute__((noinline)) static void begin_otherwise(kymo_id id)
{
    kymo__range_begin_entry(id & KYMO__ENTRY_ID, NULL);
}

/* What began before anybody kept a stack is on none: then the recording alone is told. */
void kymo_end_unchecked(kymo_id id)
{
    const kymo__entry entry = kymo__stack_take(id);
    if (entry != 0)
        kymo__range_end_entry(entry);
    else if (kymo_on() & KYMO_ON_RECORD)
        kymo__lane_put(kymo__tag(KYMO_KIND_END, id));
}

__attribute__((noinline)) static void end_otherwise(kymo_id id, uint32_t on)
{
    if ((on & KYMO_ON_CHECKED) == 0)
        kymo_end_unchecked(id);
    else if (kymo_end_checked(id) != KYMO_OK)
        kymo__say("%s", kymo_last_error());
}

void kymo_begin_on(kymo_id id)
{
    const uint32_t on = kymo_on() & PLACES;
    if (KYMO_LIKELY(on == KYMO_ON_RECORD))
        kymo__lane_put(kymo__tag(KYMO_KIND_BEGIN, id));
    else if (on != 0)
        begin_otherwise(id);
}

void kymo_end_on(kymo_id id)
{
    const uint32_t on = kymo_on() & PLACES;
    if (KYMO_LIKELY(on == KYMO_ON_RECORD))
        kymo__lane_put(kymo__tag(KYMO_KIND_END, id));
    else if (on != 0)
        end_otherwise(id, on);
}

void kymo_mark_on(kymo_id id)
{
    const uint32_t on = kymo_on();
    if (on & KYMO_ON_RECORD)
        kymo__lane_put(kymo__tag(KYMO_KIND_MARK, id));
    if (KYMO_UNLIKELY(on & KYMO_ON_NVTX))
        kymo__nvtx_mark(id, NULL);
}

void kymo_counter_on(kymo_id id, double value)
{
    uint64_t words[2] = {id, 0};
    if ((kymo_on() & KYMO_ON_RECORD) == 0)
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
    const uint32_t on = kymo_on() & PLACES;
    if (on == KYMO_ON_RECORD)
        put_with_payload(KYMO_RECORD_BEGIN, id, payload);
    else if (on != 0)
        kymo__range_begin_entry(id & KYMO__ENTRY_ID, payload);
}

void kymo_mark_payload(kymo_id id, const struct kymo_payload *payload)
{
    const uint32_t on = kymo_on();
    if (on & KYMO_ON_RECORD)
        put_with_payload(KYMO_RECORD_MARK, id, payload);
    if (on & KYMO_ON_NVTX)
        kymo__nvtx_mark(id, payload);
}

/* ---- by name ---- */

void kymo_push_at(const char *name, const char *file, uint32_t line)
{
    if ((kymo_on() & PLACES) != 0)
        kymo_begin_on(kymo_site_intern(name, name != NULL ? strlen(name) : 0, NULL, 0, file, line));
}

void kymo_pop(void)
{
    kymo_end_on(0);
}

/* ---- async ---- */

/* The number is of this process; the site sits in the low bits, so that the end can tell it without a table. */
static kymo_async next_async(kymo_id id)
{
    static uint64_t n;
    return (__atomic_add_fetch(&n, 1, __ATOMIC_RELAXED) << 20) | (id & KYMO__ENTRY_ID);
}

static void put_async(enum kymo_record_type type, kymo_async range)
{
    const uint64_t words[] = {range & KYMO__ENTRY_ID, range};
    if (kymo_on() & KYMO_ON_RECORD)
        kymo__lane_put_record(type, words, 2);
}

kymo_async kymo_async_begin(kymo_id id)
{
    const uint32_t on = kymo_on() & (KYMO_ON_RECORD | KYMO_ON_NVTX);
    if (on == 0)
        return 0;
    const kymo_async range = next_async(id);
    if (on & KYMO_ON_NVTX)
        kymo__nvtx_async_begin(range);
    put_async(KYMO_RECORD_ASYNC_BEGIN, range);
    return range;
}

void kymo_async_end(kymo_async range)
{
    const uint32_t on = kymo_on();
    if (range == 0 || on == 0)
        return;
    put_async(KYMO_RECORD_ASYNC_END, range);
    if (on & KYMO_ON_NVTX)
        kymo__nvtx_async_end(range);
}

/* ---- into the recording alone ---- */

void kymo_put_begin(kymo_id id)
{
    if (kymo_on() & KYMO_ON_RECORD)
        kymo__lane_put(kymo__tag(KYMO_KIND_BEGIN, id));
}

void kymo_put_begin_payload(kymo_id id, const struct kymo_payload *payload)
{
    if (kymo_on() & KYMO_ON_RECORD)
        put_with_payload(KYMO_RECORD_BEGIN, id, payload);
}

void kymo_put_end(kymo_id id)
{
    if (kymo_on() & KYMO_ON_RECORD)
        kymo__lane_put(kymo__tag(KYMO_KIND_END, id));
}

void kymo_put_end_of(kymo_id id)
{
    const uint64_t words[] = {id & KYMO__ENTRY_ID};
    if (kymo_on() & KYMO_ON_RECORD)
        kymo__lane_put_record(KYMO_RECORD_END_OF, words, KYMO__COUNT_OF(words));
}

void kymo_put_mark(kymo_id id, const struct kymo_payload *payload)
{
    if ((kymo_on() & KYMO_ON_RECORD) == 0)
        return;
    if (payload != NULL)
        put_with_payload(KYMO_RECORD_MARK, id, payload);
    else
        kymo__lane_put(kymo__tag(KYMO_KIND_MARK, id));
}

kymo_async kymo_put_async_begin(kymo_id id)
{
    if ((kymo_on() & KYMO_ON_RECORD) == 0)
        return 0;
    const kymo_async range = next_async(id);
    put_async(KYMO_RECORD_ASYNC_BEGIN, range);
    return range;
}

void kymo_put_async_end(kymo_async range)
{
    if (range != 0)
        put_async(KYMO_RECORD_ASYNC_END, range);
}
