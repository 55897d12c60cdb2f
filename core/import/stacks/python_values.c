/*
 * Plain Python values: pickles of protocol 2 to 5, by a stack machine, and marshal versions 0 to 5, as far as a profile
 * needs: numbers, texts, tuples and dicts. Nothing is ever called: a pickle that creates objects is refused.
 */
#include <math.h>

#include "import/stacks/internal.h"

enum {
    MAX_PICKLED = 1 << 27,
    MAX_MARSHALED = 1 << 24, /* values */
    MAX_MARKS = 1024,
    MAX_DEPTH = 32, /* of marshal */
    FLAG_REF = 0x80
};

/* A list of value numbers. */
struct numbers {
    uint32_t *all;
    size_t n, cap;
};

struct machine {
    struct marey__python_values *pickle;
    const uint8_t *start, *at, *end;
    uint32_t *stack;
    size_t n, cap;
    size_t marks[MAX_MARKS];
    size_t n_marks;
    uint32_t *memo; /* values, plus one; 0: not set */
    size_t memo_cap;
    size_t n_memoized;
    size_t max_values;
    /* For marshal: */
    uint32_t depth;
    struct numbers refs;    /* values with FLAG_REF, in order of their starts */
    struct numbers strings; /* strings interned by Python 2 */
};

/* ---- mistakes and bytes ---- */

static bool fail(struct machine *m, const char *mistake)
{
    if (m->pickle->mistake == NULL) {
        m->pickle->mistake = mistake;
        m->pickle->offset = (size_t)(m->at - m->start);
    }
    return false;
}

static const uint8_t *take(struct machine *m, uint64_t n)
{
    const uint8_t *const bytes = m->at;
    if (n > (uint64_t)(m->end - m->at)) {
        fail(m, "it ends in the middle of a value");
        return NULL;
    }
    m->at += n;
    return bytes;
}

/* A little-endian number of `n` bytes, at most 8. */
static bool take_number(struct machine *m, unsigned n, uint64_t *out)
{
    const uint8_t *const bytes = take(m, n);
    *out = 0;
    for (unsigned i = 0; bytes != NULL && i < n; i++)
        *out |= (uint64_t)bytes[i] << (8 * i);
    return bytes != NULL;
}

/* ---- values and the stack ---- */

static bool push_number(struct machine *m, uint32_t number)
{
    return MAREY__PUSH(m->stack, m->n, m->cap, number);
}

static bool push(struct machine *m, struct marey__python_value value)
{
    struct marey__python_values *const p = m->pickle;
    if (p->n >= m->max_values)
        return fail(m, "it has too many values");
    if (!MAREY__PUSH(p->values, p->n, p->cap, value))
        return false;
    return push_number(m, (uint32_t)(p->n - 1));
}

static bool push_whole(struct machine *m, int64_t number)
{
    return push(m, (struct marey__python_value){.type = MAREY__PYTHON_INT, .as.number = number});
}

static bool push_text(struct machine *m, unsigned length_bytes, bool is_text)
{
    uint64_t len;
    if (!take_number(m, length_bytes, &len))
        return false;
    if (len > UINT32_MAX)
        return fail(m, "it has a text of more than 4 GiB");
    const uint8_t *const bytes = take(m, len);
    struct marey__python_value value = {.type = MAREY__PYTHON_NONE};
    if (is_text) {
        value.type = MAREY__PYTHON_TEXT;
        value.n = (uint32_t)len;
        value.as.text = (const char *)bytes;
    }
    return bytes != NULL && push(m, value);
}

/* Two's complement, little-endian, any length. */
static bool push_long(struct machine *m, unsigned length_bytes)
{
    uint64_t len, number = 0;
    const uint8_t *const bytes = take_number(m, length_bytes, &len) ? take(m, len) : NULL;
    if (bytes == NULL)
        return false;
    const bool is_negative = len > 0 && (bytes[len - 1] & 0x80) != 0;
    const uint8_t fill = is_negative ? 0xff : 0;
    bool fits = true;
    for (uint64_t i = 8; i < len; i++)
        fits = fits && bytes[i] == fill;
    if (len >= 8)
        fits = fits && (bytes[7] & 0x80) == (fill & 0x80);
    for (unsigned i = 0; i < 8; i++)
        number |= (uint64_t)(i < len ? bytes[i] : fill) << (8 * i);
    return push_whole(m, fits ? (int64_t)number : is_negative ? INT64_MIN : INT64_MAX);
}

