/*
 * What counts of a run. Its first epoch warms up and does not, unless there is no other; what is left of it is a median
 * and a few units to resample.
 */
#include <math.h>
#include <string.h>

#include "analyze/compare/internal.h"
#include "analyze/scaling/internal.h"

/* Neighbouring steps are alike; medians of blocks as long as these are hardly so (docs/internals/compare.md). */
enum { N_BLOCKS = 16 };

/* `scratch` has room for `n` values. */
static void fill(struct marey__scaling_values *values, const double *list, size_t n, double *scratch)
{
    values->n = n;
    values->n_units = n <= MAREY__SCALING_UNITS ? n : N_BLOCKS;
    for (size_t i = 0; i < values->n_units; i++) {
        const size_t from = n * i / values->n_units, to = n * (i + 1) / values->n_units;
        memcpy(scratch, list + from, (to - from) * sizeof *list);
        values->units[i] = marey__median(scratch, to - from);
    }
    (void)marey__median(values->units, values->n_units); /* which puts them in order */
    memcpy(scratch, list, n * sizeof *list);
    values->median = marey__median(scratch, n);
}

/* Those of `list` that are above zero; NULL for none of it. False without memory. */
static bool take(struct marey__scaling_values *values, const double *list, size_t n)
{
    *values = (struct marey__scaling_values){.median = NAN};
    if (list == NULL || n == 0)
        return true;
    double *known = marey__calloc(2 * n, sizeof *known);
    if (known == NULL)
        return false;
    size_t n_known = 0;
    for (size_t i = 0; i < n; i++) {
        known[n_known] = list[i];
        n_known += list[i] > 0 && !isinf(list[i]);
    }
    if (n_known != 0)
        fill(values, known, n_known, known + n);
    marey__free(known);
    return true;
}

bool marey__scaling_values_read(struct marey__scaling_member *member, bool with_first)
{
    const struct marey__scaling_run *run = member->run;
    const bool skips = !with_first && run->first_epoch_counts == 0;
    member->has_only_first = skips && run->n_epochs == 1;
    const size_t from = skips && run->n_epochs > 1 ? 1 : 0, n = run->n_epochs - from;
    struct marey__scaling_values *values = member->values;
    if (!take(&values[MAREY__SCALING_EPOCH], run->epoch_s != NULL ? run->epoch_s + from : NULL, n) ||
        !take(&values[MAREY__SCALING_STEP], run->step_s, run->n_steps) ||
        !take(&values[MAREY__SCALING_JOULES], run->epoch_j != NULL ? run->epoch_j + from : NULL, n))
        return false;
    if (values[MAREY__SCALING_JOULES].n != 0 || run->n_epochs == 0)
        return true;
    const double joules_of_epoch = run->joules / (double)run->n_epochs;
    if (!take(&values[MAREY__SCALING_JOULES], &joules_of_epoch, 1))
        return false;
    member->has_joules_of_whole = values[MAREY__SCALING_JOULES].n != 0;
    return true;
}
