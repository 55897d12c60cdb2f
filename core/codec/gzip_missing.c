/* Stands in for the unpacking of gzip in a build that found no library for it. */
#include "codec/codec_internal.h"

const char *const kymo__gzip_missing = "this kymo was built without gzip; unpack the file with "
                                       "gunzip, or install libisal-dev or zlib1g-dev and build "
                                       "again";

kymo__inflate *kymo__inflate_create(void)
{
    return NULL;
}

void kymo__inflate_destroy(kymo__inflate *inflate)
{
    (void)inflate;
}

void kymo__inflate_reset(kymo__inflate *inflate)
{
    (void)inflate;
}

enum kymo__inflate_result kymo__inflate_run(kymo__inflate *state, struct kymo__inflate_io *io)
{
    (void)state;
    (void)io;
    return KYMO__INFLATE_BROKEN;
}
