/*
 * The calls of ranges, for programs that tell of no iterations: each call is an observation. A name keeps a million
 * calls at most; beyond, every second one is let go, then every second of those.
 *
 * A profile knows sums over calls, or over samples, and nothing of the single ones. There a name has one observation for
 * the whole run, all of its time.
 */
#include <string.h>

#include "analyze/compare/internal.h"

enum { MAX_CALLS = 1 << 20 };

struct calls {
    float *ns;
    size_t n, cap;
    uint64_t count, stride; /* one of `stride` is kept; 0 stands for 1 */
    double total_ns;
    bool is_sum; /* some stand for several */
};

static void thin_out(struct calls *calls)
{
    calls->n /= 2;
    for (size_t i = 0; i < calls->n; i++)
        calls->ns[i] = calls->ns[2 * i];
    calls->stride *= 2;
}

static bool take_call(void *ctx, const struct marey__lane_walk *lane,
                      const struct marey__frame *frame, uint64_t end_ns)
{
    struct calls *calls = (struct calls *)ctx + frame->name;
    uint64_t duration_ns = end_ns > frame->start_ns ? end_ns - frame->start_ns : 0;
    /* Of sums the outermost has it all. */
    if (frame->repeat != 0 && !lane->tree.nodes[frame->node].is_outermost)
        duration_ns = 0;
    calls->stride += calls->stride == 0;
    calls->total_ns += (double)duration_ns;
    calls->is_sum |= frame->repeat != 0;
    if (calls->count++ % calls->stride != 0)
        return true;
    if (!MAREY__PUSH(calls->ns, calls->n, calls->cap, (float)duration_ns))
        return false;
    if (calls->n == MAX_CALLS)
        thin_out(calls);
    return true;
}

static bool digest_calls(struct marey__process_times *times, const struct marey__names *names,
                         const struct calls *calls, const char *filter)
{
    size_t most = 1;
    for (size_t i = 0; i < names->n; i++)
        most = MAREY__MAX(most, calls[i].n);
    uint32_t *scratch = marey__calloc(most, sizeof *scratch);
    bool ok = scratch != NULL;
    for (size_t i = 0; ok && i < names->n; i++) {
        const float sum = (float)calls[i].total_ns;
        times->has_sums |= calls[i].is_sum;
        if (calls[i].n != 0 && marey__name_matches(filter, names->names[i].text, names->names[i].len))
            ok = marey__process_times_add(
                times, &names->names[i], calls[i].is_sum ? &sum : calls[i].ns,
                calls[i].is_sum ? 1 : calls[i].n, calls[i].total_ns, scratch);
    }
    marey__free(scratch);
    return ok;
}

static marey_status walk_calls(struct marey__process_walk *walk, struct marey__process_times *times,
                               const char *filter)
{
    static const struct marey__walk_tap tap = {.call = take_call};
    struct calls *calls = marey__calloc(walk->names.n, sizeof *calls);
    marey_status status = calls != NULL ? MAREY_OK : MAREY_ENOMEM;
    if (status == MAREY_OK) {
        walk->tap = &tap;
        walk->tap_ctx = calls;
        status = marey__process_walk_run(walk);
    }
    if (status == MAREY_OK && !digest_calls(times, &walk->names, calls, filter))
        status = MAREY_ENOMEM;
    for (size_t i = 0; calls != NULL && i < walk->names.n; i++)
        marey__free(calls[i].ns);
    marey__free(calls);
    return status == MAREY_ENOMEM ? marey__no_memory() : status;
}

marey_status marey__process_times_of_calls(struct marey__process_times *times,
                                           marey_recording *recording, size_t process,
                                           const struct marey__compare_options *options)
{
    struct marey__process_walk walk;
    marey_status status = marey__process_walk_init(&walk, recording, process);
    if (status == MAREY_OK)
        status = walk_calls(&walk, times, options->filter);
    marey__process_walk_fini(&walk);
    return status;
}
