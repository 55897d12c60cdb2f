/* lane: a thread's buffer when it is full, interrupted, set aside or out of memory. */
#include <signal.h>

#include "scratch.h"
#include <marey/range.h>

static void start(const struct scratch *s, const char *text)
{
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path, .text = text}), MAREY_OK);
}

static struct marey_counts counts(void)
{
    struct marey_counts out;
    marey_counts_get(&out);
    return out;
}

static void events_fill_chunk_after_chunk(void **state)
{
    const struct scratch *s = *state;
    start(s, "pool=4M");
    const marey_id id = MAREY_ID("mark");
    const uint64_t n = 3 * MAREY__CHUNK_WORDS + 5;
    for (uint64_t i = 0; i < n; i++)
        marey_mark(id);
    assert_int_equal(counts().events, n);
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_int_equal(counts().events, n);
    assert_int_equal(counts().lost_events, 0);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_MARK), n);
}

static void a_record_never_spans_two_chunks(void **state)
{
    const struct scratch *s = *state;
    start(s, "pool=32M");
    char text[4096];
    memset(text, 'x', sizeof text);
    for (uint32_t len = 0; len <= sizeof text; len++)
        marey_mark_payload(
            MAREY_ID("payload"),
            &(struct marey_payload){.type = MAREY_PAYLOAD_TEXT, .len = len, .as.text = text});
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_int_equal(counts().lost_events, 0);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_RECORD), sizeof text + 1);
}

static void a_full_pool_counts_each_drop(void **state)
{
    const struct scratch *s = *state;
    start(s, "pool=2M,disk=1");
    const uint64_t n = 2000000;
    for (uint64_t i = 0; i < n; i++)
        marey_mark(MAREY_ID("mark"));
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_true(counts().lost_events > 0);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_MARK) + (int64_t)counts().lost_events, n);
}

static void a_lane_set_aside_loses_and_counts(void **state)
{
    const struct scratch *s = *state;
    start(s, NULL);
    marey_mark(MAREY_ID("taken"));
    struct marey__lane *lane = marey__lane_set_aside();
    marey_mark(MAREY_ID("lost"));
    marey_counter(MAREY_ID("lost too"), 1.0);
    marey__lane_resume(lane);
    marey_mark(MAREY_ID("taken"));
    assert_int_equal(counts().lost_events, 2);
    assert_int_equal(counts().events, 2);
}

static void a_busy_lane_loses_and_counts(void **state)
{
    const struct scratch *s = *state;
    start(s, NULL);
    marey_mark(MAREY_ID("taken"));
    marey__lane_self->is_busy = 1; /* as when a signal handler interrupts an event */
    marey_mark(MAREY_ID("lost"));
    marey_counter(MAREY_ID("lost too"), 1.0);
    marey__lane_self->is_busy = 0;
    marey_mark(MAREY_ID("taken"));
    assert_int_equal(counts().lost_events, 2);
    assert_int_equal(counts().events, 2);
}

static void without_memory_for_a_lane_an_event_is_lost(void **state)
{
    const struct scratch *s = *state;
    const marey_id id = MAREY_ID("first");
    marey_reset();
    start(s, NULL);
    marey__lane_resume(marey__lane_self);
    marey__alloc_fail_nth(1);
    marey_mark(id); /* this thread may have its lane from another test: then nothing is allocated */
    marey__alloc_fail_nth(0);
    marey_mark(id);
    assert_int_equal(counts().events + counts().lost_events, 2);
}

static void *mark_once(void *id)
{
    marey_mark(*(const marey_id *)id);
    return NULL;
}

static void a_thread_that_ends_leaves_its_events(void **state)
{
    const struct scratch *s = *state;
    marey_id id = MAREY_ID("mark");
    start(s, NULL);
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, mark_once, &id);
        pthread_join(thread, NULL);
    }
    assert_int_equal(counts().n_threads, 100);
    assert_int_equal(counts().events, 100);
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_MARK), 100);
}

static void an_id_that_nobody_gave_stays_an_id(void **state)
{
    const struct scratch *s = *state;
    start(s, NULL);
    marey_mark(UINT32_MAX);
    marey_begin(UINT32_MAX);
    marey_end(UINT32_MAX);
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_MARK), 1);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_BEGIN), 1);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_RECORD), 0);
}

/* ---- records of the past ---- */

static void put_at(uint64_t tick, uint64_t number)
{
    const uint64_t words[] = {MAREY_ID("past"), number};
    marey__lane_put_record_at(tick, MAREY_RECORD_COUNTER, words, MAREY__COUNT_OF(words));
}

/* Times of all events of the one lane; how many go back, and those of counters. */
struct order {
    uint64_t n, n_back, last_ns;
    uint64_t counters[8], n_counters;
};

static marey_status look_at_order(void *ctx, const struct marey_batch *batch)
{
    struct order *order = ctx;
    for (size_t i = 0, length; i < batch->n; i += length) {
        const uint64_t ns = marey_batch_ns(batch, batch->words[i]);
        const bool is_record = marey_word_kind(batch->words[i]) == MAREY_KIND_RECORD;
        length = is_record ? marey_record_length(batch->words[i]) : 1;
        order->n_back += ns < order->last_ns;
        order->last_ns = ns;
        order->n++;
        if (is_record && order->n_counters < MAREY__COUNT_OF(order->counters))
            order->counters[order->n_counters++] = ns;
    }
    return MAREY_OK;
}

