/* A torch trace in memory: its strings, the key "marey", the whole read, the public functions. */
#include "import/kineto/internal.h"
#include "record/internal.h"
#include <marey/torch_trace.h>

enum { MAX_STRINGS = 1 << 30, ROLE_FIELDS = 7 };

/* ---- each string is stored once: stacks are most of a trace's bytes, and few of them differ ---- */

bool marey__torch_intern(struct marey__torch_trace *trace, const char *text, size_t len,
                         marey__torch_id *id)
{
    struct marey__names *const strings = &trace->strings;
    const uint32_t number = strings->n < MAX_STRINGS
                                ? marey__names_keep(strings, &trace->header.texts, text, len)
                                : marey__names_find(strings, text, len);
    if (number == MAREY__NO_NAME)
        return false;
    *id = number;
    return true;
}

marey__torch_id marey__torch_find(const struct marey__torch_trace *trace, const char *text, size_t len)
{
    const uint32_t number = marey__names_find(&trace->strings, text, len);
    return number != MAREY__NO_NAME ? number : 0;
}

/* ---- the key "marey" of our own callback: ranks, steps and roles (docs/formats/torch-trace.md) ---- */

static marey__torch_id intern(struct marey__torch_reader *reader)
{
    marey__torch_id id = 0;
    const struct marey__json *json = &reader->file.json;
    if (!marey__torch_intern(reader->trace, json->text, json->text_len, &id))
        reader->has_failed = true;
    return id;
}

static bool find_role(const struct marey__json *json, uint8_t *kind)
{
    static const char *const names[] = {
        [MAREY__TORCH_PARAMETER] = "parameter",
        [MAREY__TORCH_GRADIENT] = "gradient",
        [MAREY__TORCH_OPTIMIZER_STATE] = "optimizer_state",
        [MAREY__TORCH_INPUT] = "input",
    };
    for (uint8_t i = 0; i < MAREY__COUNT_OF(names); i++)
        if (marey__json_is(json, names[i])) {
            *kind = i;
            return true;
        }
    return false;
}

/* ["parameter", address, bytes, device type, device id, Unix ns, "name"]; later versions may append elements. */
static void read_role(struct marey__torch_reader *reader)
{
    struct marey__torch_trace *trace = reader->trace;
    struct marey__torch_role role = {0};
    int64_t numbers[ROLE_FIELDS] = {0};
    bool is_known = false;
    struct marey__json *json = &reader->file.json;
    enum marey__json_token token;
    for (size_t i = 0; marey__json_next_item(json, &token); i++) {
        if (i == 0)
            is_known = token == MAREY__JSON_STRING && find_role(json, &role.kind);
        else if (i == ROLE_FIELDS - 1 && token == MAREY__JSON_STRING)
            role.name = intern(reader);
        else if (i < ROLE_FIELDS)
            numbers[i] = marey__json_integer(json, token, 0);
        marey__json_skip_from(json, token);
    }
    if (!is_known || numbers[1] == 0)
        return;
    role.address = (uint64_t)numbers[1];
    role.bytes = numbers[2];
    role.device_type = marey__torch_small(numbers[3]);
    role.device_id = marey__torch_small(numbers[4]);
    role.ns = numbers[5];
    if (!MAREY__PUSH(trace->roles, trace->n_roles, trace->roles_cap, role))
        reader->has_failed = true;
}

static void read_roles(struct marey__torch_reader *reader)
{
    struct marey__json *json = &reader->file.json;
    enum marey__json_token token;
    if (!marey__json_enter(json, MAREY__JSON_ARRAY))
        return;
    while (!reader->has_failed && marey__json_next_item(json, &token)) {
        if (token == MAREY__JSON_ARRAY)
            read_role(reader);
        else
            marey__json_skip_from(json, token);
    }
}

static void read_why(struct marey__torch_reader *reader)
{
    struct marey__json *json = &reader->file.json;
    const enum marey__json_token token = marey__json_next(json);
    reader->trace->why = token == MAREY__JSON_STRING ? intern(reader) : 0;
    marey__json_skip_from(json, token);
}

