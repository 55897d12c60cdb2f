/*
 * Merges native and Python frames into one list. A call of the evaluation loop stands for the Python frames that it
 * executes, so each such run must be matched with its native frame:
 *
 *   by anchor   an address in the loop's own C frame (the shim frame, the cframe) lies between that frame's sp and CFA.
 *               Exact, and the same for stripped interpreters.
 *   by name     the loops in order, runs in order. The innermost loop may have been entered and not have its frame yet, or
 *               have left it: one more or one less there is usual and no mismatch.
 *
 * If they do not match, no Python frame is lost: frames are placed by order, and the sample is flagged.
 */
#include "sampler/unwind/internal.h"

struct output {
    struct marey__unwind_merged *entries;
    size_t n;
    size_t run;      /* the next run to place */
    uint32_t python; /* its first frame */
};

static void put_run(struct output *to, const struct marey__unwind_merge *in)
{
    for (uint32_t i = 0; i < in->runs[to->run].n_frames; i++)
        to->entries[to->n++] = (struct marey__unwind_merged){true, to->python++};
    to->run++;
}

/*
 * How many runs, from `run` on, one native frame holds: none, one, or more if a compiler inlined one loop into another.
 */
static size_t runs_here(const struct marey__unwind_merge *in, size_t native, size_t run)
{
    const struct marey__native_frame *const frame = &in->native[native];
    size_t n = 0;
    while (run + n < in->n_runs && in->runs[run + n].anchor >= frame->sp &&
           in->runs[run + n].anchor < frame->cfa)
        n++;
    return n;
}

/* Whether anchors can be used: each run has one, and in a complete stack each has a frame. */
static bool has_anchors(const struct marey__unwind_merge *in)
{
    size_t run = 0;
    for (size_t i = 0; i < in->n_runs; i++)
        if (in->runs[i].anchor == 0)
            return false;
    for (size_t i = 0; i < in->n_native; i++)
        run += runs_here(in, i, run);
    return in->n_runs > 0 && (run == in->n_runs || !in->is_complete);
}

static bool is_shown(struct marey__unwind *unwind, const struct marey__unwind_merge *in,
                     const struct output *to, size_t native)
{
    const struct marey__native_symbol *const symbol =
        marey__unwind_symbol(unwind, in->native[native].pc);
    switch (symbol->role) {
    case MAREY__NATIVE_EVAL:
    case MAREY__NATIVE_PLUMBING:
        return false;
    case MAREY__NATIVE_START:
        return to->run < in->n_runs;
    default:
        break;
    }
    /* Outside the outermost Python frame, frames without a name belong to a thread's start. */
    return to->run < in->n_runs || symbol->name[0] != '[';
}

static void put_native(struct marey__unwind *unwind, const struct marey__unwind_merge *in,
                       struct output *to, size_t native)
{
    if (in->n_runs == 0 || is_shown(unwind, in, to, native))
        to->entries[to->n++] = (struct marey__unwind_merged){false, (uint32_t)native};
}

static void by_anchors(struct marey__unwind *unwind, const struct marey__unwind_merge *in,
                       struct output *to)
{
    for (size_t i = 0; i < in->n_native; i++) {
        const size_t n = runs_here(in, i, to->run);
        for (size_t run = 0; run < n; run++)
            put_run(to, in);
        if (n == 0)
            put_native(unwind, in, to, i);
    }
}

/* `skip`: innermost loops that have no frame yet; `early`: runs that have left their loop already. */
static void by_names(struct marey__unwind *unwind, const struct marey__unwind_merge *in,
                     struct output *to, size_t skip, size_t early)
{
    for (; early > 0; early--)
        put_run(to, in);
    for (size_t i = 0; i < in->n_native; i++) {
        if (!in->native[i].is_eval) {
            put_native(unwind, in, to, i);
        } else if (skip > 0) {
            skip--;
        } else if (to->run < in->n_runs) {
            put_run(to, in);
        }
    }
}

size_t marey__unwind_merge(struct marey__unwind *unwind, const struct marey__unwind_merge *in,
                           struct marey__unwind_merged *out, bool *is_mismatch)
{
    struct output to = {.entries = out};
    size_t n_loops = 0;
    for (size_t i = 0; i < in->n_native; i++)
        n_loops += in->native[i].is_eval;
    if (has_anchors(in)) {
        by_anchors(unwind, in, &to);
        *is_mismatch = false;
    } else {
        /* A truncated stack lacks outer loops; a complete one differs only at the innermost end. */
        const size_t skip = in->is_complete && n_loops > in->n_runs ? n_loops - in->n_runs : 0;
        const size_t early = in->is_complete && in->n_runs > n_loops ? in->n_runs - n_loops : 0;
        by_names(unwind, in, &to, skip, early);
        *is_mismatch = skip > 1 || early > 1 || (early == 1 && n_loops == 0) ||
                       (!in->is_complete && n_loops > in->n_runs);
    }
    while (to.run < in->n_runs)
        put_run(&to, in);
    return to.n;
}
