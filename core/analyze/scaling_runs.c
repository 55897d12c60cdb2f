/* The list of measured runs: each a copy of what it was told. */
#include <math.h>
#include <string.h>

#include "analyze/scaling_whole.h"

static kymo_status no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory for measured runs");
}

kymo_status kymo_scaling_runs_create(kymo_scaling_runs **out)
{
    kymo_scaling_runs *runs = kymo__calloc(1, sizeof *runs);
    if (runs == NULL)
        return no_memory();
    *out = runs;
    return KYMO_OK;
}

static void free_run(struct kymo_scaling_run *run)
{
    kymo__free((void *)(uintptr_t)run->epoch_s);
    kymo__free((void *)(uintptr_t)run->epoch_j);
    kymo__free((void *)(uintptr_t)run->step_s);
}

void kymo_scaling_runs_destroy(kymo_scaling_runs *runs)
{
    if (runs == NULL)
        return;
    for (size_t i = 0; i < runs->n; i++)
        free_run(&runs->list[i]);
    kymo__free(runs->list);
    kymo__free(runs->notes);
    kymo__arena_fini(&runs->texts);
    kymo__free(runs);
}

/* ---- adding ---- */

static kymo_status check_times(const struct kymo_scaling_run *run, const char *what,
                               const double *times, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(times[i] > 0) || isinf(times[i]))
            return kymo__fail(KYMO_EINVAL, "%s: %s %zu takes %g s; times are finite and above zero",
                              run->name != NULL ? run->name : "a run", what, i, times[i]);
    return KYMO_OK;
}

static kymo_status check(const struct kymo_scaling_run *run)
{
    if (run->workers == 0)
        return kymo__fail(KYMO_EINVAL, "%s: a run has at least one worker",
                          run->name != NULL ? run->name : "a run");
    KYMO_TRY(check_times(run, "epoch", run->epoch_s, run->n_epochs));
    return check_times(run, "step", run->step_s, run->n_steps);
}

/* True also where there is nothing to copy. */
static bool copy_values(const double **values, size_t n)
{
    if (*values == NULL || n == 0) {
        *values = NULL;
        return true;
    }
    double *copy = kymo__calloc(n, sizeof *copy);
    if (copy != NULL)
        memcpy(copy, *values, n * sizeof *copy);
    *values = copy;
    return copy != NULL;
}

static bool copy_text(struct kymo__arena *texts, const char **text)
{
    const char *old = *text != NULL ? *text : "";
    *text = kymo__arena_text(texts, old, strlen(old));
    return *text != NULL;
}

kymo_status kymo_scaling_runs_add(kymo_scaling_runs *runs, const struct kymo_scaling_run *run)
{
    struct kymo_scaling_run copy = *run;
    KYMO_TRY(check(run));
    /* Each is copied or becomes NULL, so that whatever the result is, all can be freed. */
    const bool has_epochs = copy_values(&copy.epoch_s, run->n_epochs);
    const bool has_joules = copy_values(&copy.epoch_j, run->n_epochs);
    const bool has_steps = copy_values(&copy.step_s, run->n_steps);
    if (!has_epochs || !has_joules || !has_steps || !copy_text(&runs->texts, &copy.experiment) ||
        !copy_text(&runs->texts, &copy.strategy) || !copy_text(&runs->texts, &copy.name) ||
        !kymo__grow(&runs->list, &runs->cap, runs->n + 1, sizeof *runs->list)) {
        free_run(&copy);
        return no_memory();
    }
    runs->list[runs->n++] = copy;
    return KYMO_OK;
}

kymo_status kymo_scaling_runs_note(kymo_scaling_runs *runs, const char *sentence)
{
    if (!copy_text(&runs->texts, &sentence) ||
        !kymo__grow(&runs->notes, &runs->notes_cap, runs->n_notes + 1, sizeof *runs->notes))
        return no_memory();
    runs->notes[runs->n_notes++] = sentence;
    return KYMO_OK;
}

size_t kymo_scaling_runs_count(const kymo_scaling_runs *runs)
{
    return runs->n;
}

const struct kymo_scaling_run *kymo_scaling_runs_at(const kymo_scaling_runs *runs, size_t i)
{
    return i < runs->n ? &runs->list[i] : NULL;
}
