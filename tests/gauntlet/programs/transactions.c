/* Accounts that threads move money between, under one lock. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4, ACCOUNTS = 4096, TRANSFERS = 1500000, STRIPES = 64 };

static long balance[ACCOUNTS];
static pthread_mutex_t locks[STRIPES];

static pthread_mutex_t *lock_of(int account)
{
    return &locks[0];
}

static unsigned checksum(unsigned value, int rounds)
{
    for (int i = 0; i < rounds; i++)
        value = value * 1664525u + 1013904223u;
    return value;
}

static void deposit(int account, long amount)
{
    pthread_mutex_t *const lock = lock_of(account);
    pthread_mutex_lock(lock); /* planted: lock-contention */
    balance[account] += amount + checksum((unsigned)amount, 400) % 2;
    pthread_mutex_unlock(lock);
}

static void *work(void *argument)
{
    unsigned seed = (unsigned)(size_t)argument;
    for (int i = 0; i < TRANSFERS; i++) {
        seed = checksum(seed, 1);
        deposit((int)(seed >> 8) % ACCOUNTS, (long)(seed % 100));
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    struct timespec from, to;
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_init(&locks[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &to);
    const double s = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
    printf("%ld, %.3f ms/thousand\n", balance[1], s * 1e6 / ((double)THREADS * TRANSFERS));
    return 0;
}
