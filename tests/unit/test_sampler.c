/* core/sampler with the Pythons of this machine: rounds match the programs; no thread stays
 * stopped. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "pythons.h"
#include "sampler/loop/internal.h"
#include "scratch.h"
#include <marey/report.h>

static struct python pythons[PYTHONS_MAX];
static size_t n_pythons;

/* Of every kind of frames one: where it is about processes, the others would only take their time. */
static bool is_of_a_kind(size_t i)
{
    return i + 1 == n_pythons || pythons[i].minor == 10 || pythons[i].minor == 11;
}

/* ---- results of rounds ---- */

enum { TEXT_MAX = 2048 };
struct tally {
    marey_sampler *sampler;
    uint64_t n_rounds, n_samples, weight_ns;
    uint64_t enough;   /* stops the sampler after so many rounds */
    const char *until; /* or when a stack begins so for the 20th time */
    uint64_t n_until;
    uint32_t only;      /* samples with these flags */
    uint32_t all_flags; /* that all of them have */
    struct {
        char text[TEXT_MAX]; /* innermost first: "f:12 main:30" */
        uint64_t n;
    } stacks[64];
    size_t n_stacks;
    int64_t pids[64];
    size_t n_pids;
    char threads[64][64];
    size_t n_threads;
    uint64_t n_gil[64], n_of_thread[64], n_wants[64];
    uint64_t interpreters;
};

static void text_of(const marey_samples *samples, uint32_t stack, char *to, size_t cap)
{
    size_t len = 0;
    to[0] = '\0';
    while (stack != 0 && len + 1 < cap) {
        const struct marey_samples_stack node = marey_samples_get_stack(samples, stack);
        const struct marey_samples_location at = marey_samples_get_location(samples, node.location);
        const struct marey_samples_function *function =
            marey_samples_get_function(samples, at.function);
        const int n =
            snprintf(to + len, cap - len, "%s%s:%u", len > 0 ? " " : "", function->name, at.line);
        len += n > 0 ? (size_t)n : 0;
        stack = node.parent;
    }
}

static size_t thread_in(struct tally *tally, const char *name)
{
    for (size_t i = 0; i < tally->n_threads; i++)
        if (strcmp(tally->threads[i], name) == 0)
            return i;
    if (tally->n_threads == MAREY__COUNT_OF(tally->threads))
        return 0;
    snprintf(tally->threads[tally->n_threads], sizeof tally->threads[0], "%s", name);
    return tally->n_threads++;
}

static void count_stack(struct tally *tally, const marey_samples *samples, uint32_t stack)
{
    char text[TEXT_MAX];
    text_of(samples, stack, text, sizeof text);
    size_t i = 0;
    while (i < tally->n_stacks && strcmp(tally->stacks[i].text, text) != 0)
        i++;
    if (i == MAREY__COUNT_OF(tally->stacks))
        return;
    if (i == tally->n_stacks) {
        snprintf(tally->stacks[i].text, TEXT_MAX, "%s", text);
        tally->n_stacks++;
    }
    tally->stacks[i].n++;
    if (tally->until != NULL && strncmp(text, tally->until, strlen(tally->until)) == 0 &&
        ++tally->n_until == 20)
        marey_sampler_stop(tally->sampler);
}

static void count_process(struct tally *tally, int64_t pid)
{
    for (size_t i = 0; i < tally->n_pids; i++)
        if (tally->pids[i] == pid)
            return;
    if (tally->n_pids < MAREY__COUNT_OF(tally->pids))
        tally->pids[tally->n_pids++] = pid;
}

static void take_round(void *ctx, const marey_samples *samples,
                       const struct marey_samples_round *round)
{
    struct tally *tally = ctx;
    count_process(tally, marey_samples_get_process(samples, round->process)->pid);
    for (size_t i = 0; i < round->n_seen; i++) {
        const struct marey_samples_seen *seen = &round->seen[i];
        const struct marey_samples_thread *thread = marey_samples_get_thread(samples, seen->thread);
        if ((seen->flags & tally->only) != tally->only)
            continue;
        const size_t t = thread_in(tally, thread->name);
        tally->n_of_thread[t]++;
        tally->n_gil[t] += (seen->flags & MAREY_SAMPLE_GIL) != 0;
        tally->n_wants[t] += (seen->flags & MAREY_SAMPLE_WANTS_GIL) != 0;
        tally->interpreters |= (uint64_t)1 << (thread->interpreter & 63);
        tally->all_flags = tally->n_samples == 0 ? seen->flags : tally->all_flags & seen->flags;
        tally->n_samples++;
        count_stack(tally, samples, seen->stack);
    }
    tally->weight_ns += round->weight_ns;
    if (++tally->n_rounds == tally->enough)
        marey_sampler_stop(tally->sampler);
}

