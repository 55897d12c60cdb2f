/*
 * Program files of the target: segments, ids, functions, rules. One list for all processes; mapped, as few pages are
 * used.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include "sampler/unwind/internal.h"

enum { MAX_RANGES = 1 << 20 };

marey_status marey__unwind_files_create(struct marey__unwind_files **out)
{
    struct marey__unwind_files *const files = marey__calloc(1, sizeof *files);
    MAREY__TRY_MEMORY(files != NULL);
    *out = files;
    return MAREY_OK;
}

void marey__program_free(void *bytes, size_t len, bool is_mapped)
{
    if (is_mapped)
        marey__unmap_file(bytes, len);
    else
        marey__free(bytes);
}

static void destroy(struct marey__program *program)
{
    marey__cfi_close(program->cfi);
    marey__source_close(program->source);
    for (size_t i = 0; i < program->n_functions; i++)
        marey__free(program->functions[i].symbol);
    MAREY__FREE_ALL(program->functions, program->ranges);
    for (size_t i = 0; i < MAREY__COUNT_OF(program->symbols); i++) {
        marey__free(program->symbols[i].symbols);
        marey__program_free(program->symbols[i].bytes, program->symbols[i].len,
                            program->symbols[i].is_mapped);
    }
    marey__program_free(program->bytes, program->len, program->is_mapped);
    marey__program_free(program->cfi_bytes, program->len, program->is_mapped);
    MAREY__FREE_ALL(program->path, program);
}

void marey__unwind_files_destroy(struct marey__unwind_files *files)
{
    if (files == NULL)
        return;
    while (files->first != NULL) {
        struct marey__program *const program = files->first;
        files->first = program->next;
        destroy(program);
    }
    marey__cfi_rules_fini(&files->rules);
    marey__free(files);
}

/* ---- properties of a file ---- */

/* Notes: a build id has a name size, a size, type 3 (four bytes each), and "GNU". */
static void take_notes(struct marey__program *program, const struct marey__elf *elf,
                       const Elf64_Phdr *segment)
{
    const uint8_t *const notes = marey__elf_part(elf, segment->p_offset, segment->p_filesz);
    for (uint64_t at = 0; notes != NULL && segment->p_filesz - at >= sizeof(Elf64_Nhdr);) {
        Elf64_Nhdr note;
        memcpy(&note, notes + at, sizeof note);
        at += sizeof note;
        const uint64_t name = ((uint64_t)note.n_namesz + 3) & ~(uint64_t)3;
        const uint64_t size = ((uint64_t)note.n_descsz + 3) & ~(uint64_t)3;
        if (segment->p_filesz - at < name || segment->p_filesz - at - name < size)
            return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(notes + at, "GNU", 4) == 0 && note.n_descsz <= 32) {
            for (uint32_t i = 0; i < note.n_descsz; i++) {
                static const char digits[] = "0123456789abcdef";
                program->build_id[2 * i] = digits[notes[at + name + i] >> 4];
                program->build_id[2 * i + 1] = digits[notes[at + name + i] & 15];
            }
            return;
        }
        at += name + size;
    }
}

/* .eh_frame_hdr in the form that every linker writes: four-byte numbers relative to its own address. */
static void take_starts(struct marey__program *program, const struct marey__elf *elf,
                        const Elf64_Phdr *segment)
{
    static const uint8_t expected[4] = {1, 0x1b, 0x03, 0x3b};
    const uint8_t *const head = marey__elf_part(elf, segment->p_offset, 12);
    uint32_t n;
    if (head == NULL || memcmp(head, expected, sizeof expected) != 0)
        return;
    memcpy(&n, head + 8, sizeof n);
    if (marey__elf_part(elf, segment->p_offset + 12, (uint64_t)n * 8) == NULL)
        return;
    program->starts_at = segment->p_offset + 12;
    program->n_starts = n;
    program->starts_base = segment->p_vaddr;
}

