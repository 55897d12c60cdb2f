/* Call profiles: trees, sums, budgets, threads, output. Times are arguments, so all figures are
 * known. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#include "calls_view.h"

#include "instrument/calls/internal.h"

static const struct marey_calls_options by_hand = {.flags = MAREY_CALLS_USER};

static uint32_t function(struct marey_calls *calls, const char *name)
{
    return marey_calls_define(
        calls, &(struct marey_calls_function){.name = name, .file = "a.py", .line = 7});
}

/* "a(b(c)c)d": each letter is a function that is entered, a parenthesis opens its callees; each step takes a tick. */
struct player {
    struct marey_calls *calls;
    struct marey_calls_thread *thread;
    uint32_t functions[128];
    uint64_t now;
};

static uint32_t function_of(struct player *p, char letter)
{
    const char name[2] = {letter, '\0'};
    if (p->functions[(int)letter] == 0)
        p->functions[(int)letter] = function(p->calls, name);
    return p->functions[(int)letter];
}

static const char *play(struct player *p, const char *at)
{
    while (*at != '\0' && *at != ')') {
        const uint32_t f = function_of(p, *at++);
        marey_calls_enter_at(p->thread, f, 0, p->now++);
        if (*at == '(')
            at = play(p, at + 1) + 1;
        marey_calls_leave_at(p->thread, f, p->now++);
    }
    return at;
}

static struct player player(uint64_t memory)
{
    struct player p = {.calls = marey_calls_create(&(struct marey_calls_options){
                           .flags = MAREY_CALLS_USER, .memory_bytes = memory})};
    assert_non_null(p.calls);
    p.thread = marey_calls_thread_create(p.calls);
    assert_non_null(p.thread);
    return p;
}

/* The row of a function, or of one called by another; zeros when there is none. */
static struct marey_calls_row row_of(struct player *p, char callee, char caller)
{
    struct marey_calls_rows rows = {0};
    struct marey_calls_row found = {0};
    assert_int_equal(marey_calls_rows_init(p->calls, 0, &rows), MAREY_OK);
    const struct marey_calls_row *const all = caller != 0 ? rows.pairs : rows.functions;
    for (size_t i = 0; i < (caller != 0 ? rows.n_pairs : rows.n_functions); i++)
        if (all[i].function == p->functions[(int)callee] &&
            (caller == 0 || all[i].caller_function == p->functions[(int)caller]))
            found = all[i];
    marey_calls_rows_fini(&rows);
    return found;
}

static void times_are_split_into_own_and_callees(void **state)
{
    struct player p = player(0);
    (void)state;
    play(&p, "a(b(c)c)");
    const struct marey_calls_row a = row_of(&p, 'a', 0), b = row_of(&p, 'b', 0),
                                 c = row_of(&p, 'c', 0);
    assert_int_equal(a.total, 7);
    assert_int_equal(a.self, 7 - 3 - 1);
    assert_int_equal(b.total, 3);
    assert_int_equal(b.self, 2);
    assert_int_equal(c.calls, 2);
    assert_int_equal(c.total, 2);
    assert_int_equal(row_of(&p, 'c', 'a').calls, 1);
    assert_int_equal(row_of(&p, 'c', 'b').total, 1);
    assert_int_equal(row_of(&p, 'b', 'c').calls, 0);
    marey_calls_destroy(p.calls);
}

static void recursion_is_counted_once_in_total(void **state)
{
    struct player p = player(0);
    (void)state;
    play(&p, "f(f(f(g(f))))");
    const struct marey_calls_row f = row_of(&p, 'f', 0);
    assert_int_equal(f.calls, 4);
    assert_int_equal(f.recursive, 3);
    assert_int_equal(f.total, 9);
    assert_int_equal(f.self, 7); /* all but the two ticks of g itself */
    /* f called by f: the second within the first. */
    const struct marey_calls_row pair = row_of(&p, 'f', 'f');
    assert_int_equal(pair.calls, 2);
    assert_int_equal(pair.recursive, 1);
    assert_int_equal(pair.total, 7);
    marey_calls_destroy(p.calls);
}

