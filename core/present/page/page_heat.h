/*
 * The heat map of the page: how long each iteration took on each rank.
 *
 *   spans of a process --> a line (page_heat_line.c: one cell for each iteration, or for some in a row)
 *        --> merged into the rows of the map (page_heat.c: a row for each rank, or for some neighbours)
 *        --> medians by column, planes of bytes in a block "heat", the rest in the index (page_heat_out.c)
 *
 * A map has room for some million cells. Where there are more iterations or ranks, a cell stands for several of them and
 * keeps the longest: what is out of the ordinary does not vanish. docs/formats/page.md has the bytes.
 */
#ifndef MAREY_PAGE_HEAT_H
#define MAREY_PAGE_HEAT_H

#include <pthread.h>

#include "present/page/page_internal.h"

enum {
    MAREY__HEAT_SIDE = 4096,     /* rows, and columns, at most */
    MAREY__HEAT_CELLS = 1 << 22, /* of both together */
    MAREY__HEAT_SAMPLED =
        256, /* lines that medians are taken from, where rows stand for several ranks */
    MAREY__HEAT_NAMES = 255, /* that a cell can name; later ones are not told */
};

/* The longest iteration of those that it stands for. */
struct marey__heat_cell {
    float ns;           /* 0: there is none */
    uint32_t iteration; /* its place */
    uint16_t member;    /* the how manieth rank of its row */
    uint8_t name;       /* the range that made it longer than usual on its rank; 0: none did */
    uint8_t extra;      /* by how much: 255 is all of it */
};

/* Cells in order, each of 1 << bin iterations; the first cell begins with iteration first << bin. */
struct marey__heat_row {
    struct marey__heat_cell *cells;
    size_t n, cap;
    uint64_t first;
    uint32_t bin;
};

struct marey__heat {
    size_t n_ranks, group; /* ranks of a row; a power of two, as iterations of a column are */
    size_t max_columns;
    bool has_several; /* more than one rank: several processes may be one that was recorded again */
    uint32_t *ordinals;   /* by process of the page: the how manieth rank it is; UINT32_MAX: none */
    uint32_t *numbers;    /* by ordinal: the process */
    pthread_mutex_t lock; /* guards what follows, while processes are walked */
    struct marey__heat_row *rows;
    size_t n_rows;
    struct marey__heat_row *sampled; /* lines of single ranks, where `group` is more than one */
    size_t n_sampled;
    struct marey__names names; /* number 0 is none; texts lent by the recordings */
};

/* A process while it is walked. */
struct marey__heat_line {
    struct marey__heat *heat;
    struct marey__process_walk *walk;
    uint32_t ordinal;
    struct marey__heat_row row; /* names in it are those of the walk, plus one, in `name_of` */
    uint32_t *name_of;          /* by cell */
    size_t name_of_cap;
    double *sums; /* of earlier iterations, by name */
    double whole_sum;
    uint64_t n_before;
};

/* Make room for the ranks of the page. False without memory. Fini takes NULL. */
MAREY_WARN_UNUSED bool marey__heat_create(struct marey__page *page, struct marey__heat **out);
void marey__heat_destroy(struct marey__heat *heat);

/* A line for process `number` of the page; `*out` stays NULL where it is no rank. False without memory, as the next. */
MAREY_WARN_UNUSED bool marey__heat_line_begin(struct marey__heat *heat,
                                              struct marey__process_walk *walk, size_t number,
                                              struct marey__heat_line **out);
/* An iteration that marey__iteration_stats_take() has taken. */
MAREY_WARN_UNUSED bool marey__heat_line_take(struct marey__heat_line *line,
                                             const struct marey__iteration *iteration);
/* Merge it into the map, from any thread. */
MAREY_WARN_UNUSED bool marey__heat_line_end(struct marey__heat_line *line);
void marey__heat_line_destroy(struct marey__heat_line *line);

/* Make cells stand for twice as many iterations. */
void marey__heat_halve(struct marey__heat_row *row);
/* Make it reach from cell `first` to before `end`, counted from iteration 0; new ones are empty. False without memory. */
MAREY_WARN_UNUSED bool marey__heat_row_cover(struct marey__heat_row *row, uint64_t first,
                                             uint64_t end);

/* Once all are in: write the block, and append what the index says of it; nothing where there is no map worth one. */
MAREY_WARN_UNUSED marey_status marey__page_put_heat_block(struct marey__page *page);
void marey__page_put_heat(const struct marey__page *page, struct marey__buf *json);
bool marey__heat_is_worth_it(const struct marey__heat *heat);

#endif
