/* The last seconds of a sampler: shares, threads, ranks, and stalls. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "sampler/loop/internal.h"
#include "sampler/store/internal.h"
#include "table_view.h"

#define SECOND UINT64_C(1000000000)
#define BEGIN (1000 * SECOND)
#define NOBODY 2000000000 /* no process has this id */

/* main -> step -> load; main -> wait, in two processes, the first with a second thread. */
struct world {
    marey_samples *samples;
    marey_live *live;
    uint32_t process[2], main_thread[2], helper;
    uint32_t in_main, in_step, in_load, in_wait, in_load_twice;
};

static uint32_t frame(marey_samples *samples, uint32_t parent, const char *name, uint32_t line)
{
    const uint32_t function =
        marey__samples_function(samples, MAREY_FRAME_PYTHON, name, "/home/me/train.py", "", 10);
    return marey__samples_stack(samples, parent, marey__samples_location(samples, function, line));
}

static int setup(void **state)
{
    struct world *world = *state = calloc(1, sizeof *world);
    if (world == NULL || (world->samples = marey__samples_create()) == NULL ||
        marey_live_create(5, &world->live) != MAREY_OK)
        return 1;
    for (int i = 0; i < 2; i++) {
        world->process[i] = marey__samples_process(
            world->samples, &(struct marey_samples_process){.pid = NOBODY + i,
                                                            .start_time = 1,
                                                            .rank = i,
                                                            .worker = -1,
                                                            .command = "train",
                                                            .host = ""});
        world->main_thread[i] = marey__samples_thread(world->samples, world->process[i], NOBODY + i,
                                                      "MainThread", 0, true);
    }
    world->helper =
        marey__samples_thread(world->samples, world->process[0], NOBODY + 7, "helper", 0, false);
    world->in_main = frame(world->samples, 0, "main", 30);
    world->in_step = frame(world->samples, world->in_main, "step", 20);
    world->in_load = frame(world->samples, world->in_step, "load", 12);
    world->in_load_twice = frame(world->samples, world->in_load, "load", 13);
    world->in_wait = frame(world->samples, world->in_main, "wait", 25);
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    marey_live_destroy(world->live);
    marey_samples_destroy(world->samples);
    free(world);
    return 0;
}

static void see(struct world *world, int process, uint64_t at_ns, uint64_t weight_ns,
                const struct marey_samples_seen *seen, size_t n)
{
    const struct marey_samples_round round = {.process = world->process[process],
                                              .at_ns = at_ns,
                                              .weight_ns = weight_ns,
                                              .seen = seen,
                                              .n_seen = n};
    marey__live_round(world->live, world->samples, &round);
}

/* One thread of one process, on a processor. */
static void see_main(struct world *world, int process, uint64_t at_ns, uint32_t stack)
{
    const struct marey_samples_seen seen = {
        .thread = world->main_thread[process], .stack = stack, .flags = MAREY_SAMPLE_ON_CPU};
    see(world, process, at_ns, SECOND / 10, &seen, 1);
}

static marey_table *table_of(struct world *world, enum marey_live_by by, unsigned flags)
{
    world->live->by = by;
    world->live->flags = flags;
    return marey__live_make(world->live, world->samples);
}

static double share(const marey_table *table, const char *function, const char *column)
{
    return table_cell(table, table_row(table, "function", function), column).as.f64;
}

/* ---- tables ---- */

static void time_is_that_of_the_innermost_and_of_all_around_it(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 10; i++)
        see_main(world, 0, BEGIN + (uint64_t)i * SECOND / 10,
                 i < 7 ? world->in_load : world->in_wait);
    marey_table *table = table_of(world, MAREY_LIVE_FUNCTIONS, 0);
    assert_float_equal(share(table, "load", "self"), 0.7, 1e-9);
    assert_float_equal(share(table, "wait", "self"), 0.3, 1e-9);
    assert_float_equal(share(table, "step", "self"), 0, 1e-9);
    assert_float_equal(share(table, "step", "total"), 0.7, 1e-9);
    assert_float_equal(share(table, "main", "total"), 1, 1e-9);
    assert_string_equal(table_cell(table, 0, "function").as.text, "load");
    assert_string_equal(table_cell(table, 0, "place").as.text, "train.py:10");
    marey_table_destroy(table);
    table = table_of(world, MAREY_LIVE_FUNCTIONS, MAREY_LIVE_BY_TOTAL);
    assert_string_equal(table_cell(table, 0, "function").as.text, "main");
    marey_table_destroy(table);
}

