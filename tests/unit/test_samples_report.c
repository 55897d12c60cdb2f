/* The report of samples: sums by frames, owners and waits; selection of samples; its audit. */
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyze/samples/internal.h"
#include "log_maker.h"
#include "samples_maker.h"
#include "table_view.h"
#include <marey/marey.h>

enum { ON = MAREY_SAMPLE_ON_CPU, OFF = MAREY_SAMPLE_OFF_CPU, GIL = MAREY_SAMPLE_GIL };

/* A wait in words, as core/sampler/unwind has them: some code that it knows. */
enum { WAIT = 1 };

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

struct opened {
    marey_recording *recording;
    marey_report *report;
};

/* Settings of the report. */
struct wants {
    struct marey__samples_filter filter;
    const char *library;
    bool native;
};

struct wanted {
    char texts[8][64];
    const char *settings[9];
};

static void add_wanted(struct wanted *wanted, size_t *n, const char *name, const char *value)
{
    if (value == NULL)
        return;
    snprintf(wanted->texts[*n], sizeof wanted->texts[*n], "%s=%s", name, value);
    wanted->settings[*n] = wanted->texts[*n];
    ++*n;
}

static marey_status create_report(marey_recording *recording, const struct wants *wants,
                                  marey_report **out)
{
    struct wanted wanted = {0};
    size_t n = 0;
    if (wants != NULL) {
        const struct marey__samples_filter *const filter = &wants->filter;
        add_wanted(&wanted, &n, "mode", filter->mode);
        add_wanted(&wanted, &n, "range", filter->range);
        add_wanted(&wanted, &n, "iterations", filter->iterations);
        add_wanted(&wanted, &n, "phase", filter->phase);
        add_wanted(&wanted, &n, "thread", filter->thread);
        add_wanted(&wanted, &n, "rank", filter->rank);
        add_wanted(&wanted, &n, "library", wants->library);
        if (filter->idle || wants->native)
            wanted.settings[n++] = filter->idle ? "idle" : "native";
    }
    const struct marey_report_options options = {.settings = wanted.settings};
    return marey_report_create("samples", &recording, 1, &options, out);
}

static marey_status open_report(const struct samples_maker *m, const struct wants *options,
                                struct opened *out)
{
    *out = (struct opened){0};
    assert_int_equal(marey_recording_open(m->path, &out->recording), MAREY_OK);
    return create_report(out->recording, options, &out->report);
}

static void close_report(struct opened *opened)
{
    marey_report_destroy(opened->report);
    marey_recording_close(opened->recording);
}

static struct opened report_of(const struct samples_maker *m, const struct wants *options)
{
    struct opened opened;
    assert_int_equal(open_report(m, options, &opened), MAREY_OK);
    return opened;
}

static marey_table *table_of(const struct opened *opened, const char *name)
{
    return marey_report_table(opened->report, name);
}

/* `n` rounds, 1 ms apart from `*at_us` on, in which thread `t` has one stack. */
static void put_rounds(struct samples_maker *m, uint64_t *at_us, size_t n, uint32_t t,
                       uint32_t stack, uint32_t flags, uint32_t wait)
{
    const struct marey_samples_seen seen = {t, stack, flags, wait};
    for (size_t i = 0; i < n; i++, *at_us += 1000)
        samples_round(m, *at_us, 1, &seen);
}

static double share(const marey_table *table, size_t row, const char *column)
{
    return table_cell(table, row, column).as.f64;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) < 0.01;
}

/* ---- sums ---- */

