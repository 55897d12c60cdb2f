/*
 * Explains slow steps by samples of main threads: finds the function whose time in a slow step exceeds its time in
 * others by at least half of the step's excess. None if the difference may be chance.
 */
#include <math.h>

#include "analyze/samples/internal.h"

enum { SLOW, OTHER, N_KINDS };
enum { FEWEST_SAMPLES = 5 };
/* Required standard errors: many functions are tested, and samples of one step are correlated. */
static const double evident = 5;

struct sum {
    uint64_t n, ns;
};

struct slow {
    struct marey__samples_set *set;
    struct marey__spans *spans[N_KINDS]; /* by process: of slow steps, of all */
    uint32_t n_processes;
    struct sum *stacks[N_KINDS], *functions[N_KINDS];
    struct sum all[N_KINDS];
    uint64_t n_steps[N_KINDS];
};

static void add(struct sum *sum, uint64_t n, uint64_t ns)
{
    sum->n += n;
    sum->ns += ns;
}

static marey_status take_round(void *ctx, const struct marey_samples_round *round)
{
    struct slow *const s = ctx;
    if (!marey__spans_have(&s->spans[OTHER][round->process], round->at_ns))
        return MAREY_OK;
    const int kind = marey__spans_have(&s->spans[SLOW][round->process], round->at_ns) ? SLOW : OTHER;
    for (size_t i = 0; i < round->n_seen; i++) {
        if (!marey_samples_get_thread(s->set->samples, round->seen[i].thread)->is_main)
            continue;
        const uint64_t n = MAREY__MAX(round->n_same, 1);
        add(&s->stacks[kind][round->seen[i].stack], n, round->weight_ns);
        add(&s->all[kind], n, round->weight_ns);
    }
    return MAREY_OK;
}

/* Count each function of a stack once. */
static bool sum_functions(struct slow *s)
{
    const marey_samples *const samples = s->set->samples;
    uint32_t *const seen MAREY__FREED =
        marey__calloc((size_t)marey_samples_n_functions(samples) + 1, sizeof *seen);
    if (seen == NULL)
        return false;
    for (uint32_t i = 1; i <= marey_samples_n_stacks(samples); i++)
        for (uint32_t at = i; at != 0 && s->stacks[SLOW][i].n + s->stacks[OTHER][i].n != 0;
             at = marey_samples_get_stack(samples, at).parent) {
            const uint32_t location = marey_samples_get_stack(samples, at).location,
                           function = marey_samples_get_location(samples, location).function;
            if (seen[function] == i)
                continue;
            seen[function] = i;
            for (int kind = 0; kind < N_KINDS; kind++)
                add(&s->functions[kind][function], s->stacks[kind][i].n, s->stacks[kind][i].ns);
        }
    return true;
}

static double per_step(const struct slow *s, int kind, uint64_t ns)
{
    return (double)ns / (double)MAREY__MAX(s->n_steps[kind], (uint64_t)1);
}

/* Whether its share of samples in slow steps is significantly larger than expected. */
static bool is_evident(const struct slow *s, uint32_t function)
{
    const double n_slow = (double)s->all[SLOW].n, n_other = (double)s->all[OTHER].n,
                 slow = (double)s->functions[SLOW][function].n,
                 other = (double)s->functions[OTHER][function].n;
    const double p = (slow + other) / (n_slow + n_other),
                 error = sqrt(p * (1 - p) * (1 / n_slow + 1 / n_other));
    return slow >= FEWEST_SAMPLES && slow / n_slow - other / n_other > evident * error;
}

/* Its time in a slow step minus that in others; 0 if that may be chance. */
static double extra_of(const struct slow *s, uint32_t function)
{
    const double extra = per_step(s, SLOW, s->functions[SLOW][function].ns) -
                         per_step(s, OTHER, s->functions[OTHER][function].ns);
    return is_evident(s, function) ? extra : 0;
}

/* Among functions with nearly the largest excess, choose the one with the least time otherwise: it is the innermost. */
static void find_function(const struct slow *s, struct marey__slow_function *out)
{
    const uint32_t n = marey_samples_n_functions(s->set->samples);
    const double longer = per_step(s, SLOW, s->all[SLOW].ns) - per_step(s, OTHER, s->all[OTHER].ns);
    double most = 0;
    if (s->all[SLOW].n == 0 || s->all[OTHER].n == 0)
        return;
    for (uint32_t i = 1; i <= n; i++)
        most = fmax(most, extra_of(s, i));
    if (most <= 0 || most < longer / 2)
        return;
    for (uint32_t i = 1; i <= n; i++) {
        const double typical = per_step(s, OTHER, s->functions[OTHER][i].ns), extra = extra_of(s, i);
        if (extra >= 0.9 * most && (out->function == 0 || typical <= out->typical_ns))
            *out = (struct marey__slow_function){i, s->n_steps[SLOW], extra, typical, longer};
    }
}

static void slow_fini(struct slow *s)
{
    for (int kind = 0; kind < N_KINDS; kind++) {
        for (uint32_t i = 0; s->spans[kind] != NULL && i <= s->n_processes; i++)
            marey__spans_fini(&s->spans[kind][i]);
        MAREY__FREE_ALL(s->spans[kind], s->stacks[kind], s->functions[kind]);
    }
}

marey_status marey__samples_slow_function(struct marey__samples_set *set,
                                          struct marey__slow_function *out)
{
    const struct marey__spans_choice all = {.kind = MAREY__SPAN_ITERATION, .last = UINT64_MAX},
                                     slow = {.kind = MAREY__SPAN_ITERATION, .is_slow = true};
    const size_t n_stacks = (size_t)marey_samples_n_stacks(set->samples) + 1,
                 n_functions = (size_t)marey_samples_n_functions(set->samples) + 1;
    struct slow s MAREY__FINALLY(slow_fini) = {
        .set = set, .n_processes = marey_samples_n_processes(set->samples)};
    struct marey__slow_found found, unused;
    *out = (struct marey__slow_function){0};
    for (int kind = 0; kind < N_KINDS; kind++) {
        s.spans[kind] = marey__calloc((size_t)s.n_processes + 1, sizeof *s.spans[kind]);
        s.stacks[kind] = marey__calloc(n_stacks, sizeof *s.stacks[kind]);
        s.functions[kind] = marey__calloc(n_functions, sizeof *s.functions[kind]);
        MAREY__TRY_MEMORY(s.spans[kind] != NULL && s.stacks[kind] != NULL &&
                          s.functions[kind] != NULL);
    }
    MAREY_TRY(marey__samples_join_spans(set, &slow, s.spans[SLOW], &found));
    if (found.n_slow == 0 || found.is_by_rank || found.n_slow >= found.n_iterations)
        return MAREY_OK; /* none is significant */
    MAREY_TRY(marey__samples_join_spans(set, &all, s.spans[OTHER], &unused));
    s.n_steps[SLOW] = found.n_slow;
    s.n_steps[OTHER] = found.n_iterations - found.n_slow;
    MAREY_TRY(marey__samples_visit(set, NULL, take_round, &s));
    MAREY__TRY_MEMORY(sum_functions(&s));
    find_function(&s, out);
    return MAREY_OK;
}
