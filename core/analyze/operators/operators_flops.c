/*
 * Floating point operations of a call, from the shapes of its inputs, by the formulas that torch has for its profiler:
 * products of matrices, convolutions in two dimensions, sums and products by element. Others count none.
 */
#include <string.h>

#include "analyze/operators/operators_internal.h"

enum { MM, ADDMM, BMM, BADDBMM, CONV2D, ADD, MUL };
enum { MAX_DIMENSIONS = 64 };

struct dimensions {
    int64_t size[MAX_DIMENSIONS];
    size_t n;
};

void marey__flops_init(struct marey__flops_names *names, const struct marey__torch_trace *trace)
{
    static const char *const texts[MAREY__N_FLOPS_NAMES] = {
        [MM] = "aten::mm",           [ADDMM] = "aten::addmm",   [BMM] = "aten::bmm",
        [BADDBMM] = "aten::baddbmm", [CONV2D] = "aten::conv2d", [ADD] = "aten::add",
        [MUL] = "aten::mul",
    };
    for (size_t i = 0; i < MAREY__N_FLOPS_NAMES; i++)
        names->ids[i] = marey__torch_find(trace, texts[i], strlen(texts[i]));
}

/* ---- lists as text ---- */

/* Behind the string that begins at text[at]. */
static size_t skip_string(const char *text, size_t len, size_t at)
{
    for (at++; at < len && text[at] != '"'; at++)
        at += text[at] == '\\';
    return MAREY__MIN(at + 1, len);
}

/* Behind the entry of a list that begins at text[at]: at a comma or the bracket that ends the list. */
static size_t skip_entry(const char *text, size_t len, size_t at)
{
    for (size_t depth = 0; at < len;) {
        const char c = text[at];
        if (depth == 0 && (c == ',' || c == ']'))
            break;
        depth += c == '[' || c == '{';
        depth -= (c == ']' || c == '}') && depth > 0;
        at = c == '"' ? skip_string(text, len, at) : at + 1;
    }
    return at;
}

static size_t skip_blanks(const char *text, size_t len, size_t at)
{
    while (at < len && (text[at] == ' ' || text[at] == ',' || text[at] == '\n'))
        at++;
    return at;
}

/* The entry of that number of a list. False when there are fewer. */
static bool find_entry(const char **text, size_t *len, size_t number)
{
    size_t at = *len > 0 && (*text)[0] == '[' ? 1 : *len;
    for (size_t i = 0;; i++) {
        at = skip_blanks(*text, *len, at);
        if (at >= *len || (*text)[at] == ']')
            return false;
        const size_t end = skip_entry(*text, *len, at);
        if (i == number) {
            *text += at;
            *len = end - at;
            return true;
        }
        at = end;
    }
}

/* Whole numbers from 0 on in brackets; false for anything else. Quotes around it do not matter. */
static bool read_list(const char *text, size_t len, struct dimensions *out)
{
    if (len >= 2 && text[0] == '"') {
        text++;
        len -= 2;
    }
    out->n = 0;
    if (len < 2 || text[0] != '[' || text[len - 1] != ']')
        return false;
    for (size_t at = 1; (at = skip_blanks(text, len - 1, at)) < len - 1;) {
        uint64_t number;
        if (out->n == MAX_DIMENSIONS || !marey__parse_number(text + at, len - 1 - at, &number) ||
            number > INT64_MAX)
            return false;
        out->size[out->n++] = (int64_t)number;
        while (at < len - 1 && text[at] >= '0' && text[at] <= '9')
            at++;
    }
    return true;
}

/* The shape of an input. False when it is none, or a list of tensors. */
static bool shape_of(const struct marey__torch_trace *trace, const struct marey__torch_event *event,
                     size_t number, struct dimensions *out)
{
    size_t len;
    const char *text = marey__torch_text(trace, event->shapes, &len);
    return find_entry(&text, &len, number) && read_list(text, len, out);
}

/* ---- formulas ---- */

/* What is beyond 64 bits is no count. */
static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? 0 : product;
}

static uint64_t product_of(const struct dimensions *shape)
{
    uint64_t product = 1;
    for (size_t i = 0; i < shape->n; i++)
        product = times(product, (uint64_t)shape->size[i]);
    return product;
}

static uint64_t elements_of(const struct marey__torch_trace *trace,
                            const struct marey__torch_event *event)
{
    struct dimensions shape;
    return shape_of(trace, event, 0, &shape) ? product_of(&shape) : 0;
}

