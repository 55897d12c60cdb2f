/*
 * Reads SAMPLES blocks of samplers' logs into one store. A log's numbers are local to it; they are mapped to the
 * store's, where equal items are merged.
 *
 * All numbers are untrusted. One that is undefined, because its block is lost, maps to "(unknown)": the data around it
 * is still useful.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/samples/internal.h"

enum { MAX_NUMBER = 1 << 26 };

struct reading {
    struct marey__samples_set *set;
    struct marey__samples_source *source;
    const struct marey_process *log;
    uint64_t max_number; /* limit for any number in this log: definitions take bytes */
    struct marey_samples_counts *counts; /* by process of the log */
    size_t n_counts, counts_cap;
    struct marey__payload_taker taker;
};

/* ---- numbers ---- */

/* Map number `number` of the log to `is` of the store. Returns false for an impossible number, and on out of memory. */
static bool define(struct reading *r, struct marey__samples_numbers *numbers, uint64_t number,
                   uint32_t is)
{
    if (number == 0 || number > r->max_number)
        return false;
    if (is == 0 || !marey__extend(&numbers->of, &numbers->n, &numbers->cap, (size_t)number,
                                  sizeof *numbers->of)) {
        r->taker.failed = true;
        return false;
    }
    numbers->of[number - 1] = is;
    return true;
}

static uint32_t unknown_function(marey_samples *samples)
{
    return marey__samples_function(samples, MAREY_FRAME_MARK, "(unknown)", "", "", 0);
}

static uint32_t unknown_stack(marey_samples *samples)
{
    const uint32_t location = marey__samples_location(samples, unknown_function(samples), 0);
    return location != 0 ? marey__samples_stack(samples, 0, location) : 0;
}

/* ---- entries; these return false for invalid ones, or on out of memory ---- */

/* Decode a number plus one; -1 if it is too large. */
static int32_t small_number(uint64_t plus_one)
{
    return plus_one <= INT32_MAX ? (int32_t)plus_one - 1 : -1;
}

static uint32_t to_u32(uint64_t number)
{
    return (uint32_t)MAREY__MIN(number, (uint64_t)UINT32_MAX);
}

static bool take_process(struct reading *r, const struct marey__payload_entry *e)
{
    struct marey__samples_source *const s = r->source;
    const struct marey_samples_process process = {.pid = (int64_t)e->numbers[1],
                                                  .ppid = (int64_t)e->numbers[2],
                                                  .start_time = e->numbers[3],
                                                  .rank = small_number(e->numbers[4]),
                                                  .worker = small_number(e->numbers[5]),
                                                  .python = to_u32(e->numbers[6]),
                                                  .command = marey__payload_text(&r->taker, e, 0),
                                                  .host = r->log->host};
    return !r->taker.failed && define(r, &s->processes, e->numbers[0],
                                      marey__samples_process(r->set->samples, &process));
}

static bool take_thread(struct reading *r, const struct marey__payload_entry *e)
{
    struct marey__samples_source *const s = r->source;
    const uint32_t process = marey__samples_number(&s->processes, e->numbers[1]);
    const char *const name = marey__payload_text(&r->taker, e, 0);
    return process != 0 && !r->taker.failed &&
           define(r, &s->threads, e->numbers[0],
                  marey__samples_thread(r->set->samples, process, (int64_t)e->numbers[2], name,
                                        e->numbers[3], e->numbers[4] != 0));
}

static bool take_function(struct reading *r, const struct marey__payload_entry *e)
{
    struct marey__samples_source *const s = r->source;
    const enum marey_frame_kind kind =
        (enum marey_frame_kind)MAREY__MIN(e->numbers[1], (uint64_t)MAREY_FRAME_MARK);
    const char *const name = marey__payload_text(&r->taker, e, 0),
                      *const file = marey__payload_text(&r->taker, e, 1),
                      *const module = marey__payload_text(&r->taker, e, 2);
    return !r->taker.failed && define(r, &s->functions, e->numbers[0],
                                      marey__samples_function(r->set->samples, kind, name, file,
                                                              module, to_u32(e->numbers[2])));
}

static bool take_locations(struct reading *r, struct marey__payload_entry *e)
{
    struct marey__samples_source *const s = r->source;
    uint64_t function, line;
    for (uint64_t i = 0; i < e->numbers[1]; i++) {
        if (!marey__samples_take(e, &function) || !marey__samples_take(e, &line))
            return false;
        uint32_t known = marey__samples_number(&s->functions, function);
        if (known == 0)
            known = unknown_function(r->set->samples);
        if (!define(r, &s->locations, e->numbers[0] + i,
                    marey__samples_location(r->set->samples, known, to_u32(line))))
            return false;
    }
    return true;
}

