/*
 * See report_mpi.h. Rank 0 lists the logs and divides them into shares of equal size; each process sums its share; then
 * partial results are combined pairwise in a tree: in the first round rank 1 sends to 0, 3 to 2 and so on, in the next
 * 2 to 0.
 *
 * An error in one process is sent up the same tree as a message, so that no process waits forever.
 */
#include "report/report_mpi.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <marey/partial.h>

#include "report/mpi_job.h"
#include "report/report_options.h"

enum { SHARED = 1, NOT_SHARED = 2 }; /* the first byte of a share */

/* ---- rank 0: the list of logs ---- */

struct log {
    char *name;
    uint32_t recording;
    uint64_t size;
};

struct list {
    struct log *logs; /* sorted by recording and name */
    size_t n, cap;
    uint64_t size;
};

static void list_fini(struct list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->logs[i].name);
    free(list->logs);
}

static bool add_log(struct list *list, const char *folder, const char *name, uint32_t recording)
{
    enum { EACH = 4096 }; /* opening a log has a cost, too */
    char *path CLI_FREED = NULL;
    struct stat st;
    if (list->n == list->cap) {
        const size_t cap = list->cap * 2 + 64;
        struct log *longer = reallocarray(list->logs, cap, sizeof *longer);
        if (longer == NULL)
            return false;
        list->logs = longer;
        list->cap = cap;
    }
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return false;
    const uint64_t size = stat(path, &st) == 0 ? (uint64_t)st.st_size + EACH : EACH;
    struct log *const log = &list->logs[list->n];
    *log = (struct log){strdup(name), recording, size};
    list->n += log->name != NULL;
    list->size += size;
    return log->name != NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct log *)a)->name, ((const struct log *)b)->name);
}

/* Returns false if the path is not a recording with logs or cannot be listed; one process then reports why. */
static bool list_logs(struct list *list, const char *path, uint32_t recording)
{
    const size_t first = list->n;
    bool done = true;
    DIR *dir = opendir(path);
    if (dir == NULL)
        return false;
    for (const struct dirent *entry; done && (entry = readdir(dir)) != NULL;) {
        const char *dot = strrchr(entry->d_name, '.');
        if (dot != NULL && dot != entry->d_name && strcmp(dot, ".klog") == 0)
            done = add_log(list, path, entry->d_name, recording);
    }
    closedir(dir);
    if (!done || list->n == first)
        return false;
    qsort(list->logs + first, list->n - first, sizeof *list->logs, by_name);
    return marey_recording_finalize(path) == MAREY_OK;
}

/* ---- shares ---- */

/* NUL-terminated names; an empty one ends a recording. */
static char *make_share(const struct list *list, size_t from, size_t to, uint32_t n_recordings,
                        size_t *len)
{
    size_t size = 1 + n_recordings, at = 1;
    for (size_t i = from; i < to; i++)
        size += strlen(list->logs[i].name) + 1;
    char *share = calloc(1, size);
    if (share == NULL)
        return NULL;
    share[0] = SHARED;
    for (uint32_t r = 0; r < n_recordings; r++) {
        for (; from < to && list->logs[from].recording == r; from++) {
            const size_t n = strlen(list->logs[from].name) + 1;
            memcpy(share + at, list->logs[from].name, n);
            at += n;
        }
        at++;
    }
    *len = size;
    return share;
}

/* The first log of a rank's share, decided by the middle of each log. */
static size_t first_of(const struct list *list, const struct mpi_job *job, uint32_t rank)
{
    const double before = (double)list->size * rank / job->size;
    double at = 0;
    size_t i = 0;
    for (; i < list->n && at + (double)list->logs[i].size / 2 < before; i++)
        at += (double)list->logs[i].size;
    return i;
}

/* Sends the shares; returns that of rank 0, NULL on out of memory. A result of nothing to share is sent as well. */
static char *hand_out(const struct list *list, const struct mpi_job *job, uint32_t n_recordings,
                      size_t *len)
{
    char *own = NULL;
    for (uint32_t rank = job->size; rank-- > 0;) {
        const size_t from = first_of(list, job, rank),
                     to = rank + 1 < job->size ? first_of(list, job, rank + 1) : list->n;
        size_t n = 0;
        char *share = make_share(list, from, to, n_recordings, &n);
        if (rank == 0) {
            own = share;
            *len = n;
            break;
        }
        mpi_job_send(rank, share, n);
        free(share);
    }
    return own;
}

/* ---- every process: its partial result ---- */

/* Sent before the bytes of a partial result. */
struct log_faults {
    int32_t status;         /* of the first failure */
    uint32_t first_damaged; /* a recording; UINT32_MAX: none */
    uint32_t has_below;
    uint64_t n_processes, n_logs;
    char error[1024];
};

