/* elf_symbols.c: parts of a program file, which of its functions an address belongs to, and where a named thing is. */
#ifndef MAREY_ELF_SYMBOLS_H
#define MAREY_ELF_SYMBOLS_H

#include <elf.h>

#include "base/base_internal.h"

/* A program file of 64 bits in this machine's byte order, trusted in nothing. */
struct marey__elf {
    const uint8_t *bytes;
    size_t len;
    Elf64_Ehdr head;
};
/* False: the bytes are no such file. */
bool marey__elf_init(struct marey__elf *elf, const void *bytes, size_t len);
/* Bytes from `at` on, NULL when they are not all there. */
const void *marey__elf_part(const struct marey__elf *elf, uint64_t at, uint64_t len);
/* The i-th section and segment; false when there are no more. */
bool marey__elf_section_head(const struct marey__elf *elf, uint64_t i, Elf64_Shdr *out);
bool marey__elf_segment_head(const struct marey__elf *elf, uint64_t i, Elf64_Phdr *out);
/* The bytes of the section called `name`; NULL: there is none, or not all of it. */
const uint8_t *marey__elf_named(const struct marey__elf *elf, const char *name, size_t *len);

struct marey__elf_symbol {
    uint64_t begin, end;
    const char *name; /* lent by the bytes */
};
/* The functions that an ELF file of 64 bits names, by address; false without memory. Bytes that are none give none. */
MAREY_WARN_UNUSED bool marey__elf_symbols(const void *bytes, size_t len,
                                          struct marey__elf_symbol **out, size_t *n);

/* The one of `n` symbols in order that reaches over `address`; NULL: none. */
const struct marey__elf_symbol *marey__elf_symbol_at(const struct marey__elf_symbol *symbols,
                                                     size_t n, uint64_t address);
/*
 * A symbol that is not undefined, of any kind, by its exact name: among those that the loader uses (they survive strip),
 * then, if `is_thorough`, in the full table, which may take long. Its value, an address before the file is loaded
 * somewhere; false when there is none.
 */
bool marey__elf_find(const void *bytes, size_t len, const char *name, bool is_thorough,
                     uint64_t *value);
/* A section by its name: its address before loading and its length; false when there is none. */
bool marey__elf_section(const void *bytes, size_t len, const char *name, uint64_t *begin,
                        uint64_t *n_bytes);
/* The lowest address that the file asks for, rounded down to a page: what was mapped lowest less this is the bias. */
bool marey__elf_first_address(const void *bytes, size_t len, uint64_t *out);

/* Files that were looked into, zeroed at first. */
struct marey__elf_files {
    struct marey__elf_file {
        char *path;
        void *bytes; /* mapped; NULL: it cannot be had */
        size_t len;
        struct marey__elf_symbol *symbols;
        size_t n_symbols;
    } * files;
    size_t n, cap;
    size_t n_newer; /* that were changed after the run, and so are of no use */
};
/*
 * The function at `address` of the file `path`, lent while `files` is there; NULL when that is not known, or the file is
 * younger than `run_unix_ns`. C++ names are as the linker has them.
 */
const char *marey__elf_function(struct marey__elf_files *files, const char *path, uint64_t address,
                                uint64_t run_unix_ns);
void marey__elf_files_fini(struct marey__elf_files *files);

#endif
