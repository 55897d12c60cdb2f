/* Any bytes as a file of some format: a recording that can be summarised and read as samples, or a sentence. */
#include <stdlib.h>
#include <string.h>

#include "analyze/calls.h"
#include "codec/codec_internal.h"
#include "fuzz.h"
#include "import/import_internal.h"
#include <kymo/report.h>

static kymo_status read_bytes(const struct kymo__import_format *format, kymo__byte_source *bytes,
                              struct kymo__log_store *store)
{
    const struct kymo__sink_options options = {
        .store = store, .command = "fuzzed", .source = format->name};
    const struct kymo_import_options wants = {0};
    kymo__sink *sink;
    KYMO_TRY(kymo__sink_create(&options, &sink));
    struct kymo__import import = {.sink = sink, .bytes = bytes, .path = "fuzzed", .options = &wants};
    kymo_status status = format->read(&import);
    if (status == KYMO_OK)
        status = kymo__sink_finish(sink);
    kymo__sink_destroy(sink);
    return status;
}

/* How many calls and nanoseconds the recording has in all. */
static uint64_t summarise(kymo_recording *recording)
{
    kymo_summary *summary;
    uint64_t sum = 0;
    if (kymo_summary_create(&recording, 1, &(struct kymo_summary_options){.n_jobs = 1}, &summary) !=
        KYMO_OK)
        abort();
    const kymo_table *ranges = kymo_summary_table(summary, "ranges");
    for (size_t row = 0; row < kymo_table_n_rows(ranges); row++)
        sum += kymo_table_cell(ranges, row, (size_t)kymo_table_find(ranges, "count")).as.u64 +
               kymo_table_cell(ranges, row, (size_t)kymo_table_find(ranges, "self_ns")).as.u64;
    kymo_summary_destroy(summary);
    return sum;
}

/* The time of its samples; formats that have none give none. */
static uint64_t sample(kymo_recording *recording)
{
    struct kymo__calls calls;
    uint64_t sum = 0;
    if (kymo__calls_read_samples(&calls, &recording, 1, NULL, false) != KYMO_OK)
        abort();
    for (size_t i = 0; i < calls.n_nodes; i++)
        sum += calls.nodes[i].self_ns;
    kymo__calls_fini(&calls);
    return sum;
}

static uint64_t import_and_read(const struct kymo__import_format *format, const uint8_t *data,
                                size_t size, size_t cut)
{
    kymo__byte_source *bytes;
    struct kymo__log_store *store;
    kymo_recording *recording = NULL;
    uint64_t sum = 0;
    if (kymo__bytes_open_memory(data, size, &bytes) != KYMO_OK)
        return 0;
    kymo__bytes_cut(bytes, cut);
    if (kymo__log_store_open_temporary(&store) != KYMO_OK)
        abort();
    const kymo_status status = read_bytes(format, bytes, store);
    KYMO_ASSERT(status == KYMO_OK || (status == KYMO_EFORMAT && kymo_last_error()[0] != '\0'));
    if (status == KYMO_OK && kymo__log_store_read(store, "fuzzed", &recording) == KYMO_OK)
        sum = summarise(recording) + sample(recording);
    kymo_recording_close(recording);
    kymo__log_store_close(store);
    kymo__bytes_close(bytes);
    return sum;
}

void fuzz_import(const struct kymo__import_format *format, const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1); /* of its own, so that a read behind it is seen */
    if (copy == NULL)
        return;
    memcpy(copy, data, size);
    const uint64_t whole = import_and_read(format, copy, size, 0);
    KYMO_ASSERT(import_and_read(format, copy, size, 3) == whole);
    format->looks_like("fuzzed", (const char *)copy, size);
    free(copy);
}
