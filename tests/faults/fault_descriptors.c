/*
 * fault_descriptors HOW RECORDING OPTIONS [FILE]
 *
 * A program that treats all descriptors of its process as its own.
 *   reuse   close all from 3 on, then open FILE under each of those numbers and write "mine" into it
 *   moved   as reuse, after renaming the recording, so that the log cannot be opened again
 *   closed  have no standard streams; then write to them
 *   output  leave the recording to MAREY, and print whether there is somebody to read it or not
 *   fork    as reuse, in a child made after that; the parent's descriptors stay
 *   names   intern names until a log cannot hold them, under the limit of file size that the caller has set
 *   delete  delete the recording in the middle
 *   held    print the numbers of all descriptors but the standard ones
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sequence.h"

enum { RANGES = 20000, LAST_FD = 400 };

static int fail(const char *what)
{
    fprintf(stderr, "fault_descriptors: %s: %s\n", what, strerror(errno));
    return 1;
}

static int n_mine;
static char mine[LAST_FD]; /* by number: it is the program's */

static int take_all_numbers(const char *file)
{
    for (int fd = 3; fd <= LAST_FD; fd++)
        close(fd);
    const int first = open(file, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (first < 0 || write(first, "mine", 4) != 4)
        return fail("open the file");
    while ((n_mine = fcntl(first, F_DUPFD, 3)) < LAST_FD)
        if (n_mine < 0)
            return fail("take a number");
        else
            mine[n_mine] = 1;
    return 0;
}

static int still_has_all_numbers(void)
{
    for (int fd = 3; fd <= LAST_FD; fd++)
        if (fd < LAST_FD && mine[fd] && fcntl(fd, F_GETFD) < 0)
            return fail("a descriptor of the program was closed");
    return 0;
}

static int reuse(const char *file)
{
    sequence_ranges(RANGES);
    if (take_all_numbers(file) != 0)
        return 1;
    for (uint64_t i = RANGES; i < 2 * RANGES; i++)
        sequence_range(i);
    if (marey_stop() != MAREY_OK)
        return fail(marey_last_error());
    return still_has_all_numbers();
}

static int reuse_in_child(const char *file)
{
    sequence_ranges(RANGES);
    if (take_all_numbers(file) != 0)
        return 1;
    const pid_t child = fork();
    if (child == 0)
        exit(still_has_all_numbers());
    int status;
    waitpid(child, &status, 0);
    if (status != 0)
        return fail("the child");
    return marey_stop() != MAREY_OK ? fail(marey_last_error()) : still_has_all_numbers();
}

static int moved(const char *path, const char *file)
{
    char other[4096];
    snprintf(other, sizeof other, "%s.moved", path);
    sequence_ranges(RANGES);
    if (rename(path, other) != 0 || take_all_numbers(file) != 0)
        return fail("rename");
    return marey_stop() == MAREY_OK ? 3 : still_has_all_numbers();
}

static int closed(void)
{
    sequence_ranges(RANGES);
    for (int fd = 0; fd <= 2; fd++)
        if (write(fd, "output of the program", 21) >= 0)
            return 3;
    return marey_stop() != MAREY_OK ? 4 : 0;
}

static int output(void)
{
    sequence_init();
    sequence_ranges(RANGES);
    for (int fd = 1; fd <= 2; fd++)
        if (write(fd, "output of the program", 21) < 0)
            errno = 0; /* the stream is closed */
    for (uint64_t i = RANGES; i < 2 * RANGES; i++)
        sequence_range(i);
    return 0;
}

static int names(void)
{
    char name[64];
    for (int i = 0; i < 60000; i++) {
        const int len = snprintf(name, sizeof name, "a name that takes some room in the log %d", i);
        marey_mark(marey_site_intern(name, (size_t)len, NULL, 0, NULL, 0));
    }
    marey_stop();
    printf("alive\n");
    return 0;
}

static int delete_it(const char *path)
{
    char command[4096];
    sequence_ranges(RANGES);
    usleep(1500000); /* some events are in the log */
    snprintf(command, sizeof command, "rm -r '%s'", path);
    if (system(command) != 0)
        return fail("rm");
    for (uint64_t i = RANGES; i < 2 * RANGES; i++)
        sequence_range(i);
    return marey_stop() != MAREY_OK ? fail(marey_last_error()) : 0;
}

static int held(void)
{
    sequence_ranges(RANGES);
    DIR *const dir = opendir("/proc/self/fd");
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        const int fd = atoi(entry->d_name);
        if (fd > 2 && fd != dirfd(dir))
            printf("%d %d\n", fd, (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    }
    closedir(dir);
    marey_stop();
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    const char *const how = argv[1];
    if (strcmp(how, "output") == 0)
        return output();
    if (strcmp(how, "closed") == 0)
        for (int fd = 0; fd <= 2; fd++)
            close(fd);
    sequence_start(argv[2], argv[3]);
    if (strcmp(how, "reuse") == 0)
        return reuse(argv[4]);
    if (strcmp(how, "moved") == 0)
        return moved(argv[2], argv[4]);
    if (strcmp(how, "fork") == 0)
        return reuse_in_child(argv[4]);
    if (strcmp(how, "closed") == 0)
        return closed();
    if (strcmp(how, "names") == 0)
        return names();
    if (strcmp(how, "delete") == 0)
        return delete_it(argv[2]);
    return held();
}
