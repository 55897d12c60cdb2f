/*
 * Memory of devices and the CPU, from a torch.profiler trace: blocks and categories come from the memory timeline; here
 * they get stacks, modules, phases (annotations marey:NAME) and iterations (ProfilerStep#N).
 */
#include "analyze/memory/internal.h"

struct reading {
    struct marey__memory_report *report;
    struct marey__torch_trace *trace;
    struct marey__memory_timeline *timeline;
    struct known {
        uint32_t stack,
            module;   /* plus one; 0: not looked up yet. The module's name plus two; 1: none */
    } * known;        /* by id of the stack's text */
    int64_t begin_ns; /* of the trace */
};

/* ---- stacks: "leaf;...;root" ---- */

static bool split(struct reading *r, const char *text, size_t len, struct known *known)
{
    enum { MAX_FRAMES = 128 };
    static const char module[] = "nn.Module: ";
    uint32_t names[MAX_FRAMES];
    size_t n = 0;
    known->module = 1;
    for (size_t at = 0; at < len && n < MAX_FRAMES;) {
        const char *const end = memchr(text + at, ';', len - at);
        const size_t frame_len = (end != NULL ? (size_t)(end - text) : len) - at;
        names[n] = marey__memory_frame_text(r->report, text + at, frame_len);
        if (names[n] == MAREY__NO_NAME)
            return false;
        if (known->module == 1 && frame_len > sizeof module - 1 &&
            marey__starts_with(text + at, frame_len, module)) {
            const uint32_t name = marey__memory_name(r->report, text + at + sizeof module - 1,
                                                     frame_len - (sizeof module - 1));
            if (name == MAREY__NO_NAME)
                return false;
            known->module = name + 2;
        }
        n++;
        at += frame_len + 1;
    }
    known->stack = marey__memory_stack_add(r->report, names, n) + 1;
    return known->stack != 0;
}

static bool look_up(struct reading *r, marey__torch_id stack, struct marey__held_block *block)
{
    struct known *const known = &r->known[stack];
    size_t len;
    const char *const text = marey__torch_text(r->trace, stack, &len);
    block->stack = MAREY__NO_STACK;
    block->module = MAREY__NO_NAME;
    if (stack == 0)
        return true;
    if (known->stack == 0 && !split(r, text, len, known))
        return false;
    block->stack = known->stack - 1;
    block->module = known->module > 1 ? known->module - 2 : MAREY__NO_NAME;
    return true;
}

/* ---- blocks ---- */

/* Nanoseconds since the begin of the trace, plus one. */
static uint64_t moment(const struct reading *r, int64_t ns)
{
    return ns > r->begin_ns ? (uint64_t)(ns - r->begin_ns) + 1 : 1;
}

static bool take_block(struct reading *r, struct marey__memory_pool *pool,
                       const struct marey__memory_block *from)
{
    const char *const category =
        marey_memory_category_name((enum marey_memory_category)from->category);
    struct marey__held_block block = {
        .begin_ns = moment(r, from->made_ns),
        .end_ns = from->freed_ns == MAREY__MEMORY_NEVER ? MAREY__ALIVE : moment(r, from->freed_ns),
        .bytes = (double)from->bytes,
        .count = 1,
        .is_before = from->made_ns == MAREY__MEMORY_BEFORE,
        .category = marey__memory_name(r->report, category, strlen(category))};
    return block.category != MAREY__NO_NAME && look_up(r, from->stack, &block) &&
           marey__memory_block_add(pool, &block);
}

/* The allocator's reserved memory, if recorded. */
static bool take_reserved(struct reading *r, struct marey__memory_pool *pool,
                          const struct marey__memory_device *device)
{
    for (size_t i = 0; i < r->trace->n_memory; i++) {
        const struct marey__torch_memory *const event = &r->trace->memory[i];
        if (event->device_type == device->type && event->device_id == device->id &&
            event->total_reserved > 0 &&
            !marey__memory_reading_add(&pool->reserved, moment(r, event->ns),
                                       (double)event->total_reserved))
            return false;
    }
    return true;
}

