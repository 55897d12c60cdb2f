/*
 * base: errors, memory, containers, tables and text for all other folders.
 *
 *   error.c, alloc.c, crc32c.c   one error message per thread; allocation with fault injection for tests
 *   buf.c, map.c, names.c, arena.c, heap.c, run_sort.c, workers.c   buffers, containers, sorting, worker threads
 *   table.c, sketch.c, student_t.c   typed tables with units, quantile sketches, Student's t
 *   say.c, text_units.c, number_*.c, proc_text.c   messages to the user, numbers and units as text, text of /proc
 *   held_file.c, map_file.c, temporary_file.c   descriptors kept safe in the program, mapped files, spill files
 *
 * Input: values from any folder. Output: memory, containers, text, and a status with a message for failures. Does not
 * know clocks, recordings or file formats, and includes no other folder.
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

/* Exported to libmarey-tools of the same build; not part of the API. */
#define MAREY_PRIVATE_API MAREY_API

/* For our own invariants, never for input. */
#define MAREY_ASSERT(x) ((x) ? (void)0 : abort())

#define MAREY__MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAREY__MAX(a, b) ((a) > (b) ? (a) : (b))
#define MAREY__COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- failures: store one message for this thread and return `status` ---- */
MAREY_PRIVATE_API marey_status marey__fail(marey_status status, const char *fmt, ...)
    MAREY_PRINTF(2, 3);
/* MAREY_EIO (MAREY_ENOMEM for ENOMEM) with "cannot FMT: strerror(errno)". Start `fmt` with a verb: "open %s". */
MAREY_PRIVATE_API marey_status marey__fail_errno(const char *fmt, ...) MAREY_PRINTF(1, 2);

/* MAREY_ENOMEM, "out of memory". */
MAREY_PRIVATE_API marey_status marey__no_memory(void);
/* Returns MAREY_ENOMEM from the calling function if `x` (an allocated pointer, or a bool) is false. */
#define MAREY__TRY_MEMORY(x)                                                                       \
    do {                                                                                           \
        if (!(x))                                                                                  \
            return marey__no_memory();                                                             \
    } while (0)

/* ---- messages to the user: each different one once, to the sink (stderr unless the host replaced it) ---- */
MAREY_PRIVATE_API void marey__say(const char *fmt, ...) MAREY_PRINTF(1, 2);
/* The same for messages a user must see (a recording that stopped): no limit on their number, but not twice in a row. */
MAREY_PRIVATE_API void marey__say_always(const char *fmt, ...) MAREY_PRINTF(1, 2);
/* Reports how many marey__say() messages were suppressed since the last call, if any. */
void marey__say_suppressed(void);

/* Call in a forked child: another thread of the parent may have held the lock. */
void marey__say_after_fork(void);

/* ---- memory: malloc and friends, with fault injection for tests ---- */
MAREY_PRIVATE_API void *marey__alloc(size_t size) __attribute__((malloc, alloc_size(1)));
/* For large memory that is filled at once: huge pages save most page faults. */
MAREY_PRIVATE_API void *marey__alloc_large(size_t size) __attribute__((malloc, alloc_size(1)));
MAREY_PRIVATE_API void *marey__calloc(size_t n, size_t size)
    __attribute__((malloc, alloc_size(1, 2)));
MAREY_PRIVATE_API void *marey__realloc(void *p, size_t size) __attribute__((alloc_size(2)));
MAREY_PRIVATE_API char *marey__strndup(const char *s, size_t len);
MAREY_PRIVATE_API void marey__free(void *p);
/*
 * Put after the name of a local variable: calls `function` with its address when the block is left in any way. Example:
 *     struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
 */
