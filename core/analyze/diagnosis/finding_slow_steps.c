/*
 * slow-steps: a few steps take much longer than the others, because of additional work that is
 * known.
 *
 * Exposed time is that of checkpoints, evaluation, logging and garbage collections in some of the
 * steps; and that of samples in outlier steps, outside of these and of data, in lines of the user's
 * code that other steps rarely run. Outliers due to noise, as on a shared machine, run the same
 * lines as typical steps and do not count.
 * Each is a cause; the finding has the place of the largest. Evaluation is expected, and has a
 * higher threshold.
 * The action depends on the cause: do it less often, faster, or in the background.
 * Wrong when: the work is needed as often, and cannot run in parallel to the training.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/diagnosis/internal.h"

static const double least_share = 0.03;      /* of the time of steps after warm-up */
static const double least_cause = 0.01;      /* the same, for each cause */
static const double least_evaluation = 0.10; /* the same, for evaluation */
static const double most_typical =
    1.0 / 3; /* a line's share of typical steps, relative to slow ones */
static const double most_regular =
    2.0 / 3; /* of the time: regular work above it is the program's purpose */
enum { FEWEST_TIMES = 3, FEWEST_IRREGULAR = 5, FEWEST_SAMPLES = 8 };

/* ---- samples of outlier steps ---- */

/* Samples of a stack, or of a location, in outlier steps and in others. */
struct pair {
    double slow_ns, typical_ns;
    uint32_t seen;
};

struct outliers {
    const struct marey__facts *facts;
    struct pair *stacks, *locations;
    uint64_t *extra_ns;         /* by stack: time in lines that typical steps rarely run */
    double slow_ns, typical_ns; /* of all samples */
};

static void fill(struct outliers *o)
{
    const struct marey__facts *const facts = o->facts;
    for (size_t i = 0; i < facts->n_slow_samples; i++)
        if ((facts->stack_flags[facts->slow_samples[i].stack] & facts->claimed) == 0)
            o->stacks[facts->slow_samples[i].stack].slow_ns += (double)facts->slow_samples[i].ns;
    for (size_t i = 0; i < facts->n_buckets; i++)
        if (marey__sample_bucket_has_kind(&facts->buckets[i],
                                          MAREY__FACT_TYPICAL_STEPS & ~MAREY__FACT_KNOWN))
            o->stacks[marey__sample_bucket_stack(&facts->buckets[i])].typical_ns +=
                (double)(facts->buckets[i].sum.ns - facts->buckets[i].sum.gc_ns -
                         facts->buckets[i].sum.wants_ns);
    for (uint32_t i = 0; i <= facts->n_stacks; i++) {
        o->slow_ns += o->stacks[i].slow_ns;
        o->typical_ns += o->stacks[i].typical_ns;
    }
}

/* Sums by location in the user's code, each stack once. */
static void add_locations(const struct outliers *o)
{
    const marey_samples *const samples = o->facts->set.samples;
    for (uint32_t i = 1; i <= o->facts->n_stacks; i++)
        for (uint32_t at = o->stacks[i].slow_ns + o->stacks[i].typical_ns > 0 ? i : 0; at != 0;) {
            const struct marey_samples_stack frame = marey_samples_get_stack(samples, at);
            const uint32_t function = marey_samples_get_location(samples, frame.location).function;
            struct pair *const p = &o->locations[frame.location];
            if (p->seen != i &&
                marey__facts_is_users(o->facts, marey_samples_get_function(samples, function))) {
                p->seen = i;
                p->slow_ns += o->stacks[i].slow_ns;
                p->typical_ns += o->stacks[i].typical_ns;
            }
            at = frame.parent;
        }
}

/*
 * Whether a line's share of outlier steps is much larger than of typical ones. Noise would lengthen
 * all lines.
 */
static bool is_of_slow_steps(const struct outliers *o, const struct pair *p)
{
    return p->slow_ns > 0 &&
           p->typical_ns / fmax(o->typical_ns, 1) < most_typical * p->slow_ns / o->slow_ns;
}

static bool has_line_of_slow_steps(const struct outliers *o, uint32_t stack)
{
    while (stack != 0) {
        const struct marey_samples_stack frame =
            marey_samples_get_stack(o->facts->set.samples, stack);
        if (is_of_slow_steps(o, &o->locations[frame.location]))
            return true;
        stack = frame.parent;
    }
    return false;
}

