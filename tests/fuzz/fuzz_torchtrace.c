/* Any text as a trace of torch.profiler, at once and in small pieces: ordered rows and their table,
 * or an error message. */
#include <stdlib.h>
#include <string.h>

#include "analyze/operators/internal.h"
#include "codec/internal.h"
#include "fuzz.h"

static struct marey__torch_trace *read_trace(const uint8_t *data, size_t size, size_t cut)
{
    marey__byte_source *bytes;
    struct marey__torch_trace *trace = NULL;
    if (marey__bytes_open_memory(data, size, &bytes) != MAREY_OK)
        return NULL;
    marey__bytes_cut(bytes, cut);
    const marey_status status = marey__torch_read_bytes("fuzzed", bytes, NULL, &trace);
    MAREY_ASSERT(status == MAREY_OK || (status == MAREY_EFORMAT && marey_last_error()[0] != '\0'));
    marey__bytes_close(bytes);
    return trace;
}

static void check_order(const struct marey__torch_trace *trace)
{
    size_t n = 0;
    for (size_t t = 0; t < trace->n_threads; t++)
        n += trace->threads[t].end - trace->threads[t].begin;
    MAREY_ASSERT(n == trace->n_events);
    for (size_t i = 1; i < trace->n_events; i++) {
        const struct marey__torch_event *a = &trace->events[i - 1], *b = &trace->events[i];
        MAREY_ASSERT(a->thread < b->thread || (a->thread == b->thread && a->begin_ns <= b->begin_ns));
    }
}

/* Each row of the trace that is counted is in one row of the table. */
static void check_operators(const struct marey__torch_trace *trace, FILE *out)
{
    marey_report *report;
    if (marey_operators_report(trace, NULL, &report) != MAREY_OK)
        abort();
    const struct marey__operators *const operators = report->data;
    uint64_t n_calls = 0;
    for (size_t i = 0; i < operators->n_rows; i++)
        n_calls += operators->rows[i].n_calls;
    MAREY_ASSERT(n_calls <= trace->n_events + trace->n_memory);
    MAREY_ASSERT(marey_table_n_rows(report->tables[0]) == operators->n_rows);
    if (marey_report_write(report, "text", NULL, out) != MAREY_OK ||
        marey_operators_stacks(report, "self_cpu_time_total", out) != MAREY_OK)
        abort();
    marey_report_destroy(report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *out;
    if (out == NULL && (out = fopen("/dev/null", "w")) == NULL)
        abort();
    uint8_t *text = malloc(size > 0 ? size : 1); /* separate, to detect reads past its end */
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    struct marey__torch_trace *whole = read_trace(text, size, 0), *cut = read_trace(text, size, 3);
    MAREY_ASSERT((whole == NULL) == (cut == NULL));
    if (whole != NULL) {
        MAREY_ASSERT(whole->n_events == cut->n_events && whole->n_memory == cut->n_memory &&
                     whole->n_roles == cut->n_roles && whole->strings.n == cut->strings.n);
        check_order(whole);
        check_operators(whole, out);
    }
    marey__torch_free(whole);
    marey__torch_free(cut);
    free(text);
    return 0;
}
