/*
 * What a process takes for CUDA's runtime library: it has its name, waits for nothing and writes each wait into the call
 * log, so that the order of waits and ranges shows. MAREY_TEST_CUDA_ERROR=N makes each wait fail with that error.
 */
#include <sched.h>
#include <stdlib.h>

#include "call_log.h"

/* A test sets it to 0: then a wait lasts until it is 1 again. */
__attribute__((visibility("default"))) _Atomic int marey_test_may_return = 1;

__attribute__((visibility("default"))) int cudaDeviceSynchronize(void);
int cudaDeviceSynchronize(void)
{
    struct call_line line;
    const char *error = getenv("MAREY_TEST_CUDA_ERROR");
    call_line_begin(&line, "sync");
    call_line_write(&line);
    while (!marey_test_may_return)
        sched_yield();
    return error != NULL ? atoi(error) : 0;
}

__attribute__((visibility("default"))) const char *cudaGetErrorString(int error);
const char *cudaGetErrorString(int error)
{
    return error != 0 ? "a test's error" : "no error";
}
