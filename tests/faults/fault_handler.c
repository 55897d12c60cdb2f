/*
 * fault_handler RECORDING SECONDS: a thread records while a timer's signal interrupts it thousands of times a second, and
 * the handler records as well. Then prints how many ranges each of the two recorded.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#include "sequence.h"

static marey_id in_handler;
static uint64_t n_handled;

static void on_alarm(int signal_number)
{
    (void)signal_number;
    /* Ten at a time: enough to meet the end of a chunk now and then. */
    for (int i = 0; i < 10; i++) {
        marey_begin(in_handler);
        marey_end(in_handler);
    }
    n_handled += 10;
}

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    sequence_start(
        argv[1], "pool=512M"); /* more than a second can fill, should the flush thread not get to run */
    in_handler = marey_site_intern("handler", 7, NULL, 0, NULL, 0);
    sequence_range(0); /* the thread's lane is made outside the handler */
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 37}, {0, 37}}, NULL);
    const double until = now() + atof(argv[2]);
    uint64_t n = 1;
    while (now() < until)
        for (int i = 0; i < 1000; i++)
            sequence_range(n++);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    marey_stop();
    struct marey_counts counts;
    marey_counts_get(&counts);
    printf("{\"ranges\": %" PRIu64 ", \"handled\": %" PRIu64 ", \"lost\": %" PRIu64 "}\n", n,
           n_handled, counts.lost_events);
    return 0;
}