#define MAREY__FINALLY(function) __attribute__((cleanup(function), unused))
/* Frees a pointer from marey__alloc when its block is left. Set it to NULL when ownership moves. */
#define MAREY__FREED MAREY__FINALLY(marey__free_at)
static inline void marey__free_at(const void *pointer)
{
    void *memory;
    memcpy(&memory, pointer, sizeof memory);
    marey__free(memory);
}
/* Holds a mutex until the end of the block; once per block. */
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
/* For tests: the n-th allocation from now fails, later ones succeed. 0: none fails. */
MAREY_PRIVATE_API void marey__alloc_fail_nth(uint64_t n);

/*
 * Grows `*array` (capacity n_cap, elements of `size` bytes) to hold `want`, at least doubling it. Returns false on out
 * of memory, with the array unchanged.
 */
MAREY_PRIVATE_API bool marey__grow(void *array, size_t *n_cap, size_t want, size_t size);
/* The same, and sets `*n` to at least `want`; new elements are zero. */
MAREY_PRIVATE_API bool marey__extend(void *array, size_t *n, size_t *n_cap, size_t want, size_t size);
/* Appends the value (last argument) to `array` of `n` elements. Returns false on out of memory, array unchanged. */
#define MAREY__PUSH(array, n, cap, ...)                                                            \
    (marey__grow(&(array), &(cap), (size_t)(n) + 1, sizeof *(array)) &&                            \
     ((array)[(n)++] = (__VA_ARGS__), true))
/*
 * Sets `at` (size_t) to the first index in [from, to) for which the condition (last argument, in terms of `at`) is
 * false, or to `to`. The condition must be true for all indices before that one.
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
 * Defines a comparison by fields, most significant first: MAREY__ORDER(by_rank, struct call, MAREY__UP(rank)
 * MAREY__DOWN(ns)) is a function for qsort(), MAREY__ORDER_RUNS one for marey__sort_runs(). The elements are `x` and
 * `y`.
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

/* ---- a growing byte buffer; out of memory sets `failed` and later puts do nothing ---- */
struct marey__buf {
    char *data;
    size_t len, cap;
    bool failed;
};
MAREY_PRIVATE_API void marey__buf_fini(struct marey__buf *buf);
/* Frees `buf`; if it failed, `into` has failed too. */
static inline void marey__buf_end(struct marey__buf *buf, struct marey__buf *into)
{
    into->failed |= buf->failed;
    marey__buf_fini(buf);
}
/* Appends `len` uninitialized bytes and returns their address; NULL on out of memory. */
MAREY_PRIVATE_API void *marey__buf_extend(struct marey__buf *buf, size_t len);
MAREY_PRIVATE_API void marey__buf_put(struct marey__buf *buf, const void *bytes, size_t len);
MAREY_PRIVATE_API void marey__buf_puts(struct marey__buf *buf, const char *text);
/* Decimal digits; ten times faster than printf. */
MAREY_PRIVATE_API void marey__buf_put_u64(struct marey__buf *buf, uint64_t value);
MAREY_PRIVATE_API void marey__buf_put_i64(struct marey__buf *buf, int64_t value);
/* LEB128: seven bits in each byte, the lowest first, bit 7 set in all but the last. */
MAREY_PRIVATE_API void marey__buf_put_leb128(struct marey__buf *buf, uint64_t value);
/* Reads one; false if it is truncated or exceeds 64 bits. */
MAREY_PRIVATE_API bool marey__take_leb128(const uint8_t **at, const uint8_t *end, uint64_t *number);
MAREY_PRIVATE_API void marey__buf_printf(struct marey__buf *buf, const char *fmt, ...)
    MAREY_PRINTF(2, 3);

/* ---- text ---- */
/* Appends to the string of `*len` bytes in `out`, truncated to `size`. */
MAREY_PRIVATE_API void marey__append(char *out, size_t size, size_t *len, const char *fmt, ...)
    MAREY_PRINTF(4, 5);
