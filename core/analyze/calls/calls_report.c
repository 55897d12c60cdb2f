/* The report of calls: tables of functions, of callers and callees, of paths, shapes and threads, and the totals. */
#include <stdio.h>
#include <string.h>

#include "analyze/calls/internal.h"
#include "analyze/samples/internal.h"
#include "present/draw/internal.h"

/* ---- labels ---- */

void marey__call_label(struct marey__buf *label, const struct marey__calls *calls,
                       uint32_t function, uint32_t signature)
{
    marey__call_label_of(label, calls->functions[function].name, calls->signatures[signature].text,
                         signature != 0);
}

/* ---- tables ---- */

#define WHERE TEXT("file"), WHOLE("line")
#define SUMS                                                                                       \
    COUNT("calls", NULL), COUNT("primitive_calls", "primitive"), COUNT("resumes", NULL),           \
        NS("self_ns", "self"), MEAN("self_per_call_ns", "self/call"), NS("total_ns", "total"),     \
        MEAN("total_per_call_ns", "total/call"), NS("max_ns", "max"), SHARE("share", "of all"),    \
        NS("gpu_ns", "GPU")
#define PAIR_SUMS                                                                                  \
    COUNT("calls", NULL), COUNT("primitive_calls", "primitive"), NS("self_ns", "self"),            \
        NS("total_ns", "total"), SHARE("share", "of function")

static const struct marey_column functions_columns[] = {TEXT("function"), WHERE, TEXT("module"),
                                                        TEXT("kind"), SUMS};
static const struct marey_column signatures_columns[] = {TEXT("function"),
                                                         TEXT("signature"),
                                                         COUNT("elements", NULL),
                                                         WHERE,
                                                         TEXT("module"),
                                                         TEXT("kind"),
                                                         SUMS};
static const struct marey_column callers_columns[] = {
    TEXT("function"), WHERE, TEXT("caller"), TEXT("caller_file"), WHOLE("caller_line"), PAIR_SUMS};
static const struct marey_column callees_columns[] = {
    TEXT("function"), WHERE, TEXT("callee"), TEXT("callee_file"), WHOLE("callee_line"), PAIR_SUMS};
static const struct marey_column paths_columns[] = {
    COUNT("node", NULL),     COUNT("parent", NULL),    COUNT("depth", NULL),
    TEXT("function"),        TEXT("signature"),        WHERE,
    TEXT("thread"),          COUNT("calls", NULL),     NS("self_ns", "self"),
    NS("total_ns", "total"), SHARE("share", "of all"), NS("gpu_ns", "GPU")};
static const struct marey_column shapes_columns[] = {TEXT("function"),
                                                     WHERE,
                                                     TEXT("signature"),
                                                     COUNT("calls", NULL),
                                                     MEAN("per_call_ns", "per call"),
                                                     COUNT("elements", NULL),
                                                     MEAN("ns_per_element", "per element"),
                                                     REAL("times_best", "x best"),
                                                     SHARE("share", "of function")};
static const struct marey_column threads_columns[] = {
    NUMBER("rank"),       NUMBER("pid"),        NUMBER("tid"),
    TEXT("thread"),       COUNT("calls", NULL), COUNT("functions", NULL),
    NS("self_ns", "self")};