static void recursion_counts_once_in_totals(void **state)
{
    struct samples_maker *m = *state;
    const uint32_t t = samples_thread(m, true, "MainThread");
    uint64_t at = 1000000;
    put_rounds(m, &at, 60, t, samples_stack(m, "main:1;fib:2;fib:2;fib:3"), ON, 0);
    put_rounds(m, &at, 40, t, samples_stack(m, "main:1;other:9"), ON, 0);
    samples_end(m, "stop");
    struct opened r = report_of(m, NULL);
    const marey_table *functions = table_of(&r, "functions"), *lines = table_of(&r, "lines");
    size_t row = table_row(functions, "function", "fib");
    assert_int_equal(row, 0); /* most by itself */
    assert_int_equal(table_number(functions, row, "samples"), 60);
    assert_true(is_near(share(functions, row, "share"), 0.6));
    assert_true(is_near(share(functions, row, "total_share"), 0.6));
    row = table_row(functions, "function", "main");
    assert_int_equal(table_number(functions, row, "samples"), 0);
    assert_true(is_near(share(functions, row, "total_share"), 1));
    assert_int_equal(marey_table_n_rows(lines), 4); /* fib has two */
    assert_int_equal(table_number(lines, 0, "line"), 3);
    close_report(&r);
}

static void each_share_has_its_error(void **state)
{
    struct samples_maker *m = *state;
    const uint32_t t = samples_thread(m, true, "MainThread");
    uint64_t at = 1000000;
    put_rounds(m, &at, 200, t, samples_stack(m, "a:1"), ON, 0);
    put_rounds(m, &at, 200, t, samples_stack(m, "b:1"), ON, 0);
    samples_end(m, "stop");
    struct opened r = report_of(m, NULL);
    /* 1.96 * sqrt(0.5 * 0.5 / 400) */
    assert_true(fabs(share(table_of(&r, "functions"), 0, "error") - 0.049) < 0.002);
    close_report(&r);
}

static void files_and_modules_are_added_up(void **state)
{
    struct samples_maker *m = *state;
    const uint32_t t = samples_thread(m, true, "MainThread");
    marey_samples *const s = m->samples;
    const uint32_t f = marey__samples_function(s, MAREY_FRAME_PYTHON, "Linear.forward",
                                               "/x/site-packages/torch/nn/linear.py", "", 10),
                   g = marey__samples_function(s, MAREY_FRAME_PYTHON, "Linear.__init__",
                                               "/x/site-packages/torch/nn/linear.py", "", 1),
                   h = marey__samples_function(s, MAREY_FRAME_PYTHON, "wait",
                                               "/usr/lib/python3.11/threading.py", "", 1);
    uint64_t at = 1000000;
    const uint32_t outer = marey__samples_stack(s, 0, marey__samples_location(s, g, 2));
    put_rounds(m, &at, 50, t, marey__samples_stack(s, outer, marey__samples_location(s, f, 11)), ON,
               0);
    put_rounds(m, &at, 30, t, outer, ON, 0);
    put_rounds(m, &at, 20, t, marey__samples_stack(s, 0, marey__samples_location(s, h, 5)), ON, 0);
    samples_end(m, "stop");
    struct opened r = report_of(m, NULL);
    const marey_table *modules = table_of(&r, "modules"), *files = table_of(&r, "files");
    assert_int_equal(marey_table_n_rows(modules), 2);
    assert_string_equal(table_cell(modules, 0, "module").as.text, "torch.nn.linear");
    assert_true(is_near(share(modules, 0, "total_share"), 0.8)); /* both frames are one sample */
    assert_string_equal(table_cell(modules, 1, "module").as.text, "threading");
    assert_string_equal(table_cell(files, 0, "file").as.text,
                        "/x/site-packages/torch/nn/linear.py");
    close_report(&r);
}

static void native_time_is_of_the_function_around_it(void **state)
{
    struct samples_maker *m = *state;
    const uint32_t t = samples_thread(m, true, "MainThread");
    uint64_t at = 1000000;
    put_rounds(m, &at, 70, t, samples_stack(m, "_start@python;main:1;step:5;gemm@libblas.so"), ON, 0);
    put_rounds(m, &at, 30, t, samples_stack(m, "pool@libgomp.so;work@libgomp.so"), ON, 0);
    samples_end(m, "stop");
    struct opened r = report_of(m, NULL);
    const marey_table *functions = table_of(&r, "functions");
    assert_string_equal(table_cell(functions, 0, "function").as.text, "step");
    assert_string_equal(table_cell(functions, 1, "function").as.text, "work");
    assert_int_equal(marey_table_n_rows(functions), 3);
    close_report(&r);
    r = report_of(m, &(struct wants){.native = 1});
    functions = table_of(&r, "functions");
    assert_string_equal(table_cell(functions, 0, "function").as.text, "gemm");
    assert_string_equal(table_cell(functions, 0, "module").as.text, "libblas.so");
    assert_true(
        is_near(share(functions, table_row(functions, "function", "_start"), "total_share"), 0.7));
    close_report(&r);
}

