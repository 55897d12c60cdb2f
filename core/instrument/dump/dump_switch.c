/* Switching on and off, by the program and by options; forks and process exit. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "instrument/cuda/internal.h"
#include "instrument/dump/internal.h"
#include "switchboard/internal.h"

static struct marey__dump *const dump = &marey__dump;

static pthread_mutex_t switch_lock = PTHREAD_MUTEX_INITIALIZER; /* serializes switching */

static bool is_by_options; /* switched on by options rather than the program. Guarded by `switch_lock` */

static const uint64_t memory_default = UINT64_C(1) << 30;
static const uint64_t exit_patience_ns = 10000000000, fork_patience_ns = 10000000;

static marey_status check_options(const struct marey_dump_options *o)
{
    if ((unsigned)o->layout > MAREY_DUMP_LAYOUT_ACCVLAB || (unsigned)o->mode > MAREY_DUMP_DIGESTS ||
        (unsigned)o->policy > MAREY_DUMP_FALL_TO_STATS)
        return marey__fail(MAREY_EINVAL,
                           "layout %d, mode %d or policy %d is none of those marey/dump.h names",
                           (int)o->layout, (int)o->mode, (int)o->policy);
    if (o->layout == MAREY_DUMP_LAYOUT_ACCVLAB && o->mode != MAREY_DUMP_FULL)
        return marey__fail(MAREY_EINVAL, "layout accvlab has no place for statistics or digests; "
                                         "choose layout marey for them");
    if (o->mode == MAREY_DUMP_DIGESTS) { /* a build without them would write nothing to compare */
        const int64_t none = 0;
        const struct marey_tensor empty = {.dtype = MAREY_U8, .rank = 1, .sizes = &none};
        struct marey_digest digest;
        MAREY_TRY(marey_tensor_digest(&empty, &digest, NULL));
    }
    if (o->last != 0 && o->last < o->first)
        return marey__fail(MAREY_EINVAL,
                           "steps from %" PRIu64 " to %" PRIu64 " are none: last is before first",
                           o->first, o->last);
    return MAREY_OK;
}

/* An absolute path, valid after the program changes its directory. */
static marey_status resolve(const char *dir, char *out, size_t size)
{
    char cwd[PATH_MAX];
    int n;
    if (dir == NULL && !marey_enabled())
        return marey__fail(MAREY_EINVAL,
                           "dumps need a directory while no recording is open: name one "
                           "(dump.dir=DIR), or start a recording first");
    if (dir != NULL && dir[0] == '\0')
        return marey__fail(MAREY_EINVAL, "the directory for dumps has an empty name");
    if (dir == NULL)
        n = snprintf(out, size, "%s/dumps", marey_recording_path());
    else if (dir[0] == '/')
        n = snprintf(out, size, "%s", dir);
    else if (getcwd(cwd, sizeof cwd) == NULL)
        return marey__fail_errno("find the current directory, for dumps in %s", dir);
    else
        n = snprintf(out, size, "%s/%s", cwd, dir);
    return n < (int)size
               ? MAREY_OK
               : marey__fail(MAREY_EINVAL, "the path of the dump is too long: %.100s...", dir);
}

static void fill_defaults(struct marey_dump_options *o)
{
    o->dir = dump->dir;
    o->memory_bytes = o->memory_bytes != 0 ? o->memory_bytes : memory_default;
    o->n_writers =
        MAREY__MIN(o->n_writers != 0 ? o->n_writers : 1, (uint32_t)MAREY__DUMP_MAX_WRITERS);
    o->every = o->every != 0 ? o->every : 1;
}

static void name_run(void)
{
    struct marey__settings s = {.rank = 0, .world_size = 0, .local_rank = 0};
    marey__identity_fill(&s);
    memcpy(dump->run, s.run_id, sizeof dump->run);
    marey__identity_host(dump->host, sizeof dump->host);
}

/* Which options were given: these two, and from GIVEN_FIELD on one flag per field of <marey/dump.h>. */
enum { GIVEN_DIR = 1 << 0, GIVEN_DURABLE = 1 << 1, GIVEN_FIELD = 1 << 2 };
struct dump_settings {
    uint32_t given; /* not 0: the dumper is switched on */
    bool durable;
    char dir[512];
    struct marey_dump_options fields; /* all other options */
};

