/* The tables of calls that have a row for each function, or for each pair of them; and what all are called. */
#include <string.h>

#include "analyze/calls/internal.h"
#include "analyze/walk/internal.h"

#define WHERE TEXT("file"), WHOLE("line")
#define SUMS                                                                                       \
    COUNT("calls", NULL), COUNT("primitive_calls", "primitive"), COUNT("resumes", NULL),           \
        NS("self_ns", "self"), MEAN("self_per_call_ns", "self/call"), NS("total_ns", "total"),     \
        MEAN("total_per_call_ns", "total/call"), NS("max_ns", "max"), SHARE("share", "of all"),    \
        NS("gpu_ns", "GPU")
#define PAIR_SUMS                                                                                  \
    COUNT("calls", NULL), COUNT("primitive_calls", "primitive"), NS("self_ns", "self"),            \
        NS("total_ns", "total"), SHARE("share", "of function")

static const struct marey_column functions[] = {TEXT("function"), WHERE, TEXT("module"),
                                                TEXT("kind"), SUMS};
static const struct marey_column signatures[] = {TEXT("function"),
                                                 TEXT("signature"),
                                                 COUNT("elements", NULL),
                                                 WHERE,
                                                 TEXT("module"),
                                                 TEXT("kind"),
                                                 SUMS};
static const struct marey_column callers[] = {
    TEXT("function"), WHERE, TEXT("caller"), TEXT("caller_file"), WHOLE("caller_line"), PAIR_SUMS};
static const struct marey_column callees[] = {
    TEXT("function"), WHERE, TEXT("callee"), TEXT("callee_file"), WHOLE("callee_line"), PAIR_SUMS};
static const struct marey_column paths[] = {
    COUNT("node", NULL),     COUNT("parent", NULL),    COUNT("depth", NULL),
    TEXT("function"),        TEXT("signature"),        WHERE,
    TEXT("thread"),          COUNT("calls", NULL),     NS("self_ns", "self"),
    NS("total_ns", "total"), SHARE("share", "of all"), NS("gpu_ns", "GPU")};
static const struct marey_column shapes[] = {TEXT("function"),
                                             WHERE,
                                             TEXT("signature"),
                                             COUNT("calls", NULL),
                                             MEAN("per_call_ns", "per call"),
                                             COUNT("elements", NULL),
                                             MEAN("ns_per_element", "per element"),
                                             REAL("times_best", "x best"),
                                             SHARE("share", "of function")};
static const struct marey_column threads[] = {NUMBER("rank"),       NUMBER("pid"),
                                              NUMBER("tid"),        TEXT("thread"),
                                              COUNT("calls", NULL), COUNT("functions", NULL),
                                              NS("self_ns", "self")};
