/*
 * marey/diff.h: compare two dumps and find the first difference. (libmarey-tools)
 *
 * `marey diff` is the analysis "diff" of <marey/report.h>; this header has what compares inside a run.
 *
 *     const char *const dumps[] = {"new", "reference"};
 *     marey_report *report;
 *     marey_report_create_files("diff", dumps, 2, NULL, &report);
 *     marey_report_write(report, "text", NULL, stdout);
 *
 * A dump is a directory that <marey/dump.h> or ACCV-Lab's TensorDumper wrote, or one file: safetensors, npy, JSON, PNG, raw
 * bytes with their meta file. A is the new one and B the reference: two elements agree when |a - b| <= abs + rel * |b|.
 *
 * Values are paired step by step and rank by rank, by their paths; where the two runs do not have the same paths, by the
 * order in which they were added, with equal digests as the strongest sign. Equal digests are proof enough: data are
 * read only where digests differ, and of large tensors only the blocks that do. Values kept as statistics or digests are
 * compared by these, which `basis` reports.
 *
 * The first difference is that of execution: by step, phase (forward, backward, optimizer), order of adding, path,
 * element. docs/guide/first-difference.md shows it at work. A diff is used by one thread at a time; making it uses several.
 */
#ifndef MAREY_DIFF_H
#define MAREY_DIFF_H

#include <stdio.h>

#include <marey/dump.h>
#include <marey/report.h>
#include <marey/table.h>
#include <marey/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct marey_diff marey_diff;

enum marey_diff_status {
    MAREY_DIFF_SAME = 0,  /* equal */
    MAREY_DIFF_CLOSE,     /* not equal, within the tolerance */
    MAREY_DIFF_NOISE,     /* beyond the tolerance, within the difference of two references */
    MAREY_DIFF_UNKNOWN,   /* nothing was kept to compare it by */
    MAREY_DIFF_DIFFERENT, /* from here on: not the same */
    MAREY_DIFF_DTYPE, /* the types differ, and the numbers do not, or not beyond the tolerance */
    MAREY_DIFF_SHAPE,
    MAREY_DIFF_KIND,    /* a tensor here, something else there */
    MAREY_DIFF_MISSING, /* only B has it */
    MAREY_DIFF_EXTRA,   /* only A has it */
    MAREY_N_DIFF_STATUSES
};
/* "same", "close", "noise", "unknown", "different", "dtype", "shape", "kind", "missing", "extra". */
MAREY_API const char *marey_diff_status_name(enum marey_diff_status status);

MAREY_API void marey_diff_close(marey_diff *diff);

/* ---- inside a run ---- */

/* As TensorDumper.compare_to_dumped_data() means them. */
struct marey_diff_pending_options {
    enum marey_dump_tree tree;
    double eps; /* |current - reference| beyond this is an error; nothing but that is tolerated */
    uint32_t n_errors; /* to show of each tensor, the largest first */
    uint32_t allow_missing,
        allow_extra;      /* names that only the earlier dump has; that only the program has */
    uint32_t allow_dtype; /* a different type is not an error by itself */
    uint32_t has_rank;    /* the earlier dump's values of this rank, where it has ranks */
    uint64_t rank;
};
/*
 * Compare what waits in the dumper (A) with step `step` of the earlier dump in `dir` (B), in any format and layout.
 * MAREY_EIO with a sentence when that is not there.
 */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_diff_pending(const char *dir, uint64_t step, const struct marey_diff_pending_options *options,
                   marey_diff **out);
/*
 * What is wrong, as TensorDumper raises it: a line that names the tree and the dump, a note about the limit, then for
 * each error its place ("a.b[1,7]"), the reference's value, the current one and their difference.
 */
MAREY_API marey_status marey_diff_pending_text(marey_diff *diff, FILE *out);

/* ---- the answer ---- */

/* 1: nothing differs, by all that could be compared. */
MAREY_API int marey_diff_is_same(const marey_diff *diff);
/* 1: a value was there that could not be compared, so that "same" is not the whole answer. `warnings` says what. */
MAREY_API int marey_diff_is_partial(const marey_diff *diff);

/*
 * The tables of the analysis "diff", which docs/reference/analyses.md describes, and `errors` with path, reference, current
 * and difference. Lent until the diff is closed; NULL for a name it does not have.
 */
MAREY_API marey_table *marey_diff_table(marey_diff *diff, const char *name);

#ifdef __cplusplus
}
#endif
#endif