static void a_line_says_what_it_waits_for(void **state)
{
    struct samples_maker *m = *state;
    const uint32_t t = samples_thread(m, true, "MainThread"), w = samples_thread(m, false, "worker");
    const uint32_t get = samples_stack(m, "main:1;get:7"), run = samples_stack(m, "run:3");
    for (uint64_t i = 0; i < 100; i++)
        samples_round(m, 1000000 + i * 1000, 2,
                      (struct marey_samples_seen[]){{t, get, OFF, WAIT}, {w, run, OFF, WAIT}});
    samples_end(m, "stop");
    struct opened r = report_of(m, NULL);
    const marey_table *lines = table_of(&r, "lines"), *waits = table_of(&r, "waits");
    assert_string_equal(table_cell(lines, 0, "function").as.text, "get");
    assert_false(table_cell(lines, 0, "waits").is_null);
    assert_true(share(lines, 0, "cpu") == 0);
    assert_int_equal(table_number(table_of(&r, "totals"), 0, "samples"), 100); /* the main thread's */
    assert_int_equal(marey_table_n_rows(waits), 2); /* who waits is there all the same */
    assert_true(is_near(share(waits, 0, "share"), 0.5));
    close_report(&r);
}

static void the_lock_is_shared_out(void **state)
{
    struct samples_maker *m = *state;
    const uint32_t t = samples_thread(m, true, "MainThread"), w = samples_thread(m, false, "worker");
    const uint32_t a = samples_stack(m, "a:1");
    for (uint64_t i = 0; i < 100; i++) {
        const bool is_main = i % 4 == 0;
        const uint32_t held = ON | GIL, wants = OFF | MAREY_SAMPLE_WANTS_GIL;
        samples_round(m, 1000000 + i * 1000, 2,
                      (struct marey_samples_seen[]){{t, a, is_main ? held : wants, 0},
                                                    {w, a, is_main ? wants : held, 0}});
    }
    const struct marey_samples_counts counts = {.gil_switches = 99};
    marey__samples_set_counts(m->samples, 1, &counts);
    samples_end(m, "stop");
    struct opened r = report_of(m, NULL);
    const marey_table *gil = table_of(&r, "gil");
    assert_string_equal(table_cell(gil, 0, "thread").as.text, "worker");
    assert_true(is_near(share(gil, 0, "held"), 0.75));
    assert_true(is_near(share(gil, 1, "wants"), 0.75));
    assert_true(fabs(share(gil, 0, "switches_per_s") - 1000) < 20);
    close_report(&r);
}

static void a_library_is_met_where_it_is_called(void **state)
{
    struct samples_maker *m = *state;
    const uint32_t t = samples_thread(m, true, "MainThread");
    uint64_t at = 1000000;
    put_rounds(m, &at, 60, t, samples_stack(m, "main:1;lib_call:5;lib_inner:6;numpy:7"), ON, 0);
    put_rounds(m, &at, 40, t, samples_stack(m, "main:2"), ON, 0);
    samples_end(m, "stop");
    struct opened r = report_of(m, &(struct wants){.library = "lib_*"});
    const marey_table *contacts = table_of(&r, "contacts");
    assert_int_equal(marey_table_n_rows(contacts), 2);
    assert_string_equal(table_cell(contacts, 0, "function").as.text, "numpy");
    assert_string_equal(table_cell(contacts, 0, "contact").as.text, "lib_inner");
    assert_string_equal(table_cell(contacts, 0, "caller").as.text, "main");
    assert_int_equal(table_number(contacts, 0, "caller_line"), 1);
    assert_true(table_cell(contacts, 1, "contact").is_null);
    close_report(&r);
}

