/*
 * The importer's interface: processes, sites, lanes and events, in any order. Nothing is written before the end, except
 * for events beyond the budget (sink_spill.c), because the last event of a file may be the earliest.
 */
#include "import/sink/internal.h"

/* ---- the sink ---- */

marey_status marey__sink_create(const struct marey__sink_options *options, marey__sink **out)
{
    marey__sink *sink = marey__calloc(1, sizeof *sink);
    MAREY__TRY_MEMORY(sink != NULL);
    sink->options = *options;
    sink->seed = marey__identity_random();
    /* Sorting a lane needs as much again, and all events may be in one lane. */
    sink->budget = (options->memory_bytes != 0 ? options->memory_bytes : UINT64_C(256) << 20) / 2;
    sink->spill_fd = -1;
    *out = sink;
    return MAREY_OK;
}

void marey__sink_fail(marey__sink *sink, marey_status status)
{
    if (sink->status != MAREY_OK)
        return;
    sink->status = status;
    snprintf(sink->failure, sizeof sink->failure, "%s", marey_last_error());
}

marey_status marey__sink_status(const marey__sink *sink)
{
    return sink->status == MAREY_OK ? MAREY_OK : marey__fail(sink->status, "%s", sink->failure);
}

marey_status marey__sink_finish(marey__sink *sink)
{
    for (size_t i = 0; i < sink->n_processes && sink->status == MAREY_OK; i++) {
        if (sink->processes[i]->n_events == 0)
            continue;
        const marey_status status = marey__sink_write(sink, sink->processes[i]);
        if (status != MAREY_OK)
            marey__sink_fail(sink, status);
    }
    return marey__sink_status(sink);
}

/* ---- processes ---- */

static marey__sink_process *make_process(marey__sink *sink, uint64_t key, uint32_t hash)
{
    marey__sink_process *process = marey__calloc(1, sizeof *process);
    if (process == NULL ||
        !marey__grow(&sink->processes, &sink->processes_cap, sink->n_processes + 1,
                     sizeof(marey__sink_process *)) ||
        !marey__index_put(&sink->processes_index, hash, (uint32_t)sink->n_processes + 1)) {
        marey__free(process);
        marey__sink_fail(sink, marey__no_memory());
        return NULL;
    }
    *process = (marey__sink_process){
        .sink = sink, .key = key, .pid = (int64_t)key, .rank = -1, .world_size = -1};
    sink->processes[sink->n_processes++] = process;
    return process;
}

marey__sink_process *marey__sink_process_get(marey__sink *sink, uint64_t key)
{
    if (MAREY_LIKELY(sink->last != NULL && sink->last->key == key))
        return sink->last;
    const uint32_t hash = (uint32_t)marey__hash_bytes(sink->seed, &key, sizeof key);
    uint32_t number;
    for (size_t at = hash; (number = marey__index_next(&sink->processes_index, hash, &at)) != 0;)
        if (sink->processes[number - 1]->key == key)
            return sink->last = sink->processes[number - 1];
    marey__sink_process *process = make_process(sink, key, hash);
    if (process != NULL)
        sink->last = process;
    return process;
}

marey__sink_process *marey__sink_process_at(const marey__sink *sink, size_t i)
{
    return i < sink->n_processes ? sink->processes[i] : NULL;
}

marey__sink_process *marey__sink_process_with_events(const marey__sink *sink)
{
    for (size_t i = 0; i < sink->n_processes; i++)
        if (sink->processes[i]->n_events != 0)
            return sink->processes[i];
    return NULL;
}

static void set_text(marey__sink_process *process, const char **field, const char *text)
{
    const char *const copy =
        text != NULL ? marey__arena_text(&process->texts, text, strlen(text)) : NULL;
    if (copy != NULL)
        *field = copy;
    else if (text != NULL)
        marey__sink_fail_memory(process);
}

void marey__sink_identify(marey__sink_process *process, const struct marey__sink_identity *identity)
{
    if (identity->pid >= 0)
        process->pid = identity->pid;
    if (identity->ppid > 0)
        process->ppid = identity->ppid;
    if (identity->rank >= 0)
        process->rank = identity->rank;
    if (identity->world_size >= 0)
        process->world_size = identity->world_size;
    set_text(process, &process->command, identity->command);
    set_text(process, &process->host, identity->host);
    set_text(process, &process->source, identity->source);
    set_text(process, &process->backend, identity->backend);
    set_text(process, &process->gpu, identity->gpu);
    set_text(process, &process->run_id, identity->run_id);
}

void marey__sink_note(marey__sink_process *process, const char *fmt, ...)
{
    enum { MOST = 50 }; /* a damaged file may have an error in each line */
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    for (size_t i = 0; i < process->n_notes; i++)
        if (strcmp(process->notes[i], text) == 0)
            return;
    if (process->n_notes == MOST)
        return;
    const char *const copy = marey__arena_text(&process->texts, text, strlen(text));
    if (copy == NULL || !MAREY__PUSH(process->notes, process->n_notes, process->notes_cap, copy))
        marey__sink_fail_memory(process);
}

/* ---- destroy ---- */

static void free_process(marey__sink_process *process)
{
    for (size_t i = 0; i < process->n_lanes; i++)
        MAREY__FREE_ALL(process->lanes[i].entries, process->lanes[i].parts);
    marey__arena_fini(&process->texts);
    MAREY__FREE_ALL(process->notes, process->lanes);
    marey__index_fini(&process->lanes_index);
    marey__buf_fini(&process->sites);
    marey__free(process->site_offsets);
    marey__index_fini(&process->sites_index);
    MAREY__FREE_ALL(process->extras, process);
}

void marey__sink_destroy(marey__sink *sink)
{
    if (sink == NULL)
        return;
    for (size_t i = 0; i < sink->n_processes; i++)
        free_process(sink->processes[i]);
    marey__free(sink->processes);
    marey__index_fini(&sink->processes_index);
    marey__sink_close_spill(sink);
    marey__free(sink);
}
