/* Live data of a sampler: collects each round, makes tables on request, and records when something last changed. */
#include <errno.h>
#include <math.h>

#include "sampler/loop/internal.h"

#define SECOND_NS UINT64_C(1000000000)
#define WINDOW_S 5.0
#define MOST_WINDOW_S 3600.0
#define GONE_NS (2 * SECOND_NS) /* not seen for that long: ended */
#define BUSY_SHARE 0.02         /* of a CPU core: heartbeat threads of libraries stay below it */

/* ---- one round ---- */

static bool bucket_add(struct marey__live_bucket *bucket, const struct marey_samples_seen *seen,
                       uint64_t weight_ns)
{
    const uint64_t key = marey__pair_key(seen->thread, seen->stack);
    const uint32_t number =
        MAREY__MAP_NUMBER(&bucket->map, bucket->sums, bucket->n, bucket->cap, key);
    if (number == 0)
        return false;
    struct marey__live_sum *sum = &bucket->sums[number - 1];
    sum->wall_ns += weight_ns;
    sum->cpu_ns += (seen->flags & MAREY_SAMPLE_OFF_CPU) == 0 ? weight_ns : 0;
    sum->gil_ns += (seen->flags & MAREY_SAMPLE_GIL) != 0 ? weight_ns : 0;
    sum->gc_ns += (seen->flags & MAREY_SAMPLE_GC) != 0 ? weight_ns : 0;
    return true;
}

/* The bucket for `now_ns`. Empties buckets older than the window. */
static struct marey__live_bucket *bucket_at(struct marey_live *live, uint64_t now_ns)
{
    const uint64_t width_ns = live->window_ns / MAREY__LIVE_BUCKETS;
    struct marey__live_bucket *newest = &live->buckets[live->newest];
    if (live->first_ns == 0)
        newest->begin_ns = live->first_ns = now_ns;
    for (int i = 0; i < MAREY__LIVE_BUCKETS && now_ns >= newest->begin_ns + width_ns; i++) {
        const uint64_t begin_ns = newest->begin_ns + width_ns;
        live->newest = (live->newest + 1) % MAREY__LIVE_BUCKETS;
        newest = &live->buckets[live->newest];
        marey__key_map_fini(&newest->map);
        newest->n = 0;
        newest->begin_ns = begin_ns;
    }
    if (now_ns >= newest->begin_ns + width_ns) /* no rounds for longer than the window */
        newest->begin_ns = now_ns;
    return newest;
}

/* The entry of `number`, zeroed if it is new; NULL on out of memory. */
static void *entry_of(void *array, size_t *n, size_t *cap, uint32_t number, size_t size)
{
    char *entries;
    if (!marey__extend(array, n, cap, (size_t)number + 1, size))
        return NULL;
    memcpy(&entries, array, sizeof entries);
    return entries + number * size;
}

static struct marey__live_process *process_of(struct marey_live *live, uint32_t number)
{
    return entry_of(&live->processes, &live->n_processes, &live->processes_cap, number,
                    sizeof *live->processes);
}

/* True if its location changed. */
static bool put_thread(struct marey_live *live, const marey_samples *samples,
                       const struct marey_samples_round *round, const struct marey_samples_seen *seen)
{
    struct marey__live_thread *thread = entry_of(
        &live->threads, &live->n_threads, &live->threads_cap, seen->thread, sizeof *live->threads);
    if (thread == NULL)
        return false;
    const bool has_moved = thread->process == 0 || thread->stack != seen->stack;
    if (thread->process == 0)
        thread->is_main = marey_samples_get_thread(samples, seen->thread)->is_main != 0;
    thread->process = round->process;
    thread->stack = seen->stack;
    thread->flags = seen->flags;
    thread->wait = seen->wait;
    thread->seen_ns = round->at_ns;
    return has_moved;
}

/* CPU time of the process; 0 once it has ended. */
static uint64_t cpu_used_ns(pid_t pid)
{
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        return 0;
    return (uint64_t)used.tv_sec * SECOND_NS + (uint64_t)used.tv_nsec;
}

