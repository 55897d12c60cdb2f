/* A recording: the logs of a directory in order, or one log, and warnings about them. */
#include <sys/stat.h>
#include <unistd.h>

#include "read/internal.h"

struct marey_recording {
    const char *name;
    int fd; /* of the file that contains all logs; -1: each has its own file */
    struct marey__log_texts texts;
    struct marey__log_file **logs; /* by rank, then start */
    size_t n_logs, logs_cap;
    struct marey__log_file **runs; /* programs that marey waited for; kept separately, because they have no events */
    size_t n_runs, runs_cap;
    size_t n_processes; /* of the program; logs after these are of processes that measured it */
    size_t n_broken, n_empty;     /* files of the directory without a usable log */
    bool is_part;                 /* the logs belong to another recording */
    uint32_t n_keeping;           /* number of keep_events calls not yet undone */
    _Atomic uint64_t keep_budget; /* bytes that may still be kept */
    struct marey__warnings warnings;
    size_t n_of_logs; /* warnings about logs, which come first; notes of measuring processes follow */
};

/* Add a log by its path, or, with a part, from the recording's file. */
static marey_status add_log(marey_recording *recording, const char *path,
                            const struct marey__log_part *part)
{
    struct marey__log_file *log = marey__alloc(sizeof *log);
    if (log == NULL || !marey__grow(&recording->logs, &recording->logs_cap, recording->n_logs + 1,
                                    sizeof *recording->logs)) {
        marey__free(log);
        return marey__no_memory();
    }
    const marey_status status =
        part == NULL ? marey__log_file_open(log, path, &recording->texts,
                                            marey__log_file_most_kept(1), &recording->warnings)
                     : marey__log_file_open_part(log, &recording->texts, path, recording->fd, part,
                                                 &recording->warnings);
    if (status != MAREY_OK) {
        marey__free(log);
        return status;
    }
    recording->logs[recording->n_logs++] = log;
    return MAREY_OK;
}

/* ---- directories ---- */

/* Add the folder's logs, in its order. */
static marey_status take_logs(marey_recording *recording, struct marey__log_folder *folder)
{
    MAREY__TRY_MEMORY(
        marey__grow(&recording->logs, &recording->logs_cap, folder->n, sizeof *recording->logs) &&
        marey__grow(&recording->runs, &recording->runs_cap, folder->n, sizeof *recording->runs));
    for (size_t i = 0; i < folder->n; i++) {
        struct marey__log_entry *entry = &folder->entries[i];
        marey__warnings_move(&recording->warnings, &entry->warnings);
        recording->n_broken += entry->status != MAREY_OK;
        recording->n_empty += entry->status == MAREY_OK && entry->log == NULL;
        if (entry->log != NULL && strcmp(entry->log->info.role, MAREY__ROLE_RUN) == 0)
            recording->runs[recording->n_runs++] = entry->log;
        else if (entry->log != NULL)
            recording->logs[recording->n_logs++] = entry->log;
        entry->log = NULL;
    }
    return MAREY_OK;
}

/* A recording without a log has at least a meta.json. */
static marey_status expect_logs(const marey_recording *recording,
                                const struct marey__log_folder *folder, const char *path)
{
    if (recording->n_logs + recording->n_runs != 0)
        return MAREY_OK;
    if (recording->n_broken != 0) /* a copy: the message is in memory about to be freed */
        return marey__fail(MAREY_EFORMAT, "%s has no log that can be read: %s", path,
                           recording->warnings.n != 0 ? recording->warnings.sentences[0] : "");
    if (!folder->has_meta)
        return marey__fail(MAREY_EFORMAT, "%s is not a recording: no log and no meta.json is in it",
                           path);
    return MAREY_OK;
}

static marey_status open_directory(marey_recording *recording, const char *path, size_t n_jobs)
{
    if (marey_recording_finalize(path) != MAREY_OK)
        marey__warn(&recording->warnings,
                    "A process's last events could not be written to its log: %s.",
                    marey_last_error());
    struct marey__log_folder folder MAREY__FINALLY(marey__log_folder_fini) = {.texts =
                                                                                  &recording->texts};
    MAREY_TRY(marey__log_folder_open(&folder, path, n_jobs));
    MAREY_TRY(take_logs(recording, &folder));
    return expect_logs(recording, &folder, path);
}

/* ---- open and close ---- */

