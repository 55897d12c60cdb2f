/*
 * A CSV of measurements, row by row: docs/formats/scaling-csv.md. A row in long form has one number and its measure; a
 * row in wide form has the numbers of one epoch, each in its column. All bytes are untrusted.
 *
 * Rows with the same experiment, strategy, run, workers and nodes are one run. If its epochs restart, a repeat begins:
 * a program started twice under one name gives two runs.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/scaling/internal.h"
#include "codec/internal.h"

static const char *const measure_names[MAREY__N_MEASURES] = {
    "epoch_time_s",
    "step_time_s",
    "gpu_power_W",
    "gpu_utilization_percent",
    "energy_j",
    "probing_interval",
    "samples_per_s",
    "samples_per_epoch",
    "batch",
    "compute_s",
    "communication_s",
    "memory_s",
    "idle_s",
    "computation_fraction",
    "computation_vs_communication",
};

/* Columns; those of the wide form follow, in the order of the measures. */
enum column {
    WORKERS,
    EXPERIMENT,
    STRATEGY,
    NODES,
    RUN,
    RANK,
    MEASURE,
    STEP,
    EPOCH,
    UNIX_MS,
    VALUE,
    N_KEYS
};
static const char *const key_names[N_KEYS] = {
    "workers", "experiment", "strategy", "nodes",   "run",   "rank",
    "measure", "step",       "epoch",    "unix_ms", "value",
};
enum { N_COLUMNS = N_KEYS + MAREY__N_MEASURES };
static_assert((int)N_COLUMNS <= (int)MAREY__CSV_COLUMNS, "all are looked for");

/* Limits for memory; larger files are not hand-made. */
enum { MAX_RUNS = 100000, MAX_ROWS = 50000000 };

/* Numbers of one measure, rank and run, while they are read. */
struct series_key {
    uint32_t run; /* index of its first execution */
    int32_t rank;
    uint64_t measure;
};
struct marey__measured_series {
    struct series_key key;
    double last_step;
    uint64_t n; /* rows */
    uint32_t repeat;
};

/* ---- detection ---- */

/* Whether the line has a column of that name. */
static bool has_column(const char *line, size_t len, const char *name)
{
    for (size_t at = 0; at < len;) {
        const char *comma = memchr(line + at, ',', len - at);
        size_t end = comma != NULL ? (size_t)(comma - line) : len, begin = at;
        at = end + 1;
        if (end - begin >= 2 && line[begin] == '"' && line[end - 1] == '"')
            begin++, end--;
        if (marey__text_is(line + begin, end - begin, name))
            return true;
    }
    return false;
}

enum marey__scaling_file marey__scaling_csv_kind(const char *text, size_t len)
{
    static const char mark[] = "\xef\xbb\xbf"; /* UTF-8 byte order mark, written by some editors */
    if (len >= 3 && memcmp(text, mark, 3) == 0)
        text += 3, len -= 3;
    size_t n = 0;
    while (n < len && text[n] != '\n' && text[n] != '\r')
        n++;
    bool has_measure = has_column(text, n, "measure") && has_column(text, n, "value");
    for (size_t i = 0; i < MAREY__N_MEASURES; i++)
        has_measure |= has_column(text, n, measure_names[i]);
    if (has_measure && has_column(text, n, "workers"))
        return MAREY__FILE_MEASUREMENTS;
    const bool is_itwinai =
        (has_column(text, n, "epoch_id") && has_column(text, n, "nodes")) ||
        (has_column(text, n, "power") && has_column(text, n, "probing_interval")) ||
        (has_column(text, n, "self_cuda_time_total") && has_column(text, n, "strategy"));
    return is_itwinai ? MAREY__FILE_ITWINAI : MAREY__FILE_OTHER;
}

/* ---- runs and series ---- */

/* The texts and numbers that identify a run. Returns false on out of memory. */
static bool put_key(struct marey__buf *key, const struct marey__csv *csv, uint32_t workers,
                    uint32_t nodes, uint32_t repeat)
{
    static const size_t texts[] = {EXPERIMENT, STRATEGY, RUN};
    for (size_t i = 0; i < MAREY__COUNT_OF(texts); i++) {
        struct marey__csv_field field;
        /* A NUL ends a text. */
        if (marey__csv_find(csv, texts[i], &field))
            marey__buf_put(key, field.text, strnlen(field.text, field.len));
        marey__buf_put(key, "", 1);
    }
    marey__buf_printf(key, "%u %u %u", workers, nodes, repeat);
    return !key->failed;
}

