/*
 * Calls as ranges, for exports over time: from sums by path to a recording, as importers do it. A path is one range for
 * all its calls; the tree has only total durations, so children are laid out one after another.
 */
#include "analyze/calls/internal.h"
#include "analyze/samples/internal.h"
#include "import/stacks/internal.h"
#include "present/export/internal.h"

struct range_writer {
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

static uint32_t find_frame(struct range_writer *w, const struct marey__call_node *node)
{
    const struct marey__calls *const calls = &w->calls;
    const struct marey__call_function *const function = &calls->functions[node->function];
    uint32_t *const known =
        &w->frame_of[node->signature != 0 ? calls->n_functions + node->signature : node->function];
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
        label.failed ? MAREY__NO_FRAME : marey__frames_of_function(&w->frames, &frame);
    *known = number != MAREY__NO_FRAME ? number + 1 : 0;
    return number;
}

/* The root path of a thread's calls, which is not laid out: its number is not a frame's. */
static uint32_t find_root(struct range_writer *w, uint32_t thread)
{
    if (w->roots[thread] == 0)
        w->roots[thread] = marey__paths_child(&w->paths, 0, UINT32_MAX - 1 - thread);
    return w->roots[thread];
}

/* Top-level code is always shown with its line, because all of it is called <module>. */
static void name_lines(struct range_writer *w)
{
    for (size_t i = 0; w->calls.from_samples && i < w->calls.n_functions; i++)
        if (w->frame_of[i] != 0 && strcmp(w->calls.functions[i].name, "<module>") == 0)
            w->frames.is_ambiguous[w->frames.frames[w->frame_of[i] - 1].name_number] = true;
}

static bool make_paths(struct range_writer *w)
{
    for (size_t i = 1; i < w->calls.n_nodes; i++) {
        const struct marey__call_node *const node = &w->calls.nodes[i];
        const uint32_t frame = find_frame(w, node), around = node->parent != 0
                                                                 ? w->path_of[node->parent]
                                                                 : find_root(w, node->thread);
        if (frame == MAREY__NO_FRAME || around == 0)
            return false;
        w->path_of[i] = marey__paths_child(&w->paths, around, frame);
        if (w->path_of[i] == 0)
            return false;
        w->paths.paths[w->path_of[i]].self += node->self_ns;
        w->paths.paths[w->path_of[i]].calls += node->calls;
    }
    if (!marey__paths_finish(&w->paths) || !marey__frames_name(&w->frames))
        return false;
    name_lines(w);
    return true;
}

/* ---- processes ---- */

static const struct marey_process *find_process(const struct range_writer *w,
                                                const struct marey__call_thread *thread)
{
    for (size_t r = 0; r < w->n_recordings; r++)
        for (size_t i = 0; i < marey_recording_n_processes(w->recordings[r]); i++) {
            const struct marey_process *const process = marey_recording_process(w->recordings[r], i);
            if (process->pid == thread->pid && process->rank == thread->rank)
                return process;
        }
    return NULL;
}

static marey_status write_thread(struct range_writer *w, marey__sink *sink, uint32_t number)
{
    const struct marey__call_thread *const thread = &w->calls.threads[number];
    const struct marey_process *const from = find_process(w, thread);
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
    marey__paths_write_ranges(&w->paths, w->roots[number], &w->frames, process, lane, 1);
    return marey__sink_status(sink);
}

static marey_status write_calls(void *ctx, marey__sink *sink)
{
    struct range_writer *const w = ctx;
    const size_t n = w->calls.n_functions + w->calls.n_signatures;
    w->frame_of = marey__calloc(n, sizeof *w->frame_of);
    w->path_of = marey__calloc(w->calls.n_nodes, sizeof *w->path_of);
    w->roots = marey__calloc(w->calls.n_threads + 1, sizeof *w->roots);
    MAREY__TRY_MEMORY(w->frame_of != NULL && w->path_of != NULL && w->roots != NULL &&
                      marey__paths_init(&w->paths) && make_paths(w));
    for (uint32_t i = 0; i < w->calls.n_threads; i++)
        if (w->roots[i] != 0)
            MAREY_TRY(write_thread(w, sink, i));
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
    struct range_writer w = {.recordings = recordings, .n_recordings = n};
    MAREY_TRY(marey__calls_wanted(&w.calls, recordings, n, options, false));
    if (options->startup_ns != NULL)
        *options->startup_ns += w.calls.startup_ns;
    if (options->idle_ns != NULL)
        *options->idle_ns += w.calls.idle_ns;
    marey__frames_init(&w.frames);
    w.frames.names_lines = true;
    const marey_status status =
        marey__make_recording("calls", marey_recording_name(recordings[0]), write_calls, &w, out);
    MAREY__FREE_ALL(w.frame_of, w.path_of, w.roots);
    marey__paths_fini(&w.paths);
    marey__frames_fini(&w.frames);
    marey__calls_fini(&w.calls);
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
