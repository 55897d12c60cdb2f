/*
 * fault_endings RECORDING HOW: record 1000 ranges and end without marey_stop: by return, exit, _exit, pthread_exit (the
 * main thread leaves, another ends the process), abort, or exec of another program.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sequence.h"

static void *exit_later(void *arg)
{
    (void)arg;
    usleep(20000);
    exit(0);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    const char *how = argv[2];
    sequence_start(argv[1], NULL);
    sequence_ranges(1000);
    if (strcmp(how, "exit") == 0)
        exit(0);
    if (strcmp(how, "_exit") == 0)
        _exit(0);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "exec") == 0)
        execl("/bin/true", "true", (char *)NULL);
    if (strcmp(how, "pthread_exit") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, exit_later, NULL);
        pthread_exit(NULL);
    }
    return 0;
}
