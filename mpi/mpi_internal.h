/*
 * mpi: libmarey-mpi.so, which `marey run --mpi` preloads. It defines MPI's functions, does what each is called for by
 * MPI's second name for it (PMPI_Send for MPI_Send), and records a range around it.
 *
 *   a call ── mpi_transfer.c, mpi_wait.c, mpi_communicator.c, mpi_life.c
 *               |    mpi_transfers.h: collectives and messages, one row for each function
 *               |-- mpi_library.c   where the program's MPI is, and what its handles look like
 *               |-- mpi_group.c     what is known of a communicator: its name, its ranks, how many collectives so far
 *               |     mpi_ranks.c   ranks as a text
 *               '-- mpi_request.c   what is under way
 *
 * The program's results are its MPI's: arguments are passed on as they came, and nothing is sent or received besides.
 * MPI itself is asked by functions that are local to the process. Before MPI_Init and after MPI_Finalize it is asked
 * nothing at all.
 *
 * Off, a wrapper costs a load and a branch; once something was recorded, a collective also counts while off, so that
 * the numbers of all ranks go on agreeing.
 */
#ifndef MAREY_MPI_INTERNAL_H
#define MAREY_MPI_INTERNAL_H

#include <stdbool.h>

#include <marey/communication.h>

#include "mpi_types.h"

/* ---- mpi_library.c ---- */

/* What an MPI's mpi.h says, as far as it is needed here. */
struct mpi_dialect {
    const char *name;
    size_t handle_bytes, status_bytes, source_offset; /* of MPI_SOURCE in a status */
    void *in_place;
    const MPI_Status *status_ignore, *statuses_ignore;
    int proc_null, root;
    MPI_Comm world, self, comm_null;
    MPI_Datatype byte, type_null;
    MPI_Request request_null;
};

/* What we ask ourselves; all are there in every MPI since 3.0. */
#define MPI_ASKED(X)                                                                               \
    X(Initialized, (int *flag))                                                                    \
    X(Finalized, (int *flag))                                                                      \
    X(Get_library_version, (char *version, int *len))                                              \
    X(Comm_rank, (MPI_Comm comm, int *rank))                                                       \
    X(Comm_size, (MPI_Comm comm, int *size))                                                       \
    X(Comm_group, (MPI_Comm comm, MPI_Group * group))                                              \
    X(Comm_get_name, (MPI_Comm comm, char *name, int *len))                                        \
    X(Comm_test_inter, (MPI_Comm comm, int *flag))                                                 \
    X(Comm_remote_group, (MPI_Comm comm, MPI_Group * group))                                       \
    X(Group_size, (MPI_Group group, int *size))                                                    \
    X(Group_translate_ranks, (MPI_Group from, int n, const int *ranks, MPI_Group to, int *out))    \
    X(Group_free, (MPI_Group * group))                                                             \
    X(Type_size_x, (MPI_Datatype type, MPI_Count * size))                                          \
    X(Test_cancelled, (const MPI_Status *status, int *flag))                                       \
    X(Get_elements_x, (const MPI_Status *status, MPI_Datatype type, MPI_Count *n))

struct mpi_asked {
#define MPI_ASKED_POINTER(name, params) int(*name) params;
    MPI_ASKED(MPI_ASKED_POINTER)
#undef MPI_ASKED_POINTER
};

/* The program's MPI; valid once mpi_real() has returned, or mpi_is_known(). */
extern struct mpi_asked mpi;
extern struct mpi_dialect mpi_dialect;

/* Whether the MPI was found and is one whose handles we know; else calls are passed on and that is all. */
bool mpi_is_known(void);

/* Where a wrapper keeps MPI's own function. */
struct mpi_slot {
    void *real;       /* release; loaded with acquire. Any thread finds the same */
    void *fallback;   /* what to call where MPI lacks it; NULL: nothing */
    bool is_fallback; /* that is what `real` is */
};

/* The function `name`, "PMPI_Send". Never NULL: without one the program ends here, as it must. */
void *mpi_real_find(struct mpi_slot *slot, const char *name);
static inline void *mpi_real(struct mpi_slot *slot, const char *name)
{
    void *const real = __atomic_load_n(&slot->real, __ATOMIC_ACQUIRE);
    return MAREY_LIKELY(real != NULL) ? real : mpi_real_find(slot, name);
}

/* The handle at `handles[i]`, as a word that can be compared. */
MPI_Request mpi_handle_at(const void *handles, size_t i);
const MPI_Status *mpi_status_at(const MPI_Status *statuses, size_t i);
/* A handle that came as a parameter, where the upper half of an int is anything. */
uintptr_t mpi_word(uintptr_t handle);

/* ---- mpi_life.c ---- */

/* Whether calls are recorded: marey is on, and MPI_Pcontrol did not say otherwise. */
extern int mpi_is_paused;
static inline bool mpi_is_on(void)
{
    return MAREY_UNLIKELY((marey_on() & (MAREY_ON_RECORD | MAREY_ON_NVTX)) != 0) &&
           !__atomic_load_n(&mpi_is_paused, __ATOMIC_RELAXED);
}

/* Between MPI_Init and MPI_Finalize, with an MPI that we know: it may be asked. */
bool mpi_is_up(void);

/* ---- mpi_group.c ---- */