int marey__process_compare(const struct marey_process *x, const struct marey_process *y)
{
    if ((x->role[0] != '\0') != (y->role[0] != '\0'))
        return x->role[0] != '\0' ? 1 : -1;
    if (x->rank != y->rank) /* unknown ranks, -1, last */
        return (uint32_t)x->rank > (uint32_t)y->rank ? 1 : -1;
    if (x->start_unix_ns != y->start_unix_ns)
        return x->start_unix_ns > y->start_unix_ns ? 1 : -1;
    if (x->pid != y->pid)
        return x->pid > y->pid ? 1 : -1;
    return strcmp(x->log_path, y->log_path);
}

static int by_rank_and_start(const void *a, const void *b)
{
    return marey__process_compare(&(*(struct marey__log_file *const *)a)->info,
                                  &(*(struct marey__log_file *const *)b)->info);
}

static const char *name_of(struct marey__log_texts *texts, const char *path)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    size_t start = len;
    while (start > 0 && path[start - 1] != '/')
        start--;
    return marey__log_text(texts, path + start, len - start);
}

/*
 * Notes of a process that measured others become warnings of the recording, because no table has a row for that
 * process.
 */
static void warn_by_notes(marey_recording *recording, const char *note)
{
    for (size_t len; note[0] != '\0'; note += len + (note[len] == '\n')) {
        len = strcspn(note, "\n");
        marey__warn(&recording->warnings, "%.*s", (int)len, note);
    }
}

static marey_status put_in_order(marey_recording *recording)
{
    recording->n_of_logs = recording->warnings.n;
    if (recording->n_logs != 0)
        qsort(recording->logs, recording->n_logs, sizeof *recording->logs, by_rank_and_start);
    if (recording->n_runs != 0)
        qsort(recording->runs, recording->n_runs, sizeof *recording->runs, by_rank_and_start);
    for (size_t i = 0; i < recording->n_logs; i++) {
        const bool is_of_program = recording->logs[i]->info.role[0] == '\0';
        recording->logs[i]->info.index = (uint32_t)i;
        recording->n_processes += is_of_program;
        if (!is_of_program)
            warn_by_notes(recording, recording->logs[i]->info.note);
    }
    MAREY__TRY_MEMORY(marey__log_devices_find(recording->logs, recording->n_logs) &&
                      !recording->warnings.failed);
    return MAREY_OK;
}

/* Check the logs of a directory together. */
static marey_status check_logs(marey_recording *recording)
{
    const size_t n = recording->n_logs;
    const struct marey_process **processes MAREY__FREED =
        marey__calloc(n + 1, sizeof(struct marey_process *));
    for (size_t i = 0; processes != NULL && i < n; i++)
        processes[i] = &recording->logs[i]->info;
    if (processes != NULL)
        marey__logs_check(
            &(struct marey__checked_logs){processes, n, recording->n_broken, recording->n_empty},
            &recording->warnings);
    const bool has_failed = processes == NULL || recording->warnings.failed;
    return has_failed ? marey__no_memory() : MAREY_OK;
}

static marey_status open_path(marey_recording *recording, const char *path, size_t n_jobs)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return marey__fail_errno("open %s", path);
    MAREY_TRY(S_ISDIR(st.st_mode) ? open_directory(recording, path, n_jobs)
                                  : add_log(recording, path, NULL));
    MAREY_TRY(put_in_order(recording));
    return S_ISDIR(st.st_mode) ? check_logs(recording) : MAREY_OK;
}

static marey_recording *create(const char *path, int fd)
{
    marey_recording *recording = marey__calloc(1, sizeof *recording);
    if (recording == NULL)
        return NULL;
    marey__log_texts_init(&recording->texts);
    recording->name = name_of(&recording->texts, path);
    recording->fd = recording->name != NULL ? fd : -1;
    if (recording->name != NULL)
        return recording;
    marey_recording_close(recording);
    return NULL;
}

/* Set `*out`, or close the recording if opening failed. */
static marey_status hand_over(marey_recording *recording, marey_status status, marey_recording **out)
{
    if (status != MAREY_OK)
        marey_recording_close(recording);
    else
        *out = recording;
    return status;
}

marey_status marey_recording_open(const char *path, marey_recording **out)
{
    return marey__recording_open(path, 0, out);
}