/* ---- phases and iterations ---- */

static bool take_annotation(struct reading *r, struct marey__memory_pool *pool,
                            const struct marey__torch_event *event)
{
    static const char step[] = "ProfilerStep#";
    size_t len;
    const char *const text = marey__torch_text(r->trace, event->name, &len);
    const uint64_t begin = moment(r, event->begin_ns), end = moment(r, event->end_ns);
    if (len > sizeof step - 1 && memcmp(text, step, sizeof step - 1) == 0)
        return marey__memory_span_add(&pool->iterations, begin, end, MAREY__NO_NAME);
    const size_t prefix = marey__phase_prefix(text, len);
    if (prefix == 0)
        return true;
    const uint32_t name = marey__memory_name(r->report, text + prefix, len - prefix);
    return name != MAREY__NO_NAME && marey__memory_span_add(&pool->phases, begin, end, name);
}

static bool take_device(struct reading *r, uint32_t number)
{
    const struct marey__memory_device *const device = &r->timeline->devices[number];
    struct marey__memory_pool *const pool = marey__memory_pool_add(r->report);
    if (pool == NULL)
        return false;
    if (device->type == 0)
        snprintf(pool->device, sizeof pool->device, "cpu");
    else if (device->type == 1)
        snprintf(pool->device, sizeof pool->device, "cuda:%d", (int)device->id);
    else
        snprintf(pool->device, sizeof pool->device, "device %d:%d", (int)device->type,
                 (int)device->id);
    pool->source = "allocations in a trace of torch.profiler";
    pool->rank = (int32_t)marey__torch_rank(r->trace);
    pool->first_ns = 1;
    pool->last_ns =
        r->trace->n_memory != 0 ? moment(r, r->trace->memory[r->trace->n_memory - 1].ns) : 1;
    for (size_t i = 0; i < r->timeline->n_blocks; i++)
        if (r->timeline->blocks[i].device == number && !take_block(r, pool, &r->timeline->blocks[i]))
            return false;
    for (size_t i = 0; i < r->trace->n_events; i++)
        if (r->trace->events[i].kind == MAREY__TORCH_ANNOTATION &&
            !take_annotation(r, pool, &r->trace->events[i]))
            return false;
    return take_reserved(r, pool, device);
}

static void reading_fini(struct reading *r)
{
    marey__free(r->known);
    marey_memory_timeline_destroy(r->timeline);
    marey__torch_free(r->trace);
}

marey_status marey__memory_read_trace(struct marey__memory_report *report, const char *path)
{
    const struct marey__torch_options options = {.kinds = MAREY__TORCH_BIT(MAREY__TORCH_OP) |
                                                          MAREY__TORCH_BIT(MAREY__TORCH_ANNOTATION)};
    struct reading r MAREY__FINALLY(reading_fini) = {.report = report};
    MAREY_TRY(marey__torch_read(path, &options, &r.trace));
    MAREY_TRY(marey_memory_timeline_create(r.trace, &r.timeline));
    r.known = marey__calloc(r.trace->strings.n + 1, sizeof *r.known);
    MAREY__TRY_MEMORY(r.known != NULL);
    r.begin_ns = r.trace->n_memory != 0 ? r.trace->memory[0].ns : 0;
    for (size_t i = 0; i < r.trace->n_events; i++)
        r.begin_ns = MAREY__MIN(r.begin_ns, r.trace->events[i].begin_ns);
    for (uint32_t i = 0; i < r.timeline->n_devices; i++)
        MAREY__TRY_MEMORY(take_device(&r, i));
    if (r.trace->damage != NULL)
        marey__put_note(report->tables[MAREY__MEMORY_NOTES], "%s", r.trace->damage);
    return r.timeline->n_devices != 0
               ? MAREY_OK
               : marey__fail(MAREY_EFORMAT,
                             "%s has no allocations; record it with profile_memory=True", path);
}
