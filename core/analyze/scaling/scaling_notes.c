/* Notes of the report: findings about each series, excluded data, assumptions. */
#include <math.h>
#include <string.h>

#include "analyze/scaling/internal.h"

/* Speedup above the ideal by more than this needs an explanation. */
#define ABOVE_IDEAL 0.05

static void put_name(struct marey__buf *text, const struct marey__scaling_series *series)
{
    const bool has_experiment = *series->experiment != '\0', has_strategy = *series->strategy != '\0';
    marey__buf_puts(text, series->experiment);
    marey__buf_puts(text, has_experiment && has_strategy ? ", " : "");
    marey__buf_puts(text, series->strategy);
    marey__buf_puts(text, has_experiment || has_strategy ? "" : "all runs");
    marey__buf_puts(text, ": ");
}

/* " (1.2 % to 3.4 %)" if known. */
static void put_between(struct marey__buf *text, const struct marey__scaling_interval *interval)
{
    if (isnan(interval->low))
        return;
    marey__buf_puts(text, " (");
    marey__text_share(text, interval->low);
    marey__buf_puts(text, " to ");
    marey__text_share(text, interval->high);
    marey__buf_puts(text, ")");
}

static void find_too_good(struct marey__buf *text, const struct marey__scaling_series *series,
                          const struct marey__scaling_point *points)
{
    for (size_t i = 1; i < series->n; i++) {
        const struct marey__scaling_level *speedup = &points[i].speedup;
        if (!(speedup->low / points[i].ideal > 1 + ABOVE_IDEAL))
            continue;
        put_name(text, series);
        marey__buf_printf(text, "%u workers do better than the ideal (", points[i].workers);
        marey__text_share(text, speedup->value / points[i].ideal);
        marey__buf_printf(
            text,
            "): the baseline with %u is slowed down, for example by too little memory, "
            "or the runs do different work\n",
            points[0].workers);
        return;
    }
}

/* ---- Karp and Flatt ---- */

static void find_trend(struct marey__buf *text, const struct marey__scaling_series *series,
                       const struct marey__scaling_point *points)
{
    if (series->n < 3)
        return;
    const struct marey__scaling_point *first = &points[1], *last = &points[series->n - 1];
    const double growth = last->karp_flatt - first->karp_flatt,
                 error = hypot(first->karp_flatt_error, last->karp_flatt_error);
    if (!(growth > 2 * error) || !(growth > 0.005))
        return;
    put_name(text, series);
    marey__buf_puts(text, "the serial share by Karp and Flatt rises from ");
    marey__text_share(text, fmax(first->karp_flatt, 0));
    marey__buf_printf(text, " at %u workers to ", first->workers);
    marey__text_share(text, last->karp_flatt);
    marey__buf_printf(text, " at %u: it is overhead that grows with workers, not only serial work\n",
                      last->workers);
}

/* ---- fits ---- */

static void find_amdahl(struct marey__buf *text, const struct marey__scaling_series *series)
{
    const struct marey__scaling_fit *fit = &series->fits[MAREY__SCALING_AMDAHL];
    if (!fit->is_fitted || series->fits[MAREY__SCALING_USL].coherency.low > 0)
        return; /* with significant coherency, Amdahl's limit does not apply */
    put_name(text, series);
    marey__buf_puts(text, "by Amdahl's law ");
    marey__text_share(text, fit->serial.value);
    put_between(text, &fit->serial);
    marey__buf_puts(text, " of the work of one worker is serial");
    if (fit->serial.value > 0)
        marey__buf_printf(text, ": no number of workers is more than %.3g times as fast as one",
                          1 / fit->serial.value);
    marey__buf_puts(text, "\n");
}

static void find_usl(struct marey__buf *text, const struct marey__scaling_series *series,
                     const struct marey__scaling_point *last)
{
    const struct marey__scaling_fit *fit = &series->fits[MAREY__SCALING_USL];
    if (!fit->is_fitted || !(fit->coherency.low > 0))
        return;
    put_name(text, series);
    marey__buf_printf(text, "by the universal scalability law %.0f workers are fastest",
                      fit->best.value);
    if (isfinite(fit->best.low) && isfinite(fit->best.high))
        marey__buf_printf(text, " (%.0f to %.0f)", fit->best.low, fit->best.high);
    else if (isfinite(fit->best.low))
        marey__buf_printf(text, " (%.0f at least)", fit->best.low);
    if (fit->best.value > last->workers)
        marey__buf_printf(text, "; at most %u were measured", last->workers);
    marey__buf_puts(text, "\n");
}

