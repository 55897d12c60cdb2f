/* The report of samples: from recordings to sums, from sums to tables. */
#include <string.h>

#include "analyze/samples/samples_whole.h"
#include "analyze/walk/columns.h"

/* ---- columns ---- */

#define PLACE(prefix) TEXT(prefix), TEXT(prefix "_file"), WHOLE(prefix "_line")
#define WHAT SHARE("error", "+-"), SHARE("cpu", "on CPU"), SHARE("gil", "GIL"), TEXT("waits")
#define SUMS COUNT("samples", NULL), NS("self_ns", "self"), SHARE("share", "of samples"), WHAT
#define FRAME_SUMS                                                                                 \
    COUNT("samples", NULL), NS("self_ns", "self"), NS("total_ns", "total time"),                   \
        SHARE("share", "of samples"), SHARE("total_share", "total"), WHAT
#define WHERE TEXT("function"), TEXT("file"), WHOLE("line")

static const struct marey_column functions[] = {WHERE, TEXT("module"), TEXT("kind"), FRAME_SUMS};
static const struct marey_column lines[] = {WHERE, TEXT("module"), FRAME_SUMS};
static const struct marey_column files[] = {TEXT("file"), FRAME_SUMS};
static const struct marey_column modules[] = {TEXT("module"), FRAME_SUMS};
static const struct marey_column threads[] = {NUMBER("rank"),
                                              NUMBER("pid"),
                                              NUMBER("tid"),
                                              TEXT("thread"),
                                              {"main", NULL, MAREY_TYPE_BOOL, MAREY_UNIT_NONE},
                                              SUMS};
static const struct marey_column processes[] = {NUMBER("rank"), NUMBER("worker"), NUMBER("pid"),
                                                TEXT("command"), SUMS};
