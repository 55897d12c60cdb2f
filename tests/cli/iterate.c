/*
 * A training loop to be measured by the tests of the command line: iterate ITERATIONS WARMUP SLOW_US
 *
 * Two epochs; in each iteration "data", "forward" and, in each second one, "log"; SLOW_US more in "forward" in all but
 * each tenth iteration. A second thread runs "prefetch" all the time. 16 samples in each iteration.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <marey/marey.h>

static int is_over;

static void *prefetch(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        MAREY_SCOPE("prefetch");
        usleep(100);
    }
    return NULL;
}

static void iterate(int i, unsigned slow_us)
{
    {
        MAREY_SCOPE("data");
        usleep(100);
    }
    {
        MAREY_SCOPE("forward");
        usleep(200 + (i % 10 != 0 ? slow_us : 0));
    }
    if (i % 2 == 0) {
        MAREY_SCOPE("log");
    }
    marey_iteration_finish_by("iterate", 16);
}

int main(int argc, char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 10;
    const unsigned slow_us = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
    pthread_t thread;
    if (pthread_create(&thread, NULL, prefetch, NULL) != 0)
        return 1;
    marey_iteration_set_warmup(argc > 2 ? (uint64_t)atoi(argv[2]) : 0);
    for (int epoch = 0; epoch < 2; epoch++) {
        marey_epoch_begin();
        marey_phase(MAREY_ID("train"));
        for (int i = epoch * n / 2; i < (epoch + 1) * n / 2; i++)
            iterate(i, slow_us);
        marey_phase(0);
        marey_epoch_end();
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    return pthread_join(thread, NULL);
}
