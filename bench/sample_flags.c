/* sample_flags RUN.kymo: how many samples of a recording have which flag, for bench_sample.py. */
#include <inttypes.h>
#include <stdio.h>

#include "analyze/samples.h"

struct flag_counts {
    uint64_t samples, native, native_cut, merge_mismatch, truncated;
};

static kymo_status count(void *ctx, const struct kymo_samples_round *round)
{
    struct flag_counts *const counts = ctx;
    for (size_t i = 0; i < round->n_seen; i++) {
        const uint32_t flags = round->seen[i].flags;
        counts->samples++;
        counts->native += (flags & KYMO_SAMPLE_NATIVE) != 0;
        counts->native_cut += (flags & KYMO_SAMPLE_NATIVE_CUT) != 0;
        counts->merge_mismatch += (flags & KYMO_SAMPLE_MERGE_MISMATCH) != 0;
        counts->truncated += (flags & KYMO_SAMPLE_TRUNCATED) != 0;
    }
    return KYMO_OK;
}

int main(int n_args, char **args)
{
    kymo_recording *recording = NULL;
    struct kymo__samples_set set;
    struct flag_counts counts = {0};
    if (n_args != 2 || kymo_recording_open(args[1], &recording) != KYMO_OK ||
        kymo__samples_open(&set, &recording, 1) != KYMO_OK) {
        fprintf(stderr, "sample_flags: %s\n", n_args == 2 ? kymo_last_error() : "which recording?");
        return 2;
    }
    const kymo_status status = kymo__samples_visit(&set, NULL, count, &counts);
    printf("{\"samples\": %" PRIu64 ", \"native\": %" PRIu64 ", \"native_cut\": %" PRIu64
           ", \"merge_mismatch\": %" PRIu64 ", \"truncated\": %" PRIu64 "}\n",
           counts.samples, counts.native, counts.native_cut, counts.merge_mismatch, counts.truncated);
    kymo__samples_fini(&set);
    kymo_recording_close(recording);
    return status == KYMO_OK ? 0 : 1;
}
