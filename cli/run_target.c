/*
 * Where `kymo run` records to. The directory is made before the program starts, so that a wrong
 * path costs nothing; nothing that is not a recording is ever deleted.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "run.h"

/* ---- what is there already ---- */

enum existing { IS_NOTHING, IS_EMPTY, IS_RECORDING, IS_OTHER_DIR, IS_NO_DIR };

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && memcmp(name + n - m, end, m) == 0;
}

/* Others write a meta.json too; ours says what it is in its first line. */
static bool is_our_meta(int dir_fd)
{
    char text[128] = "";
    const int fd = openat(dir_fd, "meta.json", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 && strstr(text, "\"kymo recording\"") != NULL;
}

/* The names libkymo gives to its files. */
static bool is_our_file(int dir_fd, const char *name)
{
    if (strcmp(name, "meta.json") == 0)
        return is_our_meta(dir_fd);
    return ends_with(name, ".klog") || ends_with(name, ".pool");
}

/* Call `each` for the entries of `dir` until it returns false; how many there were, or -1. */
typedef bool visit_entry(int dir_fd, const char *name, void *ctx);
static int for_entries(const char *path, visit_entry *each, void *ctx)
{
    DIR *dir = opendir(path);
    int n = 0;
    if (dir == NULL)
        return -1;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        n++;
        if (!each(dirfd(dir), entry->d_name, ctx))
            break;
    }
    closedir(dir);
    return n;
}

static bool note_foreign(int dir_fd, const char *name, void *ctx)
{
    return !(*(bool *)ctx = !is_our_file(dir_fd, name));
}

static enum existing look_at(const char *path)
{
    struct stat st;
    bool has_foreign = false;
    if (stat(path, &st) != 0)
        return IS_NOTHING;
    if (!S_ISDIR(st.st_mode))
        return IS_NO_DIR;
    const int n = for_entries(path, note_foreign, &has_foreign);
    return n == 0 ? IS_EMPTY : has_foreign || n < 0 ? IS_OTHER_DIR : IS_RECORDING;
}

static bool remove_entry(int dir_fd, const char *name, void *ctx)
{
    return !(*(bool *)ctx = unlinkat(dir_fd, name, 0) != 0);
}

/* Called for recordings alone, that is for directories in which every file is ours. */
static bool empty_recording(const char *path)
{
    bool failed = false;
    return for_entries(path, remove_entry, &failed) >= 0 && !failed;
}

/* ---- a name ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* python train.py: train; python -m pkg.mod: pkg.mod; ./a.out: a.out */
static void name_stem(char *const *program, char *into, size_t size)
{
    const char *script = run_python_script(program);
    snprintf(into, size, "%s", base_name(script != NULL ? script : program[0]));
    if (ends_with(into, ".py"))
        into[strlen(into) - 3] = '\0';
}

/* STEM.kymo, or the first of STEM-2.kymo, STEM-3.kymo, ... that is free. */
static void free_name(char *const *program, bool may_number, char *into, size_t size)
{
    char stem[NAME_MAX - 16];
    name_stem(program, stem, sizeof stem);
    snprintf(into, size, "%s.kymo", stem);
    for (int i = 2; may_number && i < 100000; i++) {
        const enum existing existing = look_at(into);
        if (existing == IS_NOTHING || existing == IS_EMPTY)
            return;
        snprintf(into, size, "%s-%d.kymo", stem, i);
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
    kymo_recording *recording = NULL;
    if (!run_launch_id(id))
        return true; /* nobody can tell */
    if (kymo_recording_open(path, &recording) != KYMO_OK)
        return false;
    bool is_ours = true;
    for (size_t i = 0; i < kymo_recording_n_processes(recording); i++)
        is_ours &= is_launch(kymo_recording_process(recording, i)->run_id, id);
    kymo_recording_close(recording);
    return is_ours;
}

/* False, with a sentence, when the directory may not be used as it is. */
static bool may_use(const char *path, enum run_existing existing)
{
    char quoted[PATH_MAX];
    cli_quote(path, quoted, sizeof quoted);
    switch (look_at(path)) {
    case IS_NOTHING:
    case IS_EMPTY:
        return true;
    case IS_NO_DIR:
        cli_fail("%s is there already and no directory", quoted);
        return false;
    case IS_OTHER_DIR:
        cli_fail("%s is not empty and holds more than a recording; choose another name with -o",
                 quoted);
        return false;
    case IS_RECORDING:
        break;
    }
    if (existing == RUN_REFUSE && !(run_is_one_of_many() && is_of_this_launch(path))) {
        cli_fail("%s holds a recording already; --append adds to it, --force replaces it", quoted);
        return false;
    }
    if (existing == RUN_FORCE && !empty_recording(path)) {
        cli_fail("cannot remove the old recording in %s: %s", quoted, strerror(errno));
        return false;
    }
    return true;
}

/* The program's command line in one text, for meta.json. Free what comes back. */
static char *join_words(char *const *words)
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

    target->is_new = look_at(name) == IS_NOTHING;
    char *command = join_words(program);
    const kymo_status status = kymo_recording_create(name, command != NULL ? command : program[0]);
    free(command);
    if (status != KYMO_OK) {
        cli_fail("%s", kymo_last_error());
        return false;
    }
    /* Absolute, because the program may change its directory before it records anything. */
    if (realpath(name, target->path) == NULL) {
        cli_fail("cannot resolve %s: %s", name, strerror(errno));
        return false;
    }
    return true;
}

static bool note_log(int dir_fd, const char *name, void *ctx)
{
    (void)dir_fd;
    return !(*(bool *)ctx = strcmp(name, "meta.json") != 0);
}

bool run_target_discard(const struct run_target *target)
{
    bool has_more = false;
    if (!target->is_new || run_is_one_of_many() ||
        for_entries(target->path, note_log, &has_more) < 0 || has_more)
        return false;
    return empty_recording(target->path) && rmdir(target->path) == 0;
}
