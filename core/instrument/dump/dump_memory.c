/*
 * Memory for copies. Faulting in new pages costs more than the copy itself, so large pieces are kept for reuse within
 * the budget. Small copies share slabs, which are such pieces; a slab is free when all copies in it are.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "instrument/dump/internal.h"

enum { PAGE = 4096, LARGE = 64 << 10, SLAB = 1 << 20, ALIGN = 16, HUGE = 4 << 20 };

/* The header before a large piece. */
struct piece {
    void *begin; /* start of the allocation */
    size_t size; /* usable */
    struct piece *next;
    /* For a slab. */
    uint32_t used, n_live;
};

static struct {
    pthread_mutex_t lock; /* guards everything */
    struct piece *kept;
    size_t n_kept_bytes, limit;
    struct piece *slab; /* small copies go here; NULL: none */
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct piece *piece_of(void *bytes)
{
    return (struct piece *)bytes - 1;
}

/* The smallest kept piece that fits, unless it would waste half. */
static struct piece *take_kept(size_t size)
{
    struct piece **best = NULL;
    MAREY__HOLD(&memory.lock);
    for (struct piece **at = &memory.kept; *at != NULL; at = &(*at)->next)
        if ((*at)->size >= size && (*at)->size / 2 <= size &&
            (best == NULL || (*at)->size < (*best)->size))
            best = at;
    struct piece *const piece = best != NULL ? *best : NULL;
    if (piece != NULL) {
        *best = piece->next;
        memory.n_kept_bytes -= piece->size;
    }
    return piece;
}

static struct piece *take_large(size_t size)
{
    struct piece *piece = take_kept(size);
    if (piece != NULL)
        return piece;
    if (size > SIZE_MAX / 2)
        return NULL;
    const size_t rounded = (size + PAGE - 1) / PAGE * PAGE;
    char *const begin = marey__alloc(rounded + PAGE + sizeof *piece);
    if (begin == NULL)
        return NULL;
    const uintptr_t first = (uintptr_t)begin + sizeof *piece;
    char *const bytes = begin + sizeof *piece + (PAGE - first % PAGE) % PAGE;
    *piece_of(bytes) = (struct piece){.begin = begin, .size = rounded};
    if (rounded >= HUGE) /* one fault per 2 MiB, if the system has huge pages */
        madvise(bytes, rounded, MADV_HUGEPAGE);
    return piece_of(bytes);
}

/* One copy in the piece is freed, or it is a large one: when it is empty, keep or free it. Accepts NULL. */
static void leave(struct piece *piece)
{
    pthread_mutex_lock(&memory.lock);
    const bool is_empty = piece != NULL && (piece->n_live == 0 || --piece->n_live == 0),
               is_kept = is_empty && memory.n_kept_bytes + piece->size <= memory.limit;
    if (is_kept) {
        piece->next = memory.kept;
        memory.kept = piece;
        memory.n_kept_bytes += piece->size;
    }
    pthread_mutex_unlock(&memory.lock);
    if (is_empty && !is_kept)
        marey__free(piece->begin);
}

/* ---- small copies, each preceded by its slab's address ---- */

static size_t small_size(size_t size)
{
    return ALIGN + (size + ALIGN - 1) / ALIGN * ALIGN;
}

/* NULL if the slab is full. `next` NULL: the current slab; else that one becomes current. */
static void *put_into_slab(size_t size, struct piece *next, struct piece **before)
{
    MAREY__HOLD(&memory.lock);
    *before = memory.slab;
    struct piece *const slab = next != NULL ? next : memory.slab;
    memory.slab = slab;
    if (slab == NULL || slab->size - slab->used < small_size(size))
        return NULL;
    char *const at = (char *)(slab + 1) + slab->used;
    memcpy(at, &slab, sizeof slab);
    slab->used += (uint32_t)small_size(size);
    slab->n_live++;
    return at + ALIGN;
}

static void *take_small(size_t size)
{
    struct piece *full;
    void *at = put_into_slab(size, NULL, &full);
    if (at != NULL)
        return at;
    struct piece *const slab = take_large(SLAB);
    if (slab == NULL)
        return NULL;
    slab->used = 0;
    slab->n_live = 1; /* itself, while it is the current one */
    at = put_into_slab(size, slab, &full);
    leave(full);
    return at;
}

/* ---- both ---- */

void *marey__dump_memory_take(size_t size)
{
    if (size < LARGE)
        return take_small(size);
    struct piece *const piece = take_large(size);
    return piece != NULL ? piece + 1 : NULL;
}

void marey__dump_memory_give(void *bytes, size_t size)
{
    struct piece *piece;
    if (bytes == NULL)
        return;
    if (size < LARGE)
        memcpy(&piece, (char *)bytes - ALIGN, sizeof piece); /* its slab */
    else
        piece = piece_of(bytes);
    leave(piece);
}

/* ---- in a file ---- */

/* An unnamed file; on some file systems it is created with a name and unlinked. */
static int open_nameless(const char *dir)
{
    char path[PATH_MAX + 32];
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    snprintf(path, sizeof path, "%s/.spill-XXXXXX", dir);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

marey_status marey__dump_spill_take(const char *dir, size_t size, void **out)
{
    MAREY_TRY(marey__dump_make_folders(dir));
    const int fd = open_nameless(dir);
    if (fd < 0)
        return marey__fail_errno("make a file in %s for a step that is larger than dump.memory", dir);
    /* Allocate the blocks now: on a full disk, a later write through the mapping would raise SIGBUS. */
    sigset_t before;
    marey__size_limit_begin(&before);
    errno = posix_fallocate(fd, 0, (off_t)size);
    marey__size_limit_end(&before);
    const int error = errno;
    void *const bytes =
        error == 0 ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    errno = error != 0 ? error : errno;
    const marey_status st =
        bytes != MAP_FAILED
            ? MAREY_OK
            : marey__fail_errno("put %zu bytes of a step that is larger than dump.memory into %s",
                                size, dir);
    close(fd);
    if (st == MAREY_OK)
        *out = bytes;
    return st;
}

void marey__dump_spill_give(void *bytes, size_t size)
{
    if (bytes != NULL)
        munmap(bytes, size);
}

/* ---- kept memory ---- */

void marey__dump_memory_keep(size_t limit)
{
    pthread_mutex_lock(&memory.lock);
    struct piece *const slab = limit == 0 ? memory.slab : NULL;
    memory.limit = limit;
    if (slab != NULL)
        memory.slab = NULL;
    while (memory.n_kept_bytes > limit) {
        struct piece *const piece = memory.kept;
        memory.kept = piece->next;
        memory.n_kept_bytes -= piece->size;
        marey__free(piece->begin);
    }
    pthread_mutex_unlock(&memory.lock);
    leave(slab);
}

void marey__dump_memory_before_fork(void)
{
    pthread_mutex_lock(&memory.lock);
}

void marey__dump_memory_after_fork(void)
{
    pthread_mutex_unlock(&memory.lock);
}
