/*
 * kymo/diff.h: two dumps; did the numbers change, and where first? (libkymo-tools)
 *
 *     kymo_diff *diff;
 *     kymo_diff_open("new", "reference", NULL, &diff);
 *     if (!kymo_diff_is_same(diff))
 *         kymo_diff_text(diff, NULL, stdout);
 *     kymo_diff_close(diff);
 *
 * A dump is a directory that <kymo/dump.h> or ACCV-Lab's TensorDumper wrote, or one file: safetensors, npy, JSON, PNG, raw
 * bytes with their meta file. A is the new one and B the reference: two elements agree when |a - b| <= abs + rel * |b|.
 *
 * Values are paired step by step and rank by rank, by their paths; where the two runs do not have the same paths, by the
 * order in which they were added, with equal digests as the strongest sign. Equal digests are proof enough: data are
 * read only where digests differ, and of large tensors only the blocks that do. Of what was kept as statistics or digests
 * alone, these are compared, and `basis` says so.
 *
 * The first difference is that of execution: by step, phase (forward, backward, optimizer), order of adding, path,
 * element. docs/guide/first-difference.md shows it at work. A diff is used by one thread at a time; making it uses several.
 */
#ifndef KYMO_DIFF_H
#define KYMO_DIFF_H

#include <stdio.h>

#include <kymo/dump.h>
#include <kymo/report.h>
#include <kymo/table.h>
#include <kymo/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kymo_diff kymo_diff;

enum kymo_diff_status {
    KYMO_DIFF_SAME = 0,  /* equal */
    KYMO_DIFF_CLOSE,     /* not equal, within the tolerance */
    KYMO_DIFF_NOISE,     /* beyond the tolerance, within what two references differ by */
    KYMO_DIFF_UNKNOWN,   /* nothing was kept by which it could be judged */
    KYMO_DIFF_DIFFERENT, /* from here on: not the same */
    KYMO_DIFF_DTYPE,     /* the types differ, and the numbers do not, or not beyond the tolerance */
    KYMO_DIFF_SHAPE,
    KYMO_DIFF_KIND,    /* a tensor here, something else there */
    KYMO_DIFF_MISSING, /* B alone has it */
    KYMO_DIFF_EXTRA,   /* A alone has it */
    KYMO_N_DIFF_STATUSES
};
/* "same", "close", "noise", "unknown", "different", "dtype", "shape", "kind", "missing", "extra". */
KYMO_API const char *kymo_diff_status_name(enum kymo_diff_status status);

/* What tolerance the paths that match a pattern have; of several that match the last one counts. */
struct kymo_diff_rule {
    const char *pattern; /* as in a shell: "*.grad", "layers[[]3].*" */
    struct kymo_tolerance tolerance;
};

/* Zero means the default for every field; everything is lent for the call. */
struct kymo_diff_options {
    const struct kymo_tolerance *tolerance; /* of every tensor; NULL: kymo_tolerance_default() by type */
    const struct kymo_diff_rule *rules;
    size_t n_rules;
    const char *noise; /* a second run of the reference: what B and it differ by is no difference */
    double noise_factor; /* times so much; 0: 3 */
    uint32_t allow_dtype; /* a different type is not a difference by itself; with `bitwise` it always is */
    uint32_t nan_differs; /* with the default tolerances: a NaN differs from a NaN */
    uint32_t allow_missing,
        allow_extra; /* names that one side alone has are told, and no difference */
    const char *filter; /* paths that have this word in them, or match it where it has one of *?[ ; NULL: all */
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
    kymo_progress *progress;
    void *progress_ctx;
};

/*
 * Compare the dump `a` with the reference `b`. KYMO_EIO and KYMO_EFORMAT when one cannot be read, with its sentence;
 * KYMO_EMISMATCH when there is nothing to compare: a side is empty, or no step is on both.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_diff_open(const char *a, const char *b,
                                                     const struct kymo_diff_options *options,
                                                     kymo_diff **out);
/*
 * Compare the ranks of one dump: each rank's values with those of the lowest rank that has the path. What is meant to
 * be equal on all, parameters say, is chosen by `filter`. KYMO_EMISMATCH with fewer than two ranks.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_diff_ranks(const char *dump,
                                                      const struct kymo_diff_options *options,
                                                      kymo_diff **out);
KYMO_API void kymo_diff_close(kymo_diff *diff);

/* ---- inside a run ---- */

/* As TensorDumper.compare_to_dumped_data() means them. */
struct kymo_diff_pending_options {
    enum kymo_dump_tree tree;
    double eps; /* |current - reference| beyond this is an error; nothing but that is tolerated */
    uint32_t n_errors; /* to show of each tensor, the largest first */
    uint32_t allow_missing,
        allow_extra;      /* names that the earlier dump alone has; that the program alone has */
    uint32_t allow_dtype; /* a different type is not an error by itself */
    uint32_t has_rank;    /* the earlier dump's values of this rank, where it has ranks */
    uint64_t rank;
};
/*
 * Compare what waits in the dumper (A) with step `step` of the earlier dump in `dir` (B), in any format and layout.
 * KYMO_EIO with a sentence when that is not there. The tables are those of kymo_diff_open(), and `errors`.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_diff_pending(const char *dir, uint64_t step,
                                                        const struct kymo_diff_pending_options *options,
                                                        kymo_diff **out);
/*
 * What is wrong, as TensorDumper raises it: a line that names the tree and the dump, a note about the limit, then for
 * each error its place ("a.b[1,7]"), the reference's value, the current one and their difference.
 */
KYMO_API kymo_status kymo_diff_pending_text(kymo_diff *diff, FILE *out);

/* ---- the answer ---- */

/* 1: nothing differs, by all that could be compared. */
KYMO_API int kymo_diff_is_same(const kymo_diff *diff);
/* 1: a value was there that could not be judged, so that "same" is not the whole answer. `warnings` says what. */
KYMO_API int kymo_diff_is_partial(const kymo_diff *diff);

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
 *              one row, or none. Of digests alone there is no index: the elements of the first block that differs.
 *   operations step rank phase seq operation output error_in error_out growth
 *              operations (what stands before "in", "out", "param" and the like in paths) whose inputs agree and whose
 *              outputs do not, the first one executed first. Errors are relative: RMSE over the reference's RMS. growth:
 *              error_out / error_in; null where the inputs are equal.
 *   steps      step n same close noise unknown different missing extra
 *   errors     path reference current difference; of kymo_diff_pending() alone
 *   warnings   text
 */
KYMO_API kymo_table *kymo_diff_table(kymo_diff *diff, const char *name);

struct kymo_diff_text_options {
    struct kymo_text_options text;
    uint32_t limit; /* rows at most; 0: all */
    uint32_t all;   /* tensors that agree are shown too */
};
/* Presenters. KYMO_EIO when the stream refuses. */
KYMO_API kymo_status kymo_diff_text(kymo_diff *diff, const struct kymo_diff_text_options *options,
                                    FILE *out);
/* An object: same, summary, first (null where there is none), operation, counts, tensors, operations, steps, warnings. */
KYMO_API kymo_status kymo_diff_json(kymo_diff *diff, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
