/* A training loop's events, recorded at a given pace and checked afterwards; see training_trace.h.
 * */
#include "training_trace.h"

/* ---- one step ---- */

static void add(struct training_trace *trace, marey_id id, bool is_begin, uint32_t weight)
{
    trace->events[trace->n++] =
        (struct training_event){.id = id, .is_begin = is_begin, .weight = weight};
}

static void add_leaf(struct training_trace *trace, marey_id id, uint32_t weight)
{
    add(trace, id, true, weight);
    add(trace, id, false, 1);
}

static void add_layer(struct training_trace *trace, marey_id layer, uint32_t scale)
{
    add(trace, layer, true, 1);
    add_leaf(trace, MAREY_ID("norm"), 2 * scale);
    add_leaf(trace, MAREY_ID("attention"), 12 * scale);
    add_leaf(trace, MAREY_ID("mlp"), 16 * scale);
    add(trace, layer, false, 1);
}

void training_trace_init(struct training_trace *trace)
{
    enum { LAYERS = 12 };
    const marey_id step = MAREY_ID("step"), forward = MAREY_ID("forward"),
                   backward = MAREY_ID("backward");
    trace->n = 0;
    add(trace, step, true, 1);
    add_leaf(trace, MAREY_ID("load"), 20);
    add(trace, forward, true, 2);
    for (int i = 0; i < LAYERS; i++)
        add_layer(trace, MAREY_ID("layer"), 1);
    add(trace, forward, false, 1);
    add_leaf(trace, MAREY_ID("loss"), 3);
    add(trace, backward, true, 2);
    for (int i = 0; i < LAYERS; i++)
        add_layer(trace, MAREY_ID("layer backward"), 2);
    add(trace, backward, false, 1);
    add_leaf(trace, MAREY_ID("optimizer"), 40);
    add(trace, step, false, 1);
}

/* ---- at a pace ---- */

/* A chain of dependent additions as work between two events: one cycle each. */
static void work(uint64_t turns)
{
    for (; turns > 0; turns--)
        __asm__ volatile("" ::: "memory");
}

/* One step, or the first `n` events of one. */
static void put_step(const struct training_trace *trace, size_t n)
{
    for (size_t i = 0; i < n; i++)
        training_event_put(&trace->events[i]);
}

/* The same with work of random length after each event. */
static void put_step_with_jitter(const struct training_trace *trace, size_t n, uint64_t *random)
{
    for (size_t i = 0; i < n; i++) {
        training_event_put(&trace->events[i]);
        work(training_random(random) & 15);
    }
}

void training_trace_run(const struct training_trace *trace, uint64_t n_events, double events_per_s)
{
    const double ticks_each = events_per_s > 0 ? bench_ticks_per_ns() * 1e9 / events_per_s : 0;
    const uint64_t start = bench_ticks();
    uint64_t random = 88172645463325252u;
    for (uint64_t done = 0; done < n_events;) {
        const size_t n = n_events - done < trace->n ? (size_t)(n_events - done) : trace->n;
        if (events_per_s == 0)
            put_step(trace, n);
        else
            put_step_with_jitter(trace, n, &random);
        done += n;
        /* Between steps, wait for the pace, if any. */
        while ((double)(bench_ticks() - start) < (double)done * ticks_each)
            ;
    }
}

void training_trace_run_like(const struct training_trace *trace, uint64_t n_events, double mean_ns)
{
    double sum = 0;
    for (size_t i = 0; i < trace->n; i++)
        sum += trace->events[i].weight;
    const double ticks_for_weight = bench_ticks_per_ns() * mean_ns * (double)trace->n / sum;
    uint64_t random = 88172645463325252u;
    for (uint64_t i = 0; i < n_events; i++) {
        const struct training_event *event = &trace->events[i % trace->n];
        training_event_put(event);
        /* The sum of twelve uniform numbers is nearly normal, with a deviation of one. */
        double jitter = -6;
        for (int k = 0; k < 12; k++)
            jitter += (double)(training_random(&random) >> 11) / (double)(UINT64_C(1) << 53);
        const double ticks = event->weight * ticks_for_weight * (1 + 0.03 * jitter);
        for (const uint64_t begin = bench_ticks(); (double)(bench_ticks() - begin) < ticks;)
            ;
    }
}

/* ---- checked ---- */

struct check {
    const struct training_trace *trace;
    uint64_t n;      /* events seen */
    uint64_t before; /* the time of the last one */
    bool differs;
};

static marey_status check_batch(void *ctx, const struct marey_batch *batch)
{
    struct check *check = ctx;
    size_t at = check->n % check->trace->n;
    uint64_t ticks_before = 0, differences = 0;
    for (size_t i = 0; i < batch->n; i++) {
        const uint64_t word = batch->words[i];
        const struct training_event *event = &check->trace->events[at];
        const uint32_t kind = event->is_begin ? MAREY_KIND_BEGIN : MAREY_KIND_END;
        differences +=
            (word & 0xffffff) != (kind << 20 | event->id) || marey_word_ticks(word) < ticks_before;
        ticks_before = marey_word_ticks(word);
        at = at + 1 < check->trace->n ? at + 1 : 0;
    }
    if (batch->n > 0) {
        differences += marey_batch_ns(batch, batch->words[0]) < check->before;
        check->before = marey_batch_ns(batch, batch->words[batch->n - 1]);
    }
    check->n += batch->n;
    check->differs = check->differs || differences > 0 || batch->gap;
    return MAREY_OK;
}

bool training_trace_check(const struct training_trace *trace, const char *path, uint64_t n_events)
{
    marey_recording *recording;
    marey_status st = marey_recording_open(path, &recording);
    if (st != MAREY_OK)
        bench_die("cannot open the recording", st);
    struct check check = {.trace = trace};
    if (marey_recording_n_processes(recording) == 1)
        st = marey_recording_visit(recording, 0, check_batch, &check);
    if (st != MAREY_OK)
        bench_die("cannot read the recording", st);
    marey_recording_close(recording);
    return check.n == n_events && !check.differs;
}
