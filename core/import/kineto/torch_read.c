/*
 * A trace from its first byte to its last, into memory. The keys around the events are read by tokens, in any order; the
 * events where they lie in the window, as the importer of these files reads them.
 */
#include <inttypes.h>
#include <string.h>

#include "import/kineto/torch_reader.h"

/* ---- events ---- */

/* More bytes; false when there are none, or nobody wants them. */
static bool refill(void *ctx)
{
    struct marey__torch_reader *reader = ctx;
    const struct marey__torch_options *options = &reader->options;
    if (options->progress != NULL)
        options->progress(options->progress_ctx, marey__bytes_share(reader->scan.bytes));
    return !reader->has_failed && marey__json_refill(&reader->scan);
}

static bool put(void *ctx)
{
    struct marey__torch_reader *reader = ctx;
    marey__torch_put_event(reader);
    return !reader->has_failed;
}

/* Behind the bracket of the list of events: up to the one that closes it. */
static void read_events(struct marey__torch_reader *reader)
{
    reader->has_list = true;
    marey__chrome_read_list(&(struct marey__chrome_list){
        .scan = &reader->scan,
        .event = &reader->event,
        .put = put,
        .refill = refill,
        .ctx = reader,
    });
}

static void read_key(struct marey__torch_reader *reader)
{
    static const char events[] = "traceEvents";
    struct marey__json *scan = &reader->scan;
    if (scan->text_len != sizeof events - 1 || memcmp(scan->text, events, scan->text_len) != 0) {
        marey__torch_read_key(reader);
        return;
    }
    const enum marey__json_token token = marey__json_next(scan);
    if (token == MAREY__JSON_ARRAY)
        read_events(reader);
    else if (token == MAREY__JSON_OBJECT)
        marey__json_skip(scan);
}

static void read_all(struct marey__torch_reader *reader)
{
    struct marey__json *scan = &reader->scan;
    const enum marey__json_token first = marey__json_next(scan);
    enum marey__json_token token;
    if (first == MAREY__JSON_ARRAY) {
        read_events(reader);
        return;
    }
    while (first == MAREY__JSON_OBJECT && !reader->has_failed &&
           ((token = marey__json_next(scan)) == MAREY__JSON_KEY || token == MAREY__JSON_ARRAY_END))
        if (token == MAREY__JSON_KEY)
            read_key(reader);
}

/* ---- the end ---- */

/* A sentence when the file is not whole, NULL when it is. False without memory. */
static bool find_damage(struct marey__torch_reader *reader, char **damage)
{
    const struct marey__json *scan = &reader->scan;
    const char *words = marey__bytes_damage(scan->bytes);
    struct marey__buf *text = &reader->text;
    *damage = NULL;
    if (words == NULL && scan->mistake == NULL)
        return true;
    text->len = 0;
    if (words != NULL)
        marey__buf_puts(text, words);
    else
        marey__buf_printf(text, "%s is %s: %s, at byte %" PRIu64, reader->name,
                          scan->is_cut ? "cut off" : "damaged", scan->mistake,
                          marey__json_offset(scan));
    if (text->failed)
        return false;
    *damage = marey__strndup(text->data, text->len);
    return *damage != NULL;
}

/* Times as Unix times: what they count from may stand behind the events. */
static void add_base(struct marey__torch_trace *trace)
{
    const int64_t base = trace->base_ns;
    if (base <= 0 || base >= INT64_C(1) << 61) {
        trace->base_ns = 0;
        return;
    }
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

static marey_status finish(struct marey__torch_reader *reader)
{
    struct marey__torch_trace *trace = reader->trace;
    const marey_status status = reader->scan.status;
    if (status == MAREY_EIO || status == MAREY_ENOMEM)
        return status;
    MAREY__TRY_MEMORY(!reader->has_failed && find_damage(reader, &trace->damage));
    if (count_rows(trace) == 0) {
        if (trace->damage != NULL)
            return marey__fail(MAREY_EFORMAT, "%s; it has no events before that", trace->damage);
        return marey__fail(MAREY_EFORMAT,
                           reader->has_list
                               ? "%s has no operators, kernels or allocations: is it a trace of "
                                 "torch.profiler?"
                               : "%s is no trace of torch.profiler: it has no list of events "
                                 "(traceEvents)",
                           reader->name);
    }
    trace->n_bytes = marey__bytes_total(reader->scan.bytes);
    add_base(trace);
    return marey__torch_sort(trace) ? MAREY_OK : marey__no_memory();
}

/* ---- opening ---- */

static struct marey__torch_trace *create_trace(void)
{
    struct marey__torch_trace *trace = marey__calloc(1, sizeof *trace);
    if (trace == NULL)
        return NULL;
    trace->marey_rank = trace->marey_world_size = trace->marey_step = trace->marey_steps = -1;
    trace->distributed_rank = trace->distributed_world_size = -1;
    if (marey__torch_strings_init(&trace->strings))
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
    reader->name = name;
    if (options != NULL)
        reader->options = *options;
    if (reader->options.kinds == 0)
        reader->options.kinds = MAREY__TORCH_ALL_KINDS;
    if ((reader->trace = create_trace()) == NULL) {
        status = marey__no_memory();
    } else if ((status = marey__json_init(&reader->scan, bytes)) == MAREY_OK) {
        read_all(reader);
        status = finish(reader);
        marey__json_fini(&reader->scan);
    }
    if (status == MAREY_OK)
        *out = reader->trace;
    else
        marey__torch_free(reader->trace);
    marey__free(reader->threads.slots);
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
    marey__free(trace->events);
    marey__free(trace->memory);
    marey__free(trace->threads);
    marey__free(trace->devices);
    marey__free(trace->roles);
    marey__free(trace->damage);
    marey__torch_strings_fini(&trace->strings);
    marey__free(trace);
}

int64_t marey__torch_rank(const struct marey__torch_trace *trace)
{
    if (trace->marey_rank >= 0)
        return trace->marey_rank;
    return trace->distributed_rank >= 0 ? trace->distributed_rank : 0;
}
