/* The tables of calls that have a row for each function, or for each pair of them; and what all are called. */
#include <string.h>

#include "analyze/calls.h"
#include "analyze/columns.h"

#define WHERE TEXT("file"), WHOLE("line")
#define SUMS                                                                                       \
    COUNT("calls", NULL), COUNT("primitive_calls", "primitive"), COUNT("resumes", NULL),           \
        NS("self_ns", "self"), MEAN("self_per_call_ns", "self/call"), NS("total_ns", "total"),     \
        MEAN("total_per_call_ns", "total/call"), NS("max_ns", "max"), SHARE("share", "of all"),    \
        NS("gpu_ns", "GPU")
#define PAIR_SUMS                                                                                  \
    COUNT("calls", NULL), COUNT("primitive_calls", "primitive"), NS("self_ns", "self"),            \
        NS("total_ns", "total"), SHARE("share", "of function")

static const struct kymo_column functions[] = {TEXT("function"), WHERE, TEXT("module"),
                                               TEXT("kind"), SUMS};
static const struct kymo_column signatures[] = {TEXT("function"),
                                                TEXT("signature"),
                                                COUNT("elements", NULL),
                                                WHERE,
                                                TEXT("module"),
                                                TEXT("kind"),
                                                SUMS};
static const struct kymo_column callers[] = {
    TEXT("function"), WHERE, TEXT("caller"), TEXT("caller_file"), WHOLE("caller_line"), PAIR_SUMS};
static const struct kymo_column callees[] = {
    TEXT("function"), WHERE, TEXT("callee"), TEXT("callee_file"), WHOLE("callee_line"), PAIR_SUMS};
static const struct kymo_column paths[] = {
    COUNT("node", NULL),     COUNT("parent", NULL),    COUNT("depth", NULL),
    TEXT("function"),        TEXT("signature"),        WHERE,
    TEXT("thread"),          COUNT("calls", NULL),     NS("self_ns", "self"),
    NS("total_ns", "total"), SHARE("share", "of all"), NS("gpu_ns", "GPU")};
static const struct kymo_column shapes[] = {TEXT("function"),
                                            WHERE,
                                            TEXT("signature"),
                                            COUNT("calls", NULL),
                                            MEAN("per_call_ns", "per call"),
                                            COUNT("elements", NULL),
                                            MEAN("ns_per_element", "per element"),
                                            REAL("times_best", "x best"),
                                            SHARE("share", "of function")};
static const struct kymo_column threads[] = {NUMBER("rank"),       NUMBER("pid"),
                                             NUMBER("tid"),        TEXT("thread"),
                                             COUNT("calls", NULL), COUNT("functions", NULL),
                                             NS("self_ns", "self")};
static const struct kymo_column totals[] = {COUNT("calls", NULL),
                                            COUNT("primitive_calls", "primitive"),
                                            COUNT("functions", NULL),
                                            COUNT("signatures", NULL),
                                            COUNT("paths", NULL),
                                            COUNT("threads", NULL),
                                            NS("self_ns", "self"),
                                            COUNT("other_paths", NULL),
                                            COUNT("widened", NULL),
                                            MEAN("cost_per_call_ns", "cost/call"),
                                            NS("subtracted_ns", "subtracted"),
                                            TEXT("timer"),
                                            TEXT("source")};
static const struct kymo_column notes[] = {TEXT("text")};

static const struct {
    const char *name;
    const struct kymo_column *columns;
    size_t n;
} kinds[KYMO__N_CALLS_TABLES] = {
#define KIND(columns)                                                                              \
    {                                                                                              \
#columns, columns, KYMO__COUNT_OF(columns)                                                 \
    }
    [KYMO__CALLS_FUNCTIONS] = KIND(functions), [KYMO__CALLS_BY_SIGNATURE] = KIND(signatures),
    [KYMO__CALLS_CALLERS] = KIND(callers),     [KYMO__CALLS_CALLEES] = KIND(callees),
    [KYMO__CALLS_PATHS] = KIND(paths),         [KYMO__CALLS_SHAPES] = KIND(shapes),
    [KYMO__CALLS_THREADS] = KIND(threads),     [KYMO__CALLS_TOTALS] = KIND(totals),
    [KYMO__CALLS_NOTES] = KIND(notes),
};

kymo_status kymo__calls_tables_create(struct kymo_calls_report *report)
{
    for (size_t i = 0; i < KYMO__N_CALLS_TABLES; i++)
        KYMO_TRY(kymo_table_create(kinds[i].name, kinds[i].columns, kinds[i].n, &report->tables[i]));
    return KYMO_OK;
}

/* ---- functions ---- */

static const char *kind_name(uint8_t kind)
{
    static const char *const names[] = {"python", "built-in", "compiled"};
    return kind < KYMO__COUNT_OF(names) ? names[kind] : "other";
}

static bool is_wanted(const struct kymo_calls_report *report, uint32_t function)
{
    const char *const name = report->calls.functions[function].name;
    return kymo__name_matches(report->options.filter, name, strlen(name));
}

void kymo__calls_put_where(kymo_table *table, const struct kymo__call_function *function)
{
    kymo__put_string(table, function->file);
    if (function->line != 0)
        kymo_table_u64(table, function->line);
    else
        kymo_table_null(table);
}

