/* Any bytes as a serialized partial summary: merged with itself, and converted to tables. */
#include <stdlib.h>
#include <string.h>

#include "analyze/summary/internal.h"
#include "fuzz.h"

static const struct marey_report_options options = {.n_jobs = 1};

static void make(struct marey__merge *merge)
{
    marey_report *report = NULL;
    const struct marey__request request = {.input = &(struct marey__summary_input){.merge = merge},
                                           .options = &options};
    if (marey__report_make("ranges", &request, &report) == MAREY_OK)
        marey_report_destroy(report);
}

/* A parsed summary can be serialized, and the result can be parsed and merged. */
static void again(struct marey__merge *merge, struct marey__merge_storage *storage)
{
    struct marey__buf packed = {0};
    marey__merge_pack(merge, &packed);
    if (packed.failed)
        abort();
    MAREY_ASSERT(marey__merge_unpack(merge, storage, packed.data, packed.len) == MAREY_OK);
    make(merge);
    marey__buf_fini(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct marey__merge merge;
    struct marey__merge_storage storage = {0};
    /* Fix the checksum, which only protects against random errors. */
    uint8_t *bytes = malloc(size + 4);
    if (bytes == NULL || marey__merge_init(&merge) != MAREY_OK) {
        free(bytes);
        return 0;
    }
    memcpy(bytes, data, size);
    const uint32_t crc = marey__crc32c(0, bytes, size);
    memcpy(bytes + size, &crc, sizeof crc);
    if (marey__merge_unpack(&merge, &storage, bytes, size + 4) == MAREY_OK)
        again(&merge, &storage);
    marey__merge_fini(&merge);
    marey__merge_storage_fini(&storage);
    free(bytes);
    return 0;
}
