/*
 * Reads CALLS blocks into the call tree. Numbers in a log are valid for one profile of one process; here they are
 * mapped to the tree's. Ticks are added up and converted to nanoseconds once, at the end of a process.
 *
 * All numbers are untrusted. An invalid one ends its block; earlier entries of the block are kept, because later blocks
 * may depend on its definitions.
 */
#include <math.h>
#include <string.h>

#include "analyze/calls/internal.h"
#include "analyze/samples/internal.h"
#include "read/internal.h"

enum { MAX_PROFILES = 1 << 12, MAX_NUMBER = 1 << 26 };

/* The meaning of a number in the log, plus one; 0: not defined. */
struct number {
    uint32_t is;
};

struct local_node {
    uint32_t is;       /* the node of the tree; 0: not defined */
    uint32_t function; /* for later entries about it */
    uint64_t calls, resumes, self, total, max;
};

struct profile {
    uint64_t number;
    double ns_per_tick;
    uint64_t cost_ps, other_paths, widened;
    struct marey__sparse functions, signatures, threads; /* struct number */
    struct marey__sparse nodes;                          /* struct local_node */
    uint64_t last_node;
};

struct reading {
    struct marey__calls *calls;
    const struct marey_process *process;
    uint64_t process_key;
    uint64_t max_number; /* limit for any number in this log: definitions take bytes */
    double ns_per_tick;
    struct profile *profiles;
    size_t n_profiles, profiles_cap;
    struct profile *now; /* the profile of the current entries; NULL: not yet known */
    struct marey__payload_taker taker;
};

/* ---- numbers ---- */

/* The slot of number `number`, which must be new; NULL on out of memory, or if it is out of range. */
static void *define(struct reading *r, struct marey__sparse *in, uint64_t number, size_t size)
{
    if (number == 0 || number > r->max_number)
        return NULL;
    void *const at = marey__sparse_make(in, (size_t)number, size);
    r->taker.failed |= at == NULL;
    return at;
}

/* MAREY__NO_CALL (out of memory) becomes 0: not defined. */
static bool set_number(struct reading *r, struct number *at, uint32_t is)
{
    r->taker.failed |= is == MAREY__NO_CALL;
    at->is = is + 1;
    return !r->taker.failed;
}

/* The meaning of a number, `none` for 0; MAREY__NO_CALL if not defined. */
static uint32_t look_up(const struct reading *r, const struct marey__sparse *in, uint64_t number,
                        uint32_t none)
{
    if (number == 0)
        return none;
    const struct number *const found =
        number <= r->max_number ? marey__sparse_get(in, (size_t)number, sizeof *found) : NULL;
    return found != NULL && found->is != 0 ? found->is - 1 : MAREY__NO_CALL;
}

static struct local_node *node_of(const struct reading *r, uint64_t number)
{
    struct local_node *const node =
        number != 0 && number <= r->max_number
            ? marey__sparse_get(&r->now->nodes, (size_t)number, sizeof *node)
            : NULL;
    return node != NULL && node->is != 0 ? node : NULL;
}

/* ---- entries; these return false for invalid ones, or on out of memory ---- */

static bool take_profile(struct reading *r, const struct marey__payload_entry *e)
{
    const double ns_per_tick = e->real == 0 ? r->ns_per_tick : e->real;
    r->now = NULL;
    if (!isfinite(ns_per_tick) || ns_per_tick <= 0 || ns_per_tick > 1e15)
        return false;
    for (size_t i = 0; r->now == NULL && i < r->n_profiles; i++)
        if (r->profiles[i].number == e->numbers[0])
            r->now = &r->profiles[i];
    if (r->now == NULL) {
        if (r->n_profiles >= MAX_PROFILES)
            return false;
        if (!marey__grow(&r->profiles, &r->profiles_cap, r->n_profiles + 1, sizeof *r->profiles)) {
            r->taker.failed = true;
            return false;
        }
        r->now = &r->profiles[r->n_profiles++];
        *r->now = (struct profile){.number = e->numbers[0]};
    }
    r->now->ns_per_tick = ns_per_tick;
    r->now->cost_ps = MAREY__MIN(e->numbers[2], UINT64_C(1) << 50);
    r->calls->flags |= (unsigned)(e->numbers[1] & 0xff);
    return true;
}

