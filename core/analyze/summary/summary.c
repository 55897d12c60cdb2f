/*
 * The summary: every process of every recording, in parallel.
 *
 * Each thread walks one process at a time; results are merged in the order of processes,
 * so that memory holds as many processes as there are threads plus a few that wait for an earlier
 * one. The result does not depend on the number of threads.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "analyze/summary/internal.h"

struct task {
    marey_recording *recording;
    uint32_t recording_number;
    size_t process;
};

/* A process that was walked, or failed, and waits to be merged. */
struct finished {
    struct marey__process_walk walk;
    marey_status status;
    bool is_walked;
};

/*
 * How many walked processes may wait for an earlier one, so that a descheduled worker does not block the others.
 * Processes with many names are too large to wait.
 */
enum { MAX_WAITING = 8, MANY_SITES = 4096 };

struct jobs {
    const struct marey__summary_options *options;
    const struct marey__summary_tap *tap; /* NULL: none */
    struct task *tasks;                   /* written before the threads start */
    size_t n_tasks;
    size_t next_task; /* taken with fetch-and-add */
    uint64_t n_words_total;
    uint64_t n_words_done; /* relaxed: only for progress */
    pthread_mutex_t lock;  /* guards the members below */
    pthread_cond_t turned;
    size_t next_merged;
    struct finished *ring; /* by task, modulo; owned by its worker until walked */
    size_t n_ring, n_workers;
    struct marey__merge *merge;
    marey_status status; /* the first failure, and its message */
    char error[1024];
};

/* ---- workers ---- */

static void report_progress(void *ctx)
{
    struct jobs *jobs = ctx;
    const double done = (double)__atomic_load_n(&jobs->n_words_done, __ATOMIC_RELAXED);
    const double total = (double)jobs->n_words_total;
    jobs->options->progress(jobs->options->progress_ctx, done < total ? done / total : 1);
}

static marey_status walk_process(struct jobs *jobs, struct marey__process_walk *walk, size_t number,
                                 bool may_tell)
{
    const struct task *task = &jobs->tasks[number];
    MAREY_TRY(marey__process_walk_init(walk, task->recording, task->process));
    walk->recording_number = task->recording_number;
    walk->iterations.visitor = marey__iteration_stats_take;
    walk->iterations.visitor_ctx = walk;
    walk->progress = &jobs->n_words_done;
    if (may_tell && jobs->options->progress != NULL) {
        walk->tell = report_progress;
        walk->tell_ctx = jobs;
    }
    if (jobs->tap == NULL)
        return marey__process_walk_run(walk);
    MAREY_TRY(jobs->tap->begin(jobs->tap->ctx, walk, number));
    MAREY_TRY(marey__process_walk_run(walk));
    return jobs->tap->end(jobs->tap->ctx, walk, number);
}

/* Wait until the process is close enough to the next one to be merged. */
static void wait_for_room(struct jobs *jobs, size_t number)
{
    const struct task *task = &jobs->tasks[number];
    const struct marey_process *info = marey_recording_process(task->recording, task->process);
    const size_t n_ahead = info->n_sites > MANY_SITES ? jobs->n_workers : jobs->n_ring;
    pthread_mutex_lock(&jobs->lock);
    while (number >= jobs->next_merged + n_ahead)
        pthread_cond_wait(&jobs->turned, &jobs->lock);
    pthread_mutex_unlock(&jobs->lock);
}

/* Merge a walked process and later ones that wait for it; failures count as merged. */
static void hand_in(struct jobs *jobs, struct finished *finished)
{
    pthread_mutex_lock(&jobs->lock);
    if (finished->status != MAREY_OK && jobs->status == MAREY_OK) {
        jobs->status = finished->status;
        strncpy(jobs->error, marey_last_error(), sizeof jobs->error - 1);
    }
    finished->is_walked = true;
    for (struct finished *next; (next = &jobs->ring[jobs->next_merged % jobs->n_ring])->is_walked;) {
        if (jobs->status == MAREY_OK)
            jobs->status = marey__merge_add(jobs->merge, &next->walk);
        if (jobs->status != MAREY_OK && jobs->error[0] == '\0')
            strncpy(jobs->error, marey_last_error(), sizeof jobs->error - 1);
        marey__process_walk_fini(&next->walk);
        next->is_walked = false;
        jobs->next_merged++;
    }
    pthread_cond_broadcast(&jobs->turned);
    pthread_mutex_unlock(&jobs->lock);
}

static void work(void *ctx, bool may_tell)
{
    struct jobs *const jobs = ctx;
    for (;;) {
        const size_t i = __atomic_fetch_add(&jobs->next_task, 1, __ATOMIC_RELAXED);
        if (i >= jobs->n_tasks)
            return;
        wait_for_room(jobs, i);
        struct finished *const finished = &jobs->ring[i % jobs->n_ring];
        finished->status = walk_process(jobs, &finished->walk, i, may_tell);
        hand_in(jobs, finished);
    }
}

static marey_status list_tasks(struct jobs *jobs, marey_recording *const *recordings, size_t n)
{
    size_t n_tasks = 0;
    for (size_t r = 0; r < n; r++)
        n_tasks += marey_recording_n_processes(recordings[r]);
    jobs->tasks = marey__calloc(n_tasks + 1, sizeof *jobs->tasks);
    MAREY__TRY_MEMORY(jobs->tasks != NULL);
    for (size_t r = 0; r < n; r++)
        for (size_t p = 0; p < marey_recording_n_processes(recordings[r]); p++) {
            jobs->tasks[jobs->n_tasks++] = (struct task){recordings[r], (uint32_t)r, p};
            jobs->n_words_total += marey_recording_process(recordings[r], p)->n_words;
        }
    return MAREY_OK;
}

/* ---- all processes ---- */

static marey_status run_jobs(struct jobs *jobs, marey_recording *const *recordings, size_t n)
{
    jobs->merge->iterations.data = jobs->options->data;
    jobs->merge->without_threads = !jobs->options->has_threads;
    MAREY_TRY(list_tasks(jobs, recordings, n));
    jobs->n_workers = marey__worker_count(jobs->options->n_jobs, jobs->n_tasks);
    jobs->n_ring = jobs->n_workers + MAX_WAITING;
    jobs->ring = marey__calloc(jobs->n_ring, sizeof *jobs->ring);
    MAREY__TRY_MEMORY(jobs->ring != NULL);
    marey__run_parallel(work, jobs, jobs->options->n_jobs, jobs->n_tasks);
    if (jobs->status != MAREY_OK)
        return marey__fail(jobs->status, "%s", jobs->error);
    return marey__merge_add_recordings(jobs->merge, recordings, n) ? MAREY_OK : marey__no_memory();
}

marey_status marey__summary_merge(marey_recording *const *recordings, size_t n,
                                  const struct marey__summary_options *options,
                                  const struct marey__summary_tap *tap, struct marey__merge *merge)
{
    struct jobs *jobs = marey__calloc(1, sizeof *jobs);
    MAREY__TRY_MEMORY(jobs != NULL);
    jobs->options = options;
    jobs->tap = tap;
    jobs->merge = merge;
    pthread_mutex_init(&jobs->lock, NULL);
    pthread_cond_init(&jobs->turned, NULL);
    const marey_status status = run_jobs(jobs, recordings, n);
    pthread_cond_destroy(&jobs->turned);
    pthread_mutex_destroy(&jobs->lock);
    MAREY__FREE_ALL(jobs->ring, jobs->tasks, jobs);
    return status;
}
