/* The lists of interpreters and threads of a process, and how they follow its changes. */
#include "sampler/loop/internal.h"

enum { MAX_INTERPRETERS = 64, MAX_THREADS = 8192, LOOKS_PER_LIST = 8 };
static const uint64_t list_again_ns = 1000000000; /* reread lists at least this often */
static const uint64_t first_list_again_ns = 10000000;
static const uint64_t check_again_ns = 250000000; /* recheck that the process is the same */
static const uint64_t first_name_ns =
    100000000; /* a thread gets its name after its start; later, check less and less often */

static void fini_thread(struct marey__sampler_context *context, struct marey__target_thread *thread)
{
    marey__thread_files_fini(&thread->files, &context->n_spare_files);
    marey__places_fini(&thread->places);
    marey__free(thread->walk.frames);
}

marey_status marey__target_create(struct marey__sampler_context *context,
                                  struct marey__remote *remote, int worker,
                                  struct marey__target **out)
{
    struct marey__target *target = marey__calloc(1, sizeof *target);
    if (target == NULL) {
        marey__remote_close(remote);
        return marey__no_memory();
    }
    const struct marey__remote_process *process = marey__remote_process(remote);
    target->remote = remote;
    target->layout = marey__remote_layout(remote);
    target->pid = process->pid;
    target->is_stale = true;
    target->mean_stop_ns = -1;
    target->opened_ns = target->checked_ns = marey__clock_ns(CLOCK_MONOTONIC);
    target->is_program = process->python_version == 0;
    const marey_status status =
        target->is_program ? marey__program_target_init(context, target) : MAREY_OK;
    if (status != MAREY_OK) {
        marey__target_destroy(context, target);
        return status;
    }
    if (!target->is_program && context->native_files != NULL &&
        marey__unwind_create(target->pid, context->native_files, &target->unwind) != MAREY_OK)
        target->unwind = NULL; /* Python frames are still available */
    marey__sampler_context_lock(context);
    target->number = marey__samples_process(
        context->samples, &(struct marey_samples_process){
                              .pid = process->pid,
                              .ppid = process->parent,
                              .start_time = process->start_time,
                              .rank = process->rank,
                              .worker = process->worker >= 0 ? process->worker : worker,
                              .python = process->python_version,
                              .command = process->command,
                              .host = "",
                          });
    marey__sampler_context_unlock(context);
    *out = target;
    return MAREY_OK;
}

void marey__target_destroy(struct marey__sampler_context *context, struct marey__target *target)
{
    if (target == NULL)
        return;
    for (size_t i = 0; i < target->n_threads; i++)
        fini_thread(context, &target->threads[i]);
    MAREY__FREE_ALL(target->threads, target->interpreters, target->seen, target->locations,
                    target->places);
    marey__task_names_fini(&target->tasks);
    marey__unwind_destroy(target->unwind);
    marey__remote_close(target->remote);
    marey__free(target);
}

/* ---- threads ---- */

void marey__target_name_thread(struct marey__sampler_context *context, struct marey__target *target,
                               struct marey__target_thread *thread, const char *name)
{
    marey__sampler_context_lock(context);
    if (thread->number == 0)
        thread->number = marey__samples_thread(
            context->samples, target->number, thread->tid, name,
            target->is_program ? 0 : target->interpreters[thread->interpreter].id,
            thread->tid == target->pid);
    else if (name[0] != '\0')
        marey__samples_rename(context->samples, thread->number, name);
    marey__sampler_context_unlock(context);
    thread->name_ns = target->at_ns + (first_name_ns << MAREY__MIN(thread->n_named, 7u));
    thread->n_named++;
}

static struct marey__target_thread *find_thread(struct marey__target *target, uint64_t address,
                                                pid_t tid, uint32_t interpreter)
{
    for (size_t i = 0; i < target->n_threads; i++) {
        struct marey__target_thread *thread = &target->threads[i];
        if (thread->address == address && thread->tid == tid && thread->interpreter == interpreter)
            return thread;
    }
    return NULL;
}

struct marey__target_thread *marey__target_list_thread(struct marey__target *target, uint64_t address,
                                                       pid_t tid, uint32_t interpreter)
{
    struct marey__target_thread *thread = find_thread(target, address, tid, interpreter);
    if (thread == NULL) {
        if (!marey__grow(&target->threads, &target->threads_cap, target->n_threads + 1,
                         sizeof *thread))
            return NULL;
        thread = &target->threads[target->n_threads++];
        *thread = (struct marey__target_thread){
            .address = address,
            .tid = tid,
            .interpreter = interpreter,
            .wait_call = -1,
        };
        marey__thread_files_init(&thread->files);
    }
    thread->is_listed = true;
    return thread;
}

