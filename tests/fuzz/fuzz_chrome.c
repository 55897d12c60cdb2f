/* Any text as a Kineto or Chrome trace, at once and in small pieces: a readable recording, or an
 * error message. */
#include <stdlib.h>
#include <string.h>

#include "codec/internal.h"
#include "fuzz.h"
#include "import/internal.h"

static marey_status read_bytes(marey__byte_source *bytes, struct marey__log_store *store,
                               bool keeps_arguments)
{
    const struct marey__sink_options options = {
        .store = store, .command = "fuzzed", .source = "kineto"};
    const struct marey_import_options wants = {.keep_arguments = keeps_arguments};
    marey__sink *sink;
    MAREY_TRY(marey__sink_create(&options, &sink));
    struct marey__import import = {.sink = sink, .bytes = bytes, .path = "fuzzed", .options = &wants};
    marey_status status = marey__import_chrome.read(&import);
    MAREY_ASSERT(status != MAREY_OK || sink->n_events > 0);
    if (status == MAREY_OK)
        status = marey__sink_finish(sink);
    marey__sink_destroy(sink);
    return status;
}

static marey_status count_words(void *ctx, const struct marey_batch *batch)
{
    *(uint64_t *)ctx += batch->n;
    return MAREY_OK;
}

/* The number of words in the recording; 0: import failed. */
static uint64_t import_and_read(const uint8_t *data, size_t size, size_t cut, bool keeps_arguments)
{
    marey__byte_source *bytes;
    struct marey__log_store *store;
    marey_recording *recording = NULL;
    uint64_t n_words = 0;
    if (marey__bytes_open_memory(data, size, &bytes) != MAREY_OK)
        return 0;
    marey__bytes_cut(bytes, cut);
    if (marey__log_store_open(NULL, &store) != MAREY_OK)
        abort();
    const marey_status status = read_bytes(bytes, store, keeps_arguments);
    MAREY_ASSERT(status == MAREY_OK || (status == MAREY_EFORMAT && marey_last_error()[0] != '\0'));
    if (status == MAREY_OK && marey__log_store_read(store, "fuzzed", &recording) != MAREY_OK)
        abort();
    for (size_t i = 0; status == MAREY_OK && i < marey_recording_n_processes(recording); i++)
        MAREY_ASSERT(marey_recording_visit(recording, i, count_words, &n_words) == MAREY_OK);
    marey_recording_close(recording);
    marey__log_store_close(store);
    marey__bytes_close(bytes);
    return n_words;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *text = malloc(size > 0 ? size : 1); /* separate, to detect reads past its end */
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    const uint64_t whole = import_and_read(text, size, 0, true);
    MAREY_ASSERT(import_and_read(text, size, 3, true) == whole);
    marey__import_chrome.looks_like((const char *)text, size);
    free(text);
    return 0;
}
