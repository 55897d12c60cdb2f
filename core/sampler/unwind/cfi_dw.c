/*
 * Call frame information with libdw of elfutils: .eh_frame through its sorted table, one result per range of addresses.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <limits.h>

#include "sampler/unwind/internal.h"

struct marey__cfi {
    Elf *elf;
    Dwarf_CFI *cfi; /* owned by `elf` for .eh_frame, otherwise ended separately */
};

bool marey__unwind_has_rules(void)
{
    return true;
}

/*
 * If there are section headers, libdw uses the sorted table only if it precedes .eh_frame. Otherwise, as in torch,
 * libdw parses all 200,000 entries and keeps 40 MB. With segments only, it finds the table anywhere.
 */
static void hide_sections(void *bytes, size_t len)
{
    Elf64_Ehdr head;
    if (len < sizeof head)
        return;
    memcpy(&head, bytes, sizeof head);
    head.e_shoff = 0;
    head.e_shnum = head.e_shstrndx = 0;
    memcpy(bytes, &head, sizeof head);
}

struct marey__cfi *marey__cfi_open(void *bytes, size_t len)
{
    struct marey__cfi *const cfi = marey__calloc(1, sizeof *cfi);
    if (cfi == NULL || elf_version(EV_CURRENT) == EV_NONE) {
        marey__free(cfi);
        return NULL;
    }
    hide_sections(bytes, len);
    cfi->elf = elf_memory(bytes, len);
    if (cfi->elf != NULL && elf_kind(cfi->elf) == ELF_K_ELF)
        cfi->cfi = dwarf_getcfi_elf(cfi->elf);
    if (cfi->cfi == NULL) {
        marey__cfi_close(cfi);
        return NULL;
    }
    return cfi;
}

void marey__cfi_close(struct marey__cfi *cfi)
{
    if (cfi == NULL)
        return;
    dwarf_cfi_end(cfi->cfi);
    elf_end(cfi->elf);
    marey__free(cfi);
}

/* Converts a libdw program, including its number of operations. `*n`: their number; false if one is unsupported. */
static uint16_t take_program(struct marey__cfi_rules *rules, const Dwarf_Op *ops, size_t n)
{
    struct marey__cfi_op own[32];
    if (n == 0 || n > MAREY__COUNT_OF(own))
        return 0;
    for (size_t i = 0; i < n; i++) {
        own[i] = (struct marey__cfi_op){.number = ops[i].number, .atom = ops[i].atom};
        if (ops[i].atom ==
            DW_OP_bregx) { /* The same with the number in the operation, where that can be. */
            if (ops[i].number > 31)
                return 0;
            own[i] = (struct marey__cfi_op){.number = ops[i].number2,
                                            .atom = (uint8_t)(DW_OP_breg0 + ops[i].number)};
        }
    }
    return marey__cfi_rules_program(rules, own, n);
}

static bool fits(uint64_t offset)
{
    return (int64_t)offset >= INT32_MIN && (int64_t)offset <= INT32_MAX;
}

static bool take_cfa(Dwarf_Frame *frame, struct marey__cfi_rules *rules, struct marey__cfi_rule *rule)
{
    Dwarf_Op *ops;
    size_t n;
    if (dwarf_frame_cfa(frame, &ops, &n) != 0 || n == 0)
        return false;
    if (n == 1 && ops[0].atom == DW_OP_bregx && ops[0].number < MAREY__UNWIND_REGISTERS &&
        fits(ops[0].number2)) {
        rule->cfa_register = (uint8_t)ops[0].number;
        rule->cfa_offset = (int32_t)ops[0].number2;
        return true;
    }
    rule->cfa_program = take_program(rules, ops, n);
    return rule->cfa_program != 0;
}

/* Where the caller's register is; false if it is unchanged. */
static bool take_register(const Dwarf_Op *ops, size_t n, bool is_lost,
                          struct marey__cfi_rules *rules, int32_t *value, uint8_t *where)
{
    if (n == 0 && !is_lost)
        return false;
    *value = 0;
    *where = MAREY__IS_LOST;
    const bool is_value = n > 1 && ops[n - 1].atom == DW_OP_stack_value;
    n -= is_value;
    if (n == 1 && ops[0].atom == DW_OP_regx && ops[0].number < MAREY__UNWIND_REGISTERS) {
        *where = MAREY__IN_REGISTER;
        *value = (int32_t)ops[0].number;
    } else if (n == 1 && ops[0].atom == DW_OP_call_frame_cfa) {
        *where = is_value ? MAREY__IS_CFA : MAREY__AT_CFA;
    } else if (n == 2 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_plus_uconst &&
               fits(ops[1].number)) {
        *where = is_value ? MAREY__IS_CFA : MAREY__AT_CFA;
        *value = (int32_t)ops[1].number;
    } else if (n > 1 && ops[0].atom == DW_OP_call_frame_cfa) {
        *value = take_program(rules, ops + 1, n - 1);
        *where = *value == 0 ? MAREY__IS_LOST : is_value ? MAREY__IS_PROGRAM : MAREY__AT_PROGRAM;
    }
    return true;
}

/* libdw's table of callee-saved registers has rax instead of rbx. */
static bool is_kept_anyway(int reg)
{
#if defined(__x86_64__)
    return reg == 3;
#else
    (void)reg;
    return false;
#endif
}

static bool take_rule(Dwarf_Frame *frame, struct marey__cfi_rules *rules, struct marey__cfi_range *out)
{
    struct marey__cfi_rule rule;
    memset(&rule, 0, sizeof rule);
    Dwarf_Addr begin;
    const int ra = dwarf_frame_info(frame, &begin, &out->end, &rule.is_signal);
    if (ra < 0 || ra >= MAREY__UNWIND_REGISTERS)
        return false;
    rule.ra = (uint8_t)ra;
    for (int i = 0; i < MAREY__UNWIND_REGISTERS; i++) {
        Dwarf_Op memory[3], *ops;
        size_t n;
        int32_t value;
        uint8_t where;
        if (dwarf_frame_register(frame, i, memory, &ops, &n) != 0 ||
            !take_register(ops, n, ops == memory && !is_kept_anyway(i), rules, &value, &where))
            continue;
        rule.saved[rule.n_saved].value = value;
        rule.saved[rule.n_saved].reg = (uint8_t)i;
        rule.saved[rule.n_saved++].where = where;
        rule.is_end |= i == ra && n == 0;
    }
    /* A frame without a caller needs no CFA. */
    if (!take_cfa(frame, rules, &rule) && !rule.is_end)
        return false;
    out->rule = marey__cfi_rules_add(rules, &rule);
    return out->rule != 0;
}

bool marey__cfi_at(struct marey__cfi *cfi, uint64_t address, struct marey__cfi_rules *rules,
                   struct marey__cfi_range *out)
{
    Dwarf_Frame *frame = NULL;
    if (dwarf_cfi_addrframe(cfi->cfi, address, &frame) != 0)
        return false;
    const bool is_good = take_rule(frame, rules, out);
    free(frame); /* allocated by libdw */
    out->begin = address;
    return is_good && address < out->end;
}
