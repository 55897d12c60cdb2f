/*
 * Nonblocking operations between their start and their wait, by handle, because receive results are known only then.
 * Sends are not stored: everything about them is known at the start, and an MPI may use one handle for several
 * completed sends.
 */
#include <pthread.h>
#include <stdlib.h>

#include "mpi_internal.h"

struct entry {
    MPI_Request request;
    struct mpi_started started;
    struct entry *next;
};

enum { N_BUCKETS = 1024 };
static struct {
    pthread_mutex_t lock; /* guards the other fields */
    struct entry *buckets[N_BUCKETS];
    struct entry *spare; /* free list */
    size_t n;            /* also read without the lock: usually 0 */
    uint64_t n_started;  /* numbers assigned so far */
} requests = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct entry **link_of(MPI_Request request)
{
    struct entry **link = &requests.buckets[(request ^ request >> 6 ^ request >> 14) % N_BUCKETS];
    while (*link != NULL && (*link)->request != request)
        link = &(*link)->next;
    return link;
}

static struct entry *take_spare(void)
{
    struct entry *entry = requests.spare;
    if (entry == NULL)
        return malloc(sizeof *entry);
    requests.spare = entry->next;
    return entry;
}

/* Removes it; caller holds the lock. Its end will not be observed. */
static void drop(struct entry **link)
{
    struct entry *entry = *link;
    marey_async_end(entry->started.flight);
    *link = entry->next;
    entry->next = requests.spare;
    requests.spare = entry;
    __atomic_store_n(&requests.n, requests.n - 1, __ATOMIC_RELAXED);
}

void mpi_request_add(MPI_Request request, const struct mpi_started *started)
{
    pthread_mutex_lock(&requests.lock);
    struct entry **link = link_of(request);
    if (*link != NULL) /* it ended through a call that we do not wrap */
        drop(link);
    struct entry *entry = take_spare();
    if (entry != NULL) {
        link = link_of(request);
        *entry = (struct entry){.request = request, .started = *started, .next = *link};
        entry->started.number = ++requests.n_started;
        *link = entry;
        __atomic_store_n(&requests.n, requests.n + 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&requests.lock);
}

bool mpi_request_get(MPI_Request request, struct mpi_started *started)
{
    if (__atomic_load_n(&requests.n, __ATOMIC_RELAXED) == 0)
        return false;
    pthread_mutex_lock(&requests.lock);
    const struct entry *entry = *link_of(request);
    if (entry != NULL)
        *started = entry->started;
    pthread_mutex_unlock(&requests.lock);
    return entry != NULL;
}

void mpi_request_forget(MPI_Request request, uint64_t number)
{
    if (__atomic_load_n(&requests.n, __ATOMIC_RELAXED) == 0)
        return;
    pthread_mutex_lock(&requests.lock);
    struct entry **link = link_of(request);
    if (*link != NULL && (number == 0 || (*link)->started.number == number))
        drop(link);
    pthread_mutex_unlock(&requests.lock);
}