static const char *contact_at(const char *place, const char *library)
{
    static char name[64];
    struct samples_maker m;
    assert_int_equal(samples_maker_init(&m), 0);
    const uint32_t t = samples_thread(&m, true, "MainThread");
    char stack[256];
    uint64_t at = 1000000;
    snprintf(stack, sizeof stack, "main:1;%s:5;leaf:9", place);
    put_rounds(&m, &at, 1, t, samples_stack(&m, stack), ON, 0);
    samples_end(&m, "stop");
    struct opened r = report_of(&m, &(struct wants){.library = library});
    const struct marey_cell cell = table_cell(table_of(&r, "contacts"), 0, "contact");
    snprintf(name, sizeof name, "%s", cell.is_null ? "" : cell.as.text);
    close_report(&r);
    samples_maker_fini(&m);
    return name;
}

/* The maker's functions are of files /src/NAME.py. */
static void a_library_is_a_part_of_a_path_and_not_of_a_word(void **state)
{
    (void)state;
    assert_string_equal(contact_at("lib/torch/nn/linear", "torch"), "lib/torch/nn/linear");
    assert_string_equal(contact_at("lib/torch/nn/linear", "torch/nn"), "lib/torch/nn/linear");
    assert_string_equal(contact_at("lib/torch/nn/linear", "torch.nn"), "lib/torch/nn/linear");
    assert_string_equal(contact_at("lib/torch/nn/linear", "/torch/"), "lib/torch/nn/linear");
    assert_string_equal(contact_at("lib/torch/nn/linear", "torch.nn.linear"),
                        "lib/torch/nn/linear");
    assert_string_equal(contact_at("lib/torch/nn/linear", "tor*"), "lib/torch/nn/linear");
    assert_string_equal(contact_at("my/helpers", "helpers"), "my/helpers");
    assert_string_equal(contact_at("lib/torchvision/ops", "torch"), "");
    assert_string_equal(contact_at("home/torchard/train", "torch"), "");
    assert_string_equal(contact_at("lib/torch/linear", "torch/nn"), "");
    assert_string_equal(contact_at("lib/torch/linear", ""), "");
}

static void leaves_are_rows_of_stacks_or_of_frames(void **state)
{
    struct samples_maker *m = *state;
    const uint32_t t = samples_thread(m, true, "MainThread");
    uint64_t at = 1000000;
    put_rounds(m, &at, 30, t, samples_stack(m, "main:1;mine:5;dot:7"), ON, 0);
    put_rounds(m, &at, 20, t, samples_stack(m, "main:2;mine:5;dot:7"), ON, 0);
    put_rounds(m, &at, 50, t, samples_stack(m, "main:3"), ON, 0);
    samples_end(m, "stop");
    struct opened r = report_of(m, &(struct wants){.library = "mine"});
    const marey_table *leaves = table_of(&r, "leaves"), *merged = table_of(&r, "leaf_paths");
    assert_int_equal(marey_table_n_rows(leaves), 3);
    assert_int_equal(table_number(leaves, 1, "samples"), 30);
    assert_int_equal(marey_table_n_rows(merged), 2);
    assert_int_equal(table_number(merged, 0, "samples") + table_number(merged, 1, "samples"), 100);
    const size_t dot = table_cell(merged, 0, "library_function_name").is_null ? 1 : 0;
    assert_string_equal(table_cell(merged, dot, "name").as.text, "dot");
    assert_string_equal(table_cell(merged, dot, "library_function_name").as.text, "mine");
    assert_int_equal(table_number(merged, dot, "library_function_line"), 5);
    close_report(&r);
}

/* ---- which samples count ---- */

static uint64_t count_of(const struct samples_maker *m, struct marey__samples_filter filter)
{
    struct opened r = report_of(m, &(struct wants){.filter = filter});
    const uint64_t n = table_number(table_of(&r, "totals"), 0, "samples");
    close_report(&r);
    return n;
}

