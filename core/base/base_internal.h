/*
 * base: errors, allocation, sentences to the user, byte buffers, UTF-8, checksums. Everything in core may use it.
 */
#ifndef KYMO_BASE_INTERNAL_H
#define KYMO_BASE_INTERNAL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/select.h> /* sigset_t, without all of <signal.h> */
#include <sys/types.h>

#include <kymo/base.h>

struct stat;

/* Shared between libkymo and libkymo-tools of one build; no promise to anybody else. */
#define KYMO_PRIVATE_API KYMO_API

/* States what we guarantee ourselves; never used on input. */
#define KYMO_ASSERT(x) ((x) ? (void)0 : abort())

#define KYMO__MIN(a, b) ((a) < (b) ? (a) : (b))
#define KYMO__MAX(a, b) ((a) > (b) ? (a) : (b))
#define KYMO__COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- failures: remember one sentence for this thread and return `status` ---- */
KYMO_PRIVATE_API kymo_status kymo__fail(kymo_status status, const char *fmt, ...) KYMO_PRINTF(2, 3);
/* KYMO_EIO (KYMO_ENOMEM for ENOMEM); "cannot ", the words (a verb first: "open %s"), ": " and errno's own. */
KYMO_PRIVATE_API kymo_status kymo__fail_errno(const char *fmt, ...) KYMO_PRINTF(1, 2);

/* ---- sentences to the user: each different one once, to the sink (stderr unless the host replaced it) ---- */
KYMO_PRIVATE_API void kymo__say(const char *fmt, ...) KYMO_PRINTF(1, 2);
/* The same, for what a user must know (a recording that stopped): however much was said, but not twice in a row. */
KYMO_PRIVATE_API void kymo__say_always(const char *fmt, ...) KYMO_PRINTF(1, 2);
/* How many sentences of kymo__say() were left out because there were too many, since the last call; nothing if none. */
void kymo__say_suppressed(void);

/* In a forked child, whose parent's other threads may have held the lock. */
void kymo__say_after_fork(void);

/* ---- memory: malloc and friends, with a way for tests to fail the n-th ---- */
KYMO_PRIVATE_API void *kymo__alloc(size_t size) __attribute__((malloc, alloc_size(1)));
KYMO_PRIVATE_API void *kymo__calloc(size_t n, size_t size) __attribute__((malloc, alloc_size(1, 2)));
KYMO_PRIVATE_API void *kymo__realloc(void *p, size_t size) __attribute__((alloc_size(2)));
KYMO_PRIVATE_API char *kymo__strndup(const char *s, size_t len);
KYMO_PRIVATE_API void kymo__free(void *p);
/* Tests: the n-th allocation from now fails, and the ones after it succeed; 0 switches this off. */
KYMO_PRIVATE_API void kymo__alloc_fail_nth(uint64_t n);

/*
 * Grow `*array` (n_cap elements of `size` bytes) so that `want` fit; false leaves it as it was. Doubles.
 */
KYMO_PRIVATE_API bool kymo__grow(void *array, size_t *n_cap, size_t want, size_t size);

/* ---- a growing byte buffer; running out of memory sets `failed` and later puts do nothing ---- */
struct kymo__buf {
    char *data;
    size_t len, cap;
    bool failed;
};
KYMO_PRIVATE_API void kymo__buf_fini(struct kymo__buf *buf);
/* Room for `len` bytes at the end, counted as written; NULL when there is no memory. */
KYMO_PRIVATE_API void *kymo__buf_extend(struct kymo__buf *buf, size_t len);
KYMO_PRIVATE_API void kymo__buf_put(struct kymo__buf *buf, const void *bytes, size_t len);
KYMO_PRIVATE_API void kymo__buf_puts(struct kymo__buf *buf, const char *text);
/* Decimal digits; a tenth of what printf takes for it. */
KYMO_PRIVATE_API void kymo__buf_put_u64(struct kymo__buf *buf, uint64_t value);
KYMO_PRIVATE_API void kymo__buf_put_i64(struct kymo__buf *buf, int64_t value);
/* LEB128: seven bits in each byte, the lowest first, bit 7 set in all but the last. */
KYMO_PRIVATE_API void kymo__buf_put_leb128(struct kymo__buf *buf, uint64_t value);
KYMO_PRIVATE_API void kymo__buf_printf(struct kymo__buf *buf, const char *fmt, ...) KYMO_PRINTF(2, 3);

/* ---- text ---- */
/* Append to the text of `*len` bytes in `out`, as far as `size` allows; what does not fit is cut. */
KYMO_PRIVATE_API void kymo__append(char *out, size_t size, size_t *len, const char *fmt, ...)
    KYMO_PRINTF(4, 5);
/* The length of the well-formed UTF-8 sequence that `text` begins with, 0 when there is none; `len` at least 1. */
KYMO_PRIVATE_API size_t kymo__utf8_length(const char *text, size_t len);
/*
 * Append `text` as valid UTF-8: each byte that is not part of a well-formed sequence becomes U+FFFD.
 */
KYMO_PRIVATE_API void kymo__utf8_put(struct kymo__buf *buf, const char *text, size_t len);
/* Append `text` as a JSON string with its quotes, valid UTF-8, control characters escaped. */
KYMO_PRIVATE_API void kymo__json_put(struct kymo__buf *buf, const char *text, size_t len);

/* ---- CRC-32C (Castagnoli), the running value starting from 0 ---- */
KYMO_PRIVATE_API uint32_t kymo__crc32c(uint32_t crc, const void *bytes, size_t len);

