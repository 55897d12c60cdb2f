/* Recordings named on the command line. */
#include "lib/cli.h"

static uint32_t jobs;

void cli_use_jobs(uint32_t n_jobs)
{
    jobs = n_jobs;
}

static bool open_all(struct cli_recordings *recordings, char **paths, int n, bool keep_arguments)
{
    const struct marey_import_options wants = {.keep_arguments = keep_arguments,
                                               .n_jobs = jobs,
                                               .progress = cli_progress,
                                               .progress_ctx = (void *)"importing"};
    *recordings = (struct cli_recordings){.list = calloc((size_t)n, sizeof recordings->list[0])};
    if (recordings->list == NULL)
        return cli_refuse("out of memory");
    for (int i = 0; i < n; i++) {
        const marey_status status = marey_open(paths[i], &wants, &recordings->list[i]);
        cli_progress_end();
        if (status != MAREY_OK) {
            cli_fail("%s", marey_last_error());
            cli_close(recordings);
            return false;
        }
        recordings->n++;
    }
    return true;
}

bool cli_open(struct cli_recordings *recordings, char **paths, int n)
{
    return open_all(recordings, paths, n, false);
}

bool cli_open_whole(struct cli_recordings *recordings, char **paths, int n)
{
    return open_all(recordings, paths, n, true);
}

void cli_print_notes(const marey_recording *recording)
{
    for (size_t i = 0; i < marey_recording_n_processes(recording); i++) {
        const struct marey_process *process = marey_recording_process(recording, i);
        for (const char *line = process->note; process->source[0] != '\0' && *line != '\0';) {
            const size_t len = strcspn(line, "\n");
            cli_say("%.*s", (int)len, line);
            line += len + (line[len] == '\n');
        }
    }
}

int cli_report_damage(const struct cli_recordings *recordings, int status)
{
    for (size_t i = 0; i < recordings->n && status == CLI_FINE; i++)
        if (marey_recording_is_damaged(recordings->list[i]))
            status = cli_fail("%s is damaged; only the readable part is included",
                              marey_recording_name(recordings->list[i]));
    return status;
}

void cli_close(struct cli_recordings *recordings)
{
    for (size_t i = 0; i < recordings->n; i++)
        marey_recording_close(recordings->list[i]);
    for (size_t i = 0; recordings->wholes != NULL && i < recordings->n; i++)
        marey_recording_close(recordings->wholes[i]);
    free(recordings->list);
    free(recordings->wholes);
    *recordings = (struct cli_recordings){0};
}

bool cli_select_process(struct cli_recordings *recordings, const char *process)
{
    if (process == NULL)
        return true;
    recordings->wholes = recordings->list;
    recordings->list = calloc(recordings->n, sizeof recordings->list[0]);
    bool is_done = recordings->list != NULL;
    if (!is_done)
        cli_fail("out of memory");
    for (size_t i = 0; is_done && i < recordings->n; i++) {
        is_done = marey_recording_select(recordings->wholes[i], process, &recordings->list[i]) ==
                  MAREY_OK;
        if (!is_done)
            cli_fail("%s", marey_last_error());
    }
    if (!is_done && recordings->list == NULL)
        recordings->n = 0;
    if (!is_done)
        cli_close(recordings);
    return is_done;
}

static bool has_events(const marey_recording *recording)
{
    for (size_t i = 0; i < marey_recording_n_processes(recording); i++)
        if (marey_recording_process(recording, i)->n_events != 0)
            return true;
    return false;
}

void cli_print_runs(const struct cli_recordings *recordings, FILE *out)
{
    for (size_t r = 0; r < recordings->n; r++) {
        const struct marey_process *run;
        if (has_events(recordings->list[r]))
            continue;
        for (size_t i = 0; (run = marey_recording_run(recordings->list[r], i)) != NULL; i++) {
            char wall[32], cpu[32], command[256];
            cli_quote(run->command, command, sizeof command);
            fprintf(out, "run: wall time %s, CPU time %s, %s%s: %s\n",
                    marey_text_number((double)run->wall_ns, MAREY_UNIT_NS, wall, sizeof wall),
                    marey_text_number((double)run->cpu_ns, MAREY_UNIT_NS, cpu, sizeof cpu),
                    strncmp(run->exit_status, "signal", 6) == 0 ? "" : "exit status ",
                    run->exit_status, command);
        }
    }
}
