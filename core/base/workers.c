/* Several threads working on one list of tasks. */
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/internal.h"

/* Besides the workers' files, a process has its three streams, its inputs and its outputs. */
enum { MAX_JOBS = 64, FILES_OF_WORKER = 2, OTHER_FILES = 24 };

struct parallel_run {
    marey__worker *work;
    void *ctx;
};

static void *work_in_thread(void *arg)
{
    const struct parallel_run *run = arg;
    run->work(run->ctx, false);
    return NULL;
}

/* The number of workers that can have their files open at the same time. */
static size_t most_by_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 ||
        files.rlim_cur >= OTHER_FILES + FILES_OF_WORKER * MAX_JOBS)
        return MAX_JOBS;
    return files.rlim_cur < OTHER_FILES + FILES_OF_WORKER
               ? 1
               : (size_t)(files.rlim_cur - OTHER_FILES) / FILES_OF_WORKER;
}

size_t marey__worker_count(size_t n_jobs, size_t n_tasks)
{
    const long n_cores = sysconf(_SC_NPROCESSORS_ONLN);
    n_jobs = n_jobs != 0 ? n_jobs : (size_t)MAREY__MAX(n_cores, 1);
    return MAREY__MIN(MAREY__MIN(n_jobs, n_tasks), most_by_files());
}

int marey__thread_create(pthread_t *thread, size_t stack_bytes, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    if (stack_bytes != 0)
        pthread_attr_setstacksize(&attr, stack_bytes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* a new thread inherits the mask of its creator */
    const int error = pthread_create(thread, &attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return error;
}

void marey__run_parallel(marey__worker *work, void *ctx, size_t n_jobs, size_t n_tasks)
{
    pthread_t threads[MAX_JOBS];
    struct parallel_run run = {work, ctx};
    n_jobs = marey__worker_count(n_jobs, n_tasks);
    size_t n_threads = 0;
    while (n_threads + 1 < n_jobs &&
           marey__thread_create(&threads[n_threads], 0, work_in_thread, &run) == 0)
        n_threads++;
    work(ctx, true);
    for (size_t i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
}
