/* Deflate streams in a build without ISA-L and zlib: by the coder for planes, some three times as long. */
#include "codec/deflate.h"

struct kymo__deflater {
    struct kymo__deflate stream;
};

kymo__deflater *kymo__deflater_create(enum kymo__deflate_effort effort)
{
    (void)effort;
    return kymo__calloc(1, sizeof(kymo__deflater));
}

void kymo__deflater_destroy(kymo__deflater *deflater)
{
    kymo__free(deflater);
}

void kymo__deflater_put(kymo__deflater *deflater, struct kymo__buf *out, const void *bytes,
                        size_t n, bool is_last)
{
    deflater->stream.out = out;
    kymo__deflate_bytes(&deflater->stream, bytes, n);
    if (is_last)
        kymo__deflate_finish(&deflater->stream);
}
