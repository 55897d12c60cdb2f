/*
 * What an importer talks to: processes, sites, lanes and events, in any order. Nothing is written before the end, but
 * what does not fit into the budget (sink_spill.c): an event that comes last may be the first.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "import/sink_internal.h"

/* ---- the sink ---- */

kymo_status kymo__sink_create(const struct kymo__sink_options *options, kymo__sink **out)
{
    kymo__sink *sink = kymo__calloc(1, sizeof *sink);
    if (sink == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory to import");
    sink->store = options->store;
    sink->command = options->command;
    sink->source = options->source;
    sink->run_id = options->run_id;
    sink->tick = options->tick;
    sink->tick_ctx = options->tick_ctx;
    sink->seed = kymo__identity_random();
    /* Sorting a lane takes as much again, and one lane may be all there is. */
    sink->budget = (options->memory_bytes != 0 ? options->memory_bytes : UINT64_C(256) << 20) / 2;
    sink->spill_fd = -1;
    *out = sink;
    return KYMO_OK;
}

void kymo__sink_fail(kymo__sink *sink, kymo_status status)
{
    if (sink->status != KYMO_OK)
        return;
    sink->status = status;
    snprintf(sink->failure, sizeof sink->failure, "%s", kymo_last_error());
}

static void fail_memory(kymo__sink *sink)
{
    kymo__sink_fail(sink, kymo__fail(KYMO_ENOMEM, "no memory to import %s",
                                     sink->command != NULL ? sink->command : "a trace"));
}

kymo_status kymo__sink_status(const kymo__sink *sink)
{
    return sink->status == KYMO_OK ? KYMO_OK : kymo__fail(sink->status, "%s", sink->failure);
}

bool kymo__sink_has_failed(const kymo__sink *sink)
{
    return sink->status != KYMO_OK;
}

uint64_t kymo__sink_n_events(const kymo__sink *sink)
{
    return sink->n_events;
}

kymo_status kymo__sink_finish(kymo__sink *sink)
{
    for (size_t i = 0; i < sink->n_processes && sink->status == KYMO_OK; i++) {
        if (sink->processes[i]->n_events == 0)
            continue;
        const kymo_status status = kymo__sink_write(sink, sink->processes[i]);
        if (status != KYMO_OK)
            kymo__sink_fail(sink, status);
    }
    return kymo__sink_status(sink);
}

/* ---- processes ---- */

static kymo__sink_process *make_process(kymo__sink *sink, uint64_t key, uint32_t hash)
{
    kymo__sink_process *process = kymo__calloc(1, sizeof *process);
    if (process == NULL ||
        !kymo__grow(&sink->processes, &sink->processes_cap, sink->n_processes + 1,
                    sizeof(kymo__sink_process *)) ||
        !kymo__sink_index_put(&sink->processes_index, hash, (uint32_t)sink->n_processes + 1)) {
        kymo__free(process);
        fail_memory(sink);
        return NULL;
    }
    *process = (kymo__sink_process){
        .sink = sink, .key = key, .pid = (int64_t)key, .rank = -1, .world_size = -1};
    sink->processes[sink->n_processes++] = process;
    return process;
}

kymo__sink_process *kymo__sink_process_get(kymo__sink *sink, uint64_t key)
{
    if (KYMO_LIKELY(sink->last != NULL && sink->last->key == key))
        return sink->last;
    const uint32_t hash = (uint32_t)kymo__sink_hash(sink->seed, &key, sizeof key);
    uint32_t number;
    for (size_t at = hash; (number = kymo__sink_index_next(&sink->processes_index, hash, &at)) != 0;)
        if (sink->processes[number - 1]->key == key)
            return sink->last = sink->processes[number - 1];
    kymo__sink_process *process = make_process(sink, key, hash);
    if (process != NULL)
        sink->last = process;
    return process;
}

kymo__sink_process *kymo__sink_process_at(const kymo__sink *sink, size_t i)
{
    return i < sink->n_processes ? sink->processes[i] : NULL;
}

kymo__sink_process *kymo__sink_process_with_events(const kymo__sink *sink)
{
    for (size_t i = 0; i < sink->n_processes; i++)
        if (sink->processes[i]->n_events != 0)
            return sink->processes[i];
    return NULL;
}

int32_t kymo__sink_rank(const kymo__sink_process *process)
{
    return process->rank;
}

static void set_text(kymo__sink_process *process, char **field, const char *text)
{
    if (text == NULL)
        return;
    char *copy = kymo__strndup(text, strlen(text));
    if (copy == NULL) {
        fail_memory(process->sink);
        return;
    }
    kymo__free(*field);
    *field = copy;
}

void kymo__sink_identify(kymo__sink_process *process, const struct kymo__sink_identity *identity)
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

void kymo__sink_shift(kymo__sink_process *process, uint64_t ns)
{
    process->shift_ns = ns;
}

void kymo__sink_set_wall(kymo__sink_process *process, int64_t to_unix_ns)
{
    process->to_unix_ns = to_unix_ns;
}

void kymo__sink_note(kymo__sink_process *process, const char *fmt, ...)
{
    enum { MOST = 50 }; /* a damaged file may have something wrong in each of its lines */
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
    char *copy = kymo__strndup(text, strlen(text));
    if (copy == NULL ||
        !kymo__grow(&process->notes, &process->notes_cap, process->n_notes + 1, sizeof(char *))) {
        kymo__free(copy);
        fail_memory(process->sink);
        return;
    }
    process->notes[process->n_notes++] = copy;
}

/* ---- destroy ---- */

static void free_lane(struct kymo__sink_lane *lane)
{
    kymo__free(lane->name);
    kymo__free(lane->entries);
    kymo__free(lane->parts);
}

static void free_process(kymo__sink_process *process)
{
    for (size_t i = 0; i < process->n_lanes; i++)
        free_lane(&process->lanes[i]);
    for (size_t i = 0; i < process->n_notes; i++)
        kymo__free(process->notes[i]);
    char *const texts[] = {process->command, process->host, process->source,
                           process->backend, process->gpu,  process->run_id};
    for (size_t i = 0; i < KYMO__COUNT_OF(texts); i++)
        kymo__free(texts[i]);
    kymo__free(process->notes);
    kymo__free(process->lanes);
    kymo__free(process->lanes_index.slots);
    kymo__buf_fini(&process->sites);
    kymo__free(process->site_offsets);
    kymo__free(process->sites_index.slots);
    kymo__free(process->extras);
    kymo__free(process);
}

void kymo__sink_destroy(kymo__sink *sink)
{
    if (sink == NULL)
        return;
    for (size_t i = 0; i < sink->n_processes; i++)
        free_process(sink->processes[i]);
    kymo__free(sink->processes);
    kymo__free(sink->processes_index.slots);
    kymo__sink_close_spill(sink);
    kymo__free(sink);
}
