/*
 * A comparison as a whole: sources are opened as they are added; run() reads every process, several at a time, puts
 * processes together to runs and makes the tables.
 */
#include <string.h>

#include "analyze/compare/internal.h"
#include "analyze/walk/internal.h"
#include "import/internal.h"

/* ---- sources ---- */

marey_status marey_comparison_create(marey_comparison **out)
{
    marey_comparison *c = marey__calloc(1, sizeof *c);
    MAREY__TRY_MEMORY(c != NULL);
    *out = c;
    return MAREY_OK;
}

static void forget_results(marey_comparison *c)
{
    for (size_t t = 0; t < MAREY__N_COMPARED; t++) {
        marey_table_destroy(c->tables[t]);
        c->tables[t] = NULL;
    }
    marey__runs_fini(&c->sides[MAREY_A]);
    marey__runs_fini(&c->sides[MAREY_B]);
    marey__names_fini(&c->names);
    marey__names_fini(&c->function_names);
}

void marey_comparison_destroy(marey_comparison *c)
{
    if (c == NULL)
        return;
    forget_results(c);
    for (size_t i = 0; i < c->n_sources; i++)
        marey_recording_close(c->sources[i].recording);
    marey__free(c->sources);
    marey__arena_fini(&c->texts);
    marey__free(c);
}

marey_status marey_comparison_add(marey_comparison *c, enum marey_compare_side side, const char *path)
{
    struct marey__source source = {.side = side};
    if (side != MAREY_A && side != MAREY_B)
        return marey__fail(MAREY_EINVAL, "a comparison has the sides MAREY_A and MAREY_B, no %d",
                           side);
    MAREY__TRY_MEMORY(marey__grow(&c->sources, &c->sources_cap, c->n_sources + 1, sizeof *c->sources) &&
                      (source.path = marey__arena_text(&c->texts, path, strlen(path))) != NULL);
    if (!marey__is_stats(path) || marey__import_knows(path)) /* some traces begin as stats do */
        MAREY_TRY(marey_open(path, NULL, &source.recording));
    c->sources[c->n_sources++] = source;
    return MAREY_OK;
}

/* ---- reading, several processes at a time ---- */

struct task {
    const struct marey__source *source;
    size_t process;
    struct marey__process_times times;
};

struct jobs {
    struct task *tasks;
    size_t n_tasks;
    const struct marey_compare_options *options;
};

static marey_status read_nth(void *ctx, size_t i)
{
    const struct jobs *jobs = ctx;
    struct task *task = &jobs->tasks[i];
    return marey__process_times_read(&task->times, task->source->recording, task->process,
                                     jobs->options);
}

static marey_status read_tasks(struct jobs *jobs)
{
    const struct marey__tasks tasks = {
        .run = read_nth,
        .ctx = jobs,
        .n = jobs->n_tasks,
        .n_jobs = jobs->options->n_jobs,
        .progress = jobs->options->progress,
        .progress_ctx = jobs->options->progress_ctx,
    };
    return marey__tasks_run(&tasks);
}

static marey_status list_tasks(struct jobs *jobs, const marey_comparison *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_sources; i++)
        if (c->sources[i].recording != NULL)
            n += marey_recording_n_processes(c->sources[i].recording);
    jobs->tasks = marey__calloc(n + 1, sizeof *jobs->tasks);
    MAREY__TRY_MEMORY(jobs->tasks != NULL);
    for (size_t i = 0; i < c->n_sources; i++)
        for (size_t p = 0; c->sources[i].recording != NULL &&
                           p < marey_recording_n_processes(c->sources[i].recording);
             p++)
            jobs->tasks[jobs->n_tasks++] = (struct task){.source = &c->sources[i], .process = p};
    return MAREY_OK;
}

/* ---- processes to runs ---- */

/* Helpers that count no iterations (loaders of data) do not speak for a run in which others count. */
static bool is_helper(const struct jobs *jobs, const struct task *task)
{
    if (task->times.n_iterations + task->times.n_left_out != 0)
        return false;
    const struct marey_process *own = marey_recording_process(task->source->recording, task->process);
    for (size_t i = 0; i < jobs->n_tasks; i++) {
        const struct task *other = &jobs->tasks[i];
        if (other->source == task->source &&
            other->times.n_iterations + other->times.n_left_out != 0 &&
            strcmp(marey_recording_process(other->source->recording, other->process)->run_id,
                   own->run_id) == 0)
            return true;
    }
    return false;
}

