/*
 * diff: the values of two dumps, pair by pair.
 *
 *   diff.c, diff_report.c   creating and closing a diff; the entry of the registry: settings --> options
 *   diff_files.c   steps of two dumps that belong together; ranks merged (diff_merge.c)
 *   diff_pending.c, diff_images.c   values and images not yet written by the dumper
 *        |
 *   diff_run.c     two steps, in several threads
 *   diff_align.c   values of two steps that belong together --> pairs
 *   diff_pair.c    a pair --> a result: digest, data (diff_data.c), statistics (diff_kept.c) or value (diff_values.c)
 *   diff_errors.c  the elements that differ most
 *   diff_order.c   results in order of execution; the first difference; operations that introduce differences
 *   diff_tables.c  results --> tables; diff_text.c: text and JSON
 *
 * Input: values lent by <marey/dumpfile.h>. Output: results and tables. Results own no memory: their strings are in the
 * diff's arena. Does not know file formats of dumps, or recordings.
 */
#ifndef MAREY_TENSOR_DIFF_INTERNAL_H
#define MAREY_TENSOR_DIFF_INTERNAL_H

#include <stdbool.h>
#include <string.h>

#include "base/internal.h"
#include "report/internal.h"
#include "tensor/container/internal.h"
#include "tensor/kernels/internal.h"
#include <marey/diff.h>
#include <marey/dumpfile.h>

/* The tolerance for paths that match a pattern; the last match wins. */
struct marey_diff_rule {
    const char *pattern; /* shell pattern: "*.grad", "layers[[]3].*" */
    struct marey_tolerance tolerance;
};

/* Zero means the default for every field; everything is lent for the call. */
struct marey_diff_options {
    const struct marey_tolerance *tolerance; /* for all tensors; NULL: marey_tolerance_default() by type */
    const struct marey_diff_rule *rules;
    size_t n_rules;
    const char *noise; /* a second run of the reference: differences up to that between B and it are ignored */
    double noise_factor; /* multiplies those differences; 0: 3 */
    uint32_t allow_dtype; /* a different type alone is not a difference; with `bitwise` it always is */
    uint32_t nan_differs; /* with the default tolerances: NaN differs from NaN */
    uint32_t allow_missing,
        allow_extra;    /* values that only one side has are reported but are not a difference */
    const char *filter; /* paths that contain this, or match it if it has one of *?[ ; NULL: all */
    uint32_t has_step, has_rank; /* only this step, only this rank */
    uint64_t step, rank;
    /*
     * Merge the ranks of one side, to be compared with the only one of the other: pieces along the axis on which they
     * are shorter, copies unchanged (one that differs from the others is compared), and paths that match one of
     * `partial` by adding.
     */
    uint32_t merge_ranks;
    const char *const *partial; /* patterns */
    size_t n_partial;
    uint32_t n_jobs; /* threads; 0: one per CPU core */
    marey_progress *progress;
    void *progress_ctx;
};

/* The values of one step of one rank. */
struct marey__diff_side {
    const struct marey_dumped_value *values;
    size_t n;
    /* Reads a value's numbers, row-major; any thread for different values. With a lent `file` they may stay in it. */
    marey_status (*open)(const struct marey__diff_side *side, size_t value,
                         struct marey__tensor_file *file, struct marey_tensor *out);
    /* Releases them; NULL: nothing to release. */
    void (*close)(const struct marey__diff_side *side, size_t value, struct marey__tensor_file *file);
    void *ctx;
    size_t number;  /* of the step, for open() */
    bool is_single; /* a single file, with arbitrary names in it */
};

/* ---- diff_files.c ---- */

/*
 * Compares the dump `a` with the reference `b`; if `a` is NULL, compares the ranks of `b` with the lowest one that has
 * the path. MAREY_EIO and MAREY_EFORMAT if one cannot be read; MAREY_EMISMATCH if there is nothing to compare: a side
 * is empty, no step is in both, or there are fewer than two ranks.
 */
MAREY_WARN_UNUSED marey_status marey__diff_open(const char *a, const char *b,
                                                const struct marey_diff_options *options,
                                                marey_diff **out);
/* Opens step `number` of a dump; release it with marey_dumps_release(). */
MAREY_WARN_UNUSED marey_status marey__diff_side_open(marey_dumps *dumps, size_t number,
                                                     struct marey__diff_side *out);

/* ---- diff_align.c ---- */

#define MAREY__DIFF_NONE SIZE_MAX

