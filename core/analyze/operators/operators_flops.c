/*
 * FLOPs of a call from the shapes of its inputs, by the formulas of torch's profiler: matrix products, 2D convolutions,
 * elementwise additions and multiplications. Other operators count none.
 */
#include "analyze/operators/internal.h"

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

/* ---- lists as JSON ---- */

/* Position `json`, which the caller finalizes, at entry `number`. MAREY__JSON_END if there are fewer. */
static enum marey__json_token open_entry(const struct marey__torch_trace *trace, marey__torch_id list,
                                         size_t number, struct marey__json *json)
{
    size_t len;
    const char *text = marey__torch_text(trace, list, &len);
    enum marey__json_token token = MAREY__JSON_END;
    marey__json_init_text(json, text, len, 0);
    bool is_there = marey__json_next(json) == MAREY__JSON_ARRAY;
    for (size_t i = 0; is_there && i <= number; i++) {
        if (i > 0)
            marey__json_skip_from(json, token);
        is_there = marey__json_next_item(json, &token);
    }
    return is_there ? token : MAREY__JSON_END;
}

/* Integers of 0 or more, after the bracket of their array; false for anything else. */
static bool read_sizes(struct marey__json *json, struct dimensions *out)
{
    for (out->n = 0; marey__json_peek(json) != ']'; out->n++) {
        uint64_t size;
        if (out->n == MAX_DIMENSIONS || !marey__json_count(json, &size))
            return false;
        out->size[out->n] = (int64_t)size;
    }
    return true;
}

/* The shape of an input. Returns false if it has none, or is a list of tensors. */
static bool shape_of(const struct marey__torch_trace *trace, const struct marey__torch_event *event,
                     size_t number, struct dimensions *out)
{
    struct marey__json json MAREY__FINALLY(marey__json_fini);
    return open_entry(trace, event->shapes, number, &json) == MAREY__JSON_ARRAY &&
           read_sizes(&json, out);
}

/* ---- formulas ---- */

/* 0 on overflow. */
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

/* [..., m, k] by [..., k, n]; `first` is the index of the left input. */
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

/* A concrete input, which is a string: "[1, 1]" as two numbers, or "1" as one. */
static bool read_concrete(const struct marey__torch_trace *trace,
                          const struct marey__torch_event *event, size_t number,
                          struct dimensions *out)
{
    struct marey__json json MAREY__FINALLY(marey__json_fini);
    uint64_t count = 0;
    if (open_entry(trace, event->concrete, number, &json) != MAREY__JSON_STRING)
        return false;
    struct marey__json inner MAREY__FINALLY(marey__json_fini);
    marey__json_init_text(&inner, json.text, json.text_len, MAREY__JSON_STRICT);
    if (marey__json_peek(&inner) == '[')
        return marey__json_next(&inner) == MAREY__JSON_ARRAY && read_sizes(&inner, out);
    const bool is_read = marey__json_count(&inner, &count);
    out->size[0] = (int64_t)count;
    out->n = 1;
    return is_read;
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
    struct dimensions input, kernel, groups, pairs[3];
    if (!shape_of(trace, event, 0, &input) || !shape_of(trace, event, 1, &kernel) || input.n != 4 ||
        kernel.n != 4 || !read_concrete(trace, event, 6, &groups) || groups.n != 1 ||
        groups.size[0] == 0)
        return 0;
    for (size_t i = 0; i < 3; i++)
        if (!read_concrete(trace, event, 3 + i, &pairs[i]) || pairs[i].n != 2)
            return 0;
    uint64_t product = times(2, (uint64_t)input.size[0]);
    product = times(product, outputs(&input, &kernel, pairs, 0));
    product = times(product, outputs(&input, &kernel, pairs, 1));
    product = times(product, times((uint64_t)kernel.size[2], (uint64_t)kernel.size[3]));
    product = times(product, times((uint64_t)input.size[1], (uint64_t)kernel.size[0]));
    return product / (uint64_t)groups.size[0];
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
    struct marey__json json MAREY__FINALLY(marey__json_fini);
    enum marey__json_token token;
    char first;
    marey__json_init_text(&json, text, len, 0);
    marey__buf_puts(out, "[");
    bool goes_on = marey__json_next(&json) == MAREY__JSON_ARRAY;
    for (size_t i = 0; goes_on && (first = marey__json_peek(&json)) != ']' && first != '\0'; i++) {
        const char *const begin = text + marey__json_offset(&json);
        const bool is_list_of_tensors = first == '[' && json.at[1] == '[';
        token = marey__json_next(&json);
        goes_on = marey__json_skip_from(&json, token);
        const char *const end = text + marey__json_offset(&json);
        marey__buf_put(out, ", ", i > 0 ? 2 : 0);
        marey__buf_put(out, is_list_of_tensors ? "[]" : begin,
                       is_list_of_tensors ? 2 : (size_t)(end - begin));
    }
    marey__buf_puts(out, "]");
}
