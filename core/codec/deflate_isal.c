/* Deflate streams by ISA-L, which takes a quarter of the time of zlib, or a tenth at its level 1. */
#include <isa-l/igzip_lib.h>

#include "codec/deflate.h"

enum {
    PIECE = 1 << 30, /* what is given to it at once; its counts have 32 bits */
    ROOM = 1 << 18,  /* for what it gives at once */
};

struct coder {
    struct isal_zstream stream;
    uint8_t level_buf[ISAL_DEF_LVL2_DEFAULT];
};

static void begin(struct coder *coder, enum kymo__deflate_effort effort)
{
    isal_deflate_init(&coder->stream);
    coder->stream.level = effort == KYMO__DEFLATE_QUICK ? 1 : 2;
    coder->stream.level_buf = coder->level_buf;
    coder->stream.level_buf_size = sizeof coder->level_buf;
    coder->stream.gzip_flag = IGZIP_DEFLATE;
    coder->stream.flush = NO_FLUSH;
}

/* All of what was given it, until it has no more to say. */
static void put_piece(struct isal_zstream *stream, struct kymo__buf *out)
{
    do {
        stream->next_out = kymo__buf_extend(out, ROOM);
        stream->avail_out = ROOM;
        if (stream->next_out == NULL)
            return;
        const int result = isal_deflate(stream);
        KYMO_ASSERT(result == COMP_OK);
        (void)result;
        out->len -= stream->avail_out;
    } while (stream->avail_out == 0);
}

void kymo__deflate_all(struct kymo__buf *out, const void *bytes, size_t n,
                       enum kymo__deflate_effort effort)
{
    struct coder *coder = kymo__calloc(1, sizeof *coder);
    if (coder == NULL) {
        out->failed = true;
        return;
    }
    begin(coder, effort);
    coder->stream.next_in = (uint8_t *)bytes; /* it has no const here; it does not write */
    do {
        coder->stream.avail_in = (uint32_t)KYMO__MIN(n, (size_t)PIECE);
        n -= coder->stream.avail_in;
        coder->stream.end_of_stream = n == 0;
        put_piece(&coder->stream, out);
    } while (n != 0 && !out->failed);
    kymo__free(coder);
}
