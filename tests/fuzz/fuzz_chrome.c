/* Any text as a Kineto or Chrome trace, in one piece and in small ones: a recording that can be read, or a sentence. */
#include <stdlib.h>
#include <string.h>

#include "codec/codec_internal.h"
#include "fuzz.h"
#include "import/import_internal.h"

static kymo_status read_bytes(kymo__byte_source *bytes, struct kymo__log_store *store,
                              bool keeps_arguments)
{
    const struct kymo__sink_options options = {
        .store = store, .command = "fuzzed", .source = "kineto"};
    const struct kymo_import_options wants = {.keep_arguments = keeps_arguments};
    kymo__sink *sink;
    KYMO_TRY(kymo__sink_create(&options, &sink));
    struct kymo__import import = {.sink = sink, .bytes = bytes, .path = "fuzzed", .options = &wants};
    kymo_status status = kymo__import_chrome.read(&import);
    KYMO_ASSERT(status != KYMO_OK || kymo__sink_n_events(sink) > 0);
    if (status == KYMO_OK)
        status = kymo__sink_finish(sink);
    kymo__sink_destroy(sink);
    return status;
}

static kymo_status count_words(void *ctx, const struct kymo_batch *batch)
{
    *(uint64_t *)ctx += batch->n;
    return KYMO_OK;
}

/* How many words the recording has; 0: none could be made. */
static uint64_t import_and_read(const uint8_t *data, size_t size, size_t cut, bool keeps_arguments)
{
    kymo__byte_source *bytes;
    struct kymo__log_store *store;
    kymo_recording *recording = NULL;
    uint64_t n_words = 0;
    if (kymo__bytes_open_memory(data, size, &bytes) != KYMO_OK)
        return 0;
    kymo__bytes_cut(bytes, cut);
    if (kymo__log_store_open_temporary(&store) != KYMO_OK)
        abort();
    const kymo_status status = read_bytes(bytes, store, keeps_arguments);
    KYMO_ASSERT(status == KYMO_OK || (status == KYMO_EFORMAT && kymo_last_error()[0] != '\0'));
    if (status == KYMO_OK && kymo__log_store_read(store, "fuzzed", &recording) != KYMO_OK)
        abort();
    for (size_t i = 0; status == KYMO_OK && i < kymo_recording_n_processes(recording); i++)
        KYMO_ASSERT(kymo_recording_visit(recording, i, count_words, &n_words) == KYMO_OK);
    kymo_recording_close(recording);
    kymo__log_store_close(store);
    kymo__bytes_close(bytes);
    return n_words;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *text = malloc(size > 0 ? size : 1); /* of its own, so that a read behind it is seen */
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    const uint64_t whole = import_and_read(text, size, 0, true);
    KYMO_ASSERT(import_and_read(text, size, 3, true) == whole);
    kymo__import_chrome.looks_like("fuzzed", (const char *)text, size);
    free(text);
    return 0;
}
