/* A temporary folder for a test, and the two headers that cmocka requires before its own. */
#ifndef MAREY_TEST_SCRATCH_H
#define MAREY_TEST_SCRATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/internal.h"

struct scratch {
    char folder[64];
    char path[128]; /* of a recording in it, not yet there */
};

static inline int scratch_setup(void **state)
{
    struct scratch *s = calloc(1, sizeof *s);
    snprintf(s->folder, sizeof s->folder, "/tmp/marey-test-XXXXXX");
    if (s == NULL || mkdtemp(s->folder) == NULL)
        return -1;
    snprintf(s->path, sizeof s->path, "%s/run.marey", s->folder);
    *state = s;
    return 0;
}

static inline int scratch_teardown(void **state)
{
    struct scratch *s = *state;
    char command[128];
    marey__alloc_fail_nth(0);
    marey_reset();
    snprintf(command, sizeof command, "rm -rf %s", s->folder);
    const int status = system(command);
    free(s);
    return status;
}

#define SCRATCH_TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

/* The number of words of these kinds in all logs of a recording; -1 if it cannot be read. */
int64_t scratch_count(const char *path, uint32_t kind);

#endif
