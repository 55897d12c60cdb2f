/* Stands in for the unpacking of gzip in a build that found no library for it. */
#include "codec/codec_internal.h"

const char *const marey__gzip_missing = "this marey was built without gzip; unpack the file with "
                                        "gunzip, or install libisal-dev or zlib1g-dev and build "
                                        "again";

marey__inflate *marey__inflate_create(void)
{
    return NULL;
}

void marey__inflate_destroy(marey__inflate *inflate)
{
    (void)inflate;
}

void marey__inflate_reset(marey__inflate *inflate)
{
    (void)inflate;
}

enum marey__inflate_result marey__inflate_run(marey__inflate *state, struct marey__inflate_io *io)
{
    (void)state;
    (void)io;
    return MAREY__INFLATE_BROKEN;
}
