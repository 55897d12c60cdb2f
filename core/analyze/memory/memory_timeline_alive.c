/* What was there at one instant. */
#include "analyze/memory/internal.h"

static bool is_alive(const struct marey__memory_block *block, size_t change)
{
    return block->made_change <= change && block->freed_change > change;
}

static int by_place(const void *a, const void *b)
{
    const struct marey__memory_group *x = a, *y = b;
    if (x->category != y->category)
        return x->category < y->category ? -1 : 1;
    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    return (x->name > y->name) - (x->name < y->name);
}

static int by_bytes(const void *a, const void *b)
{
    const struct marey__memory_group *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return by_place(a, b);
}

static void add_up(struct marey__memory_alive *alive, const struct marey__memory_block *block)
{
    alive->bytes += block->bytes;
    alive->count++;
    alive->by_category[block->category] += block->bytes;
    alive->count_by_category[block->category]++;
}

/* Equal ones stand together: each row of them becomes one. */
static void join(struct marey__memory_alive *alive)
{
    size_t n = 0;
    for (size_t i = 0; i < alive->n_groups; i++) {
        struct marey__memory_group *group = &alive->groups[i];
        if (n != 0 && by_place(&alive->groups[n - 1], group) == 0) {
            alive->groups[n - 1].bytes += group->bytes;
            alive->groups[n - 1].count += group->count;
        } else {
            alive->groups[n++] = *group;
        }
    }
    alive->n_groups = n;
}

marey_status marey__memory_alive_init(struct marey__memory_alive *alive,
                                      const struct marey__memory_timeline *timeline,
                                      const struct marey__memory_device *device, size_t change)
{
    const uint32_t number = (uint32_t)(device - timeline->devices);
    *alive = (struct marey__memory_alive){0};
    for (size_t i = 0; i < timeline->n_blocks; i++)
        if (timeline->blocks[i].device == number && is_alive(&timeline->blocks[i], change))
            add_up(alive, &timeline->blocks[i]);
    alive->groups = marey__calloc(alive->count + 1, sizeof *alive->groups);
    MAREY__TRY_MEMORY(alive->groups != NULL);
    for (size_t i = 0; i < timeline->n_blocks; i++) {
        const struct marey__memory_block *block = &timeline->blocks[i];
        if (block->device == number && is_alive(block, change))
            alive->groups[alive->n_groups++] =
                (struct marey__memory_group){.stack = block->stack,
                                             .name = block->name,
                                             .category = block->category,
                                             .bytes = block->bytes,
                                             .count = 1};
    }
    qsort(alive->groups, alive->n_groups, sizeof *alive->groups, by_place);
    join(alive);
    qsort(alive->groups, alive->n_groups, sizeof *alive->groups, by_bytes);
    return MAREY_OK;
}

void marey__memory_alive_fini(struct marey__memory_alive *alive)
{
    marey__free(alive->groups);
    *alive = (struct marey__memory_alive){0};
}
