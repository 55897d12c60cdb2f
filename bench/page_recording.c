/*
 * A recording for bench_page.py: a training loop's events with real durations, or many names with two ranges each.
 *
 *   page_recording DIR RANGES
 *   page_recording DIR names N
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "training_trace.h"

static void run_training(uint64_t n_ranges)
{
    struct training_trace trace;
    training_trace_init(&trace);
    training_trace_run_like(&trace, 2 * n_ranges, 500);
}

static void run_names(uint64_t n)
{
    for (uint64_t i = 0; i < 2 * n; i++) {
        char name[64];
        const int len = snprintf(name, sizeof name, "layer %d.block %d.attention",
                                 (int)(i % n % 97), (int)(i % n));
        const marey_id id = marey_site_intern(name, (size_t)len, NULL, 0, NULL, 0);
        marey_begin(id);
        marey_end(id);
    }
}

int main(int argc, char **argv)
{
    const bool has_names = argc == 4 && strcmp(argv[2], "names") == 0;
    if (argc != 3 && !has_names)
        bench_die("page_recording needs a folder and how many ranges or names", MAREY_OK);
    const struct marey_options options = {
        .path = argv[1], .policy = MAREY_BLOCK, .disk_bytes = UINT64_C(64) << 30};
    const marey_status st = marey_start(&options);
    if (st != MAREY_OK)
        bench_die("cannot record", st);
    if (has_names)
        run_names(strtoull(argv[3], NULL, 10));
    else
        run_training(strtoull(argv[2], NULL, 10));
    return marey_stop() == MAREY_OK ? 0 : 1;
}
