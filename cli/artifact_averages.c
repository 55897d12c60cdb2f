/* marey artifacts: the table of operators, and stacks for flame graphs. */
#include "artifacts.h"

/* The operators of the trace; false, with a sentence said, when they cannot be had. */
static bool has_operators(const struct artifacts *job)
{
    char depth[32], sort[64];
    snprintf(depth, sizeof depth, "stack-depth=%u", (unsigned)job->stack_depth);
    snprintf(sort, sizeof sort, "sort=%s", job->sort != NULL ? job->sort : "");
    const char *const settings[] = {depth, job->sort != NULL ? sort : NULL, NULL};
    const struct marey_report_options wants = {.settings = settings};
    if (*job->operators == NULL &&
        marey_operators_report(job->trace, &wants, job->operators) != MAREY_OK)
        cli_fail("%s: %s", job->source, marey_last_error());
    return *job->operators != NULL;
}

/* ---- averages ---- */

static marey_status print_text(void *ctx, FILE *out)
{
    const struct artifacts *job = ctx;
    const struct marey_write_options wants = {.limit = job->n_rows};
    return marey_report_write(*job->operators, "text", &wants, out);
}

static marey_status print_csv(void *ctx, FILE *out)
{
    const struct artifacts *job = ctx;
    return marey_report_write(*job->operators, "csv", NULL, out);
}

static marey_status print_json(void *ctx, FILE *out)
{
    const struct artifacts *job = ctx;
    return marey_present_json(marey_report_table(*job->operators, "operators"), out);
}

static int make_averages(const struct artifacts *job)
{
    static const struct {
        const char *name;
        marey_status (*print)(void *ctx, FILE *out);
    } files[] = {
        {"key_averages.txt", print_text},
        {"key_averages.csv", print_csv},
        {"key_averages.json", print_json},
    };
    if (!has_operators(job))
        return CLI_BAD;
    int status = CLI_FINE;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (artifacts_print(job, files[i].name, files[i].print, (void *)job) != CLI_FINE)
            status = CLI_BAD;
    /* What documentation of the profiler calls it. */
    if (job->rank == 0 &&
        artifacts_print_plain(job, files[0].name, files[0].print, (void *)job) != CLI_FINE)
        status = CLI_BAD;
    return status;
}

const struct artifact artifact_averages = {.name = "averages", .reads = true, .make = make_averages};

/* ---- stacks ---- */

static marey_status print_stacks(void *ctx, FILE *out)
{
    const struct artifacts *job = ctx;
    return marey_operators_stacks(*job->operators, job->metric, out);
}

static bool has_stacks(const struct artifacts *job)
{
    return job->facts.has_stacks;
}

static int make_stacks(const struct artifacts *job)
{
    if (!has_operators(job))
        return CLI_BAD;
    return artifacts_print(job, "stacks.txt", print_stacks, (void *)job);
}

const struct artifact artifact_stacks = {
    .name = "stacks",
    .needs = "stacks (with_stack=True, and torch's _ExperimentalConfig(verbose=True))",
    .reads = true,
    .is_there = has_stacks,
    .make = make_stacks,
};
