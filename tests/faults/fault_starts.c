/*
 * fault_starts FOLDER ACKS: make recordings FOLDER/0.marey, FOLDER/1.marey and so on for ever, 50 ranges in each, to be killed
 * in the middle of a start or a stop. ACKS, in shared memory, counts the recordings that have been stopped.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sequence.h"

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    const int fd = open(argv[2], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 8) != 0)
        return 2;
    uint64_t *n_stopped = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (int i = 0;; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%d.marey", argv[1], i);
        sequence_start(path, "pool=2M");
        sequence_ranges(50);
        if (marey_stop() != MAREY_OK)
            return 1;
        __atomic_fetch_add(n_stopped, 1, __ATOMIC_RELEASE);
    }
}