/* The program's purpose, such as a rollout of reinforcement learning. */
static bool calls_model(const struct outliers *o)
{
    const double least = 0.05;
    double all_ns = 0, model_ns = 0;
    for (uint32_t i = 1; i <= o->facts->n_stacks; i++) {
        all_ns += (double)o->extra_ns[i];
        model_ns += (o->facts->stack_flags[i] & MAREY__FACT_MODEL) != 0 ? (double)o->extra_ns[i] : 0;
    }
    return model_ns > least * all_ns;
}

/* Counts steps with extra samples, as the number of equal steps with the same sum and squares. */
static bool count_steps(const struct outliers *o, struct marey__fact_occasional *occasional)
{
    const struct marey__facts *const facts = o->facts;
    const size_t n_steps = facts->n_joint;
    uint64_t *const ns MAREY__FREED = marey__calloc(n_steps + 1, sizeof *ns),
                       *const at MAREY__FREED = marey__calloc(n_steps + 1, sizeof *at),
                       *const own MAREY__FREED = marey__calloc(n_steps + 1, sizeof *own);
    size_t n = 0;
    *occasional = (struct marey__fact_occasional){0};
    if (ns == NULL || at == NULL || own == NULL)
        return false;
    for (size_t t = 0; t < facts->n_trainers; t++) { /* the rank that takes the longest decides */
        memset(own, 0, n_steps * sizeof *own);
        for (size_t i = 0; i < facts->n_slow_samples; i++) {
            const struct marey__fact_slow_sample *const sample = &facts->slow_samples[i];
            const size_t step = marey__facts_joint_step(facts, &facts->trainers[t], sample->step);
            if (sample->trainer == t && step < n_steps && o->extra_ns[sample->stack] != 0) {
                own[step] += sample->ns;
                ns[step] = MAREY__MAX(ns[step], own[step]);
            }
        }
    }
    for (size_t i = 0; i < n_steps; i++)
        if (ns[i] != 0) {
            at[n++] = i;
            occasional->ns += ns[i];
            occasional->squares += (double)ns[i] * (double)ns[i];
        }
    occasional->n = n;
    occasional->period = marey__facts_find_period(at, n, n_steps);
    return n != 0;
}

static bool search(struct outliers *o, struct marey__fact_place *place,
                   struct marey__fact_occasional *occasional)
{
    uint64_t n = 0;
    fill(o);
    if (o->slow_ns == 0)
        return false;
    add_locations(o);
    for (uint32_t i = 1; i <= o->facts->n_stacks; i++)
        o->extra_ns[i] = has_line_of_slow_steps(o, i) ? (uint64_t)o->stacks[i].slow_ns : 0;
    for (size_t i = 0; i < o->facts->n_slow_samples; i++)
        n += o->extra_ns[o->facts->slow_samples[i].stack] != 0;
    if (n < FEWEST_SAMPLES || !count_steps(o, occasional) ||
        (occasional->period != 0 && calls_model(o)) ||
        !marey__facts_find_place_of(o->facts, o->extra_ns, false, true, place))
        return false;
    /* The number of equal steps with the same sums: a single long step may be noise. */
    const double n_equal = (double)occasional->ns * (double)occasional->ns / occasional->squares;
    return place->function != 0 && n_equal >= FEWEST_TIMES &&
           (occasional->period != 0 || n_equal >= FEWEST_IRREGULAR);
}

/* Returns false if no line distinguishes outlier steps. */
static bool find_extra(const struct marey__facts *facts, struct marey__fact_place *place,
                       struct marey__fact_occasional *occasional)
{
    const size_t n_stacks = (size_t)facts->n_stacks + 1;
    struct outliers o = {.facts = facts};
    if (!facts->has_samples || facts->n_slow_samples == 0)
        return false;
    o.stacks = marey__calloc(n_stacks, sizeof *o.stacks);
    o.extra_ns = marey__calloc(n_stacks, sizeof *o.extra_ns);
    o.locations = marey__calloc((size_t)marey_samples_n_locations(facts->set.samples) + 1,
                                sizeof *o.locations);
    const bool found = o.stacks != NULL && o.extra_ns != NULL && o.locations != NULL &&
                       search(&o, place, occasional);
    MAREY__FREE_ALL(o.stacks, o.extra_ns, o.locations);
    return found;
}