/* The length of the well-formed UTF-8 sequence at the start of `text`, or 0. `len` is at least 1. */
MAREY_PRIVATE_API size_t marey__utf8_length(const char *text, size_t len);
/* Appends `text` as valid UTF-8: each byte outside a well-formed sequence becomes U+FFFD. */
MAREY_PRIVATE_API void marey__utf8_put(struct marey__buf *buf, const char *text, size_t len);
/* The same into `to`, NUL-terminated and truncated at a character to fit `cap` bytes. Returns the length. */
MAREY_PRIVATE_API size_t marey__utf8_copy(const char *text, size_t len, char *to, size_t cap);
/* Append one code point. */
MAREY_PRIVATE_API void marey__utf8_put_char(struct marey__buf *buf, uint32_t c);
/* Appends `text` as a quoted JSON string: valid UTF-8, control characters escaped. */
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

/* ---- /proc and similar foreign text. `text` need not be NUL-terminated ---- */
/* Reads up to size - 1 bytes of a file into `out`, NUL-terminated. Returns the length, 0 if the file cannot be read. */
MAREY_PRIVATE_API size_t marey__read_text(const char *path, char *out, size_t size);
/* Parses the decimal number at the start of `text`, saturating at UINT64_MAX. Returns false if there is none. */
MAREY_PRIVATE_API bool marey__parse_number(const char *text, size_t len, uint64_t *out);
/* Parses up to `n` numbers separated by blanks from the start. Returns how many there were. */
size_t marey__parse_numbers(const char *text, size_t len, uint64_t *out, size_t n);
/* Reads the first line of a file, without its newline. Returns the length, 0 if the file cannot be read. */
MAREY_PRIVATE_API size_t marey__read_line(const char *path, char *out, size_t size);
/* marey__read_text of /proc/PID/NAME, or of /proc/PID/task/TID/NAME if `tid` is not 0. */
MAREY_PRIVATE_API size_t marey__read_proc(int64_t pid, int64_t tid, const char *name, char *out,
                                          size_t size);
/* The number in the line `name` ("\nCapEff:") of /proc/PID/status; 0 if it is missing. */
MAREY_PRIVATE_API uint64_t marey__status_number(const char *status, const char *name, int base);
/* The last number of the NSpid line: the pid in the innermost pid namespace; 0 if it is missing. */
MAREY_PRIVATE_API uint64_t marey__status_innermost_pid(const char *status);
/* Fields of /proc/PID/stat. The parser returns false if the text is truncated. */
struct marey__process_stat {
    char state;                                /* field 3 */
    uint64_t parent, reaped_ticks, start_time; /* fields 4, 16 + 17, 22 */
    uint64_t start_code, start_stack; /* fields 26 and 28, which change on exec; 0: unknown */
};
MAREY_PRIVATE_API bool marey__parse_process_stat(const char *text, size_t len,
                                                 struct marey__process_stat *out);
/* The same for a process, or for a thread if `tid` is not 0; false if it does not exist. */
MAREY_PRIVATE_API bool marey__read_process_stat(int64_t pid, int64_t tid,
                                                struct marey__process_stat *out);

/* write(2) until all is written; false with errno set. Exceeding a file-size limit fails with EFBIG, without SIGXFSZ. */
MAREY_PRIVATE_API bool marey__write_all(int fd, const void *bytes, size_t len);
/* Reads from offset `at`, or from the file position if -1; short only at end of file. -1 with errno set. */
MAREY_PRIVATE_API ssize_t marey__read_all(int fd, void *to, size_t len, off_t at);

/* ---- held_file.c: files that stay open inside the user's program ---- */

