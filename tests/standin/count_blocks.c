/*
 * Preloaded, it appends a line for each block of a log that a command decompresses, its checksum, to $COUNT_BLOCKS.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT size_t ZSTD_decompressDCtx(void *context, void *to, size_t room, const void *from,
                                  size_t size);

size_t ZSTD_decompressDCtx(void *context, void *to, size_t room, const void *from, size_t size)
{
    size_t (*real)(void *, void *, size_t, const void *, size_t);
    *(void **)&real = dlsym(RTLD_NEXT, "ZSTD_decompressDCtx");
    const char *const path = getenv("COUNT_BLOCKS");
    uint64_t sum = size;
    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + ((const uint8_t *)from)[i];
    const int fd = path != NULL ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) {
        dprintf(fd, "%llx\n", (unsigned long long)sum);
        close(fd);
    }
    return real(context, to, room, from, size);
}