static const struct marey_column totals_columns[] = {COUNT("calls", NULL),
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

#define TABLE(name) #name, name##_columns, MAREY__COUNT_OF(name##_columns)
static const struct marey_table_definition definitions[MAREY__N_CALLS_TABLES] = {
    [MAREY__CALLS_FUNCTIONS] =
        {TABLE(functions),
         "function", "a row for each, as cProfile counts; total time includes callees, and recursion is not counted twice"},
    [MAREY__CALLS_BY_SIGNATURE] = {TABLE(signatures), "signature",
                                   "a row for each function and the arguments it was called with"},
    [MAREY__CALLS_CALLERS] = {TABLE(callers), NULL, "each function and its callers"},
    [MAREY__CALLS_CALLEES] = {TABLE(callees), NULL, "each function and its callees"},
    [MAREY__CALLS_PATHS] = {TABLE(paths), "path", "call paths, depth first"},
    [MAREY__CALLS_SHAPES] = {TABLE(shapes), "shape",
                             "functions with several signatures, and the time for each element"},
    [MAREY__CALLS_THREADS] = {TABLE(threads), "thread", "threads"},
    [MAREY__CALLS_TOTALS] = {TABLE(totals), "total", "one row: all calls"},
    [MAREY__CALLS_NOTES] = {"notes", marey__warning_columns, 1, "note", "notes on the figures"},
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

#define WHERE_OF(function)                                                                         \
    STRING((function)->file), KNOWN((function)->line != 0, U64((function)->line))

static void put_sums(marey_table *table, const struct marey__calls_report *report,
                     const struct marey__call_sum *sum, uint64_t whole_ns)
{
    const bool is_counted = !report->calls.from_samples;
    MAREY__PUT_ROW(table, KNOWN(is_counted, U64(sum->calls)),
                   KNOWN(is_counted, U64(sum->primitive)), KNOWN(is_counted, U64(sum->resumes)),
                   U64(sum->self_ns), RATIO(sum->self_ns, is_counted ? sum->calls : 0),
                   U64(sum->total_ns), RATIO(sum->total_ns, is_counted ? sum->primitive : 0),
                   KNOWN(sum->max_ns != 0, U64(sum->max_ns)), RATIO(sum->self_ns, whole_ns),
                   KNOWN(report->calls.has_gpu, U64(sum->gpu_ns)));
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
            MAREY__PUT_ROW(table, STRING(calls->signatures[signature].text),
                           KNOWN(calls->signatures[signature].elements > 0,
                                 U64((uint64_t)calls->signatures[signature].elements)));
        }
        MAREY__PUT_ROW(table, WHERE_OF(function), STRING(function->module),
                       STRING(kind_name(function->kind)));
        put_sums(table, report, sum, whole_ns);
    }
}

/* ---- pairs ---- */

static void put_label(marey_table *table, const struct marey__calls *calls,
                      const struct marey__call_sums *sums, uint32_t entity)
{
    struct marey__buf label MAREY__FINALLY(marey__buf_fini) = {0};
    marey__call_label(&label, calls, marey__entity_function(sums, calls, entity),
                      marey__entity_signature(sums, entity));
    marey_table_text(table, label.data != NULL ? label.data : "", label.len);
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
        MAREY__PUT_ROW(table,
                       WHERE_OF(&calls->functions[marey__entity_function(sums, calls, both[i])]));
    }
    MAREY__PUT_ROW(table, KNOWN(!calls->from_samples, U64(edge->sum.calls)),
                   KNOWN(!calls->from_samples, U64(edge->sum.primitive)), U64(edge->sum.self_ns),
                   U64(edge->sum.total_ns), RATIO(edge->sum.total_ns, sums->entities[of].total_ns));
}

static void put_pairs(struct marey__calls_report *report, const struct marey__call_sums *sums)
{
    for (size_t i = 0; i < sums->n_edges; i++) {
        put_pair(report, MAREY__CALLS_CALLERS, sums, &sums->edges[i]);
        put_pair(report, MAREY__CALLS_CALLEES, sums, &sums->edges[i]);
    }
}

/* ---- paths ---- */

static void put_path(marey_table *table, const struct marey__calls *calls, uint32_t i,
                     uint32_t depth, uint64_t whole_ns, uint64_t gpu_ns)
{
    const struct marey__call_node *const node = &calls->nodes[i];
    const struct marey__call_function *const function = &calls->functions[node->function];
    MAREY__PUT_ROW(table, U64(i), U64(node->parent), U64(depth), STRING(function->name),
                   STRING(calls->signatures[node->signature].text), WHERE_OF(function),
                   KNOWN(node->thread < calls->n_threads, STRING(calls->threads[node->thread].name)),
                   KNOWN(!calls->from_samples, U64(node->calls)), U64(node->self_ns),
                   U64(node->total_ns), RATIO(node->total_ns, whole_ns),
                   KNOWN(calls->has_gpu, U64(gpu_ns)));
}

