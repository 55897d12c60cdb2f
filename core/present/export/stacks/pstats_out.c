/*
 * pstats: cProfile's format, for the standard library's pstats, snakeviz and gprof2dot. A dict in Python's marshal
 * format, version 2, which every current Python reads:
 *
 *   (file, line, function): (primitive calls, calls, self seconds, total seconds,
 *                            {caller: (calls, primitive calls, self seconds, total seconds)})
 *
 * If signatures were recorded, each has its own row. Samples have no call counts:
 * their calls are 0, for which pstats leaves the time per call empty.
 */
#include "present/export/stacks/internal.h"

struct dump {
    struct marey__function_rows files;
    struct marey__export *x;
    struct marey__buf bytes;
};

/* ---- values in marshal format ---- */

static void put_u32(struct marey__buf *bytes, uint32_t value)
{
    marey__buf_put(bytes, &value, sizeof value); /* little-endian, like all supported machines */
}

static void put_integer(struct marey__buf *bytes, uint64_t value)
{
    uint16_t digits[5];
    uint32_t n = 0;
    if (value <= INT32_MAX) {
        marey__buf_puts(bytes, "i");
        put_u32(bytes, (uint32_t)value);
        return;
    }
    for (; value != 0; value >>= 15)
        digits[n++] = (uint16_t)(value & 0x7fff);
    marey__buf_puts(bytes, "l");
    put_u32(bytes, n);
    marey__buf_put(bytes, digits, n * sizeof digits[0]);
}

static void put_seconds(struct marey__buf *bytes, uint64_t ns)
{
    const double seconds = (double)ns / 1e9;
    marey__buf_puts(bytes, "g");
    marey__buf_put(bytes, &seconds, sizeof seconds);
}

static void put_text(struct marey__buf *bytes, const char *text)
{
    struct marey__buf clean = {0};
    marey__utf8_put(&clean, text, strlen(text));
    marey__buf_puts(bytes, "u");
    put_u32(bytes, (uint32_t)clean.len);
    marey__buf_put(bytes, clean.data, clean.len);
    marey__buf_end(&clean, bytes);
}

static void put_tuple(struct marey__buf *bytes, uint32_t n)
{
    marey__buf_puts(bytes, "(");
    put_u32(bytes, n);
}

/* ---- rows ---- */

static void put_count(struct dump *dump, uint64_t n)
{
    put_integer(&dump->bytes, dump->files.calls.from_samples ? 0 : n);
}

static void put_key(struct dump *dump, uint32_t number)
{
    const struct marey__call_row *const row = &dump->files.rows[number];
    put_tuple(&dump->bytes, 3);
    put_text(&dump->bytes, row->file);
    put_integer(&dump->bytes, row->line);
    put_text(&dump->bytes, row->label);
}

static void put_row(struct dump *dump, uint32_t number, size_t *edge)
{
    const struct marey__function_rows *const files = &dump->files;
    const struct marey__call_sum *const sum = &files->rows[number].sum;
    struct marey__buf *const bytes = &dump->bytes;
    put_key(dump, number);
    put_tuple(bytes, 5);
    put_count(dump, sum->primitive);
    put_count(dump, sum->calls);
    put_seconds(bytes, sum->self_ns);
    put_seconds(bytes, sum->total_ns);
    marey__buf_puts(bytes, "{");
    for (; *edge < files->n_edges && files->edges[*edge].callee == number; ++*edge) {
        const struct marey__call_edge *const from = &files->edges[*edge];
        put_key(dump, from->caller);
        put_tuple(bytes, 4);
        put_count(dump, from->sum.calls);
        put_count(dump, from->sum.primitive);
        put_seconds(bytes, from->sum.self_ns);
        put_seconds(bytes, from->sum.total_ns);
    }
    marey__buf_puts(bytes, "0"); /* the end of a dict */
}

static marey_status put_rows(struct dump *dump)
{
    size_t edge = 0;
    marey__buf_puts(&dump->bytes, "{");
    for (uint32_t i = 0; i < dump->files.n_rows; i++) {
        put_row(dump, i, &edge);
        MAREY__TRY_MEMORY(!dump->bytes.failed);
        marey__out_put(&dump->x->out, dump->bytes.data, dump->bytes.len);
        dump->bytes.len = 0;
    }
    marey__out_puts(&dump->x->out, dump->files.n_rows == 0 ? "{0" : "0");
    return MAREY_OK;
}

static marey_status export_whole(struct marey__export *x, marey_recording *const *recordings, size_t n)
{
    struct dump dump = {.x = x};
    MAREY_TRY(
        marey__function_rows_init(&dump.files, recordings, n, x->options, MAREY__ROWS_BY_CALLEE));
    const marey_status status = put_rows(&dump);
    marey__buf_fini(&dump.bytes);
    marey__function_rows_fini(&dump.files);
    return status;
}

const struct marey__export_format marey__export_pstats = {
    .info =
        {
            .name = "pstats",
            .extensions = ".prof",
            .brief = "functions and callers as cProfile dumps them",
            .details = "Calls of a call profiler; of samples, else of ranges, where there are "
                       "none. Async ranges are left out.",
            .next = "open it with python -m pstats, snakeviz or gprof2dot -f pstats",
            .content = MAREY_EXPORT_FUNCTIONS,
            .is_binary = true,
        },
    .whole = export_whole,
    .reads_profiles = true,
};
