/* Each collective once, blocking and non-blocking, with checked results and known bytes. */
#include "expect.h"

static double x[64], y[64];
static int counts[4] = {1, 2, 3, 4}, displacements[4] = {0, 1, 3, 6};
static int ones[4] = {1, 1, 1, 1}, zero_to_three[4] = {0, 8, 16, 24}, in_order[4] = {0, 1, 2, 3};
static MPI_Datatype doubles[4];
static const int D = sizeof(double);

static void fill(double value)
{
    for (int i = 0; i < 64; i++) {
        x[i] = value;
        y[i] = -1;
    }
}

/*
 * Each is done blocking, and started and waited for. The wait tells which one it was, and no bytes again.
 */
#define BOTH(name, iname, what, in_, out_, peer_, call, icall, check)                              \
    do {                                                                                           \
        fill(rank + 1);                                                                            \
        EXPECT_ALL("MPI_" name, what, .in = (in_), .out = (out_), .peer = (peer_));                \
        call;                                                                                      \
        CHECK(check);                                                                              \
        fill(rank + 1);                                                                            \
        EXPECT_ALL("MPI_" iname, what, .in = (in_), .out = (out_), .peer = (peer_));               \
        MPI_Request request;                                                                       \
        icall;                                                                                     \
        EXPECT("MPI_Wait", what, .peer = (peer_), .sequence = NUMBER(here->next - 1));             \
        MPI_Wait(&request, MPI_STATUS_IGNORE);                                                     \
        CHECK(check);                                                                              \
    } while (0)

#define W MPI_COMM_WORLD

static void with_a_root(int root)
{
    const int is_root = rank == root, r = RANK(root);
    BOTH("Bcast", "Ibcast", BROADCAST, is_root ? 5 * D : 0, is_root ? 0 : 5 * D, r,
         MPI_Bcast(x, 5, MPI_DOUBLE, root, W), MPI_Ibcast(x, 5, MPI_DOUBLE, root, W, &request),
         x[4] == root + 1);
    BOTH("Reduce", "Ireduce", REDUCE, 6 * D, is_root ? 6 * D : 0, r,
         MPI_Reduce(x, y, 6, MPI_DOUBLE, MPI_SUM, root, W),
         MPI_Ireduce(x, y, 6, MPI_DOUBLE, MPI_SUM, root, W, &request), !is_root || y[5] == 10);
    /* Elsewhere than at the root, what is got may be anything. */
    BOTH("Gather", "Igather", GATHER, 2 * D, is_root ? 8 * D : 0, r,
         MPI_Gather(x, 2, MPI_DOUBLE, y, 2, is_root ? MPI_DOUBLE : MPI_DATATYPE_NULL, root, W),
         MPI_Igather(x, 2, MPI_DOUBLE, y, is_root ? 2 : -7, MPI_DOUBLE, root, W, &request),
         !is_root || (y[0] == 1 && y[7] == 4));
    BOTH("Gatherv", "Igatherv", GATHER, counts[rank] * D, is_root ? 10 * D : 0, r,
         MPI_Gatherv(x, counts[rank], MPI_DOUBLE, y, is_root ? counts : NULL, displacements,
                     MPI_DOUBLE, root, W),
         MPI_Igatherv(x, counts[rank], MPI_DOUBLE, y, is_root ? counts : NULL, displacements,
                      MPI_DOUBLE, root, W, &request),
         !is_root || (y[0] == 1 && y[9] == 4));
    BOTH("Scatter", "Iscatter", SCATTER, is_root ? 12 * D : 0, 3 * D, r,
         MPI_Scatter(x, 3, is_root ? MPI_DOUBLE : MPI_DATATYPE_NULL, y, 3, MPI_DOUBLE, root, W),
         MPI_Iscatter(x, 3, MPI_DOUBLE, y, 3, MPI_DOUBLE, root, W, &request), y[2] == root + 1);
    BOTH("Scatterv", "Iscatterv", SCATTER, is_root ? 10 * D : 0, counts[rank] * D, r,
         MPI_Scatterv(x, is_root ? counts : NULL, displacements, MPI_DOUBLE, y, counts[rank],
                      MPI_DOUBLE, root, W),
         MPI_Iscatterv(x, is_root ? counts : NULL, displacements, MPI_DOUBLE, y, counts[rank],
                       MPI_DOUBLE, root, W, &request),
         y[0] == root + 1);
}

