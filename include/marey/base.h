/*
 * marey/base.h: what every other header leans on: the export mark, status codes, the last error, versions.
 *
 * Calls that can fail return a marey_status and leave one sentence in marey_last_error(). Calls on a measuring path
 * cannot fail: they return nothing and count what they had to drop.
 */
#ifndef MAREY_BASE_H
#define MAREY_BASE_H

#include <stddef.h>
#include <stdint.h>

#define MAREY_VERSION "0.1.0"
/* Grows whenever a struct, a macro or a function of these headers changes in a way an old caller would notice. */
#define MAREY_ABI 1

#define MAREY_API __attribute__((visibility("default")))
#define MAREY_WARN_UNUSED __attribute__((warn_unused_result))
#define MAREY_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define MAREY_LIKELY(x) __builtin_expect(!!(x), 1)
#define MAREY_UNLIKELY(x) __builtin_expect(!!(x), 0)

#ifdef __cplusplus
extern "C" {
#endif

/* Code, name and a few words, from one list: X(name, value, words). */
#define MAREY_STATUS_LIST(X)                                                                       \
    X(OK, 0, "fine")                                                                               \
    X(EINVAL, -1, "a wrong argument")                                                              \
    X(ENOMEM, -2, "out of memory")                                                                 \
    X(EIO, -3, "the system refused a file operation")                                              \
    X(EFORMAT, -4, "not a file of this format, or a damaged one")                                  \
    X(ESTATE, -5, "not possible in the present state")                                             \
    X(EMISMATCH, -6, "ranges do not nest")                                                         \
    X(EDUPLICATE, -7, "a second copy of libmarey in this process")                                 \
    X(EUNAVAILABLE, -8, "this build or machine lacks what is asked for")

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

/* "MAREY_EIO" and so on; "MAREY_?" for a number that is no status. Any thread, any time. */
MAREY_API const char *marey_status_name(marey_status status);

/*
 * The sentence of the latest failure on this thread ("" before any). Names in it are escaped, see marey_text_escape. Lent
 * until the next failure on this thread.
 */
MAREY_API const char *marey_last_error(void);

/*
 * `len` bytes of a name or path from outside, safe to print: valid UTF-8, with U+FFFD for other bytes; what a terminal
 * obeys or reorders (C0 and C1 controls, DEL, line separators, marks of direction such as U+202E) as \n, \t, \x1b,
 * \u202e. Writes at most `size` bytes with a NUL, cut between characters. Returns the length of the whole, as snprintf
 * does. Any thread; allocates nothing.
 */
MAREY_API size_t marey_text_escape(const char *text, size_t len, char *into, size_t size);

/* The version of the library that is loaded, as MAREY_VERSION and MAREY_ABI name the one compiled against. */
MAREY_API const char *marey_version(void);
MAREY_API int marey_abi(void);

/* The file this library was loaded from; the command line finds its neighbours by it. Lent for ever. */
MAREY_API const char *marey_library_path(void);

#ifdef __cplusplus
}
#endif
#endif
