/* What measuring cost the recorded programs, from what each process wrote about itself. */
#include <stdio.h>
#include <string.h>

#include "report/internal.h"

/*
 * Add a text "COUNT LOW_PS HIGH_PS" as written by record_cost(); a damaged log may contain
 * anything.
 */
static void add_cost_part(struct marey_cost_part *part, const char *text)
{
    unsigned long long n, low_ps, high_ps;
    if (text[0] == '\0')
        return;
    part->n_processes++;
    const bool is_known = sscanf(text, "%20llu %20llu %20llu", &n, &low_ps, &high_ps) == 3;
    const double low_ns = is_known ? (double)n * (double)low_ps / 1000 : 0,
                 high_ns = is_known ? (double)n * (double)high_ps / 1000 : 0;
    if (!is_known || low_ns > high_ns || high_ns >= 0x1p60) {
        part->n_unknown++;
        return;
    }
    part->count += n;
    part->low_ns += (uint64_t)low_ns;
    part->high_ns += (uint64_t)high_ns;
}

void marey__cost_add(struct marey_cost *cost, const struct marey_process *process)
{
    const bool is_stopped = strcmp(process->end, "write failed") == 0;
    cost->n_stopped += is_stopped;
    cost->n_cut += !is_stopped && process->is_cut != 0;
    add_cost_part(&cost->parts[MAREY_COST_GPU], process->gpu_cost);
    add_cost_part(&cost->parts[MAREY_COST_CALLS], process->calls_cost);
    add_cost_part(&cost->parts[MAREY_COST_MEMORY], process->memory_cost);
    const uint64_t first = process->first_ns;
    cost->events += process->n_events;
    const double in_program_ns = (double)process->n_events * process->event_cost_ns;
    if (in_program_ns > 0 && in_program_ns < 0x1p63) /* a damaged log may contain anything */
        cost->in_program_ns += (uint64_t)in_program_ns;
    cost->flush_cpu_ns += process->flush_cpu_ns;
    cost->log_bytes += process->log_bytes;
    cost->program_ns += process->last_ns > first ? process->last_ns - first : process->open_ns;
    if (process->lost_events == 0)
        return;
    /* A flight recorder loses everything before the first event that it kept. */
    const uint64_t start =
        process->n_events != 0 ? MAREY__MIN(first, process->lost_first_ns) : process->lost_first_ns;
    const uint64_t lost_first = process->lost_first_ns - start;
    const uint64_t lost_last = process->lost_last_ns > start ? process->lost_last_ns - start : 0;
    cost->lost_first_ns =
        cost->lost_events == 0 ? lost_first : MAREY__MIN(cost->lost_first_ns, lost_first);
    cost->lost_last_ns = MAREY__MAX(cost->lost_last_ns, lost_last);
    cost->lost_events += process->lost_events;
}

void marey__cost_finish(struct marey_cost *cost, marey_recording *const *recordings, size_t n)
{
    cost->low_ns = cost->high_ns = cost->in_program_ns;
    for (size_t i = 0; i < MAREY_N_COSTS; i++) {
        cost->low_ns += cost->parts[i].low_ns;
        cost->high_ns += cost->parts[i].high_ns;
    }
    for (size_t r = 0; r < n; r++)
        for (size_t i = marey_recording_n_processes(recordings[r]);
             i < marey_recording_n_logs(recordings[r]); i++)
            if (strcmp(marey_recording_process(recordings[r], i)->role, "sampler") == 0)
                cost->is_sampled = 1;
}

void marey__cost_of(struct marey_cost *cost, marey_recording *const *recordings, size_t n)
{
    *cost = (struct marey_cost){0};
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < marey_recording_n_processes(recordings[r]); i++)
            marey__cost_add(cost, marey_recording_process(recordings[r], i));
    marey__cost_finish(cost, recordings, n);
}
