/* Symbolizes addresses: by the symbols of the file, by perf-PID.map for generated code, else by location. */
#include <unistd.h>

#include "sampler/unwind/internal.h"

enum { MAX_NAME = 512, MAX_FUNCTIONS = 1 << 20, MAX_JIT = 1 << 18 };
static const uint64_t jit_again_ns = 1000000000u;

const struct marey__native_symbol marey__native_unknown = {
    .name = "[unknown]", .library = "[anon]", .path = "", .build_id = ""};

struct made {
    struct marey__native_symbol symbol;
    uint32_t tag;
    char name[];
};

/* Allocates a symbol with its name; NULL on out of memory. */
static struct marey__native_symbol *make_symbol(const char *name,
                                                const struct marey__program *program,
                                                uint64_t address, bool *is_outermost)
{
    const size_t len = strlen(name);
    struct made *const made = marey__alloc(sizeof *made + len + 1);
    if (made == NULL)
        return NULL;
    memcpy(made->name, name, len + 1);
    made->tag = 0;
    made->symbol =
        (struct marey__native_symbol){.name = made->name,
                                      .library = program != NULL ? program->base : "[jit]",
                                      .path = program != NULL ? program->path : "",
                                      .build_id = program != NULL ? program->build_id : "",
                                      .address = address,
                                      .role = marey__native_role(name, is_outermost)};
    return &made->symbol;
}

uint32_t *marey__native_symbol_tag(const struct marey__native_symbol *symbol)
{
    /* All but the shared unknown symbol were allocated above and are writable. */
    return symbol != &marey__native_unknown ? &((struct made *)(uintptr_t)symbol)->tag : NULL;
}

/* The index of the first one that begins after `address`. */
static size_t first_after(const struct marey__program_function *functions, size_t n, uint64_t address)
{
    size_t at;
    MAREY__BISECT(at, 0, n, functions[at].begin <= address);
    return at;
}

/* The array has room. Symbols may overlap: an address belongs to the function it was first found in. */
static void insert(struct marey__program_function *functions, size_t *n, size_t at,
                   struct marey__program_function *function)
{
    if (at > 0)
        function->begin = MAREY__MAX(function->begin, functions[at - 1].end);
    if (at < *n)
        function->end = MAREY__MIN(function->end, functions[at].begin);
    memmove(functions + at + 1, functions + at, (*n - at) * sizeof *functions);
    functions[at] = *function;
    ++*n;
}

const struct marey__elf_symbol *marey__program_symbol_at(const struct marey__program *program,
                                                         uint64_t address)
{
    const struct marey__elf_symbol *found = NULL;
    for (size_t i = 0; i < MAREY__COUNT_OF(program->symbols) && found == NULL; i++)
        found = marey__elf_symbol_at(program->symbols[i].symbols, program->symbols[i].n, address);
    return found;
}

/* The range and name of the function around `address`. */
static void describe(const struct marey__program *program, uint64_t address,
                     struct marey__program_function *function, char *name, size_t cap)
{
    const struct marey__elf_symbol *const symbol = marey__program_symbol_at(program, address);
    if (symbol != NULL) {
        function->begin = symbol->begin;
        function->end = symbol->end;
        marey__demangle(symbol->name, name, cap);
        return;
    }
    char base[128];
    marey__native_clean(program->base, strlen(program->base), base, sizeof base);
    if (marey__program_start(program, address, &function->begin, &function->end)) {
        snprintf(name, cap, "[%s+0x%llx]", base, (unsigned long long)function->begin);
    } else {
        function->begin = address & ~(uint64_t)4095;
        function->end = function->begin + 4096;
        snprintf(name, cap, "[%s]", base);
    }
}