/* A communicator. Lent until it is freed. */
struct mpi_group {
    MPI_Comm comm;
    struct mpi_name *name; /* its site and count of collectives; NULL for none. Atomic */
    char *ranks;           /* as a text; NULL: unknown */
    int rank, size;        /* own rank in it, and how many there are on this side */
    int n_peers;           /* on the other side of an intercommunicator, else as `size` */
    bool is_inter;
    int *world;     /* ranks in MPI_COMM_WORLD of the peers; NULL: the same numbers */
    int self_world; /* own rank there */
    uint32_t n_all; /* ranks of both sides */
    struct mpi_group *next;
};

/* What is known of `comm`; a group of nobody where nothing is (MPI is not up, MPI_COMM_NULL, no memory). */
const struct mpi_group *mpi_group_get(MPI_Comm comm);
/* It was just made by `maker` ("MPI_Comm_split"): on all its ranks in the same order, which gives it its name. */
void mpi_group_made(MPI_Comm comm, const char *maker);
/* The program gave it a name; it is about to be freed. */
void mpi_group_named(MPI_Comm comm, const char *name);
void mpi_group_forget(MPI_Comm comm);

/* Fill in group, size and what; no sequence, no peer, no bytes. */
void mpi_record_init(const struct mpi_group *group, enum marey_collective what,
                     struct marey_communication *record);
/* The next number of the group's collectives. */
uint64_t mpi_group_next(const struct mpi_group *group);
/* A collective takes place while nothing is recorded. */
void mpi_group_count(MPI_Comm comm);
/* The rank in MPI_COMM_WORLD of rank `peer`; -1 for MPI_PROC_NULL and its kin. */
int mpi_group_peer(const struct mpi_group *group, int peer);
/* The same for the root of a collective. */
int mpi_group_root(const struct mpi_group *group, int root);

/* Bytes of `count` of a type; 0 where there are none. */
uint64_t mpi_bytes(int64_t count, MPI_Datatype type);
/* Of all of `n` counts of `count_bytes` each, 4 or 8; types one for all, or each its own. */
uint64_t mpi_bytes_v(const void *counts, size_t count_bytes, int n, MPI_Datatype type);
uint64_t mpi_bytes_w(const void *counts, size_t count_bytes, int n, const MPI_Datatype *types);

/* ---- mpi_ranks.c ---- */

/* "0-3,8,10-16:2" of `n` ranks in their order. Free what comes back; NULL without memory. */
char *mpi_ranks_text(const int *ranks, int n);

/* ---- mpi_request.c ---- */

/* A nonblocking operation that is under way. */
struct mpi_started {
    struct marey_communication record; /* as its wait records it */
    MPI_Comm comm;                     /* of a receive, whose peer is known at the end */
    marey_async flight;                /* 0: none */
    uint64_t number;                   /* from 1; set by mpi_request_add() */
    bool is_receive;
};
void mpi_request_add(MPI_Request request, const struct mpi_started *started);
/* What `request` is; false when it is not known. It stays known until it is forgotten. */
bool mpi_request_get(MPI_Request request, struct mpi_started *started);
/*
 * It has ended, or its end will not be asked for: no longer in flight. After the call that ended it, MPI may have given the handle
 * to an operation of another thread: `number` is the one to forget, 0 any.
 */
void mpi_request_forget(MPI_Request request, uint64_t number);

/* ---- mpi_transfer.c ---- */

/* Who sent and how much came, of a receive that has ended. */
void mpi_record_received(const struct mpi_group *g, const MPI_Status *status,
                         struct marey_communication *record);

/* ---- shared by the wrappers ---- */

#define MPI_SITE(text)                                                                             \
    {                                                                                              \
        .name = (text), .category = MAREY_COMMUNICATION, .domain = "MPI"                           \
    }
#define MPI_STRIP(...) __VA_ARGS__

/*
 * Define MPI_##name. The body of a wrapper finds the function itself as `real`, the site of its range as `site`, and
 * has been left already when nothing is recorded: `else_` is what is then done besides the call. A fallback calls
 * another of our wrappers, which records.
 */
#define MPI_WRAPPER_OR(name, fallback_, params, args, else_, ...)                                  \
    MAREY_API int MPI_##name params;                                                               \
    MAREY_API int MPI_##name params                                                                \
    {                                                                                              \
        static struct mpi_slot slot = {.fallback = (fallback_)};                                   \
        int(*const real) params = (int(*) params)mpi_real(&slot, "PMPI_" #name);                   \
        if (MAREY_UNLIKELY(slot.is_fallback))                                                      \
            return real args;                                                                      \
        if (MAREY_LIKELY(!mpi_is_on())) {                                                          \
            else_;                                                                                 \
            return real args;                                                                      \
        }                                                                                          \
        static struct marey_site site = MPI_SITE("MPI_" #name);                                    \
        const marey_id id = marey_site_id(&site);                                                  \
        __VA_ARGS__                                                                                \
    }
#define MPI_WRAPPER(name, params, args, else_, ...)                                                \
    MPI_WRAPPER_OR(name, NULL, params, args, else_, __VA_ARGS__)
/* A range around the call; `before` it, and whether or not anything is recorded; `after` it. */
#define MPI_PLAIN(name, before, after, params, args)                                               \
    MPI_WRAPPER(name, params, args, before, {                                                      \
        before;                                                                                    \
        marey_begin_on(id);                                                                        \
        const int rc = real args;                                                                  \
        after;                                                                                     \
        marey_end(id);                                                                             \
        return rc;                                                                                 \
    })

#endif
