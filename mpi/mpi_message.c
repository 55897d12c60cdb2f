/*
 * Messages: sends, receives and probes. Who sent and how much came is known when a receive ends, so it is recorded then; a
 * status of our own takes the place of one that the program does not want.
 */
#include <limits.h>
#include <string.h>

#include "mpi_narrow.h"

#define NO_PEER INT_MIN

/* Room for a status of any MPI. */
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

void mpi_tell_received(const struct mpi_group *g, const MPI_Status *status,
                       struct marey_communication *told)
{
    MPI_Count n = 0;
    int is_cancelled = 0;
    told->peer = -1;
    if (mpi.Test_cancelled(status, &is_cancelled) != 0 || is_cancelled)
        return;
    told->peer = mpi_group_peer(g, source_of(status));
    if (mpi.Get_elements_x(status, mpi_dialect.byte, &n) == 0 && n > 0)
        told->bytes_out = (uint64_t)n;
}

/* The communicator of a message that a probe found, which this call receives. */
static MPI_Comm comm_of(const MPI_Message *message)
{
    struct mpi_started found;
    if (!mpi_is_up() || !mpi_request_get(mpi_handle_at(message, 0), &found))
        return mpi_dialect.comm_null;
    mpi_request_forget(mpi_handle_at(message, 0), found.number);
    return found.comm;
}

/* ---- sends ---- */

static void tell_sent(MPI_Comm comm, int to, int64_t count, MPI_Datatype type,
                      struct marey_communication *told)
{
    const struct mpi_group *g = mpi_group_get(comm);
    mpi_tell_group(g, MAREY_COLLECTIVE_SEND, told);
    told->peer = mpi_group_peer(g, to);
    if (g->size > 0 && to != mpi_dialect.proc_null)
        told->bytes_in = mpi_bytes(count, type);
}

static void forget_old(int rc, const MPI_Request *request)
{
    if (rc == 0 && mpi_is_known())
        mpi_request_forget(mpi_handle_at(request, 0), 0);
}

/* A handle that comes now is of this send, whatever it was before: `done`. */
#define SEND(name, makeshift, params, args, done)                                                  \
    MPI_WRAPPER_OR(name, makeshift, params, args, (void)0, {                                       \
        struct marey_communication told;                                                           \
        tell_sent(comm, to, count, type, &told);                                                   \
        marey_communication_begin_on(id, &told);                                                   \
        const int rc = real args;                                                                  \
        done;                                                                                      \
        marey_end(id);                                                                             \
        return rc;                                                                                 \
    })
