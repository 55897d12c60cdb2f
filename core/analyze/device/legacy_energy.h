/*
 * itwinai's files of GPU power and of epoch times (0.2 to 0.3.3), as joules of each run.
 *
 *   legacy_energy_csv.c ── files to series: readings of one GPU in one run, epochs of one run
 *   legacy_energy.c ── series to tables
 */
#ifndef MAREY_LEGACY_ENERGY_H
#define MAREY_LEGACY_ENERGY_H

#include "analyze/device/legacy_internal.h"

/* Readings of one GPU in one run, in order. */
struct marey__old_gpu {
    uint32_t run; /* in marey__old_energy.runs */
    uint64_t node, local_rank;
    uint64_t n;
    double first_w, last_w, peak_w, last_index;
    double sum_w;        /* of all readings */
    double trapezoids_w; /* watts times steps of the index */
    double sum_use, n_use;
};

/* One run: what has the same folder, strategy and number of GPUs, and does not begin anew. */
struct marey__old_run {
    const char *name, *strategy; /* in `texts` */
    uint64_t num_gpus;           /* of an epoch file: the number of nodes */
    uint32_t repeat;             /* from 0: the how manieth in its file */
    bool is_epochs;
    double interval_s;  /* the last one that was said; 0: none */
    bool has_intervals; /* several that differ */
    uint64_t n_epochs;
    double epochs_s, last_epoch;
};

/* An epoch of a run, in the order of the files. */
struct marey__old_epoch {
    uint32_t run; /* in marey__old_energy.runs */
    double s;
};

struct marey__old_energy {
    struct marey__names gpu_keys, run_keys;
    struct marey__arena texts;
    struct marey__old_gpu *gpus; /* by key */
    size_t gpus_cap;
    struct marey__old_run *runs; /* by key */
    size_t runs_cap;
    struct marey__old_epoch *epochs;
    size_t n_epochs, epochs_cap;
    uint64_t n_dropped;   /* rows that lack something */
    const char *run_name; /* of the file that is read; lent */
    size_t run_name_len;
};

/*
 * Add the rows of a file, of either kind. MAREY_EFORMAT with a sentence when it is neither; `*is_other` is set when
 * that shows in its first line. The run is named by the folders of `path`.
 */
MAREY_WARN_UNUSED marey_status marey__old_energy_read(struct marey__old_energy *energy,
                                                      marey__byte_source *bytes, const char *path,
                                                      bool *is_other);
/* The two tables of marey_legacy_energy_read(). */
MAREY_WARN_UNUSED marey_status marey__old_energy_tables(const struct marey__old_energy *energy,
                                                        marey_table **runs, marey_table **repeats);
void marey__old_energy_fini(struct marey__old_energy *energy);

#endif
