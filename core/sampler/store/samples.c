/* The store: each item once, by number, with a map or index per kind. Numbers are never reused. */
#include "sampler/store/internal.h"

enum { MOST = 1 << 28 }; /* items of a kind */

struct process {
    struct marey_samples_process info;
    struct marey_samples_counts counts;
};

struct marey_samples {
    struct marey__arena texts;
    struct process *processes;
    struct marey_samples_thread *threads;
    struct marey_samples_function *functions;
    struct marey_samples_location *locations;
    struct marey_samples_stack *stacks;
    size_t n_processes, n_threads, n_functions, n_locations, n_stacks;
    size_t processes_cap, threads_cap, functions_cap, locations_cap, stacks_cap;
    struct marey__index thread_index, function_index;
    struct marey__key_map locations_by_key, stacks_by_key;
    struct marey_samples_counts counts;
};

marey_samples *marey__samples_create(void)
{
    return marey__calloc(1, sizeof(struct marey_samples));
}

void marey_samples_destroy(marey_samples *s)
{
    if (s == NULL)
        return;
    marey__arena_fini(&s->texts);
    MAREY__FREE_ALL(s->processes, s->threads, s->functions, s->locations, s->stacks);
    marey__index_fini(&s->thread_index);
    marey__index_fini(&s->function_index);
    marey__key_map_fini(&s->locations_by_key);
    marey__key_map_fini(&s->stacks_by_key);
    marey__free(s);
}

static const char *keep(marey_samples *s, const char *text)
{
    return text != NULL && text[0] != '\0' ? marey__arena_text(&s->texts, text, strlen(text)) : "";
}

/* ---- processes: few, so a linear search ---- */

static bool is_same_process(const struct marey_samples_process *a,
                            const struct marey_samples_process *b)
{
    return a->pid == b->pid && a->start_time == b->start_time &&
           strcmp(a->host, b->host != NULL ? b->host : "") == 0;
}

/* False on out of memory. */
static bool know_better(marey_samples *s, struct marey_samples_process *known,
                        const struct marey_samples_process *now)
{
    if (now->command != NULL && now->command[0] != '\0' && strcmp(now->command, known->command) != 0) {
        const char *const command = keep(s, now->command);
        if (command == NULL)
            return false;
        known->command = command;
    }
    known->ppid = now->ppid != 0 ? now->ppid : known->ppid;
    known->rank = now->rank >= 0 ? now->rank : known->rank;
    known->worker = now->worker >= 0 ? now->worker : known->worker;
    known->python = now->python != 0 ? now->python : known->python;
    return true;
}

uint32_t marey__samples_process(marey_samples *s, const struct marey_samples_process *process)
{
    for (size_t i = s->n_processes; i > 0; i--)
        if (is_same_process(&s->processes[i - 1].info, process))
            return know_better(s, &s->processes[i - 1].info, process) ? (uint32_t)i : 0;
    if (s->n_processes >= MOST ||
        !marey__grow(&s->processes, &s->processes_cap, s->n_processes + 1, sizeof *s->processes))
        return 0;
    struct process fresh = {.info = *process};
    fresh.info.command = keep(s, process->command);
    fresh.info.host = keep(s, process->host);
    if (fresh.info.command == NULL || fresh.info.host == NULL)
        return 0;
    s->processes[s->n_processes++] = fresh;
    return (uint32_t)s->n_processes;
}

/* ---- threads ---- */

static uint32_t hash_thread(uint32_t process, int64_t tid, uint64_t interpreter)
{
    const uint64_t key[] = {process, (uint64_t)tid, interpreter};
    return (uint32_t)marey__hash_bytes(1, key, sizeof key);
}

void marey__samples_rename(marey_samples *s, uint32_t thread, const char *name)
{
    if (thread == 0 || thread > s->n_threads || strcmp(s->threads[thread - 1].name, name) == 0)
        return;
    const char *const kept = keep(s, name);
    if (kept != NULL)
        s->threads[thread - 1].name = kept;
}

uint32_t marey__samples_thread(marey_samples *s, uint32_t process, int64_t tid, const char *name,
                               uint64_t interpreter, bool is_main)
{
    const uint32_t hash = hash_thread(process, tid, interpreter);
    uint32_t number;
    for (size_t at = hash; (number = marey__index_next(&s->thread_index, hash, &at)) != 0;) {
        const struct marey_samples_thread *const t = &s->threads[number - 1];
        if (t->process == process && t->tid == tid && t->interpreter == interpreter) {
            if (name != NULL && name[0] != '\0')
                marey__samples_rename(s, number, name);
            return number;
        }
    }
    if (process == 0 || process > s->n_processes || s->n_threads >= MOST ||
        !marey__grow(&s->threads, &s->threads_cap, s->n_threads + 1, sizeof *s->threads))
        return 0;
    const char *const kept = keep(s, name);
    if (kept == NULL || !marey__index_put(&s->thread_index, hash, (uint32_t)s->n_threads + 1))
        return 0;
    s->threads[s->n_threads++] =
        (struct marey_samples_thread){process, tid, kept, interpreter, is_main};
    return (uint32_t)s->n_threads;
}

/* ---- functions ---- */

static uint64_t hash_text(uint64_t seed, const char *text)
{
    return marey__hash_bytes(seed, text, strlen(text));
}

