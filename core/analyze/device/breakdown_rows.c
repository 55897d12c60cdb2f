/*
 * The windows of a process's devices, and what each device did in them.
 *
 *   span    from the begin of the first work to the end of the last; of a host from its first event to its last
 *   steps   each step from its begin on the host to its end there, or to the end of the last work launched in it,
 *           whichever is later. Those of neighbours may so overlap: each for itself is a window, and the device's row is
 *           of their union, in which no nanosecond counts twice
 */
#include "analyze/device/internal.h"

/* ---- windows ---- */

static struct marey__interval span_of(const struct marey__work_set *set,
                                      const struct marey__device_work *device)
{
    struct marey__interval span = {0, 0};
    if (device->device < 0)
        return (struct marey__interval){set->first_ns, set->last_ns};
    for (size_t i = 0; i < device->n_work; i++) {
        const struct marey__work *work = &device->work[i];
        if (work->class == MAREY__IGNORED)
            continue;
        span.begin_ns = span.end_ns == 0 ? work->begin_ns : span.begin_ns;
        span.end_ns = MAREY__MAX(span.end_ns, work->end_ns);
    }
    return span;
}

static void find_steps(const struct marey__work_set *set, const struct marey__device_work *device,
                       struct marey__interval *steps)
{
    for (size_t i = 0; i < set->n_steps; i++)
        steps[i] = (struct marey__interval){set->steps[i].begin_ns, set->steps[i].end_ns};
    for (size_t i = 0; device->device >= 0 && i < device->n_work; i++) {
        const struct marey__work *work = &device->work[i];
        const uint32_t step = marey__step_of(set, work);
        if (step != MAREY__NO_INDEX && work->class != MAREY__IGNORED)
            steps[step].end_ns = MAREY__MAX(steps[step].end_ns, work->end_ns);
    }
}

bool marey__device_windows_make(struct marey__device_windows *windows,
                                const struct marey__work_set *set)
{
    const size_t n = set->n_devices, n_steps = set->n_steps;
    *windows = (struct marey__device_windows){
        .spans = marey__calloc(n + 1, sizeof *windows->spans),
        .steps = marey__calloc(n * n_steps + 1, sizeof *windows->steps),
        .united = marey__calloc(n * n_steps + 1, sizeof *windows->united),
        .n_united = marey__calloc(n + 1, sizeof *windows->n_united),
    };
    if (windows->spans == NULL || windows->steps == NULL || windows->united == NULL ||
        windows->n_united == NULL)
        return false;
    for (size_t d = 0; d < n; d++) {
        struct marey__interval *steps = windows->steps + d * n_steps,
                               *united = windows->united + d * n_steps;
        windows->spans[d] = span_of(set, &set->devices[d]);
        find_steps(set, &set->devices[d], steps);
        for (size_t i = 0; i < n_steps; i++)
            united[i] = steps[i];
        windows->n_united[d] = n_steps;
        if (!marey__intervals_unite(united, &windows->n_united[d]))
            return false;
    }
    return true;
}

void marey__device_windows_fini(struct marey__device_windows *windows)
{
    marey__free(windows->spans);
    marey__free(windows->steps);
    marey__free(windows->united);
    marey__free(windows->n_united);
    *windows = (struct marey__device_windows){0};
}

/* ---- rows ---- */

static bool add_row(struct marey__device_rows *rows, const struct marey__device_work *device,
                    enum marey__window window, const struct marey__interval *intervals, size_t n)
{
    if (!marey__grow(&rows->rows, &rows->cap, rows->n + 1, sizeof *rows->rows))
        return false;
    struct marey__sweep sweep;
    marey__sweep_begin(&sweep, intervals, n);
    for (size_t i = 0; i < device->n_work; i++)
        marey__sweep_add(&sweep, device->work[i].begin_ns, device->work[i].end_ns,
                         device->work[i].class);
    marey__sweep_finish(&sweep);
    rows->rows[rows->n++] =
        (struct marey__device_row){.device = device->device,
                                   .window = window,
                                   .span_ns = marey__intervals_length(intervals, n),
                                   .atoms = sweep.atoms};
    return true;
}

bool marey__device_rows_make(struct marey__device_rows *rows, const struct marey__work_set *set,
                             const struct marey__device_windows *windows)
{
    for (size_t d = 0; d < set->n_devices; d++) {
        const struct marey__device_work *device = &set->devices[d];
        if (!add_row(rows, device, MAREY__WINDOW_SPAN, &windows->spans[d], 1) ||
            (set->n_steps != 0 && !add_row(rows, device, MAREY__WINDOW_STEPS,
                                           windows->united + d * set->n_steps, windows->n_united[d])))
            return false;
    }
    return true;
}
