/*
 * A training loop with the counters that measuring energy would write, for tests on machines without any: joules WATTS
 *
 * Two epochs of ten iterations of 8 samples; "forward" in each. GPU-test takes WATTS all the time; GPU-idle is measured
 * as well, and nobody says that it is used.
 */
#include <stdlib.h>
#include <time.h>

#include <marey/marey.h>

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double start, watts;

static void read_power(void)
{
    static struct marey_site power = {.name = "GPU 0 power (W)",
                                      .category = "energy",
                                      .domain = "GPU-test|power"},
                             use = {.name = "GPU 0 utilization (%)",
                                    .category = "energy",
                                    .domain = "GPU-test|utilization"},
                             idle = {.name = "GPU 1 power (W)",
                                     .category = "energy",
                                     .domain = "GPU-idle|power"};
    marey_counter(marey_site_id(&power), watts);
    marey_counter(marey_site_id(&use), 75);
    marey_counter(marey_site_id(&idle), 10);
}

static void read_energy(void)
{
    static struct marey_site energy = {
        .name = "GPU 0 energy (J)", .category = "energy", .domain = "GPU-test|energy"};
    marey_counter(marey_site_id(&energy), 1000 + watts * (seconds() - start));
}

static void iterate(void)
{
    MAREY_SCOPE("forward");
    const double until = seconds() + 0.025;
    for (double next = 0; seconds() < until;)
        if (seconds() >= next) {
            read_power();
            next = seconds() + 0.002;
        }
}

int main(int argc, char **argv)
{
    watts = argc > 1 ? atof(argv[1]) : 100;
    start = seconds();
    read_energy();
    for (int epoch = 0; epoch < 2; epoch++) {
        marey_epoch_begin();
        marey_phase(MAREY_ID("train"));
        for (int i = 0; i < 10; i++) {
            iterate();
            marey_iteration_finish_by("joules", 8);
        }
        marey_phase(0);
        marey_epoch_end();
    }
    read_power();
    read_energy();
    return 0;
}
