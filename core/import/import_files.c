/*
 * Chooses the files, their format and their ranks. A folder contributes the files of one format, the most frequent one.
 * Collapsed stacks count only where there is no other format: a folder of traces may also hold notes, and nearly any
 * text is a valid list of stacks.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "import/internal.h"

/* ---- formats ---- */

const struct marey__import_format *marey__import_detect(const char *bytes, size_t len)
{
    for (size_t i = 0; marey__import_formats[i] != NULL; i++)
        if (marey__import_formats[i]->looks_like(bytes, len))
            return marey__import_formats[i];
    return NULL;
}

/* The nouns of all formats: "a Kineto or Chrome trace, ... and ...". */
static void put_nouns(struct marey__buf *out)
{
    for (size_t i = 0; marey__import_formats[i] != NULL; i++) {
        const char *before = marey__import_formats[i + 1] == NULL ? " and " : ", ";
        marey__buf_printf(out, "%s%s", i == 0 ? "" : before, marey__import_formats[i]->info.noun);
    }
}

static marey_status find_format(const char *name, const struct marey__import_format **out)
{
    char names[128];
    size_t len = 0;
    for (size_t i = 0; marey__import_formats[i] != NULL; i++) {
        if (strcmp(marey__import_formats[i]->info.name, name) == 0) {
            *out = marey__import_formats[i];
            return MAREY_OK;
        }
        marey__append(names, sizeof names, &len, "%s%s", i == 0 ? "" : ", ",
                      marey__import_formats[i]->info.name);
    }
    return marey__fail(MAREY_EINVAL, "there is no format '%s' to import; there are %s", name, names);
}

/* ---- ranks by name ---- */

/* The number at `text`, or -1 if it is missing or not a rank. */
static int32_t rank_at(const char *text, const char **end)
{
    enum { MOST = 1000000 };
    int32_t rank = 0;
    const char *at = text;
    for (; isdigit((unsigned char)*at) && rank < MOST; at++)
        rank = rank * 10 + (*at - '0');
    *end = at;
    return at == text || rank >= MOST ? -1 : rank;
}

/* "rank-3", "rank_3", "Rank3", "worker3" anywhere in the name: the last one counts. */
static int32_t rank_by_word(const char *name, const char *word)
{
    int32_t rank = -1;
    const size_t len = strlen(word);
    for (const char *at = name; *at != '\0'; at++) {
        if (strncasecmp(at, word, len) != 0)
            continue;
        const char *number = at + len, *end;
        number += *number != '\0' && strchr("-_.= ", *number) != NULL;
        const int32_t found = rank_at(number, &end);
        rank = found >= 0 ? found : rank;
    }
    return rank;
}

/* Length of the one of `extensions` (".trace .json") that ends at `end`, in a name longer than it; 0: none. */
static size_t extension_at(const char *name, const char *end, const char *extensions)
{
    for (const char *at = extensions; *at != '\0'; at += strspn(at, " ")) {
        const size_t len = strcspn(at, " ");
        if ((size_t)(end - name) > len && memcmp(end - len, at, len) == 0)
            return len;
        at += len;
    }
    return 0;
}

/* Where the extensions of a name start. */
static const char *find_endings(const char *name)
{
    const char *end = name + strlen(name);
    for (size_t len = 1; len != 0;) {
        len = extension_at(name, end, ".gz");
        for (size_t i = 0; len == 0 && marey__import_formats[i] != NULL; i++)
            len = extension_at(name, end, marey__import_formats[i]->info.extensions);
        end -= len;
    }
    return end;
}

/* "trace_3.json.gz": a number before the extensions, too short to be a date or a pid. */
static int32_t rank_before_endings(const char *name)
{
    enum { MOST = 9999 };
    const char *number = find_endings(name), *behind;
    while (number > name && isdigit((unsigned char)number[-1]))
        number--;
    if (number == name || strchr("-_.", number[-1]) == NULL)
        return -1;
    const int32_t rank = rank_at(number, &behind);
    return rank <= MOST ? rank : -1;
}

int32_t marey__import_rank_of_name(const char *path, bool is_one_of_several)
{
    const char *name = marey__base_name(path);
    int32_t rank = rank_by_word(name, "rank");
    if (rank < 0)
        rank = rank_by_word(name, "worker");
    return rank < 0 && is_one_of_several ? rank_before_endings(name) : rank;
}

