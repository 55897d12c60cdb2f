/*
 * External inputs of energy measurement: CUDA_VISIBLE_DEVICES, powercap files, lines of other
 * processes in the lock file, the GPUs in a log. The input is split at zero bytes into these.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "instrument/energy/internal.h"

enum { N_TEXTS = 5 };

/* The next zero-terminated string of the input. */
static char *next_text(const uint8_t **data, size_t *size)
{
    const size_t len = strnlen((const char *)*data, *size);
    char *text = calloc(1, len + 1);
    memcpy(text, *data, len);
    *data += len + (len < *size);
    *size -= len + (len < *size);
    return text;
}

static void try_devices(const char *visible, const char *order, const char *gpus_text)
{
    struct marey__node_gpu gpus[8];
    struct marey__visible_device devices[MAREY__MAX_GPUS];
    struct marey__buf out = {0};
    const size_t n_gpus = marey__node_gpus_parse(gpus_text, gpus, MAREY__COUNT_OF(gpus));
    const size_t n = marey__visible_choose(visible, gpus, n_gpus, devices);
    MAREY_ASSERT(n <= MAREY__MAX_GPUS);
    for (size_t i = 0; i < n; i++)
        MAREY_ASSERT(devices[i].gpu < n_gpus &&
                     devices[i].slice < (int32_t)gpus[devices[i].gpu].n_slices);
    (void)marey__visible_is_ambiguous(visible, order, gpus, n_gpus);
    marey__visible_put(&out, gpus, devices, n);
    marey__node_gpus_put(&out, gpus, n_gpus);
    marey__buf_fini(&out);
}

static void try_lines(const char *text)
{
    struct marey__energy_lock lock = {.file.fd = -1};
    char line[64];
    size_t at = 0, before;
    bool is_set;
    if (!marey__held_set(&lock.file, memfd_create("lines", MFD_CLOEXEC)) ||
        write(lock.file.fd, text, strlen(text)) != (ssize_t)strlen(text))
        abort();
    do {
        before = at;
    } while (marey__energy_lock_next(&lock, &at, line, sizeof line, &is_set) && at > before);
    MAREY_ASSERT(at <= strlen(text));
    marey__held_close(&lock.file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *texts[N_TEXTS], device[48];
    uint64_t number;
    for (size_t i = 0; i < N_TEXTS; i++)
        texts[i] = next_text(&data, &size);
    try_devices(texts[0], texts[1], texts[2]);
    try_devices(NULL, NULL, texts[2]);
    try_lines(texts[3]);
    (void)marey__zone_number(texts[3], strlen(texts[3]), &number);
    if (marey__zone_device(texts[0], texts[4], texts[1], device, sizeof device))
        MAREY_ASSERT(strncmp(device, "package-", 8) == 0 && strchr(device, '|') == NULL);
    for (size_t i = 0; i < N_TEXTS; i++)
        free(texts[i]);
    return 0;
}
