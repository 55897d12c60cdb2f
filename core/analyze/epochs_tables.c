/* Epochs as tables: each, each on each rank, and what they come to. */
#include <inttypes.h>
#include <string.h>

#include "analyze/columns.h"
#include "analyze/epochs_whole.h"

#define RANK(name, title)                                                                          \
    {                                                                                              \
        name, title, KYMO_TYPE_I64, KYMO_UNIT_NONE                                                 \
    }
#define COUNTED                                                                                    \
    {                                                                                              \
        "counted", NULL, KYMO_TYPE_BOOL, KYMO_UNIT_NONE                                            \
    }
#define PHASES                                                                                      \
    KYMO__NS_COLUMN("data_ns", "data"), KYMO__NS_COLUMN("forward_ns", "forward"),                   \
        KYMO__NS_COLUMN("backward_ns", "backward"), KYMO__NS_COLUMN("optimizer_ns", "optimizer"),   \
        KYMO__NS_COLUMN("evaluate_ns", "evaluate"), KYMO__NS_COLUMN("checkpoint_ns", "checkpoint"), \
        KYMO__NS_COLUMN("logging_ns", "logging"), KYMO__NS_COLUMN("other_ns", "other")
#define SPREAD                                                                                     \
    KYMO__TALLY_COLUMN("epochs", NULL), KYMO__NS_COLUMN("mean_ns", "mean"),                        \
        KYMO__NS_COLUMN("median_ns", "median"), KYMO__NS_COLUMN("std_ns", "std"),                  \
        KYMO__NS_COLUMN("min_ns", "min"), KYMO__NS_COLUMN("max_ns", "max")

