/*
 * Files of averages as pandas writes them: CSV with a line of names, texts in quotes where they must be. Every byte comes
 * from outside. Memory is that of one row.
 */
#include <math.h>
#include <string.h>

#include "analyze/legacy_internal.h"
#include "codec/codec_internal.h"

enum { MAX_FIELDS = 64, MAX_ROW = 1 << 20 };
/* Thirty years: what is longer, or no number, is no time. */
static const double max_us = 1e15;

/* Which columns are wanted. */
enum column { NAME, SELF_TIME, STRATEGY, NUM_GPUS, RANK, N_COLUMNS };
static const char *const column_names[N_COLUMNS] = {
    "name", "self_cuda_time_total", "strategy", "num_gpus", "global_rank",
};

enum state { AT_BEGIN, IN_PLAIN, IN_QUOTES, AFTER_QUOTE };

struct reader {
    struct kymo__legacy *legacy;
    const char *path;
    enum state state;
    bool was_return;       /* the last byte ended a row as \r does; a \n behind it belongs to it */
    struct kymo__buf text; /* fields of the row, one behind the other */
    size_t ends[MAX_FIELDS]; /* of each in `text` */
    size_t n_fields;         /* whole ones */
    bool has_names;          /* the first row was there, with the wanted columns */
    int columns[N_COLUMNS];  /* where they are; -1: not there */
};

static kymo_status is_no_file(const struct reader *r, const char *why)
{
    return kymo__fail(KYMO_EFORMAT, "%s is no file of averages as itwinai writes: %s", r->path, why);
}

/* ---- a row ---- */

struct field {
    const char *text;
    size_t len;
};

static struct field field_at(const struct reader *r, size_t i)
{
    const size_t begin = i == 0 ? 0 : r->ends[i - 1];
    return (struct field){r->text.data != NULL ? r->text.data + begin : "", r->ends[i] - begin};
}

/* A wanted column of the row; false when it is not there or empty. */
static bool find_field(const struct reader *r, enum column column, struct field *out)
{
    const int at = r->columns[column];
    if (at < 0 || (size_t)at >= r->n_fields)
        return false;
    *out = field_at(r, (size_t)at);
    return out->len != 0;
}

static kymo_status take_names(struct reader *r)
{
    for (size_t c = 0; c < N_COLUMNS; c++) {
        r->columns[c] = -1;
        for (size_t i = 0; i < r->n_fields; i++) {
            const struct field field = field_at(r, i);
            if (field.len == strlen(column_names[c]) &&
                memcmp(field.text, column_names[c], field.len) == 0)
                r->columns[c] = (int)i;
        }
        if (r->columns[c] < 0 && c != RANK)
            return kymo__fail(KYMO_EFORMAT,
                              "%s is no file of averages as itwinai writes: its first line has no "
                              "column %s",
                              r->path, column_names[c]);
    }
    r->has_names = true;
    return KYMO_OK;
}

/* A number of the row that counts something; pandas writes 4.0 where some rows have none. */
static bool find_count(const struct reader *r, enum column column, uint64_t *out)
{
    struct field field;
    double value;
    if (!find_field(r, column, &field) || !kymo__decimal_double(field.text, field.len, &value) ||
        !(value >= 0 && value < 1e9 && value == floor(value)))
        return false;
    *out = (uint64_t)value;
    return true;
}

static kymo_status take_averages(struct reader *r)
{
    struct field name = {"", 0}, strategy, time;
    uint64_t num_gpus, rank;
    double us;
    (void)find_field(r, NAME, &name);
    const bool has_rank = find_count(r, RANK, &rank);
    if (!find_field(r, STRATEGY, &strategy) || !find_count(r, NUM_GPUS, &num_gpus) ||
        !find_field(r, SELF_TIME, &time) || !kymo__decimal_double(time.text, time.len, &us) ||
        !(fabs(us) <= max_us)) {
        r->legacy->n_dropped++;
        return KYMO_OK;
    }
    const struct kymo__legacy_row row = {
        .name = name.text,
        .name_len = name.len,
        .strategy = strategy.text,
        .strategy_len = strategy.len,
        .num_gpus = num_gpus,
        .rank = has_rank ? (int64_t)rank : -1,
        .self_us = us,
    };
    return kymo__legacy_take(r->legacy, &row) ? KYMO_OK
                                              : kymo__fail(KYMO_ENOMEM, "no memory for averages");
}