static bool put_paths(struct marey__calls_report *report)
{
    const struct marey__calls *const calls = &report->calls;
    uint32_t *const order MAREY__FREED = marey__calloc(calls->n_nodes, sizeof *order);
    uint32_t *const depths MAREY__FREED = marey__calloc(calls->n_nodes, sizeof *depths);
    uint64_t *const gpu_ns MAREY__FREED = marey__calloc(calls->n_nodes, sizeof *gpu_ns);
    uint64_t whole_ns = 0;
    if (order == NULL || depths == NULL || gpu_ns == NULL || !marey__calls_order(calls, order))
        return false;
    marey__calls_gpu_totals(calls, gpu_ns);
    for (size_t i = 1; i < calls->n_nodes; i++) {
        const uint32_t parent = calls->nodes[i].parent;
        depths[i] = parent != 0 ? depths[parent] + 1 : 0;
        whole_ns += parent == 0 ? calls->nodes[i].total_ns : 0;
    }
    for (size_t i = 0; i + 1 < calls->n_nodes; i++)
        put_path(report->tables[MAREY__CALLS_PATHS], calls, order[i], depths[order[i]], whole_ns,
                 gpu_ns[order[i]]);
    return true;
}

/* ---- shapes ---- */

/* A function with one signature. */
struct shape {
    uint32_t function, signature;
    uint64_t function_ns; /* of all its signatures, for sorting the heaviest first */
    const struct marey__call_sum *sum;
};

MAREY__ORDER(by_function_and_time, struct shape,
             MAREY__DOWN(function_ns) MAREY__UP(function) MAREY__DOWN(sum->total_ns)
                 MAREY__UP(signature))

/* Total time per element of the arguments; 0 if unknown. */
static double per_element(const struct marey__calls *calls, const struct shape *shape)
{
    const double elements =
        calls->signatures[shape->signature].elements * (double)shape->sum->primitive;
    return elements > 0 ? (double)shape->sum->total_ns / elements : 0;
}

static void put_shape(marey_table *table, const struct marey__calls *calls,
                      const struct shape *shape, double best)
{
    const struct marey__call_function *const function = &calls->functions[shape->function];
    const struct marey__call_sum *const sum = shape->sum;
    const double elements = calls->signatures[shape->signature].elements,
                 of_element = per_element(calls, shape);
    MAREY__PUT_ROW(table, STRING(function->name), WHERE_OF(function),
                   STRING(calls->signatures[shape->signature].text), U64(sum->calls),
                   POSITIVE(sum->primitive != 0 ? (double)sum->total_ns / (double)sum->primitive : 0),
                   KNOWN(elements > 0, U64((uint64_t)elements)), POSITIVE(of_element),
                   POSITIVE(best > 0 ? of_element / best : 0),
                   RATIO(sum->total_ns, shape->function_ns));
}

/* The `n` shapes of one function. */
static void put_shapes_of(struct marey__calls_report *report, const struct shape *shapes, size_t n)
{
    const struct marey__calls *const calls = &report->calls;
    const char *const name = calls->functions[shapes[0].function].name;
    double best = 0;
    if (n < 2 || !marey__name_matches(report->options.filter, name, strlen(name)))
        return;
    for (size_t i = 0; i < n; i++) {
        const double ns = per_element(calls, &shapes[i]);
        best = ns > 0 && (best == 0 || ns < best) ? ns : best;
    }
    for (size_t i = 0; i < n; i++)
        put_shape(report->tables[MAREY__CALLS_SHAPES], calls, &shapes[i], best);
}

static bool put_shapes(struct marey__calls_report *report, const struct marey__call_sums *by_function,
                       const struct marey__call_sums *by_signature)
{
    const struct marey__calls *const calls = &report->calls;
    struct shape *const shapes MAREY__FREED = marey__calloc(by_signature->n_entities, sizeof *shapes);
    uint64_t *const ns MAREY__FREED = marey__calloc(by_function->n_entities, sizeof *ns);
    size_t n = 0;
    if (shapes == NULL || ns == NULL)
        return false;
    for (uint32_t i = 0; i < by_signature->n_entities; i++)
        ns[marey__entity_function(by_signature, calls, i)] += by_signature->entities[i].total_ns;
    for (uint32_t i = 0; i < by_signature->n_entities; i++) {
        const uint32_t function = marey__entity_function(by_signature, calls, i);
        if (by_signature->entities[i].calls != 0)
            shapes[n++] = (struct shape){.function = function,
                                         .signature = marey__entity_signature(by_signature, i),
                                         .function_ns = ns[function],
                                         .sum = &by_signature->entities[i]};
    }
    qsort(shapes, n, sizeof *shapes, by_function_and_time);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && shapes[end].function == shapes[i].function;)
            end++;
        put_shapes_of(report, shapes + i, end - i);
    }
    return true;
}

