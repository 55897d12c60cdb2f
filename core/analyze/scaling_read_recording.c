/*
 * Which processes of a recording are a run. Processes of one run id and world size are; but where a rank has several that
 * train, one was started after the other, as repeats under one name and restarts are, and each is of a run of its own.
 * Who starts each rank by hand gives each an id of its own: ids of one rank alone are taken for parts of one run.
 * Files of traces have a process for each window of a profiler: those of one rank and pid are of one run.
 */
#include <string.h>
#include <sys/stat.h>

#include "analyze/scaling_read.h"
#include "analyze/tasks.h"
#include "read/read_internal.h"
#include <kymo/import.h>

/* Sentences about one recording that are passed on. */
enum { MAX_WARNINGS = 4 };

struct runs {
    const struct kymo__scaling_reading *reading;
    const char *path;
    kymo_recording *recording;
    bool is_checked;                      /* the reader has told what is odd about its ranks */
    struct kymo__scaling_worker *workers; /* by process */
    size_t n;
    struct kymo__scaling_group *groups;
    size_t n_groups, groups_cap;
};

static kymo_status no_memory(const char *path)
{
    return kymo__fail(KYMO_ENOMEM, "no memory for the runs of %s", path);
}

/* ---- who trains ---- */

static kymo_status read_nth(void *ctx, size_t i)
{
    struct runs *runs = ctx;
    struct kymo__scaling_worker *worker = &runs->workers[i];
    if (worker->process->worker >= 0)
        return KYMO_OK; /* it loads data */
    KYMO_TRY(kymo__scaling_steps_read(&worker->steps, runs->recording, i));
    worker->trains = worker->steps.n_seen != 0 || worker->steps.n_epochs != 0;
    return KYMO_OK;
}

static kymo_status read_processes(struct runs *runs)
{
    const struct kymo__tasks tasks = {
        .run = read_nth, .ctx = runs, .n = runs->n, .n_jobs = runs->reading->n_jobs};
    for (size_t i = 0; i < runs->n; i++)
        runs->workers[i].process = kymo_recording_process(runs->recording, i);
    return kymo__tasks_run(&tasks);
}

/* ---- groups ---- */

/* The id of the run that a process is of; "" for all ids that have one rank of several alone. */
static const char *find_id(const struct runs *runs, size_t i)
{
    const struct kymo_process *own = runs->workers[i].process;
    if (own->rank < 0 || own->world_size < 2)
        return own->run_id;
    for (size_t j = 0; j < runs->n; j++)
        if (runs->workers[j].trains && runs->workers[j].process->rank != own->rank &&
            strcmp(runs->workers[j].process->run_id, own->run_id) == 0)
            return own->run_id;
    return "";
}

static bool is_same_run(const struct kymo__scaling_worker *a, const struct kymo__scaling_worker *b)
{
    return a->process->world_size == b->process->world_size && strcmp(a->run_id, b->run_id) == 0;
}

/* The how manieth of its rank that trains in its run. Processes stand by rank, then start. */
static uint32_t repeat_of(const struct runs *runs, size_t i)
{
    const struct kymo__scaling_worker *worker = &runs->workers[i];
    const struct kymo_process *own = worker->process;
    if (own->rank < 0)
        return 0;
    for (size_t j = i; j-- > 0 && runs->workers[j].process->rank == own->rank;) {
        const struct kymo__scaling_worker *other = &runs->workers[j];
        if (!other->trains || !is_same_run(other, worker))
            continue;
        const bool is_window = own->source[0] != '\0' && other->process->pid == own->pid &&
                               strcmp(other->process->host, own->host) == 0;
        return runs->groups[other->group].repeat + !is_window;
    }
    return 0;
}

static bool put_into_group(struct runs *runs, size_t i)
{
    struct kymo__scaling_worker *worker = &runs->workers[i];
    const struct kymo_process *p = worker->process;
    worker->run_id = find_id(runs, i);
    const uint32_t repeat = repeat_of(runs, i);
    for (worker->group = 0; worker->group < runs->n_groups; worker->group++) {
        struct kymo__scaling_group *group = &runs->groups[worker->group];
        if (group->repeat != repeat || group->world_size != p->world_size ||
            strcmp(group->run_id, worker->run_id) != 0)
            continue;
        group->start_unix_ns = KYMO__MIN(group->start_unix_ns, p->start_unix_ns);
        group->n_workers++;
        return true;
    }
    if (!kymo__grow(&runs->groups, &runs->groups_cap, runs->n_groups + 1, sizeof *runs->groups))
        return false;
    runs->groups[runs->n_groups++] = (struct kymo__scaling_group){.run_id = worker->run_id,
                                                                  .world_size = p->world_size,
                                                                  .repeat = repeat,
                                                                  .start_unix_ns = p->start_unix_ns,
                                                                  .n_workers = 1};
    return true;
}

/* The group that started first of those from `start_unix_ns` on and behind `last`; n_groups for none. */
static size_t next_group(const struct runs *runs, const bool *is_done)
{
    size_t next = runs->n_groups;
    for (size_t i = 0; i < runs->n_groups; i++)
        if (!is_done[i] && (next == runs->n_groups ||
                            runs->groups[i].start_unix_ns < runs->groups[next].start_unix_ns))
            next = i;
    return next;
}

/* ---- a group as a recording ---- */

