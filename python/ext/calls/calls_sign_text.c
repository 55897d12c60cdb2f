/*
 * Words to text, once per signature: "a:ndarray(dtype=float32, shape=(16,)), b:int". One pass that also finds which
 * words are sizes, and the number of elements.
 */
#include "calls/calls_signer.h"

#include <stdarg.h>
#include <stdio.h>

struct reader {
    struct calls_signer *signer;
    const uint64_t *words;
    uint32_t n, at;
    uint64_t wide;
    struct calls_text *out;
    double arrays, containers; /* elements */
    bool is_unknown;           /* the number of elements is unknown */
};

/* ---- text ---- */

/* Truncated at a character; calls_text_make() appends "...". */
void calls_append(struct calls_text *out, const char *text)
{
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        if (out->length >= MAX_SIGNATURE) {
            while (out->length > 0 && ((unsigned char)out->text[out->length - 1] & 0xc0) == 0x80)
                out->length--;
            if (out->length > 0 && (unsigned char)out->text[out->length - 1] >= 0xc0)
                out->length--;
            out->length = out->length > MAX_SIGNATURE ? MAX_SIGNATURE : out->length;
            return;
        }
        out->text[out->length++] = c < ' ' || c == 0x7f ? '?' : *text;
    }
}

static void append_within(struct calls_text *out, const char *before, const char *text,
                          const char *after)
{
    calls_append(out, before);
    calls_append(out, text);
    calls_append(out, after);
}

__attribute__((format(printf, 2, 3))) static void append_format(struct calls_text *out,
                                                                const char *format, ...)
{
    char text[64];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    calls_append(out, text);
}

/* ---- words ---- */

static uint64_t next(struct reader *in)
{
    return in->at < in->n ? in->words[in->at++] : WORD_CUT;
}

static const char *name_of(const struct reader *in, uint64_t word)
{
    const struct calls_type *const type = calls_type_of(in->signer, word);
    const bool is_known = type->type != NULL && type->word == (word & ~WORD_PLAIN);
    return is_known ? calls_type_name(type->type) : "...";
}

/* Appends a size, which may stand for a range. */
static uint64_t append_size(struct reader *in, uint32_t at)
{
    const uint64_t size = at < in->n ? in->words[at] : SIZE_UNKNOWN;
    in->out->sizes |= UINT64_C(1) << at;
    if (size == SIZE_UNKNOWN)
        calls_append(in->out, "?");
    else if ((in->wide >> at & 1) && size > 1)
        append_format(in->out, "%llu..%llu", (unsigned long long)size,
                      (unsigned long long)(2 * size - 1));
    else
        append_format(in->out, "%llu", (unsigned long long)size);
    in->is_unknown |= size == SIZE_UNKNOWN || (in->wide >> at & 1);
    return size;
}

/* ---- arrays ---- */

static void append_shape(struct reader *in, uint32_t n_dims, double times)
{
    calls_append(in->out, ", shape=(");
    double elements = times;
    for (uint32_t i = 0; i < n_dims; i++) {
        calls_append(in->out, i > 0 ? ", " : "");
        elements *= (double)append_size(in, in->at++);
    }
    calls_append(in->out, n_dims == 1 ? ",)" : ")");
    in->arrays += elements;
}

static const char *order_of(uint8_t flags)
{
    return flags & ARRAY_C ? "C" : flags & ARRAY_F ? "F" : "strided";
}

static void append_array(struct reader *in, double times)
{
    const struct calls_array_word word = array_of_word(next(in));
    append_within(in->out, "(dtype=", calls_dtype_name(in->signer, word.dtype), "");
    if (word.n_dims != NO_SHAPE)
        append_shape(in, word.n_dims, times);
    if (word.flags & ARRAY_LAYOUT)
        append_format(in->out, ", order=%s%s", order_of(word.flags),
                      word.flags & ARRAY_READONLY ? ", readonly" : "");
    if (word.device != 0)
        append_within(in->out, ", device=", in->signer->texts.texts[word.device], "");
    calls_append(in->out, word.flags & ARRAY_GRAD ? ", requires_grad)" : ")");
}

/* "(dtypes=[int64*2, float64], rows=100)" */
static void append_table(struct reader *in, enum calls_kind kind, double times)
{
    const struct calls_container_word word = container_of_word(next(in));
    const uint32_t rows_at = in->at++; /* shown last */
    double columns = 0;
    calls_append(in->out, kind == KIND_FRAME ? "(dtypes=[" : "(dtype=");
    for (uint32_t i = 0; i < word.n_first; i++) {
        const uint64_t group = next(in);
        append_within(in->out, i > 0 ? ", " : "",
                      calls_dtype_name(in->signer, (uint32_t)(group >> 32)), "");
        if ((uint32_t)group > 1)
            append_format(in->out, "*%u", (unsigned)(uint32_t)group);
        columns += (uint32_t)group;
    }
    calls_append(in->out, word.has_more ? ", ..." : "");
    calls_append(in->out, kind == KIND_FRAME ? "]" : "");
    if (in->words[rows_at] != SIZE_UNKNOWN) {
        calls_append(in->out, ", rows=");
        in->arrays += times * columns * (double)append_size(in, rows_at);
    }
    calls_append(in->out, ")");
}

/* ---- values ---- */

static void append_value(struct reader *in, double times);

