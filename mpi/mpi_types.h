/*
 * The few types of MPI that the wrappers name. No mpi.h: each MPI has its own, and one libmarey-mpi serves all of them.
 *
 * A handle is a pointer in Open MPI and an int in MPICH and its relatives. Here it is a word that is passed on as it
 * came: a function that takes an int takes the lower half of the same register or stack slot, so nothing is lost either way. An
 * array of handles, or of statuses, is read only through mpi_handle_at() and mpi_status_at(), which know the
 * size of an element.
 */
#ifndef MAREY_MPI_TYPES_H
#define MAREY_MPI_TYPES_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

static_assert(sizeof(void *) == 8 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the lower half of a word is an int on the machines this is written for");

typedef uintptr_t MPI_Comm, MPI_Datatype, MPI_Group, MPI_Info, MPI_Message, MPI_Op, MPI_Request;
typedef struct MPI_Status MPI_Status; /* of 20 bytes or 24 */
typedef int64_t MPI_Count, MPI_Aint;

#endif
