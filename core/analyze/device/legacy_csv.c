/* Files of averages, row by row. */
#include <math.h>

#include "analyze/device/legacy_internal.h"
#include "codec/codec_internal.h"

/* Thirty years: what is longer, or no number, is no time. */
static const double max_us = 1e15;

/* Which columns are wanted; the last one may be missing. */
enum column { NAME, SELF_TIME, STRATEGY, NUM_GPUS, RANK, N_COLUMNS };
static const char *const column_names[N_COLUMNS] = {
    "name", "self_cuda_time_total", "strategy", "num_gpus", "global_rank",
};

bool marey__csv_number(const struct marey__csv *csv, size_t column, double *out)
{
    struct marey__csv_field field;
    return marey__csv_find(csv, column, &field) &&
           marey__decimal_double(field.text, field.len, out) && isfinite(*out);
}

bool marey__csv_count(const struct marey__csv *csv, size_t column, uint64_t *out)
{
    double value;
    if (!marey__csv_number(csv, column, &value) ||
        !(value >= 0 && value < 1e9 && value == floor(value)))
        return false;
    *out = (uint64_t)value;
    return true;
}

static bool take_averages(void *ctx, const struct marey__csv *csv)
{
    struct marey__legacy *legacy = ctx;
    struct marey__csv_field name = {"", 0}, strategy;
    uint64_t num_gpus, rank;
    double us;
    (void)marey__csv_find(csv, NAME, &name);
    const bool has_rank = marey__csv_count(csv, RANK, &rank);
    if (!marey__csv_find(csv, STRATEGY, &strategy) || !marey__csv_count(csv, NUM_GPUS, &num_gpus) ||
        !marey__csv_number(csv, SELF_TIME, &us) || !(fabs(us) <= max_us)) {
        legacy->n_dropped++;
        return true;
    }
    const struct marey__legacy_row row = {
        .name = name.text,
        .name_len = name.len,
        .strategy = strategy.text,
        .strategy_len = strategy.len,
        .num_gpus = num_gpus,
        .rank = has_rank ? (int64_t)rank : -1,
        .self_us = us,
    };
    return marey__legacy_take(legacy, &row);
}

marey_status marey__legacy_read_csv(struct marey__legacy *legacy, marey__byte_source *bytes,
                                    const char *path, bool *is_other)
{
    struct marey__csv csv = {.path = path,
                             .what = "averages as itwinai writes",
                             .names = column_names,
                             .n_names = N_COLUMNS,
                             .n_needed = RANK,
                             .take = take_averages,
                             .ctx = legacy};
    return marey__csv_read(&csv, bytes, is_other);
}
