/*
 * One process: its interpreters and threads, and one round over all of them.
 *
 *   1. /proc shows for each thread whether it has run since the last round
 *   2. one read: the heads of lists, the locks, and the stacks of threads that ran and need not be stopped
 *   3. one stop and one read for each running thread that must be exact. A sleeping thread is exact without a stop,
 *      if it is still asleep after the read
 */
#include <sys/syscall.h>

#include "sampler/loop/internal.h"

enum {
    GIL_BYTES = 208,          /* includes the condition variables that threads wait on */
    CODES_VALID_NS = 5000000, /* how long a code object is trusted without a check */
};

/* ---- 1: thread states ---- */

static void find_reason(struct marey__target *target, struct marey__target_thread *thread)
{
    const struct marey__thread_state *state = &thread->state;
    if (!state->is_known || state->is_running || state->call < 0) {
        thread->wait = 0;
        thread->wait_call = -1;
    } else if (state->call != thread->wait_call || state->place != thread->wait_place) {
        const int kept = thread->files.syscall_fd;
        thread->wait = kept >= 0 ? marey__wait_reason_by(target->pid, thread->tid, kept)
                                 : marey__wait_reason(target->pid, thread->tid);
        thread->wait_call = state->call;
        thread->wait_place = state->place;
    }
}

static void look_at_threads(struct marey__sampler_context *context, struct marey__target *target)
{
    for (size_t i = 0; i < target->n_threads; i++) {
        struct marey__target_thread *thread = &target->threads[i];
        if (thread->tid != 0) {
            marey__thread_look(&thread->files, target->pid, thread->tid, &context->n_spare_files,
                               &thread->state);
            if (!thread->state.has_slept)
                find_reason(target, thread);
            if (thread->state.is_gone)
                target->is_stale = true;
        }
        thread->is_due = !thread->state.is_gone && !(thread->state.has_slept && thread->is_read);
        thread->is_exact = false;
    }
}

/* ---- 2: shared data ---- */

static void plan_shared(struct marey__sampler_context *context, struct marey__target *target)
{
    const struct marey__remote_layout *layout = target->layout;
    const uint64_t runtime = marey__remote_runtime(target->remote);
    struct marey__batch *batch = &context->batch;
    marey__batch_clear(batch);
    target->head_copy = marey__batch_add(batch, runtime + layout->runtime.interpreters_head, 8);
    for (size_t i = 0; i < target->n_interpreters; i++) {
        struct marey__target_interpreter *interpreter = &target->interpreters[i];
        interpreter->head_copy =
            marey__batch_add(batch, interpreter->address + layout->interpreter.threads_head, 8);
        interpreter->gc_copy = MAREY__BATCH_NONE;
        if (layout->interpreter.gc_collecting != MAREY__REMOTE_ABSENT)
            interpreter->gc_copy =
                marey__batch_add(batch, interpreter->address + layout->interpreter.gc_collecting, 4);
        interpreter->gil_copy = marey__batch_add(batch, interpreter->gil, layout->gil.size);
    }
}

static void take_lock(struct marey__target *target, struct marey__target_interpreter *interpreter,
                      const uint8_t *gil)
{
    const struct marey__remote_layout *layout = target->layout;
    interpreter->has_gil = gil != NULL && (layout->gil.enabled == MAREY__REMOTE_ABSENT ||
                                           marey__remote_u32(gil, layout->gil.enabled) != 0);
    interpreter->holder = 0;
    if (!interpreter->has_gil)
        return;
    if (marey__remote_u32(gil, layout->gil.locked) == 1)
        interpreter->holder = marey__remote_u64(gil, layout->gil.last_holder);
    const uint64_t switches = marey__remote_u64(gil, layout->gil.switch_number);
    /* Interpreters may share a lock: count each lock once. */
    for (const struct marey__target_interpreter *other = target->interpreters; other != interpreter;
         other++)
        if (other->gil == interpreter->gil)
            return;
    if (interpreter->switch_number != 0 && switches > interpreter->switch_number)
        target->counts.gil_switches += switches - interpreter->switch_number;
    interpreter->switch_number = switches;
}

