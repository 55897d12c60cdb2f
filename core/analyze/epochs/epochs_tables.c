/*
 * The tables of epochs. `run` numbers run ids from 1, by start time.
 *
 * In `epochs`, duration_ns is that of the slowest rank, samples are those of all ranks, and the rate is samples over
 * duration. slowest_rank is null if no rank stands out: it must take 2 % longer than the mean of the others, by
 * behind_ns. Ranks that wait for one another take equally long; for those, only time outside backward and optimizer
 * counts, where they wait. slowest_in is the phase with the largest excess over the others. The first row of a run
 * in `averages` is over the slowest rank of each epoch. `phases` includes the program's own names; `other` in the
 * other tables is the time outside the seven phases. note: "first", "not ended", "events lost".
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/epochs/internal.h"
#include "analyze/walk/internal.h"

#define PHASES                                                                                     \
    NS("data_ns", "data"), NS("forward_ns", "forward"), NS("backward_ns", "backward"),             \
        NS("optimizer_ns", "optimizer"), NS("evaluate_ns", "evaluate"),                            \
        NS("checkpoint_ns", "checkpoint"), NS("logging_ns", "logging"), NS("other_ns", "other")
#define SPREAD                                                                                     \
    COUNT("epochs", NULL), NS("mean_ns", "mean"), NS("median_ns", "median"), NS("std_ns", "std"),  \
        NS("min_ns", "min"), NS("max_ns", "max")

static const struct marey_column epoch_columns[] = {
    WHOLE("run"),
    WHOLE("epoch"),
    COUNT("ranks", NULL),
    NS("duration_ns", "time"),
    NS("mean_ns", "mean"),
    NS("shortest_ns", "shortest"),
    COLUMN("slowest_rank", "slowest", MAREY_TYPE_I64, MAREY_UNIT_NONE),
    NS("behind_ns", "behind"),
    COLUMN("slowest_in", "in", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
    COUNT("iterations", NULL),
    REAL("samples", NULL),
    REAL("samples_per_s", "samples/s"),
    FLAG("counted")};
static const struct marey_column rank_columns[] = {WHOLE("run"),
                                                   WHOLE("epoch"),
                                                   NUMBER("rank"),
                                                   NUMBER("pid"),
                                                   NS("duration_ns", "time"),
                                                   PHASES,
                                                   COUNT("iterations", NULL),
                                                   REAL("samples", NULL),
                                                   REAL("samples_per_s", "samples/s"),
                                                   FLAG("counted"),
                                                   TEXT("note")};
static const struct marey_column average_columns[] = {
    WHOLE("run"),          NUMBER("rank"), SPREAD, PHASES, REAL("samples_per_s", "samples/s"),
    COUNT("slowest", NULL)};
static const struct marey_column phase_columns[] = {WHOLE("run"), TEXT("name"), COUNT("count", NULL),
                                                    SPREAD, SHARE("share", "of epochs")};

#define TABLE(columns) columns, MAREY__COUNT_OF(columns)
const struct marey_table_definition marey__epoch_tables[MAREY__N_EPOCH_TABLES] = {
    [MAREY__EPOCHS_EPOCHS] = {"epochs", TABLE(epoch_columns), "epoch",
                              "each epoch, with the time of its slowest rank"},
    [MAREY__EPOCHS_RANKS] = {"ranks", TABLE(rank_columns), "rank", "each epoch on each rank"},
    [MAREY__EPOCHS_AVERAGES] =
        {"averages", TABLE(average_columns), "average",
         "first the slowest rank of each epoch, then each rank; without the first epoch"},
    [MAREY__EPOCHS_PHASES] = {"phases", TABLE(phase_columns), "phase", "phases of an epoch on a rank"},
    [MAREY__EPOCHS_NOTES] = {"notes", marey__warning_columns, 1, "note", "notes on the figures"},
};

/* ---- cells ---- */

/* Samples per second. */
static double rate(double samples, double ns)
{
    return ns > 0 ? samples / ns * 1e9 : 0;
}