static void modes_choose_samples(void **state)
{
    struct samples_maker *m = *state;
    const uint32_t t = samples_thread(m, true, "MainThread"), w = samples_thread(m, false, "pool-1");
    const uint32_t a = samples_stack(m, "a:1"), b = samples_stack(m, "b:1");
    for (uint64_t i = 0; i < 10; i++)
        samples_round(m, 1000000 + i * 1000, 2,
                      (struct marey_samples_seen[]){
                          {t, a, i < 4 ? OFF : (uint32_t)(ON | GIL), 0},
                          {w, b, i < 7 ? OFF : ON | (i == 9 ? MAREY_SAMPLE_EXCEPTION : 0u), 0}});
    samples_end(m, "stop");
    assert_int_equal(count_of(m, (struct marey__samples_filter){0}), 13);
    assert_int_equal(count_of(m, (struct marey__samples_filter){.idle = 1}), 20);
    assert_int_equal(count_of(m, (struct marey__samples_filter){.mode = "wall"}), 13);
    assert_int_equal(count_of(m, (struct marey__samples_filter){.mode = "cpu"}), 9);
    assert_int_equal(count_of(m, (struct marey__samples_filter){.mode = "gil"}), 6);
    assert_int_equal(count_of(m, (struct marey__samples_filter){.mode = "exception"}), 1);
    assert_int_equal(count_of(m, (struct marey__samples_filter){.thread = "pool", .idle = 1}), 10);
}

static void a_filter_that_cannot_be_is_one_sentence(void **state)
{
    struct samples_maker *m = *state;
    const struct {
        struct marey__samples_filter filter;
        const char *says;
    } bad[] = {
        {{.mode = "fast"}, "not 'fast'"},
        {{.thread = "nobody"}, "no thread called 'nobody'"},
        {{.rank = "3"}, "no process of rank 3"},
        {{.rank = "-1"}, "is not a rank"},
        {{.range = "forward"}, "has its own log"},
        {{.iterations = "slow"}, "has its own log"},
    };
    uint64_t at = 1000000;
    put_rounds(m, &at, 3, samples_thread(m, true, "MainThread"), samples_stack(m, "a:1"), ON, 0);
    samples_end(m, "stop");
    for (size_t i = 0; i < MAREY__COUNT_OF(bad); i++) {
        struct opened r;
        const struct wants options = {.filter = bad[i].filter};
        assert_int_equal(open_report(m, &options, &r), MAREY_EINVAL);
        assert_non_null(strstr(marey_last_error(), bad[i].says));
        close_report(&r);
    }
}

/* ---- joined with the target's own log ---- */

/* The log of process 100, in the recording's directory: ten iterations of 100 ms, the fifth of 400, each with "forward" for half. */
static void put_target(const struct samples_maker *m, const char *start_time)
{
    char host[256], path[128];
    struct log_maker *const log = calloc(1, sizeof *log);
    gethostname(host, sizeof host);
    for (char *c = host; *c != '\0'; c++)
        if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._", *c) == NULL)
            *c = '_';
    log_put_pairs(log, MAREY__BLOCK_LOG,
                  (const char *const[]){"pid", "100", "host", host, "rank", "0", "clock", "monotonic",
                                        "tick_hz", "1000000000", "pid_start_time", start_time, NULL});
    log_put_site(log, 1, "forward");
    log_put_site(log, 2, "train");
    log_put_lane(log, 0, 100, "main");
    log_put_moment(log, 0, 0);
    log_put_moment(log, 10000000000, 10000000000);
    uint64_t at = 1000000000;
    log_phase(log, at, 2);
    for (uint64_t i = 0; i < 10; i++) {
        const uint64_t length = i == 4 ? 400000000 : 100000000;
        log_iteration_begin(log, at, i);
        log_begin(log, at, 1);
        log_end(log, at + length / 2, 1);
        at += length;
        log_iteration(log, at, i, false, 0);
    }
    log_phase(log, at, 0);
    log_put_words(log, 0, 0);
    log_put_end(log, "exit");
    snprintf(path, sizeof path, "%s/r0-x-100-1.klog", m->path);
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0 && marey__write_all(fd, log->bytes.data, log->bytes.len));
    close(fd);
    log_maker_fini(log);
    free(log);
}

