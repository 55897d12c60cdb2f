/* Deflate streams by ISA-L, which takes a quarter of the time of zlib, or a tenth at its level 1. */
#include <isa-l/igzip_lib.h>

#include "codec/internal.h"

enum {
    PIECE = 1 << 30, /* what is given to it at once; its counts have 32 bits */
    ROOM = 1 << 18,  /* for what it gives at once */
};

struct marey__deflater {
    struct isal_zstream stream;
    uint8_t level_buf[ISAL_DEF_LVL2_DEFAULT];
};

marey__deflater *marey__deflater_create(enum marey__deflate_effort effort)
{
    marey__deflater *deflater = marey__calloc(1, sizeof *deflater);
    if (deflater == NULL)
        return NULL;
    isal_deflate_init(&deflater->stream);
    deflater->stream.level = effort == MAREY__DEFLATE_QUICK ? 1 : 2;
    deflater->stream.level_buf = deflater->level_buf;
    deflater->stream.level_buf_size = sizeof deflater->level_buf;
    deflater->stream.gzip_flag = IGZIP_DEFLATE;
    deflater->stream.flush = NO_FLUSH;
    return deflater;
}

void marey__deflater_destroy(marey__deflater *deflater)
{
    marey__free(deflater);
}

/* All of what was given it, until it has no more to say. */
static void put_piece(struct isal_zstream *stream, struct marey__buf *out)
{
    do {
        stream->next_out = marey__buf_extend(out, ROOM);
        stream->avail_out = ROOM;
        if (stream->next_out == NULL)
            return;
        const int result = isal_deflate(stream);
        MAREY_ASSERT(result == COMP_OK);
        (void)result;
        out->len -= stream->avail_out;
    } while (stream->avail_out == 0);
}

void marey__deflater_put(marey__deflater *deflater, struct marey__buf *out, const void *bytes,
                         size_t n, bool is_last)
{
    struct isal_zstream *stream = &deflater->stream;
    stream->next_in = (uint8_t *)bytes; /* it has no const here; it does not write */
    do {
        stream->avail_in = (uint32_t)MAREY__MIN(n, (size_t)PIECE);
        n -= stream->avail_in;
        stream->end_of_stream = n == 0 && is_last;
        put_piece(stream, out);
    } while (n != 0 && !out->failed);
}