static uint32_t stack_of(struct reading *r, uint64_t number, uint64_t back, uint64_t location)
{
    const struct marey__samples_source *const s = r->source;
    uint32_t parent = 0, where = marey__samples_number(&s->locations, location);
    if (back != 0) {
        parent = back < number ? marey__samples_number(&s->stacks, number - back) : 0;
        if (parent == 0)
            parent = unknown_stack(r->set->samples);
        if (parent == 0)
            return 0;
    }
    if (where == 0)
        where = marey__samples_location(r->set->samples, unknown_function(r->set->samples), 0);
    const uint32_t function = marey_samples_get_location(r->set->samples, where).function;
    if (marey__is_worker_entry(marey_samples_get_function(r->set->samples, function)))
        parent = 0;
    return where != 0 ? marey__samples_stack(r->set->samples, parent, where) : 0;
}

static bool take_stacks(struct reading *r, struct marey__payload_entry *e)
{
    struct marey__samples_source *const s = r->source;
    uint64_t back, location;
    for (uint64_t i = 0; i < e->numbers[1]; i++) {
        const uint64_t number = e->numbers[0] + i;
        if (!marey__samples_take(e, &back) || !marey__samples_take(e, &location) || number == 0 ||
            number > r->max_number ||
            !define(r, &s->stacks, number, stack_of(r, number, back, location)))
            return false;
    }
    return true;
}

static bool take_counts(struct reading *r, struct marey__payload_entry *e)
{
    uint64_t values[sizeof(struct marey_samples_counts) / sizeof(uint64_t)] = {0};
    for (size_t i = 0; i < MAREY__COUNT_OF(values) && i < e->numbers[1]; i++)
        if (!marey__samples_take(e, &values[i]))
            return false;
    if (e->numbers[0] == 0) {
        memcpy(&r->source->counts, values, sizeof values);
        return true;
    }
    if (e->numbers[0] > r->source->processes.n)
        return false;
    const size_t n = (size_t)e->numbers[0];
    if (!marey__extend(&r->counts, &r->n_counts, &r->counts_cap, n, sizeof *r->counts)) {
        r->taker.failed = true;
        return false;
    }
    memcpy(&r->counts[n - 1], values, sizeof values);
    return true;
}

static bool take_entry(void *ctx, struct marey__payload_entry *e)
{
    struct reading *const r = ctx;
    switch (e->tag) {
    case 'M':
        return take_process(r, e);
    case 'T':
        return take_thread(r, e);
    case 'F':
        return take_function(r, e);
    case 'L':
        return take_locations(r, e);
    case 'K':
        return take_stacks(r, e);
    case 'O':
        return take_counts(r, e);
    default:
        return true; /* rounds, which are read later */
    }
}

/* ---- samplers ---- */

/* The value of KEY in lines KEY=VALUE; "" if missing. */
static void value_of(const char *lines, const char *key, char *to, size_t size)
{
    const size_t key_len = strlen(key);
    to[0] = '\0';
    for (size_t len; lines[0] != '\0'; lines += len + (lines[len] == '\n')) {
        len = strcspn(lines, "\n");
        if (len > key_len && memcmp(lines, key, key_len) == 0 && lines[key_len] == '=')
            snprintf(to, size, "%.*s", (int)(len - key_len - 1), lines + key_len + 1);
    }
}

static void add_counts(marey_samples *samples, uint32_t process,
                       const struct marey_samples_counts *more)
{
    struct marey_samples_counts sum = marey_samples_get_counts(samples, process);
    uint64_t values[sizeof sum / sizeof(uint64_t)], added[MAREY__COUNT_OF(values)];
    const uint64_t longest = MAREY__MAX(sum.stop_max_ns, more->stop_max_ns);
    memcpy(values, &sum, sizeof sum);
    memcpy(added, more, sizeof *more);
    for (size_t i = 0; i < MAREY__COUNT_OF(values); i++)
        values[i] += added[i];
    memcpy(&sum, values, sizeof sum);
    sum.stop_max_ns = longest;
    marey__samples_set_counts(samples, process, &sum);
}

static marey_status read_source(struct marey__samples_set *set, marey_recording *recording, size_t log)
{
    MAREY__TRY_MEMORY(
        marey__grow(&set->sources, &set->sources_cap, set->n_sources + 1, sizeof *set->sources));
    struct marey__samples_source *const source = &set->sources[set->n_sources++];
    *source = (struct marey__samples_source){.recording = recording, .log = log};
    /* Compressed at most 512:1, and at least two bytes per definition. */
    const uint64_t most = 4096 + marey__recording_log_size(recording, log) * 256;
    struct reading r = {.set = set,
                        .source = source,
                        .log = marey_recording_process(recording, log),
                        .max_number = MAREY__MIN(most, (uint64_t)MAX_NUMBER)};
    char rate[32];
    value_of(r.log->sampling, "rate", rate, sizeof rate);
    value_of(r.log->sampling, "strategy", source->strategy, sizeof source->strategy);
    source->rate_hz = strtod(rate, NULL);
    if (!(source->rate_hz > 0 && source->rate_hz < 1e9))
        source->rate_hz = 0;
    r.taker = (struct marey__payload_taker){.take = take_entry, .ctx = &r};
    const marey_status status =
        marey__recording_take_payload(recording, log, MAREY__PAYLOAD_SAMPLES, &r.taker);
    for (size_t i = 0; status == MAREY_OK && i < r.n_counts; i++)
        add_counts(set->samples, source->processes.of[i], &r.counts[i]);
    if (status == MAREY_OK)
        add_counts(set->samples, 0, &source->counts);
    marey__free(r.counts);
    return status;
}