static void take_sections(struct marey__program *program, const struct marey__elf *elf)
{
    size_t len;
    const uint8_t *found = marey__elf_named(elf, ".gnu_debuglink", &len);
    if (found != NULL && len > 0 &&
        memchr(found, '\0', MAREY__MIN(len, sizeof program->debug_link)) != NULL)
        memcpy(program->debug_link, found, strlen((const char *)found) + 1);
    found = marey__elf_named(elf, ".gnu_debugdata", &len);
    if (found != NULL && len > 0) {
        program->minidebug_at = (uint64_t)(found - elf->bytes);
        program->n_minidebug = len;
    }
}

static bool describe(struct marey__program *program)
{
    struct marey__elf elf;
    Elf64_Phdr segment;
    if (!marey__elf_init(&elf, program->bytes, program->len))
        return false;
    for (uint64_t i = 0; marey__elf_segment_head(&elf, i, &segment); i++) {
        if (segment.p_type == PT_LOAD && program->n_loads < MAREY__COUNT_OF(program->loads)) {
            program->loads[program->n_loads].offset = segment.p_offset;
            program->loads[program->n_loads].n_bytes = segment.p_filesz;
            program->loads[program->n_loads].address = segment.p_vaddr;
            program->loads[program->n_loads++].is_executable = (segment.p_flags & PF_X) != 0;
        } else if (segment.p_type == PT_NOTE && program->build_id[0] == '\0') {
            take_notes(program, &elf, &segment);
        } else if (segment.p_type == PT_GNU_EH_FRAME) {
            take_starts(program, &elf, &segment);
        }
    }
    take_sections(program, &elf);
    return program->n_loads > 0;
}

/* ---- finding ---- */

/* A second mapping of the file with a private writable first page. NULL on failure. */
static void *map_again(int fd, size_t len)
{
    size_t again = 0;
    void *const bytes = marey__map_file(fd, &again);
    if (bytes != NULL && again == len &&
        mprotect(bytes, MAREY__MIN(len, 4096), PROT_READ | PROT_WRITE) == 0)
        return bytes;
    marey__unmap_file(bytes, again);
    return NULL;
}

/* Takes ownership of `made->bytes` and the other mapping. */
static struct marey__program *add(struct marey__unwind_files *files,
                                  const struct marey__program *made, const char *path)
{
    struct marey__program *const program = marey__alloc(sizeof *program);
    if (program == NULL) {
        marey__program_free(made->bytes, made->len, made->is_mapped);
        marey__program_free(made->cfi_bytes, made->len, made->is_mapped);
        return NULL;
    }
    *program = *made;
    program->path = marey__strndup(path, strlen(path));
    if (program->path == NULL || !describe(program)) {
        destroy(program);
        return NULL;
    }
    program->base = marey__base_name(program->path);
    program->next = files->first;
    files->first = program;
    return program;
}

struct marey__program *marey__program_open(struct marey__unwind_files *files, int fd, const char *path)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return NULL;
    struct marey__program made = {.device = (uint64_t)status.st_dev,
                                  .inode = (uint64_t)status.st_ino,
                                  .changed_ns = (uint64_t)status.st_mtim.tv_sec * 1000000000u +
                                                (uint64_t)status.st_mtim.tv_nsec,
                                  .is_mapped = true};
    for (struct marey__program *p = files->first; p != NULL; p = p->next)
        if (p->is_mapped && p->device == made.device && p->inode == made.inode &&
            p->changed_ns == made.changed_ns && p->len == (uint64_t)status.st_size)
            return p;
    made.bytes = marey__map_file(fd, &made.len);
    if (made.bytes == NULL)
        return NULL;
    made.cfi_bytes = map_again(fd, made.len);
    return add(files, &made, path);
}

