/*
 * Rows of CSV as pandas writes it: a line of column names, then text with quotes where needed. Input is untrusted. One
 * row is in memory at a time.
 */
#include <math.h>

#include "codec/internal.h"

enum { MAX_ROW = 1 << 20 };

enum state { AT_BEGIN, IN_PLAIN, IN_QUOTES, AFTER_QUOTE };

static marey_status is_no_file(const struct marey__csv *csv, const char *why)
{
    return marey__fail(MAREY_EFORMAT, "%s is not a file of %s: %s", csv->path, csv->what, why);
}

/* ---- a row ---- */

static struct marey__csv_field field_at(const struct marey__csv *csv, size_t i)
{
    const size_t begin = i == 0 ? 0 : csv->ends[i - 1];
    return (struct marey__csv_field){csv->text.data != NULL ? csv->text.data + begin : "",
                                     csv->ends[i] - begin};
}

bool marey__csv_find(const struct marey__csv *csv, size_t column, struct marey__csv_field *out)
{
    const int at = csv->columns[column];
    if (at < 0 || (size_t)at >= csv->n_fields)
        return false;
    *out = field_at(csv, (size_t)at);
    return out->len != 0;
}

bool marey__csv_number(const struct marey__csv *csv, size_t column, double *out)
{
    struct marey__csv_field field;
    return marey__csv_find(csv, column, &field) &&
           marey__decimal_double(field.text, field.len, out) && isfinite(*out);
}

bool marey__csv_count(const struct marey__csv *csv, size_t column, uint64_t *out)
{
    double value;
    if (!marey__csv_number(csv, column, &value) ||
        !(value >= 0 && value < 1e9 && value == floor(value)))
        return false;
    *out = (uint64_t)value;
    return true;
}

static marey_status take_names(struct marey__csv *csv)
{
    for (size_t c = 0; c < csv->n_names; c++) {
        csv->columns[c] = -1;
        for (size_t i = 0; i < csv->n_fields; i++) {
            const struct marey__csv_field field = field_at(csv, i);
            if (marey__text_is(field.text, field.len, csv->names[c]))
                csv->columns[c] = (int)i;
        }
        if (c < csv->n_needed && csv->columns[c] < 0)
            return marey__fail(MAREY_EFORMAT,
                               "%s is not a file of %s: its first line has no column %s", csv->path,
                               csv->what, csv->names[c]);
    }
    csv->has_names = true;
    return MAREY_OK;
}

/* ---- fields ---- */

static marey_status end_field(struct marey__csv *csv)
{
    if (csv->n_fields == MAREY__CSV_FIELDS)
        return is_no_file(csv, "a row has more than 64 fields");
    csv->ends[csv->n_fields++] = csv->text.len;
    csv->state = AT_BEGIN;
    return MAREY_OK;
}

static marey_status end_row(struct marey__csv *csv)
{
    const bool is_empty = csv->n_fields == 0 && csv->text.len == 0 && csv->state == AT_BEGIN;
    if (is_empty)
        return MAREY_OK;
    MAREY_TRY(end_field(csv));
    if (!csv->has_names)
        MAREY_TRY(take_names(csv));
    else if (!csv->take(csv->ctx, csv))
        return marey__no_memory();
    csv->text.len = 0;
    csv->n_fields = 0;
    return MAREY_OK;
}

static marey_status put_char(struct marey__csv *csv, char c)
{
    if (csv->text.len >= MAX_ROW)
        return is_no_file(csv, "a row has more than a million characters");
    marey__buf_put(&csv->text, &c, 1);
    return csv->text.failed ? marey__no_memory() : MAREY_OK;
}

static marey_status take_in_quotes(struct marey__csv *csv, char c)
{
    if (c != '"')
        return put_char(csv, c);
    csv->state = AFTER_QUOTE;
    return MAREY_OK;
}

static marey_status take_char(struct marey__csv *csv, char c)
{
    const bool was_return = csv->was_return;
    csv->was_return = false;
    if (csv->state == IN_QUOTES)
        return take_in_quotes(csv, c);
    if (c == '\n' && was_return)
        return MAREY_OK;
    if (c == '"' && csv->state == AT_BEGIN) {
        csv->state = IN_QUOTES;
        return MAREY_OK;
    }
    if (c == '"' && csv->state == AFTER_QUOTE) {
        csv->state = IN_QUOTES;
        return put_char(csv, c);
    }
    if (c == ',')
        return end_field(csv);
    if (c == '\n' || c == '\r') {
        csv->was_return = c == '\r';
        return end_row(csv);
    }
    csv->state = IN_PLAIN;
    return put_char(csv, c);
}

/* ---- a file ---- */

static marey_status read_all(struct marey__csv *csv, marey__byte_source *bytes)
{
    static const char mark[] = "\xef\xbb\xbf"; /* UTF-8 byte order mark of some editors */
    const char *text;
    size_t len;
    bool is_first = true;
    MAREY_TRY(marey__bytes_peek(bytes, &text, &len));
    const size_t skip = len >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
    size_t n_skipped = 0;
    for (;;) {
        MAREY_TRY(marey__bytes_next(bytes, &text, &len));
        if (len == 0)
            break;
        is_first = false;
        for (size_t i = 0; i < len; i++)
            if (n_skipped < skip)
                n_skipped++;
            else
                MAREY_TRY(take_char(csv, text[i]));
    }
    if (is_first)
        return is_no_file(csv, "it is empty");
    if (marey__bytes_damage(bytes) != NULL)
        return marey__fail(MAREY_EFORMAT, "%s cannot be read to its end: %s", csv->path,
                           marey__bytes_damage(bytes));
    if (csv->state == IN_QUOTES)
        return is_no_file(csv, "it ends within quotes");
    return end_row(csv);
}

marey_status marey__csv_read(struct marey__csv *csv, marey__byte_source *bytes)
{
    marey_status status = read_all(csv, bytes);
    if (status == MAREY_OK && !csv->has_names)
        status = is_no_file(csv, "it has no line of names");
    marey__buf_fini(&csv->text);
    return status;
}
