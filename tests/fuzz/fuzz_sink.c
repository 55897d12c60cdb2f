/*
 * Any events in any order into the sink, with little memory, so that some are sorted on disk; then the logs are read. Every
 * range must be there with both its ends, and time must never run backwards in a lane.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "import/import_internal.h"
#include "read/read_internal.h"
#include <kymo/report.h>

struct bytes {
    const uint8_t *at;
    size_t n;
};

static uint64_t take(struct bytes *bytes, size_t n)
{
    uint64_t value = 0;
    n = KYMO__MIN(n, bytes->n);
    if (n != 0)
        memcpy(&value, bytes->at, n);
    bytes->at += n;
    bytes->n -= n;
    return value;
}

/* Times near one another, and now and then any at all. */
static uint64_t take_time(struct bytes *bytes)
{
    const uint64_t how = take(bytes, 1);
    return how < 200   ? how % 16
           : how < 240 ? take(bytes, 2)
           : how < 250 ? take(bytes, 6)
                       : take(bytes, 8);
}

static void put_event(kymo__sink *sink, struct bytes *bytes)
{
    static const struct kymo_communication communication = {.group = 2, .peer = -1};
    const uint64_t head = take(bytes, 3);
    kymo__sink_process *process = kymo__sink_process_get(sink, head >> 22);
    if (process == NULL)
        return;
    const char *name = (const char *)bytes->at;
    const size_t len = KYMO__MIN(bytes->n, (size_t)(head >> 5 & 3));
    struct kymo__sink_event event = {
        .kind = (enum kymo__sink_kind)(head % 10),
        .lane = head >> 7 & 1 ? kymo__sink_stream(process, (int32_t)(head >> 8 & 1), head >> 9 & 1)
                              : kymo__sink_thread(process, (int64_t)(head >> 8 & 3)),
        .site = kymo__sink_site(process, &(struct kymo__sink_site){.name = name, .name_len = len}),
        .ns = take_time(bytes),
        .duration_ns = take_time(bytes),
        .correlation = head >> 10 & 3,
        .id = take_time(bytes),
        .repeat = head >> 12 & 3,
        .work_kind = (enum kymo_work_kind)(head >> 14 & 7),
        .flow_end = (enum kymo_flow_end)(head >> 17 & 3),
        .communication = head >> 19 & 1 ? &communication : NULL,
        .arguments = head >> 20 & 1 ? name : NULL,
        .arguments_len = len,
    };
    if (event.kind == KYMO__SINK_END && (head >> 21 & 1))
        event.site = 0;
    kymo__sink_put(process, &event);
}

struct check {
    uint64_t last_ns[KYMO__MAX_LANES / 64];
    uint64_t n_begins, n_ends;
};

static kymo_status check_batch(void *ctx, const struct kymo_batch *batch)
{
    struct check *check = ctx;
    const uint32_t lane = batch->lane->lane;
    for (size_t i = 0; i < batch->n;) {
        const uint64_t word = batch->words[i];
        const bool is_record = kymo_word_kind(word) == KYMO_KIND_RECORD;
        if (lane < KYMO__COUNT_OF(check->last_ns)) {
            if (kymo_batch_ns(batch, word) < check->last_ns[lane])
                abort();
            check->last_ns[lane] = kymo_batch_ns(batch, word);
        }
        check->n_begins += kymo_word_kind(word) == KYMO_KIND_BEGIN;
        check->n_ends += kymo_word_kind(word) == KYMO_KIND_END ||
                         (is_record && kymo_record_type_of(word) == KYMO_RECORD_END_OF);
        i += is_record ? kymo_record_length(word) : 1;
    }
    return batch->gap ? KYMO_EFORMAT : KYMO_OK;
}

static void read_back(kymo_recording *recording)
{
    kymo_summary *summary = NULL;
    if (kymo_recording_warning(recording, 0) != NULL)
        abort();
    for (size_t p = 0; p < kymo_recording_n_processes(recording); p++) {
        struct check *check = calloc(1, sizeof *check);
        if (check == NULL || kymo_recording_visit(recording, p, check_batch, check) != KYMO_OK ||
            check->n_ends > check->n_begins)
            abort();
        free(check);
    }
    if (kymo_summary_create(&recording, 1, NULL, &summary) != KYMO_OK)
        abort();
    kymo_summary_destroy(summary);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes bytes = {data, size};
    struct kymo__log_store *store = NULL;
    kymo__sink *sink = NULL;
    kymo_recording *recording = NULL;
    if (kymo__log_store_open_temporary(&store) != KYMO_OK)
        return 0;
    const struct kymo__sink_options options = {.store = store,
                                               .memory_bytes = 500 + 100 * take(&bytes, 1)};
    if (kymo__sink_create(&options, &sink) == KYMO_OK) {
        while (bytes.n != 0)
            put_event(sink, &bytes);
        if (kymo__sink_finish(sink) != KYMO_OK ||
            kymo__log_store_read(store, "sink", &recording) != KYMO_OK)
            abort();
        read_back(recording);
    }
    kymo_recording_close(recording);
    kymo__sink_destroy(sink);
    kymo__log_store_close(store);
    return 0;
}