static bool push_real(struct machine *m, double real)
{
    return push(m, (struct marey__python_value){.type = MAREY__PYTHON_FLOAT, .as.real = real});
}

static bool push_binary_real(struct machine *m, bool is_big_endian)
{
    uint64_t bits;
    double real;
    if (!take_number(m, 8, &bits))
        return false;
    bits = is_big_endian ? __builtin_bswap64(bits) : bits;
    memcpy(&real, &bits, sizeof real);
    return push_real(m, real);
}

/* ---- lists and dicts ---- */

static bool add_items(struct machine *m, uint32_t into, const uint32_t *items, size_t n)
{
    struct marey__python_value *const value = &m->pickle->values[into];
    size_t cap = value->cap;
    if (value->n + n >= UINT32_MAX / 2)
        return fail(m, "it has a list that is too long");
    if (!marey__grow(&value->as.items, &cap, value->n + n, sizeof *value->as.items))
        return false;
    value->cap = (uint32_t)MAREY__MIN(cap, (size_t)UINT32_MAX);
    if (n != 0)
        memcpy(value->as.items + value->n, items, n * sizeof *items);
    value->n += (uint32_t)n;
    return true;
}

/* Replace the last `n` values of the stack by one. */
static bool gather(struct machine *m, enum marey__python_type type, size_t n)
{
    if (m->n < n || (m->n_marks > 0 && m->n - n < m->marks[m->n_marks - 1]))
        return fail(m, "it takes more values than there are");
    if (type == MAREY__PYTHON_DICT && n % 2 != 0)
        return fail(m, "it has a key without a value");
    const size_t first = m->n - n;
    /* Push the new value after its items, then remove these from below it. */
    if (!push(m, (struct marey__python_value){.type = (uint8_t)type}))
        return false;
    const uint32_t made = m->stack[m->n - 1];
    if (!add_items(m, made, m->stack + first, n))
        return false;
    m->stack[first] = made;
    m->n = first + 1;
    return true;
}

static bool take_mark(struct machine *m, size_t *first)
{
    if (m->n_marks == 0)
        return fail(m, "it goes back to a mark that it did not set");
    *first = m->marks[--m->n_marks];
    return true;
}

static bool gather_marked(struct machine *m, enum marey__python_type type)
{
    size_t first;
    return take_mark(m, &first) && gather(m, type, m->n - first);
}

/* Move values from `first` on into the list or dict below them. */
static bool append(struct machine *m, enum marey__python_type type, size_t first)
{
    const size_t floor = m->n_marks > 0 ? m->marks[m->n_marks - 1] : 0;
    if (first == 0 || first > m->n || first - 1 < floor ||
        m->pickle->values[m->stack[first - 1]].type != type)
        return fail(m, "it adds to something that is not its own list or dict");
    if (type == MAREY__PYTHON_DICT && (m->n - first) % 2 != 0)
        return fail(m, "it has a key without a value");
    if (!add_items(m, m->stack[first - 1], m->stack + first, m->n - first))
        return false;
    m->n = first;
    return true;
}

static bool append_marked(struct machine *m, enum marey__python_type type)
{
    size_t first;
    return take_mark(m, &first) && append(m, type, first);
}

/* ---- the memo ---- */

static bool memo_put(struct machine *m, uint64_t number)
{
    const size_t before = m->memo_cap;
    if (m->n == 0)
        return fail(m, "it remembers a value that is not there");
    if (number > m->n_memoized + MAX_MARKS) /* Python counts up; a gap would only waste memory */
        return fail(m, "memo indices are not consecutive");
    if (!marey__grow(&m->memo, &m->memo_cap, number + 1, sizeof *m->memo))
        return false;
    memset(m->memo + before, 0, (m->memo_cap - before) * sizeof *m->memo);
    m->memo[number] = m->stack[m->n - 1] + 1;
    m->n_memoized++;
    return true;
}

