/* A program without Python. solver hot SECONDS: one hot function. solver locks SECONDS: four
 * threads contend for a lock. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 1 << 14 };
static double field[N], until;
static pthread_mutex_t field_lock = PTHREAD_MUTEX_INITIALIZER;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void relax(double *f) /* inlined */
{
    for (int i = 1; i + 1 < N; i++)
        f[i] = 0.5 * f[i] + 0.25 * (f[i - 1] + f[i + 1]); /* hot line */
}

__attribute__((noinline)) void update(unsigned seed)
{
    pthread_mutex_lock(&field_lock); /* lock line */
    for (unsigned i = 0; i < N; i++)
        field[i] += sqrt(i + seed);
    pthread_mutex_unlock(&field_lock);
}

static void *work(void *arg)
{
    for (unsigned seed = 0; now() < until; seed++)
        update(seed);
    return arg;
}

int main(int n_args, char **args)
{
    pthread_t threads[4];
    until = now() + (n_args > 2 ? atof(args[2]) : 1);
    field[0] = 1;
    if (n_args > 1 && strcmp(args[1], "locks") == 0) {
        for (int i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, work, NULL);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
    } else {
        while (now() < until)
            for (int i = 0; i < 10; i++)
                relax(field);
    }
    return field[7] > 0 ? 7 : 8;
}
