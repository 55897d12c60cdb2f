/*
 * A recording of a training loop's events with real durations, for bench_page.py.
 *
 *   page_recording DIR RANGES
 */
#include <stdlib.h>

#include "training_trace.h"

int main(int argc, char **argv)
{
    if (argc != 3)
        bench_die("page_recording needs a folder and how many ranges", KYMO_OK);
    const struct kymo_options options = {
        .path = argv[1], .policy = KYMO_BLOCK, .disk_bytes = UINT64_C(64) << 30};
    struct training_trace trace;
    training_trace_init(&trace);
    const kymo_status st = kymo_start(&options);
    if (st != KYMO_OK)
        bench_die("cannot record", st);
    training_trace_run_like(&trace, 2 * strtoull(argv[2], NULL, 10), 500);
    return kymo_stop() == KYMO_OK ? 0 : 1;
}
