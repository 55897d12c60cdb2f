/* What follows from steps and samples: which steps are warm-up, what a step consists of, where samples are in the code. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/diagnosis/internal.h"

/* ---- steps ---- */

static uint64_t length_of(const struct marey__fact_step *step)
{
    return step->end_ns - step->begin_ns;
}

/* Of the steps from `first` on; 0 on out of memory, which a caller takes for no steps. */
static uint64_t median_from(const struct marey__trainer *t, size_t first)
{
    const size_t n = t->n_steps - first;
    uint64_t *const lengths = marey__calloc(n + 1, sizeof *lengths);
    if (lengths == NULL)
        return 0;
    for (size_t i = 0; i < n; i++)
        lengths[i] = length_of(&t->steps[first + i]);
    qsort(lengths, n, sizeof *lengths, marey__compare_u64);
    const uint64_t median = n % 2 != 0 ? lengths[n / 2] : lengths[n / 2 - 1] / 2 + lengths[n / 2] / 2;
    marey__free(lengths);
    return median;
}

/*
 * The first step always is warm-up when there are others: allocators, caches and compilers start in it. So are the next
 * ones while they take longer than 1.5 typical steps, up to a tenth of all, or three.
 */
static void find_warmup(struct marey__trainer *t)
{
    const size_t most = t->n_steps < 4 ? t->n_steps - 1 : MAREY__MAX((size_t)3, t->n_steps / 10);
    t->n_warmup = t->n_steps > 1;
    const uint64_t median = median_from(t, t->n_warmup);
    while (t->n_warmup < most && length_of(&t->steps[t->n_warmup]) > median + median / 2)
        t->n_warmup++;
    t->median_ns = median_from(t, t->n_warmup);
}

/* Phases come in the order of their begin, and none overlaps another. */
static void split_steps(struct marey__trainer *t)
{
    size_t at = 0;
    for (size_t i = 0; i < t->n_steps; i++) {
        struct marey__fact_step *const step = &t->steps[i];
        uint64_t in_phases_ns = 0;
        while (at < t->n_phases && t->phases[at].end_ns <= step->begin_ns)
            at++;
        for (size_t p = at; p < t->n_phases && t->phases[p].begin_ns < step->end_ns; p++) {
            const uint64_t begin = MAREY__MAX(t->phases[p].begin_ns, step->begin_ns),
                           end = MAREY__MIN(t->phases[p].end_ns, step->end_ns);
            step->phase_ns[t->phases[p].phase] += end - begin;
            in_phases_ns += end - begin;
        }
        step->phase_ns[MAREY__FACT_OTHER] +=
            length_of(step) - MAREY__MIN(in_phases_ns, length_of(step));
    }
}

static const char *detected_by(const struct marey_process *info)
{
    return marey__starts_with(info->steps, strlen(info->steps), "updates") ? "optimizer"
           : strcmp(info->steps, "batches") == 0                           ? "batches"
                                                                           : "api";
}

static void add_trainer(struct marey__facts *facts, const struct marey__trainer *t)
{
    double samples = 0;
    uint64_t known_ns = 0, all_ns = 0;
    for (size_t i = t->n_warmup; i < t->n_steps; i++) {
        const struct marey__fact_step *const step = &t->steps[i];
        all_ns += length_of(step);
        for (int p = 0; p < MAREY__FACT_PHASES; p++)
            facts->phase_ns[p] += step->phase_ns[p];
        samples += step->samples;
        known_ns += step->samples > 0 ? length_of(step) : 0;
    }
    facts->steady_ns += all_ns;
    if (known_ns != 0)
        facts->samples_per_s += samples * 1e9 / (double)known_ns;
    const uint64_t startup_ns =
        t->steps[t->n_warmup].begin_ns - MAREY__MIN(t->start_ns, t->steps[t->n_warmup].begin_ns);
    facts->startup_ns = MAREY__MAX(facts->startup_ns, startup_ns);
    if (t->median_ns < facts->median_ns)
        return;
    facts->median_ns = t->median_ns;
    facts->n_steps = t->n_steps - t->n_warmup;
    facts->mean_ns = all_ns / facts->n_steps;
    facts->n_warmup = t->n_warmup;
    facts->detected_by = detected_by(t->info);
}