static bool take_function(struct reading *r, const struct marey__payload_entry *e)
{
    struct number *const at = define(r, &r->now->functions, e->numbers[0], sizeof *at);
    const struct marey__call_function function = {
        .kind = (uint8_t)MAREY__MIN(e->numbers[1], UINT64_C(255)),
        .line = (uint32_t)MAREY__MIN(e->numbers[2], (uint64_t)UINT32_MAX),
        .name = marey__payload_text(&r->taker, e, 0),
        .qualified = marey__payload_text(&r->taker, e, 1),
        .file = marey__payload_text(&r->taker, e, 2),
        .module = marey__payload_text(&r->taker, e, 3),
    };
    return at != NULL && !r->taker.failed &&
           set_number(r, at, marey__calls_function(r->calls, &function));
}

static bool take_signature(struct reading *r, const struct marey__payload_entry *e)
{
    const uint32_t function = look_up(r, &r->now->functions, e->numbers[1], MAREY__NO_CALL);
    if (function == MAREY__NO_CALL)
        return false;
    struct number *const at = define(r, &r->now->signatures, e->numbers[0], sizeof *at);
    const struct marey__call_signature signature = {.function = function,
                                                    .elements = (double)e->numbers[2],
                                                    .text = marey__payload_text(&r->taker, e, 0)};
    return at != NULL && !r->taker.failed &&
           set_number(r, at, marey__calls_signature(r->calls, &signature));
}

static bool take_thread(struct reading *r, const struct marey__payload_entry *e)
{
    struct number *const at = define(r, &r->now->threads, e->numbers[0], sizeof *at);
    const struct marey__call_thread thread = {.pid = r->process->pid,
                                              .rank = r->process->rank,
                                              .tid = (int64_t)e->numbers[1],
                                              .name = marey__payload_text(&r->taker, e, 0)};
    return at != NULL && !r->taker.failed &&
           set_number(r, at, marey__calls_thread(r->calls, &thread, r->process_key));
}

static bool take_node(struct reading *r, const struct marey__payload_entry *e)
{
    const uint32_t thread = look_up(r, &r->now->threads, e->numbers[1], MAREY__NO_CALL),
                   function = look_up(r, &r->now->functions, e->numbers[3], 0),
                   signature = look_up(r, &r->now->signatures, e->numbers[4], 0);
    const struct local_node *const parent = node_of(r, e->numbers[2]);
    if (thread == MAREY__NO_CALL || function == MAREY__NO_CALL || signature == MAREY__NO_CALL ||
        (signature != 0 && r->calls->signatures[signature].function != function) ||
        (parent == NULL && e->numbers[2] != 0))
        return false;
    const uint32_t around = parent != NULL ? parent->is : 0;
    struct local_node *const at = define(r, &r->now->nodes, e->numbers[0], sizeof *at);
    if (at == NULL)
        return false;
    at->is = marey__calls_node(r->calls, around, function, signature, thread);
    r->taker.failed |= at->is == 0;
    r->now->last_node = MAREY__MAX(r->now->last_node, e->numbers[0]);
    return !r->taker.failed;
}

static bool take_counts(struct reading *r, const struct marey__payload_entry *e)
{
    struct local_node *const node = node_of(r, e->numbers[0]);
    if (node == NULL)
        return false;
    node->calls += e->numbers[1];
    node->resumes += e->numbers[2];
    node->self += e->numbers[3];
    node->total += e->numbers[4];
    node->max = MAREY__MAX(node->max, e->numbers[5]);
    return true;
}

static bool take_entry(void *ctx, struct marey__payload_entry *e)
{
    struct reading *const r = ctx;
    if (e->tag == 'P')
        return take_profile(r, e);
    if (r->now == NULL || e->begins_block) /* each block names its profile */
        return false;
    switch (e->tag) {
    case 'F':
        return take_function(r, e);
    case 'S':
        return take_signature(r, e);
    case 'T':
        return take_thread(r, e);
    case 'N':
        return take_node(r, e);
    case 'C':
        return take_counts(r, e);
    default:
        r->now->other_paths = e->numbers[0];
        r->now->widened = e->numbers[1];
        return true;
    }
}

/* ---- processes ---- */

static uint64_t to_ns(uint64_t ticks, double ns_per_tick)
{
    const double ns = (double)ticks * ns_per_tick + 0.5;
    /* Limits sums from a damaged file; 2^60 ns are 36 years. */
    return ns < 0x1p60 ? (uint64_t)ns : UINT64_C(1) << 60;
}

