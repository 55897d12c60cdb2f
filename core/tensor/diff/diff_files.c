/* Two dumps on disk: matches their steps, and opens the values of each. */
#include <string.h>

#include "tensor/diff/internal.h"
#include "tensor/dumpfile/internal.h"

/* A dump and the selected steps. */
struct run {
    const char *path;
    marey_dumps *dumps;
    struct step {
        struct marey_dumped_step about;
        size_t number;  /* in the dump */
        size_t partner; /* the other run's step, or MAREY__DIFF_NONE */
    } * steps;
    size_t n;
};

static bool is_wanted(const struct marey_diff_options *options, const struct marey_dumped_step *step)
{
    return (!options->has_step || step->step == options->step) &&
           (!options->has_rank || step->rank == (int64_t)options->rank);
}

static marey_status open_run(const char *path, const struct marey_diff_options *options,
                             struct run *out)
{
    *out = (struct run){.path = path};
    MAREY_TRY(marey_dumps_open(path, &out->dumps));
    const size_t n = marey_dumps_count(out->dumps);
    out->steps = marey__calloc(n + 1, sizeof *out->steps);
    MAREY__TRY_MEMORY(out->steps != NULL);
    for (size_t i = 0; i < n; i++) {
        struct step *step = &out->steps[out->n];
        *step = (struct step){.number = i, .partner = MAREY__DIFF_NONE};
        MAREY_TRY(marey_dumps_step(out->dumps, i, &step->about));
        out->n += is_wanted(options, &step->about);
    }
    if (out->n == 0)
        return marey__fail(MAREY_EMISMATCH,
                           n == 0 ? "%s has no step of a dump in it"
                                  : "%s has nothing of the step or rank that was asked for",
                           path);
    return MAREY_OK;
}

static void close_run(struct marey_diff *diff, struct run *run)
{
    for (size_t i = 0; run->dumps != NULL && i < marey_dumps_n_notes(run->dumps); i++)
        marey__diff_warn(diff, "%s", marey_dumps_note(run->dumps, i));
    marey_dumps_close(run->dumps);
    marey__free(run->steps);
    *run = (struct run){0};
}

/* ---- matching steps ---- */

static size_t n_of_step(const struct run *run, uint64_t step)
{
    size_t n = 0;
    for (size_t i = 0; i < run->n; i++)
        n += run->steps[i].about.step == step;
    return n;
}

/* A step without a rank matches one with a rank if that is the only one. */
static bool are_partners(const struct run *a, const struct step *sa, const struct run *b,
                         const struct step *sb)
{
    if (sb->partner != MAREY__DIFF_NONE || sa->about.step != sb->about.step)
        return false;
    return sa->about.rank == sb->about.rank ||
           ((sa->about.rank < 0 || sb->about.rank < 0) && n_of_step(a, sa->about.step) == 1 &&
            n_of_step(b, sb->about.step) == 1);
}

/* Both are sorted by step. Returns the number of pairs. */
static size_t match_steps(struct run *a, struct run *b)
{
    size_t n = 0, from = 0;
    if (a->n == 1 && b->n == 1) {
        a->steps[0].partner = b->steps[0].partner = 0;
        return 1;
    }
    for (size_t i = 0; i < a->n; i++) {
        while (from < b->n && b->steps[from].about.step < a->steps[i].about.step)
            from++;
        for (size_t j = from; j < b->n && b->steps[j].about.step == a->steps[i].about.step; j++)
            if (are_partners(a, &a->steps[i], b, &b->steps[j])) {
                a->steps[i].partner = j;
                b->steps[j].partner = i;
                n++;
                break;
            }
    }
    return n;
}

/* ---- values ---- */

static marey_status open_value(const struct marey__diff_side *side, size_t value,
                               struct marey__tensor_file *file, struct marey_tensor *out)
{
    return marey__dumps_open_value(side->ctx, side->number, value, file, out);
}

static void close_value(const struct marey__diff_side *side, size_t value,
                        struct marey__tensor_file *file)
{
    marey__dumps_close_value(side->ctx, side->number, value, file);
}

marey_status marey__diff_side_open(marey_dumps *dumps, size_t number, struct marey__diff_side *out)
{
    *out = (struct marey__diff_side){
        .open = open_value, .close = close_value, .ctx = dumps, .number = number};
    return marey_dumps_values(dumps, number, &out->values, &out->n);
}

/* `step` NULL: a side without values. */
static marey_status open_side(const struct run *run, const struct step *step,
                              struct marey__diff_side *out)
{
    *out = (struct marey__diff_side){0};
    if (step == NULL)
        return MAREY_OK;
    const marey_status status = marey__diff_side_open(run->dumps, step->number, out);
    out->is_single = step->about.is_single != 0;
    return status;
}

static void close_side(const struct marey__diff_side *side)
{
    if (side->ctx != NULL)
        marey_dumps_release(side->ctx, side->number);
}

struct runs {
    struct run a, b, noise;
};

