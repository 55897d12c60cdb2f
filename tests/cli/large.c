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

#include <kymo/kymo.h>

static kymo_id numbered(const char *what, long i)
{
    char name[64];
    const int len = snprintf(name, sizeof name, "%s%ld", what, i);
    return kymo_site_intern(name, (size_t)len, NULL, 0, NULL, 0);
}

static void run_ranges(long n)
{
    for (long i = 0; i < n; i++) {
        KYMO_SCOPE("a");
        KYMO_SCOPE("b");
    }
}

static void run_names(long n)
{
    for (long i = 0; i < n; i++) {
        const kymo_id id = numbered("name", i);
        kymo_begin(id);
        kymo_end(id);
    }
}

static void run_deep(long n)
{
    kymo_id ids[64];
    for (long i = 0; i < 64; i++)
        ids[i] = numbered("level", i);
    for (long i = 0; i < n; i++)
        kymo_begin(ids[i % 64]);
    while (n-- > 0)
        kymo_end(ids[n % 64]);
}

static void run_paths(long n)
{
    enum { SIDE = 2048 };
    kymo_id ids[SIDE];
    for (long i = 0; i < SIDE; i++)
        ids[i] = numbered("inner", i);
    for (long i = 0; i < n; i += SIDE) {
        const kymo_id outer = numbered("outer", i / SIDE);
        kymo_begin(outer);
        for (long k = 0; k < SIDE && i + k < n; k++) {
            kymo_begin(ids[k]);
            kymo_end(ids[k]);
        }
        kymo_end(outer);
    }
}

static void run_search(long n)
{
    kymo_begin(KYMO_ID("outer"));
    for (long i = 0; i < n; i++)
        kymo_begin(KYMO_ID("inner"));
    kymo_end(KYMO_ID("outer"));
    for (long i = 0; i < n; i++)
        kymo_end(KYMO_ID("inner"));
}

static void *run_thread(void *unused)
{
    (void)unused;
    KYMO_SCOPE("in a thread");
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
            kymo_epoch_begin();
        {
            KYMO_SCOPE("forward");
        }
        kymo_iteration_finish_by("large", 1);
        if (i % 1000 == 999 || i == n - 1)
            kymo_epoch_end();
    }
}

static void run_epochs(long n)
{
    for (long i = 0; i < n; i++) {
        kymo_epoch_begin();
        kymo_iteration_finish_by("large", 1);
        kymo_epoch_end();
    }
}

static void run_counters(long n)
{
    for (long i = 0; i < n; i++)
        kymo_counter(KYMO_ID("loss"), (double)i);
}

static void run_marks(long n)
{
    for (long i = 0; i < n; i++)
        kymo_mark(KYMO_ID("mark"));
}

static void run_async(long n)
{
    kymo_async *ranges = malloc((size_t)n * sizeof *ranges);
    for (long i = 0; ranges != NULL && i < n; i++)
        ranges[i] = kymo_async_begin(KYMO_ID("in flight"));
    for (long i = 0; ranges != NULL && i < n; i++)
        kymo_async_end(ranges[i]);
    free(ranges);
}

static void run_payloads(long n)
{
    for (long i = 0; i < n; i++) {
        const struct kymo_payload text = {KYMO_PAYLOAD_TEXT, 4, {.text = "text"}};
        kymo_begin_payload(KYMO_ID("with text"), &text);
        kymo_end(0);
    }
}

static void run_long(long n)
{
    char *name = malloc((size_t)n);
    if (name == NULL)
        return;
    memset(name, 'n', (size_t)n);
    kymo_begin(kymo_site_intern(name, (size_t)n, NULL, 0, NULL, 0));
    kymo_end(0);
    free(name);
}

static void run_processes(long n)
{
    for (long i = 0; i < n; i++) {
        const pid_t pid = fork();
        if (pid == 0) {
            kymo_set_rank((int)i, (int)n);
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
