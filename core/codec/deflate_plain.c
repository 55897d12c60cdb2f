/* Texts as deflate streams in a build without ISA-L and zlib: by the coder for planes, some three times as long. */
#include "codec/deflate.h"

void kymo__deflate_text(struct kymo__buf *out, const void *text, size_t n)
{
    struct kymo__deflate stream = {.out = out};
    kymo__deflate_bytes(&stream, text, n);
    kymo__deflate_finish(&stream);
}