/* Moves `fd` above 100, or above 2 if the limit is that low. On failure returns -1 with errno set and closes `fd`. */
MAREY_PRIVATE_API int marey__raise_fd(int fd);
/* openat(2) with close-on-exec and such a number. */
MAREY_PRIVATE_API int marey__open_at(int folder, const char *path, int flags, mode_t mode);
struct marey__held_file {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};
/* Takes ownership of `fd`. Returns false if `fd` is -1. */
MAREY_PRIVATE_API bool marey__held_set(struct marey__held_file *file, int fd);
/* Whether the descriptor still refers to the file: the program may have closed it and reused the number. */
MAREY_PRIVATE_API bool marey__held_is_ours(const struct marey__held_file *file, struct stat *st);
/* The descriptor, or -1 with EBADF if it no longer refers to the file. */
MAREY_PRIVATE_API int marey__held_fd(const struct marey__held_file *file);
/* After that: opens the same file again by name. False if the name is gone or another file now. */
bool marey__held_reopen(struct marey__held_file *file, const char *path, int flags);
/* marey__write_all() to the file; EBADF if the descriptor is not ours. */
bool marey__held_write(const struct marey__held_file *file, const void *bytes, size_t len);
/* Closes the descriptor if it is ours. */
MAREY_PRIVATE_API void marey__held_close(struct marey__held_file *file);
/* Between these a write beyond RLIMIT_FSIZE fails with EFBIG instead of SIGXFSZ. The second preserves errno. */
MAREY_PRIVATE_API void marey__size_limit_begin(sigset_t *before);
MAREY_PRIVATE_API void marey__size_limit_end(const sigset_t *before);

/* ---- threads ---- */

/* Starts a thread with all signals blocked; `stack_bytes` 0: default size. Returns 0 or an error number. */
MAREY_PRIVATE_API int marey__thread_create(pthread_t *thread, size_t stack_bytes,
                                           void *(*run)(void *), void *arg);

/* Takes tasks until none is left. `may_tell` is true only in the calling thread, for progress output. */
typedef void marey__worker(void *ctx, bool may_tell);
/* `n_jobs` 0: one per CPU core. The calling thread works too, and works alone if no thread can be started. */
MAREY_PRIVATE_API void marey__run_parallel(marey__worker *work, void *ctx, size_t n_jobs,
                                           size_t n_tasks);
/* The maximum number of threads used, including the calling one. */
MAREY_PRIVATE_API size_t marey__worker_count(size_t n_jobs, size_t n_tasks);

/* ---- of libmarey-tools: heap.c, map_file.c, run_sort.c, temporary_file.c ---- */

/* A priority queue of numbers, lowest key first; ties go to the lower number. */
struct marey__heap {
    struct marey__heap_item {
        uint64_t key;
        uint32_t number;
    } * items; /* the first is the lowest */
    size_t n, cap;
    uint32_t *places; /* by number, 1-based; 0: not in the heap */
    size_t places_cap;
};
/* Inserts a number or changes its key; changing cannot fail. Returns false on out of memory. */
bool marey__heap_put(struct marey__heap *heap, uint32_t number, uint64_t key);
/* Removes a number that is in the heap. */
void marey__heap_remove(struct marey__heap *heap, uint32_t number);
void marey__heap_fini(struct marey__heap *heap);

/*
 * Maps a regular file that others may change: at least one byte, followed by zeros. NULL on failure. If the file is
 * truncated meanwhile, the lost pages read as zeros instead of raising SIGBUS. Private and read-only. marey__unmap_file
 * accepts NULL.
 */
void *marey__map_file(int fd, size_t *len);
void marey__unmap_file(void *bytes, size_t len);
/* The same for a private file mapping made by the caller. Returns false on out of memory. Unguard before munmap. */
MAREY_WARN_UNUSED bool marey__map_guard(const void *begin, size_t len);
void marey__map_unguard(const void *begin);

typedef bool marey__is_before(const void *a, const void *b);
/* Sorts `n` elements of `size` bytes. Returns false on out of memory, with the order unchanged. */
MAREY_WARN_UNUSED bool marey__sort_runs(void *base, size_t n, size_t size,
                                        marey__is_before *is_before);

/* Opens an unnamed file for reading and writing in `folder` (may be NULL), else TMPDIR, else /var/tmp, else /tmp. */
MAREY_WARN_UNUSED marey_status marey__temporary_open(const char *folder, int *fd);
/* Replaces the content of the file `path`; on failure it is unchanged. Writes to pipes and devices directly. */
MAREY_WARN_UNUSED marey_status marey__replace_file(const char *path, const void *bytes, size_t len);