static void fail(struct log_faults *faults, marey_status status, const char *sentence)
{
    if (faults->status != MAREY_OK)
        return;
    faults->status = status;
    snprintf(faults->error, sizeof faults->error, "%s", sentence);
}

static marey_status open_names(struct cli_recordings *recordings, const char *path, const char **at,
                               const char *end, uint32_t n_jobs)
{
    size_t n = 0;
    for (const char *name = *at; name < end && *name != '\0'; name += strlen(name) + 1)
        n++;
    const char **names CLI_FREED = calloc(n + 1, sizeof *names);
    for (size_t i = 0; names != NULL && i < n; i++, *at += strlen(*at) + 1)
        names[i] = *at;
    (*at)++;
    const marey_status status =
        names != NULL
            ? marey_recording_open_logs(path, names, n, n_jobs, &recordings->list[recordings->n])
            : MAREY_ENOMEM;
    recordings->n += status == MAREY_OK;
    return status;
}

/* `share` NULL: out of memory. */
static marey_status open_share(struct cli_recordings *recordings, int n_paths, char **paths,
                               const char *share, size_t len, uint32_t n_jobs)
{
    const char *at = share + 1;
    recordings->list = calloc((size_t)n_paths, sizeof recordings->list[0]);
    marey_status status = share != NULL && recordings->list != NULL ? MAREY_OK : MAREY_ENOMEM;
    for (int i = 0; i < n_paths && status == MAREY_OK; i++)
        status = open_names(recordings, paths[i], &at, share + len, n_jobs);
    return status;
}

static void count_logs(const struct cli_recordings *recordings, struct log_faults *faults)
{
    for (size_t i = 0; i < recordings->n; i++) {
        faults->n_processes += marey_recording_n_processes(recordings->list[i]);
        faults->n_logs += marey_recording_n_logs(recordings->list[i]);
        if (i < faults->first_damaged && marey_recording_is_damaged(recordings->list[i]))
            faults->first_damaged = (uint32_t)i;
    }
    faults->has_below = report_options_below(recordings, 0) != NULL;
}

static const char *sentence_of(marey_status status)
{
    return status == MAREY_ENOMEM ? "out of memory for the summary in a process of the MPI job"
                                  : marey_last_error();
}

/* ---- up the tree ---- */

static void add_faults(struct log_faults *faults, const struct log_faults *other)
{
    if (other->status != MAREY_OK)
        fail(faults, (marey_status)other->status, other->error);
    if (other->first_damaged < faults->first_damaged)
        faults->first_damaged = other->first_damaged;
    faults->has_below |= other->has_below;
    faults->n_processes += other->n_processes;
    faults->n_logs += other->n_logs;
}

static void take_from(uint32_t rank, marey_partial *partial, struct log_faults *faults)
{
    size_t faults_len, len;
    struct log_faults *other CLI_FREED = mpi_job_receive(rank, &faults_len);
    void *bytes CLI_FREED = mpi_job_receive(rank, &len);
    if (other == NULL || faults_len != sizeof *other || (len != 0 && bytes == NULL)) {
        fail(faults, MAREY_ENOMEM, sentence_of(MAREY_ENOMEM));
    } else {
        other->error[sizeof other->error - 1] = '\0';
        add_faults(faults, other);
        if (faults->status == MAREY_OK) {
            const marey_status status = marey_partial_join(partial, bytes, len);
            if (status != MAREY_OK)
                fail(faults, status, sentence_of(status));
        }
    }
}

static void give_to(uint32_t rank, marey_partial *partial, struct log_faults *faults)
{
    const void *bytes = NULL;
    size_t len = 0;
    if (faults->status == MAREY_OK) {
        const marey_status status = marey_partial_pack(partial, &bytes, &len);
        if (status != MAREY_OK) {
            fail(faults, status, sentence_of(status));
            len = 0;
        }
    }
    mpi_job_send(rank, faults, sizeof *faults);
    mpi_job_send(rank, bytes, len);
}

static void reduce(const struct mpi_job *job, marey_partial *partial, struct log_faults *faults)
{
    for (uint32_t step = 1; step < job->size; step *= 2) {
        if ((job->rank & step) != 0) {
            give_to(job->rank - step, partial, faults);
            return;
        }
        if (job->rank + step < job->size)
            take_from(job->rank + step, partial, faults);
    }
}

/* ---- the whole report ---- */

/* Threads for this process: its share of the CPU cores that it may use on this machine. */
static uint32_t threads_of(const struct mpi_job *job, uint32_t wanted)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (wanted != 0)
        return wanted;
    const uint32_t n = sched_getaffinity(0, sizeof set, &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
    const uint32_t online = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    const uint32_t due = online / (job->n_local != 0 ? job->n_local : 1);
    return n < due ? n : due != 0 ? due : 1;
}

