/*
 * marey/samples_report.h: where samplers found the threads of a job (libmarey-tools).
 *
 *     marey_samples_report *s;
 *     marey_samples_report_create(&recording, 1, NULL, &s);
 *     marey_samples_report_text(s, NULL, stdout);
 *
 * Read from what `marey attach`, `marey run --sample` or a marey_sampler left in a recording. All samplers' logs of the
 * recordings are one. Where a process that was sampled has a log of its own, its ranges and iterations choose samples, on the
 * one clock of the machine.
 */
#ifndef MAREY_SAMPLES_REPORT_H
#define MAREY_SAMPLES_REPORT_H

#include <stdio.h>

#include <marey/recording.h>
#include <marey/report.h>
#include <marey/samples.h>
#include <marey/table.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which samples count. Zeroed: the main thread of each process all the time, others while they are on a processor. */
struct marey_samples_filter {
    /*
     * "wall", NULL: as above. "cpu": threads on a processor. "gil": those that hold the interpreter lock. "exception": those
     * that handle one.
     */
    const char *mode;
    /*
     * With "wall": all threads, all the time. Else idle processes are left out where another one works and neither thread,
     * rank nor process is asked for: those on a CPU core for less than 5 % of their time that have no rank, or are workers
     * of one, and count no steps; launchers, from which ranks descend; and workers while they wait for their next task.
     * Notes have the times.
     */
    int idle;
    /* The next four by the log of the process itself; where it has none, the last three by its parent's. */
    const char *range; /* threads that have a range open of this name, or that matches it where it has one of *?[ */
    const char *iterations; /* "slow", "7", "10..20", "10..", "..20": while one of these runs */
    const char *epochs;     /* "2", "1..3" */
    const char *phase;      /* as `range` */
    const char *thread;     /* of threads by their name, as the filter of names */
    const char *rank;       /* a number: processes of this rank */
    /* A PID; "worker": workers of data loaders, "worker2" one of them; "main": all others; or a part of a command. */
    const char *process;
    /*
     * Imports before the work begins count, and importlib has its frames. Else these imports are left out, and a note says how
     * long they took; the time of other imports is that of the frame around importlib.
     */
    int startup;
};

typedef struct marey_samples_report marey_samples_report;

struct marey_samples_report_options {
    struct marey_samples_filter filter;
    const char *sort; /* self, total, samples, name; "-" before it turns round; NULL: self */
    /*
     * Tables `contacts`, `leaves`, `leaf_paths`: the library whose frames are looked for. A folder or file on the path of a
     * frame is called so, endings apart, or matches it where it has one of *?[; "torch/nn" and "torch.nn" are a folder in
     * one. NULL: these tables are empty.
     */
    const char *library;
    const char *names; /* rows whose name has this in it, as the summary's filter; sums do not change by it */
    int native; /* native frames count as functions of their own; else their time is that of the Python frame around them */
};

/* 1 when a sampler left something in one of these. */
MAREY_API int marey_samples_are_there(marey_recording *const *recordings, size_t n);

/*
 * Read `n` recordings; lent until it is destroyed. MAREY_EINVAL for a filter that cannot be, MAREY_EFORMAT when there is no
 * sample in them, with how to get some.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_samples_report_create(
    marey_recording *const *recordings, size_t n,
    const struct marey_samples_report_options *options, marey_samples_report **out);
MAREY_API void marey_samples_report_destroy(marey_samples_report *report);

/*
 * Its tables, lent until it goes; NULL for a name it does not have.
 *   functions   function file line module kind samples self_ns total_ns share total_share error cpu gil waits
 *               (top-level code has a row for each line that ran)
 *   lines       function file line module samples self_ns total_ns share total_share error cpu gil waits
 *   files       file samples self_ns total_ns share total_share error cpu gil waits
 *   modules     module, the same
 *   threads     rank pid tid thread main samples self_ns share error cpu gil waits
 *   processes   rank worker pid command samples self_ns share error cpu gil waits
 *   ranks       rank processes samples self_ns share error cpu gil waits
 *   stacks      stack samples self_ns share error cpu gil waits; frames from the outermost, with ";" between
 *   contacts    function file line contact contact_file contact_line caller caller_file caller_line samples self_ns share
 *               error: where samples are, the innermost frame of `library` around that, and who called into it
 *   leaves      name path line library_function_name library_function_path library_function_line samples self_ns share error:
 *               a row for each stack, its innermost frame and the innermost of `library`, as in itwinai's report
 *   leaf_paths  the same, stacks with both frames in common added up
 *   waits       waits function file line thread samples self_ns share
 *   gil         rank pid thread held_ns held wants_ns wants switches_per_s
 *   audit       host pid strategy rate_hz achieved_hz seconds rounds asked missed missed_share samples rejected
 *               rejected_share unstable unstable_share exact exact_share audit stops stop_ns stop_max_ns cost_share
 *               sampler_cpu_ns sampler_cpu_share bytes_read bytes_per_sample log_bytes skipped slowed end distance
 *               distance_low distance_high distance_by_chance
 *   totals      samples self_ns seconds processes threads functions stacks what
 *   notes       text
 *
 * self_ns is the time that samples stand for; a function's own are those where it is innermost. total_ns counts a sample once
 * however often the function is in its stack. `error` is half of the interval in which the share lies in 95 of 100 such
 * recordings, by the number of samples alone. `cpu` and `gil` are shares of its own samples; `waits` is what most of those wait
 * for that are off the processors. `distance` is the total variation distance between functions in snapshot samples and in
 * those that were stopped by chance, with the interval of 95 %; `distance_by_chance` what equal ones would have.
 */
MAREY_API marey_table *marey_samples_report_table(marey_samples_report *report, const char *name);

struct marey_samples_text_options {
    struct marey_text_options text;
    const char *table; /* NULL: functions and lines */
    uint32_t limit;    /* rows at most; 0: all */
    int is_short;      /* for a section of another report: a few rows */
};
/* For people; as JSON an object with all tables. MAREY_EIO when the stream refuses, MAREY_EINVAL for a table there is none of. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_samples_report_text(
    marey_samples_report *report, const struct marey_samples_text_options *options, FILE *out);
MAREY_API MAREY_WARN_UNUSED marey_status marey_samples_report_json(marey_samples_report *report,
                                                                   FILE *out);

#ifdef __cplusplus
}
#endif
#endif
