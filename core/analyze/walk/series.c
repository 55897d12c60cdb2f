/* Times by range and iteration, as arrays. */
#include "analyze/walk/internal.h"

struct column {
    float *ns;
    size_t n, cap; /* values so far; later iterations are zero */
    uint64_t n_ran;
};

struct reading {
    struct marey__series *series;
    struct column *columns; /* by the walk's names */
    size_t flags_cap, numbers_cap, ns_cap, samples_cap;
    uint64_t n_bytes, max_bytes;
    bool is_too_large;
};

/* Grow to `n` zeroed values. */
static bool extend(struct reading *reading, struct column *column, size_t n)
{
    const size_t before = column->cap;
    if (!marey__extend(&column->ns, &column->n, &column->cap, n, sizeof *column->ns))
        return false;
    reading->n_bytes += (column->cap - before) * sizeof *column->ns;
    return true;
}

static bool add_iteration(struct reading *reading, const struct marey__span *span)
{
    enum { BYTES = 1 + 8 + 4 + 4 };
    struct marey__series *s = reading->series;
    const size_t i = s->n_iterations;
    if (!marey__grow(&s->flags, &reading->flags_cap, i + 1, sizeof *s->flags) ||
        !marey__grow(&s->numbers, &reading->numbers_cap, i + 1, sizeof *s->numbers) ||
        !marey__grow(&s->ns, &reading->ns_cap, i + 1, sizeof *s->ns) ||
        !marey__grow(&s->samples, &reading->samples_cap, i + 1, sizeof *s->samples))
        return false;
    s->flags[i] = (uint8_t)span->flags;
    s->numbers[i] = span->number;
    s->ns[i] = (float)(span->end_ns - span->begin_ns);
    s->samples[i] = (float)span->samples;
    s->n_iterations++;
    reading->n_bytes += BYTES;
    return true;
}

static bool take_span(void *ctx, const struct marey__span *span,
                      const struct marey__iteration *iteration)
{
    struct reading *reading = ctx;
    if (iteration == NULL)
        return true;
    if (!add_iteration(reading, span))
        return false;
    for (size_t i = 0; i < iteration->n_ran; i++) {
        struct column *column = &reading->columns[iteration->ran[i]];
        if (!extend(reading, column, reading->series->n_iterations))
            return false;
        column->ns[column->n - 1] = (float)iteration->times[iteration->ran[i]].ns;
        column->n_ran++;
    }
    reading->is_too_large = reading->n_bytes > reading->max_bytes;
    return !reading->is_too_large;
}

/* Turn the columns of names that ran into the series. */
static bool finish(struct reading *reading, const struct marey__process_walk *walk)
{
    struct marey__series *series = reading->series;
    size_t n_names = 0;
    for (size_t i = 0; i < walk->names.n; i++)
        n_names += reading->columns[i].n_ran != 0;
    series->names = marey__calloc(n_names + 1, sizeof *series->names);
    if (series->names == NULL)
        return false;
    for (size_t i = 0; i < walk->names.n; i++) {
        struct column *column = &reading->columns[i];
        if (column->n_ran == 0)
            continue;
        if (!extend(reading, column, series->n_iterations))
            return false;
        series->names[series->n_names++] = (struct marey__series_name){
            .text = walk->names.names[i].text,
            .len = walk->names.names[i].len,
            .ns = column->ns,
            .n_ran = column->n_ran,
        };
        column->ns = NULL;
    }
    return true;
}

static marey_status too_large(const struct reading *reading, const struct marey__process_walk *walk)
{
    return marey__fail(MAREY_ENOMEM,
                       "the iterations of %s do not fit into %llu MB: leave ranges out of the "
                       "recording, or record fewer iterations",
                       walk->info->log_path, (unsigned long long)(reading->max_bytes >> 20));
}

static marey_status run(struct reading *reading, struct marey__process_walk *walk)
{
    reading->columns = marey__calloc(walk->names.n, sizeof *reading->columns);
    MAREY__TRY_MEMORY(reading->columns != NULL);
    walk->iterations.visitor = take_span;
    walk->iterations.visitor_ctx = reading;
    marey_status status = marey__process_walk_run(walk);
    if (status == MAREY_OK && !finish(reading, walk))
        status = marey__no_memory();
    if (status == MAREY_ENOMEM && reading->is_too_large)
        status = too_large(reading, walk);
    for (size_t i = 0; i < walk->names.n; i++)
        marey__free(reading->columns[i].ns);
    marey__free(reading->columns);
    return status;
}

marey_status marey__series_read(struct marey__series *series, marey_recording *recording,
                                size_t process, uint64_t max_bytes)
{
    struct marey__process_walk walk;
    struct reading reading = {
        .series = series,
        .max_bytes = max_bytes != 0 ? max_bytes : UINT64_C(4) << 30,
    };
    *series = (struct marey__series){0};
    marey_status status = marey__process_walk_init(&walk, recording, process);
    if (status == MAREY_OK)
        status = run(&reading, &walk);
    marey__process_walk_fini(&walk);
    if (status != MAREY_OK)
        marey__series_fini(series);
    return status;
}

void marey__series_fini(struct marey__series *series)
{
    for (size_t i = 0; i < series->n_names; i++)
        marey__free(series->names[i].ns);
    MAREY__FREE_ALL(series->names, series->flags, series->numbers, series->ns, series->samples);
    *series = (struct marey__series){0};
}
