/* Pairs of which one at least is no tensor: texts, numbers, empty dictionaries and lists, files of bytes. */
#include <stdio.h>
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

/* Pickles are never loaded: equal bytes are equal values, and of others nothing is known but that. */
static kymo_status judge_files(const struct kymo_dumped_value *a, const struct kymo_dumped_value *b,
                               struct kymo__diff_result *out)
{
    if (a->n_files == 0 || b->n_files == 0)
        return kymo__diff_unknown(out, "nothing of it was kept");
    FILE *file_a = fopen(a->files[0], "rbe"), *file_b = fopen(b->files[0], "rbe");
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

kymo_status kymo__diff_judge_values(const struct kymo_dumped_value *a,
                                    const struct kymo_dumped_value *b, struct kymo__diff_result *out)
{
    if (a->missing != NULL || b->missing != NULL)
        return kymo__diff_unknown(out, a->missing != NULL ? a->missing : b->missing);
    if (is_bytes(a) && is_bytes(b))
        return judge_files(a, b, out);
    out->basis = KYMO__BY_VALUE;
    if (is_empty_list(a) && is_empty_list(b))
        out->status = KYMO_DIFF_SAME;
    else if (a->kind != b->kind || kymo__diff_is_tensor(a) != kymo__diff_is_tensor(b))
        out->status = KYMO_DIFF_KIND;
    else
        out->status = same_text(a, b) ? KYMO_DIFF_SAME : KYMO_DIFF_DIFFERENT;
    return KYMO_OK;
}
