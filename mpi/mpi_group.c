/*
 * Communicators: data by handle.
 *
 * In a recording, ranks of a communicator are matched by its name and ranks, so both must be equal on all of them.
 * MPI's names contain process-specific numbers. But all ranks of a group create their communicators in the same order,
 * so communicators from the same function over the same ranks are numbered, "MPI_Comm_split 2", with the same number on
 * each rank. When a communicator is freed, which all ranks do too, its name is reused and the count of collectives
 * continues, so that no pair of name and number occurs twice.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_internal.h"

/* A name with its number; never freed. */
struct mpi_name {
    marey_id base, site;    /* without and with the number */
    uint64_t n_collectives; /* atomic */
    bool is_used;
    struct mpi_name *next;
};

enum { N_BUCKETS = 256, MPI_NAME_BYTES = 256 }; /* twice the longest name of any MPI */
static struct {
    pthread_mutex_t lock; /* guards everything but the counts */
    struct mpi_group *buckets[N_BUCKETS];
    struct mpi_name *names;
    struct mpi_group *world; /* cached, because most calls use it. Release; loaded with acquire */
} groups = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct mpi_group no_group = {.rank = -1, .self_world = -1};

static struct mpi_group **bucket_of(MPI_Comm comm)
{
    return &groups.buckets[(comm ^ comm >> 6 ^ comm >> 12) % N_BUCKETS];
}

static struct mpi_group *find(MPI_Comm comm)
{
    struct mpi_group *group = *bucket_of(comm);
    while (group != NULL && group->comm != comm)
        group = group->next;
    return group;
}

/* ---- names ---- */

static marey_id numbered(const char *base, int number, const char *ranks)
{
    char name[320];
    snprintf(name, sizeof name, number > 1 ? "%.256s %d" : "%.256s", base, number);
    return marey_communication_group(name, ranks);
}

/* The first name of `base` and `ranks` (NULL: unknown) without a communicator. Caller holds the lock. */
static struct mpi_name *take_name(const char *base, const char *ranks)
{
    const marey_id id = numbered(base, 1, ranks);
    int n = 1;
    for (struct mpi_name *name = groups.names; name != NULL; name = name->next) {
        if (name->base != id)
            continue;
        if (!name->is_used) {
            name->is_used = true;
            return name;
        }
        n++;
    }
    struct mpi_name *name = calloc(1, sizeof *name), **end = &groups.names;
    if (name == NULL)
        return NULL;
    *name = (struct mpi_name){.base = id, .site = numbered(base, n, ranks), .is_used = true};
    while (*end != NULL) /* in order of number, so that the lowest is reused first */
        end = &(*end)->next;
    *end = name;
    return name;
}

/* ---- ranks ---- */

/* The ranks of `group` in MPI_COMM_WORLD; NULL if one is not in it, or on out of memory. */
static int *world_ranks(MPI_Group group, MPI_Group world, int n)
{
    int *numbers = malloc(2 * (size_t)(n > 0 ? n : 1) * sizeof *numbers);
    if (numbers == NULL)
        return NULL;
    int *const ranks = numbers + n;
    for (int i = 0; i < n; i++)
        numbers[i] = i;
    if (mpi.Group_translate_ranks(group, n, numbers, world, ranks) != 0)
        goto none;
    for (int i = 0; i < n; i++)
        if (ranks[i] < 0)
            goto none;
    memmove(numbers, ranks, (size_t)n * sizeof *ranks);
    return numbers;
none:
    free(numbers);
    return NULL;
}

/* One side of a communicator. */
struct side {
    int *ranks; /* NULL: unknown */
    int n;
};

static struct side side_of(MPI_Comm comm, int (*ask)(MPI_Comm, MPI_Group *))
{
    struct side side = {0};
    MPI_Group group = 0, world = 0;
    if (mpi.Comm_group(mpi_dialect.world, &world) != 0)
        return side;
    if (ask(comm, &group) == 0) {
        if (mpi.Group_size(group, &side.n) == 0)
            side.ranks = world_ranks(group, world, side.n);
        mpi.Group_free(&group);
    }
    mpi.Group_free(&world);
    return side;
}

