/*
 * Calls on a page: names as JSON in the index, and the nodes of the tree as columns in a separate block, because there
 * may be a million. The report page includes them if calls were profiled; marey_page_calls() makes a page with only
 * calls, optionally compared with others. docs/formats/page.md describes the bytes.
 */
#include "analyze/calls/internal.h"
#include "analyze/samples/internal.h"
#include "present/page/internal.h"

/* Rows of each table on a page of calls; `marey report --calls --csv` has all. */
enum { MAX_ROWS = 5000 };

/* ---- nodes ---- */

/* In the order in which they are written. */
static const struct column {
    size_t offset, size;
} columns[] = {
#define COLUMN_OF(field)                                                                           \
    {                                                                                              \
        offsetof(struct marey__call_node, field), sizeof((struct marey__call_node *)0)->field      \
    }
    COLUMN_OF(parent), COLUMN_OF(function), COLUMN_OF(signature), COLUMN_OF(thread),
    COLUMN_OF(calls),  COLUMN_OF(resumes),  COLUMN_OF(self_ns),   COLUMN_OF(total_ns),
    COLUMN_OF(max_ns), COLUMN_OF(gpu_ns)};
enum { N_COLUMNS = MAREY__COUNT_OF(columns) };

static uint64_t value_of(const struct marey__calls *calls, size_t i, const struct column *column)
{
    const struct marey__call_node *const node = &calls->nodes[i];
    uint64_t value = 0;
    memcpy(&value, (const char *)node + column->offset, column->size);
    return column == columns ? i - value : value; /* parents come shortly before their children */
}

static uint8_t width_of(const struct marey__calls *calls, const struct column *column)
{
    uint64_t all = 0;
    uint8_t width = 0;
    for (size_t i = 0; i < calls->n_nodes; i++)
        all |= value_of(calls, i, column);
    for (; all != 0; all >>= 8)
        width++;
    return width;
}

static void put_plane(struct marey__buf *block, const struct marey__calls *calls,
                      const struct column *column, unsigned shift)
{
    uint8_t *const to = marey__buf_extend(block, calls->n_nodes);
    for (size_t i = 0; to != NULL && i < calls->n_nodes; i++)
        to[i] = (uint8_t)(value_of(calls, i, column) >> shift);
}

/*
 * The number of nodes and columns, the width of each column in bytes; then the columns, the lowest bytes of all nodes
 * first.
 */
static void put_nodes(struct marey__buf *block, const struct marey__calls *calls)
{
    const uint32_t n = (uint32_t)calls->n_nodes;
    uint8_t head[5 + N_COLUMNS] = {(uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16),
                                   (uint8_t)(n >> 24), N_COLUMNS};
    for (size_t c = 0; c < N_COLUMNS; c++)
        head[5 + c] = width_of(calls, &columns[c]);
    marey__buf_put(block, head, sizeof head);
    for (size_t c = 0; c < N_COLUMNS; c++)
        for (unsigned plane = 0; plane < head[5 + c]; plane++)
            put_plane(block, calls, &columns[c], 8 * plane);
}

/* The nodes of a tree as a block of this name. */
static marey_status put_tree(struct marey__page_packer *packer, const struct marey__calls *calls,
                             const char *name)
{
    struct marey__buf block MAREY__FINALLY(marey__buf_fini) = {0};
    put_nodes(&block, calls);
    return block.failed ? marey__no_memory()
                        : marey__page_packer_put(packer, name, block.data, block.len);
}

static marey_status put_block(struct marey__page_packer *packer, const struct marey__calls *calls,
                              size_t number)
{
    char name[32];
    snprintf(name, sizeof name, "calls-%zu", number);
    return put_tree(packer, calls, name);
}

/* ---- names ---- */

static void put_functions(struct marey__buf *json, const struct marey__calls *calls)
{
    marey__page_open(json, "functions", "[");
    for (size_t i = 0; i < calls->n_functions; i++) {
        const struct marey__call_function *const f = &calls->functions[i];
        marey__json_printf(json, "[%s,%s,%s,%u,%s,%u],", f->name, f->qualified, f->file, f->line,
                           f->module, f->kind);
    }
    marey__page_close(json, "],");
}