static const struct marey_column totals[] = {COUNT("calls", NULL),
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
static const struct marey_column notes[] = {TEXT("text")};

#define TABLE(columns) #columns, columns, MAREY__COUNT_OF(columns)
const struct marey_table_definition marey__calls_tables[MAREY__N_CALLS_TABLES] = {
    [MAREY__CALLS_FUNCTIONS] = {TABLE(functions), "function", "a row for each, as cProfile counts"},
    [MAREY__CALLS_BY_SIGNATURE] = {TABLE(signatures), "signature",
                                   "a row for each function and the arguments it was called with"},
    [MAREY__CALLS_CALLERS] = {TABLE(callers), NULL, "each function and who called it"},
    [MAREY__CALLS_CALLEES] = {TABLE(callees), NULL, "each function and whom it called"},
    [MAREY__CALLS_PATHS] = {TABLE(paths), "path", "the exact paths, depth first"},
    [MAREY__CALLS_SHAPES] = {TABLE(shapes), "shape",
                             "functions with several signatures, and the time for each element"},
    [MAREY__CALLS_THREADS] = {TABLE(threads), "thread", "threads"},
    [MAREY__CALLS_TOTALS] = {TABLE(totals), "total", "one row: all calls"},
    [MAREY__CALLS_NOTES] = {TABLE(notes), "note", "notes on the figures"},
};

/* ---- functions ---- */

static const char *kind_name(uint8_t kind)
{
    static const char *const names[] = {"python", "built-in", "compiled"};
    return kind < MAREY__COUNT_OF(names) ? names[kind] : "other";
}

static bool is_wanted(const struct marey__calls_report *report, uint32_t function)
{
    const char *const name = report->calls.functions[function].name;
    return marey__name_matches(report->options.filter, name, strlen(name));
}

void marey__calls_put_where(marey_table *table, const struct marey__call_function *function)
{
    marey__put_string(table, function->file);
    marey__put_whole(table, function->line, function->line != 0);
}

/* Nanoseconds for each of `n`; null for none. */
static void put_mean(marey_table *table, uint64_t ns, uint64_t n)
{
    marey__put_real(table, (double)ns / (double)n, n != 0);
}

static void put_sums(marey_table *table, const struct marey__calls_report *report,
                     const struct marey__call_sum *sum, uint64_t whole_ns)
{
    const bool is_counted = !report->calls.from_samples;
    marey__put_whole(table, sum->calls, is_counted);
    marey__put_whole(table, sum->primitive, is_counted);
    marey__put_whole(table, sum->resumes, is_counted);
    marey_table_u64(table, sum->self_ns);
    put_mean(table, sum->self_ns, is_counted ? sum->calls : 0);
    marey_table_u64(table, sum->total_ns);
    put_mean(table, sum->total_ns, is_counted ? sum->primitive : 0);
    marey__put_whole(table, sum->max_ns, sum->max_ns != 0);
    marey__put_share(table, sum->self_ns, whole_ns);
    marey__put_whole(table, sum->gpu_ns, report->calls.has_gpu);
}

static void put_entities(struct marey__calls_report *report, enum marey__calls_table which,
                         const struct marey__call_sums *sums)
{
    const struct marey__calls *const calls = &report->calls;
    marey_table *const table = report->tables[which];
    uint64_t whole_ns = 0;
    for (size_t i = 0; i < sums->n_entities; i++)
        whole_ns += sums->entities[i].self_ns;
    for (uint32_t i = 0; i < sums->n_entities; i++) {
        const struct marey__call_sum *const sum = &sums->entities[i];
        const uint32_t number = marey__entity_function(sums, calls, i),
                       signature = marey__entity_signature(sums, i);
        const struct marey__call_function *const function = &calls->functions[number];
        if ((sum->calls == 0 && sum->self_ns == 0) || !is_wanted(report, number))
            continue;
        marey__put_string(table, function->name);
        if (sums->by_signature) {
            marey__put_string(table, calls->signatures[signature].text);
            marey__put_whole(table, (uint64_t)calls->signatures[signature].elements,
                             calls->signatures[signature].elements > 0);
        }
        marey__calls_put_where(table, function);
        marey__put_string(table, function->module);
        marey__put_string(table, kind_name(function->kind));
        put_sums(table, report, sum, whole_ns);
    }
}

/* ---- pairs ---- */

static void put_label(marey_table *table, const struct marey__calls *calls,
                      const struct marey__call_sums *sums, uint32_t entity)
{
    struct marey__buf label = {0};
    marey__call_label(&label, calls, marey__entity_function(sums, calls, entity),
                      marey__entity_signature(sums, entity));
    marey_table_text(table, label.data != NULL ? label.data : "", label.len);
    marey__buf_fini(&label);
}

static void put_pair(struct marey__calls_report *report, enum marey__calls_table which,
                     const struct marey__call_sums *sums, const struct marey__call_edge *edge)
{
    const struct marey__calls *const calls = &report->calls;
    marey_table *const table = report->tables[which];
    const uint32_t of = which == MAREY__CALLS_CALLERS ? edge->callee : edge->caller,
                   other = which == MAREY__CALLS_CALLERS ? edge->caller : edge->callee;
    if (!is_wanted(report, marey__entity_function(sums, calls, of)))
        return;
    const uint32_t both[] = {of, other};
    for (size_t i = 0; i < 2; i++) {
        put_label(table, calls, sums, both[i]);
        marey__calls_put_where(table,
                               &calls->functions[marey__entity_function(sums, calls, both[i])]);
    }
    marey__put_whole(table, edge->sum.calls, !calls->from_samples);
    marey__put_whole(table, edge->sum.primitive, !calls->from_samples);
    marey_table_u64(table, edge->sum.self_ns);
    marey_table_u64(table, edge->sum.total_ns);
    marey__put_share(table, edge->sum.total_ns, sums->entities[of].total_ns);
}

static void put_pairs(struct marey__calls_report *report, const struct marey__call_sums *sums)
{
    for (size_t i = 0; i < sums->n_edges; i++) {
        put_pair(report, MAREY__CALLS_CALLERS, sums, &sums->edges[i]);
        put_pair(report, MAREY__CALLS_CALLEES, sums, &sums->edges[i]);
    }
}

bool marey__calls_tables_fill(struct marey__calls_report *report)
{
    struct marey__call_sums by_function = {0}, by_signature = {0};
    const bool done = marey__call_sums_make(&by_function, &report->calls, false) &&
                      marey__call_sums_make(&by_signature, &report->calls, true) &&
                      marey__calls_put_paths(report) && marey__calls_put_threads(report);
    if (done) {
        put_entities(report, MAREY__CALLS_FUNCTIONS, &by_function);
        put_entities(report, MAREY__CALLS_BY_SIGNATURE, &by_signature);
        put_pairs(report, report->options.by_signature ? &by_signature : &by_function);
        marey__calls_put_totals(report, &by_function);
    }
    const bool has_shapes = done && marey__calls_put_shapes(report, &by_function, &by_signature);
    marey__call_sums_fini(&by_function);
    marey__call_sums_fini(&by_signature);
    return has_shapes;
}