struct marey__diff_pair {
    size_t a, b; /* MAREY__DIFF_NONE: unpaired */
};
struct marey__diff_pairs {
    struct marey__diff_pair *list;
    size_t n, cap;
    bool by_names; /* too many values to align by order, though the paths differ */
};
/* Lists each value of either side once, in A's order; a value that only B has follows its predecessor in B. */
MAREY_WARN_UNUSED marey_status marey__diff_align(const struct marey__diff_side *a,
                                                 const struct marey__diff_side *b,
                                                 struct marey__diff_pairs *out);
void marey__diff_pairs_fini(struct marey__diff_pairs *pairs);

/* ---- results ---- */

enum marey__diff_basis {
    MAREY__DIFF_BY_NOTHING = 0,
    MAREY__BY_DATA,
    MAREY__BY_DIGEST,
    MAREY__BY_STATS,
    MAREY__BY_VALUE, /* strings, and files of bytes */
};

/* An element, and its values on both sides. */
struct marey__diff_spot {
    uint64_t index; /* row-major; UINT64_MAX: none */
    char a[64], b[64];
};

/* Details of a pair whose numbers are not all equal. */
struct marey__diff_details {
    struct marey__diff_spot first, abs, rel, ulp;
    char bits_a[40], bits_b[40];     /* at `first` */
    double difference;               /* a - b at `first`; NaN: none */
    double psnr_db;                  /* NaN: not pixels */
    double noise_abs;                /* NaN: unknown */
    uint64_t block_begin, block_end; /* elements among which digests differ; equal: unknown */
    uint32_t n_dims;
    int64_t sizes[];
};

struct marey__diff_result {
    enum marey_diff_status status;
    enum marey__diff_basis basis;
    enum marey_dump_tree tree;
    uint64_t step, seq;
    int64_t rank;
    uint32_t phase_order;       /* forward, backward, optimizer */
    uint64_t order;             /* within the step */
    const char *path;           /* A's, or B's if A does not have it */
    const char *path_b;         /* NULL: the same */
    const char *phase, *source; /* NULL: unknown */
    enum marey_dtype dtype_a, dtype_b;
    bool is_retyped;               /* the type of the program's tensor changed */
    const char *form_a, *form_b;   /* "[2,3]"; the text of other values; NULL: missing */
    uint64_t n;                    /* elements */
    struct marey_tensor_diff diff; /* valid if has_diff */
    bool has_diff;
    struct marey_tolerance tolerance;
    struct marey__diff_details *details; /* NULL: all equal, or nothing known */
    const char *why;                     /* why the result is unknown, or NULL */
};

enum marey__diff_table {
    MAREY__DIFF_TENSORS,
    MAREY__DIFF_FIRST,
    MAREY__DIFF_OPERATIONS,
    MAREY__DIFF_STEPS,
    MAREY__DIFF_WARNINGS,
    MAREY__DIFF_ERRORS, /* only from marey_diff_pending() */
    MAREY__N_DIFF_TABLES
};

struct marey_diff {
    struct marey_diff_options options;
    struct marey__arena texts;
    struct marey__diff_result *results;
    size_t n, cap;
    size_t n_by_status[MAREY_N_DIFF_STATUSES];
    size_t n_reported;   /* values that could not be compared, with a message each */
    size_t n_retyped;    /* pairs whose types differ */
    size_t n_renamed;    /* pairs of different paths */
    size_t n_steps;      /* compared ones */
    bool compares_ranks; /* within one dump */
    bool shows_all;      /* text includes values that agree */
    uint64_t step;       /* for marey_diff_pending() */
    struct marey_diff_pending_options pending;
    marey_table *tables[MAREY__N_DIFF_TABLES];
};

/* Whether a status makes the whole differ. */
bool marey__diff_counts(const struct marey_diff *diff, enum marey_diff_status status);
/* Adds a message to the warnings. */
#define marey__diff_warn(diff, ...)                                                                \
    marey__put_note((diff)->tables[MAREY__DIFF_WARNINGS], __VA_ARGS__)
MAREY_WARN_UNUSED marey_status marey__diff_create(const struct marey_diff_options *options,
                                                  struct marey_diff **out);
/* Appends the index of element `i`: "[1,7]". */
void marey__diff_index_put(struct marey__buf *out, const struct marey__diff_details *details,
                           uint64_t i);
/*
 * Fills in the description of the values, either of which may be NULL. Strings of values are lent until the step is
 * released: copies them.
 */
