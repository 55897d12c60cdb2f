/*
 * base: what everything else is built from.
 *
 *   error.c, alloc.c      failures as one sentence per thread; allocation that tests can make fail
 *   buf.c, map.c, names.c, arena.c, heap.c, run_sort.c, workers.c   buffers, containers, sorting, worker threads
 *   table.c, sketch.c     typed tables with units, quantile sketches
 *   say.c, text_units.c   messages to the user, numbers with units
 *   held_file.c, map_file.c, temporary_file.c   descriptors kept safe in the program, mapped files, spill files
 *
 * Knows no clock, no recording and no file format. Every
 * folder may include it, and it includes none. Functions marked MAREY_PRIVATE_API are shared between libmarey and
 * libmarey-tools of one build and are not part of the API.
 */
#ifndef MAREY_BASE_INTERNAL_H
#define MAREY_BASE_INTERNAL_H

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h> /* sigset_t, without all of <signal.h> */
#include <sys/types.h>

#include <marey/base.h>
#include <marey/table.h>

struct stat;

/* Shared between libmarey and libmarey-tools of one build; no promise to anybody else. */
#define MAREY_PRIVATE_API MAREY_API

/* States what we guarantee ourselves; never used on input. */
#define MAREY_ASSERT(x) ((x) ? (void)0 : abort())

#define MAREY__MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAREY__MAX(a, b) ((a) > (b) ? (a) : (b))
#define MAREY__COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- failures: remember one sentence for this thread and return `status` ---- */
MAREY_PRIVATE_API marey_status marey__fail(marey_status status, const char *fmt, ...)
    MAREY_PRINTF(2, 3);
/* MAREY_EIO (MAREY_ENOMEM for ENOMEM); "cannot ", the words (a verb first: "open %s"), ": " and errno's own. */
MAREY_PRIVATE_API marey_status marey__fail_errno(const char *fmt, ...) MAREY_PRINTF(1, 2);

/* MAREY_ENOMEM, "out of memory". */
MAREY_PRIVATE_API marey_status marey__no_memory(void);
/* Return that from this function unless `x` (the pointer from an allocation, or a bool) is true. */
#define MAREY__TRY_MEMORY(x)                                                                       \
    do {                                                                                           \
        if (!(x))                                                                                  \
            return marey__no_memory();                                                             \
    } while (0)

/* ---- sentences to the user: each different one once, to the sink (stderr unless the host replaced it) ---- */
MAREY_PRIVATE_API void marey__say(const char *fmt, ...) MAREY_PRINTF(1, 2);
/* The same, for what a user must know (a recording that stopped): however much was said, but not twice in a row. */
MAREY_PRIVATE_API void marey__say_always(const char *fmt, ...) MAREY_PRINTF(1, 2);
/* How many sentences of marey__say() were left out because there were too many, since the last call; nothing if none. */
void marey__say_suppressed(void);

/* In a forked child, whose parent's other threads may have held the lock. */
void marey__say_after_fork(void);

/* ---- memory: malloc and friends, with a way for tests to fail the n-th ---- */
MAREY_PRIVATE_API void *marey__alloc(size_t size) __attribute__((malloc, alloc_size(1)));
/* For memory that is filled at once: with huge pages most of the page faults are saved. */
MAREY_PRIVATE_API void *marey__alloc_large(size_t size) __attribute__((malloc, alloc_size(1)));
MAREY_PRIVATE_API void *marey__calloc(size_t n, size_t size)
    __attribute__((malloc, alloc_size(1, 2)));
MAREY_PRIVATE_API void *marey__realloc(void *p, size_t size) __attribute__((alloc_size(2)));
MAREY_PRIVATE_API char *marey__strndup(const char *s, size_t len);
MAREY_PRIVATE_API void marey__free(void *p);
/*
 * Behind the name of a local variable: `function` gets its address at the end of the block, whichever way that is left. So
 *     struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
 */
#define MAREY__FINALLY(function) __attribute__((cleanup(function), unused))
/* The same of a pointer from marey__alloc. What has become somebody else's is set to NULL before. */
#define MAREY__FREED MAREY__FINALLY(marey__free_at)
static inline void marey__free_at(const void *pointer)
{
    void *memory;
    memcpy(&memory, pointer, sizeof memory);
    marey__free(memory);
}
/* Hold a mutex up to the end of the block, one in each. */
#define MAREY__HOLD(mutex)                                                                         \
    pthread_mutex_t *const held_ MAREY__FINALLY(marey__let_go) = marey__take_hold(mutex)
static inline pthread_mutex_t *marey__take_hold(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    return mutex;
}
static inline void marey__let_go(pthread_mutex_t *const *mutex)
{
    pthread_mutex_unlock(*mutex);
}
MAREY_PRIVATE_API void marey__free_all(void *const *all, size_t n);
#define MAREY__FREE_ALL(...)                                                                       \
    marey__free_all((void *const[]){__VA_ARGS__},                                                  \
                    sizeof(void *const[]){__VA_ARGS__} / sizeof(void *))
/* Tests: the n-th allocation from now fails, and the ones after it succeed; 0 switches this off. */
MAREY_PRIVATE_API void marey__alloc_fail_nth(uint64_t n);

