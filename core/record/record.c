/* The recording of this process: opening, closing, lost events, failures, forking. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "record/internal.h"

struct marey__record marey__record = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                      .pool = {.file.fd = -1},
                                      .log = {.lock = PTHREAD_MUTEX_INITIALIZER, .file.fd = -1}};
static struct marey__record *const record = &marey__record;

static void set_state(enum marey__record_state state)
{
    __atomic_store_n(&record->state, state, __ATOMIC_RELEASE);
}

static void switch_on(void)
{
    const uint32_t bits = MAREY_ON_RECORD | (record->settings.check_nesting ? MAREY_ON_CHECK : 0);
    const uint32_t before = __atomic_fetch_or(&marey_switch[0], bits, __ATOMIC_RELEASE);
    if (bits & MAREY_ON_CHECK)
        marey__stack_needed(before);
}

static void switch_off(void)
{
    __atomic_fetch_and(&marey_switch[0], ~(uint32_t)(MAREY_ON_RECORD | MAREY_ON_CHECK),
                       __ATOMIC_RELEASE);
}

/* ---- sites are written to the log as they are created ---- */

static marey_status write_sites(void)
{
    struct marey__block block = {.type = MAREY__BLOCK_SITES};
    struct marey__buf *sites = &record->log.sites;
    MAREY__TRY_MEMORY(!sites->failed);
    const size_t len = sites->len;
    sites->len = 0;
    return len > 0 ? marey__log_append(&record->log, &block, sites->data, len) : MAREY_OK;
}

/* While the recording opens, sites are collected into few blocks; later each is written at once. */
static bool on_site(const struct marey__site *site)
{
    enum { BLOCK_BYTES = 1 << 20 };
    const bool is_opening = record->log.is_gathering;
    if (site != NULL)
        marey__site_put(&record->log.sites, site);
    else
        record->log.is_gathering = false;
    if (record->log.is_gathering && record->log.sites.len <= BLOCK_BYTES)
        return true;
    const bool ok = write_sites() == MAREY_OK;
    if (!ok && !is_opening)
        marey__record_failed(marey_last_error());
    return ok;
}

/* ---- opening ---- */

/* Values set by the program take precedence over options. */
static void describe_experiment(struct marey__buf *texts)
{
    const struct marey__settings *s = &record->settings;
    const char *experiment = record->experiment[0] != '\0' ? record->experiment : s->experiment;
    const char *strategy = record->strategy[0] != '\0' ? record->strategy : s->strategy;
    if (experiment[0] != '\0')
        marey__texts_put(texts, MAREY__KEY_EXPERIMENT, experiment);
    if (strategy[0] != '\0')
        marey__texts_put(texts, MAREY__KEY_STRATEGY, strategy);
}

static void describe_process(struct marey__buf *texts, const char *note)
{
    const struct marey__settings *s = &record->settings;
    static const char *const policies[] = {"keep-oldest", "keep-newest", "block"};
    struct marey__buf command MAREY__FINALLY(marey__buf_fini) = {0};
    marey__identity_command(&command);
    marey__buf_put(&command, "", 1);
    marey__identity_describe(texts);
    marey__texts_printf(texts, MAREY__KEY_RANK, "%d", s->rank);
    marey__texts_printf(texts, MAREY__KEY_WORLD, "%d", s->world_size);
    marey__texts_printf(texts, MAREY__KEY_LOCAL_RANK, "%d", s->local_rank);
    if (record->n_worker != 0)
        marey__texts_printf(texts, MAREY__KEY_WORKER, "%" PRIu32, record->n_worker - 1);
    marey__texts_put(texts, MAREY__KEY_RUN_ID, s->run_id);
    marey__texts_put(texts, MAREY__KEY_COMMAND, command.failed ? "" : command.data);
    marey__texts_put(texts, MAREY__KEY_CLOCK, marey__clock_name());
    marey__texts_printf(texts, MAREY__KEY_TICK_HZ, "%" PRIu64, marey__clock_hz());
    marey__texts_printf(texts, MAREY__KEY_EVENT_COST, "%" PRIu64, marey__lane_measure_cost());
    marey__texts_put(texts, MAREY__KEY_POLICY, policies[s->policy]);
    marey__texts_put(texts, MAREY__KEY_POOL, record->pool.path);
    marey__texts_printf(texts, MAREY__KEY_POOL_ID, "%016" PRIx64, record->pool.id);
    if (s->role != NULL)
        marey__texts_put(texts, MAREY__KEY_ROLE, s->role);
    marey__machine_describe(texts);
    marey__machine_describe_devices(texts);
    marey__texts_put(texts, MAREY__KEY_VERSIONS, record->versions);
    describe_experiment(texts);
    if (note[0] != '\0')
        marey__texts_put(texts, MAREY__KEY_NOTE, note);
}