static struct order order_of(const char *path)
{
    struct order order = {0};
    marey_recording *recording;
    assert_int_equal(marey_recording_open(path, &recording), MAREY_OK);
    assert_int_equal(marey_recording_visit(recording, 0, look_at_order, &order), MAREY_OK);
    marey_recording_close(recording);
    return order;
}

static void a_record_of_the_past_has_its_time_but_never_goes_back(void **state)
{
    const struct scratch *s = *state;
    start(s, "clock=monotonic");
    const uint64_t begin = marey__clock_ticks();
    usleep(3000);
    put_at(begin + 1000, 0); /* the first event of the lane */
    put_at(begin + 2000, 1);
    put_at(begin + 500, 2); /* not before the one that is there */
    const uint64_t before = marey__clock_ticks();
    marey_mark(MAREY_ID("now"));
    const uint64_t after = marey__clock_ticks();
    put_at(begin + 3000, 3);             /* nor before an event that is no record */
    put_at(UINT64_MAX, 4);               /* nor after now */
    marey_counter(MAREY_ID("plain"), 1); /* and others go on behind */
    const uint64_t end = marey__clock_ticks();
    assert_int_equal(marey_stop(), MAREY_OK);
    const struct order order = order_of(s->path);
    assert_int_equal(order.n, 7);
    assert_int_equal(order.n_back, 0);
    const uint64_t *const ns = order.counters; /* ticks of that clock are nanoseconds */
    assert_true(ns[0] == begin + 1000 && ns[1] == begin + 2000 && ns[2] == begin + 2000);
    assert_true(ns[3] >= before && ns[3] <= after);
    assert_true(ns[4] >= after && ns[4] <= ns[5] && ns[5] <= end);
}

static void records_of_the_past_fill_chunk_after_chunk_in_order(void **state)
{
    const struct scratch *s = *state;
    enum { N = 40000 }; /* three words each: several chunks */
    start(s, "pool=16M,clock=monotonic");
    const uint64_t begin = marey__clock_ticks();
    for (uint64_t i = 0; i < N; i++) {
        put_at(begin + i, i); /* always long ago */
        if (i % 1000 == 0)
            marey_mark(MAREY_ID("mark"));
    }
    assert_int_equal(marey_stop(), MAREY_OK);
    const struct order order = order_of(s->path);
    assert_int_equal(order.n, N + N / 1000);
    assert_int_equal(order.n_back, 0);
    assert_int_equal(counts().lost_events, 0);
}

static void behind_a_gap_records_of_the_past_are_in_order(void **state)
{
    const struct scratch *s = *state;
    start(s, "pool=2M,disk=1");
    for (uint64_t i = 0; i < 200000; i++)
        put_at(marey__clock_ticks() - 1000, i);
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_true(counts().lost_events > 0);
    assert_int_equal(order_of(s->path).n_back, 0);
}

/*
 * Ticks of a chunk have 40 bits. When they run out between looking at the clock and storing what it says, time must not
 * go back: so it is made to run out at every distance from the event.
 */
static void ticks_that_run_out_do_not_go_back(void **state)
{
    const struct scratch *s = *state;
    start(s, "pool=64M,policy=block");
    const uint64_t word = 1;
    marey_mark(MAREY_ID("first"));
    uint64_t n_backwards = 0;
    for (uint64_t i = 0; i < 200000; i++) {
        struct marey__lane *const lane = marey__lane_self;
        lane->base_tick = marey__clock_ticks() + i % 400 - (UINT64_C(1) << 40);
        lane->pos = lane->record_end; /* as if it had no other event */
        lane->record_tick = lane->base_tick;
        const uint64_t before = marey__clock_ticks();
        if (i % 2 == 0)
            marey__lane_put_record(MAREY_RECORD_GAP, &word, 1);
        else
            marey__lane_put_slowly(marey__tag(MAREY_KIND_MARK, 1));
        const uint64_t ticks = (i % 2 == 0 ? lane->pos[-2] : lane->pos[-1]) >> 24;
        n_backwards += lane->base_tick + ticks < before;
    }
    assert_int_equal(n_backwards, 0);
    assert_int_equal(marey_stop(), MAREY_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(ticks_that_run_out_do_not_go_back),
        SCRATCH_TEST(without_memory_for_a_lane_an_event_is_lost),
        SCRATCH_TEST(events_fill_chunk_after_chunk),
        SCRATCH_TEST(a_record_never_spans_two_chunks),
        SCRATCH_TEST(a_full_pool_counts_each_drop),
        SCRATCH_TEST(a_lane_set_aside_loses_and_counts),
        SCRATCH_TEST(a_busy_lane_loses_and_counts),
        SCRATCH_TEST(a_thread_that_ends_leaves_its_events),
        SCRATCH_TEST(an_id_that_nobody_gave_stays_an_id),
        SCRATCH_TEST(a_record_of_the_past_has_its_time_but_never_goes_back),
        SCRATCH_TEST(records_of_the_past_fill_chunk_after_chunk_in_order),
        SCRATCH_TEST(behind_a_gap_records_of_the_past_are_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
