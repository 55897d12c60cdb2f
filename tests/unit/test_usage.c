/* Usage over intervals, against what getrusage and the workers themselves say. Work is measured in processor time, so that
 * a busy machine makes the tests slower and no less true. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "record/internal.h"
#include "scratch.h"

#define MS 1000000u

static void burn(uint64_t cpu_ns)
{
    const uint64_t until = marey__clock_ns(CLOCK_THREAD_CPUTIME_ID) + cpu_ns;
    while (marey__clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
        ;
}

static uint64_t rusage_ns(int who)
{
    struct rusage r;
    assert_int_equal(getrusage(who, &r), 0);
    return (uint64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000000u +
           (uint64_t)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000u;
}

static void assert_close(uint64_t got, uint64_t truth, uint64_t slack_ns)
{
    const double allowed = 0.03 * (double)truth + (double)slack_ns;
    const double off = (double)got - (double)truth;
    if (off > allowed || off < -allowed)
        fail_msg("%.3f ms, and not %.3f ms", (double)got / 1e6, (double)truth / 1e6);
}

static struct marey__usage difference(const struct marey__usage *begin, const struct marey__usage *end)
{
    struct marey__usage sum = {0};
    marey__usage_add(&sum, begin, end);
    return sum;
}

/* ---- this process ---- */

static void a_busy_thread_reads_as_getrusage_has_it(void **state)
{
    (void)state;
    struct marey__usage begin, end;
    const uint64_t truth = rusage_ns(RUSAGE_SELF), wall = marey__clock_ns(CLOCK_MONOTONIC);
    marey__usage_begin(MAREY__USAGE_ALL, &begin);
    burn(200 * MS);
    marey__usage_end(MAREY__USAGE_ALL, &end);
    const uint64_t used = rusage_ns(RUSAGE_SELF) - truth;
    const struct marey__usage sum = difference(&begin, &end);
    assert_close(sum.thread_cpu_ns, used, 0);
    assert_close(sum.process_cpu_ns, used, 0);
    assert_close(sum.tree_cpu_ns, used, 0);
    const double processors = marey__usage_processors(sum.process_cpu_ns, sum.wall_ns);
    const double truly = (double)used / (double)(marey__clock_ns(CLOCK_MONOTONIC) - wall);
    assert_true(processors < truly * 1.03 && processors > truly * 0.97);
    assert_true(processors < 1.03);
}

static void *burn_on_a_thread(void *arg)
{
    burn(100 * MS);
    return arg;
}

static void threads_count_for_the_process_and_each_for_itself(void **state)
{
    (void)state;
    struct marey__usage begin, end;
    pthread_t threads[3];
    marey__usage_begin(MAREY__USAGE_ALL, &begin);
    for (size_t i = 0; i < MAREY__COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, burn_on_a_thread, NULL), 0);
    for (size_t i = 0; i < MAREY__COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    marey__usage_end(MAREY__USAGE_ALL, &end);
    const struct marey__usage sum = difference(&begin, &end);
    assert_close(sum.process_cpu_ns, 300 * MS, 5 * MS);
    assert_close(sum.tree_cpu_ns, 300 * MS, 5 * MS);
    assert_true(sum.thread_cpu_ns < 20 * MS);
}

static void sleep_uses_no_processor(void **state)
{
    (void)state;
    struct marey__usage begin, end;
    const uint32_t mask = MAREY__USAGE_ALL & ~(uint32_t)MAREY_USAGE_MACHINE_CPU;
    marey__usage_begin(mask, &begin);
    usleep(100000);
    marey__usage_end(mask, &end);
    const struct marey__usage sum = difference(&begin, &end);
    assert_true(sum.wall_ns >= 100 * MS);
    assert_true(sum.thread_cpu_ns < MS && sum.process_cpu_ns < MS && sum.tree_cpu_ns < 3 * MS);
    assert_true(sum.n_switches >= 1);
}

static void faults_and_memory_are_those_of_the_interval(void **state)
{
    (void)state;
    enum { PAGES = 4096 };
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct marey__usage begin, end;
    char *memory =
        mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    madvise(memory, PAGES * page, MADV_NOHUGEPAGE);
    marey__usage_begin(MAREY_USAGE_FAULTS | MAREY_USAGE_RSS, &begin);
    for (size_t i = 0; i < PAGES; i++)
        memory[i * page] = 1;
    marey__usage_end(MAREY_USAGE_FAULTS | MAREY_USAGE_RSS, &end);
    struct marey__usage sum = difference(&begin, &end);
    /* Sanitizers have pages of their own for each of ours. */
    assert_in_range(sum.n_minor_faults, PAGES, 8 * PAGES);
    assert_in_range(sum.rss_bytes, PAGES * page * 9 / 10, 8 * PAGES * page);
    munmap(memory, PAGES * page);
    marey__usage_end(MAREY_USAGE_RSS, &begin);
    sum = difference(&end, &begin);
    assert_true(sum.rss_bytes < 0);
}

