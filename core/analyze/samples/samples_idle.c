/*
 * Processes that only wait, such as launchers and workers without work: their main threads sleep all the time and would be
 * the first row of every table. They are left out where another process works, and a note gives their time. A program that
 * waits for its own workers stays: that wait is a result, as with a data loader that is too slow.
 *
 * A launcher of ranks is known by them: torchrun is busy for seconds with imports and at its end, which in a short job is more
 * than what an idle process may take.
 */
#include <string.h>

#include "analyze/samples/internal.h"

/* A process is idle when it is on a CPU core for less than one part in so many. */
enum { IDLE_PART = 20 };

void marey__samples_note_work(struct marey__samples_set *set, const struct marey_samples_round *round,
                              const struct marey_samples_seen *seen)
{
    struct marey__samples_target *const t = &set->targets[round->process];
    const bool is_on = (seen->flags & MAREY_SAMPLE_ON_CPU) != 0,
               is_known = is_on || (seen->flags & MAREY_SAMPLE_OFF_CPU) != 0;
    if (is_known && marey_samples_get_thread(set->samples, seen->thread)->is_main)
        t->known_ns += round->weight_ns;
    t->cpu_ns += is_on ? round->weight_ns : 0;
}

/* A rank and a process that counts steps may wait for the others or for a GPU: that wait is a result. */
static bool is_idle(const struct marey__samples_set *set,
                    const struct marey__samples_chosen *chosen, uint32_t i)
{
    const struct marey_samples_process *const process = marey_samples_get_process(set->samples, i);
    const struct marey__samples_target *const t = &set->targets[i];
    const bool is_rank = process->rank >= 0 && process->worker < 0;
    return t->known_ns != 0 && t->cpu_ns < t->known_ns / IDLE_PART && !is_rank &&
           !marey__samples_has_steps(chosen, i);
}

/* A process that started a rank, is not a rank and counts no steps. */
static void find_launchers(struct marey__samples_set *set,
                           const struct marey__samples_chosen *chosen, uint32_t n)
{
    for (uint32_t i = 1; i <= n; i++) {
        uint32_t at =
            marey_samples_get_process(set->samples, i)->rank >= 0 ? set->targets[i].parent : 0;
        for (uint32_t steps = 0; at != 0 && steps < n; steps++) { /* a damaged log may have a ring */
            set->targets[at].is_launcher |= marey_samples_get_process(set->samples, at)->rank < 0 &&
                                            !marey__samples_has_steps(chosen, at);
            at = set->targets[at].parent;
        }
    }
}

/* Whether `child` was forked from `parent` or started by its multiprocessing, rather than being another program. */
static bool is_worker_of(const struct marey_samples_process *child,
                         const struct marey_samples_process *parent)
{
    return child->ppid == parent->pid && (strcmp(child->command, parent->command) == 0 ||
                                          strstr(child->command, "multiprocessing") != NULL);
}

/* Processes that wait for workers of theirs which work are not idle. */
static void keep_parents(const struct marey__samples_set *set, uint32_t n)
{
    for (uint32_t i = 1; i <= n; i++) {
        const struct marey_samples_process *const parent = marey_samples_get_process(set->samples, i);
        for (uint32_t k = 1; k <= n && set->targets[i].is_idle; k++)
            if (!set->targets[k].is_idle && set->targets[k].cpu_ns != 0 &&
                is_worker_of(marey_samples_get_process(set->samples, k), parent))
                set->targets[i].is_idle = false;
    }
}

void marey__samples_find_idle(struct marey__samples_set *set,
                              const struct marey__samples_chosen *chosen)
{
    const uint32_t n = marey_samples_n_processes(set->samples);
    bool is_work_there = false;
    set->idle_ns = set->n_idle = set->n_launchers = set->longest_idle = 0;
    if (!marey__samples_drops_idle(chosen))
        return;
    for (uint32_t i = 1; i <= n; i++) {
        set->targets[i].is_idle = is_idle(set, chosen, i);
        is_work_there |= !set->targets[i].is_idle && set->targets[i].counted_ns != 0;
    }
    keep_parents(set, n);
    find_launchers(set, chosen, n);
    for (uint32_t i = 1; i <= n; i++) {
        struct marey__samples_target *const t = &set->targets[i];
        t->is_idle = (t->is_idle || t->is_launcher) && is_work_there && t->counted_ns != 0;
        if (!t->is_idle)
            continue;
        set->n_idle++;
        set->n_launchers += t->is_launcher;
        set->idle_ns += t->counted_ns;
        if (set->longest_idle == 0 || t->counted_ns > set->targets[set->longest_idle].counted_ns)
            set->longest_idle = i;
    }
}
