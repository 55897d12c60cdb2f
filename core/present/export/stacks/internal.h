/*
 * stacks: formats of sums over paths, and of calls and samples.
 *
 *   collapsed.c, flamegraph*.c, stack_export.c   sums by path
 *   speedscope.c, pyspy_out.c                    stacks over time, py-spy's raw format
 *   pstats_out.c, callgrind.c, function_rows.c   calls with callers
 *   torch_stacks_out.c                           torch's stacks
 *
 * Input: events through present/export, sums of analyze/summary, trees of analyze/calls and analyze/samples. Output:
 * one file. Memory grows with paths, not with events. Does not know log files or the formats in other folders.
 */
#ifndef MAREY_PRESENT_EXPORT_STACKS_INTERNAL_H
#define MAREY_PRESENT_EXPORT_STACKS_INTERNAL_H

#include "analyze/calls/internal.h"
#include "analyze/walk/internal.h"
#include "present/draw/internal.h"
#include "present/export/internal.h"

struct marey__stack_export {
    struct marey__stacks stacks;
    struct marey__stacks_options options;
    uint32_t *order; /* nodes, depth first, without those that have no time on either side */
    size_t n;
    bool has_baseline;
};

typedef void marey__clean_name(struct marey__buf *buf, const char *text, size_t len);

/*
 * Read the recordings and the baseline of `x`, and sort the paths; `compare` is called with the export as its context.
 * MAREY_EINVAL if the option `by` is unknown. fini() accepts a partially initialized one.
 */
MAREY_WARN_UNUSED marey_status marey__stack_export_init(struct marey__stack_export *e,
                                                        struct marey__export *x,
                                                        marey_recording *const *recordings,
                                                        size_t n, marey__clean_name *clean,
                                                        marey__sibling_order *compare);
void marey__stack_export_fini(struct marey__stack_export *e);

static inline uint32_t marey__stack_node(const struct marey__stack_export *e,
                                         const struct marey__node *node)
{
    return (uint32_t)(node - e->stacks.tree.nodes);
}

static inline const struct marey__stack_times *
marey__stack_times_of(const struct marey__stack_export *e, enum marey__side side, uint32_t node)
{
    return &e->stacks.times[side][node];
}

static inline const struct marey__name *marey__stack_name(const struct marey__stack_export *e,
                                                          uint32_t node)
{
    return &e->stacks.names.names[e->stacks.tree.nodes[node].name];
}

/* Siblings by the bytes of their names. */
int marey__stack_by_name(const struct marey__node *a, const struct marey__node *b, const void *ctx);

/* A text and the name of a range, escaped for lines of `collapsed`. */
void marey__collapsed_text(struct marey__buf *buf, const char *text, size_t len);
void marey__collapsed_name(struct marey__buf *buf, const char *text, size_t len);

/* ---- function_rows.c ---- */

/* A function as the format identifies it; with its arguments if signatures were recorded. */
struct marey__call_row {
    const char *label, *file;
    uint32_t line;
    struct marey__call_sum sum;
};
struct marey__function_rows {
    struct marey__calls calls;
    struct marey__arena texts;
    struct marey__call_row *rows;
    struct marey__call_edge *edges; /* caller and callee are rows; in the requested order */
    size_t n_rows, n_edges;
};
enum marey__call_rows_order { MAREY__ROWS_BY_CALLEE, MAREY__ROWS_BY_CALLER };
/* On failure fini has run on it. */
MAREY_WARN_UNUSED marey_status marey__function_rows_init(struct marey__function_rows *files,
                                                         marey_recording *const *recordings, size_t n,
                                                         const struct marey_export_options *options,
                                                         enum marey__call_rows_order order);
void marey__function_rows_fini(struct marey__function_rows *files);

/* ==== flamegraph ==== */

/*
 * The flame graph: a chart of stacks, one box per path, as wide as its total time, below its caller's
 * box.
 *
 *   ┌ header ── title, sum, a legend when two recordings are compared ───────────┐     flamegraph.c, flamegraph_diff.c
 *   │ all                                                                        │
 *   │ step                                          │ evaluate           │       │     flamegraph.c
 *   │ forward               │ backward      │                                    │
 *   │ paths found only in the baseline, as a list                                │     flamegraph_diff.c
 *   └ footer ── omitted data ────────────────────────────────────────────────────┘     flamegraph.c
 *
 * The file is an SVG that works without its script: titles of boxes are tooltips. The script (flamegraph.js)
 * adds search, zoom and keyboard control; it reads its data from the boxes.
 */

/* In pixels. The script has the same numbers. */
enum {
    MAREY__FLAME_WIDTH = 1200,
    MAREY__FLAME_PAD = 10,
    MAREY__FLAME_ROW = 18,
    MAREY__FLAME_HEADER = 78,
    MAREY__FLAME_LEGEND = 40,
};
#define MAREY__FLAME_INNER (MAREY__FLAME_WIDTH - 2 * MAREY__FLAME_PAD)
/* Letter width in boxes: monospace fonts of 12 pixels, so that text widths are known. */
#define MAREY__FLAME_LETTER 7.25
/* Narrower boxes are invisible. */
#define MAREY__FLAME_NARROWEST 0.25

struct marey__flame_box {
    uint32_t node; /* 0: the whole */
    uint32_t row;
    uint64_t start_ns, total_ns;
    uint32_t n_narrow; /* not 0: number of siblings too narrow for a box, `node` being the first */
};

struct marey__flame {
    struct marey__stack_export e;
    struct marey__export *x;
    struct marey__buf buf; /* output buffer */
    char *titles[MAREY__N_SIDES];
    struct marey__flame_box *boxes; /* depth first */
    size_t n_boxes, boxes_cap;
    uint32_t n_rows;
    uint64_t n_narrow, narrow_ns; /* boxes not drawn separately, and their total time */
    uint64_t change_steps_ns[3];  /* of self time: limits of the three shades */
    uint32_t *gone;               /* outermost nodes found only in the baseline, heaviest first */
    size_t n_gone, gone_cap;
    double top; /* of the boxes */
};

static inline uint64_t marey__flame_total(const struct marey__flame *f, enum marey__side side)
{
    return f->e.stacks.times[side][0].total_ns;
}

/* A line of text at x, y, in the class `kind`; `text` is escaped here. */
void marey__flame_text(struct marey__flame *f, double x, double y, const char *kind,
                       const struct marey__buf *text);

/* A color that depends only on the name: light enough for black letters. */
uint32_t marey__flame_color(uint64_t hash);
/* `name` followed by `time`, or as much as fits in the width; `name` is valid UTF-8. */
void marey__flame_label(struct marey__buf *label, const struct marey__buf *name, const char *time,
                        double width);
/* How many UTF-8 characters fit in a width in pixels, if `text` may have wide ones. */
size_t marey__flame_room(double width, const char *text, size_t len);

/* ---- flamegraph_diff.c ---- */

/* Find the limits of change and removed paths; false on out of memory. */
MAREY_WARN_UNUSED bool marey__flame_compare(struct marey__flame *f);
/* -3 to 3: much faster to much slower. */
int marey__flame_change_class(const struct marey__flame *f, uint64_t now, uint64_t before);
uint32_t marey__flame_change_color(int class);
void marey__flame_put_legend(struct marey__flame *f, double y);
/* The list of removed paths; returns its height. */
double marey__flame_gone_height(const struct marey__flame *f);
void marey__flame_put_gone(struct marey__flame *f, double y);

#endif