struct values {
    double *list;
    size_t n, cap;
};

/* Sorts the values. */
static void put_spread(marey_table *table, struct values *values)
{
    const size_t n = values->n;
    const double *const v = values->list;
    double mean = 0, squares = 0;
    if (n != 0)
        qsort(values->list, n, sizeof *values->list, marey__compare_f64);
    for (size_t i = 0; i < n; i++)
        mean += v[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (v[i] - mean) * (v[i] - mean);
    MAREY__PUT_ROW(table, U64(n), KNOWN(n != 0, U64(marey__epoch_ns(mean))),
                   KNOWN(n != 0, U64(marey__epoch_ns((v[(n - 1) / 2] + v[n / 2]) / 2))),
                   KNOWN(n != 0, U64(marey__epoch_ns(n > 1 ? sqrt(squares / (double)(n - 1)) : 0))),
                   KNOWN(n != 0, U64(marey__epoch_ns(v[0]))),
                   KNOWN(n != 0, U64(marey__epoch_ns(v[n - 1]))));
}

/* ---- epochs, and ranks ---- */

static void put_epoch(const struct marey__epochs *epochs, const struct marey__epoch_group *group)
{
    marey_table *table = epochs->tables[MAREY__EPOCHS_EPOCHS];
    const struct marey__epoch_time *times = &epochs->times[group->first];
    const struct marey__epoch_time *longest = &epochs->times[group->longest];
    uint64_t shortest_ns = UINT64_MAX, n_iterations = 0;
    double sum_ns = 0, samples = 0;
    for (size_t i = 0; i < group->n; i++) {
        shortest_ns = MAREY__MIN(shortest_ns, times[i].ns);
        n_iterations = MAREY__MAX(n_iterations, times[i].n_iterations);
        sum_ns += (double)times[i].ns;
        samples += times[i].samples;
    }
    const bool is_even = group->slowest == SIZE_MAX;
    const struct marey__epoch_time *slowest = is_even ? NULL : &epochs->times[group->slowest];
    MAREY__PUT_ROW(
        table, U64(times->run + 1), U64(times->number), U64(group->n), U64(longest->ns),
        U64(marey__epoch_ns(sum_ns / (double)group->n)), U64(shortest_ns),
        KNOWN(!is_even, RANK_OF(slowest->process->rank)), KNOWN(!is_even, U64(group->behind_ns)),
        KNOWN(!is_even, STRING(marey__epoch_phase_names[group->slowest_in])), U64(n_iterations),
        POSITIVE(samples), POSITIVE(rate(samples, (double)longest->ns)), TRUTH(group->counts));
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
    MAREY__PUT_ROW(table, U64(time->run + 1), U64(time->number), PROCESS_OF(time->process),
                   U64(time->ns));
    for (size_t i = 0; i < MAREY__N_PHASES; i++)
        marey_table_u64(table, time->phase_ns[i]);
    MAREY__PUT_ROW(table, U64(time->n_iterations), POSITIVE(time->samples),
                   POSITIVE(rate(time->samples, (double)time->ns)),
                   TRUTH((time->flags & MAREY__EPOCH_COUNTS) != 0), STRING(note_of(time)));
}

/* ---- averages ---- */

/* Sums over the epochs of a rank, or over the slowest rank of each epoch. */
struct average {
    struct values ns;
    double phase_ns[MAREY__N_PHASES], samples, samples_ns;
    uint64_t n_slowest;
};

static bool add(struct average *average, const struct marey__epoch_time *time, double samples)
{
    for (size_t i = 0; i < MAREY__N_PHASES; i++)
        average->phase_ns[i] += (double)time->phase_ns[i];
    average->samples += samples;
    average->samples_ns += samples > 0 ? (double)time->ns : 0;
    return MAREY__PUSH(average->ns.list, average->ns.n, average->ns.cap, (double)time->ns);
}

static void put_average(marey_table *table, uint32_t run, const struct marey_process *process,
                        struct average *average)
{
    const double n = (double)average->ns.n;
    MAREY__PUT_ROW(table, U64(run + 1), RANK_OF(process != NULL ? process->rank : -1));
    put_spread(table, &average->ns);
    for (size_t i = 0; i < MAREY__N_PHASES; i++)
        marey__put_u64_or_null(table, marey__epoch_ns(n > 0 ? average->phase_ns[i] / n : 0), n > 0);
    MAREY__PUT_ROW(table, POSITIVE(rate(average->samples, average->samples_ns)),
                   U64(average->n_slowest));
}

static double samples_of(const struct marey__epochs *epochs, const struct marey__epoch_group *group)
{
    double samples = 0;
    for (size_t i = 0; i < group->n; i++)
        samples += epochs->times[group->first + i].samples;
    return samples;
}

/* Groups of one run, which are adjacent. */
struct run {
    const struct marey__epoch_group *groups;
    size_t n;
    uint32_t number;
};

static bool is_of_rank(const struct marey__epoch_time *time, const struct marey_process *whose)
{
    return whose->rank >= 0 ? time->process->rank == whose->rank : time->process == whose;
}

/* Average over the epochs of the rank of `process`; NULL: over the slowest rank of each epoch. */
static bool put_average_of(const struct marey__epochs *epochs, const struct run *run,
                           const struct marey_process *whose)
{
    struct average average = {0};
    bool done = true;
    for (size_t g = 0; done && g < run->n; g++) {
        const struct marey__epoch_group *group = &run->groups[g];
        if (!group->counts)
            continue;
        average.n_slowest += whose == NULL && group->slowest != SIZE_MAX;
        if (whose == NULL)
            done = add(&average, &epochs->times[group->longest], samples_of(epochs, group));
        for (size_t i = group->first; whose != NULL && done && i < group->first + group->n; i++) {
            const struct marey__epoch_time *time = &epochs->times[i];
            if (!is_of_rank(time, whose))
                continue;
            average.n_slowest += group->slowest == i;
            done = add(&average, time, time->samples);
        }
    }
    if (done)
        put_average(epochs->tables[MAREY__EPOCHS_AVERAGES], run->number, whose, &average);
    marey__free(average.ns.list);
    return done;
}

/* By rank; processes without a rank by start. */
static bool is_before(const struct marey_process *a, const struct marey_process *b)
{
    if (a->rank != b->rank || a->rank >= 0)
        return a->rank < b->rank;
    return a->start_unix_ns != b->start_unix_ns ? a->start_unix_ns < b->start_unix_ns
                                                : a->pid < b->pid;
}

/* A row for each rank. */
static bool put_rank_averages(const struct marey__epochs *epochs, const struct run *run)
{
    const struct marey__epoch_group *last_group = &run->groups[run->n - 1];
    const size_t first = run->groups[0].first, end = last_group->first + last_group->n;
    const struct marey_process *last = NULL, *next;
    do {
        next = NULL;
        for (size_t i = first; i < end; i++) {
            const struct marey_process *process = epochs->times[i].process;
            if ((last == NULL || is_before(last, process)) &&
                (next == NULL || is_before(process, next)))
                next = process;
        }
        if (next != NULL && !put_average_of(epochs, run, next))
            return false;
        last = next;
    } while (next != NULL);
    return true;
}

/* ---- phases ---- */

static uint64_t ns_of_name(const struct marey__epochs *epochs, const struct marey__epoch_time *time,
                           uint32_t name, uint64_t *count)
{
    for (size_t i = time->first_part; i < time->first_part + time->n_parts; i++)
        if (epochs->parts[i].name == name) {
            *count += epochs->parts[i].count;
            return epochs->parts[i].ns;
        }
    return 0;
}

/* `name` MAREY__NO_NAME: time in no phase. Phases missing in the run give no row. */
static bool put_phase(const struct marey__epochs *epochs, const struct run *run, uint32_t name)
{
    marey_table *table = epochs->tables[MAREY__EPOCHS_PHASES];
    struct values values = {0};
    uint64_t count = 0, sum_ns = 0, whole_ns = 0;
    bool done = true;
    for (size_t g = 0; g < run->n; g++)
        for (size_t i = 0; done && run->groups[g].counts && i < run->groups[g].n; i++) {
            const struct marey__epoch_time *time = &epochs->times[run->groups[g].first + i];
            uint64_t ns = 0;
            if (name != MAREY__NO_NAME)
                ns = ns_of_name(epochs, time, name, &count);
            else
                for (size_t part = 0; part <= time->n_parts; part++)
                    ns = part == 0 ? time->ns : ns - epochs->parts[time->first_part + part - 1].ns;
            sum_ns += ns;
            whole_ns += time->ns;
            done = MAREY__PUSH(values.list, values.n, values.cap, (double)ns);
        }
    if (done && (sum_ns != 0 || count != 0)) {
        const struct marey__name *const names = epochs->names.names;
        MAREY__PUT_ROW(table, U64(run->number + 1),
                       name != MAREY__NO_NAME ? STRING_N(names[name].text, names[name].len)
                                              : STRING("(no phase)"),
                       U64(count));
        put_spread(table, &values);
        marey__put_share(table, sum_ns, whole_ns);
    }
    marey__free(values.list);
    return done;
}

/* ---- notes ---- */

static void put_notes(const struct marey__epochs *epochs, const struct run *run)
{
    marey_table *table = epochs->tables[MAREY__EPOCHS_NOTES];
    uint64_t n_counted = 0, n_open = 0, n_cut = 0, n_firsts = 0;
    for (size_t g = 0; g < run->n; g++) {
        uint32_t flags = 0;
        for (size_t i = 0; i < run->groups[g].n; i++)
            flags |= epochs->times[run->groups[g].first + i].flags;
        n_counted += run->groups[g].counts;
        n_firsts += run->groups[g].counts && (flags & MAREY__EPOCH_FIRST) != 0;
        n_open += (flags & MAREY__EPOCH_OPEN) != 0;
        n_cut += (flags & (MAREY__EPOCH_OPEN | MAREY__EPOCH_CUT)) == MAREY__EPOCH_CUT;
    }
    if (n_open != 0)
        marey__put_note(table,
                        "%" PRIu64 " epochs of run %" PRIu32
                        " were not ended on every rank, and are not part of averages",
                        n_open, run->number + 1);
    if (n_cut != 0)
        marey__put_note(table,
                        "in %" PRIu64 " epochs of run %" PRIu32
                        " events were lost; they are not part of averages",
                        n_cut, run->number + 1);
    if (n_firsts != 0 && n_firsts == n_counted && !epochs->with_first)
        marey__put_note(table,
                        "run %" PRIu32
                        " has no epoch but the first, which warms up: it is the one reported",
                        run->number + 1);
}

/* ---- all tables ---- */

static bool put_run(const struct marey__epochs *epochs, const struct run *run)
{
    bool done = put_average_of(epochs, run, NULL) && put_rank_averages(epochs, run);
    for (uint32_t name = 0; done && name < epochs->names.n; name++)
        done = put_phase(epochs, run, name);
    put_notes(epochs, run);
    return done && put_phase(epochs, run, MAREY__NO_NAME);
}

bool marey__epochs_fill(const struct marey__epochs *epochs)
{
    size_t from = 0;
    for (size_t g = 0; g < epochs->n_groups; g++)
        put_epoch(epochs, &epochs->groups[g]);
    for (size_t i = 0; i < epochs->n_times; i++)
        put_rank_row(epochs->tables[MAREY__EPOCHS_RANKS], &epochs->times[i]);
    for (size_t g = 1; g <= epochs->n_groups; g++) {
        const uint32_t number = epochs->times[epochs->groups[from].first].run;
        if (g < epochs->n_groups && epochs->times[epochs->groups[g].first].run == number)
            continue;
        const struct run run = {&epochs->groups[from], g - from, number};
        if (!put_run(epochs, &run))
            return false;
        from = g;
    }
    return true;
}