static void of_all(void)
{
    BOTH("Barrier", "Ibarrier", BARRIER, 0, 0, 0, MPI_Barrier(W), MPI_Ibarrier(W, &request), 1);
    BOTH("Allreduce", "Iallreduce", ALL_REDUCE, 7 * D, 7 * D, 0,
         MPI_Allreduce(x, y, 7, MPI_DOUBLE, MPI_SUM, W),
         MPI_Iallreduce(x, y, 7, MPI_DOUBLE, MPI_SUM, W, &request), y[6] == 10);
    BOTH("Allgather", "Iallgather", ALL_GATHER, 2 * D, 8 * D, 0,
         MPI_Allgather(x, 2, MPI_DOUBLE, y, 2, MPI_DOUBLE, W),
         MPI_Iallgather(x, 2, MPI_DOUBLE, y, 2, MPI_DOUBLE, W, &request), y[0] == 1 && y[7] == 4);
    BOTH("Allgatherv", "Iallgatherv", ALL_GATHER, counts[rank] * D, 10 * D, 0,
         MPI_Allgatherv(x, counts[rank], MPI_DOUBLE, y, counts, displacements, MPI_DOUBLE, W),
         MPI_Iallgatherv(x, counts[rank], MPI_DOUBLE, y, counts, displacements, MPI_DOUBLE, W,
                         &request),
         y[0] == 1 && y[9] == 4);
    BOTH("Alltoall", "Ialltoall", ALL_TO_ALL, 12 * D, 12 * D, 0,
         MPI_Alltoall(x, 3, MPI_DOUBLE, y, 3, MPI_DOUBLE, W),
         MPI_Ialltoall(x, 3, MPI_DOUBLE, y, 3, MPI_DOUBLE, W, &request), y[0] == 1 && y[11] == 4);
    int mine[4] = {rank + 1, rank + 1, rank + 1, rank + 1};
    int at[4] = {0, 4, 8, 12};
    BOTH("Alltoallv", "Ialltoallv", ALL_TO_ALL, 10 * D, 4 * (rank + 1) * D, 0,
         MPI_Alltoallv(x, counts, displacements, MPI_DOUBLE, y, mine, at, MPI_DOUBLE, W),
         MPI_Ialltoallv(x, counts, displacements, MPI_DOUBLE, y, mine, at, MPI_DOUBLE, W, &request),
         y[0] == 1 && y[12] == 4);
    BOTH("Alltoallw", "Ialltoallw", ALL_TO_ALL, 4 * D, 4 * D, 0,
         MPI_Alltoallw(x, ones, zero_to_three, doubles, y, ones, zero_to_three, doubles, W),
         MPI_Ialltoallw(x, ones, zero_to_three, doubles, y, ones, zero_to_three, doubles, W, &request),
         y[0] == 1 && y[3] == 4);
    BOTH("Reduce_scatter", "Ireduce_scatter", REDUCE_SCATTER, 10 * D, counts[rank] * D, 0,
         MPI_Reduce_scatter(x, y, counts, MPI_DOUBLE, MPI_SUM, W),
         MPI_Ireduce_scatter(x, y, counts, MPI_DOUBLE, MPI_SUM, W, &request), y[rank] == 10);
    BOTH("Reduce_scatter_block", "Ireduce_scatter_block", REDUCE_SCATTER, 8 * D, 2 * D, 0,
         MPI_Reduce_scatter_block(x, y, 2, MPI_DOUBLE, MPI_SUM, W),
         MPI_Ireduce_scatter_block(x, y, 2, MPI_DOUBLE, MPI_SUM, W, &request), y[1] == 10);
    BOTH("Scan", "Iscan", OTHER, 2 * D, 2 * D, 0, MPI_Scan(x, y, 2, MPI_DOUBLE, MPI_SUM, W),
         MPI_Iscan(x, y, 2, MPI_DOUBLE, MPI_SUM, W, &request), y[1] == (rank + 1) * (rank + 2) / 2.0);
    BOTH("Exscan", "Iexscan", OTHER, 2 * D, rank > 0 ? 2 * D : 0, 0,
         MPI_Exscan(x, y, 2, MPI_DOUBLE, MPI_SUM, W),
         MPI_Iexscan(x, y, 2, MPI_DOUBLE, MPI_SUM, W, &request),
         rank == 0 || y[1] == rank * (rank + 1) / 2.0);
}

