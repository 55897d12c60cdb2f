/* Deflate streams in a build without ISA-L and zlib: by the coder for planes, some three times as long. */
#include "codec/deflate.h"

void kymo__deflate_all(struct kymo__buf *out, const void *bytes, size_t n,
                       enum kymo__deflate_effort effort)
{
    (void)effort;
    struct kymo__deflate stream = {.out = out};
    kymo__deflate_bytes(&stream, bytes, n);
    kymo__deflate_finish(&stream);
}