/* [..., m, k] by [..., k, n]; `first` is the input that the left one is. */
static uint64_t matrices(const struct marey__torch_trace *trace,
                         const struct marey__torch_event *event, size_t first, bool has_batch)
{
    struct dimensions left, right;
    if (!shape_of(trace, event, first, &left) || !shape_of(trace, event, first + 1, &right) ||
        left.n == 0 || left.size[left.n - 1] == 0 || left.size[0] == 0)
        return 0;
    uint64_t product = product_of(&left) / (uint64_t)left.size[left.n - 1];
    if (has_batch)
        product /= (uint64_t)left.size[0];
    return times(2, times(product, product_of(&right)));
}

/* One of the two numbers of "[1, 1]" among the concrete inputs. */
static bool read_pair(const char *text, size_t len, size_t number, struct dimensions *out)
{
    return find_entry(&text, &len, number) && read_list(text, len, out) && out->n == 2;
}

static bool read_groups(const char *text, size_t len, uint64_t *groups)
{
    return find_entry(&text, &len, 6) && len > 2 && text[0] == '"' &&
           marey__parse_number(text + 1, len - 2, groups) && *groups > 0;
}

static uint64_t outputs(const struct dimensions *input, const struct dimensions *kernel,
                        const struct dimensions pairs[3], size_t axis)
{
    const int64_t stride = pairs[0].size[axis], padding = pairs[1].size[axis],
                  dilation = pairs[2].size[axis], limit = INT64_C(1) << 28;
    const int64_t in = input->size[2 + axis], k = kernel->size[2 + axis];
    if (stride <= 0 || stride > limit || padding > limit || dilation > limit || in > limit ||
        k > limit || k == 0)
        return 0;
    const int64_t span = in + 2 * padding - dilation * (k - 1) - 1;
    return span < 0 ? 0 : (uint64_t)(span / stride + 1);
}

/* conv2d(input, weight, bias, stride, padding, dilation, groups) */
static uint64_t convolution(const struct marey__torch_trace *trace,
                            const struct marey__torch_event *event)
{
    struct dimensions input, kernel, pairs[3];
    uint64_t groups;
    size_t len;
    const char *concrete = marey__torch_text(trace, event->concrete, &len);
    if (!shape_of(trace, event, 0, &input) || !shape_of(trace, event, 1, &kernel) || input.n != 4 ||
        kernel.n != 4 || !read_groups(concrete, len, &groups))
        return 0;
    for (size_t i = 0; i < 3; i++)
        if (!read_pair(concrete, len, 3 + i, &pairs[i]))
            return 0;
    uint64_t product = times(2, (uint64_t)input.size[0]);
    product = times(product, outputs(&input, &kernel, pairs, 0));
    product = times(product, outputs(&input, &kernel, pairs, 1));
    product = times(product, times((uint64_t)kernel.size[2], (uint64_t)kernel.size[3]));
    product = times(product, times((uint64_t)input.size[1], (uint64_t)kernel.size[0]));
    return product / groups;
}

uint64_t marey__flops_of(const struct marey__flops_names *names,
                         const struct marey__torch_trace *trace,
                         const struct marey__torch_event *event)
{
    size_t i = 0;
    if (event->shapes == 0 || event->kind != MAREY__TORCH_OP)
        return 0;
    while (i < MAREY__N_FLOPS_NAMES && (names->ids[i] != event->name || event->name == 0))
        i++;
    switch (i) {
    case MM:
    case ADDMM:
        return matrices(trace, event, i == ADDMM, false);
    case BMM:
    case BADDBMM:
        return matrices(trace, event, i == BADDBMM, true);
    case CONV2D:
        return convolution(trace, event);
    case ADD:
    case MUL:
        return elements_of(trace, event);
    default:
        return 0;
    }
}

/* ---- shapes as torch prints them ---- */

void marey__shapes_put(struct marey__buf *out, const char *text, size_t len)
{
    if (len == 0 || text[0] != '[') {
        marey__buf_puts(out, "[]");
        return;
    }
    marey__buf_puts(out, "[");
    for (size_t at = 1, i = 0;; i++) {
        at = skip_blanks(text, len, at);
        if (at >= len || text[at] == ']')
            break;
        const size_t end = skip_entry(text, len, at);
        const bool is_list_of_tensors = end - at >= 2 && text[at] == '[' && text[at + 1] == '[';
        marey__buf_put(out, ", ", i > 0 ? 2 : 0);
        marey__buf_put(out, is_list_of_tensors ? "[]" : text + at, is_list_of_tensors ? 2 : end - at);
        at = end;
    }
    marey__buf_puts(out, "]");
}
