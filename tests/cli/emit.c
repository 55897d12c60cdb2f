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
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <kymo/kymo.h>

static void nested(int n)
{
    for (int i = 0; i < n; i++) {
        KYMO_SCOPE("outer", .category = "test");
        KYMO_SCOPE("inner \"quoted\"");
    }
}

static void recurse(int n)
{
    if (n == 0)
        return;
    KYMO_SCOPE("again");
    {
        KYMO_SCOPE("leaf");
    }
    recurse(n - 1);
}

static void payloads(void)
{
    const struct kymo_payload text = {KYMO_PAYLOAD_TEXT, 5, {.text = "a\"b\n,"}};
    const struct kymo_payload number = {KYMO_PAYLOAD_I64, 0, {.i64 = -7}};
    kymo_begin_payload(KYMO_ID("with text"), &text);
    kymo_mark_payload(KYMO_ID("marked"), &number);
    kymo_counter(KYMO_ID("loss"), 0.25);
    const kymo_async async = kymo_async_begin(KYMO_ID("in flight"));
    kymo_end(0);
    kymo_async_end(async);
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
            kymo_begin(KYMO_ID("never ends"));
        else if (strncmp(argv[i], "recurse=", 8) == 0)
            recurse(atoi(argv[i] + 8));
        else if (strncmp(argv[i], "exit=", 5) == 0)
            return atoi(argv[i] + 5);
        else if (strncmp(argv[i], "kill=", 5) == 0)
            die_of(atoi(argv[i] + 5));
        else
            nested(atoi(argv[i]));
    }
    return 0;
}
