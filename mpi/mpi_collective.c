/*
 * Collectives: of each row of mpi_collectives.h the blocking and the nonblocking function, each in two flavours, with
 * counts of int and of MPI_Count ("_c", since MPI 4).
 */
#include <limits.h>

#include "mpi_internal.h"
#include "mpi_narrow.h"

/* What is the same for all: who takes part, which one it is, whose data it is. */
static const struct mpi_group *collective_of(MPI_Comm comm, enum marey_collective what,
                                             struct marey_communication *told)
{
    const struct mpi_group *g = mpi_group_get(comm);
    mpi_tell_group(g, what, told);
    told->sequence = mpi_group_next(g);
    return g;
}

/* It is under way from before the call that starts it until the wait for it ends. */
static marey_async take_off(struct marey_site *site)
{
    return marey_async_begin(marey_site_id(site));
}

/* `rc` is what the call that starts it gave; its bytes are recorded there, and not again by the wait. */
static void set_going(int rc, const MPI_Request *request, marey_async flight,
                      const struct marey_communication *told)
{
    struct mpi_started started = {.told = *told, .flight = flight};
    if (rc != 0 || !mpi_is_known()) {
        marey_async_end(flight);
        return;
    }
    started.told.bytes_in = started.told.bytes_out = 0;
    mpi_request_add(mpi_handle_at(request, 0), &started);
}

#define NO_ROOT INT_MIN
#define TELL(what_, root_, in_, out_)                                                              \
    struct marey_communication told;                                                               \
    const struct mpi_group *const g = collective_of(comm, MAREY_COLLECTIVE_##what_, &told);        \
    if (g->size > 0) {                                                                             \
        told.peer = mpi_group_root(g, root_);                                                      \
        told.bytes_in = in_;                                                                       \
        told.bytes_out = out_;                                                                     \
    }                                                                                              \
    marey_communication_begin_on(id, &told);

#define BLOCKING(name, makeshift, what_, root_, params, args, in_, out_)                           \
    MPI_WRAPPER_OR(name, makeshift, params, args, mpi_group_count(comm), {                         \
        TELL(what_, root_, in_, out_)                                                              \
        const int rc = real args;                                                                  \
        marey_end(id);                                                                             \
        return rc;                                                                                 \
    })

/* Of a name that is itself a macro, what it expands to. */
#define TEXT_OF(name) TEXT_OF_EXPANDED(name)
#define TEXT_OF_EXPANDED(name) #name

#define NONBLOCKING(name, makeshift, what_, root_, params, args, in_, out_)                        \
    MPI_WRAPPER_OR(name, makeshift, (MPI_STRIP params, MPI_Request * request),                     \
                   (MPI_STRIP args, request), mpi_group_count(comm), {                             \
                       static struct marey_site flying =                                           \
                           MPI_SITE("MPI_" TEXT_OF(name) " (in flight)");                          \
                       TELL(what_, root_, in_, out_)                                               \
                       const marey_async flight = take_off(&flying);                               \
                       const int rc = real(MPI_STRIP args, request);                               \
                       set_going(rc, request, flight, &told);                                      \
                       marey_end(id);                                                              \
                       return rc;                                                                  \
                   })

BLOCKING(Barrier, NULL, BARRIER, NO_ROOT, (MPI_Comm comm), (comm), 0, 0)
NONBLOCKING(Ibarrier, NULL, BARRIER, NO_ROOT, (MPI_Comm comm), (comm), 0, 0)
NONBLOCKING(Comm_idup, NULL, OTHER, NO_ROOT, (MPI_Comm comm, MPI_Comm *copy), (comm, copy), 0, 0)

/* The rows of mpi_collectives.h, with counts of int, then with counts of MPI_Count; see mpi_message.c. */
#define COLLECTIVE(name, inonblocking, what_, root_, params, args, in_, out_)                      \
    NARROWED(name, params, args)                                                                   \
    BLOCKING(FULL(name), MAKESHIFT(name), what_, root_, params, args, in_, out_)                   \
    NARROWED(inonblocking, (MPI_STRIP params, MPI_Request * request), (MPI_STRIP args, request))   \
    NONBLOCKING(FULL(inonblocking), MAKESHIFT(inonblocking), what_, root_, params, args, in_, out_)

#define COUNT int
#define DISPLACEMENT int
#define FULL(name) name
#define MAKESHIFT(name) NULL
#define NARROWED(name, params, args)
#include "mpi_collectives.h"
#undef COUNT
#undef DISPLACEMENT
#undef FULL
#undef MAKESHIFT
#undef NARROWED

#define COUNT MPI_Count
#define DISPLACEMENT MPI_Aint
#define FULL(name) name##_c
#define MAKESHIFT(name) narrow_##name
#define NARROWED(name, params, args) MPI_NARROWED(name, mpi_group_get(comm)->n_peers, params, args)
#include "mpi_collectives.h"
