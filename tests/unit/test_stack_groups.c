/* Groups of equal stacks of many ranks: the majority, the outliers, and their output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "present/text/internal.h"
#include "sampler/store/internal.h"

enum { MOST = 16, FIRST_PID = 100 };

struct job {
    marey_samples *samples;
    struct marey_samples_round rounds[MOST];
    struct marey_samples_seen seen[MOST][4];
    struct marey_sampler_stacks stacks;
};

static int setup(void **state)
{
    struct job *job = *state = calloc(1, sizeof *job);
    if (job == NULL || (job->samples = marey__samples_create()) == NULL)
        return 1;
    job->stacks = (struct marey_sampler_stacks){.samples = job->samples, .rounds = job->rounds};
    return 0;
}

static int teardown(void **state)
{
    struct job *job = *state;
    marey_samples_destroy(job->samples);
    free(job);
    return 0;
}

/* A stack of names, the outermost first, "" ends them. */
static uint32_t stack_of(struct job *job, const char *const *names)
{
    uint32_t stack = 0;
    for (uint32_t i = 0; names[i] != NULL; i++) {
        const uint32_t function = marey__samples_function(job->samples, MAREY_FRAME_PYTHON,
                                                          names[i], "/x/train.py", "", 1);
        stack = marey__samples_stack(job->samples, stack,
                                     marey__samples_location(job->samples, function, 10 + i));
    }
    return stack;
}
#define STACK(job, ...) stack_of(job, (const char *const[]){__VA_ARGS__, NULL})

/* A process whose main thread is at `stack`. */
static size_t add_process(struct job *job, int32_t rank, int64_t ppid, uint32_t stack)
{
    const size_t i = job->stacks.n_rounds++;
    const uint32_t process = marey__samples_process(
        job->samples, &(struct marey_samples_process){.pid = FIRST_PID + (int64_t)i,
                                                      .ppid = ppid,
                                                      .start_time = 1,
                                                      .rank = rank,
                                                      .worker = -1,
                                                      .python = 0x030b07f0,
                                                      .command = "python train.py",
                                                      .host = ""});
    job->rounds[i] = (struct marey_samples_round){.process = process, .seen = job->seen[i]};
    job->seen[i][job->rounds[i].n_seen++] = (struct marey_samples_seen){
        .thread = marey__samples_thread(job->samples, process, FIRST_PID + (int64_t)i, "MainThread",
                                        0, true),
        .stack = stack,
        .flags = MAREY_SAMPLE_OFF_CPU};
    return i;
}

static void add_thread(struct job *job, size_t i, const char *name, uint32_t stack)
{
    const uint32_t n = (uint32_t)job->rounds[i].n_seen++;
    job->seen[i][n] = (struct marey_samples_seen){
        .thread = marey__samples_thread(job->samples, job->rounds[i].process,
                                        1000 + 10 * (int64_t)i + n, name, 0, false),
        .stack = stack,
        .flags = MAREY_SAMPLE_ON_CPU | MAREY_SAMPLE_GIL};
}

static marey_stack_groups *grouped(struct job *job)
{
    marey_stack_groups *groups = NULL;
    assert_int_equal(marey_stack_groups_create(&job->stacks, &groups), MAREY_OK);
    return groups;
}

/* The output; the caller frees it. */
static char *printed(struct job *job, bool is_json)
{
    marey_stack_groups *groups = grouped(job);
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    assert_int_equal(is_json ? marey_stacks_json(groups, out) : marey_stacks_text(groups, NULL, out),
                     MAREY_OK);
    fclose(out);
    marey_stack_groups_destroy(groups);
    return text;
}

static void expect_in(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("'%s' is not in:\n%s", part, text);
}

static void the_majority_comes_first_and_outliers_tell_where_they_part(void **state)
{
    struct job *job = *state;
    for (int rank = 0; rank < 8; rank++)
        add_process(job, rank, 1,
                    rank == 3 ? STACK(job, "main", "train", "load", "read")
                              : STACK(job, "main", "train", "reduce"));
    marey_stack_groups *groups = grouped(job);
    assert_int_equal(groups->n_groups, 2);
    assert_int_equal(groups->n_leading, 8);
    assert_true(groups->groups[0].is_majority);
    assert_int_equal(groups->groups[0].n, 7);
    assert_false(groups->groups[1].is_majority);
    assert_int_equal(groups->groups[1].shared, 2);
    marey_stack_groups_destroy(groups);

    char *text = printed(job, false);
    expect_in(text, "8 processes, 8 threads, 2 different stacks");
    expect_in(text, "7 of 8 main threads, the majority: ranks 0-2, 4-7; waiting\n"
                    "    reduce (train.py:12)\n    train (train.py:11)\n    main (train.py:10)\n");
    expect_in(text, "1 of 8 main threads: rank 3, pid 103 \"MainThread\"; waiting\n"
                    "    read (train.py:13)\n    load (train.py:12)\n"
                    "    ... 2 frames further out, as the majority has them\n");
    free(text);
}