static marey_status take_tasks(marey_comparison *c, const struct jobs *jobs)
{
    for (size_t i = 0; i < jobs->n_tasks; i++) {
        const struct task *task = &jobs->tasks[i];
        const struct marey_process *process =
            marey_recording_process(task->source->recording, task->process);
        if (process->n_events == 0 || is_helper(jobs, task))
            continue;
        struct marey__compared_run *run =
            marey__runs_find(&c->sides[task->source->side], task->source->path, process);
        MAREY__TRY_MEMORY(run != NULL && marey__run_take(run, &c->names, &task->times));
        run->n_processes++;
    }
    return MAREY_OK;
}

static marey_status read_recordings(marey_comparison *c, const struct marey_compare_options *options)
{
    struct jobs jobs = {.options = options};
    marey_status status = list_tasks(&jobs, c);
    if (status == MAREY_OK)
        status = read_tasks(&jobs);
    if (status == MAREY_OK)
        status = take_tasks(c, &jobs);
    for (size_t i = 0; i < jobs.n_tasks; i++)
        marey__process_times_fini(&jobs.tasks[i].times);
    marey__free(jobs.tasks);
    return status;
}

/* After the events: a run that has any starts with the first of them. */
static marey_status read_programs(marey_comparison *c, const struct marey_compare_options *options)
{
    for (size_t i = 0; i < c->n_sources; i++) {
        if (c->sources[i].recording == NULL)
            continue;
        MAREY_TRY(marey__runs_add_programs(&c->sides[c->sources[i].side], &c->sources[i]));
        MAREY_TRY(marey__runs_add_functions(c, &c->sources[i], options));
    }
    return MAREY_OK;
}

static marey_status read_stats(marey_comparison *c, const struct marey_compare_options *options)
{
    for (size_t i = 0; i < c->n_sources; i++)
        if (c->sources[i].recording == NULL)
            MAREY_TRY(marey__stats_read(&c->sides[c->sources[i].side], &c->names, &c->texts,
                                        c->sources[i].path, options));
    return MAREY_OK;
}

/* ---- the whole ---- */

static marey_status check_side(const marey_comparison *c, enum marey_compare_side side)
{
    const char *name = side == MAREY_A ? "A" : "B", *path = NULL;
    const struct marey__compared_runs *s = &c->sides[side];
    for (size_t i = 0; i < c->n_sources; i++)
        if (c->sources[i].side == side && path == NULL)
            path = c->sources[i].path;
    if (path == NULL)
        return marey__fail(MAREY_EMISMATCH, "side %s has nothing to compare", name);
    if (s->n == 0)
        return marey__fail(
            MAREY_EMISMATCH,
            "%s (side %s) has nothing to compare: no ranges, samples or calls, and no "
            "wall time of 'marey run'",
            path, name);
    for (size_t i = 0; i < s->n; i++)
        if (s->runs[i].n_iterations == 0 && s->runs[i].n_left_out != 0)
            return marey__fail(
                MAREY_EMISMATCH,
                "%s (side %s) has %zu iterations, all of them warm-up or not complete; "
                "record more of them",
                s->runs[i].path, name, s->runs[i].n_left_out);
    return MAREY_OK;
}

static marey_status check_ranks(const marey_comparison *c)
{
    const struct marey__compared_run *first = &c->sides[MAREY_A].runs[0];
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < c->sides[s].n; i++) {
            const struct marey__compared_run *run = &c->sides[s].runs[i];
            if (first->world_size > 0 && run->world_size > 0 && run->world_size != first->world_size)
                return marey__fail(MAREY_EMISMATCH,
                                   "%s ran with %d ranks and %s with %d: compare runs of one size",
                                   first->path, first->world_size, run->path, run->world_size);
        }
    return MAREY_OK;
}

static marey_status run(marey_comparison *c, const struct marey_compare_options *options)
{
    MAREY_TRY(read_recordings(c, options));
    MAREY_TRY(read_programs(c, options));
    MAREY_TRY(read_stats(c, options));
    MAREY_TRY(check_side(c, MAREY_A));
    MAREY_TRY(check_side(c, MAREY_B));
    MAREY_TRY(check_ranks(c));
    return marey__comparison_make_tables(c, options);
}

marey_status marey_comparison_run(marey_comparison *c, const struct marey_compare_options *options)
{
    static const struct marey_compare_options defaults;
    forget_results(c);
    const marey_status status = run(c, options != NULL ? options : &defaults);
    if (status != MAREY_OK)
        forget_results(c);
    return status;
}

int marey_comparison_is_damaged(const marey_comparison *c)
{
    for (size_t i = 0; i < c->n_sources; i++)
        if (c->sources[i].recording != NULL && marey_recording_is_damaged(c->sources[i].recording))
            return 1;
    return 0;
}

marey_table *marey_comparison_table(marey_comparison *c, const char *name)
{
    for (size_t t = 0; t < MAREY__N_COMPARED; t++)
        if (c->tables[t] != NULL && strcmp(marey_table_name(c->tables[t]), name) == 0)
            return c->tables[t];
    return NULL;
}
