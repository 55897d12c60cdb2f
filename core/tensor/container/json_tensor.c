/* Tensors as nested JSON lists, about 20 ns per number; text is passed on in pieces of a few KiB. */
#include <math.h>
#include <string.h>

#include "base/internal.h"
#include "tensor/container/internal.h"
#include "tensor/kernels/internal.h"

enum {
    PIECE = 16 << 10,
    ELEMENT_ROOM = 2 * (MAREY__NUMBER_ROOM + 16), /* a complex number with brackets and commas */
};

struct json_writer {
    char *at; /* in `piece` */
    const struct marey_tensor *tensor;
    const struct marey__json_style *style;
    const char *data; /* the next element */
    size_t element;   /* its size */
    const struct marey__dtype *type;
    const struct marey__small_text *texts; /* for types that have them */
    marey__text_sink *sink;
    void *ctx;
    char piece[PIECE];
};

static bool flush(struct json_writer *w)
{
    const size_t n = (size_t)(w->at - w->piece);
    w->at = w->piece;
    return n == 0 || w->sink(w->ctx, w->piece, n);
}

static inline bool has_room(struct json_writer *w, size_t n)
{
    return MAREY_LIKELY((size_t)(w->piece + PIECE - w->at) >= n) || flush(w);
}

static char *put_words(char *out, const char *words)
{
    const size_t n = strlen(words);
    memcpy(out, words, n);
    return out + n;
}

static char *put_not_finite(const struct json_writer *w, char *out, double value)
{
    const char *const word = isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity";
    if (w->style->is_python)
        return put_words(out, word);
    out = put_words(put_words(out, "\""), word);
    return put_words(out, "\"");
}

static inline char *put_f32(const struct json_writer *w, char *out, const char *data)
{
    float value;
    memcpy(&value, data, sizeof value);
    if (MAREY_UNLIKELY(!isfinite(value)))
        return put_not_finite(w, out, value);
    return w->style->is_python ? marey__f64_text(out, (double)value) : marey__f32_text(out, value);
}

static char *put_part(const struct json_writer *w, char *out, size_t k)
{
    double value;
    char *const end =
        marey__part_text(w->type, w->texts, w->data, k, w->style->is_python, out, &value);
    return MAREY_LIKELY(end != NULL) ? end : put_not_finite(w, out, value);
}

/* An element of two numbers is a list. */
static char *put_element(const struct json_writer *w, char *out)
{
    if (w->type->n_parts == 1)
        return put_part(w, out, 0);
    out = put_words(put_part(w, put_words(out, "["), 0), ", ");
    return put_words(put_part(w, out, 1), "]");
}

static bool put_line(struct json_writer *w, const char *words, uint32_t level)
{
    if (!has_room(w, 8))
        return false;
    w->at = put_words(w->at, words);
    for (; level > 0; level--) {
        if (!has_room(w, 2))
            return false;
        w->at = put_words(w->at, "  ");
    }
    return true;
}

static bool put_column(struct json_writer *w, int64_t n, uint32_t level)
{
    for (int64_t i = 0; i < n; i++, w->data += w->element) {
        if (!put_line(w, i > 0 ? ",\n" : "[\n", level + 1) || !has_room(w, ELEMENT_ROOM))
            return false;
        w->at = put_element(w, w->at);
    }
    return put_line(w, n > 0 ? "\n" : "[", n > 0 ? level : 0) && put_line(w, "]", 0);
}

static bool put_row(struct json_writer *w, int64_t n)
{
    if (!has_room(w, ELEMENT_ROOM))
        return false;
    *w->at++ = '[';
    for (int64_t i = 0; i < n; i++, w->data += w->element) {
        if (!has_room(w, ELEMENT_ROOM))
            return false;
        char *out = w->at;
        if (i > 0) {
            *out++ = ',';
            *out++ = ' ';
        }
        w->at = w->tensor->dtype == MAREY_F32 ? put_f32(w, out, w->data) : put_element(w, out);
    }
    *w->at++ = ']'; /* an element's room includes one byte for it */
    return true;
}

