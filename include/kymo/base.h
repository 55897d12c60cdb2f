/*
 * kymo/base.h: what every other header leans on: the export mark, status codes, the last error, versions.
 *
 * Calls that can fail return a kymo_status and leave one sentence in kymo_last_error(). Calls on a measuring path
 * cannot fail: they return nothing and count what they had to drop.
 */
#ifndef KYMO_BASE_H
#define KYMO_BASE_H

#include <stddef.h>
#include <stdint.h>

#define KYMO_VERSION "0.1.0"
/* Grows whenever a struct, a macro or a function of these headers changes in a way an old caller would notice. */
#define KYMO_ABI 1

#define KYMO_API __attribute__((visibility("default")))
#define KYMO_WARN_UNUSED __attribute__((warn_unused_result))
#define KYMO_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define KYMO_LIKELY(x) __builtin_expect(!!(x), 1)
#define KYMO_UNLIKELY(x) __builtin_expect(!!(x), 0)

#ifdef __cplusplus
extern "C" {
#endif

/* Code, name and a few words, from one list: X(name, value, words). */
#define KYMO_STATUS_LIST(X)                                                                        \
    X(OK, 0, "fine")                                                                               \
    X(EINVAL, -1, "a wrong argument")                                                              \
    X(ENOMEM, -2, "out of memory")                                                                 \
    X(EIO, -3, "the system refused a file operation")                                              \
    X(EFORMAT, -4, "not a file of this format, or a damaged one")                                  \
    X(ESTATE, -5, "not possible in the present state")                                             \
    X(EMISMATCH, -6, "ranges do not nest")                                                         \
    X(EDUPLICATE, -7, "a second copy of libkymo in this process")                                  \
    X(EUNAVAILABLE, -8, "this build or machine lacks what is asked for")

typedef enum kymo_status {
#define KYMO_STATUS_ENUM(name, value, words) KYMO_##name = value,
    KYMO_STATUS_LIST(KYMO_STATUS_ENUM)
#undef KYMO_STATUS_ENUM
} kymo_status;

/* Forward a failure to the caller. */
#define KYMO_TRY(expr)                                                                             \
    do {                                                                                           \
        const kymo_status kymo_try_status_ = (expr);                                               \
        if (kymo_try_status_ != KYMO_OK)                                                           \
            return kymo_try_status_;                                                               \
    } while (0)

/* "KYMO_EIO" and so on; "KYMO_?" for a number that is no status. Any thread, any time. */
KYMO_API const char *kymo_status_name(kymo_status status);

/*
 * The sentence of the latest failure on this thread ("" before any). Names in it are escaped, see kymo_text_escape. Lent
 * until the next failure on this thread.
 */
KYMO_API const char *kymo_last_error(void);

/*
 * `len` bytes of a name or path from outside, safe to print: valid UTF-8, with U+FFFD for other bytes; what a terminal
 * obeys or reorders (C0 and C1 controls, DEL, line separators, marks of direction such as U+202E) as \n, \t, \x1b,
 * \u202e. Writes at most `size` bytes with a NUL, cut between characters. Returns the length of the whole, as snprintf
 * does. Any thread; allocates nothing.
 */
KYMO_API size_t kymo_text_escape(const char *text, size_t len, char *into, size_t size);

/* The version of the library that is loaded, as KYMO_VERSION and KYMO_ABI name the one compiled against. */
KYMO_API const char *kymo_version(void);
KYMO_API int kymo_abi(void);

/* The file this library was loaded from; the command line finds its neighbours by it. Lent for ever. */
KYMO_API const char *kymo_library_path(void);

#ifdef __cplusplus
}
#endif
#endif