static void look_at_clock(struct marey__live_process *process, uint64_t now_ns)
{
    if (process->cpu_at != 0 && now_ns < process->cpu_at + SECOND_NS)
        return;
    const uint64_t used_ns = cpu_used_ns(process->pid);
    const double share = (double)(used_ns - MAREY__MIN(process->cpu_used_ns, used_ns)) /
                         (double)(now_ns - process->cpu_at);
    if (process->cpu_at == 0 || share >= BUSY_SHARE)
        process->cpu_ns = now_ns;
    process->cpu_used_ns = used_ns;
    process->cpu_at = now_ns;
}

/* The time that a round represents. */
static uint64_t weight_of(struct marey_live *live, const struct marey_samples_round *round)
{
    const struct marey__live_process *process = process_of(live, round->process);
    if (round->weight_ns != 0 || process == NULL || process->seen_ns == 0)
        return round->weight_ns;
    return round->at_ns - MAREY__MIN(process->seen_ns, round->at_ns);
}

static void put_process(struct marey_live *live, const marey_samples *samples,
                        const struct marey_samples_round *round, bool has_moved)
{
    struct marey__live_process *process = process_of(live, round->process);
    if (process == NULL)
        return;
    if (process->seen_ns == 0)
        process->pid = (pid_t)marey_samples_get_process(samples, round->process)->pid;
    if (has_moved || process->seen_ns == 0 || process->n_threads != round->n_seen)
        process->stack_ns = round->at_ns;
    process->seen_ns = round->at_ns;
    process->n_threads = round->n_seen;
    look_at_clock(process, round->at_ns);
}

void marey__live_round(void *ctx, const marey_samples *samples,
                       const struct marey_samples_round *round)
{
    struct marey_live *live = ctx;
    bool has_moved = false;
    MAREY__HOLD(&live->lock);
    struct marey__live_bucket *bucket = bucket_at(live, round->at_ns);
    const uint64_t weight_ns = weight_of(live, round);
    live->last_ns = MAREY__MAX(live->last_ns, round->at_ns);
    for (size_t i = 0; i < round->n_seen; i++) {
        has_moved |= put_thread(live, samples, round, &round->seen[i]);
        live->n_lost += !bucket_add(bucket, &round->seen[i], weight_ns);
    }
    put_process(live, samples, round, has_moved);
    if (live->is_wanted) {
        live->table = marey__live_make(live, samples);
        live->is_wanted = false;
        pthread_cond_signal(&live->made);
    }
}

/* ---- a view ---- */