static bool memo_get(struct machine *m, unsigned n_bytes)
{
    uint64_t number;
    if (!take_number(m, n_bytes, &number))
        return false;
    if (number >= m->memo_cap || m->memo[number] == 0)
        return fail(m, "it asks for a value that it did not remember");
    return push_number(m, m->memo[number] - 1);
}

static bool memo_put_numbered(struct machine *m, unsigned n_bytes)
{
    uint64_t number;
    return take_number(m, n_bytes, &number) && memo_put(m, number);
}

/* ---- opcodes of pickle ---- */

static bool push_mark(struct machine *m)
{
    if (m->n_marks == MAX_MARKS)
        return fail(m, "it is nested too deep");
    m->marks[m->n_marks++] = m->n;
    return true;
}

static bool run_opcode(struct machine *m, uint8_t opcode)
{
    uint64_t number;
    switch (opcode) {
    case 'N':
        return push(m, (struct marey__python_value){.type = MAREY__PYTHON_NONE});
    case 0x88:
    case 0x89:
        return push(m, (struct marey__python_value){.type = MAREY__PYTHON_BOOL,
                                                    .as.number = opcode == 0x88});
    case 'J':
        return take_number(m, 4, &number) && push_whole(m, (int32_t)(uint32_t)number);
    case 'K':
        return take_number(m, 1, &number) && push_whole(m, (int64_t)number);
    case 'M':
        return take_number(m, 2, &number) && push_whole(m, (int64_t)number);
    case 0x8a:
    case 0x8b:
        return push_long(m, opcode == 0x8a ? 1 : 4);
    case 'G':
        return push_binary_real(m, true);
    case 0x8c:
        return push_text(m, 1, true);
    case 'X':
        return push_text(m, 4, true);
    case 0x8d:
        return push_text(m, 8, true);
    case 'C': /* bytes: not kept */
    case 'B':
        return push_text(m, opcode == 'C' ? 1 : 4, false);
    case 0x95: /* FRAME: length for read-ahead */
        return take_number(m, 8, &number);
    case '(':
        return push_mark(m);
    case ']':
    case ')':
        return gather(m, MAREY__PYTHON_LIST, 0);
    case '}':
        return gather(m, MAREY__PYTHON_DICT, 0);
    case 0x85:
    case 0x86:
    case 0x87:
        return gather(m, MAREY__PYTHON_LIST, (size_t)opcode - 0x84);
    case 't':
    case 'l':
        return gather_marked(m, MAREY__PYTHON_LIST);
    case 'd':
        return gather_marked(m, MAREY__PYTHON_DICT);
    case 'a':
        return append(m, MAREY__PYTHON_LIST, m->n - (m->n > 0));
    case 'e':
        return append_marked(m, MAREY__PYTHON_LIST);
    case 's':
        return append(m, MAREY__PYTHON_DICT, m->n > 2 ? m->n - 2 : 0);
    case 'u':
        return append_marked(m, MAREY__PYTHON_DICT);
    case 'q':
        return memo_put_numbered(m, 1);
    case 'r':
        return memo_put_numbered(m, 4);
    case 0x94:
        return memo_put(m, m->n_memoized);
    case 'h':
        return memo_get(m, 1);
    case 'j':
        return memo_get(m, 4);
    default:
        return fail(
            m, "it makes objects, and a plain pickle has only numbers, texts, lists and dicts");
    }
}

static bool run_pickle(struct machine *m)
{
    const uint8_t *const head = take(m, 2);
    if (head == NULL || head[0] != 0x80 || head[1] < 2 || head[1] > 5)
        return fail(m, "it is not a pickle of protocol 2 to 5");
    for (;;) {
        const uint8_t *const opcode = take(m, 1);
        if (opcode == NULL)
            return false;
        if (*opcode == '.') {
            if (m->n != 1 || m->n_marks != 0)
                return fail(m, "it ends with more than one value, or none");
            m->pickle->top = m->stack[0];
            return true;
        }
        if (!run_opcode(m, *opcode))
            return false;
    }
}

/* ---- marshal ---- */

/* A number of items in 1 or 4 bytes; each item takes at least a byte. */
static bool take_length(struct machine *m, unsigned n_bytes, uint64_t *out)
{
    if (!take_number(m, n_bytes, out))
        return false;
    return *out <= (size_t)(m->end - m->at) || fail(m, "a length beyond the end of the file");
}

