/* Several threads over one list of tasks. */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/base_internal.h"

enum { MAX_JOBS = 64 };

struct crew {
    kymo__worker *work;
    void *ctx;
};

static void *work_in_thread(void *arg)
{
    const struct crew *crew = arg;
    crew->work(crew->ctx, false);
    return NULL;
}

size_t kymo__work_crew(size_t n_jobs, size_t n_tasks)
{
    const long n_cores = sysconf(_SC_NPROCESSORS_ONLN);
    n_jobs = n_jobs != 0 ? n_jobs : (size_t)KYMO__MAX(n_cores, 1);
    return KYMO__MIN(KYMO__MIN(n_jobs, n_tasks), (size_t)MAX_JOBS);
}

void kymo__work_together(kymo__worker *work, void *ctx, size_t n_jobs, size_t n_tasks)
{
    pthread_t threads[MAX_JOBS];
    struct crew crew = {work, ctx};
    n_jobs = kymo__work_crew(n_jobs, n_tasks);
    size_t n_threads = 0;
    /* The program's signals are for its own threads; a new one has the mask of whoever makes it. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (n_threads + 1 < n_jobs &&
           pthread_create(&threads[n_threads], NULL, work_in_thread, &crew) == 0)
        n_threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    work(ctx, true);
    for (size_t i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
}
