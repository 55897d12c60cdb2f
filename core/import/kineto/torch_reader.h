/* What the files of the reader share while a trace is read. */
#ifndef MAREY_TORCH_READER_H
#define MAREY_TORCH_READER_H

#include "import/kineto/chrome_internal.h"
#include "import/kineto/torchtrace_internal.h"

struct marey__torch_reader {
    struct marey__torch_trace *trace;
    struct marey__torch_options options; /* `kinds` is never 0 */
    struct marey__json scan;
    struct marey__chrome_event event; /* the one being read */
    const char *name;                 /* of the file, in sentences */
    uint32_t n_events;                /* of the file so far: `order` */
    uint32_t last_thread;             /* that was asked for */
    struct marey__sink_index threads;
    struct marey__buf text; /* an unescaped text */
    bool has_list;
    bool has_failed; /* no memory */
};

/* torch_event.c: the event to a row of the trace, where it is of a kind that is wanted. */
void marey__torch_put_event(struct marey__torch_reader *reader);

/* torch_header.c: the value of a key that stands beside the events; `scan` is behind the key, whose text it holds. */
void marey__torch_read_key(struct marey__torch_reader *reader);

#endif