static const struct step *find_like(const struct run *run, const struct step *like)
{
    for (size_t i = 0; i < run->n; i++)
        if (run->steps[i].about.step == like->about.step &&
            run->steps[i].about.rank == like->about.rank)
            return &run->steps[i];
    return run->n == 1 ? run->steps : NULL;
}

/* Steps `a` and `b`, either of which may be NULL. */
static marey_status diff_step(struct marey_diff *diff, const struct runs *runs,
                              const struct run *run_a, const struct step *a, const struct step *b)
{
    const struct step *step = a != NULL ? a : b;
    const struct step *noise = b != NULL && runs->noise.n != 0 ? find_like(&runs->noise, b) : NULL;
    const struct marey__diff_place place = {step->about.step, step->about.rank};
    struct marey__diff_side side_a MAREY__FINALLY(close_side) = {0};
    struct marey__diff_side side_b MAREY__FINALLY(close_side) = {0};
    struct marey__diff_side side_noise MAREY__FINALLY(close_side) = {0};
    MAREY_TRY(open_side(run_a, a, &side_a));
    MAREY_TRY(open_side(&runs->b, b, &side_b));
    MAREY_TRY(open_side(&runs->noise, noise, &side_noise));
    diff->n_steps += a != NULL && b != NULL;
    return marey__diff_sides(diff, &place, &side_a, &side_b, noise != NULL ? &side_noise : NULL);
}

static void warn_incomplete(struct marey_diff *diff, const struct run *run)
{
    for (size_t i = 0; i < run->n; i++)
        if (!run->steps[i].about.is_complete && !run->steps[i].about.is_single &&
            run->steps[i].about.layout == MAREY_DUMP_LAYOUT_MAREY)
            marey__diff_warn(
                diff, "step %llu of %s is not complete: the program ended in it, or still writes it",
                (unsigned long long)run->steps[i].about.step, run->path);
}

static void warn_unpaired(struct marey_diff *diff, const struct run *run, const char *side)
{
    size_t n = 0;
    for (size_t i = 0; i < run->n; i++)
        n += run->steps[i].partner == MAREY__DIFF_NONE;
    if (n != 0)
        marey__diff_warn(diff, "%zu step%s %s only in %s", n, n == 1 ? "" : "s",
                         n == 1 ? "is" : "are", side);
}

static marey_status diff_runs(struct marey_diff *diff, struct runs *runs)
{
    if (match_steps(&runs->a, &runs->b) == 0)
        return marey__fail(MAREY_EMISMATCH, "no step is both in %s and in %s", runs->a.path,
                           runs->b.path);
    if (runs->a.n == 1 && runs->b.n == 1 && runs->a.steps[0].about.step != runs->b.steps[0].about.step)
        marey__diff_warn(diff, "step %llu of A is compared with step %llu of B: each has but one",
                         (unsigned long long)runs->a.steps[0].about.step,
                         (unsigned long long)runs->b.steps[0].about.step);
    warn_incomplete(diff, &runs->a);
    warn_incomplete(diff, &runs->b);
    for (size_t i = 0; i < runs->a.n; i++) {
        const struct step *a = &runs->a.steps[i];
        if (diff->options.progress != NULL)
            diff->options.progress(diff->options.progress_ctx, (double)i / (double)runs->a.n);
        MAREY_TRY(diff_step(diff, runs, &runs->a, a,
                            a->partner != MAREY__DIFF_NONE ? &runs->b.steps[a->partner] : NULL));
    }
    for (size_t j = 0; j < runs->b.n; j++)
        if (runs->b.steps[j].partner == MAREY__DIFF_NONE)
            MAREY_TRY(diff_step(diff, runs, &runs->a, NULL, &runs->b.steps[j]));
    warn_unpaired(diff, &runs->a, "A");
    warn_unpaired(diff, &runs->b, "B");
    return MAREY_OK;
}

/* ---- merging ranks ---- */

enum { MAX_RANKS = 4096 };

static size_t n_from(const struct run *run, size_t first)
{
    size_t n = 0;
    while (first + n < run->n && run->steps[first + n].about.step == run->steps[first].about.step)
        n++;
    return n;
}

/* Merges `n` sides from step `first` on, guided by `other`, and compares the result. */
static marey_status merge_sides(struct marey_diff *diff, const struct run *many, size_t first,
                                size_t n, struct marey__diff_side *ranks,
                                const struct marey__diff_side *other, bool is_a)
{
    const struct marey__diff_place place = {many->steps[first].about.step, -1};
    struct marey__diff_side side MAREY__FINALLY(marey__diff_merge_close) = {0};
    for (size_t i = 0; i < n; i++)
        MAREY_TRY(open_side(many, &many->steps[first + i], &ranks[i]));
    MAREY_TRY(marey__diff_merge_open(ranks, n, other, &diff->options, &side));
    return marey__diff_sides(diff, &place, is_a ? &side : other, is_a ? other : &side, NULL);
}

