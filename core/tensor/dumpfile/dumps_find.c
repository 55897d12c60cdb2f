/* Finds the steps below a path, by file names. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tensor/dumpfile/internal.h"

static bool ends_with(const char *text, const char *suffix)
{
    return marey__ends_with(text, strlen(text), suffix);
}

/* Parses all of `text` up to `end` as a number. */
static bool is_number(const char *text, const char *end, uint64_t *out)
{
    if (text == end || end - text > 19)
        return false;
    for (const char *p = text; p < end; p++)
        if (*p < '0' || *p > '9')
            return false;
    return marey__parse_number(text, (size_t)(end - text), out);
}

/* Parses one field of a step's name, "rank-3": its number, and the start of the next field. */
static bool take_field(const char **name, const char *end, const char *word, uint64_t *out)
{
    const size_t len = strlen(word);
    const char *stop = memchr(*name, '.', (size_t)(end - *name));
    stop = stop != NULL ? stop : end;
    if ((size_t)(stop - *name) < len || memcmp(*name, word, len) != 0 ||
        !is_number(*name + len, stop, out))
        return false;
    *name = stop < end ? stop + 1 : end;
    return true;
}

/* "step-00000012.rank-3.pid-7", without the suffix. */
static bool parse_step_name(const char *name, const char *end, struct marey_dumped_step *info)
{
    uint64_t step = 0, rank = 0, pid = 0;
    if (!take_field(&name, end, "step-", &step))
        return false;
    const bool has_rank = take_field(&name, end, "rank-", &rank);
    take_field(&name, end, "pid-", &pid);
    info->step = step;
    info->rank = has_rank ? (int64_t)rank : -1;
    info->pid = pid;
    return name == end;
}

/* NULL on out of memory. */
static struct marey__dumpfile_step *add_step(struct marey_dumps *dumps, enum marey__source source,
                                             const char *path)
{
    if (!marey__grow(&dumps->steps, &dumps->steps_cap, dumps->n_steps + 1, sizeof *dumps->steps))
        return NULL;
    struct marey__dumpfile_step *const step = &dumps->steps[dumps->n_steps];
    *step = (struct marey__dumpfile_step){.source = source};
    step->info = (struct marey_dumped_step){.rank = -1, .world = -1, .is_complete = 1};
    step->path = marey__strndup(path, strlen(path));
    if (step->path == NULL)
        return NULL;
    step->info.path = step->path;
    dumps->n_steps++;
    return step;
}

/* Adds one of the files of a step in marey's layout. The manifest has priority over a tensor file. */
static marey_status add_marey_step(struct marey_dumps *dumps, const char *path, size_t suffix_len)
{
    char stem[PATH_MAX], manifest[PATH_MAX + 8];
    struct marey_dumped_step info = {0};
    const size_t len = strlen(path) - suffix_len;
    if (len >= sizeof stem)
        return marey__fail(MAREY_EIO, "the path of %s is too long", path);
    memcpy(stem, path, len);
    stem[len] = '\0';
    const char *const name = marey__base_name(stem);
    snprintf(manifest, sizeof manifest, "%s.jsonl", stem);
    const bool has_manifest = access(manifest, F_OK) == 0;
    const bool is_step = parse_step_name(name, name + strlen(name), &info);
    if (!has_manifest && ends_with(path, ".part"))
        return marey__fail(MAREY_EFORMAT,
                           "%s is a step that was not finished, and its manifest is not there", path);
    struct marey__dumpfile_step *const step =
        add_step(dumps, has_manifest ? MAREY__SOURCE_MANIFEST : MAREY__SOURCE_SAFETENSORS,
                 has_manifest ? manifest : path);
    MAREY__TRY_MEMORY(step != NULL);
    step->info.is_single = !has_manifest && !is_step;
    if (is_step) {
        step->info.step = info.step;
        step->info.rank = info.rank;
        step->info.pid = info.pid;
    }
    step->stem = marey__strndup(stem, len);
    return step->stem != NULL ? MAREY_OK : marey__no_memory();
}

/* The owner of a directory's steps, by its name. */
struct owner {
    int64_t rank; /* -1: unknown */
    uint64_t pid; /* 0: unknown */
};

static marey_status add_accvlab_step(struct marey_dumps *dumps, const char *path, struct owner owner)
{
    const char *const name = marey__base_name(path);
    struct marey__dumpfile_step *const step = add_step(dumps, MAREY__SOURCE_ACCVLAB, path);
    MAREY__TRY_MEMORY(step != NULL);
    step->info.layout = MAREY_DUMP_LAYOUT_ACCVLAB;
    step->info.rank = owner.rank;
    step->info.pid = owner.pid;
    if (!is_number(name, name + strlen(name), &step->info.step))
        step->info.step = 0;
    return MAREY_OK;
}

/* ---- directories ---- */

static bool has_file(const char *folder, const char *name)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0;
}

static marey_status find_in(struct marey_dumps *dumps, const char *folder, struct owner owner);

/* A directory for a rank or a process, "rank-3" or "pid-4711"; one may contain the other. */
static bool is_owners(const char *name, struct owner *owner)
{
    const char *const end = name + strlen(name);
    uint64_t number;
    if (owner->rank < 0 && strncmp(name, "rank-", 5) == 0 && is_number(name + 5, end, &number)) {
        owner->rank = (int64_t)number;
        return true;
    }
    return owner->pid == 0 && strncmp(name, "pid-", 4) == 0 && is_number(name + 4, end, &owner->pid);
}

