/*
 * scaling_read: from paths to measured runs.
 *
 *   scaling_read.c ── what is at a path: each recording, folder of traces, file of CSV is a source; several at a time
 *     scaling_read_recording.c ── a recording: which processes are a run, what the analyses say of it
 *     scaling_read_run.c ── one run of it, by the analyses of epochs, energy, steps
 *       scaling_read_steps.c ── the steps of its ranks, the slowest of each
 *       scaling_read_parts.c ── what a step is made of
 *     scaling_read_csv.c ── a CSV of measurements, row by row ── scaling_read_measures.c ── rows to runs
 *
 * What cannot be read is a note, and the rest is read all the same; without memory all of it fails.
 */
#ifndef MAREY_SCALING_READ_H
#define MAREY_SCALING_READ_H

#include "analyze/device/breakdown_internal.h"
#include "codec/codec_internal.h"
#include <marey/scaling.h>

/* Steps of a run that are kept: of more, an even sample. */
enum { MAREY__SCALING_STEPS = 10000 };

/* What is read goes to `runs`. */
struct marey__scaling_reading {
    marey_scaling_runs *runs;
    const struct marey_scaling_read_options *options; /* lent, never NULL */
    uint32_t n_jobs;                                  /* threads that may read this source */
};

/* ---- scaling_read.c ---- */

/* A run of which nothing is known but its name, which is lent. */
struct marey_scaling_run marey__scaling_run_unknown(const char *name);
/* Add a run, as the options want it. What is wrong with it becomes a note. */
MAREY_WARN_UNUSED marey_status marey__scaling_read_add(const struct marey__scaling_reading *reading,
                                                       struct marey_scaling_run *run);
MAREY_WARN_UNUSED marey_status marey__scaling_read_note(const struct marey__scaling_reading *reading,
                                                        const char *fmt, ...) MAREY_PRINTF(2, 3);

/* ---- scaling_read_steps.c ---- */

struct marey__scaling_step {
    uint64_t key; /* its number, or higher where a count begins anew: they count up */
    double s, samples;
    uint32_t n; /* processes that took it */
};

/* The steps of one process, or of several. Starts from zeroes. */
struct marey__scaling_steps {
    struct marey__scaling_step *list; /* by key */
    size_t n, cap;
    /* Of one process: */
    uint64_t n_seen;     /* steps that ended */
    uint64_t n_warmup;   /* of these, at its begin: left out of the list */
    uint64_t n_epochs;   /* begun */
    bool has_open_epoch; /* one was under way at its end */
};
/* Read one process; different ones may be read by different threads. */
MAREY_WARN_UNUSED marey_status marey__scaling_steps_read(struct marey__scaling_steps *steps,
                                                         marey_recording *recording, size_t process);
/* Put the steps of another process to these: the slowest counts, samples are added up. False without memory. */
MAREY_WARN_UNUSED bool marey__scaling_steps_join(struct marey__scaling_steps *steps,
                                                 const struct marey__scaling_steps *other);
void marey__scaling_steps_fini(struct marey__scaling_steps *steps);

/* ---- scaling_read_recording.c: a recording, or a file or folder of traces ---- */

MAREY_WARN_UNUSED marey_status marey__scaling_read_recording(
    const struct marey__scaling_reading *reading, const char *path, bool is_trace);

/* A process of a recording. */
struct marey__scaling_worker {
    const struct marey_process *process;
    const char *run_id; /* of its run; not always its own */
    struct marey__scaling_steps steps;
    uint32_t group;
    bool trains; /* it tells of steps or epochs, and is of the group */
};

/* One run of a recording. */
struct marey__scaling_group {
    const char *run_id;
    int32_t world_size;
    uint32_t repeat; /* the how manieth with that id: processes of one rank are of different ones */
    uint64_t start_unix_ns;
    uint32_t n_workers; /* processes that train */
};

/* ---- scaling_read_run.c: one run ---- */

