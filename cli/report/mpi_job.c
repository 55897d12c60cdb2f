/* See mpi_job.h. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/cli.h"
#include "report/mpi_job.h"

/* A handle is a pointer in Open MPI and an int in MPICH, which uses the lower half of the register. */
typedef uintptr_t handle;

enum { TAG = 12, CHUNK_BYTES = 1 << 20, THREAD_FUNNELED = 1 };

static struct {
    int (*Init_thread)(int *argc, char ***argv, int required, int *provided);
    int (*Finalize)(void);
    int (*Comm_rank)(handle comm, int *rank);
    int (*Comm_size)(handle comm, int *size);
    int (*Send)(const void *bytes, int n, handle type, int to, int tag, handle comm);
    int (*Recv)(void *bytes, int n, handle type, int from, int tag, handle comm, void *status);
    handle world, byte;
    void *status_ignore;
} mpi;

/* ---- detecting the launcher ---- */

static const char *const rank_names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                         "PALS_RANKID"};
static const char *const size_names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"};
static const char *const local_names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"};

#define FIND_NUMBER(names) find_number((names), sizeof(names) / sizeof((names)[0]))

/* The first of these variables that is a number; -1 if none is. */
static long find_number(const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *text = getenv(names[i]);
        char *end;
        if (text == NULL || text[0] < '0' || text[0] > '9')
            continue;
        const long number = strtol(text, &end, 10);
        if (*end == '\0')
            return number;
    }
    return -1;
}

/* Whether `environment`, NUL-separated strings, contains a rank variable. */
static bool has_rank(const char *environment, size_t len)
{
    for (const char *at = environment; at < environment + len; at += strlen(at) + 1)
        for (size_t i = 0; i < sizeof rank_names / sizeof rank_names[0]; i++) {
            const size_t n = strlen(rank_names[i]);
            if (strncmp(at, rank_names[i], n) == 0 && at[n] == '=')
                return true;
        }
    return false;
}

/*
 * A program of an MPI job may start marey from one rank; marey inherits the variables but is not part of the job, and
 * MPI would wait for the other ranks forever. Then its parent has a rank. A launcher has none, or is unreadable.
 */
static bool is_parent_in_job(void)
{
    enum { MOST = 1 << 20 };
    char path[64], *text = malloc(MOST + 1);
    snprintf(path, sizeof path, "/proc/%ld/environ", (long)getppid());
    FILE *file = text != NULL ? fopen(path, "re") : NULL;
    const size_t len = file != NULL ? fread(text, 1, MOST, file) : 0;
    if (file != NULL)
        fclose(file);
    if (text != NULL)
        text[len] = '\0';
    const bool has = text != NULL && has_rank(text, len);
    free(text);
    return has;
}

static bool is_launched(void)
{
    const char *wish = getenv("MAREY_MPI");
    if (wish != NULL && strcmp(wish, "off") == 0)
        return false;
    if (FIND_NUMBER(rank_names) < 0 || FIND_NUMBER(size_names) < 2)
        return false;
    return (wish != NULL && strcmp(wish, "on") == 0) || !is_parent_in_job();
}

/* ---- the library ---- */

static void *open_in(const char *folder, const char *name)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

/* Opens the library next to the launcher, as in PREFIX/bin and PREFIX/lib. */
static void *open_beside_launcher(const char *name)
{
    char link[64], folder[PATH_MAX + 8];
    snprintf(link, sizeof link, "/proc/%ld/exe", (long)getppid());
    const ssize_t len = readlink(link, folder, PATH_MAX - 1);
    if (len <= 0)
        return NULL;
    folder[len] = '\0';
    for (int i = 0; i < 2; i++) { /* PREFIX/bin/mpirun */
        char *slash = strrchr(folder, '/');
        if (slash == NULL)
            return NULL;
        *slash = '\0';
    }
    strcat(folder, "/lib");
    return open_in(folder, name);
}

