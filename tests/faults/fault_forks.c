/*
 * fault_forks RECORDING HOW: record 100 ranges, make a child, record 100 more; what the child does depends on HOW.
 *
 *   fork     records 200 ranges and returns        exec     becomes `true`
 *   storm    50 children in a row record 10 each and leave by _exit, while three threads record all the time
 *   clone    a raw clone(): records 200, which must go nowhere, and leaves by exit
 *   outlive  a raw clone() that sleeps on: it keeps the lock on the log while its parent is killed; prints its pid
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sequence.h"

enum { BEFORE = 100, AFTER = 100, IN_CHILD = 200, STORM = 50, IN_STORM = 10 };

static int storm_is_over;

static void *record_meanwhile(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; !__atomic_load_n(&storm_is_over, __ATOMIC_RELAXED); i++)
        sequence_range(i);
    return NULL;
}

static void storm(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, record_meanwhile, NULL);
    for (int i = 0; i < STORM; i++) {
        const pid_t child = fork();
        if (child == 0) {
            sequence_ranges(IN_STORM);
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        if (status != 0)
            exit(1);
    }
    __atomic_store_n(&storm_is_over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

static void in_child(const char *how)
{
    if (strcmp(how, "exec") == 0)
        execl("/bin/true", "true", (char *)NULL);
    if (strcmp(how, "outlive") == 0) {
        fclose(stdout); /* otherwise the reader of our output would wait for this process */
        fclose(stderr);
        pause();
        _exit(0);
    }
    sequence_ranges(IN_CHILD);
    exit(0);
}

static pid_t make_child(const char *how)
{
    const int is_raw = strcmp(how, "clone") == 0 || strcmp(how, "outlive") == 0;
    const pid_t child = is_raw ? (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0) : fork();
    if (child == 0)
        in_child(how);
    return child;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    const char *how = argv[2];
    sequence_start(argv[1], NULL);
    for (uint64_t i = 0; i < BEFORE; i++)
        sequence_range(i);
    pid_t child = -1;
    if (strcmp(how, "storm") == 0)
        storm();
    else
        child = make_child(how);
    for (uint64_t i = BEFORE; i < BEFORE + AFTER; i++)
        sequence_range(i);
    if (strcmp(how, "outlive") == 0) {
        printf("%d\n", (int)child);
        fflush(stdout);
        raise(SIGKILL);
    }
    int status = 0;
    if (child > 0)
        waitpid(child, &status, 0);
    return status == 0 ? 0 : 1;
}
