/* Statistics and digests of a value. */
#include "dump/dump_internal.h"

static void take_digest(const struct kymo_tensor *tensor, struct kymo__dump_measure *out)
{
    out->n_blocks = kymo_digest_blocks(kymo_tensor_bytes(tensor));
    if (out->n_blocks > 1)
        out->blocks = kymo__alloc(out->n_blocks * sizeof *out->blocks);
    if (out->blocks == NULL)
        out->n_blocks = 0;
    out->has_digest = kymo_tensor_digest(tensor, &out->digest, out->blocks) == KYMO_OK;
}

void kymo__dump_measure(const struct kymo_tensor *tensor, uint32_t what,
                        struct kymo__dump_measure *out)
{
    *out = (struct kymo__dump_measure){0};
    if (what & KYMO__MEASURE_DIGEST)
        take_digest(tensor, out);
    if (what & KYMO__MEASURE_STATS)
        out->has_stats = kymo_tensor_stats_get(tensor, &out->stats) == KYMO_OK;
}

void kymo__dump_measure_fini(struct kymo__dump_measure *measure)
{
    kymo__free(measure->blocks);
    *measure = (struct kymo__dump_measure){0};
}
