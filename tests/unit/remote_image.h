/*
 * The memory that was read of a process, in a file, for tests without the process and for fuzzing.
 * A file is: "pyimage1", the address of _PyRuntime, the version, then pieces: address, length (4
 * bytes), bytes.
 */
#ifndef MAREY_TEST_REMOTE_IMAGE_H
#define MAREY_TEST_REMOTE_IMAGE_H

#include <stdlib.h>

#include "sampler/remote/internal.h"

struct image {
    uint64_t runtime;
    uint32_t version;
    struct image_piece {
        uint64_t at;
        const uint8_t *bytes;
        uint32_t len;
    } * pieces; /* by address */
    size_t n;
};

static inline int image_by_address(const void *a, const void *b)
{
    const struct image_piece *const x = a, *const y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Borrows the bytes. Returns false if they are invalid, with nothing to free. */
static inline bool image_parse(const uint8_t *bytes, size_t len, struct image *out)
{
    size_t at = 20, cap = 0;
    *out = (struct image){0};
    if (len < at || memcmp(bytes, "pyimage1", 8) != 0)
        return false;
    memcpy(&out->runtime, bytes + 8, 8);
    memcpy(&out->version, bytes + 16, 4);
    while (len - at >= 12) {
        struct image_piece piece;
        memcpy(&piece.at, bytes + at, 8);
        memcpy(&piece.len, bytes + at + 8, 4);
        at += 12;
        if (piece.len > len - at)
            piece.len = (uint32_t)(len - at);
        piece.bytes = bytes + at;
        at += piece.len;
        if (!marey__grow(&out->pieces, &cap, out->n + 1, sizeof *out->pieces))
            break;
        out->pieces[out->n++] = piece;
    }
    if (out->n > 0)
        qsort(out->pieces, out->n, sizeof *out->pieces, image_by_address);
    return true;
}

static inline size_t image_read_spans(void *self, const struct marey__remote_span *spans, size_t n)
{
    const struct image *const image = self;
    for (size_t i = 0; i < n; i++) {
        size_t low = 0, high = image->n;
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            if (image->pieces[middle].at <= spans[i].at)
                low = middle + 1;
            else
                high = middle;
        }
        const struct image_piece *const piece = low > 0 ? &image->pieces[low - 1] : NULL;
        if (piece == NULL || spans[i].at - piece->at > piece->len ||
            spans[i].n_bytes > piece->len - (spans[i].at - piece->at))
            return i;
        if (spans[i].n_bytes > 0)
            memcpy(spans[i].to, piece->bytes + (spans[i].at - piece->at), spans[i].n_bytes);
    }
    return n;
}

static inline struct marey__remote_memory image_memory(struct image *image)
{
    return (struct marey__remote_memory){image_read_spans, image};
}

/* All queries of remote.h as text, for comparison in tests and for fuzzing. */
static inline void image_tell(struct marey__remote *remote, struct marey__buf *out)
{
    enum { INTERPRETERS = 8, THREADS = 64, FRAMES = 256 };
    uint64_t interpreters[INTERPRETERS], states[THREADS];
    struct marey__remote_frame *const frames = marey__alloc(FRAMES * sizeof *frames);
    const struct marey__remote_layout *const layout = marey__remote_layout(remote);
    uint8_t *const bytes = marey__alloc(layout->thread.size);
    const size_t n_interpreters = marey__remote_interpreters(remote, interpreters, INTERPRETERS);
    for (size_t i = 0; frames != NULL && bytes != NULL && i < n_interpreters; i++) {
        uint8_t gil[64] = {0};
        const uint64_t gil_at = marey__remote_gil(remote, interpreters[i]);
        if (gil_at != 0 && marey__remote_read(remote, gil_at, gil, layout->gil.size))
            marey__buf_printf(out, "gil %d\n", (int)marey__remote_u32(gil, layout->gil.locked));
        const size_t n_states = marey__remote_thread_states(remote, interpreters[i], states, THREADS);
        for (size_t t = 0; t < n_states; t++) {
            char name[512] = "";
            bool is_whole = false;
            if (!marey__remote_read(remote, states[t], bytes, layout->thread.size))
                continue;
            const size_t n_name = marey__remote_thread_name(remote, 0, states[t], name, sizeof name);
            marey__buf_printf(
                out, "thread %.*s%s\n", (int)n_name, name,
                marey__remote_in_exception(remote, states[t], bytes) ? " in an exception" : "");
            const size_t n = marey__remote_stack(remote, states[t], frames, FRAMES, &is_whole);
            for (size_t f = 0; f < n; f++) {
                struct marey__remote_code *const code = marey__remote_code(remote, frames[f].code);
                if (code == NULL)
                    continue;
                marey__buf_printf(
                    out, "  %s (%s:%u)\n", code->name, code->file,
                    marey__remote_line(remote, code, frames[f].instruction, frames[f].tlbc_index));
            }
            marey__buf_puts(out, is_whole ? "  whole\n" : "  cut\n");
            for (size_t f = 0; f < n; f++)
                marey__remote_check_codes(remote, &frames[f].code, 1);
        }
    }
    marey__remote_forget(remote);
    marey__buf_put(out, "", 1);
    marey__free(frames);
    marey__free(bytes);
}

#endif