static void append_alternatives(struct reader *in, uint32_t n, const char *between, double times)
{
    for (uint32_t i = 0; i < n; i++) {
        calls_append(in->out, i > 0 ? between : "");
        append_value(in, times);
    }
}

/* "list[int](len=3)", "dict[str, int](len=1)", "tuple(int, str)" */
static void append_container(struct reader *in, enum calls_kind kind, double times)
{
    const struct calls_container_word word = container_of_word(next(in));
    const uint32_t length_at = in->at;
    const uint64_t length = next(in);
    const bool is_known = length != SIZE_UNKNOWN && !word.is_each;
    const double each = word.is_each                    ? times
                        : word.n_first == 1 && is_known ? times * (double)length
                                                        : 0;
    const bool is_empty = word.n_first == 0 && !word.is_each;
    calls_append(in->out, word.is_each ? "(" : is_empty ? "" : "[");
    append_alternatives(in, word.n_first, word.is_each ? ", " : " | ", each);
    if (kind == KIND_DICT && !is_empty) {
        calls_append(in->out, ", ");
        append_alternatives(in, word.n_second, " | ", word.n_second == 1 ? each : 0);
    }
    calls_append(in->out, word.has_more ? " | ..." : "");
    calls_append(in->out, word.is_each ? ")" : is_empty ? "" : "]");
    if (!is_known)
        return;
    calls_append(in->out, "(len=");
    in->containers += times * (double)append_size(in, length_at);
    calls_append(in->out, ")");
}

static void append_details(struct reader *in, enum calls_kind kind, double times)
{
    switch (kind) {
    case KIND_ARRAY:
    case KIND_TENSOR:
    case KIND_GETTERS:
    case KIND_JAX:
    case KIND_DEVICE:
        append_array(in, times);
        break;
    case KIND_FRAME:
    case KIND_SERIES:
        append_table(in, kind, times);
        break;
    case KIND_CLASS:
        append_within(in->out, "[", name_of(in, next(in)), "]");
        break;
    case KIND_FUNCTION:
    case KIND_BUILTIN:
    case KIND_METHOD:
        append_within(in->out, "(", in->signer->texts.texts[next(in)], ")");
        break;
    default:
        append_container(in, kind, times);
    }
}

static void append_value(struct reader *in, double times)
{
    const uint64_t word = next(in);
    if (word == WORD_DELETED || word == WORD_CUT) {
        calls_append(in->out, word == WORD_DELETED ? "<deleted>" : "...");
        return;
    }
    const enum calls_kind kind = calls_type_of(in->signer, word)->kind;
    if (kind == KIND_FORMATTED && !(word & WORD_PLAIN)) {
        calls_append(in->out, in->signer->texts.texts[next(in)]);
        return;
    }
    calls_append(in->out, kind == KIND_NONE ? "None" : name_of(in, word));
    if (kind > KIND_NONE && !(word & WORD_PLAIN))
        append_details(in, kind, times);
}

/* ---- parameters ---- */

static void append_name(struct calls_text *out, const struct calls_parameters *parameters, uint32_t i)
{
    PyObject *const name =
        i < PyTuple_GET_SIZE(parameters->names) ? PyTuple_GET_ITEM(parameters->names, i) : NULL;
    const char *const text = name != NULL ? PyUnicode_AsUTF8(name) : NULL;
    append_within(out,
                  i == parameters->args     ? "*"
                  : i == parameters->kwargs ? "**"
                                            : "",
                  text != NULL ? text : "?", ":");
    PyErr_Clear();
}

void calls_text_make(struct calls_signer *signer, PyCodeObject *code, const uint64_t *words,
                     size_t n_words, uint64_t wide, struct calls_text *out)
{
    const struct calls_parameters parameters = calls_parameters(code);
    struct reader in = {
        .signer = signer, .words = words, .n = (uint32_t)n_words, .wide = wide, .out = out};
    *out = (struct calls_text){.length = 0};
    for (uint32_t i = 0; in.at < in.n; i++) {
        calls_append(out, i > 0 ? ", " : "");
        if (words[in.at] == WORD_CUT) {
            calls_append(out, "...");
            break;
        }
        append_name(out, &parameters, i);
        append_value(&in, 1);
    }
    if (out->length >= MAX_SIGNATURE - 4) /* it was truncated, or nearly */
        for (int i = 0; i < 3; i++)
            out->text[out->length++] = '.';
    out->text[out->length] = '\0';
    out->elements = in.is_unknown ? 0 : in.arrays > 0 ? in.arrays : in.containers;
}

/* ---- in a table ---- */

PyObject *calls_sign_display(const char *name, const char *text)
{
    static const char self[] = "self:";
    if (strncmp(text, self, sizeof self - 1) != 0)
        return PyUnicode_FromFormat("%s(%s)", name, text);
    const char *const class = text + sizeof self - 1;
    const size_t length = strcspn(class, ",");
    const char *const rest =
        class[length] != '\0' ? class + length + strspn(class + length, ", ") : "";
    PyObject *shown EXT_OWNED = PyUnicode_DecodeUTF8(class, (Py_ssize_t)length, "replace");
    if (shown == NULL)
        return NULL;
    return strcmp(name, "__init__") == 0 ? PyUnicode_FromFormat("%U(%s)", shown, rest)
                                         : PyUnicode_FromFormat("%U.%s(%s)", shown, name, rest);
}