/* "0-1", or for an intercommunicator "0-1|2-3", starting with the side with the lowest first rank. */
static char *text_of(const struct side *local, const struct side *remote)
{
    if (local->ranks == NULL || (remote->n > 0 && remote->ranks == NULL))
        return NULL;
    if (remote->n == 0)
        return mpi_ranks_text(local->ranks, local->n);
    const bool local_first = local->n > 0 && local->ranks[0] < remote->ranks[0];
    const struct side *const first = local_first ? local : remote, *const second =
                                                                       local_first ? remote : local;
    char *text = mpi_ranks_text(first->ranks, first->n),
         *other = mpi_ranks_text(second->ranks, second->n), *both = NULL;
    if (text != NULL && other != NULL && asprintf(&both, "%s|%s", text, other) < 0)
        both = NULL;
    free(text);
    free(other);
    return both;
}

/* ---- first use ---- */

/* The name set by the program before this first call; `maker` if there is none. Open MPI generates some. */
static const char *given_name(MPI_Comm comm, char name[MPI_NAME_BYTES], const char *maker)
{
    int len = 0;
    if (mpi.Comm_get_name(comm, name, &len) != 0 || len <= 0 || len >= MPI_NAME_BYTES)
        return maker;
    name[len] = '\0';
    return strncmp(name, "MPI COMM", 8) == 0 ? maker : name;
}

/* Fills in the data of both sides; takes ownership of the arrays or frees them. */
static void fill(struct mpi_group *group, struct side *local, struct side *remote, const char *maker)
{
    group->ranks = text_of(local, remote);
    group->name = take_name(maker, group->ranks);
    group->n_all = (uint32_t)(local->n + remote->n);
    group->n_peers = group->is_inter ? remote->n : group->size;
    group->self_world = local->ranks != NULL ? local->ranks[group->rank] : -1;
    int **const peers = group->is_inter ? &remote->ranks : &local->ranks;
    group->world = *peers;
    *peers = NULL;
    free(local->ranks);
    free(remote->ranks);
}

/* Caller holds the lock; `comm` is not in the table. NULL on failure. */
static struct mpi_group *meet(MPI_Comm comm, const char *maker)
{
    struct mpi_group *group = calloc(1, sizeof *group);
    int is_inter = 0;
    if (group == NULL || mpi.Comm_rank(comm, &group->rank) != 0 ||
        mpi.Comm_size(comm, &group->size) != 0 || mpi.Comm_test_inter(comm, &is_inter) != 0) {
        free(group);
        return NULL;
    }
    group->comm = comm;
    group->is_inter = is_inter != 0;
    struct side local = side_of(comm, mpi.Comm_group), remote = {0};
    if (group->is_inter)
        remote = side_of(comm, mpi.Comm_remote_group);
    char name[MPI_NAME_BYTES];
    fill(group, &local, &remote, given_name(comm, name, maker));
    group->next = *bucket_of(comm);
    *bucket_of(comm) = group;
    return group;
}

/* Ranks of MPI_COMM_WORLD are those of the recording, unless the launcher defines another world. */
static void set_rank(const struct mpi_group *world)
{
    int rank, size;
    marey_rank_get(&rank, &size);
    if (rank < 0 || (world->size > 1 && (rank != world->rank || size != world->size)))
        marey_set_rank(world->rank, world->size);
}

/* Caller holds the lock. */
static struct mpi_group *get(MPI_Comm comm, const char *maker)
{
    struct mpi_group *group = find(comm);
    if (group != NULL)
        return group;
    if (comm == mpi_dialect.world) {
        group = meet(comm, "MPI_COMM_WORLD");
        if (group != NULL) {
            set_rank(group);
            __atomic_store_n(&groups.world, group, __ATOMIC_RELEASE);
        }
        return group;
    }
    return meet(comm, comm == mpi_dialect.self ? "MPI_COMM_SELF" : maker);
}

static const struct mpi_group *get_or_no_group(MPI_Comm comm, const char *maker)
{
    pthread_mutex_lock(&groups.lock);
    const struct mpi_group *group = get(comm, maker);
    pthread_mutex_unlock(&groups.lock);
    return group != NULL ? group : &no_group;
}

const struct mpi_group *mpi_group_get(MPI_Comm comm)
{
    if (!mpi_is_up())
        return &no_group;
    comm = mpi_word(comm);
    const struct mpi_group *world = __atomic_load_n(&groups.world, __ATOMIC_ACQUIRE);
    if (MAREY_LIKELY(world != NULL && comm == mpi_dialect.world))
        return world;
    return comm == mpi_dialect.comm_null ? &no_group : get_or_no_group(comm, "communicator");
}

