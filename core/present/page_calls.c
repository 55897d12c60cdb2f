/*
 * Calls on a page: names as JSON in the index, and the nodes of the tree as columns in a block of their own, since there may
 * be a million of them. The report page has them where calls were profiled; kymo_page_calls() makes a page of them alone,
 * and holds them against others where there are any. docs/formats/page.md has the bytes.
 */
#include <stdio.h>
#include <string.h>

#include "analyze/calls.h"
#include "present/page_internal.h"
#include "present/present_internal.h"
#include <kymo/calls_report.h>

/* Rows of each table that a page of calls has: what is behind them is in `kymo report --calls --csv`. */
enum { MAX_ROWS = 5000 };

/* ---- nodes ---- */

/* In the order in which they are written. */
enum column {
    PARENT,
    FUNCTION,
    SIGNATURE,
    THREAD,
    CALLS,
    RESUMES,
    SELF,
    TOTAL,
    MAX,
    GPU,
    N_COLUMNS
};

static uint64_t value_of(const struct kymo__calls *calls, size_t i, enum column column)
{
    const struct kymo__call_node *const node = &calls->nodes[i];
    switch (column) {
    case PARENT:
        return i - node->parent; /* parents stand a little before their children */
    case FUNCTION:
        return node->function;
    case SIGNATURE:
        return node->signature;
    case THREAD:
        return node->thread;
    case CALLS:
        return node->calls;
    case RESUMES:
        return node->resumes;
    case SELF:
        return node->self_ns;
    case TOTAL:
        return node->total_ns;
    case MAX:
        return node->max_ns;
    default:
        return node->gpu_ns;
    }
}

static uint8_t width_of(const struct kymo__calls *calls, enum column column)
{
    uint64_t all = 0;
    uint8_t width = 0;
    for (size_t i = 0; i < calls->n_nodes; i++)
        all |= value_of(calls, i, column);
    for (; all != 0; all >>= 8)
        width++;
    return width;
}

static void put_plane(struct kymo__buf *block, const struct kymo__calls *calls, enum column column,
                      unsigned shift)
{
    uint8_t *const to = kymo__buf_extend(block, calls->n_nodes);
    for (size_t i = 0; to != NULL && i < calls->n_nodes; i++)
        to[i] = (uint8_t)(value_of(calls, i, column) >> shift);
}

/* How many nodes, how many columns, the width of each in bytes; then the columns, the lowest bytes of all nodes first. */
static void put_nodes(struct kymo__buf *block, const struct kymo__calls *calls)
{
    const uint32_t n = (uint32_t)calls->n_nodes;
    uint8_t head[5 + N_COLUMNS] = {(uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16),
                                   (uint8_t)(n >> 24), N_COLUMNS};
    for (enum column c = 0; c < N_COLUMNS; c++)
        head[5 + c] = width_of(calls, c);
    kymo__buf_put(block, head, sizeof head);
    for (enum column c = 0; c < N_COLUMNS; c++)
        for (unsigned plane = 0; plane < head[5 + c]; plane++)
            put_plane(block, calls, c, 8 * plane);
}

kymo_status kymo__page_put_nodes(struct kymo__page_packer *packer, const struct kymo__calls *calls,
                                 const char *name)
{
    struct kymo__buf block = {0};
    put_nodes(&block, calls);
    const kymo_status status = block.failed
                                   ? kymo__fail(KYMO_ENOMEM, "no memory for the page's calls")
                                   : kymo__page_packer_put(packer, name, block.data, block.len);
    kymo__buf_fini(&block);
    return status;
}

static kymo_status put_block(struct kymo__page_packer *packer, const struct kymo__calls *calls,
                             size_t number)
{
    char name[32];
    snprintf(name, sizeof name, "calls-%zu", number);
    return kymo__page_put_nodes(packer, calls, name);
}

/* ---- names ---- */

static void put_functions(struct kymo__buf *json, const struct kymo__calls *calls)
{
    kymo__page_put_key(json, "functions");
    kymo__buf_puts(json, "[");
    for (size_t i = 0; i < calls->n_functions; i++) {
        const struct kymo__call_function *const f = &calls->functions[i];
        kymo__buf_puts(json, "[");
        kymo__page_put_string(json, f->name);
        kymo__buf_puts(json, ",");
        kymo__page_put_string(json, f->qualified);
        kymo__buf_puts(json, ",");
        kymo__page_put_string(json, f->file);
        kymo__buf_printf(json, ",%u,", f->line);
        kymo__page_put_string(json, f->module);
        kymo__buf_printf(json, ",%u],", f->kind);
    }
    kymo__page_close(json, "],");
}