/* ---- /proc and its like: bytes from outside. `text` need not end in a NUL ---- */
/* Read a file into `out`, at most size - 1 bytes, with a NUL behind. How many, 0 when it cannot be read. */
KYMO_PRIVATE_API size_t kymo__read_text(const char *path, char *out, size_t size);
/* The decimal number that `text` begins with, at most UINT64_MAX; false when it begins with none. */
KYMO_PRIVATE_API bool kymo__parse_number(const char *text, size_t len, uint64_t *out);
/* Up to `n` numbers with blanks between, from the start; how many there were. */
size_t kymo__parse_numbers(const char *text, size_t len, uint64_t *out, size_t n);
/* What is wanted of /proc/PID/stat; false when it is not whole. */
struct kymo__process_stat {
    uint64_t parent, reaped_ticks, start_time; /* fields 4, 16 + 17, 22 */
};
KYMO_PRIVATE_API bool kymo__parse_process_stat(const char *text, size_t len,
                                               struct kymo__process_stat *out);

/* write(2) until all is out; false with errno set. A limit on the size of files is EFBIG and not a signal. */
KYMO_PRIVATE_API bool kymo__write_all(int fd, const void *bytes, size_t len);

/* ---- held_file.c: files that stay open inside the user's program ---- */

/* Give `fd` a number above 100, or above 2 where that many are not allowed; -1 with errno set, and `fd` closed. */
KYMO_PRIVATE_API int kymo__raise_fd(int fd);
/* openat(2), close-on-exec, with such a number. */
KYMO_PRIVATE_API int kymo__open_at(int folder, const char *path, int flags, mode_t mode);
struct kymo__held_file {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};
/* Takes ownership of `fd`. Returns false if `fd` is -1. */
KYMO_PRIVATE_API bool kymo__held_set(struct kymo__held_file *file, int fd);
/* Whether the descriptor is still that of the file: the program may have closed it, and opened another under its number. */
KYMO_PRIVATE_API bool kymo__held_is_ours(const struct kymo__held_file *file, struct stat *st);
/* The descriptor; -1 with EBADF where it is not the file's any more. */
KYMO_PRIVATE_API int kymo__held_fd(const struct kymo__held_file *file);
/* After it is not: open the same file again by its name. False when that is another file now, or none. */
bool kymo__held_reopen(struct kymo__held_file *file, const char *path, int flags);
/* kymo__write_all() into it; EBADF when it is not ours. */
bool kymo__held_write(const struct kymo__held_file *file, const void *bytes, size_t len);
/* Closes the descriptor if it is ours. */
KYMO_PRIVATE_API void kymo__held_close(struct kymo__held_file *file);
/*
 * Between these two a file that reaches RLIMIT_FSIZE is the error EFBIG, and the program gets no SIGXFSZ. The second
 * keeps errno.
 */
KYMO_PRIVATE_API void kymo__size_limit_begin(sigset_t *before);
KYMO_PRIVATE_API void kymo__size_limit_end(const sigset_t *before);

/* ---- threads ---- */

/* Take tasks until none is left; `may_tell` in the calling thread alone, for progress. */
typedef void kymo__worker(void *ctx, bool may_tell);
/* `n_jobs` 0: as many as there are cores. The calling thread works too, and alone when no other can be had. */
KYMO_PRIVATE_API void kymo__work_together(kymo__worker *work, void *ctx, size_t n_jobs,
                                          size_t n_tasks);
/* How many threads these will be at most, the calling one counted. */
KYMO_PRIVATE_API size_t kymo__work_crew(size_t n_jobs, size_t n_tasks);

/* ---- of libkymo-tools: heap.c, map_file.c, run_sort.c, temporary_file.c ---- */

/* Numbers by a key, the lowest first; of equal keys the lower number. */
struct kymo__heap {
    struct kymo__heap_item {
        uint64_t key;
        uint32_t number;
    } * items; /* the first one is the lowest */
    size_t n, cap;
    uint32_t *places; /* by number, from 1; 0: it is not in */
    size_t places_cap;
};
/* Put a number in, or give it another key, which cannot fail. False without memory. */
bool kymo__heap_put(struct kymo__heap *heap, uint32_t number, uint64_t key);
/* Take out a number that is in. */
void kymo__heap_remove(struct kymo__heap *heap, uint32_t number);
void kymo__heap_fini(struct kymo__heap *heap);

/*
 * The bytes of a regular file that others may change, at least one, with zeros behind; NULL: it cannot be had. Where the
 * file is cut meanwhile there are zeros, too, and no SIGBUS. Private and read-only. kymo__unmap_file takes NULL.
 */
void *kymo__map_file(int fd, size_t *len);
void kymo__unmap_file(void *bytes, size_t len);
/* The same for a private mapping of a file made by the caller. Returns false on out of memory. Before munmap: unguard. */
KYMO_WARN_UNUSED bool kymo__map_guard(const void *begin, size_t len);
void kymo__map_unguard(const void *begin);

typedef bool kymo__is_before(const void *a, const void *b);
/* `n` elements of `size` bytes. False without memory, with nothing moved. */
KYMO_WARN_UNUSED bool kymo__sort_runs(void *base, size_t n, size_t size, kymo__is_before *is_before);

/* Open a file without a name for reading and writing, in TMPDIR, else /var/tmp, else /tmp; the caller closes it. */
KYMO_WARN_UNUSED kymo_status kymo__temporary_open(int *fd);
/* The same, in `folder` first, unless that is NULL. */
KYMO_WARN_UNUSED kymo_status kymo__temporary_open_in(const char *folder, int *fd);
/* Make `bytes` the content of the file `path`. On failure an old file is as it was. Pipes and devices are written to. */
KYMO_WARN_UNUSED kymo_status kymo__replace_file(const char *path, const void *bytes, size_t len);

#endif