bool marey__facts_judge_steps(struct marey__facts *facts)
{
    for (size_t i = 0; i < facts->n_trainers; i++) {
        struct marey__trainer *const t = &facts->trainers[i];
        if (t->target != 0 && facts->set.targets[t->target].first_ns != 0)
            t->start_ns = MAREY__MIN(t->start_ns, facts->set.targets[t->target].first_ns);
        find_warmup(t);
        if (t->median_ns == 0 && t->n_steps > 2)
            return false;
        split_steps(t);
        add_trainer(facts, t);
    }
    return true;
}

/* A ratio of sums: its error is that of the part of a step that the ratio does not explain. */
void marey__facts_share(const struct marey__facts *facts, enum marey__fact_phase phase,
                        double *share, double *error)
{
    const double all_ns = (double)facts->steady_ns;
    double squares = 0;
    size_t n = 0;
    *share = (double)facts->phase_ns[phase] / all_ns;
    for (size_t i = 0; i < facts->n_trainers; i++) {
        const struct marey__trainer *const t = &facts->trainers[i];
        for (size_t k = t->n_warmup; k < t->n_steps; k++, n++) {
            const double rest =
                (double)t->steps[k].phase_ns[phase] - *share * (double)length_of(&t->steps[k]);
            squares += rest * rest;
        }
    }
    *error = n > 1 ? sqrt(squares * (double)n / (double)(n - 1)) / all_ns : *share;
}

/* ---- places ---- */

/* A hook of marey, which is nobody's work. */
static bool is_mareys(const struct marey_samples_function *f)
{
    return strstr(f->file, "/marey/_auto") != NULL ||
           strstr(f->file, "/marey/_loader_workers.py") != NULL;
}

/* Frames around a loader are not loading. */
static bool is_loader(const struct marey_samples_function *f)
{
    return strstr(f->file, "/torch/utils/data/") != NULL;
}

static bool is_installed(const struct marey_samples_function *f)
{
    return strstr(f->file, "/site-packages/") != NULL ||
           strstr(f->file, "/dist-packages/") != NULL || is_mareys(f);
}

bool marey__facts_is_users(const struct marey_samples_function *f)
{
    return f->kind == MAREY_FRAME_PYTHON && f->file[0] != '<' && f->file[0] != '\0' &&
           strstr(f->file, "/lib/python") == NULL && !is_installed(f);
}

struct place_search {
    const struct marey__facts *facts;
    bool is_loading;   /* frames around the innermost one of torch's loader are left out */
    uint64_t *weights; /* by stack */
    uint64_t *ns;      /* by function: of the samples it is in */
    double *depth_ns;  /* by function: the same times the depth of its innermost frame */
    uint32_t *seen;    /* by function: the last stack that had it */
};

static void add_stack(const struct place_search *s, uint32_t stack)
{
    const marey_samples *const samples = s->facts->set.samples;
    for (uint32_t at = stack; at != 0;) {
        const struct marey_samples_stack frame = marey_samples_get_stack(samples, at);
        const uint32_t function = marey_samples_get_location(samples, frame.location).function;
        if (s->seen[function] != stack) {
            s->seen[function] = stack;
            s->ns[function] += s->weights[stack];
            s->depth_ns[function] += (double)s->weights[stack] * frame.depth;
        }
        if (s->is_loading && is_loader(marey_samples_get_function(samples, function)))
            return;
        at = frame.parent;
    }
}

/* The innermost on average of those that at least half of the samples are in. */
static uint32_t innermost(const struct place_search *s, uint64_t all_ns, bool only_users)
{
    const marey_samples *const samples = s->facts->set.samples;
    uint32_t found = 0;
    double deepest = 0;
    for (uint32_t i = 1; i <= marey_samples_n_functions(samples); i++) {
        const double depth = s->ns[i] != 0 ? s->depth_ns[i] / (double)s->ns[i] : 0;
        const struct marey_samples_function *const f = marey_samples_get_function(samples, i);
        if (s->ns[i] * 2 < all_ns || depth <= deepest || is_mareys(f) ||
            (only_users && !marey__facts_is_users(f)))
            continue;
        found = i;
        deepest = depth;
    }
    return found;
}