static uint64_t n_with(const struct tally *tally, const char *part)
{
    uint64_t n = 0;
    for (size_t i = 0; i < tally->n_stacks; i++)
        if (strstr(tally->stacks[i].text, part) != NULL)
            n += tally->stacks[i].n;
    return n;
}

static uint64_t n_beginning(const struct tally *tally, const char *part)
{
    uint64_t n = 0;
    for (size_t i = 0; i < tally->n_stacks; i++)
        if (strncmp(tally->stacks[i].text, part, strlen(part)) == 0)
            n += tally->stacks[i].n;
    return n;
}

/* Sample `pid` for `enough` rounds. */
static struct marey_sampler_counts sample(struct marey_sampler_options options, pid_t pid,
                                          struct tally *tally)
{
    struct marey_sampler_counts counts;
    options.size = sizeof options;
    options.pids = &pid;
    options.n_pids = 1;
    if (options.seed == 0)
        options.seed = 7;
    if (marey_sampler_create(&options, &tally->sampler) != MAREY_OK)
        fail_msg("%s", marey_last_error());
    marey_sampler_on_round(tally->sampler, take_round, tally);
    if (marey_sampler_run(tally->sampler) != MAREY_OK)
        fail_msg("%s", marey_last_error());
    marey_sampler_counts_get(tally->sampler, &counts, sizeof counts);
    marey_sampler_destroy(tally->sampler);
    return counts;
}

/* ---- stacks ---- */

static const char flat[] = "def leaf_a(n):\n"
                           "    return n + 1\n" /* 2 */
                           "def leaf_b(n):\n"
                           "    return n - 1\n" /* 4 */
                           "def a(n):\n"
                           "    return leaf_a(n)\n" /* 6 */
                           "def b(n):\n"
                           "    return leaf_b(n)\n" /* 8 */
                           "def main():\n"
                           "    print('ready', flush=True)\n"
                           "    n = 0\n"
                           "    while True:\n"  /* 12 */
                           "        n = a(n)\n" /* 13 */
                           "        n = b(n)\n" /* 14 */
                           "main()\n";          /* 15 */

/* Every stack that `flat` can have ends like this. */
static bool is_possible(const char *text)
{
    static const char *const starts[] = {"leaf_a:1 a:6 main:13",
                                         "leaf_a:2 a:6 main:13",
                                         "leaf_b:3 b:8 main:14",
                                         "leaf_b:4 b:8 main:14",
                                         "a:5 main:13",
                                         "a:6 main:13",
                                         "b:7 main:14",
                                         "b:8 main:14",
                                         "main:10",
                                         "main:11",
                                         "main:12",
                                         "main:13",
                                         "main:14"};
    for (size_t i = 0; i < MAREY__COUNT_OF(starts); i++) {
        char whole[128];
        snprintf(whole, sizeof whole, "%s <module>:15", starts[i]);
        if (strcmp(text, whole) == 0)
            return true;
    }
    return false;
}

static void exact_samples_are_never_impossible(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_pythons; i++) {
        char line[64];
        struct target target = target_start(pythons[i].path, flat, line, sizeof line);
        struct tally tally = {.enough = 400, .only = MAREY_SAMPLE_EXACT};
        const struct marey_sampler_counts counts = sample(
            (struct marey_sampler_options){
                .rate_hz = 2000, .strategy = MAREY_SAMPLER_EXACT, .max_slowdown = 1},
            target.pid, &tally);
        for (size_t k = 0; k < tally.n_stacks; k++)
            if (!is_possible(tally.stacks[k].text))
                fail_msg("%s: %s", pythons[i].path, tally.stacks[k].text);
        /* A thread that gets no processor for long cannot be stopped in time: such a sample is not exact, and says so. */
        assert_int_equal(counts.all.exact, tally.n_samples);
        assert_true(counts.all.exact > 0);
        assert_true(tally.n_stacks > 0);
        target_stop(&target);
    }
}