static bool put_lists(struct json_writer *w, uint32_t axis)
{
    const int64_t n = w->tensor->sizes[axis];
    const uint32_t level = w->style->level + axis;
    if (axis + 1 == w->tensor->rank || n == 0)
        return w->style->is_python ? put_column(w, n, level) : put_row(w, n);
    bool is_fine = put_line(w, "[\n", level + 1);
    for (int64_t i = 0; i < n && is_fine; i++)
        is_fine = (i == 0 || put_line(w, ",\n", level + 1)) && put_lists(w, axis + 1);
    return is_fine && put_line(w, "\n", level) && put_line(w, "]", 0);
}

marey_status marey__json_tensor_write(const struct marey_tensor *tensor,
                                      const struct marey__json_style *style, marey__text_sink *sink,
                                      void *ctx)
{
    MAREY_TRY(marey_tensor_check(tensor));
    if (!marey_tensor_is_row_major(tensor))
        return marey__fail(MAREY_EINVAL,
                           "a tensor that is not row-major cannot be written as JSON");
    struct json_writer w;
    w.at = w.piece;
    w.tensor = tensor;
    w.style = style;
    w.data = tensor->data;
    w.type = marey__dtype_get(tensor->dtype);
    w.element = w.type->size;
    w.sink = sink;
    w.ctx = ctx;
    const enum marey_dtype part = (enum marey_dtype)w.type->part;
    w.texts = marey__small_texts(part);
    MAREY__TRY_MEMORY(w.texts != NULL || !marey__is_small(part));
    if (tensor->rank == 0)
        w.at = put_element(&w, w.at);
    return (tensor->rank == 0 || put_lists(&w, 0)) && flush(&w) ? MAREY_OK : MAREY_EIO;
}

static bool put_into_buf(void *ctx, const char *text, size_t len)
{
    struct marey__buf *const buf = ctx;
    marey__buf_put(buf, text, len);
    return !buf->failed;
}

marey_status marey__json_tensor_put(struct marey__buf *out, const struct marey_tensor *tensor,
                                    const struct marey__json_style *style)
{
    const marey_status status = marey__json_tensor_write(tensor, style, put_into_buf, out);
    return status == MAREY_EIO ? marey__no_memory() : status;
}

void marey__json_double_put(struct marey__buf *out, double value)
{
    char text[MAREY__NUMBER_ROOM];
    if (isfinite(value))
        marey__buf_put(out, text, (size_t)(marey__f64_text(text, value) - text));
    else
        marey__buf_puts(out, isnan(value) ? "\"NaN\""
                             : value < 0  ? "\"-Infinity\""
                                          : "\"Infinity\"");
}

/* ---- strings as Python writes them ---- */

/* Decodes the character at the start of a text, of `*n` bytes, including lone surrogates as encoded by Python. */
static uint32_t take_character(const char *text, size_t len, size_t *n)
{
    const unsigned char *const s = (const unsigned char *)text;
    const bool is_surrogate =
        len >= 3 && s[0] == 0xed && s[1] >= 0xa0 && s[1] <= 0xbf && s[2] >= 0x80 && s[2] <= 0xbf;
    *n = is_surrogate ? 3 : marey__utf8_length(text, len);
    switch (*n) {
    case 0:
        *n = 1;
        return 0xfffd;
    case 1:
        return s[0];
    case 2:
        return (uint32_t)(s[0] & 0x1f) << 6 | (s[1] & 0x3f);
    case 3:
        return (uint32_t)(s[0] & 0xf) << 12 | (uint32_t)(s[1] & 0x3f) << 6 | (s[2] & 0x3f);
    default:
        return (uint32_t)(s[0] & 7) << 18 | (uint32_t)(s[1] & 0x3f) << 12 |
               (uint32_t)(s[2] & 0x3f) << 6 | (s[3] & 0x3f);
    }
}

void marey__json_python_string_put(struct marey__buf *out, const char *text, size_t len)
{
    static const char special[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    marey__buf_put(out, "\"", 1);
    for (size_t n; len > 0; text += n, len -= n) {
        const uint32_t c = take_character(text, len, &n);
        const char *const at = c > 0 && c < 0x80 ? strchr(special, (int)c) : NULL;
        if (at != NULL)
            marey__buf_printf(out, "\\%c", letters[at - special]);
        else if (c >= ' ' && c <= '~')
            marey__buf_put(out, text, 1);
        else if (c <= 0xffff)
            marey__buf_printf(out, "\\u%04x", c);
        else
            marey__buf_printf(out, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
    }
    marey__buf_put(out, "\"", 1);
}