/* ---- causes ---- */

static const struct {
    const char *id, *what, *action;
    enum marey__fact_phase phase;
} known[] = {
    [MAREY__OCCASIONAL_CHECKPOINT] =
        {"checkpoint", "saves a checkpoint",
         "Save checkpoints less often, save less, or write them in the background "
         "(torch.distributed.checkpoint.async_save).",
         MAREY__FACT_CHECKPOINT},
    [MAREY__OCCASIONAL_EVALUATION] =
        {"evaluation", "evaluates the model",
         "Evaluate less often, on fewer samples, or with larger batches under "
         "torch.inference_mode().",
         MAREY__FACT_EVALUATION},
    [MAREY__OCCASIONAL_LOGGING] = {"logging-in-step", "logs",
                                   "Log less, log less often, or write logs in a thread.",
                                   MAREY__FACT_LOGGING},
    [MAREY__OCCASIONAL_GC] = {"gc-pauses", "collects garbage", marey__gc_action, MAREY__FACT_OTHER},
    [MAREY__OCCASIONAL_OUTLIER] =
        {"outlier", "runs other code",
         "Do this less often, make it faster, or move it to another process.", MAREY__FACT_OTHER},
};

static const char *ordinal(uint64_t n)
{
    return n / 10 % 10 == 1 ? "th"
           : n % 10 == 1    ? "st"
           : n % 10 == 2    ? "nd"
           : n % 10 == 3    ? "rd"
                            : "th";
}

/* "every 20th step", "7 steps". */
static void put_often(const struct marey__fact_occasional *occasional, char *text, size_t size)
{
    const unsigned long long period = occasional->period;
    if (period > 1)
        snprintf(text, size, "every %llu%s step", period, ordinal(period));
    else if (period == 1)
        snprintf(text, size, "each step");
    else
        snprintf(text, size, "%llu steps", (unsigned long long)occasional->n);
}

/* The share of a cause, and its squared error; 0 if it does not count. */
static double share_of(const struct marey__facts *facts, enum marey__occasional what,
                       struct marey__fact_occasional *occasional, struct marey__fact_place *place,
                       double *error)
{
    const bool is_gc = what == MAREY__OCCASIONAL_GC, is_outlier = what == MAREY__OCCASIONAL_OUTLIER;
    const double steady_ns = (double)facts->joint_ns;
    *occasional = facts->occasional[what];
    double most = (double)occasional->ns / steady_ns;
    if (occasional->n == 0 ||
        most < (what == MAREY__OCCASIONAL_EVALUATION ? least_evaluation : least_cause) ||
        occasional->n < FEWEST_TIMES)
        return 0;
    const uint64_t steps = MAREY__FACT_STEPS & ~MAREY__FACT_BOTH(MAREY__FACT_DATA),
                   kinds = is_gc ? steps : MAREY__FACT_BOTH(known[what].phase);
    if (is_outlier ? !find_extra(facts, place, occasional)
        : is_gc    ? !marey__facts_find_place(facts, kinds, MAREY__FACT_GC, place)
                   : !marey__facts_find_typical_place(
                         facts, kinds, MAREY__FACT_TYPICAL_STEPS & ~MAREY__FACT_KNOWN, place))
        return 0;
    /* The sampler pauses at times, so outliers are relative to sampled time. */
    const double sampled_ns = (double)marey__facts_sum(facts, MAREY__FACT_STEPS).ns /
                              (facts->is_synchronous ? (double)facts->n_trainers : 1),
                 whole_ns = is_outlier ? fmax(sampled_ns, 1) : steady_ns,
                 mean = (double)occasional->ns / (double)occasional->n;
    /* If it is periodic, only its length varies; otherwise also the number of times. */
    *error = (occasional->squares - (occasional->period != 0 || !(is_gc || is_outlier)
                                         ? (double)occasional->n * mean * mean
                                         : 0)) /
             whole_ns / whole_ns;
    const double share = fmin((double)occasional->ns / whole_ns, most);
    if (is_outlier)
        return occasional->period != 0 && share > most_regular ? 0 : share;
    /* Excludes what other findings claim, such as compiling. */
    uint64_t n;
    const uint64_t all_ns = marey__facts_sum(facts, kinds).ns;
    return share * (is_gc         ? marey__facts_unclaimed_gc(facts)
                    : all_ns != 0 ? (double)marey__facts_weigh(facts, kinds, MAREY__FACT_ALL, &n) /
                                        (double)all_ns
                                  : 1);
}