/* Where MPI_IN_PLACE stands for a buffer, its count and type may be anything. */
static void in_place(void)
{
    fill(rank + 1);
    EXPECT_ALL("MPI_Allreduce", ALL_REDUCE, .in = 3 * D, .out = 3 * D);
    MPI_Allreduce(MPI_IN_PLACE, x, 3, MPI_DOUBLE, MPI_SUM, W);
    CHECK(x[2] == 10);
    fill(rank + 1);
    EXPECT_ALL("MPI_Allgather", ALL_GATHER, .in = 2 * D, .out = 8 * D);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, x, 2, MPI_DOUBLE, W);
    EXPECT_ALL("MPI_Allgatherv", ALL_GATHER, .in = counts[rank] * D, .out = 10 * D);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, x, counts, displacements, MPI_DOUBLE, W);
    EXPECT_ALL("MPI_Gather", GATHER, .in = 2 * D, .out = rank == 1 ? 8 * D : 0, .peer = RANK(1));
    MPI_Gather(rank == 1 ? MPI_IN_PLACE : x, 2, MPI_DOUBLE, y, 2, MPI_DOUBLE, 1, W);
    EXPECT_ALL("MPI_Gatherv", GATHER, .in = counts[rank] * D, .out = rank == 1 ? 10 * D : 0,
               .peer = RANK(1));
    MPI_Gatherv(rank == 1 ? MPI_IN_PLACE : x, rank == 1 ? 0 : counts[rank], MPI_DOUBLE, y, counts,
                displacements, MPI_DOUBLE, 1, W);
    EXPECT_ALL("MPI_Scatter", SCATTER, .in = rank == 2 ? 12 * D : 0, .out = 3 * D, .peer = RANK(2));
    MPI_Scatter(x, 3, MPI_DOUBLE, rank == 2 ? MPI_IN_PLACE : y, rank == 2 ? 0 : 3, MPI_DOUBLE, 2, W);
    EXPECT_ALL("MPI_Scatterv", SCATTER, .in = rank == 2 ? 10 * D : 0, .out = counts[rank] * D,
               .peer = RANK(2));
    MPI_Scatterv(x, counts, displacements, MPI_DOUBLE, rank == 2 ? MPI_IN_PLACE : y,
                 rank == 2 ? 0 : counts[rank], MPI_DOUBLE, 2, W);
    EXPECT_ALL("MPI_Alltoall", ALL_TO_ALL, .in = 4 * D, .out = 4 * D);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, x, 1, MPI_DOUBLE, W);
    EXPECT_ALL("MPI_Alltoallv", ALL_TO_ALL, .in = 4 * D, .out = 4 * D);
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, x, ones, in_order, MPI_DOUBLE, W);
    EXPECT_ALL("MPI_Alltoallw", ALL_TO_ALL, .in = 4 * D, .out = 4 * D);
    MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, x, ones, zero_to_three, doubles, W);
}