/* A recording that has no other run in it, and what is known of its processes. */
struct marey__scaling_source {
    const struct marey__scaling_reading *reading;
    const char *path;
    marey_recording *recording;
    const struct marey__scaling_worker **workers; /* those that train, in the recording's order */
    const size_t *indices;                        /* of each in the recording */
    size_t n;
    bool is_alone;   /* the whole recording is this run */
    bool is_checked; /* its reader has told which ranks are missing, and who still records */
};
MAREY_WARN_UNUSED marey_status marey__scaling_read_run(const struct marey__scaling_source *source);

/* ---- scaling_read_csv.c, scaling_read_measures.c ---- */

enum marey__scaling_csv {
    MAREY__CSV_OTHER,
    MAREY__CSV_MEASUREMENTS,
    MAREY__CSV_ITWINAI, /* one of its files of power, epoch times or averages */
};
/* By its first line. */
enum marey__scaling_csv marey__scaling_csv_kind(const char *text, size_t len);

/* What is measured, in the order of docs/formats/scaling-csv.md. */
enum marey__measure {
    MAREY__MEASURE_EPOCH,
    MAREY__MEASURE_STEP,
    MAREY__MEASURE_POWER,
    MAREY__MEASURE_UTILIZATION,
    MAREY__MEASURE_ENERGY,
    MAREY__MEASURE_INTERVAL,
    MAREY__MEASURE_RATE,    /* training samples in a second */
    MAREY__MEASURE_SAMPLES, /* from here on: one number for a run */
    MAREY__MEASURE_BATCH,
    MAREY__MEASURE_COMPUTE,
    MAREY__MEASURE_COMMUNICATION,
    MAREY__MEASURE_MEMORY,
    MAREY__MEASURE_IDLE,
    MAREY__MEASURE_FRACTION,
    MAREY__MEASURE_VERSUS,
    MAREY__N_MEASURES,
};
extern const char *const marey__measure_names[MAREY__N_MEASURES];

/* One number of one run. */
struct marey__measured {
    double step, unix_ms, value; /* the first two NaN where they are not said */
    uint32_t run;
    int32_t rank; /* -1: not said */
    uint32_t measure;
};

struct marey__measured_run {
    const char *experiment, *strategy, *name; /* in `texts` */
    uint32_t workers, nodes;
    uint32_t repeat; /* from 0: the how manieth of what has one name */
};

/* Starts from zeroes; fini takes a half-filled one. */
struct marey__measurements {
    struct marey__measured *rows;
    size_t n_rows, rows_cap;
    struct marey__measured_run *runs;
    size_t runs_cap;
    struct marey__names run_keys, series_keys;
    struct marey__measured_series *series; /* by key */
    size_t series_cap;
    struct marey__arena texts;
    uint64_t n_dropped;      /* rows without a number of workers, or with a value that is none */
    struct marey__buf notes; /* of rows of the measure "note", each ended by a NUL */
    uint64_t n_unknown;      /* rows of other measures */
    char unknown[64];        /* the first of those */
};
MAREY_WARN_UNUSED marey_status marey__measurements_read(struct marey__measurements *m,
                                                        marey__byte_source *bytes, const char *path);
void marey__measurements_fini(struct marey__measurements *m);
/* The rows as runs; sorts them. */
MAREY_WARN_UNUSED marey_status marey__measurements_add(const struct marey__scaling_reading *reading,
                                                       struct marey__measurements *m,
                                                       const char *path);
MAREY_WARN_UNUSED marey_status marey__scaling_read_csv(const struct marey__scaling_reading *reading,
                                                       const char *path);

/* ---- scaling_read_parts.c ---- */

/* What the steps of one process are made of, warm-up left out: nanoseconds, added up. */
struct marey__scaling_parts {
    double compute_ns, communication_ns, memory_ns, idle_ns;
    uint64_t n_steps; /* of all its devices */
    bool has_device;  /* a GPU; else it is of the process itself */
};
MAREY_WARN_UNUSED marey_status marey__scaling_parts_read(struct marey__scaling_parts *parts,
                                                         marey_recording *recording, size_t process,
                                                         const struct marey__rules *rules,
                                                         uint64_t n_warmup);

#endif
