/* Samplers (<marey/sampler.h>): options, lifetime, counts. */
#include <math.h>
#include <signal.h>
#include <sys/prctl.h>

#include "sampler/loop/internal.h"
#include <marey/recording.h>

#define EXACT_UP_TO_HZ 250.0
#define RATE_MAX_HZ 1e6
enum { STRICT_PATIENCE_NS = 100000000 };

/* ---- options ---- */

static marey_status take_options(const struct marey_sampler_options *given,
                                 struct marey_sampler_options *options)
{
    if (given == NULL || given->size < sizeof given->size)
        return marey__fail(MAREY_EINVAL, "a sampler needs options, with their size");
    memset(options, 0, sizeof *options);
    memcpy(options, given, MAREY__MIN(given->size, sizeof *options));
    if (options->rate_hz == 0)
        options->rate_hz = 100;
    if (options->max_slowdown == 0)
        options->max_slowdown = 0.005;
    if (options->audit_share == 0)
        options->audit_share = 0.01;
    if (!(options->rate_hz >= 0.001 && options->rate_hz <= RATE_MAX_HZ))
        return marey__fail(MAREY_EINVAL, "a rate of %g Hz: it must be from 0.001 to 1000000",
                           options->rate_hz);
    if (!(options->max_slowdown > 0))
        return marey__fail(MAREY_EINVAL, "a slowdown of %g: it must be above 0",
                           options->max_slowdown);
    if (!(options->duration_s >= 0))
        return marey__fail(MAREY_EINVAL, "a duration of %g s: it must not be below 0",
                           options->duration_s);
    if (options->audit_share > 1 || isnan(options->audit_share))
        return marey__fail(MAREY_EINVAL, "an audit of a share of %g: it must be at most 1",
                           options->audit_share);
    if ((unsigned)options->strategy > MAREY_SAMPLER_SNAPSHOT)
        return marey__fail(MAREY_EINVAL, "%d is not a strategy of a sampler", (int)options->strategy);
    if (options->seed == 0)
        options->seed = marey__identity_random();
    return MAREY_OK;
}

static marey_status open_log(struct marey_sampler *sampler,
                             const struct marey_sampler_options *options)
{
    if (options->path == NULL)
        return MAREY_OK;
    MAREY_TRY(marey_recording_create(options->path, "marey attach"));
    return marey__samples_log_open(options->path,
                                   &(struct marey__samples_log_options){
                                       .rate_hz = sampler->rate_hz,
                                       .strategy = sampler->is_exact ? "exact" : "snapshot",
                                       .is_native = options->native != 0,
                                       .seed = options->seed,
                                       .has_pauses = options->pauses != 0,
                                   },
                                   sampler->samples, &sampler->log);
}

static marey_status open_all(struct marey_sampler *sampler,
                             const struct marey_sampler_options *options)
{
    sampler->samples = marey__samples_create();
    MAREY__TRY_MEMORY(sampler->samples != NULL &&
                      marey__sampler_context_init(&sampler->context, sampler->samples, NULL,
                                                  options->native != 0, options->seed));
    /* A thread without a CPU core does not change: waiting for it costs rounds, not accuracy. */
    if (sampler->is_strict)
        sampler->context.stops.patience_ns = STRICT_PATIENCE_NS;
    marey__family_init(&sampler->family, &sampler->context, !options->no_children,
                       options->patience_ms);
    sampler->family.is_calm = options->pauses != 0;
    if (options->counters != 0 && options->path != NULL) {
        sampler->counters = marey__system_counters_create();
        MAREY__TRY_MEMORY(sampler->counters != NULL);
    }
    sampler->family.has_programs = options->programs != 0;
    for (size_t i = 0; i < options->n_pids; i++)
        MAREY_TRY(marey__family_name(&sampler->family, options->pids[i]));
    return open_log(sampler, options);
}