static void list_thread(struct marey__sampler_context *context, struct marey__target *target,
                        uint64_t address, pid_t tid, uint32_t interpreter)
{
    char name[256] = "";
    struct marey__target_thread *const thread =
        marey__target_list_thread(target, address, tid, interpreter);
    if (thread == NULL || target->at_ns < thread->name_ns)
        return;
    marey__remote_thread_name(target->remote, tid, address, name, sizeof name);
    marey__target_name_thread(context, target, thread, name);
}

/* Reads all thread states at once, for their tids. */
static void list_threads(struct marey__sampler_context *context, struct marey__target *target,
                         uint32_t interpreter)
{
    struct marey__batch *batch = &context->batch;
    const uint64_t address = target->interpreters[interpreter].address;
    uint64_t *const states MAREY__FREED = marey__alloc(MAX_THREADS * sizeof *states);
    if (states == NULL)
        return;
    const size_t n = marey__remote_thread_states(target->remote, address, states, MAX_THREADS);
    target->interpreters[interpreter].threads_head = n > 0 ? states[0] : 0;
    marey__batch_clear(batch);
    for (size_t i = 0; i < n; i++)
        (void)marey__batch_add(batch, states[i], target->layout->thread.size);
    marey__batch_read(batch, target->remote, 0);
    for (size_t i = 0; i < n; i++) {
        const uint8_t *bytes = marey__batch_at(batch, i);
        if (bytes != NULL)
            list_thread(context, target, states[i], marey__remote_tid(target->remote, bytes),
                        interpreter);
    }
}

static void drop_unlisted(struct marey__sampler_context *context, struct marey__target *target)
{
    size_t kept = 0;
    for (size_t i = 0; i < target->n_threads; i++) {
        if (target->threads[i].is_listed)
            target->threads[kept++] = target->threads[i];
        else
            fini_thread(context, &target->threads[i]);
    }
    target->n_threads = kept;
}

static void list_interpreters(struct marey__target *target)
{
    uint64_t found[MAX_INTERPRETERS];
    const size_t n = marey__remote_interpreters(target->remote, found, MAX_INTERPRETERS);
    target->interpreters_head = n > 0 ? found[0] : 0;
    if (!marey__grow(&target->interpreters, &target->interpreters_cap, n,
                     sizeof *target->interpreters))
        return;
    for (size_t i = 0; i < n; i++) {
        struct marey__target_interpreter *interpreter = &target->interpreters[i];
        const bool is_known = i < target->n_interpreters && interpreter->address == found[i];
        if (!is_known)
            *interpreter = (struct marey__target_interpreter){.address = found[i]};
        interpreter->gil = marey__remote_gil(target->remote, found[i]);
        if (!is_known && target->layout->interpreter.id != MAREY__REMOTE_ABSENT)
            (void)marey__remote_read(target->remote, found[i] + target->layout->interpreter.id,
                                     &interpreter->id, sizeof interpreter->id);
    }
    target->n_interpreters = n;
}

static void list_all(struct marey__sampler_context *context, struct marey__target *target)
{
    if (!target->is_program)
        list_interpreters(target);
    for (size_t i = 0; i < target->n_threads; i++)
        target->threads[i].is_listed = false;
    for (uint32_t i = 0; i < target->n_interpreters; i++)
        list_threads(context, target, i);
    if (target->is_program)
        marey__program_target_list(context, target);
    drop_unlisted(context, target);
    marey__remote_forget(target->remote);
    target->listed_ns = target->at_ns;
    target->n_since_listed = 0;
    target->is_stale = false;
}

bool marey__target_refresh(struct marey__sampler_context *context, struct marey__target *target)
{
    if (target->is_doubtful || target->at_ns - target->checked_ns > check_again_ns) {
        target->checked_ns = target->at_ns;
        target->is_doubtful = false;
        target->n_seen = 0;
        const enum marey__remote_state state = marey__remote_state(target->remote);
        target->is_ended = state == MAREY__REMOTE_GONE;
        target->is_replaced = state == MAREY__REMOTE_REPLACED;
        if (state != MAREY__REMOTE_SAME)
            return false;
    }
    /* Nothing reveals new threads of a program, which are frequent early in its life. */
    const uint64_t age_ns = target->at_ns - target->opened_ns;
    const uint64_t again_ns =
        target->is_program ? MAREY__MIN(MAREY__MAX(age_ns / 8, first_list_again_ns), list_again_ns)
                           : list_again_ns;
    /* Reads detect most changes, so the lists of a rarely sampled process are not reread each time. */
    const bool is_due = target->at_ns - target->listed_ns > again_ns &&
                        (target->is_program || target->n_since_listed >= LOOKS_PER_LIST);
    target->n_since_listed++;
    if (target->is_stale || is_due)
        list_all(context, target);
    return true;
}
