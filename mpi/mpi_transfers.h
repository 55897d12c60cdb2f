/*
 * Functions that move data, one row each. A file that includes this defines COUNT and DISPLACEMENT, the types of this
 * variant, and
 *
 *   COLLECTIVE(name, nonblocking name, what, root, parameters, arguments, bytes sent, bytes received)
 *   SENDING(name)       like MPI_Send
 *   SENDING_ON(name)    like MPI_Isend
 *   RECEIVING(name, comm, parameters, arguments)             blocking, the last parameter is `status`
 *   RECEIVING_ON(name, comm, peer, parameters, arguments)    nonblocking, the last parameter is `request`
 *   EXCHANGING(name, bytes sent, parameters, arguments)     both at once, with `to` and `from`
 *
 * In the bytes of a collective, `g` is the group; they are evaluated only if it is known. `root` is NO_ROOT or the
 * parameter of that name. Parameters that are not significant on a rank according to the standard (a receive count on a
 * rank that is not the root) are not read there, because they may be undefined.
 */

COLLECTIVE(Bcast, Ibcast, BROADCAST, root,
           (void *buffer, COUNT count, MPI_Datatype type, int root, MPI_Comm comm),
           (buffer, count, type, root, comm), IS_ROOT ? BYTES(count, type) : 0,
           IS_MEMBER && !IS_ROOT ? BYTES(count, type) : 0)

COLLECTIVE(Reduce, Ireduce, REDUCE, root, (REDUCE_PARAMS, int root, MPI_Comm comm),
           (REDUCE_ARGS, root, comm), IS_MEMBER ? BYTES(count, type) : 0,
           IS_ROOT ? BYTES(count, type) : 0)

COLLECTIVE(Allreduce, Iallreduce, ALL_REDUCE, NO_ROOT, (REDUCE_PARAMS, MPI_Comm comm),
           (REDUCE_ARGS, comm), BYTES(count, type), BYTES(count, type))

COLLECTIVE(Gather, Igather, GATHER, root, (SEND_ONE, RECEIVE_ONE, int root, MPI_Comm comm),
           (SEND_ONE_ARGS, RECEIVE_ONE_ARGS, root, comm), IS_MEMBER ? SENT_ONE : 0,
           IS_ROOT ? BYTES(receive_count, receive_type) * N_PEERS : 0)

COLLECTIVE(Gatherv, Igatherv, GATHER, root,
           (SEND_ONE, RECEIVE_EACH, MPI_Datatype receive_type, int root, MPI_Comm comm),
           (SEND_ONE_ARGS, RECEIVE_EACH_ARGS, receive_type, root, comm), IS_MEMBER ? SENT_OWN : 0,
           IS_ROOT ? BYTES_V(receive_counts, receive_type) : 0)

COLLECTIVE(Scatter, Iscatter, SCATTER, root, (SEND_ONE, RECEIVE_ONE, int root, MPI_Comm comm),
           (SEND_ONE_ARGS, RECEIVE_ONE_ARGS, root, comm),
           IS_ROOT ? BYTES(send_count, send_type) * N_PEERS : 0,
           !IS_MEMBER            ? 0
           : receive == IN_PLACE ? BYTES(send_count, send_type)
                                 : BYTES(receive_count, receive_type))

COLLECTIVE(Scatterv, Iscatterv, SCATTER, root,
           (SEND_EACH, MPI_Datatype send_type, RECEIVE_ONE, int root, MPI_Comm comm),
           (SEND_EACH_ARGS, send_type, RECEIVE_ONE_ARGS, root, comm),
           IS_ROOT ? BYTES_V(send_counts, send_type) : 0,
           !IS_MEMBER            ? 0
           : receive == IN_PLACE ? BYTES(send_counts[g->rank], send_type)
                                 : BYTES(receive_count, receive_type))

COLLECTIVE(Allgather, Iallgather, ALL_GATHER, NO_ROOT, (SEND_ONE, RECEIVE_ONE, MPI_Comm comm),
           (SEND_ONE_ARGS, RECEIVE_ONE_ARGS, comm), SENT_ONE,
           BYTES(receive_count, receive_type) * N_PEERS)

