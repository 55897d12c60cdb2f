/* Creates a sampler from options and runs it in a thread. */
#include "sampling.h"

/* ---- creating ---- */

/* Whether a process can be read; if not, prints the reason. */
static bool can_read(const struct marey_sampler_options *options, pid_t pid)
{
    struct marey_sampler_options one = *options;
    marey_sampler *sampler = NULL;
    one.path = NULL;
    one.pids = &pid;
    one.n_pids = 1;
    const marey_status status = marey_sampler_create(&one, &sampler);
    cli_status(status);
    marey_sampler_destroy(sampler);
    return status == MAREY_OK;
}

static marey_sampler *create(const struct marey_sampler_options *options)
{
    marey_sampler *sampler = NULL;
    return marey_sampler_create(options, &sampler) == MAREY_OK ? sampler : NULL;
}

marey_sampler *sampling_create(struct marey_sampler_options *options, const pid_t *pids, size_t n,
                               size_t *n_failed)
{
    *n_failed = 0;
    options->pids = pids;
    options->n_pids = n;
    marey_sampler *sampler = create(options);
    if (sampler != NULL)
        return sampler;
    pid_t *readable CLI_FREED = n > 1 ? calloc(n, sizeof *readable) : NULL;
    if (readable == NULL) {
        *n_failed = n;
        cli_say("%s", marey_last_error());
        return NULL;
    }
    options->pids = readable;
    options->n_pids = 0;
    for (size_t i = 0; i < n; i++)
        if (can_read(options, pids[i]))
            readable[options->n_pids++] = pids[i];
    *n_failed = n - options->n_pids;
    if (options->n_pids != 0 && (sampler = create(options)) == NULL)
        cli_say("%s", marey_last_error());
    return sampler;
}

/* ---- running ---- */

static void *run(void *ctx)
{
    struct sampling *sampling = ctx;
    sampling->status = marey_sampler_run(sampling->sampler);
    if (sampling->status != MAREY_OK) /* the error message belongs to this thread */
        snprintf(sampling->error, sizeof sampling->error, "%s", marey_last_error());
    return NULL;
}

bool sampling_start(struct sampling *sampling, marey_sampler *sampler)
{
    *sampling = (struct sampling){.sampler = sampler};
    const int error = pthread_create(&sampling->thread, NULL, run, sampling);
    if (error != 0)
        cli_say("cannot start the sampling thread: %s", strerror(error));
    else
        pthread_setname_np(sampling->thread, "marey-sampler");
    sampling->is_running = error == 0;
    return sampling->is_running;
}

bool sampling_goes_on(struct sampling *sampling)
{
    if (sampling->is_running && pthread_tryjoin_np(sampling->thread, NULL) == 0)
        sampling->is_running = false;
    return sampling->is_running;
}

void sampling_stop(struct sampling *sampling)
{
    if (!sampling->is_running)
        return;
    marey_sampler_stop(sampling->sampler);
    pthread_join(sampling->thread, NULL);
    sampling->is_running = false;
}

/* ---- results ---- */

marey_status sampling_print_stacks(const struct marey_sampler_stacks *stacks, bool as_json,
                                   const char *color, FILE *out)
{
    const struct marey_text_options text = {.width = cli_terminal_width(out),
                                            .color = cli_wants_color(out, color)};
    marey_stack_groups *groups;
    MAREY_TRY(marey_stack_groups_create(stacks, &groups));
    const marey_status status =
        as_json ? marey_stacks_json(groups, out) : marey_stacks_text(groups, &text, out);
    marey_stack_groups_destroy(groups);
    return status;
}

marey_status sampling_print_top(marey_recording *recording)
{
    const struct marey_write_options options = {
        .text = {.width = cli_terminal_width(stderr), .color = cli_wants_color(stderr, "auto")},
        .is_short = 1};
    marey_report *report CLI_FINALLY(cli_destroy_report) = NULL;
    MAREY_TRY(marey_report_create("samples", &recording, 1, NULL, &report));
    return marey_report_write(report, "text", &options, stderr);
}

void sampling_summarize(const char *path)
{
    char quoted[4096];
    marey_recording *recording = NULL;
    marey_status status = marey_recording_open(path, &recording);
    if (status == MAREY_OK)
        status = sampling_print_top(recording);
    cli_status(status);
    marey_recording_close(recording);
    cli_quote(cli_short_path(path), quoted, sizeof quoted);
    cli_say("next: marey report %s --samples", quoted);
}