marey_status marey_live_create(double window_s, marey_live **out)
{
    pthread_condattr_t monotonic;
    if (!isfinite(window_s) || window_s < 0 || window_s > MOST_WINDOW_S)
        return marey__fail(MAREY_EINVAL, "a view is of 1 to %.0f seconds, not %g", MOST_WINDOW_S,
                           window_s);
    struct marey_live *live = marey__calloc(1, sizeof *live);
    MAREY__TRY_MEMORY(live != NULL);
    live->window_ns = (uint64_t)((window_s > 0 ? MAREY__MAX(window_s, 1) : WINDOW_S) * 1e9);
    pthread_mutex_init(&live->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&live->made, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *out = live;
    return MAREY_OK;
}

void marey_live_destroy(marey_live *live)
{
    if (live == NULL)
        return;
    for (size_t i = 0; i < MAREY__LIVE_BUCKETS; i++) {
        marey__free(live->buckets[i].sums);
        marey__key_map_fini(&live->buckets[i].map);
    }
    MAREY__FREE_ALL(live->threads, live->processes);
    pthread_cond_destroy(&live->made);
    pthread_mutex_destroy(&live->lock);
    marey__free(live);
}

void marey_live_attach(marey_live *live, marey_sampler *sampler)
{
    marey_sampler_on_round(sampler, marey__live_round, live);
}

/* ---- queries ---- */

bool marey__live_is_recent(const struct marey_live *live, uint64_t seen_ns)
{
    return seen_ns != 0 && seen_ns + GONE_NS > live->last_ns;
}

/* True once it is ready. Caller holds the lock. */
static bool wait_for_table(struct marey_live *live, uint32_t wait_ms)
{
    const uint64_t until_ns = marey__clock_ns(CLOCK_MONOTONIC) + wait_ms * UINT64_C(1000000);
    const struct timespec until = {.tv_sec = (time_t)(until_ns / SECOND_NS),
                                   .tv_nsec = (long)(until_ns % SECOND_NS)};
    int error = 0;
    while (live->is_wanted && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&live->made, &live->lock, &until);
    const bool is_made = !live->is_wanted;
    live->is_wanted = false;
    return is_made;
}

marey_status marey_live_table(marey_live *live, enum marey_live_by by, unsigned flags,
                              uint32_t wait_ms, marey_table **out)
{
    pthread_mutex_lock(&live->lock);
    live->by = by;
    live->flags = flags;
    live->is_wanted = true;
    const bool is_made = wait_for_table(live, wait_ms);
    marey_table *table = is_made ? live->table : NULL;
    live->table = NULL;
    pthread_mutex_unlock(&live->lock);
    if (!is_made)
        return marey__fail(MAREY_ESTATE, "no process was sampled for %u ms", wait_ms);
    MAREY__TRY_MEMORY(table != NULL);
    *out = table;
    return MAREY_OK;
}

/* When anything last changed; for an ended process, when it was last seen. */
static uint64_t last_move_ns(const struct marey_live *live, bool ignore_cpu)
{
    uint64_t moved_ns = live->first_ns;
    for (size_t i = 0; i < live->n_processes; i++) {
        const struct marey__live_process *process = &live->processes[i];
        moved_ns = MAREY__MAX(moved_ns, process->stack_ns);
        if (!ignore_cpu)
            moved_ns = MAREY__MAX(moved_ns, process->cpu_ns);
        if (process->seen_ns != 0 && !marey__live_is_recent(live, process->seen_ns))
            moved_ns = MAREY__MAX(moved_ns, process->seen_ns);
    }
    return moved_ns;
}

static void add_up(const struct marey_live *live, struct marey_live_state *state)
{
    uint64_t oldest_ns = live->last_ns;
    for (size_t b = 0; b < MAREY__LIVE_BUCKETS; b++) {
        const struct marey__live_bucket *bucket = &live->buckets[b];
        oldest_ns = bucket->n != 0 ? MAREY__MIN(oldest_ns, bucket->begin_ns) : oldest_ns;
        for (size_t i = 0; i < bucket->n; i++) {
            state->cpu += (double)bucket->sums[i].cpu_ns;
            state->gil += (double)bucket->sums[i].gil_ns;
            state->gc += (double)bucket->sums[i].gc_ns;
        }
    }
    state->seen_ns = live->last_ns - oldest_ns;
    const double seen_ns = state->seen_ns != 0 ? (double)state->seen_ns : 1;
    state->cpu = state->seen_ns != 0 ? state->cpu / seen_ns : 0;
    state->gil = state->seen_ns != 0 ? state->gil / seen_ns : 0;
    state->gc = state->seen_ns != 0 ? state->gc / seen_ns : 0;
}

size_t marey_live_pids(marey_live *live, pid_t *pids, size_t cap)
{
    size_t n = 0;
    MAREY__HOLD(&live->lock);
    for (size_t i = 0; i < live->n_processes; i++) {
        if (!marey__live_is_recent(live, live->processes[i].seen_ns))
            continue;
        if (n < cap)
            pids[n] = live->processes[i].pid;
        n++;
    }
    return n;
}

void marey_live_state_get(marey_live *live, int ignore_cpu, struct marey_live_state *out, size_t size)
{
    struct marey_live_state state = {0};
    pthread_mutex_lock(&live->lock);
    for (size_t i = 0; i < live->n_processes; i++)
        state.n_processes += marey__live_is_recent(live, live->processes[i].seen_ns);
    for (size_t i = 0; i < live->n_threads; i++)
        state.n_threads += marey__live_is_recent(live, live->threads[i].seen_ns);
    add_up(live, &state);
    state.still_ns = live->last_ns - MAREY__MIN(last_move_ns(live, ignore_cpu != 0), live->last_ns);
    state.n_lost = live->n_lost;
    pthread_mutex_unlock(&live->lock);
    memcpy(out, &state, MAREY__MIN(size, sizeof state));
}
