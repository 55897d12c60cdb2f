/* Any bytes as a file of some format: a recording that can be summarised and read as samples, or a sentence. */
#include <stdlib.h>
#include <string.h>

#include "analyze/calls/internal.h"
#include "codec/internal.h"
#include "fuzz.h"
#include "import/internal.h"
#include <marey/report.h>

static marey_status read_bytes(const struct marey__import_format *format, marey__byte_source *bytes,
                               struct marey__log_store *store)
{
    const struct marey__sink_options options = {
        .store = store, .command = "fuzzed", .source = format->info.name};
    const struct marey_import_options wants = {0};
    marey__sink *sink;
    MAREY_TRY(marey__sink_create(&options, &sink));
    struct marey__import import = {.sink = sink, .bytes = bytes, .path = "fuzzed", .options = &wants};
    marey_status status = format->read(&import);
    if (status == MAREY_OK)
        status = marey__sink_finish(sink);
    marey__sink_destroy(sink);
    return status;
}

/* How many calls and nanoseconds the recording has in all. */
static uint64_t summarise(marey_recording *recording)
{
    marey_report *summary;
    uint64_t sum = 0;
    if (marey_report_create("ranges", &recording, 1, &(struct marey_report_options){.n_jobs = 1},
                            &summary) != MAREY_OK)
        abort();
    const marey_table *ranges = marey_report_table(summary, "ranges");
    for (size_t row = 0; row < marey_table_n_rows(ranges); row++)
        sum += marey_table_cell(ranges, row, (size_t)marey_table_find(ranges, "count")).as.u64 +
               marey_table_cell(ranges, row, (size_t)marey_table_find(ranges, "self_ns")).as.u64;
    marey_report_destroy(summary);
    return sum;
}

/* The time of its samples, if the format has times. */
static uint64_t sample(marey_recording *recording)
{
    struct marey__calls calls;
    uint64_t sum = 0;
    if (marey__calls_read_samples(&calls, &recording, 1, NULL, false) != MAREY_OK)
        abort();
    for (size_t i = 0; i < calls.n_nodes; i++)
        sum += calls.nodes[i].self_ns;
    marey__calls_fini(&calls);
    return sum;
}

static uint64_t import_and_read(const struct marey__import_format *format, const uint8_t *data,
                                size_t size, size_t cut)
{
    marey__byte_source *bytes;
    struct marey__log_store *store;
    marey_recording *recording = NULL;
    uint64_t sum = 0;
    if (marey__bytes_open_memory(data, size, &bytes) != MAREY_OK)
        return 0;
    marey__bytes_cut(bytes, cut);
    if (marey__log_store_open(NULL, &store) != MAREY_OK)
        abort();
    const marey_status status = read_bytes(format, bytes, store);
    MAREY_ASSERT(status == MAREY_OK || (status == MAREY_EFORMAT && marey_last_error()[0] != '\0'));
    if (status == MAREY_OK && marey__log_store_read(store, "fuzzed", &recording) == MAREY_OK)
        sum = summarise(recording) + sample(recording);
    marey_recording_close(recording);
    marey__log_store_close(store);
    marey__bytes_close(bytes);
    return sum;
}

void fuzz_import(const struct marey__import_format *format, const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1); /* separate, to detect reads past its end */
    if (copy == NULL)
        return;
    memcpy(copy, data, size);
    const uint64_t whole = import_and_read(format, copy, size, 0);
    MAREY_ASSERT(import_and_read(format, copy, size, 3) == whole);
    format->looks_like((const char *)copy, size);
    free(copy);
}
