/*
 * The cost of recording, measured in the run itself.
 *
 *   sampling      The sampler pauses in random blocks of time. A linear fit gives the length of a
 *                 step as a function of its sampled share. Random blocks average out noise and slow
 *                 changes.
 *   GPU windows   the time by which steps in a window exceed the median of the others
 *   hooks         Hooks of steps and phases do not pause: their number of events times the cost
 *                 of one.
 *
 * Neighboring steps are correlated, so the error is computed from blocks, not from steps.
 *
 * With too few or too uneven steps for an interval of +-2 %, the cost of sampling is estimated: the
 * sampler's own CPU time, as if the program waited for it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/diagnosis/internal.h"

enum { FEWEST_STEPS = 60, FEWEST_PAUSED = 8, FEWEST_BLOCKS = 6 /* with a pause */ };
static const double widest = 0.02; /* half the width of an interval that includes 0 */

/* Sums for a linear fit of points (x, y). */
struct line {
    double n, x, y, xx, xy, yy;
};

static void add_point(struct line *l, double x, double y)
{
    l->n++;
    l->x += x;
    l->y += y;
    l->xx += x * x;
    l->xy += x * y;
    l->yy += y * y;
}

/* The seed of the sampler's pauses. Returns false if it made none. */
static bool find_seed(const struct marey__facts *facts, uint64_t *seed)
{
    for (size_t i = 0; facts->has_samples && i < facts->set.n_sources; i++) {
        const struct marey__samples_source *const s = &facts->set.sources[i];
        const char *const text = marey_recording_process(s->recording, s->log)->sampling;
        const char *const at = strstr(text, "seed=");
        if (at != NULL && strstr(text, "pauses=yes") != NULL) {
            *seed = strtoull(at + strlen("seed="), NULL, 10);
            return true;
        }
    }
    return false;
}

/* The share of a span that was sampled. */
static double sampled_share(uint64_t seed, uint64_t begin_ns, uint64_t end_ns)
{
    uint64_t sampled_ns = 0;
    for (uint64_t at = begin_ns; at < end_ns;) {
        const uint64_t next =
            MAREY__MIN((at / MAREY__PAUSE_BLOCK_NS + 1) * MAREY__PAUSE_BLOCK_NS, end_ns);
        sampled_ns += marey__samples_is_pause(seed, at) ? 0 : next - at;
        at = next;
    }
    return (double)sampled_ns / (double)(end_ns - begin_ns);
}

static double length_of(const struct marey__fact_step *step)
{
    return (double)(step->end_ns - step->begin_ns);
}

/* In units of the process's median. Excludes outliers, which have other causes. */
static bool get_point(const struct marey__trainer *t, size_t i, uint64_t seed, double *x, double *y)
{
    const struct marey__fact_step *const step = &t->steps[i];
    *y = length_of(step) / (double)t->median_ns;
    if (*y > 2 || *y < 0.5 || step->is_in_window)
        return false;
    *x = sampled_share(seed, step->begin_ns, step->end_ns);
    return true;
}

static void add_steps(const struct marey__trainer *t, uint64_t seed, struct line *l, double *n_paused)
{
    double x, y;
    for (size_t i = t->n_warmup; i < t->n_steps && t->median_ns != 0; i++)
        if (get_point(t, i, seed, &x, &y)) {
            *n_paused += 1 - x;
            add_point(l, x, y);
        }
}

/*
 * Adds the blocks' contributions to the variance of the slope; returns the number of blocks with
 * pauses.
 */
static size_t add_blocks(const struct marey__trainer *t, uint64_t seed, double base, double slope,
                         double mean, double *variance)
{
    size_t n = 0;
    uint64_t block = 0;
    double x, y, sum = 0;
    bool is_paused = false;
    for (size_t i = t->n_warmup; i < t->n_steps && t->median_ns != 0; i++) {
        if (!get_point(t, i, seed, &x, &y))
            continue;
        const uint64_t at = t->steps[i].begin_ns / MAREY__PAUSE_BLOCK_NS;
        if (at != block) {
            *variance += sum * sum;
            n += is_paused;
            sum = 0;
            is_paused = false;
            block = at;
        }
        sum += (x - mean) * (y - base - slope * x);
        is_paused |= x < 0.5;
    }
    *variance += sum * sum;
    return n + is_paused;
}

