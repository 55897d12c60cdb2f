/*
 * Communicators are created by all their ranks together, which takes time and determines their names. All of `parent`
 * takes part, unless only a group is required.
 */
#include "mpi_internal.h"

static void made(int rc, const MPI_Comm *comm, const char *maker)
{
    if (rc == 0 && mpi_is_known())
        mpi_group_made(mpi_handle_at(comm, 0), maker);
}

#define MAKE(name, number, unrecorded, params, args)                                               \
    MPI_WRAPPER(name, params, args, unrecorded, {                                                  \
        struct marey_communication record;                                                         \
        const struct mpi_group *const g = mpi_group_get(parent);                                   \
        mpi_record_init(g, MAREY_COLLECTIVE_OTHER, &record);                                       \
        record.sequence = number;                                                                  \
        marey_communication_begin_on(id, &record);                                                 \
        const int rc = real args;                                                                  \
        made(rc, comm, "MPI_" #name);                                                              \
        marey_end(id);                                                                             \
        return rc;                                                                                 \
    })
#define MADE_BY_ALL(name, params, args)                                                            \
    MAKE(name, mpi_group_next(g), mpi_group_count(parent), params, args)
#define MADE_BY_SOME(name, params, args) MAKE(name, UINT64_MAX, (void)0, params, args)

MADE_BY_ALL(Comm_dup, (MPI_Comm parent, MPI_Comm *comm), (parent, comm))
MADE_BY_ALL(Comm_dup_with_info, (MPI_Comm parent, MPI_Info info, MPI_Comm *comm),
            (parent, info, comm))
MADE_BY_ALL(Comm_create, (MPI_Comm parent, MPI_Group group, MPI_Comm *comm), (parent, group, comm))
MADE_BY_SOME(Comm_create_group, (MPI_Comm parent, MPI_Group group, int tag, MPI_Comm *comm),
             (parent, group, tag, comm))
MADE_BY_ALL(Comm_split, (MPI_Comm parent, int color, int key, MPI_Comm *comm),
            (parent, color, key, comm))
MADE_BY_ALL(Comm_split_type, (MPI_Comm parent, int type, int key, MPI_Info info, MPI_Comm *comm),
            (parent, type, key, info, comm))
MADE_BY_ALL(Cart_create,
            (MPI_Comm parent, int n, const int dims[], const int periods[], int reorder,
             MPI_Comm *comm),
            (parent, n, dims, periods, reorder, comm))
MADE_BY_ALL(Cart_sub, (MPI_Comm parent, const int remain[], MPI_Comm *comm), (parent, remain, comm))
MADE_BY_ALL(Graph_create,
            (MPI_Comm parent, int n, const int index[], const int edges[], int reorder,
             MPI_Comm *comm),
            (parent, n, index, edges, reorder, comm))
MADE_BY_ALL(Dist_graph_create,
            (MPI_Comm parent, int n, const int sources[], const int degrees[],
             const int destinations[], const int weights[], MPI_Info info, int reorder,
             MPI_Comm *comm),
            (parent, n, sources, degrees, destinations, weights, info, reorder, comm))
MADE_BY_ALL(Dist_graph_create_adjacent,
            (MPI_Comm parent, int in_degree, const int sources[], const int source_weights[],
             int out_degree, const int destinations[], const int destination_weights[],
             MPI_Info info, int reorder, MPI_Comm *comm),
            (parent, in_degree, sources, source_weights, out_degree, destinations,
             destination_weights, info, reorder, comm))
MADE_BY_ALL(Intercomm_create,
            (MPI_Comm parent, int leader, MPI_Comm peers, int remote_leader, int tag, MPI_Comm *comm),
            (parent, leader, peers, remote_leader, tag, comm))
MADE_BY_ALL(Intercomm_merge, (MPI_Comm parent, int high, MPI_Comm *comm), (parent, high, comm))

/* ---- names and ends ---- */

static MPI_Comm at(const MPI_Comm *comm)
{
    return mpi_is_known() ? mpi_handle_at(comm, 0) : 0;
}

/* MPI may reuse the handle, whether recording is on or off. Nothing is recorded: ranks need not wait for one another here. */
MPI_PLAIN(Comm_free, mpi_group_forget(at(comm)), (void)0, (MPI_Comm * comm), (comm))
MPI_PLAIN(Comm_disconnect, mpi_group_forget(at(comm)), (void)0, (MPI_Comm * comm), (comm))

MPI_WRAPPER(Comm_set_name, (MPI_Comm comm, const char *name), (comm, name), (void)0, {
    (void)id; /* not communication */
    const int rc = real(comm, name);
    if (rc == 0)
        mpi_group_named(comm, name);
    return rc;
})
