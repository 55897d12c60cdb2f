/*
 * A stand-in for NVIDIA's NVML, for tests of what reads it: libnvidia-ml.so.1 by its functions, scripted by the text file
 * that $MAREY_STANDIN_NVML names when it is initialized. It is no part of marey. Each line of the script is one of
 *
 *     gpus N                      how many there are (default 1); all else is of all of them unless a number follows
 *     model I NAME                what GPU I is called (default "Stand-in")
 *     slices I N                  GPU I is divided by MIG
 *     watts BASE SWING SECONDS    power is BASE + SWING * sin(2 pi t / SECONDS), t the monotonic clock (default 200 0 1)
 *     busy PERCENT                utilization, and GPM's figures (default 50)
 *     busy_ring PERIOD_MS N       the buffer of utilization: N samples, so far apart (default 20 100)
 *     throttle I BITS MHZ N M     of N readings of the state of GPU I, the first M have these reasons and this clock (default:
 *                                 the power cap, at the full clock)
 *     error NAME CODE [N]         the function NAME (without "nvmlDeviceGet" or "nvml") fails with CODE, from its N-th call on
 *     hang NAME [N]               it does not come back
 *     counter wrap|reset|stuck    what the energy counter does at its second reading
 *     ring PERIOD_MS N            the buffer of power samples: N of them, so far apart (default: it is empty)
 *     ring_is HOW [N]             what is wrong with it, from its N-th call on: old or ahead (its stamps are off by a minute),
 *                                 still (no new samples), shuffled (not in order, and each twice); late: empty up to there
 *     burn NAME US                a call takes so much of the processor's time
 *     log FILE                    each call is a line there: nanoseconds t, of which its values are, NAME, number of the GPU
 *
 * The energy counter is the integral of the power, so that totals can be checked. Compiled with MAREY_OLD_NVML it lacks the
 * functions that came after its first years.
 */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum { MAX_GPUS = 8, MAX_RULES = 16, MAX_SLICES = 7 };

typedef struct gpu {
    int index, n_slices, slice; /* slice: -1 for a GPU */
    char model[64];
    unsigned long long n_counts, first_mj;
    /* Of each `every` readings of its state, `many` have these reasons and this clock. */
    unsigned long long reasons;
    unsigned mhz, every, many, n_states;
    struct gpu *parent;
} gpu;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the script */

static struct script {
    int n;
    gpu gpus[MAX_GPUS], slices[MAX_GPUS][MAX_SLICES];
    double base, swing, seconds, busy;
    char counter[16], ring_is[16], log[512];
    unsigned long long busy_us, busy_n, ring_us, ring_n, ring_from, ring_calls, ring_still_us;
    struct rule {
        char name[40];
        int code, hangs;
        unsigned long long from, n_calls, burn_us;
    } rules[MAX_RULES];
    int n_rules;
} script;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void read_line(const char *line)
{
    struct rule *const rule = &script.rules[script.n_rules];
    char word[64] = "", name[64] = "";
    int i = 0, n = 0;
    unsigned long long reasons = 0;
    unsigned mhz = 0, every = 0, many = 0;
    *rule = (struct rule){.from = 1};
    if (sscanf(line, "gpus %d", &n) == 1)
        script.n = n;
    else if (sscanf(line, "model %d %63[^\n]", &i, name) == 2 && i < MAX_GPUS)
        snprintf(script.gpus[i].model, sizeof script.gpus[i].model, "%s", name);
    else if (sscanf(line, "slices %d %d", &i, &n) == 2 && i < MAX_GPUS && n <= MAX_SLICES)
        script.gpus[i].n_slices = n;
    else if (sscanf(line, "throttle %d %llu %u %u %u", &i, &reasons, &mhz, &every, &many) == 5 &&
             i < MAX_GPUS) {
        script.gpus[i].reasons = reasons;
        script.gpus[i].mhz = mhz;
        script.gpus[i].every = every;
        script.gpus[i].many = many;
    } else if (sscanf(line, "error %39s %d %llu", rule->name, &rule->code, &rule->from) >= 2)
        script.n_rules += script.n_rules + 1 < MAX_RULES;
    else if (sscanf(line, "hang %39s %llu", rule->name, &rule->from) >= 1) {
        rule->hangs = 1;
        script.n_rules += script.n_rules + 1 < MAX_RULES;
    } else if (sscanf(line, "burn %39s %llu", rule->name, &rule->burn_us) == 2) {
        script.n_rules += script.n_rules + 1 < MAX_RULES;
    } else if (sscanf(line, "ring %llu %llu", &script.ring_us, &script.ring_n) == 2) {
        script.ring_us *= 1000;
    } else if (sscanf(line, "busy_ring %llu %llu", &script.busy_us, &script.busy_n) == 2) {
        script.busy_us *= 1000;
    } else if (sscanf(line, "ring_is %15s %llu", script.ring_is, &script.ring_from) >= 1 ||
               sscanf(line, "counter %15s", script.counter) == 1 ||
               sscanf(line, "log %511s", script.log) == 1 ||
               sscanf(line, "watts %lf %lf %lf", &script.base, &script.swing, &script.seconds) == 3 ||
               sscanf(line, "busy %lf", &script.busy) == 1) {
        /* taken */
    } else if (sscanf(line, "%63s", word) == 1) {
        fprintf(stderr, "nvml_standin: what is '%s'?\n", word);
        abort();
    }
}