static void signatures_are_nodes_and_rows_of_their_own(void **state)
{
    struct marey_calls *const calls = marey_calls_create(&by_hand);
    struct marey_calls_thread *const thread = marey_calls_thread_create(calls);
    const uint32_t f = function(calls, "f");
    const uint32_t one = marey_calls_signature(calls, f, "a:int", 5, 0);
    const uint32_t two = marey_calls_signature(calls, f, "a:str", 5, 16);
    (void)state;
    assert_int_equal(marey_calls_signature(calls, f, "a:int, b", 5, 0), one);
    assert_int_not_equal(one, two);
    for (uint64_t i = 0; i < 10; i++) {
        marey_calls_enter_at(thread, f, i % 2 == 0 ? one : two, 10 * i);
        marey_calls_leave_at(thread, f, 10 * i + 1 + i % 2);
    }
    struct marey_calls_rows rows;
    assert_int_equal(marey_calls_rows_init(calls, 1, &rows), MAREY_OK);
    assert_int_equal(rows.n_functions, 2);
    assert_int_equal(rows.functions[0].total, 5);
    assert_int_equal(rows.functions[1].total, 10);
    marey_calls_rows_fini(&rows);
    assert_int_equal(marey_calls_rows_init(calls, 0, &rows), MAREY_OK);
    assert_int_equal(rows.n_functions, 1);
    assert_int_equal(rows.functions[0].calls, 10);
    marey_calls_rows_fini(&rows);
    uint32_t of;
    const char *text;
    double elements;
    assert_true(marey_calls_signature_get(calls, two, &of, &text, &elements));
    assert_string_equal(text, "a:str");
    assert_int_equal(of, f);
    assert_true(elements == 16);
    assert_false(marey_calls_signature_get(calls, two + 1, &of, &text, &elements));
    marey_calls_destroy(calls);
}

static void a_released_function_that_comes_again_is_the_same(void **state)
{
    struct marey_calls *const calls = marey_calls_create(NULL);
    const uint32_t first = function(calls, "f"), second = function(calls, "f");
    (void)state;
    assert_int_not_equal(first, second); /* both are there: a lambda beside another */
    marey_calls_release_function(calls, first);
    assert_int_equal(function(calls, "f"), first);
    assert_int_not_equal(function(calls, "g"), first);
    for (int i = 0; i < 1000; i++) {
        marey_calls_release_function(calls, second);
        assert_int_equal(function(calls, "f"), second);
    }
    struct marey_calls_function found;
    assert_true(marey_calls_function_get(calls, first, &found));
    assert_string_equal(found.name, "f");
    assert_string_equal(found.module, "");
    assert_false(marey_calls_function_get(calls, 0, &found));
    marey_calls_destroy(calls);
}

static void ends_that_do_not_fit_are_survived(void **state)
{
    struct player p = player(0);
    const uint32_t a = function_of(&p, 'a'), b = function_of(&p, 'b'), c = function_of(&p, 'c');
    (void)state;
    marey_calls_leave_at(p.thread, a, 1); /* it began before the profile did */
    marey_calls_enter_at(p.thread, a, 0, 10);
    marey_calls_leave_at(p.thread, c, 11);
    assert_int_equal(marey_calls_depth(p.thread), 1);
    marey_calls_enter_at(p.thread, b, 0, 20);
    marey_calls_enter_at(p.thread, c, 0, 30);
    marey_calls_leave_at(p.thread, a, 40); /* nobody told of the ends of b and c */
    assert_int_equal(marey_calls_depth(p.thread), 0);
    assert_int_equal(row_of(&p, 'a', 0).total, 30);
    assert_int_equal(row_of(&p, 'b', 0).self, 10);
    assert_int_equal(row_of(&p, 'c', 0).self, 10);
    marey_calls_enter_at(p.thread, a, 0, 50);
    marey_calls_leave_at(p.thread, a, 45); /* a clock that goes back */
    assert_int_equal(row_of(&p, 'a', 0).total, 30);
    marey_calls_destroy(p.calls);
}

