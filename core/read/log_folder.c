/*
 * Opens the logs of a folder in parallel: a large job has one per rank, and on a network file system latency dominates.
 *
 * Each log collects its own warnings while it is read. They are merged in the order of names, so that the output does
 * not depend on timing.
 */
#include <dirent.h>
#include <sys/stat.h>

#include "read/internal.h"

struct opening {
    const char *path; /* of the folder */
    struct marey__log_folder *folder;
    struct marey__site_tables *tables;
    size_t next; /* taken with fetch-and-add */
};

/* ---- names ---- */

static bool is_log_name(const char *name)
{
    const size_t len = strlen(name);
    return len > 5 && (strcmp(name + len - 5, ".klog") == 0 || strcmp(name + len - 5, ".krun") == 0);
}

MAREY__ORDER(by_name, struct marey__log_entry, MAREY__UP_BY(strcmp(x->name, y->name), 0))

static bool add_name(struct marey__log_folder *folder, const char *name)
{
    if (!marey__grow(&folder->entries, &folder->cap, folder->n + 1, sizeof *folder->entries))
        return false;
    char *const copy = marey__strndup(name, strlen(name));
    if (copy != NULL)
        folder->entries[folder->n++] = (struct marey__log_entry){.name = copy};
    return copy != NULL;
}

static marey_status list_logs(struct marey__log_folder *folder, const char *path)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return marey__fail_errno("open %s", path);
    bool done = true;
    for (const struct dirent *entry; done && (entry = readdir(dir)) != NULL;) {
        folder->has_meta |= strcmp(entry->d_name, "meta.json") == 0;
        if (!is_log_name(entry->d_name))
            continue;
        done = add_name(folder, entry->d_name);
    }
    closedir(dir);
    return done ? MAREY_OK : marey__no_memory();
}

/* ---- logs ---- */

static marey_status open_log(const struct opening *opening, struct marey__log_entry *entry,
                             const char *path)
{
    struct marey__log_texts *const texts = opening->folder->texts;
    const size_t most_kept = marey__log_file_most_kept(opening->folder->n);
    struct stat st;
    if (stat(path, &st) == 0 && st.st_size == 0)
        return MAREY_OK; /* it is about to be written */
    struct marey__log_file *log = marey__alloc(sizeof *log);
    const marey_status status =
        log != NULL ? marey__log_file_open(log, path, texts, most_kept, &entry->warnings)
                    : marey__no_memory();
    if (status != MAREY_OK) {
        marey__free(log);
        return status;
    }
    marey__site_tables_share(opening->tables, &log->sites);
    entry->log = log;
    return MAREY_OK;
}

/* A problem in one log is a warning if others can be read. */
static void open_entry(struct opening *opening, struct marey__log_entry *entry)
{
    struct marey__buf path MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_printf(&path, "%s/%s", opening->path, entry->name);
    marey__buf_put(&path, "", 1);
    entry->status = path.failed ? marey__no_memory() : open_log(opening, entry, path.data);
    if (entry->status == MAREY_EFORMAT || entry->status == MAREY_EIO)
        marey__warn_damage(&entry->warnings, "%s.", marey_last_error());
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

static marey_status open_listed(struct marey__log_folder *folder, const char *path, size_t n_jobs)
{
    struct marey__site_tables tables;
    struct opening opening = {.path = path, .folder = folder, .tables = &tables};
    if (folder->n > 1)
        qsort(folder->entries, folder->n, sizeof *folder->entries, by_name);
    marey__site_tables_init(&tables);
    marey__run_parallel(work, &opening, n_jobs, folder->n);
    marey__site_tables_fini(&tables);
    for (size_t i = 0; i < folder->n; i++)
        if (folder->entries[i].status == MAREY_ENOMEM || folder->entries[i].warnings.failed)
            return marey__no_memory();
    return MAREY_OK;
}

marey_status marey__log_folder_open(struct marey__log_folder *folder, const char *path, size_t n_jobs)
{
    MAREY_TRY(list_logs(folder, path));
    return open_listed(folder, path, n_jobs);
}

marey_status marey__log_folder_open_some(struct marey__log_folder *folder, const char *path,
                                         const char *const *names, size_t n, size_t n_jobs)
{
    for (size_t i = 0; i < n; i++)
        MAREY__TRY_MEMORY(add_name(folder, names[i]));
    return open_listed(folder, path, n_jobs);
}

void marey__log_folder_fini(struct marey__log_folder *folder)
{
    for (size_t i = 0; i < folder->n; i++) {
        struct marey__log_entry *entry = &folder->entries[i];
        if (entry->log != NULL)
            marey__log_file_fini(entry->log);
        MAREY__FREE_ALL(entry->log, entry->name);
        marey__warnings_fini(&entry->warnings);
    }
    marey__free(folder->entries);
    *folder = (struct marey__log_folder){0};
}
