/* On and off, by the program and by options; forks and the end of the process. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cuda/cuda_internal.h"
#include "dump/dump_internal.h"
#include "switchboard/switchboard_internal.h"

static struct kymo__dump *const dump = &kymo__dump;

static pthread_mutex_t switch_lock = PTHREAD_MUTEX_INITIALIZER; /* one switches at a time */

static bool is_by_options; /* options switched it on, and not the program. Guarded by `switch_lock` */

static const uint64_t memory_default = UINT64_C(1) << 30;
static const uint64_t exit_patience_ns = 10000000000, fork_patience_ns = 10000000;

static kymo_status check_options(const struct kymo_dump_options *o)
{
    if ((unsigned)o->layout > KYMO_DUMP_LAYOUT_ACCVLAB || (unsigned)o->mode > KYMO_DUMP_DIGESTS ||
        (unsigned)o->policy > KYMO_DUMP_FALL_TO_STATS)
        return kymo__fail(KYMO_EINVAL,
                          "layout %d, mode %d or policy %d is none of those kymo/dump.h names",
                          (int)o->layout, (int)o->mode, (int)o->policy);
    if (o->layout == KYMO_DUMP_LAYOUT_ACCVLAB && o->mode != KYMO_DUMP_FULL)
        return kymo__fail(KYMO_EINVAL, "layout accvlab has no place for statistics or digests; "
                                       "choose layout kymo for them");
    if (o->mode == KYMO_DUMP_DIGESTS) { /* a build without them would write nothing to compare */
        const int64_t none = 0;
        const struct kymo_tensor empty = {.dtype = KYMO_U8, .rank = 1, .sizes = &none};
        struct kymo_digest digest;
        KYMO_TRY(kymo_tensor_digest(&empty, &digest, NULL));
    }
    if (o->last != 0 && o->last < o->first)
        return kymo__fail(KYMO_EINVAL,
                          "steps from %" PRIu64 " to %" PRIu64 " are none: last is before first",
                          o->first, o->last);
    return KYMO_OK;
}

/* A path that stays right when the program changes its directory. */
static kymo_status resolve(const char *dir, char *out, size_t size)
{
    char cwd[PATH_MAX];
    int n;
    if (dir == NULL && !kymo_enabled())
        return kymo__fail(KYMO_EINVAL,
                          "dumps need a directory while no recording is open: name one "
                          "(dump.dir=DIR), or start a recording first");
    if (dir != NULL && dir[0] == '\0')
        return kymo__fail(KYMO_EINVAL, "the directory for dumps has an empty name");
    if (dir == NULL)
        n = snprintf(out, size, "%s/dumps", kymo_recording_path());
    else if (dir[0] == '/')
        n = snprintf(out, size, "%s", dir);
    else if (getcwd(cwd, sizeof cwd) == NULL)
        return kymo__fail_errno("find the current directory, for dumps in %s", dir);
    else
        n = snprintf(out, size, "%s/%s", cwd, dir);
    return n < (int)size
               ? KYMO_OK
               : kymo__fail(KYMO_EINVAL, "the path of the dump is too long: %.100s...", dir);
}

static void fill_defaults(struct kymo_dump_options *o)
{
    o->dir = dump->dir;
    o->memory_bytes = o->memory_bytes != 0 ? o->memory_bytes : memory_default;
    o->n_writers = KYMO__MIN(o->n_writers != 0 ? o->n_writers : 1, (uint32_t)KYMO__DUMP_MAX_WRITERS);
    o->every = o->every != 0 ? o->every : 1;
}

static void name_run(void)
{
    struct kymo__settings s = {.rank = 0, .world_size = 0, .local_rank = 0};
    kymo__identity_fill(&s);
    memcpy(dump->run, s.run_id, sizeof dump->run);
    kymo__identity_host(dump->host, sizeof dump->host);
}

/* What options by name have said; they win over what the program asks for. Guarded by `switch_lock`. */
static struct kymo__dump_settings given;

static void overlay(struct kymo_dump_options *o)
{
    const uint32_t g = given.given;
    o->dir = g & KYMO__GIVEN_DIR ? given.dir : o->dir;
    o->layout = g & KYMO__GIVEN_LAYOUT ? (enum kymo_dump_layout)given.layout : o->layout;
    o->mode = g & KYMO__GIVEN_MODE ? (enum kymo_dump_mode)given.mode : o->mode;
    o->policy = g & KYMO__GIVEN_POLICY ? (enum kymo_dump_policy)given.policy : o->policy;
    o->memory_bytes = g & KYMO__GIVEN_MEMORY ? given.memory_bytes : o->memory_bytes;
    o->disk_bytes = g & KYMO__GIVEN_DISK ? given.disk_bytes : o->disk_bytes;
    o->first = g & KYMO__GIVEN_FIRST ? given.first : o->first;
    o->last = g & KYMO__GIVEN_LAST ? given.last : o->last;
    o->every = g & KYMO__GIVEN_EVERY ? given.every : o->every;
    o->flight_steps = g & KYMO__GIVEN_FLIGHT ? given.flight_steps : o->flight_steps;
    o->durable = g & KYMO__GIVEN_DURABLE ? given.durable : o->durable;
}

