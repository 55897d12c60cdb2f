/*
 * Converts rows of a CSV of measurements to runs.
 *
 *   epochs, steps   the slowest rank of each
 *   samples         as recorded; else the sum over ranks of samples per second times seconds
 *   energy          as recorded; else the integral of power readings, linearly interpolated, summed over ranks. Unless
 *                   all ranks have readings, the run's energy is unknown
 *   others          the mean of recorded values
 *
 * An epoch is recorded at its end: with its time of day, and that of the readings, its energy can be integrated.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "analyze/scaling/internal.h"

/* Share of an epoch that may lack readings. */
static const double most_missing = 0.1;

/* The rows of one run, by measure, then in the order needed. */
struct run_rows {
    const struct marey__measured *of[MAREY__N_MEASURES];
    size_t n[MAREY__N_MEASURES];
};

/* Arrays of a run. */
struct values {
    double *epoch_s, *epoch_j;
    double *epoch_end_ms; /* NaN: unknown */
    double *epoch_step;   /* epoch numbers */
    double *step_s;
};

/* ---- order ---- */

static bool is_reading(const struct marey__measured *row)
{
    return row->measure == MAREY__MEASURE_POWER || row->measure == MAREY__MEASURE_UTILIZATION;
}

/* Readings by rank and time; measures of all ranks by step, then rank. */
static bool is_before(const void *a, const void *b)
{
    const struct marey__measured *x = a, *y = b;
    if (x->run != y->run)
        return x->run < y->run;
    if (x->measure != y->measure)
        return x->measure < y->measure;
    if (is_reading(x) && x->rank != y->rank)
        return x->rank < y->rank;
    if (is_reading(x) && !isnan(x->unix_ms) && !isnan(y->unix_ms))
        return x->unix_ms < y->unix_ms;
    if (isnan(x->step) || isnan(y->step))
        return isnan(y->step) && !isnan(x->step);
    return x->step != y->step ? x->step < y->step : x->rank < y->rank;
}

/* ---- readings of power ---- */

/* Readings of one rank, in order. */
struct readings {
    const struct marey__measured *rows;
    size_t n;
    double interval_s; /* nominal or measured; each reading holds for half of it on either side */
};

/* Seconds: from the time of day, from the step, which counts seconds, or from the index. */
static double time_of(const struct readings *r, size_t i)
{
    if (!isnan(r->rows[0].unix_ms))
        return r->rows[i].unix_ms / 1000;
    return !isnan(r->rows[0].step) ? r->rows[i].step : (double)i * r->interval_s;
}

/* The first reading, from the second on, that is later. */
static size_t first_after(const struct readings *r, double s)
{
    size_t at;
    MAREY__BISECT(at, 1, r->n, time_of(r, at) <= s);
    return at;
}

/* Joules between two times, and the covered seconds. */
static double joules_between(const struct readings *r, double from_s, double until_s,
                             double *covered_s)
{
    double joules = 0;
    const double half = r->interval_s / 2, begin = time_of(r, 0) - half,
                 end = time_of(r, r->n - 1) + half;
    *covered_s = fmax(0, fmin(end, until_s) - fmax(begin, from_s));
    const double before = fmin(time_of(r, 0), until_s) - fmax(begin, from_s),
                 behind = fmin(end, until_s) - fmax(time_of(r, r->n - 1), from_s);
    joules += before > 0 ? before * r->rows[0].value : 0;
    joules += behind > 0 ? behind * r->rows[r->n - 1].value : 0;
    for (size_t i = first_after(r, from_s); i < r->n && time_of(r, i - 1) < until_s; i++) {
        const double t0 = time_of(r, i - 1), t1 = time_of(r, i), a = fmax(t0, from_s),
                     b = fmin(t1, until_s);
        if (!(b > a))
            continue;
        const double slope = (r->rows[i].value - r->rows[i - 1].value) / (t1 - t0);
        joules += (b - a) * (r->rows[i - 1].value + slope * ((a + b) / 2 - t0));
    }
    return joules;
}

