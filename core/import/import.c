/* Imports files of other tools into recordings: into a directory, or into a temporary one that is read at once. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/internal.h"
#include "read/internal.h"
#include "record/internal.h"
#include "record/log_format.h"

#define MAREY__FORMAT_ENTRY(name) &marey__import_##name,
const struct marey__import_format *const marey__import_formats[] = {
    MAREY__IMPORT_FORMATS(MAREY__FORMAT_ENTRY) NULL};

const struct marey_import_format *marey_import_format_at(size_t i)
{
    return i < MAREY__COUNT_OF(marey__import_formats) - 1 ? &marey__import_formats[i]->info : NULL;
}

static const struct marey_import_options defaults;

/* ---- recordings ---- */

static bool ends_with(const char *text, const char *end)
{
    return marey__ends_with(text, strlen(text), end);
}

/* Other tools write a meta.json too; ours identifies itself in its first line. */
static bool is_our_meta(int dir_fd)
{
    char text[128] = "";
    const int fd = openat(dir_fd, "meta.json", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    const ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 && (strstr(text, "\"marey recording\"") != NULL ||
                     strstr(text, MAREY__OLD_RECORDING) != NULL);
}

static bool is_recording_folder(const char *path)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return true; /* the reader reports what is wrong */
    bool is_ours = is_our_meta(dirfd(dir));
    for (const struct dirent *entry; !is_ours && (entry = readdir(dir)) != NULL;)
        is_ours = ends_with(entry->d_name, ".klog") || ends_with(entry->d_name, ".krun");
    closedir(dir);
    return is_ours;
}

static bool is_log(const char *path)
{
    uint32_t magic = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return true;
    const ssize_t n = pread(fd, &magic, sizeof magic, 0);
    close(fd);
    return n == (ssize_t)sizeof magic && marey__is_block_magic(magic);
}

static bool is_recording(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return true;
    if (S_ISDIR(st.st_mode))
        return is_recording_folder(path);
    return S_ISREG(st.st_mode) && (ends_with(path, ".klog") || is_log(path));
}

/* ---- into a directory ---- */

/* Remove a directory created here, with its files. */
static void remove_directory(const char *path)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    rmdir(path);
}

static marey_status check_target(const char *into)
{
    size_t n = 0;
    DIR *dir = opendir(into);
    if (dir == NULL)
        return errno == ENOENT ? MAREY_OK : marey__fail_errno("import into %s", into);
    while (n <= 2 && readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n <= 2 ? MAREY_OK
                  : marey__fail(MAREY_EINVAL,
                                "%s already exists and is not empty; choose another name", into);
}

/* Write to a temporary name beside the target, then rename: a directory of the final name is always complete. */
static marey_status save(const struct marey__log_store *store, const char *into)
{
    char directory[PATH_MAX];
    struct marey__buf command MAREY__FINALLY(marey__buf_fini) = {0};
    size_t len = strlen(into);
    while (len > 1 && into[len - 1] == '/')
        len--;
    if (snprintf(directory, sizeof directory, "%.*s.importing-%08x", (int)len, into,
                 (unsigned)marey__identity_random()) >= (int)sizeof directory)
        return marey__fail(MAREY_EINVAL, "the path of the recording %s is too long", into);
    if (mkdir(directory, 0755) != 0)
        return marey__fail_errno("create the recording %s", into);
    marey__identity_command(&command);
    marey__buf_put(&command, "", 1);
    marey_status status =
        marey_recording_create(directory, command.failed ? "marey import" : command.data);
    if (status == MAREY_OK)
        status = marey__log_store_save(store, directory);
    if (status == MAREY_OK && rename(directory, into) != 0)
        status = marey__fail_errno("create the recording %s", into);
    if (status != MAREY_OK)
        remove_directory(directory);
    return status;
}

/* The parent folder of `into`, in `out` of PATH_MAX bytes. */
static void parent_of(const char *into, char *out)
{
    size_t len = strlen(into);
    while (len > 1 && into[len - 1] == '/')
        len--;
    while (len > 0 && into[len - 1] != '/')
        len--;
    snprintf(out, PATH_MAX, "%.*s", len == 0 ? 1 : (int)len, len == 0 ? "." : into);
}

/* The logs are written beside the target before they are saved, so that they use space on the right disk. */
static marey_status import_files(struct marey__import_files *files, const char *into,
                                 const struct marey_import_options *options)
{
    char folder[PATH_MAX];
    struct marey__log_store *store = NULL;
    parent_of(into, folder);
    if (access(folder, W_OK | X_OK) != 0)
        return marey__fail_errno("create the recording %s", into);
    MAREY_TRY(marey__log_store_open(folder, &store));
    marey_status status = marey__import_files_read(files, store, options);
    if (status == MAREY_OK)
        status = save(store, into);
    marey__log_store_close(store);
    return status;
}

static void fill_result(struct marey_import_result *result, const struct marey__import_files *files)
{
    *result = (struct marey_import_result){.format = files->all[0].format->info.name};
    for (size_t i = 0; i < files->n; i++) {
        result->n_files += files->all[i].status == MAREY_OK;
        result->n_events += files->all[i].n_events;
        result->n_bytes += files->all[i].n_bytes;
    }
}

marey_status marey_import(const char *const *paths, size_t n, const char *into,
                          const struct marey_import_options *options,
                          struct marey_import_result *result)
{
    struct marey__import_files files MAREY__FINALLY(marey__import_files_fini) = {0};
    if (options == NULL)
        options = &defaults;
    if (into == NULL || into[0] == '\0')
        return marey__fail(MAREY_EINVAL, "a recording needs a path");
    MAREY_TRY(check_target(into));
    for (size_t i = 0; i < n; i++)
        if (access(paths[i], F_OK) == 0 && is_recording(paths[i]))
            return marey__fail(MAREY_EINVAL, "%s is already a recording", paths[i]);
    marey_status status = marey__import_files_list(&files, paths, n, options->from);
    if (status == MAREY_OK)
        status = import_files(&files, into, options);
    if (status == MAREY_OK && result != NULL)
        fill_result(result, &files);
    return status;
}

/* ---- open a recording or a foreign file ---- */

bool marey__import_knows(const char *path)
{
    marey__byte_source *source = NULL;
    const char *bytes;
    size_t len;
    const bool is_known = marey__bytes_open(path, &source) == MAREY_OK &&
                          marey__bytes_peek(source, &bytes, &len) == MAREY_OK &&
                          marey__import_detect(bytes, len) != NULL;
    marey__bytes_close(source);
    return is_known;
}

static marey_status read_temporary(struct marey__import_files *files, const char *path,
                                   const struct marey_import_options *options, marey_recording **out)
{
    struct marey__log_store *store = NULL;
    MAREY_TRY(marey__log_store_open(NULL, &store));
    marey_status status = marey__import_files_read(files, store, options);
    if (status == MAREY_OK)
        status = marey__log_store_read(store, path, out);
    marey__log_store_close(store);
    return status;
}

marey_status marey_open(const char *path, const struct marey_import_options *options,
                        marey_recording **out)
{
    struct marey__import_files files MAREY__FINALLY(marey__import_files_fini) = {0};
    if (options == NULL)
        options = &defaults;
    if (options->from == NULL && is_recording(path))
        return marey__recording_open(path, options->n_jobs, out);
    MAREY_TRY(marey__import_files_list(&files, &path, 1, options->from));
    return read_temporary(&files, path, options, out);
}