static void snapshots_stop_nothing_and_audits_do(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_pythons; i++) {
        if (!is_of_a_kind(i))
            continue;
        char line[64];
        struct target target = target_start(pythons[i].path, flat, line, sizeof line);
        struct tally without = {.enough = 500}, with = {.enough = 500};
        struct marey_sampler_counts counts =
            sample((struct marey_sampler_options){.rate_hz = 5000, .audit_share = -1}, target.pid,
                   &without);
        assert_int_equal(counts.all.stops, 0);
        assert_int_equal(counts.all.exact, 0);
        assert_true(n_with(&without, "main:1") * 10 > without.n_samples * 9);
        counts = sample(
            (struct marey_sampler_options){.rate_hz = 5000, .audit_share = 0.2, .max_slowdown = 1},
            target.pid, &with);
        assert_true(counts.all.audit > 0 && counts.all.audit < counts.all.samples);
        assert_true(counts.all.exact <= counts.all.audit); /* some may not stop in time */
        target_stop(&target);
    }
}

static const char waiters[] =
    "import threading, time\n"
    "def spin():\n"
    "    while True: pass\n" /* 3 */
    "def wait(lock):\n"
    "    lock.acquire()\n" /* 5 */
    "def generator():\n"
    "    yield from inner()\n" /* 7 */
    "def inner():\n"
    "    time.sleep(600)\n" /* 9 */
    "    yield 1\n"
    "def consume():\n"
    "    for x in generator(): pass\n" /* 12 */
    "lock = threading.Lock()\n"
    "lock.acquire()\n"
    "for target, args, name in ((spin, (), 'spinner)'), (wait, (lock,), 'w) R x'),\n"
    "                           (consume, (), 'consumer')):\n"
    "    threading.Thread(target=target, args=args, name=name).start()\n"
    "print('ready', flush=True)\n"
    "def main():\n"
    "    while True: time.sleep(600)\n" /* 20 */
    "main()\n";

static void threads_have_names_stacks_and_reasons(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_pythons; i++) {
        char line[64];
        struct target target = target_start(pythons[i].path, waiters, line, sizeof line);
        struct tally tally = {.enough = 200};
        for (int k = 0; k < 2; k++) {
            sample((struct marey_sampler_options){.rate_hz = 500,
                                                  .strategy = k == 0 ? MAREY_SAMPLER_EXACT
                                                                     : MAREY_SAMPLER_SNAPSHOT,
                                                  .max_slowdown = 1},
                   target.pid, &tally);
            tally.enough += 200;
        }
        /* It says that it is ready before all of them wait where they will. */
        assert_true(n_beginning(&tally, "spin:3 ") > 300);
        assert_true(n_beginning(&tally, "wait:5 ") > 300);
        assert_true(n_beginning(&tally, pythons[i].minor >= 11
                                            ? "inner:9 generator:7 consume:12 "
                                            : "inner:9 generator:7 consume:12 ") > 300);
        assert_true(n_with(&tally, "main:20 <module>:21") > 300);
        const size_t spinner = thread_in(&tally, "spinner)"), waiter = thread_in(&tally, "w) R x");
        assert_int_equal(tally.n_threads, 4);
        assert_true(tally.n_gil[spinner] * 10 > tally.n_of_thread[spinner] * 8);
        assert_true(tally.n_gil[waiter] * 10 < tally.n_of_thread[waiter]);
        target_stop(&target);
    }
}

static void fighters_want_the_lock_that_one_of_them_has(void **state)
{
    (void)state;
    const char *const script = "import threading\n"
                               "def spin():\n"
                               "    while True: pass\n"
                               "for i in range(2):\n"
                               "    threading.Thread(target=spin, name=f'f{i}').start()\n"
                               "print('ready', flush=True)\n"
                               "spin()\n";
    for (size_t i = 0; i < n_pythons; i++) {
        if (!is_of_a_kind(i))
            continue;
        char line[64];
        struct target target = target_start(pythons[i].path, script, line, sizeof line);
        struct tally tally = {.enough = 400};
        const struct marey_sampler_counts counts =
            sample((struct marey_sampler_options){.rate_hz = 1000}, target.pid, &tally);
        uint64_t n_gil = 0, n_wants = 0;
        for (size_t k = 0; k < tally.n_threads; k++) {
            n_gil += tally.n_gil[k];
            n_wants += tally.n_wants[k];
        }
        /* One of three has it; the others wait for it. */
        assert_true(n_gil * 6 > tally.n_samples && n_gil * 2 < tally.n_samples);
        assert_true(n_wants > 20);
        assert_true(counts.all.gil_switches > 0);
        target_stop(&target);
    }
}

