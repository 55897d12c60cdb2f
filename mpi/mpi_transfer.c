/*
 * Functions that move data: collectives and messages. Each row of mpi_transfers.h becomes two functions, with counts of
 * int and of MPI_Count ("_c", since MPI 4); a collective also gets nonblocking ones.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_internal.h"

/*
 * ---- functions that an MPI before version 4 lacks ----
 *
 * There MPI_Send_c(..., MPI_Count count, ...) calls MPI_Send(..., int count, ...). A program may check for such a
 * function by a weak reference (mpi4py does) and find ours, so ours must work. A count that does not fit an int becomes
 * -1, which MPI rejects with its own message.
 */

/* Arrays allocated for one call. */
struct narrowed {
    int *arrays[4];  /* at most two of counts and two of displacements */
    int n_arrays, n; /* n: elements of each */
};

static void narrow_fini(struct narrowed *narrowed)
{
    for (int i = 0; i < narrowed->n_arrays; i++)
        free(narrowed->arrays[i]);
}

static int narrow_one(int64_t value)
{
    return value > INT_MAX || value < INT_MIN ? -1 : (int)value;
}

/* NULL for NULL and on out of memory; MPI rejects both. */
static const int *narrow_array(struct narrowed *narrowed, const int64_t *values)
{
    const size_t n = narrowed->n > 0 ? (size_t)narrowed->n : 1;
    int *array = values != NULL ? malloc(n * sizeof *array) : NULL;
    if (array == NULL)
        return NULL;
    for (int i = 0; i < narrowed->n; i++)
        array[i] = narrow_one(values[i]);
    narrowed->arrays[narrowed->n_arrays++] = array;
    return array;
}

/* Narrows counts and displacements by type; everything else is unchanged. Each line must compile for any type. */
#define NARROW(x)                                                                                  \
    _Generic((x), int64_t                                                                          \
             : narrow_one((int64_t)(uintptr_t)(x)), const int64_t *                            \
             : narrow_array(&narrowed, (const int64_t *)(uintptr_t)(x)), default               \
             : (x))

#define NARROW_1(x) NARROW(x)
#define NARROW_2(x, ...) NARROW(x), NARROW_1(__VA_ARGS__)
#define NARROW_3(x, ...) NARROW(x), NARROW_2(__VA_ARGS__)
#define NARROW_4(x, ...) NARROW(x), NARROW_3(__VA_ARGS__)
#define NARROW_5(x, ...) NARROW(x), NARROW_4(__VA_ARGS__)
#define NARROW_6(x, ...) NARROW(x), NARROW_5(__VA_ARGS__)
#define NARROW_7(x, ...) NARROW(x), NARROW_6(__VA_ARGS__)
#define NARROW_8(x, ...) NARROW(x), NARROW_7(__VA_ARGS__)
#define NARROW_9(x, ...) NARROW(x), NARROW_8(__VA_ARGS__)
#define NARROW_10(x, ...) NARROW(x), NARROW_9(__VA_ARGS__)
#define NARROW_11(x, ...) NARROW(x), NARROW_10(__VA_ARGS__)
#define NARROW_12(x, ...) NARROW(x), NARROW_11(__VA_ARGS__)
#define NARROW_COUNT(a, b, c, d, e, f, g, h, i, j, k, l, n, ...) n
#define NARROW_BY(n) NARROW_##n
#define NARROW_BY_(n) NARROW_BY(n)
#define NARROW_ALL(...)                                                                            \
    NARROW_BY_(NARROW_COUNT(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0))                \
    (__VA_ARGS__)

#define NARROWED_BY_INTS(name, n_, params, args)                                                   \
    static int narrow_##name params                                                                \
    {                                                                                              \
        struct narrowed narrowed = {.n = (n_)};                                                    \
        const int rc = MPI_##name(NARROW_ALL args);                                                \
        narrow_fini(&narrowed);                                                                    \
        return rc;                                                                                 \
    }

/*
 * MPI_WRAPPER_OR for a row. FULL is the function's name in this variant, FALLBACK its replacement if MPI lacks it,
 * defined by NARROWED with arrays of `n` elements.
 */
#define TRANSFER(name, n, params, args, else_, ...)                                                \
    NARROWED(name, n, params, args)                                                                \
    TRANSFER_EXPANDED(FULL(name), FALLBACK(name), params, args, else_, __VA_ARGS__)
#define TRANSFER_EXPANDED(name, fallback, params, args, else_, ...)                                \
    MPI_WRAPPER_OR(name, fallback, params, args, else_, __VA_ARGS__)

