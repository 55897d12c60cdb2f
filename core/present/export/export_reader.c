/*
 * A thread that reads and decodes a process's events while the caller encodes earlier ones:
 *
 *   marey__recording_visit_in_order -> parcels, filled in turn -> the visitor, in the same order
 *
 * A parcel holds several batches, because waking a thread costs as much as encoding some hundred
 * events. N_PARCELS limits both the memory and the read-ahead.
 */
#include "present/export/internal.h"
#include "read/internal.h"

enum { N_PARCELS = 4, PARCEL_BATCHES = 32, PARCEL_WORDS = 1 << 15 };

/* Owned by the reader until handed over, then by the caller until released. */
struct parcel {
    uint64_t *words;
    size_t n_words, cap_words;
    struct marey_batch batches[PARCEL_BATCHES]; /* with adjacent words in `words` */
    size_t n_batches;
};

struct reading {
    marey_recording *recording;
    size_t process;
    struct parcel parcels[N_PARCELS]; /* parcel i of the stream is parcels[i % N_PARCELS] */
    pthread_mutex_t lock;             /* guards the members below */
    pthread_cond_t changed;
    size_t n_filled; /* parcels handed over; written only by the reader, which may read it without the lock */
    size_t n_emptied; /* parcels released by the caller */
    bool is_done;     /* no more parcels; `status` has the reason */
    bool is_unwanted; /* the caller has stopped */
    marey_status status;
    char error[1024];
};

/* ---- the reader's side ---- */

static struct parcel *parcel_in_hand(struct reading *reading)
{
    return &reading->parcels[reading->n_filled % N_PARCELS];
}

/* Hand over the filled parcel and wait for an empty one; false if the caller has stopped. */
static bool hand_over(struct reading *reading)
{
    pthread_mutex_lock(&reading->lock);
    reading->n_filled++;
    pthread_cond_signal(&reading->changed);
    while (reading->n_filled - reading->n_emptied == N_PARCELS && !reading->is_unwanted)
        pthread_cond_wait(&reading->changed, &reading->lock);
    const bool is_wanted = !reading->is_unwanted;
    pthread_mutex_unlock(&reading->lock);
    if (is_wanted)
        parcel_in_hand(reading)->n_words = parcel_in_hand(reading)->n_batches = 0;
    return is_wanted;
}

static marey_status put_batch(void *ctx, const struct marey_batch *batch)
{
    struct reading *reading = ctx;
    if (batch->n == 0)
        return MAREY_OK; /* a gap reported early; the next batch reports it again */
    struct parcel *parcel = parcel_in_hand(reading);
    const bool has_room = parcel->n_batches == 0 || (parcel->n_batches < PARCEL_BATCHES &&
                                                     parcel->n_words + batch->n <= PARCEL_WORDS);
    if (!has_room && !hand_over(reading))
        return MAREY_EINVAL; /* ends the visit; the status is not used */
    parcel = parcel_in_hand(reading);
    const size_t n_words = parcel->n_words + batch->n;
    MAREY__TRY_MEMORY(
        marey__grow(&parcel->words, &parcel->cap_words, n_words, sizeof parcel->words[0]));
    memcpy(parcel->words + parcel->n_words, batch->words, batch->n * sizeof batch->words[0]);
    parcel->batches[parcel->n_batches++] = *batch;
    parcel->n_words = n_words;
    return MAREY_OK;
}

static void *reader_main(void *arg)
{
    struct reading *reading = arg;
    const marey_status status =
        marey__recording_visit_in_order(reading->recording, reading->process, put_batch, reading);
    MAREY__HOLD(&reading->lock);
    if (status == MAREY_OK)
        reading->n_filled++; /* the last one, possibly empty */
    else
        strncpy(reading->error, marey_last_error(), sizeof reading->error - 1);
    reading->status = status;
    reading->is_done = true;
    pthread_cond_signal(&reading->changed);
    return NULL;
}

/* ---- the caller's side ---- */

/* The next parcel, or NULL at the end. */
static const struct parcel *take_parcel(struct reading *reading)
{
    MAREY__HOLD(&reading->lock);
    while (reading->n_filled == reading->n_emptied && !reading->is_done)
        pthread_cond_wait(&reading->changed, &reading->lock);
    const bool is_there = reading->n_filled != reading->n_emptied;
    const struct parcel *parcel = &reading->parcels[reading->n_emptied % N_PARCELS];
    return is_there ? parcel : NULL;
}

static marey_status visit_parcel(const struct parcel *parcel, marey_visitor *visitor, void *ctx)
{
    const uint64_t *words = parcel->words;
    for (size_t i = 0; i < parcel->n_batches; i++) {
        struct marey_batch batch = parcel->batches[i];
        batch.words = words;
        words += batch.n;
        MAREY_TRY(visitor(ctx, &batch));
    }
    return MAREY_OK;
}

static marey_status empty_all(struct reading *reading, marey_visitor *visitor, void *ctx)
{
    marey_status status = MAREY_OK;
    const struct parcel *parcel;
    while (status == MAREY_OK && (parcel = take_parcel(reading)) != NULL) {
        status = visit_parcel(parcel, visitor, ctx);
        pthread_mutex_lock(&reading->lock);
        reading->n_emptied++;
        reading->is_unwanted = status != MAREY_OK;
        pthread_cond_signal(&reading->changed);
        pthread_mutex_unlock(&reading->lock);
    }
    return status;
}

marey_status marey__visit_ahead(marey_recording *recording, size_t process, marey_visitor *visitor,
                                void *ctx)
{
    struct reading reading = {
        .recording = recording,
        .process = process,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
    };
    pthread_t thread;
    if (!(marey__thread_create(&thread, 0, reader_main, &reading) == 0))
        return marey__recording_visit_in_order(recording, process, visitor, ctx);
    marey_status status = empty_all(&reading, visitor, ctx);
    pthread_join(thread, NULL);
    if (status == MAREY_OK && reading.status != MAREY_OK)
        status = marey__fail(reading.status, "%s", reading.error);
    for (size_t i = 0; i < N_PARCELS; i++)
        marey__free(reading.parcels[i].words);
    return status;
}