static bool add_number(struct numbers *numbers, uint32_t number)
{
    return MAREY__PUSH(numbers->all, numbers->n, numbers->cap, number);
}

/* Digits of 15 bits, the lowest first; a negative count marks a negative number. */
static bool read_long(struct machine *m)
{
    uint64_t n, digit, value = 0;
    if (!take_number(m, 4, &n))
        return false;
    const int64_t n_digits = (int32_t)(uint32_t)n;
    const uint8_t *digits = take(m, 2 * (uint64_t)(n_digits < 0 ? -n_digits : n_digits));
    if (digits == NULL)
        return false;
    for (int64_t i = 0; digits + 2 * i < m->at; i++) {
        digit = (uint64_t)digits[2 * i] | (uint64_t)digits[2 * i + 1] << 8;
        if (i < 4)
            value |= (digit & 0x7fff) << (15 * i);
        else if (i == 4 && digit < 8)
            value |= digit << 60;
        else if (digit != 0)
            value = INT64_MAX;
    }
    return push_whole(m, n_digits < 0 ? -(int64_t)value : (int64_t)value);
}

/* A length of one byte, then digits as Python prints them. */
static bool read_text_float(struct machine *m)
{
    uint64_t len;
    double real;
    if (!take_length(m, 1, &len))
        return false;
    if (!marey__decimal_double((const char *)take(m, len), len, &real))
        real = NAN; /* "inf" and "nan" are not valid times either */
    return push_real(m, real);
}

static bool read_text(struct machine *m, unsigned length_bytes)
{
    const uint8_t *const start = m->at;
    uint64_t len;
    if (!take_length(m, length_bytes, &len))
        return false;
    m->at = start;
    return push_text(m, length_bytes, true);
}

static bool read_reference(struct machine *m, const struct numbers *numbers)
{
    uint64_t i;
    if (!take_number(m, 4, &i))
        return false;
    if (i >= numbers->n || numbers->all[i] == UINT32_MAX)
        return fail(m, "a reference to a value that is not there");
    return push_number(m, numbers->all[i]);
}

static bool read_value(struct machine *m, bool *is_end);

/* Read a value that is not the end of a dict. */
static bool read_item(struct machine *m)
{
    bool is_end;
    return read_value(m, &is_end) && (!is_end || fail(m, "nothing where a value should be"));
}

static bool read_list(struct machine *m, unsigned n_bytes)
{
    uint64_t n;
    if (!take_length(m, n_bytes, &n))
        return false;
    for (uint64_t i = 0; i < n; i++)
        if (!read_item(m))
            return false;
    return gather(m, MAREY__PYTHON_LIST, n);
}

static bool read_dict(struct machine *m)
{
    const size_t first = m->n;
    bool is_end = false;
    while (!is_end)
        if (!read_value(m, &is_end))
            return false;
    return gather(m, MAREY__PYTHON_DICT, m->n - first);
}

static bool read_of_type(struct machine *m, int type)
{
    uint64_t bits;
    switch (type) {
    case 'N':
    case 'S':
    case '.':
        return push(m, (struct marey__python_value){.type = MAREY__PYTHON_NONE});
    case 'F':
    case 'T':
        return push_whole(m, type == 'T');
    case 'i':
        return take_number(m, 4, &bits) && push_whole(m, (int32_t)(uint32_t)bits);
    case 'I':
        return take_number(m, 8, &bits) && push_whole(m, (int64_t)bits);
    case 'l':
        return read_long(m);
    case 'f':
        return read_text_float(m);
    case 'g':
        return push_binary_real(m, false);
    case 's':
    case 'u':
    case 'a':
    case 'A':
        return read_text(m, 4);
    case 't':
        return read_text(m, 4) && add_number(&m->strings, m->stack[m->n - 1]);
    case 'z':
    case 'Z':
        return read_text(m, 1);
    case 'R':
        return read_reference(m, &m->strings);
    case 'r':
        return read_reference(m, &m->refs);
    case ')':
        return read_list(m, 1);
    case '(':
    case '[':
    case '<':
    case '>':
        return read_list(m, 4);
    case '{':
        return read_dict(m);
    default:
        m->at--;
        return fail(m, "a type of value that no profile has");
    }
}

