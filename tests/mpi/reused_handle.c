/*
 * While MPI_Wait returns, its request is free already, and a receive of another thread gets the same handle. PMPI_Wait is
 * defined here so that this happens each time. Exit status 3 when the MPI gave no handle again.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>

enum { STEPS = 20 };
static double received[2];
static MPI_Request other;
static int is_armed, n_reused;

static void *start_receive(void *arg)
{
    MPI_Irecv(&received[1], 1, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, &other);
    return arg;
}

int PMPI_Wait(MPI_Request *request, MPI_Status *status)
{
    int (*const real)(MPI_Request *, MPI_Status *) = dlsym(RTLD_NEXT, "PMPI_Wait");
    const MPI_Request before = *request;
    const int rc = real(request, status);
    if (is_armed) {
        pthread_t thread;
        is_armed = 0;
        pthread_create(&thread, NULL, start_receive, NULL);
        pthread_join(thread, NULL);
        n_reused += other == before;
    }
    return rc;
}

int main(int argc, char **argv)
{
    int provided;
    double sent = 1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    for (int i = 0; i < STEPS; i++) {
        MPI_Request request;
        MPI_Irecv(&received[0], 1, MPI_DOUBLE, 0, 0, MPI_COMM_SELF, &request);
        MPI_Send(&sent, 1, MPI_DOUBLE, 0, 0, MPI_COMM_SELF);
        is_armed = 1;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Send(&sent, 1, MPI_DOUBLE, 0, 1, MPI_COMM_SELF);
        MPI_Wait(&other, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return n_reused > 0 ? 0 : 3;
}