void mpi_group_made(MPI_Comm comm, const char *maker)
{
    if (mpi_is_up() && comm != mpi_dialect.comm_null)
        get_or_no_group(comm, maker);
}

/* ---- changes ---- */

/* Other threads may still use its old name. Caller holds the lock. */
static void set_name(struct mpi_group *group, struct mpi_name *name)
{
    if (group->name != NULL)
        group->name->is_used = false;
    __atomic_store_n(&group->name, name, __ATOMIC_RELEASE); /* meets the acquire in name_of() */
}

void mpi_group_named(MPI_Comm comm, const char *name)
{
    comm = mpi_word(comm);
    if (!mpi_is_up() || comm == mpi_dialect.comm_null || name == NULL || name[0] == '\0')
        return;
    pthread_mutex_lock(&groups.lock);
    struct mpi_group *group = get(comm, "communicator");
    if (group != NULL)
        set_name(group, take_name(name, group->ranks));
    pthread_mutex_unlock(&groups.lock);
}

void mpi_group_forget(MPI_Comm comm)
{
    pthread_mutex_lock(&groups.lock);
    struct mpi_group **link = bucket_of(comm);
    while (*link != NULL && (*link)->comm != comm)
        link = &(*link)->next;
    struct mpi_group *const group = *link;
    if (group != NULL && group != groups.world) {
        *link = group->next;
        set_name(group, NULL);
        free(group->world);
        free(group->ranks);
        free(group);
    }
    pthread_mutex_unlock(&groups.lock);
}

/* ---- records ---- */

static struct mpi_name *name_of(const struct mpi_group *group)
{
    return __atomic_load_n(&group->name, __ATOMIC_ACQUIRE);
}

void mpi_record_init(const struct mpi_group *group, enum marey_collective what,
                     struct marey_communication *record)
{
    const struct mpi_name *name = name_of(group);
    *record = (struct marey_communication){.group = name != NULL ? name->site : 0,
                                           .what = what,
                                           .sequence = UINT64_MAX,
                                           .group_size = group->n_all,
                                           .peer = -1};
}

uint64_t mpi_group_next(const struct mpi_group *group)
{
    struct mpi_name *name = name_of(group);
    return name != NULL ? __atomic_fetch_add(&name->n_collectives, 1, __ATOMIC_RELAXED) : UINT64_MAX;
}

void mpi_group_count(MPI_Comm comm)
{
    /* Before the first recorded call no rank counts; afterwards all do. */
    if (__atomic_load_n(&groups.world, __ATOMIC_RELAXED) != NULL)
        mpi_group_next(mpi_group_get(comm));
}

int mpi_group_peer(const struct mpi_group *group, int peer)
{
    if (peer < 0 || peer >= group->n_peers)
        return -1;
    return group->world != NULL ? group->world[peer] : -1;
}

int mpi_group_root(const struct mpi_group *group, int root)
{
    return group->is_inter && root == mpi_dialect.root ? group->self_world
                                                       : mpi_group_peer(group, root);
}

uint64_t mpi_bytes(int64_t count, MPI_Datatype type)
{
    MPI_Count size = 0;
    type = mpi_word(type);
    if (count <= 0 || type == 0 || type == mpi_dialect.type_null ||
        mpi.Type_size_x(type, &size) != 0 || size < 0)
        return 0;
    return (uint64_t)count * (uint64_t)size;
}

static int64_t count_at(const void *counts, size_t count_bytes, int i)
{
    return count_bytes == 4 ? ((const int *)counts)[i] : ((const int64_t *)counts)[i];
}

uint64_t mpi_bytes_v(const void *counts, size_t count_bytes, int n, MPI_Datatype type)
{
    int64_t sum = 0;
    for (int i = 0; i < n && counts != NULL; i++)
        sum += count_at(counts, count_bytes, i);
    return mpi_bytes(sum, type);
}

uint64_t mpi_bytes_w(const void *counts, size_t count_bytes, int n, const MPI_Datatype *types)
{
    uint64_t sum = 0;
    for (int i = 0; i < n && counts != NULL && types != NULL; i++)
        sum += mpi_bytes(count_at(counts, count_bytes, i), mpi_handle_at(types, (size_t)i));
    return sum;
}
