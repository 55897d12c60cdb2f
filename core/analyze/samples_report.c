/* The report of samples: from recordings to sums, from sums to tables. */
#include <string.h>

#include "analyze/columns.h"
#include "analyze/samples_whole.h"

static kymo_status no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory for the report of samples");
}

/* ---- columns ---- */

#define PLACE(prefix) TEXT(prefix), TEXT(prefix "_file"), WHOLE(prefix "_line")
#define WHAT SHARE("error", "+-"), SHARE("cpu", "on CPU"), SHARE("gil", "GIL"), TEXT("waits")
#define SUMS COUNT("samples", NULL), NS("self_ns", "self"), SHARE("share", "of samples"), WHAT
#define FRAME_SUMS                                                                                 \
    COUNT("samples", NULL), NS("self_ns", "self"), NS("total_ns", "total time"),                   \
        SHARE("share", "of samples"), SHARE("total_share", "total"), WHAT
#define WHERE TEXT("function"), TEXT("file"), WHOLE("line")

static const struct kymo_column functions[] = {WHERE, TEXT("module"), TEXT("kind"), FRAME_SUMS};
static const struct kymo_column lines[] = {WHERE, TEXT("module"), FRAME_SUMS};
static const struct kymo_column files[] = {TEXT("file"), FRAME_SUMS};
static const struct kymo_column modules[] = {TEXT("module"), FRAME_SUMS};
static const struct kymo_column threads[] = {NUMBER("rank"),
                                             NUMBER("pid"),
                                             NUMBER("tid"),
                                             TEXT("thread"),
                                             {"main", NULL, KYMO_TYPE_BOOL, KYMO_UNIT_NONE},
                                             SUMS};
static const struct kymo_column processes[] = {NUMBER("rank"), NUMBER("worker"), NUMBER("pid"),
                                               TEXT("command"), SUMS};
static const struct kymo_column ranks[] = {NUMBER("rank"), COUNT("processes", NULL), SUMS};
static const struct kymo_column stacks[] = {TEXT("stack"), SUMS};
static const struct kymo_column contacts[] = {WHERE,
                                              PLACE("contact"),
                                              PLACE("caller"),
                                              COUNT("samples", NULL),
                                              NS("self_ns", "self"),
                                              SHARE("share", "of samples"),
                                              SHARE("error", "+-")};
#define LEAF                                                                                       \
    TEXT("name"), TEXT("path"), WHOLE("line"), TEXT("library_function_name"),                      \
        TEXT("library_function_path"), WHOLE("library_function_line"), COUNT("samples", NULL),     \
        NS("self_ns", "self"), SHARE("share", "of samples"), SHARE("error", "+-")
static const struct kymo_column leaves[] = {LEAF};
static const struct kymo_column leaf_paths[] = {LEAF};
static const struct kymo_column waits[] = {TEXT("waits"),         WHERE,
                                           TEXT("thread"),        COUNT("samples", NULL),
                                           NS("self_ns", "time"), SHARE("share", "of samples")};
static const struct kymo_column gil[] = {NUMBER("rank"),       NUMBER("pid"),
                                         TEXT("thread"),       NS("held_ns", "time held"),
                                         SHARE("held", NULL),  NS("wants_ns", "time waited"),
                                         SHARE("wants", NULL), REAL("switches_per_s", NULL)};
static const struct kymo_column audit[] = {TEXT("host"),
                                           NUMBER("pid"),
                                           TEXT("strategy"),
                                           REAL("rate_hz", NULL),
                                           REAL("achieved_hz", NULL),
                                           REAL("seconds", NULL),
                                           COUNT("rounds", NULL),
                                           COUNT("asked", NULL),
                                           COUNT("missed", NULL),
                                           SHARE("missed_share", NULL),
                                           COUNT("samples", NULL),
                                           COUNT("rejected", NULL),
                                           SHARE("rejected_share", NULL),
                                           COUNT("unstable", NULL),
                                           SHARE("unstable_share", NULL),
                                           COUNT("exact", NULL),
                                           SHARE("exact_share", NULL),
                                           COUNT("audit", NULL),
                                           COUNT("stops", NULL),
                                           NS("stop_ns", NULL),
                                           NS("stop_max_ns", NULL),
                                           SHARE("cost_share", NULL),
                                           NS("sampler_cpu_ns", NULL),
                                           SHARE("sampler_cpu_share", NULL),
                                           COUNT("bytes_read", NULL),
                                           REAL("bytes_per_sample", NULL),
                                           COUNT("log_bytes", NULL),
                                           COUNT("skipped", NULL),
                                           COUNT("slowed", NULL),
                                           TEXT("end"),
                                           SHARE("distance", NULL),
                                           SHARE("distance_low", NULL),
                                           SHARE("distance_high", NULL),
                                           SHARE("distance_by_chance", NULL)};
static const struct kymo_column totals[] = {COUNT("samples", NULL), NS("self_ns", "self"),
                                            REAL("seconds", NULL),  COUNT("processes", NULL),
                                            COUNT("threads", NULL), COUNT("functions", NULL),
                                            COUNT("stacks", NULL),  TEXT("what")};
static const struct kymo_column notes[] = {TEXT("text")};

