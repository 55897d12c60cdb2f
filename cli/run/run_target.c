/*
 * Where `marey run` records to. The directory is created before the program starts, so that a wrong path costs nothing;
 * only recordings are ever deleted. The command line of a Python program determines the name of the recording, and
 * whether the interpreter ignores PYTHONPATH, which recording needs.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/run.h"

/* ---- Python programs ---- */

static bool is_python(const char *path)
{
    const char *name = basename(path);
    return strncmp(name, "python", 6) == 0 || strncmp(name, "pypy", 4) == 0;
}

/* Skips the interpreter's options, up to the script: one word each, or two for those with a value. */
static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0';
}

static bool takes_next_word(const char *option)
{
    return strcmp(option, "-W") == 0 || strcmp(option, "-X") == 0 ||
           strcmp(option, "--check-hash-based-pycs") == 0;
}

static const char *python_script(char *const *program)
{
    if (!is_python(program[0])) {
        /* A launcher has the script among its arguments. */
        for (char *const *word = program; *word != NULL; word++) {
            const size_t len = strlen(*word);
            if (len > 3 && strcmp(*word + len - 3, ".py") == 0)
                return *word;
        }
        return NULL;
    }
    for (char *const *word = program + 1; *word != NULL; word++) {
        if (!is_option(*word))
            return *word;
        if (strcmp(*word, "-m") == 0)
            return word[1];
        if (strcmp(*word, "-c") == 0)
            return NULL;
        if (takes_next_word(*word) && word[1] != NULL)
            word++;
    }
    return NULL;
}

bool run_is_python(char *const *program)
{
    return is_python(program[0]) || python_script(program) != NULL;
}

/* The letter in one word of options, -I or -bES, that makes Python ignore PYTHONPATH, or 0. */
static char isolation_option(const char *option)
{
    if (option[0] != '-' || option[1] == '-')
        return 0;
    for (const char *letter = option + 1; *letter != '\0' && strchr("cmWX", *letter) == NULL;
         letter++) {
        if (strchr("IES", *letter) != NULL)
            return *letter;
    }
    return 0;
}

/* The same in a script's first line: #!/usr/bin/python3 -I */
static char isolation_shebang(const char *path)
{
    char line[256] = "";
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    const ssize_t n = read(fd, line, sizeof line - 1);
    close(fd);
    if (n < 2 || line[0] != '#' || line[1] != '!' || strstr(line, "python") == NULL)
        return 0;
    line[strcspn(line, "\n")] = '\0';
    for (const char *option = strstr(line, " -"); option != NULL;
         option = strstr(option + 2, " -")) {
        const char letter = isolation_option(option + 1);
        if (letter != 0)
            return letter;
    }
    return 0;
}

char run_python_isolated(char *const *program)
{
    if (!is_python(program[0]))
        return isolation_shebang(program[0]);
    for (char *const *word = program + 1; *word != NULL && is_option(*word); word++) {
        const char letter = isolation_option(*word);
        if (letter != 0)
            return letter;
        if (strcmp(*word, "-m") == 0 || strcmp(*word, "-c") == 0)
            return 0;
        if (takes_next_word(*word) && word[1] != NULL)
            word++;
    }
    return 0;
}

/* ---- a name ---- */

/* python train.py: train; python -m pkg.mod: pkg.mod; ./a.out: a.out */
static void name_stem(char *const *program, char *into, size_t size)
{
    const char *script = python_script(program);
    snprintf(into, size, "%s", basename(script != NULL ? script : program[0]));
    if (cli_ends_with(into, ".py", 3))
        into[strlen(into) - 3] = '\0';
}

/* The folder of a recording without a name: the current one or, if read-only, with a message, the temporary folder. */
static const char *default_folder(void)
{
    if (access(".", W_OK) == 0)
        return "";
    const char *folder = cli_env("TMPDIR");
    folder = folder != NULL && folder[0] == '/' ? folder : "/tmp";
    cli_say("cannot write in this folder (%s): recording in %s instead", strerror(errno), folder);
    return folder;
}

