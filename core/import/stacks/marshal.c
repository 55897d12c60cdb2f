/*
 * Python's marshal, versions 0 to 5, as far as plain values go: a profile has numbers, texts, tuples and dicts. Values
 * that the file names again by a reference are there once.
 */
#include <math.h>
#include <string.h>

#include "codec/internal.h"
#include "import/stacks/internal.h"

enum { MAX_DEPTH = 32, MAX_VALUES = 1 << 24, FLAG_REF = 0x80 };

/* A list of numbers of values. */
struct numbers {
    uint32_t *all;
    size_t n, cap;
};

struct reader {
    struct marey__marshal *marshal;
    const uint8_t *start, *at, *end;
    uint32_t depth;
    struct numbers refs;    /* what has FLAG_REF, in order of their begins */
    struct numbers strings; /* what Python 2 interned */
    struct numbers pending; /* elements of what is being read */
};

/* In place of a value's number: the reader's mistake reports, or there was no memory; of a dict, its end. */
static const uint32_t no_value = UINT32_MAX, end_of_dict = UINT32_MAX - 1;

static uint32_t fail(struct reader *r, const char *mistake)
{
    if (r->marshal->mistake == NULL) {
        r->marshal->mistake = mistake;
        r->marshal->offset = (size_t)(r->at - r->start);
    }
    return no_value;
}

static bool push(struct numbers *numbers, uint32_t number)
{
    return MAREY__PUSH(numbers->all, numbers->n, numbers->cap, number);
}

/* ---- bytes ---- */

static size_t left(const struct reader *r)
{
    return (size_t)(r->end - r->at);
}

/* The next `n` bytes; NULL when there are no that many. */
static const uint8_t *take(struct reader *r, size_t n)
{
    const uint8_t *bytes = r->at;
    if (n > left(r)) {
        fail(r, "it ends in the middle of a value");
        return NULL;
    }
    r->at += n;
    return bytes;
}

static bool take_little(struct reader *r, size_t n, uint64_t *out)
{
    const uint8_t *bytes = take(r, n);
    *out = 0;
    for (size_t i = 0; bytes != NULL && i < n; i++)
        *out |= (uint64_t)bytes[i] << (8 * i);
    return bytes != NULL;
}

/* How many there are, in 1 or 4 bytes, of what takes a byte each at least. */
static bool take_length(struct reader *r, size_t n_bytes, uint32_t *out)
{
    uint64_t length;
    if (!take_little(r, n_bytes, &length))
        return false;
    *out = (uint32_t)length;
    if (length > left(r))
        fail(r, "a length beyond the end of the file");
    return length <= left(r);
}

/* ---- values ---- */

static uint32_t add(struct reader *r, struct marey__marshal_value value)
{
    struct marey__marshal *m = r->marshal;
    if (m->n_values >= MAX_VALUES)
        return fail(r, "more values than a profile has");
    if (!marey__grow(&m->values, &m->values_cap, m->n_values + 1, sizeof *m->values))
        return no_value;
    m->values[m->n_values] = value;
    return (uint32_t)m->n_values++;
}

static uint32_t add_integer(struct reader *r, int64_t integer)
{
    return add(r, (struct marey__marshal_value){MAREY__MARSHAL_INTEGER, 0, {.integer = integer}});
}

static uint32_t add_real(struct reader *r, double real)
{
    return add(r, (struct marey__marshal_value){MAREY__MARSHAL_REAL, 0, {.real = real}});
}

static uint32_t read_integer(struct reader *r, size_t n_bytes)
{
    uint64_t bits;
    if (!take_little(r, n_bytes, &bits))
        return no_value;
    return add_integer(r, n_bytes == 4 ? (int32_t)(uint32_t)bits : (int64_t)bits);
}

/* Digits of 15 bits, the lowest first; negative when their number is. */
static uint32_t read_long(struct reader *r)
{
    uint64_t n, digit, value = 0;
    if (!take_little(r, 4, &n))
        return no_value;
    const int64_t n_digits = (int32_t)(uint32_t)n;
    const uint8_t *digits = take(r, 2 * (size_t)(n_digits < 0 ? -n_digits : n_digits));
    if (digits == NULL)
        return no_value;
    for (int64_t i = 0; digits + 2 * i < r->at; i++) {
        digit = (uint64_t)digits[2 * i] | (uint64_t)digits[2 * i + 1] << 8;
        if (i < 4)
            value |= (digit & 0x7fff) << (15 * i);
        else if (i == 4 && digit < 8)
            value |= digit << 60;
        else if (digit != 0)
            value = INT64_MAX;
    }
    return add_integer(r, n_digits < 0 ? -(int64_t)value : (int64_t)value);
}

static uint32_t read_binary_float(struct reader *r)
{
    uint64_t bits;
    double real;
    if (!take_little(r, 8, &bits))
        return no_value;
    memcpy(&real, &bits, sizeof real);
    return add_real(r, real);
}

/* A length of one byte, then digits as Python prints them. */
static uint32_t read_text_float(struct reader *r)
{
    uint32_t len;
    double real;
    if (!take_length(r, 1, &len))
        return no_value;
    const char *text = (const char *)take(r, len);
    if (!marey__decimal_double(text, len, &real))
        real = NAN; /* "inf" and "nan" are not times either */
    return add_real(r, real);
}