/* Who belongs to it: those that train in it, the others of its run id, and who measured. */
static void choose(const struct runs *runs, size_t group, bool *keep)
{
    for (size_t i = 0; i < kymo_recording_n_logs(runs->recording); i++)
        keep[i] = i >= runs->n ||
                  (runs->workers[i].trains
                       ? runs->workers[i].group == group
                       : strcmp(runs->workers[i].process->run_id, runs->groups[group].run_id) == 0);
}

static kymo_status read_part(const struct runs *runs, size_t group, const bool *keep,
                             kymo_recording *part, struct kymo__scaling_source *source)
{
    size_t n = 0, *indices = kymo__calloc(runs->n + 1, sizeof *indices);
    source->workers = kymo__calloc(runs->n + 1, sizeof(void *));
    kymo_status status = KYMO_OK;
    if (indices == NULL || source->workers == NULL)
        status = no_memory(runs->path);
    for (size_t i = 0; status == KYMO_OK && i < runs->n; i++) {
        if (runs->workers[i].trains && runs->workers[i].group == group) {
            source->workers[source->n] = &runs->workers[i];
            indices[source->n++] = n;
        }
        n += keep[i];
    }
    source->recording = part;
    source->indices = indices;
    if (status == KYMO_OK)
        status = kymo__scaling_read_run(source);
    kymo__free(indices);
    kymo__free((void *)(uintptr_t)source->workers);
    return status;
}

static kymo_status read_group(const struct runs *runs, size_t group)
{
    const size_t n_logs = kymo_recording_n_logs(runs->recording);
    struct kymo__scaling_source source = {.reading = runs->reading,
                                          .path = runs->path,
                                          .is_alone = runs->n_groups == 1,
                                          .is_checked = runs->is_checked};
    kymo_recording *part = NULL;
    bool *keep = kymo__calloc(n_logs + 1, sizeof *keep);
    if (keep == NULL)
        return no_memory(runs->path);
    choose(runs, group, keep);
    kymo_status status =
        kymo__recording_part(runs->recording, keep, runs->groups[group].run_id, &part);
    if (status == KYMO_OK)
        status = read_part(runs, group, keep, part, &source);
    kymo_recording_close(part);
    kymo__free(keep);
    return status;
}

/* ---- what is to be said ---- */

static kymo_status note_warnings(const struct runs *runs)
{
    size_t n = 0;
    for (const char *text; (text = kymo_recording_warning(runs->recording, n)) != NULL; n++)
        if (n < MAX_WARNINGS)
            KYMO_TRY(kymo__scaling_read_note(runs->reading, "%s: %s", runs->path, text));
    if (n > MAX_WARNINGS)
        KYMO_TRY(kymo__scaling_read_note(runs->reading,
                                         "%s: %zu more such sentences are in `kymo report`.",
                                         runs->path, n - MAX_WARNINGS));
    return KYMO_OK;
}

static kymo_status note_groups(const struct runs *runs)
{
    size_t n_repeated = 0;
    for (size_t i = 0; i < runs->n_groups; i++)
        n_repeated += runs->groups[i].repeat != 0;
    if (n_repeated == 0)
        return KYMO_OK;
    return kymo__scaling_read_note(runs->reading,
                                   "%s: some ranks are there several times under one run id; each "
                                   "time is taken as a run of its own.",
                                   runs->path);
}

/* ---- all ---- */

static kymo_status read_groups(const struct runs *runs)
{
    bool *is_done = kymo__calloc(runs->n_groups + 1, sizeof *is_done);
    kymo_status status = is_done != NULL ? KYMO_OK : no_memory(runs->path);
    for (size_t i = 0; status == KYMO_OK && i < runs->n_groups; i++) {
        const size_t group = next_group(runs, is_done);
        is_done[group] = true;
        status = read_group(runs, group);
    }
    kymo__free(is_done);
    return status;
}

static kymo_status read_runs(struct runs *runs)
{
    runs->n = kymo_recording_n_processes(runs->recording);
    runs->workers = kymo__calloc(runs->n + 1, sizeof *runs->workers);
    if (runs->workers == NULL)
        return no_memory(runs->path);
    KYMO_TRY(read_processes(runs));
    for (size_t i = 0; i < runs->n; i++)
        if (runs->workers[i].trains && !put_into_group(runs, i))
            return no_memory(runs->path);
    if (runs->n_groups == 0)
        return kymo__fail(
            KYMO_EFORMAT,
            "%s tells of no epochs and no steps: kymo.TrainingMonitor, the callbacks of "
            "kymo.hf and kymo.lightning, kymo.epoch() and kymo.iteration() do, and "
            "step() of torch.profiler in traces",
            runs->path);
    KYMO_TRY(note_warnings(runs));
    KYMO_TRY(note_groups(runs));
    return read_groups(runs);
}

kymo_status kymo__scaling_read_recording(const struct kymo__scaling_reading *reading,
                                         const char *path, bool is_trace)
{
    const struct kymo_import_options options = {.from = is_trace ? "kineto" : NULL,
                                                .n_jobs = reading->n_jobs};
    struct stat info;
    struct runs runs = {.reading = reading,
                        .path = path,
                        .is_checked = !is_trace && stat(path, &info) == 0 && S_ISDIR(info.st_mode)};
    KYMO_TRY(is_trace ? kymo_open(path, &options, &runs.recording)
                      : kymo_recording_open(path, &runs.recording));
    const kymo_status status = read_runs(&runs);
    for (size_t i = 0; runs.workers != NULL && i < runs.n; i++)
        kymo__scaling_steps_fini(&runs.workers[i].steps);
    kymo__free(runs.workers);
    kymo__free(runs.groups);
    kymo_recording_close(runs.recording);
    return status;
}
