/* Nested lists of numbers as one tensor: integers while all numbers are, else doubles, converting earlier ones. */
#include <math.h>
#include <string.h>

#include "tensor/dumpfile/internal.h"
#include "tensor/kernels/internal.h"

struct collector {
    const char *at, *end;
    union slot {
        int64_t integer;
        uint64_t natural;
        double number;
    } * slots;
    size_t n, cap;
    enum { NOTHING, BOOLEANS, INTEGERS, NATURALS, NUMBERS } what;
    bool is_f32;
    bool has_number; /* something other than null */
    bool no_memory;
    uint32_t rank; /* of the lists; 0: unknown */
    int64_t sizes[MAREY_MAX_RANK];
};

static inline void skip_blanks(struct collector *c)
{
    while (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r')
        c->at++;
}

static inline bool push(struct collector *c, union slot slot)
{
    if (MAREY_UNLIKELY(c->n == c->cap) && !marey__grow(&c->slots, &c->cap, c->n + 1, sizeof slot)) {
        c->no_memory = true;
        return false;
    }
    c->slots[c->n++] = slot;
    return true;
}

/* Converts integers to doubles. */
static void widen(struct collector *c)
{
    for (size_t i = 0; i < c->n; i++)
        c->slots[i].number =
            c->what == NATURALS ? (double)c->slots[i].natural : (double)c->slots[i].integer;
    c->what = NUMBERS;
}

static inline bool push_double(struct collector *c, double value)
{
    if (MAREY_UNLIKELY(c->what != NUMBERS)) {
        if (c->what == BOOLEANS)
            return false;
        widen(c);
    }
    return push(c, (union slot){.number = value});
}

static bool push_integer(struct collector *c, const struct marey__number *number)
{
    const bool is_minus_zero = number->is_negative && number->digits == 0;
    if (c->what == BOOLEANS)
        return false;
    if (c->what == NUMBERS || is_minus_zero)
        return push_double(c, number->value);
    if (c->what == NOTHING)
        c->what = INTEGERS;
    if (number->digits <= INT64_MAX && !(number->is_negative && c->what == NATURALS))
        return push(c, (union slot){.integer = number->is_negative ? -(int64_t)number->digits
                                                                   : (int64_t)number->digits});
    if (number->is_negative && number->digits == (uint64_t)INT64_MAX + 1 && c->what == INTEGERS)
        return push(c, (union slot){.integer = INT64_MIN});
    /* Beyond int64: use uint64, unless there was a negative number. */
    for (size_t i = 0; i < c->n && c->what == INTEGERS; i++)
        if (c->slots[i].integer < 0)
            return push_double(c, number->value);
    if (number->is_negative)
        return push_double(c, number->value);
    c->what = NATURALS;
    return push(c, (union slot){.natural = number->digits});
}

static bool push_boolean(struct collector *c, bool value)
{
    if (c->what != NOTHING && c->what != BOOLEANS)
        return false;
    c->what = BOOLEANS;
    c->has_number = true;
    return push(c, (union slot){.integer = value});
}

/* A word instead of a number. */
static bool take_word(struct collector *c)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"NaN", NAN},     {"Infinity", INFINITY},     {"-Infinity", -INFINITY},
                 {"\"NaN\"", NAN}, {"\"Infinity\"", INFINITY}, {"\"-Infinity\"", -INFINITY},
                 {"null", NAN}};
    for (size_t i = 0; i < MAREY__COUNT_OF(words); i++) {
        const size_t len = strlen(words[i].word);
        if (strncmp(c->at, words[i].word, len) != 0)
            continue;
        c->at += len;
        c->has_number |= words[i].word[0] != 'n';
        return push_double(c, words[i].value);
    }
    const bool is_true = strncmp(c->at, "true", 4) == 0;
    if (!is_true && strncmp(c->at, "false", 5) != 0)
        return false;
    c->at += is_true ? 4 : 5;
    return push_boolean(c, is_true);
}

/* Whether it is halfway between two float32 numbers. */
static inline bool is_f32_half(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits & 0x1fffffff) == 0x10000000;
}

static inline bool take_number(struct collector *c)
{
    struct marey__number number;
    const char *const end = marey__number_read(c->at, &number);
    if (MAREY_UNLIKELY(end == NULL))
        return take_word(c);
    if (c->is_f32 && MAREY_UNLIKELY(is_f32_half(number.value)))
        number.value = marey__number_read_f32(c->at);
    c->at = end;
    c->has_number = true;
    return MAREY_UNLIKELY(number.is_integer) ? push_integer(c, &number)
                                             : push_double(c, number.value);
}

static bool take_list(struct collector *c, uint32_t axis);

static bool take_item(struct collector *c, uint32_t axis)
{
    if (*c->at == '[')
        return axis < MAREY_MAX_RANK && (c->rank == 0 || axis < c->rank) && take_list(c, axis);
    if (c->rank == 0)
        c->rank = axis;
    return axis == c->rank && take_number(c);
}

/* At '[': reads the list on this axis; all lists of an axis have the same length. */
static bool take_list(struct collector *c, uint32_t axis)
{
    int64_t n = 0;
    c->at++;
    skip_blanks(c);
    if (*c->at != ']') {
        for (;;) {
            if (!take_item(c, axis + 1))
                return false;
            n++;
            skip_blanks(c);
            if (*c->at != ',')
                break;
            c->at++;
            skip_blanks(c);
        }
    } else if (c->rank == 0) {
        c->rank = axis + 1; /* an empty list is the innermost */
    }
    if (*c->at != ']' || c->at >= c->end)
        return false;
    c->at++;
    /* An empty list beside nested lists is not a tensor. */
    if (n == 0 && axis + 1 != c->rank)
        return false;
    if (c->sizes[axis] < 0)
        c->sizes[axis] = n;
    return c->sizes[axis] == n;
}

