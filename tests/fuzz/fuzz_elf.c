/* Any bytes as a program file: its functions lie within what it names. */
#include <string.h>

#include "codec/elf_symbols.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kymo__elf_symbol *symbols;
    size_t n, total = 0;
    /* A copy, so that a byte too far is seen. */
    void *const copy = kymo__alloc(size + 1);
    if (copy == NULL)
        return 0;
    memcpy(copy, data, size);
    if (kymo__elf_symbols(copy, size, &symbols, &n))
        for (size_t i = 0; i < n; i++) {
            const struct kymo__elf_symbol *const found =
                kymo__elf_symbol_at(symbols, n, symbols[i].begin);
            KYMO_ASSERT(found == NULL || found->name[0] != '\0');
            total += strlen(symbols[i].name);
        }
    KYMO_ASSERT(total <= n * size);
    uint64_t value, n_bytes;
    (void)kymo__elf_find(copy, size, "main", true, &value);
    (void)kymo__elf_section(copy, size, ".data", &value, &n_bytes);
    (void)kymo__elf_first_address(copy, size, &value);
    kymo__free(symbols);
    kymo__free(copy);
    return 0;
}
