/*
 * Which processes of a recording are a run. Processes of one run id and world size are; but where a rank has several that
 * train, one was started after the other, as repeats under one name and restarts are, and each is of a run of its own.
 * Who starts each rank by hand gives each an id of its own: ids of one rank alone are taken for parts of one run.
 * Files of traces have a process for each window of a profiler: those of one rank and pid are of one run.
 */
#include <string.h>
#include <sys/stat.h>

#include "analyze/scaling/internal.h"
#include "analyze/walk/internal.h"
#include "read/internal.h"
#include <marey/import.h>

/* Sentences about one recording that are passed on. */
enum { MAX_WARNINGS = 4 };

struct runs {
    const struct marey__scaling_reading *reading;
    const char *path;
    marey_recording *recording;
    bool is_checked;                       /* the reader has told what is odd about its ranks */
    struct marey__scaling_worker *workers; /* by process */
    size_t n;
    struct marey__scaling_group *groups;
    size_t n_groups, groups_cap;
};

/* ---- who trains ---- */

static marey_status read_nth(void *ctx, size_t i)
{
    struct runs *runs = ctx;
    struct marey__scaling_worker *worker = &runs->workers[i];
    if (worker->process->worker >= 0)
        return MAREY_OK; /* it loads data */
    MAREY_TRY(marey__scaling_steps_read(&worker->steps, runs->recording, i));
    worker->trains = worker->steps.n_seen != 0 || worker->steps.n_epochs != 0;
    return MAREY_OK;
}

static marey_status read_processes(struct runs *runs)
{
    const struct marey__tasks tasks = {
        .run = read_nth, .ctx = runs, .n = runs->n, .n_jobs = runs->reading->n_jobs};
    for (size_t i = 0; i < runs->n; i++)
        runs->workers[i].process = marey_recording_process(runs->recording, i);
    return marey__tasks_run(&tasks);
}

/* ---- groups ---- */

/* The id of the run that a process is of; "" for all ids that have one rank of several alone. */
static const char *find_id(const struct runs *runs, size_t i)
{
    const struct marey_process *own = runs->workers[i].process;
    if (own->rank < 0 || own->world_size < 2)
        return own->run_id;
    for (size_t j = 0; j < runs->n; j++)
        if (runs->workers[j].trains && runs->workers[j].process->rank != own->rank &&
            strcmp(runs->workers[j].process->run_id, own->run_id) == 0)
            return own->run_id;
    return "";
}

static bool is_same_run(const struct marey__scaling_worker *a, const struct marey__scaling_worker *b)
{
    return a->process->world_size == b->process->world_size && strcmp(a->run_id, b->run_id) == 0;
}