static void add_profile(struct marey__calls *calls, const struct profile *profile, double *cost_calls)
{
    uint64_t n_calls = 0;
    for (uint64_t i = 1; i <= profile->last_node; i++) {
        const struct local_node *const node =
            marey__sparse_get(&profile->nodes, (size_t)i, sizeof *node);
        if (node == NULL || node->is == 0)
            continue;
        const struct marey__call_node sums = {
            .calls = node->calls,
            .resumes = node->resumes,
            .self_ns = to_ns(node->self, profile->ns_per_tick),
            .total_ns = to_ns(node->total, profile->ns_per_tick),
            .max_ns = to_ns(node->max, profile->ns_per_tick),
        };
        marey__call_node_add(&calls->nodes[node->is], &sums);
        n_calls += node->calls;
    }
    /* A mean weighted by calls, updated for each profile. */
    const double all = *cost_calls + (double)n_calls;
    if (all > 0)
        calls->cost_ps = (uint64_t)(((double)calls->cost_ps * *cost_calls +
                                     (double)profile->cost_ps * (double)n_calls) /
                                    all);
    *cost_calls = all;
    calls->other_paths += profile->other_paths;
    calls->widened += profile->widened;
    calls->n_profiles++;
}

static void profile_fini(struct profile *profile)
{
    marey__sparse_fini(&profile->functions);
    marey__sparse_fini(&profile->signatures);
    marey__sparse_fini(&profile->threads);
    marey__sparse_fini(&profile->nodes);
}

/* The tree's node for `node` of the process's profile `profile`; 0: none. */
static uint32_t find_node(struct reading *r, uint64_t profile, uint64_t node)
{
    for (size_t i = 0; i < r->n_profiles; i++)
        if (r->profiles[i].number == profile) {
            r->now = &r->profiles[i];
            const struct local_node *const found = node_of(r, node);
            return found != NULL ? found->is : 0;
        }
    return 0;
}

/*
 * ---- GPU time ----
 *
 * A record CALL_NODE after a LAUNCH has the profile node that launched. The work of that correlation, at any later time
 * and on any stream, counts for that node.
 */

struct launch {
    uint64_t correlation;
    uint32_t node; /* of the tree */
};

struct work {
    uint64_t correlation, ns;
};

struct gpu_reading {
    struct reading *reading;
    struct launch *launches;
    struct work *works;
    size_t n_launches, launches_cap, n_works, works_cap;
    uint64_t *last; /* by lane: correlation of the latest launch; 0: none */
};

static bool take_launch(struct gpu_reading *r, uint32_t lane, const uint64_t *words)
{
    const uint32_t type = marey_record_type_of(words[0]);
    if (type == MAREY_RECORD_LAUNCH)
        r->last[lane] = words[1];
    if (type != MAREY_RECORD_CALL_NODE || r->last[lane] == 0)
        return true;
    const uint32_t node = find_node(r->reading, words[1], words[2]);
    if (node == 0)
        return true; /* of a damaged block */
    if (!MAREY__PUSH(r->launches, r->n_launches, r->launches_cap,
                     (struct launch){r->last[lane], node}))
        return false;
    r->last[lane] = 0;
    return true;
}

static bool take_work(struct gpu_reading *r, const struct marey_batch *batch, const uint64_t *words)
{
    if (marey_record_type_of(words[0]) != MAREY_RECORD_GPU || words[3] == 0 ||
        !marey__is_work(marey_record_work_kind(words[1])))
        return true;
    return MAREY__PUSH(r->works, r->n_works, r->works_cap,
                       (struct work){words[3], marey_batch_duration_ns(batch, words[2])});
}

static marey_status visit_gpu(void *ctx, const struct marey_batch *batch)
{
    struct gpu_reading *const r = ctx;
    const bool is_stream = batch->lane->kind == MAREY_LANE_GPU;
    for (size_t i = 0; i < batch->n;) {
        const uint64_t *const words = &batch->words[i];
        const bool is_record = marey_word_kind(words[0]) == MAREY_KIND_RECORD;
        if (is_record &&
            !(is_stream ? take_work(r, batch, words) : take_launch(r, batch->lane->lane, words)))
            return marey__no_memory();
        i += is_record ? marey_record_length(words[0]) : 1;
    }
    return MAREY_OK;
}

MAREY__ORDER(by_correlation, struct launch, MAREY__UP(correlation))

