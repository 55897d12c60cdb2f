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
#ifndef KYMO_FLAMEGRAPH_INTERNAL_H
#define KYMO_FLAMEGRAPH_INTERNAL_H

#include "present/present_internal.h"
#include "present/stack_export.h"

/* In pixels. The script has the same numbers. */
enum {
    KYMO__FLAME_WIDTH = 1200,
    KYMO__FLAME_PAD = 10,
    KYMO__FLAME_ROW = 18,
    KYMO__FLAME_HEADER = 78,
    KYMO__FLAME_LEGEND = 40,
};
#define KYMO__FLAME_INNER (KYMO__FLAME_WIDTH - 2 * KYMO__FLAME_PAD)
/* Of the letters in boxes: monospace fonts of 12 pixels, so that nobody need ask how wide a text is. */
#define KYMO__FLAME_LETTER 7.25
/* The eye sees nothing of boxes that are narrower. */
#define KYMO__FLAME_NARROWEST 0.25

struct kymo__flame_box {
    uint32_t node; /* 0: the whole */
    uint32_t row;
    uint64_t start_ns, total_ns;
    uint32_t n_narrow; /* not 0: so many siblings, each too narrow for a box, `node` the first of them */
};

struct kymo__flame {
    struct kymo__stack_export e;
    struct kymo__export *x;
    struct kymo__buf buf; /* what is being written */
    char *titles[KYMO__N_SIDES];
    struct kymo__flame_box *boxes; /* depth first */
    size_t n_boxes, boxes_cap;
    uint32_t n_rows;
    uint64_t n_narrow, narrow_ns; /* not drawn by themselves, and their time together */
    uint64_t change_steps_ns[3]; /* of self time: where colours begin, become stronger, are strongest */
    uint32_t *gone;              /* outermost nodes that only the baseline has, heaviest first */
    size_t n_gone, gone_cap;
    double top; /* of the boxes */
};

static inline uint64_t kymo__flame_total(const struct kymo__flame *f, enum kymo__side side)
{
    return f->e.stacks.times[side][0].total_ns;
}

/* Hand what is in f->buf to the file. */
void kymo__flame_flush(struct kymo__flame *f);
/* A line of text at x, y, in the class `kind`; `text` is escaped here. */
void kymo__flame_text(struct kymo__flame *f, double x, double y, const char *kind,
                      const struct kymo__buf *text);
/* "+1.20 ms", "-300 us", "no change". */
void kymo__flame_change(struct kymo__buf *buf, uint64_t now, uint64_t before);

/* ---- flamegraph_boxes.c ---- */

int kymo__flame_heaviest_first(const struct kymo__node *a, const struct kymo__node *b,
                               const void *ctx);
/* Where each box goes; false without memory. */
KYMO_WARN_UNUSED bool kymo__flame_layout(struct kymo__flame *f);
void kymo__flame_put_boxes(struct kymo__flame *f);
/* A colour that is the same for a name wherever it comes: light enough for black letters. */
uint32_t kymo__flame_color(uint64_t hash);
/* `name` and behind it `time`, or what a box of that width has room for; `name` is valid UTF-8. */
void kymo__flame_label(struct kymo__buf *label, const struct kymo__buf *name, const char *time,
                       double width);
/* How many letters of UTF-8 a width in pixels takes, when `text` may have wide ones. */
size_t kymo__flame_room(double width, const char *text, size_t len);

/* ---- flamegraph_diff.c ---- */

/* Find the steps of change and the paths that are gone; false without memory. */
KYMO_WARN_UNUSED bool kymo__flame_compare(struct kymo__flame *f);
/* -3 to 3: much faster to much slower. */
int kymo__flame_change_class(const struct kymo__flame *f, uint64_t now, uint64_t before);
uint32_t kymo__flame_change_color(int class);
void kymo__flame_put_legend(struct kymo__flame *f, double y);
/* The list of what is gone; returns its height. */
double kymo__flame_gone_height(const struct kymo__flame *f);
void kymo__flame_put_gone(struct kymo__flame *f, double y);

#endif
