/* Sentences to the user: each different one once, to stderr or to the host's own sink. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_internal.h"
#include <kymo/switchboard.h>

enum { MAX_SAID = 64 };

/* `lock` guards everything below. Never taken on a measuring path; a forked child gets it free. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t said[MAX_SAID]; /* checksums of what was said */
static size_t n_said;
static kymo_sink *user_sink;
static void *user_ctx;

static bool is_new(const char *sentence)
{
    const uint32_t sum = kymo__crc32c(0, sentence, strlen(sentence));
    for (size_t i = 0; i < n_said; i++)
        if (said[i] == sum)
            return false;
    if (n_said == MAX_SAID)
        return false;
    said[n_said++] = sum;
    return true;
}

void kymo__say(const char *fmt, ...)
{
    char raw[1100], sentence[1100];
    va_list args;
    va_start(args, fmt);
    vsnprintf(raw, sizeof raw, fmt, args);
    va_end(args);
    kymo_text_escape(raw, strlen(raw), sentence, sizeof sentence); /* names in it come from outside */

    pthread_mutex_lock(&lock);
    const bool speak = is_new(sentence);
    kymo_sink *const sink = user_sink;
    void *const ctx = user_ctx;
    pthread_mutex_unlock(&lock);
    if (!speak)
        return;
    if (sink != NULL)
        sink(ctx, sentence);
    else
        dprintf(STDERR_FILENO, "kymo: %s\n", sentence);
}

void kymo_set_sink(kymo_sink *sink, void *ctx)
{
    pthread_mutex_lock(&lock);
    user_sink = sink;
    user_ctx = ctx;
    n_said = 0;
    pthread_mutex_unlock(&lock);
}

void kymo__say_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
}