/* Grow `*array` (n_cap elements of `size` bytes) so that `want` fit; false leaves it as it was. Doubles. */
MAREY_PRIVATE_API bool marey__grow(void *array, size_t *n_cap, size_t want, size_t size);
/* The same, where `*n` becomes at least `want` and new elements are zero. */
MAREY_PRIVATE_API bool marey__extend(void *array, size_t *n, size_t *n_cap, size_t want, size_t size);
/* Append the value (the last argument) to `array` of `n` elements; false on out of memory, with the array unchanged. */
#define MAREY__PUSH(array, n, cap, ...)                                                            \
    (marey__grow(&(array), &(cap), (size_t)(n) + 1, sizeof *(array)) &&                            \
     ((array)[(n)++] = (__VA_ARGS__), true))
/*
 * Set the size_t `at` to the first index from `from` on for which the condition (the last argument, about `at`) is false, `to`
 * where there is none. The condition is true for all indices before that one.
 */
#define MAREY__BISECT(at, from, to, ...)                                                           \
    do {                                                                                           \
        size_t low_ = (from), high_ = (to);                                                        \
        while (low_ < high_) {                                                                     \
            (at) = low_ + (high_ - low_) / 2;                                                      \
            if (__VA_ARGS__)                                                                       \
                low_ = (at) + 1;                                                                   \
            else                                                                                   \
                high_ = (at);                                                                      \
        }                                                                                          \
        (at) = low_;                                                                               \
    } while (0)

/* For qsort(). */
MAREY_PRIVATE_API int marey__compare_u64(const void *a, const void *b);
MAREY_PRIVATE_API int marey__compare_f64(const void *a, const void *b);
/*
 * Define an order of elements by their fields, the first of which counts most: MAREY__ORDER(by_rank, struct call, MAREY__UP(rank)
 * MAREY__DOWN(ns)) is a function for qsort(), MAREY__ORDER_RUNS one for marey__sort_runs(). The elements are `x` and `y`.
 */
#define MAREY__UP_BY(of_x, of_y)                                                                   \
    if ((of_x) != (of_y))                                                                          \
        return (of_x) < (of_y) ? -1 : 1;
#define MAREY__UP(field) MAREY__UP_BY(x->field, y->field)
#define MAREY__DOWN(field) MAREY__UP_BY(y->field, x->field)
#define MAREY__ORDER(name, type, keys)                                                             \
    static int name(const void *a, const void *b)                                                  \
    {                                                                                              \
        const type *const x = a;                                                                   \
        const type *const y = b;                                                                   \
        keys return 0;                                                                             \
    }
