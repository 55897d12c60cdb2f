#include "pythons.h"

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The program's CPython version, 0x030d00 for 3.13.0, or 0. */
static unsigned version_of(const char *path)
{
    char line[64] = "";
    unsigned version = 0;
    struct target target = target_start(
        path, "import sys; print(sys.implementation.name, sys.hexversion >> 8, flush=True)", line,
        sizeof line);
    if (sscanf(line, "cpython %u", &version) != 1)
        version = 0;
    target_stop(&target);
    return version;
}

static size_t take(struct python *out, size_t n, size_t cap, const char *path)
{
    char resolved[4096], known[4096];
    if (n == cap || realpath(path, resolved) == NULL || access(resolved, X_OK) != 0)
        return n;
    for (size_t i = 0; i < n; i++)
        if (realpath(out[i].path, known) != NULL && strcmp(known, resolved) == 0)
            return n;
    snprintf(out[n].path, sizeof out[n].path, "%.255s", path);
    out[n].version = version_of(path);
    out[n].minor = out[n].version >> 8 & 255;
    return out[n].version >= 0x030a00 ? n + 1 : n;
}

size_t pythons_find(struct python *out, size_t cap)
{
    char pattern[512];
    glob_t found = {0};
    size_t n = 0;
    const char *const home = getenv("HOME"), *const named = getenv("MAREY_TEST_PYTHONS");
    snprintf(pattern, sizeof pattern, "%s/.pyenv/versions/3.*/bin/python3", home != NULL ? home : "");
    glob(pattern, 0, NULL, &found);
    glob("/usr/bin/python3.[0-9]*[0-9]", GLOB_APPEND, NULL, &found);
    glob("/usr/local/bin/python3.[0-9]*[0-9]", GLOB_APPEND, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++)
        n = take(out, n, cap, found.gl_pathv[i]);
    globfree(&found);
    char *const list = named != NULL ? strdup(named) : NULL;
    for (char *rest = list, *path; (path = strsep(&rest, ":")) != NULL;)
        n = take(out, n, cap, path);
    free(list);
    return n;
}

struct target target_start(const char *python, const char *script, char *line, size_t cap)
{
    return target_start_program((const char *const[]){python, "-c", script, NULL}, line, cap);
}

struct target target_start_program(const char *const *arguments, char *line, size_t cap)
{
    int ends[2];
    if (pipe(ends) != 0)
        abort();
    struct target target = {.pid = fork(), .out = ends[0]};
    if (target.pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        unsetenv("PYTHONPATH");
        unsetenv("PYTHONHOME");
        unsetenv("LD_PRELOAD");
        execvp(arguments[0], (char *const *)arguments);
        _exit(127);
    }
    close(ends[1]);
    size_t len = 0;
    while (len + 1 < cap && read(target.out, line + len, 1) == 1 && line[len] != '\n')
        len++;
    line[len] = '\0';
    return target;
}

void target_stop(struct target *target)
{
    kill(target->pid, SIGKILL);
    waitpid(target->pid, NULL, 0);
    close(target->out);
}
