/* Symbols of 64-bit ELF files in this machine's byte order. The bytes are untrusted. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/internal.h"

bool marey__elf_init(struct marey__elf *elf, const void *bytes, size_t len)
{
    *elf = (struct marey__elf){.bytes = bytes, .len = len};
    if (len < sizeof elf->head)
        return false;
    memcpy(&elf->head, bytes, sizeof elf->head);
    return memcmp(elf->head.e_ident, ELFMAG, SELFMAG) == 0 &&
           elf->head.e_ident[EI_CLASS] == ELFCLASS64 && elf->head.e_ident[EI_DATA] == ELFDATA2LSB;
}

const void *marey__elf_part(const struct marey__elf *elf, uint64_t at, uint64_t len)
{
    return at <= elf->len && len <= elf->len - at ? elf->bytes + at : NULL;
}

/* Copies header `i` of a table of `n`, each of `size` bytes. */
static bool copy_head(const struct marey__elf *elf, uint64_t table, uint64_t i, uint64_t n,
                      size_t size, void *out)
{
    const void *const found =
        i < n && table <= elf->len ? marey__elf_part(elf, table + i * size, size) : NULL;
    if (found != NULL)
        memcpy(out, found, size);
    return found != NULL;
}

bool marey__elf_section_head(const struct marey__elf *elf, uint64_t i, Elf64_Shdr *out)
{
    const Elf64_Ehdr *const head = &elf->head;
    return head->e_shentsize == sizeof *out &&
           copy_head(elf, head->e_shoff, i, head->e_shnum, sizeof *out, out);
}

bool marey__elf_segment_head(const struct marey__elf *elf, uint64_t i, Elf64_Phdr *out)
{
    const Elf64_Ehdr *const head = &elf->head;
    return head->e_phentsize == sizeof *out &&
           copy_head(elf, head->e_phoff, i, head->e_phnum, sizeof *out, out);
}

const uint8_t *marey__elf_named(const struct marey__elf *elf, const char *name, size_t *len)
{
    const size_t n = strlen(name) + 1;
    Elf64_Shdr names, section;
    if (!marey__elf_section_head(elf, elf->head.e_shstrndx, &names))
        return NULL;
    for (uint64_t i = 0; marey__elf_section_head(elf, i, &section); i++) {
        const char *const own =
            section.sh_name < names.sh_size && names.sh_size - section.sh_name >= n
                ? marey__elf_part(elf, names.sh_offset, names.sh_size)
                : NULL;
        if (own == NULL || section.sh_type == SHT_NOBITS ||
            memcmp(own + section.sh_name, name, n) != 0)
            continue;
        *len = (size_t)section.sh_size;
        return marey__elf_part(elf, section.sh_offset, section.sh_size);
    }
    return NULL;
}

MAREY__ORDER(by_begin, struct marey__elf_symbol, MAREY__UP(begin))

/* Adds the functions of one symbol table. */
static bool take_table(const struct marey__elf *elf, const Elf64_Shdr *table,
                       const Elf64_Shdr *texts, struct marey__elf_symbol **out, size_t *n)
{
    const uint64_t count = table->sh_size / sizeof(Elf64_Sym);
    const uint8_t *const symbols = marey__elf_part(elf, table->sh_offset, table->sh_size);
    const char *const names = marey__elf_part(elf, texts->sh_offset, texts->sh_size);
    if (symbols == NULL || names == NULL || count == 0 || texts->sh_size == 0 ||
        names[texts->sh_size - 1] != '\0')
        return true;
    *out = marey__alloc(count * sizeof **out);
    if (*out == NULL)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, symbols + i * sizeof symbol, sizeof symbol);
        /* Does not read names: that would page in tens of megabytes of a large library. */
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF &&
            symbol.st_name != 0 && symbol.st_name < texts->sh_size)
            (*out)[(*n)++] = (struct marey__elf_symbol){
                symbol.st_value, symbol.st_value + symbol.st_size, names + symbol.st_name};
    }
    qsort(*out, *n, sizeof **out, by_begin);
    if (*n > 0) { /* Half of a table may be other things than functions. */
        struct marey__elf_symbol *const fitting = marey__realloc(*out, *n * sizeof **out);
        *out = fitting != NULL ? fitting : *out;
    }
    return true;
}

/* Uses the full table if it exists, else the dynamic one. */
bool marey__elf_symbols(const void *bytes, size_t len, struct marey__elf_symbol **out, size_t *n)
{
    struct marey__elf elf;
    Elf64_Shdr table, texts;
    *out = NULL;
    *n = 0;
    if (!marey__elf_init(&elf, bytes, len))
        return true;
    for (unsigned type = SHT_SYMTAB;; type = SHT_DYNSYM) {
        for (uint64_t i = 0; marey__elf_section_head(&elf, i, &table); i++)
            if (table.sh_type == type && marey__elf_section_head(&elf, table.sh_link, &texts))
                return take_table(&elf, &table, &texts, out, n);
        if (type == SHT_DYNSYM)
            return true;
    }
}

const struct marey__elf_symbol *marey__elf_symbol_at(const struct marey__elf_symbol *symbols,
                                                     size_t n, uint64_t address)
{
    size_t after;
    MAREY__BISECT(after, 0, n, symbols[after].begin <= address);
    /* Several may begin here, some without a size: take one that contains the address. */
    for (size_t i = after; i > 0 && after - i < 8; i--)
        if (address < symbols[i - 1].end && symbols[i - 1].name[0] != '\0')
            return &symbols[i - 1];
    return NULL;
}

