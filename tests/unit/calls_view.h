/* Blocks CALLS of a file, read by the page of the format rather than by the library. */
#ifndef MAREY_TEST_CALLS_VIEW_H
#define MAREY_TEST_CALLS_VIEW_H

#include "scratch.h"

enum { VIEW_MOST = 4096 };

struct calls_view {
    struct view_node {
        uint64_t thread, parent, function, signature; /* thread 0: not there */
        uint64_t calls, resumes, self, total, max;
    } nodes[VIEW_MOST];
    uint64_t n_nodes, n_functions, n_signatures, n_threads, n_blocks, n_ends;
    uint64_t other, widened;
    char names[64][64], texts[64][128];
};

/* Read a file, and add to `view`; fails the test where a definition is missing or a byte is not as it should be. */
void calls_view_read(struct calls_view *view, const char *path);
/* The log of a recording with one process. */
void calls_view_recording(struct calls_view *view, const char *recording);
/* The number of the node for a path of functions, 0 for none. */
uint64_t calls_view_find(const struct calls_view *view, const char *path);

#endif
