/* The interpreters and threads of a process, and how what is known of it keeps up with what it becomes. */
#include <string.h>

#include "clock/clock_internal.h"
#include "sampler/sampler_internal.h"

enum { MAX_INTERPRETERS = 64, MAX_THREADS = 8192 };
static const uint64_t list_again_ns = 1000000000; /* lists are read again at least so often */
static const uint64_t check_again_ns = 250000000; /* and whether the process is still the same */
static const uint64_t first_name_ns =
    100000000; /* a thread gets its name after its start; then ever more seldom */

static void fini_thread(struct kymo__looker *looker, struct kymo__target_thread *thread)
{
    kymo__thread_files_fini(&thread->files, &looker->n_spare_files);
    kymo__places_fini(&thread->places);
    kymo__free(thread->walk.frames);
}

kymo_status kymo__target_create(struct kymo__looker *looker, struct kymo__remote *remote,
                                int worker, struct kymo__target **out)
{
    struct kymo__target *target = kymo__calloc(1, sizeof *target);
    if (target == NULL) {
        kymo__remote_close(remote);
        return kymo__fail(KYMO_ENOMEM, "no memory for a process to sample");
    }
    const struct kymo__remote_process *process = kymo__remote_process(remote);
    target->remote = remote;
    target->layout = kymo__remote_layout(remote);
    target->pid = process->pid;
    target->is_stale = true;
    target->mean_stop_ns = -1;
    target->opened_ns = target->checked_ns = kymo__clock_ns(CLOCK_MONOTONIC);
    if (looker->native_files != NULL &&
        kymo__unwind_create(target->pid, looker->native_files, &target->unwind) != KYMO_OK)
        target->unwind = NULL; /* Python's frames are there all the same */
    kymo__looker_lock(looker);
    target->number = kymo__samples_process(
        looker->samples, &(struct kymo_samples_process){
                             .pid = process->pid,
                             .ppid = process->parent,
                             .start_time = process->start_time,
                             .rank = process->rank,
                             .worker = process->worker >= 0 ? process->worker : worker,
                             .python = process->python_version,
                             .command = process->command,
                             .host = "",
                         });
    kymo__looker_unlock(looker);
    *out = target;
    return KYMO_OK;
}

void kymo__target_destroy(struct kymo__looker *looker, struct kymo__target *target)
{
    if (target == NULL)
        return;
    for (size_t i = 0; i < target->n_threads; i++)
        fini_thread(looker, &target->threads[i]);
    kymo__free(target->threads);
    kymo__free(target->interpreters);
    kymo__free(target->seen);
    kymo__locations_fini(&target->locations);
    kymo__task_names_fini(&target->tasks);
    kymo__unwind_destroy(target->unwind);
    kymo__remote_close(target->remote);
    kymo__free(target);
}

/* ---- threads ---- */

static void name_thread(struct kymo__looker *looker, struct kymo__target *target,
                        struct kymo__target_thread *thread, uint64_t now_ns)
{
    char name[256] = "";
    kymo__remote_thread_name(target->remote, thread->tid, thread->address, name, sizeof name);
    kymo__looker_lock(looker);
    if (thread->number == 0)
        thread->number = kymo__samples_thread(looker->samples, target->number, thread->tid, name,
                                              target->interpreters[thread->interpreter].id,
                                              thread->tid == target->pid);
    else if (name[0] != '\0')
        kymo__samples_rename(looker->samples, thread->number, name);
    kymo__looker_unlock(looker);
    thread->name_ns = now_ns + (first_name_ns << KYMO__MIN(thread->n_named, 7u));
    thread->n_named++;
}

static struct kymo__target_thread *find_thread(struct kymo__target *target, uint64_t address,
                                               pid_t tid, uint32_t interpreter)
{
    for (size_t i = 0; i < target->n_threads; i++) {
        struct kymo__target_thread *thread = &target->threads[i];
        if (thread->address == address && thread->tid == tid && thread->interpreter == interpreter)
            return thread;
    }
    return NULL;
}

