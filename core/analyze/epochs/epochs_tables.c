/* Epochs as tables: each, each on each rank, and what they come to. */
#include <inttypes.h>
#include <string.h>

#include "analyze/epochs/epochs_whole.h"
#include "analyze/walk/columns.h"

#define RANK(name, title)                                                                          \
    {                                                                                              \
        name, title, MAREY_TYPE_I64, MAREY_UNIT_NONE                                               \
    }
#define COUNTED                                                                                    \
    {                                                                                              \
        "counted", NULL, MAREY_TYPE_BOOL, MAREY_UNIT_NONE                                          \
    }
#define PHASES                                                                                      \
    MAREY__NS_COLUMN("data_ns", "data"), MAREY__NS_COLUMN("forward_ns", "forward"),                 \
        MAREY__NS_COLUMN("backward_ns", "backward"),                                                \
        MAREY__NS_COLUMN("optimizer_ns", "optimizer"), MAREY__NS_COLUMN("evaluate_ns", "evaluate"), \
        MAREY__NS_COLUMN("checkpoint_ns", "checkpoint"),                                            \
        MAREY__NS_COLUMN("logging_ns", "logging"), MAREY__NS_COLUMN("other_ns", "other")
#define SPREAD                                                                                     \
    MAREY__TALLY_COLUMN("epochs", NULL), MAREY__NS_COLUMN("mean_ns", "mean"),                      \
        MAREY__NS_COLUMN("median_ns", "median"), MAREY__NS_COLUMN("std_ns", "std"),                \
        MAREY__NS_COLUMN("min_ns", "min"), MAREY__NS_COLUMN("max_ns", "max")

