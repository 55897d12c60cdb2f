/*
 * The few MPI types that the wrappers use. Without mpi.h: each MPI has its own, and one libmarey-mpi serves all.
 *
 * A handle is a pointer in Open MPI and an int in MPICH and its derivatives. Here it is a word that is passed on
 * unchanged: a function with an int parameter uses the lower half of the same register or stack slot, so nothing is
 * lost. Arrays of handles or statuses are read only through mpi_handle_at() and mpi_status_at(), which know the element
 * size.
 */
#ifndef MAREY_MPI_TYPES_H
#define MAREY_MPI_TYPES_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

static_assert(sizeof(void *) == 8 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the lower half of a word is an int on the machines this is written for");

typedef uintptr_t MPI_Comm, MPI_Datatype, MPI_Group, MPI_Info, MPI_Message, MPI_Op, MPI_Request;
typedef struct MPI_Status MPI_Status; /* 20 or 24 bytes */
typedef int64_t MPI_Count, MPI_Aint;

#endif
