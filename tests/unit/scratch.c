/* Counting what a recording holds, for tests of what writes it. */
#include "scratch.h"

struct count {
    uint32_t kind;
    int64_t n;
};

static kymo_status count_words(void *ctx, const struct kymo_batch *batch)
{
    struct count *count = ctx;
    for (size_t i = 0; i < batch->n;) {
        const uint32_t kind = kymo_word_kind(batch->words[i]);
        count->n += kind == count->kind;
        i += kind == KYMO_KIND_RECORD ? kymo_record_length(batch->words[i]) : 1;
    }
    return KYMO_OK;
}

int64_t scratch_count(const char *path, uint32_t kind)
{
    kymo_recording *recording;
    struct count count = {.kind = kind};
    if (kymo_recording_open(path, &recording) != KYMO_OK)
        return -1;
    for (size_t i = 0; i < kymo_recording_n_processes(recording); i++)
        if (kymo_recording_visit(recording, i, count_words, &count) != KYMO_OK)
            count.n = -1;
    kymo_recording_close(recording);
    return count.n;
}
