/*
 * From chunks of events to text in the file, by threads beside the walking ones. Each thread fills its own section; a
 * full section is compressed, written as base64, and is one block of the page.
 *
 * Layout of a chunk in a section: the number of events, the widths of its three columns in bytes, its first time; then
 * gap, value and id as planes, the lowest bytes of all events first. The gap is the time from the end of the previous
 * event to the begin of this one, negative if they overlap; if values are not durations, the time between begins.
 */
#include "codec/internal.h"
#include "present/page/internal.h"

enum {
    SECTION_BYTES = 1 << 19, /* minimum before compression, except for the last of each thread */
    QUEUED_MAX = 64,         /* chunks */
    SPARE_MAX = 16,
    N_COLUMNS = 3,
    HEADER_BYTES = 16,
};

struct section {
    struct marey__buf raw;
    struct marey__buf packed, text; /* reused for the next one */
    size_t *ends; /* of the planes in `raw`: bytes of one kind are compressed separately */
    size_t n_ends, ends_cap;
    uint32_t number;
    bool has_number;
    uint32_t low[N_COLUMNS][MAREY__PAGE_CHUNK]; /* of each column, the lower half of its numbers, */
    uint32_t high[N_COLUMNS][MAREY__PAGE_CHUNK]; /* and the upper half if needed */
};

struct marey__page_packer {
    int fd;
    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t has_chunks, has_room;
    struct marey__page_chunk *first, *last; /* queued */
    size_t n_queued;
    struct marey__page_event *spare[SPARE_MAX]; /* space for MAREY__PAGE_CHUNK events each */
    size_t n_spare;
    uint32_t n_sections;
    bool is_ending;
    marey_status status; /* the first failure, and its message */
    char error[512];
    pthread_mutex_t writing; /* held while a block is written */
    pthread_t *threads;
    size_t n_threads;
    struct section *own; /* for chunks added while no thread runs */
};

/* ---- failures ---- */

static void fail(struct marey__page_packer *packer, marey_status status)
{
    MAREY__HOLD(&packer->lock);
    if (packer->status == MAREY_OK) {
        packer->status = status;
        snprintf(packer->error, sizeof packer->error, "%s", marey_last_error());
    }
}

/* The status is written out, for static analyzers. */
static marey_status no_memory(void)
{
    (void)marey__no_memory();
    return MAREY_ENOMEM;
}

/* ---- blocks ---- */

static marey_status write_block(struct marey__page_packer *packer, struct section *s, const char *name)
{
    s->text.len = 0;
    marey__buf_printf(&s->text, "<script type=\"application/octet-stream\" id=\"%s\">", name);
    marey__base64_put(&s->text, (const uint8_t *)s->packed.data, s->packed.len);
    marey__buf_puts(&s->text, "</script>\n");
    if (s->text.failed || s->packed.failed || s->raw.failed)
        return no_memory();
    MAREY__HOLD(&packer->writing);
    const bool ok = marey__write_all(packer->fd, s->text.data, s->text.len);
    return ok ? MAREY_OK : marey__fail_errno("write the page");
}

static bool end_plane(struct section *s)
{
    return MAREY__PUSH(s->ends, s->n_ends, s->ends_cap, s->raw.len);
}

static marey_status finish_section(struct marey__page_packer *packer, struct section *s)
{
    struct marey__deflate stream = {.out = &s->packed};
    char name[24];
    if (s->raw.len == 0)
        return MAREY_OK;
    if (!end_plane(s))
        return no_memory();
    s->packed.len = 0;
    for (size_t i = 0, from = 0; i < s->n_ends; from = s->ends[i++])
        marey__deflate_bytes(&stream, s->raw.data + from, s->ends[i] - from);
    marey__deflate_finish(&stream);
    snprintf(name, sizeof name, "events-%u", s->number);
    s->raw.len = s->n_ends = 0;
    s->has_number = false;
    return write_block(packer, s, name);
}

/* ---- columns ---- */

struct numbers {
    uint64_t of[N_COLUMNS];
};

/* An event as written; `last_end` is the end of the previous one, and is updated. */
static inline struct numbers numbers_of(const struct marey__page_event *event, bool has_duration,
                                        uint64_t *last_end)
{
    const int64_t gap = (int64_t)(event->start_ns - *last_end);
    *last_end = event->start_ns + (has_duration ? event->value : 0);
    const uint64_t sign = gap < 0 ? UINT64_MAX : 0;
    return (struct numbers){{((uint64_t)gap << 1) ^ sign, event->value, event->id}};
}

