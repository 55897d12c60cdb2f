/*
 * Ranges are written when they end, the inner before the outer. Readers use times to find which lies in which; where two have
 * the same begin and the same end, the one that comes first is the outer. Such ranges wait for one another:
 *
 *   lane->held   | struct held | text | records |  innermost first, each of them begins and ends as the first does
 *
 * Traces in whole microseconds have many, a recording of our own hardly any.
 */
#include "present/export/chrome_export.h"

struct held {
    uint64_t start_ns, end_ns;
    size_t depth;
    size_t previous; /* where the one before it lies; of the first, its own place */
    uint32_t site;
    bool is_cut;
    struct marey__payload payload;
};

static struct held held_at(const struct marey__export_lane *lane, size_t at)
{
    struct held held;
    const char *entry = lane->held.data + at;
    memcpy(&held, entry, sizeof held);
    held.payload.text = entry + sizeof held;
    held.payload.records =
        (const uint64_t *)(held.payload.text + marey__whole_words(held.payload.len));
    return held;
}

/* The last one's place is kept behind everything. */
static size_t last_of(const struct marey__export_lane *lane)
{
    size_t at;
    memcpy(&at, lane->held.data + lane->held.len - sizeof at, sizeof at);
    return at;
}

void marey__chrome_release(struct marey__export *x, struct marey__export_lane *lane)
{
    if (lane->held.len == 0)
        return;
    for (size_t at = last_of(lane);;) {
        const struct held held = held_at(lane, at);
        marey__chrome_range(x, lane, held.start_ns, held.end_ns, held.site, &held.payload,
                            held.is_cut);
        if (held.previous == at)
            break;
        at = held.previous;
    }
    lane->held.len = 0;
}

static void put_held(struct marey__export *x, struct marey__export_lane *lane, struct held *held)
{
    static const char zeros[8];
    struct marey__buf *buf = &lane->held;
    const struct marey__payload *payload = &held->payload;
    held->previous = 0;
    if (buf->len != 0) {
        held->previous = last_of(lane);
        buf->len -= sizeof(size_t);
    }
    const size_t at = buf->len;
    marey__buf_put(buf, held, sizeof *held);
    marey__buf_put(buf, payload->text, payload->len);
    marey__buf_put(buf, zeros, marey__whole_words(payload->len) - payload->len);
    marey__buf_put(buf, payload->records, payload->n_words * sizeof payload->records[0]);
    marey__buf_put(buf, &at, sizeof at);
    if (buf->failed) {
        buf->len = 0;
        x->status = marey__no_memory();
    }
}

/* Whether what waits lies in the range that ends now, from its begin to its end. */
static bool is_filled(const struct marey__export_lane *lane, uint64_t ns,
                      const struct marey__frame *range)
{
    const struct held inner = held_at(lane, last_of(lane));
    return inner.start_ns == range->start_ns && inner.end_ns == ns &&
           inner.depth == lane->stack.n_open + 1;
}

void marey__chrome_hold(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                        const struct marey__frame *range, bool may_wait, bool is_cut)
{
    if (lane->held.len != 0 && !is_filled(lane, ns, range))
        marey__chrome_release(x, lane);
    struct held held = {
        .start_ns = range->start_ns,
        .end_ns = ns,
        .depth = lane->stack.n_open,
        .site = range->site,
        .is_cut = is_cut,
        .payload = marey__open_payload(lane, range),
    };
    put_held(x, lane, &held);
    if (!may_wait)
        marey__chrome_release(x, lane);
}
