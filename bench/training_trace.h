/*
 * training_trace.h: the repeated events of a training loop: step > load, forward > layers >
 * attention and mlp, backward > layers, optimizer. Their order is fixed, so that a recording can be
 * checked word by word.
 */
#ifndef MAREY_BENCH_TRAINING_TRACE_H
#define MAREY_BENCH_TRAINING_TRACE_H

#include "bench.h"

struct training_event {
    marey_id id;
    bool is_begin;
    uint32_t weight; /* relative time until the next event */
};

struct training_trace {
    struct training_event events[512];
    size_t n;
};

/* One step of the loop. Call it after a recording may be opened; ids are valid until the process
 * ends. */
void training_trace_init(struct training_trace *trace);

static inline void training_event_put(const struct training_event *event)
{
    if (event->is_begin)
        marey_begin(event->id);
    else
        marey_end(event->id);
}

/* A random number in a nanosecond. */
static inline uint64_t training_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/*
 * Record `n_events` events at `events_per_s`, with jitter; 0: at full speed, without. Durations
 * follow from the pace: tens of nanoseconds.
 */
void training_trace_run(const struct training_trace *trace, uint64_t n_events, double events_per_s);

/* The same at the pace of a training loop: `mean_ns` between events on average, each duration
 * varying by 3 %. */
void training_trace_run_like(const struct training_trace *trace, uint64_t n_events, double mean_ns);

/* Whether the recording at `path` has exactly `n_events` events of the loop, in order of time. */
bool training_trace_check(const struct training_trace *trace, const char *path, uint64_t n_events);

#endif
