/*
 * marey/memory_timeline.h: memory of a training step by category, from a torch.profiler trace (libmarey-tools).
 *
 *     marey_memory_timeline *timeline;
 *     marey_memory_timeline_create(trace, &timeline);             a trace of <marey/torch_trace.h>
 *     marey_memory_timeline_write(timeline, MAREY_MEMORY_PAGE, "rank 0", fd);
 *     marey_memory_timeline_destroy(timeline);
 *
 * Each allocation, between its two [memory] events, gets one of torch's eight categories: the role that marey's callback
 * recorded for its address, else by the phases in which it was allocated and released. docs/internals/memory-categories.md
 * has the rules.
 */
#ifndef MAREY_MEMORY_TIMELINE_H
#define MAREY_MEMORY_TIMELINE_H

#include <marey/base.h>

MAREY_BEGIN_C

/* Numbers as in the files of torch's memory timeline. */
enum marey_memory_category {
    MAREY_MEMORY_PARAMETER = 0,
    MAREY_MEMORY_OPTIMIZER_STATE,
    MAREY_MEMORY_INPUT,
    MAREY_MEMORY_TEMPORARY,
    MAREY_MEMORY_ACTIVATION,
    MAREY_MEMORY_GRADIENT,
    MAREY_MEMORY_AUTOGRAD_DETAIL,
    MAREY_MEMORY_UNKNOWN,
};
#define MAREY_MEMORY_N_CATEGORIES 8

/* "parameter", "optimizer_state" and so on; static. */
MAREY_API const char *marey_memory_category_name(enum marey_memory_category category);

struct marey__torch_trace;
typedef struct marey__memory_timeline marey_memory_timeline;

/*
 * Read the memory events of `trace`, which is lent and must outlive the timeline. A trace without memory events
 * and roles has a timeline without devices. Any thread. MAREY_ENOMEM.
 */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_memory_timeline_create(const struct marey__torch_trace *trace, marey_memory_timeline **out);
MAREY_API void marey_memory_timeline_destroy(marey_memory_timeline *timeline);
/* Number of devices with memory, including the CPU. */
MAREY_API size_t marey_memory_timeline_n_devices(const marey_memory_timeline *timeline);

/* Output files. The first two cover one device: the first GPU, else the CPU. */
enum marey_memory_file {
    MAREY_MEMORY_JSON,     /* gzip of torch's [times, sizes by category] */
    MAREY_MEMORY_RAW,      /* gzip of torch's list of changes */
    MAREY_MEMORY_PAGE,     /* a self-contained HTML page */
    MAREY_MEMORY_SNAPSHOT, /* a pickle for PyTorch's memory viewer */
};
/*
 * Write a complete file to `fd`, which stays open. `title` is the title of the page, or NULL. MAREY_EINVAL: the timeline has
 * no devices. MAREY_EIO, MAREY_ENOMEM.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_memory_timeline_write(
    const marey_memory_timeline *timeline, enum marey_memory_file file, const char *title, int fd);

MAREY_END_C

#endif
