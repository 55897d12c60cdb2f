/*
 * Recordings past the internal limits of readers, for test_sizes.py. Each argument is a thing to do N times, in order:
 *
 *   ranges=N      a range "a" around a range "b"
 *   names=N       a range with a new name
 *   deep=N        a range inside the one before; 64 names in turn
 *   paths=N       a range with a new path: 2048 names in as many others
 *   search=N      N ranges in an outer one, which ends first
 *   threads=N     a thread with a range
 *   steps=N       an iteration with a range, in epochs of 1000
 *   epochs=N      an epoch with one iteration
 *   counters=N    a value of a counter
 *   marks=N       a mark
 *   async=N       async ranges, all begun before the first ends
 *   payloads=N    a range with a text
 *   long=N        a range whose name has N bytes
 *   processes=N   a forked rank with a range
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <marey/marey.h>

static marey_id numbered(const char *what, long i)
{
    char name[64];
    const int len = snprintf(name, sizeof name, "%s%ld", what, i);
    return marey_site_intern(name, (size_t)len, NULL, 0, NULL, 0);
}

static void run_ranges(long n)
{
    for (long i = 0; i < n; i++) {
        MAREY_SCOPE("a");
        MAREY_SCOPE("b");
    }
}

static void run_names(long n)
{
    for (long i = 0; i < n; i++) {
        const marey_id id = numbered("name", i);
        marey_begin(id);
        marey_end(id);
    }
}

static void run_deep(long n)
{
    marey_id ids[64];
    for (long i = 0; i < 64; i++)
        ids[i] = numbered("level", i);
    for (long i = 0; i < n; i++)
        marey_begin(ids[i % 64]);
    while (n-- > 0)
        marey_end(ids[n % 64]);
}

static void run_paths(long n)
{
    enum { SIDE = 2048 };
    marey_id ids[SIDE];
    for (long i = 0; i < SIDE; i++)
        ids[i] = numbered("inner", i);
    for (long i = 0; i < n; i += SIDE) {
        const marey_id outer = numbered("outer", i / SIDE);
        marey_begin(outer);
        for (long k = 0; k < SIDE && i + k < n; k++) {
            marey_begin(ids[k]);
            marey_end(ids[k]);
        }
        marey_end(outer);
    }
}

static void run_search(long n)
{
    marey_begin(MAREY_ID("outer"));
    for (long i = 0; i < n; i++)
        marey_begin(MAREY_ID("inner"));
    marey_end(MAREY_ID("outer"));
    for (long i = 0; i < n; i++)
        marey_end(MAREY_ID("inner"));
}

static void *run_thread(void *unused)
{
    (void)unused;
    MAREY_SCOPE("in a thread");
    return NULL;
}

static void run_threads(long n)
{
    pthread_t thread;
    for (long i = 0; i < n && pthread_create(&thread, NULL, run_thread, NULL) == 0; i++)
        pthread_join(thread, NULL);
}

static void run_steps(long n)
{
    for (long i = 0; i < n; i++) {
        if (i % 1000 == 0)
            marey_epoch_begin();
        {
            MAREY_SCOPE("forward");
        }
        marey_iteration_finish_by("large", 1);
        if (i % 1000 == 999 || i == n - 1)
            marey_epoch_end();
    }
}

static void run_epochs(long n)
{
    for (long i = 0; i < n; i++) {
        marey_epoch_begin();
        marey_iteration_finish_by("large", 1);
        marey_epoch_end();
    }
}

static void run_counters(long n)
{
    for (long i = 0; i < n; i++)
        marey_counter(MAREY_ID("loss"), (double)i);
}

static void run_marks(long n)
{
    for (long i = 0; i < n; i++)
        marey_mark(MAREY_ID("mark"));
}

static void run_async(long n)
{
    marey_async *ranges = malloc((size_t)n * sizeof *ranges);
    for (long i = 0; ranges != NULL && i < n; i++)
        ranges[i] = marey_async_begin(MAREY_ID("in flight"));
    for (long i = 0; ranges != NULL && i < n; i++)
        marey_async_end(ranges[i]);
    free(ranges);
}

static void run_payloads(long n)
{
    for (long i = 0; i < n; i++) {
        const struct marey_payload text = {MAREY_PAYLOAD_TEXT, 4, {.text = "text"}};
        marey_begin_payload(MAREY_ID("with text"), &text);
        marey_end(0);
    }
}

static void run_long(long n)
{
    char *name = malloc((size_t)n);
    if (name == NULL)
        return;
    memset(name, 'n', (size_t)n);
    marey_begin(marey_site_intern(name, (size_t)n, NULL, 0, NULL, 0));
    marey_end(0);
    free(name);
}

static void run_processes(long n)
{
    for (long i = 0; i < n; i++) {
        const pid_t pid = fork();
        if (pid == 0) {
            marey_set_rank((int)i, (int)n);
            run_ranges(1);
            exit(0);
        }
        waitpid(pid, NULL, 0);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(long n);
    } things[] = {
        {"ranges", run_ranges},   {"names", run_names},         {"deep", run_deep},
        {"threads", run_threads}, {"steps", run_steps},         {"counters", run_counters},
        {"marks", run_marks},     {"async", run_async},         {"payloads", run_payloads},
        {"long", run_long},       {"processes", run_processes}, {"paths", run_paths},
        {"search", run_search},   {"epochs", run_epochs},
    };
    for (int i = 1; i < argc; i++) {
        const char *value = strchr(argv[i], '=');
        for (size_t k = 0; value != NULL && k < sizeof things / sizeof things[0]; k++)
            if (strncmp(argv[i], things[k].name, (size_t)(value - argv[i])) == 0)
                things[k].run(atol(value + 1));
    }
    return 0;
}