static bool read_key(void *ctx)
{
    static const struct marey__kineto_field fields[] = {
        {"rank", MAREY__KINETO_INTEGER, offsetof(struct marey__torch_trace, marey_rank)},
        {"world_size", MAREY__KINETO_INTEGER, offsetof(struct marey__torch_trace, marey_world_size)},
        {"partial", MAREY__KINETO_FLAG, offsetof(struct marey__torch_trace, is_partial)},
        {0},
    };
    struct marey__torch_reader *reader = ctx;
    struct marey__json *json = &reader->file.json;
    struct marey__torch_trace *trace = reader->trace;
    if (!marey__json_is(json, "marey") && !marey__json_is(json, MAREY__OLD_ABOUT))
        return false;
    if (!marey__json_enter(json, MAREY__JSON_OBJECT))
        return true;
    while (marey__json_next_key(json)) {
        if (marey__kineto_read_field(json, fields, &trace->header.texts, trace))
            continue;
        if (marey__json_is(json, "why"))
            read_why(reader);
        else if (marey__json_is(json, "roles"))
            read_roles(reader);
        else
            marey__json_skip(json);
    }
    return true;
}

/* ---- reading ---- */

static bool wants_more(void *ctx)
{
    const struct marey__torch_reader *reader = ctx;
    const struct marey__torch_options *options = &reader->options;
    if (options->progress != NULL)
        options->progress(options->progress_ctx, marey__bytes_share(reader->file.json.bytes));
    return !reader->has_failed;
}

static bool put(void *ctx)
{
    struct marey__torch_reader *reader = ctx;
    marey__torch_put_event(reader);
    return !reader->has_failed;
}

/* Set `*damage` to a sentence if the file is incomplete, else NULL. Returns false on out of memory. */
static bool find_damage(struct marey__torch_reader *reader, char **damage)
{
    struct marey__buf *text = &reader->text;
    text->len = 0;
    marey__kineto_file_damage(&reader->file, text);
    *damage = text->len > 0 ? marey__strndup(text->data, text->len) : NULL;
    return !text->failed && (text->len == 0 || *damage != NULL);
}

/* Convert to Unix times; the key with their base may come after the events. */
static void add_base(struct marey__torch_trace *trace)
{
    const int64_t base = trace->header.base_ns;
    if (base >= INT64_C(1) << 61)
        return;
    for (size_t i = 0; i < trace->n_events; i++) {
        trace->events[i].begin_ns += base;
        trace->events[i].end_ns += base;
    }
    for (size_t i = 0; i < trace->n_memory; i++)
        trace->memory[i].ns += base;
}

static uint64_t count_rows(const struct marey__torch_trace *trace)
{
    uint64_t n = trace->n_memory;
    for (size_t i = 0; i < MAREY__TORCH_N_KINDS; i++)
        n += trace->n_by_kind[i];
    return n;
}

/* ---- order: a trace consists of a few long sorted runs: operators, python functions, kernels ---- */

MAREY__ORDER_RUNS(event_before, struct marey__torch_event,
                  MAREY__UP(thread) MAREY__UP(begin_ns) MAREY__DOWN(end_ns) MAREY__UP(order))

MAREY__ORDER_RUNS(memory_before, struct marey__torch_memory, MAREY__UP(ns) MAREY__UP(order))

/* Sort rows and set where each thread's begin. Returns false on out of memory. */
static bool sort_rows(struct marey__torch_trace *trace)
{
    if (!marey__sort_runs(trace->events, trace->n_events, sizeof *trace->events, event_before) ||
        !marey__sort_runs(trace->memory, trace->n_memory, sizeof *trace->memory, memory_before))
        return false;
    for (size_t i = 0; i < trace->n_events; i++) {
        struct marey__torch_thread *thread = &trace->threads[trace->events[i].thread];
        if (thread->end == 0)
            thread->begin = i;
        thread->end = i + 1;
    }
    return true;
}