/* Nanoseconds for each of `n`; null for none. */
static void put_mean(kymo_table *table, uint64_t ns, uint64_t n)
{
    if (n != 0)
        kymo_table_f64(table, (double)ns / (double)n);
    else
        kymo_table_null(table);
}

static void put_known(kymo_table *table, uint64_t ns, bool is_known)
{
    if (is_known)
        kymo_table_u64(table, ns);
    else
        kymo_table_null(table);
}

static void put_sums(kymo_table *table, const struct kymo_calls_report *report,
                     const struct kymo__call_sum *sum, uint64_t whole_ns)
{
    const bool is_counted = !report->calls.from_samples;
    put_known(table, sum->calls, is_counted);
    put_known(table, sum->primitive, is_counted);
    put_known(table, sum->resumes, is_counted);
    kymo_table_u64(table, sum->self_ns);
    put_mean(table, sum->self_ns, is_counted ? sum->calls : 0);
    kymo_table_u64(table, sum->total_ns);
    put_mean(table, sum->total_ns, is_counted ? sum->primitive : 0);
    put_known(table, sum->max_ns, sum->max_ns != 0);
    kymo__put_share(table, sum->self_ns, whole_ns);
    put_known(table, sum->gpu_ns, report->calls.has_gpu);
}

static void put_entities(struct kymo_calls_report *report, enum kymo__calls_table which,
                         const struct kymo__call_sums *sums)
{
    const struct kymo__calls *const calls = &report->calls;
    kymo_table *const table = report->tables[which];
    uint64_t whole_ns = 0;
    for (size_t i = 0; i < sums->n_entities; i++)
        whole_ns += sums->entities[i].self_ns;
    for (uint32_t i = 0; i < sums->n_entities; i++) {
        const struct kymo__call_sum *const sum = &sums->entities[i];
        const uint32_t number = kymo__entity_function(sums, calls, i),
                       signature = kymo__entity_signature(sums, i);
        const struct kymo__call_function *const function = &calls->functions[number];
        if ((sum->calls == 0 && sum->self_ns == 0) || !is_wanted(report, number))
            continue;
        kymo__put_string(table, function->name);
        if (sums->by_signature) {
            kymo__put_string(table, calls->signatures[signature].text);
            put_known(table, (uint64_t)calls->signatures[signature].elements,
                      calls->signatures[signature].elements > 0);
        }
        kymo__calls_put_where(table, function);
        kymo__put_string(table, function->module);
        kymo__put_string(table, kind_name(function->kind));
        put_sums(table, report, sum, whole_ns);
    }
}

/* ---- pairs ---- */

static void put_label(kymo_table *table, const struct kymo__calls *calls,
                      const struct kymo__call_sums *sums, uint32_t entity)
{
    struct kymo__buf label = {0};
    kymo__call_label(&label, calls, kymo__entity_function(sums, calls, entity),
                     kymo__entity_signature(sums, entity));
    kymo_table_text(table, label.data != NULL ? label.data : "", label.len);
    kymo__buf_fini(&label);
}

static void put_pair(struct kymo_calls_report *report, enum kymo__calls_table which,
                     const struct kymo__call_sums *sums, const struct kymo__call_edge *edge)
{
    const struct kymo__calls *const calls = &report->calls;
    kymo_table *const table = report->tables[which];
    const uint32_t of = which == KYMO__CALLS_CALLERS ? edge->callee : edge->caller,
                   other = which == KYMO__CALLS_CALLERS ? edge->caller : edge->callee;
    if (!is_wanted(report, kymo__entity_function(sums, calls, of)))
        return;
    const uint32_t both[] = {of, other};
    for (size_t i = 0; i < 2; i++) {
        put_label(table, calls, sums, both[i]);
        kymo__calls_put_where(table, &calls->functions[kymo__entity_function(sums, calls, both[i])]);
    }
    put_known(table, edge->sum.calls, !calls->from_samples);
    put_known(table, edge->sum.primitive, !calls->from_samples);
    kymo_table_u64(table, edge->sum.self_ns);
    kymo_table_u64(table, edge->sum.total_ns);
    kymo__put_share(table, edge->sum.total_ns, sums->entities[of].total_ns);
}

static void put_pairs(struct kymo_calls_report *report, const struct kymo__call_sums *sums)
{
    for (size_t i = 0; i < sums->n_edges; i++) {
        put_pair(report, KYMO__CALLS_CALLERS, sums, &sums->edges[i]);
        put_pair(report, KYMO__CALLS_CALLEES, sums, &sums->edges[i]);
    }
}

bool kymo__calls_tables_fill(struct kymo_calls_report *report)
{
    struct kymo__call_sums by_function = {0}, by_signature = {0};
    const bool done = kymo__call_sums_make(&by_function, &report->calls, false) &&
                      kymo__call_sums_make(&by_signature, &report->calls, true) &&
                      kymo__calls_put_paths(report) && kymo__calls_put_threads(report);
    if (done) {
        put_entities(report, KYMO__CALLS_FUNCTIONS, &by_function);
        put_entities(report, KYMO__CALLS_BY_SIGNATURE, &by_signature);
        put_pairs(report, report->options.by_signature ? &by_signature : &by_function);
        kymo__calls_put_totals(report, &by_function);
    }
    const bool has_shapes = done && kymo__calls_put_shapes(report, &by_function, &by_signature);
    kymo__call_sums_fini(&by_function);
    kymo__call_sums_fini(&by_signature);
    return has_shapes;
}