/*
 * Push the next value; `*is_end` if it is the end of a dict instead. A shared value gets its reference number when it
 * starts, before the values in it.
 */
static bool read_value(struct machine *m, bool *is_end)
{
    const uint8_t *byte = take(m, 1);
    if (byte == NULL)
        return false;
    const int type = *byte & ~FLAG_REF;
    const bool is_referred = (*byte & FLAG_REF) != 0;
    const size_t ref = m->refs.n;
    *is_end = type == '0';
    if (m->depth == MAX_DEPTH)
        return fail(m, "values within one another too deep");
    if (is_referred && !add_number(&m->refs, UINT32_MAX))
        return false;
    if (*is_end)
        return true;
    m->depth++;
    const bool done = read_of_type(m, type);
    m->depth--;
    if (is_referred && done)
        m->refs.all[ref] = m->stack[m->n - 1];
    return done;
}

static bool run_marshal(struct machine *m)
{
    const bool done = read_item(m);
    m->pickle->top = done ? m->stack[0] : 0;
    return done;
}

/* ---- pickle and marshal ---- */

static bool read_all(struct marey__python_values *values, const void *bytes, size_t len,
                     bool (*run)(struct machine *m), size_t max_values)
{
    *values = (struct marey__python_values){0};
    struct machine *const m = marey__calloc(1, sizeof *m);
    if (m == NULL)
        return false;
    m->pickle = values;
    m->max_values = max_values;
    m->start = m->at = len != 0 ? bytes : (const uint8_t *)"";
    m->end = m->start + len;
    const bool done = run(m);
    MAREY__FREE_ALL(m->stack, m->memo, m->refs.all, m->strings.all, m);
    return done;
}

bool marey__unpickle(struct marey__python_values *values, const void *bytes, size_t len)
{
    return read_all(values, bytes, len, run_pickle, MAX_PICKLED);
}

bool marey__unmarshal(struct marey__python_values *values, const void *bytes, size_t len)
{
    return read_all(values, bytes, len, run_marshal, MAX_MARSHALED);
}

void marey__python_values_fini(struct marey__python_values *pickle)
{
    for (size_t i = 0; i < pickle->n; i++)
        if (pickle->values[i].type >= MAREY__PYTHON_LIST)
            marey__free(pickle->values[i].as.items);
    marey__free(pickle->values);
    *pickle = (struct marey__python_values){0};
}

/* ---- access ---- */

const char *marey__python_text(const struct marey__python_value *value, size_t *len)
{
    if (value == NULL || value->type != MAREY__PYTHON_TEXT)
        return NULL;
    *len = value->n;
    return value->as.text;
}

bool marey__python_is(const struct marey__python_value *value, const char *text)
{
    size_t len;
    const char *const found = marey__python_text(value, &len);
    return found != NULL && marey__text_is(found, len, text);
}

const struct marey__python_value *marey__python_get(const struct marey__python_values *pickle,
                                                    const struct marey__python_value *value,
                                                    const char *key)
{
    if (value == NULL || value->type != MAREY__PYTHON_DICT)
        return NULL;
    for (uint32_t i = 0; i + 1 < value->n; i += 2)
        if (marey__python_is(&pickle->values[value->as.items[i]], key))
            return &pickle->values[value->as.items[i + 1]];
    return NULL;
}

size_t marey__python_length(const struct marey__python_value *value)
{
    return value != NULL && value->type == MAREY__PYTHON_LIST ? value->n : 0;
}

const struct marey__python_value *marey__python_item(const struct marey__python_values *pickle,
                                                     const struct marey__python_value *list, size_t i)
{
    return i < marey__python_length(list) ? &pickle->values[list->as.items[i]] : NULL;
}

bool marey__python_number(const struct marey__python_value *value, double *out)
{
    if (value != NULL && value->type == MAREY__PYTHON_FLOAT && isfinite(value->as.real))
        *out = value->as.real;
    else if (value != NULL && (value->type == MAREY__PYTHON_INT || value->type == MAREY__PYTHON_BOOL))
        *out = (double)value->as.number;
    else
        return false;
    return true;
}

bool marey__python_whole(const struct marey__python_value *value, int64_t *out)
{
    if (value == NULL || value->type != MAREY__PYTHON_INT)
        return false;
    *out = value->as.number;
    return true;
}