static marey_status create_log(void)
{
    const struct marey__settings *s = &record->settings;
    char host[128], name[256];
    marey__identity_host(host, sizeof host);
    snprintf(name, sizeof name, "r%d-%s-%d-%08" PRIx32 ".klog", s->rank < 0 ? 0 : s->rank, host,
             (int)getpid(), (uint32_t)marey__identity_random());
    return marey__log_create(&record->log, s->path, name);
}

uint64_t marey__record_disk_budget(const char *path)
{
    const uint64_t most = UINT64_C(4) << 30;
    struct statvfs fs;
    return statvfs(path, &fs) == 0 ? MAREY__MIN(most, (uint64_t)fs.f_bavail * fs.f_frsize / 10)
                                   : most;
}

static void drop_files(bool keep_pool)
{
    marey__pool_retire(&record->pool, keep_pool);
    marey__log_close(&record->log);
    marey__packer_destroy(record->packer);
    record->packer = NULL;
}

static marey_status write_opening(void)
{
    struct marey__buf note MAREY__FINALLY(marey__buf_fini) = {0};
    struct marey__buf texts MAREY__FINALLY(marey__buf_fini) = {0};
    MAREY_TRY(marey__pool_create(&record->pool, &record->settings, &record->log, &note));
    marey__buf_put(&note, "", 1);
    describe_process(&texts, note.failed ? "" : note.data);
    MAREY_TRY(marey__log_append_texts(&record->log, MAREY__BLOCK_LOG, &texts));
    return marey__log_append_moment(&record->log, marey__clock_is_tsc);
}

/* Caller holds the lock. */
static marey_status open_files(void)
{
    MAREY_TRY(marey__recording_create_own(record->settings.path));
    if (record->settings.disk_bytes == 0)
        record->settings.disk_bytes = marey__record_disk_budget(record->settings.path);
    MAREY_TRY(create_log());
    record->packer = marey__packer_create();
    const marey_status st = record->packer == NULL ? marey__no_memory() : write_opening();
    if (st != MAREY_OK) {
        unlink(record->log.path);
        drop_files(false);
    }
    return st;
}

/* Known names are written first; new ones follow as they appear. */
static marey_status write_known_sites(void)
{
    record->log.is_gathering = true;
    if (marey__intern_listen(on_site))
        return MAREY_OK;
    unlink(record->log.path);
    const marey_status st =
        record->log.sites.failed ? MAREY_ENOMEM : MAREY_EIO; /* the error message is set */
    drop_files(false);
    return st;
}

/* Notes from instruments that start before there is a log: the first event of a pending recording opens it. */
static struct {
    pthread_mutex_t lock;
    struct marey__buf texts;
} waiting = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void write_waiting_texts(void)
{
    pthread_mutex_lock(&waiting.lock);
    struct marey__buf texts MAREY__FINALLY(marey__buf_fini) = waiting.texts;
    waiting.texts = (struct marey__buf){0};
    pthread_mutex_unlock(&waiting.lock);
    if (texts.len > 0 && marey__log_append_texts(&record->log, MAREY__BLOCK_LOG, &texts) != MAREY_OK)
        marey__record_failed(marey_last_error());
}