static uint32_t read_text(struct reader *r, size_t n_bytes, bool is_interned)
{
    uint32_t len;
    if (!take_length(r, n_bytes, &len))
        return no_value;
    const char *text = (const char *)take(r, len);
    const uint32_t value =
        add(r, (struct marey__marshal_value){MAREY__MARSHAL_TEXT, len, {.text = text}});
    return value != no_value && is_interned && !push(&r->strings, value) ? no_value : value;
}

static uint32_t read_reference(struct reader *r, const struct numbers *numbers)
{
    uint64_t i;
    if (!take_little(r, 4, &i))
        return no_value;
    if (i >= numbers->n || numbers->all[i] == no_value)
        return fail(r, "a reference to a value that is not there");
    return numbers->all[i];
}

/* ---- what holds others ---- */

static uint32_t read_value(struct reader *r);

/* Take what is pending from `from` on as the elements of a value. */
static uint32_t add_holder(struct reader *r, enum marey__marshal_kind kind, size_t from)
{
    struct marey__marshal *m = r->marshal;
    const size_t n = r->pending.n - from, first = m->n_items;
    if (!marey__grow(&m->items, &m->items_cap, first + n, sizeof *m->items))
        return no_value;
    if (n != 0)
        memcpy(m->items + first, r->pending.all + from, n * sizeof *m->items);
    m->n_items += n;
    r->pending.n = from;
    const uint32_t count = (uint32_t)(kind == MAREY__MARSHAL_DICT ? n / 2 : n);
    return add(r, (struct marey__marshal_value){kind, count, {.first = first}});
}

static uint32_t read_list(struct reader *r, size_t n_bytes)
{
    const size_t from = r->pending.n;
    uint32_t n;
    if (!take_length(r, n_bytes, &n))
        return no_value;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t value = read_value(r);
        if (value == end_of_dict)
            return fail(r, "nothing where a value should be");
        if (value == no_value || !push(&r->pending, value))
            return no_value;
    }
    return add_holder(r, MAREY__MARSHAL_LIST, from);
}

static uint32_t read_dict(struct reader *r)
{
    const size_t from = r->pending.n;
    for (;;) {
        const uint32_t value = read_value(r);
        const bool is_key = (r->pending.n - from) % 2 == 0;
        if (value == end_of_dict && is_key)
            return add_holder(r, MAREY__MARSHAL_DICT, from);
        if (value == end_of_dict)
            return fail(r, "a key without a value");
        if (value == no_value || !push(&r->pending, value))
            return no_value;
    }
}

static uint32_t read_of_type(struct reader *r, int type)
{
    static const struct marey__marshal_value other = {.kind = MAREY__MARSHAL_OTHER};
    switch (type) {
    case '0':
        return end_of_dict;
    case 'N':
    case 'S':
    case '.':
        return add(r, other);
    case 'F':
    case 'T':
        return add_integer(r, type == 'T');
    case 'i':
        return read_integer(r, 4);
    case 'I':
        return read_integer(r, 8);
    case 'l':
        return read_long(r);
    case 'f':
        return read_text_float(r);
    case 'g':
        return read_binary_float(r);
    case 's':
    case 'u':
    case 'a':
    case 'A':
        return read_text(r, 4, false);
    case 't':
        return read_text(r, 4, true);
    case 'z':
    case 'Z':
        return read_text(r, 1, false);
    case 'R':
        return read_reference(r, &r->strings);
    case 'r':
        return read_reference(r, &r->refs);
    case ')':
        return read_list(r, 1);
    case '(':
    case '[':
    case '<':
    case '>':
        return read_list(r, 4);
    case '{':
        return read_dict(r);
    default:
        r->at--;
        return fail(r, "a type of value that no profile has");
    }
}

/* A value that others refer to has its number among them from its begin on, before those of what it holds. */
static uint32_t read_value(struct reader *r)
{
    const uint8_t *byte = take(r, 1);
    if (byte == NULL)
        return no_value;
    const bool is_referred = (*byte & FLAG_REF) != 0;
    const size_t ref = r->refs.n;
    if (r->depth == MAX_DEPTH)
        return fail(r, "values within one another too deep");
    if (is_referred && !push(&r->refs, no_value))
        return no_value;
    r->depth++;
    const uint32_t value = read_of_type(r, *byte & ~FLAG_REF);
    r->depth--;
    if (is_referred && value != end_of_dict)
        r->refs.all[ref] = value;
    return value;
}

marey_status marey__marshal_read(struct marey__marshal *marshal, const void *bytes, size_t len,
                                 uint32_t *top)
{
    const uint8_t *const start = len != 0 ? bytes : (const uint8_t *)"";
    struct reader r = {.marshal = marshal, .start = start, .at = start, .end = start + len};
    *top = read_value(&r);
    if (*top == end_of_dict)
        *top = fail(&r, "nothing where a value should be");
    marey__free(r.refs.all);
    marey__free(r.strings.all);
    marey__free(r.pending.all);
    if (*top != no_value)
        return MAREY_OK;
    return marshal->mistake != NULL ? MAREY_EFORMAT : MAREY_ENOMEM;
}

void marey__marshal_fini(struct marey__marshal *marshal)
{
    marey__free(marshal->values);
    marey__free(marshal->items);
    *marshal = (struct marey__marshal){0};
}
