/* Bytes as the dump readers get them: followed by zeros and the end of the block, so that reads
 * past it are detected. */
#ifndef MAREY_FUZZ_PADDED_H
#define MAREY_FUZZ_PADDED_H

#include <stdlib.h>
#include <string.h>

#include "tensor/dumpfile/internal.h"

static inline struct marey__map padded_copy(const uint8_t *data, size_t size)
{
    char *const text = calloc(1, size + MAREY__TEXT_PADDING);
    if (text == NULL)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    return (struct marey__map){.data = text, .len = size};
}

#endif
