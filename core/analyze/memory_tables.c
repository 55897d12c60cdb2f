/* The tables of memory. */
#include <math.h>
#include <string.h>

#include "analyze/columns.h"
#include "analyze/memory_whole.h"

#define BYTES(name, title)                                                                         \
    {                                                                                              \
        name, title, KYMO_TYPE_F64, KYMO_UNIT_BYTES                                                \
    }
#define WHOSE                                                                                      \
    {"rank", NULL, KYMO_TYPE_I64, KYMO_UNIT_NONE}, {"pid", NULL, KYMO_TYPE_I64, KYMO_UNIT_NONE},   \
        TEXT("device")

static const struct kymo_column pool_columns[] = {
    WHOSE,
    TEXT("source"),
    NS("span_ns", "over"),
    BYTES("interval_bytes", "sampled every"),
    COUNT("samples", NULL),
    COUNT("dropped", NULL),
    NS("cost_ns", "cost"),
    BYTES("peak_bytes", "peak"),
    BYTES("plus_minus_bytes", "+/-"),
    NS("peak_at_ns", "peak at"),
    BYTES("end_bytes", "at the end"),
    BYTES("peak_resident_bytes", "peak resident"),
    BYTES("end_resident_bytes", "resident at the end"),
    BYTES("limit_bytes", "limit"),
    BYTES("peak_reserved_bytes", "peak reserved")};
static const struct kymo_column phase_columns[] = {WHOSE, TEXT("phase"), COUNT("count", NULL),
                                                   BYTES("peak_bytes", "peak"),
                                                   BYTES("peak_resident_bytes", "peak resident")};
static const struct kymo_column category_columns[] = {WHOSE, TEXT("category"), BYTES("bytes", NULL),
                                                      SHARE("share", NULL), COUNT("blocks", NULL)};
static const struct kymo_column module_columns[] = {WHOSE, TEXT("module"), BYTES("bytes", NULL),
                                                    SHARE("share", NULL), COUNT("blocks", NULL)};
static const struct kymo_column stack_columns[] = {WHOSE,
                                                   BYTES("bytes", NULL),
                                                   BYTES("plus_minus_bytes", "+/-"),
                                                   SHARE("share", NULL),
                                                   COUNT("blocks", NULL),
                                                   TEXT("where"),
                                                   TEXT("stack")};
static const struct kymo_column growth_columns[] = {
    WHOSE,
    TEXT("what"),
    TEXT("per"),
    BYTES("slope_bytes", "growth"),
    BYTES("low_bytes", "from"),
    BYTES("high_bytes", "to"),
    BYTES("total_bytes", "in all"),
    COUNT("points", NULL),
    {"is_suspected", "leak?", KYMO_TYPE_BOOL, KYMO_UNIT_NONE},
    TEXT("where"),
    TEXT("stack")};
static const struct kymo_column fragmentation_columns[] = {
    WHOSE,
    BYTES("reserved_bytes", "reserved"),
    BYTES("allocated_bytes", "allocated"),
    BYTES("inactive_bytes", "free"),
    BYTES("whole_bytes", "in whole segments"),
    BYTES("split_bytes", "between blocks"),
    {"split_share", "of reserved", KYMO_TYPE_F64, KYMO_UNIT_SHARE},
    BYTES("largest_free_bytes", "largest free"),
    {"free_blocks", "free pieces", KYMO_TYPE_U64, KYMO_UNIT_COUNT},
    COUNT("segments", NULL)};
static const struct kymo_column resident_columns[] = {WHOSE, NS("at_ns", "at"), BYTES("bytes", NULL)};
static const struct kymo_column live_columns[] = {WHOSE, NS("at_ns", "at"), BYTES("bytes", NULL)};
static const struct kymo_column note_columns[] = {TEXT("text")};

static const struct kymo__table_definition definitions[] = {
    [KYMO__MEMORY_POOLS] = DEFINED("pools", pool_columns),
    [KYMO__MEMORY_PHASES] = DEFINED("phases", phase_columns),
    [KYMO__MEMORY_CATEGORIES] = DEFINED("categories", category_columns),
    [KYMO__MEMORY_MODULES] = DEFINED("modules", module_columns),
    [KYMO__MEMORY_STACKS] = DEFINED("stacks", stack_columns),
    [KYMO__MEMORY_GROWTH] = DEFINED("growth", growth_columns),
    [KYMO__MEMORY_FRAGMENTATION] = DEFINED("fragmentation", fragmentation_columns),
    [KYMO__MEMORY_RESIDENT] = DEFINED("resident", resident_columns),
    [KYMO__MEMORY_LIVE] = DEFINED("live", live_columns),
    [KYMO__MEMORY_NOTES] = DEFINED("notes", note_columns),
};

kymo_status kymo__memory_tables_create(struct kymo_memory_report *report)
{
    for (size_t i = 0; i < KYMO__N_MEMORY_TABLES; i++)
        KYMO_TRY(kymo_table_create(definitions[i].name, definitions[i].columns, definitions[i].n,
                                   &report->tables[i]));
    return KYMO_OK;
}

/* ---- cells ---- */

