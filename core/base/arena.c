/* Strings and other memory in blocks that never move. */
#include "base/internal.h"

enum { FIRST_BYTES = 480, MOST_BYTES = 16 << 10 };

struct marey__arena_block {
    struct marey__arena_block *next;
    size_t used, size;
    _Alignas(16) char bytes[];
};

void *marey__arena_take(struct marey__arena *arena, size_t size, size_t align)
{
    struct marey__arena_block *block = arena->blocks;
    size_t at = block != NULL ? (block->used + align - 1) & ~(align - 1) : 0;
    if (block == NULL || block->size < at || block->size - at < size) {
        if (size > SIZE_MAX / 2)
            return NULL;
        const size_t next_size =
            block == NULL ? FIRST_BYTES : MAREY__MIN(2 * block->size, (size_t)MOST_BYTES);
        const size_t room = MAREY__MAX(size, next_size);
        block = marey__alloc(sizeof *block + room);
        if (block == NULL)
            return NULL;
        *block = (struct marey__arena_block){.next = arena->blocks, .size = room};
        arena->blocks = block;
        at = 0;
    }
    block->used = at + size;
    return block->bytes + at;
}

char *marey__arena_text(struct marey__arena *arena, const char *text, size_t len)
{
    char *const kept = len < SIZE_MAX ? marey__arena_take(arena, len + 1, 1) : NULL;
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