MAREY_WARN_UNUSED marey_status marey__diff_describe(struct marey_diff *diff,
                                                    const struct marey_dumped_value *a,
                                                    const struct marey_dumped_value *b,
                                                    struct marey__diff_result *out);
/* Appends a result and takes ownership of its `why` and details, even on failure. */
MAREY_WARN_UNUSED marey_status marey__diff_append(struct marey_diff *diff,
                                                  struct marey__diff_result *result);

/* ---- diff_run.c ---- */

struct marey__diff_place {
    uint64_t step;
    int64_t rank;
};
/* Aligns two sides, compares all pairs in several threads, and appends the results. `noise`: B's second run, or NULL. */
MAREY_WARN_UNUSED marey_status marey__diff_sides(struct marey_diff *diff,
                                                 const struct marey__diff_place *place,
                                                 const struct marey__diff_side *a,
                                                 const struct marey__diff_side *b,
                                                 const struct marey__diff_side *noise);

/* ---- diff_pair.c ---- */

/* The inputs of a comparison besides the pair. */
struct marey__diff_inputs {
    const struct marey_diff_options *options;
    const struct marey__diff_side *a, *b, *noise;
    uint32_t n_threads; /* for a single comparison */
};
/*
 * Compares values `ia` and `ib`; fills status, basis, diff, has_diff, n, tolerance, details, why. Fails only with
 * MAREY_ENOMEM: a value that cannot be read gives an unknown result with the message in `why` (free with
 * marey__free()).
 */
MAREY_WARN_UNUSED marey_status marey__diff_compare_pair(const struct marey__diff_inputs *inputs,
                                                        size_t ia, size_t ib,
                                                        struct marey__diff_result *out);
static inline void marey__diff_close(const struct marey__diff_side *side, size_t value,
                                     struct marey__tensor_file *file)
{
    if (side->close != NULL)
        side->close(side, value, file);
}
MAREY_WARN_UNUSED marey_status marey__diff_unknown(struct marey__diff_result *out, const char *why);
/* The same with the last error message, if `status` means that numbers could not be read. */
MAREY_WARN_UNUSED marey_status marey__diff_settle(marey_status status,
                                                  struct marey__diff_result *out);
/* Allocates empty details for a pair of these sizes. */
MAREY_WARN_UNUSED marey_status marey__diff_details(struct marey__diff_result *out,
                                                   const int64_t *sizes, uint32_t n_dims);
struct marey_tolerance marey__diff_tolerance(const struct marey_diff_options *options,
                                             const struct marey_dumped_value *a,
                                             const struct marey_dumped_value *b);
static inline bool marey__diff_is_tensor(const struct marey_dumped_value *value)
{
    return value->dtype != MAREY_DTYPE_NONE;
}
/* The value of that name, or MAREY__DIFF_NONE. */
size_t marey__diff_find(const struct marey__diff_side *side, enum marey_dump_tree tree,
                        const char *name);
static inline bool marey__diff_same_sizes(uint32_t rank_a, const int64_t *a, uint32_t rank_b,
                                          const int64_t *b)
{
    return rank_a == rank_b && (rank_a == 0 || memcmp(a, b, rank_a * sizeof *a) == 0);
}

/* ---- diff_data.c ---- */

/* By numbers: fills status, basis, diff, has_diff, n, details. */
MAREY_WARN_UNUSED marey_status marey__diff_compare_numbers(const struct marey_tensor *a,
                                                           const struct marey_tensor *b,
                                                           struct marey__diff_result *out);
/* By the numbers of two values. */
MAREY_WARN_UNUSED marey_status marey__diff_compare_data(const struct marey__diff_inputs *inputs,
                                                        size_t ia, size_t ib,
                                                        struct marey__diff_result *out);

/* ---- diff_kept.c ---- */

/* Whether the digests prove equal values; they do if NaNs may be equal. */
bool marey__diff_equal_digests(const struct marey_dumped_value *a, const struct marey_dumped_value *b,
                               const struct marey_tolerance *tolerance);
/* By what was stored instead of the numbers. */
MAREY_WARN_UNUSED marey_status marey__diff_compare_kept(const struct marey__diff_inputs *inputs,
                                                        size_t ia, size_t ib,
                                                        struct marey__diff_result *out);

/*
 * The numbers of value `ib` of B, or `ia` of A, for the comparison. JSON without types may have shortened floats: those
 * that read back to a number of the other side's type become that. Free `*made` with marey__free().
 */
MAREY_WARN_UNUSED marey_status marey__diff_restore(const struct marey_dumped_value *value,
                                                   const struct marey_dumped_value *other,
                                                   struct marey_tensor *tensor, double **made);

