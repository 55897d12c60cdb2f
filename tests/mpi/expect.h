/*
 * Programs that know what must be recorded of them. Each call of MPI is written down beforehand, by hand and not by the
 * wrappers' own reckoning, one JSON object a line, in the file that the first argument names, with the rank behind it:
 *
 *     EXPECT("MPI_Send", SEND, .in = 40, .peer = next);
 *     MPI_Send(...);
 *
 * A field that is not named is nothing: no bytes, no peer, no number. The group is the one set last by `here`.
 */
#ifndef MAREY_TEST_EXPECT_H
#define MAREY_TEST_EXPECT_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <marey/recording.h>

/* The group that calls are about. */
struct group {
    const char *name, *ranks;
    int size;
    unsigned long long next; /* number of its next collective */
};

struct expected {
    long long in, out;
    int peer; /* plus one, so that 0 is none */
    long long sequence;
    int is_untold;
};

static FILE *expectations;
static struct group world = {"MPI_COMM_WORLD", "0-3", 4, 0}, *here = &world;
static int rank, size;

static inline void expect(const char *name, int what, const struct expected *e, int is_counted)
{
    fprintf(expectations, "{\"name\": \"%s\", \"told\": ", name);
    if (e->is_untold) {
        fprintf(expectations, "null}\n");
        return;
    }
    fprintf(expectations,
            "{\"group\": \"%s\", \"ranks\": \"%s\", \"what\": %d, \"in\": %lld, \"out\": %lld, "
            "\"size\": %d, \"peer\": %d, \"sequence\": ",
            here->name, here->ranks, what, e->in, e->out, here->size, e->peer - 1);
    if (is_counted)
        fprintf(expectations, "%llu}}\n", here->next++);
    else if (e->sequence > 0) /* plus one, as the peer */
        fprintf(expectations, "%lld}}\n", e->sequence - 1);
    else
        fprintf(expectations, "null}}\n");
}

#define EXPECT(name, what, ...)                                                                    \
    expect(name, MAREY_COLLECTIVE_##what, &(struct expected){__VA_ARGS__}, 0)
/* A collective: it has the group's next number. */
#define EXPECT_ALL(name, what, ...)                                                                \
    expect(name, MAREY_COLLECTIVE_##what, &(struct expected){__VA_ARGS__}, 1)
/* A range of which nothing is told. */
#define EXPECT_PLAIN(name) EXPECT(name, OTHER, .is_untold = 1)
#define RANK(r) ((r) + 1)
#define NUMBER(n) ((long long)(n) + 1)

static inline void expect_begin(int *argc, char ***argv)
{
    char path[4096];
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(path, sizeof path, "%s.%d", (*argv)[1], rank);
    expectations = fopen(path, "w");
    if (expectations == NULL || size != 4)
        MPI_Abort(MPI_COMM_WORLD, 1);
    EXPECT("MPI_Init", OTHER);
}

static inline void expect_end(void)
{
    here = &world;
    EXPECT("MPI_Finalize", OTHER);
    fclose(expectations);
    MPI_Finalize();
}

/* For results that must be those of MPI. */
#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "rank %d: line %d: not so: %s\n", rank, __LINE__, #x);                 \
            MPI_Abort(MPI_COMM_WORLD, 9);                                                          \
        }                                                                                          \
    } while (0)

#endif
