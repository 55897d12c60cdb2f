/*
 * Converts registers and a copy of the stack to frames. For each frame it tries, in this order:
 *
 *   a rule         the file's call frame information for the address
 *   prologue       the first instructions of the function give the frame's size
 *   frame pointer  the word after the saved one is a return address
 *   search         the next word of the stack that points after a call
 *
 * All but the first are guesses; they must point into code, right after a call instruction. Each frame records how it
 * was found.
 */
#include "sampler/unwind/internal.h"

enum {
    MAX_SEARCH = 1024
}; /* words of the stack; the walk ends at a frame with larger arrays and no rule */

#define BIT(number) ((uint64_t)1 << (number))

/* ---- guesses ---- */

#if defined(__aarch64__)
enum { CALL_BYTES = 4 };
static bool ends_in_call(const uint8_t *code)
{
    uint32_t word;
    memcpy(&word, code, sizeof word);
    return (word & 0xfc000000u) == 0x94000000u || (word & 0xfffffc1fu) == 0xd63f0000u ||
           (word & 0xfefff800u) == 0xd63f0800u; /* bl, blr, blraa and similar */
}
#else
enum { CALL_BYTES = 7 };
/* Whether a call instruction ends with these seven bytes: e8 and four, or ff /2 with its operand. */
static bool ends_in_call(const uint8_t *code)
{
    if (code[2] == 0xe8)
        return true;
    for (unsigned n = 2; n <= CALL_BYTES; n++) {
        const uint8_t *const at = code + CALL_BYTES - n;
        if (at[0] != 0xff || (at[1] >> 3 & 7) != 2)
            continue;
        const unsigned mod = at[1] >> 6, rm = at[1] & 7;
        const unsigned sib = mod != 3 && rm == 4;
        const unsigned moved = mod == 1 ? 1 : mod == 2 ? 4 : 0;
        const unsigned absolute = mod == 0 && (rm == 5 || (sib && (at[2] & 7) == 5)) ? 4 : 0;
        if (2 + sib + moved + absolute == n)
            return true;
    }
    return false;
}
#endif

/* The target of the call that ends with these bytes, if it is direct; 0: unknown. */
static uint64_t goes_to(const uint8_t *code, uint64_t address)
{
#if defined(__aarch64__)
    uint32_t word;
    memcpy(&word, code, sizeof word);
    return (word & 0xfc000000u) == 0x94000000u
               ? address - 4 + (uint64_t)((int64_t)((uint64_t)word << 38) >> 36)
               : 0;
#else
    int32_t distance;
    memcpy(&distance, code + 3, sizeof distance);
    return code[2] == 0xe8 ? address + (uint64_t)(int64_t)distance : 0;
#endif
}

/* Whether `pc` may be a return address. A direct call must target `from` (unless NULL), as stacks contain leftovers. */
static bool is_behind_call(struct marey__unwind *unwind, uint64_t pc,
                           const struct marey__native_symbol *from)
{
    uint64_t address;
    if (pc < 4096)
        return false;
    const struct marey__program *const program = marey__unwind_program_at(unwind, pc - 1, &address);
    if (program == NULL) { /* Generated code: it has no file, and memory has changed since. */
        const struct marey__remote_map *const map = marey__unwind_map_known(unwind, pc - 1);
        return map != NULL && map->is_executable && map->path[0] != '/';
    }
    const uint8_t *const code = marey__program_at(program, address + 1 - CALL_BYTES, CALL_BYTES);
    if (code == NULL || !ends_in_call(code))
        return false;
    const uint64_t target = goes_to(code, address + 1);
    if (from == NULL || target == 0 || target == from->address)
        return true;
    /* Another library is called through a stub, which has no name. */
    return marey__program_symbol_at(program, target) == NULL;
}

/* Return addresses of aarch64 may be signed in bits that addresses do not use. */
static uint64_t plain_address(uint64_t pc)
{
#if defined(__aarch64__)
    return pc & (BIT(48) - 1);
#else
    return pc;
#endif
}

static void go_to(struct marey__unwind_state *state, uint64_t pc, uint64_t sp)
{
    state->registers[MAREY__UNWIND_PC] = pc;
    state->registers[MAREY__UNWIND_SP] = sp;
    state->known |= BIT(MAREY__UNWIND_PC) | BIT(MAREY__UNWIND_SP);
}

static bool by_frame_pointer(struct marey__unwind *unwind, struct marey__unwind_state *state,
                             uint64_t *cfa)
{
    const uint64_t fp = state->registers[MAREY__UNWIND_FP];
    uint64_t saved, pc;
    if ((state->known & BIT(MAREY__UNWIND_FP)) == 0 || fp % 8 != 0 ||
        fp < state->registers[MAREY__UNWIND_SP] || !marey__unwind_load(state, fp, &saved) ||
        !marey__unwind_load(state, fp + 8, &pc))
        return false;
    pc = plain_address(pc);
    /* The saved word need not be a frame pointer: the caller may have used the register for anything. */
    if (!is_behind_call(unwind, pc, NULL))
        return false;
    state->registers[MAREY__UNWIND_FP] = saved;
    go_to(state, pc, fp + 16);
    *cfa = fp + 16;
    return true;
}

