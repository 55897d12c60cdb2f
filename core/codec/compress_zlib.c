/* Deflate and inflate with zlib, in builds without ISA-L. */
#include <limits.h>
#include <zlib.h>

#include "codec/internal.h"

/* zlib allocates through base/alloc too. */
static void *take_memory(void *ctx, unsigned n, unsigned size)
{
    (void)ctx;
    return marey__calloc(n, size);
}

static void give_memory(void *ctx, void *p)
{
    (void)ctx;
    marey__free(p);
}

/* ---- deflate ---- */

enum {
    LEVEL = 1, /* higher levels take four times as long to save 5 % */
    WINDOW_BITS_OF_RAW = -15,
    MEMORY = 8,
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
    deflater->stream.zalloc = take_memory;
    deflater->stream.zfree = give_memory;
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

void marey__deflater_run(marey__deflater *deflater, struct marey__flate_io *io, bool is_last)
{
    z_stream *stream = &deflater->stream;
    const unsigned n_in = (unsigned)MAREY__MIN(io->n_in, UINT_MAX);
    stream->next_in = (Bytef *)io->in; /* not const in zlib 1.2, but not written */
    stream->avail_in = n_in;
    stream->next_out = io->out;
    stream->avail_out = (unsigned)io->n_out;
    deflate(stream, is_last && n_in == io->n_in ? Z_FINISH : Z_NO_FLUSH);
    io->in += n_in - stream->avail_in;
    io->n_in -= n_in - stream->avail_in;
    io->n_out = stream->avail_out;
}

/* ---- inflate ---- */

struct marey__inflate {
    z_stream stream;
};

enum { WINDOW_BITS = 15, WINDOW_BITS_OF_GZIP = 15 + 16 };

marey__inflate *marey__inflate_create(enum marey__inflate_format format)
{
    marey__inflate *inflate = marey__calloc(1, sizeof *inflate);
    if (inflate == NULL)
        return NULL;
    inflate->stream.zalloc = take_memory;
    inflate->stream.zfree = give_memory;
    if (inflateInit2(&inflate->stream,
                     format == MAREY__INFLATE_GZIP ? WINDOW_BITS_OF_GZIP : WINDOW_BITS) == Z_OK)
        return inflate;
    marey__free(inflate);
    return NULL;
}

void marey__inflate_destroy(marey__inflate *inflate)
{
    if (inflate == NULL)
        return;
    inflateEnd(&inflate->stream);
    marey__free(inflate);
}

void marey__inflate_reset(marey__inflate *inflate)
{
    inflateReset(&inflate->stream);
}

enum marey__inflate_result marey__inflate_run(marey__inflate *state, struct marey__flate_io *io)
{
    z_stream *stream = &state->stream;
    const unsigned n_in = (unsigned)MAREY__MIN(io->n_in, UINT_MAX);
    const unsigned n_out = (unsigned)MAREY__MIN(io->n_out, UINT_MAX);
    stream->next_in = (Bytef *)io->in; /* not const in zlib 1.2, but not written */
    stream->avail_in = n_in;
    stream->next_out = io->out;
    stream->avail_out = n_out;
    const int result = inflate(stream, Z_NO_FLUSH);
    io->in += n_in - stream->avail_in;
    io->n_in -= n_in - stream->avail_in;
    io->out += n_out - stream->avail_out;
    io->n_out -= n_out - stream->avail_out;
    if (result == Z_STREAM_END)
        return MAREY__INFLATE_DONE;
    return result == Z_OK || result == Z_BUF_ERROR ? MAREY__INFLATE_GOES_ON : MAREY__INFLATE_BROKEN;
}

/* ---- checksums ---- */

uint32_t marey__crc32(uint32_t crc, const void *bytes, size_t n)
{
    return (uint32_t)crc32_z(crc, bytes, n);
}

uint32_t marey__adler32(const uint8_t *bytes, size_t n)
{
    return (uint32_t)adler32_z(1, bytes, n);
}
