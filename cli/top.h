/* marey top: what is shown, and how it is drawn. */
#ifndef MAREY_CLI_TOP_H
#define MAREY_CLI_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <marey/marey.h>

/* What is looked at, as keys change it. */
struct top_view {
    enum marey_live_by by;
    bool by_total, is_idle, is_paused;
};

/* What a screen shows. */
struct top_screen {
    const struct top_view *view;
    const char *what; /* "pid 4711", "8 processes" */
    struct marey_live_state state;
    struct marey_sampler_counts counts;
    const marey_table *table; /* NULL: nothing yet */
    bool has_color, has_ended;
};

/*
 * The screen as lines, `rows` at most and `columns` wide, in `*text`, which is the caller's to free; `*len` its length. 0 columns: as
 * wide as it is. False without memory.
 */
bool top_draw(const struct top_screen *screen, uint32_t columns, uint32_t rows, char **text,
              size_t *len);

/* Change the view as a key says. False for a key that ends it. */
bool top_key(struct top_view *view, int key);

#endif