static const struct marey_column ranks[] = {NUMBER("rank"), COUNT("processes", NULL), SUMS};
static const struct marey_column stacks[] = {TEXT("stack"), SUMS};
static const struct marey_column contacts[] = {WHERE,
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
static const struct marey_column leaves[] = {LEAF};
static const struct marey_column leaf_paths[] = {LEAF};
static const struct marey_column waits[] = {TEXT("waits"),         WHERE,
                                            TEXT("thread"),        COUNT("samples", NULL),
                                            NS("self_ns", "time"), SHARE("share", "of samples")};
static const struct marey_column gil[] = {NUMBER("rank"),       NUMBER("pid"),
                                          TEXT("thread"),       NS("held_ns", "time held"),
                                          SHARE("held", NULL),  NS("wants_ns", "time waited"),
                                          SHARE("wants", NULL), REAL("switches_per_s", NULL)};
static const struct marey_column audit[] = {TEXT("host"),
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
static const struct marey_column totals[] = {COUNT("samples", NULL), NS("self_ns", "self"),
                                             REAL("seconds", NULL),  COUNT("processes", NULL),
                                             COUNT("threads", NULL), COUNT("functions", NULL),
                                             COUNT("stacks", NULL),  TEXT("what")};
static const struct marey_column notes[] = {TEXT("text")};

static const struct {
    const char *name;
    const struct marey_column *columns;
    size_t n;
} kinds[MAREY__N_SAMPLES_TABLES] = {
#define KIND(columns)                                                                              \
    {                                                                                              \
#columns, columns, MAREY__COUNT_OF(columns)                                                \
    }
    [MAREY__SAMPLES_FUNCTIONS] = KIND(functions),
    [MAREY__SAMPLES_LINES] = KIND(lines),
    [MAREY__SAMPLES_FILES] = KIND(files),
    [MAREY__SAMPLES_MODULES] = KIND(modules),
    [MAREY__SAMPLES_THREADS] = KIND(threads),
    [MAREY__SAMPLES_PROCESSES] = KIND(processes),
    [MAREY__SAMPLES_RANKS] = KIND(ranks),
    [MAREY__SAMPLES_STACKS] = KIND(stacks),
    [MAREY__SAMPLES_CONTACTS] = KIND(contacts),
    [MAREY__SAMPLES_LEAVES] = KIND(leaves),
    [MAREY__SAMPLES_LEAF_PATHS] = KIND(leaf_paths),
    [MAREY__SAMPLES_WAITS] = KIND(waits),
    [MAREY__SAMPLES_GIL] = KIND(gil),
    [MAREY__SAMPLES_AUDIT] = KIND(audit),
    [MAREY__SAMPLES_TOTALS] = KIND(totals),
    [MAREY__SAMPLES_NOTES] = KIND(notes),
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
    for (size_t i = 0; i < MAREY__COUNT_OF(sorts); i++)
        if (strcmp(sorts[i].name, name) == 0)
            return &sorts[i];
    return NULL;
}

static void sort_table(marey_table *table, const char *how)
{
    const bool is_reversed = how[0] == '-';
    const struct sort *const sort = find_sort(how + is_reversed);
    for (size_t i = 0; i < MAREY__COUNT_OF(sort->columns) && sort->columns[i] != NULL; i++) {
        const int column = marey_table_find(table, sort->columns[i]);
        if (column < 0)
            continue;
        const bool is_text = marey_table_column(table, (size_t)column)->type == MAREY_TYPE_TEXT;
        marey_table_sort(table, (size_t)column, is_text == is_reversed);
        return;
    }
}

/* ---- the report ---- */

static marey_status make_tables(struct marey_samples_report *r)
{
    for (size_t i = 0; i < MAREY__N_SAMPLES_TABLES; i++)
        MAREY_TRY(marey_table_create(kinds[i].name, kinds[i].columns, kinds[i].n, &r->tables[i]));
    MAREY__TRY_MEMORY(marey__samples_put_frames(r) && marey__samples_put_stacks(r) &&
                      marey__samples_put_owners(r) && marey__samples_put_contacts(r) &&
                      marey__samples_put_waits(r) && marey__samples_put_gil(r) &&
                      marey__samples_put_audit(r));
    marey__samples_put_totals(r);
    MAREY__TRY_MEMORY(marey__samples_put_notes(r));
    for (size_t i = 0; i < MAREY__SAMPLES_AUDIT; i++)
        sort_table(r->tables[i], r->options.sort);
    for (size_t i = 0; i < MAREY__N_SAMPLES_TABLES; i++)
        MAREY_TRY(marey_table_status(r->tables[i]));
    return MAREY_OK;
}

static marey_status make_report(struct marey_samples_report *r, marey_recording *const *recordings,
                                size_t n)
{
    MAREY_TRY(marey__samples_open(&r->set, recordings, n));
    if (r->set.n_sources == 0 && r->set.n_told == 0)
        return marey__fail(MAREY_EFORMAT,
                           "no sampler was at work in this recording; marey attach PID -o "
                           "RUN.marey and marey run --sample make one");
    MAREY_TRY(marey__samples_choose(&r->set, &r->options.filter, false, &r->chosen));
    MAREY_TRY(marey__samples_sums_make(r));
    return make_tables(r);
}

marey_status marey_samples_report_create(marey_recording *const *recordings, size_t n,
                                         const struct marey_samples_report_options *options,
                                         marey_samples_report **out)
{
    struct marey_samples_report_options wants = {0};
    if (options != NULL)
        wants = *options;
    if (wants.sort == NULL)
        wants.sort = "self";
    if (find_sort(wants.sort + (wants.sort[0] == '-')) == NULL)
        return marey__fail(
            MAREY_EINVAL,
            "samples cannot be sorted by '%s'; it may be self, total, samples or name", wants.sort);
    struct marey_samples_report *const report = marey__calloc(1, sizeof *report);
    MAREY__TRY_MEMORY(report != NULL);
    report->options = wants;
    const marey_status status = make_report(report, recordings, n);
    if (status == MAREY_OK)
        *out = report;
    else
        marey_samples_report_destroy(report);
    return status;
}

void marey_samples_report_destroy(marey_samples_report *report)
{
    if (report == NULL)
        return;
    for (size_t i = 0; i < MAREY__N_SAMPLES_TABLES; i++)
        marey_table_destroy(report->tables[i]);
    marey__samples_sums_fini(&report->sums);
    marey__samples_chosen_destroy(report->chosen);
    marey__samples_fini(&report->set);
    marey__free(report);
}

marey_table *marey_samples_report_table(marey_samples_report *report, const char *name)
{
    for (size_t i = 0; i < MAREY__N_SAMPLES_TABLES; i++)
        if (strcmp(marey_table_name(report->tables[i]), name) == 0)
            return report->tables[i];
    return NULL;
}
