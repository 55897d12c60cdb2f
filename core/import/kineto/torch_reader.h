/* What the files of the reader share while a trace is read. */
#ifndef MAREY_TORCH_READER_H
#define MAREY_TORCH_READER_H

#include "import/kineto/torchtrace_internal.h"
#include "import/sink/sink_internal.h"

struct marey__torch_reader {
    struct marey__torch_trace *trace;
    struct marey__torch_options options; /* `kinds` is never 0 */
    struct marey__kineto_file file;
    uint32_t n_events;    /* of the file so far: `order` */
    uint32_t last_thread; /* that was asked for */
    struct marey__index threads;
    struct marey__buf text; /* an unescaped text */
    bool has_failed;        /* no memory */
};

/* torch_event.c: the event to a row of the trace, where it is of a kind that is wanted. */
void marey__torch_put_event(struct marey__torch_reader *reader);

/* torch_header.c: the value of the key that was read, where it is marey's own; else false. `reader` is the reader. */
bool marey__torch_read_key(void *reader);

#endif
