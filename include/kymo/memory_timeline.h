/*
 * kymo/memory_timeline.h: what the memory of a training step was for, from a trace of torch.profiler (libkymo-tools).
 *
 *     kymo_memory_timeline *timeline;
 *     kymo_memory_timeline_create(trace, &timeline);              a trace of <kymo/torch_trace.h>
 *     kymo_memory_timeline_write(timeline, KYMO_MEMORY_PAGE, "rank 0", fd);
 *     kymo_memory_timeline_destroy(timeline);
 *
 * Each allocation between its two [memory] events gets one of torch's eight categories: by what the callback that made the
 * trace said of its address, else by the phases in which it was made and released. docs/internals/memory-categories.md
 * has the rules.
 */
#ifndef KYMO_MEMORY_TIMELINE_H
#define KYMO_MEMORY_TIMELINE_H

#include <kymo/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In the order of torch's memory timeline, whose files have them by number. */
enum kymo_memory_category {
    KYMO_MEMORY_PARAMETER = 0,
    KYMO_MEMORY_OPTIMIZER_STATE,
    KYMO_MEMORY_INPUT,
    KYMO_MEMORY_TEMPORARY,
    KYMO_MEMORY_ACTIVATION,
    KYMO_MEMORY_GRADIENT,
    KYMO_MEMORY_AUTOGRAD_DETAIL,
    KYMO_MEMORY_UNKNOWN,
};
#define KYMO_MEMORY_N_CATEGORIES 8

/* "parameter", "optimizer_state" and so on; valid for ever. */
KYMO_API const char *kymo_memory_category_name(enum kymo_memory_category category);

struct kymo__torch_trace;
typedef struct kymo__memory_timeline kymo_memory_timeline;

/*
 * Read the memory events of `trace`, which is lent and must outlive the timeline. A trace without memory events, and
 * without roles, gives a timeline without devices. Any thread. KYMO_ENOMEM.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_memory_timeline_create(const struct kymo__torch_trace *trace,
                                                                  kymo_memory_timeline **out);
KYMO_API void kymo_memory_timeline_destroy(kymo_memory_timeline *timeline);
/* How many devices it has memory of, the CPU counted. */
KYMO_API size_t kymo_memory_timeline_n_devices(const kymo_memory_timeline *timeline);

/* Files that are made of it; the first two are of one device: the first GPU, else the CPU. */
enum kymo_memory_file {
    KYMO_MEMORY_JSON,     /* gzip of torch's [times, sizes by category] */
    KYMO_MEMORY_RAW,      /* gzip of torch's list of changes */
    KYMO_MEMORY_PAGE,     /* HTML to look at, which needs nothing besides itself */
    KYMO_MEMORY_SNAPSHOT, /* a pickle for PyTorch's memory viewer */
};
/*
 * Write a whole file into `fd`, which stays open. `title` is of the page, and may be NULL. KYMO_EINVAL for a timeline
 * without devices; KYMO_EIO, KYMO_ENOMEM.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_memory_timeline_write(const kymo_memory_timeline *timeline,
                                                                 enum kymo_memory_file file,
                                                                 const char *title, int fd);

#ifdef __cplusplus
}
#endif

#endif
