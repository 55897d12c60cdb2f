/* The header of numpy's .npy: a Python dictionary with three keys, parsed by hand. */
#include <string.h>

#include "tensor/dumpfile/internal.h"

enum { MAX_HEADER = MAREY__NPY_HEAD - 12 };

struct header {
    const char *at, *end;
    char descr[32];
    const char *mistake;
};

static bool fail(struct header *h, const char *mistake)
{
    if (h->mistake == NULL)
        h->mistake = mistake;
    return false;
}

static char peek(struct header *h)
{
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\n' || *h->at == '\t'))
        h->at++;
    return h->at < h->end ? *h->at : '\0';
}

static bool take(struct header *h, char c)
{
    if (peek(h) != c)
        return false;
    h->at++;
    return true;
}

/* A string in either kind of quotes, without escapes. */
static bool take_string(struct header *h, char *out, size_t size)
{
    const char quote = peek(h);
    if (quote != '\'' && quote != '"')
        return false;
    const char *const first = ++h->at;
    while (h->at < h->end && *h->at != quote)
        h->at++;
    const size_t len = (size_t)(h->at - first);
    if (h->at == h->end || len >= size)
        return false;
    memcpy(out, first, len);
    out[len] = '\0';
    h->at++;
    return true;
}

static bool take_word(struct header *h, const char *word)
{
    const size_t len = strlen(word);
    peek(h);
    if ((size_t)(h->end - h->at) < len || memcmp(h->at, word, len) != 0)
        return false;
    h->at += len;
    return true;
}

static bool take_size(struct header *h, int64_t *out)
{
    uint64_t size;
    if (!marey__parse_number(h->at, (size_t)(h->end - h->at), &size) || size > INT64_MAX)
        return fail(h, "a size that is not a number");
    while (h->at < h->end && *h->at >= '0' && *h->at <= '9')
        h->at++;
    *out = (int64_t)size;
    return true;
}

static bool take_shape(struct header *h, struct marey__shape *shape)
{
    if (!take(h, '('))
        return fail(h, "a shape that is not a tuple");
    for (shape->rank = 0; !take(h, ')'); shape->rank++) {
        if (shape->rank == MAREY_MAX_RANK)
            return fail(h, "more than 64 axes");
        peek(h);
        if (!take_size(h, &shape->sizes[shape->rank]))
            return false;
        if (!take(h, ',') && peek(h) != ')')
            return fail(h, "a shape that is not a tuple");
    }
    return true;
}

static bool take_descr(struct header *h)
{
    if (peek(h) == '[')
        return fail(h, "records of several types are in it");
    return take_string(h, h->descr, sizeof h->descr) || fail(h, "a type that is not a string");
}

static bool take_order(struct header *h, bool *is_fortran)
{
    *is_fortran = take_word(h, "True");
    return *is_fortran || take_word(h, "False") || fail(h, "an order that is not True or False");
}

static bool take_all(struct header *h, struct marey__npy *out)
{
    unsigned seen = 0;
    if (!take(h, '{'))
        return fail(h, "no dictionary");
    while (!take(h, '}')) {
        char key[16];
        if (!take_string(h, key, sizeof key) || !take(h, ':'))
            return fail(h, "a key without a value");
        const unsigned which = strcmp(key, "descr") == 0           ? 1
                               : strcmp(key, "fortran_order") == 0 ? 2
                               : strcmp(key, "shape") == 0         ? 4
                                                                   : 0;
        if (which == 0 || (seen & which) != 0)
            return fail(h, "an unknown key, or one twice");
        seen |= which;
        if (!(which == 1   ? take_descr(h)
              : which == 2 ? take_order(h, &out->is_fortran)
                           : take_shape(h, &out->shape)))
            return false;
        if (!take(h, ',') && peek(h) != '}')
            return fail(h, "a comma is missing");
    }
    return (seen == 7 && peek(h) == '\0') || fail(h, "a missing key, or text after the dictionary");
}

