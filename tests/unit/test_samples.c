/* Samples: the store, the log that a sampler writes, and how it is read back. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyze/samples/internal.h"
#include "samples_maker.h"

static int set_up(void **state)
{
    return samples_maker_init((*state = calloc(1, sizeof(struct samples_maker))));
}

static int tear_down(void **state)
{
    samples_maker_fini(*state);
    free(*state);
    return 0;
}

/* ---- the store ---- */

static void equal_things_have_one_number(void **state)
{
    (void)state;
    marey_samples *s = marey__samples_create();
    const struct marey_samples_process p = {
        .pid = 7, .start_time = 3, .rank = -1, .worker = -1, .command = "python a.py"};
    assert_int_equal(marey__samples_process(s, &p), 1);
    assert_int_equal(marey__samples_process(s, &p), 1);
    struct marey_samples_process again = p;
    again.start_time = 4; /* the pid was given again */
    assert_int_equal(marey__samples_process(s, &again), 2);
    const uint32_t f = marey__samples_function(s, MAREY_FRAME_PYTHON, "f", "a.py", "", 1);
    assert_int_equal(marey__samples_function(s, MAREY_FRAME_PYTHON, "f", "a.py", "", 1), f);
    assert_int_not_equal(marey__samples_function(s, MAREY_FRAME_PYTHON, "f", "a.p", "y", 1), f);
    uint32_t stack = 0;
    for (uint32_t i = 1; i <= 5000; i++)
        stack = marey__samples_stack(s, stack, marey__samples_location(s, f, i));
    assert_int_equal(marey_samples_n_stacks(s), 5000);
    assert_int_equal(marey_samples_get_stack(s, stack).depth, 5000);
    stack = 0;
    for (uint32_t i = 1; i <= 5000; i++)
        stack = marey__samples_stack(s, stack, marey__samples_location(s, f, i));
    assert_int_equal(marey_samples_n_stacks(s), 5000);
    marey_samples_destroy(s);
}

static void numbers_that_lead_nowhere_give_nothing(void **state)
{
    (void)state;
    marey_samples *s = marey__samples_create();
    assert_int_equal(marey__samples_thread(s, 1, 1, "t", 0, true), 0);
    assert_int_equal(marey__samples_location(s, 1, 1), 0);
    assert_int_equal(marey__samples_stack(s, 0, 1), 0);
    assert_string_equal(marey_samples_get_thread(s, 3)->name, "");
    assert_string_equal(marey_samples_get_process(s, 0)->command, "");
    assert_int_equal(marey_samples_get_stack(s, 9).depth, 0);
    marey_samples_destroy(s);
}

/* ---- written and read ---- */

struct tape { /* what a visit gave, as text */
    struct marey__buf text;
    const struct marey__samples_set *set;
    uint64_t n_samples, weight_ns;
};

static void put_stack(struct tape *tape, uint32_t stack)
{
    const marey_samples *const s = tape->set->samples;
    const struct marey_samples_stack k = marey_samples_get_stack(s, stack);
    if (stack == 0)
        return;
    put_stack(tape, k.parent);
    const struct marey_samples_location l = marey_samples_get_location(s, k.location);
    marey__buf_printf(&tape->text, ">%s:%u", marey_samples_get_function(s, l.function)->name, l.line);
}

static marey_status put_round(void *ctx, const struct marey_samples_round *round)
{
    struct tape *const tape = ctx;
    marey__buf_printf(&tape->text, "%ld",
                      (long)marey_samples_get_process(tape->set->samples, round->process)->pid);
    for (size_t i = 0; i < round->n_seen; i++) {
        const struct marey_samples_seen *const seen = &round->seen[i];
        marey__buf_printf(&tape->text, " %s",
                          marey_samples_get_thread(tape->set->samples, seen->thread)->name);
        put_stack(tape, seen->stack);
        marey__buf_printf(&tape->text, "/%x/%u", seen->flags, seen->wait);
        tape->weight_ns += round->weight_ns;
    }
    marey__buf_puts(&tape->text, "\n");
    tape->n_samples += round->n_seen;
    return MAREY_OK;
}

