/*
 * Files of austin: what its two forms have in common.
 *
 *   austin_text.c ── P12;T0:13;train.py:main:3;train.py:step:9 10077        a line for each sample
 *   austin_mojo.c ── the same as bytes: strings and frames are defined once and then meant by their keys
 *   austin_in.c ── samples to ranges: which come when, on which thread
 *
 * A file is read twice: names that stand for two functions are known only when all frames are.
 */
#ifndef KYMO_AUSTIN_IN_H
#define KYMO_AUSTIN_IN_H

#include "codec/codec_internal.h"
#include "import/stack_in.h"

/* A thread as austin saw it once. Frames are the outermost first; without any it was not in Python. */
struct kymo__austin_sample {
    int64_t pid, tid;
    uint32_t interpreter;
    uint64_t time_us;
    int64_t bytes; /* that the process grew by since the last one */
    bool is_idle;
    const uint32_t *frames; /* lent */
    size_t n_frames;
};

/* Who is told what a file has; both return false to stop, for want of memory. */
struct kymo__austin_visitor {
    bool (*meta)(void *ctx, struct kymo__text key, struct kymo__text value);
    bool (*sample)(void *ctx, const struct kymo__austin_sample *sample);
    void *ctx;
};

/* What is wrong with a file. */
struct kymo__austin_mistakes {
    uint64_t n_bad, first_bad; /* lines that are no samples; frames that were never defined */
    const char *ends; /* why a file of bytes cannot be read on; NULL: it can. Lent for ever */
    uint64_t ends_at;
};

/*
 * Read all of `bytes`; frames are made in `frames`. KYMO_EIO, KYMO_ENOMEM; whatever else is wrong with the file is in
 * `mistakes`.
 */
KYMO_WARN_UNUSED kymo_status kymo__austin_text(kymo__byte_source *bytes, struct kymo__frames *frames,
                                               const struct kymo__austin_visitor *visitor,
                                               struct kymo__austin_mistakes *mistakes);
KYMO_WARN_UNUSED kymo_status kymo__austin_mojo(kymo__byte_source *bytes, struct kymo__frames *frames,
                                               const struct kymo__austin_visitor *visitor,
                                               struct kymo__austin_mistakes *mistakes);
/* `P12;T0:13`, with or without the interpreter; what follows is left in `*rest`. False for other lines. */
bool kymo__austin_head(struct kymo__text line, struct kymo__austin_sample *sample,
                       struct kymo__text *rest);
/* The digits that a text begins with, which are stepped over; false without any, or beyond 2^58. */
bool kymo__austin_number(struct kymo__text *text, unsigned base, int64_t *number);

#endif