struct marey__program *marey__program_copy(struct marey__unwind_files *files, void *bytes,
                                           size_t len, const char *path)
{
    for (struct marey__program *p = files->first; p != NULL; p = p->next)
        if (!p->is_mapped && p->len == len && memcmp(p->bytes, bytes, len) == 0) {
            marey__free(bytes);
            return p;
        }
    void *const again = marey__alloc(len);
    if (again != NULL)
        memcpy(again, bytes, len);
    return add(files, &(struct marey__program){.bytes = bytes, .cfi_bytes = again, .len = len}, path);
}

/* ---- addresses ---- */

bool marey__program_address(const struct marey__program *program, uint64_t offset, uint64_t *address)
{
    for (size_t i = 0; i < program->n_loads; i++)
        if (offset >= program->loads[i].offset &&
            offset - program->loads[i].offset < program->loads[i].n_bytes) {
            *address = program->loads[i].address + (offset - program->loads[i].offset);
            if (program->loads[i].is_executable)
                return true;
        }
    return false;
}

const uint8_t *marey__program_at(const struct marey__program *program, uint64_t address,
                                 size_t n_bytes)
{
    for (size_t i = 0; i < program->n_loads; i++) {
        const uint64_t into = address - program->loads[i].address;
        if (address >= program->loads[i].address && into < program->loads[i].n_bytes &&
            n_bytes <= program->loads[i].n_bytes - into && program->loads[i].offset <= program->len &&
            into <= program->len - program->loads[i].offset &&
            n_bytes <= program->len - program->loads[i].offset - into)
            return (const uint8_t *)program->bytes + program->loads[i].offset + into;
    }
    return NULL;
}

static uint64_t start_of(const struct marey__program *program, uint64_t i)
{
    int32_t from_table;
    memcpy(&from_table, (const uint8_t *)program->bytes + program->starts_at + i * 8,
           sizeof from_table);
    return program->starts_base + (uint64_t)(int64_t)from_table;
}

bool marey__program_start(const struct marey__program *program, uint64_t address, uint64_t *begin,
                          uint64_t *end)
{
    size_t at;
    MAREY__BISECT(at, 0, program->n_starts, start_of(program, at) <= address);
    if (at == 0)
        return false;
    *begin = start_of(program, at - 1);
    *end = at < program->n_starts ? start_of(program, at) : UINT64_MAX;
    return *begin <= address && address < *end;
}

/* ---- rules ---- */

/*
 * Caches a result as range `at`. It begins at the queried address: libdw's begin is too low if the entry returns to an
 * earlier state, as it does after every return in the middle of a function.
 */
static void keep_range(struct marey__program *program, size_t at, struct marey__cfi_range range)
{
    if (at < program->n_ranges && program->ranges[at].begin <= range.end) {
        if (program->ranges[at].rule == range.rule) {
            program->ranges[at].begin = range.begin;
            return;
        }
        range.end = program->ranges[at].begin;
    }
    if (program->n_ranges >= MAX_RANGES ||
        !marey__grow(&program->ranges, &program->ranges_cap, program->n_ranges + 1, sizeof range))
        return;
    memmove(program->ranges + at + 1, program->ranges + at, (program->n_ranges - at) * sizeof range);
    program->ranges[at] = range;
    program->n_ranges++;
}

uint32_t marey__program_rule(struct marey__unwind_files *files, struct marey__program *program,
                             uint64_t address, bool *has_asked)
{
    struct marey__cfi_range found;
    size_t at; /* of the first range that begins after `address` */
    MAREY__BISECT(at, 0, program->n_ranges, program->ranges[at].begin <= address);
    if (at > 0 && address < program->ranges[at - 1].end)
        return program->ranges[at - 1].rule;
    if (!program->was_cfi_opened) {
        program->was_cfi_opened = true;
        if (program->cfi_bytes != NULL)
            program->cfi = marey__cfi_open(program->cfi_bytes, program->len);
    }
    *has_asked = program->cfi != NULL;
    if (program->cfi == NULL || !marey__cfi_at(program->cfi, address, &files->rules, &found))
        return 0;
    keep_range(program, at, found);
    return found.rule;
}
