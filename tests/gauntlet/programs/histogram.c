/* Threads count random values in a shared histogram. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { THREADS = 3, BINS = 256, VALUES = 12000000 };

struct histogram {
    pthread_mutex_t lock;
    uint64_t counts[BINS];
};

static struct histogram all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t next_value(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void count(struct histogram *h, uint64_t value)
{
    pthread_mutex_lock(&h->lock); /* planted: lock-contention */
    h->counts[value % BINS]++;
    pthread_mutex_unlock(&h->lock); /* planted: lock-contention */
}

static void *fill(void *argument)
{
    uint64_t state = (uint64_t)(size_t)argument;
    struct histogram *h = &all;
    for (int i = 0; i < VALUES; i++)
        count(h, next_value(&state));
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, fill, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &to);
    const double s = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
    printf("%llu in bin 0, %.3f ms/million\n", (unsigned long long)all.counts[0],
           s * 1e9 / ((double)THREADS * VALUES));
    return 0;
}