/* Handles one directory entry: a step, a rank's directory, or something else. */
static marey_status look_at(struct marey_dumps *dumps, const char *folder, const char *name,
                            struct owner owner)
{
    static const char *const suffixes[] = {".jsonl", ".safetensors", ".part"};
    char path[PATH_MAX];
    struct marey_dumped_step info;
    uint64_t number;
    const size_t len = strlen(name);
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof path || name[0] == '.')
        return MAREY_OK;
    for (size_t i = 0; i < MAREY__COUNT_OF(suffixes); i++) {
        const size_t suffix = strlen(suffixes[i]);
        if (!ends_with(name, suffixes[i]) || !parse_step_name(name, name + len - suffix, &info))
            continue;
        /* Steps with a manifest are found through it. */
        char manifest[PATH_MAX];
        snprintf(manifest, sizeof manifest, "%.*s.jsonl", (int)(len - suffix), name);
        if (i > 0 && (has_file(folder, manifest) || i == 2))
            return MAREY_OK;
        return add_marey_step(dumps, path, suffix);
    }
    if (is_number(name, name + len, &number) && has_file(path, "tensors.json"))
        return add_accvlab_step(dumps, path, owner);
    return is_owners(name, &owner) ? find_in(dumps, path, owner) : MAREY_OK;
}

static marey_status find_in(struct marey_dumps *dumps, const char *folder, struct owner owner)
{
    DIR *const dir = opendir(folder);
    if (dir == NULL)
        return marey__fail_errno("open %s", folder);
    marey_status status = MAREY_OK;
    for (const struct dirent *entry; status == MAREY_OK && (entry = readdir(dir)) != NULL;)
        status = look_at(dumps, folder, entry->d_name, owner);
    closedir(dir);
    return status;
}

/* Finds the folder left by a flight recorder. */
static bool find_flight(const char *folder, char *path, size_t size)
{
    DIR *const dir = opendir(folder);
    bool is_found = false;
    if (dir == NULL)
        return false;
    for (const struct dirent *entry; !is_found && (entry = readdir(dir)) != NULL;) {
        const int n = snprintf(path, size, "%s/%s", folder, entry->d_name);
        is_found = strncmp(entry->d_name, ".flight-", 8) == 0 && n > 0 && (size_t)n < size;
    }
    closedir(dir);
    return is_found;
}

static marey_status find_below(struct marey_dumps *dumps, const char *folder)
{
    static const struct owner unknown = {.rank = -1};
    char path[PATH_MAX];
    if (has_file(folder, "tensors.json"))
        return add_accvlab_step(dumps, folder, unknown);
    MAREY_TRY(find_in(dumps, folder, unknown));
    const int n = snprintf(path, sizeof path, "%s/dumps", folder);
    if (dumps->n_steps == 0 && n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0)
        MAREY_TRY(find_in(dumps, path, unknown));
    if (dumps->n_steps == 0 && find_flight(folder, path, sizeof path))
        return marey__fail(
            MAREY_EFORMAT,
            "%s holds no dump that was finished; the last steps of a program that died are in %s",
            folder, path);
    if (dumps->n_steps == 0)
        return marey__fail(
            MAREY_EFORMAT,
            "%s holds no dump: neither step-*.jsonl nor numbered directories with tensors.json",
            folder);
    return MAREY_OK;
}

MAREY__ORDER(by_step, struct marey__dumpfile_step,
             MAREY__UP(info.step) MAREY__UP(info.rank) MAREY__UP(info.pid)
                 MAREY__UP_BY(strcmp(x->path, y->path), 0))

/* ---- files ---- */

static marey_status find_file(struct marey_dumps *dumps, const char *path)
{
    static const struct {
        const char *suffix;
        enum marey__source source;
    } sources[] = {{".npy", MAREY__SOURCE_NPY},
                   {".json", MAREY__SOURCE_JSON},
                   {".png", MAREY__SOURCE_PNG},
                   {".bin", MAREY__SOURCE_BIN}};
    static const char *const steps[] = {".jsonl", ".safetensors", ".part"};
    for (size_t i = 0; i < MAREY__COUNT_OF(steps); i++)
        if (ends_with(path, steps[i]))
            return add_marey_step(dumps, path, strlen(steps[i]));
    for (size_t i = 0; i < MAREY__COUNT_OF(sources); i++)
        if (ends_with(path, sources[i].suffix)) {
            struct marey__dumpfile_step *const step = add_step(dumps, sources[i].source, path);
            MAREY__TRY_MEMORY(step != NULL);
            step->info.is_single = 1;
            return MAREY_OK;
        }
    if (ends_with(path, ".pkl") || ends_with(path, ".pt") || ends_with(path, ".pth"))
        return marey__fail(
            MAREY_EFORMAT,
            "%s is a pickle, which is never loaded: reading it could run any program", path);
    return marey__fail(
        MAREY_EFORMAT,
        "%s is not a dump: it is neither a directory nor .safetensors, .npy, .json, .png or .bin",
        path);
}

marey_status marey__steps_find(struct marey_dumps *dumps, const char *path)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return marey__fail_errno("open %s", path);
    MAREY_TRY(S_ISDIR(about.st_mode) ? find_below(dumps, path) : find_file(dumps, path));
    qsort(dumps->steps, dumps->n_steps, sizeof *dumps->steps, by_step);
    return MAREY_OK;
}
