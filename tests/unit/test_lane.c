/* lane: a thread's place to write: what it holds when it is full, interrupted, set aside or without memory. */
#include <signal.h>

#include "scratch.h"
#include <kymo/range.h>

static void start(const struct scratch *s, const char *text)
{
    assert_int_equal(kymo_start(&(struct kymo_options){.path = s->path, .text = text}), KYMO_OK);
}

static struct kymo_counts counts(void)
{
    struct kymo_counts out;
    kymo_counts_get(&out);
    return out;
}

static void events_fill_chunk_after_chunk(void **state)
{
    const struct scratch *s = *state;
    start(s, "pool=4M");
    const kymo_id id = KYMO_ID("mark");
    const uint64_t n = 3 * KYMO__CHUNK_WORDS + 5;
    for (uint64_t i = 0; i < n; i++)
        kymo_mark(id);
    assert_int_equal(counts().events, n);
    assert_int_equal(kymo_stop(), KYMO_OK);
    assert_int_equal(counts().events, n);
    assert_int_equal(counts().lost_events, 0);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_MARK), n);
}

static void a_record_never_spans_two_chunks(void **state)
{
    const struct scratch *s = *state;
    start(s, "pool=32M");
    char text[4096];
    memset(text, 'x', sizeof text);
    for (uint32_t len = 0; len <= sizeof text; len++)
        kymo_mark_payload(
            KYMO_ID("payload"),
            &(struct kymo_payload){.type = KYMO_PAYLOAD_TEXT, .len = len, .as.text = text});
    assert_int_equal(kymo_stop(), KYMO_OK);
    assert_int_equal(counts().lost_events, 0);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_RECORD), sizeof text + 1);
}

static void a_full_pool_counts_each_drop(void **state)
{
    const struct scratch *s = *state;
    start(s, "pool=2M,disk=1");
    const uint64_t n = 2000000;
    for (uint64_t i = 0; i < n; i++)
        kymo_mark(KYMO_ID("mark"));
    assert_int_equal(kymo_stop(), KYMO_OK);
    assert_true(counts().lost_events > 0);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_MARK) + (int64_t)counts().lost_events, n);
}

static void a_lane_set_aside_loses_and_counts(void **state)
{
    const struct scratch *s = *state;
    start(s, NULL);
    kymo_mark(KYMO_ID("taken"));
    struct kymo__lane *lane = kymo__lane_set_aside();
    kymo_mark(KYMO_ID("lost"));
    kymo_counter(KYMO_ID("lost too"), 1.0);
    kymo__lane_resume(lane);
    kymo_mark(KYMO_ID("taken"));
    assert_int_equal(counts().lost_events, 2);
    assert_int_equal(counts().events, 2);
}

static void a_busy_lane_loses_and_counts(void **state)
{
    const struct scratch *s = *state;
    start(s, NULL);
    kymo_mark(KYMO_ID("taken"));
    kymo__lane_self->is_busy = 1; /* as when a signal handler interrupts an event */
    kymo_mark(KYMO_ID("lost"));
    kymo_counter(KYMO_ID("lost too"), 1.0);
    kymo__lane_self->is_busy = 0;
    kymo_mark(KYMO_ID("taken"));
    assert_int_equal(counts().lost_events, 2);
    assert_int_equal(counts().events, 2);
}

static void without_memory_for_a_lane_an_event_is_lost(void **state)
{
    const struct scratch *s = *state;
    const kymo_id id = KYMO_ID("first");
    kymo_reset();
    start(s, NULL);
    kymo__lane_resume(kymo__lane_self);
    kymo__alloc_fail_nth(1);
    kymo_mark(id); /* this thread may have its lane from another test: then nothing is allocated */
    kymo__alloc_fail_nth(0);
    kymo_mark(id);
    assert_int_equal(counts().events + counts().lost_events, 2);
}

static void *mark_once(void *id)
{
    kymo_mark(*(const kymo_id *)id);
    return NULL;
}

static void a_thread_that_ends_leaves_its_events(void **state)
{
    const struct scratch *s = *state;
    kymo_id id = KYMO_ID("mark");
    start(s, NULL);
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, mark_once, &id);
        pthread_join(thread, NULL);
    }
    assert_int_equal(counts().n_threads, 100);
    assert_int_equal(counts().events, 100);
    assert_int_equal(kymo_stop(), KYMO_OK);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_MARK), 100);
}

static void an_id_that_nobody_gave_stays_an_id(void **state)
{
    const struct scratch *s = *state;
    start(s, NULL);
    kymo_mark(UINT32_MAX);
    kymo_begin(UINT32_MAX);
    kymo_end(UINT32_MAX);
    assert_int_equal(kymo_stop(), KYMO_OK);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_MARK), 1);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_BEGIN), 1);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_RECORD), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(without_memory_for_a_lane_an_event_is_lost),
        SCRATCH_TEST(events_fill_chunk_after_chunk),
        SCRATCH_TEST(a_record_never_spans_two_chunks),
        SCRATCH_TEST(a_full_pool_counts_each_drop),
        SCRATCH_TEST(a_lane_set_aside_loses_and_counts),
        SCRATCH_TEST(a_busy_lane_loses_and_counts),
        SCRATCH_TEST(a_thread_that_ends_leaves_its_events),
        SCRATCH_TEST(an_id_that_nobody_gave_stays_an_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
