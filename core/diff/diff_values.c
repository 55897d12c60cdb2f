/* Pairs of which one at least is no tensor: texts, numbers, empty dictionaries and lists, files of bytes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diff/diff_internal.h"

/* ---- files ---- */

static bool same_bytes(FILE *a, FILE *b)
{
    char block_a[1 << 12], block_b[1 << 12];
    for (;;) {
        const size_t n_a = fread(block_a, 1, sizeof block_a, a),
                     n_b = fread(block_b, 1, sizeof block_b, b);
        if (n_a != n_b || memcmp(block_a, block_b, n_a) != 0)
            return false;
        if (n_a < sizeof block_a)
            return true;
    }
}

static kymo_status judge_open_files(FILE *a, FILE *b, struct kymo__diff_result *out)
{
    const bool is_same = same_bytes(a, b);
    if (ferror(a) || ferror(b))
        return kymo__diff_unknown(out, "its file cannot be read");
    out->basis = KYMO__BY_VALUE;
    out->status = is_same ? KYMO_DIFF_SAME : KYMO_DIFF_DIFFERENT;
    return KYMO_OK;
}

/* The bytes of a value that waits are in memory. */
static FILE *open_bytes(const struct kymo_dumped_value *value)
{
    if (value->n_files != 0)
        return fopen(value->files[0], "rbe");
    return value->text_len != 0 ? fmemopen((void *)value->text, value->text_len, "rb")
                                : fopen("/dev/null", "rbe");
}

/* Pickles are never loaded: equal bytes are equal values, and of others nothing is known but that. */
static kymo_status judge_bytes(const struct kymo_dumped_value *a, const struct kymo_dumped_value *b,
                               struct kymo__diff_result *out)
{
    FILE *file_a = open_bytes(a), *file_b = open_bytes(b);
    const kymo_status status = file_a != NULL && file_b != NULL
                                   ? judge_open_files(file_a, file_b, out)
                                   : kymo__diff_unknown(out, "its file cannot be read");
    if (file_a != NULL)
        fclose(file_a);
    if (file_b != NULL)
        fclose(file_b);
    return status;
}

/* ---- values ---- */

static bool is_bytes(const struct kymo_dumped_value *value)
{
    return value->kind == KYMO_DUMP_BYTES || value->type == KYMO_DUMP_PICKLE;
}

/* An empty list, or a tensor of no elements that became one in a JSON. */
static bool is_empty_list(const struct kymo_dumped_value *value)
{
    if (value->kind == KYMO_DUMP_LIST)
        return true;
    for (uint32_t i = 0; kymo__diff_is_tensor(value) && i < value->rank; i++)
        if (value->sizes[i] == 0)
            return true;
    return false;
}

static bool same_text(const struct kymo_dumped_value *a, const struct kymo_dumped_value *b)
{
    return a->text_len == b->text_len &&
           (a->text_len == 0 || memcmp(a->text, b->text, a->text_len) == 0);
}

void kymo__diff_read_literal(const char *given, size_t len, union kymo__literal *number,
                             struct kymo_tensor *out)
{
    char text[64];
    char *end;
    *out = (struct kymo_tensor){0};
    if (len == 0 || len >= sizeof text)
        return;
    memcpy(text, given, len);
    text[len] = '\0';
    out->data = number;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        number->truth = text[0] == 't';
        out->dtype = KYMO_BOOL;
        return;
    }
    errno = 0;
    number->integer = strtoll(text, &end, 10);
    if (*end == '\0' && errno == ERANGE && text[0] != '-') {
        errno = 0;
        number->natural = strtoull(text, &end, 10);
        out->dtype = errno == 0 ? KYMO_U64 : KYMO_DTYPE_NONE;
        return;
    }
    if (*end == '\0') {
        out->dtype = errno == 0 ? KYMO_I64 : KYMO_DTYPE_NONE;
        return;
    }
    number->real = strtod(text, &end);
    out->dtype = *end == '\0' ? KYMO_F64 : KYMO_DTYPE_NONE;
}

/* A literal's number, or a tensor of rank 0; its type is KYMO_DTYPE_NONE where there is none. */
static void get_number(const struct kymo__diff_side *side, size_t i, union kymo__literal *number,
                       struct kymo_tensor *out)
{
    const struct kymo_dumped_value *value = &side->values[i];
    *out = (struct kymo_tensor){0};
    if (value->kind == KYMO_DUMP_LITERAL)
        kymo__diff_read_literal(value->text, value->text_len, number, out);
    else if (!value->has_data || value->rank != 0 || side->get(side, i, out) != KYMO_OK)
        *out = (struct kymo_tensor){0};
}

/* False where one is not a number that can be held. */
static bool judge_numbers(const struct kymo__diff_court *court, size_t ia, size_t ib,
                          struct kymo__diff_result *out, kymo_status *status)
{
    union kymo__literal number_a, number_b;
    struct kymo_tensor ta, tb;
    get_number(court->a, ia, &number_a, &ta);
    get_number(court->b, ib, &number_b, &tb);
    if (ta.dtype == KYMO_DTYPE_NONE || tb.dtype == KYMO_DTYPE_NONE)
        return false;
    const struct kymo_dumped_value a = {.name = court->a->values[ia].name, .dtype = ta.dtype},
                                   b = {.name = a.name, .dtype = tb.dtype};
    out->tolerance = kymo__diff_tolerance(court->options, &a, &b);
    out->tolerance.bitwise &= ta.dtype == tb.dtype;
    *status = kymo__diff_judge_numbers(&ta, &tb, out);
    out->basis = KYMO__BY_VALUE;
    return true;
}

static bool is_number(const struct kymo_dumped_value *value)
{
    return value->kind == KYMO_DUMP_LITERAL || (kymo__diff_is_tensor(value) && value->rank == 0);
}

kymo_status kymo__diff_judge_values(const struct kymo__diff_court *court, size_t ia, size_t ib,
                                    struct kymo__diff_result *out)
{
    const struct kymo_dumped_value *a = &court->a->values[ia], *b = &court->b->values[ib];
    if (a->missing != NULL || b->missing != NULL)
        return kymo__diff_unknown(out, a->missing != NULL ? a->missing : b->missing);
    if (is_bytes(a) && is_bytes(b))
        return judge_bytes(a, b, out);
    out->basis = KYMO__BY_VALUE;
    out->status = KYMO_DIFF_SAME;
    kymo_status status = KYMO_OK;
    if ((is_empty_list(a) && is_empty_list(b)) || (a->kind == b->kind && same_text(a, b)) ||
        (is_number(a) && is_number(b) && judge_numbers(court, ia, ib, out, &status)))
        return status;
    const bool is_one_kind = a->kind == b->kind || (is_number(a) && is_number(b));
    out->status = is_one_kind ? KYMO_DIFF_DIFFERENT : KYMO_DIFF_KIND;
    return KYMO_OK;
}
