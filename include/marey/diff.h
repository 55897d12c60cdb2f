/*
 * marey/diff.h: compare two dumps and find the first difference. (libmarey-tools)
 *
 *     marey_diff *diff;
 *     marey_diff_open("new", "reference", NULL, &diff);
 *     if (!marey_diff_is_same(diff))
 *         marey_diff_text(diff, NULL, stdout);
 *     marey_diff_close(diff);
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

/* The tolerance of paths that match a pattern; the last match counts. */
struct marey_diff_rule {
    const char *pattern; /* as in a shell: "*.grad", "layers[[]3].*" */
    struct marey_tolerance tolerance;
};

/* Zero means the default for every field; everything is lent for the call. */
struct marey_diff_options {
    const struct marey_tolerance *tolerance; /* of every tensor; NULL: marey_tolerance_default() by type */
    const struct marey_diff_rule *rules;
    size_t n_rules;
    const char *noise; /* a second run of the reference: differences as large as between B and it are ignored */
    double noise_factor; /* so many times as large; 0: 3 */
    uint32_t allow_dtype; /* a different type is not a difference by itself; with `bitwise` it always is */
    uint32_t nan_differs; /* with the default tolerances: a NaN differs from a NaN */
    uint32_t allow_missing,
        allow_extra;    /* names that only one side has are reported, but are not a difference */
    const char *filter; /* paths that contain this, or match it where it has one of *?[ ; NULL: all */
    uint32_t has_step, has_rank; /* only this step, only this rank */
    uint64_t step, rank;
    /*
     * The ranks of one side are put together, to be compared with the only one of the other: pieces along the axis on which
     * they are shorter, copies as they are (one that is not as the others is the one compared), and what matches one of
     * `partial` by adding.
     */
    uint32_t merge_ranks;
    const char *const *partial; /* patterns */
    size_t n_partial;
    uint32_t n_jobs; /* threads; 0: as many as there are cores */
    marey_progress *progress;
    void *progress_ctx;
};

/*
 * Compare the dump `a` with the reference `b`. MAREY_EIO and MAREY_EFORMAT when one cannot be read, with its sentence;
 * MAREY_EMISMATCH when there is nothing to compare: a side is empty, or no step is on both.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_diff_open(const char *a, const char *b,
                                                         const struct marey_diff_options *options,
                                                         marey_diff **out);
/*
 * Compare the ranks of one dump: each rank's values with those of the lowest rank that has the path. What is meant to
 * be equal on all, parameters say, is chosen by `filter`. MAREY_EMISMATCH with fewer than two ranks.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_diff_ranks(const char *dump,
                                                          const struct marey_diff_options *options,
                                                          marey_diff **out);
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
 * MAREY_EIO with a sentence when that is not there. The tables are those of marey_diff_open(), and `errors`.
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
 * The tables; lent until the diff goes; NULL for a name it does not have. Indices are texts "[1,7]", in the order of
 * axes; values are texts that read back to the number.
 *   tensors    step rank phase seq tree path status basis dtype_a dtype_b shape_a shape_b n n_wrong share_wrong n_unequal
 *              n_nan_a n_nan_b first_index max_abs max_abs_index max_abs_a max_abs_b max_rel max_rel_index max_rel_a
 *              max_rel_b max_ulp max_ulp_index max_ulp_a max_ulp_b mean_abs rmse cosine snr_db psnr_db needs_abs
 *              needs_rel needs_ulp atol rtol ulp noise_abs path_b source value_a value_b
 *              in the order of execution. basis: data, digest, stats, value or none: what was compared.
 *              max_rel: infinite where only B has a 0. path_b: where B calls it otherwise. value_a, value_b: of strings
 *              and other values that are not tensors, around the first difference. Cells are null where they are not known.
 *   first      step rank phase seq tree path status index a b bits_a bits_b difference block_begin block_end source
 *              dtype_a dtype_b
 *              one row, or none. Without data there is no index, but the elements of the first block that differs.
 *   operations step rank phase seq operation output error_in error_out growth
 *              operations (the part of a path before "in", "out", "param" and the like) whose inputs agree and whose
 *              outputs do not, the first one executed first. Errors are relative: RMSE over the reference's RMS. growth:
 *              error_out / error_in; null where the inputs are equal.
 *   steps      step n same close noise unknown different missing extra
 *   errors     path reference current difference; only of marey_diff_pending()
 *   warnings   text
 */
MAREY_API marey_table *marey_diff_table(marey_diff *diff, const char *name);

struct marey_diff_text_options {
    struct marey_text_options text;
    uint32_t limit; /* rows at most; 0: all */
    uint32_t all;   /* tensors that agree are shown too */
};
/* Presenters. MAREY_EIO when the stream refuses. */
MAREY_API marey_status marey_diff_text(marey_diff *diff,
                                       const struct marey_diff_text_options *options, FILE *out);
/* An object: same, summary, first (null where there is none), operation, counts, tensors, operations, steps, warnings. */
MAREY_API marey_status marey_diff_json(marey_diff *diff, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
