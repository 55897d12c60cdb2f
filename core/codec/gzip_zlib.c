/* gzip by zlib, in builds without ISA-L. */
#include <limits.h>
#include <zlib.h>

#include "codec/internal.h"
#include "codec/zlib_memory.h"

struct marey__inflate {
    z_stream stream;
};

enum { WINDOW_BITS_OF_GZIP = 15 + 16 };

marey__inflate *marey__inflate_create(void)
{
    marey__inflate *inflate = marey__calloc(1, sizeof *inflate);
    if (inflate == NULL)
        return NULL;
    inflate->stream.zalloc = marey__zlib_take;
    inflate->stream.zfree = marey__zlib_give;
    if (inflateInit2(&inflate->stream, WINDOW_BITS_OF_GZIP) == Z_OK)
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

enum marey__inflate_result marey__inflate_run(marey__inflate *state, struct marey__inflate_io *io)
{
    z_stream *stream = &state->stream;
    const unsigned n_in = (unsigned)MAREY__MIN(io->n_in, UINT_MAX);
    const unsigned n_out = (unsigned)MAREY__MIN(io->n_out, UINT_MAX);
    stream->next_in = (Bytef *)io->in; /* zlib 1.2 has no const here; it does not write */
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