static marey_status finish(struct marey__torch_reader *reader)
{
    struct marey__torch_trace *trace = reader->trace;
    MAREY__TRY_MEMORY(!reader->has_failed && find_damage(reader, &trace->damage));
    if (count_rows(trace) == 0) {
        if (trace->damage != NULL)
            return marey__fail(MAREY_EFORMAT, "%s; it has no events before that", trace->damage);
        return marey__fail(MAREY_EFORMAT,
                           trace->header.has_list
                               ? "%s has no operators, kernels or allocations: is it a trace of "
                                 "torch.profiler?"
                               : "%s is not a trace of torch.profiler: it has no list of events "
                                 "(traceEvents)",
                           reader->file.name);
    }
    trace->n_bytes = marey__bytes_total(reader->file.json.bytes);
    add_base(trace);
    return sort_rows(trace) ? MAREY_OK : marey__no_memory();
}

/* ---- opening ---- */

static struct marey__torch_trace *create_trace(void)
{
    struct marey__torch_trace *trace = marey__calloc(1, sizeof *trace);
    if (trace == NULL)
        return NULL;
    trace->marey_rank = trace->marey_world_size = -1;
    trace->strings.seed = marey__identity_random();
    marey__torch_id empty;
    if (marey__torch_intern(trace, "", 0, &empty))
        return trace;
    marey__torch_free(trace);
    return NULL;
}

marey_status marey__torch_read_bytes(const char *name, struct marey__byte_source *bytes,
                                     const struct marey__torch_options *options,
                                     struct marey__torch_trace **out)
{
    struct marey__torch_reader *reader = marey__calloc(1, sizeof *reader);
    MAREY__TRY_MEMORY(reader != NULL);
    marey_status status = MAREY_ENOMEM;
    if (options != NULL)
        reader->options = *options;
    if (reader->options.kinds == 0)
        reader->options.kinds = MAREY__TORCH_ALL_KINDS;
    if ((reader->trace = create_trace()) == NULL) {
        status = marey__no_memory();
    } else {
        reader->file = (struct marey__kineto_file){.name = name,
                                                   .header = &reader->trace->header,
                                                   .put = put,
                                                   .wants_more = wants_more,
                                                   .read_key = read_key,
                                                   .ctx = reader};
        status = marey__kineto_file_read(&reader->file, bytes);
        if (status == MAREY_OK)
            status = finish(reader);
        marey__json_fini(&reader->file.json);
    }
    if (status == MAREY_OK)
        *out = reader->trace;
    else
        marey__torch_free(reader->trace);
    marey__index_fini(&reader->threads);
    marey__buf_fini(&reader->text);
    marey__free(reader);
    return status;
}

marey_status marey__torch_read(const char *path, const struct marey__torch_options *options,
                               struct marey__torch_trace **out)
{
    marey__byte_source *bytes;
    MAREY_TRY(marey__bytes_open(path, &bytes));
    const marey_status status = marey__torch_read_bytes(path, bytes, options, out);
    marey__bytes_close(bytes);
    return status;
}

marey_status marey__torch_read_memory(const char *name, const void *data, size_t len,
                                      const struct marey__torch_options *options,
                                      struct marey__torch_trace **out)
{
    marey__byte_source *bytes;
    MAREY_TRY(marey__bytes_open_memory(data, len, &bytes));
    const marey_status status = marey__torch_read_bytes(name, bytes, options, out);
    marey__bytes_close(bytes);
    return status;
}

void marey__torch_free(struct marey__torch_trace *trace)
{
    if (trace == NULL)
        return;
    MAREY__FREE_ALL(trace->events, trace->memory, trace->threads);
    marey__kineto_header_fini(&trace->header);
    MAREY__FREE_ALL(trace->roles, trace->damage);
    marey__names_fini(&trace->strings);
    marey__free(trace);
}

int64_t marey__torch_rank(const struct marey__torch_trace *trace)
{
    if (trace->marey_rank >= 0)
        return trace->marey_rank;
    return trace->header.rank >= 0 ? trace->header.rank : 0;
}

/* ---- the public functions ---- */

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