static void what_is_open_is_counted_when_it_is_settled(void **state)
{
    struct player p = player(0);
    const uint32_t a = function_of(&p, 'a'), b = function_of(&p, 'b');
    (void)state;
    marey_calls_enter_at(p.thread, a, 0, 10);
    marey_calls_resume_at(p.thread, b, 0, 15);
    assert_int_equal(row_of(&p, 'a', 0).calls, 0);
    marey_calls_settle_at(p.calls, 30);
    assert_int_equal(row_of(&p, 'a', 0).total, 20);
    assert_int_equal(row_of(&p, 'b', 0).resumes, 1);
    marey_calls_leave_at(p.thread, b, 40);
    marey_calls_leave_at(p.thread, a, 50);
    assert_int_equal(row_of(&p, 'a', 0).total, 20);
    marey_calls_clear(p.calls);
    assert_int_equal(row_of(&p, 'a', 0).calls, 0);
    play(&p, "a(b)");
    assert_int_equal(row_of(&p, 'a', 0).total, 3);
    marey_calls_destroy(p.calls);
}

static void deep_stacks_grow(void **state)
{
    enum { DEPTH = 5000 };
    struct player p = player(0);
    const uint32_t f = function_of(&p, 'f');
    (void)state;
    for (uint64_t i = 0; i < DEPTH; i++)
        marey_calls_enter_at(p.thread, f, 0, i);
    for (uint64_t i = 0; i < DEPTH; i++)
        marey_calls_leave_at(p.thread, f, DEPTH + i);
    const struct marey_calls_row row = row_of(&p, 'f', 0);
    assert_int_equal(row.calls, DEPTH);
    assert_int_equal(row.recursive, DEPTH - 1);
    assert_int_equal(row.total, 2 * DEPTH - 1);
    assert_int_equal(row.self, 2 * DEPTH - 1);
    marey_calls_destroy(p.calls);
}

/* Paths of 8 functions in all orders: far more than the budget has room for. */
static void past_the_budget_counts_and_self_times_stay_exact(void **state)
{
    struct player p = player(200 << 10);
    uint64_t calls[8] = {0}, n_calls = 0, seed = 1;
    (void)state;
    for (int round = 0; round < 4000; round++) {
        uint32_t path[6];
        for (int i = 0; i < 6; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            path[i] = (uint32_t)(seed >> 60) % 8;
            marey_calls_enter_at(p.thread, function_of(&p, (char)('a' + path[i])), 0, p.now++);
            calls[path[i]]++;
            n_calls++;
        }
        for (int i = 5; i >= 0; i--)
            marey_calls_leave_at(p.thread, function_of(&p, (char)('a' + path[i])), p.now++);
    }
    struct marey_calls_counts counts;
    uint64_t self = 0;
    marey_calls_counts_get(p.calls, &counts);
    assert_true(counts.other_paths > 0 && counts.other_paths < n_calls);
    assert_true(counts.bytes < 300 << 10);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(row_of(&p, (char)('a' + i), 0).calls, calls[i]);
        self += row_of(&p, (char)('a' + i), 0).self;
    }
    assert_int_equal(self, 4000 * 11);
    marey_calls_destroy(p.calls);
}

