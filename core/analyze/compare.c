/*
 * A comparison as a whole: sources are opened as they are added; run() reads every process, several at a time, puts
 * processes together to runs and makes the tables.
 */
#include <string.h>

#include "analyze/compare_internal.h"
#include "analyze/tasks.h"
#include "import/import_internal.h"

static kymo_status no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory to compare");
}

/* ---- sources ---- */

kymo_status kymo_comparison_create(kymo_comparison **out)
{
    kymo_comparison *c = kymo__calloc(1, sizeof *c);
    if (c == NULL)
        return no_memory();
    *out = c;
    return KYMO_OK;
}

static void forget_results(kymo_comparison *c)
{
    for (size_t t = 0; t < KYMO__N_COMPARED; t++) {
        kymo_table_destroy(c->tables[t]);
        c->tables[t] = NULL;
    }
    kymo__runs_fini(&c->sides[KYMO_A]);
    kymo__runs_fini(&c->sides[KYMO_B]);
    kymo__names_fini(&c->names);
    kymo__names_fini(&c->function_names);
}

void kymo_comparison_destroy(kymo_comparison *c)
{
    if (c == NULL)
        return;
    forget_results(c);
    for (size_t i = 0; i < c->n_sources; i++)
        kymo_recording_close(c->sources[i].recording);
    kymo__free(c->sources);
    kymo__arena_fini(&c->texts);
    kymo__free(c);
}

kymo_status kymo_comparison_add(kymo_comparison *c, enum kymo_compare_side side, const char *path)
{
    struct kymo__source source = {.side = side};
    if (side != KYMO_A && side != KYMO_B)
        return kymo__fail(KYMO_EINVAL, "a comparison has the sides KYMO_A and KYMO_B, no %d", side);
    if (!kymo__grow(&c->sources, &c->sources_cap, c->n_sources + 1, sizeof *c->sources) ||
        (source.path = kymo__arena_text(&c->texts, path, strlen(path))) == NULL)
        return no_memory();
    if (!kymo__is_stats(path) || kymo__import_knows(path)) /* some traces begin as stats do */
        KYMO_TRY(kymo_open(path, NULL, &source.recording));
    c->sources[c->n_sources++] = source;
    return KYMO_OK;
}

/* ---- reading, several processes at a time ---- */

struct task {
    const struct kymo__source *source;
    size_t process;
    struct kymo__process_times times;
};

struct jobs {
    struct task *tasks;
    size_t n_tasks;
    const struct kymo_compare_options *options;
};

static kymo_status read_nth(void *ctx, size_t i)
{
    const struct jobs *jobs = ctx;
    struct task *task = &jobs->tasks[i];
    return kymo__process_times_read(&task->times, task->source->recording, task->process,
                                    jobs->options);
}

static kymo_status read_tasks(struct jobs *jobs)
{
    const struct kymo__tasks tasks = {
        .run = read_nth,
        .ctx = jobs,
        .n = jobs->n_tasks,
        .n_jobs = jobs->options->n_jobs,
        .progress = jobs->options->progress,
        .progress_ctx = jobs->options->progress_ctx,
    };
    return kymo__tasks_run(&tasks);
}

static kymo_status list_tasks(struct jobs *jobs, const kymo_comparison *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_sources; i++)
        if (c->sources[i].recording != NULL)
            n += kymo_recording_n_processes(c->sources[i].recording);
    jobs->tasks = kymo__calloc(n + 1, sizeof *jobs->tasks);
    if (jobs->tasks == NULL)
        return no_memory();
    for (size_t i = 0; i < c->n_sources; i++)
        for (size_t p = 0; c->sources[i].recording != NULL &&
                           p < kymo_recording_n_processes(c->sources[i].recording);
             p++)
            jobs->tasks[jobs->n_tasks++] = (struct task){.source = &c->sources[i], .process = p};
    return KYMO_OK;
}

/* ---- processes to runs ---- */

/* Helpers that count no iterations (loaders of data) do not speak for a run in which others count. */
static bool is_helper(const struct jobs *jobs, const struct task *task)
{
    if (task->times.n_iterations + task->times.n_left_out != 0)
        return false;
    const struct kymo_process *own = kymo_recording_process(task->source->recording, task->process);
    for (size_t i = 0; i < jobs->n_tasks; i++) {
        const struct task *other = &jobs->tasks[i];
        if (other->source == task->source &&
            other->times.n_iterations + other->times.n_left_out != 0 &&
            strcmp(kymo_recording_process(other->source->recording, other->process)->run_id,
                   own->run_id) == 0)
            return true;
    }
    return false;
}

