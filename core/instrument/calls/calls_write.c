/*
 * CALLS blocks of a log, complete or as differences to the last time. docs/formats/recording.md describes the bytes.
 *
 * First the existing nodes are counted, then functions, signatures and threads are written, then the nodes: everything
 * a node refers to existed before it.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "instrument/calls/internal.h"

enum { BLOCK = 1 << 20 }; /* bytes after which a block ends */

struct writer {
    struct marey_calls *calls;
    struct marey__log *log;
    struct marey__buf bytes;
    bool is_delta;
    uint32_t profile;
    size_t head; /* size of the header of each block */
    marey_status status;
    uint64_t n_calls;   /* written so far */
    double ns_per_tick; /* as in the block */
};

static void put_numbers(struct marey__buf *bytes, char tag, const uint64_t *numbers, size_t n)
{
    marey__buf_put(bytes, &tag, 1);
    for (size_t i = 0; i < n; i++)
        marey__buf_put_leb128(bytes, numbers[i]);
}
/* Writes a tag and its numbers. */
#define PUT(w, tag, ...)                                                                           \
    put_numbers(&(w)->bytes, tag, (const uint64_t[]){__VA_ARGS__},                                 \
                sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void put_text(struct marey__buf *bytes, const char *text, size_t len)
{
    marey__buf_put_leb128(bytes, len);
    marey__buf_put(bytes, text, len);
}

/* 0: ticks of the log. A recording that opened after the profile may use another clock. */
static double unit_of(const struct marey_calls *calls, bool is_recording)
{
    if (calls->timer == MAREY__TIMER_MONOTONIC)
        return 1.0;
    if (calls->timer == MAREY__TIMER_TSC && is_recording && !marey__clock_is_tsc)
        return marey_calls_ns_per_tick(calls);
    return calls->ns_per_tick;
}

static void begin_block(struct writer *w)
{
    w->bytes.len = 0;
    PUT(w, 'P', w->profile);
    marey__buf_put(&w->bytes, &w->ns_per_tick, sizeof w->ns_per_tick);
    marey__buf_put_leb128(&w->bytes, w->calls->flags);
    marey__buf_put_leb128(&w->bytes, __atomic_load_n(&w->calls->cost_ps, __ATOMIC_RELAXED));
    w->head = w->bytes.len;
}

static void end_block(struct writer *w)
{
    if (w->status == MAREY_OK && w->bytes.failed)
        w->status = marey__no_memory();
    if (w->status != MAREY_OK || w->bytes.len == w->head)
        return;
    struct marey__block block = {.type = MAREY__BLOCK_CALLS};
    w->status = marey__log_append(w->log, &block, w->bytes.data, w->bytes.len);
}

/* Blocks end only between items. */
static void maybe_next(struct writer *w)
{
    if (w->bytes.len < BLOCK)
        return;
    end_block(w);
    begin_block(w);
}

/* ---- definitions; caller holds the profile's lock ---- */

static void put_functions(struct writer *w, size_t from)
{
    for (size_t i = from; i < w->calls->n_names; i++) {
        const struct marey_calls_function *const f = &w->calls->names[i].function;
        PUT(w, 'F', i + 1, (uint64_t)f->kind, f->line);
        put_text(&w->bytes, f->name, strlen(f->name));
        put_text(&w->bytes, f->qualified, strlen(f->qualified));
        put_text(&w->bytes, f->file, strlen(f->file));
        put_text(&w->bytes, f->module, strlen(f->module));
        maybe_next(w);
    }
}

static void put_signatures(struct writer *w, size_t from)
{
    for (size_t i = from; i < w->calls->n_texts; i++) {
        const struct marey__calls_text *const s = &w->calls->texts[i];
        PUT(w, 'S', i + 1, s->function,
            s->elements > 0 && s->elements < 0x1p63 ? (uint64_t)s->elements : 0);
        put_text(&w->bytes, s->text, s->len);
        maybe_next(w);
    }
}

static void put_threads(struct writer *w, size_t from)
{
    for (const struct marey_calls_thread *t = w->calls->threads; t != NULL; t = t->next)
        if (t->number > from) {
            PUT(w, 'T', t->number, (uint64_t)t->tid);
            put_text(&w->bytes, t->name, strlen(t->name));
            maybe_next(w);
        }
}

/* ---- nodes ---- */

/* Writes the first `n` nodes of a chunk. Differences are to what this profile's recording has. */
static void put_chunk(struct writer *w, const struct marey_calls_thread *thread,
                      struct marey__calls_chunk *chunk, size_t n)
{
    static const struct marey__calls_sums none;
    struct marey__calls_written *const written = w->is_delta ? chunk->written : NULL;
    for (size_t i = 0; i < n; i++) {
        const struct marey__calls_node *const node = &chunk->nodes[i];
        const struct marey__calls_sums *const before = written != NULL ? &written->sums[i] : &none;
        if (written == NULL || i >= written->n_nodes)
            PUT(w, 'N', node->number, thread->number, node->parent, node->function, node->signature);
        struct marey__calls_sums now;
        if (marey__calls_sums_get(thread, node, &now) && now.calls != before->calls) {
            PUT(w, 'C', node->number, now.calls - before->calls, now.resumes - before->resumes,
                now.self - before->self, now.total - before->total, now.max);
            w->n_calls += now.calls - before->calls + now.resumes - before->resumes;
            if (written != NULL)
                written->sums[i] = now;
        }
        if (written != NULL && i >= written->n_nodes)
            written->n_nodes = i + 1;
        maybe_next(w);
    }
}

/* Without memory to store what was written, the nodes wait for the next time. */
static bool can_put(const struct writer *w, struct marey__calls_chunk *chunk)
{
    if (w->is_delta && chunk->written == NULL)
        chunk->written = marey__calloc(1, sizeof *chunk->written);
    return !w->is_delta || chunk->written != NULL;
}

static void put_nodes(struct writer *w, const struct marey_calls_thread *thread)
{
    uint64_t left = thread->n_to_write;
    for (struct marey__calls_chunk *chunk = __atomic_load_n(&thread->chunks, __ATOMIC_ACQUIRE);
         left > 0 && can_put(w, chunk); chunk = __atomic_load_n(&chunk->next, __ATOMIC_ACQUIRE)) {
        const size_t n = (size_t)MAREY__MIN(left, (uint64_t)MAREY__CALLS_CHUNK);
        put_chunk(w, thread, chunk, n);
        left -= n;
    }
}

void marey__calls_append_reset(struct marey_calls *calls)
{
    pthread_mutex_lock(&calls->write_lock);
    pthread_mutex_lock(&calls->lock);
    calls->recorded = (struct marey__calls_recorded){0};
    for (struct marey_calls_thread *t = calls->threads; t != NULL; t = t->next)
        for (struct marey__calls_chunk *chunk = t->chunks; chunk != NULL; chunk = chunk->next) {
            marey__free(chunk->written);
            chunk->written = NULL;
        }
    pthread_mutex_unlock(&calls->lock);
    pthread_mutex_unlock(&calls->write_lock);
}

/* Writes functions, signatures and threads. Returns how many nodes follow, and of which threads. */
static struct marey__calls_recorded put_definitions(struct writer *w,
                                                    const struct marey__calls_recorded *recorded)
{
    struct marey_calls *const calls = w->calls;
    MAREY__HOLD(&calls->lock);
    for (struct marey_calls_thread *t = calls->threads; t != NULL; t = t->next)
        t->n_to_write = __atomic_load_n(&t->n_nodes, __ATOMIC_ACQUIRE);
    put_functions(w, recorded->names);
    put_signatures(w, recorded->texts);
    put_threads(w, recorded->threads);
    return (struct marey__calls_recorded){calls->n_names, calls->n_texts, calls->n_threads, 0};
}

marey_status marey__calls_append(struct marey_calls *calls, struct marey__log *log, bool is_delta,
                                 uint32_t profile)
{
    static const struct marey__calls_recorded none;
    struct writer w = {.calls = calls, .log = log, .is_delta = is_delta, .profile = profile};
    pthread_mutex_lock(&calls->write_lock);
    w.ns_per_tick = unit_of(calls, is_delta);
    begin_block(&w);
    struct marey__calls_recorded recorded = put_definitions(&w, is_delta ? &calls->recorded : &none);
    uint64_t n_other = 0;
    /* The last one's link may change concurrently: do not follow it. */
    const struct marey_calls_thread *t = recorded.threads > 0 ? calls->threads : NULL;
    for (size_t i = 0; i < recorded.threads; i++) {
        put_nodes(&w, t);
        n_other += __atomic_load_n(&t->n_other, __ATOMIC_RELAXED);
        if (i + 1 < recorded.threads)
            t = t->next;
    }
    PUT(&w, 'O', n_other, __atomic_load_n(&calls->n_widened, __ATOMIC_RELAXED),
        __atomic_load_n(&calls->n_bytes, __ATOMIC_RELAXED));
    end_block(&w);
    recorded.calls = calls->recorded.calls + w.n_calls;
    if (is_delta && w.status == MAREY_OK)
        calls->recorded = recorded;
    pthread_mutex_unlock(&calls->write_lock);
    marey__buf_fini(&w.bytes);
    return w.status;
}

/* ---- a separate log ---- */

static marey_status append_process(struct marey_calls *calls, struct marey__log *log)
{
    const double ns_per_tick = marey_calls_ns_per_tick(calls);
    const bool is_tsc = calls->timer == MAREY__TIMER_TSC;
    struct marey__buf texts MAREY__FINALLY(marey__buf_fini) = {0};
    struct marey__buf command MAREY__FINALLY(marey__buf_fini) = {0};
    char host[256];
    marey__identity_host(host, sizeof host);
    marey__identity_command(&command);
    marey__buf_put(&command, "", 1);
    marey__texts_put(&texts, MAREY__KEY_VERSION, MAREY_VERSION);
    marey__texts_printf(&texts, MAREY__KEY_PID, "%d", (int)getpid());
    marey__texts_put(&texts, MAREY__KEY_HOST, host);
    marey__texts_put(&texts, MAREY__KEY_COMMAND, command.failed ? "" : command.data);
    marey__texts_put(&texts, MAREY__KEY_CLOCK, is_tsc ? "tsc" : "monotonic");
    marey__texts_printf(&texts, MAREY__KEY_TICK_HZ, "%.0f", is_tsc ? 1e9 / ns_per_tick : 1e9);
    marey__texts_put(&texts, MAREY__KEY_POOL, "");
    return marey__log_append_texts(log, MAREY__BLOCK_LOG, &texts);
}

static marey_status append_begin(struct marey_calls *calls, struct marey__log *log)
{
    const struct marey__clock_entry entry = {calls->begin.tick, calls->begin.monotonic_ns,
                                             calls->begin.realtime_ns, calls->begin.width_ns};
    struct marey__block block = {
        .type = MAREY__BLOCK_CLOCK, .first_tick = entry.tick, .last_tick = entry.tick};
    return marey__log_append(log, &block, &entry, sizeof entry);
}

static marey_status append_all(struct marey_calls *calls, struct marey__log *log)
{
    MAREY_TRY(append_process(calls, log));
    MAREY_TRY(append_begin(calls, log));
    MAREY_TRY(marey__calls_append(calls, log, false, 0));
    MAREY_TRY(marey__log_append_moment(log, calls->timer == MAREY__TIMER_TSC));
    struct marey__buf texts MAREY__FINALLY(marey__buf_fini) = {0};
    marey__texts_put(&texts, MAREY__KEY_END, "stop");
    return marey__log_append_texts(log, MAREY__BLOCK_END, &texts);
}

marey_status marey_calls_write(struct marey_calls *calls, int fd)
{
    const int own = marey__raise_fd(dup(fd));
    if (own < 0)
        return marey__fail_errno("write a profile");
    const off_t at = lseek(own, 0, SEEK_CUR); /* bytes before it stay if a write fails */
    struct marey__log log;
    marey__log_adopt(&log, own, at > 0 ? (uint64_t)at : 0);
    const marey_status status = append_all(calls, &log);
    marey__log_close(&log);
    return status;
}
