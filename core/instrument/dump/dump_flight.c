/*
 * The flight recorder: the last steps, kept until a trigger.
 *
 * They are written like any step, into a folder .flight-PID of the dump's directory, and removed when there are enough
 * newer ones. So they survive any end of the process: a signal, kill -9, the out-of-memory killer; no code of ours has
 * to run, and the folder is a normal dump. Pages of a file that is removed soon are mostly never written to the disk. A
 * trigger moves them to the dump's directory. Without one, they are removed when dumping ends normally.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "instrument/dump/internal.h"

static struct marey__dump *const dump = &marey__dump;

static struct {
    pthread_mutex_t lock; /* guards these and the folder; taken without other locks */
    uint64_t *steps;      /* existing ones, oldest first */
    size_t n, cap;
    bool is_made;
} flight = {.lock = PTHREAD_MUTEX_INITIALIZER};

void marey__dump_flight_name(char *out, size_t size)
{
    snprintf(out, size, ".flight-%ld", (long)getpid());
}

static void flight_path(char *out, size_t size)
{
    char name[40];
    marey__dump_flight_name(name, sizeof name);
    snprintf(out, size, "%s/%s", dump->dir, name);
}

/* Whether a file or folder belongs to that step: "step-00000012.jsonl", "step-00000012.rank-3", or "12". */
static bool is_of(const char *name, uint64_t step)
{
    char begin[40];
    if (dump->options.layout == MAREY_DUMP_LAYOUT_ACCVLAB) {
        snprintf(begin, sizeof begin, "%" PRIu64, step);
        return strcmp(name, begin) == 0;
    }
    const size_t len = (size_t)snprintf(begin, sizeof begin, "step-%08" PRIu64, step);
    return strncmp(name, begin, len) == 0 && (name[len] == '\0' || name[len] == '.');
}

static void remove_entry(int folder, const char *name)
{
    if (unlinkat(folder, name, 0) == 0)
        return;
    marey__dump_empty_folder(folder, name, "");
    unlinkat(folder, name, AT_REMOVEDIR);
}

/* ---- moving ---- */

/* The whole file, NUL-terminated; empty if it cannot be read. */
static void read_all(int folder, const char *name, struct marey__buf *out)
{
    struct stat st;
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    char *const at =
        fd >= 0 && fstat(fd, &st) == 0 ? marey__buf_extend(out, (size_t)st.st_size + 1) : NULL;
    const ssize_t n = at != NULL ? pread(fd, at, (size_t)st.st_size, 0) : -1;
    out->len = n > 0 ? (size_t)n + 1 : 0;
    if (n > 0)
        at[n] = '\0';
    if (fd >= 0)
        close(fd);
}

/* Writes a manifest with the reason in its first line. Returns false for other files, and if it is moved unchanged. */
static bool write_with_reason(int from, const struct marey__held_file *to, const char *name,
                              const char *reason)
{
    static const char none[] = "\"reason\":null";
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    struct marey__buf quoted MAREY__FINALLY(marey__buf_fini) = {0};
    if (marey__ends_with(name, strlen(name), ".jsonl"))
        read_all(from, name, &text);
    marey__json_put(&quoted, reason, strlen(reason));
    const char *const at = text.len > 0 && !quoted.failed ? strstr(text.data, none) : NULL;
    if (at == NULL)
        return false;
    struct marey__dump_file file;
    const size_t after = (size_t)(at - text.data) + sizeof none - 1,
                 before = after - strlen("null");
    marey__dump_file_begin(&file, to, name, dump->options.durable != 0);
    marey__dump_file_put(&file, text.data, before);
    marey__dump_file_put(&file, quoted.data, quoted.len);
    marey__dump_file_put(&file, text.data + after, text.len - 1 - after);
    return marey__dump_file_end(&file, true) == MAREY_OK;
}

static marey_status move_entry(int from, const struct marey__held_file *target, const char *name,
                               const char *reason)
{
    const int to = marey__held_fd(target);
    if (write_with_reason(from, target, name, reason)) {
        unlinkat(from, name, 0);
        return MAREY_OK;
    }
    if (renameat(from, name, to, name) == 0)
        return MAREY_OK;
    remove_entry(to, name); /* a folder of an earlier run */
    return renameat(from, name, to, name) == 0
               ? MAREY_OK
               : marey__fail_errno("move %s out of the flight recorder's folder in %s", name,
                                   dump->dir);
}

/* Removes the files of a step (`to` NULL), or moves them. */
static marey_status each_entry(uint64_t step, const struct marey__held_file *to, const char *reason)
{
    char path[PATH_MAX + 48];
    marey_status st = MAREY_OK;
    flight_path(path, sizeof path);
    DIR *const dir = marey__dump_list_folder(AT_FDCWD, path);
    if (dir == NULL)
        return MAREY_OK;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (!is_of(entry->d_name, step))
            continue;
        if (to == NULL)
            remove_entry(dirfd(dir), entry->d_name);
        else if (st == MAREY_OK)
            st = move_entry(dirfd(dir), to, entry->d_name, reason);
    }
    closedir(dir);
    return st;
}

/* ---- the ring ---- */

void marey__dump_flight_kept(uint64_t step)
{
    MAREY__HOLD(&flight.lock);
    flight.is_made = true;
    if (marey__grow(&flight.steps, &flight.cap, flight.n + 1, sizeof *flight.steps))
        flight.steps[flight.n++] = step;
    while (flight.n > dump->options.flight_steps) {
        if (each_entry(flight.steps[0], NULL, NULL) != MAREY_OK)
            break; /* cannot happen: nothing is moved */
        memmove(flight.steps, flight.steps + 1, --flight.n * sizeof *flight.steps);
    }
}

/* The directory they are moved to. */
static marey_status open_target(int rank, int world, struct marey__held_file *out)
{
    char below[40] = "";
    if (dump->options.layout == MAREY_DUMP_LAYOUT_ACCVLAB && world > 1 && rank >= 0)
        snprintf(below, sizeof below, "rank-%d", rank);
    return marey__dump_open_below(dump->dir, below, out);
}

marey_status marey__dump_flight_publish(const char *reason)
{
    int rank, world;
    struct marey__held_file to = {.fd = -1};
    marey_rank_get(&rank, &world);
    MAREY__HOLD(&flight.lock);
    marey_status st = flight.n > 0 ? open_target(rank, world, &to) : MAREY_OK;
    for (size_t i = 0; i < flight.n && st == MAREY_OK; i++)
        st = each_entry(flight.steps[i], &to, reason);
    flight.n = 0;
    marey__held_close(&to);
    return st;
}

void marey__dump_flight_clear(void)
{
    char path[PATH_MAX + 48];
    MAREY__HOLD(&flight.lock);
    for (; flight.n > 0; flight.n--)
        if (each_entry(flight.steps[flight.n - 1], NULL, NULL) != MAREY_OK)
            break;
    marey__free(flight.steps);
    flight.steps = NULL;
    flight.n = flight.cap = 0;
    flight_path(path, sizeof path);
    if (flight.is_made)
        rmdir(path);
    flight.is_made = false;
}

void marey__dump_flight_after_fork(void)
{
    pthread_mutex_init(&flight.lock, NULL);
    flight.steps = NULL;
    flight.n = flight.cap = 0;
    flight.is_made = false;
}
