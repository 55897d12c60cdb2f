/* Four threads that share a lock, and a main thread that counts steps: threads STEPS. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 2000 };
static pthread_barrier_t begin, end;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double sum;
static int is_over;

static void *work(void *argument)
{
    double x = (double)(size_t)argument;
    for (;;) {
        pthread_barrier_wait(&begin);
        if (is_over)
            return NULL;
        for (int i = 0; i < ROUNDS; i++) {
            for (int k = 0; k < 200; k++)
                x = x * 0.999 + k;
            pthread_mutex_lock(&lock);
            sum += x;
            pthread_mutex_unlock(&lock);
        }
        pthread_barrier_wait(&end);
    }
}

static long long clock_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Like step() of alternate.py with the kind "parent" or "none"; the blocks of a pair in random
 * order. */
static void step(int is_last)
{
    static int left, is_on = 1, n_blocks, steps;
    static char kind[16], path[4096];
    static long long wall, cpu;
    const char *const settings = getenv("BENCH_ALTERNATE");
    if (settings == NULL ||
        (steps == 0 && sscanf(settings, "%15[^,],%d,%4095s", kind, &steps, path) < 3))
        return;
    const int is_parent = strcmp(kind, "none") != 0;
    if (is_last && is_parent)
        kill(getppid(), SIGCONT);
    if (is_last || left-- > 0)
        return;
    const long long wall_end = clock_of(CLOCK_MONOTONIC),
                    cpu_end = clock_of(CLOCK_PROCESS_CPUTIME_ID);
    FILE *const out = fopen(path, "a");
    if (out != NULL && n_blocks > 0)
        fprintf(out, "%d %lld %lld\n", is_on, wall_end - wall, cpu_end - cpu);
    if (out != NULL)
        fclose(out);
    is_on = n_blocks++ % 2 == 0 ? rand() % 2 : !is_on;
    if (is_parent)
        kill(getppid(), is_on ? SIGCONT : SIGSTOP);
    left = steps - 1;
    wall = clock_of(CLOCK_MONOTONIC);
    cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID);
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&begin, NULL, THREADS + 1);
    pthread_barrier_init(&end, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int left = argc > 1 ? atoi(argv[1]) : 100; left > 0; left--) {
        step(0);
        pthread_barrier_wait(&begin);
        pthread_barrier_wait(&end);
    }
    step(1);
    is_over = 1;
    pthread_barrier_wait(&begin);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return sum < 0;
}
