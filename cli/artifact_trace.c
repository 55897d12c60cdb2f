/* marey artifacts: the trace itself, packed. */
#include <limits.h>

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
    const char *const base = basename(job->source);
    const bool has_suffix = strlen(base) > 3 && cli_ends_with(base, ".gz", 3);
    char name[NAME_MAX];
    if (job->facts.damage != NULL)
        return CLI_BAD; /* which was said */
    if (snprintf(name, sizeof name, "%s%s", base, has_suffix ? "" : ".gz") >= (int)sizeof name)
        return cli_fail("the name of %s is too long", job->source);
    return artifacts_write(job, name, pack, (void *)job);
}

const struct artifact artifact_trace = {.name = "trace", .reads = true, .make = make};