/* False: nothing could be read, so the process has changed. */
static bool take_shared(struct marey__sampler_context *context, struct marey__target *target)
{
    const struct marey__batch *batch = &context->batch;
    const uint8_t *head = marey__batch_at(batch, target->head_copy);
    if (head == NULL)
        return false;
    if (marey__remote_u64(head, 0) != target->interpreters_head)
        target->is_stale = target->is_doubtful = true;
    for (size_t i = 0; i < target->n_interpreters; i++) {
        struct marey__target_interpreter *interpreter = &target->interpreters[i];
        const uint8_t *threads = marey__batch_at(batch, interpreter->head_copy);
        if (threads == NULL || marey__remote_u64(threads, 0) != interpreter->threads_head)
            target->is_stale = true;
        if (threads == NULL)
            target->is_doubtful = true;
        const uint8_t *gc = marey__batch_at(batch, interpreter->gc_copy);
        interpreter->is_collecting = gc != NULL && marey__remote_u32(gc, 0) != 0;
        take_lock(target, interpreter, marey__batch_at(batch, interpreter->gil_copy));
    }
    return true;
}

/* ---- native frames: copied in the same stop as Python's, merged afterwards ---- */

struct native_copy {
    struct marey__unwind_input input;
    bool is_there;
    bool is_sure; /* set by resolve_native: complete, and each frame was found by a rule */
};

static void plan_stack(struct marey__sampler_context *context, struct marey__target *target,
                       struct native_copy *copy, size_t *index)
{
    const uint64_t sp = copy->input.registers[MAREY__UNWIND_SP];
    copy->input.stack_at = sp;
    copy->input.n_stack = marey__unwind_stack_size(target->unwind, sp, MAREY__UNWIND_MAX_STACK);
    *index = marey__batch_add(&context->batch, sp, copy->input.n_stack);
}

/* Cached in the symbol: C++ names are long, and a torch stack has dozens of them. */
static uint32_t native_location(struct marey__sampler_context *context,
                                struct marey__target *target, uint64_t pc)
{
    const struct marey__native_symbol *symbol = marey__unwind_symbol(target->unwind, pc);
    uint32_t *const tag = marey__native_symbol_tag(symbol);
    if (tag != NULL && *tag != 0)
        return *tag;
    const uint32_t function = marey__samples_function(context->samples, MAREY_FRAME_NATIVE,
                                                      symbol->name, "", symbol->library, 0);
    const uint32_t location = marey__samples_location(context->samples, function, 0);
    if (tag != NULL)
        *tag = location;
    return location;
}

static uint32_t put_merged(struct marey__sampler_context *context, struct marey__target *target,
                           const struct marey__walk *walk, size_t n)
{
    uint32_t stack = 0;
    for (size_t i = n; i-- > 0;) {
        const struct marey__unwind_merged *entry = &context->merged[i];
        const uint32_t location =
            entry->is_python
                ? marey_samples_get_stack(context->samples, walk->frames[entry->index].stack).location
                : native_location(context, target, context->native[entry->index].pc);
        if (location != 0)
            stack = marey__samples_stack(context->samples, stack, location);
    }
    return stack;
}

static uint32_t resolve_native(struct marey__sampler_context *context, struct marey__target *target,
                               const struct marey__target_thread *thread, struct native_copy *copy,
                               size_t index, uint32_t *flags)
{
    const struct marey__walk *walk = &thread->walk;
    bool is_complete = false, is_mismatch = false;
    copy->input.stack = marey__batch_at(&context->batch, index);
    if (copy->input.stack == NULL)
        copy->input.n_stack = 0;
    const size_t n_native = marey__unwind_stack(target->unwind, &copy->input, context->native,
                                                MAREY__UNWIND_MAX_FRAMES, &is_complete);
    copy->is_sure = is_complete;
    for (size_t i = 1; i < n_native; i++)
        copy->is_sure &= context->native[i].by == MAREY__BY_RULE;
    if (!marey__grow(&context->merged, &context->merged_cap, n_native + walk->n,
                     sizeof *context->merged))
        return thread->stack;
    const size_t n = marey__unwind_merge(target->unwind,
                                         &(struct marey__unwind_merge){
                                             .native = context->native,
                                             .n_native = n_native,
                                             .is_complete = is_complete,
                                             .runs = context->runs,
                                             .n_runs = context->n_runs,
                                         },
                                         context->merged, &is_mismatch);
    *flags |= MAREY_SAMPLE_NATIVE;
    if (is_mismatch)
        *flags |= MAREY_SAMPLE_MERGE_MISMATCH;
    if (!is_complete)
        *flags |= MAREY_SAMPLE_NATIVE_CUT;
    return put_merged(context, target, walk, n);
}