static void clocks_tell_time(void **state)
{
    static const uint32_t flags[] = {0, MAREY_CALLS_CPU};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct marey_calls *const calls =
            marey_calls_create(&(struct marey_calls_options){.flags = flags[i]});
        struct marey_calls_thread *const thread = marey_calls_thread_create(calls);
        const uint32_t f = function(calls, "f");
        marey_calls_enter(thread, f, 0);
        const uint64_t begin = marey__clock_ns(CLOCK_THREAD_CPUTIME_ID);
        while (marey__clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin < 2000000)
            ;
        marey_calls_leave(thread, f);
        marey_calls_resume(thread, f, 0);
        marey_calls_settle(calls);
        struct marey_calls_rows rows;
        assert_int_equal(marey_calls_rows_init(calls, 0, &rows), MAREY_OK);
        assert_int_equal(rows.functions[0].calls, 2);
        const double ns = (double)rows.functions[0].total * marey_calls_ns_per_tick(calls);
        assert_true(ns >= 1.99e6 && ns < 1e11);
        marey_calls_rows_fini(&rows);
        marey_calls_destroy(calls);
    }
}

/* ---- output ---- */

static void write_file(struct marey_calls *calls, const char *path, marey_status expected)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(marey_calls_write(calls, fd), expected);
    close(fd);
}

static void a_file_has_the_tree(void **state)
{
    const struct scratch *const s = *state;
    struct calls_view *const view = calloc(1, sizeof *view);
    struct player p = player(0);
    play(&p, "a(b(c)c)a(b(b))");
    marey_calls_count_widened(p.calls);
    write_file(p.calls, s->path, MAREY_OK);
    calls_view_read(view, s->path);
    assert_int_equal(view->n_ends, 1);
    assert_int_equal(view->n_nodes, 5);
    assert_int_equal(view->widened, 1);
    const struct view_node *const a = &view->nodes[calls_view_find(view, "a")];
    assert_int_equal(a->calls, 2);
    assert_int_equal(a->total, 7 + 5);
    assert_int_equal(a->max, 7);
    assert_int_equal(view->nodes[calls_view_find(view, "a/b/b")].self, 1);
    assert_int_equal(view->nodes[calls_view_find(view, "a/b/c")].calls, 1);
    assert_int_equal(calls_view_find(view, "b"), 0);
    marey_calls_destroy(p.calls);
    free(view);
}

static void a_recording_has_differences(void **state)
{
    const struct scratch *const s = *state;
    struct calls_view *const view = calloc(1, sizeof *view);
    uint32_t profile, node;
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    struct marey_calls *const calls = marey_calls_create(&by_hand), *const second =
                                                                        marey_calls_create(NULL);
    assert_int_equal(marey_calls_record(calls), MAREY_OK);
    assert_int_equal(marey_calls_record(second), MAREY_ESTATE);
    struct player p = {.calls = calls, .thread = marey_calls_thread_create(calls)};
    assert_false(marey_calls_current(&profile, &node));
    play(&p, "a(b)");
    marey_calls_enter_at(p.thread, p.functions['a'], 0, p.now);
    assert_true(marey_calls_current(&profile, &node));
    marey_calls_leave_at(p.thread, p.functions['a'], p.now);
    assert_int_equal(marey__calls_append(calls, &marey__record.log, true, 0), MAREY_OK);
    play(&p, "a(b(d))");
    marey_calls_settle_at(calls, p.now);
    assert_int_equal(marey_stop(), MAREY_OK);
    calls_view_recording(view, s->path);
    assert_true(view->n_blocks >= 2);
    assert_int_equal(calls_view_find(view, "a"), node);
    assert_int_equal(view->nodes[node].calls, 3);
    assert_int_equal(view->nodes[node].total, 3 + 0 + 5);
    assert_int_equal(view->nodes[calls_view_find(view, "a/b/d")].calls, 1);
    marey_calls_unrecord(calls);
    assert_false(marey_calls_current(&profile, &node));
    assert_int_equal(marey_calls_record(second), MAREY_ESTATE); /* no recording is open */
    marey_calls_destroy(calls);
    marey_calls_destroy(second);
    free(view);
}