/* ---- single symbols and sections ---- */

static bool find_in(const struct marey__elf *elf, const Elf64_Shdr *table, const Elf64_Shdr *texts,
                    const char *name, uint64_t *value)
{
    const uint64_t count = table->sh_size / sizeof(Elf64_Sym);
    const uint8_t *const symbols = marey__elf_part(elf, table->sh_offset, table->sh_size);
    const char *const names = marey__elf_part(elf, texts->sh_offset, texts->sh_size);
    if (symbols == NULL || names == NULL || texts->sh_size == 0 || names[texts->sh_size - 1] != '\0')
        return false;
    for (uint64_t i = 0; i < count; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, symbols + i * sizeof symbol, sizeof symbol);
        if (symbol.st_shndx != SHN_UNDEF && symbol.st_name < texts->sh_size &&
            strcmp(names + symbol.st_name, name) == 0) {
            *value = symbol.st_value;
            return true;
        }
    }
    return false;
}

bool marey__elf_find(const void *bytes, size_t len, const char *name, bool is_thorough,
                     uint64_t *value)
{
    static const unsigned types[] = {SHT_DYNSYM, SHT_SYMTAB};
    struct marey__elf elf;
    Elf64_Shdr table, texts;
    if (!marey__elf_init(&elf, bytes, len))
        return false;
    for (size_t t = 0; t < (is_thorough ? 2u : 1u); t++)
        for (uint64_t i = 0; marey__elf_section_head(&elf, i, &table); i++)
            if (table.sh_type == types[t] && marey__elf_section_head(&elf, table.sh_link, &texts) &&
                find_in(&elf, &table, &texts, name, value))
                return true;
    return false;
}

bool marey__elf_section(const void *bytes, size_t len, const char *name, uint64_t *begin,
                        uint64_t *n_bytes)
{
    struct marey__elf elf;
    Elf64_Shdr texts, one;
    if (!marey__elf_init(&elf, bytes, len) ||
        !marey__elf_section_head(&elf, elf.head.e_shstrndx, &texts))
        return false;
    const char *const names = marey__elf_part(&elf, texts.sh_offset, texts.sh_size);
    if (names == NULL || texts.sh_size == 0 || names[texts.sh_size - 1] != '\0')
        return false;
    for (uint64_t i = 0; marey__elf_section_head(&elf, i, &one); i++)
        if (one.sh_name < texts.sh_size && strcmp(names + one.sh_name, name) == 0) {
            *begin = one.sh_addr;
            *n_bytes = one.sh_size;
            return true;
        }
    return false;
}

bool marey__elf_first_address(const void *bytes, size_t len, uint64_t *out)
{
    struct marey__elf elf;
    Elf64_Phdr one;
    bool is_found = false;
    if (!marey__elf_init(&elf, bytes, len))
        return false;
    for (uint64_t i = 0; marey__elf_segment_head(&elf, i, &one); i++) {
        const uint64_t begin = one.p_vaddr & ~(uint64_t)4095;
        if (one.p_type != PT_LOAD)
            continue;
        if (!is_found || begin < *out)
            *out = begin;
        is_found = true;
    }
    return is_found;
}

/* ---- files ---- */

static void open_file(struct marey__elf_files *files, struct marey__elf_file *file,
                      uint64_t run_unix_ns)
{
    struct stat status;
    /* The path comes from a recording: it may be a pipe or a terminal. */
    const int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size <= 0) {
        close(fd);
        return;
    }
    if ((uint64_t)status.st_mtim.tv_sec * 1000000000u > run_unix_ns) {
        files->n_newer++;
    } else {
        file->bytes = marey__map_file(fd, &file->len);
        if (file->bytes != NULL &&
            !marey__elf_symbols(file->bytes, file->len, &file->symbols, &file->n_symbols))
            file->n_symbols = 0;
    }
    close(fd);
}

static struct marey__elf_file *file_of(struct marey__elf_files *files, const char *path,
                                       uint64_t run_unix_ns)
{
    for (size_t i = 0; i < files->n; i++)
        if (strcmp(files->files[i].path, path) == 0)
            return &files->files[i];
    if (!marey__grow(&files->files, &files->cap, files->n + 1, sizeof *files->files))
        return NULL;
    struct marey__elf_file *const file = &files->files[files->n];
    *file = (struct marey__elf_file){.path = marey__strndup(path, strlen(path))};
    if (file->path == NULL)
        return NULL;
    files->n++;
    open_file(files, file, run_unix_ns);
    return file;
}

const char *marey__elf_function(struct marey__elf_files *files, const char *path, uint64_t address,
                                uint64_t run_unix_ns)
{
    const struct marey__elf_file *const file = file_of(files, path, run_unix_ns);
    const struct marey__elf_symbol *const found =
        file != NULL ? marey__elf_symbol_at(file->symbols, file->n_symbols, address) : NULL;
    return found != NULL ? found->name : NULL;
}

void marey__elf_files_fini(struct marey__elf_files *files)
{
    for (size_t i = 0; i < files->n; i++) {
        MAREY__FREE_ALL(files->files[i].path, files->files[i].symbols);
        if (files->files[i].bytes != NULL)
            marey__unmap_file(files->files[i].bytes, files->files[i].len);
    }
    marey__free(files->files);
}
