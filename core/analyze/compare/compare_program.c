/*
 * Data of any run, even of an uninstrumented program: wall and CPU time measured by `marey run`, and self times of
 * functions, from samples or a call profile. Each run has one time for each.
 */
#include <string.h>

#include "analyze/calls/internal.h"
#include "analyze/compare/internal.h"
#include "analyze/samples/internal.h"
#include "read/internal.h"

static void set_time(struct marey__run_range *range, double ns)
{
    const float time = (float)ns;
    uint32_t scratch;
    marey__digest_make(&range->digest, &time, 1, &scratch);
    range->n_processes = 1;
    range->weight_ns = ns;
}

/* ---- wall and CPU time ---- */

/* The ranks that `marey run` waited for run in parallel: the slowest gives the run's wall time; CPU times add up. */
marey_status marey__runs_add_programs(struct marey__comparison *c, const struct marey__source *source)
{
    for (size_t i = 0; i < marey_recording_n_runs(source->recording); i++) {
        const struct marey_process *const ended = marey_recording_run(source->recording, i);
        struct marey__compared_run *const run =
            marey__runs_find(&c->sides[source->side], source->path, ended);
        MAREY__TRY_MEMORY(run != NULL &&
                          marey__run_range(run, MAREY__COMPARED_PROGRAM, MAREY__CPU_NUMBER) != NULL);
        struct marey__run_range *const times = run->of[MAREY__COMPARED_PROGRAM].list,
                                       *const wall = &times[MAREY__WALL_NUMBER],
                                       *const cpu = &times[MAREY__CPU_NUMBER];
        set_time(wall, MAREY__MAX(wall->weight_ns, (double)ended->wall_ns));
        set_time(cpu, cpu->weight_ns + (double)ended->cpu_ns);
        if (strcmp(ended->exit_status, "0") != 0)
            run->exit_status = ended->exit_status;
    }
    return MAREY_OK;
}

/* ---- functions ---- */

/* "name (file.py)", because lines change between versions, and folders between machines. */
static void put_name(struct marey__buf *text, const struct marey__call_function *function)
{
    const char *const file = marey__base_name(function->file);
    text->len = 0;
    marey__buf_puts(text, function->qualified[0] != '\0' ? function->qualified : function->name);
    if (file[0] != '\0' && strcmp(file, "~") != 0)
        marey__buf_printf(text, " (%s)", file);
}

static bool add_function(struct marey__comparison *c, struct marey__compared_run *run,
                         const struct marey__buf *text, double ns)
{
    const uint32_t name =
        marey__names_keep(&c->names[MAREY__COMPARED_FUNCTIONS], &c->texts, text->data, text->len);
    struct marey__run_range *const range =
        name != MAREY__NO_NAME ? marey__run_range(run, MAREY__COMPARED_FUNCTIONS, name) : NULL;
    if (range != NULL)
        set_time(range, range->weight_ns + ns);
    return range != NULL;
}

static bool add_tree(struct marey__comparison *c, struct marey__compared_run *run,
                     const struct marey__calls *calls, const char *filter)
{
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    double *const self_ns MAREY__FREED = marey__calloc(calls->n_functions + 1, sizeof *self_ns);
    bool done = true;
    if (self_ns == NULL)
        return false;
    for (size_t i = 1; i < calls->n_nodes; i++)
        self_ns[calls->nodes[i].function] += (double)calls->nodes[i].self_ns;
    for (size_t i = 1; done && i < calls->n_functions; i++) {
        if (self_ns[i] <= 0)
            continue;
        put_name(&text, &calls->functions[i]);
        done = !text.failed;
        if (done && marey__name_matches(filter, text.data, text.len))
            done = add_function(c, run, &text, self_ns[i]);
    }
    run->has_samples |= calls->from_samples;
    run->has_calls |= !calls->from_samples;
    return done;
}

/* Read the part of a recording with one run. */
static marey_status read_part(struct marey__comparison *c, struct marey__compared_run *run,
                              marey_recording *part, const struct marey__compare_options *options)
{
    const struct marey__samples_filter chosen = {.idle = options->idle, .startup = options->startup};
    struct marey__calls calls;
    MAREY_TRY(marey__samples_are_there(&part, 1)
                  ? marey__calls_read_samples(&calls, &part, 1, &chosen, false)
                  : marey__calls_read(&calls, &part, 1));
    const bool done = (options->startup || marey__calls_drop_startup(&calls)) &&
                      add_tree(c, run, &calls, options->filter);
    run->startup_ns += calls.startup_ns;
    run->idle_ns += calls.idle_ns;
    marey__calls_fini(&calls);
    return done ? MAREY_OK : marey__no_memory();
}

static marey_status read_run(struct marey__comparison *c, const struct marey__source *source,
                             size_t first, bool *is_done,
                             const struct marey__compare_options *options)
{
    const struct marey_process *const log = marey_recording_process(source->recording, first);
    const size_t n = marey_recording_n_logs(source->recording);
    marey_recording *part = NULL;
    bool *const keep MAREY__FREED = marey__calloc(n + 1, sizeof *keep);
    MAREY__TRY_MEMORY(keep != NULL);
    for (size_t i = first; i < n; i++)
        if (strcmp(marey_recording_process(source->recording, i)->run_id, log->run_id) == 0)
            keep[i] = is_done[i] = true;
    marey_status status = marey__recording_part(source->recording, keep, log->run_id, &part);
    if (status == MAREY_OK &&
        (marey__samples_are_there(&part, 1) || marey__calls_are_there(&part, 1))) {
        struct marey__compared_run *const run =
            marey__runs_find(&c->sides[source->side], source->path, log);
        status = run != NULL ? read_part(c, run, part, options) : marey__no_memory();
    }
    marey_recording_close(part);
    return status;
}

marey_status marey__runs_add_functions(struct marey__comparison *c,
                                       const struct marey__source *source,
                                       const struct marey__compare_options *options)
{
    marey_recording *const recording = source->recording;
    const size_t n = marey_recording_n_logs(recording);
    if (!marey__samples_are_there(&recording, 1) && !marey__calls_are_there(&recording, 1))
        return MAREY_OK;
    bool *const is_done MAREY__FREED = marey__calloc(n + 1, sizeof *is_done);
    MAREY__TRY_MEMORY(is_done != NULL);
    for (size_t i = 0; i < n; i++)
        if (!is_done[i])
            MAREY_TRY(read_run(c, source, i, is_done, options));
    return MAREY_OK;
}
