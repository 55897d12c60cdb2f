/*
 * Steps on their way to the disk. Threads take one step each from the queue; they start with the first step and end
 * after a while without work, so that a fork usually meets none. The memory budget is released value by value as a step
 * is written.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "instrument/dump/internal.h"
#include "record/internal.h"

static struct marey__dump *const dump = &marey__dump;

static const uint64_t idle_ns = 200000000; /* a thread without work ends after this time */

void marey__dump_progress(uint64_t n)
{
    __atomic_fetch_add(&dump->n_progress, n, __ATOMIC_RELAXED);
}

/* ---- memory ---- */

void marey__dump_item_done(struct marey__dump_item *item)
{
    if (item->is_of_gpu)
        marey__dump_await(item);
    marey__dump_measure_finish(item);
    marey__dump_item_forget_data(item);
    if (item->n_counted == 0)
        return;
    MAREY__HOLD(&dump->lock);
    dump->n_used_bytes -= item->n_counted;
    item->n_counted = 0;
    if (dump->n_blocked > 0)
        pthread_cond_broadcast(&dump->room);
}

/* Caller holds the lock. If nothing is being written, no memory will become free. */
static bool may_wait(void)
{
    return dump->options.policy == MAREY_DUMP_BLOCK && (dump->first != NULL || dump->n_writing > 0);
}

bool marey__dump_reserve(uint64_t n_bytes)
{
    const uint64_t limit = dump->options.memory_bytes;
    MAREY__HOLD(&dump->lock);
    if (dump->n_used_bytes + n_bytes > limit && may_wait()) {
        const uint64_t began = marey__clock_ns(CLOCK_MONOTONIC);
        dump->n_blocked++;
        while (dump->n_used_bytes + n_bytes > limit && may_wait())
            pthread_cond_wait(&dump->room, &dump->lock);
        dump->n_blocked--;
        dump->counts.waited_ns += marey__clock_ns(CLOCK_MONOTONIC) - began;
    }
    const bool fits = dump->n_used_bytes + n_bytes <= limit;
    dump->n_used_bytes += fits ? n_bytes : 0;
    return fits;
}

/* ---- disk ---- */

void marey__dump_report(struct marey__dump_result *result, const char *fmt, ...)
{
    if (result->why[0] != '\0')
        return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(result->why, sizeof result->why, fmt, args);
    va_end(args);
}

bool marey__dump_take_room(struct marey__dump_place *place, struct marey__dump_item *item,
                           struct marey__dump_result *result)
{
    const uint64_t n = item->n_bytes + item->value.text_len;
    if (n <= place->disk_left) {
        place->disk_left -= n;
        return true;
    }
    item->missing = "disk";
    result->n_failed++;
    marey__dump_report(
        result,
        "dumps in %s have reached their limit of disk space: tensors are missing from "
        "some step on; dump.disk=SIZE sets it",
        place->dir);
    return false;
}

/* What may still be written: the rest of the budget, or all but a tenth of the file system. */
static uint64_t disk_left(const char *dir, uint64_t budget, uint64_t n_written)
{
    struct statvfs fs;
    if (budget != 0)
        return budget > n_written ? budget - n_written : 0;
    if (statvfs(dir, &fs) != 0 || fs.f_blocks == 0)
        return UINT64_MAX;
    const uint64_t reserve = fs.f_blocks / 10, free_blocks = fs.f_bavail;
    return free_blocks > reserve ? (free_blocks - reserve) * fs.f_frsize : 0;
}

/* ---- a step ---- */

/* The pid for our file names if another process uses the plain names, else 0. */
static uint64_t claim(const char *dir, int64_t rank)
{
    MAREY__HOLD(&dump->place_lock);
    if (!dump->claim.is_made || dump->claim.rank != rank) {
        struct marey__held_file folder;
        if (marey__held_set(&folder, marey__open_at(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, 0)))
            marey__dump_claim(&dump->claim, &folder, rank);
        marey__held_close(&folder);
    }
    return dump->claim.is_taken ? (uint64_t)getpid() : 0;
}

