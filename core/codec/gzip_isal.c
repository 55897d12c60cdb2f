/* gzip by ISA-L, which unpacks traces some two times as fast as zlib. */
#include <isa-l/igzip_lib.h>

#include "codec/internal.h"

struct marey__inflate {
    struct inflate_state isal;
};

marey__inflate *marey__inflate_create(void)
{
    marey__inflate *inflate = marey__calloc(1, sizeof *inflate);
    if (inflate == NULL)
        return NULL;
    isal_inflate_init(&inflate->isal);
    inflate->isal.crc_flag = ISAL_GZIP; /* header and trailer are its business, the checksum too */
    return inflate;
}

void marey__inflate_destroy(marey__inflate *inflate)
{
    marey__free(inflate);
}

void marey__inflate_reset(marey__inflate *inflate)
{
    isal_inflate_reset(&inflate->isal);
    inflate->isal.crc_flag = ISAL_GZIP;
}

enum marey__inflate_result marey__inflate_run(marey__inflate *state, struct marey__inflate_io *io)
{
    struct inflate_state *isal = &state->isal;
    const uint32_t n_in = (uint32_t)MAREY__MIN(io->n_in, UINT32_MAX);
    const uint32_t n_out = (uint32_t)MAREY__MIN(io->n_out, UINT32_MAX);
    isal->next_in = (uint8_t *)io->in; /* it has no const here; it does not write */
    isal->avail_in = n_in;
    isal->next_out = io->out;
    isal->avail_out = n_out;
    const int result = isal_inflate(isal);
    /* By where it stands: how much is left is not always right once it has found damage (ISA-L 2.30). */
    io->n_in -= (size_t)(isal->next_in - io->in);
    io->n_out -= (size_t)(isal->next_out - io->out);
    io->in = isal->next_in;
    io->out = isal->next_out;
    if (result < 0)
        return MAREY__INFLATE_BROKEN;
    return isal->block_state == ISAL_BLOCK_FINISH ? MAREY__INFLATE_DONE : MAREY__INFLATE_GOES_ON;
}
