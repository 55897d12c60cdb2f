/*
 * Finds the program's MPI. libmarey-mpi is not linked with one, because it is also preloaded into launchers and shells
 * without MPI. MPI may also be loaded later with RTLD_LOCAL, as Python does, so that its symbols are not global; then
 * all loaded libraries are searched.
 *
 * Two ABIs are supported: Open MPI's, and MPICH's, shared by Intel MPI, Cray MPI and MVAPICH. The values here are those
 * of their mpi.h; tests/mpi compares them.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_internal.h"

struct mpi_asked mpi;
struct mpi_dialect mpi_dialect;

static struct {
    pthread_once_t once;
    void *handle; /* of the library that has PMPI_Init; NULL: in the global scope */
    bool is_found, is_known;
} library = {.once = PTHREAD_ONCE_INIT};

/* ---- finding it ---- */

/* Names of loaded libraries, each with its NUL. */
struct names {
    char *text;
    size_t len;
};

static int note_name(struct dl_phdr_info *info, size_t size, void *ctx)
{
    struct names *names = ctx;
    (void)size;
    if (info->dlpi_name == NULL || strstr(info->dlpi_name, "mpi") == NULL)
        return 0;
    const size_t len = strlen(info->dlpi_name) + 1;
    char *text = realloc(names->text, names->len + len);
    if (text == NULL)
        return 1;
    memcpy(text + names->len, info->dlpi_name, len);
    names->text = text;
    names->len += len;
    return 0;
}

static void find_library(void)
{
    library.is_found = dlsym(RTLD_DEFAULT, "PMPI_Init") != NULL;
    if (library.is_found)
        return;
    struct names names = {0};
    dl_iterate_phdr(note_name, &names);
    for (size_t at = 0; at < names.len && !library.is_found; at += strlen(names.text + at) + 1) {
        void *handle = dlopen(names.text + at, RTLD_LAZY | RTLD_NOLOAD);
        if (handle == NULL)
            continue;
        library.is_found = dlsym(handle, "PMPI_Init") != NULL;
        if (library.is_found)
            library.handle = handle; /* kept, so that it stays loaded */
        else
            dlclose(handle);
    }
    free(names.text);
}

/* Searches the global scope first: a program with copy relocations uses its own copies of the data. */
static void *find(const char *name)
{
    void *const found = dlsym(RTLD_DEFAULT, name);
    return found != NULL || library.handle == NULL ? found : dlsym(library.handle, name);
}

/* ---- ABI ---- */

/* Its handles are addresses of its data. */
static bool learn_open_mpi(void)
{
    mpi_dialect = (struct mpi_dialect){.name = "Open MPI",
                                       .handle_bytes = 8,
                                       .status_bytes = 24,
                                       .source_offset = 0,
                                       .in_place = (void *)1,
                                       .proc_null = -2,
                                       .root = -4,
                                       .world = (MPI_Comm)find("ompi_mpi_comm_world"),
                                       .self = (MPI_Comm)find("ompi_mpi_comm_self"),
                                       .comm_null = (MPI_Comm)find("ompi_mpi_comm_null"),
                                       .byte = (MPI_Datatype)find("ompi_mpi_byte"),
                                       .type_null = (MPI_Datatype)find("ompi_mpi_datatype_null"),
                                       .request_null = (MPI_Request)find("ompi_request_null")};
    return mpi_dialect.world != 0 && mpi_dialect.byte != 0 && mpi_dialect.request_null != 0;
}

static bool learn_mpich(void)
{
    mpi_dialect = (struct mpi_dialect){.name = "MPICH",
                                       .handle_bytes = 4,
                                       .status_bytes = 20,
                                       .source_offset = 8,
                                       .in_place = (void *)-1,
                                       .status_ignore = (void *)1,
                                       .statuses_ignore = (void *)1,
                                       .proc_null = -1,
                                       .root = -3,
                                       .world = 0x44000000,
                                       .self = 0x44000001,
                                       .comm_null = 0x04000000,
                                       .byte = 0x4c00010d,
                                       .type_null = 0x0c000000,
                                       .request_null = 0x2c000000};
    return true;
}

/* Detected by its version string, available at any time. */
static bool learn_dialect(void)
{
    enum { LONGEST = 8192 }; /* MPI_MAX_LIBRARY_VERSION_STRING of MPICH, the longest there is */
    char *version = calloc(1, LONGEST + 1);
    int len = 0;
    if (version == NULL || mpi.Get_library_version(version, &len) != 0) {
        free(version);
        return false;
    }
    bool is_known = false;
    /* Also check a symbol: a library with MPI's standard ABI reports MPICH too, but has different handles. */
    if (find("ompi_mpi_comm_world") != NULL)
        is_known = learn_open_mpi();
    else if (find("MPI_Abi_get_version") == NULL &&
             (strstr(version, "MPICH") != NULL || strstr(version, "Intel(R) MPI") != NULL ||
              strstr(version, "MVAPICH") != NULL))
        is_known = learn_mpich();
    version[strcspn(version, "\n")] = '\0';
    if (!is_known)
        fprintf(stderr,
                "marey: MPI's calls are not recorded, because marey knows Open MPI and MPICH with "
                "its relatives, and this one is '%.80s'\n",
                version);
    free(version);
    return is_known;
}

static void look(void)
{
    find_library();
#define MPI_ASKED_FIND(name, params)                                                               \
    *(void **)&mpi.name = find("PMPI_" #name);                                                     \
    has_all = has_all && mpi.name != NULL;
    bool has_all = library.is_found;
    MPI_ASKED(MPI_ASKED_FIND)
#undef MPI_ASKED_FIND
    library.is_known = has_all && learn_dialect();
}

bool mpi_is_known(void)
{
    pthread_once(&library.once, look);
    return library.is_known;
}

void *mpi_real_find(struct mpi_slot *slot, const char *name)
{
    pthread_once(&library.once, look);
    void *real = find(name);
    if (real == NULL) {
        real = slot->fallback;
        slot->is_fallback = true;
    }
    if (real == NULL) {
        /* Happens only with a library that has one name without the other. */
        fprintf(stderr,
                "marey: this MPI has no %s, so the call cannot be made; run without --mpi\n", name);
        abort();
    }
    __atomic_store_n(&slot->real, real, __ATOMIC_RELEASE);
    return real;
}

/* ---- MPI's own functions ---- */

uintptr_t mpi_word(uintptr_t handle)
{
    return mpi_dialect.handle_bytes == 4 ? (uint32_t)handle : handle;
}

MPI_Request mpi_handle_at(const void *handles, size_t i)
{
    return mpi_dialect.handle_bytes == 4 ? ((const uint32_t *)handles)[i]
                                         : ((const uintptr_t *)handles)[i];
}

const MPI_Status *mpi_status_at(const MPI_Status *statuses, size_t i)
{
    return (const MPI_Status *)((const char *)statuses + i * mpi_dialect.status_bytes);
}
