/* sample_flags RUN.marey: count the samples of a recording by flag, for bench_sample.py. */
#include <inttypes.h>
#include <stdio.h>

#include "analyze/samples/internal.h"

struct flag_counts {
    uint64_t samples, native, native_cut, merge_mismatch, truncated;
};

static marey_status count(void *ctx, const struct marey_samples_round *round)
{
    struct flag_counts *const counts = ctx;
    for (size_t i = 0; i < round->n_seen; i++) {
        const uint32_t flags = round->seen[i].flags;
        counts->samples++;
        counts->native += (flags & MAREY_SAMPLE_NATIVE) != 0;
        counts->native_cut += (flags & MAREY_SAMPLE_NATIVE_CUT) != 0;
        counts->merge_mismatch += (flags & MAREY_SAMPLE_MERGE_MISMATCH) != 0;
        counts->truncated += (flags & MAREY_SAMPLE_TRUNCATED) != 0;
    }
    return MAREY_OK;
}

int main(int n_args, char **args)
{
    marey_recording *recording = NULL;
    struct marey__samples_set set;
    struct flag_counts counts = {0};
    if (n_args != 2 || marey_recording_open(args[1], &recording) != MAREY_OK ||
        marey__samples_open(&set, &recording, 1) != MAREY_OK) {
        fprintf(stderr, "sample_flags: %s\n", n_args == 2 ? marey_last_error() : "which recording?");
        return 2;
    }
    const marey_status status = marey__samples_visit(&set, NULL, count, &counts);
    printf("{\"samples\": %" PRIu64 ", \"native\": %" PRIu64 ", \"native_cut\": %" PRIu64
           ", \"merge_mismatch\": %" PRIu64 ", \"truncated\": %" PRIu64 "}\n",
           counts.samples, counts.native, counts.native_cut, counts.merge_mismatch, counts.truncated);
    marey__samples_fini(&set);
    marey_recording_close(recording);
    return status == MAREY_OK ? 0 : 1;
}
