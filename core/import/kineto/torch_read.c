/* A trace from its first byte to its last, into memory. */
#include "import/kineto/internal.h"

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

/* A sentence when the file is not complete, else NULL. False on out of memory. */
static bool find_damage(struct marey__torch_reader *reader, char **damage)
{
    struct marey__buf *text = &reader->text;
    text->len = 0;
    marey__kineto_file_damage(&reader->file, text);
    *damage = text->len > 0 ? marey__strndup(text->data, text->len) : NULL;
    return !text->failed && (text->len == 0 || *damage != NULL);
}

/* Times as Unix times; the key that they count from may follow the events. */
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
    return marey__torch_sort(trace) ? MAREY_OK : marey__no_memory();
}

/* ---- opening ---- */

static struct marey__torch_trace *create_trace(void)
{
    struct marey__torch_trace *trace = marey__calloc(1, sizeof *trace);
    if (trace == NULL)
        return NULL;
    trace->marey_rank = trace->marey_world_size = trace->marey_step = trace->marey_steps = -1;
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
                                                   .read_key = marey__torch_read_key,
                                                   .ctx = reader};
        status = marey__kineto_file_read(&reader->file, bytes);
        if (status == MAREY_OK)
            status = finish(reader);
        marey__kineto_file_fini(&reader->file);
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
    marey__free(trace->events);
    marey__free(trace->memory);
    marey__free(trace->threads);
    marey__kineto_header_fini(&trace->header);
    marey__free(trace->roles);
    marey__free(trace->damage);
    marey__torch_strings_fini(&trace->strings);
    marey__free(trace);
}

int64_t marey__torch_rank(const struct marey__torch_trace *trace)
{
    if (trace->marey_rank >= 0)
        return trace->marey_rank;
    return trace->header.rank >= 0 ? trace->header.rank : 0;
}