/* Length of "node1_4711" in "node1_4711.1700000000000.pt.trace.json", torch's file names; 0: no such timestamp. */
static size_t worker_len(const char *name)
{
    enum { LEAST_DIGITS = 10 };
    const char *const end = find_endings(name), *at = end;
    while (at > name && isdigit((unsigned char)at[-1]))
        at--;
    return end - at >= LEAST_DIGITS && at > name + 1 && at[-1] == '.' ? (size_t)(at - 1 - name) : 0;
}

static bool are_of_one_worker(const char *path, const char *other)
{
    const char *const name = marey__base_name(path), *const other_name = marey__base_name(other);
    const size_t len = worker_len(name);
    return len != 0 && len == worker_len(other_name) && memcmp(name, other_name, len) == 0;
}

/* Number files in order; successive files of one worker are of one rank. */
static void number_files(struct marey__import_files *files)
{
    int32_t rank = 0;
    for (size_t i = 0; i < files->n; i++) {
        if (i > 0 && !are_of_one_worker(files->all[i].path, files->all[i - 1].path))
            rank++;
        files->all[i].named_rank = rank;
    }
    files->is_numbered = rank != 0;
    for (size_t i = 0; rank == 0 && i < files->n; i++)
        files->all[i].named_rank = -1; /* one process, recorded several times */
}

static void name_ranks(struct marey__import_files *files)
{
    bool any = false;
    for (size_t i = 0; i < files->n; i++) {
        files->all[i].named_rank = marey__import_rank_of_name(files->all[i].path, files->n > 1);
        any |= files->all[i].named_rank >= 0;
    }
    if (!any && files->n > 1)
        number_files(files);
}

/* ---- a file ---- */

static marey_status add_file(struct marey__import_files *files, struct marey__import_file file)
{
    file.path = marey__arena_text(&files->texts, file.path, strlen(file.path));
    MAREY__TRY_MEMORY(file.path != NULL && MAREY__PUSH(files->all, files->n, files->cap, file));
    return MAREY_OK;
}

/* The error for an unknown file: its first bytes, and the known formats. */
static marey_status fail_unknown(const struct marey__import_file *file, const char *bytes, size_t len)
{
    enum { SHOWN = 24 };
    const char *path = file->path, *damage = marey__bytes_damage(file->bytes);
    MAREY__FINALLY(marey__buf_fini) struct marey__buf words = {0}, begin = {0};
    if (len == 0 && damage != NULL)
        return marey__fail(MAREY_EFORMAT, "%s", damage);
    if (len == 0)
        return marey__fail(MAREY_EFORMAT, "%s is empty", path);
    put_nouns(&words);
    marey__json_put(&begin, bytes, MAREY__MIN(len, (size_t)SHOWN));
    const marey_status status =
        words.failed || begin.failed
            ? marey__no_memory()
            : marey__fail(
                  MAREY_EFORMAT,
                  "%s has an unknown format: it starts with %.*s; known are recordings, %.*s", path,
                  (int)begin.len, begin.data, (int)words.len, words.data);
    return status;
}

/* Detect the format of the file, NULL for none. A pipe stays open. */
static marey_status look_into(struct marey__import_file *file, const char **bytes, size_t *len)
{
    MAREY_TRY(marey__bytes_open(file->path, &file->bytes));
    const marey_status status = marey__bytes_peek(file->bytes, bytes, len);
    if (status == MAREY_OK && file->format == NULL)
        file->format = marey__import_detect(*bytes, *len);
    return status;
}

static void close_bytes(struct marey__import_file *file)
{
    marey__bytes_close(file->bytes);
    file->bytes = NULL;
}

static marey_status add_named(struct marey__import_files *files, const char *path,
                              const struct stat *st, const struct marey__import_format *format)
{
    struct marey__import_file file = {.path = path, .format = format, .size = (uint64_t)st->st_size};
    const char *bytes = NULL;
    size_t len = 0;
    marey_status status = look_into(&file, &bytes, &len);
    if (status == MAREY_OK && (file.format == NULL || len == 0))
        status = fail_unknown(&file, bytes, len);
    if (status != MAREY_OK || S_ISREG(st->st_mode))
        close_bytes(&file);
    if (status == MAREY_OK)
        status = add_file(files, file);
    if (status != MAREY_OK)
        close_bytes(&file);
    return status;
}