/* STEM.marey, or the first of STEM-2.marey, STEM-3.marey, ... that is free. */
static void free_name(char *const *program, bool may_number, char *into, size_t size)
{
    char stem[NAME_MAX - 16];
    const char *const folder = default_folder(), *const slash = folder[0] != '\0' ? "/" : "";
    name_stem(program, stem, sizeof stem);
    snprintf(into, size, "%s%s%s.marey", folder, slash, stem);
    for (int i = 2; may_number && i < 100000; i++) {
        const enum cli_existing existing = cli_look_at(into);
        if (existing == CLI_IS_NOTHING || existing == CLI_IS_EMPTY)
            return;
        snprintf(into, size, "%s%s%s-%d.marey", folder, slash, stem, i);
    }
}

/* ---- the directory ---- */

/* The launch's id, or that of a repeat: "ID-2". */
static bool is_launch(const char *run_id, const char *id)
{
    const size_t len = strlen(id);
    return strncmp(run_id, id, len) == 0 && (run_id[len] == '\0' || run_id[len] == '-');
}

/* Whether everything recorded there comes from ranks of our launch. */
static bool is_of_this_launch(const char *path)
{
    char id[RUN_ID_MAX];
    marey_recording *recording = NULL;
    if (!run_launch_id(id))
        return true; /* unknown */
    if (marey_recording_open(path, &recording) != MAREY_OK)
        return false;
    bool is_ours = true;
    for (size_t i = 0; i < marey_recording_n_processes(recording); i++)
        is_ours &= is_launch(marey_recording_process(recording, i)->run_id, id);
    marey_recording_close(recording);
    return is_ours;
}

/* False, with a message, if the directory must not be used. */
static bool may_use(const char *path, enum run_existing existing)
{
    char quoted[PATH_MAX];
    if (!cli_may_hold_recording(path, cli_quote(path, quoted, sizeof quoted)))
        return false;
    if (cli_look_at(path) != CLI_IS_RECORDING)
        return true;
    if (existing == RUN_REFUSE && !(run_is_one_of_many() && is_of_this_launch(path)))
        return cli_refuse(
            "%s already contains a recording; --append adds to it, --force replaces it", quoted);
    if (existing == RUN_FORCE && !cli_empty_recording(path))
        return cli_refuse("cannot remove the old recording in %s: %s", quoted, strerror(errno));
    return true;
}

char *run_join_words(char *const *words)
{
    size_t len = 1;
    for (size_t i = 0; words[i] != NULL; i++)
        len += 4 * strlen(words[i]) + 5; /* what cli_quote needs */
    char *text = calloc(1, len), *p = text;
    for (size_t i = 0; text != NULL && words[i] != NULL; i++) {
        if (i > 0)
            *p++ = ' ';
        cli_quote(words[i], p, len - (size_t)(p - text));
        p += strlen(p);
    }
    return text;
}

bool run_target_prepare(struct run_target *target, const char *output, enum run_existing existing,
                        char *const *program)
{
    char name[PATH_MAX];
    if (output != NULL)
        snprintf(name, sizeof name, "%s", output);
    else
        free_name(program, existing == RUN_REFUSE && !run_is_one_of_many(), name, sizeof name);
    if (!may_use(name, existing))
        return false;

    target->is_new = cli_look_at(name) == CLI_IS_NOTHING;
    char *command CLI_FREED = run_join_words(program);
    const marey_status status = marey_recording_create(name, command != NULL ? command : program[0]);
    if (status != MAREY_OK)
        return cli_refuse("%s", marey_last_error());
    /* Absolute, because the program may change its directory before it records anything. */
    if (realpath(name, target->path) == NULL)
        return cli_refuse("cannot resolve %s: %s", name, strerror(errno));
    return true;
}

bool run_target_abandon(const struct run_target *target)
{
    if (!target->is_new || run_is_one_of_many())
        return false;
    return cli_empty_recording(target->path) && rmdir(target->path) == 0;
}