static void recursion_counts_once(void **state)
{
    struct world *world = *state;
    see_main(world, 0, BEGIN, world->in_load_twice);
    marey_table *table = table_of(world, MAREY_LIVE_FUNCTIONS, 0);
    assert_float_equal(share(table, "load", "total"), 1, 1e-9);
    marey_table_destroy(table);
    table = table_of(world, MAREY_LIVE_LINES, 0);
    assert_string_equal(table_cell(table, 0, "place").as.text, "train.py:13");
    assert_int_equal(marey_table_n_rows(table), 4);
    marey_table_destroy(table);
}

static void what_is_older_than_the_window_is_gone(void **state)
{
    struct world *world = *state;
    see_main(world, 0, BEGIN, world->in_load);
    for (int i = 1; i <= 60; i++)
        see_main(world, 0, BEGIN + (uint64_t)i * SECOND / 10, world->in_wait);
    marey_table *table = table_of(world, MAREY_LIVE_FUNCTIONS, 0);
    assert_float_equal(share(table, "wait", "self"), 1, 1e-9);
    marey_table_destroy(table);
    see_main(world, 0, BEGIN + 3600 * SECOND, world->in_load);
    table = table_of(world, MAREY_LIVE_FUNCTIONS, 0);
    assert_float_equal(share(table, "load", "self"), 1, 1e-9);
    marey_table_destroy(table);
}

static void waiting_counts_on_main_threads_and_elsewhere_when_asked(void **state)
{
    struct world *world = *state;
    const struct marey_samples_seen seen[] = {
        {.thread = world->main_thread[0], .stack = world->in_wait, .flags = MAREY_SAMPLE_OFF_CPU},
        {.thread = world->helper, .stack = world->in_load, .flags = MAREY_SAMPLE_OFF_CPU}};
    see(world, 0, BEGIN, SECOND, seen, 2);
    marey_table *table = table_of(world, MAREY_LIVE_FUNCTIONS, 0);
    assert_float_equal(share(table, "wait", "self"), 1, 1e-9);
    marey_table_destroy(table);
    table = table_of(world, MAREY_LIVE_FUNCTIONS, MAREY_LIVE_IDLE);
    assert_float_equal(share(table, "load", "self"), 0.5, 1e-9);
    marey_table_destroy(table);
}

static void threads_and_ranks_tell_what_they_do_now(void **state)
{
    struct world *world = *state;
    const struct marey_samples_seen seen[] = {
        {.thread = world->main_thread[0],
         .stack = world->in_load,
         .flags = MAREY_SAMPLE_ON_CPU | MAREY_SAMPLE_GIL},
        {.thread = world->helper, .stack = world->in_wait, .flags = MAREY_SAMPLE_OFF_CPU}};
    see(world, 0, BEGIN, SECOND, seen, 2);
    see_main(world, 1, BEGIN, world->in_step);
    marey_table *table = table_of(world, MAREY_LIVE_THREADS, 0);
    assert_int_equal(marey_table_n_rows(table), 3);
    const size_t helper = table_row(table, "thread", "helper");
    assert_float_equal(table_cell(table, helper, "cpu").as.f64, 0, 1e-9);
    assert_string_equal(table_cell(table, helper, "now").as.text, "wait train.py:25");
    assert_float_equal(table_cell(table, 0, "gil").as.f64, 1, 1e-9);
    marey_table_destroy(table);
    table = table_of(world, MAREY_LIVE_RANKS, 0);
    assert_int_equal(marey_table_n_rows(table), 2);
    assert_int_equal(table_number(table, 0, "rank"), 0);
    assert_int_equal(table_number(table, 0, "threads"), 2);
    assert_string_equal(table_cell(table, 1, "now").as.text, "step train.py:20");
    marey_table_destroy(table);
}

/* ---- asking from another thread ---- */

static void *ask(void *ctx)
{
    marey_table *table = NULL;
    const marey_status status = marey_live_table(ctx, MAREY_LIVE_FUNCTIONS, 0, 60000, &table);
    return status == MAREY_OK ? table : NULL;
}