static uint32_t find_run(struct marey__measurements *m, const struct marey__csv *csv,
                         uint32_t workers, uint32_t nodes, uint32_t repeat)
{
    struct marey__buf key MAREY__FINALLY(marey__buf_fini) = {0};
    const size_t n = m->run_keys.n;
    uint32_t number = MAREY__NO_NAME;
    if (put_key(&key, csv, workers, nodes, repeat) &&
        marey__grow(&m->runs, &m->runs_cap, n + 1, sizeof *m->runs))
        number = marey__names_keep(&m->run_keys, &m->texts, key.data, key.len);
    if (number != MAREY__NO_NAME && number == n) {
        const char *text = m->run_keys.names[number].text;
        struct marey__measured_run *run = &m->runs[number];
        *run = (struct marey__measured_run){
            .experiment = text, .workers = workers, .nodes = nodes, .repeat = repeat};
        run->strategy = run->experiment + strlen(run->experiment) + 1;
        run->name = run->strategy + strlen(run->strategy) + 1;
    }
    return number;
}

/* Position in the repeats for a measure and rank of the run. */
static struct marey__measured_series *find_series(struct marey__measurements *m, uint32_t run,
                                                  int32_t rank, uint32_t measure)
{
    const struct series_key key = {run, rank, measure};
    const size_t n = m->n_series;
    const uint32_t number =
        MAREY__MAP_NUMBER(&m->series_keys, m->series, m->n_series, m->series_cap, key);
    if (number > n)
        m->series[number - 1].last_step = -INFINITY;
    return number != 0 ? &m->series[number - 1] : NULL;
}

/* ---- numbers ---- */

static bool is_fit(uint32_t measure, double value)
{
    static const double most = 1e15;
    switch (measure) {
    case MAREY__MEASURE_EPOCH:
    case MAREY__MEASURE_STEP:
    case MAREY__MEASURE_INTERVAL:
        return value > 0 && value <= 1e9; /* thirty years */
    case MAREY__MEASURE_UTILIZATION:
        return value >= 0 && value <= 100;
    case MAREY__MEASURE_FRACTION:
    case MAREY__MEASURE_VERSUS:
        return value >= 0 && value <= 1;
    default:
        return value >= 0 && value <= most;
    }
}

/*
 * Whether a step restarts the series. Power readings may have the same second twice, and steps of a named run may be
 * counted per epoch.
 */
static bool begins_anew(const struct marey__measured_series *series,
                        const struct marey__measured *row, bool has_name)
{
    switch (row->measure) {
    case MAREY__MEASURE_STEP:
        return !has_name && row->step <= series->last_step;
    case MAREY__MEASURE_POWER:
    case MAREY__MEASURE_UTILIZATION:
        return row->step < series->last_step;
    default:
        return row->step <= series->last_step;
    }
}

static bool drop(struct marey__measurements *m)
{
    m->n_dropped++;
    return true;
}

/* The run that a row belongs to. */
struct whose {
    uint32_t workers, nodes, first; /* first: index of the run's first execution */
    bool has_name;
};

static bool add_number(struct marey__measurements *m, const struct marey__csv *csv,
                       const struct whose *whose, struct marey__measured row)
{
    if (!is_fit(row.measure, row.value) || m->n_rows >= MAX_ROWS)
        return drop(m);
    struct marey__measured_series *series = find_series(m, whose->first, row.rank, row.measure);
    if (series == NULL)
        return false;
    const bool is_series = row.measure == MAREY__MEASURE_EPOCH ||
                           row.measure == MAREY__MEASURE_STEP || row.measure == MAREY__MEASURE_RATE;
    if (isnan(row.step) && is_series)
        row.step = (double)series->n;
    else if (!isnan(row.step) && begins_anew(series, &row, whose->has_name))
        series->repeat++;
    if (!isnan(row.step))
        series->last_step = row.step;
    series->n++;
    row.run = find_run(m, csv, whose->workers, whose->nodes, series->repeat);
    if (row.run == MAREY__NO_NAME ||
        !marey__grow(&m->rows, &m->rows_cap, m->n_rows + 1, sizeof *m->rows))
        return false;
    m->rows[m->n_rows++] = row;
    return true;
}

/* ---- rows ---- */

