/* The comparison: opens the sources, reads processes in parallel, groups them into runs and makes the tables. */
#include <stdlib.h>
#include <string.h>

#include "analyze/compare/internal.h"
#include "analyze/walk/internal.h"
#include "import/internal.h"

/* ---- sources ---- */

static void comparison_fini(struct marey__comparison *c)
{
    marey__runs_fini(&c->sides[MAREY__A]);
    marey__runs_fini(&c->sides[MAREY__B]);
    for (size_t i = 0; i < MAREY__COUNT_OF(c->names); i++)
        marey__names_fini(&c->names[i]);
    for (size_t i = 0; i < c->n_sources; i++)
        marey_recording_close(c->sources[i].recording);
    marey__free(c->sources);
    marey__arena_fini(&c->texts);
}

static marey_status add_source(struct marey__comparison *c, const char *path, const char *side)
{
    struct marey__source source = {.path = path, .side = strcmp(side, "B") == 0};
    if (source.side == MAREY__A && strcmp(side, "A") != 0)
        return marey__fail(MAREY_EINVAL, "a comparison has the sides A and B, not '%s'", side);
    MAREY__TRY_MEMORY(marey__grow(&c->sources, &c->sources_cap, c->n_sources + 1, sizeof *c->sources));
    if (!marey__is_stats(path) || marey__import_knows(path)) /* some traces begin like stats */
        MAREY_TRY(marey_open(path, NULL, &source.recording));
    c->sources[c->n_sources++] = source;
    return MAREY_OK;
}

/* Groups are sides; without groups, the first path is A. */
static marey_status add_sources(struct marey__comparison *c, const struct marey__request *request)
{
    const char *const *const sides = request->options->groups;
    for (size_t i = 0; i < request->n; i++)
        MAREY_TRY(add_source(c, request->paths[i],
                             sides != NULL && sides[i] != NULL ? sides[i]
                             : i == 0                          ? "A"
                                                               : "B"));
    return MAREY_OK;
}

/* ---- parallel reading ---- */

struct task {
    const struct marey__source *source;
    size_t process;
    struct marey__process_times times;
};

struct jobs {
    struct task *tasks;
    size_t n_tasks;
    const struct marey__compare_options *options;
};

static marey_status read_nth(void *ctx, size_t i)
{
    const struct jobs *jobs = ctx;
    struct task *task = &jobs->tasks[i];
    return marey__process_times_read(&task->times, task->source->recording, task->process,
                                     jobs->options);
}

static marey_status list_tasks(struct jobs *jobs, const struct marey__comparison *c)
{
    size_t cap = 0;
    for (size_t i = 0; i < c->n_sources; i++)
        for (size_t p = 0; c->sources[i].recording != NULL &&
                           p < marey_recording_n_processes(c->sources[i].recording);
             p++)
            MAREY__TRY_MEMORY(MAREY__PUSH(jobs->tasks, jobs->n_tasks, cap,
                                          (struct task){.source = &c->sources[i], .process = p}));
    return MAREY_OK;
}

/* ---- processes to runs ---- */

/* In a run with iterations, ignore helpers without iterations, such as data loader workers. */
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

static marey_status take_tasks(struct marey__comparison *c, const struct jobs *jobs)
{
    for (size_t i = 0; i < jobs->n_tasks; i++) {
        const struct task *task = &jobs->tasks[i];
        const struct marey_process *process =
            marey_recording_process(task->source->recording, task->process);
        if (process->n_events == 0 || is_helper(jobs, task))
            continue;
        struct marey__compared_run *run =
            marey__runs_find(&c->sides[task->source->side], task->source->path, process);
        MAREY__TRY_MEMORY(run != NULL &&
                          marey__run_take(run, &c->names[MAREY__COMPARED_RANGES], &task->times));
        run->n_processes++;
    }
    return MAREY_OK;
}

static void jobs_fini(struct jobs *jobs)
{
    for (size_t i = 0; i < jobs->n_tasks; i++)
        marey__process_times_fini(&jobs->tasks[i].times);
    marey__free(jobs->tasks);
}

static marey_status read_recordings(struct marey__comparison *c,
                                    const struct marey__compare_options *options)
{
    struct jobs jobs MAREY__FINALLY(jobs_fini) = {.options = options};
    MAREY_TRY(list_tasks(&jobs, c));
    const struct marey__tasks tasks = {
        .run = read_nth,
        .ctx = &jobs,
        .n = jobs.n_tasks,
        .n_jobs = options->n_jobs,
        .progress = options->progress,
        .progress_ctx = options->progress_ctx,
    };
    MAREY_TRY(marey__tasks_run(&tasks));
    return take_tasks(c, &jobs);
}

/* Called after the events: a program is assigned to the run of its first process. */
static marey_status read_programs(struct marey__comparison *c,
                                  const struct marey__compare_options *options)
{
    for (size_t i = 0; i < c->n_sources; i++) {
        if (c->sources[i].recording == NULL)
            continue;
        MAREY_TRY(marey__runs_add_programs(c, &c->sources[i]));
        MAREY_TRY(marey__runs_add_functions(c, &c->sources[i], options));
    }
    return MAREY_OK;
}

static marey_status read_stats(struct marey__comparison *c,
                               const struct marey__compare_options *options)
{
    for (size_t i = 0; i < c->n_sources; i++)
        if (c->sources[i].recording == NULL)
            MAREY_TRY(marey__stats_read(c, &c->sources[i], options));
    return MAREY_OK;
}