static void put_signatures(struct marey__buf *json, const struct marey__calls *calls)
{
    marey__page_open(json, "signatures", "[");
    for (size_t i = 0; i < calls->n_signatures; i++) {
        const struct marey__call_signature *const s = &calls->signatures[i];
        marey__json_printf(json, "[%u,%s,%f],", s->function, s->text, s->elements);
    }
    marey__page_close(json, "],");
}

/* With several processes, they are named. */
static bool has_many_processes(const struct marey__calls *calls)
{
    for (size_t i = 1; i < calls->n_threads; i++)
        if (calls->threads[i].pid != calls->threads[0].pid)
            return true;
    return false;
}

static void put_threads(struct marey__buf *json, const struct marey__calls *calls)
{
    const bool has_many = has_many_processes(calls);
    struct marey__buf text = {0};
    marey__page_open(json, "threads", "[");
    for (size_t i = 0; i < calls->n_threads; i++) {
        const struct marey__call_thread *const t = &calls->threads[i];
        text.len = 0;
        if (t->rank >= 0)
            marey__buf_printf(&text, "rank %d, ", t->rank);
        else if (has_many)
            marey__buf_printf(&text, "process %lld, ", (long long)t->pid);
        if (t->name[0] != '\0')
            marey__buf_puts(&text, t->name);
        else
            marey__buf_printf(&text, "thread %lld", (long long)t->tid);
        marey__json_printf(json, "%.*s,", text.failed ? 0 : (int)text.len, text.data);
    }
    marey__buf_end(&text, json);
    marey__page_close(json, "],");
}

static void put_profile(struct marey__buf *json, const struct marey__calls *calls, const char *title)
{
    marey__buf_puts(json, "{");
    marey__page_put_text(json, "title", title);
    put_functions(json, calls);
    put_signatures(json, calls);
    put_threads(json, calls);
    marey__script_printf(
        json, "'nodes':%zu,'other_paths':%" PRIu64 ",'widened':%" PRIu64 ",'cost_ps':%" PRIu64 ",",
        calls->n_nodes, (uint64_t)calls->other_paths, (uint64_t)calls->widened,
        (uint64_t)calls->cost_ps);
    marey__page_put_bool(json, "is_samples", calls->from_samples);
    marey__page_put_bool(json, "is_cpu_time", (calls->flags & MAREY__CALLS_CPU_TIMER) != 0);
    marey__page_close(json, "},");
}

/* ---- the report page: a tree of calls, and one of samples, which count as by default ---- */

static const struct {
    const char *key, *block;
} trees[MAREY__PAGE_TREES] = {{"calls", "calls-0"}, {"sample_calls", "samples-0"}};

marey_status marey__page_read_trees(struct marey__page *page)
{
    marey_recording *const *const list = page->recordings;
    const size_t n = page->n_recordings;
    const bool are_there[] = {marey__calls_are_there(list, n), marey__samples_are_there(list, n)};
    for (size_t i = 0; i < MAREY__PAGE_TREES; i++) {
        if (!are_there[i])
            continue;
        struct marey__calls *const tree = page->trees[i] = marey__calloc(1, sizeof *tree);
        MAREY__TRY_MEMORY(tree != NULL);
        MAREY_TRY(i == 0 ? marey__calls_read(tree, list, n)
                         : marey__calls_read_samples(tree, list, n, NULL, false));
        MAREY_TRY(put_tree(page->packer, tree, trees[i].block));
    }
    return MAREY_OK;
}

void marey__page_put_trees(const struct marey__page *page, struct marey__buf *json)
{
    for (size_t i = 0; i < MAREY__PAGE_TREES; i++) {
        if (page->trees[i] == NULL)
            continue;
        marey__page_open(json, trees[i].key, "[");
        put_profile(json, page->trees[i], page->summary->title);
        marey__page_close(json, "],");
    }
}

void marey__page_free_trees(struct marey__page *page)
{
    for (size_t i = 0; i < MAREY__PAGE_TREES; i++) {
        if (page->trees[i] != NULL)
            marey__calls_fini(page->trees[i]);
        marey__free(page->trees[i]);
    }
}

