/*
 * marey run --sample: the program and all that it starts, sampled by a thread of ours. It begins with the program, which is
 * no Python yet and may never be one: a launcher is looked through.
 *
 * Whatever goes wrong here is told, and the program goes on.
 */
#include "run.h"

bool run_sample_prepare(struct run_sample *sample, const char *recording, const char *rate,
                        bool native)
{
    struct marey_sampler_options wants = {
        .size = sizeof wants, .path = recording, .native = native, .patience_ms = UINT32_MAX};
    *sample = (struct run_sample){0};
    if (rate[0] != '\0' && !cli_rate("sample", rate, &wants.rate_hz))
        return false;
    if (marey_sampler_create(&wants, &sample->sampler) == MAREY_OK)
        return true;
    cli_say("%s", marey_last_error());
    return false;
}

void run_sample_begin(void *ctx, pid_t pid)
{
    struct run_sample *sample = ctx;
    if (marey_sampler_add(sample->sampler, pid) != MAREY_OK)
        cli_say("%s", marey_last_error());
    else
        sampling_start(&sample->sampling, sample->sampler);
}

uint64_t run_sample_end(struct run_sample *sample)
{
    struct marey_sampler_counts counts = {0};
    sampling_stop(&sample->sampling);
    if (sample->sampling.status != MAREY_OK)
        cli_say("%s", sample->sampling.error);
    marey_sampler_counts_get(sample->sampler, &counts, sizeof counts);
    marey_sampler_destroy(sample->sampler);
    sample->sampler = NULL;
    return counts.all.samples;
}