static void the_machine_is_at_least_as_busy_as_we_are(void **state)
{
    (void)state;
    struct marey__usage begin, end;
    marey__usage_begin(MAREY_USAGE_MACHINE_CPU, &begin);
    burn(400 * MS);
    marey__usage_end(MAREY_USAGE_MACHINE_CPU, &end);
    const struct marey__usage sum = difference(&begin, &end);
    assert_true(sum.machine_cpu_ns > 300 * MS);
    assert_true(marey__usage_processors(sum.machine_cpu_ns, sum.machine_wall_ns) <
                1.1 * (double)sysconf(_SC_NPROCESSORS_CONF));
}

/* ---- descendants ---- */

/* A child that burns what it is told to, says what it has used for that, and lives until it is told 0. */
struct worker {
    pid_t pid;
    int to, from;
};

static void work(int from, int to)
{
    uint64_t ns;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (read(from, &ns, sizeof ns) == (ssize_t)sizeof ns && ns > 0) {
        const uint64_t begin = marey__clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        burn(ns);
        ns = marey__clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin;
        if (write(to, &ns, sizeof ns) != (ssize_t)sizeof ns)
            break;
    }
    _exit(0);
}

static struct worker hire(void)
{
    int down[2], up[2];
    assert_int_equal(pipe(down), 0);
    assert_int_equal(pipe(up), 0);
    struct worker w = {.pid = fork(), .to = down[1], .from = up[0]};
    assert_true(w.pid >= 0);
    if (w.pid == 0) {
        close(down[1]);
        work(down[0], up[1]);
    }
    close(down[0]);
    close(up[1]);
    return w;
}

static void tell(const struct worker *w, uint64_t ns)
{
    assert_int_equal(write(w->to, &ns, sizeof ns), sizeof ns);
}

static uint64_t hear(const struct worker *w)
{
    uint64_t ns;
    assert_int_equal(read(w->from, &ns, sizeof ns), sizeof ns);
    return ns;
}

static void dismiss(const struct worker *w, bool should_wait)
{
    tell(w, 0);
    if (should_wait)
        assert_int_equal(waitpid(w->pid, NULL, 0), w->pid);
    close(w->to);
    close(w->from);
}

static void two_busy_workers_read_as_their_sum(void **state)
{
    (void)state;
    const struct worker a = hire(), b = hire();
    tell(&a, 150 * MS); /* before the interval */
    hear(&a);
    struct marey__usage begin, end;
    marey__usage_begin(MAREY__USAGE_ALL, &begin);
    tell(&a, 200 * MS);
    tell(&b, 300 * MS);
    const uint64_t truth = hear(&a) + hear(&b);
    marey__usage_end(MAREY__USAGE_ALL, &end);
    const struct marey__usage sum = difference(&begin, &end);
    assert_close(sum.tree_cpu_ns - sum.process_cpu_ns, truth, 2 * MS);
    assert_int_equal(marey__tree_n_processes(), 2);
    dismiss(&a, true);
    dismiss(&b, true);
}

static void a_worker_that_ends_within_counts_once(void **state)
{
    (void)state;
    const struct worker w = hire();
    const uint64_t begin = marey__tree_cpu_ns();
    tell(&w, 150 * MS);
    uint64_t truth = hear(&w);
    assert_close(marey__tree_cpu_ns() - begin, truth, 3 * MS);
    tell(&w, 50 * MS);
    truth += hear(&w);
    tell(&w, 0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)w.pid, &info, WEXITED | WNOWAIT), 0);
    assert_close(marey__tree_cpu_ns() - begin, truth, 4 * MS); /* it is a zombie now */
    assert_int_equal(waitpid(w.pid, NULL, 0), w.pid);
    assert_close(marey__tree_cpu_ns() - begin, truth, 5 * MS);
    close(w.to);
    close(w.from);
}

static void a_worker_that_begins_and_ends_within_counts(void **state)
{
    (void)state;
    const uint64_t begin = marey__tree_cpu_ns();
    const struct worker w = hire();
    tell(&w, 150 * MS);
    const uint64_t truth = hear(&w);
    dismiss(&w, true);
    assert_close(marey__tree_cpu_ns() - begin, truth, 4 * MS);
}