static const struct {
    const char *name;
    const struct kymo_column *columns;
    size_t n;
} kinds[KYMO__N_SAMPLES_TABLES] = {
#define KIND(columns)                                                                              \
    {                                                                                              \
#columns, columns, KYMO__COUNT_OF(columns)                                                 \
    }
    [KYMO__SAMPLES_FUNCTIONS] = KIND(functions),
    [KYMO__SAMPLES_LINES] = KIND(lines),
    [KYMO__SAMPLES_FILES] = KIND(files),
    [KYMO__SAMPLES_MODULES] = KIND(modules),
    [KYMO__SAMPLES_THREADS] = KIND(threads),
    [KYMO__SAMPLES_PROCESSES] = KIND(processes),
    [KYMO__SAMPLES_RANKS] = KIND(ranks),
    [KYMO__SAMPLES_STACKS] = KIND(stacks),
    [KYMO__SAMPLES_CONTACTS] = KIND(contacts),
    [KYMO__SAMPLES_LEAVES] = KIND(leaves),
    [KYMO__SAMPLES_LEAF_PATHS] = KIND(leaf_paths),
    [KYMO__SAMPLES_WAITS] = KIND(waits),
    [KYMO__SAMPLES_GIL] = KIND(gil),
    [KYMO__SAMPLES_AUDIT] = KIND(audit),
    [KYMO__SAMPLES_TOTALS] = KIND(totals),
    [KYMO__SAMPLES_NOTES] = KIND(notes),
};

/* ---- order ---- */

/* Columns that rows may be sorted by, as people call them; a table sorts by the first that it has. */
static const struct sort {
    const char *name, *columns[5];
} sorts[] = {
    {"self", {"self_ns", "held_ns"}},
    {"total", {"total_ns", "self_ns", "held_ns"}},
    {"samples", {"samples", "held_ns"}},
    {"name", {"function", "file", "module", "thread", "name"}},
};

static const struct sort *find_sort(const char *name)
{
    for (size_t i = 0; i < KYMO__COUNT_OF(sorts); i++)
        if (strcmp(sorts[i].name, name) == 0)
            return &sorts[i];
    return NULL;
}

static void sort_table(kymo_table *table, const char *how)
{
    const bool is_reversed = how[0] == '-';
    const struct sort *const sort = find_sort(how + is_reversed);
    for (size_t i = 0; i < KYMO__COUNT_OF(sort->columns) && sort->columns[i] != NULL; i++) {
        const int column = kymo_table_find(table, sort->columns[i]);
        if (column < 0)
            continue;
        const bool is_text = kymo_table_column(table, (size_t)column)->type == KYMO_TYPE_TEXT;
        kymo_table_sort(table, (size_t)column, is_text == is_reversed);
        return;
    }
}

/* ---- the report ---- */

static kymo_status make_tables(struct kymo_samples_report *r)
{
    for (size_t i = 0; i < KYMO__N_SAMPLES_TABLES; i++)
        KYMO_TRY(kymo_table_create(kinds[i].name, kinds[i].columns, kinds[i].n, &r->tables[i]));
    if (!kymo__samples_put_frames(r) || !kymo__samples_put_stacks(r) ||
        !kymo__samples_put_owners(r) || !kymo__samples_put_contacts(r) ||
        !kymo__samples_put_waits(r) || !kymo__samples_put_gil(r) || !kymo__samples_put_audit(r))
        return no_memory();
    kymo__samples_put_totals(r);
    if (!kymo__samples_put_notes(r))
        return no_memory();
    for (size_t i = 0; i < KYMO__SAMPLES_AUDIT; i++)
        sort_table(r->tables[i], r->options.sort);
    for (size_t i = 0; i < KYMO__N_SAMPLES_TABLES; i++)
        KYMO_TRY(kymo_table_status(r->tables[i]));
    return KYMO_OK;
}

static kymo_status make_report(struct kymo_samples_report *r, kymo_recording *const *recordings,
                               size_t n)
{
    KYMO_TRY(kymo__samples_open(&r->set, recordings, n));
    if (r->set.n_sources == 0 && r->set.n_told == 0)
        return kymo__fail(KYMO_EFORMAT,
                          "no sampler was at work in this recording; kymo attach PID -o "
                          "RUN.kymo and kymo run --sample make one");
    KYMO_TRY(kymo__samples_choose(&r->set, &r->options.filter, false, &r->chosen));
    KYMO_TRY(kymo__samples_sums_make(r));
    return make_tables(r);
}

kymo_status kymo_samples_report_create(kymo_recording *const *recordings, size_t n,
                                       const struct kymo_samples_report_options *options,
                                       kymo_samples_report **out)
{
    struct kymo_samples_report_options wants = {0};
    if (options != NULL)
        wants = *options;
    if (wants.sort == NULL)
        wants.sort = "self";
    if (find_sort(wants.sort + (wants.sort[0] == '-')) == NULL)
        return kymo__fail(
            KYMO_EINVAL, "samples cannot be sorted by '%s'; it may be self, total, samples or name",
            wants.sort);
    struct kymo_samples_report *const report = kymo__calloc(1, sizeof *report);
    if (report == NULL)
        return no_memory();
    report->options = wants;
    const kymo_status status = make_report(report, recordings, n);
    if (status == KYMO_OK)
        *out = report;
    else
        kymo_samples_report_destroy(report);
    return status;
}

void kymo_samples_report_destroy(kymo_samples_report *report)
{
    if (report == NULL)
        return;
    for (size_t i = 0; i < KYMO__N_SAMPLES_TABLES; i++)
        kymo_table_destroy(report->tables[i]);
    kymo__samples_sums_fini(&report->sums);
    kymo__samples_chosen_destroy(report->chosen);
    kymo__samples_fini(&report->set);
    kymo__free(report);
}

kymo_table *kymo_samples_report_table(kymo_samples_report *report, const char *name)
{
    for (size_t i = 0; i < KYMO__N_SAMPLES_TABLES; i++)
        if (strcmp(kymo_table_name(report->tables[i]), name) == 0)
            return report->tables[i];
    return NULL;
}
