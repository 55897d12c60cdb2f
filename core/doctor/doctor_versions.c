/* This marey, other copies of libmarey that a program might load instead, and the features of this build. */
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "doctor/internal.h"
#include <marey/tensor.h>

#define SONAME "libmarey.so.0"

enum { MAX_COPIES = 16 };

struct copies {
    struct stat files[MAX_COPIES]; /* the first is the one in use */
    char paths[MAX_COPIES][PATH_MAX];
    const char *found_by[MAX_COPIES];
    size_t n;
};

/* Adds a copy, unless the file is already known. */
static void note_copy(struct copies *copies, const char *path, const char *found_by)
{
    struct stat st;
    if (copies->n == MAX_COPIES || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    for (size_t i = 0; i < copies->n; i++)
        if (copies->files[i].st_dev == st.st_dev && copies->files[i].st_ino == st.st_ino)
            return;
    copies->files[copies->n] = st;
    copies->found_by[copies->n] = found_by;
    snprintf(copies->paths[copies->n++], PATH_MAX, "%s", path);
}

static void search_library_path(struct copies *copies)
{
    const char *list = getenv("LD_LIBRARY_PATH");
    for (const char *at = list; at != NULL && *at != '\0';) {
        char path[PATH_MAX];
        const size_t len = strcspn(at, ":;");
        const int n = len > 0 ? snprintf(path, sizeof path, "%.*s/" SONAME, (int)len, at)
                              : snprintf(path, sizeof path, "./" SONAME);
        if (n > 0 && n < (int)sizeof path)
            note_copy(copies, path, "LD_LIBRARY_PATH");
        at += at[len] != '\0' ? len + 1 : len;
    }
}

static const char *tools_path(void)
{
    Dl_info info;
    return dladdr((const void *)(uintptr_t)marey__doctor_versions, &info) != 0 && info.dli_fname != NULL
               ? info.dli_fname
               : "";
}

/* Where ours would be found without LD_LIBRARY_PATH, which precedes a library's run path. */
static void search_beside_tools(struct copies *copies)
{
    char path[PATH_MAX];
    const char *tools = tools_path(), *slash = strrchr(tools, '/');
    if (slash != NULL &&
        snprintf(path, sizeof path, "%.*s/" SONAME, (int)(slash - tools), tools) < (int)sizeof path)
        note_copy(copies, path, "libmarey-tools, in the same folder");
}

static int list_cache(void *ctx, int fd)
{
    (void)ctx;
    static const char *const places[] = {"/sbin/ldconfig", "/usr/sbin/ldconfig", "/usr/bin/ldconfig"};
    for (size_t i = 0; i < MAREY__COUNT_OF(places); i++) {
        /* There are thousands of libraries: let the shell filter the lines. */
        char command[128];
        if (access(places[i], X_OK) != 0)
            continue;
        snprintf(command, sizeof command, "%s -p | grep -F " SONAME, places[i]);
        char *argv[] = {(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c", command, NULL};
        return marey__probe_exec(argv, fd);
    }
    return 0;
}

static void search_cache(struct marey__doctor *doctor, struct copies *copies)
{
    struct marey__probe probe = {0};
    char path[PATH_MAX];
    size_t at = 0;
    marey__probe_start(&probe, list_cache, NULL);
    marey__probe_wait(&probe, 1, doctor->deadline_ns);
    while (marey__parse_ldconfig(probe.text, probe.len, &at, SONAME, path, sizeof path))
        note_copy(copies, path, "the loader's cache");
}

/* ---- findings ---- */

/* In a child, where it is harmless: a second copy stays off. */
static int ask_version(void *ctx, int fd)
{
    void *handle = dlopen(ctx, RTLD_NOW | RTLD_LOCAL);
    const char *(*version)(void) = NULL;
    if (handle != NULL)
        *(void **)&version = dlsym(handle, "marey_version");
    if (version != NULL)
        dprintf(fd, "version=%s\n", version());
    return 0;
}

static void report_copy(struct marey__doctor *doctor, const struct copies *copies, size_t i)
{
    struct marey__probe probe = {0};
    char thing[32], version[32] = "unknown version";
    snprintf(thing, sizeof thing, i > 1 ? "second copy %zu" : "second copy", i);
    marey__probe_start(&probe, ask_version, (void *)(uintptr_t)copies->paths[i]);
    marey__probe_wait(&probe, 1, doctor->deadline_ns);
    MAREY__PROBE_FIELD(&probe, "version", version);
    marey__doctor_limited(doctor, thing,
                          "keep one copy: a program that gets both records only from the first",
                          "%s (%s), by %s", copies->paths[i], version, copies->found_by[i]);
}

static void report_copies(struct marey__doctor *doctor)
{
    struct copies *copies MAREY__FREED = marey__calloc(1, sizeof *copies);
    if (copies == NULL)
        return;
    note_copy(copies, marey_library_path(), "itself");
    search_library_path(copies);
    search_beside_tools(copies);
    search_cache(doctor, copies);
    for (size_t i = 0; i < doctor->n_pythons; i++)
        if (doctor->pythons[i].library[0] != '\0')
            note_copy(copies, doctor->pythons[i].library, doctor->pythons[i].command);
    for (size_t i = 1; i < copies->n; i++)
        report_copy(doctor, copies, i);
    if (copies->n <= 1)
        marey__doctor_ok(doctor, "second copy",
                         "none in LD_LIBRARY_PATH, the loader's cache, or the Pythons above");
}

static void report_preload(struct marey__doctor *doctor)
{
    const char *list = getenv("LD_PRELOAD");
    char path[PATH_MAX];
    if (list == NULL || list[0] == '\0') {
        marey__doctor_off(doctor, "LD_PRELOAD", "not set");
        return;
    }
    for (const char *at = list; *at != '\0'; at += at[0] != '\0') {
        const size_t len = strcspn(at, ": ");
        snprintf(path, sizeof path, "%.*s", (int)len, at);
        at += len;
        if (len == 0 || strchr(path, '/') == NULL || access(path, R_OK) == 0)
            continue;
        marey__doctor_limited(doctor, "LD_PRELOAD", "take the library that is not there out of it",
                              "%s, of which %s cannot be read", list, path);
        return;
    }
    marey__doctor_ok(doctor, "LD_PRELOAD", "%s", list);
}

void marey__doctor_versions(struct marey__doctor *doctor)
{
    marey__doctor_limited(doctor, "marey",
                          strcmp(marey_version(), MAREY_VERSION) == 0
                              ? NULL
                              : "install libmarey and libmarey-tools of one version",
                          "%s, ABI %d; libmarey-tools %s, ABI %d", marey_version(), marey_abi(),
                          MAREY_VERSION, MAREY_ABI);
    marey__doctor_ok(doctor, "libmarey", "%s", marey_library_path());
    marey__doctor_ok(doctor, "libmarey-tools", "%s", tools_path());
    report_copies(doctor);
    report_preload(doctor);
}

/* ---- optional parts of this build ---- */

/* With a blank after each comma, so that the list can wrap. */
static void report_exports(struct marey__doctor *doctor)
{
    char names[256];
    size_t len = 0;
    for (size_t i = 0; marey_export_format_at(i) != NULL; i++)
        if (marey_export_format_at(i)->missing == NULL)
            marey__append(names, sizeof names, &len, "%s%s", len == 0 ? "" : ", ",
                          marey_export_format_at(i)->name);
    marey__doctor_ok(doctor, "exports", "%s", names);
}

/* `marey run --mpi` expects it beside libmarey. */
static void report_mpi(struct marey__doctor *doctor)
{
    char path[PATH_MAX + 32];
    if (realpath(marey_library_path(), path) == NULL || strrchr(path, '/') == NULL)
        path[0] = '\0';
    char *const slash = strrchr(path, '/');
    snprintf(slash != NULL ? slash + 1 : path, 32, "libmarey-mpi.so");
    if (access(path, R_OK) == 0)
        marey__doctor_ok(doctor, "mpi", "%s, for Open MPI, MPICH and their relatives", path);
    else
        marey__doctor_missing(doctor, "mpi", "install marey anew, with all of its files",
                              "%s is not there, so 'marey run --mpi' does not work", path);
}

/* Ask the library itself, with the digest of an empty tensor. */
static void report_digests(struct marey__doctor *doctor)
{
    const int64_t n = 0;
    const struct marey_tensor nothing = {.dtype = MAREY_U8, .rank = 1, .sizes = &n};
    struct marey_digest digest;
    const bool has_digests = marey_tensor_digest(&nothing, &digest, NULL) == MAREY_OK;
    marey__doctor_add(doctor, "xxhash", has_digests ? MAREY__STATE_OK : MAREY__STATE_MISSING,
                      has_digests ? NULL : "apt-get install libxxhash-dev and build again", "%s",
                      has_digests ? "built in" : "this build has no digests of tensors");
}

void marey__doctor_build(struct marey__doctor *doctor)
{
#ifdef MAREY_HAVE_SQLITE
    const bool has_sqlite = true;
#else
    const bool has_sqlite = false;
#endif
    report_exports(doctor);
    marey__doctor_add(doctor, "sqlite", has_sqlite ? MAREY__STATE_OK : MAREY__STATE_MISSING,
                      has_sqlite ? NULL : "apt-get install libsqlite3-dev and build again", "%s",
                      has_sqlite ? "built in" : "this build exports no SQLite files");
    report_mpi(doctor);
    report_digests(doctor);
    marey__doctor_ok(doctor, "zstd", "%s", ZSTD_versionString());
}