/* The line of the function's innermost frame that has most of the time. */
static bool find_line(const struct place_search *s, uint32_t function, uint32_t *line)
{
    const marey_samples *const samples = s->facts->set.samples;
    uint64_t *const by_location =
        marey__calloc((size_t)marey_samples_n_locations(samples) + 1, sizeof *by_location);
    uint64_t most_ns = 0;
    if (by_location == NULL)
        return false;
    for (uint32_t i = 1; i <= s->facts->n_stacks; i++) {
        uint32_t at = s->weights[i] != 0 ? i : 0;
        while (at != 0) {
            const struct marey_samples_stack frame = marey_samples_get_stack(samples, at);
            if (marey_samples_get_location(samples, frame.location).function == function)
                break;
            at = frame.parent;
        }
        if (at == 0)
            continue;
        const uint32_t location = marey_samples_get_stack(samples, at).location;
        by_location[location] += s->weights[i];
        if (by_location[location] > most_ns) {
            most_ns = by_location[location];
            *line = marey_samples_get_location(samples, location).line;
        }
    }
    marey__free(by_location);
    return true;
}

/* Samples of a kind by stack; returns their sum. */
static uint64_t weigh(const struct place_search *s, enum marey__fact_phase kind,
                      enum marey__fact_samples which)
{
    const marey_samples *const samples = s->facts->set.samples;
    const struct marey__fact_sum *const sums = s->facts->by_stack[kind];
    uint64_t all_ns = 0;
    for (uint32_t i = 1; i <= s->facts->n_stacks; i++) {
        const uint32_t location = marey_samples_get_stack(samples, i).location,
                       function = marey_samples_get_location(samples, location).function;
        s->weights[i] = which == MAREY__FACT_ALL ? sums[i].ns
                        : is_installed(marey_samples_get_function(samples, function))
                            ? 0
                            : sums[i].gil_ns;
        all_ns += s->weights[i];
    }
    return all_ns;
}

static bool search(struct place_search *s, enum marey__fact_phase kind,
                   enum marey__fact_samples which, struct marey__fact_place *out)
{
    const uint64_t all_ns = weigh(s, kind, which);
    for (uint32_t i = 1; i <= s->facts->n_stacks; i++)
        if (s->weights[i] != 0)
            add_stack(s, i);
    if (all_ns == 0)
        return true;
    out->function = innermost(s, all_ns, true);
    if (out->function == 0 && which == MAREY__FACT_ALL)
        out->function = innermost(s, all_ns, false);
    if (out->function == 0)
        return true;
    out->ns = s->ns[out->function];
    out->share = (double)out->ns / (double)all_ns;
    return find_line(s, out->function, &out->line);
}

bool marey__facts_find_place(const struct marey__facts *facts, enum marey__fact_phase kind,
                             enum marey__fact_samples which, struct marey__fact_place *out)
{
    *out = (struct marey__fact_place){0};
    if (!facts->has_samples || facts->by_kind[kind].ns == 0)
        return true;
    const size_t n = (size_t)marey_samples_n_functions(facts->set.samples) + 1;
    struct place_search s = {.facts = facts,
                             .is_loading = kind == MAREY__FACT_DATA || kind == MAREY__FACT_WORKER,
                             .weights = marey__calloc((size_t)facts->n_stacks + 1, sizeof *s.weights),
                             .ns = marey__calloc(n, sizeof *s.ns),
                             .depth_ns = marey__calloc(n, sizeof *s.depth_ns),
                             .seen = marey__calloc(n, sizeof *s.seen)};
    const bool done = s.weights != NULL && s.ns != NULL && s.depth_ns != NULL && s.seen != NULL &&
                      search(&s, kind, which, out);
    MAREY__FREE_ALL(s.weights, s.ns, s.depth_ns, s.seen);
    return done;
}