/* ---- student_t.c: Student's t ---- */

/* The t quantile: |t| with `df` (at least 1) degrees of freedom stays below it with probability `p`. */
double marey__t_quantile(double p, double df);

/* ==== map ==== */

/*
 * base: hash tables. Both store 1-based indices into an array owned by the caller, and never shrink.
 *
 *   struct marey__key_map     finds an element by its first bytes (a key of fixed size): sums by (thread, stack), the nodes
 *                         of a tree by (parent, name)
 *   struct marey__index   finds an element by a hash; the caller compares. For strings and for keys in several places
 *
 * Tables with other requirements: record/intern.c, record/handle.c and nvtx/inject_names.c (readers take no lock),
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

/* Hashes any number of bytes. Use a random `seed` for names from files, so that crafted names cannot all collide. */
MAREY_PRIVATE_API uint64_t marey__hash_bytes(uint64_t seed, const void *bytes, size_t len);

/* ---- elements by their first bytes ---- */

struct marey__key_map {
    uint32_t *slots; /* 0: empty */
    uint32_t n;
    uint8_t n_slots_log2; /* valid once there are slots */
};

/* A key of two fields that are next to each other, `first` before `second`. */
static inline uint64_t marey__pair_key(uint32_t first, uint32_t second)
{
    return (uint64_t)second << 32 | first; /* little-endian, see number_text.c */
}

/*
 * The upper bits are used. `key_size` is a multiple of 4 and a constant, so this compiles to a few instructions. 8-byte
 * keys are only multiplied: most are consecutive numbers, which spread without collisions.
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

/* The number of the element of `array` (each of `size` bytes) that begins with `key`, or 0. */
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
 * Appends a zeroed element with a new key. Returns its number, 0 on out of memory. Elements without an entry, such as
 * the root of a tree, must be appended before all others; elements are never removed or moved.
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

/* The number of the element that begins with `key` (a variable). NUMBER appends a missing one; ADD expects it missing. */
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

/* The next number stored for `hash`, or 0. `*at` starts as the hash. */
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
 * The number of the element that begins with the variable `key`, appended if missing. Like MAREY__MAP_NUMBER, for keys
 * from files: `seed` is random.
 */
#define MAREY__INDEX_NUMBER(index, seed, array, n, cap, key)                                       \
    marey__index_number((index), (seed), &(array), &(n), &(cap), sizeof *(array), &(key),          \
                        sizeof(key))
MAREY_PRIVATE_API uint32_t marey__index_number(struct marey__index *index, uint64_t seed,
                                               void *array, size_t *n, size_t *cap, size_t size,
                                               const void *key, size_t key_size);

/* ==== table ==== */

/* table: typed tables (marey/table.h), their strings, and the quantile sketch behind statistics. */

/* Memory that stays in place until fini, such as copies of strings. Zero-initialized is empty. */
struct marey__arena {
    struct marey__arena_block *blocks; /* newest first */
};

/* Returns `size` bytes aligned to `align`, a power of two up to 16; NULL on out of memory. */
MAREY_PRIVATE_API void *marey__arena_take(struct marey__arena *arena, size_t size, size_t align);
/* Returns a NUL-terminated copy, NULL on out of memory. `text` may be NULL if `len` is 0. */
MAREY_PRIVATE_API char *marey__arena_text(struct marey__arena *arena, const char *text, size_t len);
MAREY_PRIVATE_API void marey__arena_fini(struct marey__arena *arena);

/* ---- names.c: strings to numbers from 0 ---- */

struct marey__name {
    const char *text; /* lent */
    size_t len;
};

struct marey__names {
    struct marey__name *names;
    size_t n, cap;
    struct marey__index by_hash;
    uint64_t seed; /* random for strings from files */
};

