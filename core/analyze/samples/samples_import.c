/*
 * Reads files of other samplers as samples. Their importers created ranges, with lines as sites and samples as counts.
 * Here the ranges become stacks again: a stack's own samples are the range's count minus those of ranges within it, and
 * its own time is that of these samples.
 *
 * Such files do not record CPU state. Their threads count as main threads, so that none is excluded.
 */
#include <string.h>

#include "analyze/samples/internal.h"
#include <marey/import.h>

enum {
    MOST_SAMPLES = 1000000000
}; /* beyond this, a file counts nanoseconds, and a stack is one sample */

struct turning {
    struct marey__samples_set *set;
    const struct marey__process_walk *walk;
    uint32_t process;
    uint32_t *locations; /* by site; 0: not created */
    struct lane {
        uint32_t thread; /* 0: not created */
        struct depth {
            uint64_t inner; /* samples of ended ranges within the open range there */
            uint32_t stack; /* of the open range there, for depths below `n_known` */
        } * depths;
        size_t depths_cap, n_known;
    } * lanes;
    struct marey__buf name;
};

/* ---- names ---- */

static bool is_library(const char *file)
{
    const char *const so = strstr(file, ".so");
    return so != NULL && (so[3] == '\0' || so[3] == '.');
}

static uint32_t location_of(struct turning *t, uint32_t site)
{
    marey_samples *const samples = t->set->samples;
    if (site > t->walk->info->n_sites)
        site = 0;
    if (t->locations[site] != 0)
        return t->locations[site];
    const struct marey_site_info *const info =
        marey_recording_site(t->walk->recording, t->walk->info->index, site);
    t->name.len = 0;
    marey__buf_put(&t->name, info->name, marey__function_name_len(info));
    marey__buf_put(&t->name, "", 1);
    if (t->name.failed)
        return 0;
    const bool is_native = is_library(info->file);
    const enum marey_frame_kind kind = is_native ? MAREY_FRAME_NATIVE
                                       : strcmp(t->name.data, "(no frames)") == 0
                                           ? MAREY_FRAME_MARK
                                           : MAREY_FRAME_PYTHON;
    const uint32_t function = marey__samples_function(
        samples, kind, t->name.data, is_native ? "" : info->file, is_native ? info->file : "", 0);
    t->locations[site] = function != 0 ? marey__samples_location(samples, function, info->line) : 0;
    return t->locations[site];
}

static uint32_t thread_of(struct turning *t, const struct marey_lane_info *lane)
{
    uint32_t *const thread = &t->lanes[lane->lane].thread;
    if (*thread == 0)
        *thread = marey__samples_thread(t->set->samples, t->process, lane->tid, lane->name, 0, true);
    return *thread;
}

/* ---- stacks ---- */

/* The stack of the lane's open ranges with `frame` on top; 0 on out of memory. Each open range is pushed once. */
static uint32_t stack_of(struct turning *t, struct lane *into, const struct marey__lane_walk *lane,
                         const struct marey__frame *frame)
{
    struct depth *const depths = into->depths;
    const size_t depth = lane->stack.n_open + 1; /* the thread itself is at 0 */
    for (size_t i = MAREY__MAX(into->n_known, 1); i <= depth; i++) {
        const uint32_t site = i < depth ? lane->stack.open[i - 1].site : frame->site;
        const uint32_t location = location_of(t, site);
        depths[i].stack =
            location != 0 ? marey__samples_stack(t->set->samples, depths[i - 1].stack, location) : 0;
        if (depths[i].stack == 0)
            return 0;
        into->n_known = i + 1;
    }
    return depths[depth].stack;
}

/* The samples of a range that has ended minus those of ranges within it; its total is added to the range around it. */
static bool take_own(struct lane *lane, size_t depth, const struct marey__frame *frame, uint64_t *own)
{
    const size_t had = lane->depths_cap;
    if (!marey__grow(&lane->depths, &lane->depths_cap, depth + 2, sizeof *lane->depths))
        return false;
    if (lane->depths_cap > had)
        memset(lane->depths + had, 0, (lane->depths_cap - had) * sizeof *lane->depths);
    const uint64_t all = frame->repeat != 0 ? frame->repeat - 1 : 1,
                   within = lane->depths[depth + 1].inner;
    *own = all > within ? all - within : 0;
    lane->depths[depth + 1].inner = 0;
    lane->depths[depth].inner += MAREY__MAX(all, within);
    return true;
}