marey_status marey_sampler_create(const struct marey_sampler_options *given, marey_sampler **out)
{
    struct marey_sampler_options options;
    MAREY_TRY(take_options(given, &options));
    struct marey_sampler *sampler = marey__calloc(1, sizeof *sampler);
    MAREY__TRY_MEMORY(sampler != NULL);
    pthread_mutex_init(&sampler->lock, NULL);
    sampler->family.loadavg_fd = -1;
    sampler->rate_hz = options.rate_hz;
    sampler->duration_s = options.duration_s;
    sampler->max_slowdown = options.max_slowdown;
    sampler->audit_share = options.audit_share;
    sampler->has_pauses = options.pauses != 0;
    sampler->seed = options.seed;
    sampler->has_fixed_gaps = options.fixed_gaps != 0;
    sampler->is_strict = options.native != 0 || options.strategy == MAREY_SAMPLER_EXACT;
    sampler->is_exact = sampler->is_strict || (options.strategy == MAREY_SAMPLER_AUTO &&
                                               options.rate_hz <= EXACT_UP_TO_HZ);
    const marey_status status = open_all(sampler, &options);
    if (status == MAREY_OK)
        *out = sampler;
    else
        marey_sampler_destroy(sampler);
    return status;
}

/* ---- life ---- */

marey_status marey_sampler_add(marey_sampler *sampler, pid_t pid)
{
    MAREY__HOLD(&sampler->lock);
    MAREY__TRY_MEMORY(MAREY__PUSH(sampler->joining, sampler->n_joining, sampler->joining_cap, pid));
    return MAREY_OK;
}

void marey_sampler_on_round(marey_sampler *sampler, marey_sampler_on_round_fn *call, void *ctx)
{
    sampler->on_round = call;
    sampler->on_round_ctx = ctx;
}

/* Each stop of a thread would send us SIGCHLD, like the end of a child, which the caller may be waiting for. */
static void block_exit_signals(struct sigaction *before)
{
    struct sigaction ours;
    sigaction(SIGCHLD, NULL, before);
    ours = *before;
    ours.sa_flags |= SA_NOCLDSTOP;
    sigaction(SIGCHLD, &ours, NULL);
}

marey_status marey_sampler_run(marey_sampler *sampler)
{
    struct sigaction before;
    block_exit_signals(&before);
    /* By default the kernel may wake us 50 us late to save power, as long as a round takes. */
    const int slack = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 1UL);
    marey_status status = marey__sampler_loop(sampler);
    marey__stops_resume_late(&sampler->context.stops, true);
    marey__sampler_publish_counts(sampler);
    sigaction(SIGCHLD, &before, NULL);
    if (slack > 0)
        prctl(PR_SET_TIMERSLACK, (unsigned long)slack);
    return status;
}

void marey_sampler_stop(marey_sampler *sampler)
{
    atomic_store_explicit(&sampler->is_stopped, 1, memory_order_relaxed);
}

void marey_sampler_counts_get(const marey_sampler *sampler, struct marey_sampler_counts *counts,
                              size_t size)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&sampler->lock;
    memset(counts, 0, size);
    MAREY__HOLD(lock);
    memcpy(counts, &sampler->published, MAREY__MIN(size, sizeof sampler->published));
}

const marey_samples *marey_sampler_samples(const marey_sampler *sampler)
{
    return sampler->samples;
}

const char *marey_sampler_refusal(const marey_sampler *sampler)
{
    return sampler->family.refusal;
}

const char *marey_sampler_wait_text(uint32_t wait, char *to, size_t cap)
{
    return marey__wait_text(wait, to, cap);
}

void marey_sampler_destroy(marey_sampler *sampler)
{
    if (sampler == NULL)
        return;
    if (sampler->log != NULL)
        (void)marey__samples_log_close(sampler->log, "stop");
    marey__family_fini(&sampler->family);
    marey__system_counters_destroy(sampler->counters);
    marey__sampler_context_fini(&sampler->context);
    marey_samples_destroy(sampler->samples);
    marey__free(sampler->joining);
    pthread_mutex_destroy(&sampler->lock);
    marey__free(sampler);
}
