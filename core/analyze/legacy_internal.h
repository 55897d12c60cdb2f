/*
 * legacy: itwinai's computation_fraction, by its own rules.
 *
 *   legacy_averages.c ── recordings to the rows of torch's key_averages()
 *   legacy_csv.c ── files of such rows, which come from outside
 *   legacy_files.c ── which files
 *   legacy.c ── rows to fractions
 */
#ifndef KYMO_LEGACY_INTERNAL_H
#define KYMO_LEGACY_INTERNAL_H

#include "analyze/breakdown_internal.h"
#include "codec/codec_internal.h"
#include <kymo/legacy.h>

/* What its rules call a name; computation and communication may both hold. */
enum kymo__legacy_class {
    KYMO__LEGACY_OTHER = 0,
    KYMO__LEGACY_COMPUTATION = 1,
    KYMO__LEGACY_COMMUNICATION = 2,
    KYMO__LEGACY_PROFILER = 4, /* left out of the whole */
};
unsigned kymo__legacy_class(const char *name, size_t len);

/* Sums of one strategy and number of GPUs, of one rank or of all. Microseconds. */
struct kymo__legacy_group {
    const char *strategy;
    uint64_t num_gpus;
    int64_t rank; /* -1: all */
    double total, computation, communication, profiler;
    uint64_t n_rows;
};

struct kymo__legacy {
    struct kymo__names keys;
    struct kymo__arena texts;
    struct kymo__legacy_group *groups; /* by key */
    size_t groups_cap;
    uint64_t n_dropped; /* rows of files that lack something */
};

struct kymo__legacy_row {
    const char *name, *strategy;
    size_t name_len, strategy_len;
    uint64_t num_gpus;
    int64_t rank; /* -1: not said */
    double self_us;
};

/* False without memory. Starts from zeroes. */
KYMO_WARN_UNUSED bool kymo__legacy_take(struct kymo__legacy *legacy,
                                        const struct kymo__legacy_row *row);
KYMO_WARN_UNUSED kymo_status kymo__legacy_table(const struct kymo__legacy *legacy, kymo_table **out);
void kymo__legacy_fini(struct kymo__legacy *legacy);

/* ---- legacy_csv.c ---- */

/*
 * Add the rows of a file. KYMO_EFORMAT with a sentence about `path` when it is no file of averages; `*is_other` is set
 * when that shows in its first line, so that nothing was added.
 */
KYMO_WARN_UNUSED kymo_status kymo__legacy_read_csv(struct kymo__legacy *legacy,
                                                   kymo__byte_source *bytes, const char *path,
                                                   bool *is_other);

#endif
