/*
 * fault_endless RECORDING ACKS THREADS OPTIONS [fork|busy]
 *
 * THREADS threads record for ever, pausing now and then so that the disk keeps up; with `busy` they never pause. Each writes the number of ranges whose end has returned to its slot of the file ACKS,
 * in shared memory, so that a test that kills us knows what must be in the recording. With `fork` the first thread also
 * forks children all the time, which record a little and leave by _exit.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sequence.h"

enum { MAX_THREADS = 64, CHILD_RANGES = 50 };

static uint64_t *acks;
static int never_pauses;

static void *record_for_ever(void *slot)
{
    uint64_t *const ack = slot;
    char name[16];
    snprintf(name, sizeof name, "w%d", (int)(ack - acks));
    pthread_setname_np(pthread_self(), name);
    for (uint64_t i = 0;; i++) {
        sequence_range(i);
        __atomic_store_n(ack, i + 1, __ATOMIC_RELEASE);
        if (!never_pauses && i % 1000 == 999)
            usleep(100);
    }
    return NULL;
}

static void fork_for_ever(void)
{
    for (;;) {
        const pid_t child = fork();
        if (child == 0) {
            sequence_ranges(CHILD_RANGES);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    const int n_threads = atoi(argv[3]);
    const int fd = open(argv[2], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || n_threads < 1 || n_threads > MAX_THREADS || ftruncate(fd, MAX_THREADS * 8) != 0)
        return 2;
    acks = mmap(NULL, MAX_THREADS * 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    never_pauses = argc > 5 && strcmp(argv[5], "busy") == 0;
    sequence_start(argv[1], argv[4]);
    for (int i = 0; i < n_threads; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, record_for_ever, acks + i);
    }
    if (argc > 5 && strcmp(argv[5], "fork") == 0)
        fork_for_ever();
    pause();
}