/* The next rank's readings from row `*at` on; false after the last. */
static bool next_readings(const struct run_rows *rows, double nominal_s, size_t *at,
                          struct readings *out)
{
    const size_t n = rows->n[MAREY__MEASURE_POWER];
    if (*at == n)
        return false;
    const struct marey__measured *first = rows->of[MAREY__MEASURE_POWER] + *at;
    *out = (struct readings){.rows = first, .interval_s = nominal_s};
    while (*at < n && rows->of[MAREY__MEASURE_POWER][*at].rank == first->rank)
        (*at)++, out->n++;
    if (isnan(nominal_s)) {
        out->interval_s = 1;
        if (out->n > 1)
            out->interval_s = (time_of(out, out->n - 1) - time_of(out, 0)) / (double)(out->n - 1);
    }
    return true;
}

static double mean_of(const struct run_rows *rows, enum marey__measure measure)
{
    double sum = 0;
    for (size_t i = 0; i < rows->n[measure]; i++)
        sum += rows->of[measure][i].value;
    return rows->n[measure] != 0 ? sum / (double)rows->n[measure] : NAN;
}

static void add_power(const struct run_rows *rows, struct marey__scaling_run *run,
                      struct values *values)
{
    struct readings r;
    size_t at = 0;
    const double nominal_s = mean_of(rows, MAREY__MEASURE_INTERVAL);
    run->numbers.joules = 0;
    for (size_t e = 0; e < run->n_epochs; e++)
        values->epoch_j[e] = 0;
    while (next_readings(rows, nominal_s, &at, &r)) {
        double covered;
        run->numbers.joules += joules_between(&r, -INFINITY, INFINITY, &covered);
        for (size_t e = 0; e < run->n_epochs; e++) {
            const double s = values->epoch_s[e], end = values->epoch_end_ms[e] / 1000;
            const double joules = joules_between(&r, end - s, end, &covered);
            const bool is_known =
                !isnan(r.rows[0].unix_ms) && !isnan(end) && covered >= (1 - most_missing) * s;
            values->epoch_j[e] += is_known ? joules * s / covered : NAN;
        }
    }
}

static size_t count_ranks(const struct run_rows *rows)
{
    struct readings r;
    size_t n = 0, at = 0;
    while (next_readings(rows, 1, &at, &r))
        n += r.rows[0].rank >= 0;
    return n;
}

/* ---- energy ---- */

/* Recorded energy: of epochs by number, both in order, and of the run. */
static void add_said(const struct run_rows *rows, struct marey__scaling_run *run,
                     struct values *values)
{
    size_t e = 0;
    for (size_t i = 0; i < rows->n[MAREY__MEASURE_ENERGY]; i++) {
        const struct marey__measured *row = &rows->of[MAREY__MEASURE_ENERGY][i];
        double *to = &run->numbers.joules;
        if (!isnan(row->step)) {
            while (e < run->n_epochs && values->epoch_step[e] < row->step)
                e++;
            if (e == run->n_epochs || values->epoch_step[e] != row->step)
                continue;
            to = &values->epoch_j[e];
        }
        *to = isnan(*to) ? row->value : *to + row->value;
    }
}

static marey_status add_energy(const struct marey__scaling_reading *reading,
                               const struct run_rows *rows, struct marey__scaling_run *run,
                               struct values *values)
{
    const size_t n_ranks = count_ranks(rows);
    for (size_t i = 0; i < run->n_epochs; i++)
        values->epoch_j[i] = NAN;
    if (rows->n[MAREY__MEASURE_ENERGY] != 0)
        add_said(rows, run, values);
    else if (n_ranks != 0 && n_ranks < run->workers)
        return marey__scaling_read_note(
            reading, "%s: power is known for %zu of %u ranks, so its energy is unknown.", run->name,
            n_ranks, (unsigned)run->workers);
    else if (rows->n[MAREY__MEASURE_POWER] != 0)
        add_power(rows, run, values);
    return MAREY_OK;
}

/* ---- epochs and steps ---- */

/* The slowest time of each step into `out`; optionally its end and number. Returns the number of steps. */
static size_t slowest_of(const struct run_rows *rows, enum marey__measure measure, double *out,
                         double *end_ms, double *step)
{
    const struct marey__measured *row = rows->of[measure];
    size_t n = 0;
    for (size_t i = 0; i < rows->n[measure]; i++, row++) {
        const bool is_new = i == 0 || row->step != row[-1].step;
        n += is_new;
        if (!is_new && out[n - 1] >= row->value)
            continue;
        out[n - 1] = row->value;
        if (end_ms != NULL) {
            end_ms[n - 1] = row->unix_ms;
            step[n - 1] = row->step;
        }
    }
    return n;
}

/* ---- training samples ---- */

