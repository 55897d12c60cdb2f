/* The list of measured runs: each a copy of what it was told. */
#include <math.h>
#include <string.h>

#include "analyze/scaling/internal.h"

static void free_run(struct marey__scaling_run *run)
{
    marey__free((void *)(uintptr_t)run->epoch_s);
    marey__free((void *)(uintptr_t)run->epoch_j);
    marey__free((void *)(uintptr_t)run->step_s);
}

void marey__scaling_runs_fini(struct marey__scaling_runs *runs)
{
    for (size_t i = 0; i < runs->n; i++)
        free_run(&runs->list[i]);
    marey__free(runs->list);
    marey__free(runs->notes);
    marey__arena_fini(&runs->texts);
}

/* ---- adding ---- */

static marey_status check_times(const struct marey__scaling_run *run, const char *what,
                                const double *times, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(times[i] > 0) || isinf(times[i]))
            return marey__fail(MAREY_EINVAL, "%s: %s %zu takes %g s; times are finite and above zero",
                               run->name != NULL ? run->name : "a run", what, i, times[i]);
    return MAREY_OK;
}

static marey_status check(const struct marey__scaling_run *run)
{
    if (run->workers == 0)
        return marey__fail(MAREY_EINVAL, "%s: a run has at least one worker",
                           run->name != NULL ? run->name : "a run");
    MAREY_TRY(check_times(run, "epoch", run->epoch_s, run->n_epochs));
    return check_times(run, "step", run->step_s, run->n_steps);
}

/* True also where there is nothing to copy. */
static bool copy_values(const double **values, size_t n)
{
    if (*values == NULL || n == 0) {
        *values = NULL;
        return true;
    }
    double *copy = marey__calloc(n, sizeof *copy);
    if (copy != NULL)
        memcpy(copy, *values, n * sizeof *copy);
    *values = copy;
    return copy != NULL;
}

static bool copy_text(struct marey__arena *texts, const char **text)
{
    const char *old = *text != NULL ? *text : "";
    *text = marey__arena_text(texts, old, strlen(old));
    return *text != NULL;
}

marey_status marey__scaling_runs_add(struct marey__scaling_runs *runs,
                                     const struct marey__scaling_run *run)
{
    struct marey__scaling_run copy = *run;
    MAREY_TRY(check(run));
    /* Each is copied or becomes NULL, so that whatever the result is, all can be freed. */
    const bool has_epochs = copy_values(&copy.epoch_s, run->n_epochs);
    const bool has_joules = copy_values(&copy.epoch_j, run->n_epochs);
    const bool has_steps = copy_values(&copy.step_s, run->n_steps);
    if (!has_epochs || !has_joules || !has_steps || !copy_text(&runs->texts, &copy.experiment) ||
        !copy_text(&runs->texts, &copy.strategy) || !copy_text(&runs->texts, &copy.name) ||
        !marey__grow(&runs->list, &runs->cap, runs->n + 1, sizeof *runs->list)) {
        free_run(&copy);
        return marey__no_memory();
    }
    runs->list[runs->n++] = copy;
    return MAREY_OK;
}

marey_status marey__scaling_runs_note(struct marey__scaling_runs *runs, const char *sentence)
{
    MAREY__TRY_MEMORY(
        copy_text(&runs->texts, &sentence) &&
        marey__grow(&runs->notes, &runs->notes_cap, runs->n_notes + 1, sizeof *runs->notes));
    runs->notes[runs->n_notes++] = sentence;
    return MAREY_OK;
}
