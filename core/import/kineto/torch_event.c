/* Converts one event to a row: its kind from the category, its times, and the arguments that analyses use. */
#include "import/kineto/internal.h"

/* Larger times and durations are invalid; sums of a few of them fit in 63 bits. */
static const int64_t MAX_NS = INT64_C(1) << 61;

/* ---- texts ---- */

static void fail_memory(struct marey__torch_reader *reader)
{
    reader->has_failed = true;
}

static marey__torch_id intern(struct marey__torch_reader *reader,
                              const struct marey__chrome_value *value)
{
    const char *text = value->at;
    size_t len = value->len;
    marey__torch_id id = 0;
    if (len == 0 || value->kind == MAREY__CHROME_NONE)
        return 0;
    if (value->has_escapes) {
        reader->text.len = 0;
        marey__json_decode(&reader->text, text, len, 0);
        if (reader->text.failed) {
            fail_memory(reader);
            return 0;
        }
        text = reader->text.data;
        len = reader->text.len;
    }
    if (!marey__torch_intern(reader->trace, text, len, &id))
        fail_memory(reader);
    return id;
}

static int64_t integer_or(const struct marey__chrome_value *value, int64_t otherwise)
{
    int64_t number;
    return marey__chrome_integer(value, &number) ? number : otherwise;
}

/* ---- threads ---- */

/* The event's thread, created if needed; 0 on out of memory. */
static uint32_t thread_of(struct marey__torch_reader *reader)
{
    struct marey__torch_trace *trace = reader->trace;
    const int64_t key[2] = {integer_or(&reader->file.event.pid, INT64_MIN),
                            integer_or(&reader->file.event.tid, INT64_MIN)};
    if (reader->last_thread < trace->n_threads &&
        memcmp(&trace->threads[reader->last_thread], key, sizeof key) == 0)
        return reader->last_thread;
    const uint32_t number = MAREY__INDEX_NUMBER(&reader->threads, trace->strings.seed, trace->threads,
                                                trace->n_threads, trace->threads_cap, key);
    if (number == 0)
        fail_memory(reader);
    return reader->last_thread = number != 0 ? number - 1 : 0;
}

/* ---- kinds ---- */

/* The kind of an event by its category; MAREY__TORCH_N_KINDS if unknown. */
static unsigned kind_of(struct marey__torch_trace *trace, const struct marey__chrome_value *category)
{
    static const struct {
        const char *name;
        uint8_t kind;
    } kinds[] = {
        {"python_function", MAREY__TORCH_PYTHON},
        {"cpu_op", MAREY__TORCH_OP},
        {"cuda_runtime", MAREY__TORCH_RUNTIME},
        {"kernel", MAREY__TORCH_KERNEL},
        {"user_annotation", MAREY__TORCH_ANNOTATION},
        {"gpu_memcpy", MAREY__TORCH_MEMCPY},
        {"gpu_memset", MAREY__TORCH_MEMSET},
        {"gpu_user_annotation", MAREY__TORCH_GPU_ANNOTATION},
        {"cuda_sync", MAREY__TORCH_SYNC},
        {"overhead", MAREY__TORCH_OVERHEAD},
        /* Traces of torch before 1.12. */
        {"Operator", MAREY__TORCH_OP},
        {"Kernel", MAREY__TORCH_KERNEL},
        {"Memcpy", MAREY__TORCH_MEMCPY},
        {"Memset", MAREY__TORCH_MEMSET},
        {"Runtime", MAREY__TORCH_RUNTIME},
    };
    if (category->kind != MAREY__CHROME_STRING)
        return MAREY__TORCH_N_KINDS;
    for (size_t i = 0; i < MAREY__COUNT_OF(kinds); i++)
        if (marey__chrome_is(category, kinds[i].name))
            return kinds[i].kind;
    if (!marey__chrome_ends(category, "_runtime") && !marey__chrome_ends(category, "_driver"))
        return MAREY__TORCH_N_KINDS;
    trace->has_xpu |= marey__chrome_begins(category, "xpu_");
    return MAREY__TORCH_RUNTIME;
}

/* ---- rows ---- */

