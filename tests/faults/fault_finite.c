/*
 * fault_finite RECORDING THREADS RANGES OPTIONS: each of THREADS threads records RANGES ranges as fast as it can. Prints
 * what the library counted and how stopping went, as one JSON object, and exits with 0 whatever that was.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "sequence.h"

enum { MAX_THREADS = 64 };

static void *record_some(void *n)
{
    sequence_ranges(*(const uint64_t *)n);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    const int n_threads = atoi(argv[2]);
    uint64_t n = strtoull(argv[3], NULL, 10);
    pthread_t threads[MAX_THREADS];
    if (n_threads > MAX_THREADS)
        return 2;
    sequence_start(argv[1], argv[4]);
    for (int i = 0; i < n_threads; i++)
        pthread_create(&threads[i], NULL, record_some, &n);
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    const int enabled = marey_enabled();
    const marey_status st = marey_stop();
    struct marey_counts counts;
    marey_counts_get(&counts);
    printf("{\"stop\": \"%s\", \"enabled\": %d, \"words\": %" PRIu64 ", \"lost\": %" PRIu64
           ", \"log_bytes\": %" PRIu64 ", \"threads\": %" PRIu32 "}\n",
           marey_status_name(st), enabled, counts.events, counts.lost_events, counts.log_bytes,
           counts.n_threads);
    return 0;
}
