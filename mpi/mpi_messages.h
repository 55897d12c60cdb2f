/*
 * Messages between two ranks, one row each. A file that includes this defines COUNT, and
 *
 *   SENDING(name)       as MPI_Send
 *   SENDING_ON(name)    as MPI_Isend
 *   RECEIVING(name, comm, parameters, arguments)             blocking, the last parameter is `status`
 *   RECEIVING_ON(name, comm, peer, parameters, arguments)    nonblocking, the last parameter is `request`
 *   EXCHANGING(name, bytes given, parameters, arguments)     both at once, with `to` and `from`
 *
 * A message that a probe has found is received without saying where: comm_of() knows.
 */

SENDING(Send)
SENDING(Bsend)
SENDING(Ssend)
SENDING(Rsend)
SENDING_ON(Isend)
SENDING_ON(Ibsend)
SENDING_ON(Issend)
SENDING_ON(Irsend)

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
           (const void *send, COUNT send_count, MPI_Datatype send_type, int to, int send_tag,
            void *receive, COUNT receive_count, MPI_Datatype receive_type, int from,
            int receive_tag, MPI_Comm comm, MPI_Status *status),
           (send, send_count, send_type, to, send_tag, receive, receive_count, receive_type, from,
            receive_tag, comm, status))
EXCHANGING(Sendrecv_replace, mpi_bytes(count, type),
           (void *buffer, COUNT count, MPI_Datatype type, int to, int send_tag, int from,
            int receive_tag, MPI_Comm comm, MPI_Status *status),
           (buffer, count, type, to, send_tag, from, receive_tag, comm, status))
