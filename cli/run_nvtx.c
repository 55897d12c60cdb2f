/*
 * marey as the NVTX tool of the program: NVTX_INJECTION64_PATH names libmarey-nvtx, and MAREY_NVTX_NEXT whatever it
 * named before, which libmarey-nvtx lets have all that it gets itself.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "run.h"

#define LIBRARY "libmarey-nvtx.so"
#define TOOL_VARIABLE "NVTX_INJECTION64_PATH"
#define NEXT_VARIABLE "MAREY_NVTX_NEXT"

static const char *variable(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Nsight Systems knows its own handles only, so nobody may stand before it. */
static bool is_nsight(const char *tool)
{
    return variable("NSYS_PROFILING_SESSION_ID") != NULL ||
           (tool != NULL && strncmp(base_name(tool), "libToolsInjection", 17) == 0);
}

bool run_nvtx(void)
{
    char path[PATH_MAX];
    const char *const tool = variable(TOOL_VARIABLE);
    if (is_nsight(tool)) {
        cli_say("Nsight Systems takes what the program tells NVTX, so it is not recorded; leave "
                "nsys away to have it in the recording");
        return true;
    }
    if (!run_find_beside(LIBRARY, "--nvtx", path))
        return false;
    /* A `marey run --nvtx` around us has seen to it already. */
    if (tool != NULL && strcmp(base_name(tool), LIBRARY) != 0)
        setenv(NEXT_VARIABLE, tool, 1);
    if (setenv(TOOL_VARIABLE, path, 1) == 0)
        return true;
    cli_fail("out of memory");
    return false;
}