/* Everything but the switch. */
static kymo_status prepare(const struct kymo_dump_options *options)
{
    char dir[PATH_MAX];
    struct kymo_dump_options o = *options;
    overlay(&o);
    KYMO_TRY(check_options(&o));
    KYMO_TRY(resolve(o.dir, dir, sizeof dir));
    pthread_mutex_lock(&dump->lock);
    memcpy(dump->dir, dir, sizeof dir);
    fill_defaults(&o);
    dump->options = o;
    dump->counts = (struct kymo_dump_counts){0};
    dump->failure[0] = '\0';
    dump->n_disk_bytes = 0;
    clock_gettime(CLOCK_REALTIME_COARSE, &dump->began);
    kymo__dump_set_step(0);
    if (dump->run[0] == '\0')
        name_run();
    pthread_mutex_unlock(&dump->lock);
    kymo__dump_memory_keep(o.memory_bytes);
    return KYMO_OK;
}

/* A step in which a trigger came is wanted even if it does not end. */
static void write_triggered(void)
{
    int rank, world;
    kymo_rank_get(&rank, &world);
    pthread_mutex_lock(&dump->lock);
    struct kymo__dump_step *const step =
        dump->reason != NULL && dump->now != NULL ? kymo__dump_end_step(rank, world) : NULL;
    const bool has_thread = step == NULL || kymo__dump_queue(step);
    kymo__free(dump->reason);
    dump->reason = NULL;
    pthread_mutex_unlock(&dump->lock);
    if (!has_thread)
        kymo__dump_write_here();
}

/* Off, within `patience_ns` of the last thing that moved; 0: however long it takes. */
static kymo_status disable(uint64_t patience_ns)
{
    if (!kymo_dump_is_enabled())
        return KYMO_OK;
    __atomic_fetch_and(&kymo_switch[0], ~(uint32_t)KYMO_ON_DUMP, __ATOMIC_RELEASE);
    write_triggered();
    kymo_dump_clear(KYMO_DUMP_TENSORS);
    kymo_dump_clear(KYMO_DUMP_GRADIENTS);
    const bool is_empty = kymo__dump_drain(patience_ns);
    pthread_mutex_lock(&dump->lock);
    const kymo_status st = kymo__dump_take_failure();
    struct kymo__dump_step *const left = dump->now;
    dump->now = NULL;
    dump->seq = 0;
    if (is_empty)
        kymo__dump_end_threads(exit_patience_ns);
    pthread_mutex_unlock(&dump->lock);
    kymo__dump_step_destroy(left);
    is_by_options = false;
    if (!is_empty)
        return kymo__fail(
            KYMO_EIO, "steps of the dump in %s are not written: the disk does not move", dump->dir);
    kymo__dump_flight_clear();
    kymo__dump_memory_keep(0);
    kymo__gpu_copy_trim();
    pthread_mutex_lock(&dump->place_lock);
    kymo__dump_unclaim(&dump->claim);
    pthread_mutex_unlock(&dump->place_lock);
    return st;
}

/*
 * The first enable of the program joins what options began, as long as no step has ended. It may name another directory
 * than the recording's; one that the options named has the last word.
 */
static bool joins(void)
{
    return is_by_options && kymo_dump_count() == 0;
}

static kymo_status switch_on(const struct kymo_dump_options *o, bool by_options)
{
    if (kymo_dump_is_enabled() && !joins())
        return kymo__fail(KYMO_ESTATE,
                          "dumping is already enabled, into %s; disable it before enabling it with "
                          "other options",
                          dump->dir);
    KYMO_TRY(prepare(o));
    if (o->dir != NULL && (given.given & KYMO__GIVEN_DIR) && strcmp(o->dir, given.dir) != 0)
        kymo__say("dumping into %s, as the options say, and not into %s", dump->dir, o->dir);
    is_by_options = by_options;
    __atomic_fetch_or(&kymo_switch[0], KYMO_ON_DUMP, __ATOMIC_RELEASE);
    return KYMO_OK;
}

