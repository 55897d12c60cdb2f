/*
 * py-spy's raw format and collapsed stacks: one line per stack with frames from the outermost on, then its number of
 * samples.
 *
 *   process 12:"python train.py";thread (0x7F): MainThread;main (train.py:3);step (train.py:9) 5
 *
 * The innermost process frame gives the process, a thread frame the thread. Samples have no times: each counts as 10 ms,
 * py-spy's default, and ranges represent as many calls as they have samples.
 */
#include "import/stacks/internal.h"

enum {
    SAMPLE_NS = 10000000,
    SECOND_NS = 1000000000,
    MAX_QUOTED = 60, /* bytes of a line quoted in a note */
};

/* Upper limits: larger numbers of samples are nanoseconds, and larger sums are invalid. */
static const uint64_t most_samples = 1000000000, most_ns = UINT64_C(1) << 62;

/* A process of the file, and a thread of a process. */
struct process {
    int64_t pid; /* the key */
    marey__sink_process *process;
    uint64_t n_samples;
};
struct thread {
    int64_t pid, tid; /* the key */
    uint32_t process; /* index in the list */
    uint32_t lane, root;
    bool is_named;
};

struct reading {
    struct marey__import *import;
    struct marey__frames frames;
    struct marey__paths paths;
    struct process *processes;
    size_t n_processes, processes_cap;
    struct thread *threads;
    size_t n_threads, threads_cap;
    struct marey__index process_index, thread_index;
    size_t last; /* latest thread; the next line most likely has the same */
    uint64_t n_lines, n_stacks, n_samples;
    uint64_t n_bad, first_bad, n_cut;
    char bad[MAX_QUOTED + 1];
    bool is_difference;
};

/* ---- processes and threads ---- */

/* Who ran a stack; unknown values are negative. */
struct owner {
    int64_t pid, ppid, tid;
    struct marey__text command, thread;
};

/* Remove the frames that name processes and a thread. */
static void take_owner(struct marey__text *stack, struct owner *owner)
{
    struct marey__text rest = *stack, frame, command, name;
    int64_t pid, tid;
    *owner = (struct owner){.pid = -1, .ppid = -1, .tid = -1};
    while (marey__collapsed_frame(&rest, &frame)) {
        if (owner->tid < 0 && marey__collapsed_process(&frame, &pid, &command)) {
            owner->ppid = owner->pid;
            owner->pid = pid;
            owner->command = command;
        } else if (owner->tid < 0 && marey__collapsed_thread(&frame, &tid, &name)) {
            owner->tid = tid < 0 ? INT64_MAX : tid;
            owner->thread = name;
        } else if (owner->tid >= 0 && frame.at[0] == ' ') {
            /* A thread called "a; b": no frame begins with a blank. */
            owner->thread.len = (size_t)(frame.at + frame.len - owner->thread.at);
        } else {
            return;
        }
        *stack = rest;
    }
    *stack = rest;
}

static bool identify(marey__sink_process *process, const struct owner *owner)
{
    if (owner->pid < 0)
        return true;
    char *command = marey__strndup(owner->command.at, owner->command.len);
    const struct marey__sink_identity identity = {
        .pid = owner->pid, .ppid = owner->ppid, .rank = -1, .world_size = -1, .command = command};
    marey__sink_identify(process, &identity);
    marey__free(command);
    return command != NULL;
}

/* The index of a stack's process, created if needed. */
static bool find_process(struct reading *r, const struct owner *owner, uint32_t *number)
{
    const size_t n_before = r->n_processes;
    *number = MAREY__INDEX_NUMBER(&r->process_index, r->frames.seed, r->processes, r->n_processes,
                                  r->processes_cap, owner->pid);
    if (*number == 0)
        return false;
    (*number)--;
    if (r->n_processes == n_before)
        return true;
    const uint64_t key = owner->pid >= 0 ? (uint64_t)owner->pid : r->import->number;
    marey__sink_process *const process = marey__sink_process_get(r->import->sink, key);
    r->processes[*number].process = process;
    return process != NULL && identify(process, owner);
}

/* py-spy does not record a thread's name in each sample. */
static void name_thread(struct reading *r, const struct owner *owner)
{
    static const char all[] = "samples"; /* without --threads: samples of all threads */
    struct thread *thread = &r->threads[r->last];
    const bool is_all = owner->tid < 0;
    const size_t len = is_all ? strlen(all) : owner->thread.len;
    if (thread->is_named || len == 0)
        return;
    marey__sink_name_lane(r->processes[thread->process].process, thread->lane,
                          is_all ? all : owner->thread.at, len);
    thread->is_named = true;
}

