/*
 * What any run has, also that of a program which was not changed: wall and CPU time as `kymo run` measured them, and the self
 * time of its functions, by samples or by a call profile. A run has one time for each.
 */
#include <string.h>

#include "analyze/calls.h"
#include "analyze/compare_internal.h"
#include "read/read_internal.h"
#include <kymo/samples_report.h>

static kymo_status no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory to compare");
}

static void set_time(struct kymo__run_region *region, double ns)
{
    const float time = (float)ns;
    uint32_t scratch;
    kymo__digest_make(&region->digest, &time, 1, &scratch);
    region->n_processes = 1;
    region->weight_ns = ns;
}

/* ---- wall and CPU time ---- */

/* Ranks that were waited for one by one run at the same time: the slowest is the run's wall time, CPU times add up. */
kymo_status kymo__runs_add_programs(struct kymo__compared_runs *side,
                                    const struct kymo__source *source)
{
    for (size_t i = 0; i < kymo_recording_n_runs(source->recording); i++) {
        const struct kymo_process *const ended = kymo_recording_run(source->recording, i);
        struct kymo__compared_run *const run = kymo__runs_find(side, source->path, ended);
        if (run == NULL)
            return no_memory();
        set_time(&run->wall, KYMO__MAX(run->wall.weight_ns, (double)ended->wall_ns));
        set_time(&run->cpu, run->cpu.weight_ns + (double)ended->cpu_ns);
        if (strcmp(ended->exit_status, "0") != 0)
            run->exit_status = ended->exit_status;
    }
    return KYMO_OK;
}

/* ---- functions ---- */

/* "name (file.py)": lines move from version to version, and folders from machine to machine. */
static void put_name(struct kymo__buf *text, const struct kymo__call_function *function)
{
    const char *const slash = strrchr(function->file, '/');
    const char *const file = slash != NULL ? slash + 1 : function->file;
    text->len = 0;
    kymo__buf_puts(text, function->qualified[0] != '\0' ? function->qualified : function->name);
    if (file[0] != '\0' && strcmp(file, "~") != 0)
        kymo__buf_printf(text, " (%s)", file);
}

static bool add_function(kymo_comparison *c, struct kymo__compared_run *run,
                         const struct kymo__buf *text, double ns)
{
    const char *const kept = kymo__arena_text(&c->texts, text->data, text->len);
    const uint32_t name =
        kept != NULL ? kymo__names_number(&c->function_names, kept, text->len) : KYMO__NO_NAME;
    if (name == KYMO__NO_NAME ||
        !kymo__grow(&run->functions, &run->functions_cap, (size_t)name + 1, sizeof *run->functions))
        return false;
    while (run->n_functions <= name)
        run->functions[run->n_functions++] = (struct kymo__run_region){0};
    set_time(&run->functions[name], run->functions[name].weight_ns + ns);
    return true;
}

static bool add_tree(kymo_comparison *c, struct kymo__compared_run *run,
                     const struct kymo__calls *calls, const char *filter)
{
    struct kymo__buf text = {0};
    double *const self_ns = kymo__calloc(calls->n_functions + 1, sizeof *self_ns);
    bool done = self_ns != NULL;
    for (size_t i = 1; done && i < calls->n_nodes; i++)
        self_ns[calls->nodes[i].function] += (double)calls->nodes[i].self_ns;
    for (size_t i = 1; done && i < calls->n_functions; i++) {
        if (self_ns[i] <= 0)
            continue;
        put_name(&text, &calls->functions[i]);
        done = !text.failed;
        if (done && kymo__name_matches(filter, text.data, text.len))
            done = add_function(c, run, &text, self_ns[i]);
    }
    run->has_samples |= calls->from_samples;
    run->has_calls |= !calls->from_samples;
    kymo__buf_fini(&text);
    kymo__free(self_ns);
    return done;
}

/* A part of the recording that has one run in it. */
static kymo_status read_part(kymo_comparison *c, struct kymo__compared_run *run,
                             kymo_recording *part, const struct kymo_compare_options *options)
{
    const struct kymo_samples_filter chosen = {.idle = options->idle, .startup = options->startup};
    struct kymo__calls calls;
    if (kymo_samples_are_there(&part, 1))
        KYMO_TRY(kymo__calls_read_samples(&calls, &part, 1, &chosen, false));
    else if (kymo__calls_are_there(&part, 1))
        KYMO_TRY(kymo__calls_read(&calls, &part, 1));
    else
        return KYMO_OK;
    const bool done = (options->startup || kymo__calls_drop_startup(&calls)) &&
                      add_tree(c, run, &calls, options->filter);
    run->startup_ns += calls.startup_ns;
    run->idle_ns += calls.idle_ns;
    kymo__calls_fini(&calls);
    return done ? KYMO_OK : no_memory();
}

static kymo_status read_run(kymo_comparison *c, const struct kymo__source *source, size_t first,
                            bool *is_done, const struct kymo_compare_options *options)
{
    const struct kymo_process *const log = kymo_recording_process(source->recording, first);
    const size_t n = kymo_recording_n_logs(source->recording);
    kymo_recording *part = NULL;
    bool *const keep = kymo__calloc(n + 1, sizeof *keep);
    if (keep == NULL)
        return no_memory();
    for (size_t i = first; i < n; i++)
        if (strcmp(kymo_recording_process(source->recording, i)->run_id, log->run_id) == 0)
            keep[i] = is_done[i] = true;
    kymo_status status = kymo__recording_part(source->recording, keep, log->run_id, &part);
    if (status == KYMO_OK && (kymo_samples_are_there(&part, 1) || kymo__calls_are_there(&part, 1))) {
        struct kymo__compared_run *const run =
            kymo__runs_find(&c->sides[source->side], source->path, log);
        status = run != NULL ? read_part(c, run, part, options) : no_memory();
    }
    kymo_recording_close(part);
    kymo__free(keep);
    return status;
}

kymo_status kymo__runs_add_functions(kymo_comparison *c, const struct kymo__source *source,
                                     const struct kymo_compare_options *options)
{
    kymo_recording *const recording = source->recording;
    const size_t n = kymo_recording_n_logs(recording);
    if (!kymo_samples_are_there(&recording, 1) && !kymo__calls_are_there(&recording, 1))
        return KYMO_OK;
    bool *const is_done = kymo__calloc(n + 1, sizeof *is_done);
    kymo_status status = is_done != NULL ? KYMO_OK : no_memory();
    for (size_t i = 0; status == KYMO_OK && i < n; i++)
        if (!is_done[i])
            status = read_run(c, source, i, is_done, options);
    kymo__free(is_done);
    return status;
}
