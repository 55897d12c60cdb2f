/*
 * Allocations of known sizes, for tests of `marey run --memory`.
 *
 *     allocate leak N BYTES        N iterations, each keeps BYTES and frees eight times as much
 *     allocate peak BYTES          BYTES at once in a phase "high", a tenth of it in a phase "low"
 *     allocate every               one block of 4096 bytes from each function of malloc's family, all kept
 *     allocate threads N BYTES     N threads at once, each with 200 rounds of malloc, realloc and free, keeping BYTES
 *     allocate fork BYTES          the child keeps BYTES, its parent a third; the child frees a block of its parent's
 *     allocate signals             a handler that records while the program allocates
 *     allocate wait BYTES          keeps BYTES, says so, and waits to be killed
 *     allocate loop N              N rounds of small blocks, to be timed
 */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <marey/marey.h>

static void *volatile kept[1 << 20]; /* what is still alive at the end */
static int n_kept;

static void keep(void *block)
{
    kept[__atomic_fetch_add(&n_kept, 1, __ATOMIC_RELAXED)] = block;
}

__attribute__((noinline)) static void planted_leak(size_t bytes)
{
    char *block = malloc(bytes);
    memset(block, 1, bytes);
    keep(block);
    __asm__ volatile("");
}

__attribute__((noinline)) static void *planted_scratch(size_t bytes)
{
    char *block = malloc(bytes);
    memset(block, 2, bytes < 4096 ? bytes : 4096);
    __asm__ volatile("");
    return block;
}

static void leak(int n, size_t bytes)
{
    for (int i = 0; i < n; i++) {
        planted_leak(bytes);
        void *scratch = planted_scratch(8 * bytes);
        usleep(2000);
        free(scratch);
        marey_iteration_finish();
    }
}

static void peak(size_t bytes)
{
    marey_phase(MAREY_ID("low"));
    free(planted_scratch(bytes / 10));
    usleep(150000);
    marey_phase(MAREY_ID("high"));
    void *block = planted_scratch(bytes);
    usleep(150000);
    free(block);
    marey_phase(0);
}

static void every(void)
{
    void *aligned = NULL;
    keep(malloc(4096));
    keep(calloc(64, 64));
    keep(realloc(NULL, 4096));
    keep(realloc(malloc(100), 4096));
    keep(reallocarray(NULL, 64, 64));
    if (posix_memalign(&aligned, 64, 4096) == 0)
        keep(aligned);
    keep(aligned_alloc(64, 4096));
    keep(memalign(64, 4096));
    keep(valloc(4096));
    keep(pvalloc(4096));
    free(NULL);
}

static void *rounds(void *arg)
{
    const size_t bytes = *(size_t *)arg;
    for (int i = 0; i < 200; i++)
        free(realloc(malloc(bytes), 2 * bytes));
    planted_leak(bytes);
    return NULL;
}

static void threads(int n, size_t bytes)
{
    pthread_t all[64];
    for (int i = 0; i < n; i++)
        pthread_create(&all[i], NULL, rounds, &bytes);
    for (int i = 0; i < n; i++)
        pthread_join(all[i], NULL);
}

static void fork_off(size_t bytes)
{
    void *of_parent = planted_scratch(bytes);
    planted_leak(bytes / 3);
    const pid_t child = fork();
    if (child == 0) {
        free(of_parent);
        planted_leak(bytes);
        exit(0);
    }
    waitpid(child, NULL, 0);
    free(of_parent);
}

/* Recording is what a handler may do; malloc is not. */
static void handle(int sig)
{
    (void)sig;
    marey_mark(MAREY_ID("tick"));
}

static void signals(void)
{
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    const struct itimerval often = {{0, 200}, {0, 200}};
    handle(0); /* a thread's first event may not be a handler's */
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 200000; i++)
        free(planted_scratch(100 + (size_t)i % 900));
}

static void loop(int n)
{
    enum { LIVE = 64 };
    void *blocks[LIVE] = {NULL};
    for (int i = 0; i < n; i++) {
        free(blocks[i % LIVE]);
        blocks[i % LIVE] = malloc(16 + (size_t)i * 37 % 500);
    }
    for (int i = 0; i < LIVE; i++)
        free(blocks[i]);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const size_t last = argc > 2 ? strtoull(argv[argc - 1], NULL, 10) : 0;
    const int n = argc > 2 ? atoi(argv[2]) : 0;
    if (strcmp(what, "leak") == 0)
        leak(n, last);
    else if (strcmp(what, "peak") == 0)
        peak(last);
    else if (strcmp(what, "every") == 0)
        every();
    else if (strcmp(what, "threads") == 0)
        threads(n, last);
    else if (strcmp(what, "fork") == 0)
        fork_off(last);
    else if (strcmp(what, "signals") == 0)
        signals();
    else if (strcmp(what, "loop") == 0)
        loop(n);
    if (strcmp(what, "wait") == 0) {
        for (int i = 0; i < 10; i++)
            planted_leak(last / 10);
        usleep(400000);
        puts("kept");
        fflush(stdout);
        pause();
    }
    return 0;
}