static bool start_thread(struct reading *r, struct thread *thread, const struct owner *owner)
{
    /* Frames count up from 0; the root of a thread's paths uses a number that no frame has. */
    thread->root = marey__paths_child(&r->paths, 0, UINT32_MAX - 1 - (uint32_t)r->last);
    if (thread->root == 0 || !find_process(r, owner, &thread->process))
        return false;
    const int64_t tid = owner->tid >= 0 ? owner->tid : MAREY__MAX(owner->pid, 0);
    thread->lane = marey__sink_thread(r->processes[thread->process].process, tid);
    return true;
}

/* Set `last` to the thread of a stack. */
static bool find_thread(struct reading *r, const struct owner *owner)
{
    const int64_t key[2] = {owner->pid, owner->tid};
    const size_t n_before = r->n_threads;
    if (r->last < n_before && memcmp(&r->threads[r->last], key, sizeof key) == 0)
        return true;
    const uint32_t number = MAREY__INDEX_NUMBER(&r->thread_index, r->frames.seed, r->threads,
                                                r->n_threads, r->threads_cap, key);
    r->last = number - (number != 0);
    return number != 0 && (r->n_threads == n_before || start_thread(r, &r->threads[r->last], owner));
}

/* ---- lines ---- */

static void note_bad(struct reading *r, const char *line, size_t len)
{
    if (r->n_bad++ != 0)
        return;
    r->first_bad = r->n_lines;
    len = MAREY__MIN(len, (size_t)MAX_QUOTED);
    memcpy(r->bad, line, len);
    r->bad[len] = '\0';
}

static bool add_stack(struct reading *r, struct marey__text stack, uint64_t count)
{
    static const char nothing[] = "(no frames)";
    struct marey__text frame;
    struct owner owner;
    take_owner(&stack, &owner);
    if (!find_thread(r, &owner))
        return false;
    name_thread(r, &owner);
    uint32_t path = r->threads[r->last].root;
    if (stack.len == 0)
        stack = (struct marey__text){nothing, strlen(nothing)};
    while (marey__collapsed_frame(&stack, &frame)) {
        const uint32_t number = marey__frames_of_text(&r->frames, frame.at, frame.len);
        const uint32_t child =
            number != MAREY__NO_FRAME ? marey__paths_child(&r->paths, path, number) : 0;
        if (child == 0 && r->paths.n >= MAREY__MAX_PATHS) {
            r->n_cut++; /* the frames so far get its samples */
            break;
        }
        if (child == 0)
            return false;
        path = child;
    }
    r->paths.paths[path].self += count;
    r->processes[r->threads[r->last].process].n_samples += count;
    r->n_samples += count;
    r->n_stacks++;
    return true;
}