/* ---- the comparison ---- */

static marey_status check_side(const struct marey__comparison *c, enum marey__compare_side side)
{
    const char *name = side == MAREY__A ? "A" : "B", *path = NULL;
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

static marey_status check_ranks(const struct marey__comparison *c)
{
    const struct marey__compared_run *first = &c->sides[MAREY__A].runs[0];
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

/* Names with fixed numbers, in order. */
static bool number_names(struct marey__comparison *c)
{
    return marey__names_number(&c->names[MAREY__COMPARED_ITERATION], MAREY__WHOLE,
                               strlen(MAREY__WHOLE)) == 0 &&
           marey__names_number(&c->names[MAREY__COMPARED_PROGRAM], MAREY__WALL,
                               strlen(MAREY__WALL)) == MAREY__WALL_NUMBER &&
           marey__names_number(&c->names[MAREY__COMPARED_PROGRAM], MAREY__CPU, strlen(MAREY__CPU)) ==
               MAREY__CPU_NUMBER;
}

static marey_status run(struct marey__comparison *c, const struct marey__compare_options *options)
{
    MAREY__TRY_MEMORY(number_names(c));
    MAREY_TRY(read_recordings(c, options));
    MAREY_TRY(read_programs(c, options));
    MAREY_TRY(read_stats(c, options));
    MAREY_TRY(check_side(c, MAREY__A));
    MAREY_TRY(check_side(c, MAREY__B));
    MAREY_TRY(check_ranks(c));
    return marey__comparison_make_tables(c, options);
}

/* "a.marey against b.marey" */
static marey_status set_title(marey_report *report, const struct marey__comparison *c)
{
    struct marey__buf title = {0};
    marey__buf_printf(&title, "%s against %s", c->sides[MAREY__A].runs[0].path,
                      c->sides[MAREY__B].runs[0].path);
    marey__buf_put(&title, "", 1);
    MAREY__TRY_MEMORY(!title.failed);
    marey__free(report->title);
    report->title = title.data;
    return MAREY_OK;
}

/* The default table of CSV: ranges; for runs without any, functions, or at least the program. */
static const char *csv_table(const marey_report *report)
{
    return marey_table_n_rows(report->tables[MAREY__COMPARED_RANGES]) != 0      ? "ranges"
           : marey_table_n_rows(report->tables[MAREY__COMPARED_FUNCTIONS]) != 0 ? "functions"
                                                                                : "program";
}

static marey_status make(marey_report *report, const struct marey__request *request)
{
    const char *const smallest = marey__setting(request, "smallest");
    const struct marey__compare_options options = {
        .smallest_percent = smallest != NULL ? strtod(smallest, NULL) : 0,
        .filter = marey__setting(request, "filter"),
        .skip = marey__setting_count(request, "skip"),
        .n_jobs = request->options->n_jobs,
        .progress = request->options->progress,
        .progress_ctx = request->options->progress_ctx,
        .idle = marey__setting_is_on(request, "idle"),
        .startup = marey__setting_is_on(request, "startup"),
    };
    struct marey__comparison c MAREY__FINALLY(comparison_fini) = {.tables = report->tables};
    MAREY_TRY(add_sources(&c, request));
    MAREY_TRY(run(&c, &options));
    MAREY_TRY(set_title(report, &c));
    for (size_t i = 0; i < c.n_sources; i++)
        report->is_damaged |=
            c.sources[i].recording != NULL && marey_recording_is_damaged(c.sources[i].recording);
    report->csv = csv_table(report);
    return MAREY_OK;
}

/* ---- registry entry ---- */

static const struct marey_setting settings[] = {
    {"smallest", MAREY_SETTING_NUMBER, "PERCENT",
     "a change that does not matter: where nothing is shown and the\n"
     "interval is narrower, the verdict is 'same' (default: 1%)"},
    {"skip", MAREY_SETTING_COUNT, "N",
     "leave the first N iterations of each run out; warm-up that\n"
     "the program marked is left out anyway"},
    {"filter", MAREY_SETTING_TEXT, "PATTERN",
     "only ranges and functions whose name has this word in it, or\n"
     "matches it where it has one of *?[",
     'f'},
    {"idle", MAREY_SETTING_FLAG, NULL,
     "sampled functions: all threads all the time, idle processes\n"
     "too (default: without, and a note has their time)"},
    {"startup", MAREY_SETTING_FLAG, NULL,
     "functions: imports at start-up as well (default: without,\n"
     "and a note has their time)"},
};

static const struct marey__report_format formats[] = {
    {"markdown", marey__compare_markdown}, {"html", marey__page_compare}, {0}};

const struct marey__analysis marey__analysis_compare = {
    .about = {.name = "compare",
              .help = "whether B is faster than A, by how much, with intervals and verdicts",
              .needs =
                  "recordings of two versions of a program, best several of each as `marey run "
                  "--repeat` makes them, or stats of a Stopwatch",
              MAREY__SETTINGS(settings),
              MAREY__TABLES(marey__compare_tables),
              .csv = "ranges",
              .command = "compare"},
    .reads_paths = true,
    .make = make,
    .text = marey__compare_text,
    .json = marey__compare_json,
    .formats = formats,
};