void kymo__memory_put_whose(kymo_table *table, const struct kymo__memory_pool *pool)
{
    if (pool->rank >= 0)
        kymo_table_i64(table, pool->rank);
    else
        kymo_table_null(table);
    if (pool->pid > 0)
        kymo_table_i64(table, pool->pid);
    else
        kymo_table_null(table);
    kymo__put_string(table, pool->device);
}

void kymo__memory_put_bytes(kymo_table *table, double bytes, bool is_known)
{
    if (is_known && isfinite(bytes))
        kymo_table_f64(table, bytes);
    else
        kymo_table_null(table);
}

void kymo__memory_put_text(kymo_table *table, const struct kymo_memory_report *report, uint32_t name)
{
    kymo_table_text(table, report->names.names[name].text, report->names.names[name].len);
}

void kymo__memory_put_stack(kymo_table *table, const struct kymo_memory_report *report, uint32_t stack)
{
    struct kymo__buf text = {0};
    if (stack >= report->n_stacks) {
        kymo_table_null(table);
        return;
    }
    const struct kymo__memory_stack *const s = &report->stacks[stack];
    for (size_t i = 0; i < s->n; i++) {
        const struct kymo__name *const name = &report->names.names[report->frames[s->first + i]];
        kymo__buf_puts(&text, i > 0 ? " < " : "");
        kymo__buf_put(&text, name->text, name->len);
    }
    if (text.failed || text.len == 0)
        kymo_table_null(table);
    else
        kymo_table_text(table, text.data, text.len);
    kymo__buf_fini(&text);
}

static double highest(const struct kymo__memory_readings *readings)
{
    double most = 0;
    for (size_t i = 0; i < readings->n; i++)
        most = fmax(most, readings->at[i].bytes);
    return most;
}

void kymo__memory_put_moment(kymo_table *table, const struct kymo__memory_pool *pool, uint64_t ns,
                             bool is_known)
{
    if (is_known && !pool->is_ordered)
        kymo_table_u64(table, ns > pool->first_ns ? ns - pool->first_ns : 0);
    else
        kymo_table_null(table);
}

static void put_fragmentation(struct kymo_memory_report *report, const struct kymo__memory_pool *pool)
{
    kymo_table *const table = report->tables[KYMO__MEMORY_FRAGMENTATION];
    if (!pool->has_segments)
        return;
    const double split = pool->inactive_bytes - pool->whole_bytes;
    kymo__memory_put_whose(table, pool);
    kymo__memory_put_bytes(table, pool->segment_bytes, true);
    kymo__memory_put_bytes(table, pool->allocated_bytes, true);
    kymo__memory_put_bytes(table, pool->inactive_bytes, true);
    kymo__memory_put_bytes(table, pool->whole_bytes, true);
    kymo__memory_put_bytes(table, split, true);
    kymo__memory_put_bytes(table, split / pool->segment_bytes, pool->segment_bytes > 0);
    kymo__memory_put_bytes(table, pool->largest_free, true);
    kymo_table_u64(table, pool->n_free);
    kymo_table_u64(table, pool->n_segments);
}

void kymo__memory_put_pool(struct kymo_memory_report *report, const struct kymo__memory_pool *pool)
{
    kymo_table *const table = report->tables[KYMO__MEMORY_POOLS];
    const bool is_sampled = pool->last_interval > 1, has_blocks = pool->n_blocks != 0;
    const struct kymo__memory_readings *const resident = &pool->resident;
    const double peak_resident = fmax(pool->peak_resident, highest(resident));
    kymo__memory_put_whose(table, pool);
    kymo__put_string(table, pool->source);
    kymo__memory_put_moment(table, pool, pool->last_ns, pool->last_ns > pool->first_ns);
    kymo__memory_put_bytes(table, (double)pool->last_interval, is_sampled);
    kymo_table_u64(table, pool->n_blocks);
    kymo_table_u64(table, pool->n_dropped + pool->n_unfollowed);
    if (pool->cost_ns != 0)
        kymo_table_u64(table, pool->cost_ns);
    else
        kymo_table_null(table);
    kymo__memory_put_bytes(table, pool->peak_bytes, has_blocks);
    kymo__memory_put_bytes(table, pool->peak_plus_minus, has_blocks && is_sampled);
    kymo__memory_put_moment(table, pool, pool->peak_ns, has_blocks);
    kymo__memory_put_bytes(table, pool->end_bytes, has_blocks);
    kymo__memory_put_bytes(table, peak_resident, peak_resident > 0);
    kymo__memory_put_bytes(table, resident->n != 0 ? resident->at[resident->n - 1].bytes : 0,
                           resident->n != 0);
    kymo__memory_put_bytes(table, pool->limit, pool->limit > 0);
    kymo__memory_put_bytes(table, highest(&pool->reserved), pool->reserved.n != 0);
    put_fragmentation(report, pool);
}

void kymo__memory_put_resident(struct kymo_memory_report *report, const struct kymo__memory_pool *pool)
{
    kymo_table *const table = report->tables[KYMO__MEMORY_RESIDENT];
    for (size_t i = 0; i < pool->resident.n; i++) {
        kymo__memory_put_whose(table, pool);
        kymo__memory_put_moment(table, pool, pool->resident.at[i].ns, true);
        kymo__memory_put_bytes(table, pool->resident.at[i].bytes, true);
    }
}