#define MAREY__NO_NAME UINT32_MAX

/* The number of a string, assigned if it is new; MAREY__NO_NAME on out of memory. */
uint32_t marey__names_number(struct marey__names *names, const char *text, size_t len);
/* The same; a new string is copied into `texts`. */
uint32_t marey__names_keep(struct marey__names *names, struct marey__arena *texts, const char *text,
                           size_t len);
/* The number of a string, MAREY__NO_NAME if it has none. */
uint32_t marey__names_find(const struct marey__names *names, const char *text, size_t len);
void marey__names_fini(struct marey__names *names);
/* Compares two names by their bytes, negative if `a` is first. Numbers depend on insertion order. */
int marey__names_compare(const struct marey__names *names, uint32_t a, uint32_t b);

/*
 * A quantile sketch of nanoseconds or other integers, with a fixed relative error. Values up to 63 have a bucket each;
 * above, each power of two is split into 64 equal buckets, so the middle of a bucket is at most 1/128 (0.8 %) from any
 * value in it. Sketches of different threads, processes and machines add up bucket by bucket.
 *
 * The first few values are stored exactly, so that a million rarely called names stay affordable. After that, each
 * power of two that occurs has a page of 64 counters (512 bytes).
 *
 * One thread adds. Other threads may merge from the sketch concurrently; they see each value entirely or not at all.
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
    uint64_t sum, min, max; /* relaxed; `min` and `max` are undefined while `count` is 0 */
    uint64_t **pages; /* MAREY__SKETCH_PAGES, each may be NULL; NULL while all are in `few`. Release, acquire */
    uint64_t few[MAREY__SKETCH_FEW];
};

/* Zero-initialized is empty. fini() leaves an empty sketch. */
MAREY_PRIVATE_API void marey__sketch_fini(struct marey__sketch *sketch);

/* Adds `from` to `into`, which only the caller uses. On out of memory returns false with a part of `from` added. */
MAREY_PRIVATE_API MAREY_WARN_UNUSED bool marey__sketch_merge(struct marey__sketch *into,
                                                             const struct marey__sketch *from);

/* The quantile `q` (0..1); 0 for an empty sketch. */
MAREY_PRIVATE_API uint64_t marey__sketch_quantile(const struct marey__sketch *sketch, double q);

/* The same, as if the sketch held `n_zeros` zeros as well. */
MAREY_PRIVATE_API uint64_t marey__sketch_quantile_with_zeros(const struct marey__sketch *sketch,
                                                             uint64_t n_zeros, double q);

/* Called with each value, or the middle of each bucket, and its count, in no particular order. */
typedef void marey__sketch_visitor(void *ctx, uint64_t value, uint64_t count);
MAREY_PRIVATE_API void marey__sketch_visit(const struct marey__sketch *sketch,
                                           marey__sketch_visitor *visitor, void *ctx);

/* Stores one of the first values, or one whose page does not exist yet. Leaves count, sum, min and max unchanged. */
MAREY_PRIVATE_API MAREY_WARN_UNUSED bool marey__sketch_add_slow(struct marey__sketch *sketch,
                                                                uint64_t value);

/*
 * Adds `n` values of which only the sum is known; each counts as the mean. With `n` 0, `sum` is added to values already
 * in the sketch. Returns false on out of memory.
 */
MAREY_PRIVATE_API MAREY_WARN_UNUSED bool marey__sketch_add_sum(struct marey__sketch *sketch,
                                                               uint64_t sum, uint64_t n);

/* Allocates pages in an empty sketch, so that it never stores single values. */
MAREY_PRIVATE_API MAREY_WARN_UNUSED bool marey__sketch_reserve(struct marey__sketch *sketch);

/* The page of `value`; its bucket there is the six bits below the leading one. */
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

/* Adds one value, in a few nanoseconds. Returns false on out of memory, with the value not added. */
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
 * The same for a sketch without concurrent merges or reservation. Returns false, with nothing changed, if the page of
 * the value does not exist yet.
 */
