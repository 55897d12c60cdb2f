/*
 * A command started by an MPI launcher as one of several processes: `mpirun -n 8 marey report run.marey`.
 *
 * MPI is not a build dependency: the library is opened only if a launcher has started us. It is the launcher's: Open
 * MPI, or MPICH and its derivatives. Only a dozen functions and a few constants are needed.
 */
#ifndef CLI_MPI_JOB_H
#define CLI_MPI_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mpi_job {
    uint32_t rank, size;
    uint32_t n_local; /* processes on this machine; 0: unknown */
};

enum mpi_begin {
    MPI_JOB_NONE,  /* no launcher, or different commands: work as usual */
    MPI_JOB_BEGUN, /* all processes of the job have this command; MPI is initialized */
    MPI_JOB_ALONE, /* MPI is unavailable, and this is rank 0: do all work; the others exit */
    MPI_JOB_LEAVE, /* MPI is unavailable, and rank 0 does the work */
};

/* Initializes, once per process. Rank 0 prints why MPI is unavailable. */
enum mpi_begin mpi_job_begin(struct mpi_job *job);
/* Finalizes MPI in this process; waits for the others. */
void mpi_job_end(void);

/* Sends or receives bytes of any length; MPI ends the job if a connection breaks. */
void mpi_job_send(uint32_t to, const void *bytes, size_t len);
/*
 * Receives from `from`; free() the result. NULL on out of memory, or for an empty message: the data are then received
 * and discarded, so that the sender can continue. `len` is set in either case.
 */
void *mpi_job_receive(uint32_t from, size_t *len);

#endif
