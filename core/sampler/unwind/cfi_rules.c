/*
 * Rules of call frames: how the caller's registers follow from a frame's. A program has hundreds of thousands of ranges
 * but only a few hundred different rules, so each rule is stored once. Some are programs of DWARF operations (linker
 * stubs, signal frames); they access only registers and the copied stack.
 */
#include "sampler/unwind/internal.h"

/* DWARF operations that occur in frames. */
enum {
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08, /* up to consts: libdw has decoded the number */
    OP_CONSTS = 0x11,
    OP_DUP = 0x12,
    OP_DROP = 0x13,
    OP_AND = 0x1a,
    OP_MINUS = 0x1c,
    OP_MUL = 0x1e,
    OP_OR = 0x21,
    OP_PLUS = 0x22,
    OP_PLUS_UCONST = 0x23,
    OP_SHL = 0x24,
    OP_SHR = 0x25,
    OP_XOR = 0x27,
    OP_EQ = 0x29,
    OP_GE = 0x2a,
    OP_GT = 0x2b,
    OP_LE = 0x2c,
    OP_LT = 0x2d,
    OP_NE = 0x2e,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f
};

enum { MAX_OPS = 32, MAX_DEPTH = 16, MAX_RULES = 1 << 20, MAX_PROGRAMS = 60000 };

uint32_t marey__cfi_rules_add(struct marey__cfi_rules *rules, const struct marey__cfi_rule *rule)
{
    for (size_t i = 0; i < rules->n; i++)
        if (memcmp(&rules->rules[i], rule, sizeof *rule) == 0)
            return (uint32_t)i + 1;
    if (rules->n >= MAX_RULES || !marey__grow(&rules->rules, &rules->cap, rules->n + 1, sizeof *rule))
        return 0;
    memcpy(&rules->rules[rules->n], rule, sizeof *rule);
    return (uint32_t)++rules->n;
}

static bool is_equal(const struct marey__cfi_op *a, const struct marey__cfi_op *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i].atom != b[i].atom || a[i].number != b[i].number)
            return false;
    return true;
}

uint16_t marey__cfi_rules_program(struct marey__cfi_rules *rules, const struct marey__cfi_op *ops,
                                  size_t n)
{
    for (size_t i = 0; i < rules->n_programs; i++)
        if (rules->programs[i].n == n && is_equal(rules->ops + rules->programs[i].first, ops, n))
            return (uint16_t)(i + 1);
    if (n > MAX_OPS || rules->n_programs >= MAX_PROGRAMS ||
        !marey__grow(&rules->ops, &rules->ops_cap, rules->n_ops + n, sizeof *ops) ||
        !marey__grow(&rules->programs, &rules->programs_cap, rules->n_programs + 1,
                     sizeof *rules->programs))
        return 0;
    rules->programs[rules->n_programs] =
        (struct marey__cfi_program){(uint32_t)rules->n_ops, (uint32_t)n};
    if (n > 0)
        memcpy(rules->ops + rules->n_ops, ops, n * sizeof *ops);
    rules->n_ops += n;
    return (uint16_t)++rules->n_programs;
}

void marey__cfi_rules_fini(struct marey__cfi_rules *rules)
{
    MAREY__FREE_ALL(rules->rules, rules->ops, rules->programs);
}

/* ---- programs ---- */

bool marey__unwind_load(const struct marey__unwind_state *state, uint64_t at, uint64_t *out)
{
    const struct marey__unwind_input *const input = state->input;
    if (at < input->stack_at || at - input->stack_at > input->n_stack ||
        input->n_stack - (at - input->stack_at) < sizeof *out)
        return false;
    memcpy(out, input->stack + (at - input->stack_at), sizeof *out);
    return true;
}

static bool reg(const struct marey__unwind_state *state, uint64_t number, uint64_t *out)
{
    if (number >= MAREY__UNWIND_REGISTERS || (state->known >> number & 1) == 0)
        return false;
    *out = state->registers[number];
    return true;
}

struct machine {
    const struct marey__unwind_state *state;
    uint64_t stack[MAX_DEPTH];
    size_t n;
};

static bool push(struct machine *m, uint64_t value)
{
    if (m->n >= MAX_DEPTH)
        return false;
    m->stack[m->n++] = value;
    return true;
}

static uint64_t shifted(uint64_t a, uint64_t by, bool is_left)
{
    return by >= 64 ? 0 : is_left ? a << by : a >> by;
}