static void find_all(struct marey__buf *text, const struct marey__scaling *scaling,
                     const struct marey__scaling_series *series)
{
    const struct marey__scaling_point *points = &scaling->points[series->first];
    if (series->n < 2)
        return;
    find_too_good(text, series, points);
    find_trend(text, series, points);
    find_amdahl(text, series);
    find_usl(text, series, &points[series->n - 1]);
}

/* ---- notes ---- */

/* Limit on runs named one by one. */
enum { MOST_NAMED = 5 };

struct notes {
    const struct marey__scaling *scaling;
    const struct marey__scaling_series *series;
    const struct marey__scaling_point *points; /* of the series; points without a time come last */
    struct marey__buf *text;
};

/* ---- lists of workers ---- */

typedef bool is_meant(const struct notes *notes, const struct marey__scaling_point *point);

/*
 * "2, 4 and 8 workers", for the selected points in `from` up to `to`; returns false, with nothing written, if there are
 * none.
 */
static bool put_workers(const struct notes *notes, const char *before, size_t from, size_t to,
                        is_meant *meant)
{
    size_t n = 0, n_put = 0;
    uint32_t last = 0;
    for (size_t i = from; i < to; i++)
        n += meant(notes, &notes->points[i]);
    if (n == 0)
        return false;
    put_name(notes->text, notes->series);
    marey__buf_puts(notes->text, before);
    for (size_t i = from; i < to; i++) {
        if (!meant(notes, &notes->points[i]))
            continue;
        marey__buf_printf(notes->text, "%s%u",
                          n_put == 0       ? ""
                          : n_put + 1 == n ? " and "
                                           : ", ",
                          notes->points[i].workers);
        last = notes->points[i].workers;
        n_put++;
    }
    marey__buf_puts(notes->text, last == 1 ? " worker" : " workers");
    return true;
}

static bool is_any(const struct notes *notes, const struct marey__scaling_point *point)
{
    (void)notes;
    (void)point;
    return true;
}

static bool has_one_run(const struct notes *notes, const struct marey__scaling_point *point)
{
    return marey__scaling_time(notes->series, point)->n_runs == 1;
}

/* Its only epochs are first ones. */
static bool is_warm_up(const struct notes *notes, const struct marey__scaling_point *point)
{
    if (notes->series->measure == MAREY__SCALING_STEP)
        return false;
    for (size_t i = point->first; i < point->first + point->n; i++) {
        const struct marey__scaling_member *member = &notes->scaling->members[i];
        if (member->values[MAREY__SCALING_EPOCH].n != 0 && !member->has_only_first)
            return false;
    }
    return true;
}

static bool has_no_joules(const struct notes *notes, const struct marey__scaling_point *point)
{
    (void)notes;
    return isnan(point->levels[MAREY__SCALING_JOULES].value);
}

static bool has_joules_of_whole(const struct notes *notes, const struct marey__scaling_point *point)
{
    for (size_t i = point->first; i < point->first + point->n; i++)
        if (notes->scaling->members[i].has_joules_of_whole)
            return true;
    return false;
}

static bool has_different_nodes(const struct notes *notes, const struct marey__scaling_point *point)
{
    const struct marey__scaling_member *members = &notes->scaling->members[point->first];
    for (size_t i = 1; i < point->n; i++)
        if (members[i].run->nodes != members[0].run->nodes)
            return true;
    return false;
}

static bool is_far(double a, double b)
{
    return fabs(log(a / b)) > 0.001;
}

/* Runs with the same name and different work. */
static bool has_different_work(const struct notes *notes, const struct marey__scaling_point *point)
{
    const struct marey__scaling_member *members = &notes->scaling->members[point->first];
    for (size_t i = 1; i < point->n; i++)
        if (is_far(members[i].run->numbers.samples_per_epoch,
                   members[0].run->numbers.samples_per_epoch) ||
            is_far(members[i].run->numbers.batch, members[0].run->numbers.batch))
            return true;
    return false;
}

