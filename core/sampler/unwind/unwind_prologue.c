/*
 * The size of a frame from the first instructions of its function. MKL and other hand-written kernels have no call
 * frame information and no frame pointer, but begin like others: push registers, lower the stack pointer, store
 * registers. Decodes from the start of the function to the current instruction; at the first other instruction the
 * frame is assumed complete.
 */
#include "sampler/unwind/internal.h"

#if defined(__x86_64__)

struct prologue {
    int64_t depth;    /* bytes from the stack pointer to the return address */
    bool has_pointer; /* rbp points to the frame, and rsp may be anywhere */
    struct {
        int64_t below; /* offset from the return address */
        uint8_t reg;
    } saved[8];
    size_t n_saved;
};

/* The DWARF number of a callee-saved register, by its machine number; 0 for others. */
static uint8_t kept(unsigned number)
{
    return number == 3                    ? 3
           : number == 5                  ? MAREY__UNWIND_FP
           : number >= 12 && number <= 15 ? (uint8_t)number
                                          : 0;
}

static void save(struct prologue *p, unsigned number, int64_t below)
{
    if (kept(number) == 0 || p->n_saved >= MAREY__COUNT_OF(p->saved))
        return;
    p->saved[p->n_saved].reg = kept(number);
    p->saved[p->n_saved++].below = below;
}

/* push, with or without prefix. Returns its length, 0 for another instruction. */
static size_t take_push(struct prologue *p, const uint8_t *code, size_t n)
{
    const size_t prefix = n > 1 && code[0] == 0x41;
    if (n <= prefix || (code[prefix] & 0xf8) != 0x50)
        return 0;
    p->depth += 8;
    save(p, (code[prefix] & 7) + 8 * (unsigned)prefix, p->depth);
    return prefix + 1;
}

/* sub $n,%rsp, or add of a negative number. */
static size_t take_room(struct prologue *p, const uint8_t *code, size_t n)
{
    int32_t by;
    if (n < 4 || code[0] != 0x48 || (code[1] != 0x83 && code[1] != 0x81) ||
        (code[2] != 0xec && code[2] != 0xc4) || (code[1] == 0x81 && n < 7))
        return 0;
    if (code[1] == 0x83)
        by = (int8_t)code[3];
    else
        memcpy(&by, code + 3, sizeof by);
    p->depth += code[2] == 0xec ? (int64_t)by : -(int64_t)by;
    return code[1] == 0x83 ? 4 : 7;
}

/* mov %reg,n(%rsp), and moves between registers. */
static size_t take_move(struct prologue *p, const uint8_t *code, size_t n)
{
    int32_t into = 0;
    if (n < 3 || (code[0] & 0xf8) != 0x48 || code[1] != 0x89)
        return 0;
    const unsigned from = (code[2] >> 3 & 7) + (code[0] & 4 ? 8 : 0);
    if (code[2] >> 6 == 3) {
        p->has_pointer |= code[2] == 0xe5 && code[0] == 0x48;
        return 3;
    }
    if (n < 8 || (code[2] & 7) != 4 || code[3] != 0x24)
        return 0;
    const unsigned mod = code[2] >> 6;
    if (mod == 1)
        into = (int8_t)code[4];
    else if (mod == 2)
        memcpy(&into, code + 4, sizeof into);
    save(p, from, p->depth - into);
    return mod == 0 ? 4 : mod == 1 ? 5 : 8;
}

static void read_prologue(struct prologue *p, const uint8_t *code, size_t n)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    size_t at = n >= 4 && memcmp(code, endbr64, 4) == 0 ? 4 : 0;
    for (size_t len = 1; at < n && len > 0; at += len) {
        len = take_push(p, code + at, n - at);
        if (len == 0)
            len = take_room(p, code + at, n - at);
        if (len == 0)
            len = take_move(p, code + at, n - at);
    }
}

bool marey__unwind_prologue(struct marey__unwind *unwind, const struct marey__native_symbol *symbol,
                            uint64_t pc, struct marey__unwind_state *state)
{
    struct prologue p = {0};
    struct marey__unwind_state next = *state;
    uint64_t address;
    const struct marey__program *const program = marey__unwind_program_at(unwind, pc, &address);
    if (program == NULL || address < symbol->address || symbol->name[0] == '[')
        return false;
    const size_t n = (size_t)MAREY__MIN(address - symbol->address, 96);
    const uint8_t *const code = marey__program_at(program, symbol->address, n);
    if (code == NULL)
        return false;
    read_prologue(&p, code, n);
    const uint64_t slot = state->registers[MAREY__UNWIND_SP] + (uint64_t)p.depth;
    if (p.has_pointer || p.depth < 0 ||
        !marey__unwind_load(state, slot, &next.registers[MAREY__UNWIND_PC]))
        return false;
    for (size_t i = 0; i < p.n_saved; i++)
        if (!marey__unwind_load(state, slot - (uint64_t)p.saved[i].below,
                                &next.registers[p.saved[i].reg]))
            return false;
    next.registers[MAREY__UNWIND_SP] = slot + 8;
    *state = next;
    return true;
}

#else

bool marey__unwind_prologue(struct marey__unwind *unwind, const struct marey__native_symbol *symbol,
                            uint64_t pc, struct marey__unwind_state *state)
{
    (void)unwind, (void)symbol, (void)pc, (void)state;
    return false;
}

#endif
