/* Which files are read as averages: those named, and those that folders have. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/legacy_internal.h"
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
        struct kymo__buf path = {0};
        struct stat info;
        kymo__buf_printf(&path, "%s/%s", folder, entries[i]->d_name);
        kymo__buf_put(&path, "", 1);
        /* A link is not followed: it may lead back. */
        if (goes_on && !path.failed && lstat(path.data, &info) == 0) {
            if (S_ISDIR(info.st_mode))
                goes_on = walk(path.data, depth + 1, visit, ctx);
            else if (S_ISREG(info.st_mode) && is_csv(path.data))
                goes_on = visit(ctx, path.data);
        }
        kymo__buf_fini(&path);
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

int kymo_legacy_is_file(const char *path)
{
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return !walk(path, 0, stop, NULL);
    return is_csv(path);
}

/* ---- reading ---- */

struct reading {
    kymo__csv_reader *read;
    void *ctx;
    kymo_status status;
    size_t n_files; /* that were of the kind that is read */
};

static kymo_status read_file(const struct reading *reading, const char *path, bool *is_other)
{
    kymo__byte_source *bytes = NULL;
    *is_other = false;
    KYMO_TRY(kymo__bytes_open(path, &bytes));
    const kymo_status status = reading->read(reading->ctx, bytes, path, is_other);
    kymo__bytes_close(bytes);
    return status;
}

static bool read_of_folder(void *ctx, const char *path)
{
    struct reading *reading = ctx;
    bool is_other;
    reading->status = read_file(reading, path, &is_other);
    if (is_other)
        reading->status = KYMO_OK;
    else
        reading->n_files++;
    return reading->status == KYMO_OK;
}

kymo_status kymo__csv_read_path(const char *path, kymo__csv_reader *read, void *ctx, size_t *n_files)
{
    struct reading reading = {.read = read, .ctx = ctx};
    struct stat info;
    bool is_other;
    if (stat(path, &info) != 0)
        return kymo__fail_errno("open %s", path);
    if (S_ISDIR(info.st_mode)) {
        walk(path, 0, read_of_folder, &reading);
    } else {
        reading.status = read_file(&reading, path, &is_other);
        reading.n_files = 1;
    }
    *n_files = reading.n_files;
    return reading.status;
}

static kymo_status read_averages(void *ctx, kymo__byte_source *bytes, const char *path, bool *is_other)
{
    return kymo__legacy_read_csv(ctx, bytes, path, is_other);
}

kymo_status kymo_legacy_read(const char *const *paths, size_t n, kymo_table **out,
                             struct kymo_legacy_source *source)
{
    struct kymo__legacy legacy = {0};
    kymo_status status = KYMO_OK;
    for (size_t i = 0; status == KYMO_OK && i < n; i++) {
        size_t n_files = 0;
        status = kymo__csv_read_path(paths[i], read_averages, &legacy, &n_files);
        if (status == KYMO_OK && n_files == 0)
            status =
                kymo__fail(KYMO_EFORMAT, "%s has no file of averages as itwinai writes", paths[i]);
    }
    if (status == KYMO_OK)
        status = kymo__legacy_table(&legacy, out);
    if (status == KYMO_OK && source != NULL)
        *source = (struct kymo_legacy_source){1, legacy.n_dropped};
    kymo__legacy_fini(&legacy);
    return status;
}