/* Read what the maker's directory has; the text is the caller's. */
static char *play_all(const struct samples_maker *m, const struct marey__samples_filter *filter,
                      struct tape *out)
{
    marey_recording *recording = NULL;
    struct marey__samples_set set;
    struct marey__samples_chosen *chosen = NULL;
    assert_int_equal(marey_recording_open(m->path, &recording), MAREY_OK);
    assert_int_equal(marey__samples_open(&set, &recording, 1), MAREY_OK);
    struct tape tape = {.set = &set};
    if (filter != NULL)
        assert_int_equal(marey__samples_choose(&set, filter, false, &chosen), MAREY_OK);
    assert_int_equal(marey__samples_visit(&set, chosen, put_round, &tape), MAREY_OK);
    marey__samples_chosen_destroy(chosen);
    marey__samples_fini(&set);
    marey_recording_close(recording);
    marey__buf_put(&tape.text, "", 1);
    if (out != NULL)
        *out = tape;
    return tape.text.data;
}

static void rounds_come_back_as_they_were(void **state)
{
    struct samples_maker *m = *state;
    const uint32_t main_thread = samples_thread(m, 1, "MainThread"),
                   other = samples_thread(m, 0, "w");
    const uint32_t a = samples_stack(m, "main:3;train:10;forward:20"),
                   b = samples_stack(m, "main:3;train:11"), c = samples_stack(m, "run:1");
    samples_round(m, 1000, 2,
                  (struct marey_samples_seen[]){{main_thread, a, 5, 0}, {other, c, 2, 9}});
    samples_round(m, 2000, 2,
                  (struct marey_samples_seen[]){{main_thread, a, 5, 0}, {other, c, 2, 9}});
    samples_round(m, 3000, 1, (struct marey_samples_seen[]){{main_thread, b, 5, 0}});
    samples_round(m, 4000, 2,
                  (struct marey_samples_seen[]){{other, c, 1, 0}, {main_thread, b, 6, 2}});
    samples_end(m, "stop");
    char *text = play_all(m, NULL, NULL);
    assert_string_equal(text, "100 MainThread>main:3>train:10>forward:20/5/0 w>run:1/2/9\n"
                              "100 MainThread>main:3>train:10>forward:20/5/0 w>run:1/2/9\n"
                              "100 MainThread>main:3>train:11/5/0\n"
                              "100 MainThread>main:3>train:11/6/2 w>run:1/1/0\n");
    marey__free(text);
}

static void the_time_since_the_round_before_is_the_weight(void **state)
{
    struct samples_maker *m = *state;
    const uint32_t t = samples_thread(m, 1, "MainThread"), a = samples_stack(m, "main:3");
    struct tape tape;
    m->rate_hz = 100; /* the first one stands for 10 ms */
    for (uint64_t i = 1; i <= 100; i++)
        samples_round(m, i * 5000, 1, (struct marey_samples_seen[]){{t, a, 1, 0}});
    samples_end(m, "stop");
    marey__free(play_all(m, NULL, &tape));
    assert_int_equal(tape.n_samples, 100);
    assert_in_range(tape.weight_ns, 504900000, 505100000);
}

static void a_weight_that_is_not_the_gap_is_kept(void **state)
{
    struct samples_maker *m = *state;
    const uint32_t t = samples_thread(m, 1, "MainThread"), a = samples_stack(m, "main:3");
    struct tape tape;
    const struct marey_samples_seen seen = {t, a, 1, 0};
    samples_begin(m);
    for (uint64_t i = 1; i <= 3; i++) {
        const struct marey_samples_round round = {.process = 1,
                                                  .at_ns = 1000000000 + i * 1000000,
                                                  .weight_ns = i == 2 ? 77000000 : 1000000,
                                                  .seen = &seen,
                                                  .n_seen = 1};
        assert_int_equal(marey__samples_log_round(m->log, &round), MAREY_OK);
    }
    samples_end(m, "stop");
    marey__free(play_all(m, NULL, &tape));
    assert_in_range(tape.weight_ns, 78900000, 79100000);
}