/* The call that the first thread of `pid` sleeps in; -1: it runs. */
static long call_of(pid_t pid)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/%d/syscall", (int)pid);
    text[marey__read_text(path, text, sizeof text)] = '\0';
    return text[0] >= '0' && text[0] <= '9' ? strtol(text, NULL, 10) : -1;
}

static bool is_sleep(long call)
{
#ifdef SYS_select
    if (call == SYS_select)
        return true;
#endif
    return call == SYS_clock_nanosleep || call == SYS_pselect6;
}

static void a_sleeper_is_read_with_native_frames_and_not_stopped(void **state)
{
    (void)state;
    const char *const script = "import time\n"
                               "def nap():\n"
                               "    time.sleep(600)\n"
                               "print('ready', flush=True)\n"
                               "nap()\n";
    for (size_t i = 0; i < n_pythons && marey__unwind_has_rules(); i++) {
        char line[64];
        struct target target = target_start(pythons[i].path, script, line, sizeof line);
        while (!is_sleep(call_of(target.pid)))
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        struct tally tally = {.enough = 5};
        const struct marey_sampler_counts counts =
            sample((struct marey_sampler_options){.rate_hz = 500, .native = 1}, target.pid, &tally);
        assert_int_equal(counts.all.stops, 0);
        assert_int_equal(counts.all.exact, tally.n_samples);
        assert_true((tally.all_flags & MAREY_SAMPLE_NATIVE) != 0);
        assert_int_equal(tally.n_stacks, 1);
        assert_int_equal(n_with(&tally, ":0 nap:3 <module>:5"), tally.n_samples);
        target_stop(&target);
    }
}

/* ---- processes ---- */

static void children_are_followed_from_birth(void **state)
{
    (void)state;
    const char *const script = "import os, time, subprocess, sys\n"
                               "print('ready', flush=True)\n"
                               "def child_work(seconds):\n"
                               "    end = time.perf_counter() + seconds\n"
                               "    while time.perf_counter() < end: pass\n" /* 5 */
                               "time.sleep(0.3)\n"
                               "subprocess.run(['sleep', '0.4'])\n"
                               "for i in range(3):\n"
                               "    if os.fork() == 0:\n"
                               "        child_work(0.3)\n" /* 10 */
                               "        os._exit(0)\n"
                               "    os.wait()\n"
                               "subprocess.run([sys.executable, '-c', '''\n"
                               "import time\n"
                               "def grandchild():\n"
                               "    time.sleep(0.3)\n" /* 4 of its own */
                               "grandchild()'''])\n";
    for (size_t i = 0; i < n_pythons; i++) {
        if (!is_of_a_kind(i))
            continue;
        char line[64];
        struct target target = target_start(pythons[i].path, script, line, sizeof line);
        struct tally tally = {0};
        const struct marey_sampler_counts counts =
            sample((struct marey_sampler_options){.rate_hz = 500}, target.pid, &tally);
        assert_true(n_beginning(&tally, "child_work:5 <module>:10") > 20);
        assert_true(n_beginning(&tally, "grandchild:4 ") > 20);
        assert_true(tally.n_pids >= 5);
        assert_true(counts.children >= 5);
        assert_int_equal(counts.all.skipped, 1);
        assert_int_equal(counts.alive, 0);
        target_stop(&target);
    }
}

static void a_process_that_becomes_another_program_is_read_anew(void **state)
{
    (void)state;
    const char *const script = "import os, sys, time\n"
                               "def before():\n"
                               "    time.sleep(0.3)\n" /* 3 */
                               "print('ready', flush=True)\n"
                               "before()\n"
                               "os.execv(sys.executable, [sys.executable, '-c', '''\n"
                               "import time\n"
                               "def after():\n"
                               "    time.sleep(0.4)\n" /* 4 of its own */
                               "after()'''])\n";
    for (size_t i = 0; i < n_pythons; i++) {
        if (!is_of_a_kind(i))
            continue;
        char line[64];
        struct target target = target_start(pythons[i].path, script, line, sizeof line);
        struct tally tally = {.until = "after:4 "};
        sample((struct marey_sampler_options){.rate_hz = 500, .duration_s = 60}, target.pid, &tally);
        assert_true(n_beginning(&tally, "before:3 ") > 0);
        assert_true(n_beginning(&tally, "after:4 ") >= 20);
        target_stop(&target);
    }
}

