/* The Pythons of this machine, started with a script, for tests that read them from outside. */
#ifndef MAREY_TEST_PYTHONS_H
#define MAREY_TEST_PYTHONS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { PYTHONS_MAX = 32 };
struct python {
    char path[256];
    unsigned minor;   /* of 3.x */
    unsigned version; /* 0x030d00 is 3.13.0 */
};
/*
 * Every installed CPython 3.10 or later: pyenv's, the system's, and those in the colon-separated
 * MAREY_TEST_PYTHONS. Returns their number.
 */
size_t pythons_find(struct python *out, size_t cap);

struct target {
    pid_t pid;
    int out; /* what it prints */
};
/* Start `python -c script` and wait until it prints a line, which goes to `line` (at most `cap`). */
struct target target_start(const char *python, const char *script, char *line, size_t cap);
/* The same with any program and its arguments, NULL last. */
struct target target_start_program(const char *const *arguments, char *line, size_t cap);
void target_stop(struct target *target);

#endif