/* Counts one open recording more or less in the family. Children inherit the page. */
static void count_family(int by)
{
    if (record->n_family_open == NULL) {
        void *const page = mmap(NULL, sizeof *record->n_family_open, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        record->n_family_open = page != MAP_FAILED ? page : NULL;
    }
    if (record->n_family_open != NULL)
        __atomic_fetch_add(record->n_family_open, (uint32_t)by, __ATOMIC_RELAXED);
}

bool marey__record_family_is_open(void)
{
    return record->n_family_open == NULL ||
           __atomic_load_n(record->n_family_open, __ATOMIC_RELAXED) > 0;
}

/* Caller holds the lock; settings are in place. */
static marey_status open_now(void)
{
    MAREY_TRY(marey__clock_choose(record->settings.clock));
    if (record->is_rank_set && record->settings.rank < 0) {
        record->settings.rank = record->set_rank;
        record->settings.world_size = record->set_world_size;
    }
    marey__identity_fill(&record->settings);
    __atomic_store_n(&record->is_full, false, __ATOMIC_RELAXED);
    __atomic_store_n(&record->is_closing, false, __ATOMIC_RELAXED);
    __atomic_store_n(&record->has_failed, false, __ATOMIC_RELAXED);
    record->n_events_flushed = record->flush_cpu_ns = 0;
    record->next_lane = 0;
    MAREY_TRY(open_files());
    MAREY_TRY(write_known_sites());
    record->owner = getpid();
    __atomic_store_n(&record->generation, record->generation + 1, __ATOMIC_RELAXED);
    snprintf(record->path, sizeof record->path, "%s", record->settings.path);
    set_state(MAREY__RECORD_OPEN);
    count_family(1);
    write_waiting_texts();
    marey__flush_start();
    return MAREY_OK;
}

marey_status marey__record_open(const struct marey__settings *settings)
{
    MAREY__HOLD(&record->lock);
    if (record->state != MAREY__RECORD_CLOSED)
        return marey__fail(MAREY_ESTATE, "a recording is already open: %s; stop it first",
                           record->settings.path);
    record->settings = *settings;
    record->nesting_errors = 0;
    MAREY_TRY(open_now());
    switch_on();
    return MAREY_OK;
}

void marey__record_open_later(const struct marey__settings *settings)
{
    MAREY__HOLD(&record->lock);
    if (settings != &record->settings)
        record->settings = *settings;
    snprintf(record->path, sizeof record->path, "%s", record->settings.path);
    record->nesting_errors = 0;
    set_state(MAREY__RECORD_PENDING);
    switch_on();
}

/* Reports to `marey run` that the reason was printed: by a symlink, which needs no descriptor. cli/run/cmd_run.c removes it. */
static void leave_reason(const char *reason)
{
    char path[sizeof record->path + 64];
    snprintf(path, sizeof path, "%s/not-recorded-%ld", record->path, (long)getpid());
    if (getenv("MAREY_RUN_ID") != NULL && symlink(reason, path) != 0)
        errno = 0; /* it is printed anyway */
}

bool marey__record_open_pending(void)
{
    MAREY__HOLD(&record->lock);
    if (record->state == MAREY__RECORD_PENDING && open_now() != MAREY_OK) {
        switch_off();
        set_state(MAREY__RECORD_CLOSED);
        marey__say_always("nothing is recorded: %s", marey_last_error());
        leave_reason(marey_last_error());
    }
    return record->state == MAREY__RECORD_OPEN;
}

/* ---- closing ---- */

static void write_ending(const char *how)
{
    struct marey__buf texts MAREY__FINALLY(marey__buf_fini) = {0};
    marey__texts_put_end(&texts, how, record->pool.head);
    marey__texts_printf(&texts, MAREY__KEY_FLUSH_CPU, "%" PRIu64, record->flush_cpu_ns);
    marey__machine_describe_devices(&texts); /* a script may have set them before it came to CUDA */
    if (marey__log_append_loss(&record->log, record->pool.head) != MAREY_OK ||
        marey__log_append_moment(&record->log, marey__clock_is_tsc) != MAREY_OK ||
        marey__log_append_texts(&record->log, MAREY__BLOCK_END, &texts) != MAREY_OK)
        marey__record_failed(marey_last_error());
}

/* The log is broken and the pool is anonymous memory: its events are lost, and only the log can report that. */
static void end_without_pool(const char *how)
{
    for (uint32_t i = 0; i < record->pool.head->n_chunks; i++) {
        const struct marey__chunk_head *chunk = marey__pool_chunk(&record->pool, i);
        if (chunk->state == MAREY__CHUNK_FREE)
            continue;
        const struct marey__extent extent = marey__chunk_extent(chunk);
        marey__record_lost(extent.n_events, chunk->base_tick, chunk->base_tick + extent.last_ticks);
    }
    marey__log_try_again(&record->log);
    write_ending(how);
    struct marey__loss_entry lost;
    if (!marey__log_is_broken(&record->log) || !marey__log_drop_last_words(&record->log, &lost))
        return;
    marey__record_lost(lost.n_events, lost.first_tick, lost.last_tick);
    marey__log_try_again(&record->log);
    write_ending(how);
}

/* Collects a message for each thread that leaves ranges open; `ctx` is the buffer of NUL-terminated messages. */
static void describe_open_ranges(void *ctx, int64_t tid, const marey_id *stack, size_t n, size_t depth)
{
    struct marey__buf *out = ctx;
    marey__buf_printf(out, "thread %" PRId64 " left %zu range%s open: ", tid, depth,
                      depth == 1 ? "" : "s");
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *name = marey_site_name(stack[i], &len);
        marey__buf_puts(out, i > 0 ? " > " : "");
        marey__utf8_put(out, name, MAREY__MIN(len, (size_t)80));
    }
    marey__buf_puts(out, n < depth ? " > ..." : "");
    marey__buf_put(out, "", 1);
}

