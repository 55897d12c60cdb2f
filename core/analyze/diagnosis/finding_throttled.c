/*
 * throttled: clocks of a GPU are reduced, by heat or by a limit of its power, while steps count.
 *
 * A risk without a gain: how much sooner steps would end at full clocks depends on what they wait for. Heat always reduces
 * clocks; the power cap counts where the SM clock is below the highest one that was seen.
 * Wrong when: the power cap is the one that the GPU was made with, and the work needs all of it.
 */
#include <stdio.h>
#include <string.h>

#include "analyze/diagnosis/internal.h"

static const double least_share = 0.05; /* of readings in steps that count */
static const double least_fall = 0.1;   /* by the power cap, of the highest clock: less is normal */
static const double severe_share = 0.2, severe_fall = 0.1;
enum { FEWEST = 3, FEWEST_READINGS = 5 };

/* By precedence; bits in NVML's numbering. */
static const struct {
    uint64_t bits;
    const char *name, *action;
} reasons[] = {
    {0x40, "heat (hardware slowdown)",
     "Check fans, airflow and the temperature of the GPU (nvidia-smi -q -d TEMPERATURE), and move "
     "work to another node until it is fixed."},
    {0x20, "heat (software slowdown)",
     "Check cooling and the temperature limits of the GPU (nvidia-smi -q -d TEMPERATURE)."},
    {0x80 | 0x8 | 0x10, "neither heat nor the power cap",
     "Check the power supply of the node, and nvidia-smi -q -d PERFORMANCE for the reason."},
    {0x4, "the power cap",
     "Compare the power limit with its default (nvidia-smi -q -d POWER); at the default, the GPU "
     "runs as fast as it can."},
};
enum { REASONS = MAREY__COUNT_OF(reasons), POWER = REASONS - 1 };

struct throttling {
    double share, deep_share; /* of readings; of those with a deep fall of the clock */
    double mhz;               /* mean of reduced clocks */
    size_t reason;            /* the most frequent one */
};

static struct throttling examine(const struct marey__fact_gpu *gpu)
{
    size_t n = 0, n_deep = 0, n_of[REASONS] = {0};
    struct throttling t = {0};
    for (size_t i = 0; i < gpu->n_clocks; i++) {
        const struct marey__fact_clock *const clock = &gpu->clocks[i];
        const double fall = clock->mhz > 0 ? 1 - clock->mhz / gpu->highest_mhz : 0;
        size_t k = 0;
        while (k < REASONS && (clock->reasons & reasons[k].bits) == 0)
            k++;
        if (k == REASONS || clock->mhz <= 0 || (k == POWER && fall < least_fall))
            continue;
        n++;
        n_of[k]++;
        n_deep += fall > severe_fall;
        t.mhz += (clock->mhz - t.mhz) / (double)n;
        t.reason = n_of[k] > n_of[t.reason] ? k : t.reason;
    }
    if (n >= FEWEST && gpu->n_clocks >= FEWEST_READINGS) {
        t.share = (double)n / (double)gpu->n_clocks;
        t.deep_share = (double)n_deep / (double)gpu->n_clocks;
    }
    return t;
}

bool marey__find_throttled(const struct marey__diagnosis *d, struct marey__finding *out)
{
    struct throttling worst = {0};
    const struct marey__fact_gpu *gpu = NULL;
    size_t n = 0;
    for (size_t i = 0; i < d->facts.n_gpus; i++) {
        const struct throttling t = examine(&d->facts.gpus[i]);
        n += t.share >= least_share;
        out->is_severe |= t.deep_share > severe_share;
        if (t.share > worst.share) {
            worst = t;
            gpu = &d->facts.gpus[i];
        }
    }
    if (n == 0)
        return false;
    const char *const end = strstr(gpu->name, " throttle");
    char others[48] = "";
    if (n > 1)
        snprintf(others, sizeof others, " and of %zu more GPU%s", n - 1, n == 2 ? "" : "s");
    out->statement.id = "throttled";
    out->statement.phase = MAREY__FACT_OTHER;
    out->statement.share = worst.share;
    out->is_risk = out->is_experimental = true;
    out->confidence = 0.7;
    snprintf(out->statement.claim, sizeof out->statement.claim,
             "Throttled: the clocks of %.*s%s (%s) are reduced for %.0f %% of the time in steps, "
             "to %.0f MHz "
             "on average (highest reading: %.0f MHz). The reason is %s.",
             end != NULL ? (int)(end - gpu->name) : 32, gpu->name, others, gpu->host,
             worst.share * 100, worst.mhz, gpu->highest_mhz, reasons[worst.reason].name);
    snprintf(out->statement.action, sizeof out->statement.action, "%s", reasons[worst.reason].action);
    return true;
}
