/*
 * marey/diff.h: compare two dumps and find the first difference. (libmarey-tools)
 *
 * `marey diff` is the analysis "diff" of <marey/report.h>; this header compares inside a run.
 *
 *     const char *const dumps[] = {"new", "reference"};
 *     marey_report *report;
 *     marey_report_create_files("diff", dumps, 2, NULL, &report);
 *     marey_report_write(report, "text", NULL, stdout);
 *
 * A dump is a directory that <marey/dump.h> or ACCV-Lab's TensorDumper wrote, or one file: safetensors, npy, JSON, PNG, raw
 * bytes with their meta file. A is the new dump, B the reference. Two elements agree if |a - b| <= abs + rel * |b|.
 *
 * Values are paired by step, rank and path; where the two runs have different paths, by the order of adding, with equal
 * digests as the strongest evidence. Values with equal digests are equal: data are read only where digests differ, and only
 * the differing blocks of large tensors. Values kept as statistics or digests are compared by these; `basis` reports it.
 *
 * "First" is by order of execution: step, phase (forward, backward, optimizer), order of adding, path, element.
 * docs/guide/first-difference.md has an example. One thread at a time may use a diff; creating it uses several threads.
 */
#ifndef MAREY_DIFF_H
#define MAREY_DIFF_H

#include <stdio.h>

#include <marey/dump.h>
#include <marey/report.h>
#include <marey/table.h>
#include <marey/tensor.h>

MAREY_BEGIN_C

typedef struct marey_diff marey_diff;

enum marey_diff_status {
    MAREY_DIFF_SAME = 0,  /* equal */
    MAREY_DIFF_CLOSE,     /* not equal, within the tolerance */
    MAREY_DIFF_NOISE,     /* beyond the tolerance, within the difference of two references */
    MAREY_DIFF_UNKNOWN,   /* no data were kept to compare */
    MAREY_DIFF_DIFFERENT, /* this and the following: not the same */
    MAREY_DIFF_DTYPE,     /* the types differ, the numbers agree within the tolerance */
    MAREY_DIFF_SHAPE,
    MAREY_DIFF_KIND,    /* only one side is a tensor */
    MAREY_DIFF_MISSING, /* only B has it */
    MAREY_DIFF_EXTRA,   /* only A has it */
    MAREY_N_DIFF_STATUSES
};
/* "same", "close", "noise", "unknown", "different", "dtype", "shape", "kind", "missing", "extra". */
MAREY_API const char *marey_diff_status_name(enum marey_diff_status status);

MAREY_API void marey_diff_close(marey_diff *diff);

/* ---- inside a run ---- */

/* As in TensorDumper.compare_to_dumped_data(). */
struct marey_diff_pending_options {
    enum marey_dump_tree tree;
    double eps;        /* absolute tolerance: |current - reference| beyond this is an error */
    uint32_t n_errors; /* errors to show per tensor, the largest first */
    uint32_t allow_missing, allow_extra; /* names only in the earlier dump; only in the program */
    uint32_t allow_dtype;                /* a different type is not an error */
    uint32_t has_rank; /* use this rank's values of the earlier dump, if it has ranks */
    uint64_t rank;
};
/*
 * Compare the dumper's pending values (A) with step `step` of the earlier dump in `dir` (B), in any format and layout.
 * MAREY_EIO: no such dump or step.
 */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_diff_pending(const char *dir, uint64_t step, const struct marey_diff_pending_options *options,
                   marey_diff **out);
/*
 * Print the errors as TensorDumper's exception does: a line with the tree and the dump, a note about the limit, then for
 * each error its index ("a.b[1,7]"), the reference value, the current value and their difference.
 */
MAREY_API marey_status marey_diff_pending_text(marey_diff *diff, FILE *out);

/* ---- result ---- */

/* Returns 1 if nothing differs among the values that could be compared. */
MAREY_API int marey_diff_is_same(const marey_diff *diff);
/* Returns 1 if some values could not be compared, so "same" does not cover all. `warnings` lists them. */
MAREY_API int marey_diff_is_partial(const marey_diff *diff);

/*
 * The tables of the analysis "diff", which docs/reference/analyses.md describes, and `errors` with path, reference, current
 * and difference. Lent until close; NULL for an unknown name.
 */
MAREY_API marey_table *marey_diff_table(marey_diff *diff, const char *name);

MAREY_END_C
#endif
