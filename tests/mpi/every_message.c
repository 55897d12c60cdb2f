/*
 * Each way to send, receive, probe, wait and test, around a ring of four. Receives have larger
 * buffers than messages: the received bytes must be recorded.
 */
#include <unistd.h>

#include "expect.h"

#define W MPI_COMM_WORLD
enum { ROOM = 32 };
static double x[ROOM], y[ROOM];
static const int D = sizeof(double);
static int next, before;

static void receive(int n)
{
    MPI_Status status;
    int came;
    EXPECT("MPI_Recv", RECV, .out = n * D, .peer = RANK(before));
    MPI_Recv(y, ROOM, MPI_DOUBLE, MPI_ANY_SOURCE, n, W, &status);
    MPI_Get_count(&status, MPI_DOUBLE, &came);
    CHECK(came == n && status.MPI_SOURCE == before && status.MPI_TAG == n);
}

/* A receive that is waiting already: MPI_Rsend wants it, and a synchronous send may wait for it. */
static MPI_Request receive_ahead(int n)
{
    MPI_Request request;
    EXPECT("MPI_Irecv", RECV, .peer = RANK(before));
    MPI_Irecv(y, ROOM, MPI_DOUBLE, before, n, W, &request);
    EXPECT_ALL("MPI_Barrier", BARRIER);
    MPI_Barrier(W);
    return request;
}

static void finish(MPI_Request *request, int n)
{
    EXPECT("MPI_Wait", RECV, .out = n * D, .peer = RANK(before));
    MPI_Wait(request, MPI_STATUS_IGNORE);
    CHECK(*request == MPI_REQUEST_NULL);
}