static void a_launcher_is_looked_through(void **state)
{
    (void)state;
    if (n_pythons == 0)
        return;
    char command[512], line[64];
    snprintf(command, sizeof command,
             "import subprocess\n"
             "print('ready', flush=True)\n"
             "subprocess.run(['sh', '-c', '%s -c \"import time; time.sleep(0.6)\"; true'])\n",
             pythons[0].path);
    struct target target = target_start(pythons[0].path, command, line, sizeof line);
    struct tally tally = {0};
    sample((struct marey_sampler_options){.rate_hz = 200}, target.pid, &tally);
    assert_int_equal(tally.n_pids, 2);
    target_stop(&target);
}

/* ---- nothing stays stopped ---- */

static char state_of(pid_t tid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)tid);
    if (marey__read_text(path, text, sizeof text) == 0)
        return '?';
    const char *end = strrchr(text, ')');
    return end != NULL ? end[2] : '?';
}

static void *stop_soon(void *ctx)
{
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    marey_sampler_stop(ctx);
    struct marey_sampler_counts counts;
    marey_sampler_counts_get(ctx, &counts, sizeof counts);
    return NULL;
}

static void another_thread_may_add_and_stop(void **state)
{
    (void)state;
    if (n_pythons == 0)
        return;
    char line[64];
    struct target target = target_start(pythons[0].path, flat, line, sizeof line);
    marey_sampler *sampler;
    struct tally tally = {0};
    const struct marey_sampler_options options = {
        .size = sizeof options, .rate_hz = 1000, .strategy = MAREY_SAMPLER_EXACT, .max_slowdown = 1};
    assert_int_equal(marey_sampler_create(&options, &sampler), MAREY_OK);
    assert_int_equal(marey_sampler_add(sampler, target.pid), MAREY_OK);
    marey_sampler_on_round(sampler, take_round, &tally);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, sampler), 0);
    assert_int_equal(marey_sampler_run(sampler), MAREY_OK);
    pthread_join(thread, NULL);
    assert_true(tally.n_rounds > 10);
    const char now = state_of(target.pid);
    assert_true(now == 'R' || now == 'S');
    marey_sampler_destroy(sampler);
    target_stop(&target);
}

