/* Deflate streams by zlib, in builds without ISA-L. */
#include <limits.h>
#include <zlib.h>

#include "codec/internal.h"
#include "codec/zlib_memory.h"

enum {
    LEVEL = 1, /* the higher ones take four times as long for a twentieth */
    WINDOW_BITS_OF_RAW = -15,
    MEMORY = 8,
    ROOM = 1 << 18, /* for what it gives at once */
};

struct marey__deflater {
    z_stream stream;
};

marey__deflater *marey__deflater_create(enum marey__deflate_effort effort)
{
    (void)effort;
    marey__deflater *deflater = marey__calloc(1, sizeof *deflater);
    if (deflater == NULL)
        return NULL;
    deflater->stream.zalloc = marey__zlib_take;
    deflater->stream.zfree = marey__zlib_give;
    if (deflateInit2(&deflater->stream, LEVEL, Z_DEFLATED, WINDOW_BITS_OF_RAW, MEMORY,
                     Z_DEFAULT_STRATEGY) == Z_OK)
        return deflater;
    marey__free(deflater);
    return NULL;
}

void marey__deflater_destroy(marey__deflater *deflater)
{
    if (deflater == NULL)
        return;
    deflateEnd(&deflater->stream);
    marey__free(deflater);
}

/* All of what was given it, until it has no more to say. */
static void put_piece(z_stream *stream, int flush, struct marey__buf *out)
{
    do {
        stream->next_out = marey__buf_extend(out, ROOM);
        stream->avail_out = ROOM;
        if (stream->next_out == NULL)
            return;
        deflate(stream, flush);
        out->len -= stream->avail_out;
    } while (stream->avail_out == 0);
}

void marey__deflater_put(marey__deflater *deflater, struct marey__buf *out, const void *bytes,
                         size_t n, bool is_last)
{
    z_stream *stream = &deflater->stream;
    stream->next_in = (Bytef *)bytes; /* zlib 1.2 has no const here; it does not write */
    do {
        stream->avail_in = (unsigned)MAREY__MIN(n, (size_t)INT_MAX);
        n -= stream->avail_in;
        put_piece(stream, n == 0 && is_last ? Z_FINISH : Z_NO_FLUSH, out);
    } while (n != 0 && !out->failed);
}