#define FIELD(field) MAREY__OPTION_FIELD(struct dump_settings, field)
static const struct marey__option dump_options[] = {
    {"dump.dir", "DIR", "dumps, in the recording", "directory that TensorDumper writes to",
     MAREY__OPTION_TEXT, FIELD(dir), .least = 1, .flag = GIVEN_DIR},
    {"dump.layout", "marey|accvlab", "marey", "which files TensorDumper writes",
     MAREY__OPTION_CHOICE, FIELD(fields.layout), .flag = GIVEN_FIELD << 0},
    {"dump.mode", "full|stats|digests", "full", "what is kept of a tensor", MAREY__OPTION_CHOICE,
     FIELD(fields.mode), .flag = GIVEN_FIELD << 1},
    {"dump.policy", "block|drop|stats", "block", "what happens when dump.memory is full",
     MAREY__OPTION_CHOICE, FIELD(fields.policy), .flag = GIVEN_FIELD << 2},
    {"dump.memory", "SIZE", "1GiB", "memory for tensors that are not written yet",
     MAREY__OPTION_SIZE, FIELD(fields.memory_bytes), .flag = GIVEN_FIELD << 3},
    {"dump.disk", "SIZE", "until a tenth is left", "disk budget for the dumps of one process",
     MAREY__OPTION_SIZE, FIELD(fields.disk_bytes), .flag = GIVEN_FIELD << 4},
    {"dump.first", "N", "0", "the first step that is kept", MAREY__OPTION_COUNT,
     FIELD(fields.first), .flag = GIVEN_FIELD << 5},
    {"dump.last", "N", "none", "the last step that is kept", MAREY__OPTION_COUNT,
     FIELD(fields.last), .flag = GIVEN_FIELD << 6},
    {"dump.every", "N", "1", "every N-th step is kept", MAREY__OPTION_COUNT, FIELD(fields.every),
     .least = 1, .flag = GIVEN_FIELD << 7},
    {"dump.flight", "N", "0", "only the last N steps, and only when something happens",
     MAREY__OPTION_COUNT, FIELD(fields.flight_steps), .flag = GIVEN_FIELD << 8},
    {"dump.durable", "0|1", "0", "a step counts as written when it is on the disk",
     MAREY__OPTION_BOOL, FIELD(durable), .flag = GIVEN_DURABLE},
};

/* Options by name; they override the program's. Guarded by `switch_lock`. */
static struct dump_settings given;

static void overlay(struct marey_dump_options *o)
{
    if (given.given & GIVEN_DIR)
        o->dir = given.dir;
    if (given.given & GIVEN_DURABLE)
        o->durable = given.durable;
    for (size_t i = 0; i < MAREY__COUNT_OF(dump_options); i++) {
        const struct marey__option *const option = &dump_options[i];
        if (option->flag >= GIVEN_FIELD && (given.given & option->flag) != 0)
            memcpy((char *)o + option->offset - offsetof(struct dump_settings, fields),
                   (const char *)&given + option->offset, option->size);
    }
}

/* Everything except switching on. */
static marey_status prepare(const struct marey_dump_options *options)
{
    char dir[PATH_MAX];
    struct marey_dump_options o = *options;
    overlay(&o);
    MAREY_TRY(check_options(&o));
    MAREY_TRY(resolve(o.dir, dir, sizeof dir));
    pthread_mutex_lock(&dump->lock);
    memcpy(dump->dir, dir, sizeof dir);
    fill_defaults(&o);
    dump->options = o;
    dump->counts = (struct marey_dump_counts){0};
    dump->failure[0] = '\0';
    dump->n_disk_bytes = 0;
    clock_gettime(CLOCK_REALTIME_COARSE, &dump->began);
    marey__dump_set_step(0);
    if (dump->run[0] == '\0')
        name_run();
    pthread_mutex_unlock(&dump->lock);
    marey__dump_memory_keep(o.memory_bytes);
    return MAREY_OK;
}

/* A step with a trigger is written even if it does not end. */
static void write_triggered(void)
{
    int rank, world;
    marey_rank_get(&rank, &world);
    pthread_mutex_lock(&dump->lock);
    struct marey__dump_step *const step =
        dump->reason != NULL && dump->now != NULL ? marey__dump_end_step(rank, world) : NULL;
    const bool has_thread = step == NULL || marey__dump_queue(step);
    marey__free(dump->reason);
    dump->reason = NULL;
    pthread_mutex_unlock(&dump->lock);
    if (!has_thread)
        marey__dump_write_here();
}

/* Switches off. Gives up after `patience_ns` without progress; 0: never. */
static marey_status disable(uint64_t patience_ns)
{
    if (!marey_dump_is_enabled())
        return MAREY_OK;
    __atomic_fetch_and(&marey_switch[0], ~(uint32_t)MAREY_ON_DUMP, __ATOMIC_RELEASE);
    write_triggered();
    marey_dump_clear(MAREY_DUMP_TENSORS);
    marey_dump_clear(MAREY_DUMP_GRADIENTS);
    const bool is_empty = marey__dump_drain(patience_ns);
    pthread_mutex_lock(&dump->lock);
    const marey_status st = marey__dump_take_failure();
    struct marey__dump_step *const left = dump->now;
    dump->now = NULL;
    dump->seq = 0;
    if (is_empty)
        marey__dump_end_threads(exit_patience_ns);
    pthread_mutex_unlock(&dump->lock);
    marey__dump_step_destroy(left);
    is_by_options = false;
    if (!is_empty)
        return marey__fail(
            MAREY_EIO, "steps of the dump in %s are not written: the disk does not move", dump->dir);
    marey__dump_flight_clear();
    marey__dump_memory_keep(0);
    marey__gpu_copy_trim();
    MAREY__HOLD(&dump->place_lock);
    marey__dump_unclaim(&dump->claim);
    return st;
}