/* ---- a page with only calls ---- */

/* One side of it: the profile, or the one it is compared with. */
struct side {
    marey_recording *const *recordings;
    size_t n;
    const char *title; /* given by the user; NULL: the recordings' */
    char *own_title;
    struct marey__calls calls;
};

struct call_page {
    struct side sides[2];
    size_t n_sides;
    const char *title; /* of the page; NULL: from its sides */
    marey_report *report;
    int fd;
};

static const char *title_of(const struct side *side)
{
    return side->title != NULL ? side->title : side->own_title;
}

static marey_status read_side(struct side *side)
{
    side->own_title = marey__recordings_title(side->recordings, side->n);
    MAREY__TRY_MEMORY(side->own_title != NULL);
    MAREY_TRY(marey__calls_read(&side->calls, side->recordings, side->n));
    if (side->calls.n_nodes > 1)
        return MAREY_OK;
    return marey__fail(
        MAREY_EFORMAT,
        "%s has neither calls nor samples nor ranges; record some with marey run --calls, marey "
        "attach or marey.Profile",
        title_of(side));
}

static marey_status make_page(void *ctx, struct marey__page_packer *packer, const char *title,
                              struct marey__buf *json)
{
    const struct call_page *const page = ctx;
    for (size_t s = 0; s < page->n_sides; s++)
        MAREY_TRY(put_block(packer, &page->sides[s].calls, s));
    marey__page_put_start(json, "calls", title);
    marey__page_put_bool(json, "damaged",
                         marey__page_is_damaged(page->sides[0].recordings, page->sides[0].n) ||
                             marey__page_is_damaged(page->sides[1].recordings, page->sides[1].n));
    marey__page_open(json, "tables", "[");
    for (size_t i = 0; i < page->report->analysis->about.n_tables; i++)
        marey__page_table(json, page->report, i, NULL, MAX_ROWS);
    marey__page_close(json, "],");
    marey__page_open(json, "calls", "[");
    for (size_t s = 0; s < page->n_sides; s++)
        put_profile(json, &page->sides[s].calls, title_of(&page->sides[s]));
    marey__page_close(json, "]}");
    return MAREY_OK;
}

/* "calls of b.marey against a.marey" */
static marey_status write_page(struct call_page *page)
{
    struct marey__buf own MAREY__FINALLY(marey__buf_fini) = {0};
    for (size_t s = 0; s < page->n_sides; s++)
        MAREY_TRY(read_side(&page->sides[s]));
    MAREY_TRY(marey_report_create("calls", page->sides[0].recordings, page->sides[0].n, NULL,
                                  &page->report));
    for (size_t s = 0; s < page->n_sides; s++)
        marey__buf_printf(&own, "%s%s",
                          s != 0                              ? " against "
                          : page->sides[0].calls.from_samples ? "samples of "
                                                              : "calls of ",
                          title_of(&page->sides[s]));
    marey__buf_put(&own, "", 1);
    return own.failed
               ? marey__no_memory()
               : marey__page_put_all(page->fd, marey__page_template,
                                     page->title != NULL ? page->title : own.data, make_page, page);
}

marey_status marey_page_calls(marey_recording *const *recordings, size_t n,
                              const struct marey_page_calls_options *options, int fd)
{
    static const struct marey_page_calls_options defaults;
    const struct marey_page_calls_options *const wants = options != NULL ? options : &defaults;
    struct call_page page = {
        .sides = {{.recordings = recordings, .n = n, .title = wants->name},
                  {.recordings = wants->before, .n = wants->n_before, .title = wants->name_before}},
        .n_sides = wants->n_before != 0 ? 2 : 1,
        .title = wants->title,
        .fd = fd,
    };
    const marey_status status = write_page(&page);
    for (size_t s = 0; s < MAREY__COUNT_OF(page.sides); s++) {
        marey__calls_fini(&page.sides[s].calls);
        marey__free(page.sides[s].own_title);
    }
    marey_report_destroy(page.report);
    return status;
}