/* ---- diff_values.c ---- */

union marey__literal {
    int64_t integer;
    uint64_t natural;
    double real;
    uint8_t truth;
};
/* Parses a JSON number as a tensor of rank 0 in `number`. The type is MAREY_DTYPE_NONE for non-numbers and beyond 64 bits. */
void marey__diff_read_literal(const char *text, size_t len, union marey__literal *number,
                              struct marey_tensor *out);
/* Two values of which at least one is not a tensor. */
MAREY_WARN_UNUSED marey_status marey__diff_compare_values(const struct marey__diff_inputs *inputs,
                                                          size_t ia, size_t ib,
                                                          struct marey__diff_result *out);

/* ---- diff_order.c ---- */

/* Sorts and counts the results, and makes the tables. */
MAREY_WARN_UNUSED marey_status marey__diff_conclude(struct marey_diff *diff);
/* The first result that makes the whole differ, or NULL. Results must be sorted. */
const struct marey__diff_result *marey__diff_first(const struct marey_diff *diff);

enum marey__diff_role { MAREY__DIFF_NO_ROLE, MAREY__DIFF_INPUT, MAREY__DIFF_OUTPUT };
/* The role of a path for an operation, whose name is its first `*len` bytes. */
enum marey__diff_role marey__diff_role(const char *path, size_t *len);

/* ---- diff_tables.c ---- */

/* In the order of enum marey__diff_table. The analysis has those before `errors`. */
extern const struct marey_table_definition marey__diff_definitions[MAREY__N_DIFF_TABLES];
MAREY_WARN_UNUSED marey_status marey__diff_tables(struct marey_diff *diff);

/* ---- diff_text.c ---- */

/* For a report whose data is a diff. */
struct marey__report_writer;
marey_status marey__diff_as_text(struct marey__report_writer *writer);
marey_status marey__diff_as_json(struct marey__report_writer *writer);

/* diff_merge.c: the ranks of a step as one. */

/* Merges the sides of `n_ranks`, which are lent until it is closed, guided by `like`, the other side. */
MAREY_WARN_UNUSED marey_status marey__diff_merge_open(const struct marey__diff_side *ranks,
                                                      size_t n_ranks,
                                                      const struct marey__diff_side *like,
                                                      const struct marey_diff_options *options,
                                                      struct marey__diff_side *out);
/* Accepts a zeroed one. */
void marey__diff_merge_close(struct marey__diff_side *side);

/* diff_pending.c, diff_images.c, diff_errors.c: comparing pending values with an earlier dump, and the errors. */

/* The comparison in progress, and the current value. */
struct marey__waiting {
    struct marey_diff *diff;
    struct marey__diff_side reference; /* the step of the earlier dump */
    uint8_t *was_seen;                 /* by value of it */
    size_t n_seen;                     /* values of the program */
    marey_status status;

    struct marey_dumped_value value;
    struct marey_tensor tensor;
    struct marey__buf name;
    union marey__literal number, number_b; /* parsed literals of both sides */
    int64_t sizes[4];                      /* of images */
    struct marey__diff_side side;

    /* An element of the reference as a separate value. */
    struct marey_tensor element;
    struct marey_dumped_value element_value;
    struct marey__diff_side element_side;
};

/* ---- diff_pending.c ---- */

/* The reference's value of that name, or MAREY__DIFF_NONE; and comparing the current value with it. */
static inline size_t marey__diff_find_reference(const struct marey__waiting *w, const char *name)
{
    return marey__diff_find(&w->reference, w->diff->pending.tree, name);
}
MAREY_WARN_UNUSED marey_status marey__diff_compare_waiting(struct marey__waiting *w,
                                                           size_t reference);

/* ---- diff_images.c ---- */

/* Compares a value dumped as images by the pixels it would have, because a file has only those. */
MAREY_WARN_UNUSED marey_status marey__diff_compare_images(struct marey__waiting *w,
                                                          const struct marey_dump_entry *entry);

/* ---- diff_errors.c ---- */

/* Adds the rows of a pair that differs: its largest errors, or one message. Value `ib` of `b` is the reference. */
MAREY_WARN_UNUSED marey_status marey__diff_put_errors(struct marey__waiting *w,
                                                      const struct marey__diff_side *b, size_t ib,
                                                      const struct marey__diff_result *result);
void marey__diff_put_alone(struct marey_diff *diff, const struct marey__diff_result *result);

#endif
