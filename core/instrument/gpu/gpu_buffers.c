/*
 * Buffers: CUPTI fills them with records of hundreds of bytes; they are decoded when they come back, and reused. CUPTI
 * returns one when all its work has ended; while a program keeps the GPU busy, that means only full ones. So they are
 * small, some 300 kernels, and a kill loses no more than that. A thread requests partial ones ten times a second.
 */
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "instrument/gpu/internal.h"

enum {
    BUFFER_BYTES = 64 << 10,
    MAX_SPARE = 64,
    POLL_MS = 100,
};

static struct {
    pthread_mutex_t lock;
    uint8_t *spare[MAX_SPARE];
    size_t n_spare;
} buffers = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint8_t *take_spare(void)
{
    MAREY__HOLD(&buffers.lock);
    return buffers.n_spare > 0 ? buffers.spare[--buffers.n_spare] : NULL;
}

/* On out of memory CUPTI gets no buffer; it drops the records and counts them. */
void marey__gpu_buffer_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *buffer = take_spare();
    if (*buffer == NULL)
        *buffer = marey__alloc(BUFFER_BYTES); /* 16-byte aligned; CUPTI requires 8 */
    *size = *buffer != NULL ? BUFFER_BYTES : 0;
    *max_records = 0;
}

static void give_back(uint8_t *buffer)
{
    pthread_mutex_lock(&buffers.lock);
    const bool is_kept = buffers.n_spare < MAX_SPARE;
    if (is_kept)
        buffers.spare[buffers.n_spare++] = buffer;
    pthread_mutex_unlock(&buffers.lock);
    if (!is_kept)
        marey__free(buffer);
}

static uint32_t n_completing; /* buffers being decoded, on any thread */

void marey__gpu_buffers_settle(void)
{
    while (__atomic_load_n(&n_completing, __ATOMIC_ACQUIRE) != 0)
        usleep(20);
}

void marey__gpu_buffer_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                                size_t valid)
{
    (void)size;
    if (buffer == NULL)
        return;
    __atomic_fetch_add(&n_completing, 1, __ATOMIC_ACQ_REL);
    const struct marey__cupti *cupti = __atomic_load_n(&marey__gpu.cupti, __ATOMIC_RELAXED);
    const uint8_t *records[MAREY__GPU_BATCH], *record = NULL;
    size_t n = 0, n_dropped = 0;
    while (valid > 0 && cupti->next_record(buffer, valid, &record) == MAREY__CUPTI_SUCCESS) {
        records[n++] = record;
        if (n == MAREY__GPU_BATCH) {
            marey__gpu_decode(records, n);
            n = 0;
        }
    }
    marey__gpu_decode(records, n);
    if (cupti->n_dropped(context, stream, &n_dropped) == MAREY__CUPTI_SUCCESS)
        marey__gpu_count(&marey__gpu.counts.dropped, n_dropped);
    give_back(buffer);
    __atomic_fetch_sub(&n_completing, 1, __ATOMIC_ACQ_REL);
}

/* ---- the polling thread ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t bell;
    pthread_t thread;
    bool exists, should_end;
} poll = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *poll_main(void *arg)
{
    const struct marey__cupti *cupti = arg;
    prctl(PR_SET_NAME, "marey-gpu");
    pthread_mutex_lock(&poll.lock);
    while (!poll.should_end) {
        const struct timespec until = marey__clock_after(CLOCK_MONOTONIC, POLL_MS * 1000000);
        pthread_cond_timedwait(&poll.bell, &poll.lock, &until);
        if (poll.should_end)
            break;
        pthread_mutex_unlock(&poll.lock);
        cupti->flush(0);
        pthread_mutex_lock(&poll.lock);
    }
    pthread_mutex_unlock(&poll.lock);
    return NULL;
}

void marey__gpu_poll_start(const struct marey__cupti *cupti)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&poll.bell, &attr);
    pthread_condattr_destroy(&attr);
    poll.should_end = false;
    poll.exists = marey__thread_create(&poll.thread, 0, poll_main, (void *)cupti) == 0;
}

void marey__gpu_poll_stop(void)
{
    if (!poll.exists)
        return;
    pthread_mutex_lock(&poll.lock);
    poll.should_end = true;
    pthread_cond_signal(&poll.bell);
    pthread_mutex_unlock(&poll.lock);
    pthread_join(poll.thread, NULL);
    poll.exists = false;
}