static void a_second_recording_has_all_again(void **state)
{
    const struct scratch *const s = *state;
    char path[160];
    struct player p = player(0);
    for (int i = 0; i < 2; i++) {
        struct calls_view *const view = calloc(1, sizeof *view);
        snprintf(path, sizeof path, "%s/%d.marey", s->folder, i);
        assert_int_equal(marey_start(&(struct marey_options){.path = path}), MAREY_OK);
        assert_int_equal(marey_calls_record(p.calls), MAREY_OK);
        play(&p, "a(b)");
        assert_int_equal(marey_stop(), MAREY_OK);
        calls_view_recording(view, path);
        assert_int_equal(view->nodes[calls_view_find(view, "a/b")].calls, (uint64_t)i + 1);
        marey_calls_unrecord(p.calls);
        free(view);
    }
    marey_calls_destroy(p.calls);
}

static void a_full_disk_is_reported(void **state)
{
    struct player p = player(0);
    (void)state;
    play(&p, "a(b)");
    const int fd = open("/dev/full", O_WRONLY);
    assert_int_equal(marey_calls_write(p.calls, fd), MAREY_EIO);
    close(fd);
    marey_calls_destroy(p.calls);
}

/* ---- threads and processes ---- */

enum { THREADS = 4, ROUNDS = 20000 };

struct worker {
    struct marey_calls *calls;
    uint32_t a, b;
    bool *is_over;
};

static void *call_often(void *arg)
{
    const struct worker *const w = arg;
    struct marey_calls_thread *const thread = marey_calls_thread_create(w->calls);
    for (int i = 0; i < ROUNDS; i++) {
        marey_calls_enter(thread, w->a, 0);
        marey_calls_enter(thread, w->b, 0);
        marey_calls_leave(thread, w->b);
        marey_calls_leave(thread, w->a);
        if (i % 1000 == 0) /* new paths while others read */
            marey_calls_enter(thread, function(w->calls, "new"), 0);
    }
    return NULL;
}

static void *write_often(void *arg)
{
    const struct worker *const w = arg;
    marey_status status = MAREY_OK;
    while (status == MAREY_OK && !__atomic_load_n(w->is_over, __ATOMIC_ACQUIRE))
        status = marey__calls_append(w->calls, &marey__record.log, true, 0);
    return (void *)(intptr_t)status;
}

static void snapshots_are_whole_while_threads_call(void **state)
{
    const struct scratch *const s = *state;
    struct calls_view *const view = calloc(1, sizeof *view);
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    struct marey_calls *const calls = marey_calls_create(NULL);
    bool is_over = false;
    struct worker w = {calls, function(calls, "a"), function(calls, "b"), &is_over};
    pthread_t threads[THREADS], writer;
    void *status;
    assert_int_equal(marey_calls_record(calls), MAREY_OK);
    assert_int_equal(pthread_create(&writer, NULL, write_often, &w), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &w), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    __atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
    pthread_join(writer, &status);
    assert_int_equal((intptr_t)status, MAREY_OK);
    marey_calls_settle(calls);
    assert_int_equal(marey_stop(), MAREY_OK);
    calls_view_recording(view, s->path);
    uint64_t n_calls[3] = {0}, a_total = 0, a_self = 0, b_total = 0;
    for (uint64_t n = 1; n < VIEW_MOST; n++) {
        const struct view_node *const node = &view->nodes[n];
        const uint64_t which = node->function == w.a ? 0 : node->function == w.b ? 1 : 2;
        n_calls[which] += node->calls;
        if (which == 0)
            a_total += node->total, a_self += node->self;
        if (which == 1)
            b_total += node->total;
    }
    assert_int_equal(n_calls[0], THREADS * ROUNDS);
    assert_int_equal(n_calls[1], THREADS * ROUNDS);
    assert_int_equal(n_calls[2], THREADS * ROUNDS / 1000);
    assert_int_equal(a_self + b_total, a_total);
    assert_int_equal(view->n_threads, THREADS);
    marey_calls_destroy(calls);
    free(view);
}

