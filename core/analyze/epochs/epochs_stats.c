/* Who is slowest in an epoch, and means and medians over epochs. */
#include <math.h>
#include <stdlib.h>

#include "analyze/epochs/internal.h"

/* Ranks differ by less than this by chance. */
#define STANDS_OUT 0.02

/* Where ranks that exchange gradients wait for one another. */
static bool is_waited_in(enum marey__epoch_phase phase)
{
    return phase == MAREY__PHASE_BACKWARD || phase == MAREY__PHASE_OPTIMIZER;
}

static uint64_t own_ns(const struct marey__epoch_time *time)
{
    uint64_t ns = time->ns;
    for (unsigned phase = 0; phase < MAREY__PHASE_OTHER; phase++)
        ns -= is_waited_in(phase) ? time->phase_ns[phase] : 0;
    return ns;
}

/* The mean over all but one. */
static double mean_of_others(const struct marey__epoch_time *times, size_t n, size_t but,
                             uint64_t (*ns_of)(const struct marey__epoch_time *time))
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += i == but ? 0 : (double)ns_of(&times[i]);
    return n > 1 ? sum / (double)(n - 1) : 0;
}

static uint64_t whole_ns(const struct marey__epoch_time *time)
{
    return time->ns;
}

static size_t longest_of(const struct marey__epoch_time *times, size_t n,
                         uint64_t (*ns_of)(const struct marey__epoch_time *time))
{
    size_t longest = 0;
    for (size_t i = 1; i < n; i++)
        if (ns_of(&times[i]) > ns_of(&times[longest]))
            longest = i;
    return longest;
}

/* Of what it took more than the others; of waiting only when it is slower as a whole. */
static enum marey__epoch_phase phase_behind(const struct marey__epoch_time *times, size_t n,
                                            size_t slowest, bool with_waiting)
{
    enum marey__epoch_phase most = MAREY__PHASE_OTHER;
    double most_ns = -INFINITY;
    for (unsigned phase = 0; phase < MAREY__N_PHASES; phase++) {
        double sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += i == slowest ? 0 : (double)times[i].phase_ns[phase];
        const double more_ns = (double)times[slowest].phase_ns[phase] - sum / (double)(n - 1);
        if (more_ns > most_ns && (with_waiting || !is_waited_in(phase))) {
            most_ns = more_ns;
            most = phase;
        }
    }
    return most;
}

void marey__epoch_group_judge(const struct marey__epochs *epochs, struct marey__epoch_group *group)
{
    const struct marey__epoch_time *times = &epochs->times[group->first];
    const size_t n = group->n;
    const size_t longest = longest_of(times, n, whole_ns), busiest = longest_of(times, n, own_ns);
    const double least_ns = STANDS_OUT * (double)times[longest].ns;
    const double behind_ns = (double)times[longest].ns - mean_of_others(times, n, longest, whole_ns);
    const double own_behind_ns =
        (double)own_ns(&times[busiest]) - mean_of_others(times, n, busiest, own_ns);
    group->longest = group->first + longest;
    group->slowest = SIZE_MAX;
    if (n < 2)
        return;
    if (behind_ns > least_ns) {
        group->slowest = group->first + longest;
        group->behind_ns = marey__epoch_ns(behind_ns);
        group->slowest_in = phase_behind(times, n, longest, true);
    } else if (own_behind_ns > least_ns) {
        group->slowest = group->first + busiest;
        group->behind_ns = marey__epoch_ns(own_behind_ns);
        group->slowest_in = phase_behind(times, n, busiest, false);
    }
}

/* ---- values ---- */

bool marey__epoch_values_add(struct marey__epoch_values *values, double value)
{
    return MAREY__PUSH(values->values, values->n, values->cap, value);
}

struct marey__epoch_spread marey__epoch_values_spread(struct marey__epoch_values *values)
{
    struct marey__epoch_spread spread = {0};
    const size_t n = values->n;
    const double *v = values->values;
    if (n == 0)
        return spread;
    qsort(values->values, n, sizeof *values->values, marey__compare_f64);
    double squares = 0;
    for (size_t i = 0; i < n; i++)
        spread.mean += v[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (v[i] - spread.mean) * (v[i] - spread.mean);
    spread.median = (v[(n - 1) / 2] + v[n / 2]) / 2;
    spread.std = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
    spread.min = v[0];
    spread.max = v[n - 1];
    return spread;
}