static marey_status write_step(struct marey__dump_step *step, struct marey__dump_result *result)
{
    /* Options and directory do not change while anything is queued. */
    const struct marey_dump_options *const o = &dump->options;
    struct marey__dump_place place = {.dir = dump->dir,
                                      .below = "",
                                      .rank = step->rank,
                                      .world = step->world,
                                      .run = dump->run,
                                      .host = dump->host,
                                      .mode = o->mode,
                                      .measures = (o->no_stats ? 0 : MAREY__MEASURE_STATS) |
                                                  MAREY__MEASURE_DIGEST,
                                      .durable = o->durable != 0,
                                      .began = dump->began};
    const bool is_kept = o->flight_steps > 0 && step->reason == NULL;
    char flight[40];
    if (is_kept) {
        marey__dump_flight_name(flight, sizeof flight);
        place.below = flight;
        place.world = o->layout == MAREY_DUMP_LAYOUT_ACCVLAB ? -1 : place.world;
    }
    MAREY_TRY(marey__dump_make_folders(place.dir));
    if (!is_kept)
        place.pid = claim(place.dir, place.rank);
    pthread_mutex_lock(&dump->lock);
    const uint64_t n_written = dump->n_disk_bytes;
    pthread_mutex_unlock(&dump->lock);
    place.disk_left = disk_left(place.dir, o->disk_bytes, n_written);
    const marey_status st = o->layout == MAREY_DUMP_LAYOUT_MAREY
                                ? marey__dump_write_marey(step, &place, result)
                                : marey__dump_write_accvlab(step, &place, result);
    if (is_kept)
        marey__dump_flight_kept(step->number);
    return st;
}

/* Caller holds the lock. */
static void count(const struct marey__dump_result *result, marey_status st)
{
    dump->counts.n_steps += st == MAREY_OK;
    dump->counts.n_tensors += result->n_tensors;
    dump->counts.n_bytes += result->n_bytes;
    dump->counts.n_failed += result->n_failed;
    if (dump->options.flight_steps == 0) /* otherwise they are removed again */
        dump->n_disk_bytes += result->n_bytes;
    if (dump->failure[0] == '\0')
        memcpy(dump->failure, result->why, sizeof dump->failure);
}

static void write_and_report(struct marey__dump_step *step)
{
    struct marey__dump_result result = {0};
    for (struct marey__dump_item *item = step->first; item != NULL; item = item->next)
        if (item->is_of_gpu)
            marey__dump_await(item);
    const marey_status st = write_step(step, &result);
    if (st != MAREY_OK)
        marey__dump_report(&result, "a step of the dump is not whole: %s", marey_last_error());
    if (result.why[0] != '\0')
        marey__say("%s; the program goes on", result.why);
    for (struct marey__dump_item *item = step->first; item != NULL; item = item->next)
        marey__dump_item_done(item);
    pthread_mutex_lock(&dump->lock);
    count(&result, st);
    pthread_mutex_unlock(&dump->lock);
    marey__dump_step_destroy(step);
    marey__dump_progress(1);
}

/* ---- threads ---- */

/* Waits until `*what` is not NULL; false if nothing came for a while and the thread should end. Caller holds the lock. */
static bool wait_for(pthread_cond_t *cond, void *const *what)
{
    const struct timespec until = marey__clock_after(CLOCK_REALTIME, idle_ns);
    int error = 0;
    while (*what == NULL && !dump->should_end && error != ETIMEDOUT)
        error = pthread_cond_timedwait(cond, &dump->lock, &until);
    return *what != NULL;
}

static bool wait_for_step(void)
{
    dump->n_idle++;
    const bool is_there = wait_for(&dump->work, (void *const *)&dump->first);
    dump->n_idle--;
    return is_there;
}

/* Steps being written; guarded by the lock. */
static uint64_t active[MAREY__DUMP_MAX_WRITERS + 1];

static bool is_active(uint64_t number)
{
    for (uint32_t i = 0; i < dump->n_writing; i++)
        if (active[i] == number)
            return true;
    return false;
}

static void finish(uint64_t number)
{
    uint32_t i = 0;
    while (active[i] != number)
        i++;
    active[i] = active[--dump->n_writing];
    pthread_cond_broadcast(&dump->done);
    pthread_cond_broadcast(&dump->room);
}