/* A sample each 10 ms from 0.5 s to 3 s; the program runs from 1 s to 2.3 s. */
static void put_joined(struct samples_maker *m)
{
    const uint32_t t = samples_thread(m, true, "MainThread"), w = samples_thread(m, false, "other");
    const uint32_t a = samples_stack(m, "a:1");
    for (uint64_t at = 500000 + 5000; at < 3000000; at += 10000)
        samples_round(m, at, 2, (struct marey_samples_seen[]){{t, a, ON, 0}, {w, a, ON, 0}});
    samples_end(m, "stop");
}

static void ranges_and_iterations_choose_samples(void **state)
{
    struct samples_maker *m = *state;
    put_joined(m);
    put_target(m, "5");
    assert_int_equal(count_of(m, (struct marey__samples_filter){0}), 500);
    assert_int_equal(count_of(m, (struct marey__samples_filter){.range = "forward"}), 65);
    assert_int_equal(count_of(m, (struct marey__samples_filter){.range = "for*"}), 65);
    assert_int_equal(count_of(m, (struct marey__samples_filter){.iterations = "slow"}), 80);
    assert_int_equal(count_of(m, (struct marey__samples_filter){.iterations = "2"}), 20);
    assert_int_equal(count_of(m, (struct marey__samples_filter){.iterations = "1..3"}), 60);
    assert_int_equal(count_of(m, (struct marey__samples_filter){.iterations = "8.."}), 40);
    assert_int_equal(count_of(m, (struct marey__samples_filter){.phase = "train"}), 260);
    assert_int_equal(
        count_of(m, (struct marey__samples_filter){.iterations = "slow", .range = "forward"}), 20);
    struct opened r = report_of(m, &(struct wants){.filter = {.iterations = "slow"}});
    assert_non_null(strstr(table_cell(table_of(&r, "totals"), 0, "what").as.text,
                           "1 of 10 iterations, the slow ones (more than 1.5 times the median)"));
    close_report(&r);
    const struct wants none = {.filter = {.range = "backward"}};
    assert_int_equal(open_report(m, &none, &r), MAREY_EINVAL);
    assert_non_null(strstr(marey_last_error(), "has a range 'backward'"));
    close_report(&r);
    const struct wants odd = {.filter = {.iterations = "fast"}};
    assert_int_equal(open_report(m, &odd, &r), MAREY_EINVAL);
    close_report(&r);
}

static void a_pid_that_was_given_again_is_another_process(void **state)
{
    struct samples_maker *m = *state;
    struct opened r;
    put_joined(m);
    put_target(m, "6");
    const struct wants options = {.filter = {.range = "forward"}};
    assert_int_equal(open_report(m, &options, &r), MAREY_EINVAL);
    close_report(&r);
}

/* ---- the audit ---- */

static void the_audit_tells_snapshots_from_exact_samples(void **state)
{
    struct samples_maker *m = *state;
    const uint32_t t = samples_thread(m, true, "MainThread");
    const uint32_t a = samples_stack(m, "a:1"), b = samples_stack(m, "b:1");
    const uint32_t exact = ON | MAREY_SAMPLE_EXACT | MAREY_SAMPLE_AUDIT;
    uint64_t at = 1000000;
    for (int i = 0; i < 100; i++) { /* snapshots say 80 : 20, threads stopped by chance 60 : 40 */
        put_rounds(m, &at, 8, t, a, ON, 0);
        put_rounds(m, &at, 2, t, b, ON, 0);
        put_rounds(m, &at, 3, t, a, exact, 0);
        put_rounds(m, &at, 2, t, b, exact, 0);
    }
    const struct marey_samples_counts counts = {.asked = 1600,
                                                .done = 1500,
                                                .missed = 100,
                                                .samples = 1500,
                                                .rejected = 15,
                                                .unstable = 30,
                                                .exact = 500,
                                                .audit = 500,
                                                .stops = 500,
                                                .stop_ns = 15000000,
                                                .stop_max_ns = 70000};
    marey__samples_set_counts(m->samples, 0, &counts);
    samples_end(m, "stop");
    struct opened r = report_of(m, NULL);
    const marey_table *audit = table_of(&r, "audit");
    assert_int_equal(marey_table_n_rows(audit), 1);
    assert_true(fabs(share(audit, 0, "distance") - 0.2) < 1e-6);
    assert_true(share(audit, 0, "distance_low") > 0.13 && share(audit, 0, "distance_low") < 0.2);
    assert_true(share(audit, 0, "distance_high") > 0.2 && share(audit, 0, "distance_high") < 0.27);
    assert_true(share(audit, 0, "distance_by_chance") < 0.03);
    assert_true(is_near(share(audit, 0, "missed_share"), 0.0625));
    assert_true(is_near(share(audit, 0, "cost_share"), 0.01));
    assert_true(fabs(share(audit, 0, "achieved_hz") - 1000) < 5);
    assert_string_equal(table_cell(audit, 0, "strategy").as.text, "snapshot");
    assert_int_equal(marey_table_n_rows(table_of(&r, "notes")), 1); /* that rounds were missed */
    close_report(&r);
}