/* ---- threads ---- */

struct thread_sums {
    uint64_t calls, self_ns;
    uint64_t functions;
};

static bool put_threads(struct marey__calls_report *report)
{
    const struct marey__calls *const calls = &report->calls;
    struct thread_sums *const sums MAREY__FREED = marey__calloc(calls->n_threads + 1, sizeof *sums);
    struct marey__pairs seen MAREY__FINALLY(marey__pairs_fini) = {0};
    bool failed = sums == NULL;
    for (size_t i = 1; !failed && i < calls->n_nodes; i++) {
        const struct marey__call_node *const node = &calls->nodes[i];
        sums[node->thread].calls += node->calls;
        sums[node->thread].self_ns += node->self_ns;
        if (node->function != 0 && node->calls != 0)
            sums[node->thread].functions +=
                marey__pairs_add(&seen, node->thread, node->function, &failed);
    }
    for (size_t i = 0; !failed && i < calls->n_threads; i++) {
        const struct marey__call_thread *const thread = &calls->threads[i];
        MAREY__PUT_ROW(report->tables[MAREY__CALLS_THREADS], RANK_OF(thread->rank),
                       I64(thread->pid), I64(thread->tid), STRING(thread->name),
                       KNOWN(!calls->from_samples, U64(sums[i].calls)), U64(sums[i].functions),
                       U64(sums[i].self_ns));
    }
    return !failed;
}

/* ---- totals ---- */

static const char *timer_of(const struct marey__calls *calls)
{
    return (calls->flags & MAREY__CALLS_OWN_TIMER) != 0   ? "own"
           : (calls->flags & MAREY__CALLS_CPU_TIMER) != 0 ? "cpu"
                                                          : "wall";
}

/* Notes processes without their last calls. A call is counted when it ends, and counts are written every 5 s. */
static void put_missing(marey_table *notes, uint32_t n, const char *one, const char *several)
{
    if (n == 1)
        marey__put_note(notes, "%s: its last calls (up to 5 s) and calls in progress are missing",
                        one);
    else if (n > 1)
        marey__put_note(notes,
                        "%u %s: their last calls (up to 5 s) and calls in progress are missing", n,
                        several);
}

static void put_notes(struct marey__calls_report *report)
{
    const struct marey__calls *const calls = &report->calls;
    marey_table *const notes = report->tables[MAREY__CALLS_NOTES];
    put_missing(notes, calls->n_killed, "the process was killed or called _exit",
                "processes were killed or called _exit");
    put_missing(notes, calls->n_running, "the process still runs", "processes still run");
    put_missing(notes, calls->n_refused, "the process could not write its log to the end",
                "processes could not write their logs to the end");
    if (calls->from_ranges)
        marey__put_note(notes, "no calls were profiled: these are the recording's ranges");
    if (calls->from_samples)
        marey__put_note(notes,
                        "no calls were profiled: these are samples, which have no call counts; "
                        "'marey run --calls' counts calls");
    if (calls->startup_ns != 0)
        marey__put_note(notes, "left out: %.3g s of imports at start-up; --startup shows them",
                        (double)calls->startup_ns / 1e9);
    if (calls->n_too_deep != 0)
        marey__put_note(notes, "ranges left out, nested too deep: %llu",
                        (unsigned long long)calls->n_too_deep);
    if (calls->idle_ns != 0)
        marey__put_note(notes,
                        "left out: %.3g s of idle processes and workers; 'marey report --samples "
                        "--idle' shows them",
                        (double)calls->idle_ns / 1e9);
    if (calls->other_paths != 0)
        marey__put_note(notes,
                        "the paths of %llu calls were not recorded, because the profile's memory "
                        "was full: counts and self times are exact, but their callers and totals "
                        "are unknown; increase calls.memory",
                        (unsigned long long)calls->other_paths);
    if (calls->widened != 0)
        marey__put_note(notes,
                        "calls with merged signatures, because the function had too many: %llu",
                        (unsigned long long)calls->widened);
    if (calls->n_profiles > 1 && calls->n_threads != 0)
        marey__put_note(notes, "sum of %u profiles", calls->n_profiles);
    if (report->subtracted_ns != 0)
        marey__put_note(notes,
                        "the cost of measuring, %.3g us per call, is subtracted from these times",
                        (double)calls->cost_ps / 1e6);
}

