/*
 * Native stacks of a process without Python, with source lines if the program has debug information.
 *
 * A thread asleep in a system call is read without a stop: the kernel reports its stack pointer and program counter. A
 * running thread is stopped to read its registers. A sleeping thread whose stack only a stop would reveal is skipped,
 * because a stop could interrupt its wait.
 */
#include <dirent.h>

#include "sampler/loop/internal.h"

enum { PLACES = 4096 };

/* Cache of the locations of an address, innermost first; a newer one replaces another in the same slot. */
struct marey__program_place {
    uint64_t pc;
    const struct marey__native_symbol *symbol; /* changes when a library is replaced */
    uint32_t locations[MAREY__SOURCE_LINES], n;
};

marey_status marey__program_target_init(struct marey__sampler_context *context,
                                        struct marey__target *target)
{
    if (context->native == NULL)
        context->native = marey__alloc(MAREY__UNWIND_MAX_FRAMES * sizeof *context->native);
    target->places = marey__calloc(PLACES, sizeof *target->places);
    MAREY__TRY_MEMORY(context->native != NULL && target->places != NULL);
    if (context->program_files == NULL)
        MAREY_TRY(marey__unwind_files_create(&context->program_files));
    return marey__unwind_create(target->pid, context->program_files, &target->unwind);
}

void marey__program_target_list(struct marey__sampler_context *context, struct marey__target *target)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)target->pid);
    DIR *const tasks = opendir(path);
    if (tasks == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        uint64_t tid;
        char name[64];
        struct marey__target_thread *const thread =
            marey__parse_number(entry->d_name, strlen(entry->d_name), &tid)
                ? marey__target_list_thread(target, 0, (pid_t)tid, 0)
                : NULL;
        if (thread == NULL || target->at_ns < thread->name_ns)
            continue;
        marey__read_proc(target->pid, (int64_t)tid, "comm", name, sizeof name);
        name[strcspn(name, "\n")] = '\0';
        marey__target_name_thread(context, target, thread, name);
    }
    closedir(tasks);
}

/* ---- names ---- */

/* Code that runs before main, and before a thread's function. */
static bool is_start(const struct marey__native_symbol *symbol)
{
    return symbol->role == MAREY__NATIVE_START && strcmp(symbol->name, "main") != 0;
}

static uint32_t location_of(marey_samples *samples, const char *name, const char *file,
                            const char *library, uint32_t line)
{
    return marey__samples_location(
        samples, marey__samples_function(samples, MAREY_FRAME_NATIVE, name, file, library, 0), line);
}

static void find_locations(struct marey__sampler_context *context, struct marey__target *target,
                           struct marey__program_place *place)
{
    struct marey__source_line lines[MAREY__SOURCE_LINES];
    const char *const library = place->symbol->library;
    const size_t n = marey__unwind_lines(target->unwind, place->pc, lines);
    place->n = (uint32_t)MAREY__MAX(n, (size_t)1);
    for (size_t i = 0; i < n; i++)
        place->locations[i] = location_of(
            context->samples, lines[i].name[0] != '\0' ? lines[i].name : place->symbol->name,
            lines[i].file, library, lines[i].line);
    if (n == 0)
        place->locations[0] = location_of(context->samples, place->symbol->name, "", library, 0);
}

static uint32_t put_frames(struct marey__sampler_context *context, struct marey__target *target,
                           size_t n)
{
    uint32_t stack = 0;
    while (n-- > 0) {
        const uint64_t pc = context->native[n].pc;
        const struct marey__native_symbol *const symbol = marey__unwind_symbol(target->unwind, pc);
        struct marey__program_place *const place =
            &target->places[(pc * 0x9e3779b97f4a7c15u >> 32) % PLACES];
        if (is_start(symbol))
            continue;
        if (place->pc != pc || place->symbol != symbol || place->n == 0) {
            *place = (struct marey__program_place){.pc = pc, .symbol = symbol};
            find_locations(context, target, place);
        }
        for (size_t i = place->n; i-- > 0;)
            if (place->locations[i] != 0)
                stack = marey__samples_stack(context->samples, stack, place->locations[i]);
    }
    return stack;
}