static void read_script(void)
{
    const char *path = getenv("MAREY_STANDIN_NVML");
    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    char line[640];
    script = (struct script){
        .n = 1, .base = 200, .seconds = 1, .busy = 50, .busy_us = 20000, .busy_n = 100};
    for (int i = 0; i < MAX_GPUS; i++) {
        script.gpus[i] = (gpu){.index = i, .slice = -1, .model = "Stand-in"};
        for (int s = 0; s < MAX_SLICES; s++)
            script.slices[i][s] = (gpu){.index = i, .slice = s, .parent = &script.gpus[i]};
    }
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        read_line(line);
    if (file != NULL)
        fclose(file);
}

static __thread uint64_t called_ns; /* time of the current call, and of its values */

static void burn(uint64_t us)
{
    const uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + us * 1000;
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        ;
}

/* Called first in every function: 0, or the scripted error. */
static int call(const char *name, const gpu *g)
{
    int code = 0, hangs = 0;
    uint64_t burn_us = 0;
    pthread_mutex_lock(&lock);
    if (strcmp(name, "Init") == 0)
        read_script();
    called_ns = clock_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < script.n_rules; i++)
        if (strcmp(script.rules[i].name, name) == 0 &&
            ++script.rules[i].n_calls >= script.rules[i].from) {
            code = script.rules[i].code;
            hangs |= script.rules[i].hangs;
            burn_us += script.rules[i].burn_us;
        }
    FILE *file = script.log[0] != '\0' ? fopen(script.log, "ae") : NULL;
    if (file != NULL) {
        fprintf(file, "%llu %s %d\n", (unsigned long long)called_ns, name, g != NULL ? g->index : -1);
        fclose(file);
    }
    pthread_mutex_unlock(&lock);
    burn(burn_us);
    while (hangs)
        pause();
    return code;
}

static double watts_at(uint64_t ns)
{
    return script.base + script.swing * sin(2 * M_PI * (double)ns / 1e9 / script.seconds);
}

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlInit_v2(void)
{
    return call("Init", NULL);
}

EXPORT int nvmlShutdown(void);
EXPORT int nvmlShutdown(void)
{
    return call("Shutdown", NULL);
}

EXPORT const char *nvmlErrorString(int error);
EXPORT const char *nvmlErrorString(int error)
{
    return error == 3    ? "Not Supported"
           : error == 4  ? "Insufficient Permissions"
           : error == 9  ? "Driver Not Loaded"
           : error == 15 ? "GPU is lost"
                         : "Unknown Error";
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *n);
EXPORT int nvmlDeviceGetCount_v2(unsigned *n)
{
    const int error = call("Count", NULL);
    *n = (unsigned)script.n;
    return error;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned i, gpu **out);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned i, gpu **out)
{
    *out = &script.gpus[i % MAX_GPUS];
    return call("HandleByIndex", *out);
}

EXPORT int nvmlDeviceGetUUID(gpu *g, char *out, unsigned size);
EXPORT int nvmlDeviceGetUUID(gpu *g, char *out, unsigned size)
{
    if (g->slice >= 0)
        snprintf(out, size, "MIG-%08x-aaaa-bbbb-cccc-%012x", g->index, g->slice);
    else
        snprintf(out, size, "GPU-%08x-1111-2222-3333-444444444444", g->index);
    return call("UUID", g);
}

EXPORT int nvmlDeviceGetName(gpu *g, char *out, unsigned size);
EXPORT int nvmlDeviceGetName(gpu *g, char *out, unsigned size)
{
    snprintf(out, size, "%s", g->model);
    return call("Name", g);
}

EXPORT int nvmlDeviceGetPowerUsage(gpu *g, unsigned *milliwatt);
EXPORT int nvmlDeviceGetPowerUsage(gpu *g, unsigned *milliwatt)
{
    const int error = call("PowerUsage", g);
    *milliwatt = (unsigned)(watts_at(called_ns) * 1000);
    return error;
}

EXPORT int nvmlDeviceGetUtilizationRates(gpu *g, unsigned *out);
EXPORT int nvmlDeviceGetUtilizationRates(gpu *g, unsigned *out)
{
    out[0] = out[1] = (unsigned)script.busy;
    return call("UtilizationRates", g);
}