static bool is_empty(const char *line, size_t len)
{
    size_t i = 0;
    while (i < len && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r'))
        i++;
    return i == len || line[i] == '#';
}

static marey_status take_line(void *ctx, const char *line, size_t len)
{
    static const char too_long[] = "(a very long one)";
    struct reading *r = ctx;
    struct marey__text stack;
    uint64_t count;
    r->n_lines++;
    if (line == NULL) {
        note_bad(r, too_long, strlen(too_long));
        return MAREY_OK;
    }
    if (is_empty(line, len))
        return MAREY_OK;
    if (!marey__collapsed_line(line, len, r->is_difference, &stack, &count) ||
        count > most_ns - r->n_samples) {
        note_bad(r, line, len);
        return MAREY_OK;
    }
    return count == 0 || add_stack(r, stack, count) ? MAREY_OK : marey__no_memory();
}

static marey_status read_lines(struct reading *r)
{
    const char *bytes;
    size_t len;
    MAREY_TRY(marey__bytes_peek(r->import->bytes, &bytes, &len));
    r->is_difference = marey__collapsed_is_difference(bytes, len);
    return marey__read_lines(r->import->bytes, take_line, r);
}

/* ---- the end ---- */

static void put_notes(const struct reading *r, uint64_t unit_ns)
{
    const char *path = r->import->path;
    marey__sink_process *const first = r->processes[0].process;
    for (size_t i = 0; i < r->n_processes; i++) {
        struct marey__buf unit MAREY__FINALLY(marey__buf_fini) = {0};
        marey__text_duration(&unit, (double)unit_ns, NULL);
        marey__buf_put(&unit, "", 1);
        if (!unit.failed)
            marey__sink_note(
                r->processes[i].process,
                "%llu samples, taken as %s each, so that counts are samples; %s has no times",
                (unsigned long long)r->processes[i].n_samples, unit.data, path);
    }
    if (r->is_difference)
        marey__sink_note(
            first, "%s has two numbers for each stack, before and after: the second is used", path);
    if (r->n_cut != 0)
        marey__sink_note(first, "%s has more than %d paths: %llu stacks are truncated", path,
                         MAREY__MAX_PATHS, (unsigned long long)r->n_cut);
    if (r->n_bad != 0)
        marey__sink_note(
            first, "%s: left out %llu of %llu lines that are not stacks; the first is line %llu: %s",
            path, (unsigned long long)r->n_bad, (unsigned long long)r->n_lines,
            (unsigned long long)r->first_bad, r->bad);
    if (marey__bytes_damage(r->import->bytes) != NULL)
        marey__sink_note(first, "%s", marey__bytes_damage(r->import->bytes));
}

/* The duration of a sample. Sums that are times come from tools that count nanoseconds, such as marey. */
static uint64_t choose_unit(const struct reading *r)
{
    const uint64_t per_second = r->import->options->samples_per_second;
    const uint64_t unit = per_second != 0               ? (SECOND_NS + per_second / 2) / per_second
                          : r->n_samples > most_samples ? 1
                                                        : SAMPLE_NS;
    /* Limits the total to what a clock can represent. */
    return MAREY__MAX(MAREY__MIN(unit, most_ns / MAREY__MAX(r->n_samples, 1)), 1);
}

static marey_status lay_out(struct reading *r)
{
    if (r->n_stacks == 0)
        return marey__fail(MAREY_EFORMAT,
                           "%s has no stacks: a line is frames with ; between, then a number",
                           r->import->path);
    const uint64_t unit_ns = choose_unit(r);
    MAREY__TRY_MEMORY(marey__frames_name(&r->frames) && marey__paths_finish(&r->paths));
    for (size_t i = 1; i < r->paths.n; i++)
        r->paths.paths[i].calls = unit_ns > 1 ? r->paths.paths[i].total : 1;
    for (size_t i = 0; i < r->n_threads; i++) {
        const struct thread *thread = &r->threads[i];
        marey__paths_write_ranges(&r->paths, thread->root, &r->frames,
                                  r->processes[thread->process].process, thread->lane, unit_ns);
    }
    put_notes(r, unit_ns);
    return marey__sink_status(r->import->sink);
}

static marey_status read_collapsed(struct marey__import *import)
{
    struct reading r = {.import = import};
    marey__frames_init(&r.frames);
    marey_status status = marey__paths_init(&r.paths) ? read_lines(&r) : marey__no_memory();
    if (status == MAREY_OK)
        status = lay_out(&r);
    marey__frames_fini(&r.frames);
    marey__paths_fini(&r.paths);
    MAREY__FREE_ALL(r.processes, r.threads);
    marey__index_fini(&r.process_index);
    marey__index_fini(&r.thread_index);
    return status;
}

/* Most lines must be frames and a number; other texts rarely look like that. */
static bool looks_like_collapsed(const char *bytes, size_t len)
{
    size_t n_good = 0, n_bad = 0;
    if (memchr(bytes, '\0', len) != NULL)
        return false;
    while (len > 0) {
        const char *end = memchr(bytes, '\n', len);
        const size_t line_len = end != NULL ? (size_t)(end - bytes) : len;
        struct marey__text stack;
        uint64_t count;
        if (end == NULL && n_good + n_bad != 0)
            break;
        if (marey__collapsed_line(bytes, line_len, false, &stack, &count) && stack.len != 0)
            n_good++;
        else if (!is_empty(bytes, line_len))
            n_bad++;
        bytes += line_len + (end != NULL);
        len -= line_len + (end != NULL);
    }
    return n_good > 3 * n_bad;
}

const struct marey__import_format marey__import_collapsed = {
    .info = {.name = "collapsed",
             .noun = "py-spy's raw format or collapsed stacks",
             .brief = "py-spy's raw format and other collapsed stacks",
             .extensions = ".txt .folded .collapsed .raw",
             .has_samples = 1},
    .looks_like = looks_like_collapsed,
    .read = read_collapsed,
};