static void launchers_and_workers_do_not_lead(void **state)
{
    struct job *job = *state;
    const size_t launcher = add_process(job, -1, 1, STACK(job, "launch"));
    for (int rank = 0; rank < 2; rank++) {
        const size_t i =
            add_process(job, rank, FIRST_PID + (int64_t)launcher, STACK(job, "main", "reduce"));
        for (int worker = 0; worker < 4; worker++)
            add_process(job, rank, FIRST_PID + (int64_t)i, STACK(job, "main", "fetch"));
    }
    marey_stack_groups *groups = grouped(job);
    assert_int_equal(groups->n_leading, 2);
    assert_true(groups->groups[0].is_majority);
    assert_int_equal(groups->groups[0].n, 2);
    assert_int_equal(groups->groups[1].n, 8);
    assert_int_equal(groups->groups[1].n_leading, 0);
    marey_stack_groups_destroy(groups);
}

static void one_process_has_its_threads_one_below_the_other(void **state)
{
    struct job *job = *state;
    const size_t i = add_process(job, -1, 1, STACK(job, "main", "join"));
    add_thread(job, i, "worker\x1b[31m", STACK(job, "run", "work"));
    add_thread(job, i, "idle", 0);
    char *text = printed(job, false);
    expect_in(
        text,
        "1 process, 3 threads, 3 different stacks\n  pid 100, Python 3.11.7: python train.py\n");
    expect_in(text, "\npid 100 \"MainThread\"; waiting\n    join (train.py:11)\n");
    expect_in(text, "pid 100, thread 1001 \"worker\\x1b[31m\"; running, holds the GIL\n    work ");
    expect_in(text, "\"idle\"; running, holds the GIL\n    (no Python frames)\n");
    assert_null(strstr(text, "\x1b"));
    free(text);
}

static void json_has_all_of_it(void **state)
{
    struct job *job = *state;
    static const struct marey_sampler_failure failures[] = {
        {.pid = 7, .why = "there is \"no\" process 7"}};
    for (int rank = 0; rank < 3; rank++)
        add_process(job, rank, 1,
                    rank == 2 ? STACK(job, "main", "load") : STACK(job, "main", "reduce"));
    job->stacks.failures = failures;
    job->stacks.n_failures = 1;
    char *text = printed(job, true);
    expect_in(text,
              "{\"is_main\": true, \"is_majority\": true, \"parts_at\": null, \"threads\": [");
    expect_in(text, "{\"is_main\": true, \"is_majority\": false, \"parts_at\": 1, ");
    expect_in(text, "{\"function\": \"load\", \"file\": \"/x/train.py\", \"line\": 11, \"kind\": "
                    "\"python\", \"library\": \"\"}");
    expect_in(text, "\"rank\": 2, \"worker\": null, \"name\": \"MainThread\", \"is_main\": true, "
                    "\"state\": \"waiting\"");
    expect_in(text, "{\"pid\": 7, \"why\": \"there is \\\"no\\\" process 7\"}");
    free(text);
}

static void a_deep_stack_is_cut_in_its_middle(void **state)
{
    struct job *job = *state;
    uint32_t stack = 0;
    for (uint32_t i = 0; i < 50000; i++) {
        char name[32];
        snprintf(name, sizeof name, "f%u", i);
        const uint32_t function =
            marey__samples_function(job->samples, MAREY_FRAME_PYTHON, name, "deep.py", "", 1);
        stack = marey__samples_stack(job->samples, stack,
                                     marey__samples_location(job->samples, function, i + 1));
    }
    add_process(job, -1, 1, stack);
    char *text = printed(job, false);
    expect_in(text, "    f49999 (deep.py:50000)\n");
    expect_in(text, "    f49800 (deep.py:49801)\n    ... ");
    expect_in(text, "left out; --json has all\n    f39 (deep.py:40)\n");
    expect_in(text, "    f0 (deep.py:1)\n");
    free(text);
}

static void every_allocation_may_fail(void **state)
{
    struct job *job = *state;
    add_process(job, 0, 1, STACK(job, "main", "load"));
    bool is_done = false;
    for (uint64_t n = 1; !is_done; n++) {
        marey_stack_groups *groups = NULL;
        FILE *out = fopen("/dev/null", "w");
        assert_non_null(out);
        marey__alloc_fail_nth(n);
        is_done = marey_stack_groups_create(&job->stacks, &groups) == MAREY_OK &&
                  marey_stacks_text(groups, NULL, out) == MAREY_OK &&
                  marey_stacks_json(groups, out) == MAREY_OK;
        marey__alloc_fail_nth(0);
        marey_stack_groups_destroy(groups);
        fclose(out);
        assert_true(n < 200);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_majority_comes_first_and_outliers_tell_where_they_part,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(launchers_and_workers_do_not_lead, setup, teardown),
        cmocka_unit_test_setup_teardown(one_process_has_its_threads_one_below_the_other, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(json_has_all_of_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_deep_stack_is_cut_in_its_middle, setup, teardown),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