/* Combines this process's partial result with those sent to it. The caller owns the result; NULL on failure. */
static marey_partial *work_on(const struct mpi_job *job, int n_paths, char **paths,
                              const struct marey_report_options *options, const char *share,
                              size_t len, struct cli_recordings *recordings,
                              struct log_faults *faults)
{
    struct marey_report_options wants = *options;
    marey_partial *partial = NULL;
    wants.n_jobs = threads_of(job, options->n_jobs);
    if (job->rank != 0)
        wants.progress = NULL;
    marey_status status = open_share(recordings, n_paths, paths, share, len, wants.n_jobs);
    if (status == MAREY_OK) {
        count_logs(recordings, faults);
        status = marey_partial_create(recordings->list, recordings->n, &wants, &partial);
    }
    if (status != MAREY_OK)
        fail(faults, status, sentence_of(status));
    reduce(job, partial, faults);
    return partial;
}

static enum report_mpi finish(marey_partial *partial, const struct log_faults *faults,
                              const struct marey_report_options *options, struct report_share *out)
{
    if (faults->status != MAREY_OK) {
        cli_fail("%s", faults->error);
        return REPORT_BAD;
    }
    /* Only samplers, or nothing: one process that opens all logs reports that. */
    if (faults->n_processes == 0)
        return REPORT_ALONE;
    if (marey_partial_report(partial, options, &out->report) != MAREY_OK) {
        cli_fail("%s", marey_last_error());
        return REPORT_BAD;
    }
    out->has_below = faults->has_below != 0;
    out->damaged = faults->first_damaged < out->recordings.n
                       ? marey_recording_name(out->recordings.list[faults->first_damaged])
                       : NULL;
    return REPORT_DONE;
}

static enum report_mpi work(const struct mpi_job *job, int n_paths, char **paths,
                            const struct marey_report_options *options, const char *share,
                            size_t len, struct report_share *out)
{
    struct log_faults faults = {.first_damaged = UINT32_MAX};
    marey_partial *partial =
        work_on(job, n_paths, paths, options, share, len, &out->recordings, &faults);
    mpi_job_end();
    cli_progress_end();
    const enum report_mpi done =
        job->rank == 0 ? finish(partial, &faults, options, out) : REPORT_LEAVE;
    marey_partial_destroy(partial);
    if (done != REPORT_DONE)
        cli_close(&out->recordings);
    return done;
}

static enum report_mpi lead(const struct mpi_job *job, int n_paths, char **paths,
                            const struct marey_report_options *options, struct report_share *out)
{
    struct list list = {0};
    bool is_shared = true;
    for (int i = 0; i < n_paths && is_shared; i++)
        is_shared = list_logs(&list, paths[i], (uint32_t)i);
    enum report_mpi done = REPORT_ALONE;
    if (is_shared) {
        size_t len = 0;
        char *share CLI_FREED = hand_out(&list, job, (uint32_t)n_paths, &len);
        done = work(job, n_paths, paths, options, share, len, out);
    } else {
        for (uint32_t rank = 1; rank < job->size; rank++)
            mpi_job_send(rank, &(char){NOT_SHARED}, 1);
        mpi_job_end();
    }
    list_fini(&list);
    return done;
}

static enum report_mpi follow(const struct mpi_job *job, int n_paths, char **paths,
                              const struct marey_report_options *options, struct report_share *out)
{
    size_t len;
    enum report_mpi done = REPORT_LEAVE;
    char *share CLI_FREED = mpi_job_receive(0, &len);
    if (len == 1 && share != NULL && share[0] == NOT_SHARED)
        mpi_job_end();
    else
        done = work(job, n_paths, paths, options, share, len, out);
    return done;
}

enum report_mpi report_mpi(int n_paths, char **paths, const struct marey_report_options *options,
                           const char *alone, struct report_share *out)
{
    struct mpi_job job;
    *out = (struct report_share){0};
    const enum mpi_begin begin = mpi_job_begin(&job);
    out->is_job = begin != MPI_JOB_NONE;
    switch (begin) {
    case MPI_JOB_NONE:
    case MPI_JOB_ALONE:
        return REPORT_ALONE;
    case MPI_JOB_LEAVE:
        return REPORT_LEAVE;
    case MPI_JOB_BEGUN:
        break;
    }
    if (alone != NULL) {
        if (job.rank == 0)
            cli_say("%s runs in one process; the other %u of the MPI job are idle", alone,
                    job.size - 1);
        mpi_job_end();
        return job.rank == 0 ? REPORT_ALONE : REPORT_LEAVE;
    }
    return job.rank == 0 ? lead(&job, n_paths, paths, options, out)
                         : follow(&job, n_paths, paths, options, out);
}
