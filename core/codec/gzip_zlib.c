/* gzip by zlib, where ISA-L is not at hand. */
#include <limits.h>
#include <zlib.h>

#include "codec/codec_internal.h"
#include "codec/zlib_memory.h"

const char *const kymo__gzip_missing = NULL;

struct kymo__inflate {
    z_stream stream;
};

enum { WINDOW_BITS_OF_GZIP = 15 + 16 };

kymo__inflate *kymo__inflate_create(void)
{
    kymo__inflate *inflate = kymo__calloc(1, sizeof *inflate);
    if (inflate == NULL)
        return NULL;
    inflate->stream.zalloc = kymo__zlib_take;
    inflate->stream.zfree = kymo__zlib_give;
    if (inflateInit2(&inflate->stream, WINDOW_BITS_OF_GZIP) == Z_OK)
        return inflate;
    kymo__free(inflate);
    return NULL;
}

void kymo__inflate_destroy(kymo__inflate *inflate)
{
    if (inflate == NULL)
        return;
    inflateEnd(&inflate->stream);
    kymo__free(inflate);
}

void kymo__inflate_reset(kymo__inflate *inflate)
{
    inflateReset(&inflate->stream);
}

enum kymo__inflate_result kymo__inflate_run(kymo__inflate *state, struct kymo__inflate_io *io)
{
    z_stream *stream = &state->stream;
    const unsigned n_in = (unsigned)KYMO__MIN(io->n_in, UINT_MAX);
    const unsigned n_out = (unsigned)KYMO__MIN(io->n_out, UINT_MAX);
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
        return KYMO__INFLATE_DONE;
    return result == Z_OK || result == Z_BUF_ERROR ? KYMO__INFLATE_GOES_ON : KYMO__INFLATE_BROKEN;
}