/* A type of its own, whose size is not its extent. */
static void with_holes(void)
{
    MPI_Datatype column;
    MPI_Type_vector(3, 1, 4, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    EXPECT_ALL("MPI_Bcast", BROADCAST, .in = rank == 3 ? 6 * D : 0, .out = rank == 3 ? 0 : 6 * D,
               .peer = RANK(3));
    MPI_Bcast(x, 2, column, 3, W);
    MPI_Type_free(&column);
    EXPECT_ALL("MPI_Bcast", BROADCAST, .peer = RANK(0));
    MPI_Bcast(NULL, 0, MPI_DOUBLE, 0, W);
}

/* A wait for several has no room to say which. */
static void several_at_once(void)
{
    MPI_Request requests[2];
    EXPECT_ALL("MPI_Iallreduce", ALL_REDUCE, .in = D, .out = D);
    MPI_Iallreduce(x, y, 1, MPI_DOUBLE, MPI_SUM, W, &requests[0]);
    EXPECT_ALL("MPI_Ibarrier", BARRIER);
    MPI_Ibarrier(W, &requests[1]);
    EXPECT_PLAIN("MPI_Waitall");
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

#if MPI_VERSION >= 4
static MPI_Count big[4] = {1, 2, 3, 4}, big_ones[4] = {1, 1, 1, 1};
static MPI_Aint far[4] = {0, 1, 3, 6}, far_bytes[4] = {0, 8, 16, 24};

static void with_large_counts(int root)
{
    const int is_root = rank == root, r = RANK(root);
    BOTH("Bcast_c", "Ibcast_c", BROADCAST, is_root ? 5 * D : 0, is_root ? 0 : 5 * D, r,
         MPI_Bcast_c(x, 5, MPI_DOUBLE, root, W), MPI_Ibcast_c(x, 5, MPI_DOUBLE, root, W, &request),
         1);
    BOTH("Reduce_c", "Ireduce_c", REDUCE, 6 * D, is_root ? 6 * D : 0, r,
         MPI_Reduce_c(x, y, 6, MPI_DOUBLE, MPI_SUM, root, W),
         MPI_Ireduce_c(x, y, 6, MPI_DOUBLE, MPI_SUM, root, W, &request), 1);
    BOTH("Gather_c", "Igather_c", GATHER, 2 * D, is_root ? 8 * D : 0, r,
         MPI_Gather_c(x, 2, MPI_DOUBLE, y, 2, MPI_DOUBLE, root, W),
         MPI_Igather_c(x, 2, MPI_DOUBLE, y, 2, MPI_DOUBLE, root, W, &request), 1);
    BOTH("Gatherv_c", "Igatherv_c", GATHER, big[rank] * D, is_root ? 10 * D : 0, r,
         MPI_Gatherv_c(x, big[rank], MPI_DOUBLE, y, big, far, MPI_DOUBLE, root, W),
         MPI_Igatherv_c(x, big[rank], MPI_DOUBLE, y, big, far, MPI_DOUBLE, root, W, &request), 1);
    BOTH("Scatter_c", "Iscatter_c", SCATTER, is_root ? 12 * D : 0, 3 * D, r,
         MPI_Scatter_c(x, 3, MPI_DOUBLE, y, 3, MPI_DOUBLE, root, W),
         MPI_Iscatter_c(x, 3, MPI_DOUBLE, y, 3, MPI_DOUBLE, root, W, &request), 1);
    BOTH("Scatterv_c", "Iscatterv_c", SCATTER, is_root ? 10 * D : 0, big[rank] * D, r,
         MPI_Scatterv_c(x, big, far, MPI_DOUBLE, y, big[rank], MPI_DOUBLE, root, W),
         MPI_Iscatterv_c(x, big, far, MPI_DOUBLE, y, big[rank], MPI_DOUBLE, root, W, &request), 1);
    BOTH("Allreduce_c", "Iallreduce_c", ALL_REDUCE, 7 * D, 7 * D, 0,
         MPI_Allreduce_c(x, y, 7, MPI_DOUBLE, MPI_SUM, W),
         MPI_Iallreduce_c(x, y, 7, MPI_DOUBLE, MPI_SUM, W, &request), y[6] == 10);
    BOTH("Allgather_c", "Iallgather_c", ALL_GATHER, 2 * D, 8 * D, 0,
         MPI_Allgather_c(x, 2, MPI_DOUBLE, y, 2, MPI_DOUBLE, W),
         MPI_Iallgather_c(x, 2, MPI_DOUBLE, y, 2, MPI_DOUBLE, W, &request), 1);
    BOTH("Allgatherv_c", "Iallgatherv_c", ALL_GATHER, big[rank] * D, 10 * D, 0,
         MPI_Allgatherv_c(x, big[rank], MPI_DOUBLE, y, big, far, MPI_DOUBLE, W),
         MPI_Iallgatherv_c(x, big[rank], MPI_DOUBLE, y, big, far, MPI_DOUBLE, W, &request), 1);
    BOTH("Alltoall_c", "Ialltoall_c", ALL_TO_ALL, 12 * D, 12 * D, 0,
         MPI_Alltoall_c(x, 3, MPI_DOUBLE, y, 3, MPI_DOUBLE, W),
         MPI_Ialltoall_c(x, 3, MPI_DOUBLE, y, 3, MPI_DOUBLE, W, &request), 1);
    BOTH("Alltoallv_c", "Ialltoallv_c", ALL_TO_ALL, 4 * D, 4 * D, 0,
         MPI_Alltoallv_c(x, big_ones, far, MPI_DOUBLE, y, big_ones, far, MPI_DOUBLE, W),
         MPI_Ialltoallv_c(x, big_ones, far, MPI_DOUBLE, y, big_ones, far, MPI_DOUBLE, W, &request),
         1);
    BOTH("Alltoallw_c", "Ialltoallw_c", ALL_TO_ALL, 4 * D, 4 * D, 0,
         MPI_Alltoallw_c(x, big_ones, far_bytes, doubles, y, big_ones, far_bytes, doubles, W),
         MPI_Ialltoallw_c(x, big_ones, far_bytes, doubles, y, big_ones, far_bytes, doubles, W,
                          &request),
         y[3] == 4);
    BOTH("Reduce_scatter_c", "Ireduce_scatter_c", REDUCE_SCATTER, 10 * D, big[rank] * D, 0,
         MPI_Reduce_scatter_c(x, y, big, MPI_DOUBLE, MPI_SUM, W),
         MPI_Ireduce_scatter_c(x, y, big, MPI_DOUBLE, MPI_SUM, W, &request), 1);
    BOTH("Reduce_scatter_block_c", "Ireduce_scatter_block_c", REDUCE_SCATTER, 8 * D, 2 * D, 0,
         MPI_Reduce_scatter_block_c(x, y, 2, MPI_DOUBLE, MPI_SUM, W),
         MPI_Ireduce_scatter_block_c(x, y, 2, MPI_DOUBLE, MPI_SUM, W, &request), 1);
    BOTH("Scan_c", "Iscan_c", OTHER, 2 * D, 2 * D, 0, MPI_Scan_c(x, y, 2, MPI_DOUBLE, MPI_SUM, W),
         MPI_Iscan_c(x, y, 2, MPI_DOUBLE, MPI_SUM, W, &request), 1);
    BOTH("Exscan_c", "Iexscan_c", OTHER, 2 * D, rank > 0 ? 2 * D : 0, 0,
         MPI_Exscan_c(x, y, 2, MPI_DOUBLE, MPI_SUM, W),
         MPI_Iexscan_c(x, y, 2, MPI_DOUBLE, MPI_SUM, W, &request), 1);
}
#endif

int main(int argc, char **argv)
{
    expect_begin(&argc, &argv);
    for (int i = 0; i < 4; i++)
        doubles[i] = MPI_DOUBLE;
    with_a_root(0);
    with_a_root(3);
    of_all();
    in_place();
    with_holes();
    several_at_once();
#if MPI_VERSION >= 4
    with_large_counts(2);
#endif
    expect_end();
    return 0;
}