static uint32_t hash_function(const struct marey_samples_function *f)
{
    const uint64_t seed = marey__hash_mix((uint64_t)f->kind + 1, f->first_line);
    return (uint32_t)hash_text(hash_text(hash_text(seed, f->name), f->file), f->module);
}

static bool is_same_function(const struct marey_samples_function *a,
                             const struct marey_samples_function *b)
{
    return a->kind == b->kind && a->first_line == b->first_line && strcmp(a->name, b->name) == 0 &&
           strcmp(a->file, b->file) == 0 && strcmp(a->module, b->module) == 0;
}

uint32_t marey__samples_function(marey_samples *s, enum marey_frame_kind kind, const char *name,
                                 const char *file, const char *module, uint32_t first_line)
{
    struct marey_samples_function f = {kind, name != NULL ? name : "", file != NULL ? file : "",
                                       module != NULL ? module : "", first_line};
    const uint32_t hash = hash_function(&f);
    uint32_t number;
    for (size_t at = hash; (number = marey__index_next(&s->function_index, hash, &at)) != 0;)
        if (is_same_function(&s->functions[number - 1], &f))
            return number;
    if (s->n_functions >= MOST ||
        !marey__grow(&s->functions, &s->functions_cap, s->n_functions + 1, sizeof *s->functions))
        return 0;
    f.name = keep(s, f.name);
    f.file = keep(s, f.file);
    f.module = keep(s, f.module);
    if (f.name == NULL || f.file == NULL || f.module == NULL ||
        !marey__index_put(&s->function_index, hash, (uint32_t)s->n_functions + 1))
        return 0;
    s->functions[s->n_functions++] = f;
    return (uint32_t)s->n_functions;
}

/* ---- locations and stacks ---- */

uint32_t marey__samples_location(marey_samples *s, uint32_t function, uint32_t line)
{
    const uint64_t key = marey__pair_key(function, line);
    const uint32_t number = MAREY__MAP_FIND(&s->locations_by_key, s->locations, key);
    if (number != 0 || function == 0 || function > s->n_functions || s->n_locations >= MOST)
        return number;
    return MAREY__MAP_ADD(&s->locations_by_key, s->locations, s->n_locations, s->locations_cap, key);
}

uint32_t marey__samples_stack(marey_samples *s, uint32_t parent, uint32_t location)
{
    const uint64_t key = marey__pair_key(parent, location);
    uint32_t number = MAREY__MAP_FIND(&s->stacks_by_key, s->stacks, key);
    if (number != 0 || parent > s->n_stacks || location == 0 || location > s->n_locations ||
        s->n_stacks >= MOST)
        return number;
    number = MAREY__MAP_ADD(&s->stacks_by_key, s->stacks, s->n_stacks, s->stacks_cap, key);
    if (number != 0)
        s->stacks[number - 1].depth = parent != 0 ? s->stacks[parent - 1].depth + 1 : 1;
    return number;
}

/* ---- counts ---- */

void marey__samples_set_counts(marey_samples *s, uint32_t process,
                               const struct marey_samples_counts *counts)
{
    if (process == 0)
        s->counts = *counts;
    else if (process <= s->n_processes)
        s->processes[process - 1].counts = *counts;
}

struct marey_samples_counts marey_samples_get_counts(const marey_samples *s, uint32_t process)
{
    static const struct marey_samples_counts none;
    if (process == 0)
        return s->counts;
    return process <= s->n_processes ? s->processes[process - 1].counts : none;
}

/* ---- queries ---- */

#define N_OF(things)                                                                               \
    uint32_t marey_samples_n_##things(const marey_samples *s)                                      \
    {                                                                                              \
        return (uint32_t)s->n_##things;                                                            \
    }
N_OF(processes)
N_OF(threads)
N_OF(functions)
N_OF(locations)
N_OF(stacks)

const struct marey_samples_process *marey_samples_get_process(const marey_samples *s, uint32_t process)
{
    static const struct marey_samples_process none = {
        .rank = -1, .worker = -1, .command = "", .host = ""};
    return process != 0 && process <= s->n_processes ? &s->processes[process - 1].info : &none;
}

const struct marey_samples_thread *marey_samples_get_thread(const marey_samples *s, uint32_t thread)
{
    static const struct marey_samples_thread none = {.name = ""};
    return thread != 0 && thread <= s->n_threads ? &s->threads[thread - 1] : &none;
}

const struct marey_samples_function *marey_samples_get_function(const marey_samples *s,
                                                                uint32_t function)
{
    static const struct marey_samples_function none = {
        .kind = MAREY_FRAME_MARK, .name = "", .file = "", .module = ""};
    return function != 0 && function <= s->n_functions ? &s->functions[function - 1] : &none;
}

struct marey_samples_location marey_samples_get_location(const marey_samples *s, uint32_t location)
{
    static const struct marey_samples_location none;
    return location != 0 && location <= s->n_locations ? s->locations[location - 1] : none;
}

struct marey_samples_stack marey_samples_get_stack(const marey_samples *s, uint32_t stack)
{
    static const struct marey_samples_stack none;
    return stack != 0 && stack <= s->n_stacks ? s->stacks[stack - 1] : none;
}