/* ---- 3: threads ---- */

/* Stores the walk's result for the thread; false if it is unusable. */
static bool take_walk(struct marey__sampler_context *context, struct marey__target *target,
                      struct marey__target_thread *thread, enum marey__walked walked, uint32_t flags)
{
    uint32_t stack = 0;
    thread->is_read = false;
    if (walked == MAREY__WALK_ENDED) {
        target->is_stale = true;
        return true;
    }
    marey__sampler_context_lock(context);
    const bool is_fine =
        walked == MAREY__WALKED && marey__thread_resolve(context, target, thread, &stack);
    marey__sampler_context_unlock(context);
    if (!is_fine)
        return false;
    thread->stack = stack;
    thread->flags = flags;
    thread->is_read = true;
    return true;
}

/* Whether a thread that was asleep woke before its stack was read: it may have slept elsewhere. */
static bool has_woken(const struct marey__target *target, const struct marey__target_thread *thread)
{
    const struct marey__thread_state *const state = &thread->state;
    return state->is_known && !state->is_running && state->slices != 0 &&
           !marey__thread_has_not_run(&thread->files, target->pid, thread->tid, state);
}

/* False if the data are unusable. */
static bool look_without_stop(struct marey__sampler_context *context, struct marey__target *target,
                              struct marey__target_thread *thread, bool shall_be_exact)
{
    uint32_t flags = 0;
    const enum marey__walked walked = marey__thread_walk(context, target, thread, false, &flags);
    if (walked == MAREY__WALKED && (shall_be_exact || (flags & MAREY_SAMPLE_UNSTABLE) != 0) &&
        marey__thread_has_not_run(&thread->files, target->pid, thread->tid, &thread->state)) {
        flags &= ~(uint32_t)MAREY_SAMPLE_UNSTABLE; /* it slept through the read */
        thread->is_exact = shall_be_exact;
    }
    if (walked == MAREY__WALKED && !shall_be_exact && has_woken(target, thread))
        flags |= MAREY_SAMPLE_UNSTABLE;
    if (walked == MAREY__WALKED && target->at_ns - target->codes_checked_ns > CODES_VALID_NS)
        marey__walk_check_codes(target, &context->walk, &thread->walk);
    return take_walk(context, target, thread, walked, flags);
}