/* The how manieth of its rank that trains in its run. Processes stand by rank, then start. */
static uint32_t repeat_of(const struct runs *runs, size_t i)
{
    const struct marey__scaling_worker *worker = &runs->workers[i];
    const struct marey_process *own = worker->process;
    if (own->rank < 0)
        return 0;
    for (size_t j = i; j-- > 0 && runs->workers[j].process->rank == own->rank;) {
        const struct marey__scaling_worker *other = &runs->workers[j];
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
    struct marey__scaling_worker *worker = &runs->workers[i];
    const struct marey_process *p = worker->process;
    worker->run_id = find_id(runs, i);
    const uint32_t repeat = repeat_of(runs, i);
    for (worker->group = 0; worker->group < runs->n_groups; worker->group++) {
        struct marey__scaling_group *group = &runs->groups[worker->group];
        if (group->repeat != repeat || group->world_size != p->world_size ||
            strcmp(group->run_id, worker->run_id) != 0)
            continue;
        group->start_unix_ns = MAREY__MIN(group->start_unix_ns, p->start_unix_ns);
        group->n_workers++;
        return true;
    }
    return MAREY__PUSH(runs->groups, runs->n_groups, runs->groups_cap,
                       (struct marey__scaling_group){.run_id = worker->run_id,
                                                     .world_size = p->world_size,
                                                     .repeat = repeat,
                                                     .start_unix_ns = p->start_unix_ns,
                                                     .n_workers = 1});
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
    for (size_t i = 0; i < marey_recording_n_logs(runs->recording); i++)
        keep[i] = i >= runs->n ||
                  (runs->workers[i].trains
                       ? runs->workers[i].group == group
                       : strcmp(runs->workers[i].process->run_id, runs->groups[group].run_id) == 0);
}

static marey_status read_part(const struct runs *runs, size_t group, const bool *keep,
                              marey_recording *part, struct marey__scaling_source *source)
{
    size_t n = 0, *indices = marey__calloc(runs->n + 1, sizeof *indices);
    source->workers = marey__calloc(runs->n + 1, sizeof(void *));
    marey_status status = MAREY_OK;
    if (indices == NULL || source->workers == NULL)
        status = marey__no_memory();
    for (size_t i = 0; status == MAREY_OK && i < runs->n; i++) {
        if (runs->workers[i].trains && runs->workers[i].group == group) {
            source->workers[source->n] = &runs->workers[i];
            indices[source->n++] = n;
        }
        n += keep[i];
    }
    source->recording = part;
    source->indices = indices;
    if (status == MAREY_OK)
        status = marey__scaling_read_run(source);
    marey__free(indices);
    marey__free((void *)(uintptr_t)source->workers);
    return status;
}

static marey_status read_group(const struct runs *runs, size_t group)
{
    const size_t n_logs = marey_recording_n_logs(runs->recording);
    struct marey__scaling_source source = {.reading = runs->reading,
                                           .path = runs->path,
                                           .is_alone = runs->n_groups == 1,
                                           .is_checked = runs->is_checked};
    marey_recording *part = NULL;
    bool *keep = marey__calloc(n_logs + 1, sizeof *keep);
    MAREY__TRY_MEMORY(keep != NULL);
    choose(runs, group, keep);
    marey_status status =
        marey__recording_part(runs->recording, keep, runs->groups[group].run_id, &part);
    if (status == MAREY_OK)
        status = read_part(runs, group, keep, part, &source);
    marey_recording_close(part);
    marey__free(keep);
    return status;
}

/* ---- what is to be said ---- */

static marey_status note_warnings(const struct runs *runs)
{
    size_t n = 0;
    for (const char *text; (text = marey_recording_warning(runs->recording, n)) != NULL; n++)
        if (n < MAX_WARNINGS)
            MAREY_TRY(marey__scaling_read_note(runs->reading, "%s: %s", runs->path, text));
    if (n > MAX_WARNINGS)
        MAREY_TRY(marey__scaling_read_note(runs->reading,
                                           "%s: %zu more such sentences are in `marey report`.",
                                           runs->path, n - MAX_WARNINGS));
    return MAREY_OK;
}

static marey_status note_groups(const struct runs *runs)
{
    size_t n_repeated = 0;
    for (size_t i = 0; i < runs->n_groups; i++)
        n_repeated += runs->groups[i].repeat != 0;
    if (n_repeated == 0)
        return MAREY_OK;
    return marey__scaling_read_note(runs->reading,
                                    "%s: some ranks are there several times under one run id; each "
                                    "time is taken as a run of its own.",
                                    runs->path);
}

/* ---- all ---- */

static marey_status read_groups(const struct runs *runs)
{
    bool *is_done = marey__calloc(runs->n_groups + 1, sizeof *is_done);
    marey_status status = is_done != NULL ? MAREY_OK : marey__no_memory();
    for (size_t i = 0; status == MAREY_OK && i < runs->n_groups; i++) {
        const size_t group = next_group(runs, is_done);
        is_done[group] = true;
        status = read_group(runs, group);
    }
    marey__free(is_done);
    return status;
}

static marey_status read_runs(struct runs *runs)
{
    runs->n = marey_recording_n_processes(runs->recording);
    runs->workers = marey__calloc(runs->n + 1, sizeof *runs->workers);
    MAREY__TRY_MEMORY(runs->workers != NULL);
    MAREY_TRY(read_processes(runs));
    for (size_t i = 0; i < runs->n; i++)
        if (runs->workers[i].trains && !put_into_group(runs, i))
            return marey__no_memory();
    if (runs->n_groups == 0)
        return marey__fail(
            MAREY_EFORMAT,
            "%s tells of no epochs and no steps: marey.TrainingMonitor, the callbacks of "
            "marey.hf and marey.lightning, marey.epoch() and marey.iteration() do, and "
            "step() of torch.profiler in traces",
            runs->path);
    MAREY_TRY(note_warnings(runs));
    MAREY_TRY(note_groups(runs));
    return read_groups(runs);
}

marey_status marey__scaling_read_recording(const struct marey__scaling_reading *reading,
                                           const char *path, bool is_trace)
{
    const struct marey_import_options options = {.from = is_trace ? "kineto" : NULL,
                                                 .n_jobs = reading->n_jobs};
    struct stat info;
    struct runs runs = {.reading = reading,
                        .path = path,
                        .is_checked = !is_trace && stat(path, &info) == 0 && S_ISDIR(info.st_mode)};
    MAREY_TRY(is_trace ? marey_open(path, &options, &runs.recording)
                       : marey_recording_open(path, &runs.recording));
    const marey_status status = read_runs(&runs);
    for (size_t i = 0; runs.workers != NULL && i < runs.n; i++)
        marey__scaling_steps_fini(&runs.workers[i].steps);
    marey__free(runs.workers);
    marey__free(runs.groups);
    marey_recording_close(runs.recording);
    return status;
}