/* RTLD_GLOBAL, because MPI's plug-ins need its symbols. */
static void *open_library(void)
{
    static const char *const open_mpi[] = {"libmpi.so.40", "libmpi.so"};
    static const char *const mpich[] = {"libmpi.so.12", "libmpich.so.12", "libmpi.so"};
    const bool is_open_mpi = getenv("OMPI_COMM_WORLD_SIZE") != NULL;
    const char *const *names = is_open_mpi ? open_mpi : mpich;
    const size_t n = is_open_mpi ? 2 : 3;
    const char *const named = getenv("MAREY_MPI_LIBRARY");
    void *library = NULL;
    if (named != NULL && named[0] != '\0')
        return dlopen(named, RTLD_NOW | RTLD_GLOBAL);
    for (size_t i = 0; i < n && library == NULL; i++)
        library = open_beside_launcher(names[i]);
    for (size_t i = 0; i < n && library == NULL; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
    return library;
}

static bool find_functions(void *library)
{
    bool has_all = true;
#define FIND(name)                                                                                 \
    *(void **)&mpi.name = dlsym(library, "MPI_" #name);                                            \
    has_all = has_all && mpi.name != NULL;
    FIND(Init_thread)
    FIND(Finalize)
    FIND(Comm_rank)
    FIND(Comm_size)
    FIND(Send)
    FIND(Recv)
#undef FIND
    return has_all;
}

/* Constants of mpi.h, the same as in mpi/mpi_library.c; tests/mpi compares those with each mpi.h. */
static bool learn_dialect(void *library)
{
    mpi.world = (handle)dlsym(library, "ompi_mpi_comm_world");
    mpi.byte = (handle)dlsym(library, "ompi_mpi_byte");
    if (mpi.world != 0)
        return mpi.byte != 0;
    mpi.world = 0x44000000;
    mpi.byte = 0x4c00010d;
    mpi.status_ignore = (void *)1;
    return dlsym(library, "MPI_Abi_get_version") == NULL && getenv("OMPI_COMM_WORLD_SIZE") == NULL;
}

static const char *load(void)
{
    void *library = open_library();
    if (library == NULL)
        return "its library was not found (set MAREY_MPI_LIBRARY=FILE)";
    return find_functions(library) && learn_dialect(library)
               ? NULL
               : "its library is neither Open MPI nor MPICH-compatible";
}

/* ---- bytes ---- */

void mpi_job_send(uint32_t to, const void *bytes, size_t len)
{
    uint64_t n = len;
    mpi.Send(&n, sizeof n, mpi.byte, (int)to, TAG, mpi.world);
    for (size_t at = 0; at < len; at += CHUNK_BYTES) {
        const size_t chunk = len - at < CHUNK_BYTES ? len - at : CHUNK_BYTES;
        mpi.Send((const char *)bytes + at, (int)chunk, mpi.byte, (int)to, TAG, mpi.world);
    }
}

void *mpi_job_receive(uint32_t from, size_t *len)
{
    static char spare[CHUNK_BYTES];
    uint64_t n = 0;
    mpi.Recv(&n, sizeof n, mpi.byte, (int)from, TAG, mpi.world, mpi.status_ignore);
    char *bytes = n != 0 ? malloc((size_t)n) : NULL;
    for (size_t at = 0; at < n; at += CHUNK_BYTES) {
        const size_t chunk = n - at < CHUNK_BYTES ? (size_t)n - at : CHUNK_BYTES;
        mpi.Recv(bytes != NULL ? bytes + at : spare, (int)chunk, mpi.byte, (int)from, TAG,
                 mpi.world, mpi.status_ignore);
    }
    *len = (size_t)n;
    return bytes;
}

/* ---- comparing commands ---- */

static size_t read_command(char *into, size_t size)
{
    FILE *file = fopen("/proc/self/cmdline", "re");
    const size_t len = file != NULL ? fread(into, 1, size - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    if (len == 0 || len + 1 >= size || getcwd(into + len, size - len) == NULL)
        return len;
    return len + strlen(into + len);
}

/* Each process sends its command to rank 0, which compares them and sends the result to all. */
static bool is_one_command(const struct mpi_job *job)
{
    static char own[1 << 16];
    const size_t own_len = read_command(own, sizeof own);
    bool are_equal = true;
    size_t len;
    if (job->rank != 0) {
        mpi_job_send(0, own, own_len);
        char *answer CLI_FREED = mpi_job_receive(0, &len);
        return answer != NULL && answer[0] == 1;
    }
    for (uint32_t rank = 1; rank < job->size; rank++) {
        char *other CLI_FREED = mpi_job_receive(rank, &len);
        are_equal &= other != NULL && len == own_len && memcmp(other, own, len) == 0;
    }
    for (uint32_t rank = 1; rank < job->size; rank++)
        mpi_job_send(rank, &(char){are_equal}, 1);
    return are_equal;
}

/* ---- the whole job ---- */

static const char *come_up(struct mpi_job *job)
{
    int provided, rank = 0, size = 0;
    const char *why = load();
    if (why != NULL)
        return why;
    if (mpi.Init_thread(NULL, NULL, THREAD_FUNNELED, &provided) != 0 ||
        mpi.Comm_rank(mpi.world, &rank) != 0 || mpi.Comm_size(mpi.world, &size) != 0)
        return "it did not come up";
    job->rank = (uint32_t)rank;
    job->size = (uint32_t)size;
    if (size > 1)
        return NULL;
    /* MPI_COMM_WORLD has only this process. */
    mpi.Finalize();
    return "its library is not that of the launcher (set MAREY_MPI_LIBRARY=FILE)";
}

enum mpi_begin mpi_job_begin(struct mpi_job *job)
{
    *job = (struct mpi_job){.size = 1};
    if (!is_launched())
        return MPI_JOB_NONE;
    const long rank = FIND_NUMBER(rank_names), n_local = FIND_NUMBER(local_names);
    job->n_local = n_local > 0 ? (uint32_t)n_local : 0;
    const char *const why = come_up(job);
    if (why != NULL) {
        if (rank == 0)
            cli_say("this command was started by MPI, and %s: one process does all the work", why);
        return rank == 0 ? MPI_JOB_ALONE : MPI_JOB_LEAVE;
    }
    if (is_one_command(job))
        return MPI_JOB_BEGUN;
    mpi.Finalize();
    return MPI_JOB_NONE;
}

void mpi_job_end(void)
{
    mpi.Finalize();
}
