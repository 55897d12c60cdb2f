/*
 * marey/breakdown.h: computation, communication, other: what a device or a process did in each nanosecond (libmarey-tools).
 *
 *     marey_breakdown *b;
 *     marey_breakdown_create(&recording, 1, NULL, &b);
 *     marey_breakdown_text(b, NULL, stdout);
 *
 * Of each device of each rank: C, N and M are the times in which at least one kernel that computes, one that
 * communicates, one copy ran. They overlap, so each nanosecond of the window is counted once, in one of eight atoms, by
 * which of the three were under way. Every other number is a sum of atoms:
 *
 *   compute + exposed_comm + exposed_mem + idle = span          to the nanosecond
 *   computation = compute, communication = exposed_comm, other = exposed_mem + idle
 *
 * A process without GPU work has a device "cpu": its main thread computes, except in ranges of the categories
 * "communication" and "copy", and where a range of category "idle" or "data" says that it waits. Where no communication
 * was recorded (and the recording is not a trace with operators), the cells of these times are null: unknown.
 *
 * Windows: gpu_span, from the first work's begin to the last one's end; steps, the iterations, each from its begin on
 * the host to its end there or of the last work launched in it, whichever is later.
 *
 * docs/internals/breakdown.md has the definitions and their reasons.
 */
#ifndef MAREY_BREAKDOWN_H
#define MAREY_BREAKDOWN_H

#include <stdio.h>

#include <marey/report.h>
#include <marey/table.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct marey_breakdown marey_breakdown;

struct marey_breakdown_options {
    const char *rules; /* a file of rules to ask before those of marey_breakdown_rules(); NULL: none */
    const char *by;    /* "step", "range", "stream", "process-group": one more table; NULL: none */
    const char *window; /* of the first line: "gpu_span" or "steps"; NULL: gpu_span */
    uint32_t n_jobs;    /* processes read at the same time; 0: as many as there are cores */
    marey_progress *progress;
    void *progress_ctx;
};

/*
 * Break `n` recordings down as one. MAREY_EINVAL for a wrong option, MAREY_EFORMAT for a rule that cannot be read or
 * when there is nothing to break down (no GPU work and no range); the sentence says which.
 */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_breakdown_create(marey_recording *const *recordings, size_t n,
                       const struct marey_breakdown_options *options, marey_breakdown **out);
MAREY_API void marey_breakdown_destroy(marey_breakdown *breakdown);

/*
 * Its tables, lent until it goes; NULL for a name it does not have. Times are whole nanoseconds.
 *   summary      part ns share                                     (computation, communication, other: three rows)
 *   devices      rank pid device window span_ns compute_ns comm_total_ns exposed_comm_ns hidden_comm_ns mem_total_ns
 *                exposed_mem_ns idle_ns busy_ns sum_of_durations_ns concurrency overlap_ratio, the atoms
 *                atom_none_ns atom_c_ns atom_n_ns atom_cn_ns atom_m_ns atom_cm_ns atom_nm_ns atom_cnm_ns, n_work
 *   by           what options.by asks for: step, range, stream or group in the first columns, then as devices
 *   rules        rule class pattern count ns                       what each rule caught
 *   idle         rank pid device reason count ns share         why no work ran, in the window of the first line
 *   idle_by_operator  rank pid device reason operator count ns    operator null: none was open
 *   idle_by_step rank pid device step reason ns
 *   collectives  group what count bytes transfer_ns wait_ns skew_ns algorithm_bytes_per_s bus_bytes_per_s slowest_rank
 *                slowest_share ranks partial
 *   collective_ranks  rank group count ns wait_ns transfer_ns first last late_ns
 *   warnings     text
 */
MAREY_API marey_table *marey_breakdown_table(marey_breakdown *breakdown, const char *name);

/* The whole answer for people; as JSON, an object whose `devices` have the fields above without "_ns" and `atoms`. */
MAREY_API marey_status marey_breakdown_text(marey_breakdown *breakdown,
                                            const struct marey_text_options *options, FILE *out);
MAREY_API marey_status marey_breakdown_json(marey_breakdown *breakdown, FILE *out);

/* The rules that come with marey, as a file that options.rules takes: docs/formats/rules.md. Lent for ever. */
MAREY_API const char *marey_breakdown_rules(void);

#ifdef __cplusplus
}
#endif
#endif
