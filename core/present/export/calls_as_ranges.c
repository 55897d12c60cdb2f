/*
 * Calls as ranges, for exports over time: from sums by path to a recording, as importers do it. A path is one range for
 * all its calls; the tree has only total durations, so children are laid out one after another.
 */
#include "analyze/calls/internal.h"
#include "analyze/samples/internal.h"
#include "import/stacks/internal.h"
#include "present/export/internal.h"

struct laying {
    struct marey__calls calls;
    marey_recording *const *recordings;
    size_t n_recordings;
    struct marey__frames frames;
    struct marey__paths paths;
    uint32_t *frame_of; /* by function, followed by those by signature: plus one; 0: not created */
    uint32_t *path_of;  /* by node */
    uint32_t *roots;    /* by thread: the root path of its calls; 0: none */
};

marey_status marey__make_recording(const char *source, const char *name,
                                   marey_status (*fill)(void *ctx, marey__sink *sink), void *ctx,
                                   marey_recording **out)
{
    struct marey__log_store *store = NULL;
    marey__sink *sink = NULL;
    MAREY_TRY(marey__log_store_open(NULL, &store));
    marey_status status = marey__sink_create(
        &(struct marey__sink_options){.store = store, .source = source, .run_id = source}, &sink);
    if (status == MAREY_OK)
        status = fill(ctx, sink);
    if (status == MAREY_OK)
        status = marey__sink_finish(sink);
    if (status == MAREY_OK)
        status = marey__log_store_read(store, name, out);
    marey__sink_destroy(sink);
    marey__log_store_close(store);
    return status;
}

/* ---- frames and paths ---- */

static uint32_t find_frame(struct laying *l, const struct marey__call_node *node)
{
    const struct marey__calls *const calls = &l->calls;
    const struct marey__call_function *const function = &calls->functions[node->function];
    uint32_t *const known =
        &l->frame_of[node->signature != 0 ? calls->n_functions + node->signature : node->function];
    struct marey__buf label MAREY__FINALLY(marey__buf_fini) = {0};
    if (*known != 0)
        return *known - 1;
    marey__call_label(&label, calls, node->function, node->signature);
    const struct marey__text_frame frame = {.name = label.data,
                                            .name_len = label.len,
                                            .file = function->file,
                                            .file_len = strlen(function->file),
                                            .line = function->line};
    const uint32_t number =
        label.failed ? MAREY__NO_FRAME : marey__frames_of_function(&l->frames, &frame);
    *known = number != MAREY__NO_FRAME ? number + 1 : 0;
    return number;
}

/* The root path of a thread's calls, which is not laid out: its number is not a frame's. */
static uint32_t find_root(struct laying *l, uint32_t thread)
{
    if (l->roots[thread] == 0)
        l->roots[thread] = marey__paths_child(&l->paths, 0, UINT32_MAX - 1 - thread);
    return l->roots[thread];
}

/* Top-level code is always shown with its line, because all of it is called <module>. */
static void name_lines(struct laying *l)
{
    for (size_t i = 0; l->calls.from_samples && i < l->calls.n_functions; i++)
        if (l->frame_of[i] != 0 && strcmp(l->calls.functions[i].name, "<module>") == 0)
            l->frames.is_ambiguous[l->frames.frames[l->frame_of[i] - 1].name_number] = true;
}

static bool make_paths(struct laying *l)
{
    for (size_t i = 1; i < l->calls.n_nodes; i++) {
        const struct marey__call_node *const node = &l->calls.nodes[i];
        const uint32_t frame = find_frame(l, node), around = node->parent != 0
                                                                 ? l->path_of[node->parent]
                                                                 : find_root(l, node->thread);
        if (frame == MAREY__NO_FRAME || around == 0)
            return false;
        l->path_of[i] = marey__paths_child(&l->paths, around, frame);
        if (l->path_of[i] == 0)
            return false;
        l->paths.paths[l->path_of[i]].self += node->self_ns;
        l->paths.paths[l->path_of[i]].calls += node->calls;
    }
    if (!marey__paths_finish(&l->paths) || !marey__frames_name(&l->frames))
        return false;
    name_lines(l);
    return true;
}

/* ---- processes ---- */