/* ---- runs ---- */

static void put_run(const struct notes *notes, const struct marey__scaling_run *run)
{
    marey__buf_printf(notes->text, "%s, ", run->name);
    marey__text_count_of(notes->text, run->workers, "worker");
}

static void note_partial(const struct notes *notes, size_t first, size_t end)
{
    size_t n = 0;
    for (size_t i = first; i < end; i++) {
        const struct marey__scaling_member *member = &notes->scaling->members[i];
        if (member->run->is_partial == 0 || ++n > MOST_NAMED)
            continue;
        put_run(notes, member->run);
        marey__buf_puts(notes->text, ", stopped half-way: ");
        if (member->values[notes->series->measure].n == 0) {
            marey__buf_puts(notes->text, "it does not count\n");
            continue;
        }
        marey__text_count_of(notes->text, member->values[notes->series->measure].n,
                             notes->series->measure == MAREY__SCALING_STEP ? "whole step"
                                                                           : "whole epoch");
        marey__buf_puts(notes->text, member->values[notes->series->measure].n == 1
                                         ? " of it counts\n"
                                         : " of it count\n");
    }
    if (n > MOST_NAMED)
        marey__buf_printf(notes->text, "%zu more runs stopped half-way\n", n - MOST_NAMED);
}

/* Runs with only a first epoch, if others have more. */
static void note_left_out(const struct notes *notes)
{
    size_t n = 0;
    for (size_t i = 0; i < notes->series->n; i++) {
        const struct marey__scaling_point *point = &notes->points[i];
        if (notes->series->measure == MAREY__SCALING_STEP || is_warm_up(notes, point))
            continue;
        for (size_t m = point->first; m < point->first + point->n; m++) {
            const struct marey__scaling_member *member = &notes->scaling->members[m];
            if (!member->has_only_first || ++n > MOST_NAMED)
                continue;
            put_run(notes, member->run);
            marey__buf_puts(notes->text,
                            " has no epoch but the first, which warms up: it does not count\n");
        }
    }
    if (n > MOST_NAMED)
        marey__buf_printf(notes->text, "%zu more runs have no epoch but the first\n", n - MOST_NAMED);
}

static void note_disagreement(const struct notes *notes)
{
    for (size_t i = 0; i < notes->series->n; i++) {
        const struct marey__scaling_level *time =
            marey__scaling_time(notes->series, &notes->points[i]);
        if (!marey__scaling_disagrees(time))
            continue;
        put_name(notes->text, notes->series);
        marey__buf_puts(notes->text, "with ");
        marey__text_count_of(notes->text, notes->points[i].workers, "worker");
        marey__buf_printf(notes->text, " the medians of %zu runs differ by ", time->n_runs);
        marey__text_share(notes->text, time->spread);
        marey__buf_puts(notes->text, "; the table of runs has each\n");
    }
}

/* ---- a series ---- */

static void note_sureness(const struct notes *notes)
{
    const size_t n = notes->series->n;
    double df = 0;
    for (size_t i = 0; i < n; i++)
        df += (double)marey__scaling_time(notes->series, &notes->points[i])->n_runs - 1;
    if (put_workers(notes, "one run with ", 0, n, has_one_run))
        marey__buf_puts(notes->text,
                        df > 0
                            ? ": how much runs differ is taken from the repeats of the others\n"
                            : ": no confidence intervals, because a single run does not show how "
                              "much runs differ; repeat the runs\n");
    if (put_workers(notes, "there is no epoch but the first with ", 0, n, is_warm_up))
        marey__buf_puts(notes->text, "; it is the warm-up, and is used here\n");
}

