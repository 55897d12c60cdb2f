/* The tree of a profile in the making: see pstats_tree.c. */
#ifndef MAREY_PSTATS_TREE_H
#define MAREY_PSTATS_TREE_H

#include "import/stacks/stack_in.h"

enum { MAREY__PROFILE_DEPTH = 300 };

#define MAREY__NO_EDGE UINT32_MAX
#define MAREY__NO_CIRCLE UINT32_MAX

/* Of a function. */
struct marey__function_state {
    uint32_t first_out, n_out; /* its calls of others, in `out`, the longest first */
    uint32_t circle; /* of functions that call one another; MAREY__NO_CIRCLE: it is in none */
    double root_calls, root_self_ns, root_total_ns; /* from outside of what was profiled */
    double root_share; /* of time in its callees, of which all of these are 1 */
    double below_ns;   /* time in its callees */
    bool is_expanded;
    double expanded_share; /* sum over its paths that are expanded */
    uint32_t n_paths, n_expanded;
    uint32_t roomiest; /* path of a function in a circle that has most time left; 0: none */
    /* Sums over all its paths, and how much of that was dealt out. */
    double calls_weight, self_weight, calls_seen, self_seen;
    uint64_t calls_given, self_given;
};

/* Of a call of one function by another. */
struct marey__edge_state {
    double share;   /* of what the callee calls */
    bool is_inner;  /* both are in the same circle */
    double n_calls; /* of a caller in a circle: sum over the paths that it is on */
    uint64_t run;   /* in which it was last given to a path */
};

/* Of a path, by its number. */
struct marey__profile_step {
    uint32_t edge; /* from its caller; MAREY__NO_EDGE: it is outermost */
    uint32_t depth;
    double share;
    double n_calls, total_ns; /* about; for functions in circles */
    double left_ns;           /* of the latter, for which nothing was found that was called */
    bool is_expanded;
    bool is_spare;     /* outermost though the file has no such call */
    bool is_once_more; /* by a call that was given to a path before: around a circle */
};

struct marey__profile_making {
    struct marey__profile *profile;
    struct marey__paths *paths;
    struct marey__function_state *functions;
    struct marey__edge_state *edges;
    uint32_t *out; /* edges by caller */
    struct marey__profile_step *steps;
    size_t steps_cap;
    struct marey__profile_candidate {
        double ns;
        uint32_t path;
    } * heap; /* the heaviest first */
    size_t n_heap, heap_cap;
    /* pstats_circles.c */
    struct marey__profile_circle {
        uint32_t n_edges;  /* calls by its functions */
        uint32_t n_new;    /* of these, not on any path so far */
        double entries_ns; /* total of all calls of its functions by others */
    } * circles;
    size_t n_circles;
    uint64_t n_runs;
    uint32_t *todo; /* paths */
    size_t n_todo, todo_cap;
    uint64_t n_looks; /* at calls, so far */
};

/* A new path from `parent` on to `function`. 0 without memory. */
uint32_t marey__profile_path(struct marey__profile_making *m, uint32_t parent, uint32_t function,
                             const struct marey__profile_step *step);
/* Make the path a candidate to be followed, if its function calls any. False without memory. */
MAREY_WARN_UNUSED bool marey__profile_candidate(struct marey__profile_making *m, uint32_t path);

/* ---- pstats_circles.c ---- */

/* Find functions that call one another in circles. False without memory. */
MAREY_WARN_UNUSED bool marey__circles_find(struct marey__profile_making *m);
/* Follow the path into the circle that its function is in. With `only_new`, only for calls that no path has. */
MAREY_WARN_UNUSED bool marey__circle_enter(struct marey__profile_making *m, uint32_t path,
                                           bool only_new);
/* Give calls in circles that found no place the least bad one. `*is_any` tells whether there were such. */
MAREY_WARN_UNUSED bool marey__circles_force(struct marey__profile_making *m, bool *is_any);

#endif