static void a_worker_that_nobody_waits_for_keeps_what_was_seen(void **state)
{
    (void)state;
    signal(SIGCHLD, SIG_IGN);
    const struct worker w = hire();
    const uint64_t begin = marey__tree_cpu_ns();
    tell(&w, 150 * MS);
    const uint64_t truth = hear(&w);
    marey__tree_cpu_ns();
    dismiss(&w, false);
    while (kill(w.pid, 0) == 0)
        usleep(1000);
    assert_close(marey__tree_cpu_ns() - begin, truth, 5 * MS);
    assert_int_equal(marey__tree_n_processes(), 0);
    signal(SIGCHLD, SIG_DFL);
    a_worker_that_begins_and_ends_within_counts(state); /* the next one is none the worse for it */
}

/* The child has a child of its own, which burns, ends and is waited for; then the child goes on. */
static void grandchildren_count_while_they_live_and_after(void **state)
{
    (void)state;
    int up[2], down[2];
    uint64_t ns;
    char go;
    const uint64_t begin = marey__tree_cpu_ns();
    assert_int_equal(pipe(up), 0);
    assert_int_equal(pipe(down), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const struct worker w = hire();
        tell(&w, 200 * MS);
        ns = hear(&w);
        (void)!write(up[1], &ns, sizeof ns); /* both live */
        (void)!read(down[0], &go, 1);
        dismiss(&w, true);
        (void)!write(up[1], &ns, sizeof ns); /* one is left */
        (void)!read(down[0], &go, 1);
        _exit(0);
    }
    assert_int_equal(read(up[0], &ns, sizeof ns), sizeof ns);
    assert_close(marey__tree_cpu_ns() - begin, ns, 5 * MS);
    assert_int_equal(marey__tree_n_processes(), 2);
    assert_int_equal(write(down[1], "g", 1), 1);
    assert_int_equal(read(up[0], &ns, sizeof ns), sizeof ns);
    assert_close(marey__tree_cpu_ns() - begin, ns, 25 * MS); /* ticks, of user and of system time */
    assert_int_equal(marey__tree_n_processes(), 1);
    assert_int_equal(write(down[1], "g", 1), 1);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_close(marey__tree_cpu_ns() - begin, ns, 6 * MS);
    for (int i = 0; i < 2; i++) {
        close(up[i]);
        close(down[i]);
    }
}

/* Read it over and over, and say whether it ever went back. */
static _Atomic bool should_stop;
static void *watch(void *arg)
{
    uintptr_t n_back = 0;
    for (uint64_t last = 0, now; !should_stop; last = now) {
        now = marey__tree_cpu_ns();
        n_back += now < last;
    }
    (void)arg;
    return (void *)n_back;
}

static void it_never_goes_back_and_ends_with_the_whole_sum(void **state)
{
    (void)state;
    enum { CHILDREN = 60 };
    pthread_t watcher;
    void *n_back;
    const uint64_t begin = marey__tree_cpu_ns(),
                   truth = rusage_ns(RUSAGE_SELF) + rusage_ns(RUSAGE_CHILDREN);
    should_stop = false;
    assert_int_equal(pthread_create(&watcher, NULL, watch, NULL), 0);
    for (int i = 0; i < CHILDREN; i++) {
        const pid_t pid = fork();
        if (pid == 0) {
            if (i % 3 == 0 && fork() == 0) {
                burn(3 * MS);
                _exit(0);
            }
            burn((uint64_t)(i % 5) * MS);
            while (wait(NULL) > 0)
                ;
            _exit(0);
        }
        assert_true(pid > 0);
        if (i % 2 == 1)
            while (wait(NULL) > 0)
                ;
    }
    while (wait(NULL) > 0)
        ;
    should_stop = true;
    pthread_join(watcher, &n_back);
    assert_int_equal((uintptr_t)n_back, 0);
    const uint64_t used = rusage_ns(RUSAGE_SELF) + rusage_ns(RUSAGE_CHILDREN) - truth;
    assert_close(marey__tree_cpu_ns() - begin, used, 2 * MS);
}

static void all_of_proc_is_looked_through_once(void **state)
{
    (void)state;
    marey__tree_cpu_ns();
    const uint64_t n_scans = marey__tree_n_scans();
    assert_true(n_scans >= 1);
    for (int i = 0; i < 300; i++) {
        if (i % 100 == 0 && fork() == 0)
            _exit(0);
        marey__tree_cpu_ns();
    }
    while (wait(NULL) > 0)
        ;
    assert_in_range(marey__tree_n_scans(), n_scans,
                    n_scans + 1); /* one more where the numbers began anew */
}

