/*
 * Any bytes as the pool of a dead process. The input is the pool's head, then chunks cut short: 64 bytes of head and as many
 * words as a length says, laid out in slots of the right size. The log beside it is a sound one that says it is not
 * finished. First the pool is read as it is, then the recording is finalized from it and read again.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/internal.h"
#include "fuzz.h"
#include "record/internal.h"

enum { N_SLOTS = 5, CHUNK_INPUT = 64 };

static uint8_t slots[N_SLOTS][MAREY__CHUNK_BYTES];

/* Input bytes to slots; what is not said is zero. */
static void lay_out(const uint8_t *data, size_t size)
{
    memset(slots, 0, sizeof slots);
    const size_t head = MAREY__MIN(size, (size_t)CHUNK_INPUT);
    memcpy(slots[0], data, head);
    data += head;
    size -= head;
    for (int i = 1; i < N_SLOTS && size > 2; i++) {
        uint16_t len;
        memcpy(&len, data, sizeof len);
        const size_t n = MAREY__MIN(MAREY__MIN((size_t)len, size - 2), (size_t)MAREY__CHUNK_BYTES);
        memcpy(slots[i], data + 2, n);
        data += 2 + n;
        size -= 2 + n;
    }
}

/* A log whose one block says that a process of another boot wrote it, and where its pool is. */
static bool write_log(const char *path, const char *pool)
{
    struct marey__buf texts = {0};
    struct marey__log log;
    unlink(path);
    marey__texts_put(&texts, MAREY__KEY_PID, "1");
    marey__texts_put(&texts, MAREY__KEY_BOOT_ID, "another");
    marey__texts_put(&texts, MAREY__KEY_POOL, pool);
    const char *name = strrchr(path, '/') + 1;
    const bool ok = marey__log_create(&log, fuzz_folder(), name) == MAREY_OK &&
                    marey__log_append_texts(&log, MAREY__BLOCK_LOG, &texts) == MAREY_OK;
    marey__log_close(&log);
    marey__buf_fini(&texts);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char log[128], pool[160];
    snprintf(log, sizeof log, "%s/dead.klog", fuzz_folder());
    snprintf(pool, sizeof pool, "%s.pool", log);
    lay_out(data, size);
    if (!write_log(log, pool) || !fuzz_write_file(pool, slots[0], sizeof slots))
        return 0;
    fuzz_visit(log);           /* a single log is not finalized */
    fuzz_visit(fuzz_folder()); /* a recording is */
    unlink(pool);
    return 0;
}