static void list_thread(struct kymo__looker *looker, struct kymo__target *target, uint64_t address,
                        pid_t tid, uint32_t interpreter, uint64_t now_ns)
{
    struct kymo__target_thread *thread = find_thread(target, address, tid, interpreter);
    if (thread == NULL) {
        if (!kymo__grow(&target->threads, &target->threads_cap, target->n_threads + 1, sizeof *thread))
            return;
        thread = &target->threads[target->n_threads++];
        *thread = (struct kymo__target_thread){
            .address = address,
            .tid = tid,
            .interpreter = interpreter,
            .wait_call = -1,
        };
        kymo__thread_files_init(&thread->files);
    }
    thread->is_listed = true;
    if (now_ns >= thread->name_ns)
        name_thread(looker, target, thread, now_ns);
}

/* The states of all threads by one read, for their tids. */
static void list_threads(struct kymo__looker *looker, struct kymo__target *target,
                         uint32_t interpreter, uint64_t now_ns)
{
    struct kymo__batch *batch = &looker->batch;
    const uint64_t address = target->interpreters[interpreter].address;
    uint64_t *states = kymo__alloc(MAX_THREADS * sizeof *states);
    if (states == NULL)
        return;
    const size_t n = kymo__remote_thread_states(target->remote, address, states, MAX_THREADS);
    target->interpreters[interpreter].threads_head = n > 0 ? states[0] : 0;
    kymo__batch_clear(batch);
    for (size_t i = 0; i < n; i++)
        (void)kymo__batch_add(batch, states[i], target->layout->thread.size);
    kymo__batch_read(batch, target->remote, 0);
    for (size_t i = 0; i < n; i++) {
        const uint8_t *bytes = kymo__batch_at(batch, i);
        if (bytes != NULL)
            list_thread(looker, target, states[i], kymo__remote_tid(target->remote, bytes),
                        interpreter, now_ns);
    }
    kymo__free(states);
}

static void drop_unlisted(struct kymo__looker *looker, struct kymo__target *target)
{
    size_t kept = 0;
    for (size_t i = 0; i < target->n_threads; i++) {
        if (target->threads[i].is_listed)
            target->threads[kept++] = target->threads[i];
        else
            fini_thread(looker, &target->threads[i]);
    }
    target->n_threads = kept;
}

static void list_interpreters(struct kymo__target *target)
{
    uint64_t found[MAX_INTERPRETERS];
    const size_t n = kymo__remote_interpreters(target->remote, found, MAX_INTERPRETERS);
    target->interpreters_head = n > 0 ? found[0] : 0;
    if (!kymo__grow(&target->interpreters, &target->interpreters_cap, n, sizeof *target->interpreters))
        return;
    for (size_t i = 0; i < n; i++) {
        struct kymo__target_interpreter *interpreter = &target->interpreters[i];
        const bool is_known = i < target->n_interpreters && interpreter->address == found[i];
        if (!is_known)
            *interpreter = (struct kymo__target_interpreter){.address = found[i]};
        interpreter->gil = kymo__remote_gil(target->remote, found[i]);
        if (!is_known && target->layout->interpreter.id != KYMO__REMOTE_ABSENT)
            (void)kymo__remote_read(target->remote, found[i] + target->layout->interpreter.id,
                                    &interpreter->id, sizeof interpreter->id);
    }
    target->n_interpreters = n;
}

static void list_all(struct kymo__looker *looker, struct kymo__target *target)
{
    list_interpreters(target);
    for (size_t i = 0; i < target->n_threads; i++)
        target->threads[i].is_listed = false;
    for (uint32_t i = 0; i < target->n_interpreters; i++)
        list_threads(looker, target, i, target->at_ns);
    drop_unlisted(looker, target);
    kymo__remote_forget(target->remote);
    target->listed_ns = target->at_ns;
    target->is_stale = false;
}

bool kymo__target_keep_up(struct kymo__looker *looker, struct kymo__target *target)
{
    if (target->is_doubtful || target->at_ns - target->checked_ns > check_again_ns) {
        target->checked_ns = target->at_ns;
        target->is_doubtful = false;
        target->n_seen = 0;
        const enum kymo__remote_fate fate = kymo__remote_fate(target->remote);
        target->is_ended = fate == KYMO__REMOTE_GONE;
        target->is_replaced = fate == KYMO__REMOTE_REPLACED;
        if (fate != KYMO__REMOTE_SAME)
            return false;
    }
    if (target->is_stale || target->at_ns - target->listed_ns > list_again_ns)
        list_all(looker, target);
    return true;
}
