/* Tasks, taken one after another by the allowed number of threads. */
#include "analyze/walk/internal.h"

struct running {
    const struct marey__tasks *tasks;
    size_t next;          /* threads take it with an atomic add */
    pthread_mutex_t lock; /* guards the members below */
    size_t n_done;
    marey_status status; /* the first failure, and its message */
    char error[1024];
};

static void finish_task(struct running *running, marey_status status, bool may_tell)
{
    const struct marey__tasks *tasks = running->tasks;
    pthread_mutex_lock(&running->lock);
    const size_t n_done = ++running->n_done;
    if (status != MAREY_OK && running->status == MAREY_OK) {
        running->status = status;
        strncpy(running->error, marey_last_error(), sizeof running->error - 1);
    }
    pthread_mutex_unlock(&running->lock);
    if (may_tell && tasks->progress != NULL)
        tasks->progress(tasks->progress_ctx, (double)n_done / (double)tasks->n);
}

static void work(void *ctx, bool may_tell)
{
    struct running *const running = ctx;
    for (;;) {
        const size_t i = __atomic_fetch_add(&running->next, 1, __ATOMIC_RELAXED);
        if (i >= running->tasks->n)
            return;
        finish_task(running, running->tasks->run(running->tasks->ctx, i), may_tell);
    }
}

marey_status marey__tasks_run(const struct marey__tasks *tasks)
{
    struct running running = {.tasks = tasks};
    pthread_mutex_init(&running.lock, NULL);
    marey__run_parallel(work, &running, tasks->n_jobs, tasks->n);
    pthread_mutex_destroy(&running.lock);
    return running.status != MAREY_OK ? marey__fail(running.status, "%s", running.error) : MAREY_OK;
}
