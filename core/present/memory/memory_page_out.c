/*
 * The page of a memory timeline: the template built from viewer/src/memory.ts, with all blocks of all devices. The page
 * sums up and draws them itself, so that it can show live memory at any time. docs/formats/page.md describes the bytes.
 */
#include "present/memory/internal.h"
#include "present/page/internal.h"

/* The page's numbers: each from 0 on, in order of use. */
struct numbers {
    uint32_t *stacks; /* by the id of the text; NONE: not used yet */
    uint32_t n_stacks;
    uint32_t *blocks; /* by the timeline's number */
};

struct maker {
    const struct marey__memory_timeline *timeline;
    struct numbers numbers;
    struct marey__buf *json;
    struct marey__buf stacks; /* texts of the stacks used so far, in the order of their numbers */
    int64_t origin_ns, end_ns;
};

/* ---- the time axis ---- */

static void include(struct maker *m, int64_t begin_ns, int64_t end_ns)
{
    m->origin_ns = MAREY__MIN(m->origin_ns, begin_ns);
    m->end_ns = MAREY__MAX(m->end_ns, end_ns);
}

/* Finds the time axis, which includes whole phases, even without allocations. */
static void survey(struct maker *m)
{
    m->origin_ns = INT64_MAX;
    m->end_ns = INT64_MIN;
    for (size_t d = 0; d < m->timeline->n_devices; d++) {
        const struct marey__memory_device *device = &m->timeline->devices[d];
        for (size_t i = device->n_before; i < device->n_changes; i++) {
            const int64_t ns = marey__memory_change_ns(m->timeline, &device->changes[i]);
            include(m, ns, ns);
        }
    }
    for (size_t i = 0; i < m->timeline->phases.n_spans; i++)
        include(m, m->timeline->phases.spans[i].begin_ns, m->timeline->phases.spans[i].end_ns);
    if (m->origin_ns > m->end_ns)
        m->origin_ns = m->end_ns = 0;
}

/* ---- devices ---- */

static uint32_t number_of_stack(struct maker *m, marey__torch_id id)
{
    if (m->numbers.stacks[id] == MAREY__MEMORY_NONE) {
        size_t len;
        const char *text = marey__torch_text(m->timeline->trace, id, &len);
        m->numbers.stacks[id] = m->numbers.n_stacks++;
        marey__json_put(&m->stacks, text, len);
        marey__buf_puts(&m->stacks, ",");
    }
    return m->numbers.stacks[id];
}

static const struct marey__memory_block *block_of(const struct maker *m,
                                                  const struct marey__memory_change *change)
{
    return &m->timeline->blocks[change->block];
}

static void put_gaps(struct maker *m, const struct marey__memory_device *device)
{
    int64_t last_ns = m->origin_ns;
    marey__page_open(m->json, "gaps", "[");
    for (size_t i = 0; i < device->n_changes; i++) {
        const int64_t at_ns = marey__memory_change_ns(m->timeline, &device->changes[i]);
        const int64_t ns =
            MAREY__MAX(at_ns, last_ns); /* blocks from before the first event begin at the origin */
        marey__script_printf(m->json, "%" PRId64 ",", ns - last_ns);
        last_ns = ns;
    }
    marey__page_close(m->json, "],");
}

/* 0: the next block begins; else the block that ends, counted from 1. */
static void put_ends(struct maker *m, const struct marey__memory_device *device)
{
    uint32_t n = 0;
    marey__page_open(m->json, "ends", "[");
    for (size_t i = 0; i < device->n_changes; i++) {
        const struct marey__memory_change *change = &device->changes[i];
        uint32_t *number = &m->numbers.blocks[change->block];
        if (!change->is_end)
            *number = n++;
        marey__json_printf(m->json, "%u,", change->is_end ? *number + 1 : 0);
    }
    marey__page_close(m->json, "],");
}

enum column { BYTES, CATEGORIES, STACKS, N_COLUMNS };

/* A number of each block, in the order in which they begin. */
static void put_column(struct maker *m, const struct marey__memory_device *device, enum column column)
{
    static const char *const names[N_COLUMNS] = {"bytes", "categories", "stacks"};
    marey__page_open(m->json, names[column], "[");
    for (size_t i = 0; i < device->n_changes; i++) {
        const struct marey__memory_block *block = block_of(m, &device->changes[i]);
        if (device->changes[i].is_end)
            continue;
        marey__script_printf(m->json, "%" PRId64 ",",
                             column == BYTES        ? block->bytes
                             : column == CATEGORIES ? block->category
                                                    : number_of_stack(m, block->stack));
    }
    marey__page_close(m->json, "],");
}