const struct marey__program_function *marey__program_name(struct marey__program *program,
                                                          const struct marey__unwind_source *source,
                                                          uint64_t address)
{
    size_t at = first_after(program->functions, program->n_functions, address);
    if (at > 0 && address < program->functions[at - 1].end)
        return &program->functions[at - 1];
    marey__program_read_symbols(program, source);
    char name[MAX_NAME];
    struct marey__program_function function = {0};
    if (program->n_functions >= MAX_FUNCTIONS ||
        !marey__grow(&program->functions, &program->functions_cap, program->n_functions + 1,
                     sizeof function))
        return NULL;
    describe(program, address, &function, name, sizeof name);
    function.symbol = make_symbol(name, program, function.begin, &function.is_outermost);
    if (function.symbol == NULL)
        return NULL;
    insert(program->functions, &program->n_functions, at, &function);
    return &program->functions[at];
}

const struct marey__native_symbol *marey__unwind_symbol(struct marey__unwind *unwind, uint64_t pc)
{
    return marey__unwind_lookup(unwind, pc)->symbol;
}

/* ---- generated code ---- */

/* "start size name", in hexadecimal. */
static void take_line(struct marey__unwind *unwind, const char *line, size_t len)
{
    char text[MAX_NAME + 64], name[MAX_NAME];
    unsigned long long begin, size;
    int used = 0;
    len = MAREY__MIN(len, sizeof text - 1);
    memcpy(text, line, len);
    text[len] = '\0';
    if (sscanf(text, "%llx %llx %n", &begin, &size, &used) != 2 || used == 0 ||
        text[used] == '\0' || size == 0 || begin + size < begin)
        return;
    const size_t at = first_after(unwind->jit, unwind->n_jit, begin);
    /* The file only grows. A known function keeps its range and name, even if others reuse it later. */
    if ((at > 0 && unwind->jit[at - 1].end > begin) || unwind->n_jit >= MAX_JIT ||
        !marey__grow(&unwind->jit, &unwind->jit_cap, unwind->n_jit + 1, sizeof *unwind->jit))
        return;
    struct marey__program_function function = {.begin = begin, .end = begin + size};
    marey__demangle(text + used, name, sizeof name);
    function.symbol = make_symbol(name, NULL, begin, &function.is_outermost);
    if (function.symbol == NULL)
        return;
    insert(unwind->jit, &unwind->n_jit, at, &function);
}

/* Reads what was appended since the last time. The file is untrusted and may not end. */
static void read_jit(struct marey__unwind *unwind)
{
    enum { PIECE = 1 << 16, MAX_FILE = 64 << 20 };
    const int fd = unwind->source.open_perf_map(unwind->source.self);
    char *const text MAREY__FREED = fd >= 0 ? marey__alloc(PIECE) : NULL;
    while (text != NULL && unwind->jit_at < MAX_FILE) {
        const ssize_t n = pread(fd, text, PIECE, unwind->jit_at);
        if (n <= 0)
            break;
        const char *line = text;
        for (const char *end; (end = memchr(line, '\n', (size_t)(text + n - line))) != NULL;) {
            take_line(unwind, line, (size_t)(end - line));
            line = end + 1;
        }
        if (line == text && n < PIECE) /* The line is still being written. */
            break;
        unwind->jit_at += line != text ? line - text : n;
    }
    if (fd >= 0)
        close(fd);
}

const struct marey__program_function *marey__unwind_jit_at(struct marey__unwind *unwind, uint64_t pc)
{
    const uint64_t now = marey__remote_now_ns();
    size_t at = first_after(unwind->jit, unwind->n_jit, pc);
    if ((at == 0 || pc >= unwind->jit[at - 1].end) &&
        (unwind->jit_read_ns == 0 || now - unwind->jit_read_ns > jit_again_ns)) {
        unwind->jit_read_ns = now;
        read_jit(unwind);
        at = first_after(unwind->jit, unwind->n_jit, pc);
    }
    return at > 0 && pc < unwind->jit[at - 1].end ? &unwind->jit[at - 1] : NULL;
}
