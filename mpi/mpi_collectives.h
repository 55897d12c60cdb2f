/*
 * The collectives, one row each. A file that includes this defines
 *
 *   COLLECTIVE(name, nonblocking name, what, root, parameters, arguments, bytes given, bytes got)
 *
 * and COUNT and DISPLACEMENT, the types in which this flavour counts. In the last two, `g` is the group; they are
 * asked only where it is known. `root` is NO_ROOT or the parameter of that name.
 *
 * What is not significant on a rank by the standard (a receive count where one is not the root) is not looked at there:
 * programs leave anything in it.
 */

#define BYTES(count, type) mpi_bytes(count, type)
#define BYTES_V(counts, type) mpi_bytes_v(counts, sizeof *(counts), g->n_peers, type)
#define BYTES_W(counts, types) mpi_bytes_w(counts, sizeof *(counts), g->n_peers, types)
#define IN_PLACE mpi_dialect.in_place
#define IS_ROOT mpi_is_root(g, root)
/* One of those that a root gives to or gets from; in an intracommunicator the root is one as well. */
#define IS_MEMBER mpi_is_member(g, root)
#define N_PEERS ((uint64_t)g->n_peers)

COLLECTIVE(Bcast, Ibcast, BROADCAST, root,
           (void *buffer, COUNT count, MPI_Datatype type, int root, MPI_Comm comm),
           (buffer, count, type, root, comm), IS_ROOT ? BYTES(count, type) : 0,
           IS_MEMBER && !IS_ROOT ? BYTES(count, type) : 0)

COLLECTIVE(Reduce, Ireduce, REDUCE, root,
           (const void *send, void *receive, COUNT count, MPI_Datatype type, MPI_Op op, int root,
            MPI_Comm comm),
           (send, receive, count, type, op, root, comm), IS_MEMBER ? BYTES(count, type) : 0,
           IS_ROOT ? BYTES(count, type) : 0)

