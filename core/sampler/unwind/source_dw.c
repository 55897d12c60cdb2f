/* Source lines and inlined functions with libdw of elfutils. */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>

#include "sampler/unwind/internal.h"

enum { MAX_COPY = 64 << 20 };

struct marey__source {
    Elf *elf;
    Dwarf *dwarf;
    void *copy; /* NULL: uses the lent bytes */
};

/* libdw decompresses such sections and modifies their headers. */
static bool has_packed_sections(Elf *elf)
{
    GElf_Shdr head;
    for (Elf_Scn *at = NULL; (at = elf_nextscn(elf, at)) != NULL;)
        if (gelf_getshdr(at, &head) != NULL && (head.sh_flags & SHF_COMPRESSED) != 0)
            return true;
    return false;
}

struct marey__source *marey__source_open(void *bytes, size_t len)
{
    struct marey__source *const source = marey__calloc(1, sizeof *source);
    if (source == NULL || elf_version(EV_CURRENT) == EV_NONE) {
        marey__free(source);
        return NULL;
    }
    source->elf = elf_memory(bytes, len);
    if (source->elf != NULL && has_packed_sections(source->elf)) {
        elf_end(source->elf);
        source->copy = len <= MAX_COPY ? marey__alloc(len) : NULL;
        source->elf = source->copy != NULL ? elf_memory(memcpy(source->copy, bytes, len), len) : NULL;
    }
    if (source->elf != NULL && elf_kind(source->elf) == ELF_K_ELF)
        source->dwarf = dwarf_begin_elf(source->elf, DWARF_C_READ, NULL);
    if (source->dwarf != NULL)
        return source;
    marey__source_close(source);
    return NULL;
}

void marey__source_close(struct marey__source *source)
{
    if (source == NULL)
        return;
    dwarf_end(source->dwarf);
    elf_end(source->elf);
    MAREY__FREE_ALL(source->copy, source);
}

/* Clang writes no address table by unit: then search the units one by one. */
static bool find_unit(struct marey__source *source, Dwarf_Addr address, Dwarf_Die *unit)
{
    Dwarf_CU *at = NULL;
    uint8_t type;
    if (dwarf_addrdie(source->dwarf, address, unit) != NULL)
        return true;
    while (dwarf_get_units(source->dwarf, at, &at, NULL, &type, unit, NULL) == 0)
        if (type == DW_UT_compile && dwarf_haspc(unit, address) == 1)
            return true;
    return false;
}

static void put_file(Dwarf_Die *unit, const char *file, struct marey__source_line *out)
{
    Dwarf_Attribute attribute;
    const char *const folder = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
    char path[sizeof out->file];
    if (file[0] == '/' || folder == NULL)
        snprintf(path, sizeof path, "%s", file);
    else
        snprintf(path, sizeof path, "%s/%s", folder, file + (strncmp(file, "./", 2) == 0 ? 2 : 0));
    marey__native_clean(path, strlen(path), out->file, sizeof out->file);
}

static uint64_t number_of(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    return dwarf_formudata(dwarf_attr(die, name, &attribute), &value) == 0 ? value : 0;
}

/* Full C++ names: the linkage name includes the class. */
static void put_name(Dwarf_Die *die, struct marey__source_line *out)
{
    Dwarf_Attribute attribute;
    const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));
    name = name != NULL ? name : dwarf_diename(die);
    marey__demangle(name != NULL ? name : "[inlined]", out->name, sizeof out->name);
}

/* The call site of an inlined function in the enclosing function. */
static void put_call(Dwarf_Die *unit, Dwarf_Die *inlined, struct marey__source_line *out)
{
    Dwarf_Files *files;
    size_t n = 0;
    const uint64_t file = number_of(inlined, DW_AT_call_file);
    const char *const path = dwarf_getsrcfiles(unit, &files, &n) == 0 && file < n
                                 ? dwarf_filesrc(files, file, NULL, NULL)
                                 : NULL;
    *out = (struct marey__source_line){.line = (uint32_t)number_of(inlined, DW_AT_call_line)};
    put_file(unit, path != NULL ? path : "", out);
}

size_t marey__source_lines(struct marey__source *source, uint64_t address,
                           struct marey__source_line out[MAREY__SOURCE_LINES])
{
    Dwarf_Die unit, *scopes = NULL;
    Dwarf_Line *const at =
        find_unit(source, address, &unit) ? dwarf_getsrc_die(&unit, address) : NULL;
    const char *const file = at != NULL ? dwarf_linesrc(at, NULL, NULL) : NULL;
    int line;
    if (file == NULL || dwarf_lineno(at, &line) != 0)
        return 0;
    out[0] = (struct marey__source_line){.line = (uint32_t)line};
    put_file(&unit, file, &out[0]);
    size_t n = 1;
    const int n_scopes = dwarf_getscopes(&unit, address, &scopes);
    for (int i = 0; i < n_scopes && n < MAREY__SOURCE_LINES; i++) {
        if (dwarf_tag(&scopes[i]) == DW_TAG_subprogram)
            break;
        if (dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine)
            continue;
        put_name(&scopes[i], &out[n - 1]);
        put_call(&unit, &scopes[i], &out[n++]);
    }
    free(scopes); /* allocated by libdw */
    return n;
}