static void add_up(struct gpu_reading *r, struct marey__calls *calls)
{
    if (r->n_launches == 0)
        return;
    qsort(r->launches, r->n_launches, sizeof *r->launches, by_correlation);
    for (size_t i = 0; i < r->n_works; i++) {
        const struct launch key = {.correlation = r->works[i].correlation};
        const struct launch *const found =
            bsearch(&key, r->launches, r->n_launches, sizeof *r->launches, by_correlation);
        if (found != NULL)
            calls->nodes[found->node].gpu_ns += r->works[i].ns;
    }
    calls->has_gpu = true;
}

static marey_status read_gpu(struct marey__calls *calls, marey_recording *recording,
                             struct reading *reading)
{
    const struct marey_process *const process = reading->process;
    struct gpu_reading r = {.reading = reading};
    if (!marey__has_streams(recording, process->index))
        return MAREY_OK;
    /* A recording that still grows may have lanes opened since then; their numbers are limited. */
    r.last = marey__calloc((size_t)MAREY__MAX_LANES, sizeof *r.last);
    MAREY__TRY_MEMORY(r.last != NULL);
    const marey_status status =
        marey__recording_visit_in_order(recording, process->index, visit_gpu, &r);
    if (status == MAREY_OK)
        add_up(&r, calls);
    MAREY__FREE_ALL(r.last, r.launches, r.works);
    return status;
}

static void count_end(struct marey__calls *calls, const char *end)
{
    calls->n_killed += strcmp(end, "unclosed") == 0;
    calls->n_running += strcmp(end, "running") == 0;
    calls->n_refused += strcmp(end, "write failed") == 0;
}

static marey_status read_process(struct marey__calls *calls, marey_recording *recording,
                                 size_t process, uint64_t key, double *cost_calls)
{
    const uint64_t size = marey__recording_log_size(recording, process);
    struct reading r = {.calls = calls,
                        .process = marey_recording_process(recording, process),
                        .process_key = key,
                        .ns_per_tick = marey__recording_ns_per_tick(recording, process),
                        /* compressed at most 512:1, and at least five bytes per definition */
                        .max_number = MAREY__MIN(size * 103, (uint64_t)MAX_NUMBER)};
    r.taker = (struct marey__payload_taker){.take = take_entry, .ctx = &r};
    if (!marey__recording_has_payload(recording, process, MAREY__PAYLOAD_CALLS))
        return MAREY_OK;
    marey_status status =
        marey__recording_take_payload(recording, process, MAREY__PAYLOAD_CALLS, &r.taker);
    if (status == MAREY_OK && r.n_profiles != 0)
        status = read_gpu(calls, recording, &r);
    if (r.n_profiles != 0)
        count_end(calls, r.process->end);
    for (size_t i = 0; i < r.n_profiles; i++) {
        if (status == MAREY_OK)
            add_profile(calls, &r.profiles[i], cost_calls);
        profile_fini(&r.profiles[i]);
    }
    marey__free(r.profiles);
    return status;
}

bool marey__calls_are_there(marey_recording *const *recordings, size_t n)
{
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < marey_recording_n_processes(recordings[r]); i++)
            if (marey__recording_has_payload(recordings[r], i, MAREY__PAYLOAD_CALLS))
                return true;
    return false;
}

marey_status marey__calls_read(struct marey__calls *calls, marey_recording *const *recordings,
                               size_t n)
{
    const bool from_ranges = !marey__calls_are_there(recordings, n);
    double cost_calls = 0;
    uint64_t key = 0;
    if (from_ranges && marey__samples_are_there(recordings, n))
        return marey__calls_read_samples(calls, recordings, n, NULL, false);
    MAREY__TRY_MEMORY(marey__calls_init(calls));
    /* Ranges made from another tool's samples count samples. */
    calls->from_samples = from_ranges && marey__samples_are_imported(recordings, n);
    calls->from_ranges = from_ranges && !calls->from_samples;
    marey_status status = MAREY_OK;
    for (size_t r = 0; r < n && status == MAREY_OK; r++)
        for (size_t i = 0; i < marey_recording_n_processes(recordings[r]) && status == MAREY_OK; i++)
            status = from_ranges ? marey__calls_add_ranges(calls, recordings[r], i, key++)
                                 : read_process(calls, recordings[r], i, key++, &cost_calls);
    if (status != MAREY_OK)
        marey__calls_fini(calls);
    return status;
}
