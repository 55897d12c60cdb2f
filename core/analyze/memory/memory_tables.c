/* The tables of memory. */
#include <math.h>

#include "analyze/memory/internal.h"

#define BYTES(name, title)                                                                         \
    {                                                                                              \
        name, title, MAREY_TYPE_F64, MAREY_UNIT_BYTES                                              \
    }
#define WHOSE                                                                                      \
    {"rank", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE},                                               \
        {"pid", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE}, TEXT("device")

static const struct marey_column pool_columns[] = {
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
static const struct marey_column phase_columns[] = {WHOSE, TEXT("phase"), COUNT("count", NULL),
                                                    BYTES("peak_bytes", "peak"),
                                                    BYTES("peak_resident_bytes", "peak resident")};
static const struct marey_column category_columns[] = {WHOSE, TEXT("category"), BYTES("bytes", NULL),
                                                       SHARE("share", NULL), COUNT("blocks", NULL)};
static const struct marey_column module_columns[] = {WHOSE, TEXT("module"), BYTES("bytes", NULL),
                                                     SHARE("share", NULL), COUNT("blocks", NULL)};
static const struct marey_column stack_columns[] = {WHOSE,
                                                    BYTES("bytes", NULL),
                                                    BYTES("plus_minus_bytes", "+/-"),
                                                    SHARE("share", NULL),
                                                    COUNT("blocks", NULL),
                                                    TEXT("where"),
                                                    TEXT("stack")};
static const struct marey_column growth_columns[] = {
    WHOSE,
    TEXT("what"),
    TEXT("per"),
    BYTES("slope_bytes", "growth"),
    BYTES("low_bytes", "from"),
    BYTES("high_bytes", "to"),
    BYTES("total_bytes", "in all"),
    COUNT("points", NULL),
    {"is_suspected", "leak?", MAREY_TYPE_BOOL, MAREY_UNIT_NONE},
    TEXT("where"),
    TEXT("stack")};
static const struct marey_column fragmentation_columns[] = {
    WHOSE,
    BYTES("reserved_bytes", "reserved"),
    BYTES("allocated_bytes", "allocated"),
    BYTES("inactive_bytes", "free"),
    BYTES("whole_bytes", "in whole segments"),
    BYTES("split_bytes", "between blocks"),
    {"split_share", "of reserved", MAREY_TYPE_F64, MAREY_UNIT_SHARE},
    BYTES("largest_free_bytes", "largest free"),
    {"free_blocks", "free pieces", MAREY_TYPE_U64, MAREY_UNIT_COUNT},
    COUNT("segments", NULL)};
static const struct marey_column resident_columns[] = {WHOSE, NS("at_ns", "at"),
                                                       BYTES("bytes", NULL)};
static const struct marey_column live_columns[] = {WHOSE, NS("at_ns", "at"), BYTES("bytes", NULL)};

#define TABLE(columns) columns, MAREY__COUNT_OF(columns)
const struct marey_table_definition marey__memory_tables[MAREY__N_MEMORY_TABLES] = {
    [MAREY__MEMORY_POOLS] =
        {"pools", TABLE(pool_columns),
         NULL, "the peak of each process or device, memory left at the end, and the source of the figures"},
    [MAREY__MEMORY_PHASES] = {"phases", TABLE(phase_columns), NULL, "the maximum in each phase"},
    [MAREY__MEMORY_CATEGORIES] = {"categories", TABLE(category_columns), NULL,
                                  "live memory at the peak, by category"},
    [MAREY__MEMORY_MODULES] = {"modules", TABLE(module_columns), NULL,
                               "live memory at the peak, by module"},
    [MAREY__MEMORY_STACKS] = {"stacks", TABLE(stack_columns), NULL,
                              "live memory at the peak, by where it was allocated"},
    [MAREY__MEMORY_GROWTH] = {"growth", TABLE(growth_columns), NULL,
                              "growth with each iteration, and suspected leaks"},
    [MAREY__MEMORY_FRAGMENTATION] = {"fragmentation", TABLE(fragmentation_columns), NULL,
                                     "memory reserved by torch but unused at the end"},
    [MAREY__MEMORY_RESIDENT] = {"resident", TABLE(resident_columns), NULL,
                                "resident memory over time"},
    [MAREY__MEMORY_LIVE] = {"live", TABLE(live_columns), NULL, "live memory over time"},
    [MAREY__MEMORY_NOTES] = {"notes", marey__warning_columns, 1, NULL, "notes on the figures"},
};

/* ---- cells ---- */

void marey__memory_put_stack(marey_table *table, const struct marey__memory_report *report,
                             uint32_t stack)
{
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    if (stack >= report->n_stacks) {
        marey_table_null(table);
        return;
    }
    const struct marey__memory_stack *const s = &report->stacks[stack];
    for (size_t i = 0; i < s->n; i++) {
        const struct marey__name *const name = &report->names.names[report->frames[s->first + i]];
        marey__buf_puts(&text, i > 0 ? " < " : "");
        marey__buf_put(&text, name->text, name->len);
    }
    if (text.failed || text.len == 0)
        marey_table_null(table);
    else
        marey_table_text(table, text.data, text.len);
}

static double highest(const struct marey__memory_readings *readings)
{
    double most = 0;
    for (size_t i = 0; i < readings->n; i++)
        most = fmax(most, readings->at[i].bytes);
    return most;
}

struct marey__cell marey__memory_moment(const struct marey__memory_pool *pool, uint64_t ns,
                                        bool is_known)
{
    return KNOWN(is_known && !pool->is_ordered, U64(ns > pool->first_ns ? ns - pool->first_ns : 0));
}

static void put_fragmentation(struct marey__memory_report *report,
                              const struct marey__memory_pool *pool)
{
    marey_table *const table = report->tables[MAREY__MEMORY_FRAGMENTATION];
    if (!pool->has_segments)
        return;
    const double split = pool->inactive_bytes - pool->whole_bytes;
    MAREY__PUT_ROW(table, MAREY__MEMORY_WHOSE(pool), FINITE(pool->segment_bytes),
                   FINITE(pool->allocated_bytes), FINITE(pool->inactive_bytes),
                   FINITE(pool->whole_bytes), FINITE(split),
                   KNOWN(pool->segment_bytes > 0, FINITE(split / pool->segment_bytes)),
                   FINITE(pool->largest_free), U64(pool->n_free), U64(pool->n_segments));
}

void marey__memory_put_pool(struct marey__memory_report *report, const struct marey__memory_pool *pool)
{
    marey_table *const table = report->tables[MAREY__MEMORY_POOLS];
    const bool is_sampled = pool->last_interval > 1, has_blocks = pool->n_blocks != 0;
    const struct marey__memory_readings *const resident = &pool->resident;
    const double peak_resident = fmax(pool->peak_resident, highest(resident));
    MAREY__PUT_ROW(
        table, MAREY__MEMORY_WHOSE(pool), STRING(pool->source),
        marey__memory_moment(pool, pool->last_ns, pool->last_ns > pool->first_ns),
        KNOWN(is_sampled, FINITE((double)pool->last_interval)), U64(pool->n_blocks),
        U64(pool->n_dropped + pool->n_unfollowed), KNOWN(pool->cost_ns != 0, U64(pool->cost_ns)),
        KNOWN(has_blocks, FINITE(pool->peak_bytes)),
        KNOWN(has_blocks && is_sampled, FINITE(pool->peak_plus_minus)),
        marey__memory_moment(pool, pool->peak_ns, has_blocks),
        KNOWN(has_blocks, FINITE(pool->end_bytes)), KNOWN(peak_resident > 0, FINITE(peak_resident)),
        KNOWN(resident->n != 0, FINITE(resident->at[resident->n - 1].bytes)),
        KNOWN(pool->limit > 0, FINITE(pool->limit)),
        KNOWN(pool->reserved.n != 0, FINITE(highest(&pool->reserved))));
    put_fragmentation(report, pool);
}

void marey__memory_put_resident(struct marey__memory_report *report,
                                const struct marey__memory_pool *pool)
{
    marey_table *const table = report->tables[MAREY__MEMORY_RESIDENT];
    for (size_t i = 0; i < pool->resident.n; i++)
        MAREY__PUT_ROW(table, MAREY__MEMORY_WHOSE(pool),
                       marey__memory_moment(pool, pool->resident.at[i].ns, true),
                       FINITE(pool->resident.at[i].bytes));
}