/* Caller holds the lock and the recording is open. */
static marey_status close_files(const char *how)
{
    __atomic_store_n(&record->is_closing, true, __ATOMIC_RELAXED);
    marey__flush_stop();
    marey__lanes_close();
    marey__intern_listen(NULL);
    marey__flush_drain();
    if (marey__intern_n_other() > 0)
        marey__record_note(
            "more than a million names: the later ones are counted as \"(other names)\"");
    if (!marey__log_is_broken(&record->log))
        write_ending(how);
    const bool is_broken = marey__log_is_broken(&record->log);
    if (is_broken && record->pool.path[0] == '\0')
        end_without_pool(how);
    const marey_status st = is_broken ? marey__fail(MAREY_EIO, "%s", record->log.failure) : MAREY_OK;
    record->n_lost_last = __atomic_load_n(&record->pool.head->n_lost, __ATOMIC_RELAXED);
    record->log_bytes_last = record->log.size;
    if (!is_broken)
        count_family(-1);
    drop_files(is_broken); /* a pool whose words the log lacks stays, for readers of the recording */
    return st;
}

/* Caller holds the lock. */
static marey_status close_locked(const char *how, struct marey__buf *sentences)
{
    const enum marey__record_state state = record->state;
    if (state == MAREY__RECORD_CLOSED)
        return MAREY_OK;
    switch_off();
    set_state(MAREY__RECORD_CLOSED);
    if (state == MAREY__RECORD_PENDING)
        return MAREY_OK;
    if (record->settings.check_nesting)
        marey__stacks_visit(describe_open_ranges, sentences);
    for (size_t at = 0; !sentences->failed && at < sentences->len;
         at += strlen(sentences->data + at) + 1)
        marey__record_note(sentences->data + at);
    return close_files(how);
}

marey_status marey__record_close(const char *how)
{
    /* A child of a raw clone() has its parent's state, and maybe locks that nobody will release. */
    if (marey__record_is_foreign())
        return MAREY_OK;
    struct marey__buf sentences MAREY__FINALLY(marey__buf_fini) = {0};
    pthread_mutex_lock(&record->lock);
    const marey_status st = close_locked(how, &sentences);
    pthread_mutex_unlock(&record->lock);
    for (size_t at = 0; !sentences.failed && at < sentences.len; at += strlen(sentences.data + at) + 1)
        marey__say("%s", sentences.data + at);
    return st;
}

bool marey__record_is_foreign(void)
{
    return __atomic_load_n(&record->state, __ATOMIC_ACQUIRE) == MAREY__RECORD_OPEN &&
           record->owner != getpid();
}

/* ---- failures ---- */

