/*
 * Processes that only wait, such as launchers and workers without work: their main threads sleep all the time and would be
 * the first row of every table. They are left out where another process works, and a note gives their time. A program that
 * waits for its own workers stays: that wait is a result, as with a data loader that is too slow.
 */
#include <string.h>

#include "analyze/samples_whole.h"

/* A process is idle when it is on a CPU core for less than one part in so many. */
enum { IDLE_PART = 20 };

struct process {
    uint64_t known_ns; /* of main threads */
    uint64_t cpu_ns;   /* of all threads */
    uint64_t ns;       /* of samples that count */
    bool is_idle;
};

/* A rank and a process that counts steps may wait for the others or for a GPU: that wait is a result. */
static bool is_idle(const struct kymo_samples_report *report, const struct process *p, uint32_t i)
{
    const struct kymo_samples_process *const process =
        kymo_samples_get_process(report->set.samples, i);
    const bool is_rank = process->rank >= 0 && process->worker < 0;
    return p->known_ns != 0 && p->cpu_ns < p->known_ns / IDLE_PART && !is_rank &&
           !kymo__samples_has_steps(report->chosen, i);
}

/* Whether `child` was forked from `parent` or started by its multiprocessing, rather than being another program. */
static bool is_worker_of(const struct kymo_samples_process *child,
                         const struct kymo_samples_process *parent)
{
    return child->ppid == parent->pid && (strcmp(child->command, parent->command) == 0 ||
                                          strstr(child->command, "multiprocessing") != NULL);
}

/* Processes that wait for workers of theirs which work are not idle. */
static void keep_parents(const struct kymo_samples_report *report, struct process *processes,
                         uint32_t n)
{
    for (uint32_t i = 1; i <= n; i++) {
        const struct kymo_samples_process *const parent =
            kymo_samples_get_process(report->set.samples, i);
        for (uint32_t k = 1; k <= n && processes[i].is_idle; k++)
            if (!processes[k].is_idle && processes[k].cpu_ns != 0 &&
                is_worker_of(kymo_samples_get_process(report->set.samples, k), parent))
                processes[i].is_idle = false;
    }
}

static void sum_processes(const struct kymo_samples_report *report, struct process *processes)
{
    for (size_t i = 0; i < report->sums.n_cells; i++) {
        const struct kymo__samples_cell *const cell = &report->sums.cells[i];
        const struct kymo_samples_thread *const thread =
            kymo_samples_get_thread(report->set.samples, cell->thread);
        struct process *const p = &processes[thread->process];
        p->known_ns += thread->is_main ? cell->sum.known_ns : 0;
        p->cpu_ns += cell->sum.cpu_ns;
        p->ns += cell->is_chosen ? cell->sum.ns : 0;
    }
}

static void drop(struct kymo__samples_sums *sums, struct kymo__samples_cell *cell)
{
    struct kymo__samples_sum *const whole = &sums->whole;
    cell->is_chosen = false;
    whole->n -= cell->sum.n;
    whole->ns -= cell->sum.ns;
    whole->known_ns -= cell->sum.known_ns;
    whole->cpu_ns -= cell->sum.cpu_ns;
    whole->gil_ns -= cell->sum.gil_ns;
    sums->squares -= cell->squares;
    sums->idle_ns += cell->sum.ns;
}

bool kymo__samples_drop_idle(struct kymo_samples_report *report)
{
    struct kymo__samples_sums *const sums = &report->sums;
    const uint32_t n = kymo_samples_n_processes(report->set.samples);
    bool is_work_there = false;
    if (!kymo__samples_drops_idle(report->chosen, &report->options.filter))
        return true;
    struct process *const processes = kymo__calloc((size_t)n + 1, sizeof *processes);
    if (processes == NULL)
        return false;
    sum_processes(report, processes);
    for (uint32_t i = 1; i <= n; i++) {
        processes[i].is_idle = is_idle(report, &processes[i], i);
        is_work_there |= !processes[i].is_idle && processes[i].ns != 0;
    }
    keep_parents(report, processes, n);
    for (uint32_t i = 1; is_work_there && i <= n; i++) {
        if (!processes[i].is_idle || processes[i].ns == 0)
            continue;
        sums->n_idle++;
        if (sums->longest_idle == 0 || processes[i].ns > processes[sums->longest_idle].ns)
            sums->longest_idle = i;
    }
    for (size_t i = 0; is_work_there && i < sums->n_cells; i++) {
        struct kymo__samples_cell *const cell = &sums->cells[i];
        const uint32_t of = kymo_samples_get_thread(report->set.samples, cell->thread)->process;
        if (cell->is_chosen && processes[of].is_idle)
            drop(sums, cell);
    }
    kymo__free(processes);
    return true;
}
