/* The trace as others may use it. */
#include <marey/torch_trace.h>

#include "codec/internal.h"
#include "import/kineto/internal.h"

marey_status marey_torch_trace_open(const char *path, const struct marey_torch_trace_options *options,
                                    marey_torch_trace **out)
{
    const struct marey__torch_options wants = {
        .progress = options != NULL ? options->progress : NULL,
        .progress_ctx = options != NULL ? options->progress_ctx : NULL};
    return marey__torch_read(path, &wants, out);
}

void marey_torch_trace_close(marey_torch_trace *trace)
{
    marey__torch_free(trace);
}

void marey_torch_trace_describe(const marey_torch_trace *trace, struct marey_torch_trace_facts *facts)
{
    *facts = (struct marey_torch_trace_facts){
        .rank = marey__torch_rank(trace),
        .world_size =
            trace->marey_world_size >= 0 ? trace->marey_world_size : trace->header.world_size,
        .n_events = trace->n_events,
        .n_operators = trace->n_by_kind[MAREY__TORCH_OP],
        .n_allocations = trace->n_memory,
        .n_bytes = trace->n_bytes,
        .has_memory = trace->n_memory > 0,
        .has_flops = trace->header.has_flops,
        .is_partial = trace->is_partial,
        .why = marey__torch_text(trace, trace->why, NULL),
        .damage = trace->damage,
    };
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct marey__torch_event *event = &trace->events[i];
        if (marey__torch_on_device(event->kind)) {
            facts->n_device_events++;
            facts->has_device_time |= event->end_ns > event->begin_ns;
        }
        facts->has_shapes |= event->shapes != 0;
        facts->has_stacks |= event->stack != 0;
    }
}

marey_status marey_torch_trace_pack(const char *path, int fd,
                                    const struct marey_torch_trace_options *options)
{
    return marey__gzip_file(path, fd, options != NULL ? options->progress : NULL,
                            options != NULL ? options->progress_ctx : NULL);
}
