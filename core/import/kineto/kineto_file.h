/*
 * The reader of Kineto and Chrome traces: JSON objects, one for each event, in an array that may have gigabytes.
 *
 *   kineto_file.c ── the file: the keys around the events, and the loop over the events
 *   chrome_event.c ── one event: where in the window its values are; nothing is copied or converted yet
 *   chrome_args.c ── the arguments that have a meaning here
 *
 * Two consumers take its events: chrome_*.c writes them to the sink of `marey import`, which streams and forgets; torch_*.c
 * keeps them as rows in memory, for operators, memory and artifacts.
 */
#ifndef MAREY_KINETO_FILE_H
#define MAREY_KINETO_FILE_H

#include "codec/codec_internal.h"

/* ---- chrome_event.c ---- */

enum marey__chrome_kind {
    MAREY__CHROME_NONE, /* not there */
    MAREY__CHROME_STRING,
    MAREY__CHROME_NUMBER,
    MAREY__CHROME_NESTED, /* an object or a list */
    MAREY__CHROME_OTHER,  /* true, null, NaN */
};

/* A value as it stands in the window: of a string what is between its quotes. Lent until the window moves. */
struct marey__chrome_value {
    const char *at;
    uint32_t len;
    uint8_t kind;
    bool has_escapes;
};

/* The keys of an event. */
struct marey__chrome_event {
    struct marey__chrome_value phase, category, name, pid, tid, ts, dur, id, id2, bind_id, flow_in,
        flow_out, args;
};

enum marey__chrome_result { MAREY__CHROME_WHOLE, MAREY__CHROME_CUT, MAREY__CHROME_MISTAKE };

/*
 * Read the event whose brace stands at `p`. `*next` is behind it, or where the mistake is that `*mistake` names. CUT: it
 * goes on behind `end`, where what marey__json guarantees must stand.
 */
enum marey__chrome_result marey__chrome_parse(struct marey__chrome_event *event, const char *p,
                                              const char *end, const char **next,
                                              const char **mistake);

/*
 * Behind the brace of an object of a whole event, or behind a value of it: the next key and its value. NULL at the end,
 * else behind the value.
 */
const char *marey__chrome_next_key(const char *p, const char *end, struct marey__chrome_value *key,
                                   struct marey__chrome_value *value);

bool marey__chrome_is(const struct marey__chrome_value *value, const char *text);
bool marey__chrome_begins(const struct marey__chrome_value *value, const char *text);
/* Microseconds as nanoseconds; a number, also one in quotes. False: there is none. */
bool marey__chrome_ns(const struct marey__chrome_value *value, int64_t *ns);
bool marey__chrome_integer(const struct marey__chrome_value *value, int64_t *out);

/* ---- chrome_args.c ---- */

struct marey__chrome_args {
    struct marey__chrome_value device, stream, correlation, bytes;
    struct marey__chrome_value collective, in_elements, out_elements, type, group_size, group_name,
        group_description, group_ranks, sequence, source, destination;
    struct marey__chrome_value input_dims, input_types;
    struct marey__chrome_value name, labels;                                /* of metadata */
    struct marey__chrome_value device_type, device_id, allocated, reserved; /* of [memory] */
    struct marey__chrome_value address, signed_bytes;                       /* of it too */
    struct marey__chrome_value external_id, sequence_number, forward_thread, stack, concrete_inputs;
};

void marey__chrome_parse_args(struct marey__chrome_args *args,
                              const struct marey__chrome_value *text);

/* ---- kineto_file.c ---- */

struct marey__kineto_device {
    int64_t id, total_memory, n_processors; /* -1: unknown */
    char *name;                             /* NULL: unknown */
};

/* The keys around the events. */
struct marey__kineto_header {
    int64_t base_ns;          /* added to the times of the file; 0: unknown */
    int64_t rank, world_size; /* by torch.distributed; -1: unknown */
    char *backend, *host;     /* NULL: unknown */
    struct marey__kineto_device *devices;
    size_t n_devices, devices_cap;
    bool has_shapes, has_stacks, has_memory, has_flops; /* the options of the profiler */
    bool has_list;                                      /* an array of events */
    bool is_kineto; /* some key is Kineto's, so the file has one process, whatever the pids are */
    bool has_overflown; /* viztracer's buffer was full */
};
void marey__kineto_header_fini(struct marey__kineto_header *header);

struct marey__kineto_file {
    const char *name; /* in messages */
    struct marey__json json;
    struct marey__kineto_header *header;
    struct marey__chrome_event event; /* the one that put() takes */
    bool (*put)(void *ctx);           /* false: stop */
    bool (*wants_more)(void *ctx);    /* called before more bytes are read; false: stop */
    bool (*read_key)(void *ctx); /* a key that is not in the header; false: skip it. NULL: skip all */
    void *ctx;
    uint64_t n_no_events; /* entries of the array that are not objects */
};

/*
 * Read all of `bytes`. `name`, `header` (zeroed), `put`, `wants_more`, `read_key` and `ctx` are set. MAREY_EIO, MAREY_ENOMEM;
 * whatever is wrong with the text is in `json`.
 */
MAREY_WARN_UNUSED marey_status marey__kineto_file_read(struct marey__kineto_file *file,
                                                       struct marey__byte_source *bytes);
/* Append the sentence about a file that is cut off or damaged; nothing where it is complete. */
void marey__kineto_file_damage(const struct marey__kineto_file *file, struct marey__buf *out);
void marey__kineto_file_fini(struct marey__kineto_file *file);

#endif
