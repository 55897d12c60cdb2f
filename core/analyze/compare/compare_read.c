/* One process of a recording to digests of its regions. */
#include <string.h>

#include "analyze/compare/internal.h"
#include "analyze/walk/internal.h"

void marey__process_times_fini(struct marey__process_times *times)
{
    marey__free(times->regions);
    *times = (struct marey__process_times){0};
}

bool marey__process_times_add(struct marey__process_times *times, const struct marey__name *name,
                              const float *ns, size_t n, double weight_ns, uint32_t *scratch)
{
    if (!marey__grow(&times->regions, &times->cap, times->n_regions + 1, sizeof *times->regions))
        return false;
    struct marey__region_times *region = &times->regions[times->n_regions++];
    *region =
        (struct marey__region_times){.text = name->text, .len = name->len, .weight_ns = weight_ns};
    marey__digest_make_whole(&region->digest, ns, n, scratch);
    return true;
}

/* ---- iterations ---- */

/* The values of iterations that count, to the front of `values`; with `without_zeros` only where it ran. */
static size_t keep_counted(const struct marey__series *series, uint64_t skip, const float *values,
                           float *out, bool without_zeros, double *sum)
{
    size_t n = 0;
    *sum = 0;
    for (size_t i = skip; i < series->n_iterations; i++) {
        out[n] = values[i];
        const bool counts = series->flags[i] == 0;
        *sum += counts ? (double)values[i] : 0;
        n += counts && (values[i] > 0 || !without_zeros);
    }
    return n;
}

static bool add_regions(struct marey__process_times *times, const struct marey__series *series,
                        const struct marey__compare_options *options, float *values,
                        uint32_t *scratch)
{
    for (size_t i = 0; i < series->n_names; i++) {
        const struct marey__series_name *name = &series->names[i];
        double sum;
        if (!marey__name_matches(options->filter, name->text, name->len))
            continue;
        const size_t n = keep_counted(series, options->skip, name->ns, values, true, &sum);
        const struct marey__name text = {.text = name->text, .len = name->len};
        if (n != 0 && !marey__process_times_add(times, &text, values, n,
                                                sum / (double)times->n_iterations, scratch))
            return false;
    }
    return true;
}

static bool digest_series(struct marey__process_times *times, const struct marey__series *series,
                          const struct marey__compare_options *options)
{
    const size_t n = series->n_iterations;
    float *values = marey__calloc(n + 1, sizeof *values);
    uint32_t *scratch = marey__calloc(n + 1, sizeof *scratch);
    bool ok = values != NULL && scratch != NULL;
    if (ok) {
        double sum;
        times->n_iterations = keep_counted(series, options->skip, series->ns, values, false, &sum);
        times->n_left_out = n - times->n_iterations;
        if (times->n_iterations != 0) {
            marey__digest_make_whole(&times->whole, values, times->n_iterations, scratch);
            times->whole_ns = sum / (double)times->n_iterations;
            ok = add_regions(times, series, options, values, scratch);
        }
    }
    marey__free(values);
    marey__free(scratch);
    return ok;
}

marey_status marey__process_times_read(struct marey__process_times *times, marey_recording *recording,
                                       size_t process, const struct marey__compare_options *options)
{
    struct marey__series series;
    *times = (struct marey__process_times){0};
    MAREY_TRY(marey__series_read(&series, recording, process, 0));
    marey_status status = MAREY_OK;
    if (series.n_iterations == 0)
        status = marey__process_times_of_calls(times, recording, process, options);
    else if (!digest_series(times, &series, options))
        status = marey__no_memory();
    marey__series_fini(&series);
    if (status != MAREY_OK)
        marey__process_times_fini(times);
    return status;
}
