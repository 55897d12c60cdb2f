/* gpu: sessions with a stand-in of CUPTI (tests/cupti) when memory runs out, at each allocation in turn. */
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "instrument/gpu/internal.h"
#include "scratch.h"
#include <marey/iteration.h>

enum { N_LAUNCHES = 3, MOST = 400 };

typedef void launch_fn(const char *name, uint32_t stream, uint32_t grid, uint32_t block);
typedef void gate_fn(int is_shut);
static launch_fn *launch;
static gate_fn *gate;

/* The driver first: the runtime asks for it by its name alone. */
static int load_stand_ins(void **state)
{
    (void)state;
    void *driver = dlopen(STANDINS "/libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    void *runtime = dlopen(STANDINS "/libcudart.so.13", RTLD_NOW | RTLD_GLOBAL);
    void *cupti = dlopen(STANDINS "/libcupti.so.13", RTLD_NOW);
    if (driver == NULL || runtime == NULL || cupti == NULL)
        return -1;
    *(void **)&launch = dlsym(runtime, "gpu_launch");
    *(void **)&gate = dlsym(cupti, "marey_test_cupti_gate");
    return setenv("MAREY_CUPTI_LIBRARY", STANDINS "/libcupti.so.13", 1);
}

static struct marey_gpu_counts trace(marey_status *status)
{
    struct marey_gpu_counts before, after;
    marey_gpu_counts_get(&before);
    *status = marey_gpu_start(NULL);
    for (int i = 0; i < N_LAUNCHES; i++)
        launch("kernel", 7, 1, 32);
    marey_gpu_stop();
    marey_gpu_counts_get(&after);
    after.kernels -= before.kernels;
    after.dropped -= before.dropped;
    after.lost -= before.lost;
    return after;
}

static void each_allocation_may_fail_and_what_is_lost_is_counted(void **state)
{
    const struct scratch *s = *state;
    marey_status status = MAREY_OK;
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    for (uint64_t n = 1; n < MOST; n++) {
        marey__alloc_fail_nth(n);
        const struct marey_gpu_counts counts = trace(&status);
        marey__alloc_fail_nth(0);
        assert_false(marey_gpu_is_on());
        if (status == MAREY_OK)
            assert_int_equal(counts.kernels + counts.dropped, N_LAUNCHES);
        else
            assert_int_equal(counts.kernels, 0);
    }
    const struct marey_gpu_counts counts = trace(&status);
    assert_int_equal(status, MAREY_OK);
    assert_int_equal(counts.kernels, N_LAUNCHES);
    assert_int_equal(counts.dropped, 0);
    assert_int_equal(marey_stop(), MAREY_OK);
}

static void without_memory_cupti_gets_no_buffer(void **state)
{
    (void)state;
    uint8_t *kept[16], *buffer = NULL;
    size_t size = 0, max_records = 1, n = 0;
    /* What was used before is kept for the next time: take that first. */
    for (marey__alloc_fail_nth(1); n < MAREY__COUNT_OF(kept); marey__alloc_fail_nth(1)) {
        marey__gpu_buffer_request(&buffer, &size, &max_records);
        if (buffer == NULL)
            break;
        kept[n++] = buffer;
    }
    marey__alloc_fail_nth(0);
    assert_null(buffer);
    assert_int_equal(size, 0);
    marey__gpu_buffer_complete(NULL, 0, NULL, 0, 0);
    while (n > 0)
        marey__gpu_buffer_complete(NULL, 0, kept[--n], 1, 0);
}

static void a_schedule_that_cannot_begin_is_not_followed(void **state)
{
    const struct scratch *s = *state;
    const struct marey_gpu_options schedule = {.active = 1};
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    setenv("MAREY_TEST_CUPTI", "subscribe=39", 1);
    assert_int_equal(marey_gpu_start(&schedule), MAREY_EUNAVAILABLE);
    unsetenv("MAREY_TEST_CUPTI");
    marey_iteration_finish();
    assert_false(marey__gpu.is_tracing);
    assert_int_equal(marey_gpu_start(&schedule), MAREY_OK);
    assert_true(marey__gpu.is_tracing);
    assert_int_equal(marey_gpu_start(NULL), MAREY_ESTATE);
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_false(marey__gpu.is_tracing);
}

static void pauses_nest_and_a_stop_in_one_lasts(void **state)
{
    const struct scratch *s = *state;
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    assert_int_equal(marey_gpu_resume(), MAREY_OK); /* of nothing */
    assert_int_equal(marey_gpu_start(NULL), MAREY_OK);
    marey_gpu_pause(NULL);
    marey_gpu_pause("Somebody else is at it.");
    assert_int_equal(marey_gpu_resume(), MAREY_OK);
    assert_false(marey__gpu.is_tracing);
    assert_int_equal(marey_gpu_resume(), MAREY_OK);
    assert_true(marey__gpu.is_tracing);
    marey_gpu_pause(NULL);
    setenv("MAREY_TEST_CUPTI", "subscribe=39", 1);
    assert_int_equal(marey_gpu_resume(), MAREY_EUNAVAILABLE);
    assert_true(marey_gpu_is_on());
    unsetenv("MAREY_TEST_CUPTI");
    assert_int_equal(marey_gpu_resume(), MAREY_OK); /* tried again */
    assert_true(marey__gpu.is_tracing);
    marey_gpu_pause(NULL);
    marey_gpu_stop();
    assert_int_equal(marey_gpu_resume(), MAREY_OK);
    assert_false(marey__gpu.is_tracing);
    assert_int_equal(marey_stop(), MAREY_OK);
}

/* CUPTI's numbers wrap; work without one is kept. */
static void what_came_before_a_number_is_known_when_it_wraps(void **state)
{
    (void)state;
    marey__gpu.before = (uint64_t)1 << 32 | 5;
    assert_true(marey__gpu_is_earlier(4));
    assert_true(marey__gpu_is_earlier(0));
    assert_true(marey__gpu_is_earlier(UINT32_MAX));
    assert_false(marey__gpu_is_earlier(5));
    assert_false(marey__gpu_is_earlier(1u << 30));
    marey__gpu.before = (uint64_t)1 << 32; /* the number that wrapped */
    assert_true(marey__gpu_is_earlier(UINT32_MAX));
    assert_false(marey__gpu_is_earlier(1));
    marey__gpu.before = 0; /* none */
    assert_true(marey__gpu_is_earlier(UINT32_MAX));
    assert_true(marey__gpu_is_earlier(5));
}

static void a_later_stop_tells_below_which_number_its_work_is(void **state)
{
    const struct scratch *s = *state;
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    assert_int_equal(marey_gpu_stop_later(), 0);
    assert_int_equal(marey_gpu_start_later(NULL), MAREY_OK);
    assert_int_equal(marey_gpu_start_later(NULL), MAREY_ESTATE);
    marey_gpu_settle();
    assert_true(marey__gpu.is_tracing);
    const uint64_t session = marey__gpu.session;
    launch("kernel", 7, 1, 32);
    const uint64_t bound = marey_gpu_stop_later();
    assert_int_equal(bound >> 32, session);
    assert_true((uint32_t)bound > 0);
    marey_gpu_settle();
    assert_false(marey__gpu.is_tracing);
    assert_true(marey_gpu_is_settled());
    assert_int_equal(marey__gpu.session, session + 1);
    assert_int_equal(marey_stop(), MAREY_OK);
}

/* CUPTI's buffers may be flushed at any time, also while the cost of a call is being measured. */
static void memsets_that_measure_the_cost_are_not_recorded(void **state)
{
    const struct scratch *s = *state;
    struct marey_gpu_counts before, after;
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    assert_int_equal(marey_gpu_start(NULL), MAREY_OK);
    marey_gpu_counts_get(&before);
    marey__gpu_calls_set_own(true);
    launch("ours", 7, 1, 32);
    marey__gpu.cupti->flush(MAREY__CUPTI_FLUSH_FORCED);
    launch("ours, flushed later", 7, 1, 32);
    marey__gpu_calls_set_own(false);
    launch("the program's", 7, 1, 32);
    marey_gpu_stop();
    marey_gpu_counts_get(&after);
    assert_int_equal(after.kernels - before.kernels, 1);
    assert_int_equal(after.calls - before.calls, 1);
    assert_int_equal(marey_stop(), MAREY_OK);
}

/* ---- no kernel without its launch, whoever launches while tracing ends ---- */

static void *stop_tracing(void *arg)
{
    marey_gpu_stop();
    return arg;
}

static void work_launched_during_a_stop_is_not_recorded(void **state)
{
    const struct scratch *s = *state;
    struct marey_gpu_counts before, after;
    pthread_t thread;
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    gate(1);
    setenv("MAREY_TEST_CUPTI", "gate=4", 1); /* the last flush waits */
    assert_int_equal(marey_gpu_start(NULL), MAREY_OK);
    marey_gpu_counts_get(&before);
    launch("before the stop", 7, 1, 32);
    assert_int_equal(pthread_create(&thread, NULL, stop_tracing, NULL), 0);
    while (__atomic_load_n(&marey__gpu.tells, __ATOMIC_SEQ_CST) != MAREY__GPU_NO_CALLS)
        usleep(100);
    launch("during the stop", 7, 1, 32);
    gate(0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    unsetenv("MAREY_TEST_CUPTI");
    marey_gpu_counts_get(&after);
    assert_int_equal(after.calls - before.calls, 1);
    assert_int_equal(after.kernels - before.kernels, 1);
    assert_int_equal(marey_stop(), MAREY_OK);
}

/* The thread is still taking CUPTI when a stop and another start are ordered: it has nothing to keep before the stop. */
static void a_start_that_was_stopped_meanwhile_records_nothing(void **state)
{
    const struct scratch *s = *state;
    struct marey_gpu_counts before, after;
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    marey_gpu_counts_get(&before);
    const uint32_t session = marey__gpu.session;
    gate(1);
    setenv("MAREY_TEST_CUPTI", "gate=2,slow=20000",
           1); /* kernels' records wait; then there is time to launch */
    assert_int_equal(marey_gpu_start_later(NULL), MAREY_OK);
    usleep(100000);
    marey_gpu_stop_later();
    assert_int_equal(marey_gpu_start_later(NULL), MAREY_OK);
    gate(0);
    while (__atomic_load_n(&marey__gpu.session, __ATOMIC_RELAXED) == session) {
        launch("between", 7, 1, 32);
        usleep(200);
    }
    marey_gpu_settle();
    assert_true(marey__gpu.is_tracing);
    launch("after both", 7, 1, 32);
    marey_gpu_stop();
    unsetenv("MAREY_TEST_CUPTI");
    marey_gpu_counts_get(&after);
    assert_int_equal(after.calls - before.calls, 1);
    assert_int_equal(after.kernels - before.kernels, 1);
    assert_int_equal(marey_stop(), MAREY_OK);
}

/* Work of a warm-up is thrown away: it is not missing when it has not ended. */
static void only_work_that_is_kept_counts_as_incomplete(void **state)
{
    (void)state;
    _Alignas(8) uint8_t record[256] = {MAREY__CUPTI_KERNEL}; /* begins and ends at 0 */
    const uint8_t *const records[] = {record};
    struct marey_gpu_counts counts[4];
    marey_gpu_counts_get(&counts[0]);
    marey__gpu_decode(records, 1);
    marey_gpu_counts_get(&counts[1]);
    marey__gpu.keep_from = 1;
    marey__gpu.first = (uint64_t)1 << 32 | 2;
    record[MAREY__KERNEL_CORRELATION] = 1; /* of an earlier session */
    marey__gpu_decode(records, 1);
    marey_gpu_counts_get(&counts[3]);
    record[MAREY__KERNEL_CORRELATION] = 2;
    marey__gpu_decode(records, 1);
    marey__gpu.keep_from = UINT64_MAX;
    marey_gpu_counts_get(&counts[2]);
    assert_int_equal(counts[3].incomplete, counts[1].incomplete);
    assert_int_equal(counts[1].incomplete, counts[0].incomplete);
    assert_int_equal(counts[2].incomplete, counts[1].incomplete + 1);
}

/* ---- windows of training steps ---- */

enum { WINDOW_STEPS = 53 };

static void end_by_hint(void)
{
    marey_step_hint(MAREY_STEP_UPDATE, 1, 0);
}

static void end_by_iteration(void)
{
    marey_iteration_finish();
}

static uint64_t n_calls(void)
{
    struct marey_gpu_counts counts;
    marey_gpu_counts_get(&counts);
    return counts.calls;
}

/* Bit i: step first + i is traced. */
static uint64_t run_steps(int n, void (*end_step)(void))
{
    uint64_t traced = 0;
    for (int i = 0; i < n; i++) {
        const uint64_t before = n_calls();
        launch("kernel", 7, 1, 32);
        traced |= (uint64_t)(n_calls() != before) << i;
        end_step();
    }
    return traced;
}

static void start_windows(const struct scratch *s)
{
    assert_int_equal(
        marey_start(&(struct marey_options){.path = s->path, .text = "gpu=1,gpu.windows=100%"}),
        MAREY_OK);
}

static void stop_windows(void)
{
    assert_int_equal(marey_stop(), MAREY_OK);
    marey_iteration_reset();
    assert_false(marey__gpu.is_tracing);
}

static void windows_are_at_the_same_steps_however_these_are_counted(void **state)
{
    start_windows(*state);
    const uint64_t by_hints = run_steps(WINDOW_STEPS, end_by_hint);
    stop_windows();
    unlink(((struct scratch *)*state)->path);
    start_windows(*state);
    const uint64_t by_iterations = run_steps(WINDOW_STEPS, end_by_iteration);
    stop_windows();
    assert_int_equal(by_hints & 0xffff, 0x3e0); /* steps 5 to 9 */
    assert_int_equal(by_hints, by_iterations);
    assert_int_equal(__builtin_popcountll(by_hints), 5 * 3); /* one window in 16 steps */
}

/* Hints show three steps, then an iteration is counted, the first one: CUPTI was taken for nothing. */
static void a_warmup_whose_window_does_not_come_ends(void **state)
{
    start_windows(*state);
    run_steps(3, end_by_hint);
    marey_gpu_settle();
    assert_true(marey__gpu.is_tracing);
    marey_iteration_finish();
    marey_gpu_settle();
    assert_false(marey__gpu.is_tracing);
    stop_windows();
}

static void a_window_that_lasts_long_ends_early(void **state)
{
    start_windows(*state);
    assert_int_equal(run_steps(6, end_by_hint), 0x20);
    usleep(2010000);
    assert_int_equal(run_steps(6, end_by_hint), 0x1);
    stop_windows();
}

/* How often the stand-in wrote a line that begins with `what`. */
static int n_logged(const char *path, const char *what)
{
    char line[64];
    int n = 0;
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        n += strncmp(line, what, strlen(what)) == 0;
    if (file != NULL)
        fclose(file);
    return n;
}

static void with_graphs_cupti_stays_initialized_and_windows_go_on(void **state)
{
    char log[512];
    snprintf(log, sizeof log, "%s.calls", ((struct scratch *)*state)->path);
    setenv("MAREY_TEST_CUPTI_LOG", log, 1);
    start_windows(*state);
    run_steps(12, end_by_hint);
    marey_gpu_settle();
    assert_int_equal(n_logged(log, "finalize"), 1);
    marey_gpu_capture(1);
    marey_gpu_capture(0);
    assert_int_equal(__builtin_popcountll(run_steps(WINDOW_STEPS - 12, end_by_hint)), 5 * 2);
    stop_windows();
    unsetenv("MAREY_TEST_CUPTI_LOG");
    assert_int_equal(n_logged(log, "finalize"), 1);
    assert_int_equal(n_logged(log, "subscribe"), 3);
    marey__gpu.has_graphs = false;
    unlink(log);
}

static void while_a_graph_is_captured_nothing_starts_or_stops(void **state)
{
    start_windows(*state);
    marey_gpu_capture(1);
    assert_int_equal(run_steps(7, end_by_hint), 0);
    assert_false(marey__gpu.is_tracing);
    marey_gpu_capture(0);
    assert_int_equal(run_steps(7, end_by_hint),
                     0); /* the window has begun without a warm-up: it is left out */
    assert_int_equal(__builtin_popcountll(run_steps(23, end_by_hint)), 5);
    marey_gpu_capture(0); /* of none */
    stop_windows();
    marey__gpu.has_graphs = false;
}

static void windows_need_a_share_in_percent(void **state)
{
    static const char *const bad[] = {"gpu.windows=0",   "gpu.windows=",    "gpu.windows=101%",
                                      "gpu.windows=1%x", "gpu.windows=nan", "gpu.windows=often"};
    const struct scratch *s = *state;
    for (size_t i = 0; i < MAREY__COUNT_OF(bad); i++)
        assert_int_equal(marey_start(&(struct marey_options){.path = s->path, .text = bad[i]}),
                         MAREY_EINVAL);
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    assert_int_equal(marey_gpu_start(&(struct marey_gpu_options){.window_gap = 15}), MAREY_EINVAL);
    assert_int_equal(marey_stop(), MAREY_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(each_allocation_may_fail_and_what_is_lost_is_counted),
        cmocka_unit_test(without_memory_cupti_gets_no_buffer),
        SCRATCH_TEST(a_schedule_that_cannot_begin_is_not_followed),
        SCRATCH_TEST(pauses_nest_and_a_stop_in_one_lasts),
        cmocka_unit_test(what_came_before_a_number_is_known_when_it_wraps),
        SCRATCH_TEST(a_later_stop_tells_below_which_number_its_work_is),
        SCRATCH_TEST(memsets_that_measure_the_cost_are_not_recorded),
        SCRATCH_TEST(work_launched_during_a_stop_is_not_recorded),
        SCRATCH_TEST(a_start_that_was_stopped_meanwhile_records_nothing),
        cmocka_unit_test(only_work_that_is_kept_counts_as_incomplete),
        SCRATCH_TEST(windows_are_at_the_same_steps_however_these_are_counted),
        SCRATCH_TEST(a_warmup_whose_window_does_not_come_ends),
        SCRATCH_TEST(a_window_that_lasts_long_ends_early),
        SCRATCH_TEST(with_graphs_cupti_stays_initialized_and_windows_go_on),
        SCRATCH_TEST(while_a_graph_is_captured_nothing_starts_or_stops),
        SCRATCH_TEST(windows_need_a_share_in_percent),
    };
    return cmocka_run_group_tests(tests, load_stand_ins, NULL);
}
