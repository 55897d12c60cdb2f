/*
 * base: errors, allocation, sentences to the user, byte buffers, UTF-8, checksums. Everything in core may use it.
 */
#ifndef MAREY_BASE_INTERNAL_H
#define MAREY_BASE_INTERNAL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/select.h> /* sigset_t, without all of <signal.h> */
#include <sys/types.h>

#include <marey/base.h>

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
MAREY_PRIVATE_API void *marey__calloc(size_t n, size_t size)
    __attribute__((malloc, alloc_size(1, 2)));
MAREY_PRIVATE_API void *marey__realloc(void *p, size_t size) __attribute__((alloc_size(2)));
MAREY_PRIVATE_API char *marey__strndup(const char *s, size_t len);
MAREY_PRIVATE_API void marey__free(void *p);
/* Tests: the n-th allocation from now fails, and the ones after it succeed; 0 switches this off. */
MAREY_PRIVATE_API void marey__alloc_fail_nth(uint64_t n);

/*
 * Grow `*array` (n_cap elements of `size` bytes) so that `want` fit; false leaves it as it was. Doubles.
 */
MAREY_PRIVATE_API bool marey__grow(void *array, size_t *n_cap, size_t want, size_t size);
/* Append the value (the last argument) to `array` of `n` elements; false on out of memory, with the array unchanged. */
#define MAREY__PUSH(array, n, cap, ...)                                                            \
    (marey__grow(&(array), &(cap), (size_t)(n) + 1, sizeof *(array)) &&                            \
     ((array)[(n)++] = (__VA_ARGS__), true))

/* ---- a growing byte buffer; running out of memory sets `failed` and later puts do nothing ---- */
struct marey__buf {
    char *data;
    size_t len, cap;
    bool failed;
};
MAREY_PRIVATE_API void marey__buf_fini(struct marey__buf *buf);
/* Room for `len` bytes at the end, counted as written; NULL when there is no memory. */
MAREY_PRIVATE_API void *marey__buf_extend(struct marey__buf *buf, size_t len);
MAREY_PRIVATE_API void marey__buf_put(struct marey__buf *buf, const void *bytes, size_t len);
MAREY_PRIVATE_API void marey__buf_puts(struct marey__buf *buf, const char *text);
/* Decimal digits; a tenth of what printf takes for it. */
MAREY_PRIVATE_API void marey__buf_put_u64(struct marey__buf *buf, uint64_t value);
MAREY_PRIVATE_API void marey__buf_put_i64(struct marey__buf *buf, int64_t value);
/* LEB128: seven bits in each byte, the lowest first, bit 7 set in all but the last. */
MAREY_PRIVATE_API void marey__buf_put_leb128(struct marey__buf *buf, uint64_t value);
MAREY_PRIVATE_API void marey__buf_printf(struct marey__buf *buf, const char *fmt, ...)
    MAREY_PRINTF(2, 3);

/* ---- text ---- */
/* Append to the text of `*len` bytes in `out`, as far as `size` allows; what does not fit is cut. */
MAREY_PRIVATE_API void marey__append(char *out, size_t size, size_t *len, const char *fmt, ...)
    MAREY_PRINTF(4, 5);
/* The length of the well-formed UTF-8 sequence that `text` begins with, 0 when there is none; `len` at least 1. */
MAREY_PRIVATE_API size_t marey__utf8_length(const char *text, size_t len);
/*
 * Append `text` as valid UTF-8: each byte that is not part of a well-formed sequence becomes U+FFFD.
 */
MAREY_PRIVATE_API void marey__utf8_put(struct marey__buf *buf, const char *text, size_t len);
/* Append `text` as a JSON string with its quotes, valid UTF-8, control characters escaped. */
MAREY_PRIVATE_API void marey__json_put(struct marey__buf *buf, const char *text, size_t len);

/* ---- CRC-32C (Castagnoli), the running value starting from 0 ---- */
MAREY_PRIVATE_API uint32_t marey__crc32c(uint32_t crc, const void *bytes, size_t len);

/* ---- /proc and its like: bytes from outside. `text` need not end in a NUL ---- */
/* Read a file into `out`, at most size - 1 bytes, with a NUL behind. How many, 0 when it cannot be read. */
MAREY_PRIVATE_API size_t marey__read_text(const char *path, char *out, size_t size);
/* The decimal number that `text` begins with, at most UINT64_MAX; false when it begins with none. */
MAREY_PRIVATE_API bool marey__parse_number(const char *text, size_t len, uint64_t *out);
/* Up to `n` numbers with blanks between, from the start; how many there were. */
size_t marey__parse_numbers(const char *text, size_t len, uint64_t *out, size_t n);
/* What is wanted of /proc/PID/stat; false when it is not whole. */
struct marey__process_stat {
    uint64_t parent, reaped_ticks, start_time; /* fields 4, 16 + 17, 22 */
};
MAREY_PRIVATE_API bool marey__parse_process_stat(const char *text, size_t len,
                                                 struct marey__process_stat *out);

/* write(2) until all is out; false with errno set. A limit on the size of files is EFBIG and not a signal. */
MAREY_PRIVATE_API bool marey__write_all(int fd, const void *bytes, size_t len);

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

/* Take tasks until none is left; `may_tell` in the calling thread alone, for progress. */
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
/* Put a number in, or give it another key, which cannot fail. False without memory. */
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
/* `n` elements of `size` bytes. False without memory, with nothing moved. */
MAREY_WARN_UNUSED bool marey__sort_runs(void *base, size_t n, size_t size,
                                        marey__is_before *is_before);

/* Open a file without a name for reading and writing, in TMPDIR, else /var/tmp, else /tmp; the caller closes it. */
MAREY_WARN_UNUSED marey_status marey__temporary_open(int *fd);
/* The same, in `folder` first, unless that is NULL. */
MAREY_WARN_UNUSED marey_status marey__temporary_open_in(const char *folder, int *fd);
/* Make `bytes` the content of the file `path`. On failure an old file is as it was. Pipes and devices are written to. */
MAREY_WARN_UNUSED marey_status marey__replace_file(const char *path, const void *bytes, size_t len);

/* ---- student_t.c: Student's t ---- */

/* The value that |t| with `df` (at least 1) degrees of freedom stays below with probability `p`. */
double marey__t_quantile(double p, double df);

#endif