static void processes_are_put_in_order_of_time(void **state)
{
    struct samples_maker *m = *state;
    const uint32_t t = samples_thread(m, 1, "a");
    const struct marey_samples_process other = {
        .pid = 200, .start_time = 2, .rank = 1, .worker = -1, .command = "x"};
    const uint32_t second = marey__samples_process(m->samples, &other);
    const uint32_t u = marey__samples_thread(m->samples, second, 200, "b", 0, true);
    const uint32_t stack = samples_stack(m, "f:1");
    samples_begin(m);
    for (uint64_t i = 0; i < 4; i++) {
        const struct marey_samples_seen seen = {i % 2 ? u : t, stack, 0, 0};
        const struct marey_samples_round round = {.process = i % 2 ? second : 1,
                                                  .at_ns = 1000000000 + i * 1000000,
                                                  .seen = &seen,
                                                  .n_seen = 1};
        assert_int_equal(marey__samples_log_round(m->log, &round), MAREY_OK);
    }
    samples_end(m, "stop");
    char *text = play_all(m, NULL, NULL);
    assert_string_equal(text, "100 a>f:1/0/0\n200 b>f:1/0/0\n100 a>f:1/0/0\n200 b>f:1/0/0\n");
    marey__free(text);
}

static void several_samplers_are_one(void **state)
{
    struct samples_maker *m = *state, two = {0};
    const uint32_t t = samples_thread(m, 1, "a"), f = samples_stack(m, "main:1;f:2");
    samples_round(m, 1000, 1, (struct marey_samples_seen[]){{t, f, 0, 0}});
    samples_round(m, 3000, 1, (struct marey_samples_seen[]){{t, f, 0, 0}});
    samples_end(m, "stop");
    assert_int_equal(samples_maker_init_in(&two, m->path), 0);
    samples_stack(&two, "other:1"); /* so that numbers differ */
    const uint32_t u = samples_thread(&two, 1, "a"), g = samples_stack(&two, "main:1;f:2");
    samples_round(&two, 2000, 1, (struct marey_samples_seen[]){{u, g, 4, 0}});
    samples_end(&two, "stop");
    char *text = play_all(m, NULL, NULL);
    assert_string_equal(text, "100 a>main:1>f:2/0/0\n100 a>main:1>f:2/4/0\n100 a>main:1>f:2/0/0\n");
    marey__free(text);
    samples_maker_fini(&two);
}

static void a_killed_sampler_leaves_what_it_wrote(void **state)
{
    struct samples_maker *m = *state;
    const uint32_t t = samples_thread(m, 1, "a"), f = samples_stack(m, "main:1");
    for (uint64_t i = 1; i <= 70000; i++) /* a block is written with the 65536th */
        samples_round(m, i, 1, (struct marey_samples_seen[]){{t, f, 0, 0}});
    samples_kill(m);
    struct tape tape;
    marey__free(play_all(m, NULL, &tape));
    assert_int_equal(tape.n_samples, 65536);
    marey_recording *recording = NULL;
    assert_int_equal(marey_recording_open(m->path, &recording), MAREY_OK);
    assert_int_equal(marey_recording_n_processes(recording), 0);
    assert_int_equal(marey_recording_n_logs(recording), 1);
    assert_string_equal(marey_recording_process(recording, 0)->role, "sampler");
    assert_string_equal(marey_recording_process(recording, 0)->end, "unclosed");
    marey_recording_close(recording);
}