/* `rc` is the result of the call that starts the operation; the bytes are recorded there, not by the wait. */
static void set_going(int rc, const MPI_Request *request, struct mpi_started started)
{
    if (rc != 0 || !mpi_is_known()) {
        marey_async_end(started.flight);
        return;
    }
    started.record.bytes_in = started.record.bytes_out = 0;
    mpi_request_add(mpi_handle_at(request, 0), &started);
}

/* ---- collectives ---- */

/* Fills in the group, the collective's number in it, and its kind. */
static const struct mpi_group *collective_of(MPI_Comm comm, enum marey_collective what,
                                             struct marey_communication *record)
{
    const struct mpi_group *g = mpi_group_get(comm);
    mpi_record_init(g, what, record);
    record->sequence = mpi_group_next(g);
    return g;
}

#define NO_ROOT INT_MIN
#define RECORD(what_, root_, in_, out_)                                                            \
    struct marey_communication record;                                                             \
    const struct mpi_group *const g = collective_of(comm, MAREY_COLLECTIVE_##what_, &record);      \
    if (g->size > 0) {                                                                             \
        record.peer = mpi_group_root(g, root_);                                                    \
        record.bytes_in = in_;                                                                     \
        record.bytes_out = out_;                                                                   \
    }                                                                                              \
    marey_communication_begin_on(id, &record);

#define BLOCKING(name, what_, root_, params, args, in_, out_)                                      \
    TRANSFER(name, mpi_group_get(comm)->n_peers, params, args, mpi_group_count(comm), {            \
        RECORD(what_, root_, in_, out_)                                                            \
        const int rc = real args;                                                                  \
        marey_end(id);                                                                             \
        return rc;                                                                                 \
    })

/* Expands a name that is itself a macro. */
#define TEXT_OF(name) TEXT_OF_EXPANDED(name)
#define TEXT_OF_EXPANDED(name) #name

/* In flight from before the starting call until its wait ends. */
#define NONBLOCKING(name, what_, root_, params, args, in_, out_)                                   \
    TRANSFER(name, mpi_group_get(comm)->n_peers, (MPI_STRIP params, MPI_Request * request),        \
             (MPI_STRIP args, request), mpi_group_count(comm), {                                   \
                 static struct marey_site flying =                                                 \
                     MPI_SITE("MPI_" TEXT_OF(FULL(name)) " (in flight)");                          \
                 RECORD(what_, root_, in_, out_)                                                   \
                 const marey_async flight = marey_async_begin(marey_site_id(&flying));             \
                 const int rc = real(MPI_STRIP args, request);                                     \
                 set_going(rc, request, (struct mpi_started){.record = record, .flight = flight}); \
                 marey_end(id);                                                                    \
                 return rc;                                                                        \
             })

#define COLLECTIVE(name, nonblocking, what_, root_, params, args, in_, out_)                       \
    BLOCKING(name, what_, root_, params, args, in_, out_)                                          \
    NONBLOCKING(nonblocking, what_, root_, params, args, in_, out_)

/*
 * ---- messages ----
 *
 * The sender and size are known when a receive ends, so they are recorded then; if the program passes no status, we use
 * our own.
 */

#define NO_PEER INT_MIN

/* Storage for the status of any MPI. */
union own_status {
    char bytes[64];
    uint64_t align;
};

static MPI_Status *status_or_own(MPI_Status *status, union own_status *own)
{
    return status == mpi_dialect.status_ignore && mpi_is_known() ? (MPI_Status *)own : status;
}

static int source_of(const MPI_Status *status)
{
    int source;
    memcpy(&source, (const char *)status + mpi_dialect.source_offset, sizeof source);
    return source;
}

void mpi_record_received(const struct mpi_group *g, const MPI_Status *status,
                         struct marey_communication *record)
{
    MPI_Count n = 0;
    int is_cancelled = 0;
    record->peer = -1;
    if (mpi.Test_cancelled(status, &is_cancelled) != 0 || is_cancelled)
        return;
    record->peer = mpi_group_peer(g, source_of(status));
    if (mpi.Get_elements_x(status, mpi_dialect.byte, &n) == 0 && n > 0)
        record->bytes_out = (uint64_t)n;
}

/* The communicator of a message found by a probe, which this call receives. */
static MPI_Comm comm_of(const MPI_Message *message)
{
    struct mpi_started found;
    if (!mpi_is_up() || !mpi_request_get(mpi_handle_at(message, 0), &found))
        return mpi_dialect.comm_null;
    mpi_request_forget(mpi_handle_at(message, 0), found.number);
    return found.comm;
}

/* ---- sends ---- */

static void record_sent(MPI_Comm comm, int to, int64_t count, MPI_Datatype type,
                        struct marey_communication *record)
{
    const struct mpi_group *g = mpi_group_get(comm);
    mpi_record_init(g, MAREY_COLLECTIVE_SEND, record);
    record->peer = mpi_group_peer(g, to);
    if (g->size > 0 && to != mpi_dialect.proc_null)
        record->bytes_in = mpi_bytes(count, type);
}

static void forget_old(int rc, const MPI_Request *request)
{
    if (rc == 0 && mpi_is_known())
        mpi_request_forget(mpi_handle_at(request, 0), 0);
}

/* The handle belongs to this send, whatever it was before: `done`. */
#define SEND(name, params, args, done)                                                             \
    TRANSFER(name, 0, params, args, (void)0, {                                                     \
        struct marey_communication record;                                                         \
        record_sent(comm, to, count, type, &record);                                               \
        marey_communication_begin_on(id, &record);                                                 \
        const int rc = real args;                                                                  \
        done;                                                                                      \
        marey_end(id);                                                                             \
        return rc;                                                                                 \
    })
#define SEND_PARAMS                                                                                \
    const void *buffer, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm
#define SEND_ARGS buffer, count, type, to, tag, comm
#define SENDING(name) SEND(name, (SEND_PARAMS), (SEND_ARGS), (void)0)
#define SENDING_ON(name)                                                                           \
    SEND(name, (SEND_PARAMS, MPI_Request * request), (SEND_ARGS, request), forget_old(rc, request))

/* ---- receives ---- */

/* Begins the range and makes the call with a status, ours if the program passes none; sets `g` and `rc`. */
#define CALL_WITH_STATUS(comm_, args)                                                              \
    union own_status own;                                                                          \
    struct marey_communication record;                                                             \
    const struct mpi_group *const g = mpi_group_get(comm_);                                        \
    marey_begin_on(id);                                                                            \
    status = status_or_own(status, &own);                                                          \
    const int rc = real args;

#define RECEIVING(name, comm_, params, args)                                                       \
    TRANSFER(name, 0, params, args, (void)0, {                                                     \
        CALL_WITH_STATUS(comm_, args)                                                              \
        mpi_record_init(g, MAREY_COLLECTIVE_RECV, &record);                                        \
        if (rc == 0 && mpi_is_up())                                                                \
            mpi_record_received(g, status, &record);                                               \
        marey_communication_tell(&record);                                                         \
        marey_end(id);                                                                             \
        return rc;                                                                                 \
    })

/* MPI_PROC_NULL sends nothing, and such requests may share one handle. */
#define RECEIVING_ON(name, comm_, peer_, params, args)                                             \
    TRANSFER(name, 0, params, args, (void)0, {                                                     \
        struct marey_communication record;                                                         \
        const MPI_Comm where = comm_;                                                              \
        const struct mpi_group *const g = mpi_group_get(where);                                    \
        mpi_record_init(g, MAREY_COLLECTIVE_RECV, &record);                                        \
        record.peer = mpi_group_peer(g, peer_);                                                    \
        marey_communication_begin_on(id, &record);                                                 \
        const int rc = real args;                                                                  \
        if ((peer_) != mpi_dialect.proc_null)                                                      \
            set_going(rc, request,                                                                 \
                      (struct mpi_started){.record = record, .comm = where, .is_receive = true});  \
        marey_end(id);                                                                             \
        return rc;                                                                                 \
    })

/* The peer is the destination, because there is room for one. */
#define EXCHANGING(name, in_, params, args)                                                        \
    TRANSFER(name, 0, params, args, (void)0, {                                                     \
        CALL_WITH_STATUS(comm, args)                                                               \
        mpi_record_init(g, MAREY_COLLECTIVE_OTHER, &record);                                       \
        if (rc == 0 && g->size > 0) {                                                              \
            mpi_record_received(g, status, &record);                                               \
            record.peer = mpi_group_peer(g, to);                                                   \
            record.bytes_in = to != mpi_dialect.proc_null ? (in_) : 0;                             \
        }                                                                                          \
        marey_communication_tell(&record);                                                         \
        marey_end(id);                                                                             \
        return rc;                                                                                 \
    })

/* ---- the rows ---- */

#define BYTES(count, type) mpi_bytes(count, type)
#define BYTES_V(counts, type) mpi_bytes_v(counts, sizeof *(counts), g->n_peers, type)
#define BYTES_W(counts, types) mpi_bytes_w(counts, sizeof *(counts), g->n_peers, types)
#define IN_PLACE mpi_dialect.in_place
/* Which ranks send and receive in a collective with a root, on either side of an intercommunicator. */
#define IS_ROOT (g->is_inter ? root == mpi_dialect.root : root == g->rank)
/* Whether the rank exchanges data with the root; in an intracommunicator the root does, too. */
#define IS_MEMBER (!g->is_inter || (root != mpi_dialect.root && root != mpi_dialect.proc_null))
#define N_PEERS ((uint64_t)g->n_peers)

/* Common parameters: one block, or one per rank. */
#define SEND_ONE const void *send, COUNT send_count, MPI_Datatype send_type
#define SEND_ONE_ARGS send, send_count, send_type
#define RECEIVE_ONE void *receive, COUNT receive_count, MPI_Datatype receive_type
#define RECEIVE_ONE_ARGS receive, receive_count, receive_type
#define SEND_EACH const void *send, const COUNT send_counts[], const DISPLACEMENT send_at[]
#define SEND_EACH_ARGS send, send_counts, send_at
#define RECEIVE_EACH void *receive, const COUNT receive_counts[], const DISPLACEMENT receive_at[]
#define RECEIVE_EACH_ARGS receive, receive_counts, receive_at
#define REDUCE_PARAMS const void *send, void *receive, COUNT count, MPI_Datatype type, MPI_Op op
#define REDUCE_ARGS send, receive, count, type, op
/* Bytes of one rank's block; with MPI_IN_PLACE, it is in the other buffer. */
#define SENT_ONE                                                                                   \
    (send == IN_PLACE ? BYTES(receive_count, receive_type) : BYTES(send_count, send_type))
#define SENT_OWN                                                                                   \
    (send == IN_PLACE ? BYTES(receive_counts[g->rank], receive_type) : BYTES(send_count, send_type))

#define COUNT int
#define DISPLACEMENT int
#define FULL(name) name
#define FALLBACK(name) NULL
#define NARROWED(name, n, params, args)
BLOCKING(Barrier, BARRIER, NO_ROOT, (MPI_Comm comm), (comm), 0, 0)
NONBLOCKING(Ibarrier, BARRIER, NO_ROOT, (MPI_Comm comm), (comm), 0, 0)
NONBLOCKING(Comm_idup, OTHER, NO_ROOT, (MPI_Comm comm, MPI_Comm *copy), (comm, copy), 0, 0)
#include "mpi_transfers.h"
#undef COUNT
#undef DISPLACEMENT
#undef FULL
#undef FALLBACK
#undef NARROWED

#define COUNT MPI_Count
#define DISPLACEMENT MPI_Aint
#define FULL(name) name##_c
#define FALLBACK(name) narrow_##name
#define NARROWED NARROWED_BY_INTS
#include "mpi_transfers.h"

/* ---- probes ---- */

/* A matched message is received by a call without communicator. */
static void keep_message(const MPI_Message *message, MPI_Comm comm)
{
    const struct mpi_started found = {.comm = comm};
    mpi_request_add(mpi_handle_at(message, 0), &found);
}

/* `found`: whether there is a message, `keep`: what to do with it. */
#define PROBE(name, found, keep, params, args)                                                     \
    MPI_WRAPPER(name, params, args, (void)0, {                                                     \
        CALL_WITH_STATUS(comm, args)                                                               \
        if (rc == 0 && g->size > 0 && (found)) {                                                   \
            mpi_record_init(g, MAREY_COLLECTIVE_OTHER, &record);                                   \
            record.peer = mpi_group_peer(g, source_of(status));                                    \
            marey_communication_tell(&record);                                                     \
            keep;                                                                                  \
        }                                                                                          \
        marey_end(id);                                                                             \
        return rc;                                                                                 \
    })

PROBE(Probe, true, (void)0, (int peer, int tag, MPI_Comm comm, MPI_Status *status),
      (peer, tag, comm, status))
PROBE(Mprobe, true, keep_message(message, comm),
      (int peer, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status),
      (peer, tag, comm, message, status))
PROBE(Iprobe, *flag, (void)0, (int peer, int tag, MPI_Comm comm, int *flag, MPI_Status *status),
      (peer, tag, comm, flag, status))
PROBE(Improbe, *flag, keep_message(message, comm),
      (int peer, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status),
      (peer, tag, comm, flag, message, status))