static void a_forked_child_begins_with_nothing(void **state)
{
    struct player p = player(0);
    (void)state;
    play(&p, "a(b)");
    marey_calls_enter_at(p.thread, p.functions['a'], 0, p.now);
    struct worker w = {.calls = p.calls, .a = p.functions['a'], .b = p.functions['b']};
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, call_often, &w), 0);
    pthread_join(other, NULL);
    const uint64_t n_before = row_of(&p, 'a', 0).calls;
    const pid_t child = fork();
    if (child == 0) {
        struct marey_calls_counts counts;
        marey_calls_counts_get(p.calls, &counts);
        const bool is_empty =
            counts.nodes == 0 && counts.threads == 1 && marey_calls_depth(p.thread) == 0;
        play(&p, "b");
        _exit(is_empty && row_of(&p, 'b', 0).calls == 1 && row_of(&p, 'a', 0).calls == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(row_of(&p, 'a', 0).calls, n_before);
    assert_int_equal(marey_calls_depth(p.thread), 1);
    marey_calls_destroy(p.calls);
}

/* ---- without memory ---- */

/* Whatever fails, nothing is lost but names and paths, and nothing leaks. */
static bool try_all(uint64_t nth, const char *path)
{
    uint64_t n_calls = 0;
    marey_status status = MAREY_ENOMEM;
    marey__alloc_fail_nth(nth);
    struct marey_calls *const calls = marey_calls_create(&by_hand);
    struct marey_calls_thread *const thread = calls != NULL ? marey_calls_thread_create(calls) : NULL;
    if (thread != NULL) {
        for (uint64_t i = 0; i < 300; i++) {
            const uint32_t f = function(calls, "f");
            marey_calls_enter_at(thread, f, marey_calls_signature(calls, f, "a", 1, 0), i);
        }
        marey_calls_settle_at(calls, 1000);
        const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        status = marey_calls_write(calls, fd);
        close(fd);
        struct marey_calls_rows rows = {0};
        const marey_status rows_status = marey_calls_rows_init(calls, 1, &rows);
        for (size_t i = 0; i < rows.n_functions; i++)
            n_calls += rows.functions[i].calls;
        marey_calls_rows_fini(&rows);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
        assert_true(n_calls <= 300); /* fewer when the stack could not grow */
        status = rows_status != MAREY_OK ? rows_status : status;
    }
    marey__alloc_fail_nth(0);
    marey_calls_destroy(calls);
    return status == MAREY_OK && n_calls == 300;
}

static void each_allocation_may_fail(void **state)
{
    enum { MORE_THAN_THERE_ARE = 1200 };
    const struct scratch *const s = *state;
    bool is_whole = false;
    for (uint64_t nth = 1; nth <= MORE_THAN_THERE_ARE; nth++)
        is_whole = try_all(nth, s->path);
    assert_true(is_whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(times_are_split_into_own_and_callees),
        SCRATCH_TEST(recursion_is_counted_once_in_total),
        SCRATCH_TEST(signatures_are_nodes_and_rows_of_their_own),
        SCRATCH_TEST(a_released_function_that_comes_again_is_the_same),
        SCRATCH_TEST(ends_that_do_not_fit_are_survived),
        SCRATCH_TEST(what_is_open_is_counted_when_it_is_settled),
        SCRATCH_TEST(deep_stacks_grow),
        SCRATCH_TEST(past_the_budget_counts_and_self_times_stay_exact),
        SCRATCH_TEST(clocks_tell_time),
        SCRATCH_TEST(a_file_has_the_tree),
        SCRATCH_TEST(a_recording_has_differences),
        SCRATCH_TEST(a_second_recording_has_all_again),
        SCRATCH_TEST(a_full_disk_is_reported),
        SCRATCH_TEST(snapshots_are_whole_while_threads_call),
        SCRATCH_TEST(a_forked_child_begins_with_nothing),
        SCRATCH_TEST(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