/* Likewise. */
static bool look_with_stop(struct marey__sampler_context *context, struct marey__target *target,
                           struct marey__target_thread *thread)
{
    struct marey__target_interpreter *interpreter = &target->interpreters[thread->interpreter];
    struct native_copy native = {0};
    size_t native_index = MAREY__BATCH_NONE;
    if (thread->places.n_reads == 0) { /* locate its data while it runs, to keep the stop short */
        marey__batch_clear(&context->batch);
        marey__thread_plan(context, target, thread);
        marey__batch_read(&context->batch, target->remote, 0);
        (void)look_without_stop(context, target, thread, false);
    }
    marey__batch_clear(&context->batch);
    const enum marey__stopped stopped = marey__thread_stop(&context->stops, thread->tid);
    if (stopped == MAREY__STOP_GONE) {
        thread->is_read = false;
        target->is_stale = true;
        return true;
    }
    const bool is_still = stopped == MAREY__STOPPED;
    const size_t gil = marey__batch_add(&context->batch, interpreter->gil, target->layout->gil.size);
    marey__thread_plan(context, target, thread);
    native.is_there =
        is_still && target->unwind != NULL && marey__unwind_registers(thread->tid, &native.input);
    if (native.is_there)
        plan_stack(context, target, &native, &native_index);
    marey__batch_read(&context->batch, target->remote, 0);
    uint32_t flags = 0;
    const enum marey__walked walked = marey__thread_walk(context, target, thread, is_still, &flags);
    if (walked == MAREY__WALKED)
        marey__walk_check_codes(target, &context->walk, &thread->walk);
    if (is_still) {
        const uint64_t stood = marey__thread_resume(&context->stops, thread->tid);
        target->counts.stops++;
        target->counts.stop_ns += stood;
        target->counts.stop_max_ns = MAREY__MAX(target->counts.stop_max_ns, stood);
    }
    thread->is_exact = is_still;
    take_lock(target, interpreter, marey__batch_at(&context->batch, gil));
    const bool is_fine = take_walk(context, target, thread, walked, flags);
    if (thread->is_read && native.is_there) {
        marey__sampler_context_lock(context);
        thread->stack =
            resolve_native(context, target, thread, &native, native_index, &thread->flags);
        marey__sampler_context_unlock(context);
    }
    return is_fine;
}

/*
 * For native frames, a thread asleep in a system call: the kernel reports its stack pointer, and the result is exact if
 * it is still asleep after the read. False: it is not asleep, or its stack needs more registers than are known; it must
 * be stopped.
 */
static bool look_asleep(struct marey__sampler_context *context, struct marey__target *target,
                        struct marey__target_thread *thread)
{
    const struct marey__thread_state *state = &thread->state;
    struct native_copy native = {0};
    size_t native_index = MAREY__BATCH_NONE;
    if (target->unwind == NULL || !state->is_known || state->is_running || state->call < 0)
        return false;
    marey__batch_clear(&context->batch);
    marey__thread_plan(context, target, thread);
    if (state->sp == 0 || state->pc == 0)
        return false;
    native.input.registers[MAREY__UNWIND_SP] = state->sp;
    native.input.registers[MAREY__UNWIND_PC] = state->pc;
    native.input.unknown = ~(UINT64_C(1) << MAREY__UNWIND_SP | UINT64_C(1) << MAREY__UNWIND_PC);
    plan_stack(context, target, &native, &native_index);
    marey__batch_read(&context->batch, target->remote, 0);
    if (!look_without_stop(context, target, thread, true) || !thread->is_exact || !thread->is_read)
        return false;
    uint32_t flags = thread->flags;
    marey__sampler_context_lock(context);
    const uint32_t stack = resolve_native(context, target, thread, &native, native_index, &flags);
    marey__sampler_context_unlock(context);
    thread->is_exact = native.is_sure;
    if (!native.is_sure)
        return false;
    thread->stack = stack;
    thread->flags = flags;
    return true;
}

static void look_at_stacks(struct marey__sampler_context *context, struct marey__target *target,
                           enum marey__round how)
{
    const bool shall_be_exact = how != MAREY__LOOK_SNAPSHOT;
    for (size_t i = 0; i < target->n_threads; i++) {
        struct marey__target_thread *thread = &target->threads[i];
        if (thread->is_due && thread->places.state_copy != MAREY__BATCH_NONE) {
            const bool is_last =
                !shall_be_exact || thread->tid == 0; /* otherwise it is stopped below */
            if (!look_without_stop(context, target, thread, shall_be_exact) && is_last)
                target->counts.rejected++;
        } else if (!thread->is_due)
            thread->is_exact = shall_be_exact; /* asleep since it was read */
    }
    if (!shall_be_exact)
        return;
    for (size_t i = 0; i < target->n_threads; i++) {
        struct marey__target_thread *thread = &target->threads[i];
        if (thread->is_due && !thread->is_exact && thread->tid != 0 &&
            !look_asleep(context, target, thread) && !look_with_stop(context, target, thread))
            target->counts.rejected++;
    }
}

