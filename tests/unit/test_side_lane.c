/* side_lane: lanes that do not belong to a thread: events keep their times, also after a kill. */
#include <signal.h>
#include <sys/wait.h>

#include "scratch.h"
#include <marey/range.h>

enum { DEVICE = 2, STREAM = 7, TICKS = 1000, DURATION = 400 };

static const int64_t tid = (int64_t)DEVICE << 32 | STREAM;

static void start(const struct scratch *s, const char *text)
{
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path, .text = text}), MAREY_OK);
}

static void put(struct marey__lane *lane, uint64_t tick, uint64_t number)
{
    const uint64_t words[] = {(uint64_t)MAREY_ID("kernel") | (uint64_t)MAREY_WORK_KERNEL << 20,
                              DURATION, number, 0};
    assert_true(marey__side_lane_put(lane, tick, MAREY_RECORD_GPU, words, MAREY__COUNT_OF(words)));
}

/* Results of a visit of the stream's lane. */
struct seen {
    uint64_t n, n_wrong, last_ns;
    bool is_stream;
};

static marey_status look(void *ctx, const struct marey_batch *batch)
{
    struct seen *seen = ctx;
    if (batch->lane->kind != MAREY_LANE_GPU)
        return MAREY_OK;
    seen->is_stream = batch->lane->device == DEVICE && batch->lane->stream == STREAM &&
                      strcmp(batch->lane->name, "stream 7") == 0;
    for (size_t i = 0; i < batch->n; i += marey_record_length(batch->words[i])) {
        const uint64_t *words = batch->words + i, ns = marey_batch_ns(batch, words[0]);
        seen->n_wrong += words[2] != DURATION || words[3] != seen->n || ns < seen->last_ns;
        seen->last_ns = ns;
        seen->n++;
    }
    return MAREY_OK;
}

static struct seen read_back(const char *path)
{
    struct seen seen = {0};
    marey_recording *recording;
    assert_int_equal(marey_recording_open(path, &recording), MAREY_OK);
    assert_int_equal(marey_recording_visit(recording, 0, look, &seen), MAREY_OK);
    const struct marey_process *process = marey_recording_process(recording, 0);
    assert_true(process->last_ns > seen.last_ns); /* it lasts to the end of the last work */
    marey_recording_close(recording);
    return seen;
}

static void records_come_back_with_their_own_times(void **state)
{
    enum { N = 5000 }; /* several chunks */
    const struct scratch *s = *state;
    start(s, "clock=monotonic");
    struct marey__lane *lane = marey__side_lane_open(MAREY_LANE_GPU, tid, "stream 7");
    const uint64_t first = marey__clock_ticks();
    for (uint64_t i = 0; i < N; i++)
        put(lane, first + i * TICKS, i);
    marey__side_lane_close(lane);
    assert_int_equal(marey_stop(), MAREY_OK);
    const struct seen seen = read_back(s->path);
    assert_int_equal(seen.n, N);
    assert_int_equal(seen.n_wrong, 0);
    assert_true(seen.is_stream);
    assert_int_equal(seen.last_ns, first + (N - 1) * TICKS); /* ticks of that clock are nanoseconds */
}

static void a_pause_of_more_than_40_bits_starts_a_chunk(void **state)
{
    const struct scratch *s = *state;
    start(s, "clock=monotonic");
    struct marey__lane *lane = marey__side_lane_open(MAREY_LANE_GPU, tid, "stream 7");
    const uint64_t first = marey__clock_ticks();
    put(lane, first, 0);
    put(lane, first + (UINT64_C(3) << 40), 1);
    marey__side_lane_close(lane);
    assert_int_equal(marey_stop(), MAREY_OK);
    const struct seen seen = read_back(s->path);
    assert_int_equal(seen.n, 2);
    assert_int_equal(seen.last_ns, first + (UINT64_C(3) << 40));
}

static void a_lane_goes_from_one_recording_to_the_next(void **state)
{
    const struct scratch *s = *state;
    const uint64_t words[4] = {0};
    struct marey__lane *lane = marey__side_lane_open(MAREY_LANE_GPU, tid, "stream 7");
    assert_false(marey__side_lane_put(lane, 1, MAREY_RECORD_GPU, words, 4)); /* none is open */
    for (int i = 0; i < 2; i++) {
        char path[160];
        snprintf(path, sizeof path, "%s%d", s->path, i);
        assert_int_equal(marey_start(&(struct marey_options){.path = path}), MAREY_OK);
        put(lane, marey__clock_ticks(), 0);
        assert_int_equal(marey_stop(), MAREY_OK);
        assert_int_equal(read_back(path).n, 1);
    }
    marey__side_lane_close(lane);
}

static void what_was_put_survives_a_kill(void **state)
{
    enum { N = 3000 };
    const struct scratch *s = *state;
    const pid_t child = fork();
    if (child == 0) {
        if (marey_start(&(struct marey_options){.path = s->path}) != MAREY_OK)
            _exit(1);
        struct marey__lane *lane = marey__side_lane_open(MAREY_LANE_GPU, tid, "stream 7");
        for (uint64_t i = 0; i < N; i++)
            put(lane, marey__clock_ticks(), i);
        raise(SIGKILL);
    }
    waitpid(child, NULL, 0);
    const struct seen seen = read_back(s->path);
    assert_int_equal(seen.n, N);
    assert_int_equal(seen.n_wrong, 0);
    assert_true(seen.is_stream);
}

static void a_full_pool_counts_what_it_does_not_take(void **state)
{
    const struct scratch *s = *state;
    const uint64_t words[4] = {[0] = 1};
    uint64_t n_refused = 0;
    start(s, "pool=2M,disk=1");
    struct marey__lane *lane = marey__side_lane_open(MAREY_LANE_GPU, tid, "stream 7");
    for (uint64_t i = 0; i < 200000; i++)
        n_refused += !marey__side_lane_put(lane, marey__clock_ticks(), MAREY_RECORD_GPU, words, 4);
    marey__side_lane_close(lane);
    assert_int_equal(marey_stop(), MAREY_OK);
    struct marey_counts counts;
    marey_counts_get(&counts);
    assert_true(n_refused > 0);
    assert_int_equal(counts.lost_events, n_refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(records_come_back_with_their_own_times),
        SCRATCH_TEST(a_pause_of_more_than_40_bits_starts_a_chunk),
        SCRATCH_TEST(a_lane_goes_from_one_recording_to_the_next),
        SCRATCH_TEST(what_was_put_survives_a_kill),
        SCRATCH_TEST(a_full_pool_counts_what_it_does_not_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
