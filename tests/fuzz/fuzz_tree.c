/* Any text as the JSON of a dump: its values can be looked at, and numbers written again are read as the same. */
#include <math.h>

#include "dump_values.h"
#include "fuzz.h"

/* The numbers of a tensor as text and back. */
static void check_again(const struct kymo_tensor *tensor)
{
    static const struct kymo__json_style style = {.nan = KYMO__NAN_WORD};
    struct kymo__buf out = {0};
    struct kymo__cursor cursor;
    struct kymo__numbers numbers = {0};
    KYMO_ASSERT(kymo__json_tensor_put(&out, tensor, &style) == KYMO_OK);
    struct kymo__map text = padded_copy((const uint8_t *)out.data, out.len);
    kymo__cursor_init(&cursor, text.data, text.len);
    KYMO_ASSERT(kymo__numbers_read(&cursor, false, &numbers) == KYMO__NUMBERS_TENSOR);
    const bool is_empty = kymo_tensor_count(tensor) == 0;
    KYMO_ASSERT(is_empty || numbers.shape.dtype == tensor->dtype);
    const size_t n_bytes = (size_t)kymo_tensor_bytes(tensor);
    const double *const a = tensor->data, *const b = numbers.data;
    for (size_t i = 0; tensor->dtype == KYMO_F64 && i < n_bytes / sizeof *a; i++)
        KYMO_ASSERT(isnan(a[i]) ? isnan(b[i]) : memcmp(&a[i], &b[i], sizeof *a) == 0);
    if (tensor->dtype != KYMO_F64 && n_bytes > 0)
        KYMO_ASSERT(memcmp(a, b, n_bytes) == 0);
    kymo__free(numbers.data);
    kymo__buf_fini(&out);
    free(text.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kymo_dumps dumps = {0};
    struct kymo__step step = {.path = (char[]){"fuzzed"}};
    struct kymo__map text = padded_copy(data, size);
    if (kymo__tree_parse(&dumps, &step, KYMO_DUMP_TENSORS, &text, "fuzzed", NULL, NULL) == KYMO_OK) {
        check_values(&step);
        for (size_t i = 0; i < step.n_values; i++)
            if (step.places[i].is_read)
                check_again(&step.places[i].tensor);
    }
    step.path = NULL;
    kymo__step_fini(&step);
    free(text.data);
    return 0;
}