kymo_status kymo_dump_enable_sized(const struct kymo_dump_options *options, size_t size)
{
    struct kymo_dump_options o = {0};
    if (options != NULL)
        memcpy(&o, options, KYMO__MIN(size, sizeof o));
    if (kymo__earlier_copy() != NULL)
        return kymo__fail(KYMO_EDUPLICATE,
                          "this copy of libkymo (%s) stays off, because %s was loaded before it",
                          kymo_library_path(), kymo__earlier_copy());
    pthread_mutex_lock(&switch_lock);
    const kymo_status st = switch_on(&o, false);
    pthread_mutex_unlock(&switch_lock);
    return st;
}

kymo_status kymo_dump_disable(void)
{
    pthread_mutex_lock(&switch_lock);
    const kymo_status st = disable(0);
    pthread_mutex_unlock(&switch_lock);
    return st;
}

/* ---- what the switchboard calls ---- */

/*
 * Options without a directory wait for one: for a recording, which may be open now, or for the program to name one. Those
 * that come while it is on count from the next enable.
 */
static void configure(const struct kymo__settings *settings)
{
    pthread_mutex_lock(&switch_lock);
    if (settings->dump.given != 0)
        given = settings->dump;
    if (given.given != 0 && !kymo_dump_is_enabled() &&
        (kymo_enabled() || (given.given & KYMO__GIVEN_DIR)) &&
        switch_on(&(struct kymo_dump_options){0}, true) != KYMO_OK)
        kymo__say("%s", kymo_last_error());
    pthread_mutex_unlock(&switch_lock);
}

static void reset(void)
{
    kymo_dump_disable();
    pthread_mutex_lock(&dump->lock);
    kymo__dump_set_step(0);
    dump->dir[0] = '\0';
    dump->counts = (struct kymo_dump_counts){0};
    pthread_mutex_unlock(&dump->lock);
    pthread_mutex_lock(&switch_lock);
    given.given = 0;
    pthread_mutex_unlock(&switch_lock);
}

static bool has_switch_lock; /* the thread that forks; stored under dump.lock */

/*
 * Threads that have nothing to do end, so that the child has none to miss and Python none to warn of. A disable may hold its
 * lock for as long as the disk takes: the fork does not wait for that.
 */
static void before_fork(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)fork_patience_ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    const bool has_lock = pthread_mutex_timedlock(&switch_lock, &until) == 0;
    pthread_mutex_lock(&dump->place_lock);
    pthread_mutex_lock(&dump->lock);
    has_switch_lock = has_lock;
    kymo__dump_end_threads(fork_patience_ns);
    kymo__dump_memory_before_fork();
}

/*
 * The child has none of the parent's threads, and what it had added is the parent's to write. It is left where it is: data
 * that were handed over are not ours to give back here.
 */
static void become_child(void)
{
    pthread_cond_init(&dump->work, NULL);
    pthread_cond_init(&dump->done, NULL);
    pthread_cond_init(&dump->room, NULL);
    dump->n_blocked = 0;
    pthread_cond_init(&dump->gpu_work, NULL);
    pthread_cond_init(&dump->measure_work, NULL);
    kymo__dump_measure_after_fork();
    kymo__dump_gpu_after_fork();
    kymo__dump_flight_after_fork();
    dump->reason = NULL;
    dump->now = dump->first = dump->last = NULL;
    dump->n_writing = dump->n_threads = dump->n_writers = dump->n_idle = dump->n_visitors = 0;
    dump->n_used_bytes = dump->seq = dump->n_disk_bytes = 0;
    dump->counts = (struct kymo_dump_counts){0};
    dump->failure[0] = '\0';
    kymo__dump_claim_forget(&dump->claim);
}

static void after_fork(bool in_child)
{
    kymo__dump_memory_after_fork();
    if (in_child)
        become_child();
    pthread_mutex_unlock(&dump->lock);
    pthread_mutex_unlock(&dump->place_lock);
    if (has_switch_lock)
        pthread_mutex_unlock(&switch_lock);
    else if (in_child)
        pthread_mutex_init(&switch_lock, NULL);
}

__attribute__((constructor(KYMO__INSTRUMENT_LOAD + 2))) static void load(void)
{
    static const struct kymo__instrument instrument = {
        .configure = configure, .reset = reset, .before_fork = before_fork, .after_fork = after_fork};
    kymo__instrument_register(&instrument);
}

/* What was flushed is written at the end of the process as well, while something moves. */
__attribute__((destructor)) static void unload(void)
{
    if (kymo_dump_is_enabled() && disable(exit_patience_ns) != KYMO_OK)
        kymo__say("%s", kymo_last_error());
}