static inline bool marey__sketch_add_known(struct marey__sketch *sketch, uint64_t value)
{
    uint32_t bucket;
    const uint32_t page = marey__sketch_page_of(value, &bucket);
    uint64_t *const *const pages = sketch->pages;
    if (MAREY_UNLIKELY(pages == NULL || pages[page] == NULL))
        return false;
    pages[page][bucket]++;
    /* A sketch with pages has values: pages are made for the sixth. */
    if (MAREY_UNLIKELY(value < sketch->min))
        sketch->min = value;
    if (MAREY_UNLIKELY(value > sketch->max))
        sketch->max = value;
    sketch->sum += value;
    sketch->count++;
    return true;
}

/* ---- text_units.c: numbers for display ---- */

/* Three significant digits and a unit: "1.23 ms". With `unit` ("ns", "us", "ms", "s") the number in it, without unit. */
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
 * Four significant digits and all integer digits: 9.919, 123457, 0.0001235. Integers are unchanged. Values just below
 * one, such as a cosine, keep more digits.
 */
MAREY_PRIVATE_API void marey__text_real(struct marey__buf *buf, double value);
/* "1.234 kJ". */
MAREY_PRIVATE_API void marey__text_joules(struct marey__buf *buf, double joules);
/* Formats by the unit of a column: one of the above, or a local date. */
MAREY_PRIVATE_API void marey__text_in_unit(struct marey__buf *buf, double value,
                                           enum marey_unit unit);
/* "1 thread", "2 threads"; from ten thousand "1.20 M events". The plural of `thing` takes s, or es after an s. */
MAREY_PRIVATE_API void marey__text_count_of(struct marey__buf *buf, uint64_t n, const char *thing);

/*
 * A name or other foreign string, escaped for a terminal (marey_text_escape). If it is wider than `width` (0: no
 * limit), the middle is replaced by "...". Returns the width in columns.
 */
MAREY_PRIVATE_API size_t marey__text_put(struct marey__buf *buf, const char *text, size_t len,
                                         size_t width);

/* Writes the buffer to the stream and empties it. MAREY_ENOMEM if the buffer had failed, MAREY_EIO on a write error. */
MAREY_PRIVATE_API MAREY_WARN_UNUSED marey_status marey__buf_to_stream(struct marey__buf *buf,
                                                                      FILE *out);

/* A column with MAREY_TYPE_type and MAREY_UNIT_unit. */
#define MAREY__COLUMN(name, title, type, unit)                                                     \
    {                                                                                              \
        name, title, MAREY_TYPE_##type, MAREY_UNIT_##unit                                          \
    }
/* Adds several string cells; NULL and "" become null. */
MAREY_PRIVATE_API void marey__put_texts(marey_table *table, const char *const *texts, size_t n);
MAREY_PRIVATE_API void marey__put_reals(marey_table *table, const double *values, size_t n);
MAREY_PRIVATE_API void marey__put_counts(marey_table *table, const uint64_t *values, size_t n);
#define MAREY__PUT_CELLS(put, type, table, ...)                                                    \
    put((table), (const type[]){__VA_ARGS__}, sizeof((const type[]){__VA_ARGS__}) / sizeof(type))
#define MAREY__PUT_TEXTS(...) MAREY__PUT_CELLS(marey__put_texts, char *const, __VA_ARGS__)
#define MAREY__PUT_REALS(...) MAREY__PUT_CELLS(marey__put_reals, double, __VA_ARGS__)
#define MAREY__PUT_COUNTS(...) MAREY__PUT_CELLS(marey__put_counts, uint64_t, __VA_ARGS__)

/* The cell of a column that must exist, by name. */
static inline struct marey_cell marey__cell_of(const marey_table *table, size_t row,
                                               const char *column)
{
    return marey_table_cell(table, row, (size_t)marey_table_find(table, column));
}

/* ==== number_text ==== */

