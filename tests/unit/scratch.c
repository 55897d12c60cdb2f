/* Counts the events of a recording, for tests of writers. */
#include "scratch.h"

struct count {
    uint32_t kind;
    int64_t n;
};

static marey_status count_words(void *ctx, const struct marey_batch *batch)
{
    struct count *count = ctx;
    for (size_t i = 0; i < batch->n;) {
        const uint32_t kind = marey_word_kind(batch->words[i]);
        count->n += kind == count->kind;
        i += kind == MAREY_KIND_RECORD ? marey_record_length(batch->words[i]) : 1;
    }
    return MAREY_OK;
}

int64_t scratch_count(const char *path, uint32_t kind)
{
    marey_recording *recording;
    struct count count = {.kind = kind};
    if (marey_recording_open(path, &recording) != MAREY_OK)
        return -1;
    for (size_t i = 0; i < marey_recording_n_processes(recording); i++)
        if (marey_recording_visit(recording, i, count_words, &count) != MAREY_OK)
            count.n = -1;
    marey_recording_close(recording);
    return count.n;
}