static void put_totals(struct marey__calls_report *report, const struct marey__call_sums *by_function)
{
    const struct marey__calls *const calls = &report->calls;
    marey_table *const table = report->tables[MAREY__CALLS_TOTALS];
    struct marey__call_sum all = {0};
    uint64_t n_functions = 0;
    for (size_t i = 0; i < by_function->n_entities; i++) {
        const struct marey__call_sum *const sum = &by_function->entities[i];
        all.calls += sum->calls;
        all.primitive += sum->primitive;
        all.self_ns += sum->self_ns;
        n_functions += sum->calls != 0;
    }
    MAREY__PUT_ROW(table, KNOWN(!calls->from_samples, U64(all.calls)),
                   KNOWN(!calls->from_samples, U64(all.primitive)), U64(n_functions),
                   U64(calls->n_signatures - 1), U64(calls->n_nodes - 1), U64(calls->n_threads),
                   U64(all.self_ns), U64(calls->other_paths), U64(calls->widened),
                   KNOWN(calls->cost_ps != 0, FINITE((double)calls->cost_ps / 1000)),
                   U64(report->subtracted_ns), STRING(timer_of(calls)),
                   STRING(calls->from_ranges    ? "ranges"
                          : calls->from_samples ? "samples"
                                                : "calls"));
    put_notes(report);
}

static bool fill_tables(struct marey__calls_report *report)
{
    struct marey__call_sums by_function MAREY__FINALLY(marey__call_sums_fini) = {0};
    struct marey__call_sums by_signature MAREY__FINALLY(marey__call_sums_fini) = {0};
    if (!marey__call_sums_make(&by_function, &report->calls, false) ||
        !marey__call_sums_make(&by_signature, &report->calls, true) || !put_paths(report) ||
        !put_threads(report))
        return false;
    put_entities(report, MAREY__CALLS_FUNCTIONS, &by_function);
    put_entities(report, MAREY__CALLS_BY_SIGNATURE, &by_signature);
    put_pairs(report, report->options.by_signature ? &by_signature : &by_function);
    put_totals(report, &by_function);
    return put_shapes(report, &by_function, &by_signature);
}

/* ---- order ---- */

static const struct marey__table_order orders[] = {
    {"self", {"self_ns", "total_ns"}},
    {"total", {"total_ns", "self_ns"}},
    {"calls", {"calls", "self_ns"}},
    {"percall", {"total_per_call_ns", "per_call_ns"}},
    {"name", {"function"}},
    {0},
};

static void sort_tables(struct marey__calls_report *report)
{
    static const enum marey__calls_table plain[] = {MAREY__CALLS_FUNCTIONS,
                                                    MAREY__CALLS_BY_SIGNATURE, MAREY__CALLS_THREADS};
    static const enum marey__calls_table pairs[] = {MAREY__CALLS_CALLERS, MAREY__CALLS_CALLEES};
    const char *const sort = report->options.sort;
    for (size_t i = 0; i < MAREY__COUNT_OF(plain); i++)
        marey__table_order(report->tables[plain[i]], orders, sort);
    /* By function, and within it in the selected order; the sort is stable. */
    for (size_t i = 0; i < MAREY__COUNT_OF(pairs); i++) {
        marey__table_order(report->tables[pairs[i]], orders,
                           strcmp(sort, "percall") == 0 || strcmp(sort, "-percall") == 0 ? "total"
                                                                                         : sort);
        marey__table_order(report->tables[pairs[i]], orders, "name");
    }
}

static marey_status read_calls(struct marey__calls_report *report,
                               marey_recording *const *recordings, size_t n)
{
    static const struct marey__samples_filter all = {.startup = 1};
    const bool has_startup = report->options.startup;
    MAREY_TRY(has_startup && !marey__calls_are_there(recordings, n) &&
                      marey__samples_are_there(recordings, n)
                  ? marey__calls_read_samples(&report->calls, recordings, n, &all, false)
                  : marey__calls_read(&report->calls, recordings, n));
    if (!has_startup && !marey__calls_drop_startup(&report->calls))
        return marey__no_memory();
    if (report->calls.n_nodes < 2 && report->calls.n_killed != 0)
        return marey__fail(MAREY_EFORMAT,
                           "there are no calls: the process was killed or called _exit before its "
                           "calls were written, which happens every 5 s and at its end");
    if (report->calls.n_nodes < 2)
        return marey__fail(
            MAREY_EFORMAT,
            "no call and no range was recorded; record calls with marey run --calls, "
            "marey.start(calls=True) or marey.Profile");
    if (report->options.subtract)
        report->subtracted_ns = marey__calls_subtract(&report->calls);
    return MAREY_OK;
}

