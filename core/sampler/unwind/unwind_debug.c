/*
 * Symbol tables of a program: its own, and separate ones: in .gnu_debugdata (xz-compressed), in a file by build id, or
 * in one named by .gnu_debuglink. Debug files are searched where the target would find them.
 */
#include <sys/mman.h>
#include <unistd.h>
#ifdef MAREY_HAVE_LZMA
#include <lzma.h>
#endif

#include "sampler/unwind/internal.h"

#ifdef MAREY_HAVE_LZMA
enum { MAX_UNPACKED = 64 << 20, MAX_UNPACKER = 64 << 20 };

static void *unpack(const uint8_t *packed, size_t n_packed, size_t *len)
{
    /* Fedora's are about five times as large uncompressed; if that does not suffice, retry once with the maximum. */
    for (size_t cap = MAREY__MIN(n_packed * 8 + 4096, MAX_UNPACKED);; cap = MAX_UNPACKED) {
        uint64_t memory = MAX_UNPACKER;
        size_t in = 0;
        uint8_t *const to = marey__alloc(cap);
        *len = 0;
        if (to == NULL)
            return NULL;
        const lzma_ret done =
            lzma_stream_buffer_decode(&memory, 0, NULL, packed, &in, n_packed, to, len, cap);
        if (done == LZMA_OK)
            return to;
        marey__free(to);
        if (done != LZMA_BUF_ERROR || cap == MAX_UNPACKED)
            return NULL;
    }
}
#else
static void *unpack(const uint8_t *packed, size_t n_packed, size_t *len)
{
    (void)packed, (void)n_packed, (void)len;
    return NULL;
}
#endif

/* Takes ownership of `symbols->bytes`, and frees them if there are no symbols. */
static bool take(struct marey__program_symbols *symbols)
{
    if (!marey__elf_symbols(symbols->bytes, symbols->len, &symbols->symbols, &symbols->n))
        symbols->n = 0;
    if (symbols->n > 0)
        return true;
    marey__free(symbols->symbols);
    marey__program_free(symbols->bytes, symbols->len, symbols->is_mapped);
    *symbols = (struct marey__program_symbols){0};
    return false;
}

static bool take_file(struct marey__program *program, const struct marey__unwind_source *source,
                      const char *path)
{
    struct marey__program_symbols *const symbols = &program->symbols[1];
    const int fd = source->open_path(source->self, path);
    if (fd < 0)
        return false;
    symbols->bytes = marey__map_file(fd, &symbols->len);
    symbols->is_mapped = true;
    close(fd);
    return symbols->bytes != NULL && take(symbols);
}

static void look_for_more(struct marey__program *program, const struct marey__unwind_source *source)
{
    char path[4096];
    const int folder = (int)(program->base - program->path);
    if (strlen(program->build_id) > 2) {
        snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s.debug", program->build_id,
                 program->build_id + 2);
        if (take_file(program, source, path))
            return;
    }
    if (program->n_minidebug > 0) {
        struct marey__program_symbols *const symbols = &program->symbols[1];
        symbols->is_mapped = false;
        symbols->bytes = unpack((const uint8_t *)program->bytes + program->minidebug_at,
                                (size_t)program->n_minidebug, &symbols->len);
        if (symbols->bytes != NULL && take(symbols))
            return;
    }
    static const char *const places[] = {"%.*s%s", "%.*s.debug/%s", "/usr/lib/debug%.*s%s"};
    if (program->debug_link[0] == '\0' || strchr(program->debug_link, '/') != NULL || folder > 2048)
        return;
    for (size_t i = 0; i < MAREY__COUNT_OF(places); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(path, sizeof path, places[i], folder, program->path, program->debug_link);
#pragma GCC diagnostic pop
        if (strcmp(path, program->path) != 0 && take_file(program, source, path))
            return;
    }
}

void marey__program_read_symbols(struct marey__program *program,
                                 const struct marey__unwind_source *source)
{
    if (program->were_symbols_read)
        return;
    program->were_symbols_read = true;
    struct marey__program_symbols *const own = &program->symbols[0];
    if (!marey__elf_symbols(program->bytes, program->len, &own->symbols, &own->n))
        own->n = 0;
    struct marey__elf elf;
    Elf64_Shdr section;
    bool has_all = false; /* a .symtab: the file is not stripped */
    if (marey__elf_init(&elf, program->bytes, program->len))
        for (uint64_t i = 0; marey__elf_section_head(&elf, i, &section) && !has_all; i++)
            has_all = section.sh_type == SHT_SYMTAB;
    if (!has_all)
        look_for_more(program, source);
    /* Release the pages of tables read once; names are paged in again on demand. */
    if (program->is_mapped)
        madvise(program->bytes, program->len, MADV_DONTNEED);
}
