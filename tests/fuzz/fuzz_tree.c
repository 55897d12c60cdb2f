/* Any text as the JSON of a dump: its values are readable, and numbers survive writing and reading.
 * */
#include <math.h>

#include "dump_values.h"
#include "fuzz.h"

/* The numbers of a tensor as text and back. */
static void check_again(const struct marey_tensor *tensor)
{
    static const struct marey__json_style style = {.is_python = true};
    struct marey__buf out = {0};
    struct marey__json json;
    struct marey__numbers numbers = {0};
    MAREY_ASSERT(marey__json_tensor_put(&out, tensor, &style) == MAREY_OK);
    struct marey__map text = padded_copy((const uint8_t *)out.data, out.len);
    marey__json_init_padded(&json, text.data, text.len, MAREY__DUMP_JSON);
    MAREY_ASSERT(marey__numbers_read(&json, false, &numbers) == MAREY__NUMBERS_TENSOR);
    const bool is_empty = marey_tensor_count(tensor) == 0;
    MAREY_ASSERT(is_empty || numbers.shape.dtype == tensor->dtype);
    const size_t n_bytes = (size_t)marey_tensor_bytes(tensor);
    const double *const a = tensor->data, *const b = numbers.data;
    for (size_t i = 0; tensor->dtype == MAREY_F64 && i < n_bytes / sizeof *a; i++)
        MAREY_ASSERT(isnan(a[i]) ? isnan(b[i]) : memcmp(&a[i], &b[i], sizeof *a) == 0);
    if (tensor->dtype != MAREY_F64 && n_bytes > 0)
        MAREY_ASSERT(memcmp(a, b, n_bytes) == 0);
    marey__free(numbers.data);
    marey__buf_fini(&out);
    free(text.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct marey_dumps dumps = {0};
    struct marey__dumpfile_step step = {.path = (char[]){"fuzzed"}};
    struct marey__map text = padded_copy(data, size);
    if (marey__tree_parse(&dumps, &step, MAREY_DUMP_TENSORS, &text, "fuzzed", NULL, NULL) ==
        MAREY_OK) {
        check_values(&step);
        for (size_t i = 0; i < step.n_values; i++)
            if (step.places[i].is_read)
                check_again(&step.places[i].tensor);
    }
    step.path = NULL;
    marey__step_fini(&step);
    free(text.data);
    return 0;
}
