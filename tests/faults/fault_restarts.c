/*
 * fault_restarts FOLDER TIMES THREADS: start and stop TIMES recordings in a row, FOLDER/0.marey and so on, while
 * THREADS threads record all the time. The main thread, which stops them, records 50 ranges in each.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "sequence.h"

enum { MAX_THREADS = 16, IN_EACH = 50 };

static int is_over;

static void *hammer(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); i++)
        sequence_range(i);
    return NULL;
}

static int record_one(const char *folder, int i)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%d.marey", folder, i);
    sequence_start(path, "pool=2M");
    for (uint64_t n = 0; n < IN_EACH; n++)
        sequence_range(n);
    return marey_stop() == MAREY_OK;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    const int n_times = atoi(argv[2]), n_threads = atoi(argv[3]);
    pthread_t threads[MAX_THREADS];
    sequence_init();
    for (int i = 0; i < n_threads; i++)
        pthread_create(&threads[i], NULL, hammer, NULL);
    int n_good = 0;
    for (int i = 0; i < n_times; i++)
        n_good += record_one(argv[1], i);
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    return n_good == n_times ? 0 : 1;
}
