/* Each way to create a communicator, with its expected name and ranks; intercommunicators; threads.
 * */
#include "expect.h"

#define W MPI_COMM_WORLD
static const int D = sizeof(double);

static void barrier(MPI_Comm comm, struct group *group)
{
    struct group *const before = here;
    here = group;
    EXPECT_ALL("MPI_Barrier", BARRIER);
    MPI_Barrier(comm);
    here = before;
}

static void free_one(MPI_Comm *comm)
{
    EXPECT_PLAIN("MPI_Comm_free");
    MPI_Comm_free(comm);
}

/* Made of all, used, freed. */
#define MAKE_AND_FREE(name, ...)                                                                   \
    do {                                                                                           \
        struct group group = {"MPI_" #name, "0-3", 4, 0};                                          \
        MPI_Comm comm;                                                                             \
        EXPECT_ALL("MPI_" #name, OTHER);                                                           \
        MPI_##name(__VA_ARGS__, &comm);                                                            \
        barrier(comm, &group);                                                                     \
        free_one(&comm);                                                                           \
    } while (0)

static void of_all(void)
{
    const int dims[] = {4}, periods[] = {0}, index[] = {1, 2, 3, 4}, edges[] = {1, 0, 3, 2};
    const int self[] = {rank}, one[] = {1}, to[] = {(rank + 1) % 4}, from[] = {(rank + 3) % 4};
    MPI_Group all;
    MPI_Comm_group(W, &all);
    MAKE_AND_FREE(Comm_dup, W);
    MAKE_AND_FREE(Comm_dup_with_info, W, MPI_INFO_NULL);
    MAKE_AND_FREE(Comm_create, W, all);
    MAKE_AND_FREE(Cart_create, W, 1, dims, periods, 0);
    MAKE_AND_FREE(Graph_create, W, 4, index, edges, 0);
    MAKE_AND_FREE(Dist_graph_create, W, 1, self, one, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0);
    MAKE_AND_FREE(Dist_graph_create_adjacent, W, 1, from, MPI_UNWEIGHTED, 1, to, MPI_UNWEIGHTED,
                  MPI_INFO_NULL, 0);
    MAKE_AND_FREE(Comm_split_type, W, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL);
    MPI_Group_free(&all);
}

/* Even ranks and odd ones, the odd ones in reverse; peers are numbered as in MPI_COMM_WORLD. */
static void of_some(void)
{
    double x[4] = {0};
    struct group half = {"MPI_Comm_split", rank % 2 ? "3,1" : "0,2", 2, 0};
    struct group second = {"MPI_Comm_split 2", rank % 2 ? "3,1" : "0,2", 2, 0};
    struct group named = {"pair", rank % 2 ? "3,1" : "0,2", 2, 0};
    const int root = rank % 2 ? 1 : 2, key = rank % 2 ? -rank : rank;
    MPI_Comm comm, other, none;
    EXPECT_ALL("MPI_Comm_split", OTHER);
    MPI_Comm_split(W, rank % 2, key, &comm);
    EXPECT_ALL("MPI_Comm_split", OTHER);
    MPI_Comm_split(W, rank % 2, key, &other);
    barrier(comm, &half);
    barrier(other, &second);
    here = &second;
    EXPECT_ALL("MPI_Bcast", BROADCAST, .in = rank == root ? 4 * D : 0,
               .out = rank == root ? 0 : 4 * D, .peer = RANK(root));
    MPI_Bcast(x, 4, MPI_DOUBLE, 1, other);
    if (rank == root) {
        EXPECT("MPI_Send", SEND, .in = D, .peer = RANK(rank == 1 ? 3 : 0));
        MPI_Send(x, 1, MPI_DOUBLE, 0, 0, other);
    } else {
        EXPECT("MPI_Recv", RECV, .out = D, .peer = RANK(root));
        MPI_Recv(x, 4, MPI_DOUBLE, MPI_ANY_SOURCE, 0, other, MPI_STATUS_IGNORE);
    }
    here = &world;
    /* The first one's name is free again, and goes on with its numbers. */
    free_one(&comm);
    EXPECT_ALL("MPI_Comm_split", OTHER);
    MPI_Comm_split(W, rank % 2, key, &comm);
    barrier(comm, &half);
    MPI_Comm_set_name(comm, "pair");
    barrier(comm, &named);
    free_one(&comm);
    free_one(&other);
    EXPECT_ALL("MPI_Comm_split", OTHER);
    MPI_Comm_split(W, MPI_UNDEFINED, 0, &none);
    CHECK(none == MPI_COMM_NULL);
}

static void of_a_group(void)
{
    const int members[] = {1, 2, 3};
    struct group three = {"MPI_Comm_create_group", "1-3", 3, 0};
    MPI_Group all, some;
    MPI_Comm comm;
    MPI_Comm_group(W, &all);
    MPI_Group_incl(all, 3, members, &some);
    if (rank > 0) {
        EXPECT("MPI_Comm_create_group", OTHER);
        MPI_Comm_create_group(W, some, 5, &comm);
        barrier(comm, &three);
        free_one(&comm);
    }
    MPI_Group_free(&some);
    MPI_Group_free(&all);
}

static void of_a_grid(void)
{
    const int dims[] = {2, 2}, periods[] = {0, 0}, rows[] = {0, 1};
    struct group grid = {"MPI_Cart_create", "0-3", 4, 1}; /* 1: the one before had a barrier */
    struct group row = {"MPI_Cart_sub", rank < 2 ? "0-1" : "2-3", 2, 0};
    MPI_Comm square, line;
    EXPECT_ALL("MPI_Cart_create", OTHER);
    MPI_Cart_create(W, 2, dims, periods, 0, &square);
    here = &grid;
    EXPECT_ALL("MPI_Cart_sub", OTHER);
    MPI_Cart_sub(square, rows, &line);
    here = &world;
    barrier(line, &row);
    free_one(&line);
    free_one(&square);
}

static void copy_later(void)
{
    MPI_Comm comm;
    MPI_Request request;
    struct group copy = {"communicator", "0-3", 4, 0};
    EXPECT_ALL("MPI_Comm_idup", OTHER);
    MPI_Comm_idup(W, &comm, &request);
    EXPECT("MPI_Wait", OTHER, .sequence = NUMBER(world.next - 1));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    barrier(comm, &copy);
    EXPECT_PLAIN("MPI_Comm_disconnect");
    MPI_Comm_disconnect(&comm);
}

/* Two sides: 0 and 1, 2 and 3. A root is a rank of the other side. */
static void between(void)
{
    double x[4] = {0}, y[8];
    const int side = rank / 2;
    struct group half = {"MPI_Comm_split", side ? "2-3" : "0-1", 2, 0};
    struct group both = {"MPI_Intercomm_create", "0-1|2-3", 4, 0};
    struct group merged = {"MPI_Intercomm_merge", "0-3", 4, 0};
    MPI_Comm local, inter, all;
    EXPECT_ALL("MPI_Comm_split", OTHER);
    MPI_Comm_split(W, side, rank, &local);
    here = &half;
    EXPECT_ALL("MPI_Intercomm_create", OTHER);
    MPI_Intercomm_create(local, 0, W, side ? 0 : 2, 3, &inter);

    here = &both;
    const int root = side == 1 ? 1 : rank == 1 ? MPI_ROOT : MPI_PROC_NULL; /* rank 1 gives */
    EXPECT_ALL("MPI_Bcast", BROADCAST, .in = rank == 1 ? 4 * D : 0, .out = side == 1 ? 4 * D : 0,
               .peer = rank == 0 ? 0 : RANK(1));
    MPI_Bcast(x, 4, MPI_DOUBLE, root, inter);
    EXPECT_ALL("MPI_Reduce", REDUCE, .in = side == 1 ? 4 * D : 0, .out = rank == 1 ? 4 * D : 0,
               .peer = rank == 0 ? 0 : RANK(1));
    MPI_Reduce(x, y, 4, MPI_DOUBLE, MPI_SUM, root, inter);
    EXPECT_ALL("MPI_Gather", GATHER, .in = side == 1 ? 2 * D : 0, .out = rank == 1 ? 4 * D : 0,
               .peer = rank == 0 ? 0 : RANK(1));
    MPI_Gather(x, 2, MPI_DOUBLE, y, 2, MPI_DOUBLE, root, inter);
    EXPECT_ALL("MPI_Allgather", ALL_GATHER, .in = D, .out = 2 * D);
    MPI_Allgather(x, 1, MPI_DOUBLE, y, 1, MPI_DOUBLE, inter);
    if (rank == 0) {
        EXPECT("MPI_Send", SEND, .in = D, .peer = RANK(3));
        MPI_Send(x, 1, MPI_DOUBLE, 1, 0, inter);
    } else if (rank == 3) {
        EXPECT("MPI_Recv", RECV, .out = D, .peer = RANK(0));
        MPI_Recv(x, 4, MPI_DOUBLE, MPI_ANY_SOURCE, 0, inter, MPI_STATUS_IGNORE);
    }
    EXPECT_ALL("MPI_Intercomm_merge", OTHER);
    MPI_Intercomm_merge(inter, side, &all);
    here = &world;
    barrier(all, &merged);
    free_one(&all);
    free_one(&inter);
    free_one(&local);
}

static void alone(void)
{
    char ranks[16];
    double x[2] = {0};
    snprintf(ranks, sizeof ranks, "%d", rank);
    struct group self = {"MPI_COMM_SELF", ranks, 1, 0};
    here = &self;
    EXPECT_ALL("MPI_Allreduce", ALL_REDUCE, .in = 2 * D, .out = 2 * D);
    MPI_Allreduce(MPI_IN_PLACE, x, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
    here = &world;
}

int main(int argc, char **argv)
{
    expect_begin(&argc, &argv);
    of_all();
    of_some();
    of_a_group();
    of_a_grid();
    copy_later();
    between();
    alone();
    /* Its own ranges go on while MPI's are not wanted, and numbers are counted on. */
    MPI_Pcontrol(0);
    MPI_Barrier(W);
    world.next++;
    MPI_Pcontrol(1);
    barrier(W, &world);
    expect_end();
    return 0;
}
