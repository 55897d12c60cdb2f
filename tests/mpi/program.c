/*
 * A program with MPI for accidents: program WHAT [RANK]
 *
 *   steps      a few steps of an all-reduce, and that is all
 *   abort      rank RANK calls MPI_Abort after some steps
 *   kill       rank RANK kills itself by SIGKILL after some steps
 *   exit       every rank leaves by _exit, without MPI_Finalize
 *   fork       every rank forks a child that makes no MPI calls
 *   threads    two threads of each rank communicate at the same time
 *   early      asks MPI what may be asked before MPI_Init and after MPI_Finalize
 *   errors     calls that fail, with errors returned
 *   frees      many communicators, one after the other
 */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 20, THREADED = 200 };
static int rank, size;

static void steps(MPI_Comm comm, int n)
{
    double x = rank, sum;
    for (int i = 0; i < n; i++) {
        MPI_Allreduce(&x, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
        if (sum != size * (size - 1) / 2.0)
            _exit(7);
    }
}

static void *communicate(void *arg)
{
    MPI_Comm comm = *(MPI_Comm *)arg;
    double x = 1;
    steps(comm, THREADED);
    for (int i = 0; i < THREADED; i++) {
        MPI_Request requests[2];
        MPI_Irecv(&x, 1, MPI_DOUBLE, (rank + size - 1) % size, 0, comm, &requests[0]);
        MPI_Isend(&x, 1, MPI_DOUBLE, (rank + 1) % size, 0, comm, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t thread;
    MPI_Comm comms[2];
    for (int i = 0; i < 2; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    pthread_create(&thread, NULL, communicate, &comms[0]);
    communicate(&comms[1]);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++)
        MPI_Comm_free(&comms[i]);
}

static void errors(void)
{
    double x = 0;
    MPI_Request request;
    MPI_Comm none = MPI_COMM_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (MPI_Send(&x, 1, MPI_DOUBLE, size + 5, 0, MPI_COMM_WORLD) == MPI_SUCCESS ||
        MPI_Isend(&x, 1, MPI_DOUBLE, size + 5, 0, MPI_COMM_WORLD, &request) == MPI_SUCCESS ||
        MPI_Irecv(&x, -3, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, &request) == MPI_SUCCESS ||
        MPI_Bcast(&x, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD) == MPI_SUCCESS ||
        MPI_Bcast(&x, 1, MPI_DOUBLE, size + 5, MPI_COMM_WORLD) == MPI_SUCCESS ||
        MPI_Barrier(none) == MPI_SUCCESS)
        _exit(8);
}

static void early(void)
{
    int flag, version, subversion, len;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Initialized(&flag);
    MPI_Get_version(&version, &subversion);
    MPI_Get_library_version(text, &len);
}

static void act(const char *what, int who)
{
    if (strcmp(what, "threads") == 0)
        threads();
    else if (strcmp(what, "errors") == 0)
        errors();
    else if (strcmp(what, "fork") == 0 && fork() == 0)
        exit(0);
    else if (strcmp(what, "exit") == 0)
        _exit(0);
    else if (strcmp(what, "abort") == 0 && rank == who)
        MPI_Abort(MPI_COMM_WORLD, 5);
    else if (strcmp(what, "kill") == 0 && rank == who)
        kill(getpid(), SIGKILL);
    for (int i = 0; strcmp(what, "frees") == 0 && i < 300; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        steps(comm, 1);
        MPI_Comm_free(&comm);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "steps";
    int provided;
    if (strcmp(what, "early") == 0)
        early();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE)
        return 6;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    steps(MPI_COMM_WORLD, STEPS);
    act(what, argc > 2 ? atoi(argv[2]) : 0);
    steps(MPI_COMM_WORLD, STEPS);
    if (strcmp(what, "fork") == 0)
        wait(NULL);
    MPI_Finalize();
    if (strcmp(what, "early") == 0)
        early();
    return 0;
}