/* ---- the report ---- */

static void destroy(void *data)
{
    struct marey__calls_report *const calls = data;
    marey__calls_fini(&calls->calls);
    marey__free(calls);
}

/* `callers` and `callees` filter functions and select a table. */
static marey_status take_settings(struct marey__calls_report *calls, marey_report *report,
                                  const struct marey__request *request)
{
    const char *const by = marey__setting(request, "by"), *sort = marey__setting(request, "sort"),
                      *const callers = marey__setting(request, "callers"),
                      *const callees = marey__setting(request, "callees");
    sort = sort != NULL ? sort : "self";
    if (!marey__table_order_is_known(orders, sort))
        return marey__fail(
            MAREY_EINVAL,
            "calls cannot be sorted by '%s'; it may be self, total, calls, percall or name", sort);
    if (callers != NULL && callees != NULL)
        return marey__fail(MAREY_EINVAL, "callers and callees exclude one another");
    if (callers != NULL || callees != NULL)
        report->table = callers != NULL ? "callers" : "callees";
    calls->options.filter = callers != NULL   ? callers
                            : callees != NULL ? callees
                                              : marey__setting(request, "filter");
    calls->options.sort = sort;
    calls->options.by_signature = by != NULL && strcmp(by, "signature") == 0;
    calls->options.subtract = marey__setting_is_on(request, "subtract");
    calls->options.startup = marey__setting_is_on(request, "startup");
    return MAREY_OK;
}

static marey_status make(marey_report *report, const struct marey__request *request)
{
    struct marey__calls_report *const calls = marey__calloc(1, sizeof *calls);
    MAREY__TRY_MEMORY(calls != NULL);
    report->data = calls;
    calls->tables = report->tables;
    MAREY_TRY(take_settings(calls, report, request));
    MAREY_TRY(read_calls(calls, request->recordings, request->n));
    MAREY__TRY_MEMORY(fill_tables(calls));
    sort_tables(calls);
    return MAREY_OK;
}

static bool is_there(marey_recording *const *recordings, size_t n, const marey_report *ranges)
{
    (void)ranges;
    return marey__calls_are_there(recordings, n);
}

/* ---- registry entry ---- */

static const struct marey_setting settings[] = {
    {"callers", MAREY_SETTING_TEXT, "NAME", "callers of NAME, a name or a pattern"},
    {"callees", MAREY_SETTING_TEXT, "NAME", "whom NAME called"},
    {"filter", MAREY_SETTING_TEXT, "PATTERN", "only functions whose name matches", 'f'},
    {"sort", MAREY_SETTING_TEXT, "COLUMN",
     "self (default), total, calls, percall, name; -COLUMN reverses", 's'},
    {"subtract", MAREY_SETTING_FLAG, NULL, "subtract the cost of measuring from the times"},
    {"startup", MAREY_SETTING_FLAG, NULL, "imports at start-up count as well"},
};

const struct marey__analysis marey__analysis_calls = {
    .about =
        {.name = "calls",
         .help = "functions of a call profiler (marey run --calls,\n"
                 "marey.Profile): how often, how long; else samples or ranges",
         .needs = "'marey run --calls', marey.start(calls=True) and marey.Profile record them",
         .examples =
             "  marey report train.marey --calls             functions, by self time\n"
             "  marey report train.marey --calls --by shape  which arguments make a function slow\n"
             "  marey report old.prof --calls --callers dot  a profile of cProfile",
         MAREY__SETTINGS(settings),
         MAREY__TABLES(definitions),
         .csv = "functions",
         .option = "calls"},
    .make = make,
    .destroy = destroy,
    .text = marey__calls_text,
    .draws_tables = true,
    .is_there = is_there,
};
