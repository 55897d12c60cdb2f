/* Any bytes as a part of a summary that another process packed: joined with itself, and made into tables. */
#include <stdlib.h>
#include <string.h>

#include "analyze/summary_bytes.h"
#include "fuzz.h"

static const struct kymo_summary_options options = {.n_jobs = 1};

static void make(struct kymo__merge *merge)
{
    kymo_summary *summary = NULL;
    if (kymo__summary_make(merge, NULL, 0, &options, &summary) == KYMO_OK)
        kymo_summary_destroy(summary);
}

/* What was read can be packed, and what was packed can be read. */
static void again(struct kymo__merge *merge, struct kymo__lender *lender)
{
    struct kymo__buf packed = {0};
    struct kymo__merge other;
    kymo__merge_pack(merge, &packed);
    if (packed.failed || kymo__merge_init(&other) != KYMO_OK)
        abort();
    KYMO_ASSERT(kymo__merge_unpack(&other, lender, packed.data, packed.len) == KYMO_OK);
    if (kymo__merge_join(merge, &other))
        make(merge);
    kymo__merge_fini(&other);
    kymo__buf_fini(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kymo__merge merge;
    struct kymo__lender lender = {0};
    /* The checksum is made right: it is what keeps chance away, and a fuzzer is no chance. */
    uint8_t *bytes = malloc(size + 4);
    if (bytes == NULL || kymo__merge_init(&merge) != KYMO_OK) {
        free(bytes);
        return 0;
    }
    memcpy(bytes, data, size);
    const uint32_t crc = kymo__crc32c(0, bytes, size);
    memcpy(bytes + size, &crc, sizeof crc);
    if (kymo__merge_unpack(&merge, &lender, bytes, size + 4) == KYMO_OK)
        again(&merge, &lender);
    kymo__merge_fini(&merge);
    kymo__lender_fini(&lender);
    free(bytes);
    return 0;
}