#define MAREY__ORDER_RUNS(name, type, keys)                                                        \
    MAREY__ORDER(name##_order, type, keys)                                                         \
    static bool name(const void *a, const void *b)                                                 \
    {                                                                                              \
        return name##_order(a, b) < 0;                                                             \
    }

/* ---- a growing byte buffer; running out of memory sets `failed` and later puts do nothing ---- */
struct marey__buf {
    char *data;
    size_t len, cap;
    bool failed;
};
MAREY_PRIVATE_API void marey__buf_fini(struct marey__buf *buf);
/* The same of one that was for `into`, which then has failed as well. */
static inline void marey__buf_end(struct marey__buf *buf, struct marey__buf *into)
{
    into->failed |= buf->failed;
    marey__buf_fini(buf);
}
/* Room for `len` bytes at the end, counted as written; NULL when there is no memory. */
MAREY_PRIVATE_API void *marey__buf_extend(struct marey__buf *buf, size_t len);
MAREY_PRIVATE_API void marey__buf_put(struct marey__buf *buf, const void *bytes, size_t len);
MAREY_PRIVATE_API void marey__buf_puts(struct marey__buf *buf, const char *text);
/* Decimal digits; a tenth of what printf takes for it. */
MAREY_PRIVATE_API void marey__buf_put_u64(struct marey__buf *buf, uint64_t value);
MAREY_PRIVATE_API void marey__buf_put_i64(struct marey__buf *buf, int64_t value);
/* LEB128: seven bits in each byte, the lowest first, bit 7 set in all but the last. */
MAREY_PRIVATE_API void marey__buf_put_leb128(struct marey__buf *buf, uint64_t value);
/* Read one; false where it does not end, or has more than 64 bits. */
MAREY_PRIVATE_API bool marey__take_leb128(const uint8_t **at, const uint8_t *end, uint64_t *number);
MAREY_PRIVATE_API void marey__buf_printf(struct marey__buf *buf, const char *fmt, ...)
    MAREY_PRINTF(2, 3);

/* ---- text ---- */
/* Append to the text of `*len` bytes in `out`, as far as `size` allows; what does not fit is cut. */
MAREY_PRIVATE_API void marey__append(char *out, size_t size, size_t *len, const char *fmt, ...)
    MAREY_PRINTF(4, 5);
/* The length of the well-formed UTF-8 sequence that `text` begins with, 0 when there is none; `len` at least 1. */
MAREY_PRIVATE_API size_t marey__utf8_length(const char *text, size_t len);
/* Append `text` as valid UTF-8: each byte that is not part of a well-formed sequence becomes U+FFFD. */
MAREY_PRIVATE_API void marey__utf8_put(struct marey__buf *buf, const char *text, size_t len);
/* The same into `to` with a NUL, cut at a character where it is too long for `cap` bytes. Returns the length. */
MAREY_PRIVATE_API size_t marey__utf8_copy(const char *text, size_t len, char *to, size_t cap);
/* Append one code point. */
MAREY_PRIVATE_API void marey__utf8_put_char(struct marey__buf *buf, uint32_t c);
/* Append `text` as a JSON string with its quotes, valid UTF-8, control characters escaped. */
MAREY_PRIVATE_API void marey__json_put(struct marey__buf *buf, const char *text, size_t len);

/* Whether the `len` bytes at `text` are `other`, or start or end with it. */
static inline bool marey__text_is(const char *text, size_t len, const char *other)
{
    return len == strlen(other) && (len == 0 || memcmp(text, other, len) == 0);
}

static inline bool marey__starts_with(const char *text, size_t len, const char *start)
{
    const size_t n = strlen(start);
    return len >= n && memcmp(text, start, n) == 0;
}

static inline bool marey__ends_with(const char *text, size_t len, const char *end)
{
    const size_t n = strlen(end);
    return len >= n && memcmp(text + len - n, end, n) == 0;
}

static inline bool marey__is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The last component of a path. */
static inline const char *marey__base_name(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* ---- CRC-32C (Castagnoli), the running value starting from 0 ---- */
MAREY_PRIVATE_API uint32_t marey__crc32c(uint32_t crc, const void *bytes, size_t len);

/* ---- /proc and its like: bytes from outside. `text` need not end in a NUL ---- */
/* Read a file into `out`, at most size - 1 bytes, and end it with a NUL. How many, 0 when it cannot be read. */
MAREY_PRIVATE_API size_t marey__read_text(const char *path, char *out, size_t size);
/* The decimal number that `text` begins with, at most UINT64_MAX; false when it begins with none. */
MAREY_PRIVATE_API bool marey__parse_number(const char *text, size_t len, uint64_t *out);
/* Up to `n` numbers with blanks between, from the start; how many there were. */
size_t marey__parse_numbers(const char *text, size_t len, uint64_t *out, size_t n);
/* The first line of a file, without its end; how many bytes, 0 when it cannot be read. */
MAREY_PRIVATE_API size_t marey__read_line(const char *path, char *out, size_t size);
/* marey__read_text of /proc/PID/NAME, or with a `tid` other than 0 of /proc/PID/task/TID/NAME. */
MAREY_PRIVATE_API size_t marey__read_proc(int64_t pid, int64_t tid, const char *name, char *out,
                                          size_t size);
/* A number of a line such as "\nCapEff:" of /proc/PID/status; 0 when it is missing. */
MAREY_PRIVATE_API uint64_t marey__status_number(const char *status, const char *name, int base);
/* The last number of the line NSpid: the id in the innermost pid namespace; 0 when it is missing. */
MAREY_PRIVATE_API uint64_t marey__status_innermost_pid(const char *status);
/* Fields of /proc/PID/stat; false when it is not whole. */
struct marey__process_stat {
    char state;                                /* field 3 */
    uint64_t parent, reaped_ticks, start_time; /* fields 4, 16 + 17, 22 */
    uint64_t start_code, start_stack; /* fields 26 and 28, which change with exec; 0: not known */
};
MAREY_PRIVATE_API bool marey__parse_process_stat(const char *text, size_t len,
                                                 struct marey__process_stat *out);
/* The same of a process, or with a `tid` other than 0 of a thread; also false when there is none. */
MAREY_PRIVATE_API bool marey__read_process_stat(int64_t pid, int64_t tid,
                                                struct marey__process_stat *out);

/* write(2) until all is out; false with errno set. A limit on the size of files is EFBIG and not a signal. */
MAREY_PRIVATE_API bool marey__write_all(int fd, const void *bytes, size_t len);
/* Bytes from `at` on, or with -1 from where the file stands; fewer only at its end. -1 with errno set. */
MAREY_PRIVATE_API ssize_t marey__read_all(int fd, void *to, size_t len, off_t at);

/* ---- held_file.c: files that stay open inside the user's program ---- */

/* Give `fd` a number above 100, or above 2 where that many are not allowed; -1 with errno set, and `fd` closed. */
MAREY_PRIVATE_API int marey__raise_fd(int fd);
/* openat(2), close-on-exec, with such a number. */
MAREY_PRIVATE_API int marey__open_at(int folder, const char *path, int flags, mode_t mode);
struct marey__held_file {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};
/* Takes ownership of `fd`. Returns false if `fd` is -1. */
MAREY_PRIVATE_API bool marey__held_set(struct marey__held_file *file, int fd);
/* Whether the descriptor is still that of the file: the program may have closed it, and opened another under its number. */
MAREY_PRIVATE_API bool marey__held_is_ours(const struct marey__held_file *file, struct stat *st);
/* The descriptor; -1 with EBADF where it is not the file's any more. */
MAREY_PRIVATE_API int marey__held_fd(const struct marey__held_file *file);
/* After it is not: open the same file again by its name. False when that is another file now, or none. */
bool marey__held_reopen(struct marey__held_file *file, const char *path, int flags);
/* marey__write_all() into it; EBADF when it is not ours. */
bool marey__held_write(const struct marey__held_file *file, const void *bytes, size_t len);
/* Closes the descriptor if it is ours. */
MAREY_PRIVATE_API void marey__held_close(struct marey__held_file *file);
/*
 * Between these two a file that reaches RLIMIT_FSIZE is the error EFBIG, and the program gets no SIGXFSZ. The second
 * keeps errno.
 */
MAREY_PRIVATE_API void marey__size_limit_begin(sigset_t *before);
MAREY_PRIVATE_API void marey__size_limit_end(const sigset_t *before);

/* ---- threads ---- */

/*
 * Start a thread that gets none of the program's signals; `stack_bytes` 0: the default size. Returns an error number, 0 on
 * success.
 */
MAREY_PRIVATE_API int marey__thread_create(pthread_t *thread, size_t stack_bytes,
                                           void *(*run)(void *), void *arg);

/* Take tasks until none is left; `may_tell` only in the calling thread, for progress. */
typedef void marey__worker(void *ctx, bool may_tell);
/* `n_jobs` 0: as many as there are cores. The calling thread works too, and alone when no other can be had. */
MAREY_PRIVATE_API void marey__work_together(marey__worker *work, void *ctx, size_t n_jobs,
                                            size_t n_tasks);
/* How many threads these will be at most, the calling one counted. */
MAREY_PRIVATE_API size_t marey__work_crew(size_t n_jobs, size_t n_tasks);

/* ---- of libmarey-tools: heap.c, map_file.c, run_sort.c, temporary_file.c ---- */

/* Numbers by a key, the lowest first; of equal keys the lower number. */
struct marey__heap {
    struct marey__heap_item {
        uint64_t key;
        uint32_t number;
    } * items; /* the first one is the lowest */
    size_t n, cap;
    uint32_t *places; /* by number, from 1; 0: it is not in */
    size_t places_cap;
};
/* Put a number in, or give it another key, which cannot fail. Returns false on out of memory. */
bool marey__heap_put(struct marey__heap *heap, uint32_t number, uint64_t key);
/* Take out a number that is in. */
void marey__heap_remove(struct marey__heap *heap, uint32_t number);
void marey__heap_fini(struct marey__heap *heap);

/*
 * The bytes of a regular file that others may change, at least one, with zeros behind; NULL: it cannot be had. Where the
 * file is cut meanwhile there are zeros, too, and no SIGBUS. Private and read-only. marey__unmap_file takes NULL.
 */
void *marey__map_file(int fd, size_t *len);
void marey__unmap_file(void *bytes, size_t len);
/* The same for a private mapping of a file made by the caller. Returns false on out of memory. Before munmap: unguard. */
MAREY_WARN_UNUSED bool marey__map_guard(const void *begin, size_t len);
void marey__map_unguard(const void *begin);

typedef bool marey__is_before(const void *a, const void *b);
/* `n` elements of `size` bytes. Returns false on out of memory, with nothing moved. */
MAREY_WARN_UNUSED bool marey__sort_runs(void *base, size_t n, size_t size,
                                        marey__is_before *is_before);

/* Open a file without a name for reading and writing, in `folder` (NULL: none), else TMPDIR, else /var/tmp, else /tmp. */
MAREY_WARN_UNUSED marey_status marey__temporary_open(const char *folder, int *fd);
/* Make `bytes` the content of the file `path`. On failure an old file is as it was. Pipes and devices are written to. */
MAREY_WARN_UNUSED marey_status marey__replace_file(const char *path, const void *bytes, size_t len);

/* ---- student_t.c: Student's t ---- */

/* The value that |t| with `df` (at least 1) degrees of freedom stays below with probability `p`. */
double marey__t_quantile(double p, double df);

/* ==== map ==== */

/*
 * base: hash tables. Both hold numbers of elements of an array that the caller owns, from 1, and never shrink.
 *
 *   struct marey__key_map     finds an element by its first bytes (a key of fixed size): sums by (thread, stack), the nodes
 *                         of a tree by (parent, name)
 *   struct marey__index   finds an element by a hash; the caller compares. For texts and for keys in several places
 *
 * Not built on them: record/intern.c, record/handle.c and nvtx/inject_names.c (readers take no lock),
 * instrument/memory/memory_blocks.c (fixed memory, locks per shard, removal), instrument/calls/calls_tree.c (runs in
 * every call of the program and keeps pointers), analyze/walk/async_match.c and sampler/remote/remote_code.c (removal),
 * import/stacks/paths.c (collapsed stacks were imported 3 to 6 % slower).
 */

__extension__ typedef unsigned __int128 marey__u128;

static inline uint64_t marey__hash_mix(uint64_t a, uint64_t b)
{
    const marey__u128 product = (marey__u128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Of bytes of any number. `seed`: a random one for names from files, which must not be able to make all collide. */
MAREY_PRIVATE_API uint64_t marey__hash_bytes(uint64_t seed, const void *bytes, size_t len);

/* ---- elements by their first bytes ---- */

struct marey__key_map {
    uint32_t *slots; /* 0: empty */
    uint32_t n;
    uint8_t n_slots_log2; /* where there are any */
};

/* A key of two fields that are next to each other, `first` before `second`. */
static inline uint64_t marey__pair_key(uint32_t first, uint32_t second)
{
    return (uint64_t)second << 32 | first; /* the byte order is little-endian, see number_text.c */
}

/*
 * Its highest bits count. `key_size`: a multiple of 4, and a constant, for which this becomes a few instructions. Keys of
 * 8 bytes are only multiplied: numbers that follow each other, which most of them have, then spread without collisions.
 */
static inline uint64_t marey__key_map_hash(const void *key, size_t key_size)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < key_size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, (const char *)key + i, key_size - i < 8 ? 4 : 8);
        hash = (hash ^ hash >> 29 ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    }
    return hash;
}

/* The number of the element of `array` (each of `size` bytes) that begins with `key`; 0 when there is none. */
static inline uint32_t marey__key_map_find(const struct marey__key_map *map, const void *array,
                                           size_t size, const void *key, size_t key_size)
{
    uint32_t number = 0;
    if (MAREY_LIKELY(map->slots != NULL)) {
        const size_t mask = ((size_t)1 << map->n_slots_log2) - 1;
        size_t slot = marey__key_map_hash(key, key_size) >> (64 - map->n_slots_log2);
        while ((number = map->slots[slot]) != 0 &&
               memcmp((const char *)array + (number - 1) * size, key, key_size) != 0)
            slot = (slot + 1) & mask;
    }
    return number;
}

/*
 * Append an element, all zeros but for its key, which is new. Returns its number, 0 on out of memory. Elements without an
 * entry, such as the root of a tree, are appended before all others; no element is removed or moved.
 */
MAREY_PRIVATE_API uint32_t marey__key_map_add(struct marey__key_map *map, void *array, size_t *n,
                                              size_t *cap, size_t size, const void *key,
                                              size_t key_size);

static inline uint32_t marey__key_map_number(struct marey__key_map *map, void *array, size_t *n,
                                             size_t *cap, size_t size, const void *key,
                                             size_t key_size)
{
    void *items;
    memcpy(&items, array, sizeof items);
    const uint32_t number = marey__key_map_find(map, items, size, key, key_size);
    return number != 0 ? number : marey__key_map_add(map, array, n, cap, size, key, key_size);
}

/*
 * The number of the element that begins with the variable `key`; MAREY__MAP_NUMBER appends one when there is none,
 * MAREY__MAP_ADD is for a key that was not found.
 */
#define MAREY__MAP_FIND(map, array, key)                                                           \
    marey__key_map_find((map), (array), sizeof *(array), &(key), sizeof(key))
#define MAREY__MAP_ADD(map, array, n, cap, key)                                                    \
    marey__key_map_add((map), &(array), &(n), &(cap), sizeof *(array), &(key), sizeof(key))
#define MAREY__MAP_NUMBER(map, array, n, cap, key)                                                 \
    marey__key_map_number((map), &(array), &(n), &(cap), sizeof *(array), &(key), sizeof(key))

MAREY_PRIVATE_API void marey__key_map_fini(struct marey__key_map *map);

/* ---- numbers by hash ---- */

struct marey__index {
    struct marey__index_slot {
        uint32_t hash, number; /* 0: empty */
    } * slots;
    size_t n, n_slots;
};

/* The next number that was put for `hash`, 0 when there is no other. `*at` starts as the hash. */
static inline uint32_t marey__index_next(const struct marey__index *index, uint32_t hash, size_t *at)
{
    if (index->n_slots == 0)
        return 0;
    for (;; ++*at) {
        const struct marey__index_slot *const slot = &index->slots[*at & (index->n_slots - 1)];
        if (slot->number == 0)
            return 0;
        if (slot->hash == hash) {
            ++*at;
            return slot->number;
        }
    }
}

/* Returns false on out of memory. */
MAREY_PRIVATE_API bool marey__index_put(struct marey__index *index, uint32_t hash, uint32_t number);
MAREY_PRIVATE_API void marey__index_fini(struct marey__index *index);

/*
 * The number of the element that begins with the variable `key`, appended when there is none as in a map by key, for keys
 * from files: `seed` is a random one.
 */
#define MAREY__INDEX_NUMBER(index, seed, array, n, cap, key)                                       \
    marey__index_number((index), (seed), &(array), &(n), &(cap), sizeof *(array), &(key),          \
                        sizeof(key))
MAREY_PRIVATE_API uint32_t marey__index_number(struct marey__index *index, uint64_t seed,
                                               void *array, size_t *n, size_t *cap, size_t size,
                                               const void *key, size_t key_size);

/* ==== table ==== */

/* table: typed tables (marey/table.h), the texts in them, and the quantile sketch that statistics come from. */

/* Memory that stays where it is until fini, such as copies of texts. A zeroed one is empty. */
struct marey__arena {
    struct marey__arena_block *blocks; /* the latest first */
};

/* `size` bytes at a multiple of `align`, a power of two up to 16; NULL on out of memory. */
MAREY_PRIVATE_API void *marey__arena_take(struct marey__arena *arena, size_t size, size_t align);
/* A copy that ends with a NUL, NULL on out of memory. `text` may be NULL when `len` is 0. */
MAREY_PRIVATE_API char *marey__arena_text(struct marey__arena *arena, const char *text, size_t len);
MAREY_PRIVATE_API void marey__arena_fini(struct marey__arena *arena);

/* ---- names.c: texts to numbers from 0 ---- */

struct marey__name {
    const char *text; /* lent */
    size_t len;
};

struct marey__names {
    struct marey__name *names;
    size_t n, cap;
    struct marey__index by_hash;
    uint64_t seed; /* a random one for texts from files */
};

#define MAREY__NO_NAME UINT32_MAX

/* The number of a text, a new one when it is new; MAREY__NO_NAME on out of memory. */
uint32_t marey__names_number(struct marey__names *names, const char *text, size_t len);
/* The same; a new text is copied into `texts`. */
uint32_t marey__names_keep(struct marey__names *names, struct marey__arena *texts, const char *text,
                           size_t len);
/* The number of a text; MAREY__NO_NAME when it has none. */
uint32_t marey__names_find(const struct marey__names *names, const char *text, size_t len);
void marey__names_fini(struct marey__names *names);
/* Which of two names comes first by its bytes, negative for `a`: numbers depend on who was added first. */
int marey__names_compare(const struct marey__names *names, uint32_t a, uint32_t b);

/*
 * A quantile sketch of nanoseconds, or of any other whole numbers, with a fixed relative error. Values up to 63 have a bucket each; above, every power
 * of two is cut into 64 equal buckets, so that a bucket's middle is at most 1/128 (0.8 %) away from any value in it.
 * Sketches of different threads, processes and machines add up bucket by bucket.
 *
 * A name that was called a few times only keeps the values themselves (exact, and a million names stay affordable).
 * After that each power of two that occurs has a page of 64 counters, half a kilobyte.
 *
 * One thread adds. Others may merge from a sketch meanwhile: they see each value or do not see it yet.
 */
enum {
    MAREY__SKETCH_BITS = 6,
    MAREY__SKETCH_PAGE = 1 << MAREY__SKETCH_BITS,
    MAREY__SKETCH_PAGES =
        64 - MAREY__SKETCH_BITS + 1, /* one linear page, then one for each exponent from 6 to 63 */
    MAREY__SKETCH_FEW = 5,
};

struct marey__sketch {
    uint64_t count;         /* release; loaded with acquire. Exact, as are the next three */
    uint64_t sum, min, max; /* relaxed; `min` and `max` mean nothing while `count` is 0 */
    uint64_t **pages; /* MAREY__SKETCH_PAGES of them, each may be NULL; NULL while all are in `few`. Release, acquire */
    uint64_t few[MAREY__SKETCH_FEW];
};

/* A zeroed sketch is an empty one. Fini leaves an empty one. */
MAREY_PRIVATE_API void marey__sketch_fini(struct marey__sketch *sketch);

/* Add `from` to `into`; false on out of memory, with `into` still a sketch of part of both. only the caller uses `into`. */
MAREY_PRIVATE_API MAREY_WARN_UNUSED bool marey__sketch_merge(struct marey__sketch *into,
                                                             const struct marey__sketch *from);

/* The value below which the share `q` (0..1) of the values lies; 0 for an empty sketch. */
MAREY_PRIVATE_API uint64_t marey__sketch_quantile(const struct marey__sketch *sketch, double q);

/* The same with `n_zeros` zeros besides, which a sketch of what happened does not hold. */
MAREY_PRIVATE_API uint64_t marey__sketch_quantile_with_zeros(const struct marey__sketch *sketch,
                                                             uint64_t n_zeros, double q);

/* Each value, or the middle of each bucket, with how many there are; in no order. */
typedef void marey__sketch_visitor(void *ctx, uint64_t value, uint64_t count);
MAREY_PRIVATE_API void marey__sketch_visit(const struct marey__sketch *sketch,
                                           marey__sketch_visitor *visitor, void *ctx);

/* The first values, and those whose page does not exist yet. Does not touch count, sum, min and max. */
MAREY_PRIVATE_API MAREY_WARN_UNUSED bool marey__sketch_add_slow(struct marey__sketch *sketch,
                                                                uint64_t value);

/*
 * Add `n` values of which only the sum is known: each counts as their mean. With an `n` of 0 it is the sum that grows,
 * of values that are in already. Returns false on out of memory.
 */
MAREY_PRIVATE_API MAREY_WARN_UNUSED bool marey__sketch_add_sum(struct marey__sketch *sketch,
                                                               uint64_t sum, uint64_t n);

/* Make room for pages in an empty sketch, so that it never keeps a few values by themselves. */
MAREY_PRIVATE_API MAREY_WARN_UNUSED bool marey__sketch_reserve(struct marey__sketch *sketch);

/* The page of `value`; its place there is the six bits below the leading one. */
static inline uint32_t marey__sketch_page_of(uint64_t value, uint32_t *bucket)
{
    if (value < MAREY__SKETCH_PAGE) {
        *bucket = (uint32_t)value;
        return 0;
    }
    const uint32_t shift = (uint32_t)(63 - __builtin_clzll(value)) - MAREY__SKETCH_BITS;
    *bucket = (uint32_t)(value >> shift) & (MAREY__SKETCH_PAGE - 1);
    return shift + 1;
}

/* Add one value; a few nanoseconds. Returns false on out of memory: the value is then not in. */
static inline MAREY_WARN_UNUSED bool marey__sketch_add(struct marey__sketch *sketch, uint64_t value)
{
    uint32_t bucket;
    const uint32_t page = marey__sketch_page_of(value, &bucket);
    const uint64_t count = sketch->count;
    if (MAREY_LIKELY(sketch->pages != NULL && sketch->pages[page] != NULL)) {
        uint64_t *const counter = &sketch->pages[page][bucket];
        __atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
    } else if (!marey__sketch_add_slow(sketch, value)) {
        return false;
    }
    if (value < sketch->min || count == 0)
        __atomic_store_n(&sketch->min, value, __ATOMIC_RELAXED);
    if (value > sketch->max)
        __atomic_store_n(&sketch->max, value, __ATOMIC_RELAXED);
    __atomic_store_n(&sketch->sum, sketch->sum + value, __ATOMIC_RELAXED);
    /* Release: meets the acquire in marey__sketch_merge(), which then finds the few values or the pages. */
    __atomic_store_n(&sketch->count, count + 1, __ATOMIC_RELEASE);
    return true;
}

/*
 * The same of a sketch that nobody merges from meanwhile and for which no room was reserved, once its page for the value is
 * there; false, with nothing changed, when it is not.
 */
static inline bool marey__sketch_add_known(struct marey__sketch *sketch, uint64_t value)
{
    uint32_t bucket;
    const uint32_t page = marey__sketch_page_of(value, &bucket);
    uint64_t *const *const pages = sketch->pages;
    if (MAREY_UNLIKELY(pages == NULL || pages[page] == NULL))
        return false;
    pages[page][bucket]++;
    /* One that has pages has values: they are made for the sixth. */
    if (MAREY_UNLIKELY(value < sketch->min))
        sketch->min = value;
    if (MAREY_UNLIKELY(value > sketch->max))
        sketch->max = value;
    sketch->sum += value;
    sketch->count++;
    return true;
}

/* ---- text_units.c: numbers as people read them ---- */

/* Three significant digits and a unit: "1.23 ms". With `unit` ("ns", "us", "ms", "s") the number in that unit, without it. */
MAREY_PRIVATE_API void marey__text_duration(struct marey__buf *buf, double ns, const char *unit);
/* "950", "1.20 M". */
MAREY_PRIVATE_API void marey__text_amount(struct marey__buf *buf, double n);
/* "12.3 samples/s". */
MAREY_PRIVATE_API void marey__text_rate(struct marey__buf *buf, double rate, const char *thing);
/* "2.10 MB". */
MAREY_PRIVATE_API void marey__text_bytes(struct marey__buf *buf, double n);
/* "12.3 %". */
MAREY_PRIVATE_API void marey__text_share(struct marey__buf *buf, double share);
/*
 * Four significant digits, and all of those before the point: 9.919, 123457, 0.0001235. Integers stay as they are. Values
 * just below one, such as a cosine, keep more digits.
 */
MAREY_PRIVATE_API void marey__text_real(struct marey__buf *buf, double value);
/* "1.234 kJ". */
MAREY_PRIVATE_API void marey__text_joules(struct marey__buf *buf, double joules);
/* By the unit of a column: one of the above, or a local date. */
MAREY_PRIVATE_API void marey__text_in_unit(struct marey__buf *buf, double value,
                                           enum marey_unit unit);
/* "1 thread", "2 threads"; from ten thousand on "1.20 M events". `thing` gets an s, or es after an s. */
MAREY_PRIVATE_API void marey__text_count_of(struct marey__buf *buf, uint64_t n, const char *thing);

/*
 * A name or other text from outside, escaped for a terminal (marey_text_escape), and when it is wider than `width`
 * (0: no limit) its middle replaced by "...". Returns its width in columns.
 */
MAREY_PRIVATE_API size_t marey__text_put(struct marey__buf *buf, const char *text, size_t len,
                                         size_t width);

/* Hand the buffer to the stream and empty it. MAREY_ENOMEM when it had failed, MAREY_EIO when the stream refuses. */
MAREY_PRIVATE_API MAREY_WARN_UNUSED marey_status marey__buf_to_stream(struct marey__buf *buf,
                                                                      FILE *out);

/* A column of enum marey_column_type MAREY_TYPE_type and enum marey_unit MAREY_UNIT_unit. */
#define MAREY__COLUMN(name, title, type, unit)                                                     \
    {                                                                                              \
        name, title, MAREY_TYPE_##type, MAREY_UNIT_##unit                                          \
    }
/* Several cells of a row; null for NULL and "", and for NaN. */
MAREY_PRIVATE_API void marey__put_texts(marey_table *table, const char *const *texts, size_t n);
MAREY_PRIVATE_API void marey__put_reals(marey_table *table, const double *values, size_t n);
MAREY_PRIVATE_API void marey__put_counts(marey_table *table, const uint64_t *values, size_t n);
#define MAREY__PUT_CELLS(put, type, table, ...)                                                    \
    put((table), (const type[]){__VA_ARGS__}, sizeof((const type[]){__VA_ARGS__}) / sizeof(type))
#define MAREY__PUT_TEXTS(...) MAREY__PUT_CELLS(marey__put_texts, char *const, __VA_ARGS__)
#define MAREY__PUT_REALS(...) MAREY__PUT_CELLS(marey__put_reals, double, __VA_ARGS__)
#define MAREY__PUT_COUNTS(...) MAREY__PUT_CELLS(marey__put_counts, uint64_t, __VA_ARGS__)

/* By the name of a column that the table has. */
static inline struct marey_cell marey__cell_of(const marey_table *table, size_t row,
                                               const char *column)
{
    return marey_table_cell(table, row, (size_t)marey_table_find(table, column));
}

/* ==== number_text ==== */

/*
 * Numbers as the shortest decimal text that reads back to them in their own type, written as Python's repr() would: 0.1,
 * 1e-05, 16777216.0. No locale has a say.
 *
 *   number_powers.c ── powers of ten to 128 bits, computed once
 *   number_shortest.h ── a number as the fewest decimal digits
 *   number_text.c ── digits as text; integers
 */

/* Bytes that each of these may write, none of them a NUL. They return the end of the text. */
enum { MAREY__NUMBER_ROOM = 40 };
/* Of finite numbers. */
MAREY_PRIVATE_API char *marey__f32_text(char *out, float value);
MAREY_PRIVATE_API char *marey__f64_text(char *out, double value);
MAREY_PRIVATE_API char *marey__i64_text(char *out, int64_t value);
MAREY_PRIVATE_API char *marey__u64_text(char *out, uint64_t value);

/* ---- shared by the files above ---- */

/* The 128 leading bits of 10^n, the rest cut off. */
struct marey__power {
    uint64_t high, low;
};
enum { MAREY__POWER_MIN = -342, MAREY__POWER_MAX = 324, MAREY__POWER_EXACT = 55 };
MAREY_PRIVATE_API extern struct marey__power marey__power_table[MAREY__POWER_MAX - MAREY__POWER_MIN + 1];
MAREY_PRIVATE_API extern _Atomic bool marey__has_powers; /* set with release when the table is made */
MAREY_PRIVATE_API void marey__powers_make(void);

/* What follows from the exponent of a float32 in its bits, 1 to 254. */
struct marey__f32_power {
    uint64_t power;
    int32_t k;
    uint32_t shift;
};
MAREY_PRIVATE_API extern struct marey__f32_power marey__f32_powers[256];

static inline bool marey__powers_are_made(void)
{
    /* Acquire: meets the release in number_powers.c, so that the tables are seen whole. */
    return atomic_load_explicit(&marey__has_powers, memory_order_acquire);
}

/* By n - MAREY__POWER_MIN; made with the first call. Exact for n from 0 to MAREY__POWER_EXACT. Any thread. */
static inline const struct marey__power *marey__powers(void)
{
    if (MAREY_UNLIKELY(!marey__powers_are_made()))
        marey__powers_make();
    return marey__power_table;
}

/* floor(log2(10^n)); right for |n| up to 1233. */
static inline int32_t marey__log2_of_power(int32_t n)
{
    return (int32_t)((n * (int64_t)1741647) >> 19);
}

/* c * 2^q as text, where neighbours of the number are one unit of `c` away; shortest() of number_shortest.h has more. */
char *marey__binary_text(char *out, uint64_t c, int32_t q, bool is_lower_closer);

/* ==== old_name ==== */

/*
 * What files have in them that were written when marey was called kymo, until November 2026. Readers take both names;
 * nothing is written under the old one. tests/data/old-name has a sample of each kind.
 */

#define MAREY__OLD_BLOCK_MAGIC 0x4b4c424bu          /* "KBLK" */
#define MAREY__OLD_POOL_MAGIC 0x3130304c4f4f504bull /* "KPOOL001" */
#define MAREY__OLD_RECORDING "\"kymo recording\""   /* the format in a meta.json */
#define MAREY__OLD_SUFFIX ".kymo"                   /* of a recording's directory */
#define MAREY__OLD_SHM "kymo-"                      /* the begin of a pool's name in /dev/shm */
#define MAREY__OLD_DUMP "kymo_dump"                 /* the version in the manifest of a dump */
#define MAREY__OLD_ABOUT "kymo"                     /* our key in a torch trace */
#define MAREY__OLD_EXPORTER "kymo "                 /* the begin of a speedscope file's exporter */

/* The length of the prefix of a phase's name in a torch trace, "marey:" or "kymo:"; 0 without one. */
MAREY_PRIVATE_API size_t marey__phase_prefix(const char *text, size_t len);

#endif
