/*
 * Cost of reading usage besides time at both ends of an interval: each kind separately, and the
 * process tree with different numbers of descendants. A read of the tree searches for new
 * processes; in the last row, a process starts and ends before each read.
 *
 * It uses internal functions, because no function of the API reads a single kind.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "record/internal.h"

enum { ROUNDS = 31, MAX_CHILDREN = 64 };

static double pair_ns(uint32_t mask, unsigned n)
{
    struct marey__usage begin, end;
    double rounds[ROUNDS];
    for (unsigned round = 0; round < ROUNDS; round++) {
        const uint64_t before = bench_thread_cpu_ns();
        for (unsigned i = 0; i < n; i++) {
            marey__usage_begin(mask, &begin);
            marey__usage_end(mask, &end);
        }
        rounds[round] = (double)(bench_thread_cpu_ns() - before) / n;
    }
    return bench_median(rounds, ROUNDS).mid;
}

/* A read after a process started and ended; the fork is not counted. */
static double tree_after_birth_ns(unsigned n)
{
    double reads[4096];
    n = n < MAREY__COUNT_OF(reads) ? n : (unsigned)MAREY__COUNT_OF(reads);
    for (unsigned i = 0; i < n; i++) {
        const pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        waitpid(pid, NULL, 0);
        const uint64_t before = bench_thread_cpu_ns();
        marey__tree_cpu_ns();
        reads[i] = (double)(bench_thread_cpu_ns() - before);
    }
    return bench_median(reads, n).mid;
}

static void hire(pid_t *pid)
{
    *pid = fork();
    if (*pid < 0)
        bench_die("fork failed", MAREY_OK);
    if (*pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
}

static void bench_tree(const struct bench_args *args, unsigned n)
{
    pid_t children[MAX_CHILDREN];
    unsigned n_children = 0;
    static const unsigned sizes[] = {0, 2, 8, MAX_CHILDREN};
    for (size_t i = 0; i < MAREY__COUNT_OF(sizes); i++) {
        while (n_children < sizes[i])
            hire(&children[n_children++]);
        marey__tree_cpu_ns();
        char what[96];
        snprintf(what, sizeof what, "usage: the process with %u descendants", n_children);
        bench_result(args, what, "", BENCH_NO_BAR, "%.2f us a pair; %.1f us a read after a birth",
                     pair_ns(MAREY_USAGE_TREE_CPU, n) / 1e3, tree_after_birth_ns(200) / 1e3);
    }
    for (unsigned i = 0; i < n_children; i++) {
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
}

int main(int argc, char **argv)
{
    const struct bench_args args = bench_parse(argc, argv);
    const unsigned n = args.quick ? 200 : 2000;
    static const struct {
        uint32_t mask;
        const char *what;
    } kinds[] = {
        {MAREY_USAGE_THREAD_CPU, "usage: the thread's processor time"},
        {MAREY_USAGE_PROCESS_CPU, "usage: the process's processor time"},
        {MAREY_USAGE_FAULTS, "usage: page faults and context switches"},
        {MAREY_USAGE_RSS, "usage: resident memory"},
        {MAREY_USAGE_MACHINE_CPU, "usage: the machine's processor time"},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(kinds); i++)
        bench_result(&args, kinds[i].what, "", BENCH_NO_BAR, "%.2f us a pair",
                     pair_ns(kinds[i].mask, n) / 1e3);
    bench_tree(&args, n);
    return 0;
}