/* Returns the bitwise OR of each column. Upper halves are rarely needed, so they are not stored here. */
static struct numbers fill_low(struct section *s, const struct marey__page_chunk *chunk)
{
    const bool has_duration = chunk->values == MAREY__PAGE_DURATIONS;
    struct numbers all = {0};
    uint64_t last_end = chunk->first_ns;
    for (size_t i = 0; i < chunk->n; i++) {
        const struct numbers numbers = numbers_of(&chunk->events[i], has_duration, &last_end);
        for (size_t c = 0; c < N_COLUMNS; c++) {
            s->low[c][i] = (uint32_t)numbers.of[c];
            all.of[c] |= numbers.of[c];
        }
    }
    return all;
}

static void fill_high(struct section *s, const struct marey__page_chunk *chunk)
{
    const bool has_duration = chunk->values == MAREY__PAGE_DURATIONS;
    uint64_t last_end = chunk->first_ns;
    for (size_t i = 0; i < chunk->n; i++) {
        const struct numbers numbers = numbers_of(&chunk->events[i], has_duration, &last_end);
        for (size_t c = 0; c < N_COLUMNS; c++)
            s->high[c][i] = (uint32_t)(numbers.of[c] >> 32);
    }
}

/* Fill the columns; `widths` are the bytes needed for the largest number of each. */
static void fill_columns(struct section *s, const struct marey__page_chunk *chunk, uint8_t *widths)
{
    const struct numbers all = fill_low(s, chunk);
    for (size_t c = 0; c < N_COLUMNS; c++)
        widths[c] = all.of[c] == 0 ? 0 : (uint8_t)(8 - (unsigned)__builtin_clzll(all.of[c]) / 8);
    if ((all.of[0] | all.of[1] | all.of[2]) >> 32 != 0)
        fill_high(s, chunk);
}

static void put_plane(uint8_t *restrict to, const uint32_t *restrict values, size_t n, unsigned shift)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (uint8_t)(values[i] >> shift);
}

/* Short planes share compression codes with preceding ones: codes of their own would be longer than the planes. */
static bool put_columns(struct section *s, const struct marey__page_chunk *chunk,
                        const uint8_t *widths)
{
    enum { WORTH_CODES = 1024 };
    for (size_t c = 0; c < N_COLUMNS; c++)
        for (unsigned plane = 0; plane < widths[c]; plane++) {
            uint8_t *to = marey__buf_extend(&s->raw, chunk->n);
            if (to == NULL)
                return false;
            put_plane(to, plane < 4 ? s->low[c] : s->high[c], chunk->n, 8 * (plane % 4));
            const size_t from = s->n_ends != 0 ? s->ends[s->n_ends - 1] : 0;
            if (s->raw.len - from >= WORTH_CODES && !end_plane(s))
                return false;
        }
    return true;
}

static bool put_chunk(struct section *s, struct marey__page_chunk *chunk)
{
    uint8_t header[HEADER_BYTES] = {0};
    fill_columns(s, chunk, header + 4);
    memcpy(header, &chunk->n, sizeof chunk->n);
    header[7] = chunk->values;
    memcpy(header + 8, &chunk->first_ns, sizeof chunk->first_ns);
    chunk->section = s->number;
    chunk->offset = (uint32_t)s->raw.len;
    marey__buf_put(&s->raw, header, sizeof header);
    return put_columns(s, chunk, header + 4);
}

/* Reuse the memory of a whole chunk: it is still cached, and the system need not clear it. */
static void leave_events(struct marey__page_packer *packer, struct marey__page_chunk *chunk)
{
    pthread_mutex_lock(&packer->lock);
    const bool is_kept = chunk->n == MAREY__PAGE_CHUNK && packer->n_spare < SPARE_MAX;
    if (is_kept)
        packer->spare[packer->n_spare++] = chunk->events;
    pthread_mutex_unlock(&packer->lock);
    if (!is_kept)
        marey__free(chunk->events);
    chunk->events = NULL;
}

struct marey__page_event *marey__page_packer_events(struct marey__page_packer *packer)
{
    pthread_mutex_lock(&packer->lock);
    struct marey__page_event *events = packer->n_spare != 0 ? packer->spare[--packer->n_spare] : NULL;
    pthread_mutex_unlock(&packer->lock);
    return events != NULL ? events : marey__alloc(MAREY__PAGE_CHUNK * sizeof *events);
}

static marey_status pack(struct marey__page_packer *packer, struct section *s,
                         struct marey__page_chunk *chunk)
{
    if (!s->has_number) {
        s->number = __atomic_fetch_add(&packer->n_sections, 1, __ATOMIC_RELAXED);
        s->has_number = true;
    }
    const bool ok = put_chunk(s, chunk);
    leave_events(packer, chunk);
    if (!ok)
        return no_memory();
    return s->raw.len >= SECTION_BYTES ? finish_section(packer, s) : MAREY_OK;
}

/* ---- threads ---- */

