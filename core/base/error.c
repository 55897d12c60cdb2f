/* The last error of each thread, and the names of statuses. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base_internal.h"

/* Long enough for two paths and a reason; what is longer is cut. */
static __thread char last_error[1024];

static void remember(const char *fmt, va_list args, const char *tail)
{
    const int n = vsnprintf(last_error, sizeof last_error, fmt, args);
    if (tail != NULL && n >= 0 && (size_t)n < sizeof last_error)
        snprintf(last_error + n, sizeof last_error - (size_t)n, ": %s", tail);
}

kymo_status kymo__fail(kymo_status status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    remember(fmt, args, NULL);
    va_end(args);
    return status;
}

kymo_status kymo__fail_errno(const char *fmt, ...)
{
    const int error = errno;
    char words[128];
    va_list args;
    va_start(args, fmt);
    remember(fmt, args, strerror_r(error, words, sizeof words));
    va_end(args);
    errno = error;
    return error == ENOMEM ? KYMO_ENOMEM : KYMO_EIO;
}

const char *kymo_last_error(void)
{
    return last_error;
}

const char *kymo_status_name(kymo_status status)
{
    switch (status) {
#define STATUS_CASE(name, value, words)                                                            \
    case KYMO_##name:                                                                              \
        return "KYMO_" #name;
        KYMO_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    }
    return "KYMO_?";
}

const char *kymo_version(void)
{
    return KYMO_VERSION;
}

int kymo_abi(void)
{
    return KYMO_ABI;
}
