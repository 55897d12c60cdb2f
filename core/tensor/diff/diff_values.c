/* Pairs with at least one value that is not a tensor: strings, numbers, empty dictionaries and lists, files of bytes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/diff/internal.h"

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

static void close_file(FILE *const *file)
{
    if (*file != NULL)
        fclose(*file);
}

/* The bytes of a pending value are in memory. */
static FILE *open_bytes(const struct marey_dumped_value *value)
{
    if (value->n_files != 0)
        return fopen(value->files[0], "rbe");
    return value->text_len != 0 ? fmemopen((void *)value->text, value->text_len, "rb")
                                : fopen("/dev/null", "rbe");
}

/* Pickles are never loaded: equal bytes are equal values, otherwise the result is unknown. */
static marey_status compare_bytes(const struct marey_dumped_value *a,
                                  const struct marey_dumped_value *b, struct marey__diff_result *out)
{
    FILE *const file_a MAREY__FINALLY(close_file) = open_bytes(a);
    FILE *const file_b MAREY__FINALLY(close_file) = open_bytes(b);
    const bool is_same = file_a != NULL && file_b != NULL && same_bytes(file_a, file_b);
    if (file_a == NULL || file_b == NULL || ferror(file_a) || ferror(file_b))
        return marey__diff_unknown(out, "its file cannot be read");
    out->basis = MAREY__BY_VALUE;
    out->status = is_same ? MAREY_DIFF_SAME : MAREY_DIFF_DIFFERENT;
    return MAREY_OK;
}

/* ---- values ---- */

static bool is_bytes(const struct marey_dumped_value *value)
{
    return value->kind == MAREY_DUMP_BYTES || value->type == MAREY_DUMP_PICKLE;
}

/* An empty list, or an empty tensor that became one in JSON. */
static bool is_empty_list(const struct marey_dumped_value *value)
{
    if (value->kind == MAREY_DUMP_LIST)
        return true;
    for (uint32_t i = 0; marey__diff_is_tensor(value) && i < value->rank; i++)
        if (value->sizes[i] == 0)
            return true;
    return false;
}

static bool same_text(const struct marey_dumped_value *a, const struct marey_dumped_value *b)
{
    return a->text_len == b->text_len &&
           (a->text_len == 0 || memcmp(a->text, b->text, a->text_len) == 0);
}

void marey__diff_read_literal(const char *given, size_t len, union marey__literal *number,
                              struct marey_tensor *out)
{
    char text[64];
    char *end;
    *out = (struct marey_tensor){0};
    if (len == 0 || len >= sizeof text)
        return;
    memcpy(text, given, len);
    text[len] = '\0';
    out->data = number;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        number->truth = text[0] == 't';
        out->dtype = MAREY_BOOL;
        return;
    }
    errno = 0;
    number->integer = strtoll(text, &end, 10);
    if (*end == '\0' && errno == ERANGE && text[0] != '-') {
        errno = 0;
        number->natural = strtoull(text, &end, 10);
        out->dtype = errno == 0 ? MAREY_U64 : MAREY_DTYPE_NONE;
        return;
    }
    if (*end == '\0') {
        out->dtype = errno == 0 ? MAREY_I64 : MAREY_DTYPE_NONE;
        return;
    }
    number->real = strtod(text, &end);
    out->dtype = *end == '\0' ? MAREY_F64 : MAREY_DTYPE_NONE;
}

/* The number of a literal, or a tensor of rank 0; type MAREY_DTYPE_NONE if it is neither. */
static void get_number(const struct marey__diff_side *side, size_t i, union marey__literal *number,
                       struct marey_tensor *out)
{
    const struct marey_dumped_value *value = &side->values[i];
    *out = (struct marey_tensor){0};
    if (value->kind == MAREY_DUMP_LITERAL)
        marey__diff_read_literal(value->text, value->text_len, number, out);
    else if (!value->has_data || value->rank != 0 || side->open(side, i, NULL, out) != MAREY_OK)
        *out = (struct marey_tensor){0};
}

/* False if one is not a representable number. */
static bool compare_numbers(const struct marey__diff_inputs *inputs, size_t ia, size_t ib,
                            struct marey__diff_result *out, marey_status *status)
{
    union marey__literal number_a, number_b;
    struct marey_tensor ta, tb;
    get_number(inputs->a, ia, &number_a, &ta);
    get_number(inputs->b, ib, &number_b, &tb);
    if (ta.dtype == MAREY_DTYPE_NONE || tb.dtype == MAREY_DTYPE_NONE)
        return false;
    const struct marey_dumped_value a = {.name = inputs->a->values[ia].name, .dtype = ta.dtype},
                                    b = {.name = a.name, .dtype = tb.dtype};
    out->tolerance = marey__diff_tolerance(inputs->options, &a, &b);
    out->tolerance.bitwise &= ta.dtype == tb.dtype;
    *status = marey__diff_compare_numbers(&ta, &tb, out);
    out->basis = MAREY__BY_VALUE;
    return true;
}

static bool is_number(const struct marey_dumped_value *value)
{
    return value->kind == MAREY_DUMP_LITERAL || (marey__diff_is_tensor(value) && value->rank == 0);
}

marey_status marey__diff_compare_values(const struct marey__diff_inputs *inputs, size_t ia,
                                        size_t ib, struct marey__diff_result *out)
{
    const struct marey_dumped_value *a = &inputs->a->values[ia], *b = &inputs->b->values[ib];
    if (a->missing != NULL || b->missing != NULL)
        return marey__diff_unknown(out, a->missing != NULL ? a->missing : b->missing);
    if (is_bytes(a) && is_bytes(b))
        return compare_bytes(a, b, out);
    out->basis = MAREY__BY_VALUE;
    out->status = MAREY_DIFF_SAME;
    marey_status status = MAREY_OK;
    if ((is_empty_list(a) && is_empty_list(b)) || (a->kind == b->kind && same_text(a, b)) ||
        (is_number(a) && is_number(b) && compare_numbers(inputs, ia, ib, out, &status)))
        return status;
    const bool is_one_kind = a->kind == b->kind || (is_number(a) && is_number(b));
    out->status = is_one_kind ? MAREY_DIFF_DIFFERENT : MAREY_DIFF_KIND;
    return MAREY_OK;
}