marey_status marey__recording_open(const char *path, size_t n_jobs, marey_recording **out)
{
    marey_recording *recording = create(path, -1);
    MAREY__TRY_MEMORY(recording != NULL);
    return hand_over(recording, open_path(recording, path, n_jobs), out);
}

marey_status marey_recording_open_logs(const char *path, const char *const *names, size_t n,
                                       uint32_t n_jobs, marey_recording **out)
{
    marey_recording *recording = create(path, -1);
    MAREY__TRY_MEMORY(recording != NULL);
    struct marey__log_folder folder MAREY__FINALLY(marey__log_folder_fini) = {.texts =
                                                                                  &recording->texts};
    marey_status status = marey__log_folder_open_some(&folder, path, names, n, n_jobs);
    if (status == MAREY_OK)
        status = take_logs(recording, &folder);
    if (status == MAREY_OK)
        status = put_in_order(recording);
    return hand_over(recording, status, out);
}

marey_status marey__recording_open_parts(const char *name, int fd,
                                         const struct marey__log_part *parts, size_t n,
                                         marey_recording **out)
{
    marey_recording *recording = create(name, fd);
    MAREY__TRY_MEMORY(recording != NULL);
    marey_status status = MAREY_OK;
    for (size_t i = 0; status == MAREY_OK && i < n; i++)
        status = add_log(recording, name, &parts[i]);
    if (status == MAREY_OK)
        status = put_in_order(recording);
    if (status != MAREY_OK)
        recording->fd = -1; /* still owned by the caller */
    return hand_over(recording, status, out);
}

/* Share a log of the whole, under its number in the part. */
static bool share_log(marey_recording *part, const struct marey__log_file *log, const char *run_id)
{
    struct marey__log_file *copy = marey__alloc(sizeof *copy);
    if (copy == NULL ||
        !marey__grow(&part->logs, &part->logs_cap, part->n_logs + 1, sizeof *part->logs)) {
        marey__free(copy);
        return false;
    }
    *copy = *log;
    copy->info.index = (uint32_t)part->n_logs;
    if (run_id != NULL)
        copy->info.run_id = run_id;
    part->n_processes += copy->info.role[0] == '\0';
    part->logs[part->n_logs++] = copy;
    return true;
}

marey_status marey__recording_part(const marey_recording *whole, const bool *keep,
                                   const char *run_id, marey_recording **out)
{
    marey_recording *part = create(whole->name, -1);
    MAREY__TRY_MEMORY(part != NULL);
    part->is_part = true;
    bool is_done = true;
    for (size_t i = 0; is_done && i < whole->n_logs; i++)
        is_done = !keep[i] || share_log(part, whole->logs[i], run_id);
    for (size_t i = 0; is_done && run_id == NULL && i < whole->warnings.n; i++)
        marey__warn(&part->warnings, "%s", whole->warnings.sentences[i]);
    part->warnings.n_damaged = run_id == NULL ? whole->warnings.n_damaged : 0;
    part->n_of_logs = run_id == NULL ? whole->n_of_logs : 0;
    return hand_over(part, is_done && !part->warnings.failed ? MAREY_OK : marey__no_memory(), out);
}

void marey_recording_close(marey_recording *recording)
{
    if (recording == NULL)
        return;
    for (size_t i = 0; i < recording->n_logs; i++) {
        marey__log_file_drop_kept(recording->logs[i]);
        if (!recording->is_part)
            marey__log_file_fini(recording->logs[i]);
        marey__free(recording->logs[i]);
    }
    for (size_t i = 0; i < recording->n_runs; i++) {
        marey__log_file_fini(recording->runs[i]);
        marey__free(recording->runs[i]);
    }
    if (recording->fd >= 0)
        close(recording->fd);
    MAREY__FREE_ALL(recording->runs, recording->logs);
    marey__log_texts_fini(&recording->texts);
    marey__warnings_fini(&recording->warnings);
    marey__free(recording);
}

/* ---- access ---- */

const char *marey_recording_name(const marey_recording *recording)
{
    return recording->name;
}

int marey_recording_is_damaged(const marey_recording *recording)
{
    return recording->warnings.n_damaged != 0;
}

const char *marey_recording_warning(const marey_recording *recording, size_t i)
{
    return i < recording->warnings.n ? recording->warnings.sentences[i] : NULL;
}

size_t marey__recording_n_of_logs(const marey_recording *recording)
{
    return recording->n_of_logs;
}