static bool by_search(struct marey__unwind *unwind, struct marey__unwind_state *state,
                      const struct marey__native_symbol *from, uint64_t *cfa)
{
    const uint64_t sp = (state->registers[MAREY__UNWIND_SP] + 7) & ~(uint64_t)7;
    uint64_t pc;
    for (uint64_t i = 0; i < MAX_SEARCH && marey__unwind_load(state, sp + 8 * i, &pc); i++) {
        pc = plain_address(pc);
        if (!is_behind_call(unwind, pc, from))
            continue;
        go_to(state, pc, sp + 8 * (i + 1));
        *cfa = sp + 8 * (i + 1);
        return true;
    }
    return false;
}

/* ---- frames ---- */

struct walk {
    struct marey__unwind *unwind;
    struct marey__unwind_state state;
    bool is_exact; /* pc is the current instruction, not one after a call */
};

static bool is_code(struct marey__unwind *unwind, uint64_t pc)
{
    const struct marey__remote_map *const map = pc > 4096 ? marey__unwind_map_at(unwind, pc) : NULL;
    return map != NULL && map->is_executable;
}

enum outcome { WENT, ENDED, STUCK };

static enum outcome by_rule(struct walk *walk, uint32_t number, uint64_t *cfa)
{
    struct marey__unwind_state next = walk->state;
    const struct marey__cfi_rules *const rules = &walk->unwind->files->rules;
    const struct marey__cfi_rule *const rule = &rules->rules[number - 1];
    const uint64_t sp = walk->state.registers[MAREY__UNWIND_SP];
    if (rule->is_end)
        return ENDED;
    if (!marey__cfi_apply(rules, rule, &next, cfa))
        return STUCK;
    const uint64_t pc = plain_address(next.registers[MAREY__UNWIND_PC]);
    next.registers[MAREY__UNWIND_PC] = pc;
    /* Stacks grow down: only a signal may use another stack, only the innermost frame may be empty. */
    if (!rule->is_signal && (*cfa < sp || (*cfa == sp && !walk->is_exact)))
        return STUCK;
    if (!is_code(walk->unwind, rule->is_signal ? pc : pc - 1))
        return STUCK;
    walk->state = next;
    walk->is_exact = rule->is_signal;
    return WENT;
}

static enum outcome to_caller(struct walk *walk, const struct marey__unwind_cache_entry *entry,
                              struct marey__native_frame *next, uint64_t *cfa)
{
    if (entry->is_outermost)
        return ENDED;
    next->by = MAREY__BY_RULE;
    const enum outcome outcome = entry->rule != 0 ? by_rule(walk, entry->rule, cfa) : STUCK;
    if (outcome != STUCK)
        return outcome;
    struct marey__unwind_state guess = walk->state;
    next->by = MAREY__BY_PROLOGUE;
    if (marey__unwind_prologue(walk->unwind, entry->symbol, entry->pc, &guess) &&
        is_behind_call(walk->unwind, guess.registers[MAREY__UNWIND_PC], NULL)) {
        walk->state = guess;
        walk->is_exact = false;
        *cfa = guess.registers[MAREY__UNWIND_SP];
        return WENT;
    }
    walk->is_exact = false;
    next->by = MAREY__BY_FRAME_POINTER;
    if (by_frame_pointer(walk->unwind, &walk->state, cfa))
        return WENT;
    next->by = MAREY__BY_SCAN;
    return by_search(walk->unwind, &walk->state, entry->symbol, cfa) ||
                   by_search(walk->unwind, &walk->state, NULL, cfa)
               ? WENT
               : STUCK;
}

static void count(struct marey__unwind_counts *counts, const struct marey__native_frame *frames,
                  size_t n, bool is_complete)
{
    counts->n_stacks++;
    counts->n_complete += is_complete;
    counts->n_frames += n;
    for (size_t i = 0; i < n; i++) {
        counts->n_by_rule += frames[i].by == MAREY__BY_RULE;
        counts->n_by_prologue += frames[i].by == MAREY__BY_PROLOGUE;
        counts->n_by_frame_pointer += frames[i].by == MAREY__BY_FRAME_POINTER;
        counts->n_by_scan += frames[i].by == MAREY__BY_SCAN;
    }
}

size_t marey__unwind_stack(struct marey__unwind *unwind, const struct marey__unwind_input *input,
                           struct marey__native_frame *out, size_t cap, bool *is_complete)
{
    marey__unwind_refresh_maps(unwind);
    struct walk walk = {
        .unwind = unwind,
        .state = {.known = (BIT(MAREY__UNWIND_REGISTERS) - 1) & ~input->unknown, .input = input},
        .is_exact = true};
    memcpy(walk.state.registers, input->registers, sizeof input->registers);
    struct marey__native_frame next = {.by = MAREY__BY_REGISTERS};
    enum outcome outcome = WENT;
    size_t n = 0;
    while (n < cap && outcome == WENT) {
        next.pc = walk.state.registers[MAREY__UNWIND_PC] - !walk.is_exact;
        next.sp = walk.state.registers[MAREY__UNWIND_SP];
        next.cfa = 0;
        const struct marey__unwind_cache_entry *const entry = marey__unwind_lookup(unwind, next.pc);
        next.is_eval = entry->symbol->role == MAREY__NATIVE_EVAL;
        unwind->counts.n_without_rules += entry->rule == 0;
        out[n++] = next;
        outcome = to_caller(&walk, entry, &next, &out[n - 1].cfa);
    }
    *is_complete = outcome == ENDED;
    count(&unwind->counts, out, n, *is_complete);
    return n;
}
