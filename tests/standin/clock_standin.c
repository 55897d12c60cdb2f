/*
 * A clock that only advances when a test moves it: preloaded, it makes times of a thread exact on a
 * busy machine. It replaces CLOCK_MONOTONIC of threads that have moved it; others have the real
 * one.
 */
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static __thread int64_t now_ns; /* 0: real */

EXPORT int clock_gettime(clockid_t clock, struct timespec *out)
{
    if (clock != CLOCK_MONOTONIC || now_ns == 0)
        return (int)syscall(SYS_clock_gettime, clock, out);
    *out = (struct timespec){.tv_sec = now_ns / 1000000000, .tv_nsec = now_ns % 1000000000};
    return 0;
}

/* By ctypes. */
EXPORT void marey_test_clock_advance(int64_t ns);

void marey_test_clock_advance(int64_t ns)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + ns;
}