static kymo_status take_tasks(kymo_comparison *c, const struct jobs *jobs)
{
    for (size_t i = 0; i < jobs->n_tasks; i++) {
        const struct task *task = &jobs->tasks[i];
        const struct kymo_process *process =
            kymo_recording_process(task->source->recording, task->process);
        if (process->n_events == 0 || is_helper(jobs, task))
            continue;
        struct kymo__compared_run *run =
            kymo__runs_find(&c->sides[task->source->side], task->source->path, process);
        if (run == NULL || !kymo__run_take(run, &c->names, &task->times))
            return no_memory();
        run->n_processes++;
    }
    return KYMO_OK;
}

static kymo_status read_recordings(kymo_comparison *c, const struct kymo_compare_options *options)
{
    struct jobs jobs = {.options = options};
    kymo_status status = list_tasks(&jobs, c);
    if (status == KYMO_OK)
        status = read_tasks(&jobs);
    if (status == KYMO_OK)
        status = take_tasks(c, &jobs);
    for (size_t i = 0; i < jobs.n_tasks; i++)
        kymo__process_times_fini(&jobs.tasks[i].times);
    kymo__free(jobs.tasks);
    return status;
}

/* After the events: a run that has any starts with the first of them. */
static kymo_status read_programs(kymo_comparison *c, const struct kymo_compare_options *options)
{
    for (size_t i = 0; i < c->n_sources; i++) {
        if (c->sources[i].recording == NULL)
            continue;
        KYMO_TRY(kymo__runs_add_programs(&c->sides[c->sources[i].side], &c->sources[i]));
        KYMO_TRY(kymo__runs_add_functions(c, &c->sources[i], options));
    }
    return KYMO_OK;
}

static kymo_status read_stats(kymo_comparison *c, const struct kymo_compare_options *options)
{
    for (size_t i = 0; i < c->n_sources; i++)
        if (c->sources[i].recording == NULL)
            KYMO_TRY(kymo__stats_read(&c->sides[c->sources[i].side], &c->names, &c->texts,
                                      c->sources[i].path, options));
    return KYMO_OK;
}

/* ---- the whole ---- */

static kymo_status check_side(const kymo_comparison *c, enum kymo_compare_side side)
{
    const char *name = side == KYMO_A ? "A" : "B", *path = NULL;
    const struct kymo__compared_runs *s = &c->sides[side];
    for (size_t i = 0; i < c->n_sources; i++)
        if (c->sources[i].side == side && path == NULL)
            path = c->sources[i].path;
    if (path == NULL)
        return kymo__fail(KYMO_EMISMATCH, "side %s has nothing to compare", name);
    if (s->n == 0)
        return kymo__fail(
            KYMO_EMISMATCH,
            "%s (side %s) has nothing to compare: no ranges, samples or calls, and no "
            "wall time of 'kymo run'",
            path, name);
    for (size_t i = 0; i < s->n; i++)
        if (s->runs[i].n_iterations == 0 && s->runs[i].n_left_out != 0)
            return kymo__fail(
                KYMO_EMISMATCH,
                "%s (side %s) has %zu iterations, all of them warm-up or not complete; "
                "record more of them",
                s->runs[i].path, name, s->runs[i].n_left_out);
    return KYMO_OK;
}

static kymo_status check_ranks(const kymo_comparison *c)
{
    const struct kymo__compared_run *first = &c->sides[KYMO_A].runs[0];
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < c->sides[s].n; i++) {
            const struct kymo__compared_run *run = &c->sides[s].runs[i];
            if (first->world_size > 0 && run->world_size > 0 && run->world_size != first->world_size)
                return kymo__fail(KYMO_EMISMATCH,
                                  "%s ran with %d ranks and %s with %d: compare runs of one size",
                                  first->path, first->world_size, run->path, run->world_size);
        }
    return KYMO_OK;
}

static kymo_status run(kymo_comparison *c, const struct kymo_compare_options *options)
{
    KYMO_TRY(read_recordings(c, options));
    KYMO_TRY(read_programs(c, options));
    KYMO_TRY(read_stats(c, options));
    KYMO_TRY(check_side(c, KYMO_A));
    KYMO_TRY(check_side(c, KYMO_B));
    KYMO_TRY(check_ranks(c));
    return kymo__comparison_make_tables(c, options);
}

kymo_status kymo_comparison_run(kymo_comparison *c, const struct kymo_compare_options *options)
{
    static const struct kymo_compare_options defaults;
    forget_results(c);
    const kymo_status status = run(c, options != NULL ? options : &defaults);
    if (status != KYMO_OK)
        forget_results(c);
    return status;
}

int kymo_comparison_is_damaged(const kymo_comparison *c)
{
    for (size_t i = 0; i < c->n_sources; i++)
        if (c->sources[i].recording != NULL && kymo_recording_is_damaged(c->sources[i].recording))
            return 1;
    return 0;
}

kymo_table *kymo_comparison_table(kymo_comparison *c, const char *name)
{
    for (size_t t = 0; t < KYMO__N_COMPARED; t++)
        if (c->tables[t] != NULL && strcmp(kymo_table_name(c->tables[t]), name) == 0)
            return c->tables[t];
    return NULL;
}
