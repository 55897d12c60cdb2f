/* Messages to the user, each different one once, to stderr or to the host's sink. */
#include <unistd.h>

#include "base/internal.h"
#include <marey/switchboard.h>

enum { MAX_SAID = 64 };

/* `lock` guards everything below. Never taken on a measuring path; reinitialized in a forked child. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t said[MAX_SAID]; /* checksums of printed messages */
static size_t n_said;
static uint64_t n_suppressed;   /* since the number was last reported */
static uint32_t last_important; /* checksum of the last marey__say_always() message */
static marey_sink *user_sink;
static void *user_ctx;

static bool is_new(const char *sentence)
{
    const uint32_t sum = marey__crc32c(0, sentence, strlen(sentence));
    for (size_t i = 0; i < n_said; i++)
        if (said[i] == sum)
            return false;
    if (n_said == MAX_SAID) {
        n_suppressed++;
        return false;
    }
    said[n_said++] = sum;
    return true;
}

static bool is_not_the_last(const char *sentence)
{
    const uint32_t sum = marey__crc32c(0, sentence, strlen(sentence));
    const bool is_another = sum != last_important;
    last_important = sum;
    return is_another;
}

static void say(bool (*may_say)(const char *), const char *fmt, va_list args)
{
    char raw[1100], sentence[1100];
    vsnprintf(raw, sizeof raw, fmt, args);
    marey_text_escape(raw, strlen(raw), sentence, sizeof sentence); /* names in it are foreign input */
    pthread_mutex_lock(&lock);
    const bool speak = may_say(sentence);
    marey_sink *const sink = user_sink;
    void *const ctx = user_ctx;
    pthread_mutex_unlock(&lock);
    if (!speak)
        return;
    if (sink != NULL)
        sink(ctx, sentence);
    else
        dprintf(STDERR_FILENO, "marey: %s\n", sentence);
}

void marey__say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(is_new, fmt, args);
    va_end(args);
}

void marey__say_always(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(is_not_the_last, fmt, args);
    va_end(args);
}

void marey__say_suppressed(void)
{
    pthread_mutex_lock(&lock);
    const uint64_t n = n_suppressed;
    n_suppressed = 0;
    pthread_mutex_unlock(&lock);
    if (n > 0)
        marey__say_always("%" PRIu64 " more message%s not shown, after the first %d", n,
                          n == 1 ? " was" : "s were", MAX_SAID);
}

void marey_set_sink(marey_sink *sink, void *ctx)
{
    MAREY__HOLD(&lock);
    user_sink = sink;
    user_ctx = ctx;
    n_said = 0;
    n_suppressed = 0;
    last_important = 0;
}

void marey__say_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
}