static struct marey__shape shape_of(const struct collector *c)
{
    static const enum marey_dtype types[] = {
        [NOTHING] = MAREY_F64, [BOOLEANS] = MAREY_BOOL, [INTEGERS] = MAREY_I64, [NATURALS] = MAREY_U64, [NUMBERS] = MAREY_F64};
    struct marey__shape shape = {.dtype = types[c->what], .rank = c->rank};
    memcpy(shape.sizes, c->sizes, sizeof shape.sizes);
    return shape;
}

enum marey__numbers_result marey__numbers_read(struct marey__json *json, bool is_f32,
                                               struct marey__numbers *out)
{
    const char first = marey__json_peek(json);
    struct collector c = {.at = json->at, .end = json->end, .is_f32 = is_f32};
    for (size_t i = 0; i < MAREY_MAX_RANK; i++)
        c.sizes[i] = -1;
    const bool is_tensor = first == '[' ? take_list(&c, 0) : take_number(&c);
    if (!is_tensor || c.at > json->end || (c.n > 0 && !c.has_number)) {
        marey__free(c.slots);
        return c.no_memory ? MAREY__NUMBERS_NO_MEMORY : MAREY__NUMBERS_NONE;
    }
    if (c.what == BOOLEANS)
        for (size_t i = 0; i < c.n; i++)
            ((char *)c.slots)[i] = (char)c.slots[i].integer;
    marey__json_taken(json, c.at);
    *out = (struct marey__numbers){.shape = shape_of(&c), .data = c.slots};
    return MAREY__NUMBERS_TENSOR;
}

/* ---- into the type of the manifest ---- */

/* Writes one number as part of an element; false if it does not fit an integer type. */
static bool put_number(const struct marey__dtype *type, enum marey_dtype from, union slot slot,
                       char *out)
{
    const enum marey_dtype part = (enum marey_dtype)type->part;
    if (type->kind == MAREY__IS_FLOAT) {
        const double value = from == MAREY_F64   ? slot.number
                             : from == MAREY_U64 ? (double)slot.natural
                                                 : (double)slot.integer;
        const float narrow = (float)value;
        const uint32_t bits = type->part_bits < 32 ? marey__narrow(part, value) : 0;
        const void *const bytes = part == MAREY_F64   ? (const void *)&value
                                  : part == MAREY_F32 ? (const void *)&narrow
                                                      : &bits;
        memcpy(out, bytes, (type->part_bits + 7u) / 8);
        return true;
    }
    if (from == MAREY_F64 || from == MAREY_BOOL || type->kind == MAREY__IS_BOOL)
        return false;
    const bool has_sign = type->kind == MAREY__IS_SIGNED;
    const uint64_t highest = UINT64_MAX >> (64 - type->part_bits + has_sign);
    const bool is_negative = from == MAREY_I64 && slot.integer < 0;
    if (is_negative ? !has_sign || slot.integer < -(int64_t)highest - 1 : slot.natural > highest)
        return false;
    memcpy(out, &slot, (type->part_bits + 7u) / 8);
    return true;
}

static bool put_all(const struct marey__numbers *numbers, const struct marey__dtype *type,
                    uint64_t n_elements, char *out)
{
    const union slot *slot = numbers->data;
    for (uint64_t i = 0; i < n_elements; i++, out += type->size) {
        char parts[2][8] = {{0}};
        for (unsigned k = 0; k < type->n_parts; k++)
            if (!put_number(type, numbers->shape.dtype, *slot++, parts[k]))
                return false;
        if (type->part_bits == 4) {
            *out = (char)((parts[0][0] & 15) | (parts[1][0] & 15) << 4);
        } else {
            const size_t size = type->part_bits / 8u;
            memcpy(out, parts[0], size);
            memcpy(out + type->size - size, parts[type->n_parts - 1], size);
        }
    }
    return true;
}

/* Whether the lists have the given sizes, plus pairs for elements of two parts. An empty list may have fewer axes. */
static bool is_same_shape(const struct marey__shape *have, const struct marey__shape *wanted)
{
    for (uint32_t i = 0; i < wanted->rank; i++) {
        if (i >= have->rank || have->sizes[i] != wanted->sizes[i])
            return false;
        if (wanted->sizes[i] == 0)
            return true;
    }
    const uint32_t rank = wanted->rank + (marey__dtype_get(wanted->dtype)->n_parts == 2);
    return have->rank == rank && (rank == wanted->rank || have->sizes[wanted->rank] == 2);
}

marey_status marey__numbers_convert(struct marey__numbers *numbers, const struct marey__shape *wanted)
{
    uint64_t n_bytes;
    const enum marey_dtype from = numbers->shape.dtype;
    if (!is_same_shape(&numbers->shape, wanted) || !marey__shape_bytes(wanted, &n_bytes))
        return marey__fail(MAREY_EFORMAT, "list lengths differ from the shape in the manifest");
    if (from == wanted->dtype || n_bytes == 0) {
        numbers->shape = *wanted;
        return MAREY_OK;
    }
    char *const data = marey__calloc(1, n_bytes);
    MAREY__TRY_MEMORY(data != NULL);
    const struct marey__dtype *const type = marey__dtype_get(wanted->dtype);
    if (from == MAREY_BOOL || !put_all(numbers, type, n_bytes / type->size, data)) {
        marey__free(data);
        return marey__fail(MAREY_EFORMAT, "a number in it is not a valid %s",
                           marey_dtype_name(wanted->dtype));
    }
    marey__free(numbers->data);
    *numbers = (struct marey__numbers){.shape = *wanted, .data = data};
    return MAREY_OK;
}