/* Whether a thread is read by the common first read. With native frames, all threads that moved are stopped. */
static bool is_read_with_all(const struct marey__target *target,
                             const struct marey__target_thread *thread, enum marey__round how)
{
    return thread->is_due &&
           (how == MAREY__LOOK_SNAPSHOT || thread->tid == 0 ||
            (target->unwind == NULL && thread->state.is_known && !thread->state.is_running));
}

/* ---- the result ---- */

static uint32_t flags_of(const struct marey__target *target,
                         const struct marey__target_thread *thread, enum marey__round how)
{
    const struct marey__target_interpreter *interpreter = &target->interpreters[thread->interpreter];
    const struct marey__thread_state *state = &thread->state;
    uint32_t flags = thread->flags | (thread->is_exact ? MAREY_SAMPLE_EXACT : 0);
    if (state->is_known)
        flags |= state->is_running ? MAREY_SAMPLE_ON_CPU : MAREY_SAMPLE_OFF_CPU;
    if (target->is_program)
        return flags;
    if (interpreter->has_gil && interpreter->holder == thread->address) {
        flags |= MAREY_SAMPLE_GIL;
        if (interpreter->is_collecting)
            flags |= MAREY_SAMPLE_GC;
    } else if (state->is_known && !state->is_running && state->call == SYS_futex &&
               interpreter->gil != 0 && state->place - interpreter->gil < GIL_BYTES) {
        flags |= MAREY_SAMPLE_WANTS_GIL; /* it waits on a futex in that very lock */
    }
    /* A thread that did not stop in time still belongs to the audit: such threads are running and would be missing there. */
    return flags | (how == MAREY__LOOK_AUDIT ? MAREY_SAMPLE_AUDIT : 0);
}

static void put_seen(struct marey__target *target, enum marey__round how)
{
    struct marey_samples_counts *counts = &target->counts;
    target->n_seen = 0;
    if (!marey__grow(&target->seen, &target->seen_cap, target->n_threads, sizeof *target->seen))
        return;
    for (size_t i = 0; i < target->n_threads; i++) {
        const struct marey__target_thread *thread = &target->threads[i];
        if (!thread->is_read || thread->state.is_gone)
            continue;
        const uint32_t flags = flags_of(target, thread, how);
        target->seen[target->n_seen++] = (struct marey_samples_seen){
            .thread = thread->number,
            .stack = thread->stack,
            .flags = flags,
            .wait = thread->wait,
        };
        counts->samples++;
        counts->unstable += (flags & MAREY_SAMPLE_UNSTABLE) != 0;
        counts->exact += (flags & MAREY_SAMPLE_EXACT) != 0;
        counts->audit += (flags & MAREY_SAMPLE_AUDIT) != 0;
    }
}

/* False: nothing could be read. */
static bool look_at_python(struct marey__sampler_context *context, struct marey__target *target,
                           enum marey__round how)
{
    plan_shared(context, target);
    for (size_t i = 0; i < target->n_threads; i++) {
        struct marey__target_thread *thread = &target->threads[i];
        thread->places.state_copy = MAREY__BATCH_NONE;
        if (is_read_with_all(target, thread, how))
            marey__thread_plan(context, target, thread);
    }
    marey__batch_read(&context->batch, target->remote, 0);
    if (!take_shared(context, target))
        return false;
    look_at_stacks(context, target, how);
    return true;
}

bool marey__target_look(struct marey__sampler_context *context, struct marey__target *target,
                        enum marey__round how)
{
    target->at_ns = marey__clock_ns(CLOCK_MONOTONIC);
    if (!marey__target_refresh(context, target))
        return false;
    look_at_threads(context, target);
    if (target->is_program) {
        marey__program_target_read(context, target);
    } else if (!look_at_python(context, target, how)) {
        target->is_doubtful = true;
        return marey__target_refresh(context, target);
    }
    put_seen(target, how);
    target->counts.done++;
    const struct marey__remote_reads reads = marey__remote_reads(target->remote);
    target->counts.reads = reads.calls;
    target->counts.bytes_read = reads.bytes;
    return true;
}
