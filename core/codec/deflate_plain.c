/* Deflate streams in a build without ISA-L and zlib: by the coder for planes, some three times as long. */
#include "codec/deflate.h"

struct marey__deflater {
    struct marey__deflate stream;
};

marey__deflater *marey__deflater_create(enum marey__deflate_effort effort)
{
    (void)effort;
    return marey__calloc(1, sizeof(marey__deflater));
}

void marey__deflater_destroy(marey__deflater *deflater)
{
    marey__free(deflater);
}

void marey__deflater_put(marey__deflater *deflater, struct marey__buf *out, const void *bytes,
                         size_t n, bool is_last)
{
    deflater->stream.out = out;
    marey__deflate_bytes(&deflater->stream, bytes, n);
    if (is_last)
        marey__deflate_finish(&deflater->stream);
}
