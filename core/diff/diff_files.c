/* Two dumps on disk: which steps belong together, and the values of each. */
#include <string.h>

#include "diff/diff_internal.h"

/* A dump, and what is wanted of it. */
struct run {
    const char *path;
    kymo_dumps *dumps;
    struct step {
        struct kymo_dumped_step about;
        size_t number;  /* in the dump */
        size_t partner; /* the other run's step, KYMO__DIFF_NONE */
    } * steps;
    size_t n;
};

static bool is_wanted(const struct kymo_diff_options *options, const struct kymo_dumped_step *step)
{
    return (!options->has_step || step->step == options->step) &&
           (!options->has_rank || step->rank == (int64_t)options->rank);
}

static kymo_status open_run(const char *path, const struct kymo_diff_options *options, struct run *out)
{
    *out = (struct run){.path = path};
    KYMO_TRY(kymo_dumps_open(path, &out->dumps));
    const size_t n = kymo_dumps_count(out->dumps);
    out->steps = kymo__calloc(n + 1, sizeof *out->steps);
    if (out->steps == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory to read %s", path);
    for (size_t i = 0; i < n; i++) {
        struct step *step = &out->steps[out->n];
        *step = (struct step){.number = i, .partner = KYMO__DIFF_NONE};
        KYMO_TRY(kymo_dumps_step(out->dumps, i, &step->about));
        out->n += is_wanted(options, &step->about);
    }
    if (out->n == 0)
        return kymo__fail(KYMO_EMISMATCH,
                          n == 0 ? "%s has no step of a dump in it"
                                 : "%s has nothing of the step or rank that was asked for",
                          path);
    return KYMO_OK;
}

static void close_run(struct kymo_diff *diff, struct run *run)
{
    for (size_t i = 0; run->dumps != NULL && i < kymo_dumps_n_notes(run->dumps); i++)
        kymo__diff_warn(diff, "%s", kymo_dumps_note(run->dumps, i));
    kymo_dumps_close(run->dumps);
    kymo__free(run->steps);
    *run = (struct run){0};
}

/* ---- steps that belong together ---- */

static size_t n_of_step(const struct run *run, uint64_t step)
{
    size_t n = 0;
    for (size_t i = 0; i < run->n; i++)
        n += run->steps[i].about.step == step;
    return n;
}

/* One that has no rank stands for the only one that has. */
static bool are_partners(const struct run *a, const struct step *sa, const struct run *b,
                         const struct step *sb)
{
    if (sb->partner != KYMO__DIFF_NONE || sa->about.step != sb->about.step)
        return false;
    return sa->about.rank == sb->about.rank ||
           ((sa->about.rank < 0 || sb->about.rank < 0) && n_of_step(a, sa->about.step) == 1 &&
            n_of_step(b, sb->about.step) == 1);
}

/* Both are sorted by step. How many pairs there are. */
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

static kymo_status get_value(const struct kymo__diff_side *side, size_t value, struct kymo_tensor *out)
{
    return kymo_dumps_get(side->ctx, side->number, value, out);
}

/* `step` NULL: a side without any values. */
static kymo_status open_side(const struct run *run, const struct step *step,
                             struct kymo__diff_side *out)
{
    *out = (struct kymo__diff_side){.get = get_value};
    if (step == NULL)
        return KYMO_OK;
    out->ctx = run->dumps;
    out->number = step->number;
    out->is_single = step->about.is_single != 0;
    return kymo_dumps_values(run->dumps, step->number, &out->values, &out->n);
}

static void close_side(const struct kymo__diff_side *side)
{
    if (side->ctx != NULL)
        kymo_dumps_release(side->ctx, side->number);
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
static kymo_status diff_step(struct kymo_diff *diff, const struct runs *runs,
                             const struct run *run_a, const struct step *a, const struct step *b)
{
    const struct step *step = a != NULL ? a : b;
    const struct step *noise = b != NULL && runs->noise.n != 0 ? find_like(&runs->noise, b) : NULL;
    const struct kymo__diff_place place = {step->about.step, step->about.rank};
    struct kymo__diff_side sides[3] = {{0}};
    kymo_status status = open_side(run_a, a, &sides[0]);
    if (status == KYMO_OK)
        status = open_side(&runs->b, b, &sides[1]);
    if (status == KYMO_OK)
        status = open_side(&runs->noise, noise, &sides[2]);
    if (status == KYMO_OK)
        status =
            kymo__diff_sides(diff, &place, &sides[0], &sides[1], noise != NULL ? &sides[2] : NULL);
    for (size_t i = 0; i < KYMO__COUNT_OF(sides); i++)
        close_side(&sides[i]);
    diff->n_steps += a != NULL && b != NULL;
    return status;
}

static void tell_incomplete(struct kymo_diff *diff, const struct run *run)
{
    for (size_t i = 0; i < run->n; i++)
        if (!run->steps[i].about.is_complete && !run->steps[i].about.is_single &&
            run->steps[i].about.layout == KYMO_DUMP_LAYOUT_KYMO)
            kymo__diff_warn(
                diff, "step %llu of %s is not complete: the program ended in it, or still writes it",
                (unsigned long long)run->steps[i].about.step, run->path);
}

static void tell_alone(struct kymo_diff *diff, const struct run *run, const char *side)
{
    size_t n = 0;
    for (size_t i = 0; i < run->n; i++)
        n += run->steps[i].partner == KYMO__DIFF_NONE;
    if (n != 0)
        kymo__diff_warn(diff, "%zu step%s %s in %s alone", n, n == 1 ? "" : "s",
                        n == 1 ? "is" : "are", side);
}

static void tell_progress(const struct kymo_diff *diff, size_t done, size_t of)
{
    if (diff->options.progress != NULL)
        diff->options.progress(diff->options.progress_ctx, (double)done / (double)of);
}

static kymo_status diff_runs(struct kymo_diff *diff, struct runs *runs)
{
    if (match_steps(&runs->a, &runs->b) == 0)
        return kymo__fail(KYMO_EMISMATCH, "no step is both in %s and in %s", runs->a.path,
                          runs->b.path);
    if (runs->a.n == 1 && runs->b.n == 1 && runs->a.steps[0].about.step != runs->b.steps[0].about.step)
        kymo__diff_warn(diff, "step %llu of A is compared with step %llu of B: each has but one",
                        (unsigned long long)runs->a.steps[0].about.step,
                        (unsigned long long)runs->b.steps[0].about.step);
    tell_incomplete(diff, &runs->a);
    tell_incomplete(diff, &runs->b);
    for (size_t i = 0; i < runs->a.n; i++) {
        const struct step *a = &runs->a.steps[i];
        tell_progress(diff, i, runs->a.n);
        KYMO_TRY(diff_step(diff, runs, &runs->a, a,
                           a->partner != KYMO__DIFF_NONE ? &runs->b.steps[a->partner] : NULL));
    }
    for (size_t j = 0; j < runs->b.n; j++)
        if (runs->b.steps[j].partner == KYMO__DIFF_NONE)
            KYMO_TRY(diff_step(diff, runs, &runs->a, NULL, &runs->b.steps[j]));
    tell_alone(diff, &runs->a, "A");
    tell_alone(diff, &runs->b, "B");
    return KYMO_OK;
}

/* ---- ranks ---- */

/* The lowest rank of a step is the reference of the others. */
static kymo_status diff_ranks(struct kymo_diff *diff, struct runs *runs)
{
    const struct step *lowest = NULL;
    for (size_t i = 0; i < runs->b.n; i++) {
        const struct step *step = &runs->b.steps[i];
        if (lowest == NULL || lowest->about.step != step->about.step)
            lowest = step;
        else
            KYMO_TRY(diff_step(diff, runs, &runs->b, step, lowest));
    }
    if (diff->n_steps == 0)
        return kymo__fail(KYMO_EMISMATCH, "%s has no step of two ranks that could be compared",
                          runs->b.path);
    return KYMO_OK;
}

/* ---- the way in ---- */

typedef kymo_status differ(struct kymo_diff *diff, struct runs *runs);

static kymo_status make_diff(const char *a, const char *b, struct kymo_diff *diff, differ *work)
{
    struct runs runs = {{0}};
    kymo_status status = a != NULL ? open_run(a, &diff->options, &runs.a) : KYMO_OK;
    if (status == KYMO_OK)
        status = open_run(b, &diff->options, &runs.b);
    if (status == KYMO_OK && diff->options.noise != NULL)
        status = open_run(diff->options.noise, &diff->options, &runs.noise);
    if (status == KYMO_OK)
        status = work(diff, &runs);
    close_run(diff, &runs.a);
    close_run(diff, &runs.b);
    close_run(diff, &runs.noise);
    return status == KYMO_OK ? kymo__diff_conclude(diff) : status;
}

static kymo_status finish(struct kymo_diff *diff, kymo_status status, kymo_diff **out)
{
    if (status != KYMO_OK) {
        kymo_diff_close(diff);
        return status;
    }
    diff->options = (struct kymo_diff_options){
        .strict_dtype = diff->options.strict_dtype,
        .allow_missing = diff->options.allow_missing,
        .allow_extra = diff->options.allow_extra,
    }; /* the rest was lent */
    *out = diff;
    return KYMO_OK;
}

kymo_status kymo_diff_open(const char *a, const char *b, const struct kymo_diff_options *options,
                           kymo_diff **out)
{
    struct kymo_diff *diff;
    KYMO_TRY(kymo__diff_create(options, &diff));
    return finish(diff, make_diff(a, b, diff, diff_runs), out);
}

kymo_status kymo_diff_ranks(const char *dump, const struct kymo_diff_options *options, kymo_diff **out)
{
    struct kymo_diff *diff;
    KYMO_TRY(kymo__diff_create(options, &diff));
    diff->compares_ranks = true;
    diff->options.has_rank = 0;
    diff->options.allow_missing = diff->options.allow_extra = 1;
    return finish(diff, make_diff(NULL, dump, diff, diff_ranks), out);
}