/* ---- fields ---- */

static kymo_status end_field(struct reader *r)
{
    if (r->n_fields == MAX_FIELDS)
        return is_no_file(r, "a row has more than 64 fields");
    r->ends[r->n_fields++] = r->text.len;
    r->state = AT_BEGIN;
    return KYMO_OK;
}

static kymo_status end_row(struct reader *r)
{
    const bool is_empty = r->n_fields == 0 && r->text.len == 0 && r->state == AT_BEGIN;
    if (is_empty)
        return KYMO_OK;
    KYMO_TRY(end_field(r));
    KYMO_TRY(r->has_names ? take_averages(r) : take_names(r));
    r->text.len = 0;
    r->n_fields = 0;
    return KYMO_OK;
}

static kymo_status put_char(struct reader *r, char c)
{
    if (r->text.len >= MAX_ROW)
        return is_no_file(r, "a row has more than a million characters");
    kymo__buf_put(&r->text, &c, 1);
    return r->text.failed ? kymo__fail(KYMO_ENOMEM, "no memory for averages") : KYMO_OK;
}

static kymo_status take_in_quotes(struct reader *r, char c)
{
    if (c != '"')
        return put_char(r, c);
    r->state = AFTER_QUOTE;
    return KYMO_OK;
}

static kymo_status take_char(struct reader *r, char c)
{
    const bool was_return = r->was_return;
    r->was_return = false;
    if (r->state == IN_QUOTES)
        return take_in_quotes(r, c);
    if (c == '\n' && was_return)
        return KYMO_OK;
    if (c == '"' && r->state == AT_BEGIN) {
        r->state = IN_QUOTES;
        return KYMO_OK;
    }
    if (c == '"' && r->state == AFTER_QUOTE) {
        r->state = IN_QUOTES;
        return put_char(r, c);
    }
    if (c == ',')
        return end_field(r);
    if (c == '\n' || c == '\r') {
        r->was_return = c == '\r';
        return end_row(r);
    }
    r->state = IN_PLAIN;
    return put_char(r, c);
}

/* ---- a file ---- */

static kymo_status read_all(struct reader *r, kymo__byte_source *bytes)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of some editors, for UTF-8 */
    const char *text;
    size_t len;
    bool is_first = true;
    KYMO_TRY(kymo__bytes_peek(bytes, &text, &len));
    const size_t skip = len >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
    size_t n_skipped = 0;
    for (;;) {
        KYMO_TRY(kymo__bytes_next(bytes, &text, &len));
        if (len == 0)
            break;
        is_first = false;
        for (size_t i = 0; i < len; i++)
            if (n_skipped < skip)
                n_skipped++;
            else
                KYMO_TRY(take_char(r, text[i]));
    }
    if (is_first)
        return is_no_file(r, "it is empty");
    if (kymo__bytes_damage(bytes) != NULL)
        return kymo__fail(KYMO_EFORMAT, "%s cannot be read to its end: %s", r->path,
                          kymo__bytes_damage(bytes));
    if (r->state == IN_QUOTES)
        return is_no_file(r, "it ends within quotes");
    return end_row(r);
}

kymo_status kymo__legacy_read_csv(struct kymo__legacy *legacy, kymo__byte_source *bytes,
                                  const char *path, bool *is_other)
{
    struct reader r = {.legacy = legacy, .path = path};
    kymo_status status = read_all(&r, bytes);
    if (status == KYMO_OK && !r.has_names)
        status = is_no_file(&r, "it has no line of names");
    *is_other = status == KYMO_EFORMAT && !r.has_names;
    kymo__buf_fini(&r.text);
    return status;
}
