/* The last error of each thread, and the names of statuses. */
#include <errno.h>

#include "base/internal.h"

/* Enough for two paths and a reason; longer messages are truncated. */
enum { SENTENCE_BYTES = 1024 };

/*
 * Only a pointer is thread-local: libmarey uses static TLS (see record/lane.c), and a library that needs much of it
 * cannot be loaded late. The key's destructor frees the string. On out of memory there is no message.
 */
static __thread char *last_error;
static pthread_key_t free_key;

static void forget(void *text)
{
    last_error = NULL; /* another destructor of this thread may still fail */
    free(text);
}

static void make_key(void)
{
    pthread_key_create(&free_key, forget);
}

static char *sentence(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (last_error == NULL) {
        pthread_once(&once, make_key);
        last_error = calloc(1, SENTENCE_BYTES);
        pthread_setspecific(free_key, last_error);
    }
    return last_error;
}

static void remember(const char *head, const char *fmt, va_list args, const char *tail)
{
    char raw[SENTENCE_BYTES], *const text = sentence();
    if (text == NULL)
        return;
    size_t n = 0;
    marey__append(raw, sizeof raw, &n, "%s", head);
    vsnprintf(raw + n, sizeof raw - n, fmt, args);
    n = strlen(raw);
    if (tail != NULL)
        marey__append(raw, sizeof raw, &n, ": %s", tail);
    marey_text_escape(raw, strlen(raw), text, SENTENCE_BYTES);
}

marey_status marey__fail(marey_status status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    remember("", fmt, args, NULL);
    va_end(args);
    return status;
}

marey_status marey__no_memory(void)
{
    return marey__fail(MAREY_ENOMEM, "out of memory");
}

marey_status marey__fail_errno(const char *fmt, ...)
{
    const int error = errno;
    char words[128];
    va_list args;
    va_start(args, fmt);
    remember("cannot ", fmt, args, strerror_r(error, words, sizeof words));
    va_end(args);
    errno = error;
    return error == ENOMEM ? MAREY_ENOMEM : MAREY_EIO;
}

const char *marey_last_error(void)
{
    return last_error != NULL ? last_error : "";
}

const char *marey_status_name(marey_status status)
{
    switch (status) {
#define STATUS_CASE(name, value, words)                                                            \
    case MAREY_##name:                                                                             \
        return "MAREY_" #name;
        MAREY_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    }
    return "MAREY_?";
}

const char *marey_version(void)
{
    return MAREY_VERSION;
}

int marey_abi(void)
{
    return MAREY_ABI;
}
