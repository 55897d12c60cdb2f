/* A build without libdw: unwinds by frame pointers, else by searching the stack; frames have no lines. */
#include "sampler/unwind/internal.h"

bool marey__unwind_has_rules(void)
{
    return false;
}

struct marey__cfi *marey__cfi_open(void *bytes, size_t len)
{
    (void)bytes, (void)len;
    return NULL;
}

void marey__cfi_close(struct marey__cfi *cfi)
{
    (void)cfi;
}

struct marey__source *marey__source_open(void *bytes, size_t len)
{
    (void)bytes, (void)len;
    return NULL;
}

void marey__source_close(struct marey__source *source)
{
    (void)source;
}

size_t marey__source_lines(struct marey__source *source, uint64_t address,
                           struct marey__source_line out[MAREY__SOURCE_LINES])
{
    (void)source, (void)address, (void)out;
    return 0;
}

bool marey__cfi_at(struct marey__cfi *cfi, uint64_t address, struct marey__cfi_rules *rules,
                   struct marey__cfi_range *out)
{
    (void)cfi, (void)address, (void)rules, (void)out;
    return false;
}