/* ---- stacks ---- */

/* Copies the stack from the stack pointer on; false if it cannot be read. */
static bool copy_stack(struct marey__sampler_context *context, struct marey__target *target,
                       struct marey__unwind_input *input)
{
    const uint64_t sp = input->registers[MAREY__UNWIND_SP];
    marey__batch_clear(&context->batch);
    input->stack_at = sp;
    input->n_stack = marey__unwind_stack_size(target->unwind, sp, MAREY__UNWIND_MAX_STACK);
    const size_t copy = marey__batch_add(&context->batch, sp, input->n_stack);
    marey__batch_read(&context->batch, target->remote, 0);
    input->stack = marey__batch_at(&context->batch, copy);
    if (input->stack == NULL)
        input->n_stack = 0;
    return input->stack != NULL;
}

/* False if it is running now. */
static bool copy_asleep(struct marey__sampler_context *context, struct marey__target *target,
                        struct marey__target_thread *thread, struct marey__unwind_input *input)
{
    input->registers[MAREY__UNWIND_SP] = thread->state.sp;
    input->registers[MAREY__UNWIND_PC] = thread->state.pc;
    input->unknown = ~(UINT64_C(1) << MAREY__UNWIND_SP | UINT64_C(1) << MAREY__UNWIND_PC);
    return copy_stack(context, target, input) &&
           marey__thread_has_not_run(&thread->files, target->pid, thread->tid, &thread->state);
}

static bool copy_stopped(struct marey__sampler_context *context, struct marey__target *target,
                         struct marey__target_thread *thread, struct marey__unwind_input *input)
{
    const enum marey__stopped stopped = marey__thread_stop(&context->stops, thread->tid);
    target->is_stale |= stopped == MAREY__STOP_GONE;
    if (stopped != MAREY__STOPPED)
        return false;
    const bool is_there =
        marey__unwind_registers(thread->tid, input) && copy_stack(context, target, input);
    const uint64_t stood_ns = marey__thread_resume(&context->stops, thread->tid);
    target->counts.stops++;
    target->counts.stop_ns += stood_ns;
    target->counts.stop_max_ns = MAREY__MAX(target->counts.stop_max_ns, stood_ns);
    return is_there;
}

static void read_thread(struct marey__sampler_context *context, struct marey__target *target,
                        struct marey__target_thread *thread)
{
    struct marey__unwind_input input = {0};
    const struct marey__thread_state *const state = &thread->state;
    const bool is_asleep = state->is_known && !state->is_running && state->call >= 0;
    bool is_complete = false;
    thread->is_read = false;
    if (is_asleep ? state->sp == 0 || !copy_asleep(context, target, thread, &input)
                  : !state->is_running || !copy_stopped(context, target, thread, &input)) {
        target->counts.rejected++;
        return;
    }
    const size_t n = marey__unwind_stack(target->unwind, &input, context->native,
                                         MAREY__UNWIND_MAX_FRAMES, &is_complete);
    marey__sampler_context_lock(context);
    thread->stack = put_frames(context, target, n);
    marey__sampler_context_unlock(context);
    thread->flags = MAREY_SAMPLE_NATIVE | (is_complete ? 0 : (uint32_t)MAREY_SAMPLE_NATIVE_CUT);
    thread->is_read = thread->is_exact = true;
}

void marey__program_target_read(struct marey__sampler_context *context, struct marey__target *target)
{
    marey__unwind_refresh_maps(target->unwind);
    for (size_t i = 0; i < target->n_threads; i++) {
        if (target->threads[i].is_due)
            read_thread(context, target, &target->threads[i]);
        else
            target->threads[i].is_exact = target->threads[i].is_read;
    }
}
