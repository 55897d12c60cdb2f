/*
 * The flame graph: a picture of stacks, one box for each path, as wide as its total time, below the box it was called
 * from.
 *
 *   ┌ header ── what this is, the sum, a legend when two recordings are compared ┐     flamegraph.c, flamegraph_diff.c
 *   │ all                                                                        │
 *   │ step                                          │ evaluate           │       │     flamegraph_boxes.c
 *   │ forward               │ backward      │                                    │
 *   │ paths that only the baseline has, as a list                                │     flamegraph_diff.c
 *   └ footer ── what was left out ───────────────────────────────────────────────┘     flamegraph.c
 *
 * The file is an SVG that is whole without its script: titles of boxes serve as tooltips. The script (flamegraph.js)
 * adds search, zoom and the keyboard; all it knows it reads off the boxes.
 */
#ifndef MAREY_FLAMEGRAPH_INTERNAL_H
#define MAREY_FLAMEGRAPH_INTERNAL_H

#include "present/draw/present_internal.h"
#include "present/export/stacks/stack_export.h"

/* In pixels. The script has the same numbers. */
enum {
    MAREY__FLAME_WIDTH = 1200,
    MAREY__FLAME_PAD = 10,
    MAREY__FLAME_ROW = 18,
    MAREY__FLAME_HEADER = 78,
    MAREY__FLAME_LEGEND = 40,
};
#define MAREY__FLAME_INNER (MAREY__FLAME_WIDTH - 2 * MAREY__FLAME_PAD)
/* Of the letters in boxes: monospace fonts of 12 pixels, so that nobody need ask how wide a text is. */
#define MAREY__FLAME_LETTER 7.25
/* The eye sees nothing of boxes that are narrower. */
#define MAREY__FLAME_NARROWEST 0.25

struct marey__flame_box {
    uint32_t node; /* 0: the whole */
    uint32_t row;
    uint64_t start_ns, total_ns;
    uint32_t n_narrow; /* not 0: so many siblings, each too narrow for a box, `node` the first of them */
};

struct marey__flame {
    struct marey__stack_export e;
    struct marey__export *x;
    struct marey__buf buf; /* what is being written */
    char *titles[MAREY__N_SIDES];
    struct marey__flame_box *boxes; /* depth first */
    size_t n_boxes, boxes_cap;
    uint32_t n_rows;
    uint64_t n_narrow, narrow_ns; /* not drawn by themselves, and their time together */
    uint64_t change_steps_ns[3]; /* of self time: where colours begin, become stronger, are strongest */
    uint32_t *gone;              /* outermost nodes that only the baseline has, heaviest first */
    size_t n_gone, gone_cap;
    double top; /* of the boxes */
};

static inline uint64_t marey__flame_total(const struct marey__flame *f, enum marey__side side)
{
    return f->e.stacks.times[side][0].total_ns;
}

/* Hand what is in f->buf to the file. */
void marey__flame_flush(struct marey__flame *f);
/* A line of text at x, y, in the class `kind`; `text` is escaped here. */
void marey__flame_text(struct marey__flame *f, double x, double y, const char *kind,
                       const struct marey__buf *text);
/* "+1.20 ms", "-300 us", "no change". */
void marey__flame_change(struct marey__buf *buf, uint64_t now, uint64_t before);

/* ---- flamegraph_boxes.c ---- */

int marey__flame_heaviest_first(const struct marey__node *a, const struct marey__node *b,
                                const void *ctx);
/* Where each box goes; false without memory. */
MAREY_WARN_UNUSED bool marey__flame_layout(struct marey__flame *f);
void marey__flame_put_boxes(struct marey__flame *f);
/* A colour that is the same for a name wherever it comes: light enough for black letters. */
uint32_t marey__flame_color(uint64_t hash);
/* `name` and behind it `time`, or what a box of that width has room for; `name` is valid UTF-8. */
void marey__flame_label(struct marey__buf *label, const struct marey__buf *name, const char *time,
                        double width);
/* How many letters of UTF-8 a width in pixels takes, when `text` may have wide ones. */
size_t marey__flame_room(double width, const char *text, size_t len);

/* ---- flamegraph_diff.c ---- */

/* Find the steps of change and the paths that are gone; false without memory. */
MAREY_WARN_UNUSED bool marey__flame_compare(struct marey__flame *f);
/* -3 to 3: much faster to much slower. */
int marey__flame_change_class(const struct marey__flame *f, uint64_t now, uint64_t before);
uint32_t marey__flame_change_color(int class);
void marey__flame_put_legend(struct marey__flame *f, double y);
/* The list of what is gone; returns its height. */
double marey__flame_gone_height(const struct marey__flame *f);
void marey__flame_put_gone(struct marey__flame *f, double y);

#endif