static void a_killed_sampler_is_reported(void **state)
{
    struct samples_maker *m = *state;
    const uint32_t t = samples_thread(m, true, "MainThread"), a = samples_stack(m, "a:1");
    uint64_t at = 1000000;
    put_rounds(m, &at, 100, t, a, ON, 0);
    samples_write(m);
    put_rounds(m, &at, 10, t, a, ON, 0);
    samples_kill(m);
    struct opened r = report_of(m, NULL);
    assert_int_equal(table_number(table_of(&r, "totals"), 0, "samples"), 100);
    assert_non_null(strstr(table_cell(table_of(&r, "notes"), 0, "text").as.text, "was killed"));
    close_report(&r);
}

static void no_sampler_is_said_with_how_to_get_one(void **state)
{
    struct samples_maker *m = *state;
    struct opened r;
    put_target(m, "5");
    assert_int_equal(open_report(m, NULL, &r), MAREY_EFORMAT);
    assert_non_null(strstr(marey_last_error(), "marey attach"));
    assert_int_equal(marey_report_is_there("samples", &r.recording, 1), 0);
    close_report(&r);
}

/* ---- with others in one recording ---- */

static void a_sampler_is_no_process_of_the_program(void **state)
{
    struct samples_maker *m = *state;
    marey_recording *recording = NULL;
    marey_report *summary = NULL;
    marey_report *breakdown = NULL;
    marey_report *epochs = NULL;
    put_joined(m);
    put_target(m, "5");
    assert_int_equal(marey_recording_open(m->path, &recording), MAREY_OK);
    assert_int_equal(marey_recording_n_processes(recording), 1);
    assert_int_equal(marey_report_create("ranges", &recording, 1, NULL, &summary), MAREY_OK);
    assert_int_equal(marey_table_n_rows(marey_report_table(summary, "processes")), 1);
    assert_int_equal(marey_report_create("breakdown", &recording, 1, NULL, &breakdown), MAREY_OK);
    /* Of one process: its whole time, and its iterations. */
    assert_int_equal(marey_table_n_rows(marey_report_table(breakdown, "devices")), 2);
    assert_int_equal(marey_report_create("epochs", &recording, 1, NULL, &epochs), MAREY_EFORMAT);
    assert_int_equal(marey_report_is_there("energy", &recording, 1), 0);
    marey_report_destroy(epochs);
    marey_report_destroy(breakdown);
    marey_report_destroy(summary);
    marey_recording_close(recording);
}

