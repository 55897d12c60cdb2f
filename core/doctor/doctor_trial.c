/*
 * A trial recording: created in the requested directory, filled, read and removed. It shows whether recording works
 * there, where the pool is, which clock is used and what a range costs, with the current MAREY_OPTIONS.
 *
 * It runs in a child process: a recording that this process has open continues, and a file system that hangs hangs only
 * the child. The parent creates and removes the folder.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/internal.h"
#include "record/internal.h"
#include <marey/range.h>
#include <marey/recording.h>
#include <marey/switchboard.h>

enum { ROUNDS = 7, RANGES = 10000, WRITE_BYTES = 64 << 20, BLOCK_BYTES = 1 << 20 };

struct trial_job {
    char folder[PATH_MAX + 32],
        path[PATH_MAX + 48]; /* the temporary folder, and the recording in it */
    bool measure;
};

/* ---- in the child ---- */

/* Use the best round, the least disturbed one. */
static double range_cost_ns(marey_id id)
{
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t start = marey__clock_ns(CLOCK_MONOTONIC);
        for (int i = 0; i < RANGES; i++) {
            marey_begin(id);
            marey_end(id);
        }
        const double ns = (double)(marey__clock_ns(CLOCK_MONOTONIC) - start) / RANGES;
        best = MAREY__MIN(best, ns);
    }
    return best;
}

static void report_pool(const struct trial_job *job, int fd)
{
    char pattern[PATH_MAX + 64];
    glob_t found;
    snprintf(pattern, sizeof pattern, "/dev/shm/marey-*-%d-*.pool", (int)getpid());
    DIR *dir = opendir(job->path);
    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
        if (strstr(entry->d_name, ".pool") != NULL)
            dprintf(fd, "pool=%s\n", "directory");
    if (dir != NULL)
        closedir(dir);
    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0) {
        dprintf(fd, "pool=/dev/shm\n");
        globfree(&found);
    }
}

/* The clock that the recording used. */
static int report_recording(const struct trial_job *job, int fd)
{
    marey_recording *recording;
    if (marey_recording_open(job->path, &recording) != MAREY_OK)
        return 1;
    const bool has_log = marey_recording_n_processes(recording) == 1;
    if (has_log) {
        const struct marey_process *process = marey_recording_process(recording, 0);
        dprintf(fd, "clock=%s\n", process->clock);
    }
    marey_recording_close(recording);
    return has_log ? 0 : 1;
}

static void keep_silent(void *ctx, const char *sentence)
{
    (void)ctx;
    (void)sentence;
}

static int try_recording(const struct trial_job *job, int fd)
{
    marey_reset(); /* drops the state inherited from the parent */
    marey_set_sink(keep_silent, NULL);
    const marey_id id = marey_site_intern("marey doctor", 12, NULL, 0, NULL, 0);
    dprintf(fd, "off_ns=%.3f\n", range_cost_ns(id));
    const struct marey_options options = {.path = job->path, .text = getenv("MAREY_OPTIONS")};
    if (marey_start(&options) != MAREY_OK) {
        dprintf(fd, "error=%s\n", marey_last_error());
        return 0;
    }
    dprintf(fd, "range_ns=%.3f\n", range_cost_ns(id));
    report_pool(job, fd);
    if (marey_stop() != MAREY_OK || report_recording(job, fd) != 0)
        dprintf(fd, "error=%s\n", marey_last_error());
    else
        dprintf(fd, "fine=1\n");
    return 0;
}

/* write(2) into the page cache, as the flush thread does. */
static void measure_writing(const struct trial_job *job, int fd)
{
    static char block[BLOCK_BYTES];
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/write", job->folder);
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    memset(block, 0x5a, sizeof block);
    uint64_t written = 0, ns = 0;
    const uint64_t start = marey__clock_ns(CLOCK_MONOTONIC);
    while (file >= 0 && written < WRITE_BYTES && ns < 300000000u &&
           marey__write_all(file, block, sizeof block)) {
        written += sizeof block;
        ns = marey__clock_ns(CLOCK_MONOTONIC) - start;
    }
    if (file >= 0)
        close(file);
    unlink(path);
    if (ns > 0)
        dprintf(fd, "write=%.0f\n", (double)written * 1e9 / (double)ns);
}

static int work(void *ctx, int fd)
{
    const struct trial_job *job = ctx;
    const int status = try_recording(job, fd);
    if (job->measure)
        measure_writing(job, fd);
    return status;
}

/* ---- in the parent ---- */

static double number_field(const struct marey__probe *probe, const char *key)
{
    char text[32];
    if (!MAREY__PROBE_FIELD(probe, key, text))
        return 0;
    const double value = strtod(text, NULL);
    return value > 0 && value < 1e15 ? value : 0;
}

static void take_answers(struct marey__trial *trial, const struct marey__probe *probe)
{
    char text[64], trouble[128];
    MAREY__PROBE_FIELD(probe, "clock", trial->clock);
    MAREY__PROBE_FIELD(probe, "pool", trial->pool);
    MAREY__PROBE_FIELD(probe, "error", trial->error);
    trial->range_ns = number_field(probe, "range_ns");
    trial->off_ns = number_field(probe, "off_ns");
    trial->write_bytes_per_s = number_field(probe, "write");
    trial->is_fine = MAREY__PROBE_FIELD(probe, "fine", text);
    if (!trial->is_fine && trial->error[0] == '\0' &&
        marey__probe_trouble(probe, trouble, sizeof trouble) != NULL)
        snprintf(trial->error, sizeof trial->error, "a recording was tried, and %s", trouble);
}

/* Removes the files of a child that died: finalizing the log removes the pool in /dev/shm, the rest is removed here. */
static void remove_folder(const struct trial_job *job)
{
    if (marey_recording_finalize(job->path) != MAREY_OK) {
        /* The child may have died before it had a log. */
    }
    DIR *dir = opendir(job->path);
    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
        unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir != NULL)
        closedir(dir);
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/write", job->folder);
    unlink(path);
    rmdir(job->path);
    rmdir(job->folder);
}

void marey__trial_run(struct marey__doctor *doctor)
{
    struct marey__trial *trial = &doctor->trial;
    struct trial_job job = {.measure = doctor->measure};
    struct marey__probe probe = {0};
    snprintf(job.folder, sizeof job.folder, "%s/.marey-doctor-XXXXXX", doctor->dir);
    if (mkdtemp(job.folder) == NULL) {
        snprintf(trial->error, sizeof trial->error, "cannot create a folder in %.400s: %s",
                 doctor->dir, strerror(errno));
        return;
    }
    snprintf(job.path, sizeof job.path, "%s/trial.marey", job.folder);
    marey__probe_start(&probe, work, &job);
    marey__probe_wait(&probe, 1, doctor->deadline_ns);
    take_answers(trial, &probe);
    remove_folder(&job);
}