/* "x.bf16.npy" has a type that numpy lacks. */
static enum marey_dtype type_by_name(const char *path)
{
    const char *const name = marey__base_name(path);
    for (int i = 1; name[0] != '\0' && i < MAREY_N_DTYPES; i++) {
        const char *const suffix = marey__npy_suffix((enum marey_dtype)i);
        if (strcmp(suffix, ".npy") != 0 && marey__ends_with(name + 1, strlen(name + 1), suffix))
            return (enum marey_dtype)i;
    }
    return MAREY_DTYPE_NONE;
}

/* The type for numpy's code, including those of ml_dtypes. */
static enum marey_dtype type_of(const char *path, const struct header *h, bool *is_swapped)
{
    char code[sizeof h->descr];
    memcpy(code, h->descr, sizeof code);
    *is_swapped = code[0] == '>';
    if (*is_swapped)
        code[0] = '<';
    const enum marey_dtype named = type_by_name(path);
    enum marey_dtype type = strcmp(code, "<f1") == 0 ? MAREY_F8_E5M2 : marey_dtype_find(code);
    const bool is_raw = (code[0] == '|' || code[0] == '<') && code[1] == 'V';
    uint64_t raw_size = 0;
    if (is_raw && !marey__parse_number(code + 2, strlen(code + 2), &raw_size))
        return MAREY_DTYPE_NONE;
    const bool is_natural = type == MAREY_U8 || type == MAREY_U16 || type == MAREY_U32;
    const size_t size = is_raw ? (size_t)raw_size : marey_dtype_size(type);
    if (named != MAREY_DTYPE_NONE && (is_raw || is_natural) && marey_dtype_size(named) == size)
        type = named;
    *is_swapped &= marey_dtype_size(type) > 1;
    return type;
}

static marey_status parse(struct header *h, const char *path, struct marey__npy *out)
{
    if (!take_all(h, out))
        return marey__fail(MAREY_EFORMAT, "%s is not a valid .npy file: its header has %s", path,
                           h->mistake);
    if (strchr(h->descr, 'O') != NULL)
        return marey__fail(MAREY_EFORMAT,
                           "%s holds Python objects as a pickle, which is never loaded", path);
    out->shape.dtype = type_of(path, h, &out->is_swapped);
    if (out->shape.dtype == MAREY_DTYPE_NONE)
        return marey__fail(MAREY_EFORMAT,
                           "%s: dtype '%s' is ambiguous; name the file NAME.bf16.npy if it is "
                           "bfloat16, or save it "
                           "as safetensors",
                           path, h->descr);
    return MAREY_OK;
}

marey_status marey__npy_parse(const char *path, const char *text, size_t len, struct marey__npy *out)
{
    static const char magic[] = "\x93NUMPY";
    *out = (struct marey__npy){0};
    if (len < 12 || memcmp(text, magic, 6) != 0)
        return marey__fail(MAREY_EFORMAT, "%s is not a .npy file: it does not begin like one", path);
    const unsigned char *const bytes = (const unsigned char *)text;
    const unsigned major = bytes[6];
    if (major < 1 || major > 3)
        return marey__fail(MAREY_EFORMAT, "%s is a .npy of version %u, which is not known", path,
                           major);
    size_t n = bytes[8] + ((size_t)bytes[9] << 8);
    if (major > 1)
        n += ((size_t)bytes[10] << 16) + ((size_t)bytes[11] << 24);
    const size_t start = major > 1 ? 12 : 10;
    if (n > MAX_HEADER || n > len - start)
        return marey__fail(MAREY_EFORMAT,
                           "%s is not a complete .npy file: its header has %zu bytes, the file %zu",
                           path, n, len);
    struct header h = {.at = text + start, .end = text + start + n};
    MAREY_TRY(parse(&h, path, out));
    out->data_at = start + n;
    uint64_t n_bytes;
    if (!marey__shape_bytes(&out->shape, &n_bytes) || n_bytes > len - out->data_at)
        return marey__fail(
            MAREY_EFORMAT,
            "%s is not a complete .npy file: its shape needs more bytes than the %zu that follow",
            path, len - out->data_at);
    return MAREY_OK;
}
