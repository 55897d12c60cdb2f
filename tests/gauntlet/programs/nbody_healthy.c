/* Gravity between bodies, in threads that do not share what they write. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { BODIES = 2000, MOST_THREADS = 8 };

static double at[BODIES][3], force[BODIES][3];
static int n_threads, n_steps;
static pthread_barrier_t barrier;

static void pull(int from, int to)
{
    for (int i = from; i < to; i++) {
        double sum[3] = {0};
        for (int j = 0; j < BODIES; j++) {
            const double x = at[j][0] - at[i][0], y = at[j][1] - at[i][1], z = at[j][2] - at[i][2];
            const double d = x * x + y * y + z * z + 1e-3, f = 1 / (d * sqrt(d));
            sum[0] += f * x, sum[1] += f * y, sum[2] += f * z;
        }
        for (int k = 0; k < 3; k++)
            force[i][k] = sum[k];
    }
}

static void *run(void *argument)
{
    const int t = (int)(size_t)argument, from = t * BODIES / n_threads,
              to = (t + 1) * BODIES / n_threads;
    for (int s = 0; s < n_steps; s++) {
        pull(from, to);
        pthread_barrier_wait(&barrier);
        for (int i = from; i < to; i++)
            for (int k = 0; k < 3; k++)
                at[i][k] += 1e-9 * force[i][k];
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[MOST_THREADS];
    n_steps = argc > 1 ? atoi(argv[1]) : 100;
    n_threads = argc > 2 ? atoi(argv[2]) : 1;
    for (int i = 0; i < BODIES; i++)
        for (int k = 0; k < 3; k++)
            at[i][k] = rand() / (double)RAND_MAX;
    pthread_barrier_init(&barrier, NULL, (unsigned)n_threads);
    for (int i = 0; i < n_threads; i++)
        pthread_create(&threads[i], NULL, run, (void *)(size_t)i);
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    printf("%g\n", at[0][0]);
    return 0;
}