static void a_table_is_made_behind_the_next_round(void **state)
{
    struct world *world = *state;
    marey_table *none = NULL;
    pthread_t thread;
    void *table = NULL;
    assert_int_equal(marey_live_table(world->live, MAREY_LIVE_FUNCTIONS, 0, 1, &none), MAREY_ESTATE);
    assert_int_equal(pthread_create(&thread, NULL, ask, world->live), 0);
    for (uint64_t at = BEGIN; pthread_tryjoin_np(thread, &table) != 0; at += SECOND / 10) {
        see_main(world, 0, at, world->in_load);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_non_null(table);
    assert_float_equal(share(table, "load", "self"), 1, 1e-9);
    marey_table_destroy(table);
}

/* ---- nothing moves ---- */

static uint64_t still_for(struct world *world, bool ignore_cpu)
{
    struct marey_live_state live_state;
    marey_live_state_get(world->live, ignore_cpu, &live_state, sizeof live_state);
    return live_state.still_ns;
}

static void equal_stacks_without_work_are_still(void **state)
{
    struct world *world = *state;
    for (uint64_t i = 0; i <= 30; i++) {
        see_main(world, 0, BEGIN + i * SECOND, world->in_wait);
        see_main(world, 1, BEGIN + i * SECOND, world->in_wait);
    }
    assert_int_equal(still_for(world, false), 30 * SECOND);
    pid_t pids[2];
    assert_int_equal(marey_live_pids(world->live, pids, 2), 2);
    assert_int_equal(pids[1], NOBODY + 1);
    assert_int_equal(marey_live_pids(world->live, NULL, 0), 2);
    see_main(world, 1, BEGIN + 31 * SECOND, world->in_load);
    assert_int_equal(still_for(world, false), 0);
    see_main(world, 1, BEGIN + 33 * SECOND, world->in_load);
    assert_int_equal(still_for(world, false), 2 * SECOND);
}

static void who_comes_and_who_goes_moves(void **state)
{
    struct world *world = *state;
    const struct marey_samples_seen seen[] = {
        {.thread = world->main_thread[0], .stack = world->in_wait},
        {.thread = world->helper, .stack = world->in_wait}};
    for (uint64_t i = 0; i <= 10; i++)
        see(world, 0, BEGIN + i * SECOND, SECOND, seen, i < 5 ? 1 : 2);
    assert_int_equal(still_for(world, false), 5 * SECOND);
    see_main(world, 1, BEGIN + 10 * SECOND, world->in_wait);
    assert_int_equal(still_for(world, false), 0);
    for (uint64_t i = 11; i <= 20; i++) /* the second process is seen no more */
        see(world, 0, BEGIN + i * SECOND, SECOND, seen, 2);
    assert_int_equal(still_for(world, false), 10 * SECOND);
}

static uint64_t own_cpu_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * SECOND + (uint64_t)used.tv_nsec;
}

static void work_on_a_processor_moves_unless_it_is_ignored(void **state)
{
    struct world *world = *state;
    const uint32_t own = marey__samples_process(
        world->samples,
        &(struct marey_samples_process){
            .pid = getpid(), .start_time = 1, .rank = -1, .worker = -1, .command = "", .host = ""});
    const uint32_t thread = marey__samples_thread(world->samples, own, getpid(), "x", 0, true);
    world->process[1] = own;
    world->main_thread[1] = thread;
    for (uint64_t i = 0; i <= 5; i++) {
        see_main(world, 1, BEGIN + i * SECOND, world->in_wait);
        for (const uint64_t until = own_cpu_ns() + SECOND / 25; own_cpu_ns() < until;)
            continue;
    }
    assert_int_equal(still_for(world, false), 0);
    assert_int_equal(still_for(world, true), 5 * SECOND);
}

/* ---- no memory ---- */

static void every_allocation_may_fail(void **state)
{
    struct world *world = *state;
    for (uint64_t n = 1; n < 200; n++) {
        marey_live *live = NULL;
        marey__alloc_fail_nth(n);
        if (marey_live_create(0, &live) == MAREY_OK) {
            marey_live *before = world->live;
            world->live = live;
            see_main(world, 0, BEGIN, world->in_load);
            marey_table_destroy(table_of(world, MAREY_LIVE_LINES, 0));
            marey_table_destroy(table_of(world, MAREY_LIVE_RANKS, 0));
            marey_table_destroy(table_of(world, MAREY_LIVE_THREADS, 0));
            world->live = before;
        }
        marey__alloc_fail_nth(0);
        marey_live_destroy(live);
    }
}

static void windows_that_cannot_be_are_refused(void **state)
{
    marey_live *live = NULL;
    (void)state;
    assert_int_equal(marey_live_create(-1, &live), MAREY_EINVAL);
    assert_int_equal(marey_live_create(1e9, &live), MAREY_EINVAL);
    assert_null(live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(time_is_that_of_the_innermost_and_of_all_around_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(recursion_counts_once, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_older_than_the_window_is_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(waiting_counts_on_main_threads_and_elsewhere_when_asked,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(threads_and_ranks_tell_what_they_do_now, setup, teardown),
        cmocka_unit_test_setup_teardown(a_table_is_made_behind_the_next_round, setup, teardown),
        cmocka_unit_test_setup_teardown(equal_stacks_without_work_are_still, setup, teardown),
        cmocka_unit_test_setup_teardown(who_comes_and_who_goes_moves, setup, teardown),
        cmocka_unit_test_setup_teardown(work_on_a_processor_moves_unless_it_is_ignored, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),
        cmocka_unit_test(windows_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
