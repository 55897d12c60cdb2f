/*
 * Where `marey run` records to. The directory is made before the program starts, so that a wrong
 * path costs nothing; nothing that is not a recording is ever deleted.
 */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"

/* ---- a name ---- */

/* python train.py: train; python -m pkg.mod: pkg.mod; ./a.out: a.out */
static void name_stem(char *const *program, char *into, size_t size)
{
    const char *script = run_python_script(program);
    snprintf(into, size, "%s", basename(script != NULL ? script : program[0]));
    if (cli_ends_with(into, ".py", 3))
        into[strlen(into) - 3] = '\0';
}

/* STEM.marey, or the first of STEM-2.marey, STEM-3.marey, ... that is free. */
static void free_name(char *const *program, bool may_number, char *into, size_t size)
{
    char stem[NAME_MAX - 16];
    name_stem(program, stem, sizeof stem);
    snprintf(into, size, "%s.marey", stem);
    for (int i = 2; may_number && i < 100000; i++) {
        const enum cli_existing existing = cli_look_at(into);
        if (existing == CLI_IS_NOTHING || existing == CLI_IS_EMPTY)
            return;
        snprintf(into, size, "%s-%d.marey", stem, i);
    }
}

/* ---- the directory ---- */

/* The launch itself, or a repeat in it: "ID-2". */
static bool is_launch(const char *run_id, const char *id)
{
    const size_t len = strlen(id);
    return strncmp(run_id, id, len) == 0 && (run_id[len] == '\0' || run_id[len] == '-');
}

/* Whether all that is recorded there comes from ranks of the launch that we are a rank of. */
static bool is_of_this_launch(const char *path)
{
    char id[RUN_ID_MAX];
    marey_recording *recording = NULL;
    if (!run_launch_id(id))
        return true; /* nobody can tell */
    if (marey_recording_open(path, &recording) != MAREY_OK)
        return false;
    bool is_ours = true;
    for (size_t i = 0; i < marey_recording_n_processes(recording); i++)
        is_ours &= is_launch(marey_recording_process(recording, i)->run_id, id);
    marey_recording_close(recording);
    return is_ours;
}

/* False, with a sentence, when the directory may not be used as it is. */
static bool may_use(const char *path, enum run_existing existing)
{
    char quoted[PATH_MAX];
    if (!cli_may_hold_recording(path, cli_quote(path, quoted, sizeof quoted)))
        return false;
    if (cli_look_at(path) != CLI_IS_RECORDING)
        return true;
    if (existing == RUN_REFUSE && !(run_is_one_of_many() && is_of_this_launch(path))) {
        cli_fail("%s holds a recording already; --append adds to it, --force replaces it", quoted);
        return false;
    }
    if (existing == RUN_FORCE && !cli_empty_recording(path)) {
        cli_fail("cannot remove the old recording in %s: %s", quoted, strerror(errno));
        return false;
    }
    return true;
}

char *run_join_words(char *const *words)
{
    size_t len = 1;
    for (size_t i = 0; words[i] != NULL; i++)
        len += strlen(words[i]) + 1;
    char *text = malloc(len), *p = text;
    for (size_t i = 0; text != NULL && words[i] != NULL; i++) {
        if (i > 0)
            *p++ = ' ';
        p = stpcpy(p, words[i]);
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
    char *command = run_join_words(program);
    const marey_status status = marey_recording_create(name, command != NULL ? command : program[0]);
    free(command);
    if (status != MAREY_OK) {
        cli_fail("%s", marey_last_error());
        return false;
    }
    /* Absolute, because the program may change its directory before it records anything. */
    if (realpath(name, target->path) == NULL) {
        cli_fail("cannot resolve %s: %s", name, strerror(errno));
        return false;
    }
    return true;
}

bool run_target_abandon(const struct run_target *target)
{
    if (!target->is_new || run_is_one_of_many())
        return false;
    return cli_empty_recording(target->path) && rmdir(target->path) == 0;
}
