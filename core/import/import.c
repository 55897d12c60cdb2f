/* Files of others as recordings: into a directory that stays, or into a temporary one that is read at once. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/import_files.h"
#include "read/read_internal.h"
#include "record/log_format.h"
#include "record/record_internal.h"

/* Those that are known by their first bytes before those that look like much else: collapsed stacks are any text. */
const struct kymo__import_format *const kymo__import_formats[] = {
    &kymo__import_speedscope, &kymo__import_pstats,    &kymo__import_chrome,
    &kymo__import_austin,     &kymo__import_collapsed, NULL,
};

static char format_names[128];

static void list_names(void)
{
    size_t len = 0;
    for (size_t i = 0; kymo__import_formats[i] != NULL; i++)
        kymo__append(format_names, sizeof format_names, &len, "%s%s", i == 0 ? "" : ",",
                     kymo__import_formats[i]->name);
}

const char *kymo_import_formats(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, list_names);
    return format_names;
}

static const struct kymo_import_options defaults;

/* ---- recordings ---- */

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && memcmp(text + n - m, end, m) == 0;
}

/* Others write a meta.json too; ours says what it is in its first line. */
static bool is_our_meta(int dir_fd)
{
    char text[128] = "";
    const int fd = openat(dir_fd, "meta.json", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    const ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 && strstr(text, "\"kymo recording\"") != NULL;
}

static bool is_recording_folder(const char *path)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return true; /* what is wrong, the reader tells */
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
    return n == (ssize_t)sizeof magic && magic == KYMO__BLOCK_MAGIC;
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

/* Remove the directory and the files in it: one that we made ourselves. */
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

static kymo_status check_target(const char *into)
{
    size_t n = 0;
    DIR *dir = opendir(into);
    if (dir == NULL)
        return errno == ENOENT ? KYMO_OK : kymo__fail_errno("import into %s", into);
    while (n <= 2 && readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n <= 2 ? KYMO_OK
                  : kymo__fail(KYMO_EINVAL,
                               "%s is there already and not empty; choose another name", into);
}

/* Written beside its place first: what has the name is whole. */
static kymo_status save(const struct kymo__log_store *store, const char *into)
{
    char directory[PATH_MAX];
    struct kymo__buf command = {0};
    size_t len = strlen(into);
    while (len > 1 && into[len - 1] == '/')
        len--;
    if (snprintf(directory, sizeof directory, "%.*s.importing-%08x", (int)len, into,
                 (unsigned)kymo__identity_random()) >= (int)sizeof directory)
        return kymo__fail(KYMO_EINVAL, "the path of the recording %s is too long", into);
    if (mkdir(directory, 0755) != 0)
        return kymo__fail_errno("create the recording %s", into);
    kymo__identity_command(&command);
    kymo__buf_put(&command, "", 1);
    kymo_status status =
        kymo_recording_create(directory, command.failed ? "kymo import" : command.data);
    kymo__buf_fini(&command);
    if (status == KYMO_OK)
        status = kymo__log_store_save(store, directory);
    if (status == KYMO_OK && rename(directory, into) != 0)
        status = kymo__fail_errno("create the recording %s", into);
    if (status != KYMO_OK)
        remove_directory(directory);
    return status;
}

/* The folder that `into` lies in, in `out` of PATH_MAX bytes. */
static void parent_of(const char *into, char *out)
{
    size_t len = strlen(into);
    while (len > 1 && into[len - 1] == '/')
        len--;
    while (len > 0 && into[len - 1] != '/')
        len--;
    snprintf(out, PATH_MAX, "%.*s", len == 0 ? 1 : (int)len, len == 0 ? "." : into);
}

/* The logs lie beside their place before they are saved, so that the disk they go to is the one that must have room. */
static kymo_status import_files(struct kymo__import_files *files, const char *into,
                                const struct kymo_import_options *options)
{
    char folder[PATH_MAX];
    struct kymo__log_store *store = NULL;
    parent_of(into, folder);
    if (access(folder, W_OK | X_OK) != 0)
        return kymo__fail_errno("create the recording %s", into);
    KYMO_TRY(kymo__log_store_open(folder, &store));
    kymo_status status = kymo__import_files_read(files, store, options);
    if (status == KYMO_OK)
        status = save(store, into);
    kymo__log_store_close(store);
    return status;
}

static void fill_result(struct kymo_import_result *result, const struct kymo__import_files *files)
{
    *result = (struct kymo_import_result){.format = files->all[0].format->name};
    for (size_t i = 0; i < files->n; i++) {
        result->n_files += files->all[i].status == KYMO_OK;
        result->n_events += files->all[i].n_events;
        result->n_bytes += files->all[i].n_bytes;
    }
}

kymo_status kymo_import(const char *const *paths, size_t n, const char *into,
                        const struct kymo_import_options *options, struct kymo_import_result *result)
{
    struct kymo__import_files files = {0};
    if (options == NULL)
        options = &defaults;
    if (into == NULL || into[0] == '\0')
        return kymo__fail(KYMO_EINVAL, "a recording needs a path");
    KYMO_TRY(check_target(into));
    for (size_t i = 0; i < n; i++)
        if (access(paths[i], F_OK) == 0 && is_recording(paths[i]))
            return kymo__fail(KYMO_EINVAL, "%s is a recording already", paths[i]);
    kymo_status status = kymo__import_files_list(&files, paths, n, options->from);
    if (status == KYMO_OK)
        status = import_files(&files, into, options);
    if (status == KYMO_OK && result != NULL)
        fill_result(result, &files);
    kymo__import_files_fini(&files);
    return status;
}

/* ---- open whatever it is ---- */

bool kymo__import_knows(const char *path)
{
    kymo__byte_source *source = NULL;
    const char *bytes;
    size_t len;
    const bool is_known = kymo__bytes_open(path, &source) == KYMO_OK &&
                          kymo__bytes_peek(source, &bytes, &len) == KYMO_OK &&
                          kymo__import_detect(path, bytes, len) != NULL;
    kymo__bytes_close(source);
    return is_known;
}

static kymo_status read_temporary(struct kymo__import_files *files, const char *path,
                                  const struct kymo_import_options *options, kymo_recording **out)
{
    struct kymo__log_store *store = NULL;
    KYMO_TRY(kymo__log_store_open_temporary(&store));
    kymo_status status = kymo__import_files_read(files, store, options);
    if (status == KYMO_OK)
        status = kymo__log_store_read(store, path, out);
    kymo__log_store_close(store);
    return status;
}

kymo_status kymo_open(const char *path, const struct kymo_import_options *options,
                      kymo_recording **out)
{
    struct kymo__import_files files = {0};
    if (options == NULL)
        options = &defaults;
    if (options->from == NULL && is_recording(path))
        return kymo__recording_open(path, options->n_jobs, out);
    kymo_status status = kymo__import_files_list(&files, &path, 1, options->from);
    if (status == KYMO_OK)
        status = read_temporary(&files, path, options, out);
    kymo__import_files_fini(&files);
    return status;
}