/* In a forked child, which begins with nothing. */
static bool miss_a_process_once(void)
{
    marey__tree_after_fork();
    const struct worker w = hire();
    marey__alloc_fail_nth(1);
    marey__tree_cpu_ns();
    marey__alloc_fail_nth(0);
    const bool is_missed = marey__tree_n_processes() == 0;
    marey__tree_cpu_ns();
    const bool is_found = marey__tree_n_processes() == 1;
    dismiss(&w, true);
    return is_missed && is_found;
}

static void without_memory_a_process_comes_in_later(void **state)
{
    (void)state;
    int status;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0)
        _exit(miss_a_process_once() ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void a_forked_child_begins_anew(void **state)
{
    (void)state;
    const struct worker w = hire();
    marey__tree_cpu_ns();
    const pid_t pid = fork();
    if (pid == 0) {
        marey__tree_after_fork();
        const bool is_small = marey__tree_cpu_ns() < 100 * MS;
        _exit(is_small && marey__tree_n_processes() == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    dismiss(&w, true);
}

static void give_next(pid_t pid)
{
    FILE *f = fopen("/proc/sys/kernel/ns_last_pid", "w");
    if (f == NULL || fprintf(f, "%d", (int)pid - 1) < 0 || fclose(f) != 0)
        _exit(77);
}

/* In a namespace of its own, whose numbers it may give as it likes: 0 when a number's second owner counts for itself. */
static int use_a_number_twice(void)
{
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("proc", "/proc", "proc", 0, NULL) != 0)
        return 77;
    marey__tree_after_fork();
    struct worker w = hire();
    const pid_t pid = w.pid;
    const uint64_t begin = marey__tree_cpu_ns();
    tell(&w, 100 * MS);
    hear(&w);
    marey__tree_cpu_ns();
    dismiss(&w, true);
    usleep(20000); /* a process's age is told in ticks */
    give_next(pid);
    w = hire();
    if (w.pid != pid)
        return 77;
    tell(&w, 100 * MS);
    hear(&w);
    const uint64_t used = marey__tree_cpu_ns() - begin;
    const uint64_t n_scans = marey__tree_n_scans();
    give_next(2000); /* and on from there: the numbers in between are looked at one by one */
    const struct worker far = hire();
    marey__tree_cpu_ns();
    const bool is_probed = marey__tree_n_processes() == 2 && marey__tree_n_scans() == n_scans;
    give_next(100); /* they begin anew */
    const struct worker low = hire();
    marey__tree_cpu_ns();
    const bool is_found = marey__tree_n_processes() == 3 && marey__tree_n_scans() == n_scans + 1;
    return used > 197 * MS && used < 210 * MS && is_probed && is_found && far.pid == 2000 &&
                   low.pid == 100
               ? 0
               : 1;
}

static void a_number_that_is_used_twice_is_two_processes(void **state)
{
    (void)state;
    int status;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0)
            _exit(77);
        const pid_t first = fork();
        if (first == 0)
            _exit(use_a_number_twice());
        _exit(waitpid(first, &status, 0) == first && WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip(); /* not allowed to */
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- masks and sums ---- */

static void what_is_not_asked_for_stays(void **state)
{
    (void)state;
    struct marey__usage u = {.thread_cpu_ns = 1, .tree_cpu_ns = 2, .rss_bytes = 3, .n_switches = 4};
    marey__usage_begin(MAREY_USAGE_PROCESS_CPU, &u);
    marey__usage_end(MAREY_USAGE_PROCESS_CPU, &u);
    assert_int_equal(u.thread_cpu_ns, 1);
    assert_int_equal(u.tree_cpu_ns, 2);
    assert_int_equal(u.rss_bytes, 3);
    assert_int_equal(u.n_switches, 4);
    assert_true(u.process_cpu_ns > 0 && u.wall_ns > 0);
}

static void a_counter_that_went_back_adds_nothing(void **state)
{
    (void)state;
    const struct marey__usage begin = {.tree_cpu_ns = 9, .wall_ns = 1, .rss_bytes = 9};
    const struct marey__usage end = {.tree_cpu_ns = 3, .wall_ns = 5, .rss_bytes = 4};
    struct marey__usage sum = {.tree_cpu_ns = 1};
    marey__usage_add(&sum, &begin, &end);
    assert_int_equal(sum.tree_cpu_ns, 1);
    assert_int_equal(sum.wall_ns, 4);
    assert_int_equal(sum.rss_bytes, -5);
    assert_true(marey__usage_processors(5, 0) == 0);
}

static void a_kind_that_is_none_is_refused(void **state)
{
    (void)state;
    assert_int_equal(marey__usage_check(MAREY__USAGE_ALL), MAREY_OK);
    assert_int_equal(marey__usage_check(1u << 20 | MAREY_USAGE_RSS), MAREY_EINVAL);
    assert_non_null(strstr(marey_last_error(), "0x100000 is not a kind of usage"));
}

/* ---- texts of /proc ---- */

static bool last_pid(const char *text, uint64_t *pid)
{
    return marey__parse_last_pid(text, strlen(text), pid);
}

static void odd_texts_are_refused(void **state)
{
    (void)state;
    uint64_t n;
    assert_true(last_pid("0.20 0.18 0.12 1/80 11206\n", &n));
    assert_int_equal(n, 11206);
    static const char *const odd[] = {"",
                                      "\n",
                                      "11206",
                                      "0.20 0.18 0.12 1/80",
                                      "0.20 0.18 0.12 1/80 ",
                                      "0 0 0 0/0 0",
                                      "0 0 0 1/2 99999999999999",
                                      "0 0 0 1/2 12x",
                                      "0 0 0 1/2 -3"};
    for (size_t i = 0; i < MAREY__COUNT_OF(odd); i++)
        assert_false(last_pid(odd[i], &n));
    static const char stat[] = "cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1 2";
    assert_true(marey__parse_machine_ticks(stat, strlen(stat), &n));
    assert_int_equal(n, 10 + 20 + 30 + 60 + 70);
    for (size_t len = 0; len < strlen("cpu  10 20 30 40 50 60 7"); len++)
        assert_false(marey__parse_machine_ticks(stat, len, &n));
    assert_false(marey__parse_machine_ticks("cpu0 1 2 3 4 5 6 7 8", 20, &n));
}

static void a_name_with_parentheses_moves_no_field(void **state)
{
    (void)state;
    static const char text[] =
        "77 (a) R 1 (b) S 12 1 1 0 -1 4194560 1 2 3 4 5 6 700 30 20 0 1 0 4242 9 9\n";
    struct marey__process_stat stat;
    assert_true(marey__parse_process_stat(text, strlen(text), &stat));
    assert_int_equal(stat.parent, 12);
    assert_int_equal(stat.reaped_ticks, 730);
    assert_int_equal(stat.start_time, 4242);
    const size_t whole = (size_t)(strstr(text, "4242") - text);
    for (size_t len = 0; len <= whole; len++)
        assert_false(marey__parse_process_stat(text, len, &stat));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_asked_for_stays),
        cmocka_unit_test(a_counter_that_went_back_adds_nothing),
        cmocka_unit_test(a_kind_that_is_none_is_refused),
        cmocka_unit_test(odd_texts_are_refused),
        cmocka_unit_test(a_name_with_parentheses_moves_no_field),
        cmocka_unit_test(all_of_proc_is_looked_through_once),
    };
    const struct CMUnitTest tests_of_time[] = {
        cmocka_unit_test(a_busy_thread_reads_as_getrusage_has_it),
        cmocka_unit_test(threads_count_for_the_process_and_each_for_itself),
        cmocka_unit_test(sleep_uses_no_processor),
        cmocka_unit_test(faults_and_memory_are_those_of_the_interval),
        cmocka_unit_test(the_machine_is_at_least_as_busy_as_we_are),
        cmocka_unit_test(two_busy_workers_read_as_their_sum),
        cmocka_unit_test(a_worker_that_ends_within_counts_once),
        cmocka_unit_test(a_worker_that_begins_and_ends_within_counts),
        cmocka_unit_test(a_worker_that_nobody_waits_for_keeps_what_was_seen),
        cmocka_unit_test(grandchildren_count_while_they_live_and_after),
        cmocka_unit_test(it_never_goes_back_and_ends_with_the_whole_sum),
        cmocka_unit_test(without_memory_a_process_comes_in_later),
        cmocka_unit_test(a_forked_child_begins_anew),
        cmocka_unit_test(a_number_that_is_used_twice_is_two_processes),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    /* Under valgrind a program's processor time is valgrind's for the most part. */
    if (getenv("MAREY_VALGRIND") != NULL)
        return n_failed;
    return n_failed + cmocka_run_group_tests(tests_of_time, NULL, NULL);
}
