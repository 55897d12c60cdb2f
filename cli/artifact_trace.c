/* marey artifacts: the trace itself, packed. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "artifacts.h"

static marey_status pack(void *ctx, int fd)
{
    const struct artifacts *job = ctx;
    const struct marey_torch_trace_options wants = {.progress = cli_progress,
                                                    .progress_ctx = (void *)"packing"};
    const marey_status status = marey_torch_trace_pack(job->source, fd, &wants);
    cli_progress_end();
    return status;
}

static int make(const struct artifacts *job)
{
    static const char suffix[] = ".gz";
    const char *slash = strrchr(job->source, '/');
    const char *base = slash != NULL ? slash + 1 : job->source;
    const size_t len = strlen(base);
    const bool has_suffix = len > strlen(suffix) && strcmp(base + len - strlen(suffix), suffix) == 0;
    char name[NAME_MAX];
    if (job->facts.damage != NULL)
        return CLI_BAD; /* which was said */
    if (snprintf(name, sizeof name, "%s%s", base, has_suffix ? "" : suffix) >= (int)sizeof name)
        return cli_fail("the name of %s is too long", job->source);
    return artifacts_write(job, name, pack, (void *)job);
}

const struct artifact artifact_trace = {.name = "trace", .reads = true, .make = make};
