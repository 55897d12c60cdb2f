/*
 * Exports of sums over paths: what collapsed and flamegraph share. Memory grows with paths, which are as many as the
 * tree of the report has rows, and not with events.
 */
#ifndef MAREY_STACK_EXPORT_H
#define MAREY_STACK_EXPORT_H

#include "analyze/walk/path_times.h"
#include "present/export/export_internal.h"

struct marey__stack_export {
    struct marey__stacks stacks;
    struct marey__stacks_options options;
    uint32_t *order; /* nodes, depth first; those without any time on either side are not there */
    size_t n;
    bool has_baseline;
};

typedef void marey__clean_name(struct marey__buf *buf, const char *text, size_t len);

/*
 * Read the recordings and the baseline of `x`, and put the paths in order; `compare` is called with the export as its
 * context. MAREY_EINVAL when the option `by` is unknown. Fini takes a half-made one, too.
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

/* A text and the name of a range as the lines of `collapsed` can hold them. */
void marey__collapsed_text(struct marey__buf *buf, const char *text, size_t len);
void marey__collapsed_name(struct marey__buf *buf, const char *text, size_t len);

#endif
