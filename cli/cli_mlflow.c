/*
 * Runs in an MLflow store. Only MLflow knows its stores, so that a Python with it writes what it finds into a CSV of measurements,
 * by marey/_mlflow_runs.py; reading that is ours again.
 */
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <marey/scaling.h>

#include "cli_mlflow.h"

enum { NOTHING = 4, MOST_RUNS = 256, MOST_WORDS = 2 * MOST_RUNS + 16 };

/*
 * The marey beside this program first, which is of the same version; where it was built for another Python, the interpreter's own.
 * Nothing else is taken from the folder it is in, nor from the current one.
 */
static const char script[] =
    "import sys\n"
    "def load(folders):\n"
    "    kept = [p for p in sys.path if p]\n"
    "    for name in [n for n in sys.modules if n.split('.')[0] == 'marey']:\n"
    "        del sys.modules[name]\n"
    "    sys.path[:] = folders + kept\n"
    "    try:\n"
    "        from marey import _mlflow_runs\n"
    "        return _mlflow_runs\n"
    "    finally:\n"
    "        sys.path[:] = kept\n"
    "parent = sys.argv.pop(1)\n"
    "try:\n"
    "    try:\n"
    "        found = load([parent] if parent else [])\n"
    "    except ImportError:\n"
    "        found = load([])\n"
    "except ImportError as error:\n"
    "    sys.stderr.write('marey: %s cannot import marey, by which MLflow is asked (%s): install "
    "marey into '\n"
    "                     'that Python, or name another one by MAREY_PYTHON\\n' % (sys.executable, "
    "error))\n"
    "    sys.exit(2)\n"
    "sys.exit(found.main())\n";

struct words {
    char *list[MOST_WORDS];
    size_t n;
};

static void add(struct words *words, const char *word)
{
    words->list[words->n++] = (char *)(uintptr_t)word;
}

/* --run for each of the names, which are cut apart in `names`. False with a sentence said. */
static bool add_runs(struct words *words, char *names)
{
    char *rest = NULL;
    size_t n = 0;
    for (char *name = strtok_r(names, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
        if (n++ == MOST_RUNS) {
            cli_fail("at most %d runs may be named", MOST_RUNS);
            return false;
        }
        add(words, "--run");
        add(words, name);
    }
    return true;
}

/* The Python that could be started, or an error number with a sentence said. */
static int start(struct words *words, pid_t *pid)
{
    extern char **environ;
    const char *const wanted = getenv("MAREY_PYTHON");
    const char *const pythons[] = {wanted != NULL && wanted[0] != '\0' ? wanted : "python3",
                                   wanted != NULL && wanted[0] != '\0' ? NULL : "python", NULL};
    int error = ENOENT;
    for (size_t i = 0; pythons[i] != NULL && error == ENOENT; i++) {
        words->list[0] = (char *)(uintptr_t)pythons[i];
        error = posix_spawnp(pid, pythons[i], NULL, NULL, words->list, environ);
    }
    if (error != 0)
        cli_fail("an MLflow store is read by Python, and %s cannot be started (%s): install Python "
                 "3.10 or later with marey and mlflow, or name one by MAREY_PYTHON",
                 pythons[0], strerror(error));
    return error;
}

static int ask(struct words *words)
{
    pid_t pid;
    int status;
    fflush(NULL);
    if (start(words, &pid) != 0)
        return CLI_BAD;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return cli_fail("cannot wait for Python: %s", strerror(errno));
    if (WIFSIGNALED(status))
        return cli_fail("Python, which asks MLflow, was ended by signal %d", WTERMSIG(status));
    const int code = WEXITSTATUS(status);
    if (code == 1) /* a traceback, which no sentence of ours went before */
        return cli_fail("Python failed to ask MLflow; what it said is above");
    return code == 0 ? CLI_FINE : code == NOTHING ? CLI_NO : CLI_BAD;
}

static int write_csv(const struct cli_mlflow *store, const char *csv)
{
    char boot[PATH_MAX], parent[PATH_MAX];
    struct words words = {.n = 1}; /* the first is the interpreter */
    char *const names = strdup(store->runs != NULL ? store->runs : "");
    if (names == NULL)
        return cli_fail("out of memory");
    marey_python_boot(boot, parent);
    add(&words, "-c");
    add(&words, script);
    add(&words, parent);
    if (store->experiment != NULL) {
        add(&words, "--experiment");
        add(&words, store->experiment);
    }
    int status = add_runs(&words, names) ? CLI_FINE : CLI_BAD;
    add(&words, "--");
    add(&words, store->uri);
    add(&words, csv);
    add(&words, NULL);
    if (status == CLI_FINE)
        status = ask(&words);
    free(names);
    return status;
}

int cli_mlflow_read(marey_scaling_runs *runs, const struct cli_mlflow *store,
                    const struct marey_scaling_read_options *options)
{
    const char *const folder = getenv("TMPDIR");
    char csv[PATH_MAX];
    if (snprintf(csv, sizeof csv, "%s/marey-mlflow-XXXXXX.csv",
                 folder != NULL && folder[0] != '\0' ? folder : "/tmp") >= (int)sizeof csv)
        return cli_fail("TMPDIR is too long a path");
    const int fd = mkstemps(csv, 4);
    if (fd < 0)
        return cli_fail("cannot write %s: %s", csv, strerror(errno));
    close(fd);
    int status = write_csv(store, csv);
    struct marey_scaling_read_options wants = {0};
    if (options != NULL)
        wants = *options;
    wants.source = "MLflow"; /* not the file, which is nobody's and gone */
    if (status == CLI_FINE && marey_scaling_runs_read(runs, csv, &wants) != MAREY_OK)
        status = cli_fail("%s", marey_last_error());
    unlink(csv);
    return status;
}
