/* What the files of `marey artifacts` share: the trace that was read, and how a file gets into the directory. */
#ifndef MAREY_ARTIFACTS_H
#define MAREY_ARTIFACTS_H

#include <sys/stat.h>

#include "cli.h"

struct artifacts {
    const char *source, *directory;
    marey_torch_trace *trace; /* NULL: only what needs no reading is wanted, or it could not be read */
    struct marey_torch_trace_facts facts; /* of it */
    struct stat read;                     /* the source before it was read */
    int64_t rank;
    marey_report **operators; /* of the trace: made by the first that wants them, and shared */
};

/*
 * Make the file NAME in the directory, and say where on standard output. It is written under another name first, so that
 * no half of it is ever found there.
 */
int artifacts_write(const struct artifacts *job, const char *name,
                    marey_status (*write)(void *ctx, int fd), void *ctx);
/* The same by a stream. */
int artifacts_print_plain(const struct artifacts *job, const char *name,
                          marey_status (*print)(void *ctx, FILE *out), void *ctx);
/* And called rankR_NAME. */
int artifacts_print(const struct artifacts *job, const char *name,
                    marey_status (*print)(void *ctx, FILE *out), void *ctx);
/* "rankR_NAME". Returned in `into`, of `size` bytes. */
const char *artifacts_name(const struct artifacts *job, const char *name, char *into, size_t size);

#endif