/* The rates of one step and the times of its ranks; both in order of ranks. */
struct rated_step {
    const struct marey__measured *rates, *times;
    size_t n_rates, n_times;
};

/* Samples of all ranks with a rate. A rank without a time counts as the slowest. */
static double samples_of_step(const struct rated_step *step)
{
    double samples = 0, slowest = 0;
    for (size_t i = 0; i < step->n_times; i++)
        slowest = fmax(slowest, step->times[i].value);
    for (size_t i = 0, own = 0; i < step->n_rates; i++) {
        const int32_t rank = step->rates[i].rank;
        while (own < step->n_times && step->times[own].rank < rank)
            own++;
        const bool has_own = own < step->n_times && step->times[own].rank == rank;
        samples += step->rates[i].value * (has_own ? step->times[own].value : slowest);
    }
    return samples;
}

/* Mean samples of an epoch or step, from the rates of all ranks. NaN if any rank has no rate. */
static double samples_by_rate(const struct run_rows *rows, enum marey__measure times,
                              uint32_t workers, size_t *n_ranks)
{
    const struct marey__measured *rate = rows->of[MAREY__MEASURE_RATE], *time = rows->of[times];
    const struct marey__measured *const rate_end = rate + rows->n[MAREY__MEASURE_RATE],
                                        *const time_end = time + rows->n[times];
    double sum = 0;
    size_t n = 0;
    while (rate < rate_end) {
        const double number = rate->step;
        while (time < time_end && time->step < number)
            time++;
        struct rated_step step = {.rates = rate, .times = time};
        for (; rate < rate_end && rate->step == number; rate++)
            step.n_rates++;
        for (; time < time_end && time->step == number; time++)
            step.n_times++;
        *n_ranks = MAREY__MAX(*n_ranks, step.n_rates);
        if (step.n_times == 0 || (step.n_rates != workers && step.rates[0].rank >= 0))
            continue;
        sum += samples_of_step(&step);
        n++;
    }
    return n != 0 ? sum / (double)n : NAN;
}

static marey_status add_samples(const struct marey__scaling_reading *reading,
                                const struct run_rows *rows, struct marey__scaling_run *run)
{
    const bool has_epochs = rows->n[MAREY__MEASURE_EPOCH] != 0;
    double *const samples = has_epochs ? &run->numbers.samples_per_epoch : &run->numbers.batch;
    size_t n_ranks = 0;
    if (!isnan(*samples) || rows->n[MAREY__MEASURE_RATE] == 0)
        return MAREY_OK;
    *samples = samples_by_rate(rows, has_epochs ? MAREY__MEASURE_EPOCH : MAREY__MEASURE_STEP,
                               run->workers, &n_ranks);
    if (isnan(*samples) && n_ranks < run->workers)
        return marey__scaling_read_note(
            reading, "%s: samples_per_s is known for %zu of %u ranks, so its samples are not known.",
            run->name, n_ranks, (unsigned)run->workers);
    return MAREY_OK;
}

/* Take an evenly spaced sample; skips the first step, which is warm-up, unless there is no other. */
static size_t sample_steps(double *steps, size_t n)
{
    const size_t first = n > 1, kept = MAREY__MIN(n - first, (size_t)MAREY__SCALING_STEPS);
    for (size_t i = 0; i < kept; i++)
        steps[i] = steps[first + i * (n - first) / kept];
    return kept;
}

/* ---- a run ---- */

static void add_means(const struct run_rows *rows, struct marey__scaling_run *run)
{
    for (unsigned measure = MAREY__MEASURE_NUMBERS; measure < MAREY__N_MEASURES; measure++)
        run->numbers.all[measure - MAREY__MEASURE_NUMBERS] = mean_of(rows, measure);
    run->numbers.utilization = mean_of(rows, MAREY__MEASURE_UTILIZATION) / 100;
}

/* A sum of large foreign numbers may overflow. */
static bool has_energy(const struct marey__scaling_run *run, const struct values *values)
{
    bool any = false;
    for (size_t i = 0; i < run->n_epochs; i++) {
        if (!isfinite(values->epoch_j[i]) || values->epoch_j[i] < 0)
            values->epoch_j[i] = NAN;
        any |= !isnan(values->epoch_j[i]);
    }
    return any;
}

