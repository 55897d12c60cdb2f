/*
 * marey/base.h: the basis of every other header: export macro, status codes, last error, versions.
 *
 * Calls that can fail return a marey_status and set marey_last_error() to one sentence. Calls on a measuring path
 * cannot fail: they return nothing and count the events they drop.
 */
#ifndef MAREY_BASE_H
#define MAREY_BASE_H

#include <stddef.h>
#include <stdint.h>

#define MAREY_VERSION "0.1.0"
/* Increases with every incompatible change of a struct, macro or function in these headers. */
#define MAREY_ABI 1

#define MAREY_API __attribute__((visibility("default")))
#define MAREY_WARN_UNUSED __attribute__((warn_unused_result))
#define MAREY_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define MAREY_LIKELY(x) __builtin_expect(!!(x), 1)
#define MAREY_UNLIKELY(x) __builtin_expect(!!(x), 0)

#ifdef __cplusplus
#define MAREY_BEGIN_C extern "C" {
#define MAREY_END_C }
#else
#define MAREY_BEGIN_C /* Declarations of C follow, up to MAREY_END_C; nothing to a compiler for C. */
#define MAREY_END_C   /* The end of them. */
#endif

MAREY_BEGIN_C

/* Status codes: X(name, value, description). */
#define MAREY_STATUS_LIST(X)                                                                       \
    X(OK, 0, "fine")                                                                               \
    X(EINVAL, -1, "invalid argument")                                                              \
    X(ENOMEM, -2, "out of memory")                                                                 \
    X(EIO, -3, "the system refused a file operation")                                              \
    X(EFORMAT, -4, "not a file of this format, or a damaged one")                                  \
    X(ESTATE, -5, "not possible in the current state")                                             \
    X(EMISMATCH, -6, "ranges do not nest")                                                         \
    X(EDUPLICATE, -7, "a second copy of libmarey in this process")                                 \
    X(EUNAVAILABLE, -8, "not supported by this build or machine")

typedef enum marey_status {
#define MAREY_STATUS_ENUM(name, value, words) MAREY_##name = value,
    MAREY_STATUS_LIST(MAREY_STATUS_ENUM)
#undef MAREY_STATUS_ENUM
} marey_status;

/* Forward a failure to the caller. */
#define MAREY_TRY(expr)                                                                            \
    do {                                                                                           \
        const marey_status marey_try_status_ = (expr);                                             \
        if (marey_try_status_ != MAREY_OK)                                                         \
            return marey_try_status_;                                                              \
    } while (0)

/* "MAREY_EIO" and so on; "MAREY_?" for any other number. Any thread, any time. */
MAREY_API const char *marey_status_name(marey_status status);

/*
 * Message of the latest failure on this thread ("" before any). Names in it are escaped, see marey_text_escape. Lent
 * until the next failure on this thread.
 */
MAREY_API const char *marey_last_error(void);

/*
 * Escape `len` bytes of an untrusted name or path for printing: valid UTF-8, with U+FFFD for invalid bytes. Control
 * characters (C0, C1, DEL), line separators and direction marks such as U+202E become \n, \t, \x1b, \u202e. Writes at
 * most `size` bytes including the NUL and truncates between characters. Returns the full length, as snprintf does. Any
 * thread; does not allocate.
 */
MAREY_API size_t marey_text_escape(const char *text, size_t len, char *into, size_t size);

/* Version and ABI of the loaded library. MAREY_VERSION and MAREY_ABI are those of the headers. */
MAREY_API const char *marey_version(void);
MAREY_API int marey_abi(void);

/* Path of the file this library was loaded from; the command line locates its other files from it. Static. */
MAREY_API const char *marey_library_path(void);

MAREY_END_C
#endif
