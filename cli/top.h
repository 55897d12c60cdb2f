/* marey top: the screen and its keys. */
#ifndef MAREY_CLI_TOP_H
#define MAREY_CLI_TOP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <marey/marey.h>

/* The view, changed by keys. */
struct top_view {
    enum marey_live_by by;
    bool by_total, is_idle, is_paused;
};
extern const char *const top_view_names[4]; /* by enum marey_live_by */

struct top_screen {
    struct top_view view;
    char title[64]; /* "pid 4711" */
    struct marey_live_state state;
    struct marey_sampler_counts counts;
    marey_table *table; /* the last one; NULL: none yet */
    bool has_color, has_ended;
};

/* Prints the screen, at most `rows` lines, `columns` wide; 0 columns: no limit. False on out of memory. */
bool top_draw(const struct top_screen *screen, uint32_t columns, uint32_t rows, FILE *out);

/* Applies a key to the view. False for a key that quits. */
bool top_key(struct top_view *view, int key);

#endif