static void free_section(struct section *s)
{
    if (s == NULL)
        return;
    marey__buf_fini(&s->raw);
    marey__buf_fini(&s->packed);
    marey__buf_fini(&s->text);
    MAREY__FREE_ALL(s->ends, s);
}

/* The next chunk; NULL at the end. */
static struct marey__page_chunk *next_chunk(struct marey__page_packer *packer)
{
    MAREY__HOLD(&packer->lock);
    while (packer->first == NULL && !packer->is_ending)
        pthread_cond_wait(&packer->has_chunks, &packer->lock);
    struct marey__page_chunk *chunk = packer->first;
    if (chunk != NULL) {
        packer->first = chunk->queued;
        packer->last = packer->first != NULL ? packer->last : NULL;
        packer->n_queued--;
        pthread_cond_signal(&packer->has_room);
    }
    return chunk;
}

static void *work(void *arg)
{
    struct marey__page_packer *packer = arg;
    struct section *s = marey__calloc(1, sizeof *s);
    marey_status status = s != NULL ? MAREY_OK : no_memory();
    for (struct marey__page_chunk *chunk; (chunk = next_chunk(packer)) != NULL;)
        if (status == MAREY_OK)
            status = pack(packer, s, chunk);
    /* After a failure chunks are taken and dropped, so that no thread waits. */
    if (status == MAREY_OK)
        status = finish_section(packer, s);
    if (status != MAREY_OK)
        fail(packer, status);
    free_section(s);
    return NULL;
}

void marey__page_packer_take(struct marey__page_packer *packer, struct marey__page_chunk *chunk)
{
    if (packer->n_threads == 0) {
        const marey_status status =
            packer->status == MAREY_OK ? pack(packer, packer->own, chunk) : MAREY_OK;
        if (status != MAREY_OK)
            fail(packer, status);
        return;
    }
    MAREY__HOLD(&packer->lock);
    while (packer->n_queued >= QUEUED_MAX)
        pthread_cond_wait(&packer->has_room, &packer->lock);
    chunk->queued = NULL;
    if (packer->last != NULL)
        packer->last->queued = chunk;
    else
        packer->first = chunk;
    packer->last = chunk;
    packer->n_queued++;
    pthread_cond_signal(&packer->has_chunks);
}

marey_status marey__page_packer_start(int fd, size_t n, struct marey__page_packer **out)
{
    struct marey__page_packer *packer = marey__calloc(1, sizeof *packer);
    if (packer == NULL)
        return no_memory();
    packer->fd = fd;
    packer->own = marey__calloc(1, sizeof *packer->own);
    packer->threads = marey__calloc(n + 1, sizeof *packer->threads);
    pthread_mutex_init(&packer->lock, NULL);
    pthread_mutex_init(&packer->writing, NULL);
    pthread_cond_init(&packer->has_chunks, NULL);
    pthread_cond_init(&packer->has_room, NULL);
    if (packer->own == NULL || packer->threads == NULL) {
        marey__page_packer_free(packer);
        return no_memory();
    }
    /* Continue with fewer threads if some cannot be created. */
    while (packer->n_threads < n &&
           pthread_create(&packer->threads[packer->n_threads], NULL, work, packer) == 0)
        packer->n_threads++;
    *out = packer;
    return MAREY_OK;
}

static void end_threads(struct marey__page_packer *packer)
{
    pthread_mutex_lock(&packer->lock);
    packer->is_ending = true;
    pthread_cond_broadcast(&packer->has_chunks);
    pthread_mutex_unlock(&packer->lock);
    for (size_t i = 0; i < packer->n_threads; i++)
        pthread_join(packer->threads[i], NULL);
    packer->n_threads = 0;
}

marey_status marey__page_packer_stop(struct marey__page_packer *packer)
{
    end_threads(packer);
    if (packer->status == MAREY_OK)
        return finish_section(packer, packer->own);
    return marey__fail(packer->status, "%s", packer->error);
}

marey_status marey__page_packer_put(struct marey__page_packer *packer, const char *name,
                                    const char *text, size_t n)
{
    struct section *s = packer->own;
    s->packed.len = 0;
    marey__deflate_all(&s->packed, text, n, MAREY__DEFLATE_SMALL);
    return write_block(packer, s, name);
}

void marey__page_packer_free(struct marey__page_packer *packer)
{
    if (packer == NULL)
        return;
    end_threads(packer);
    free_section(packer->own);
    for (size_t i = 0; i < packer->n_spare; i++)
        marey__free(packer->spare[i]);
    pthread_cond_destroy(&packer->has_room);
    pthread_cond_destroy(&packer->has_chunks);
    pthread_mutex_destroy(&packer->writing);
    pthread_mutex_destroy(&packer->lock);
    MAREY__FREE_ALL(packer->threads, packer);
}