/* Nanoseconds of a time or duration; false if there is none. */
static bool read_ns(const struct marey__chrome_value *value, int64_t *ns)
{
    return marey__chrome_ns(value, ns) && *ns > -MAX_NS && *ns < MAX_NS;
}

static void take_arguments(struct marey__torch_reader *reader, struct marey__torch_event *row)
{
    struct marey__chrome_args args;
    marey__chrome_parse_args(&args, &reader->file.event.args);
    row->external_id = integer_or(&args.external_id, -1);
    row->correlation = integer_or(&args.correlation, -1);
    row->sequence = integer_or(&args.sequence_number, -1);
    row->forward_thread = integer_or(&args.forward_thread, 0);
    if (reader->options.without_arguments)
        return;
    row->stack = intern(reader, &args.stack);
    row->shapes = intern(reader, &args.input_dims);
    row->types = intern(reader, &args.input_types);
    row->concrete = intern(reader, &args.concrete_inputs);
}

static void put_row(struct marey__torch_reader *reader)
{
    struct marey__torch_trace *trace = reader->trace;
    const struct marey__chrome_event *event = &reader->file.event;
    const unsigned kind = kind_of(trace, &event->category);
    int64_t begin, duration = 0;
    if (kind == MAREY__TORCH_N_KINDS)
        return;
    if (!read_ns(&event->ts, &begin)) {
        trace->n_without_time++;
        return;
    }
    trace->n_by_kind[kind]++;
    if ((reader->options.kinds & MAREY__TORCH_BIT(kind)) == 0)
        return;
    if (!read_ns(&event->dur, &duration) || duration < 0)
        duration = 0;
    struct marey__torch_event row = {.begin_ns = begin,
                                     .end_ns = begin + duration,
                                     .name = intern(reader, &event->name),
                                     .thread = thread_of(reader),
                                     .order = reader->n_events,
                                     .kind = (uint8_t)kind};
    take_arguments(reader, &row);
    if (!MAREY__PUSH(trace->events, trace->n_events, trace->events_cap, row))
        fail_memory(reader);
}

static void put_memory(struct marey__torch_reader *reader)
{
    struct marey__torch_trace *trace = reader->trace;
    struct marey__chrome_args args;
    int64_t ns;
    if (reader->options.without_memory)
        return;
    if (!read_ns(&reader->file.event.ts, &ns)) {
        trace->n_without_time++;
        return;
    }
    marey__chrome_parse_args(&args, &reader->file.event.args);
    const struct marey__torch_memory row = {
        .ns = ns,
        .address = (uint64_t)integer_or(&args.address, 0),
        .bytes = integer_or(&args.signed_bytes, 0),
        .total_allocated = integer_or(&args.allocated, 0),
        .total_reserved = integer_or(&args.reserved, 0),
        .device_type = marey__torch_small(integer_or(&args.device_type, 0)),
        .device_id = marey__torch_small(integer_or(&args.device_id, -1)),
        .stack = reader->options.without_arguments ? 0 : intern(reader, &args.stack),
        .thread = thread_of(reader),
        .order = reader->n_events,
    };
    if (!MAREY__PUSH(trace->memory, trace->n_memory, trace->memory_cap, row))
        fail_memory(reader);
}

static void name_thread(struct marey__torch_reader *reader)
{
    struct marey__chrome_args args;
    if (!marey__chrome_is(&reader->file.event.name, "thread_name"))
        return;
    marey__chrome_parse_args(&args, &reader->file.event.args);
    if (args.name.kind != MAREY__CHROME_STRING)
        return;
    const uint32_t thread = thread_of(reader);
    if (!reader->has_failed)
        reader->trace->threads[thread].name = intern(reader, &args.name);
}

void marey__torch_put_event(struct marey__torch_reader *reader)
{
    const struct marey__chrome_event *event = &reader->file.event;
    const char phase = event->phase.len == 1 ? event->phase.at[0] : '\0';
    if (phase == 'X')
        put_row(reader);
    else if ((phase == 'i' || phase == 'I') && marey__chrome_is(&event->name, "[memory]"))
        put_memory(reader);
    else if (phase == 'M')
        name_thread(reader);
    if (reader->n_events == UINT32_MAX)
        fail_memory(reader);
    else
        reader->n_events++;
}