static const struct kymo_column epoch_columns[] = {
    WHOLE("run"),
    WHOLE("epoch"),
    KYMO__TALLY_COLUMN("ranks", NULL),
    KYMO__NS_COLUMN("duration_ns", "time"),
    KYMO__NS_COLUMN("mean_ns", "mean"),
    KYMO__NS_COLUMN("shortest_ns", "shortest"),
    RANK("slowest_rank", "slowest"),
    KYMO__NS_COLUMN("behind_ns", "behind"),
    {"slowest_in", "in", KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    KYMO__TALLY_COLUMN("iterations", NULL),
    KYMO__NUMBER_COLUMN("samples", NULL),
    KYMO__NUMBER_COLUMN("samples_per_s", "samples/s"),
    COUNTED};
static const struct kymo_column rank_columns[] = {WHOLE("run"),
                                                  WHOLE("epoch"),
                                                  KYMO__RANK_COLUMN,
                                                  KYMO__PID_COLUMN,
                                                  KYMO__NS_COLUMN("duration_ns", "time"),
                                                  PHASES,
                                                  KYMO__TALLY_COLUMN("iterations", NULL),
                                                  KYMO__NUMBER_COLUMN("samples", NULL),
                                                  KYMO__NUMBER_COLUMN("samples_per_s", "samples/s"),
                                                  COUNTED,
                                                  TEXT("note")};
static const struct kymo_column average_columns[] = {
    WHOLE("run"),
    KYMO__RANK_COLUMN,
    SPREAD,
    PHASES,
    KYMO__NUMBER_COLUMN("samples_per_s", "samples/s"),
    KYMO__TALLY_COLUMN("slowest", NULL)};
static const struct kymo_column phase_columns[] = {
    WHOLE("run"), KYMO__NAME_COLUMN, KYMO__COUNT_COLUMN, SPREAD, KYMO__SHARE_COLUMN("of epochs")};

static const struct kymo__table_definition definitions[KYMO__N_EPOCH_TABLES] = {
    [KYMO__EPOCHS_EPOCHS] = DEFINED("epochs", epoch_columns),
    [KYMO__EPOCHS_RANKS] = DEFINED("ranks", rank_columns),
    [KYMO__EPOCHS_AVERAGES] = DEFINED("averages", average_columns),
    [KYMO__EPOCHS_PHASES] = DEFINED("phases", phase_columns),
    [KYMO__EPOCHS_NOTES] = {"notes", kymo__warning_columns, 1},
};

/* ---- cells ---- */

static void put_rank(kymo_table *table, const struct kymo_process *process)
{
    if (process == NULL || process->rank < 0)
        kymo_table_null(table);
    else
        kymo_table_i64(table, process->rank);
}

static void put_known(kymo_table *table, double value)
{
    if (value > 0)
        kymo_table_f64(table, value);
    else
        kymo_table_null(table);
}

/* Samples, and how many in a second. */
static double rate(double samples, double ns)
{
    return ns > 0 ? samples / ns * 1e9 : 0;
}

static void put_spread(kymo_table *table, struct kymo__epoch_values *values)
{
    const struct kymo__epoch_spread spread = kymo__epoch_values_spread(values);
    const double ns[] = {spread.mean, spread.median, spread.std, spread.min, spread.max};
    kymo_table_u64(table, values->n);
    for (size_t i = 0; i < KYMO__COUNT_OF(ns); i++) {
        if (values->n == 0)
            kymo_table_null(table);
        else
            kymo_table_u64(table, kymo__epoch_ns(ns[i]));
    }
}

/* ---- epochs, and ranks ---- */

static void put_epoch(const struct kymo_epoch_report *report, const struct kymo__epoch_group *group)
{
    kymo_table *table = report->tables[KYMO__EPOCHS_EPOCHS];
    const struct kymo__epoch_time *times = &report->times[group->first];
    const struct kymo__epoch_time *longest = &report->times[group->longest];
    uint64_t shortest_ns = UINT64_MAX, n_iterations = 0;
    double sum_ns = 0, samples = 0;
    for (size_t i = 0; i < group->n; i++) {
        shortest_ns = KYMO__MIN(shortest_ns, times[i].ns);
        n_iterations = KYMO__MAX(n_iterations, times[i].n_iterations);
        sum_ns += (double)times[i].ns;
        samples += times[i].samples;
    }
    kymo_table_u64(table, times->run + 1);
    kymo_table_u64(table, times->number);
    kymo_table_u64(table, group->n);
    kymo_table_u64(table, longest->ns);
    kymo_table_u64(table, kymo__epoch_ns(sum_ns / (double)group->n));
    kymo_table_u64(table, shortest_ns);
    if (group->slowest == SIZE_MAX) {
        kymo_table_null(table);
        kymo_table_null(table);
        kymo_table_null(table);
    } else {
        put_rank(table, report->times[group->slowest].process);
        kymo_table_u64(table, group->behind_ns);
        kymo__put_string(table, kymo__epoch_phase_names[group->slowest_in]);
    }
    kymo_table_u64(table, n_iterations);
    put_known(table, samples);
    put_known(table, rate(samples, (double)longest->ns));
    kymo_table_bool(table, group->counts);
}

static const char *note_of(const struct kymo__epoch_time *time)
{
    if (time->flags & KYMO__EPOCH_OPEN)
        return "not ended";
    if (time->flags & KYMO__EPOCH_CUT)
        return "events lost";
    return time->flags & KYMO__EPOCH_FIRST ? "first" : "";
}

static void put_rank_row(kymo_table *table, const struct kymo__epoch_time *time)
{
    kymo_table_u64(table, time->run + 1);
    kymo_table_u64(table, time->number);
    kymo__put_process(table, time->process);
    kymo_table_u64(table, time->ns);
    for (size_t i = 0; i < KYMO__N_PHASES; i++)
        kymo_table_u64(table, time->phase_ns[i]);
    kymo_table_u64(table, time->n_iterations);
    put_known(table, time->samples);
    put_known(table, rate(time->samples, (double)time->ns));
    kymo_table_bool(table, (time->flags & KYMO__EPOCH_COUNTS) != 0);
    kymo__put_string(table, note_of(time));
}

/* ---- averages ---- */

/* What was added up over the epochs of a rank, or over the slowest rank of each. */
struct average {
    struct kymo__epoch_values ns;
    double phase_ns[KYMO__N_PHASES], samples, samples_ns;
    uint64_t n_slowest;
};

static bool add(struct average *average, const struct kymo__epoch_time *time, double samples)
{
    for (size_t i = 0; i < KYMO__N_PHASES; i++)
        average->phase_ns[i] += (double)time->phase_ns[i];
    average->samples += samples;
    average->samples_ns += samples > 0 ? (double)time->ns : 0;
    return kymo__epoch_values_add(&average->ns, (double)time->ns);
}

static void put_average(kymo_table *table, uint32_t run, const struct kymo_process *process,
                        struct average *average)
{
    const double n = (double)average->ns.n;
    kymo_table_u64(table, run + 1);
    put_rank(table, process);
    put_spread(table, &average->ns);
    for (size_t i = 0; i < KYMO__N_PHASES; i++) {
        if (n > 0)
            kymo_table_u64(table, kymo__epoch_ns(average->phase_ns[i] / n));
        else
            kymo_table_null(table);
    }
    put_known(table, rate(average->samples, average->samples_ns));
    kymo_table_u64(table, average->n_slowest);
}

static double samples_of(const struct kymo_epoch_report *report, const struct kymo__epoch_group *group)
{
    double samples = 0;
    for (size_t i = 0; i < group->n; i++)
        samples += report->times[group->first + i].samples;
    return samples;
}

/* Groups of one run, which stand side by side. */
struct run {
    const struct kymo__epoch_group *groups;
    size_t n;
    uint32_t number;
};

static bool put_run_average(const struct kymo_epoch_report *report, const struct run *run)
{
    struct average average = {0};
    bool done = true;
    for (size_t g = 0; done && g < run->n; g++) {
        const struct kymo__epoch_group *group = &run->groups[g];
        average.n_slowest += group->counts && group->slowest != SIZE_MAX;
        done = !group->counts ||
               add(&average, &report->times[group->longest], samples_of(report, group));
    }
    if (done)
        put_average(report->tables[KYMO__EPOCHS_AVERAGES], run->number, NULL, &average);
    kymo__free(average.ns.values);
    return done;
}

static bool is_of_rank(const struct kymo__epoch_time *time, const struct kymo_process *whose)
{
    return whose->rank >= 0 ? time->process->rank == whose->rank : time->process == whose;
}

static bool put_rank_average(const struct kymo_epoch_report *report, const struct run *run,
                             const struct kymo_process *whose)
{
    struct average average = {0};
    bool done = true;
    for (size_t g = 0; done && g < run->n; g++) {
        const struct kymo__epoch_group *group = &run->groups[g];
        for (size_t i = group->first; done && group->counts && i < group->first + group->n; i++) {
            const struct kymo__epoch_time *time = &report->times[i];
            if (!is_of_rank(time, whose))
                continue;
            average.n_slowest += group->slowest == i;
            done = add(&average, time, time->samples);
        }
    }
    if (done)
        put_average(report->tables[KYMO__EPOCHS_AVERAGES], run->number, whose, &average);
    kymo__free(average.ns.values);
    return done;
}

/* Ranks in their order; those that have none by their start. */
static bool is_before(const struct kymo_process *a, const struct kymo_process *b)
{
    if (a->rank != b->rank || a->rank >= 0)
        return a->rank < b->rank;
    return a->start_unix_ns != b->start_unix_ns ? a->start_unix_ns < b->start_unix_ns
                                                : a->pid < b->pid;
}

/* A row for each rank. */
static bool put_rank_averages(const struct kymo_epoch_report *report, const struct run *run)
{
    const struct kymo__epoch_group *last_group = &run->groups[run->n - 1];
    const size_t first = run->groups[0].first, end = last_group->first + last_group->n;
    const struct kymo_process *last = NULL, *next;
    do {
        next = NULL;
        for (size_t i = first; i < end; i++) {
            const struct kymo_process *process = report->times[i].process;
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

static uint64_t ns_of_name(const struct kymo_epoch_report *report,
                           const struct kymo__epoch_time *time, uint32_t name, uint64_t *count)
{
    for (size_t i = time->first_part; i < time->first_part + time->n_parts; i++)
        if (report->parts[i].name == name) {
            *count += report->parts[i].count;
            return report->parts[i].ns;
        }
    return 0;
}

/* `name` KYMO__NO_NAME: time in no phase. Phases that the run does not have give no row. */
static bool put_phase(const struct kymo_epoch_report *report, const struct run *run, uint32_t name)
{
    kymo_table *table = report->tables[KYMO__EPOCHS_PHASES];
    struct kymo__epoch_values values = {0};
    uint64_t count = 0, sum_ns = 0, whole_ns = 0;
    bool done = true;
    for (size_t g = 0; g < run->n; g++)
        for (size_t i = 0; done && run->groups[g].counts && i < run->groups[g].n; i++) {
            const struct kymo__epoch_time *time = &report->times[run->groups[g].first + i];
            uint64_t ns = 0;
            if (name != KYMO__NO_NAME)
                ns = ns_of_name(report, time, name, &count);
            else
                for (size_t part = 0; part <= time->n_parts; part++)
                    ns = part == 0 ? time->ns : ns - report->parts[time->first_part + part - 1].ns;
            sum_ns += ns;
            whole_ns += time->ns;
            done = kymo__epoch_values_add(&values, (double)ns);
        }
    if (done && (sum_ns != 0 || count != 0)) {
        kymo_table_u64(table, run->number + 1);
        if (name != KYMO__NO_NAME)
            kymo_table_text(table, report->names.names[name].text, report->names.names[name].len);
        else
            kymo__put_string(table, "(no phase)");
        kymo_table_u64(table, count);
        put_spread(table, &values);
        kymo__put_share(table, sum_ns, whole_ns);
    }
    kymo__free(values.values);
    return done;
}

/* ---- notes ---- */

static bool put_notes(const struct kymo_epoch_report *report, const struct run *run)
{
    kymo_table *table = report->tables[KYMO__EPOCHS_NOTES];
    struct kymo__buf text = {0};
    uint64_t n_counted = 0, n_open = 0, n_cut = 0, n_firsts = 0;
    for (size_t g = 0; g < run->n; g++) {
        uint32_t flags = 0;
        for (size_t i = 0; i < run->groups[g].n; i++)
            flags |= report->times[run->groups[g].first + i].flags;
        n_counted += run->groups[g].counts;
        n_firsts += run->groups[g].counts && (flags & KYMO__EPOCH_FIRST) != 0;
        n_open += (flags & KYMO__EPOCH_OPEN) != 0;
        n_cut += (flags & (KYMO__EPOCH_OPEN | KYMO__EPOCH_CUT)) == KYMO__EPOCH_CUT;
    }
    if (n_open != 0)
        kymo__buf_printf(&text,
                         "%" PRIu64 " epochs of run %" PRIu32
                         " were not ended on every rank, and are no part of averages\n",
                         n_open, run->number + 1);
    if (n_cut != 0)
        kymo__buf_printf(&text,
                         "in %" PRIu64 " epochs of run %" PRIu32
                         " events were lost; they are no part of averages\n",
                         n_cut, run->number + 1);
    if (n_firsts != 0 && n_firsts == n_counted && !report->options.with_first)
        kymo__buf_printf(&text,
                         "run %" PRIu32 " has no epoch but the first, which warms up: it is what "
                         "is told\n",
                         run->number + 1);
    for (size_t at = 0; !text.failed && at < text.len;) {
        const char *end = memchr(text.data + at, '\n', text.len - at);
        kymo_table_text(table, text.data + at, (size_t)(end - (text.data + at)));
        at = (size_t)(end - text.data) + 1;
    }
    const bool done = !text.failed;
    kymo__buf_fini(&text);
    return done;
}

/* ---- all ---- */

static bool put_run(const struct kymo_epoch_report *report, const struct run *run)
{
    bool done = put_run_average(report, run) && put_rank_averages(report, run);
    for (uint32_t name = 0; done && name < report->names.n; name++)
        done = put_phase(report, run, name);
    return done && put_phase(report, run, KYMO__NO_NAME) && put_notes(report, run);
}

static bool fill(const struct kymo_epoch_report *report)
{
    size_t from = 0;
    for (size_t g = 0; g < report->n_groups; g++)
        put_epoch(report, &report->groups[g]);
    for (size_t i = 0; i < report->n_times; i++)
        put_rank_row(report->tables[KYMO__EPOCHS_RANKS], &report->times[i]);
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

kymo_status kymo__epochs_make_tables(struct kymo_epoch_report *report)
{
    for (size_t i = 0; i < KYMO__N_EPOCH_TABLES; i++)
        KYMO_TRY(kymo_table_create(definitions[i].name, definitions[i].columns, definitions[i].n,
                                   &report->tables[i]));
    if (!fill(report))
        return kymo__fail(KYMO_ENOMEM, "no memory for epochs");
    for (size_t i = 0; i < KYMO__N_EPOCH_TABLES; i++)
        KYMO_TRY(kymo_table_status(report->tables[i]));
    return KYMO_OK;
}