static const struct marey_column epoch_columns[] = {
    WHOLE("run"),
    WHOLE("epoch"),
    MAREY__TALLY_COLUMN("ranks", NULL),
    MAREY__NS_COLUMN("duration_ns", "time"),
    MAREY__NS_COLUMN("mean_ns", "mean"),
    MAREY__NS_COLUMN("shortest_ns", "shortest"),
    RANK("slowest_rank", "slowest"),
    MAREY__NS_COLUMN("behind_ns", "behind"),
    {"slowest_in", "in", MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    MAREY__TALLY_COLUMN("iterations", NULL),
    MAREY__NUMBER_COLUMN("samples", NULL),
    MAREY__NUMBER_COLUMN("samples_per_s", "samples/s"),
    COUNTED};
static const struct marey_column rank_columns[] = {
    WHOLE("run"),
    WHOLE("epoch"),
    MAREY__RANK_COLUMN,
    MAREY__PID_COLUMN,
    MAREY__NS_COLUMN("duration_ns", "time"),
    PHASES,
    MAREY__TALLY_COLUMN("iterations", NULL),
    MAREY__NUMBER_COLUMN("samples", NULL),
    MAREY__NUMBER_COLUMN("samples_per_s", "samples/s"),
    COUNTED,
    TEXT("note")};
static const struct marey_column average_columns[] = {
    WHOLE("run"),
    MAREY__RANK_COLUMN,
    SPREAD,
    PHASES,
    MAREY__NUMBER_COLUMN("samples_per_s", "samples/s"),
    MAREY__TALLY_COLUMN("slowest", NULL)};
static const struct marey_column phase_columns[] = {
    WHOLE("run"), MAREY__NAME_COLUMN, MAREY__COUNT_COLUMN, SPREAD, MAREY__SHARE_COLUMN("of epochs")};

static const struct marey__table_definition definitions[MAREY__N_EPOCH_TABLES] = {
    [MAREY__EPOCHS_EPOCHS] = DEFINED("epochs", epoch_columns),
    [MAREY__EPOCHS_RANKS] = DEFINED("ranks", rank_columns),
    [MAREY__EPOCHS_AVERAGES] = DEFINED("averages", average_columns),
    [MAREY__EPOCHS_PHASES] = DEFINED("phases", phase_columns),
    [MAREY__EPOCHS_NOTES] = {"notes", marey__warning_columns, 1},
};

/* ---- cells ---- */

static void put_rank(marey_table *table, const struct marey_process *process)
{
    if (process == NULL || process->rank < 0)
        marey_table_null(table);
    else
        marey_table_i64(table, process->rank);
}

static void put_known(marey_table *table, double value)
{
    if (value > 0)
        marey_table_f64(table, value);
    else
        marey_table_null(table);
}

/* Samples, and how many in a second. */
static double rate(double samples, double ns)
{
    return ns > 0 ? samples / ns * 1e9 : 0;
}

static void put_spread(marey_table *table, struct marey__epoch_values *values)
{
    const struct marey__epoch_spread spread = marey__epoch_values_spread(values);
    const double ns[] = {spread.mean, spread.median, spread.std, spread.min, spread.max};
    marey_table_u64(table, values->n);
    for (size_t i = 0; i < MAREY__COUNT_OF(ns); i++) {
        if (values->n == 0)
            marey_table_null(table);
        else
            marey_table_u64(table, marey__epoch_ns(ns[i]));
    }
}

/* ---- epochs, and ranks ---- */

static void put_epoch(const struct marey_epoch_report *report, const struct marey__epoch_group *group)
{
    marey_table *table = report->tables[MAREY__EPOCHS_EPOCHS];
    const struct marey__epoch_time *times = &report->times[group->first];
    const struct marey__epoch_time *longest = &report->times[group->longest];
    uint64_t shortest_ns = UINT64_MAX, n_iterations = 0;
    double sum_ns = 0, samples = 0;
    for (size_t i = 0; i < group->n; i++) {
        shortest_ns = MAREY__MIN(shortest_ns, times[i].ns);
        n_iterations = MAREY__MAX(n_iterations, times[i].n_iterations);
        sum_ns += (double)times[i].ns;
        samples += times[i].samples;
    }
    marey_table_u64(table, times->run + 1);
    marey_table_u64(table, times->number);
    marey_table_u64(table, group->n);
    marey_table_u64(table, longest->ns);
    marey_table_u64(table, marey__epoch_ns(sum_ns / (double)group->n));
    marey_table_u64(table, shortest_ns);
    if (group->slowest == SIZE_MAX) {
        marey_table_null(table);
        marey_table_null(table);
        marey_table_null(table);
    } else {
        put_rank(table, report->times[group->slowest].process);
        marey_table_u64(table, group->behind_ns);
        marey__put_string(table, marey__epoch_phase_names[group->slowest_in]);
    }
    marey_table_u64(table, n_iterations);
    put_known(table, samples);
    put_known(table, rate(samples, (double)longest->ns));
    marey_table_bool(table, group->counts);
}

static const char *note_of(const struct marey__epoch_time *time)
{
    if (time->flags & MAREY__EPOCH_OPEN)
        return "not ended";
    if (time->flags & MAREY__EPOCH_CUT)
        return "events lost";
    return time->flags & MAREY__EPOCH_FIRST ? "first" : "";
}

static void put_rank_row(marey_table *table, const struct marey__epoch_time *time)
{
    marey_table_u64(table, time->run + 1);
    marey_table_u64(table, time->number);
    marey__put_process(table, time->process);
    marey_table_u64(table, time->ns);
    for (size_t i = 0; i < MAREY__N_PHASES; i++)
        marey_table_u64(table, time->phase_ns[i]);
    marey_table_u64(table, time->n_iterations);
    put_known(table, time->samples);
    put_known(table, rate(time->samples, (double)time->ns));
    marey_table_bool(table, (time->flags & MAREY__EPOCH_COUNTS) != 0);
    marey__put_string(table, note_of(time));
}

/* ---- averages ---- */

/* What was added up over the epochs of a rank, or over the slowest rank of each. */
struct average {
    struct marey__epoch_values ns;
    double phase_ns[MAREY__N_PHASES], samples, samples_ns;
    uint64_t n_slowest;
};

static bool add(struct average *average, const struct marey__epoch_time *time, double samples)
{
    for (size_t i = 0; i < MAREY__N_PHASES; i++)
        average->phase_ns[i] += (double)time->phase_ns[i];
    average->samples += samples;
    average->samples_ns += samples > 0 ? (double)time->ns : 0;
    return marey__epoch_values_add(&average->ns, (double)time->ns);
}

static void put_average(marey_table *table, uint32_t run, const struct marey_process *process,
                        struct average *average)
{
    const double n = (double)average->ns.n;
    marey_table_u64(table, run + 1);
    put_rank(table, process);
    put_spread(table, &average->ns);
    for (size_t i = 0; i < MAREY__N_PHASES; i++) {
        if (n > 0)
            marey_table_u64(table, marey__epoch_ns(average->phase_ns[i] / n));
        else
            marey_table_null(table);
    }
    put_known(table, rate(average->samples, average->samples_ns));
    marey_table_u64(table, average->n_slowest);
}

static double samples_of(const struct marey_epoch_report *report,
                         const struct marey__epoch_group *group)
{
    double samples = 0;
    for (size_t i = 0; i < group->n; i++)
        samples += report->times[group->first + i].samples;
    return samples;
}

/* Groups of one run, which stand side by side. */
struct run {
    const struct marey__epoch_group *groups;
    size_t n;
    uint32_t number;
};

static bool put_run_average(const struct marey_epoch_report *report, const struct run *run)
{
    struct average average = {0};
    bool done = true;
    for (size_t g = 0; done && g < run->n; g++) {
        const struct marey__epoch_group *group = &run->groups[g];
        average.n_slowest += group->counts && group->slowest != SIZE_MAX;
        done = !group->counts ||
               add(&average, &report->times[group->longest], samples_of(report, group));
    }
    if (done)
        put_average(report->tables[MAREY__EPOCHS_AVERAGES], run->number, NULL, &average);
    marey__free(average.ns.values);
    return done;
}

static bool is_of_rank(const struct marey__epoch_time *time, const struct marey_process *whose)
{
    return whose->rank >= 0 ? time->process->rank == whose->rank : time->process == whose;
}

static bool put_rank_average(const struct marey_epoch_report *report, const struct run *run,
                             const struct marey_process *whose)
{
    struct average average = {0};
    bool done = true;
    for (size_t g = 0; done && g < run->n; g++) {
        const struct marey__epoch_group *group = &run->groups[g];
        for (size_t i = group->first; done && group->counts && i < group->first + group->n; i++) {
            const struct marey__epoch_time *time = &report->times[i];
            if (!is_of_rank(time, whose))
                continue;
            average.n_slowest += group->slowest == i;
            done = add(&average, time, time->samples);
        }
    }
    if (done)
        put_average(report->tables[MAREY__EPOCHS_AVERAGES], run->number, whose, &average);
    marey__free(average.ns.values);
    return done;
}

/* Ranks in their order; those that have none by their start. */
static bool is_before(const struct marey_process *a, const struct marey_process *b)
{
    if (a->rank != b->rank || a->rank >= 0)
        return a->rank < b->rank;
    return a->start_unix_ns != b->start_unix_ns ? a->start_unix_ns < b->start_unix_ns
                                                : a->pid < b->pid;
}

/* A row for each rank. */
static bool put_rank_averages(const struct marey_epoch_report *report, const struct run *run)
{
    const struct marey__epoch_group *last_group = &run->groups[run->n - 1];
    const size_t first = run->groups[0].first, end = last_group->first + last_group->n;
    const struct marey_process *last = NULL, *next;
    do {
        next = NULL;
        for (size_t i = first; i < end; i++) {
            const struct marey_process *process = report->times[i].process;
            if ((last == NULL || is_before(last, process)) &&
                (next == NULL || is_before(process, next)))
                next = process;
        }
        if (next != NULL && !put_rank_average(report, run, next))
            return false;
        last = next;
    } while (next != NULL);
    return true;
}

/* ---- phases ---- */

static uint64_t ns_of_name(const struct marey_epoch_report *report,
                           const struct marey__epoch_time *time, uint32_t name, uint64_t *count)
{
    for (size_t i = time->first_part; i < time->first_part + time->n_parts; i++)
        if (report->parts[i].name == name) {
            *count += report->parts[i].count;
            return report->parts[i].ns;
        }
    return 0;
}

/* `name` MAREY__NO_NAME: time in no phase. Phases that the run does not have give no row. */
static bool put_phase(const struct marey_epoch_report *report, const struct run *run, uint32_t name)
{
    marey_table *table = report->tables[MAREY__EPOCHS_PHASES];
    struct marey__epoch_values values = {0};
    uint64_t count = 0, sum_ns = 0, whole_ns = 0;
    bool done = true;
    for (size_t g = 0; g < run->n; g++)
        for (size_t i = 0; done && run->groups[g].counts && i < run->groups[g].n; i++) {
            const struct marey__epoch_time *time = &report->times[run->groups[g].first + i];
            uint64_t ns = 0;
            if (name != MAREY__NO_NAME)
                ns = ns_of_name(report, time, name, &count);
            else
                for (size_t part = 0; part <= time->n_parts; part++)
                    ns = part == 0 ? time->ns : ns - report->parts[time->first_part + part - 1].ns;
            sum_ns += ns;
            whole_ns += time->ns;
            done = marey__epoch_values_add(&values, (double)ns);
        }
    if (done && (sum_ns != 0 || count != 0)) {
        marey_table_u64(table, run->number + 1);
        if (name != MAREY__NO_NAME)
            marey_table_text(table, report->names.names[name].text, report->names.names[name].len);
        else
            marey__put_string(table, "(no phase)");
        marey_table_u64(table, count);
        put_spread(table, &values);
        marey__put_share(table, sum_ns, whole_ns);
    }
    marey__free(values.values);
    return done;
}

/* ---- notes ---- */

static bool put_notes(const struct marey_epoch_report *report, const struct run *run)
{
    marey_table *table = report->tables[MAREY__EPOCHS_NOTES];
    struct marey__buf text = {0};
    uint64_t n_counted = 0, n_open = 0, n_cut = 0, n_firsts = 0;
    for (size_t g = 0; g < run->n; g++) {
        uint32_t flags = 0;
        for (size_t i = 0; i < run->groups[g].n; i++)
            flags |= report->times[run->groups[g].first + i].flags;
        n_counted += run->groups[g].counts;
        n_firsts += run->groups[g].counts && (flags & MAREY__EPOCH_FIRST) != 0;
        n_open += (flags & MAREY__EPOCH_OPEN) != 0;
        n_cut += (flags & (MAREY__EPOCH_OPEN | MAREY__EPOCH_CUT)) == MAREY__EPOCH_CUT;
    }
    if (n_open != 0)
        marey__buf_printf(&text,
                          "%" PRIu64 " epochs of run %" PRIu32
                          " were not ended on every rank, and are no part of averages\n",
                          n_open, run->number + 1);
    if (n_cut != 0)
        marey__buf_printf(&text,
                          "in %" PRIu64 " epochs of run %" PRIu32
                          " events were lost; they are no part of averages\n",
                          n_cut, run->number + 1);
    if (n_firsts != 0 && n_firsts == n_counted && !report->options.with_first)
        marey__buf_printf(&text,
                          "run %" PRIu32 " has no epoch but the first, which warms up: it is what "
                          "is told\n",
                          run->number + 1);
    for (size_t at = 0; !text.failed && at < text.len;) {
        const char *end = memchr(text.data + at, '\n', text.len - at);
        marey_table_text(table, text.data + at, (size_t)(end - (text.data + at)));
        at = (size_t)(end - text.data) + 1;
    }
    const bool done = !text.failed;
    marey__buf_fini(&text);
    return done;
}

/* ---- all ---- */

static bool put_run(const struct marey_epoch_report *report, const struct run *run)
{
    bool done = put_run_average(report, run) && put_rank_averages(report, run);
    for (uint32_t name = 0; done && name < report->names.n; name++)
        done = put_phase(report, run, name);
    return done && put_phase(report, run, MAREY__NO_NAME) && put_notes(report, run);
}

static bool fill(const struct marey_epoch_report *report)
{
    size_t from = 0;
    for (size_t g = 0; g < report->n_groups; g++)
        put_epoch(report, &report->groups[g]);
    for (size_t i = 0; i < report->n_times; i++)
        put_rank_row(report->tables[MAREY__EPOCHS_RANKS], &report->times[i]);
    for (size_t g = 1; g <= report->n_groups; g++) {
        const uint32_t number = report->times[report->groups[from].first].run;
        if (g < report->n_groups && report->times[report->groups[g].first].run == number)
            continue;
        const struct run run = {&report->groups[from], g - from, number};
        if (!put_run(report, &run))
            return false;
        from = g;
    }
    return true;
}

marey_status marey__epochs_make_tables(struct marey_epoch_report *report)
{
    for (size_t i = 0; i < MAREY__N_EPOCH_TABLES; i++)
        MAREY_TRY(marey_table_create(definitions[i].name, definitions[i].columns, definitions[i].n,
                                     &report->tables[i]));
    MAREY__TRY_MEMORY(fill(report));
    for (size_t i = 0; i < MAREY__N_EPOCH_TABLES; i++)
        MAREY_TRY(marey_table_status(report->tables[i]));
    return MAREY_OK;
}
