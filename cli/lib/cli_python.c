/*
 * Commands implemented in Python: `python -m marey.itwinai`, for files and stores of itwinai, with our standard output.
 */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cli.h"

/*
 * Loads the package beside this program, which has the same version, or if that was built for another Python, the one
 * of the interpreter. Imports nothing else from that folder, nor from the current directory.
 */
static const char script[] =
    "import sys\n"
    "def load(folders):\n"
    "    kept = [p for p in sys.path if p]\n"
    "    for name in [n for n in sys.modules if n.split('.')[0] == 'marey']:\n"
    "        del sys.modules[name]\n"
    "    sys.path[:] = folders + kept\n"
    "    try:\n"
    "        from marey.itwinai.__main__ import main\n"
    "        return main\n"
    "    finally:\n"
    "        sys.path[:] = kept\n"
    "parent = sys.argv.pop(1)\n"
    "try:\n"
    "    try:\n"
    "        main = load([parent] if parent else [])\n"
    "    except ImportError:\n"
    "        main = load([])\n"
    "except ImportError as error:\n"
    "    sys.stderr.write('marey: %s cannot import marey (%s): install marey into that Python, or "
    "'\n"
    "                     'set MAREY_PYTHON to another one\\n' % (sys.executable, error))\n"
    "    sys.exit(2)\n"
    "sys.exit(main())\n";

void cli_add_word(struct cli_words *words, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (words->n == CLI_MAX_WORDS || vasprintf(&words->list[words->n], fmt, args) < 0)
        words->failed = true;
    else
        words->n++;
    va_end(args);
}

void cli_add_options(struct cli_words *words, const struct cli_command *command)
{
    for (size_t i = 0; i < command->n_options; i++) {
        const struct cli_option *const option = &command->options[i];
        const enum cli_kind kind = cli_kind(option);
        const bool is_bare = kind == CLI_FLAG || kind == CLI_MAYBE; /* "" means no value */
        char number[16];
        const char *text = number;
        if (option->kind == CLI_FLAG)
            text = *(const bool *)option->into ? "" : NULL;
        else if (option->kind == CLI_COUNT)
            snprintf(number, sizeof number, "%u", (unsigned)*(const uint32_t *)option->into);
        else
            text = *(const char *const *)option->into;
        if (text != NULL)
            cli_add_word(words, "--%s%s%s", option->name, is_bare && text[0] == '\0' ? "" : "=",
                         text);
    }
}

/* Returns 0, or an error number with a message printed. `argv[0]` is set. */
static int start(char **argv, FILE *out, pid_t *pid)
{
    extern char **environ;
    const char *const wanted = cli_env("MAREY_PYTHON");
    const char *const pythons[] = {wanted != NULL ? wanted : "python3",
                                   wanted != NULL ? NULL : "python", NULL};
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error == 0 && out != stdout)
        error = posix_spawn_file_actions_adddup2(&actions, fileno(out), STDOUT_FILENO);
    for (size_t i = 0; pythons[i] != NULL && (i == 0 ? error == 0 : error == ENOENT); i++) {
        argv[0] = (char *)(uintptr_t)pythons[i];
        error = posix_spawnp(pid, pythons[i], &actions, NULL, argv, environ);
    }
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
        cli_fail("this needs Python, and %s cannot be started (%s): install Python 3.10 or later "
                 "with marey, or set MAREY_PYTHON",
                 pythons[0], strerror(error));
    return error;
}

static int run(char **argv, FILE *out)
{
    pid_t pid;
    int status;
    fflush(NULL); /* so that earlier output comes first */
    if (start(argv, out, &pid) != 0)
        return CLI_BAD;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return cli_fail("cannot wait for Python: %s", strerror(errno));
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE)
        raise(SIGPIPE); /* the reader closed our output */
    if (WIFSIGNALED(status))
        return cli_fail("Python was ended by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) == 1) /* an exception, reported only by a traceback */
        return cli_fail("Python failed; its error is above");
    return WEXITSTATUS(status) == 0 ? CLI_FINE : CLI_BAD;
}

int cli_python(struct cli_words *words, int n_paths, char *const *paths, FILE *out)
{
    char boot[PATH_MAX], parent[PATH_MAX];
    char **const argv CLI_FREED = calloc((size_t)n_paths + CLI_MAX_WORDS + 8, sizeof *argv);
    size_t n = 1; /* the first is the interpreter */
    int status = CLI_BAD;
    if (argv == NULL || words->failed) {
        cli_fail("out of memory for the arguments of Python");
    } else {
        marey_python_boot(boot, parent);
        argv[n++] = (char *)(uintptr_t) "-c";
        argv[n++] = (char *)(uintptr_t)script;
        argv[n++] = parent;
        for (size_t i = 0; i < words->n; i++)
            argv[n++] = words->list[i];
        argv[n++] = (char *)(uintptr_t) "--";
        for (int i = 0; i < n_paths; i++)
            argv[n++] = paths[i];
        if (n_paths == 0)
            argv[n - 1] = NULL;
        status = run(argv, out);
    }
    for (size_t i = 0; i < words->n; i++)
        free(words->list[i]);
    *words = (struct cli_words){0};
    return status;
}

/* ---- files ---- */

static int is_csv_file(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info, (void)where;
    return kind == FTW_F && (cli_ends_with(path, ".csv", 4) || cli_ends_with(path, ".csv.gz", 7));
}

bool cli_is_csv(const char *path)
{
    enum { MAX_OPEN = 16 };
    return is_csv_file(path, NULL, FTW_F, NULL) || nftw(path, is_csv_file, MAX_OPEN, FTW_PHYS) == 1;
}