static bool binary(struct machine *m, unsigned atom)
{
    if (m->n < 2)
        return false;
    const uint64_t b = m->stack[--m->n];
    uint64_t *const a = &m->stack[m->n - 1];
    const int64_t signed_a = (int64_t)*a, signed_b = (int64_t)b;
    switch (atom) {
#define CASE(op, result)                                                                           \
    case op:                                                                                       \
        *a = (result);                                                                             \
        return true;
        CASE(OP_PLUS, *a + b)
        CASE(OP_MINUS, *a - b)
        CASE(OP_MUL, *a * b)
        CASE(OP_AND, *a & b)
        CASE(OP_OR, *a | b)
        CASE(OP_XOR, *a ^ b)
        CASE(OP_SHL, shifted(*a, b, true))
        CASE(OP_SHR, shifted(*a, b, false))
        CASE(OP_EQ, *a == b)
        CASE(OP_NE, *a != b)
        CASE(OP_GE, signed_a >= signed_b)
        CASE(OP_GT, signed_a > signed_b)
        CASE(OP_LE, signed_a <= signed_b)
        CASE(OP_LT, signed_a < signed_b)
#undef CASE
    default:
        return false;
    }
}

static bool step(struct machine *m, const struct marey__cfi_op *op)
{
    uint64_t value;
    if (op->atom >= OP_LIT0 && op->atom <= OP_LIT31)
        return push(m, op->atom - OP_LIT0);
    if (op->atom >= OP_BREG0 && op->atom <= OP_BREG31)
        return reg(m->state, op->atom - OP_BREG0, &value) && push(m, value + op->number);
    if (op->atom >= OP_CONST1U && op->atom <= OP_CONSTS)
        return push(m, op->number);
    switch (op->atom) {
    case OP_PLUS_UCONST:
        if (m->n > 0)
            m->stack[m->n - 1] += op->number;
        return m->n > 0;
    case OP_DEREF:
        return m->n > 0 && marey__unwind_load(m->state, m->stack[m->n - 1], &m->stack[m->n - 1]);
    case OP_DUP:
        return m->n > 0 && push(m, m->stack[m->n - 1]);
    case OP_DROP:
        return m->n > 0 && m->n-- > 0;
    default:
        return binary(m, op->atom);
    }
}

/* Initially the CFA is on the operation stack, unless the program computes it. */
static bool run(const struct marey__cfi_rules *rules, uint32_t program,
                const struct marey__unwind_state *state, const uint64_t *cfa, uint64_t *out)
{
    struct machine m = {.state = state};
    if (cfa != NULL)
        m.stack[m.n++] = *cfa;
    const struct marey__cfi_program *const p = &rules->programs[program - 1];
    for (uint32_t i = 0; i < p->n; i++)
        if (!step(&m, &rules->ops[p->first + i]))
            return false;
    if (m.n == 0)
        return false;
    *out = m.stack[m.n - 1];
    return true;
}

/* ---- rules ---- */

static bool restore(const struct marey__cfi_rules *rules, const struct marey__cfi_rule *rule,
                    size_t i, const struct marey__unwind_state *state, uint64_t cfa, uint64_t *out)
{
    const int32_t value = rule->saved[i].value;
    switch (rule->saved[i].where) {
    case MAREY__AT_CFA:
        return marey__unwind_load(state, cfa + (uint64_t)(int64_t)value, out);
    case MAREY__IS_CFA:
        *out = cfa + (uint64_t)(int64_t)value;
        return true;
    case MAREY__IN_REGISTER:
        return reg(state, (uint64_t)value, out);
    case MAREY__AT_PROGRAM:
        return run(rules, (uint32_t)value, state, &cfa, out) && marey__unwind_load(state, *out, out);
    case MAREY__IS_PROGRAM:
        return run(rules, (uint32_t)value, state, &cfa, out);
    default:
        return false;
    }
}

bool marey__cfi_apply(const struct marey__cfi_rules *rules, const struct marey__cfi_rule *rule,
                      struct marey__unwind_state *state, uint64_t *cfa_out)
{
    struct marey__unwind_state next = *state;
    uint64_t cfa;
    if (rule->cfa_program != 0) {
        if (!run(rules, rule->cfa_program, state, NULL, &cfa))
            return false;
    } else {
        if (!reg(state, rule->cfa_register, &cfa))
            return false;
        cfa += (uint64_t)(int64_t)rule->cfa_offset;
    }
    next.registers[MAREY__UNWIND_SP] = cfa;
    next.known |= (uint64_t)1 << MAREY__UNWIND_SP;
    for (size_t i = 0; i < rule->n_saved; i++) {
        const uint8_t number = rule->saved[i].reg;
        if (restore(rules, rule, i, state, cfa, &next.registers[number]))
            next.known |= (uint64_t)1 << number;
        else
            next.known &= ~((uint64_t)1 << number);
    }
    if (!reg(&next, rule->ra, &next.registers[MAREY__UNWIND_PC]))
        return false;
    next.known |= (uint64_t)1 << MAREY__UNWIND_PC;
    *state = next;
    *cfa_out = cfa;
    return true;
}