COLLECTIVE(Allgatherv, Iallgatherv, ALL_GATHER, NO_ROOT,
           (SEND_ONE, RECEIVE_EACH, MPI_Datatype receive_type, MPI_Comm comm),
           (SEND_ONE_ARGS, RECEIVE_EACH_ARGS, receive_type, comm), SENT_OWN,
           BYTES_V(receive_counts, receive_type))

COLLECTIVE(Alltoall, Ialltoall, ALL_TO_ALL, NO_ROOT, (SEND_ONE, RECEIVE_ONE, MPI_Comm comm),
           (SEND_ONE_ARGS, RECEIVE_ONE_ARGS, comm), SENT_ONE *N_PEERS,
           BYTES(receive_count, receive_type) * N_PEERS)

COLLECTIVE(Alltoallv, Ialltoallv, ALL_TO_ALL, NO_ROOT,
           (SEND_EACH, MPI_Datatype send_type, RECEIVE_EACH, MPI_Datatype receive_type, MPI_Comm comm),
           (SEND_EACH_ARGS, send_type, RECEIVE_EACH_ARGS, receive_type, comm),
           send == IN_PLACE ? BYTES_V(receive_counts, receive_type) : BYTES_V(send_counts, send_type),
           BYTES_V(receive_counts, receive_type))

COLLECTIVE(Alltoallw, Ialltoallw, ALL_TO_ALL, NO_ROOT,
           (SEND_EACH, const MPI_Datatype send_types[], RECEIVE_EACH,
            const MPI_Datatype receive_types[], MPI_Comm comm),
           (SEND_EACH_ARGS, send_types, RECEIVE_EACH_ARGS, receive_types, comm),
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
           (REDUCE_PARAMS, MPI_Comm comm), (REDUCE_ARGS, comm),
           BYTES(count, type) * (uint64_t)g->size, BYTES(count, type))

COLLECTIVE(Scan, Iscan, OTHER, NO_ROOT, (REDUCE_PARAMS, MPI_Comm comm), (REDUCE_ARGS, comm),
           BYTES(count, type), BYTES(count, type))

COLLECTIVE(Exscan, Iexscan, OTHER, NO_ROOT, (REDUCE_PARAMS, MPI_Comm comm), (REDUCE_ARGS, comm),
           BYTES(count, type), g->rank > 0 ? BYTES(count, type) : 0)

SENDING(Send)
SENDING(Bsend)
SENDING(Ssend)
SENDING(Rsend)
SENDING_ON(Isend)
SENDING_ON(Ibsend)
SENDING_ON(Issend)
SENDING_ON(Irsend)

/* A probed message is received without its communicator: comm_of() finds it. */
RECEIVING(Recv, comm,
          (void *buffer, COUNT count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
           MPI_Status *status),
          (buffer, count, type, peer, tag, comm, status))
RECEIVING(Mrecv, comm_of(message),
          (void *buffer, COUNT count, MPI_Datatype type, MPI_Message *message, MPI_Status *status),
          (buffer, count, type, message, status))
RECEIVING_ON(Irecv, comm, peer,
             (void *buffer, COUNT count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request *request),
             (buffer, count, type, peer, tag, comm, request))
RECEIVING_ON(Imrecv, comm_of(message), NO_PEER,
             (void *buffer, COUNT count, MPI_Datatype type, MPI_Message *message,
              MPI_Request *request),
             (buffer, count, type, message, request))

EXCHANGING(Sendrecv, mpi_bytes(send_count, send_type),
           (SEND_ONE, int to, int send_tag, RECEIVE_ONE, int from, int receive_tag, MPI_Comm comm,
            MPI_Status *status),
           (SEND_ONE_ARGS, to, send_tag, RECEIVE_ONE_ARGS, from, receive_tag, comm, status))
EXCHANGING(Sendrecv_replace, mpi_bytes(count, type),
           (void *buffer, COUNT count, MPI_Datatype type, int to, int send_tag, int from,
            int receive_tag, MPI_Comm comm, MPI_Status *status),
           (buffer, count, type, to, send_tag, from, receive_tag, comm, status))
