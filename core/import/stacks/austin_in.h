/*
 * Files of austin: what its two forms have in common.
 *
 *   austin_text.c ── P12;T0:13;train.py:main:3;train.py:step:9 10077        a line for each sample
 *   austin_mojo.c ── the same as bytes: strings and frames are defined once and then meant by their keys
 *   austin_in.c ── samples to ranges: which come when, on which thread
 *
 * A file is read twice: names that stand for two functions are known only when all frames are.
 */
#ifndef MAREY_AUSTIN_IN_H
#define MAREY_AUSTIN_IN_H

#include "codec/codec_internal.h"
#include "import/stacks/stack_in.h"

/* A thread as austin saw it once. Frames are the outermost first; without any it was not in Python. */
struct marey__austin_sample {
    int64_t pid, tid;
    uint32_t interpreter;
    uint64_t time_us;
    int64_t bytes; /* that the process grew by since the last one */
    bool is_idle;
    const uint32_t *frames; /* lent */
    size_t n_frames;
};

/* Who is told what a file has; both return false to stop, for want of memory. */
struct marey__austin_visitor {
    bool (*meta)(void *ctx, struct marey__text key, struct marey__text value);
    bool (*sample)(void *ctx, const struct marey__austin_sample *sample);
    void *ctx;
};

/* What is wrong with a file. */
struct marey__austin_mistakes {
    uint64_t n_bad, first_bad; /* lines that are no samples; frames that were never defined */
    const char *ends; /* why a file of bytes cannot be read on; NULL: it can. Lent for ever */
    uint64_t ends_at;
};

/*
 * Read all of `bytes`; frames are made in `frames`. MAREY_EIO, MAREY_ENOMEM; whatever else is wrong with the file is in
 * `mistakes`.
 */
MAREY_WARN_UNUSED marey_status marey__austin_text(marey__byte_source *bytes,
                                                  struct marey__frames *frames,
                                                  const struct marey__austin_visitor *visitor,
                                                  struct marey__austin_mistakes *mistakes);
MAREY_WARN_UNUSED marey_status marey__austin_mojo(marey__byte_source *bytes,
                                                  struct marey__frames *frames,
                                                  const struct marey__austin_visitor *visitor,
                                                  struct marey__austin_mistakes *mistakes);
/* `P12;T0:13`, with or without the interpreter; what follows is left in `*rest`. False for other lines. */
bool marey__austin_head(struct marey__text line, struct marey__austin_sample *sample,
                        struct marey__text *rest);
/* The digits that a text begins with, which are stepped over; false without any, or beyond 2^58. */
bool marey__austin_number(struct marey__text *text, unsigned base, int64_t *number);

#endif
