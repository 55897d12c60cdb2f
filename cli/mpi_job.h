/*
 * A command that was started by an MPI launcher, as one of several processes: `mpirun -n 8 marey report run.marey`.
 *
 * MPI is no part of any build: the library is opened when a launcher has started us, and only then. It is that of the
 * launcher: Open MPI, or MPICH with those that follow it. What is needed of them is a dozen functions and a few
 * constants.
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
    MPI_JOB_NONE,  /* no launcher, or every process has another command: work as ever */
    MPI_JOB_BEGUN, /* all processes of the job have this command; MPI is up */
    MPI_JOB_ALONE, /* MPI cannot be had, and this one is rank 0: do all of it; the others leave */
    MPI_JOB_LEAVE, /* MPI cannot be had, and rank 0 does the work */
};

/* Begin, once in a process. What cannot be had is said in a sentence, by rank 0. */
enum mpi_begin mpi_job_begin(struct mpi_job *job);
/* The end of MPI for this process; waits for the others. */
void mpi_job_end(void);

/* Send and receive bytes of any length; a broken connection ends the job, as MPI does it. */
void mpi_job_send(uint32_t to, const void *bytes, size_t len);
/*
 * What `from` sent, freed with free(). NULL without memory, or for nothing: what was sent is then taken and thrown away,
 * so that its sender can go on. Its length goes into `len` either way.
 */
void *mpi_job_receive(uint32_t from, size_t *len);

#endif
