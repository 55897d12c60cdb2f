/*
 * Numbers of a JSON without types. Its writer may have shortened a float32 to the digits that read back to it: 0.1 for
 * 0.100000001490116. Such a text is the float32, though its nearest float64 is another number. Any other number stays as
 * it is, so that nothing is rounded before it is compared.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/diff/internal.h"

/* Whether `raw`, a number of the type, is written as `number` when it is shortened; its value. */
static bool is_shortened(enum marey_dtype type, const void *raw, double number, double *value)
{
    const struct marey_tensor one = {.data = raw, .dtype = type};
    char text[64];
    marey__widen_to_double(type, raw, 1, value);
    return marey_tensor_element(&one, 0, text, sizeof text) == MAREY_OK &&
           strtod(text, NULL) == number;
}

static double restored(enum marey_dtype type, double number)
{
    double value;
    if (type != MAREY_F32) {
        const uint32_t raw = marey__narrow(type, number);
        return is_shortened(type, &raw, number, &value) ? value : number;
    }
    /* The float64 may have been rounded to the middle of two float32, so that its nearest one is the neighbour. */
    const float nearest = (float)number;
    const float near[] = {nearest, nextafterf(nearest, -INFINITY), nextafterf(nearest, INFINITY)};
    for (size_t i = 0; i < MAREY__COUNT_OF(near); i++)
        if (is_shortened(type, &near[i], number, &value))
            return value;
    return number;
}

marey_status marey__diff_restore(const struct marey_dumped_value *value,
                                 const struct marey_dumped_value *other,
                                 struct marey_tensor *tensor, double **made)
{
    const struct marey__dtype *type = marey__dtype_get(other->dtype);
    const uint64_t n = marey_tensor_count(tensor);
    if (!value->is_untyped || tensor->dtype != MAREY_F64 || type->kind != MAREY__IS_FLOAT ||
        type->n_parts != 1 || type->part == MAREY_F64)
        return MAREY_OK;
    *made = marey__alloc((size_t)n * sizeof **made + 1);
    MAREY__TRY_MEMORY(*made != NULL);
    const double *given = tensor->data;
    for (uint64_t i = 0; i < n; i++)
        (*made)[i] = isfinite(given[i]) ? restored(other->dtype, given[i]) : given[i];
    tensor->data = *made;
    return MAREY_OK;
}