static void a_thread_is_renamed(void **state)
{
    struct samples_maker *m = *state;
    const uint32_t t = samples_thread(m, 1, "Thread-1"), f = samples_stack(m, "main:1");
    for (uint64_t i = 1; i <= 65536; i++)
        samples_round(m, i, 1, (struct marey_samples_seen[]){{t, f, 0, 0}});
    marey__samples_rename(m->samples, t, "loader");
    samples_round(m, 65537, 1, (struct marey_samples_seen[]){{t, f, 0, 0}});
    samples_end(m, "stop");
    struct tape tape;
    char *text = play_all(m, NULL, &tape);
    assert_int_equal(memcmp(text, "100 loader>", 11), 0);
    assert_int_equal(tape.n_samples, 65537);
    marey__free(text);
}

/* A thread that changes counts once in each round, however often it has changed. */
static void fast_changes_are_all_read(void **state)
{
    struct samples_maker *m = *state;
    const uint32_t t = samples_thread(m, 1, "MainThread"), a = samples_stack(m, "main:3;a:1"),
                   b = samples_stack(m, "main:4;b:1");
    struct tape tape;
    for (uint64_t i = 1; i <= 20000; i++)
        samples_round(m, i * 20, 1, (struct marey_samples_seen[]){{t, i % 2 ? a : b, 1, 0}});
    samples_end(m, "stop");
    marey__free(play_all(m, NULL, &tape));
    assert_int_equal(tape.n_samples, 20000);
}

/* ---- size ---- */

/* Rounds at random, as a sampler makes them: bytes of the log for each sample. */
static double bytes_per_sample(struct samples_maker *m, double rate_hz, size_t n_threads,
                               double seconds)
{
    struct marey_samples_seen seen[64];
    uint64_t random = 88172645463325252u;
    for (size_t i = 0; i < n_threads; i++)
        seen[i] = (struct marey_samples_seen){samples_thread(m, i == 0, "t"),
                                              samples_stack(m, "main:1;train:2;step:3"), 5, 0};
    uint64_t n = 0;
    for (double at_s = 1, written_s = 1; at_s < 1 + seconds;) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        at_s += -__builtin_log(((double)(random >> 11) + 1) / 0x1p53) / rate_hz;
        samples_round(m, (uint64_t)(at_s * 1e6), n_threads, seen);
        n += n_threads;
        if (at_s - written_s >= (rate_hz * (double)n_threads >= 1000 ? 1 : 2)) {
            samples_write(m);
            written_s = at_s;
        }
    }
    const uint64_t bytes = marey__samples_log_size(m->log);
    samples_end(m, "stop");
    return (double)bytes / (double)n;
}

static void stable_stacks_take_less_than_a_byte(void **state)
{
    struct samples_maker *m = *state;
    const double one = bytes_per_sample(m, 1000, 1, 60);
    print_message("one thread at 1 kHz: %.3f bytes a sample\n", one);
    assert_true(one < 1);
}

static void many_threads_take_less_still(void **state)
{
    struct samples_maker *m = *state;
    const double many = bytes_per_sample(m, 100, 32, 60);
    print_message("32 threads at 100 Hz: %.3f bytes a sample\n", many);
    assert_true(many < 0.2);
}

/* ---- failures ---- */

static marey_status write_some(const struct samples_maker *m)
{
    struct samples_maker own = {.rate_hz = 100};
    snprintf(own.path, sizeof own.path, "%s", m->path);
    own.samples = marey__samples_create();
    const struct marey_samples_process p = {
        .pid = 1, .rank = -1, .worker = -1, .command = "x", .host = "h"};
    marey_status status = MAREY_ENOMEM;
    struct marey__samples_log *log = NULL;
    const uint32_t process = own.samples != NULL ? marey__samples_process(own.samples, &p) : 0,
                   thread = process != 0
                                ? marey__samples_thread(own.samples, process, 1, "t", 0, true)
                                : 0,
                   function = thread != 0 ? marey__samples_function(own.samples, MAREY_FRAME_PYTHON,
                                                                    "f", "a", "", 1)
                                          : 0,
                   location = function != 0 ? marey__samples_location(own.samples, function, 1) : 0,
                   stack = location != 0 ? marey__samples_stack(own.samples, 0, location) : 0;
    if (stack != 0)
        status = marey__samples_log_open(m->path, &(struct marey__samples_log_options){.rate_hz = 1},
                                         own.samples, &log);
    const struct marey_samples_seen seen = {thread, stack, 1, 1};
    const struct marey_samples_round round = {.process = 1, .at_ns = 5, .seen = &seen, .n_seen = 1};
    if (status == MAREY_OK)
        status = marey__samples_log_round(log, &round);
    const marey_status closed = marey__samples_log_close(log, "stop");
    marey_samples_destroy(own.samples);
    return status != MAREY_OK ? status : closed;
}

