/* The enable word, start and stop, the environment, and the actions at load, fork and exit. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "instrument/cuda/internal.h"
#include "instrument/nvtx/internal.h"
#include "record/internal.h"
#include "switchboard/internal.h"

/* On a separate page, which the kernel zeroes in a child: however a child is created, it starts off. */
__attribute__((aligned(4096))) uint32_t marey_switch[1024];

static struct marey__record *const record = &marey__record;

/* An absolute path, valid after the program changes its directory. */
static marey_status make_absolute(char *out, size_t size, const char *path)
{
    char cwd[PATH_MAX];
    int n;
    if (path[0] == '/')
        n = snprintf(out, size, "%s", path);
    else if (getcwd(cwd, sizeof cwd) == NULL)
        return marey__fail_errno("find the current directory, for the recording %s", path);
    else
        n = snprintf(out, size, "%s/%s", cwd, path);
    return n < (int)size
               ? MAREY_OK
               : marey__fail(MAREY_EINVAL, "the path of the recording is too long: %s", path);
}

static marey_status settle(struct marey__settings *s, const struct marey_options *o)
{
    const char *env = getenv("MAREY");
    const char *path = o->path != NULL                 ? o->path
                       : env != NULL && env[0] != '\0' ? env
                                                       : "run.marey";
    marey__settings_init(s);
    s->pool_bytes = o->pool_bytes != 0 ? o->pool_bytes : s->pool_bytes;
    s->disk_bytes = o->disk_bytes;
    s->policy = o->policy;
    s->clock = o->clock;
    s->check_nesting = o->check_nesting != 0;
    s->follow_fork = o->no_follow == 0;
    if ((unsigned)o->policy > MAREY_BLOCK || (unsigned)o->clock > MAREY_CLOCK_MONOTONIC)
        return marey__fail(MAREY_EINVAL,
                           "policy %d or clock %d is none of those marey/switchboard.h names",
                           (int)o->policy, (int)o->clock);
    MAREY_TRY(marey__settings_parse(s, o->text));
    return make_absolute(s->path, sizeof s->path, path);
}

/* ---- instruments ---- */

enum { MAX_INSTRUMENTS = 16 };
static const struct marey__instrument *instruments[MAX_INSTRUMENTS]; /* constant after loading */
static size_t settings_at[MAX_INSTRUMENTS]; /* offsets of their settings, in 8-byte words */
static size_t n_instruments, n_settings_words;

void marey__instrument_register(const struct marey__instrument *instrument)
{
    MAREY_ASSERT(n_instruments < MAX_INSTRUMENTS);
    settings_at[n_instruments] = n_settings_words;
    n_settings_words += (instrument->settings_size + 7) / 8;
    MAREY_ASSERT(n_settings_words * 8 <= MAREY__INSTRUMENT_SETTINGS_BYTES);
    instruments[n_instruments++] = instrument;
}

const struct marey__instrument *marey__instrument_at(size_t i)
{
    return i < n_instruments ? instruments[i] : NULL;
}

const void *marey__settings_of(const struct marey__settings *s,
                               const struct marey__instrument *instrument)
{
    size_t i = 0;
    while (instruments[i] != instrument)
        i++;
    return &s->of_instruments[settings_at[i]];
}

/* Under `marey run` or MAREY, the program's first start joins the open recording. Returns true if it does. */
static bool join_environment(const struct marey__settings *wanted)
{
    MAREY__HOLD(&record->lock);
    const bool joins = record->state != MAREY__RECORD_CLOSED && record->settings.by_environment;
    record->settings.by_environment = false;
    if (joins && strcmp(wanted->path, record->path) != 0)
        marey__say("recording into %s, as set by MAREY, not into %s", record->path, wanted->path);
    for (size_t i = 0; joins && i < n_instruments; i++) {
        const struct marey__instrument *const in = instruments[i];
        if (in->measures != NULL && in->is_wanted(marey__settings_of(wanted, in)) &&
            !in->is_wanted(marey__settings_of(&record->settings, in)))
            marey__say("%s is not measured: the recording was begun by MAREY or marey run, which "
                       "did not ask for it; ask there (%s)",
                       in->measures, in->ask_by);
    }
    return joins;
}

/* ---- the range wrapper's bits ---- */

static const uint32_t wrapper_bits =
    MAREY_ON_WRAPPER | MAREY_ON_ORDER | MAREY_ON_SYNC_PUSH | MAREY_ON_SYNC_POP;