/* ---- identity of processes ---- */

static bool is_same_process(const struct marey_process *log, const struct marey_samples_process *p)
{
    return log->pid == p->pid && strcmp(log->host, p->host) == 0 &&
           (log->start_time == p->start_time || log->start_time == 0 || p->start_time == 0);
}

/* A process may have stopped and restarted recording: use the first of its logs, as they hardly overlap. */
static void find_log(struct marey__samples_target *target, const struct marey_samples_process *p)
{
    target->log = MAREY__NO_LOG;
    for (size_t i = 0; i < marey_recording_n_processes(target->recording); i++)
        if (is_same_process(marey_recording_process(target->recording, i), p)) {
            target->log = (uint32_t)i;
            return;
        }
}

static uint32_t find_parent(const marey_samples *samples, uint32_t child)
{
    const struct marey_samples_process *const p = marey_samples_get_process(samples, child);
    for (uint32_t i = 1; i <= marey_samples_n_processes(samples); i++) {
        const struct marey_samples_process *const q = marey_samples_get_process(samples, i);
        if (i != child && q->pid == p->ppid && q->start_time <= p->start_time &&
            strcmp(q->host, p->host) == 0)
            return i;
    }
    return 0;
}

static marey_status find_targets(struct marey__samples_set *set, marey_recording *first)
{
    const uint32_t n = marey_samples_n_processes(set->samples);
    set->targets = marey__calloc((size_t)n + 1, sizeof *set->targets);
    MAREY__TRY_MEMORY(set->targets != NULL);
    for (uint32_t i = 0; i <= n; i++)
        set->targets[i].log =
            MAREY__NO_LOG; /* a damaged log may have assigned its number to another process */
    /* Files of other samplers are complete jobs: nothing else describes their processes. */
    for (uint32_t i = 1; set->n_sources == 0 && i <= n; i++) {
        set->targets[i] = (struct marey__samples_target){.recording = first,
                                                         .parent = find_parent(set->samples, i)};
        find_log(&set->targets[i], marey_samples_get_process(set->samples, i));
    }
    for (size_t i = 0; i < set->n_sources; i++)
        for (size_t k = 0; k < set->sources[i].processes.n; k++) {
            const uint32_t process = set->sources[i].processes.of[k];
            struct marey__samples_target *const target = &set->targets[process];
            *target = (struct marey__samples_target){.recording = set->sources[i].recording,
                                                     .source = (uint32_t)i,
                                                     .parent = find_parent(set->samples, process)};
            if (process != 0)
                find_log(target, marey_samples_get_process(set->samples, process));
        }
    return MAREY_OK;
}

void marey__samples_fini(struct marey__samples_set *set)
{
    for (size_t i = 0; i < set->n_sources; i++) {
        MAREY__FREE_ALL(set->sources[i].processes.of, set->sources[i].threads.of,
                        set->sources[i].functions.of, set->sources[i].locations.of,
                        set->sources[i].stacks.of);
    }
    MAREY__FREE_ALL(set->sources, set->targets, set->imported);
    marey_samples_destroy(set->samples);
    *set = (struct marey__samples_set){0};
}

marey_status marey__samples_open(struct marey__samples_set *set, marey_recording *const *recordings,
                                 size_t n)
{
    *set = (struct marey__samples_set){.samples = marey__samples_create()};
    marey_status status = set->samples != NULL ? MAREY_OK : marey__no_memory();
    for (size_t r = 0; r < n && status == MAREY_OK; r++)
        for (size_t i = 0; i < marey_recording_n_logs(recordings[r]) && status == MAREY_OK; i++)
            if (marey__recording_has_payload(recordings[r], i, MAREY__PAYLOAD_SAMPLES))
                status = read_source(set, recordings[r], i);
    if (status == MAREY_OK && set->n_sources == 0)
        status = marey__samples_take_imports(set, recordings, n);
    if (status == MAREY_OK)
        status = find_targets(set, recordings[0]);
    if (status != MAREY_OK)
        marey__samples_fini(set);
    return status;
}

bool marey__samples_are_there(marey_recording *const *recordings, size_t n)
{
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < marey_recording_n_logs(recordings[r]); i++)
            if (marey__recording_has_payload(recordings[r], i, MAREY__PAYLOAD_SAMPLES))
                return 1;
    return 0;
}
