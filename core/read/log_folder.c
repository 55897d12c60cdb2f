/*
 * The logs of a folder, opened several at a time: there may be one for each rank of a large job, and where files are
 * behind a network it is waiting that takes the time.
 *
 * Each log has its warnings to itself while it is read. They are handed on in the order of names, so that the same folder
 * always gives the same answer.
 */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "read/read_internal.h"

struct opening {
    const char *path; /* of the folder */
    struct kymo__log_folder *folder;
    struct kymo__site_tables *tables;
    size_t next; /* taken with fetch-and-add */
};

static kymo_status no_memory(const char *path)
{
    return kymo__fail(KYMO_ENOMEM, "no memory to open %s", path);
}

/* ---- names ---- */

static bool is_log_name(const char *name)
{
    const size_t len = strlen(name);
    return len > 5 && (strcmp(name + len - 5, ".klog") == 0 || strcmp(name + len - 5, ".krun") == 0);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct kymo__log_entry *)a)->name,
                  ((const struct kymo__log_entry *)b)->name);
}

static bool add_name(struct kymo__log_folder *folder, const char *name)
{
    if (!kymo__grow(&folder->entries, &folder->cap, folder->n + 1, sizeof *folder->entries))
        return false;
    char *const copy = kymo__strndup(name, strlen(name));
    if (copy != NULL)
        folder->entries[folder->n++] = (struct kymo__log_entry){.name = copy};
    return copy != NULL;
}

static kymo_status list_logs(struct kymo__log_folder *folder, const char *path)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return kymo__fail_errno("open %s", path);
    bool done = true;
    for (const struct dirent *entry; done && (entry = readdir(dir)) != NULL;) {
        folder->has_meta |= strcmp(entry->d_name, "meta.json") == 0;
        if (!is_log_name(entry->d_name))
            continue;
        done = add_name(folder, entry->d_name);
    }
    closedir(dir);
    return done ? KYMO_OK : no_memory(path);
}

/* ---- logs ---- */

static kymo_status open_log(struct kymo__log_entry *entry, const char *path,
                            struct kymo__site_tables *tables)
{
    struct stat st;
    if (stat(path, &st) == 0 && st.st_size == 0)
        return KYMO_OK; /* it is about to be written */
    struct kymo__log_file *log = kymo__alloc(sizeof *log);
    const kymo_status status =
        log != NULL ? kymo__log_file_open(log, path, &entry->warnings) : no_memory(path);
    if (status != KYMO_OK) {
        kymo__free(log);
        return status;
    }
    kymo__site_tables_share(tables, &log->sites);
    entry->log = log;
    return KYMO_OK;
}

/* What is wrong with one log is a warning as long as others can be read. */
static void open_entry(struct opening *opening, struct kymo__log_entry *entry)
{
    struct kymo__buf path = {0};
    kymo__buf_printf(&path, "%s/%s", opening->path, entry->name);
    kymo__buf_put(&path, "", 1);
    entry->status =
        path.failed ? no_memory(opening->path) : open_log(entry, path.data, opening->tables);
    if (entry->status == KYMO_EFORMAT || entry->status == KYMO_EIO)
        kymo__warn_damage(&entry->warnings, "%s.", kymo_last_error());
    kymo__buf_fini(&path);
}

static void work(void *ctx, bool may_tell)
{
    struct opening *const opening = ctx;
    (void)may_tell;
    for (;;) {
        const size_t i = __atomic_fetch_add(&opening->next, 1, __ATOMIC_RELAXED);
        if (i >= opening->folder->n)
            return;
        open_entry(opening, &opening->folder->entries[i]);
    }
}

static kymo_status open_listed(struct kymo__log_folder *folder, const char *path, size_t n_jobs)
{
    struct kymo__site_tables tables;
    struct opening opening = {.path = path, .folder = folder, .tables = &tables};
    if (folder->n > 1)
        qsort(folder->entries, folder->n, sizeof *folder->entries, by_name);
    kymo__site_tables_init(&tables);
    kymo__work_together(work, &opening, n_jobs, folder->n);
    kymo__site_tables_fini(&tables);
    for (size_t i = 0; i < folder->n; i++)
        if (folder->entries[i].status == KYMO_ENOMEM || folder->entries[i].warnings.failed)
            return no_memory(path);
    return KYMO_OK;
}

kymo_status kymo__log_folder_open(struct kymo__log_folder *folder, const char *path, size_t n_jobs)
{
    KYMO_TRY(list_logs(folder, path));
    return open_listed(folder, path, n_jobs);
}

kymo_status kymo__log_folder_open_some(struct kymo__log_folder *folder, const char *path,
                                       const char *const *names, size_t n, size_t n_jobs)
{
    for (size_t i = 0; i < n; i++)
        if (!add_name(folder, names[i]))
            return no_memory(path);
    return open_listed(folder, path, n_jobs);
}

void kymo__log_folder_fini(struct kymo__log_folder *folder)
{
    for (size_t i = 0; i < folder->n; i++) {
        struct kymo__log_entry *entry = &folder->entries[i];
        if (entry->log != NULL)
            kymo__log_file_fini(entry->log);
        kymo__free(entry->log);
        kymo__free(entry->name);
        kymo__warnings_fini(&entry->warnings);
    }
    kymo__free(folder->entries);
    *folder = (struct kymo__log_folder){0};
}