/* [block, name] for blocks with a name. */
static void put_names(struct maker *m, const struct marey__memory_device *device)
{
    marey__page_open(m->json, "names", "[");
    for (size_t i = 0; i < device->n_changes; i++) {
        const struct marey__memory_block *block = block_of(m, &device->changes[i]);
        size_t len;
        if (device->changes[i].is_end || block->name == 0)
            continue;
        const char *text = marey__torch_text(m->timeline->trace, block->name, &len);
        marey__json_printf(m->json, "[%u,%.*s],", m->numbers.blocks[device->changes[i].block],
                           (int)len, text);
    }
    marey__page_close(m->json, "]");
}

static void put_device(struct maker *m, const struct marey__memory_device *device)
{
    char name[32];
    marey__memory_device_name(device, name);
    marey__json_printf(m->json, "{'name':%s,'is_main':%d,", name,
                       device == marey__memory_main_device(m->timeline));
    marey__script_printf(m->json, "'peak':%zu,'before':%zu,'reserved':%" PRId64 ",",
                         device->peak_change, device->n_before,
                         MAREY__MAX(device->reserved_bytes, 0));
    put_gaps(m, device);
    put_ends(m, device);
    for (enum column column = BYTES; column < N_COLUMNS; column++)
        put_column(m, device, column);
    put_names(m, device);
    marey__buf_puts(m->json, "},");
}

/* ---- phases ---- */

static const char *name_of_phase(uint8_t phase)
{
    static const char *const names[] = {
        [MAREY__MEMORY_IN_NONE] = "",           [MAREY__MEMORY_IN_DATA] = "data",
        [MAREY__MEMORY_IN_FORWARD] = "forward", [MAREY__MEMORY_IN_BACKWARD] = "backward",
        [MAREY__MEMORY_IN_STEP] = "optimizer",  [MAREY__MEMORY_IN_UPDATE] = "update",
        [MAREY__MEMORY_IN_OTHER] = "other",
    };
    return names[phase];
}

static void put_phases(struct maker *m)
{
    const struct marey__memory_phases *phases = &m->timeline->phases;
    marey__page_open(m->json, "phases", "[");
    for (size_t i = 0; i < phases->n_spans; i++) {
        const struct marey__memory_span *span = &phases->spans[i];
        marey__script_printf(m->json, "[%" PRId64 ",%" PRId64 ",%s],", span->begin_ns - m->origin_ns,
                             span->end_ns - m->origin_ns, name_of_phase(span->phase));
    }
    marey__page_close(m->json, "],");
}

/* ---- the page ---- */

static void put_index(struct maker *m, const char *title)
{
    marey__page_put_start(m->json, "memory", title);
    marey__buf_printf(m->json, "\"origin_unix_ns\":\"%" PRId64 "\",", m->origin_ns);
    marey__script_printf(m->json, "'duration_ns':%" PRIu64 ",'lost':%" PRIu64 ",",
                         (uint64_t)(m->end_ns - m->origin_ns), m->timeline->n_lost);
    put_phases(m);
    marey__page_open(m->json, "devices", "[");
    (void)number_of_stack(m, 0); /* the empty stack is number 0 */
    for (size_t i = 0; i < m->timeline->n_devices; i++)
        put_device(m, &m->timeline->devices[i]);
    marey__page_close(m->json, "],");
    marey__page_open(m->json, "stacks", "[");
    marey__buf_put(m->json, m->stacks.data, m->stacks.len);
    marey__page_close(m->json, "]}");
    m->json->failed |= m->stacks.failed;
}

static marey_status make_index(struct maker *m, const char *title)
{
    const size_t n_texts = m->timeline->trace->strings.n;
    m->numbers.stacks = marey__alloc((n_texts + 1) * sizeof *m->numbers.stacks);
    m->numbers.blocks = marey__calloc(m->timeline->n_blocks + 1, sizeof *m->numbers.blocks);
    MAREY__TRY_MEMORY(m->numbers.stacks != NULL && m->numbers.blocks != NULL);
    for (size_t i = 0; i <= n_texts; i++)
        m->numbers.stacks[i] = MAREY__MEMORY_NONE;
    survey(m);
    put_index(m, title);
    return MAREY_OK;
}

static marey_status make_page(void *ctx, struct marey__page_packer *packer, const char *title,
                              struct marey__buf *json)
{
    struct maker m = {.timeline = ctx, .json = json};
    (void)packer;
    const marey_status status = make_index(&m, title);
    marey__buf_fini(&m.stacks);
    MAREY__FREE_ALL(m.numbers.stacks, m.numbers.blocks);
    return status;
}

marey_status marey__memory_page_write(const struct marey__memory_timeline *timeline,
                                      const char *title, int fd)
{
    return marey__page_put_all(fd, marey__memory_template, title, make_page, (void *)timeline);
}
