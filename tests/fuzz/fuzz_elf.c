/* Any bytes as a program file: its functions are within its sections. */
#include <string.h>

#include "codec/internal.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct marey__elf_symbol *symbols;
    size_t n, total = 0;
    /* A copy, so that a read past its end is detected. */
    void *const copy = marey__alloc(size + 1);
    if (copy == NULL)
        return 0;
    memcpy(copy, data, size);
    if (marey__elf_symbols(copy, size, &symbols, &n))
        for (size_t i = 0; i < n; i++) {
            const struct marey__elf_symbol *const found =
                marey__elf_symbol_at(symbols, n, symbols[i].begin);
            MAREY_ASSERT(found == NULL || found->name[0] != '\0');
            total += strlen(symbols[i].name);
        }
    MAREY_ASSERT(total <= n * size);
    uint64_t value, n_bytes;
    (void)marey__elf_find(copy, size, "main", true, &value);
    (void)marey__elf_section(copy, size, ".data", &value, &n_bytes);
    (void)marey__elf_first_address(copy, size, &value);
    marey__free(symbols);
    marey__free(copy);
    return 0;
}