/* One step, with several ranks in one run and one in the other. */
static marey_status diff_merged(struct marey_diff *diff, const struct runs *runs, size_t ia, size_t ib)
{
    const size_t n_a = n_from(&runs->a, ia), n_b = n_from(&runs->b, ib), n = MAREY__MAX(n_a, n_b);
    const bool is_a = n_a > 1;
    if ((n_a > 1 && n_b > 1) || n > MAX_RANKS)
        return marey__fail(
            MAREY_EMISMATCH,
            "step %llu has %zu ranks in A and %zu in B; to be put together, one side has one",
            (unsigned long long)runs->a.steps[ia].about.step, n_a, n_b);
    struct marey__diff_side other MAREY__FINALLY(close_side) = {0};
    struct marey__diff_side *const ranks MAREY__FREED = marey__calloc(n, sizeof *ranks);
    MAREY__TRY_MEMORY(ranks != NULL);
    MAREY_TRY(is_a ? open_side(&runs->b, &runs->b.steps[ib], &other)
                   : open_side(&runs->a, &runs->a.steps[ia], &other));
    const marey_status status =
        merge_sides(diff, is_a ? &runs->a : &runs->b, is_a ? ia : ib, n, ranks, &other, is_a);
    for (size_t i = 0; i < n; i++)
        close_side(&ranks[i]);
    diff->n_steps++;
    return status;
}

/* Steps in only one run. */
static marey_status diff_alone(struct marey_diff *diff, const struct runs *runs, bool is_a,
                               size_t first, size_t n)
{
    for (size_t i = first; i < first + n; i++)
        MAREY_TRY(diff_step(diff, runs, &runs->a, is_a ? &runs->a.steps[i] : NULL,
                            is_a ? NULL : &runs->b.steps[i]));
    return MAREY_OK;
}

static marey_status diff_merged_runs(struct marey_diff *diff, struct runs *runs)
{
    size_t ia = 0, ib = 0;
    while (ia < runs->a.n && ib < runs->b.n) {
        const uint64_t a = runs->a.steps[ia].about.step, b = runs->b.steps[ib].about.step;
        const size_t n_a = a <= b ? n_from(&runs->a, ia) : 0, n_b = b <= a ? n_from(&runs->b, ib) : 0;
        if (a == b)
            MAREY_TRY(diff_merged(diff, runs, ia, ib));
        else
            MAREY_TRY(diff_alone(diff, runs, a < b, a < b ? ia : ib, n_a + n_b));
        ia += n_a;
        ib += n_b;
    }
    if (diff->n_steps == 0)
        return marey__fail(MAREY_EMISMATCH, "no step is both in %s and in %s", runs->a.path,
                           runs->b.path);
    MAREY_TRY(diff_alone(diff, runs, true, ia, runs->a.n - ia));
    return diff_alone(diff, runs, false, ib, runs->b.n - ib);
}

/* ---- ranks ---- */

/* The lowest rank of a step is the reference for the others. */
static marey_status diff_ranks(struct marey_diff *diff, struct runs *runs)
{
    const struct step *lowest = NULL;
    for (size_t i = 0; i < runs->b.n; i++) {
        const struct step *step = &runs->b.steps[i];
        if (lowest == NULL || lowest->about.step != step->about.step)
            lowest = step;
        else
            MAREY_TRY(diff_step(diff, runs, &runs->b, step, lowest));
    }
    if (diff->n_steps == 0)
        return marey__fail(MAREY_EMISMATCH, "%s has no step of two ranks that could be compared",
                           runs->b.path);
    return MAREY_OK;
}

/* ---- opening ---- */

typedef marey_status differ(struct marey_diff *diff, struct runs *runs);

static marey_status make_diff(const char *a, const char *b, struct marey_diff *diff, differ *work)
{
    struct runs runs = {{0}};
    marey_status status = a != NULL ? open_run(a, &diff->options, &runs.a) : MAREY_OK;
    if (status == MAREY_OK)
        status = open_run(b, &diff->options, &runs.b);
    if (status == MAREY_OK && diff->options.noise != NULL)
        status = open_run(diff->options.noise, &diff->options, &runs.noise);
    if (status == MAREY_OK)
        status = work(diff, &runs);
    close_run(diff, &runs.a);
    close_run(diff, &runs.b);
    close_run(diff, &runs.noise);
    return status == MAREY_OK ? marey__diff_conclude(diff) : status;
}

marey_status marey__diff_open(const char *a, const char *b,
                              const struct marey_diff_options *options, marey_diff **out)
{
    struct marey_diff *diff;
    MAREY_TRY(marey__diff_create(options, &diff));
    diff->compares_ranks = a == NULL;
    if (diff->compares_ranks) {
        diff->options.has_rank = 0;
        diff->options.allow_missing = diff->options.allow_extra = 1;
    }
    const marey_status status = make_diff(a, b, diff,
                                          diff->compares_ranks        ? diff_ranks
                                          : diff->options.merge_ranks ? diff_merged_runs
                                                                      : diff_runs);
    if (status != MAREY_OK) {
        marey_diff_close(diff);
        return status;
    }
    diff->options = (struct marey_diff_options){
        .allow_dtype = diff->options.allow_dtype,
        .allow_missing = diff->options.allow_missing,
        .allow_extra = diff->options.allow_extra,
    }; /* the other fields are lent */
    *out = diff;
    return MAREY_OK;
}
