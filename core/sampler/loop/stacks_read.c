/*
 * Reads the stacks of all threads of many processes once: in parallel, with a thread and a context for each process and
 * one shared store.
 */
#include "sampler/loop/internal.h"

enum { PATIENCE_NS = 900000000 /* nothing else to do meanwhile */ };

/* The result for one process given by the user. */
struct task {
    pid_t pid;
    struct marey_samples_round *rounds;
    size_t n_rounds, rounds_cap;
    char *why; /* why it could not be read, or NULL */
};

struct job {
    struct marey_sampler_stacks result; /* first member: callers get a pointer to it */
    marey_samples *samples;
    pthread_mutex_t lock;
    struct marey_sampler_options options;
    struct task *tasks;
    size_t n_tasks;
    size_t next; /* the next task. __atomic, relaxed: tasks are written before and read after all work */
    struct marey_samples_round *rounds;
    struct marey_sampler_failure *failures;
};

static bool keep_round(struct task *task, const struct marey__target *target)
{
    struct marey_samples_seen *seen = marey__alloc(MAREY__MAX(target->n_seen, 1u) * sizeof *seen);
    if (seen == NULL ||
        !marey__grow(&task->rounds, &task->rounds_cap, task->n_rounds + 1, sizeof *task->rounds)) {
        marey__free(seen);
        return false;
    }
    if (target->n_seen > 0)
        memcpy(seen, target->seen, target->n_seen * sizeof *seen);
    if (marey__is_stopped(target->pid))
        for (size_t i = 0; i < target->n_seen; i++) {
            seen[i].flags = (seen[i].flags & ~(uint32_t)MAREY_SAMPLE_ON_CPU) | MAREY_SAMPLE_OFF_CPU;
            seen[i].wait = marey__wait_stopped();
        }
    task->rounds[task->n_rounds++] = (struct marey_samples_round){
        .process = target->number,
        .at_ns = target->at_ns,
        .seen = seen,
        .n_seen = target->n_seen,
    };
    return true;
}

static bool is_another_task(const struct job *job, const struct task *task, pid_t pid)
{
    for (size_t i = 0; i < job->n_tasks; i++)
        if (job->tasks[i].pid == pid)
            return &job->tasks[i] != task;
    return false;
}

static void read_task(struct job *job, struct task *task)
{
    struct marey__sampler_context context;
    struct marey__family family = {.loadavg_fd = -1};
    bool has_memory =
        marey__sampler_context_init(&context, job->samples, &job->lock, job->options.native != 0, 1);
    context.stops.patience_ns = PATIENCE_NS;
    if (has_memory) {
        marey__family_init(&family, &context, !job->options.no_children, job->options.patience_ms);
        if (marey__family_name(&family, task->pid) != MAREY_OK)
            task->why = marey__strndup(marey_last_error(), strlen(marey_last_error()));
    }
    for (size_t i = 0; i < family.n && has_memory; i++) {
        struct marey__target *target = family.members[i].target;
        if (target == NULL || is_another_task(job, task, target->pid))
            continue;
        if (marey__target_look(&context, target, MAREY__LOOK_EXACT))
            has_memory = keep_round(task, target);
    }
    if (!has_memory || (task->why == NULL && task->n_rounds == 0))
        task->why = has_memory ? marey__strndup("it ended", 8) : marey__strndup("out of memory", 13);
    marey__family_fini(&family);
    marey__sampler_context_fini(&context);
}

static void work(void *ctx, bool may_tell)
{
    struct job *job = ctx;
    (void)may_tell;
    for (;;) {
        const size_t i = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
        if (i >= job->n_tasks)
            return;
        read_task(job, &job->tasks[i]);
    }
}

/* Concatenates the results of all tasks. */
static marey_status collect(struct job *job)
{
    size_t n_rounds = 0, n_failures = 0;
    for (size_t i = 0; i < job->n_tasks; i++) {
        n_rounds += job->tasks[i].n_rounds;
        n_failures += job->tasks[i].why != NULL;
    }
    job->rounds = marey__alloc((n_rounds + 1) * sizeof *job->rounds);
    job->failures = marey__alloc((n_failures + 1) * sizeof *job->failures);
    MAREY__TRY_MEMORY(job->rounds != NULL && job->failures != NULL);
    for (size_t i = 0; i < job->n_tasks; i++) {
        const struct task *task = &job->tasks[i];
        for (size_t k = 0; k < task->n_rounds; k++)
            job->rounds[job->result.n_rounds++] = task->rounds[k];
        if (task->why != NULL)
            job->failures[job->result.n_failures++] =
                (struct marey_sampler_failure){.pid = task->pid, .why = task->why};
    }
    job->result.samples = job->samples;
    job->result.rounds = job->rounds;
    job->result.failures = job->failures;
    return MAREY_OK;
}

marey_status marey_sampler_stacks_read(const pid_t *pids, size_t n_pids,
                                       const struct marey_sampler_options *options,
                                       struct marey_sampler_stacks **out)
{
    struct job *job = marey__calloc(1, sizeof *job);
    MAREY__TRY_MEMORY(job != NULL);
    pthread_mutex_init(&job->lock, NULL);
    if (options != NULL)
        memcpy(&job->options, options, MAREY__MIN(options->size, sizeof job->options));
    job->samples = marey__samples_create();
    job->tasks = marey__calloc(n_pids + 1, sizeof *job->tasks);
    if (job->samples == NULL || job->tasks == NULL) {
        marey_sampler_stacks_free(&job->result);
        return marey__no_memory();
    }
    for (size_t i = 0; i < n_pids; i++)
        job->tasks[i].pid = pids[i];
    job->n_tasks = n_pids;
    marey__run_parallel(work, job, 0, n_pids);
    const marey_status status = collect(job);
    if (status == MAREY_OK)
        *out = &job->result;
    else
        marey_sampler_stacks_free(&job->result);
    return status;
}

void marey_sampler_stacks_free(struct marey_sampler_stacks *stacks)
{
    struct job *job = (struct job *)stacks;
    if (job == NULL)
        return;
    for (size_t i = 0; i < job->n_tasks; i++) {
        for (size_t k = 0; k < job->tasks[i].n_rounds; k++)
            marey__free((void *)job->tasks[i].rounds[k].seen);
        MAREY__FREE_ALL(job->tasks[i].rounds, job->tasks[i].why);
    }
    MAREY__FREE_ALL(job->tasks, job->rounds, job->failures);
    marey_samples_destroy(job->samples);
    pthread_mutex_destroy(&job->lock);
    marey__free(job);
}