/* The program's first enable takes over a dump begun by options, unless a step has ended; it may still name the directory. */
static marey_status switch_on(const struct marey_dump_options *o, bool by_options)
{
    if (marey_dump_is_enabled() && !(is_by_options && marey_dump_count() == 0))
        return marey__fail(
            MAREY_ESTATE,
            "dumping is already enabled, into %s; disable it before enabling it with "
            "other options",
            dump->dir);
    MAREY_TRY(prepare(o));
    if (o->dir != NULL && (given.given & GIVEN_DIR) && strcmp(o->dir, given.dir) != 0)
        marey__say("dumping into %s, as set by options, not into %s", dump->dir, o->dir);
    is_by_options = by_options;
    __atomic_fetch_or(&marey_switch[0], MAREY_ON_DUMP, __ATOMIC_RELEASE);
    return MAREY_OK;
}

marey_status marey_dump_enable_sized(const struct marey_dump_options *options, size_t size)
{
    struct marey_dump_options o = {0};
    if (options != NULL)
        memcpy(&o, options, MAREY__MIN(size, sizeof o));
    MAREY_TRY(marey__copies_check());
    MAREY__HOLD(&switch_lock);
    return switch_on(&o, false);
}

marey_status marey_dump_disable(void)
{
    MAREY__HOLD(&switch_lock);
    return disable(0);
}

/* ---- instrument callbacks ---- */

static const struct marey__instrument instrument;

/* Options without a directory wait for one, from a recording or the program; while dumping, for the next enable. */
static void configure(const struct marey__settings *settings)
{
    const struct dump_settings *const own = marey__settings_of(settings, &instrument);
    MAREY__HOLD(&switch_lock);
    if (own->given != 0)
        given = *own;
    if (given.given != 0 && !marey_dump_is_enabled() &&
        (marey_enabled() || (given.given & GIVEN_DIR)) &&
        switch_on(&(struct marey_dump_options){0}, true) != MAREY_OK)
        marey__say("%s", marey_last_error());
}

static void reset(void)
{
    marey_dump_disable();
    pthread_mutex_lock(&dump->lock);
    marey__dump_set_step(0);
    dump->dir[0] = '\0';
    dump->counts = (struct marey_dump_counts){0};
    pthread_mutex_unlock(&dump->lock);
    MAREY__HOLD(&switch_lock);
    given.given = 0;
}

static bool has_switch_lock; /* of the forking thread; stored under dump.lock */

/* Ends idle threads, so that the child misses none and Python does not warn. Does not wait for a long disable. */
static void before_fork(void)
{
    const struct timespec until = marey__clock_after(CLOCK_REALTIME, fork_patience_ns);
    const bool has_lock = pthread_mutex_timedlock(&switch_lock, &until) == 0;
    pthread_mutex_lock(&dump->place_lock);
    pthread_mutex_lock(&dump->lock);
    has_switch_lock = has_lock;
    marey__dump_end_threads(fork_patience_ns);
    marey__dump_memory_before_fork();
}

/* The child has none of the parent's threads; added values belong to the parent, which writes and releases them. */
static void become_child(void)
{
    pthread_cond_init(&dump->work, NULL);
    pthread_cond_init(&dump->done, NULL);
    pthread_cond_init(&dump->room, NULL);
    dump->n_blocked = 0;
    marey__dump_worker_after_fork(&marey__dump_measure_worker);
    marey__dump_gpu_after_fork();
    marey__dump_flight_after_fork();
    dump->reason = NULL;
    dump->now = dump->first = dump->last = NULL;
    dump->n_writing = dump->n_threads = dump->n_writers = dump->n_idle = dump->n_visitors = 0;
    dump->n_used_bytes = dump->seq = dump->n_disk_bytes = 0;
    dump->counts = (struct marey_dump_counts){0};
    dump->failure[0] = '\0';
    marey__dump_claim_forget(&dump->claim);
}

static void after_fork(bool in_child)
{
    marey__dump_memory_after_fork();
    if (in_child)
        become_child();
    pthread_mutex_unlock(&dump->lock);
    pthread_mutex_unlock(&dump->place_lock);
    if (has_switch_lock)
        pthread_mutex_unlock(&switch_lock);
    else if (in_child)
        pthread_mutex_init(&switch_lock, NULL);
}

static const struct marey__instrument instrument = {
    MAREY__INSTRUMENT_OPTIONS(dump_options, struct dump_settings), .configure = configure,
    .reset = reset, .before_fork = before_fork, .after_fork = after_fork};

MAREY__INSTRUMENT_AT_LOAD(2, instrument)

/* At process exit, flushed steps are still written as long as there is progress. */
__attribute__((destructor)) static void unload(void)
{
    if (marey_dump_is_enabled() && disable(exit_patience_ns) != MAREY_OK)
        marey__say("%s", marey_last_error());
}
