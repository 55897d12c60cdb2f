/* Deflate streams by zlib, where ISA-L is not at hand. */
#include <limits.h>
#include <zlib.h>

#include "codec/deflate.h"
#include "codec/zlib_memory.h"

enum {
    LEVEL = 1, /* the higher ones take four times as long for a twentieth */
    WINDOW_BITS_OF_RAW = -15,
    MEMORY = 8,
    ROOM = 1 << 18, /* for what it gives at once */
};

struct kymo__deflater {
    z_stream stream;
};

kymo__deflater *kymo__deflater_create(enum kymo__deflate_effort effort)
{
    (void)effort;
    kymo__deflater *deflater = kymo__calloc(1, sizeof *deflater);
    if (deflater == NULL)
        return NULL;
    deflater->stream.zalloc = kymo__zlib_take;
    deflater->stream.zfree = kymo__zlib_give;
    if (deflateInit2(&deflater->stream, LEVEL, Z_DEFLATED, WINDOW_BITS_OF_RAW, MEMORY,
                     Z_DEFAULT_STRATEGY) == Z_OK)
        return deflater;
    kymo__free(deflater);
    return NULL;
}

void kymo__deflater_destroy(kymo__deflater *deflater)
{
    if (deflater == NULL)
        return;
    deflateEnd(&deflater->stream);
    kymo__free(deflater);
}

/* All of what was given it, until it has no more to say. */
static void put_piece(z_stream *stream, int flush, struct kymo__buf *out)
{
    do {
        stream->next_out = kymo__buf_extend(out, ROOM);
        stream->avail_out = ROOM;
        if (stream->next_out == NULL)
            return;
        deflate(stream, flush);
        out->len -= stream->avail_out;
    } while (stream->avail_out == 0);
}

void kymo__deflater_put(kymo__deflater *deflater, struct kymo__buf *out, const void *bytes,
                        size_t n, bool is_last)
{
    z_stream *stream = &deflater->stream;
    stream->next_in = (Bytef *)bytes; /* zlib 1.2 has no const here; it does not write */
    do {
        stream->avail_in = (unsigned)KYMO__MIN(n, (size_t)INT_MAX);
        n -= stream->avail_in;
        put_piece(stream, n == 0 && is_last ? Z_FINISH : Z_NO_FLUSH, out);
    } while (n != 0 && !out->failed);
}