bool marey__wrapper_switch_on(uint32_t bits, bool anew)
{
    uint32_t before = marey_on();
    do {
        if ((before & MAREY_ON_WRAPPER) && !anew)
            return false;
    } while (!__atomic_compare_exchange_n(&marey_switch[0], &before, (before & ~wrapper_bits) | bits,
                                          false, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    marey__stack_needed(before);
    return true;
}

void marey__wrapper_switch_off(void)
{
    __atomic_fetch_and(&marey_switch[0], ~wrapper_bits, __ATOMIC_RELEASE);
}

/* Options of instruments that need no recording. */
static void configure_instruments(const struct marey__settings *s)
{
    marey__nvtx_expect(s->nvtx_out);
    if (s->wrapper != 0)
        marey__wrapper_switch_on(s->wrapper, true);
    for (size_t i = 0; i < n_instruments; i++)
        if (instruments[i]->configure != NULL)
            instruments[i]->configure(s);
}

marey_status marey_start_sized(const struct marey_options *options, size_t size)
{
    struct marey_options o = {0};
    if (options != NULL)
        memcpy(&o, options,
               MAREY__MIN(size, sizeof o)); /* an older caller's struct is shorter, a newer one's longer */
    MAREY_TRY(marey__copies_check());
    struct marey__settings s;
    MAREY_TRY(settle(&s, &o));
    struct marey__lane *const lane = marey__lane_set_aside();
    const bool joins = join_environment(&s);
    const marey_status st = joins ? MAREY_OK : marey__record_open(&s);
    marey__lane_resume(lane);
    if (st == MAREY_OK && !joins) {
        configure_instruments(&s);
        for (size_t i = 0; i < n_instruments; i++)
            if (instruments[i]->started != NULL)
                instruments[i]->started(&s);
    }
    return st;
}

static marey_status stop(const char *how)
{
    if (marey__record_is_foreign())
        return MAREY_OK;
    for (size_t i = n_instruments; i-- > 0;)
        if (instruments[i]->stopping != NULL)
            instruments[i]->stopping();
    struct marey__lane *const lane = marey__lane_set_aside();
    char path[PATH_MAX];
    pthread_mutex_lock(&record->lock);
    const bool was_open = record->state == MAREY__RECORD_OPEN;
    memcpy(path, record->path, sizeof path);
    pthread_mutex_unlock(&record->lock);
    const marey_status st = marey__record_close(how);
    if (was_open && st == MAREY_OK && marey__record_family_is_open() &&
        marey_recording_finalize(path) != MAREY_OK) {
        /* Finalizing dead children here is optional; readers of the recording try again and report errors. */
    }
    marey__say_suppressed();
    marey__lane_resume(lane);
    return st;
}

marey_status marey_stop(void)
{
    return stop("stop");
}

void marey_reset(void)
{
    stop("stop");
    pthread_mutex_lock(&record->lock);
    marey__settings_init(&record->settings);
    record->is_rank_set = false;
    record->n_worker = 0;
    record->nesting_errors = 0;
    pthread_mutex_unlock(&record->lock);
    marey__wrapper_switch_off();
    for (size_t i = 0; i < n_instruments; i++)
        if (instruments[i]->reset != NULL)
            instruments[i]->reset();
    if ((marey_on() & MAREY_ON_NVTX) == 0) /* a tool needs the ends of the ranges on the stacks */
        marey__stack_needed(0);
}

int marey_enabled(void)
{
    return (marey_on() & MAREY_ON_RECORD) != 0;
}

const char *marey_recording_path(void)
{
    return record->path;
}

/* Holds the recording's lock until the end of the block, with this thread's lane set aside. */
#define HOLD_RECORD() struct marey__lane *const lane_ MAREY__FINALLY(leave) = enter()
static struct marey__lane *enter(void)
{
    struct marey__lane *const lane = marey__lane_set_aside();
    pthread_mutex_lock(&record->lock);
    return lane;
}

static void leave(struct marey__lane *const *lane)
{
    pthread_mutex_unlock(&record->lock);
    marey__lane_resume(*lane);
}

/* Appends to the log's description of the process, if there is a log. Frees `texts`. Caller holds the lock. */
static void append_to_log(struct marey__buf *texts)
{
    if (record->state == MAREY__RECORD_OPEN &&
        marey__log_append_texts(&record->log, MAREY__BLOCK_LOG, texts) != MAREY_OK)
        marey__record_failed(marey_last_error());
    marey__buf_fini(texts);
}

void marey_set_rank(int rank, int world_size)
{
    struct marey__buf texts = {0};
    HOLD_RECORD();
    marey__texts_printf(&texts, MAREY__KEY_RANK, "%d", rank);
    marey__texts_printf(&texts, MAREY__KEY_WORLD, "%d", world_size);
    record->settings.rank = record->set_rank = rank;
    record->settings.world_size = record->set_world_size = world_size;
    record->is_rank_set = true;
    append_to_log(&texts);
}

void marey_set_worker(int worker)
{
    struct marey__buf texts = {0};
    HOLD_RECORD();
    marey__texts_printf(&texts, MAREY__KEY_WORKER, "%d", worker);
    record->n_worker = worker < 0 ? 0 : (uint32_t)worker + 1;
    append_to_log(&texts);
}

void marey_rank_get(int *rank, int *world_size)
{
    struct marey__launch launch = {.rank = -1, .world_size = -1};
    HOLD_RECORD();
    if (record->state != MAREY__RECORD_OPEN) /* an open one keeps the options it started with */
        marey__identity_launch(&launch);
    *rank = record->settings.rank >= 0 ? record->settings.rank : launch.rank;
    *world_size = record->settings.world_size >= 0 ? record->settings.world_size : launch.world_size;
}

int marey_run_id(char *out, size_t size)
{
    return marey__identity_run_id(out, size);
}

void marey_set_versions(const char *text)
{
    struct marey__buf texts = {0};
    HOLD_RECORD();
    const bool is_new = strncmp(record->versions, text, sizeof record->versions - 1) != 0;
    snprintf(record->versions, sizeof record->versions, "%s", text);
    if (is_new) {
        marey__texts_put(&texts, MAREY__KEY_VERSIONS, record->versions);
        append_to_log(&texts);
    }
}

void marey_set_experiment(const char *experiment, const char *strategy)
{
    struct marey__buf texts = {0};
    HOLD_RECORD();
    if (experiment != NULL) {
        snprintf(record->experiment, sizeof record->experiment, "%s", experiment);
        marey__texts_put(&texts, MAREY__KEY_EXPERIMENT, record->experiment);
    }
    if (strategy != NULL) {
        snprintf(record->strategy, sizeof record->strategy, "%s", strategy);
        marey__texts_put(&texts, MAREY__KEY_STRATEGY, record->strategy);
    }
    append_to_log(&texts);
}

void marey_counts_get(struct marey_counts *out)
{
    HOLD_RECORD();
    *out = (struct marey_counts){
        .events = __atomic_load_n(&record->n_events_flushed, __ATOMIC_RELAXED),
        .lost_events = record->n_lost_last,
        .log_bytes = record->log_bytes_last,
        .n_threads = __atomic_load_n(&record->next_lane, __ATOMIC_RELAXED),
        .nesting_errors = __atomic_load_n(&record->nesting_errors, __ATOMIC_RELAXED)};
    if (record->state == MAREY__RECORD_OPEN) {
        const struct marey__pool_head *head = record->pool.head;
        /* In the order in which words move on, so that none is counted twice. */
        out->events += marey__pool_n_events_waiting(&record->pool);
        out->events += marey__lanes_n_events();
        out->lost_events = __atomic_load_n(&head->n_lost, __ATOMIC_RELAXED);
        out->pool_bytes =
            (uint64_t)(__atomic_load_n(&head->n_chunks, __ATOMIC_RELAXED) + 1) * MAREY__CHUNK_BYTES;
        out->log_bytes = marey__log_size(&record->log);
    }
}

/* ---- load, fork, exit ---- */

/* The child finds the enable word zeroed, so it is restored from here: instruments stay on, open ranges stay open. */
static uint32_t word_at_fork;

static void before_fork(void)
{
    for (size_t i = n_instruments; i-- > 0;)
        if (instruments[i]->before_fork != NULL)
            instruments[i]->before_fork();
    marey__record_before_fork();
    word_at_fork = marey_on();
}

static void instruments_after_fork(bool in_child)
{
    for (size_t i = 0; i < n_instruments; i++)
        instruments[i]->after_fork(in_child);
}

static void after_fork_in_parent(void)
{
    marey__record_after_fork(false);
    instruments_after_fork(false);
}

static void after_fork_in_child(void)
{
    __atomic_store_n(&marey_switch[0], word_at_fork & ~(uint32_t)MAREY_ON_RECORD, __ATOMIC_RELEASE);
    marey__nvtx_after_fork();
    marey__cuda_after_fork();
    marey__tree_after_fork();
    marey__record_after_fork(true);
    if (!marey_enabled())
        __atomic_fetch_and(&marey_switch[0], ~(uint32_t)MAREY_ON_CHECK, __ATOMIC_RELEASE);
    instruments_after_fork(true);
}

/* MAREY=RUN.marey: on from the first event; without an event there is no log. MAREY_OPTIONS applies without MAREY too. */
static void start_by_environment(void)
{
    const char *path = getenv("MAREY");
    const bool records = path != NULL && path[0] != '\0';
    struct marey__settings s;
    if (settle(&s, &(struct marey_options){.text = getenv("MAREY_OPTIONS")}) != MAREY_OK) {
        marey__say_always("%s: %s (from MAREY and MAREY_OPTIONS)",
                          records ? "nothing is recorded" : "options are ignored",
                          marey_last_error());
        marey__settings_init(&s);
    } else if (records) {
        s.by_environment = true;
        marey__record_open_later(&s);
    }
    configure_instruments(&s);
}

__attribute__((constructor)) static void load(void)
{
    madvise(marey_switch, sizeof marey_switch, MADV_WIPEONFORK);
    marey__settings_init(&record->settings);
    if (marey__copies_check() != MAREY_OK)
        return;
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    start_by_environment();
}

static bool is_ending; /* written by the exiting thread */

bool marey__process_is_ending(void)
{
    return is_ending;
}

__attribute__((destructor)) static void unload(void)
{
    is_ending = true;
    stop("exit");
}
