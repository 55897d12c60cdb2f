/* Which files are read as averages: those named, and those that folders have. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/device/legacy_internal.h"
#include "codec/codec_internal.h"

/* Folders within folders: itwinai's own are three deep, those of MLflow six. */
enum { MAX_DEPTH = 16 };

static bool ends_in(const char *path, const char *end)
{
    const size_t len = strlen(path), end_len = strlen(end);
    return len >= end_len && strcmp(path + len - end_len, end) == 0;
}

static bool is_csv(const char *path)
{
    return ends_in(path, ".csv") || ends_in(path, ".csv.gz");
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Every CSV below `folder`, at any depth, by name. False when the visitor said so. */
typedef bool visitor(void *ctx, const char *path);
static bool walk(const char *folder, int depth, visitor *visit, void *ctx)
{
    struct dirent **entries = NULL;
    const int n = depth < MAX_DEPTH ? scandir(folder, &entries, is_visible, by_name) : -1;
    bool goes_on = true;
    for (int i = 0; i < n; i++) {
        struct marey__buf path = {0};
        struct stat info;
        marey__buf_printf(&path, "%s/%s", folder, entries[i]->d_name);
        marey__buf_put(&path, "", 1);
        /* A link is not followed: it may lead back. */
        if (goes_on && !path.failed && lstat(path.data, &info) == 0) {
            if (S_ISDIR(info.st_mode))
                goes_on = walk(path.data, depth + 1, visit, ctx);
            else if (S_ISREG(info.st_mode) && is_csv(path.data))
                goes_on = visit(ctx, path.data);
        }
        marey__buf_fini(&path);
        free(entries[i]);
    }
    free(entries);
    return goes_on;
}

static bool stop(void *ctx, const char *path)
{
    (void)ctx, (void)path;
    return false;
}

int marey_legacy_is_file(const char *path)
{
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return !walk(path, 0, stop, NULL);
    return is_csv(path);
}

/* ---- reading ---- */

struct reading {
    marey__csv_reader *read;
    void *ctx;
    marey_status status;
    size_t n_files; /* that were of the kind that is read */
};

static marey_status read_file(const struct reading *reading, const char *path, bool *is_other)
{
    marey__byte_source *bytes = NULL;
    *is_other = false;
    MAREY_TRY(marey__bytes_open(path, &bytes));
    const marey_status status = reading->read(reading->ctx, bytes, path, is_other);
    marey__bytes_close(bytes);
    return status;
}

static bool read_of_folder(void *ctx, const char *path)
{
    struct reading *reading = ctx;
    bool is_other;
    reading->status = read_file(reading, path, &is_other);
    if (is_other)
        reading->status = MAREY_OK;
    else
        reading->n_files++;
    return reading->status == MAREY_OK;
}

marey_status marey__csv_read_path(const char *path, marey__csv_reader *read, void *ctx,
                                  size_t *n_files)
{
    struct reading reading = {.read = read, .ctx = ctx};
    struct stat info;
    bool is_other;
    if (stat(path, &info) != 0)
        return marey__fail_errno("open %s", path);
    if (S_ISDIR(info.st_mode)) {
        walk(path, 0, read_of_folder, &reading);
    } else {
        reading.status = read_file(&reading, path, &is_other);
        reading.n_files = 1;
    }
    *n_files = reading.n_files;
    return reading.status;
}

static marey_status read_averages(void *ctx, marey__byte_source *bytes, const char *path,
                                  bool *is_other)
{
    return marey__legacy_read_csv(ctx, bytes, path, is_other);
}

marey_status marey_legacy_read(const char *const *paths, size_t n, marey_table **out,
                               struct marey_legacy_source *source)
{
    struct marey__legacy legacy = {0};
    marey_status status = MAREY_OK;
    for (size_t i = 0; status == MAREY_OK && i < n; i++) {
        size_t n_files = 0;
        status = marey__csv_read_path(paths[i], read_averages, &legacy, &n_files);
        if (status == MAREY_OK && n_files == 0)
            status =
                marey__fail(MAREY_EFORMAT, "%s has no file of averages as itwinai writes", paths[i]);
    }
    if (status == MAREY_OK)
        status = marey__legacy_table(&legacy, out);
    if (status == MAREY_OK && source != NULL)
        *source = (struct marey_legacy_source){1, legacy.n_dropped};
    marey__legacy_fini(&legacy);
    return status;
}