/* ---- a folder ---- */

static int by_name(const void *a, const void *b)
{
    const struct marey__import_file *x = a, *y = b;
    return strverscmp(x->path, y->path);
}

/* Add an entry of a folder if it is a file of a known format; ignore others. */
static marey_status add_entry(struct marey__import_files *files, const char *path,
                              const struct marey__import_format *wanted)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return MAREY_OK;
    struct marey__import_file file = {.path = path, .size = (uint64_t)st.st_size};
    const char *bytes;
    size_t len;
    const marey_status status = look_into(&file, &bytes, &len);
    close_bytes(&file);
    if (status == MAREY_ENOMEM || status == MAREY_EUNAVAILABLE)
        return status;
    if (status != MAREY_OK || file.format == NULL || (wanted != NULL && file.format != wanted))
        return MAREY_OK;
    return add_file(files, file);
}

static size_t count_of(const struct marey__import_files *files, size_t start,
                       const struct marey__import_format *format)
{
    size_t n = 0;
    for (size_t i = start; i < files->n; i++)
        n += files->all[i].format == format;
    return n;
}

/* From `start` on, keep only files of the most frequent format; the last format only if there is no other. */
static void keep_one_format(struct marey__import_files *files, size_t start)
{
    const struct marey__import_format *kept = NULL;
    size_t most = 0, n_kept = start;
    for (size_t i = 0; marey__import_formats[i] != NULL; i++) {
        const bool is_last = marey__import_formats[i + 1] == NULL;
        const size_t n = count_of(files, start, marey__import_formats[i]);
        if (n > most && (kept == NULL || !is_last)) {
            kept = marey__import_formats[i];
            most = n;
        }
    }
    for (size_t i = start; i < files->n; i++)
        if (files->all[i].format == kept)
            files->all[n_kept++] = files->all[i];
    files->n = n_kept;
}

static marey_status add_entries(struct marey__import_files *files, const char *folder, DIR *dir,
                                const struct marey__import_format *format)
{
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        struct marey__buf path MAREY__FINALLY(marey__buf_fini) = {0};
        if (entry->d_name[0] == '.')
            continue;
        marey__buf_printf(&path, "%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/",
                          entry->d_name);
        marey__buf_put(&path, "", 1);
        const marey_status status =
            path.failed ? marey__no_memory() : add_entry(files, path.data, format);
        MAREY_TRY(status);
    }
    return MAREY_OK;
}

static marey_status add_folder(struct marey__import_files *files, const char *folder,
                               const struct marey__import_format *format)
{
    const size_t start = files->n;
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return marey__fail_errno("open %s", folder);
    const marey_status status = add_entries(files, folder, dir, format);
    closedir(dir);
    MAREY_TRY(status);
    if (files->n == start)
        return marey__fail(
            MAREY_EFORMAT,
            "%s is not a recording (it has no log and no meta.json), and contains no "
            "trace in a known format",
            folder);
    keep_one_format(files, start);
    qsort(files->all + start, files->n - start, sizeof *files->all, by_name);
    return MAREY_OK;
}

/* ---- all ---- */

marey_status marey__import_files_list(struct marey__import_files *files, const char *const *paths,
                                      size_t n, const char *from)
{
    const struct marey__import_format *format = NULL;
    if (from != NULL)
        MAREY_TRY(find_format(from, &format));
    if (n == 0)
        return marey__fail(MAREY_EINVAL, "an import needs a file");
    for (size_t i = 0; i < n; i++) {
        struct stat st;
        if (paths[i][0] == '\0' || stat(paths[i], &st) != 0)
            return marey__fail_errno("open %s", paths[i]);
        MAREY_TRY(S_ISDIR(st.st_mode) ? add_folder(files, paths[i], format)
                                      : add_named(files, paths[i], &st, format));
    }
    name_ranks(files);
    return MAREY_OK;
}

void marey__import_files_fini(struct marey__import_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        marey__bytes_close(files->all[i].bytes);
    marey__arena_fini(&files->texts);
    marey__free(files->all);
    *files = (struct marey__import_files){0};
}