void marey__recording_left_out(const marey_recording *recording, uint64_t *n_broken, uint64_t *n_empty)
{
    *n_broken = recording->n_broken;
    *n_empty = recording->n_empty;
}

size_t marey_recording_n_runs(const marey_recording *recording)
{
    return recording->n_runs;
}

const struct marey_process *marey_recording_run(const marey_recording *recording, size_t i)
{
    return i < recording->n_runs ? &recording->runs[i]->info : NULL;
}

size_t marey_recording_n_processes(const marey_recording *recording)
{
    return recording->n_processes;
}

size_t marey_recording_n_logs(const marey_recording *recording)
{
    return recording->n_logs;
}

const struct marey_process *marey_recording_process(const marey_recording *recording, size_t i)
{
    return i < recording->n_logs ? &recording->logs[i]->info : NULL;
}

const struct marey_site_info *marey_recording_site(const marey_recording *recording, size_t process,
                                                   uint32_t site)
{
    static const struct marey_site_info nameless = {
        .name = "", .category = "", .domain = "", .file = ""};
    const struct marey_site_info *found =
        process < recording->n_logs ? marey__site_table_get(recording->logs[process]->sites, site)
                                    : NULL;
    return found != NULL ? found : &nameless;
}

const struct marey_lane_info *marey_recording_lane(const marey_recording *recording, size_t process,
                                                   uint32_t lane)
{
    static const struct marey_lane_info nameless = {.name = ""};
    const struct marey__log_lane *found =
        process < recording->n_logs
            ? marey__sparse_get(&recording->logs[process]->lanes, lane, sizeof *found)
            : NULL;
    return found != NULL && found->is_known ? &found->info : &nameless;
}

marey_status marey_recording_visit(marey_recording *recording, size_t process,
                                   marey_visitor *visitor, void *ctx)
{
    if (process >= recording->n_logs)
        return marey__fail(MAREY_EINVAL, "%s has no process %zu", recording->name, process);
    return marey__log_file_visit(recording->logs[process], visitor, ctx);
}

marey_status marey__recording_visit_lane(marey_recording *recording, size_t process, uint32_t lane,
                                         marey_visitor *visitor, void *ctx)
{
    MAREY_ASSERT(process < recording->n_logs);
    return marey__log_file_visit_lane(recording->logs[process], lane, visitor, ctx);
}

marey_status marey__recording_visit_in_order(marey_recording *recording, size_t process,
                                             marey_visitor *visitor, void *ctx)
{
    MAREY_ASSERT(process < recording->n_logs);
    struct marey__log_file *log = recording->logs[process];
    return recording->n_keeping != 0
               ? marey__log_file_visit_kept(log, &recording->keep_budget, visitor, ctx)
               : marey__log_file_visit_in_order(log, visitor, ctx);
}

void marey_recordings_keep_events(marey_recording *const *recordings, size_t n)
{
    for (size_t r = 0; r < n; r++)
        if (recordings[r]->n_keeping++ == 0)
            recordings[r]->keep_budget = MAREY__KEPT_BYTES / n;
}

void marey_recordings_drop_events(marey_recording *const *recordings, size_t n)
{
    for (size_t r = 0; r < n; r++)
        if (--recordings[r]->n_keeping == 0)
            for (size_t i = 0; i < recordings[r]->n_logs; i++)
                marey__log_file_drop_kept(recordings[r]->logs[i]);
}

double marey__recording_ns_per_tick(const marey_recording *recording, size_t process)
{
    MAREY_ASSERT(process < recording->n_logs);
    return marey__clock_map_ns_per_tick(&recording->logs[process]->clock);
}

uint64_t marey__recording_log_size(const marey_recording *recording, size_t process)
{
    MAREY_ASSERT(process < recording->n_logs);
    return recording->logs[process]->size;
}

marey_status marey__recording_read_payload(marey_recording *recording, size_t log,
                                           enum marey__payload_kind payload,
                                           struct marey__payload_reader *reader)
{
    MAREY_ASSERT(log < recording->n_logs);
    return marey__payload_reader_open(reader, recording->logs[log], payload,
                                      recording->n_keeping != 0 ? &recording->keep_budget : NULL,
                                      &recording->warnings);
}

bool marey__recording_has_payload(const marey_recording *recording, size_t log,
                                  enum marey__payload_kind payload)
{
    MAREY_ASSERT(log < recording->n_logs);
    return recording->logs[log]->payloads[payload].n != 0;
}