/* Writes the first step, after one with the same number in progress. Caller holds the lock, released meanwhile. */
static void write_first(void)
{
    while (dump->first != NULL &&
           (is_active(dump->first->number) || dump->n_writing == MAREY__COUNT_OF(active)))
        pthread_cond_wait(&dump->done, &dump->lock);
    struct marey__dump_step *const step = dump->first;
    if (step == NULL)
        return;
    const uint64_t number = step->number;
    dump->first = step->next;
    if (dump->first == NULL)
        dump->last = NULL;
    active[dump->n_writing++] = number;
    pthread_mutex_unlock(&dump->lock);
    write_and_report(step);
    pthread_mutex_lock(&dump->lock);
    finish(number);
}

static void end_thread(void)
{
    dump->n_threads--;
    pthread_cond_broadcast(&dump->done);
    pthread_mutex_unlock(&dump->lock);
}

static void *run(void *arg)
{
    (void)arg;
    pthread_setname_np(pthread_self(), "marey-dump");
    pthread_mutex_lock(&dump->lock);
    while (wait_for_step())
        write_first();
    dump->n_writers--;
    end_thread();
    return NULL;
}

/* False if no thread can be started. Caller holds the lock. */
static bool start_thread(void *(*run_it)(void *), void *arg)
{
    pthread_t thread;
    const bool ok = marey__thread_create(&thread, 0, run_it, arg) == 0;
    if (ok)
        pthread_detach(thread);
    dump->n_threads += ok;
    return ok;
}

bool marey__dump_queue(struct marey__dump_step *step)
{
    step->next = NULL;
    *(dump->last != NULL ? &dump->last->next : &dump->first) = step;
    dump->last = step;
    if (dump->n_idle == 0 && dump->n_writers < dump->options.n_writers)
        dump->n_writers += start_thread(run, NULL);
    if (dump->n_writers == 0)
        return false;
    pthread_cond_signal(&dump->work);
    return true;
}

static void *run_worker(void *arg)
{
    struct marey__dump_worker *const worker = arg;
    pthread_setname_np(pthread_self(), worker->name);
    pthread_mutex_lock(&dump->lock);
    for (;;) {
        worker->is_idle = true;
        const bool has_work = wait_for(&worker->has_work, (void *const *)&worker->first);
        worker->is_idle = false;
        if (!has_work)
            break;
        struct marey__dump_item *const item = worker->first;
        worker->first = item->next_waiting;
        worker->work(item);
    }
    worker->has_thread = false;
    end_thread();
    return NULL;
}

bool marey__dump_worker_add(struct marey__dump_worker *worker, struct marey__dump_item *item)
{
    if (!worker->has_thread)
        worker->has_thread = start_thread(run_worker, worker);
    if (!worker->has_thread)
        return false;
    item->next_waiting = NULL;
    *(worker->first != NULL ? &worker->last->next_waiting : &worker->first) = item;
    worker->last = item;
    if (worker->is_idle)
        pthread_cond_signal(&worker->has_work);
    return true;
}

void marey__dump_worker_after_fork(struct marey__dump_worker *worker)
{
    pthread_cond_init(&worker->has_work, NULL);
    worker->first = worker->last = NULL;
    worker->has_thread = worker->is_idle = false;
}

void marey__dump_write_here(void)
{
    MAREY__HOLD(&dump->lock);
    while (dump->first != NULL)
        write_first();
}

bool marey__dump_drain(uint64_t patience_ns)
{
    uint64_t seen = 0, since = marey__clock_ns(CLOCK_MONOTONIC);
    MAREY__HOLD(&dump->lock);
    while (dump->first != NULL || dump->n_writing > 0) {
        const struct timespec until = marey__clock_after(CLOCK_REALTIME, 1000000000);
        pthread_cond_timedwait(&dump->done, &dump->lock, &until);
        const uint64_t progress = __atomic_load_n(&dump->n_progress, __ATOMIC_RELAXED);
        const uint64_t now = marey__clock_ns(CLOCK_MONOTONIC);
        if (progress != seen)
            since = now;
        seen = progress;
        if (patience_ns != 0 && now - since > patience_ns)
            return false;
    }
    return true;
}

void marey__dump_end_threads(uint64_t patience_ns)
{
    const struct timespec until = marey__clock_after(CLOCK_REALTIME, patience_ns);
    int error = 0;
    dump->should_end = true;
    pthread_cond_broadcast(&dump->work);
    pthread_cond_broadcast(&marey__dump_gpu_worker.has_work);
    pthread_cond_broadcast(&marey__dump_measure_worker.has_work);
    while (dump->n_threads > 0 && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&dump->done, &dump->lock, &until);
    dump->should_end = false;
}
