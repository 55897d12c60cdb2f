/*
 * Computation and communication in shares that are known: planted FILE
 *
 * In each step the odd ranks compute three times as long as the even ones, which wait for them. They begin when the even
 * rank before them has ended, so that they come last on a busy machine too. Then all compute while a reduction is under
 * way. Each rank writes, by its own clock and in nanoseconds, what it did in all: computation, communication,
 * computation while something was under way, into FILE with its rank behind it.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <marey/marey.h>

enum { STEPS = 15, MS = 1000000 };

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t computing, communicating, hidden, mark;

/* From the last mark on it was this. */
static uint64_t spent(uint64_t *sum)
{
    const uint64_t now = now_ns(), ns = now - mark;
    *sum += ns;
    mark = now;
    return ns;
}

static void compute(uint64_t ns)
{
    for (const uint64_t begin = now_ns(); now_ns() - begin < ns;)
        ;
}

int main(int argc, char **argv)
{
    static double x[1000], y[1000];
    int rank;
    MPI_Request request;
    marey_mark(MAREY_ID("begin")); /* the first event opens the recording, which takes its time */
    mark = now_ns();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    spent(&communicating);
    for (int step = 0; step < STEPS; step++) {
        if (rank % 2)
            MPI_Recv(NULL, 0, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        spent(&communicating);
        compute(rank % 2 ? 30 * MS : 10 * MS);
        spent(&computing);
        if (rank % 2 == 0)
            MPI_Send(NULL, 0, MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD);
        MPI_Allreduce(x, y, 1000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        spent(&communicating);
        MPI_Iallreduce(x, y, 1000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        spent(&communicating);
        compute(10 * MS);
        hidden += spent(&computing);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        spent(&communicating);
    }
    MPI_Finalize();
    spent(&communicating);
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", argv[1], rank);
    FILE *file = fopen(path, "w");
    fprintf(file, "%llu %llu %llu\n", (unsigned long long)computing,
            (unsigned long long)communicating, (unsigned long long)hidden);
    fclose(file);
    return 0;
}