static bool on_call(void *ctx, const struct marey__lane_walk *lane,
                    const struct marey__frame *frame, uint64_t end_ns)
{
    struct turning *const t = ctx;
    struct marey__samples_set *const set = t->set;
    struct lane *const into = &t->lanes[lane->stack.info->lane];
    const uint64_t all_ns = end_ns - frame->start_ns,
                   own_ns = all_ns > frame->children_ns ? all_ns - frame->children_ns : 0;
    uint64_t own;
    if (!take_own(into, lane->stack.n_open + 1, frame, &own))
        return false;
    const uint32_t stack = own_ns != 0 ? stack_of(t, into, lane, frame) : 0;
    into->n_known = MAREY__MIN(into->n_known, lane->stack.n_open + 1);
    if (own_ns == 0)
        return true;
    const struct marey__samples_imported one = {
        .process = t->process,
        .thread = thread_of(t, lane->stack.info),
        .stack = stack,
        .n = own != 0 ? own : 1,
        .at_ns = end_ns - own_ns / 2,
        .weight_ns = own_ns,
    };
    if (one.thread == 0 || one.stack == 0 ||
        !marey__grow(&set->imported, &set->imported_cap, set->n_imported + 1, sizeof *set->imported))
        return false;
    set->imported[set->n_imported++] = one;
    set->n_imported_samples += one.n;
    return true;
}

static bool on_cut(void *ctx, const struct marey__lane_walk *lane, const struct marey__frame *frame,
                   uint64_t last_ns)
{
    struct turning *const t = ctx;
    (void)frame, (void)last_ns;
    t->lanes[lane->stack.info->lane].n_known = 0;
    return true;
}

/* ---- processes ---- */

static marey_status turn_process(struct marey__samples_set *set, marey_recording *recording,
                                 size_t log)
{
    static const struct marey__walk_tap tap = {.call = on_call, .cut = on_cut};
    const struct marey_process *const info = marey_recording_process(recording, log);
    const struct marey_samples_process process = {.pid = info->pid,
                                                  .ppid = info->ppid,
                                                  .start_time = info->start_time,
                                                  .rank = info->rank,
                                                  .worker = info->worker,
                                                  .command = info->command,
                                                  .host = info->host};
    struct marey__process_walk walk;
    struct turning t = {.set = set, .walk = &walk};
    t.process = marey__samples_process(set->samples, &process);
    t.locations = marey__calloc((size_t)info->n_sites + 1, sizeof *t.locations);
    t.lanes = marey__calloc((size_t)info->n_lanes + 1, sizeof *t.lanes);
    marey_status status =
        t.process != 0 && t.locations != NULL && t.lanes != NULL ? MAREY_OK : marey__no_memory();
    if (status == MAREY_OK) {
        status = marey__process_walk_init(&walk, recording, log);
        walk.tap = &tap;
        walk.tap_ctx = &t;
        if (status == MAREY_OK)
            status = marey__process_walk_run(&walk);
        marey__process_walk_fini(&walk);
    }
    marey__free(t.locations);
    for (size_t i = 0; t.lanes != NULL && i < info->n_lanes; i++)
        marey__free(t.lanes[i].depths);
    marey__free(t.lanes);
    marey__buf_fini(&t.name);
    return status;
}

static bool is_of_sampler(const struct marey_process *process)
{
    const struct marey_import_format *format;
    for (size_t i = 0; (format = marey_import_format_at(i)) != NULL; i++)
        if (strcmp(process->source, format->name) == 0)
            return format->has_samples != 0;
    return false;
}

bool marey__samples_are_imported(marey_recording *const *recordings, size_t n)
{
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < marey_recording_n_processes(recordings[r]); i++)
            if (is_of_sampler(marey_recording_process(recordings[r], i)))
                return true;
    return false;
}

marey_status marey__samples_take_imports(struct marey__samples_set *set,
                                         marey_recording *const *recordings, size_t n)
{
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < marey_recording_n_processes(recordings[r]); i++)
            if (is_of_sampler(marey_recording_process(recordings[r], i)))
                MAREY_TRY(turn_process(set, recordings[r], i));
    for (size_t i = 0; set->n_imported_samples > MOST_SAMPLES && i < set->n_imported; i++)
        set->imported[i].n = 1;
    return MAREY_OK;
}

uint64_t marey__samples_imported_ns(const struct marey__samples_set *set)
{
    uint64_t first_ns = UINT64_MAX, last_ns = 0;
    for (size_t i = 0; i < set->n_imported; i++) {
        const uint64_t half_ns = set->imported[i].weight_ns / 2;
        first_ns = MAREY__MIN(first_ns,
                              set->imported[i].at_ns - MAREY__MIN(half_ns, set->imported[i].at_ns));
        last_ns = MAREY__MAX(last_ns, set->imported[i].at_ns + half_ns);
    }
    return set->n_imported != 0 ? last_ns - first_ns : 0;
}

marey_status marey__samples_visit_imported(struct marey__samples_set *set,
                                           marey__samples_round_visitor *hand, void *ctx)
{
    for (size_t i = 0; i < set->n_imported; i++) {
        const struct marey__samples_imported *const one = &set->imported[i];
        const struct marey_samples_seen seen = {.thread = one->thread, .stack = one->stack};
        struct marey_samples_round round = {.process = one->process,
                                            .at_ns = one->at_ns,
                                            .weight_ns = one->weight_ns,
                                            .n_same = one->n,
                                            .seen = &seen,
                                            .n_seen = 1};
        MAREY_TRY(hand(ctx, &round));
    }
    return MAREY_OK;
}