static void put_signatures(struct kymo__buf *json, const struct kymo__calls *calls)
{
    kymo__page_put_key(json, "signatures");
    kymo__buf_puts(json, "[");
    for (size_t i = 0; i < calls->n_signatures; i++) {
        const struct kymo__call_signature *const s = &calls->signatures[i];
        char number[40];
        kymo__buf_printf(json, "[%u,", s->function);
        kymo__page_put_string(json, s->text);
        kymo__buf_puts(json, ",");
        kymo__buf_put(json, number, (size_t)(kymo__put_f64(number, s->elements) - number));
        kymo__buf_puts(json, "],");
    }
    kymo__page_close(json, "],");
}

/* Processes are told where there are several. */
static bool has_many_processes(const struct kymo__calls *calls)
{
    for (size_t i = 1; i < calls->n_threads; i++)
        if (calls->threads[i].pid != calls->threads[0].pid)
            return true;
    return false;
}

static void put_threads(struct kymo__buf *json, const struct kymo__calls *calls)
{
    const bool has_many = has_many_processes(calls);
    struct kymo__buf text = {0};
    kymo__page_put_key(json, "threads");
    kymo__buf_puts(json, "[");
    for (size_t i = 0; i < calls->n_threads; i++) {
        const struct kymo__call_thread *const t = &calls->threads[i];
        text.len = 0;
        if (t->rank >= 0)
            kymo__buf_printf(&text, "rank %d, ", t->rank);
        else if (has_many)
            kymo__buf_printf(&text, "process %lld, ", (long long)t->pid);
        if (t->name[0] != '\0')
            kymo__buf_puts(&text, t->name);
        else
            kymo__buf_printf(&text, "thread %lld", (long long)t->tid);
        if (!text.failed)
            kymo__json_put(json, text.data, text.len);
        kymo__buf_puts(json, ",");
    }
    json->failed |= text.failed;
    kymo__buf_fini(&text);
    kymo__page_close(json, "],");
}

void kymo__page_put_profile(struct kymo__buf *json, const struct kymo__calls *calls, const char *title)
{
    kymo__buf_puts(json, "{");
    kymo__page_put_text(json, "title", title);
    put_functions(json, calls);
    put_signatures(json, calls);
    put_threads(json, calls);
    kymo__page_put_number(json, "nodes", calls->n_nodes);
    kymo__page_put_number(json, "other_paths", calls->other_paths);
    kymo__page_put_number(json, "widened", calls->widened);
    kymo__page_put_number(json, "cost_ps", calls->cost_ps);
    kymo__buf_printf(json, "\"is_samples\":%s,\"is_cpu_time\":%s},",
                     calls->from_samples ? "true" : "false",
                     (calls->flags & KYMO__CALLS_CPU_TIMER) != 0 ? "true" : "false");
}

/* ---- the report page ---- */

