/*
 * mpi: libmarey-mpi.so, which `marey run --mpi` preloads. It defines MPI's functions; each calls MPI's own function by
 * its second name (PMPI_Send for MPI_Send) and records a range around it.
 *
 *   a call ── mpi_transfer.c, mpi_wait.c, mpi_communicator.c, mpi_life.c
 *               |    mpi_transfers.h: collectives and messages, one row for each function
 *               |-- mpi_library.c   the program's MPI library, and the format of its handles
 *               |-- mpi_group.c     communicators: name, ranks, number of collectives so far
 *               |     mpi_ranks.c   ranks as a string
 *               '-- mpi_request.c   operations in progress
 *
 * The program gets MPI's own results: arguments are passed on unchanged, and no extra messages are sent. MPI is queried
 * only by functions that are local to the process, and only between MPI_Init and MPI_Finalize.
 *
 * Off, a wrapper costs a load and a branch; once something was recorded, collectives are counted even while off, so
 * that the numbers of all ranks keep matching.
 */
#ifndef MAREY_MPI_INTERNAL_H
#define MAREY_MPI_INTERNAL_H

#include <stdbool.h>

#include <marey/communication.h>

#include "mpi_types.h"

/* ---- mpi_library.c ---- */

/* The required parts of an MPI's mpi.h. */
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

/* Functions that we call; every MPI since 3.0 has them. */
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

/* The program's MPI; valid after mpi_real() has returned, or if mpi_is_known(). */
extern struct mpi_asked mpi;
extern struct mpi_dialect mpi_dialect;

/* Whether MPI was found and its handles are known; otherwise calls are only passed on. */
bool mpi_is_known(void);

/* Caches MPI's own function for a wrapper. */
struct mpi_slot {
    void *real;       /* release; loaded with acquire. All threads find the same */
    void *fallback;   /* to call if MPI lacks it, or NULL */
    bool is_fallback; /* `real` is the fallback */
};

/* The function `name`, "PMPI_Send". Never NULL: if it is missing, the program is ended. */
void *mpi_real_find(struct mpi_slot *slot, const char *name);
static inline void *mpi_real(struct mpi_slot *slot, const char *name)
{
    void *const real = __atomic_load_n(&slot->real, __ATOMIC_ACQUIRE);
    return MAREY_LIKELY(real != NULL) ? real : mpi_real_find(slot, name);
}

/* The handle at `handles[i]`, as a comparable word. */
MPI_Request mpi_handle_at(const void *handles, size_t i);
const MPI_Status *mpi_status_at(const MPI_Status *statuses, size_t i);
/* A handle from a parameter, where the upper half of an int is undefined. */
uintptr_t mpi_word(uintptr_t handle);

/* ---- mpi_life.c ---- */

/* Whether calls are recorded: marey is on, and MPI_Pcontrol did not pause it. */
extern int mpi_is_paused;
static inline bool mpi_is_on(void)
{
    return MAREY_UNLIKELY((marey_on() & (MAREY_ON_RECORD | MAREY_ON_NVTX)) != 0) &&
           !__atomic_load_n(&mpi_is_paused, __ATOMIC_RELAXED);
}

/* Between MPI_Init and MPI_Finalize, with a known MPI: it may be called. */
bool mpi_is_up(void);

/* ---- mpi_group.c ---- */

/* A communicator. Lent until the program frees it. */
struct mpi_group {
    MPI_Comm comm;
    struct mpi_name *name; /* its site and count of collectives, or NULL. Atomic */
    char *ranks;           /* as a string; NULL: unknown */
    int rank, size;        /* our rank in it, and the size of our side */
    int n_peers;           /* on the other side of an intercommunicator, else equal to `size` */
    bool is_inter;
    int *world;     /* ranks of the peers in MPI_COMM_WORLD; NULL: the same numbers */
    int self_world; /* our rank there */
    uint32_t n_all; /* ranks of both sides */
    struct mpi_group *next;
};

/* The data of `comm`; an empty group if unknown (outside MPI, MPI_COMM_NULL, out of memory). */
const struct mpi_group *mpi_group_get(MPI_Comm comm);
/* It was just created by `maker` ("MPI_Comm_split"): in the same order on all its ranks, which determines its name. */
void mpi_group_made(MPI_Comm comm, const char *maker);
/* The program set its name; it is about to be freed. */
void mpi_group_named(MPI_Comm comm, const char *name);
void mpi_group_forget(MPI_Comm comm);

/* Sets group, size and what; no sequence, peer or bytes. */
void mpi_record_init(const struct mpi_group *group, enum marey_collective what,
                     struct marey_communication *record);
/* The next number of the group's collectives. */
uint64_t mpi_group_next(const struct mpi_group *group);
/* Counts a collective while nothing is recorded. */
void mpi_group_count(MPI_Comm comm);
/* The rank of `peer` in MPI_COMM_WORLD; -1 for MPI_PROC_NULL and similar. */
int mpi_group_peer(const struct mpi_group *group, int peer);
/* The same for the root of a collective. */
int mpi_group_root(const struct mpi_group *group, int root);

/* Bytes of `count` elements of a type; 0 if undefined. */
uint64_t mpi_bytes(int64_t count, MPI_Datatype type);
/* The sum over `n` counts of `count_bytes` each, 4 or 8; with one type, or one per count. */
uint64_t mpi_bytes_v(const void *counts, size_t count_bytes, int n, MPI_Datatype type);
uint64_t mpi_bytes_w(const void *counts, size_t count_bytes, int n, const MPI_Datatype *types);

/* ---- mpi_ranks.c ---- */

/* "0-3,8,10-16:2" for `n` ranks in order. The caller frees the result; NULL on out of memory. */
char *mpi_ranks_text(const int *ranks, int n);

/* ---- mpi_request.c ---- */

/* A nonblocking operation in progress. */
struct mpi_started {
    struct marey_communication record; /* for the record of its wait */
    MPI_Comm comm;                     /* for a receive, whose peer is known only at the end */
    marey_async flight;                /* 0: none */
    uint64_t number;                   /* 1-based; set by mpi_request_add() */
    bool is_receive;
};
void mpi_request_add(MPI_Request request, const struct mpi_started *started);
/* Looks up `request`; false if unknown. It stays known until forgotten. */
bool mpi_request_get(MPI_Request request, struct mpi_started *started);
/*
 * It has ended, or its end will not be observed: no longer in flight. After the call that ended it, MPI may have reused
 * the handle for another thread's operation: `number` is the one to forget, 0: any.
 */
void mpi_request_forget(MPI_Request request, uint64_t number);

/* ---- mpi_transfer.c ---- */

/* Sets the sender and bytes of a receive that has ended. */
void mpi_record_received(const struct mpi_group *g, const MPI_Status *status,
                         struct marey_communication *record);

/* ---- shared by the wrappers ---- */

#define MPI_SITE(text)                                                                             \
    {                                                                                              \
        .name = (text), .category = MAREY_COMMUNICATION, .domain = "MPI"                           \
    }
#define MPI_STRIP(...) __VA_ARGS__

/*
 * Defines MPI_##name. The body of a wrapper gets MPI's function as `real` and its range's site as `site`; it runs only
 * while recording: otherwise `else_` runs in addition to the call. A fallback calls another wrapper, which records.
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
/* A range around the call; `before` and `after` always run. */
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
