/*
 * Exports of sums over paths: what collapsed and flamegraph share. Memory grows with paths, which are as many as the
 * tree of the report has rows, and not with events.
 */
#ifndef KYMO_STACK_EXPORT_H
#define KYMO_STACK_EXPORT_H

#include "analyze/path_times.h"
#include "present/export_internal.h"

struct kymo__stack_export {
    struct kymo__stacks stacks;
    struct kymo__stacks_options options;
    uint32_t *order; /* nodes, depth first; those without any time on either side are not there */
    size_t n;
    bool has_baseline;
};

typedef void kymo__clean_name(struct kymo__buf *buf, const char *text, size_t len);

/*
 * Read the recordings and the baseline of `x`, and put the paths in order; `compare` is called with the export as its
 * context. KYMO_EINVAL when the option `by` is unknown. Fini takes a half-made one, too.
 */
KYMO_WARN_UNUSED kymo_status kymo__stack_export_init(struct kymo__stack_export *e,
                                                     struct kymo__export *x,
                                                     kymo_recording *const *recordings, size_t n,
                                                     kymo__clean_name *clean,
                                                     kymo__sibling_order *compare);
void kymo__stack_export_fini(struct kymo__stack_export *e);

static inline uint32_t kymo__stack_node(const struct kymo__stack_export *e,
                                        const struct kymo__node *node)
{
    return (uint32_t)(node - e->stacks.tree.nodes);
}

static inline const struct kymo__stack_times *
kymo__stack_times_of(const struct kymo__stack_export *e, enum kymo__side side, uint32_t node)
{
    return &e->stacks.times[side][node];
}

static inline const struct kymo__name *kymo__stack_name(const struct kymo__stack_export *e,
                                                        uint32_t node)
{
    return &e->stacks.names.names[e->stacks.tree.nodes[node].name];
}

/* Siblings by the bytes of their names. */
int kymo__stack_by_name(const struct kymo__node *a, const struct kymo__node *b, const void *ctx);

/* A text and the name of a range as the lines of `collapsed` can hold them. */
void kymo__collapsed_text(struct kymo__buf *buf, const char *text, size_t len);
void kymo__collapsed_name(struct kymo__buf *buf, const char *text, size_t len);

#endif