static void writing_without_memory_fails_and_leaks_nothing(void **state)
{
    const struct samples_maker *m = *state;
    uint64_t n = 1;
    for (;; n++) {
        marey__alloc_fail_nth(n);
        const marey_status status = write_some(m);
        marey__alloc_fail_nth(0);
        if (status == MAREY_OK)
            break;
        assert_int_equal(status, MAREY_ENOMEM);
    }
    assert_true(n > 10);
}

static marey_status read_some(marey_recording *recording)
{
    struct marey__samples_set set;
    struct marey__samples_chosen *chosen = NULL;
    struct tape tape = {.set = &set};
    const struct marey__samples_filter filter = {.thread = "a"};
    MAREY_TRY(marey__samples_open(&set, &recording, 1));
    marey_status status = marey__samples_choose(&set, &filter, false, &chosen);
    if (status == MAREY_OK)
        status = marey__samples_visit(&set, chosen, put_round, &tape);
    marey__samples_chosen_destroy(chosen);
    marey__samples_fini(&set);
    if (status == MAREY_OK && tape.text.failed)
        status = MAREY_ENOMEM;
    marey__buf_fini(&tape.text);
    return status;
}

static void reading_without_memory_fails_and_leaks_nothing(void **state)
{
    struct samples_maker *m = *state;
    const uint32_t t = samples_thread(m, 1, "a"), f = samples_stack(m, "main:1;f:2");
    for (uint64_t i = 0; i < 5; i++)
        samples_round(m, 1000 + i, 1, (struct marey_samples_seen[]){{t, f, (uint32_t)i, 0}});
    samples_end(m, "stop");
    marey_recording *recording = NULL;
    assert_int_equal(marey_recording_open(m->path, &recording), MAREY_OK);
    uint64_t n = 1;
    for (;; n++) {
        marey__alloc_fail_nth(n);
        const marey_status status = read_some(recording);
        marey__alloc_fail_nth(0);
        if (status == MAREY_OK)
            break;
        assert_int_equal(status, MAREY_ENOMEM);
    }
    assert_true(n > 10);
    marey_recording_close(recording);
}

static void a_full_disk_ends_the_log_with_its_sentence(void **state)
{
    struct samples_maker *m = *state;
    const uint32_t t = samples_thread(m, 1, "a"), f = samples_stack(m, "main:1");
    samples_round(m, 1000, 1, (struct marey_samples_seen[]){{t, f, 0, 0}});
    samples_break(m); /* writes go to /dev/full from now on */
    assert_int_equal(marey__samples_log_close(m->log, "stop"), MAREY_EIO);
    assert_non_null(strstr(marey_last_error(), "No space left"));
    m->log = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_things_have_one_number),
        cmocka_unit_test(numbers_that_lead_nowhere_give_nothing),
        cmocka_unit_test_setup_teardown(rounds_come_back_as_they_were, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_time_since_the_round_before_is_the_weight, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_weight_that_is_not_the_gap_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(processes_are_put_in_order_of_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(several_samplers_are_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_killed_sampler_leaves_what_it_wrote, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_thread_is_renamed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(fast_changes_are_all_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stable_stacks_take_less_than_a_byte, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_threads_take_less_still, set_up, tear_down),
        cmocka_unit_test_setup_teardown(writing_without_memory_fails_and_leaks_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(reading_without_memory_fails_and_leaks_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_full_disk_ends_the_log_with_its_sentence, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
