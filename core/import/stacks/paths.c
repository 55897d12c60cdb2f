/*
 * The tree of stacks: an array, parents first, with a hash table from (parent, frame) to path. Finishing links children,
 * the heaviest first, so that writing them needs no further memory or recursion.
 */
#include "import/stacks/internal.h"

enum { FIRST_SLOTS_LOG2 = 6 };

static size_t slot_of(const struct marey__paths *paths, uint32_t parent, uint32_t frame)
{
    const uint64_t key = (uint64_t)parent << 32 | frame;
    return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - paths->n_slots_log2));
}

static void enter(struct marey__paths *paths, uint32_t number)
{
    const struct marey__stack_path *path = &paths->paths[number];
    const size_t mask = ((size_t)1 << paths->n_slots_log2) - 1;
    size_t slot = slot_of(paths, path->parent, path->frame);
    while (paths->slots[slot] != 0)
        slot = (slot + 1) & mask;
    paths->slots[slot] = number;
}

static bool make_slots(struct marey__paths *paths, uint32_t log2)
{
    uint32_t *slots = marey__calloc((size_t)1 << log2, sizeof *slots);
    if (slots == NULL)
        return false;
    marey__free(paths->slots);
    paths->slots = slots;
    paths->n_slots_log2 = log2;
    for (size_t i = 1; i < paths->n; i++)
        enter(paths, (uint32_t)i);
    return true;
}

bool marey__paths_init(struct marey__paths *paths)
{
    *paths = (struct marey__paths){0};
    if (!marey__grow(&paths->paths, &paths->cap, 1, sizeof *paths->paths))
        return false;
    paths->paths[0] = (struct marey__stack_path){.frame = MAREY__NO_FRAME};
    paths->n = 1;
    return make_slots(paths, FIRST_SLOTS_LOG2);
}

void marey__paths_fini(struct marey__paths *paths)
{
    MAREY__FREE_ALL(paths->paths, paths->slots);
    *paths = (struct marey__paths){0};
}

static uint32_t add(struct marey__paths *paths, uint32_t parent, uint32_t frame)
{
    if ((paths->n >= MAREY__MAX_PATHS && parent != 0) || paths->n >= 2 * (size_t)MAREY__MAX_PATHS ||
        !marey__grow(&paths->paths, &paths->cap, paths->n + 1, sizeof *paths->paths))
        return 0;
    if ((paths->n + 1) * 2 > (size_t)1 << paths->n_slots_log2 &&
        !make_slots(paths, paths->n_slots_log2 + 1))
        return 0;
    const uint32_t number = (uint32_t)paths->n++;
    paths->paths[number] = (struct marey__stack_path){.parent = parent, .frame = frame};
    enter(paths, number);
    return number;
}

uint32_t marey__paths_child(struct marey__paths *paths, uint32_t parent, uint32_t frame)
{
    const size_t mask = ((size_t)1 << paths->n_slots_log2) - 1;
    for (size_t slot = slot_of(paths, parent, frame);; slot = (slot + 1) & mask) {
        const uint32_t number = paths->slots[slot];
        if (number == 0)
            return add(paths, parent, frame);
        if (paths->paths[number].parent == parent && paths->paths[number].frame == frame)
            return number;
    }
}

/* ---- finishing ---- */

static int by_weight(const void *a, const void *b, void *ctx)
{
    const struct marey__stack_path *paths = ctx;
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (paths[x].total != paths[y].total)
        return paths[x].total < paths[y].total ? 1 : -1;
    return (x > y) - (x < y);
}

bool marey__paths_finish(struct marey__paths *paths)
{
    uint32_t *order MAREY__FREED = marey__calloc(paths->n, sizeof *order);
    if (order == NULL)
        return false;
    for (size_t i = paths->n; i-- > 0;) {
        struct marey__stack_path *path = &paths->paths[i];
        path->total += path->self;
        path->is_used |= path->total != 0 || path->calls != 0;
        order[i] = (uint32_t)i;
        if (i == 0)
            continue;
        paths->paths[path->parent].total += path->total;
        paths->paths[path->parent].is_used |= path->is_used;
    }
    qsort_r(order, paths->n, sizeof *order, by_weight, paths->paths);
    /* The lightest first: each is linked in front of its siblings so far. */
    for (size_t i = paths->n; i-- > 0;) {
        if (order[i] == 0 || !paths->paths[order[i]].is_used)
            continue;
        struct marey__stack_path *path = &paths->paths[order[i]];
        path->next = paths->paths[path->parent].first_child;
        paths->paths[path->parent].first_child = order[i];
    }
    return true;
}

struct range_writer {
    const struct marey__paths *paths;
    struct marey__frames *frames;
    marey__sink_process *process;
    struct marey__sink_event event;
};

static void begin(struct range_writer *writer, const struct marey__stack_path *path)
{
    writer->event.kind = MAREY__SINK_BEGIN;
    writer->event.site = marey__frames_site(writer->frames, writer->process, path->frame);
    writer->event.repeat = path->calls != 0 ? path->calls : MAREY__SINK_NO_CALL;
    marey__sink_put(writer->process, &writer->event);
}

static void end(struct range_writer *writer, const struct marey__stack_path *path, uint64_t unit_ns)
{
    writer->event.ns += path->self * unit_ns;
    writer->event.kind = MAREY__SINK_END;
    writer->event.site = 0;
    writer->event.repeat = 0;
    marey__sink_put(writer->process, &writer->event);
}

void marey__paths_write_ranges(const struct marey__paths *paths, uint32_t root,
                               struct marey__frames *frames, marey__sink_process *process,
                               uint32_t lane, uint64_t unit_ns)
{
    struct range_writer writer = {paths, frames, process, {.lane = lane}};
    uint32_t at = paths->paths[root].first_child;
    while (at != 0) {
        begin(&writer, &paths->paths[at]);
        if (paths->paths[at].first_child != 0) {
            at = paths->paths[at].first_child;
            continue;
        }
        /* Go up past all without a further sibling. */
        for (;;) {
            end(&writer, &paths->paths[at], unit_ns);
            if (paths->paths[at].next != 0 || paths->paths[at].parent == root)
                break;
            at = paths->paths[at].parent;
        }
        at = paths->paths[at].next;
    }
}
