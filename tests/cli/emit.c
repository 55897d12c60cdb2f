/*
 * A program to be measured by the tests of the command line. Each argument is a thing to do, in order:
 *
 *   N            N times a range "outer" around a range "inner"
 *   recurse=N    a range "again" inside itself, N deep, a leaf in each
 *   payload      a range with a text, a mark with a number, a counter, an async range
 *   exit=S       leave with status S
 *   kill=S       die of signal S
 *   wait         say "ready", then wait for a signal for at most 20 s and say which came
 *   open         begin a range that never ends
 *   awkward      ranges whose names are not made for files
 *   thread       a second thread, "helper", with a range "helped"
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <marey/marey.h>

static void nested(int n)
{
    for (int i = 0; i < n; i++) {
        MAREY_SCOPE("outer", .category = "test");
        MAREY_SCOPE("inner \"quoted\"");
    }
}

/* Long enough to be seen on any clock. */
static void spend_a_microsecond(void)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_sec == start.tv_sec && now.tv_nsec - start.tv_nsec < 1000);
}

static void recurse(int n)
{
    if (n == 0)
        return;
    MAREY_SCOPE("again");
    spend_a_microsecond();
    {
        MAREY_SCOPE("leaf");
    }
    recurse(n - 1);
}

static void payloads(void)
{
    const struct marey_payload text = {MAREY_PAYLOAD_TEXT, 5, {.text = "a\"b\n,"}};
    const struct marey_payload number = {MAREY_PAYLOAD_I64, 0, {.i64 = -7}};
    marey_begin_payload(MAREY_ID("with text"), &text);
    marey_mark_payload(MAREY_ID("marked"), &number);
    marey_counter(MAREY_ID("loss"), 0.25);
    const marey_async async = marey_async_begin(MAREY_ID("in flight"));
    marey_end(0);
    marey_async_end(async);
}

static void wait_for_signals(void)
{
    sigset_t set;
    const struct timespec limit = {20, 0}, more = {0, 300000000};
    sigfillset(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    printf("ready\n");
    fflush(stdout);
    int sig = sigtimedwait(&set, NULL, &limit);
    for (; sig > 0; sig = sigtimedwait(&set, NULL, &more)) {
        printf("got %s\n", sigabbrev_np(sig));
        fflush(stdout);
    }
}

static void awkward(void)
{
    static const char *const names[] = {
        "a;b",       "two\nlines",   "layer 12", "loss 0.5 ",    "</text><script>x=1</script>",
        "&amp; \"'", "\x01\x1b[31m", "\xff\xfe", "\xef\xbf\xbf", "\xf0\x9f\x98\x80"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        marey_begin(marey_site_intern(names[i], strlen(names[i]), NULL, 0, NULL, 0));
        spend_a_microsecond();
        recurse(1);
        marey_end(0);
    }
}

static void *help(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "helper");
    MAREY_SCOPE("helped");
    spend_a_microsecond();
    return NULL;
}

static void other_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, help, NULL) == 0)
        pthread_join(thread, NULL);
}

/* Also where whoever started the tests ignores the signal, as a shell does with SIGINT in the background. */
static void die_of(int number)
{
    signal(number, SIG_DFL);
    kill(getpid(), number);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "payload") == 0)
            payloads();
        else if (strcmp(argv[i], "wait") == 0)
            wait_for_signals();
        else if (strcmp(argv[i], "open") == 0)
            marey_begin(MAREY_ID("never ends"));
        else if (strncmp(argv[i], "recurse=", 8) == 0)
            recurse(atoi(argv[i] + 8));
        else if (strcmp(argv[i], "awkward") == 0)
            awkward();
        else if (strcmp(argv[i], "thread") == 0)
            other_thread();
        else if (strncmp(argv[i], "exit=", 5) == 0)
            return atoi(argv[i] + 5);
        else if (strncmp(argv[i], "kill=", 5) == 0)
            die_of(atoi(argv[i] + 5));
        else
            nested(atoi(argv[i]));
    }
    return 0;
}
