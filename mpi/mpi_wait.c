/*
 * Waits and tests: where nonblocking operations end. Requests are looked up before the call, which clears the handles,
 * and recorded after it, when sender and size are known.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi_internal.h"

/* A known request of a call. */
struct watched {
    int index; /* among the call's requests */
    MPI_Request request;
    struct mpi_started started;
};

enum { FEW = 8 };
struct watch {
    struct watched few[FEW], *all; /* in order of index */
    int n, cap;
    bool has_receive, is_mixed;
    MPI_Status *own; /* our statuses if the program passes none; else NULL */
    uint64_t one[8]; /* for a single one */
    struct marey_communication record;
    int n_reported;
};

/* ---- before ---- */

static bool make_room(struct watch *w)
{
    if (w->n < w->cap)
        return true;
    struct watched *all = malloc(2 * (size_t)w->cap * sizeof *all);
    if (all == NULL)
        return false;
    memcpy(all, w->all, (size_t)w->n * sizeof *all);
    if (w->all != w->few)
        free(w->all);
    w->all = all;
    w->cap *= 2;
    return true;
}

static void watch(struct watch *w, int n, const void *requests)
{
    w->all = w->few;
    w->cap = FEW;
    w->n = w->n_reported = 0;
    w->has_receive = w->is_mixed = false;
    w->own = NULL;
    for (int i = 0; mpi_is_up() && i < n && requests != NULL; i++) {
        struct mpi_started started;
        const MPI_Request request = mpi_handle_at(requests, (size_t)i);
        if (request == mpi_dialect.request_null || !mpi_request_get(request, &started))
            continue;
        if (!make_room(w))
            return;
        w->all[w->n++] = (struct watched){.index = i, .request = request, .started = started};
        w->has_receive |= started.is_receive;
    }
}

/* The program's statuses, or our own if it passes none and a receive is among the requests. */
static MPI_Status *statuses_for(struct watch *w, MPI_Status *given, const MPI_Status *ignore, int n)
{
    if (given != ignore || !w->has_receive)
        return given;
    w->own = n == 1 ? (MPI_Status *)w->one : calloc((size_t)n, mpi_dialect.status_bytes);
    return w->own != NULL ? w->own : given;
}

/* ---- after the call ---- */

/*
 * Several at once: records what they have in common, and the sum of their bytes. A collective would need its number,
 * and there is room for one.
 */
static void add(struct watch *w, const struct marey_communication *one)
{
    struct marey_communication *const sum = &w->record;
    if (w->n_reported++ == 0) {
        *sum = *one;
        return;
    }
    w->is_mixed |= sum->sequence != UINT64_MAX || one->sequence != UINT64_MAX;
    if (sum->group != one->group)
        sum->group = sum->group_size = 0;
    if (sum->what != one->what)
        sum->what = MAREY_COLLECTIVE_OTHER;
    if (sum->peer != one->peer)
        sum->peer = -1;
    sum->bytes_in += one->bytes_in;
    sum->bytes_out += one->bytes_out;
}

/* One of them has ended. `status` is the call's status for it, or NULL. */
static void ended(struct watch *w, const struct watched *one, const MPI_Status *status)
{
    struct marey_communication record = one->started.record;
    if (one->started.is_receive && status != NULL)
        mpi_record_received(mpi_group_get(one->started.comm), status, &record);
    mpi_request_forget(one->request, one->started.number);
    add(w, &record);
}

static int compare_index(const void *key, const void *element)
{
    return *(const int *)key - ((const struct watched *)element)->index;
}

static void ended_at(struct watch *w, int index, const MPI_Status *status)
{
    const struct watched *one = bsearch(&index, w->all, (size_t)w->n, sizeof *w->all, compare_index);
    if (one != NULL)
        ended(w, one, status);
}

static const MPI_Status *status_or_null(const MPI_Status *statuses, const MPI_Status *ignore, int i)
{
    return statuses != ignore ? mpi_status_at(statuses, (size_t)i) : NULL;
}

static void all_ended(struct watch *w, const MPI_Status *statuses)
{
    for (int i = 0; i < w->n; i++)
        ended(w, &w->all[i], status_or_null(statuses, mpi_dialect.statuses_ignore, w->all[i].index));
}