static int is_throttled(const gpu *g)
{
    return g->every != 0 && g->n_states % g->every < g->many;
}

EXPORT int nvmlDeviceGetClockInfo(gpu *g, int domain, unsigned *mhz);
EXPORT int nvmlDeviceGetClockInfo(gpu *g, int domain, unsigned *mhz)
{
    *mhz = domain != 1 ? 2619 : is_throttled(g) ? g->mhz : 1980;
    return call("ClockInfo", g);
}

EXPORT int nvmlDeviceGetTemperature(gpu *g, int sensor, unsigned *celsius);
EXPORT int nvmlDeviceGetTemperature(gpu *g, int sensor, unsigned *celsius)
{
    *celsius = 40u + (unsigned)sensor;
    return call("Temperature", g);
}

EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(gpu *g, unsigned long long *bits);
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(gpu *g, unsigned long long *bits)
{
    *bits = g->every == 0 ? 4 : is_throttled(g) ? g->reasons : 0;
    g->n_states++;
    return call("Throttle", g);
}

EXPORT int nvmlDeviceGetMemoryInfo(gpu *g, unsigned long long *out);
EXPORT int nvmlDeviceGetMemoryInfo(gpu *g, unsigned long long *out)
{
    out[0] = 80ull << 30, out[1] = 79ull << 30, out[2] = 1ull << 30;
    return call("MemoryInfo", g);
}

#ifndef MAREY_OLD_NVML
static double joules_at(uint64_t ns)
{
    const double t = (double)ns / 1e9, w = 2 * M_PI / script.seconds;
    return script.base * t + script.swing / w * (1 - cos(w * t));
}

EXPORT int nvmlDeviceGetTotalEnergyConsumption(gpu *g, unsigned long long *millijoule);
EXPORT int nvmlDeviceGetTotalEnergyConsumption(gpu *g, unsigned long long *millijoule)
{
    const int error = call("TotalEnergyConsumption", g);
    const unsigned long long now_mj = (unsigned long long)(joules_at(called_ns) * 1000) + 10000000;
    pthread_mutex_lock(&lock);
    if (g->n_counts++ == 0)
        g->first_mj = now_mj;
    const unsigned long long risen = now_mj - g->first_mj;
    if (strcmp(script.counter, "wrap") == 0)
        *millijoule = ((1ull << 32) - 1000 + risen) % (1ull << 32);
    else if (strcmp(script.counter, "reset") == 0 && g->n_counts > 1)
        *millijoule = 5 + risen;
    else
        *millijoule = strcmp(script.counter, "stuck") == 0 ? g->first_mj : now_mj;
    pthread_mutex_unlock(&lock);
    return error;
}

struct field {
    unsigned id, scope;
    long long stamp, latency;
    int type, status;
    union {
        unsigned number;
        double wide;
    } value;
};

EXPORT int nvmlDeviceGetFieldValues(gpu *g, int n, struct field *fields);
EXPORT int nvmlDeviceGetFieldValues(gpu *g, int n, struct field *fields)
{
    for (int i = 0; i < n; i++) {
        fields[i].type = 1;
        fields[i].status = fields[i].id == 186 ? call("Instant", g) : 3;
        fields[i].value.number = (unsigned)(watts_at(called_ns) * 1000);
    }
    return call("FieldValues", g);
}

struct sample {
    unsigned long long stamp_us;
    union {
        unsigned number;
        double wide;
    } value;
};

static unsigned busy_samples(unsigned long long last_us, unsigned most, struct sample *out)
{
    const unsigned long long step = script.busy_us,
                             now = clock_ns(CLOCK_REALTIME) / 1000 / step * step;
    unsigned n = 0;
    for (unsigned long long t = now - script.busy_n * step; t <= now && n < most; t += step)
        if (t > last_us)
            out[n++] = (struct sample){t, {.number = (unsigned)script.busy}};
    return n;
}

/* Swap neighbors, and repeat each at the end. */
static unsigned shuffle(unsigned n, unsigned most, struct sample *out)
{
    const unsigned n_twice = 2 * n <= most ? n : most - n;
    for (unsigned i = 0; i + 1 < n; i += 2) {
        const struct sample first = out[i];
        out[i] = out[i + 1];
        out[i + 1] = first;
    }
    memcpy(out + n, out, n_twice * sizeof *out);
    return n + n_twice;
}

