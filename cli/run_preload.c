/*
 * What is loaded into the program from outside. Before everything else libmarey-mpi and libmarey-memory, by LD_PRELOAD: the
 * loader splits that list at blanks and colons, and fills in what follows a dollar; a folder whose name has one of those is reached by a link
 * somewhere else. With CUDA libmarey-cuda, which CUDA itself loads.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "run.h"

#define AWKWARD " :$"

/* The folder of libmarey, links resolved; "" when that cannot be told. */
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

/* A link to `folder` in a temporary folder with a plain name: its path goes `into`. */
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

/* Whether somebody put it there already: a `marey run --mpi` around us. */
static bool has_it(const char *list, const char *library)
{
    const char *found = strstr(list, library);
    return found != NULL && strchr(" :", found[strlen(library)]) != NULL;
}

/* Behind what is there: some libraries insist on being first. */
static bool add(const char *path, const char *library)
{
    const char *before = getenv("LD_PRELOAD");
    char *list = NULL;
    const bool has_before = before != NULL && before[0] != '\0';
    if (has_before && has_it(before, library))
        return true;
    if (asprintf(&list, "%s%s%s", has_before ? before : "", has_before ? ":" : "", path) < 0)
        return false;
    const bool done = setenv("LD_PRELOAD", list, 1) == 0;
    free(list);
    return done;
}

bool run_find_beside(const char *name, const char *option, char into[PATH_MAX])
{
    char folder[PATH_MAX];
    library_folder(folder);
    if (snprintf(into, PATH_MAX, "%s/%s", folder, name) < PATH_MAX && access(into, R_OK) == 0)
        return true;
    cli_fail("%s needs %s, and it is not beside libmarey in %s; install marey anew, with all of "
             "its files",
             option, name, folder);
    return false;
}

bool run_inject_cuda(void)
{
    static const char name[] = "CUDA_INJECTION64_PATH", library[] = "libmarey-cuda.so";
    char path[PATH_MAX];
    const char *before = getenv(name);
    if (before != NULL && before[0] != '\0' && strstr(before, library) == NULL) {
        cli_fail(
            "--gpu cannot be: another tool waits for CUDA (%s=%s), and there is room for one; run "
            "without it, or without --gpu",
            name, before);
        return false;
    }
    if (!run_find_beside(library, "--gpu", path))
        return false;
    setenv(name, path, 1);
    return true;
}

bool run_preload(struct run_preload *preload, const char *library, const char *option)
{
    char folder[PATH_MAX], link[PATH_MAX], path[PATH_MAX + 32];
    if (!run_find_beside(library, option, path))
        return false;
    library_folder(folder);
    if (strpbrk(folder, AWKWARD) != NULL) {
        if (preload->folder[0] != '\0') {
            snprintf(link, sizeof link, "%s/lib", preload->folder);
        } else if (!make_link(folder, preload, link)) {
            cli_fail("%s cannot preload from %s, whose name has a blank, a colon or a dollar, "
                     "nor make a link to it in /tmp; install marey elsewhere, or set TMPDIR",
                     option, folder);
            return false;
        }
        snprintf(path, sizeof path, "%s/%s", link, library);
    }
    if (add(path, library))
        return true;
    run_preload_remove(preload);
    cli_fail("out of memory");
    return false;
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