static const struct marey_process *find_process(const struct laying *l,
                                                const struct marey__call_thread *thread)
{
    for (size_t r = 0; r < l->n_recordings; r++)
        for (size_t i = 0; i < marey_recording_n_processes(l->recordings[r]); i++) {
            const struct marey_process *const process = marey_recording_process(l->recordings[r], i);
            if (process->pid == thread->pid && process->rank == thread->rank)
                return process;
        }
    return NULL;
}

static marey_status lay_thread(struct laying *l, marey__sink *sink, uint32_t number)
{
    const struct marey__call_thread *const thread = &l->calls.threads[number];
    const struct marey_process *const from = find_process(l, thread);
    const uint64_t key = (uint64_t)(uint32_t)thread->pid << 32 | (uint32_t)(thread->rank + 1);
    marey__sink_process *const process = marey__sink_process_get(sink, key);
    MAREY__TRY_MEMORY(process != NULL);
    const struct marey__sink_identity identity = {.pid = thread->pid,
                                                  .rank = thread->rank,
                                                  .world_size = from != NULL ? from->world_size : -1,
                                                  .command = from != NULL ? from->command : NULL,
                                                  .host = from != NULL ? from->host : NULL};
    marey__sink_identify(process, &identity);
    const uint32_t lane = marey__sink_thread(process, thread->tid);
    if (thread->name[0] != '\0')
        marey__sink_name_lane(process, lane, thread->name, strlen(thread->name));
    marey__paths_lay(&l->paths, l->roots[number], &l->frames, process, lane, 1);
    return marey__sink_status(sink);
}

static marey_status lay_calls(void *ctx, marey__sink *sink)
{
    struct laying *const l = ctx;
    const size_t n = l->calls.n_functions + l->calls.n_signatures;
    l->frame_of = marey__calloc(n, sizeof *l->frame_of);
    l->path_of = marey__calloc(l->calls.n_nodes, sizeof *l->path_of);
    l->roots = marey__calloc(l->calls.n_threads + 1, sizeof *l->roots);
    MAREY__TRY_MEMORY(l->frame_of != NULL && l->path_of != NULL && l->roots != NULL &&
                      marey__paths_init(&l->paths) && make_paths(l));
    for (uint32_t i = 0; i < l->calls.n_threads; i++)
        if (l->roots[i] != 0)
            MAREY_TRY(lay_thread(l, sink, i));
    return MAREY_OK;
}

marey_status marey__calls_wanted(struct marey__calls *calls, marey_recording *const *recordings,
                                 size_t n, const struct marey_export_options *options,
                                 bool is_complete)
{
    struct marey__samples_filter filter;
    const bool is_sampled = options->samples != NULL ? !options->calls
                                                     : !marey__calls_are_there(recordings, n) &&
                                                           marey__samples_are_there(recordings, n);
    MAREY_TRY(marey__samples_filter_parse(options->samples, &filter));
    filter.startup |= options->startup;
    if (is_sampled)
        return marey__calls_read_samples(calls, recordings, n, &filter, is_complete);
    MAREY_TRY(marey__calls_read(calls, recordings, n));
    if (options->n_too_deep != NULL)
        *options->n_too_deep += calls->n_too_deep;
    if (is_complete || options->startup || marey__calls_drop_startup(calls))
        return MAREY_OK;
    marey__calls_fini(calls);
    return marey__no_memory();
}

marey_status marey__calls_as_ranges(marey_recording *const *recordings, size_t n,
                                    const struct marey_export_options *options, marey_recording **out)
{
    struct laying l = {.recordings = recordings, .n_recordings = n};
    MAREY_TRY(marey__calls_wanted(&l.calls, recordings, n, options, false));
    if (options->startup_ns != NULL)
        *options->startup_ns += l.calls.startup_ns;
    if (options->idle_ns != NULL)
        *options->idle_ns += l.calls.idle_ns;
    marey__frames_init(&l.frames);
    l.frames.names_lines = true;
    const marey_status status =
        marey__make_recording("calls", marey_recording_name(recordings[0]), lay_calls, &l, out);
    MAREY__FREE_ALL(l.frame_of, l.path_of, l.roots);
    marey__paths_fini(&l.paths);
    marey__frames_fini(&l.frames);
    marey__calls_fini(&l.calls);
    return status;
}

bool marey__calls_are_all(marey_recording *const *recordings, size_t n)
{
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < marey_recording_n_processes(recordings[r]); i++)
            if (marey_recording_process(recordings[r], i)->n_words != 0)
                return false;
    return marey__calls_are_there(recordings, n);
}