static void some_ended(struct watch *w, int n, const int *indices, const MPI_Status *statuses)
{
    for (int i = 0; i < n; i++) /* MPI_UNDEFINED is negative */
        ended_at(w, indices[i], status_or_null(statuses, mpi_dialect.statuses_ignore, i));
}

/* On error it is unknown which have ended, so nothing is recorded. */
static void give_up(struct watch *w)
{
    for (int i = 0; i < w->n; i++)
        mpi_request_forget(w->all[i].request, w->all[i].started.number);
}

static void finish(struct watch *w)
{
    if (w->n_reported > 0 && !w->is_mixed)
        marey_communication_tell(&w->record);
    if (w->all != w->few)
        free(w->all);
    if (w->own != (MPI_Status *)w->one)
        free(w->own);
}

/* Forgets operations that end while nothing is recorded, because MPI may reuse their handles. */
static void forget(int n, const void *requests)
{
    for (int i = 0; i < n && requests != NULL && mpi_is_known(); i++)
        mpi_request_forget(mpi_handle_at(requests, (size_t)i), 0);
}

/*
 * A wait for `n` requests. `status` and `ignore` are the call's status parameter and MPI's constant for none,
 * `n_status` the number of statuses; `after` handles operations that have ended.
 */
#define WAIT(name, n, requests, status, ignore, n_status, after, params, args)                     \
    MPI_WRAPPER(name, params, args, forget(n, requests), {                                         \
        struct watch w;                                                                            \
        watch(&w, n, requests);                                                                    \
        (status) = statuses_for(&w, status, mpi_dialect.ignore, n_status);                         \
        marey_begin_on(id);                                                                        \
        const int rc = real args;                                                                  \
        if (rc != 0)                                                                               \
            give_up(&w);                                                                           \
        else                                                                                       \
            after;                                                                                 \
        finish(&w);                                                                                \
        marey_end(id);                                                                             \
        return rc;                                                                                 \
    })

#define ONE_STATUS status_or_null(status, mpi_dialect.status_ignore, 0)
#define IF(flag, then) ((flag) ? (void)(then) : (void)0)

WAIT(Wait, 1, request, status, status_ignore, 1, ended_at(&w, 0, ONE_STATUS),
     (MPI_Request * request, MPI_Status *status), (request, status))
WAIT(Test, 1, request, status, status_ignore, 1, IF(*flag, ended_at(&w, 0, ONE_STATUS)),
     (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status))

WAIT(Waitall, n, requests, statuses, statuses_ignore, n, all_ended(&w, statuses),
     (int n, MPI_Request requests[], MPI_Status *statuses), (n, requests, statuses))
WAIT(Testall, n, requests, statuses, statuses_ignore, n, IF(*flag, all_ended(&w, statuses)),
     (int n, MPI_Request requests[], int *flag, MPI_Status *statuses), (n, requests, flag, statuses))

WAIT(Waitany, n, requests, status, status_ignore, 1, ended_at(&w, *index, ONE_STATUS),
     (int n, MPI_Request requests[], int *index, MPI_Status *status), (n, requests, index, status))
WAIT(Testany, n, requests, status, status_ignore, 1, IF(*flag, ended_at(&w, *index, ONE_STATUS)),
     (int n, MPI_Request requests[], int *index, int *flag, MPI_Status *status),
     (n, requests, index, flag, status))

WAIT(Waitsome, n, requests, statuses, statuses_ignore, n, some_ended(&w, *n_ended, indices, statuses),
     (int n, MPI_Request requests[], int *n_ended, int indices[], MPI_Status *statuses),
     (n, requests, n_ended, indices, statuses))
WAIT(Testsome, n, requests, statuses, statuses_ignore, n, some_ended(&w, *n_ended, indices, statuses),
     (int n, MPI_Request requests[], int *n_ended, int indices[], MPI_Status *statuses),
     (n, requests, n_ended, indices, statuses))

/* ---- persistent requests, and freed ones ---- */

MPI_PLAIN(Start, (void)0, (void)0, (MPI_Request * request), (request))
MPI_PLAIN(Startall, (void)0, (void)0, (int n, MPI_Request requests[]), (n, requests))
MPI_PLAIN(Request_free, forget(1, request), (void)0, (MPI_Request * request), (request))
MPI_PLAIN(Request_get_status, (void)0, (void)0,
          (MPI_Request request, int *flag, MPI_Status *status), (request, flag, status))