void marey__record_lost(uint64_t n, uint64_t first_tick, uint64_t last_tick)
{
    struct marey__pool_head *head = __atomic_load_n(&record->pool.head, __ATOMIC_ACQUIRE);
    if (head == NULL || n == 0)
        return;
    if (__atomic_fetch_add(&head->n_lost, n, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&head->lost_first_tick, first_tick, __ATOMIC_RELAXED);
    if (last_tick > __atomic_load_n(&head->lost_last_tick, __ATOMIC_RELAXED))
        __atomic_store_n(&head->lost_last_tick, last_tick, __ATOMIC_RELAXED);
}

void marey__record_failed(const char *why)
{
    switch_off();
    if (__atomic_exchange_n(&record->has_failed, true, __ATOMIC_RELAXED))
        return; /* later failures follow from the first, which was reported */
    struct marey__pool_head *head = __atomic_load_n(&record->pool.head, __ATOMIC_ACQUIRE);
    if (head != NULL) {
        head->broken_tick = marey__clock_ticks();
        snprintf(head->failure, sizeof head->failure, "%s", why);
        __atomic_store_n(&head->is_broken, 1, __ATOMIC_RELEASE);
    }
    marey__say_always(
        "recording %s stopped (%s); the program goes on, and the data recorded so far are "
        "readable",
        record->settings.path, why);
}

static bool has_state(enum marey__record_state state)
{
    return __atomic_load_n(&record->state, __ATOMIC_ACQUIRE) == state;
}

void marey__record_text(const char *key, const char *value)
{
    struct marey__buf texts MAREY__FINALLY(marey__buf_fini) = {0};
    marey__texts_put(&texts, key, value);
    const marey_status st = marey__log_append_texts(&record->log, MAREY__BLOCK_LOG, &texts);
    if (st == MAREY_ESTATE && has_state(MAREY__RECORD_PENDING)) {
        pthread_mutex_lock(&waiting.lock);
        marey__buf_put(&waiting.texts, texts.data, texts.len);
        pthread_mutex_unlock(&waiting.lock);
        if (has_state(MAREY__RECORD_OPEN)) /* in the meantime */
            write_waiting_texts();
    } else if (st == MAREY_EIO) { /* otherwise nothing is being recorded, or a note did not fit into memory */
        marey__record_failed(marey_last_error());
    }
}

void marey__record_note(const char *sentence)
{
    marey__record_text(MAREY__KEY_NOTE, sentence);
}

void marey__record_cost(const char *key, uint64_t n, uint64_t low_ps, uint64_t high_ps)
{
    char text[64];
    snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 " %" PRIu64, n, low_ps, high_ps);
    marey__record_text(key, text);
}

/* ---- fork ---- */

/* The child gets a copy of everything. These locks protect what it will use or free; it forgets the rest. */
void marey__record_before_fork(void)
{
    pthread_mutex_lock(&record->lock);
    marey__flush_before_fork();
    marey__lanes_before_fork();
    marey__stacks_before_fork();
    marey__intern_before_fork();
}

/* The child has neither the pool's memory nor the flush thread; the inherited files belong to its parent. */
static void forget_parents_recording(bool packer_is_whole)
{
    pthread_mutex_init(&record->log.lock, NULL);
    if (!packer_is_whole)
        record->packer = NULL; /* the flush thread was using it */
    record->pool.head = NULL;  /* not inherited, so only the descriptor is retired */
    drop_files(true);
}

static void become_child(bool packer_is_whole)
{
    const bool was_on = record->state != MAREY__RECORD_CLOSED;
    marey__say_after_fork();
    marey__thread_names_after_fork();
    pthread_mutex_init(&waiting.lock, NULL);
    forget_parents_recording(packer_is_whole);
    set_state(MAREY__RECORD_CLOSED);
    pthread_mutex_unlock(&record->lock);
    if (was_on && record->settings.follow_fork)
        marey__record_open_later(&record->settings);
}

void marey__record_after_fork(bool in_child)
{
    marey__intern_after_fork(in_child);
    marey__stacks_after_fork(in_child);
    marey__lanes_after_fork(in_child);
    const bool was_parked = marey__flush_after_fork(in_child);
    if (in_child)
        become_child(was_parked);
    else
        pthread_mutex_unlock(&record->lock);
}