COLLECTIVE(Allreduce, Iallreduce, ALL_REDUCE, NO_ROOT,
           (const void *send, void *receive, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (send, receive, count, type, op, comm), BYTES(count, type), BYTES(count, type))

COLLECTIVE(Gather, Igather, GATHER, root,
           (const void *send, COUNT send_count, MPI_Datatype send_type, void *receive,
            COUNT receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm),
           (send, send_count, send_type, receive, receive_count, receive_type, root, comm),
           !IS_MEMBER         ? 0
           : send == IN_PLACE ? BYTES(receive_count, receive_type)
                              : BYTES(send_count, send_type),
           IS_ROOT ? BYTES(receive_count, receive_type) * N_PEERS : 0)

COLLECTIVE(Gatherv, Igatherv, GATHER, root,
           (const void *send, COUNT send_count, MPI_Datatype send_type, void *receive,
            const COUNT receive_counts[], const DISPLACEMENT displacements[],
            MPI_Datatype receive_type, int root, MPI_Comm comm),
           (send, send_count, send_type, receive, receive_counts, displacements, receive_type, root,
            comm),
           !IS_MEMBER         ? 0
           : send == IN_PLACE ? BYTES(receive_counts[g->rank], receive_type)
                              : BYTES(send_count, send_type),
           IS_ROOT ? BYTES_V(receive_counts, receive_type) : 0)

COLLECTIVE(Scatter, Iscatter, SCATTER, root,
           (const void *send, COUNT send_count, MPI_Datatype send_type, void *receive,
            COUNT receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm),
           (send, send_count, send_type, receive, receive_count, receive_type, root, comm),
           IS_ROOT ? BYTES(send_count, send_type) * N_PEERS : 0,
           !IS_MEMBER            ? 0
           : receive == IN_PLACE ? BYTES(send_count, send_type)
                                 : BYTES(receive_count, receive_type))

COLLECTIVE(Scatterv, Iscatterv, SCATTER, root,
           (const void *send, const COUNT send_counts[], const DISPLACEMENT displacements[],
            MPI_Datatype send_type, void *receive, COUNT receive_count, MPI_Datatype receive_type,
            int root, MPI_Comm comm),
           (send, send_counts, displacements, send_type, receive, receive_count, receive_type, root,
            comm),
           IS_ROOT ? BYTES_V(send_counts, send_type) : 0,
           !IS_MEMBER            ? 0
           : receive == IN_PLACE ? BYTES(send_counts[g->rank], send_type)
                                 : BYTES(receive_count, receive_type))

COLLECTIVE(Allgather, Iallgather, ALL_GATHER, NO_ROOT,
           (const void *send, COUNT send_count, MPI_Datatype send_type, void *receive,
            COUNT receive_count, MPI_Datatype receive_type, MPI_Comm comm),
           (send, send_count, send_type, receive, receive_count, receive_type, comm),
           send == IN_PLACE ? BYTES(receive_count, receive_type) : BYTES(send_count, send_type),
           BYTES(receive_count, receive_type) * N_PEERS)

COLLECTIVE(Allgatherv, Iallgatherv, ALL_GATHER, NO_ROOT,
           (const void *send, COUNT send_count, MPI_Datatype send_type, void *receive,
            const COUNT receive_counts[], const DISPLACEMENT displacements[],
            MPI_Datatype receive_type, MPI_Comm comm),
           (send, send_count, send_type, receive, receive_counts, displacements, receive_type, comm),
           send == IN_PLACE ? BYTES(receive_counts[g->rank], receive_type)
                            : BYTES(send_count, send_type),
           BYTES_V(receive_counts, receive_type))

COLLECTIVE(Alltoall, Ialltoall, ALL_TO_ALL, NO_ROOT,
           (const void *send, COUNT send_count, MPI_Datatype send_type, void *receive,
            COUNT receive_count, MPI_Datatype receive_type, MPI_Comm comm),
           (send, send_count, send_type, receive, receive_count, receive_type, comm),
           (send == IN_PLACE ? BYTES(receive_count, receive_type) : BYTES(send_count, send_type)) *
               N_PEERS,
           BYTES(receive_count, receive_type) * N_PEERS)

COLLECTIVE(Alltoallv, Ialltoallv, ALL_TO_ALL, NO_ROOT,
           (const void *send, const COUNT send_counts[], const DISPLACEMENT send_displacements[],
            MPI_Datatype send_type, void *receive, const COUNT receive_counts[],
            const DISPLACEMENT receive_displacements[], MPI_Datatype receive_type, MPI_Comm comm),
           (send, send_counts, send_displacements, send_type, receive, receive_counts,
            receive_displacements, receive_type, comm),
           send == IN_PLACE ? BYTES_V(receive_counts, receive_type) : BYTES_V(send_counts, send_type),
           BYTES_V(receive_counts, receive_type))

COLLECTIVE(Alltoallw, Ialltoallw, ALL_TO_ALL, NO_ROOT,
           (const void *send, const COUNT send_counts[], const DISPLACEMENT send_displacements[],
            const MPI_Datatype send_types[], void *receive, const COUNT receive_counts[],
            const DISPLACEMENT receive_displacements[], const MPI_Datatype receive_types[],
            MPI_Comm comm),
           (send, send_counts, send_displacements, send_types, receive, receive_counts,
            receive_displacements, receive_types, comm),
           send == IN_PLACE ? BYTES_W(receive_counts, receive_types)
                            : BYTES_W(send_counts, send_types),
           BYTES_W(receive_counts, receive_types))

COLLECTIVE(Reduce_scatter, Ireduce_scatter, REDUCE_SCATTER, NO_ROOT,
           (const void *send, void *receive, const COUNT receive_counts[], MPI_Datatype type,
            MPI_Op op, MPI_Comm comm),
           (send, receive, receive_counts, type, op, comm),
           mpi_bytes_v(receive_counts, sizeof *receive_counts, g->size, type),
           BYTES(receive_counts[g->rank], type))

COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, REDUCE_SCATTER, NO_ROOT,
           (const void *send, void *receive, COUNT receive_count, MPI_Datatype type, MPI_Op op,
            MPI_Comm comm),
           (send, receive, receive_count, type, op, comm),
           BYTES(receive_count, type) * (uint64_t)g->size, BYTES(receive_count, type))

COLLECTIVE(Scan, Iscan, OTHER, NO_ROOT,
           (const void *send, void *receive, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (send, receive, count, type, op, comm), BYTES(count, type), BYTES(count, type))

COLLECTIVE(Exscan, Iexscan, OTHER, NO_ROOT,
           (const void *send, void *receive, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (send, receive, count, type, op, comm), BYTES(count, type),
           g->rank > 0 ? BYTES(count, type) : 0)

#undef BYTES
#undef BYTES_V
#undef BYTES_W
#undef IN_PLACE
#undef IS_ROOT
#undef IS_MEMBER
#undef N_PEERS