static bool find_measure(const struct marey__csv *csv, uint32_t *out)
{
    struct marey__csv_field field = {"", 0};
    (void)marey__csv_find(csv, MEASURE, &field);
    for (*out = 0; *out < MAREY__N_MEASURES; (*out)++)
        if (marey__text_is(field.text, field.len, measure_names[*out]))
            return true;
    return false;
}

static bool take_long(struct marey__measurements *m, const struct marey__csv *csv,
                      const struct whose *whose, struct marey__measured row)
{
    if (!find_measure(csv, &row.measure)) {
        struct marey__csv_field field = {"", 0};
        (void)marey__csv_find(csv, MEASURE, &field);
        if (m->n_unknown++ == 0)
            snprintf(m->unknown, sizeof m->unknown, "%.*s", (int)MAREY__MIN(field.len, (size_t)60),
                     field.text);
        return true;
    }
    if (!marey__csv_number(csv, VALUE, &row.value))
        return drop(m);
    return add_number(m, csv, whose, row);
}

/* One epoch; without a column for its number, the next one. */
static bool take_wide(struct marey__measurements *m, const struct marey__csv *csv,
                      const struct whose *whose, struct marey__measured row)
{
    bool any = false;
    if (isnan(row.step)) {
        struct marey__measured_series *rows =
            find_series(m, whose->first, row.rank, MAREY__N_MEASURES);
        if (rows == NULL)
            return false;
        row.step = (double)rows->n++;
    }
    for (row.measure = 0; row.measure < MAREY__N_MEASURES; row.measure++) {
        if (!marey__csv_number(csv, N_KEYS + row.measure, &row.value))
            continue;
        any = true;
        if (!add_number(m, csv, whose, row))
            return false;
    }
    return any || drop(m);
}

static bool take_note(struct marey__measurements *m, const struct marey__csv *csv)
{
    struct marey__csv_field text = {"", 0};
    (void)marey__csv_find(csv, VALUE, &text);
    marey__buf_put(&m->notes, text.text, strnlen(text.text, text.len));
    marey__buf_put(&m->notes, "", 1);
    return !m->notes.failed;
}

static bool take(void *ctx, const struct marey__csv *csv)
{
    struct marey__measurements *m = ctx;
    struct marey__csv_field name;
    uint64_t workers, nodes = 0, rank;
    if (marey__csv_find(csv, MEASURE, &name) && marey__text_is(name.text, name.len, "note"))
        return take_note(m, csv);
    if (!marey__csv_count(csv, WORKERS, &workers) || workers == 0 || m->run_keys.n >= MAX_RUNS)
        return drop(m);
    (void)marey__csv_count(csv, NODES, &nodes);
    struct marey__measured row = {.step = NAN, .unix_ms = NAN, .rank = -1};
    if (marey__csv_count(csv, RANK, &rank))
        row.rank = (int32_t)rank;
    if (!marey__csv_number(csv, STEP, &row.step) && !marey__csv_number(csv, EPOCH, &row.step))
        row.step = NAN;
    if (!marey__csv_number(csv, UNIX_MS, &row.unix_ms))
        row.unix_ms = NAN;
    struct whose whose = {.workers = (uint32_t)workers,
                          .nodes = (uint32_t)nodes,
                          .has_name = marey__csv_find(csv, RUN, &name)};
    whose.first = find_run(m, csv, whose.workers, whose.nodes, 0);
    if (whose.first == MAREY__NO_NAME)
        return false;
    return csv->columns[MEASURE] >= 0 && csv->columns[VALUE] >= 0 ? take_long(m, csv, &whose, row)
                                                                  : take_wide(m, csv, &whose, row);
}

/* ---- a file ---- */

marey_status marey__measurements_read(struct marey__measurements *m, marey__byte_source *bytes,
                                      const char *path)
{
    const char *names[N_COLUMNS];
    memcpy(names, key_names, sizeof key_names);
    memcpy(names + N_KEYS, measure_names, sizeof measure_names);
    struct marey__csv csv = {.path = path,
                             .what = "measurements",
                             .names = names,
                             .n_names = N_COLUMNS,
                             .n_needed = 1,
                             .take = take,
                             .ctx = m};
    return marey__csv_read(&csv, bytes);
}

void marey__measurements_fini(struct marey__measurements *m)
{
    MAREY__FREE_ALL(m->rows, m->runs, m->series);
    marey__names_fini(&m->run_keys);
    marey__key_map_fini(&m->series_keys);
    marey__arena_fini(&m->texts);
    marey__buf_fini(&m->notes);
    *m = (struct marey__measurements){0};
}