/*
 * The shortest decimal that reads back to the same number in its type, formatted as Python's repr() does: 0.1, 1e-05,
 * 16777216.0. Independent of the locale.
 *
 *   number_powers.c ── powers of ten to 128 bits, computed once
 *   number_shortest.h ── a number as the fewest decimal digits
 *   number_text.c ── digits as text; integers
 */

/* The maximum that each of these writes, without a NUL. They return the end of the string. */
enum { MAREY__NUMBER_ROOM = 40 };
/* Finite numbers only. */
MAREY_PRIVATE_API char *marey__f32_text(char *out, float value);
MAREY_PRIVATE_API char *marey__f64_text(char *out, double value);
MAREY_PRIVATE_API char *marey__i64_text(char *out, int64_t value);
MAREY_PRIVATE_API char *marey__u64_text(char *out, uint64_t value);

/* ---- shared by the files above ---- */

/* The 128 leading bits of 10^n, truncated. */
struct marey__power {
    uint64_t high, low;
};
enum { MAREY__POWER_MIN = -342, MAREY__POWER_MAX = 324, MAREY__POWER_EXACT = 55 };
MAREY_PRIVATE_API extern struct marey__power marey__power_table[MAREY__POWER_MAX - MAREY__POWER_MIN + 1];
MAREY_PRIVATE_API extern _Atomic bool marey__has_powers; /* set with release when the table is made */
MAREY_PRIVATE_API void marey__powers_make(void);

/* Values derived from the exponent bits of a float32, 1 to 254. */
struct marey__f32_power {
    uint64_t power;
    int32_t k;
    uint32_t shift;
};
MAREY_PRIVATE_API extern struct marey__f32_power marey__f32_powers[256];

static inline bool marey__powers_are_made(void)
{
    /* Acquire: pairs with the release in number_powers.c, so that the tables are complete. */
    return atomic_load_explicit(&marey__has_powers, memory_order_acquire);
}

/* Indexed by n - MAREY__POWER_MIN; computed on the first call. Exact for n from 0 to MAREY__POWER_EXACT. Any thread. */
static inline const struct marey__power *marey__powers(void)
{
    if (MAREY_UNLIKELY(!marey__powers_are_made()))
        marey__powers_make();
    return marey__power_table;
}

/* floor(log2(10^n)); exact for |n| up to 1233. */
static inline int32_t marey__log2_of_power(int32_t n)
{
    return (int32_t)((n * (int64_t)1741647) >> 19);
}

/* Formats c * 2^q, where adjacent numbers differ by one unit of `c`; see shortest() in number_shortest.h. */
char *marey__binary_text(char *out, uint64_t c, int32_t q, bool is_lower_closer);

/* ==== old_name ==== */

/*
 * Identifiers in files from before November 2026, when marey was called kymo. Readers accept both names; nothing is
 * written under the old one. tests/data/old-name has a sample of each kind.
 */

#define MAREY__OLD_BLOCK_MAGIC 0x4b4c424bu          /* "KBLK" */
#define MAREY__OLD_POOL_MAGIC 0x3130304c4f4f504bull /* "KPOOL001" */
#define MAREY__OLD_RECORDING "\"kymo recording\""   /* the format in a meta.json */
#define MAREY__OLD_SUFFIX ".kymo"                   /* of a recording's directory */
#define MAREY__OLD_SHM "kymo-"                      /* prefix of a pool's name in /dev/shm */
#define MAREY__OLD_DUMP "kymo_dump"                 /* the version in the manifest of a dump */
#define MAREY__OLD_ABOUT "kymo"                     /* our key in a torch trace */
#define MAREY__OLD_EXPORTER "kymo "                 /* prefix of a speedscope file's exporter */

/* The length of a phase name's prefix in a torch trace, "marey:" or "kymo:"; 0 if it has none. */
MAREY_PRIVATE_API size_t marey__phase_prefix(const char *text, size_t len);

#endif