/* Of a send all is known when it starts. */
static void finish_send(MPI_Request *request)
{
    EXPECT_PLAIN("MPI_Wait");
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

#define SEND_ONE(name, n)                                                                          \
    do {                                                                                           \
        MPI_Request receiving = receive_ahead(n);                                                  \
        EXPECT("MPI_" #name, SEND, .in = (n)*D, .peer = RANK(next));                               \
        MPI_##name(x, n, MPI_DOUBLE, next, n, W);                                                  \
        finish(&receiving, n);                                                                     \
    } while (0)
#define ISEND_ONE(name, n)                                                                         \
    do {                                                                                           \
        MPI_Request receiving = receive_ahead(n), sending;                                         \
        EXPECT("MPI_" #name, SEND, .in = (n)*D, .peer = RANK(next));                               \
        MPI_##name(x, n, MPI_DOUBLE, next, n, W, &sending);                                        \
        finish_send(&sending);                                                                     \
        finish(&receiving, n);                                                                     \
    } while (0)

static void sends(void)
{
    char buffer[4096];
    MPI_Buffer_attach(buffer, sizeof buffer);
    EXPECT("MPI_Send", SEND, .in = 3 * D, .peer = RANK(next));
    MPI_Send(x, 3, MPI_DOUBLE, next, 3, W);
    receive(3);
    SEND_ONE(Bsend, 4);
    SEND_ONE(Ssend, 5);
    SEND_ONE(Rsend, 6);
    ISEND_ONE(Isend, 7);
    ISEND_ONE(Ibsend, 8);
    ISEND_ONE(Issend, 9);
    ISEND_ONE(Irsend, 10);
    void *was;
    int bytes;
    MPI_Buffer_detach(&was, &bytes);
    /* To nobody. */
    EXPECT("MPI_Send", SEND);
    MPI_Send(x, 3, MPI_DOUBLE, MPI_PROC_NULL, 0, W);
    EXPECT("MPI_Recv", RECV);
    MPI_Recv(x, 3, MPI_DOUBLE, MPI_PROC_NULL, 0, W, MPI_STATUS_IGNORE);
}

static void exchanges(void)
{
    MPI_Status status;
    EXPECT("MPI_Sendrecv", OTHER, .in = 2 * D, .out = 2 * D, .peer = RANK(next));
    MPI_Sendrecv(x, 2, MPI_DOUBLE, next, 1, y, ROOM, MPI_DOUBLE, before, 1, W, MPI_STATUS_IGNORE);
    EXPECT("MPI_Sendrecv_replace", OTHER, .in = 2 * D, .out = 2 * D, .peer = RANK(next));
    MPI_Sendrecv_replace(x, 2, MPI_DOUBLE, next, 1, before, 1, W, &status);
    CHECK(status.MPI_SOURCE == before);
}

static void probes(void)
{
    MPI_Message message;
    MPI_Request request;
    MPI_Status status;
    int flag;
    for (int n = 1; n <= 4; n++) {
        EXPECT("MPI_Isend", SEND, .in = n * D, .peer = RANK(next));
        MPI_Isend(x, n, MPI_DOUBLE, next, n, W, &request);
        finish_send(&request);
    }
    EXPECT("MPI_Probe", OTHER, .peer = RANK(before));
    MPI_Probe(MPI_ANY_SOURCE, 1, W, MPI_STATUS_IGNORE);
    EXPECT("MPI_Iprobe", OTHER, .peer = RANK(before));
    MPI_Iprobe(MPI_ANY_SOURCE, 1, W, &flag, &status);
    CHECK(flag && status.MPI_SOURCE == before);
    EXPECT_PLAIN("MPI_Iprobe");
    MPI_Iprobe(MPI_ANY_SOURCE, 99, W, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
    receive(1);
    EXPECT("MPI_Mprobe", OTHER, .peer = RANK(before));
    MPI_Mprobe(MPI_ANY_SOURCE, 2, W, &message, MPI_STATUS_IGNORE);
    EXPECT("MPI_Mrecv", RECV, .out = 2 * D, .peer = RANK(before));
    MPI_Mrecv(y, ROOM, MPI_DOUBLE, &message, MPI_STATUS_IGNORE);
    EXPECT("MPI_Mprobe", OTHER, .peer = RANK(before));
    MPI_Mprobe(before, 3, W, &message, &status);
    EXPECT("MPI_Imrecv", RECV);
    MPI_Imrecv(y, ROOM, MPI_DOUBLE, &message, &request);
    finish(&request, 3);
    EXPECT("MPI_Probe", OTHER, .peer = RANK(before)); /* so that it has come */
    MPI_Probe(before, 4, W, &status);
    EXPECT("MPI_Improbe", OTHER, .peer = RANK(before));
    MPI_Improbe(before, 4, W, &flag, &message, MPI_STATUS_IGNORE);
    CHECK(flag);
    EXPECT("MPI_Mrecv", RECV, .out = 4 * D, .peer = RANK(before));
    MPI_Mrecv(y, ROOM, MPI_DOUBLE, &message, &status);
    CHECK(status.MPI_SOURCE == before);
}

/* Two receives of 1 and 2 numbers, and the two sends that they meet; in the order r1, s, r2, s. */
static void start_four(MPI_Request requests[4])
{
    for (int n = 1; n <= 2; n++) {
        EXPECT("MPI_Irecv", RECV, .peer = RANK(before));
        MPI_Irecv(y + 8 * n, 8, MPI_DOUBLE, before, n, W, &requests[2 * n - 2]);
    }
    for (int n = 1; n <= 2; n++) {
        EXPECT("MPI_Isend", SEND, .in = n * D, .peer = RANK(next));
        MPI_Isend(x, n, MPI_DOUBLE, next, n, W, &requests[2 * n - 1]);
    }
}

/*
 * When both of the receives have ended, at once or one after the other, this is what was told together. Waits and
 * tests that may end one or both cannot be told beforehand, so the test adds them up: "sum" of all until "sum_end".
 */
static void begin_sum(const char *name)
{
    fprintf(expectations, "{\"sum\": \"%s\", \"out\": %d}\n", name, 3 * D);
}

static void waits(void)
{
    MPI_Request requests[4];
    MPI_Status statuses[4];
    int index, n, indices[4], n_ended = 0;

    start_four(requests);
    EXPECT("MPI_Waitall", RECV, .out = 3 * D, .peer = RANK(before));
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);

    start_four(requests);
    EXPECT("MPI_Waitall", RECV, .out = 3 * D, .peer = RANK(before));
    MPI_Waitall(4, requests, statuses);
    CHECK(statuses[0].MPI_SOURCE == before && statuses[2].MPI_TAG == 2);

    start_four(requests);
    begin_sum("MPI_Waitany");
    for (int i = 0; i < 4; i++) {
        MPI_Waitany(4, requests, &index, i % 2 ? &statuses[0] : MPI_STATUS_IGNORE);
        CHECK(index >= 0 && index < 4);
    }
    start_four(requests);
    begin_sum("MPI_Waitsome");
    while (n_ended < 4) {
        MPI_Waitsome(4, requests, &n, indices, MPI_STATUSES_IGNORE);
        n_ended += n;
    }
    MPI_Waitsome(4, requests, &n, indices, MPI_STATUSES_IGNORE); /* of nothing */
    CHECK(n == MPI_UNDEFINED);
}

static void tests(void)
{
    MPI_Request requests[4];
    MPI_Status status;
    int flag = 0, index, n, indices[4], n_ended = 0;

    start_four(requests);
    begin_sum("MPI_Test");
    for (int i = 0; i < 4; i++)
        for (flag = 0; !flag;)
            MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
    start_four(requests);
    begin_sum("MPI_Testall");
    for (flag = 0; !flag;)
        MPI_Testall(4, requests, &flag, MPI_STATUSES_IGNORE);
    start_four(requests);
    begin_sum("MPI_Testany");
    while (n_ended < 4) {
        MPI_Testany(4, requests, &index, &flag, &status);
        n_ended += flag != 0;
    }
    start_four(requests);
    begin_sum("MPI_Testsome");
    for (n_ended = 0; n_ended < 4; n_ended += n)
        MPI_Testsome(4, requests, &n, indices, MPI_STATUSES_IGNORE);
}

/* Requests that are started again and again; one that nobody waits for; one that is only looked at. */
static void others(void)
{
    MPI_Request pair[2], request;
    MPI_Status status;
    int flag = 0;
    MPI_Recv_init(y, ROOM, MPI_DOUBLE, before, 1, W, &pair[0]);
    MPI_Send_init(x, 2, MPI_DOUBLE, next, 1, W, &pair[1]);
    EXPECT_PLAIN("MPI_Startall");
    MPI_Startall(2, pair);
    EXPECT_PLAIN("MPI_Waitall");
    MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
    EXPECT_PLAIN("MPI_Start");
    MPI_Start(&pair[0]);
    EXPECT_PLAIN("MPI_Start");
    MPI_Start(&pair[1]);
    EXPECT_PLAIN("MPI_Waitall");
    MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++) {
        EXPECT_PLAIN("MPI_Request_free");
        MPI_Request_free(&pair[i]);
    }
    EXPECT("MPI_Isend", SEND, .in = 5 * D, .peer = RANK(next));
    MPI_Isend(x, 5, MPI_DOUBLE, next, 5, W, &request);
    EXPECT_PLAIN("MPI_Request_free");
    MPI_Request_free(&request);
    EXPECT("MPI_Irecv", RECV, .peer = RANK(before));
    MPI_Irecv(y, ROOM, MPI_DOUBLE, before, 5, W, &request);
    EXPECT_ALL("MPI_Barrier", BARRIER);
    MPI_Barrier(W);
    EXPECT_PLAIN("MPI_Request_get_status");
    MPI_Request_get_status(request, &flag, &status);
    finish(&request, 5);
    /* A receive that is given up: its handle comes again. */
    EXPECT("MPI_Irecv", RECV, .peer = RANK(before));
    MPI_Irecv(y, ROOM, MPI_DOUBLE, before, 77, W, &request);
    MPI_Cancel(&request);
    EXPECT("MPI_Wait", RECV);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

#if MPI_VERSION >= 4
static MPI_Request receive_ahead_c(int n)
{
    MPI_Request request;
    EXPECT("MPI_Irecv_c", RECV, .peer = RANK(before));
    MPI_Irecv_c(y, ROOM, MPI_DOUBLE, before, n, W, &request);
    EXPECT_ALL("MPI_Barrier", BARRIER);
    MPI_Barrier(W);
    return request;
}

#define SEND_ONE_C(name, n)                                                                        \
    do {                                                                                           \
        MPI_Request receiving = receive_ahead_c(n);                                                \
        EXPECT("MPI_" #name, SEND, .in = (n)*D, .peer = RANK(next));                               \
        MPI_##name(x, n, MPI_DOUBLE, next, n, W);                                                  \
        finish(&receiving, n);                                                                     \
    } while (0)
#define ISEND_ONE_C(name, n)                                                                       \
    do {                                                                                           \
        MPI_Request receiving = receive_ahead_c(n), sending;                                       \
        EXPECT("MPI_" #name, SEND, .in = (n)*D, .peer = RANK(next));                               \
        MPI_##name(x, n, MPI_DOUBLE, next, n, W, &sending);                                        \
        finish_send(&sending);                                                                     \
        finish(&receiving, n);                                                                     \
    } while (0)

static void with_large_counts(void)
{
    char buffer[4096];
    void *was;
    int bytes;
    MPI_Message message;
    MPI_Request request;
    MPI_Buffer_attach(buffer, sizeof buffer);
    SEND_ONE_C(Send_c, 3);
    SEND_ONE_C(Bsend_c, 4);
    SEND_ONE_C(Ssend_c, 5);
    SEND_ONE_C(Rsend_c, 6);
    ISEND_ONE_C(Isend_c, 7);
    ISEND_ONE_C(Ibsend_c, 8);
    ISEND_ONE_C(Issend_c, 9);
    ISEND_ONE_C(Irsend_c, 10);
    MPI_Buffer_detach(&was, &bytes);
    EXPECT("MPI_Sendrecv_c", OTHER, .in = 2 * D, .out = 2 * D, .peer = RANK(next));
    MPI_Sendrecv_c(x, 2, MPI_DOUBLE, next, 1, y, ROOM, MPI_DOUBLE, before, 1, W, MPI_STATUS_IGNORE);
    EXPECT("MPI_Sendrecv_replace_c", OTHER, .in = 2 * D, .out = 2 * D, .peer = RANK(next));
    MPI_Sendrecv_replace_c(x, 2, MPI_DOUBLE, next, 1, before, 1, W, MPI_STATUS_IGNORE);
    for (int n = 1; n <= 3; n++) {
        EXPECT("MPI_Isend_c", SEND, .in = n * D, .peer = RANK(next));
        MPI_Isend_c(x, n, MPI_DOUBLE, next, n, W, &request);
        finish_send(&request);
    }
    EXPECT("MPI_Recv_c", RECV, .out = D, .peer = RANK(before));
    MPI_Recv_c(y, ROOM, MPI_DOUBLE, before, 1, W, MPI_STATUS_IGNORE);
    EXPECT("MPI_Mprobe", OTHER, .peer = RANK(before));
    MPI_Mprobe(before, 2, W, &message, MPI_STATUS_IGNORE);
    EXPECT("MPI_Mrecv_c", RECV, .out = 2 * D, .peer = RANK(before));
    MPI_Mrecv_c(y, ROOM, MPI_DOUBLE, &message, MPI_STATUS_IGNORE);
    EXPECT("MPI_Mprobe", OTHER, .peer = RANK(before));
    MPI_Mprobe(before, 3, W, &message, MPI_STATUS_IGNORE);
    EXPECT("MPI_Imrecv_c", RECV);
    MPI_Imrecv_c(y, ROOM, MPI_DOUBLE, &message, &request);
    finish(&request, 3);
}
#endif

int main(int argc, char **argv)
{
    expect_begin(&argc, &argv);
    next = (rank + 1) % size;
    before = (rank + size - 1) % size;
    sends();
    exchanges();
    probes();
    waits();
    tests();
    others();
#if MPI_VERSION >= 4
    with_large_counts();
#endif
    expect_end();
    return 0;
}
