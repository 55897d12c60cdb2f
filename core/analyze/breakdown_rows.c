/*
 * The windows of a process's devices, and what each device did in them.
 *
 *   span    from the begin of the first work to the end of the last; of a host from its first event to its last
 *   steps   each step from its begin on the host to its end there, or to the end of the last work launched in it,
 *           whichever is later. Those of neighbours may so overlap: each for itself is a window, and the device's row is
 *           of their union, in which no nanosecond counts twice
 */
#include "analyze/breakdown_internal.h"

/* ---- windows ---- */

static struct kymo__interval span_of(const struct kymo__work_set *set,
                                     const struct kymo__device_work *device)
{
    struct kymo__interval span = {0, 0};
    if (device->device < 0)
        return (struct kymo__interval){set->first_ns, set->last_ns};
    for (size_t i = 0; i < device->n_work; i++) {
        const struct kymo__work *work = &device->work[i];
        if (work->class == KYMO__IGNORED)
            continue;
        span.begin_ns = span.end_ns == 0 ? work->begin_ns : span.begin_ns;
        span.end_ns = KYMO__MAX(span.end_ns, work->end_ns);
    }
    return span;
}

static void find_steps(const struct kymo__work_set *set, const struct kymo__device_work *device,
                       struct kymo__interval *steps)
{
    for (size_t i = 0; i < set->n_steps; i++)
        steps[i] = (struct kymo__interval){set->steps[i].begin_ns, set->steps[i].end_ns};
    for (size_t i = 0; device->device >= 0 && i < device->n_work; i++) {
        const struct kymo__work *work = &device->work[i];
        const uint32_t step = kymo__step_of(set, work);
        if (step != KYMO__NO_INDEX && work->class != KYMO__IGNORED)
            steps[step].end_ns = KYMO__MAX(steps[step].end_ns, work->end_ns);
    }
}

bool kymo__device_windows_make(struct kymo__device_windows *windows, const struct kymo__work_set *set)
{
    const size_t n = set->n_devices, n_steps = set->n_steps;
    *windows = (struct kymo__device_windows){
        .spans = kymo__calloc(n + 1, sizeof *windows->spans),
        .steps = kymo__calloc(n * n_steps + 1, sizeof *windows->steps),
        .united = kymo__calloc(n * n_steps + 1, sizeof *windows->united),
        .n_united = kymo__calloc(n + 1, sizeof *windows->n_united),
    };
    if (windows->spans == NULL || windows->steps == NULL || windows->united == NULL ||
        windows->n_united == NULL)
        return false;
    for (size_t d = 0; d < n; d++) {
        struct kymo__interval *steps = windows->steps + d * n_steps,
                              *united = windows->united + d * n_steps;
        windows->spans[d] = span_of(set, &set->devices[d]);
        find_steps(set, &set->devices[d], steps);
        for (size_t i = 0; i < n_steps; i++)
            united[i] = steps[i];
        windows->n_united[d] = n_steps;
        if (!kymo__intervals_unite(united, &windows->n_united[d]))
            return false;
    }
    return true;
}

void kymo__device_windows_fini(struct kymo__device_windows *windows)
{
    kymo__free(windows->spans);
    kymo__free(windows->steps);
    kymo__free(windows->united);
    kymo__free(windows->n_united);
    *windows = (struct kymo__device_windows){0};
}

/* ---- rows ---- */

static bool add_row(struct kymo__device_rows *rows, const struct kymo__device_work *device,
                    enum kymo__window window, const struct kymo__interval *intervals, size_t n)
{
    if (!kymo__grow(&rows->rows, &rows->cap, rows->n + 1, sizeof *rows->rows))
        return false;
    struct kymo__sweep sweep;
    kymo__sweep_begin(&sweep, intervals, n);
    for (size_t i = 0; i < device->n_work; i++)
        kymo__sweep_add(&sweep, device->work[i].begin_ns, device->work[i].end_ns,
                        device->work[i].class);
    kymo__sweep_finish(&sweep);
    rows->rows[rows->n++] = (struct kymo__device_row){.device = device->device,
                                                      .window = window,
                                                      .span_ns = kymo__intervals_length(intervals, n),
                                                      .atoms = sweep.atoms};
    return true;
}

bool kymo__device_rows_make(struct kymo__device_rows *rows, const struct kymo__work_set *set,
                            const struct kymo__device_windows *windows)
{
    for (size_t d = 0; d < set->n_devices; d++) {
        const struct kymo__device_work *device = &set->devices[d];
        if (!add_row(rows, device, KYMO__WINDOW_SPAN, &windows->spans[d], 1) ||
            (set->n_steps != 0 && !add_row(rows, device, KYMO__WINDOW_STEPS,
                                           windows->united + d * set->n_steps, windows->n_united[d])))
            return false;
    }
    return true;
}
