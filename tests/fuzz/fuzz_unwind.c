/*
 * Any bytes as a program and the stack of its thread: frames are within the stack, and everything
 * has a name. Two bytes are the length of the stack, followed by registers, the stack, and the
 * program file.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "sampler/unwind/internal.h"

enum { CODE_AT = 0x400000, STACK_AT = 0x7ff000, MAX_FRAMES = 64 };

struct program {
    const uint8_t *bytes;
    size_t len;
};

static bool maps(void *self, struct marey__buf *to)
{
    (void)self;
    marey__buf_puts(to, "00400000-00410000 r-xp 00000000 00:00 7 /program\n"
                        "00600000-00700000 rwxp 00000000 00:00 0 \n"
                        "007ff000-00900000 rw-p 00000000 00:00 0 [stack]\n");
    return !to->failed;
}

static bool memory(void *self, uint64_t at, void *to, size_t n_bytes)
{
    const struct program *const program = self;
    if (at < CODE_AT || at - CODE_AT > program->len || program->len - (at - CODE_AT) < n_bytes)
        return false;
    memcpy(to, program->bytes + (at - CODE_AT), n_bytes);
    return true;
}

static int file_of(const void *bytes, size_t len)
{
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd >= 0 && !marey__write_all(fd, bytes, len)) {
        close(fd);
        return -1;
    }
    return fd;
}

static int open_map(void *self, const struct marey__remote_map *map)
{
    const struct program *const program = self;
    (void)map;
    return file_of(program->bytes, program->len);
}

/* A file for debugging is the program once more. */
static int open_path(void *self, const char *path)
{
    MAREY_ASSERT(path[0] == '/');
    return open_map(self, NULL);
}

/* Any bytes as the list of generated functions, too. */
static int open_perf_map(void *self)
{
    return open_map(self, NULL);
}

static void source_close(void *self)
{
    (void)self;
}

static void walk(struct marey__unwind *unwind, const uint8_t *registers, const uint8_t *stack,
                 size_t n_stack)
{
    struct marey__native_frame frames[MAX_FRAMES];
    struct marey__unwind_input input = {.stack_at = STACK_AT, .n_stack = n_stack};
    /* A copy, so that a read past its end is detected. */
    uint8_t *const copy = marey__alloc(n_stack + 1);
    if (copy == NULL)
        return;
    memcpy(copy, stack, n_stack);
    input.stack = copy;
    memcpy(input.registers, registers, sizeof input.registers);
    for (int i = 0; i < 3; i++) { /* the third time in the middle of the stack */
        bool is_complete;
        const size_t n = marey__unwind_stack(unwind, &input, frames, MAX_FRAMES, &is_complete);
        MAREY_ASSERT(n >= 1 && n <= MAX_FRAMES &&
                     marey__unwind_stack_size(unwind, STACK_AT, 4096) == 4096);
        for (size_t k = 0; k < n; k++)
            MAREY_ASSERT(marey__unwind_symbol(unwind, frames[k].pc)->name[0] != '\0');
        input.registers[MAREY__UNWIND_SP] = STACK_AT + n_stack / 16 * 8;
    }
    marey__free(copy);
}

/* All functions that the program itself speaks of, more or less. */
static void name_all(struct marey__unwind *unwind)
{
    uint64_t address;
    const struct marey__program *const program = marey__unwind_program_at(unwind, CODE_AT, &address);
    for (uint64_t i = 0; program != NULL && i < MAREY__MIN(program->n_starts, 64); i++) {
        int32_t at;
        memcpy(&at, (const uint8_t *)program->bytes + program->starts_at + i * 8, sizeof at);
        (void)marey__unwind_symbol(unwind, CODE_AT + program->starts_base + (uint64_t)(int64_t)at);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint16_t n_stack;
    struct marey__unwind_files *files;
    struct marey__unwind *unwind;
    const size_t n_head = sizeof n_stack + sizeof(uint64_t) * MAREY__UNWIND_REGISTERS;
    if (size < n_head)
        return 0;
    memcpy(&n_stack, data, sizeof n_stack);
    n_stack = (uint16_t)MAREY__MIN(n_stack, size - n_head);
    struct program program = {data + n_head + n_stack, size - n_head - n_stack};
    const struct marey__unwind_source source = {.maps = maps,
                                                .memory = memory,
                                                .open_map = open_map,
                                                .open_path = open_path,
                                                .open_perf_map = open_perf_map,
                                                .close = source_close,
                                                .self = &program};
    if (marey__unwind_files_create(&files) != MAREY_OK)
        return 0;
    if (marey__unwind_create_from(&source, files, &unwind) == MAREY_OK) {
        walk(unwind, data + sizeof n_stack, data + n_head, n_stack);
        name_all(unwind);
        marey__unwind_destroy(unwind);
    }
    marey__unwind_files_destroy(files);
    return 0;
}