#define SEND_PARAMS                                                                                \
    (const void *buffer, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
#define SEND_ARGS (buffer, count, type, to, tag, comm)
#define SEND_BLOCKING(name, makeshift) SEND(name, makeshift, SEND_PARAMS, SEND_ARGS, (void)0)
#define SEND_NONBLOCKING(name, makeshift)                                                          \
    SEND(name, makeshift, (MPI_STRIP SEND_PARAMS, MPI_Request * request),                          \
         (MPI_STRIP SEND_ARGS, request), forget_old(rc, request))

/* ---- receives ---- */

static void set_going(int rc, const MPI_Request *request, MPI_Comm comm,
                      const struct marey_communication *told)
{
    const struct mpi_started started = {.told = *told, .comm = comm, .is_receive = true};
    if (rc == 0 && mpi_is_known())
        mpi_request_add(mpi_handle_at(request, 0), &started);
}

/* Begin the range and make the call with a status, ours where the program wants none; `g` and `rc` come of it. */
#define CALL_WITH_STATUS(comm_, args)                                                              \
    union own_status own;                                                                          \
    struct marey_communication told;                                                               \
    const struct mpi_group *const g = mpi_group_get(comm_);                                        \
    marey_begin_on(id);                                                                            \
    status = status_or_own(status, &own);                                                          \
    const int rc = real args;

#define RECEIVE(name, makeshift, comm_, params, args)                                              \
    MPI_WRAPPER_OR(name, makeshift, params, args, (void)0, {                                       \
        CALL_WITH_STATUS(comm_, args)                                                              \
        mpi_tell_group(g, MAREY_COLLECTIVE_RECV, &told);                                           \
        if (rc == 0 && mpi_is_up())                                                                \
            mpi_tell_received(g, status, &told);                                                   \
        marey_communication_tell(&told);                                                           \
        marey_end(id);                                                                             \
        return rc;                                                                                 \
    })

/* From MPI_PROC_NULL nothing comes, and such requests may all have one handle. */
#define RECEIVE_NONBLOCKING(name, makeshift, comm_, peer_, params, args)                           \
    MPI_WRAPPER_OR(name, makeshift, params, args, (void)0, {                                       \
        struct marey_communication told;                                                           \
        const MPI_Comm where = comm_;                                                              \
        const struct mpi_group *const g = mpi_group_get(where);                                    \
        mpi_tell_group(g, MAREY_COLLECTIVE_RECV, &told);                                           \
        told.peer = mpi_group_peer(g, peer_);                                                      \
        marey_communication_begin_on(id, &told);                                                   \
        const int rc = real args;                                                                  \
        if ((peer_) != mpi_dialect.proc_null)                                                      \
            set_going(rc, request, where, &told);                                                  \
        marey_end(id);                                                                             \
        return rc;                                                                                 \
    })

/* The peer is the one that is sent to; there is room for one. */
#define EXCHANGE(name, makeshift, in_, params, args)                                               \
    MPI_WRAPPER_OR(name, makeshift, params, args, (void)0, {                                       \
        CALL_WITH_STATUS(comm, args)                                                               \
        mpi_tell_group(g, MAREY_COLLECTIVE_OTHER, &told);                                          \
        if (rc == 0 && g->size > 0) {                                                              \
            mpi_tell_received(g, status, &told);                                                   \
            told.peer = mpi_group_peer(g, to);                                                     \
            told.bytes_in = to != mpi_dialect.proc_null ? (in_) : 0;                               \
        }                                                                                          \
        marey_communication_tell(&told);                                                           \
        marey_end(id);                                                                             \
        return rc;                                                                                 \
    })

/*
 * The rows of mpi_messages.h, with counts of int, then with counts of MPI_Count. FULL is the function's name, MAKESHIFT its
 * replacement where MPI lacks it, defined by NARROWED.
 */
#define SENDING(name)                                                                              \
    NARROWED(name, SEND_PARAMS, SEND_ARGS)                                                         \
    SEND_BLOCKING(FULL(name), MAKESHIFT(name))
#define SENDING_ON(name)                                                                           \
    NARROWED(name, (MPI_STRIP SEND_PARAMS, MPI_Request * request), (MPI_STRIP SEND_ARGS, request)) \
    SEND_NONBLOCKING(FULL(name), MAKESHIFT(name))
#define RECEIVING(name, comm_, params, args)                                                       \
    NARROWED(name, params, args)                                                                   \
    RECEIVE(FULL(name), MAKESHIFT(name), comm_, params, args)
#define RECEIVING_ON(name, comm_, peer_, params, args)                                             \
    NARROWED(name, params, args)                                                                   \
    RECEIVE_NONBLOCKING(FULL(name), MAKESHIFT(name), comm_, peer_, params, args)
#define EXCHANGING(name, in_, params, args)                                                        \
    NARROWED(name, params, args)                                                                   \
    EXCHANGE(FULL(name), MAKESHIFT(name), in_, params, args)

#define COUNT int
#define FULL(name) name
#define MAKESHIFT(name) NULL
#define NARROWED(name, params, args)
#include "mpi_messages.h"
#undef COUNT
#undef FULL
#undef MAKESHIFT
#undef NARROWED

#define COUNT MPI_Count
#define FULL(name) name##_c
#define MAKESHIFT(name) narrow_##name
#define NARROWED(name, params, args) MPI_NARROWED(name, 0, params, args)
#include "mpi_messages.h"

/* ---- probes ---- */

/* A message that was taken aside is received by a call that does not say from where. */
static void keep_message(const MPI_Message *message, MPI_Comm comm)
{
    const struct mpi_started found = {.comm = comm};
    mpi_request_add(mpi_handle_at(message, 0), &found);
}

/* `found` is whether there is a message by now, `keep` what is done with it. */
#define PROBE(name, found, keep, params, args)                                                     \
    MPI_WRAPPER(name, params, args, (void)0, {                                                     \
        CALL_WITH_STATUS(comm, args)                                                               \
        if (rc == 0 && g->size > 0 && (found)) {                                                   \
            mpi_tell_group(g, MAREY_COLLECTIVE_OTHER, &told);                                      \
            told.peer = mpi_group_peer(g, source_of(status));                                      \
            marey_communication_tell(&told);                                                       \
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
