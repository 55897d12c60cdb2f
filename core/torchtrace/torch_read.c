/*
 * A trace from its first byte to its last, into memory. The keys around the events are read by tokens, in any order; the
 * events where they lie in the window, as the importer of these files reads them.
 */
#include <inttypes.h>
#include <string.h>

#include "torchtrace/torch_reader.h"

/* ---- events ---- */

/* More bytes; false when there are none, or nobody wants them. */
static bool refill(void *ctx)
{
    struct kymo__torch_reader *reader = ctx;
    const struct kymo__torch_options *options = &reader->options;
    if (options->progress != NULL)
        options->progress(options->progress_ctx, kymo__bytes_share(reader->scan.bytes));
    return !reader->has_failed && kymo__scan_refill(&reader->scan);
}

static bool put(void *ctx)
{
    struct kymo__torch_reader *reader = ctx;
    kymo__torch_put_event(reader);
    return !reader->has_failed;
}

/* Behind the bracket of the list of events: up to the one that closes it. */
static void read_events(struct kymo__torch_reader *reader)
{
    reader->has_list = true;
    kymo__chrome_read_list(&(struct kymo__chrome_list){
        .scan = &reader->scan,
        .event = &reader->event,
        .put = put,
        .refill = refill,
        .ctx = reader,
    });
}

static void read_key(struct kymo__torch_reader *reader)
{
    static const char events[] = "traceEvents";
    struct kymo__scan *scan = &reader->scan;
    if (scan->text_len != sizeof events - 1 || memcmp(scan->text, events, scan->text_len) != 0) {
        kymo__torch_read_key(reader);
        return;
    }
    const enum kymo__scan_token token = kymo__scan_next(scan);
    if (token == KYMO__SCAN_ARRAY)
        read_events(reader);
    else if (token == KYMO__SCAN_OBJECT)
        kymo__scan_skip(scan);
}

static void read_all(struct kymo__torch_reader *reader)
{
    struct kymo__scan *scan = &reader->scan;
    const enum kymo__scan_token first = kymo__scan_next(scan);
    enum kymo__scan_token token;
    if (first == KYMO__SCAN_ARRAY) {
        read_events(reader);
        return;
    }
    while (first == KYMO__SCAN_OBJECT && !reader->has_failed &&
           ((token = kymo__scan_next(scan)) == KYMO__SCAN_KEY || token == KYMO__SCAN_ARRAY_END))
        if (token == KYMO__SCAN_KEY)
            read_key(reader);
}

/* ---- the end ---- */

static kymo_status fail_memory(const char *name)
{
    return kymo__fail(KYMO_ENOMEM, "no memory to read %s", name);
}

/* A sentence when the file is not whole, NULL when it is. False without memory. */
static bool find_damage(struct kymo__torch_reader *reader, char **damage)
{
    const struct kymo__scan *scan = &reader->scan;
    const char *words = kymo__bytes_damage(scan->bytes);
    struct kymo__buf *text = &reader->text;
    *damage = NULL;
    if (words == NULL && scan->mistake == NULL)
        return true;
    text->len = 0;
    if (words != NULL)
        kymo__buf_puts(text, words);
    else
        kymo__buf_printf(text, "%s is %s: %s, at byte %" PRIu64, reader->name,
                         scan->is_cut ? "cut off" : "damaged", scan->mistake,
                         kymo__scan_offset(scan));
    if (text->failed)
        return false;
    *damage = kymo__strndup(text->data, text->len);
    return *damage != NULL;
}

/* Times as Unix times: what they count from may stand behind the events. */
static void add_base(struct kymo__torch_trace *trace)
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

static uint64_t count_rows(const struct kymo__torch_trace *trace)
{
    uint64_t n = trace->n_memory;
    for (size_t i = 0; i < KYMO__TORCH_N_KINDS; i++)
        n += trace->n_by_kind[i];
    return n;
}