static marey_status add_run(const struct marey__scaling_reading *reading,
                            const struct marey__measured_run *from, const struct run_rows *rows,
                            const char *name)
{
    const size_t n = rows->n[MAREY__MEASURE_EPOCH];
    double *const room MAREY__FREED =
        marey__calloc(4 * n + rows->n[MAREY__MEASURE_STEP] + 1, sizeof *room);
    MAREY__TRY_MEMORY(room != NULL);
    struct values values = {room, room + n, room + 2 * n, room + 3 * n, room + 4 * n};
    struct marey__scaling_run run = marey__scaling_run_unknown(name);
    run.experiment = from->experiment;
    run.strategy = from->strategy;
    run.workers = from->workers;
    run.nodes = from->nodes;
    run.n_epochs = slowest_of(rows, MAREY__MEASURE_EPOCH, values.epoch_s, values.epoch_end_ms,
                              values.epoch_step);
    run.n_steps = slowest_of(rows, MAREY__MEASURE_STEP, values.step_s, NULL, NULL);
    run.n_steps = run.n_steps != 0 ? sample_steps(values.step_s, run.n_steps) : 0;
    run.epoch_s = values.epoch_s;
    run.step_s = values.step_s;
    add_means(rows, &run);
    MAREY_TRY(add_samples(reading, rows, &run));
    MAREY_TRY(add_energy(reading, rows, &run, &values));
    run.epoch_j = has_energy(&run, &values) ? values.epoch_j : NULL;
    return marey__scaling_read_add(reading, &run);
}

/* "runs.csv: NAME", "runs.csv: NAME, the second time". */
static marey_status name_and_add(const struct marey__scaling_reading *reading,
                                 const struct marey__measured_run *run, const struct run_rows *rows)
{
    struct marey__buf name MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_puts(&name, reading->name);
    if (run->name[0] != '\0')
        marey__buf_printf(&name, ": %s", run->name);
    if (run->repeat != 0)
        marey__buf_printf(&name, " (repeat %u)", (unsigned)run->repeat + 1);
    marey__buf_put(&name, "", 1);
    MAREY__TRY_MEMORY(!name.failed);
    return add_run(reading, run, rows, name.data);
}

/* ---- all runs ---- */

static marey_status note_left_out(const struct marey__scaling_reading *reading,
                                  const struct marey__measurements *m)
{
    for (size_t at = 0; at < m->notes.len; at += strlen(m->notes.data + at) + 1)
        MAREY_TRY(marey__scaling_read_note(reading, "%s", m->notes.data + at));
    if (m->n_dropped != 0)
        MAREY_TRY(marey__scaling_read_note(reading,
                                           "%s: %" PRIu64 " rows are left out, without a number of "
                                           "workers or with a value that cannot be.",
                                           reading->name, m->n_dropped));
    if (m->n_unknown != 0)
        MAREY_TRY(marey__scaling_read_note(
            reading, "%s: %" PRIu64 " rows of other measures are left out, the first of '%s'.",
            reading->name, m->n_unknown, m->unknown));
    return MAREY_OK;
}

marey_status marey__measurements_add(const struct marey__scaling_reading *reading,
                                     struct marey__measurements *m)
{
    MAREY__TRY_MEMORY(marey__sort_runs(m->rows, m->n_rows, sizeof *m->rows, is_before));
    for (size_t at = 0; at < m->n_rows;) {
        struct run_rows rows = {0};
        const uint32_t run = m->rows[at].run;
        for (; at < m->n_rows && m->rows[at].run == run; at++) {
            const uint32_t measure = m->rows[at].measure;
            if (rows.n[measure]++ == 0)
                rows.of[measure] = &m->rows[at];
        }
        MAREY_TRY(name_and_add(reading, &m->runs[run], &rows));
    }
    return note_left_out(reading, m);
}

marey_status marey__scaling_read_csv(const struct marey__scaling_reading *reading, const char *path)
{
    struct marey__measurements m MAREY__FINALLY(marey__measurements_fini) = {0};
    marey__byte_source *bytes = NULL;
    MAREY_TRY(marey__bytes_open(path, &bytes));
    const marey_status status = marey__measurements_read(&m, bytes, path);
    marey__bytes_close(bytes);
    MAREY_TRY(status);
    MAREY_TRY(marey__measurements_add(reading, &m));
    return m.n_rows != 0
               ? MAREY_OK
               : marey__fail(MAREY_EFORMAT, "%s has no row with a number of workers and a measure",
                             reading->name);
}