static void note_work(const struct notes *notes)
{
    const struct marey__scaling_series *series = notes->series;
    const char *samples =
        series->measure == MAREY__SCALING_STEP ? "samples of a step" : "samples of an epoch";
    if (series->n > 1 && series->kind == MAREY__SCALING_UNKNOWN) {
        put_name(notes->text, series);
        marey__buf_printf(
            notes->text,
            "the %s are not known; every run is assumed to do the same work (strong scaling). If "
            "each worker does the same work, use --kind weak\n",
            samples);
    }
    if (series->kind == MAREY__SCALING_MIXED) {
        put_name(notes->text, series);
        marey__buf_printf(
            notes->text,
            "the %s are neither the same for all workers nor grow as workers do; speedup "
            "is of the samples in a second\n",
            samples);
    }
    if (put_workers(notes, "repeats with ", 0, series->n, has_different_work))
        marey__buf_puts(notes->text, " have different numbers of samples: are they repeats?\n");
    if (put_workers(notes, "repeats with ", 0, series->n, has_different_nodes))
        marey__buf_puts(notes->text, " ran on different numbers of nodes\n");
    if (series->n > 1 && notes->points[0].workers > 1) {
        put_name(notes->text, series);
        marey__buf_printf(notes->text, "there is no run with one worker; speedup is against %u\n",
                          notes->points[0].workers);
    }
}

static void note_energy(const struct notes *notes)
{
    size_t n_known = 0;
    for (size_t i = 0; i < notes->series->n; i++)
        n_known += !has_no_joules(notes, &notes->points[i]);
    if (n_known == 0)
        return;
    if (put_workers(notes, "the energy is not known with ", 0, notes->series->n, has_no_joules))
        marey__buf_puts(notes->text, "\n");
    if (put_workers(notes, "the energy of an epoch is that of the run over its epochs with ", 0,
                    notes->series->n, has_joules_of_whole))
        marey__buf_puts(notes->text, ": start and warm-up are in it\n");
}

static void note_forecast(const struct notes *notes)
{
    const struct marey__scaling_series *series = notes->series;
    const uint32_t most = notes->points[series->n - 1].workers;
    double furthest = 0;
    for (size_t i = 0; i < marey__scaling_n_asked(notes->scaling); i++)
        furthest = fmax(furthest, marey__scaling_asked(notes->scaling, series, i));
    bool is_fitted = false;
    for (unsigned model = 0; model < MAREY__N_SCALING_MODELS; model++)
        is_fitted |= series->fits[model].is_fitted;
    if (!is_fitted || !(furthest > (double)most * MAREY__SCALING_FURTHEST))
        return;
    put_name(notes->text, series);
    marey__buf_printf(
        notes->text,
        "%.0f workers are %.0f times as many as were measured; their forecast is a guess\n",
        furthest, furthest / most);
}

static void note_series(const struct notes *notes)
{
    const struct marey__scaling_series *series = notes->series;
    size_t first = SIZE_MAX, end = 0;
    for (size_t i = 0; i < series->n + series->n_without; i++) {
        first = MAREY__MIN(first, notes->points[i].first);
        end = MAREY__MAX(end, notes->points[i].first + notes->points[i].n);
    }
    find_all(notes->text, notes->scaling, series);
    if (series->n != 0) {
        note_work(notes);
        note_sureness(notes);
        note_disagreement(notes);
        note_energy(notes);
        note_forecast(notes);
    }
    note_partial(notes, first, end);
    note_left_out(notes);
    if (put_workers(notes,
                    series->measure == MAREY__SCALING_STEP ? "there are no times of steps with "
                                                           : "there are no times of epochs with ",
                    series->n, series->n + series->n_without, is_any))
        marey__buf_puts(notes->text, "; these do not count\n");
}

bool marey__scaling_put_notes(struct marey__scaling *scaling)
{
    marey_table *table = scaling->tables[MAREY__SCALING_NOTES];
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    for (size_t i = 0; i < scaling->n_series; i++) {
        const struct notes notes = {scaling, &scaling->series[i],
                                    &scaling->points[scaling->series[i].first], &text};
        note_series(&notes);
    }
    for (size_t at = 0; !text.failed && at < text.len;) {
        const char *end = memchr(text.data + at, '\n', text.len - at);
        marey_table_text(table, text.data + at, (size_t)(end - (text.data + at)));
        at = (size_t)(end - text.data) + 1;
    }
    for (size_t i = 0; i < scaling->runs->n_notes; i++)
        marey__put_string(table, scaling->runs->notes[i]);
    return !text.failed;
}
