/*
 * Libraries loaded into the program. libmarey-mpi and libmarey-memory use LD_PRELOAD: the loader splits that list at
 * blanks and colons and expands dollar signs, so a folder with one of those in its name is reached through a symlink.
 * CUDA loads libmarey-cuda. NVTX loads libmarey-nvtx, which forwards everything to the tool previously named by
 * NVTX_INJECTION64_PATH, in MAREY_NVTX_NEXT.
 */
#include <limits.h>
#include <unistd.h>

#include "run/run.h"

#define AWKWARD " :$"

/* The folder of libmarey, with symlinks resolved; "" if unknown. */
static void library_folder(char into[PATH_MAX])
{
    if (realpath(marey_library_path(), into) == NULL || strrchr(into, '/') == NULL)
        into[0] = '\0';
    else
        *strrchr(into, '/') = '\0';
}

static bool is_usable_folder(const char *path)
{
    return path != NULL && path[0] == '/' && strpbrk(path, AWKWARD) == NULL;
}

/* Creates a symlink to `folder` in a temporary folder with a plain name; its path goes to `into`. */
static bool make_link(const char *folder, struct run_preload *preload, char into[PATH_MAX])
{
    const char *const places[] = {getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (!is_usable_folder(places[i]))
            continue;
        if (snprintf(preload->folder, sizeof preload->folder, "%s/marey-XXXXXX", places[i]) >=
                (int)sizeof preload->folder ||
            mkdtemp(preload->folder) == NULL)
            continue;
        if (snprintf(into, PATH_MAX, "%s/lib", preload->folder) < PATH_MAX &&
            symlink(folder, into) == 0)
            return true;
        rmdir(preload->folder);
    }
    preload->folder[0] = '\0';
    return false;
}

/* Whether the list has it already, from an enclosing `marey run --mpi`. */
static bool has_it(const char *list, const char *library)
{
    const char *found = strstr(list, library);
    return found != NULL && strchr(" :", found[strlen(library)]) != NULL;
}

/* Appends: some libraries must be first. */
static bool add(const char *path, const char *library)
{
    const char *const before = cli_env("LD_PRELOAD");
    char *list CLI_FREED = NULL;
    if (before != NULL && has_it(before, library))
        return true;
    if (asprintf(&list, "%s%s%s", before != NULL ? before : "", before != NULL ? ":" : "", path) < 0)
        return false;
    return setenv("LD_PRELOAD", list, 1) == 0;
}

/* Finds the library `name` beside libmarey; its path goes to `into`. Otherwise prints a message: `option` needs it. */
static bool find_beside(const char *name, const char *option, char into[PATH_MAX])
{
    char folder[PATH_MAX];
    library_folder(folder);
    if (snprintf(into, PATH_MAX, "%s/%s", folder, name) < PATH_MAX && access(into, R_OK) == 0)
        return true;
    return cli_refuse(
        "%s needs %s, which is missing beside libmarey in %s; reinstall marey completely", option,
        name, folder);
}

bool run_inject_cuda(void)
{
    static const char name[] = "CUDA_INJECTION64_PATH", library[] = "libmarey-cuda.so";
    char path[PATH_MAX];
    const char *const before = cli_env(name);
    if (before != NULL && strstr(before, library) == NULL)
        return cli_refuse(
            "--gpu is unavailable: %s is already set to %s, and CUDA loads one tool; run without "
            "that tool, or without --gpu",
            name, before);
    if (!find_beside(library, "--gpu", path))
        return false;
    setenv(name, path, 1);
    return true;
}

/* Nsight Systems recognizes only its own handles, so it must be the first tool. */
static bool is_nsight(const char *tool)
{
    return cli_env("NSYS_PROFILING_SESSION_ID") != NULL ||
           (tool != NULL && strncmp(basename(tool), "libToolsInjection", 17) == 0);
}

bool run_nvtx(void)
{
    static const char nvtx_tool[] = "NVTX_INJECTION64_PATH", library[] = "libmarey-nvtx.so";
    char path[PATH_MAX];
    const char *const tool = cli_env(nvtx_tool);
    if (is_nsight(tool)) {
        cli_say("Nsight Systems receives the NVTX ranges of the program, so they are not recorded; "
                "run without nsys to record them");
        return true;
    }
    if (!find_beside(library, "--nvtx", path))
        return false;
    /* An enclosing `marey run --nvtx` may have done this already. */
    if (tool != NULL && strcmp(basename(tool), library) != 0)
        setenv("MAREY_NVTX_NEXT", tool, 1);
    if (setenv(nvtx_tool, path, 1) == 0)
        return true;
    return cli_refuse("out of memory");
}

bool run_preload(struct run_preload *preload, const char *library, const char *option)
{
    char folder[PATH_MAX], link[PATH_MAX], path[PATH_MAX + 32];
    if (!find_beside(library, option, path))
        return false;
    library_folder(folder);
    if (strpbrk(folder, AWKWARD) != NULL) {
        if (preload->folder[0] != '\0') {
            snprintf(link, sizeof link, "%s/lib", preload->folder);
        } else if (!make_link(folder, preload, link)) {
            return cli_refuse(
                "%s cannot preload from %s, whose name has a blank, colon or dollar sign, and no "
                "symlink in /tmp can be created; install marey elsewhere, or set TMPDIR",
                option, folder);
        }
        snprintf(path, sizeof path, "%s/%s", link, library);
    }
    if (add(path, library))
        return true;
    run_preload_remove(preload);
    return cli_refuse("out of memory");
}

void run_preload_remove(const struct run_preload *preload)
{
    char link[PATH_MAX];
    if (preload->folder[0] == '\0')
        return;
    snprintf(link, sizeof link, "%s/lib", preload->folder);
    unlink(link);
    rmdir(preload->folder);
}
