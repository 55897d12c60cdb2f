/*
 * A loop of computation and communication with MPI: heat spreads along a rod; each rank has a part
 * of it and sends its ends to its neighbors.
 *
 *     mpicc -O2 mpi_loop.c $(pkg-config --cflags --libs marey) -lm -o mpi_loop
 *     marey run --mpi -o loop.marey -- mpirun -n 4 ./mpi_loop
 *     marey breakdown loop.marey
 *
 * MPI calls are recorded without changes to the program; ranges and iterations are marked below.
 * With an argument, ./mpi_loop 2, that rank has twice the work, and the others wait for it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <marey/marey.h>
#include <mpi.h>

enum { CELLS = 1000000, STEPS = 200, CHECK_EVERY = 20 };

struct rod {
    double *now, *next; /* CELLS each, and a cell of the neighbor at each end */
    int rank, n_ranks, left, right;
};

static void init(struct rod *rod)
{
    static double cells[2][CELLS + 2];
    rod->now = cells[0];
    rod->next = cells[1];
    MPI_Comm_rank(MPI_COMM_WORLD, &rod->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &rod->n_ranks);
    rod->left = rod->rank > 0 ? rod->rank - 1 : MPI_PROC_NULL;
    rod->right = rod->rank + 1 < rod->n_ranks ? rod->rank + 1 : MPI_PROC_NULL;
    for (int i = 0; i < CELLS + 2; i++)
        rod->now[i] = rod->rank == 0 && i < CELLS / 2 ? 1 : 0;
}

/* Only the ends depend on the neighbors, so the rest is computed during communication. */
static void start_exchange(struct rod *rod, MPI_Request requests[4])
{
    double *cells = rod->now;
    MPI_Irecv(&cells[0], 1, MPI_DOUBLE, rod->left, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&cells[CELLS + 1], 1, MPI_DOUBLE, rod->right, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&cells[1], 1, MPI_DOUBLE, rod->left, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(&cells[CELLS], 1, MPI_DOUBLE, rod->right, 0, MPI_COMM_WORLD, &requests[3]);
}

static void update(struct rod *rod, int from, int to)
{
    MAREY_SCOPE("update");
    for (int i = from; i <= to; i++)
        rod->next[i] = rod->now[i] + 0.25 * (rod->now[i - 1] - 2 * rod->now[i] + rod->now[i + 1]);
}

static double change(const struct rod *rod)
{
    double own = 0, all = 0;
    for (int i = 1; i <= CELLS; i++)
        own = fmax(own, fabs(rod->next[i] - rod->now[i]));
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static void step(struct rod *rod, int slow_rank)
{
    MAREY_SCOPE("step");
    MPI_Request requests[4];
    start_exchange(rod, requests);
    update(rod, 2, CELLS - 1);
    if (rod->rank == slow_rank)
        update(rod, 2, CELLS - 1);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    update(rod, 1, 1);
    update(rod, CELLS, CELLS);
}

static void swap(struct rod *rod)
{
    double *const now = rod->now;
    rod->now = rod->next;
    rod->next = now;
}

int main(int argc, char **argv)
{
    struct rod rod;
    const int slow_rank = argc > 1 ? (int)strtol(argv[1], NULL, 10) : -1;
    MPI_Init(&argc, &argv);
    init(&rod);
    for (int i = 0; i < STEPS; i++) {
        marey_iteration_begin(); /* so that the first iteration does not include the setup */
        step(&rod, slow_rank);
        if ((i + 1) % CHECK_EVERY == 0) {
            const double largest = change(&rod);
            if (rod.rank == 0 && i + 1 == STEPS)
                printf("largest change in the last step: %.6f\n", largest);
        }
        swap(&rod);
        marey_iteration_finish();
    }
    MPI_Finalize();
    return 0;
}
