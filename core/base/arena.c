/* Texts in blocks that never move. */
#include <string.h>

#include "base/internal.h"

enum { FIRST_BYTES = 480, MOST_BYTES = 16 << 10 };

struct marey__arena_block {
    struct marey__arena_block *next;
    size_t used, size;
    char bytes[];
};

char *marey__arena_room(struct marey__arena *arena, size_t len)
{
    struct marey__arena_block *block = arena->blocks;
    if (block == NULL || block->size - block->used < len) {
        if (len > SIZE_MAX / 2)
            return NULL;
        const size_t usual =
            block == NULL ? FIRST_BYTES : MAREY__MIN(2 * block->size, (size_t)MOST_BYTES);
        const size_t size = MAREY__MAX(len, usual);
        block = marey__alloc(sizeof *block + size);
        if (block == NULL)
            return NULL;
        *block = (struct marey__arena_block){.next = arena->blocks, .size = size};
        arena->blocks = block;
    }
    char *const room = block->bytes + block->used;
    block->used += len;
    return room;
}

char *marey__arena_text(struct marey__arena *arena, const char *text, size_t len)
{
    char *const kept = len < SIZE_MAX ? marey__arena_room(arena, len + 1) : NULL;
    if (kept == NULL)
        return NULL;
    if (len != 0)
        memcpy(kept, text, len);
    kept[len] = '\0';
    return kept;
}

void marey__arena_fini(struct marey__arena *arena)
{
    while (arena->blocks != NULL) {
        struct marey__arena_block *next = arena->blocks->next;
        marey__free(arena->blocks);
        arena->blocks = next;
    }
}
