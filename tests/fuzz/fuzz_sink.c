/*
 * Any events in any order into the sink, with little memory, so that some are sorted on disk; then
 * the logs are read. Every range must have both its ends, and time must never decrease in a lane.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "import/internal.h"
#include "read/internal.h"
#include <marey/report.h>

struct bytes {
    const uint8_t *at;
    size_t n;
};

static uint64_t take(struct bytes *bytes, size_t n)
{
    uint64_t value = 0;
    n = MAREY__MIN(n, bytes->n);
    if (n != 0)
        memcpy(&value, bytes->at, n);
    bytes->at += n;
    bytes->n -= n;
    return value;
}

/* Times close to each other, and occasionally arbitrary ones. */
static uint64_t take_time(struct bytes *bytes)
{
    const uint64_t how = take(bytes, 1);
    return how < 200   ? how % 16
           : how < 240 ? take(bytes, 2)
           : how < 250 ? take(bytes, 6)
                       : take(bytes, 8);
}

static void put_event(marey__sink *sink, struct bytes *bytes)
{
    static const struct marey_communication communication = {.group = 2, .peer = -1};
    const uint64_t head = take(bytes, 3);
    marey__sink_process *process = marey__sink_process_get(sink, head >> 22);
    if (process == NULL)
        return;
    const char *name = (const char *)bytes->at;
    const size_t len = MAREY__MIN(bytes->n, (size_t)(head >> 5 & 3));
    struct marey__sink_event event = {
        .kind = (enum marey__sink_kind)(head % 10),
        .lane = head >> 7 & 1 ? marey__sink_stream(process, (int32_t)(head >> 8 & 1), head >> 9 & 1)
                              : marey__sink_thread(process, (int64_t)(head >> 8 & 3)),
        .site = marey__sink_site(process, &(struct marey__sink_site){.name = name, .name_len = len}),
        .ns = take_time(bytes),
        .duration_ns = take_time(bytes),
        .correlation = head >> 10 & 3,
        .id = take_time(bytes),
        .repeat = head >> 12 & 3,
        .work_kind = (enum marey_work_kind)(head >> 14 & 7),
        .flow_end = (enum marey_flow_end)(head >> 17 & 3),
        .communication = head >> 19 & 1 ? &communication : NULL,
        .arguments = head >> 20 & 1 ? name : NULL,
        .arguments_len = len,
    };
    if (event.kind == MAREY__SINK_END && (head >> 21 & 1))
        event.site = 0;
    marey__sink_put(process, &event);
}

struct check {
    uint64_t last_ns[MAREY__MAX_LANES / 64];
    uint64_t n_begins, n_ends;
};

static marey_status check_batch(void *ctx, const struct marey_batch *batch)
{
    struct check *check = ctx;
    const uint32_t lane = batch->lane->lane;
    for (size_t i = 0; i < batch->n;) {
        const uint64_t word = batch->words[i];
        const bool is_record = marey_word_kind(word) == MAREY_KIND_RECORD;
        if (lane < MAREY__COUNT_OF(check->last_ns)) {
            if (marey_batch_ns(batch, word) < check->last_ns[lane])
                abort();
            check->last_ns[lane] = marey_batch_ns(batch, word);
        }
        check->n_begins += marey_word_kind(word) == MAREY_KIND_BEGIN;
        check->n_ends += marey_word_kind(word) == MAREY_KIND_END ||
                         (is_record && marey_record_type_of(word) == MAREY_RECORD_END_OF);
        i += is_record ? marey_record_length(word) : 1;
    }
    return batch->gap ? MAREY_EFORMAT : MAREY_OK;
}

static void read_back(marey_recording *recording)
{
    marey_report *summary = NULL;
    if (marey_recording_warning(recording, 0) != NULL)
        abort();
    for (size_t p = 0; p < marey_recording_n_processes(recording); p++) {
        struct check *check = calloc(1, sizeof *check);
        if (check == NULL || marey_recording_visit(recording, p, check_batch, check) != MAREY_OK ||
            check->n_ends > check->n_begins)
            abort();
        free(check);
    }
    if (marey_report_create("ranges", &recording, 1, NULL, &summary) != MAREY_OK)
        abort();
    marey_report_destroy(summary);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes bytes = {data, size};
    struct marey__log_store *store = NULL;
    marey__sink *sink = NULL;
    marey_recording *recording = NULL;
    if (marey__log_store_open(NULL, &store) != MAREY_OK)
        return 0;
    const struct marey__sink_options options = {.store = store,
                                                .memory_bytes = 500 + 100 * take(&bytes, 1)};
    if (marey__sink_create(&options, &sink) == MAREY_OK) {
        while (bytes.n != 0)
            put_event(sink, &bytes);
        if (marey__sink_finish(sink) != MAREY_OK ||
            marey__log_store_read(store, "sink", &recording) != MAREY_OK)
            abort();
        read_back(recording);
    }
    marey_recording_close(recording);
    marey__sink_destroy(sink);
    marey__log_store_close(store);
    return 0;
}