/* Signals that come while a thread is stopped reach it; a process stopped by SIGSTOP is read, and stays stopped. */
static void signals_reach_a_thread_that_is_sampled(void **state)
{
    (void)state;
    if (n_pythons == 0)
        return;
    const char *const script = "import signal, sys\n"
                               "n = 0\n"
                               "def count(*_):\n"
                               "    global n\n"
                               "    n += 1\n"
                               "signal.signal(signal.SIGUSR1, count)\n"
                               "print('ready', flush=True)\n"
                               "while n < 200: pass\n"
                               "print('all', flush=True)\n"
                               "while True: pass\n";
    char line[64];
    struct target target = target_start(pythons[0].path, script, line, sizeof line);
    const pid_t sender = fork();
    if (sender == 0) {
        for (int i = 0; i < 100000; i++) {
            kill(target.pid, SIGUSR1);
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
        _exit(0);
    }
    struct tally tally = {.enough = 1000};
    sample((struct marey_sampler_options){.rate_hz = 2000,
                                          .strategy = MAREY_SAMPLER_EXACT,
                                          .max_slowdown = 1},
           target.pid, &tally);
    assert_int_equal(read(target.out, line, 3), 3); /* it has counted 200 of them */
    assert_memory_equal(line, "all", 3);
    kill(sender, SIGKILL);
    waitpid(sender, NULL, 0);
    kill(target.pid, SIGSTOP);
    waitpid(target.pid, NULL, WUNTRACED);
    struct tally stopped = {.enough = 50};
    const struct marey_sampler_counts counts =
        sample((struct marey_sampler_options){.rate_hz = 500, .strategy = MAREY_SAMPLER_EXACT},
               target.pid, &stopped);
    assert_int_equal(counts.all.stops, 0);
    assert_int_equal(counts.all.exact, counts.all.samples);
    assert_int_equal(state_of(target.pid), 'T');
    kill(target.pid, SIGCONT);
    target_stop(&target);
}

static void a_sampler_that_is_killed_leaves_nothing_stopped(void **state)
{
    (void)state;
    if (n_pythons == 0)
        return;
    char line[64];
    struct target target = target_start(pythons[0].path, flat, line, sizeof line);
    for (int i = 0; i < 40; i++) {
        const pid_t child = fork();
        if (child == 0) {
            struct tally tally = {0};
            sample((struct marey_sampler_options){.rate_hz = 100000,
                                                  .strategy = MAREY_SAMPLER_EXACT,
                                                  .max_slowdown = 1},
                   target.pid, &tally);
            _exit(0);
        }
        nanosleep(&(struct timespec){.tv_nsec = 3000000 + 100000L * i}, NULL);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        const char now = state_of(target.pid);
        assert_true(now == 'R' || now == 'S');
    }
    target_stop(&target);
}

/* ---- the recording ---- */

static void the_recording_is_made_and_read(void **state)
{
    const struct scratch *scratch = *state;
    if (n_pythons == 0)
        return;
    char line[64];
    struct target target = target_start(pythons[0].path, flat, line, sizeof line);
    struct tally tally = {.enough = 50};
    const struct marey_sampler_counts counts = sample(
        (struct marey_sampler_options){.rate_hz = 1000, .path = scratch->path}, target.pid, &tally);
    assert_true(counts.recording_bytes > 0);
    marey_recording *recording;
    assert_int_equal(marey_recording_open(scratch->path, &recording), MAREY_OK);
    assert_int_equal(marey_report_is_there("samples", &recording, 1), 1);
    marey_recording_close(recording);
    target_stop(&target);
}

/* ---- budget, rates, failures ---- */

static void the_budget_is_kept(void **state)
{
    (void)state;
    if (n_pythons == 0)
        return;
    char line[64];
    struct target target = target_start(pythons[0].path, flat, line, sizeof line);
    struct tally tally = {0};
    const struct marey_sampler_counts counts = sample(
        (struct marey_sampler_options){
            .rate_hz = 3000, .duration_s = 1, .strategy = MAREY_SAMPLER_EXACT, .max_slowdown = 0.005},
        target.pid, &tally);
    /* What one stop may take on a busy machine comes on top: it is known only afterwards. */
    assert_true(counts.all.stop_ns < counts.target_ns / 200 + 1000000 + counts.all.stop_max_ns);
    assert_true(counts.all.slowed > 0);
    /* Rounds that were left out are part of the time for which the others stand. */
    assert_true(tally.weight_ns >= tally.n_rounds * 333000);
    target_stop(&target);
}

static void the_same_seed_draws_the_same(void **state)
{
    (void)state;
    struct marey__sampler_context a, b;
    assert_true(marey__sampler_context_init(&a, NULL, NULL, false, 5) &&
                marey__sampler_context_init(&b, NULL, NULL, false, 5));
    double sum = 0;
    for (int i = 0; i < 10000; i++) {
        const double drawn = marey__sampler_context_random(&a);
        assert_true(drawn > 0 && drawn <= 1 && drawn == marey__sampler_context_random(&b));
        sum += drawn;
    }
    assert_true(sum > 4800 && sum < 5200);
    marey__sampler_context_fini(&a);
    marey__sampler_context_fini(&b);
}

static void what_cannot_be_sampled_is_refused_with_a_sentence(void **state)
{
    (void)state;
    marey_sampler *sampler = NULL;
    const pid_t self = getpid();
    struct marey_sampler_options options = {.size = sizeof options, .pids = &self, .n_pids = 1};
    options.no_children = 1;
    assert_int_equal(marey_sampler_create(&options, &sampler), MAREY_EUNAVAILABLE);
    assert_non_null(strstr(marey_last_error(), "not a Python"));
    const pid_t none = 0x3fffffff;
    options.pids = &none;
    assert_int_equal(marey_sampler_create(&options, &sampler), MAREY_EUNAVAILABLE);
    assert_non_null(strstr(marey_last_error(), "there is no process"));
    options.n_pids = 0;
    options.rate_hz = -1;
    assert_int_equal(marey_sampler_create(&options, &sampler), MAREY_EINVAL);
    options.rate_hz = 0;
    options.max_slowdown = -0.5;
    assert_int_equal(marey_sampler_create(&options, &sampler), MAREY_EINVAL);
    options.max_slowdown = 0;
    options.strategy = 9;
    assert_int_equal(marey_sampler_create(&options, &sampler), MAREY_EINVAL);
    assert_int_equal(marey_sampler_create(NULL, &sampler), MAREY_EINVAL);
    assert_null(sampler);
}

static void running_out_of_memory_is_a_status(void **state)
{
    (void)state;
    if (n_pythons == 0)
        return;
    char line[64];
    struct target target = target_start(pythons[0].path, waiters, line, sizeof line);
    marey_status status = MAREY_ENOMEM;
    for (uint64_t n = 1; status != MAREY_OK || n < 300; n++) {
        const struct marey_sampler_options options = {.size = sizeof options,
                                                      .pids = &target.pid,
                                                      .n_pids = 1,
                                                      .rate_hz = 10000,
                                                      .duration_s = 0.002};
        marey_sampler *sampler = NULL;
        marey__alloc_fail_nth(n);
        status = marey_sampler_create(&options, &sampler);
        if (status == MAREY_OK) {
            if (marey_sampler_run(sampler) != MAREY_OK)
                assert_int_not_equal(marey_last_error()[0], 0);
            marey_sampler_destroy(sampler);
        }
        marey__alloc_fail_nth(0);
        if (n > 5000)
            fail_msg("it never succeeds: %s", marey_last_error());
    }
    target_stop(&target);
}

/* ---- once ---- */

static void stacks_of_many_processes_come_at_once(void **state)
{
    (void)state;
    struct target targets[PYTHONS_MAX];
    pid_t pids[PYTHONS_MAX + 1];
    for (size_t i = 0; i < n_pythons; i++) {
        char line[64];
        targets[i] = target_start(pythons[i].path, waiters, line, sizeof line);
        pids[i] = targets[i].pid;
    }
    pids[n_pythons] = 0x3fffffff;
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    struct marey_sampler_stacks *stacks;
    assert_int_equal(marey_sampler_stacks_read(pids, n_pythons + 1, NULL, &stacks), MAREY_OK);
    assert_int_equal(stacks->n_rounds, n_pythons);
    assert_int_equal(stacks->n_failures, 1);
    assert_int_equal(stacks->failures[0].pid, 0x3fffffff);
    assert_non_null(strstr(stacks->failures[0].why, "there is no process"));
    for (size_t i = 0; i < stacks->n_rounds; i++) {
        struct tally tally = {0};
        take_round(&tally, stacks->samples, &stacks->rounds[i]);
        assert_int_equal(stacks->rounds[i].n_seen, 4);
        assert_int_equal(n_beginning(&tally, "wait:5 "), 1);
        assert_int_equal(n_beginning(&tally, "spin:3 "), 1);
        assert_true((tally.all_flags & MAREY_SAMPLE_EXACT) != 0);
    }
    marey_sampler_stacks_free(stacks);
    for (size_t i = 0; i < n_pythons; i++)
        target_stop(&targets[i]);
}

int main(void)
{
    n_pythons = pythons_find(pythons, PYTHONS_MAX);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_samples_are_never_impossible),
        cmocka_unit_test(snapshots_stop_nothing_and_audits_do),
        cmocka_unit_test(threads_have_names_stacks_and_reasons),
        cmocka_unit_test(fighters_want_the_lock_that_one_of_them_has),
        cmocka_unit_test(a_sleeper_is_read_with_native_frames_and_not_stopped),
        cmocka_unit_test(children_are_followed_from_birth),
        cmocka_unit_test(a_process_that_becomes_another_program_is_read_anew),
        cmocka_unit_test(a_launcher_is_looked_through),
        cmocka_unit_test(another_thread_may_add_and_stop),
        cmocka_unit_test(signals_reach_a_thread_that_is_sampled),
        cmocka_unit_test(a_sampler_that_is_killed_leaves_nothing_stopped),
        cmocka_unit_test_setup_teardown(the_recording_is_made_and_read, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test(the_budget_is_kept),
        cmocka_unit_test(the_same_seed_draws_the_same),
        cmocka_unit_test(what_cannot_be_sampled_is_refused_with_a_sentence),
        cmocka_unit_test(running_out_of_memory_is_a_status),
        cmocka_unit_test(stacks_of_many_processes_come_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
