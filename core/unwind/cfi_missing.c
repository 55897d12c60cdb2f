/* A build without libdw: stacks are followed by frame pointers, else searched. */
#include "unwind/unwind_internal.h"

bool kymo__unwind_has_rules(void)
{
    return false;
}

struct kymo__cfi *kymo__cfi_open(void *bytes, size_t len)
{
    (void)bytes, (void)len;
    return NULL;
}

void kymo__cfi_close(struct kymo__cfi *cfi)
{
    (void)cfi;
}

bool kymo__cfi_at(struct kymo__cfi *cfi, uint64_t address, struct kymo__cfi_rules *rules,
                  struct kymo__cfi_range *out)
{
    (void)cfi, (void)address, (void)rules, (void)out;
    return false;
}