static kymo_status finish(struct kymo__torch_reader *reader)
{
    struct kymo__torch_trace *trace = reader->trace;
    const kymo_status status = reader->scan.status;
    if (status == KYMO_EIO || status == KYMO_ENOMEM)
        return status;
    if (reader->has_failed || !find_damage(reader, &trace->damage))
        return fail_memory(reader->name);
    if (count_rows(trace) == 0) {
        if (trace->damage != NULL)
            return kymo__fail(KYMO_EFORMAT, "%s; it has no events before that", trace->damage);
        return kymo__fail(KYMO_EFORMAT,
                          reader->has_list
                              ? "%s has no operators, kernels or allocations: is it a trace of "
                                "torch.profiler?"
                              : "%s is no trace of torch.profiler: it has no list of events "
                                "(traceEvents)",
                          reader->name);
    }
    trace->n_bytes = kymo__bytes_total(reader->scan.bytes);
    add_base(trace);
    return kymo__torch_sort(trace) ? KYMO_OK : fail_memory(reader->name);
}

/* ---- opening ---- */

static struct kymo__torch_trace *create_trace(void)
{
    struct kymo__torch_trace *trace = kymo__calloc(1, sizeof *trace);
    if (trace == NULL)
        return NULL;
    trace->kymo_rank = trace->kymo_world_size = trace->kymo_step = trace->kymo_steps = -1;
    trace->distributed_rank = trace->distributed_world_size = -1;
    if (kymo__torch_strings_init(&trace->strings))
        return trace;
    kymo__torch_free(trace);
    return NULL;
}

kymo_status kymo__torch_read_bytes(const char *name, struct kymo__byte_source *bytes,
                                   const struct kymo__torch_options *options,
                                   struct kymo__torch_trace **out)
{
    struct kymo__torch_reader *reader = kymo__calloc(1, sizeof *reader);
    if (reader == NULL)
        return fail_memory(name);
    kymo_status status = KYMO_ENOMEM;
    reader->name = name;
    if (options != NULL)
        reader->options = *options;
    if (reader->options.kinds == 0)
        reader->options.kinds = KYMO__TORCH_ALL_KINDS;
    if ((reader->trace = create_trace()) == NULL) {
        status = fail_memory(name);
    } else if ((status = kymo__scan_init(&reader->scan, bytes)) == KYMO_OK) {
        read_all(reader);
        status = finish(reader);
        kymo__scan_fini(&reader->scan);
    }
    if (status == KYMO_OK)
        *out = reader->trace;
    else
        kymo__torch_free(reader->trace);
    kymo__free(reader->threads.slots);
    kymo__buf_fini(&reader->text);
    kymo__free(reader);
    return status;
}

kymo_status kymo__torch_read(const char *path, const struct kymo__torch_options *options,
                             struct kymo__torch_trace **out)
{
    kymo__byte_source *bytes;
    KYMO_TRY(kymo__bytes_open(path, &bytes));
    const kymo_status status = kymo__torch_read_bytes(path, bytes, options, out);
    kymo__bytes_close(bytes);
    return status;
}

kymo_status kymo__torch_read_memory(const char *name, const void *data, size_t len,
                                    const struct kymo__torch_options *options,
                                    struct kymo__torch_trace **out)
{
    kymo__byte_source *bytes;
    KYMO_TRY(kymo__bytes_open_memory(data, len, &bytes));
    const kymo_status status = kymo__torch_read_bytes(name, bytes, options, out);
    kymo__bytes_close(bytes);
    return status;
}

void kymo__torch_free(struct kymo__torch_trace *trace)
{
    if (trace == NULL)
        return;
    kymo__free(trace->events);
    kymo__free(trace->memory);
    kymo__free(trace->threads);
    kymo__free(trace->devices);
    kymo__free(trace->roles);
    kymo__free(trace->damage);
    kymo__torch_strings_fini(&trace->strings);
    kymo__free(trace);
}

int64_t kymo__torch_rank(const struct kymo__torch_trace *trace)
{
    if (trace->kymo_rank >= 0)
        return trace->kymo_rank;
    return trace->distributed_rank >= 0 ? trace->distributed_rank : 0;
}