/* Returns false if too few steps were paused. */
static bool measure_sampling(const struct marey__facts *facts, double *share, double *error)
{
    struct line l = {0};
    double n_paused = 0;
    uint64_t seed;
    if (!find_seed(facts, &seed))
        return false;
    for (size_t i = 0; i < facts->n_trainers; i++)
        add_steps(&facts->trainers[i], seed, &l, &n_paused);
    const double spread = l.xx - l.x * l.x / fmax(l.n, 1);
    if (l.n < FEWEST_STEPS || n_paused < FEWEST_PAUSED || spread <= 0)
        return false;
    const double slope = (l.xy - l.x * l.y / l.n) / spread, base = (l.y - slope * l.x) / l.n;
    double variance = 0;
    size_t n_blocks = 0;
    for (size_t i = 0; i < facts->n_trainers; i++)
        n_blocks += add_blocks(&facts->trainers[i], seed, base, slope, l.x / l.n, &variance);
    if (n_blocks < FEWEST_BLOCKS)
        return false;
    *share = slope / base;
    /* With few blocks the deviation itself is uncertain: correct by about Student's t over 1.96. */
    *error = sqrt(variance) / spread / base * (1 + 1.5 / (double)(n_blocks - 1));
    return true;
}

/*
 * As a share of steps after warm-up. Few steps are traced, so the median is close to that of
 * untraced ones.
 */
static void measure_windows(const struct marey__facts *facts, double *share, double *error)
{
    double n = 0, sum = 0, squares = 0;
    for (size_t k = 0; k < facts->n_trainers; k++) {
        const struct marey__trainer *const t = &facts->trainers[k];
        for (size_t i = t->n_warmup; i < t->n_steps; i++)
            if (t->steps[i].is_in_window) {
                const double more = length_of(&t->steps[i]) - (double)t->median_ns;
                n++;
                sum += more;
                squares += more * more;
            }
    }
    *share = n > 0 ? sum / (double)facts->steady_ns : 0;
    *error = n > 1 ? sqrt((squares - sum * sum / n) * n / (n - 1)) / (double)facts->steady_ns : 0;
}

static double estimate_sampling(const struct marey__facts *facts)
{
    uint64_t cpu_ns = 0, ns = 0;
    for (size_t i = 0; facts->has_samples && i < facts->set.n_sources; i++) {
        const struct marey__samples_source *const s = &facts->set.sources[i];
        cpu_ns += s->counts.sampler_cpu_ns;
        ns += s->last_ns - MAREY__MIN(s->first_ns, s->last_ns);
    }
    return ns != 0 ? (double)cpu_ns / (double)ns : 0;
}

void marey__facts_measure_cost(struct marey__facts *facts)
{
    const struct marey_cost *const c = &facts->cost;
    const double whole = (double)c->program_ns;
    const double hooks = whole > 0 ? ((double)c->low_ns + (double)c->high_ns) / 2 / whole : 0;
    double sampling = 0, sampling_error = 0, windows, windows_error;
    facts->is_cost_measured = measure_sampling(facts, &sampling, &sampling_error);
    measure_windows(facts, &windows, &windows_error);
    const double error = 1.96 * hypot(sampling_error, windows_error);
    if (error > widest && hooks + sampling + windows <= error)
        facts->is_cost_measured = false;
    if (!facts->is_cost_measured)
        sampling = estimate_sampling(facts);
    facts->cost_low = hooks + sampling + windows - error;
    /* Recording cannot make a program faster; a negative cost is noise. */
    facts->cost_high = fmax(hooks + sampling + windows + error, hooks + estimate_sampling(facts));
    facts->cost_share = fmax(hooks + sampling + windows, 0);
}