static unsigned power_samples(unsigned long long last_us, unsigned most, struct sample *out)
{
    uint64_t real_ns, before_ns, after_ns;
    do {
        before_ns = clock_ns(CLOCK_MONOTONIC);
        real_ns = clock_ns(CLOCK_REALTIME);
        after_ns = clock_ns(CLOCK_MONOTONIC);
    } while (after_ns - before_ns > 1000000); /* interrupted */
    const unsigned long long real_us = real_ns / 1000;
    const uint64_t behind_ns = real_ns - before_ns;
    const int is_wrong = ++script.ring_calls >= script.ring_from;
    const int is_still = is_wrong && strcmp(script.ring_is, "still") == 0;
    const unsigned long long step = script.ring_us > 0 ? script.ring_us : 1;
    unsigned n = 0;
    if (!is_wrong && strcmp(script.ring_is, "late") == 0)
        return 0;
    if (!is_still)
        script.ring_still_us = real_us;
    const unsigned long long newest = script.ring_still_us / step * step;
    const unsigned long long off_us = !is_wrong                              ? 0
                                      : strcmp(script.ring_is, "ahead") == 0 ? 60000000
                                      : strcmp(script.ring_is, "old") == 0   ? -60000000ull
                                                                             : 0;
    for (unsigned long long i = script.ring_n; i-- > 0 && n < most;) {
        const unsigned long long t = newest - i * step;
        if (t + off_us > last_us)
            out[n++] = (struct sample){
                t + off_us, {.number = (unsigned)(watts_at(t * 1000 - behind_ns) * 1000)}};
    }
    return is_wrong && strcmp(script.ring_is, "shuffled") == 0 ? shuffle(n, most, out) : n;
}

EXPORT int nvmlDeviceGetSamples(gpu *g, int kind, unsigned long long last_us, int *type,
                                unsigned *n, struct sample *out);
EXPORT int nvmlDeviceGetSamples(gpu *g, int kind, unsigned long long last_us, int *type,
                                unsigned *n, struct sample *out)
{
    const int error = call(kind == 0 ? "PowerSamples" : "Samples", g);
    *type = 1;
    *n = kind == 0 ? power_samples(last_us, *n, out) : busy_samples(last_us, *n, out);
    return error != 0 ? error : *n > 0 ? 0 : 6;
}

EXPORT int nvmlDeviceGetMigMode(gpu *g, unsigned *now, unsigned *later);
EXPORT int nvmlDeviceGetMigMode(gpu *g, unsigned *now, unsigned *later)
{
    *now = *later = g->n_slices > 0;
    return call("MigMode", g);
}

EXPORT int nvmlDeviceGetMaxMigDeviceCount(gpu *g, unsigned *n);
EXPORT int nvmlDeviceGetMaxMigDeviceCount(gpu *g, unsigned *n)
{
    *n = MAX_SLICES;
    return call("MaxMigDeviceCount", g);
}

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(gpu *g, unsigned i, gpu **out);
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(gpu *g, unsigned i, gpu **out)
{
    *out = &script.slices[g->index][i % MAX_SLICES];
    const int error = call("MigDeviceHandleByIndex", g);
    return error != 0 ? error : (int)i < g->n_slices ? 0 : 6;
}

struct gpm_metrics {
    unsigned version, n;
    void *before, *after;
    struct {
        unsigned id;
        int status;
        double value;
        char *names[3];
    } metrics[210];
};

EXPORT int nvmlGpmQueryDeviceSupport(gpu *g, unsigned *support);
EXPORT int nvmlGpmQueryDeviceSupport(gpu *g, unsigned *support)
{
    support[1] = g->n_slices == 0;
    return call("GpmQueryDeviceSupport", g);
}

EXPORT int nvmlGpmSampleAlloc(void **sample);
EXPORT int nvmlGpmSampleAlloc(void **sample)
{
    *sample = calloc(1, 16);
    return call("GpmSampleAlloc", NULL);
}

EXPORT int nvmlGpmSampleFree(void *sample);
EXPORT int nvmlGpmSampleFree(void *sample)
{
    free(sample);
    return call("GpmSampleFree", NULL);
}

EXPORT int nvmlGpmSampleGet(gpu *g, unsigned long long *sample);
EXPORT int nvmlGpmSampleGet(gpu *g, unsigned long long *sample)
{
    *sample = clock_ns(CLOCK_MONOTONIC);
    return call("GpmSampleGet", g);
}

/* Utilization times one half for SMs, one quarter for warps, ...; 2 for an unknown id. */
EXPORT int nvmlGpmMetricsGet(struct gpm_metrics *m);
EXPORT int nvmlGpmMetricsGet(struct gpm_metrics *m)
{
    const int in_order = *(unsigned long long *)m->before < *(unsigned long long *)m->after;
    for (unsigned i = 0; i < m->n; i++) {
        const unsigned id = m->metrics[i].id;
        m->metrics[i].status = id == 2 || id == 3 || id == 5 || id == 10 ? 0 : 2;
        m->metrics[i].value = script.busy / id;
    }
    return m->version != 1 || !in_order ? 2 : call("GpmMetricsGet", NULL);
}
#endif