/* A block that cannot be read takes its own samples, and the names that were in it. */
static void damage_is_reported_and_the_rest_is_kept(void **state)
{
    struct samples_maker *m = *state;
    const uint32_t t = samples_thread(m, true, "MainThread"), a = samples_stack(m, "a:1");
    uint64_t at = 1000000;
    put_rounds(m, &at, 100, t, a, ON, 0);
    samples_write(m);
    const uint64_t first = marey__samples_log_size(m->log);
    const uint32_t b = samples_stack(m, "b:1");
    put_rounds(m, &at, 50, t, b, ON, 0);
    samples_write(m);
    put_rounds(m, &at, 30, t, b, ON, 0);
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", m->log->file.path);
    samples_end(m, "stop");
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0 && pwrite(fd, "xxxx", 4, (off_t)first + 60) == 4);
    close(fd);
    struct opened r = report_of(m, NULL);
    assert_int_equal(table_number(table_of(&r, "totals"), 0, "samples"), 130);
    assert_true(marey_recording_is_damaged(r.recording));
    const marey_table *functions = table_of(&r, "functions");
    assert_int_equal(table_number(functions, table_row(functions, "function", "a"), "samples"), 100);
    /* The gap behind what is lost is no sample's. */
    assert_in_range(table_number(table_of(&r, "totals"), 0, "self_ns"), 125000000, 135000000);
    close_report(&r);
}

/* ---- text and memory ---- */

static void the_text_says_what_counts_and_how_good_it_is(void **state)
{
    struct samples_maker *m = *state;
    uint64_t at = 1000000;
    put_rounds(m, &at, 50, samples_thread(m, true, "MainThread"), samples_stack(m, "main:1;step:5"),
               ON, 0);
    samples_end(m, "stop");
    struct opened r = report_of(m, NULL);
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_int_equal(marey_report_write(r.report, "text", NULL, out), MAREY_OK);
    assert_int_equal(marey_report_write(r.report, "json", NULL, out), MAREY_OK);
    fclose(out);
    assert_non_null(strstr(text, "50 samples of 1 thread in 1 process"));
    assert_non_null(strstr(text, "main thread: wall clock; other threads: on-CPU only"));
    assert_non_null(strstr(text, "audit: "));
    assert_non_null(strstr(text, "step.py:5(step)"));
    free(text);
    out = tmpfile();
    const struct marey_write_options odd = {.table = "nothing"};
    assert_int_equal(marey_report_write(r.report, "text", &odd, out), MAREY_EINVAL);
    fclose(out);
    close_report(&r);
}

static void a_report_without_memory_fails_and_leaks_nothing(void **state)
{
    struct samples_maker *m = *state;
    put_joined(m);
    put_target(m, "5");
    marey_recording *recording = NULL;
    assert_int_equal(marey_recording_open(m->path, &recording), MAREY_OK);
    const struct wants options = {.filter = {.range = "forward", .iterations = "slow"},
                                  .library = "a"};
    uint64_t n = 1;
    for (;; n++) {
        marey_report *report = NULL;
        marey__alloc_fail_nth(n);
        const marey_status status = create_report(recording, &options, &report);
        marey__alloc_fail_nth(0);
        marey_report_destroy(report);
        if (status == MAREY_OK)
            break;
        assert_int_equal(status, MAREY_ENOMEM);
    }
    assert_true(n > 50);
    marey_recording_close(recording);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(recursion_counts_once_in_totals),
        TEST(each_share_has_its_error),
        TEST(files_and_modules_are_added_up),
        TEST(native_time_is_of_the_function_around_it),
        TEST(a_line_says_what_it_waits_for),
        TEST(the_lock_is_shared_out),
        TEST(a_library_is_met_where_it_is_called),
        TEST(a_library_is_a_part_of_a_path_and_not_of_a_word),
        TEST(leaves_are_rows_of_stacks_or_of_frames),
        TEST(modes_choose_samples),
        TEST(a_filter_that_cannot_be_is_one_sentence),
        TEST(ranges_and_iterations_choose_samples),
        TEST(a_pid_that_was_given_again_is_another_process),
        TEST(the_audit_tells_snapshots_from_exact_samples),
        TEST(a_killed_sampler_is_reported),
        TEST(no_sampler_is_said_with_how_to_get_one),
        TEST(a_sampler_is_no_process_of_the_program),
        TEST(damage_is_reported_and_the_rest_is_kept),
        TEST(the_text_says_what_counts_and_how_good_it_is),
        TEST(a_report_without_memory_fails_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