kymo_status kymo__page_profile(struct kymo__page *page)
{
    if (!kymo__calls_are_there(page->recordings, page->n_recordings))
        return KYMO_OK;
    page->calls = kymo__calloc(1, sizeof *page->calls);
    if (page->calls == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory for the page's calls");
    KYMO_TRY(kymo__calls_read(page->calls, page->recordings, page->n_recordings));
    return put_block(page->packer, page->calls, 0);
}

void kymo__page_put_calls(const struct kymo__page *page, struct kymo__buf *json)
{
    if (page->calls == NULL)
        return;
    kymo__page_put_key(json, "calls");
    kymo__buf_puts(json, "[");
    kymo__page_put_profile(json, page->calls, page->summary->title);
    kymo__page_close(json, "],");
}

void kymo__page_free_calls(struct kymo__page *page)
{
    if (page->calls != NULL)
        kymo__calls_fini(page->calls);
    kymo__free(page->calls);
}

/* ---- a page of calls alone ---- */

/* One side of it: the profile, or what it is held against. */
struct side {
    kymo_recording *const *recordings;
    size_t n;
    const char *title; /* the user's; NULL: the recordings' */
    char *own_title;
    struct kymo__calls calls;
};

struct call_page {
    struct side sides[2];
    size_t n_sides;
    const char *title; /* of the page; NULL: of its sides */
    kymo_calls_report *report;
    int fd;
};

static const char *const tables[] = {"functions", "signatures", "shapes", "callers", "callees",
                                     "paths",     "threads",    "totals", "notes"};

static const char *title_of(const struct side *side)
{
    return side->title != NULL ? side->title : side->own_title;
}

static kymo_status read_side(struct side *side)
{
    side->own_title = kymo__recordings_title(side->recordings, side->n);
    if (side->own_title == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory for the page");
    KYMO_TRY(kymo__calls_read(&side->calls, side->recordings, side->n));
    if (side->calls.n_nodes > 1)
        return KYMO_OK;
    return kymo__fail(
        KYMO_EFORMAT,
        "%s has neither calls nor samples nor ranges; record some with kymo run --calls, kymo "
        "attach or kymo.Profile",
        title_of(side));
}

static bool is_damaged(const struct call_page *page)
{
    for (size_t s = 0; s < page->n_sides; s++)
        for (size_t r = 0; r < page->sides[s].n; r++)
            if (kymo_recording_is_damaged(page->sides[s].recordings[r]))
                return true;
    return false;
}

static void put_index(const struct call_page *page, struct kymo__buf *json, const char *title)
{
    kymo__buf_puts(json, "{\"format\":1,\"kind\":\"calls\",");
    kymo__page_put_text(json, "version", kymo_version());
    kymo__page_put_text(json, "title", title);
    kymo__buf_printf(json, "\"damaged\":%s,", is_damaged(page) ? "true" : "false");
    kymo__page_put_key(json, "tables");
    kymo__buf_puts(json, "[");
    for (size_t i = 0; i < KYMO__COUNT_OF(tables); i++)
        kymo__page_table(json, kymo_calls_report_table(page->report, tables[i]), MAX_ROWS);
    kymo__page_close(json, "],");
    kymo__page_put_key(json, "calls");
    kymo__buf_puts(json, "[");
    for (size_t s = 0; s < page->n_sides; s++)
        kymo__page_put_profile(json, &page->sides[s].calls, title_of(&page->sides[s]));
    kymo__page_close(json, "]}");
}

static kymo_status put_data(const struct call_page *page, const char *title)
{
    struct kymo__page_packer *packer = NULL;
    struct kymo__buf json = {0};
    kymo_status status = kymo__page_packer_start(page->fd, 0, &packer);
    for (size_t s = 0; status == KYMO_OK && s < page->n_sides; s++)
        status = put_block(packer, &page->sides[s].calls, s);
    if (status == KYMO_OK) {
        put_index(page, &json, title);
        status = json.failed ? kymo__fail(KYMO_ENOMEM, "no memory for the page's index")
                             : kymo__page_packer_put(packer, "index", json.data, json.len);
    }
    kymo__page_packer_free(packer);
    kymo__buf_fini(&json);
    return status;
}

static kymo_status write_plain(const struct call_page *page, const char *title)
{
    kymo_table *list[KYMO__COUNT_OF(tables)];
    for (size_t i = 0; i < KYMO__COUNT_OF(tables); i++)
        list[i] = kymo_calls_report_table(page->report, tables[i]);
    return kymo__page_plain(list, KYMO__COUNT_OF(tables), title, page->fd);
}

static kymo_status write_titled(const struct call_page *page, const char *title)
{
    if (kymo_page_is_plain())
        return write_plain(page, title);
    KYMO_TRY(kymo__page_head(page->fd, kymo__page_template, title));
    KYMO_TRY(put_data(page, title));
    return kymo__page_tail(page->fd, kymo__page_template);
}

/* "calls of b.kymo against a.kymo" */
static kymo_status write_page(struct call_page *page)
{
    struct kymo__buf own = {0};
    for (size_t s = 0; s < page->n_sides; s++)
        KYMO_TRY(read_side(&page->sides[s]));
    KYMO_TRY(
        kymo_calls_report_create(page->sides[0].recordings, page->sides[0].n, NULL, &page->report));
    for (size_t s = 0; s < page->n_sides; s++)
        kymo__buf_printf(&own, "%s%s",
                         s != 0                              ? " against "
                         : page->sides[0].calls.from_samples ? "samples of "
                                                             : "calls of ",
                         title_of(&page->sides[s]));
    kymo__buf_put(&own, "", 1);
    const kymo_status status =
        own.failed ? kymo__fail(KYMO_ENOMEM, "no memory for the page")
                   : write_titled(page, page->title != NULL ? page->title : own.data);
    kymo__buf_fini(&own);
    return status;
}

kymo_status kymo_page_calls(kymo_recording *const *recordings, size_t n,
                            const struct kymo_page_calls_options *options, int fd)
{
    static const struct kymo_page_calls_options defaults;
    const struct kymo_page_calls_options *const wants = options != NULL ? options : &defaults;
    struct call_page page = {
        .sides = {{.recordings = recordings, .n = n, .title = wants->name},
                  {.recordings = wants->before, .n = wants->n_before, .title = wants->name_before}},
        .n_sides = wants->n_before != 0 ? 2 : 1,
        .title = wants->title,
        .fd = fd,
    };
    const kymo_status status = write_page(&page);
    for (size_t s = 0; s < KYMO__COUNT_OF(page.sides); s++) {
        kymo__calls_fini(&page.sides[s].calls);
        kymo__free(page.sides[s].own_title);
    }
    kymo_calls_report_destroy(page.report);
    return status;
}
