/* Texts in blocks that never move. See table_internal.h. */
#include <string.h>

#include "table/table_internal.h"

enum { BLOCK_BYTES = 16 << 10 };

struct kymo__arena_block {
    struct kymo__arena_block *next;
    size_t used, size;
    char bytes[];
};

char *kymo__arena_text(struct kymo__arena *arena, const char *text, size_t len)
{
    struct kymo__arena_block *block = arena->blocks;
    if (block == NULL || block->size - block->used < len + 1) {
        if (len > SIZE_MAX / 2)
            return NULL;
        const size_t size = KYMO__MAX(len + 1, (size_t)BLOCK_BYTES);
        block = kymo__alloc(sizeof *block + size);
        if (block == NULL)
            return NULL;
        *block = (struct kymo__arena_block){.next = arena->blocks, .size = size};
        arena->blocks = block;
    }
    char *kept = block->bytes + block->used;
    if (len != 0)
        memcpy(kept, text, len);
    kept[len] = '\0';
    block->used += len + 1;
    return kept;
}

void kymo__arena_fini(struct kymo__arena *arena)
{
    while (arena->blocks != NULL) {
        struct kymo__arena_block *next = arena->blocks->next;
        kymo__free(arena->blocks);
        arena->blocks = next;
    }
}