static void make_cause(enum marey__occasional what, const struct marey__fact_occasional *occasional,
                       double share, struct marey__cause *out)
{
    char often[64], each[32];
    out->id = known[what].id;
    out->phase = known[what].phase;
    out->share = share;
    put_often(occasional, often, sizeof often);
    marey_text_number((double)occasional->ns / (double)occasional->n, MAREY_UNIT_NS, each,
                      sizeof each);
    snprintf(out->claim, sizeof out->claim,
             "the program %s in %s, %s each time: %.0f %% of the time.", known[what].what, often,
             each, share * 100);
    snprintf(out->action, sizeof out->action, "%s", known[what].action);
}

/* Inserts a cause, sorted by share. */
static void add_cause(struct marey__finding *out, const struct marey__cause *cause)
{
    size_t at = out->n_because;
    while (at > 0 && out->because[at - 1].share < cause->share)
        at--;
    if (at == MAREY__MAX_CAUSES)
        return;
    const size_t n = MAREY__MIN(out->n_because, (size_t)MAREY__MAX_CAUSES - 1) - at;
    memmove(&out->because[at + 1], &out->because[at], n * sizeof *cause);
    out->because[at] = *cause;
    out->n_because = at + n + 1;
}

bool marey__find_slow_steps(const struct marey__diagnosis *d, struct marey__finding *out)
{
    const struct marey__facts *const facts = &d->facts;
    double whole = 0, squares = 0, most = 0;
    struct marey__fact_occasional first = {0};
    for (int what = 0; what < MAREY__OCCASIONAL_KINDS && facts->steady_ns != 0; what++) {
        struct marey__cause cause = {.share = 0};
        struct marey__fact_occasional occasional;
        double error = 0;
        /* gil-contention covers waits for the interpreter lock, which may be at any line. */
        if (what == MAREY__OCCASIONAL_OUTLIER && marey__diagnosis_find(d, "gil-contention") != NULL)
            continue;
        const double share =
            share_of(facts, (enum marey__occasional)what, &occasional, &cause.place, &error);
        /* Irregular outliers beside a straggler are its late steps. */
        if (share < least_cause || (what == MAREY__OCCASIONAL_OUTLIER && occasional.period == 0 &&
                                    marey__diagnosis_find(d, "straggler") != NULL))
            continue;
        make_cause((enum marey__occasional)what, &occasional, share, &cause);
        add_cause(out, &cause);
        whole += share;
        squares += fmax(error, 0);
        first = share > most ? occasional : first;
        most = fmax(most, share);
    }
    if (whole < least_share)
        return false;
    out->statement = out->because[0];
    out->statement.id = "slow-steps";
    out->confidence = 0.8;
    marey__finding_set_measured(out, fmin(whole, 0.99), sqrt(squares));
    char often[64], more[32], typical[32];
    put_often(&first, often, sizeof often);
    marey_text_number((double)first.ns / (double)first.n, MAREY_UNIT_NS, more, sizeof more);
    marey_text_number((double)facts->typical_ns, MAREY_UNIT_NS, typical, sizeof typical);
    snprintf(
        out->statement.claim, sizeof out->statement.claim,
        "Slow steps: %s %s %s longer than a typical step (%s). Steps like these take %.0f %% of "
        "the time.",
        often, first.period != 0 ? "takes" : "take", more, typical, whole * 100);
    snprintf(out->detail, sizeof out->detail, "of that.");
    /* If samples are the only evidence, the place is sufficient. */
    if (out->n_because == 1 && out->statement.phase == MAREY__FACT_OTHER &&
        strcmp(out->because[0].id, "outlier") == 0) {
        out->n_because = 0;
        marey__finding_add_io(facts, facts->system.io_slow_ns, out);
    }
    return true;
}
