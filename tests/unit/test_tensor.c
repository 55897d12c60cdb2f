/* Tensors: types, layouts, elements, statistics, digests. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/kernels/internal.h"

/* ---- types ---- */

static void every_name_in_use_is_found(void **state)
{
    (void)state;
    for (int i = 1; i < MAREY_N_DTYPES; i++) {
        const char *name = marey_dtype_name((enum marey_dtype)i);
        char torch_name[64];
        snprintf(torch_name, sizeof torch_name, "torch.%s", name);
        assert_int_equal(marey_dtype_find(name), i);
        assert_int_equal(marey_dtype_find(torch_name), i);
        assert_true(marey_dtype_size((enum marey_dtype)i) > 0);
    }
    assert_int_equal(marey_dtype_find("F32"), MAREY_F32);
    assert_int_equal(marey_dtype_find("BF16"), MAREY_BF16);
    assert_int_equal(marey_dtype_find("bf16"), MAREY_BF16);
    assert_int_equal(marey_dtype_find("F8_E4M3"), MAREY_F8_E4M3FN);
    assert_int_equal(marey_dtype_find("I8"), MAREY_I8);
    assert_int_equal(marey_dtype_find("<i8"), MAREY_I64);
    assert_int_equal(marey_dtype_find("|b1"), MAREY_BOOL);
    assert_int_equal(marey_dtype_find("<c16"), MAREY_C128);
    assert_int_equal(marey_dtype_find("half"), MAREY_F16);
}

static void what_is_no_type_is_none(void **state)
{
    (void)state;
    static const char *const names[] = {"",       "<",      "float33", ">f4",
                                        "torch.", "object", "|O",      "<f16"};
    for (size_t i = 0; i < MAREY__COUNT_OF(names); i++)
        assert_int_equal(marey_dtype_find(names[i]), MAREY_DTYPE_NONE);
    assert_int_equal(marey_dtype_find(NULL), MAREY_DTYPE_NONE);
    assert_string_equal(marey_dtype_name((enum marey_dtype)99), "?");
    assert_string_equal(marey_dtype_name(MAREY_DTYPE_NONE), "?");
    assert_int_equal(marey_dtype_size((enum marey_dtype)(-1)), 0);
}

/* ---- layouts ---- */

static void what_cannot_be_read_is_refused(void **state)
{
    (void)state;
    const float x[4] = {0};
    const int64_t sizes[] = {2, 2}, negative[] = {2, -1}, huge[] = {INT64_MAX / 2, 3};
    const int64_t far[] = {INT64_MAX / 4, 1};
    const struct marey_tensor sound = {.data = x, .dtype = MAREY_F32, .rank = 2, .sizes = sizes};
    assert_int_equal(marey_tensor_check(&sound), MAREY_OK);
    struct marey_tensor t = sound;
    t.dtype = MAREY_DTYPE_NONE;
    assert_int_equal(marey_tensor_check(&t), MAREY_EINVAL);
    t = sound;
    t.rank = MAREY_MAX_RANK + 1;
    assert_int_equal(marey_tensor_check(&t), MAREY_EINVAL);
    t = sound;
    t.sizes = negative;
    assert_int_equal(marey_tensor_check(&t), MAREY_EINVAL);
    assert_non_null(strstr(marey_last_error(), "negative"));
    t.sizes = huge;
    assert_int_equal(marey_tensor_check(&t), MAREY_EINVAL);
    t.sizes = NULL;
    assert_int_equal(marey_tensor_check(&t), MAREY_EINVAL);
    t = sound;
    t.strides = far;
    assert_int_equal(marey_tensor_check(&t), MAREY_EINVAL);
    t = sound;
    t.data = NULL;
    assert_int_equal(marey_tensor_check(&t), MAREY_EINVAL);
    assert_int_equal(marey_tensor_check(NULL), MAREY_EINVAL);
    t = sound;
    t.memory = MAREY_MEMORY_CUDA;
    assert_int_equal(marey_tensor_check(&t), MAREY_OK);
    float out[4];
    assert_int_equal(marey_tensor_gather(&t, out), MAREY_EINVAL);
}

static void counts_and_bytes_of_scalars_and_of_nothing(void **state)
{
    (void)state;
    const double x = 1;
    const struct marey_tensor scalar = {.data = &x, .dtype = MAREY_F64};
    assert_int_equal(marey_tensor_check(&scalar), MAREY_OK);
    assert_int_equal(marey_tensor_count(&scalar), 1);
    assert_int_equal(marey_tensor_bytes(&scalar), 8);
    assert_true(marey_tensor_is_row_major(&scalar));
    const int64_t sizes[] = {3, 0, INT64_MAX};
    const struct marey_tensor empty = {.dtype = MAREY_C128, .rank = 3, .sizes = sizes};
    assert_int_equal(marey_tensor_check(&empty), MAREY_OK);
    assert_int_equal(marey_tensor_count(&empty), 0);
    assert_int_equal(marey_tensor_gather(&empty, NULL), MAREY_OK);
}

/* Element by element, by the definition. */
static void gather_slowly(const struct marey_tensor *t, unsigned char *out)
{
    const size_t size = marey_dtype_size(t->dtype);
    const uint64_t n = marey_tensor_count(t);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t rest = i;
        int64_t offset = 0;
        for (uint32_t axis = t->rank; axis-- > 0;) {
            offset += (int64_t)(rest % (uint64_t)t->sizes[axis]) * t->strides[axis];
            rest /= (uint64_t)t->sizes[axis];
        }
        memcpy(out + i * size, (const unsigned char *)t->data + offset * (int64_t)size, size);
    }
}

static void strided_elements_come_in_row_major_order(void **state)
{
    (void)state;
    static const struct {
        int64_t sizes[4], strides[4], offset;
    } cases[] = {
        {{3, 4, 5, 2}, {40, 10, 2, 1}, 0},    /* row-major */
        {{5, 4, 3, 2}, {2, 10, 40, 1}, 0},    /* permuted */
        {{2, 5, 4, 3}, {1, 2, 10, 40}, 0},    /* column-major */
        {{3, 2, 5, 2}, {40, 20, 2, 1}, 10},   /* sliced */
        {{3, 7, 5, 2}, {40, 0, 2, 1}, 0},     /* expanded */
        {{4, 4, 4, 4}, {0, 0, 0, 0}, 3},      /* one element, 256 times */
        {{3, 4, 5, 2}, {-40, 10, -2, 1}, 88}, /* backwards */
        {{3, 4, 5, 2}, {-40, -10, -2, -1}, 119},
        {{1, 4, 1, 2}, {999, 10, 7, 1}, 0}, /* strides of axes of one do not matter */
    };
    static const enum marey_dtype types[] = {MAREY_U8, MAREY_BF16, MAREY_F32, MAREY_F64, MAREY_C128};
    for (size_t k = 0; k < MAREY__COUNT_OF(types); k++) {
        const size_t size = marey_dtype_size(types[k]);
        unsigned char data[120 * 16], expected[256 * 16], got[256 * 16];
        for (size_t i = 0; i < sizeof data; i++)
            data[i] = (unsigned char)(i * 37 + i / 256);
        for (size_t c = 0; c < MAREY__COUNT_OF(cases); c++) {
            const struct marey_tensor t = {.data = data + cases[c].offset * (int64_t)size,
                                           .dtype = types[k],
                                           .rank = 4,
                                           .sizes = cases[c].sizes,
                                           .strides = cases[c].strides};
            assert_int_equal(marey_tensor_is_row_major(&t), c == 0);
            gather_slowly(&t, expected);
            assert_int_equal(marey_tensor_gather(&t, got), MAREY_OK);
            assert_memory_equal(got, expected, marey_tensor_bytes(&t));
        }
    }
}

/* ---- elements ---- */

static void expect_text(enum marey_dtype dtype, const void *data, const char *text)
{
    char out[64];
    const struct marey_tensor t = {.data = data, .dtype = dtype};
    assert_int_equal(marey_tensor_element(&t, 0, out, sizeof out), MAREY_OK);
    assert_string_equal(out, text);
}

static void elements_print_as_what_reads_back(void **state)
{
    (void)state;
    const float tenth = 0.1f, parts[] = {1, -2};
    const double third = 1.0 / 3;
    const int64_t big = INT64_MIN;
    const uint64_t most = UINT64_MAX;
    expect_text(MAREY_F32, &tenth, "0.1");
    expect_text(MAREY_F32, &(float){NAN}, "NaN");
    expect_text(MAREY_F32, &(float){-INFINITY}, "-Infinity");
    expect_text(MAREY_F32, &(float){-0.0f}, "-0");
    expect_text(MAREY_F64, &third, "0.3333333333333333");
    expect_text(MAREY_F16, &(uint16_t){0x2e66}, "0.1");
    expect_text(MAREY_BF16, &(uint16_t){0x7f80}, "Infinity");
    expect_text(MAREY_C32, (uint16_t[]){0x3c00, 0xc100}, "(1,-2.5)");
    expect_text(MAREY_F8_E5M2, "\x38", "0.5");
    expect_text(MAREY_C64, parts, "(1,-2)");
    expect_text(MAREY_I64, &big, "-9223372036854775808");
    expect_text(MAREY_U64, &most, "18446744073709551615");
    expect_text(MAREY_BOOL, "\2", "true");
    expect_text(MAREY_I4X2, "\x7f", "(-1,7)");
    expect_text(MAREY_U4X2, "\x7f", "(15,7)");
    expect_text(MAREY_F4_E2M1X2, "\xf1", "(0.5,-6)");
    char out[3];
    const struct marey_tensor t = {.data = &tenth, .dtype = MAREY_F32};
    assert_int_equal(marey_tensor_element(&t, 0, out, sizeof out), MAREY_EINVAL);
    assert_int_equal(marey_tensor_element(&t, 1, out, sizeof out), MAREY_EINVAL);
}

/* ---- statistics ---- */

static struct marey_tensor_stats stats_of(enum marey_dtype dtype, const void *data, int64_t n)
{
    const struct marey_tensor t = {.data = data, .dtype = dtype, .rank = 1, .sizes = &n};
    struct marey_tensor_stats stats;
    assert_int_equal(marey_tensor_stats_get(&t, &stats), MAREY_OK);
    return stats;
}

static void statistics_count_each_kind_of_number(void **state)
{
    (void)state;
    const float x[] = {NAN, INFINITY, -INFINITY, 0, -0.0f, 1e-40f, -3, 4, 0.5f};
    const struct marey_tensor_stats s = stats_of(MAREY_F32, x, MAREY__COUNT_OF(x));
    assert_int_equal(s.n, 9);
    assert_int_equal(s.n_nan, 1);
    assert_int_equal(s.n_pos_inf, 1);
    assert_int_equal(s.n_neg_inf, 1);
    assert_int_equal(s.n_zero, 2);
    assert_int_equal(s.n_denormal, 1);
    assert_int_equal(s.n_negative, 2);
    assert_true(s.min == -3 && s.max == 4);
    assert_float_equal(s.mean, 1.5 / 6, 1e-15);
    assert_float_equal(s.l2, 5.024937810560445, 1e-14);
    assert_int_equal(s.histogram[41], 1); /* 3 */
    assert_int_equal(s.histogram[42], 1); /* 4 */
    assert_int_equal(s.histogram[39], 1); /* 0.5 */
    assert_int_equal(s.histogram[0], 1);  /* the denormal one */
}

static void statistics_of_nothing_are_none(void **state)
{
    (void)state;
    struct marey_tensor_stats s = stats_of(MAREY_F32, NULL, 0);
    assert_true(s.n == 0 && isnan(s.min) && isnan(s.max) && isnan(s.mean) && isnan(s.l2));
    s = stats_of(MAREY_F64, &(double){NAN}, 1);
    assert_true(s.n == 1 && s.n_nan == 1 && isnan(s.std));
}

static void a_spread_beside_a_large_mean_is_kept(void **state)
{
    (void)state;
    static double x[100000];
    for (size_t i = 0; i < MAREY__COUNT_OF(x); i++)
        x[i] = 1e9 + (i % 2 == 0 ? 1 : -1);
    const struct marey_tensor_stats s = stats_of(MAREY_F64, x, MAREY__COUNT_OF(x));
    assert_float_equal(s.std, 1, 1e-9);
    assert_true(s.mean == 1e9);
}

static void huge_numbers_do_not_overflow_the_sums(void **state)
{
    (void)state;
    const double x[] = {1e308, 1e308, -1e308};
    const struct marey_tensor_stats s = stats_of(MAREY_F64, x, 3);
    assert_float_equal(s.l2 / 1e308, sqrt(3), 1e-14);
    assert_float_equal(s.mean / 1e308, 1.0 / 3, 1e-14);
}

/* ---- digests ---- */

/* A build without xxHash has none and says so. */
static bool has_digests(void)
{
    const int64_t n = 1;
    const struct marey_tensor one = {.data = "", .dtype = MAREY_U8, .rank = 1, .sizes = &n};
    struct marey_digest digest;
    if (marey_tensor_digest(&one, &digest, NULL) == MAREY_OK)
        return true;
    assert_non_null(strstr(marey_last_error(), "libxxhash-dev"));
    return false;
}

static struct marey_digest digest_of(const struct marey_tensor *t, struct marey_digest *blocks)
{
    struct marey_digest digest;
    assert_int_equal(marey_tensor_digest(t, &digest, blocks), MAREY_OK);
    return digest;
}

static void a_digest_tells_order_and_place(void **state)
{
    (void)state;
    if (!has_digests())
        skip();
    int64_t n = 3 * (int64_t)MAREY_DIGEST_BLOCK + 5;
    unsigned char *x = malloc((size_t)n);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (unsigned char)(i * i >> 3);
    const struct marey_tensor t = {.data = x, .dtype = MAREY_U8, .rank = 1, .sizes = &n};
    assert_int_equal(marey_digest_blocks((uint64_t)n), 4);
    struct marey_digest before[4], after[4];
    const struct marey_digest whole = digest_of(&t, before);
    x[MAREY_DIGEST_BLOCK + 7] ^= 1;
    const struct marey_digest changed = digest_of(&t, after);
    assert_memory_not_equal(&whole, &changed, sizeof whole);
    for (int i = 0; i < 4; i++)
        assert_int_equal(memcmp(&before[i], &after[i], sizeof before[i]) != 0, i == 1);
    free(x);
}

static void a_digest_is_that_of_row_major_bytes(void **state)
{
    (void)state;
    if (!has_digests())
        skip();
    enum { N = 700 };
    static float x[N * N], y[N * N];
    for (int i = 0; i < N * N; i++)
        x[i] = (float)i;
    const int64_t sizes[] = {N, N}, strides[] = {1, N};
    const struct marey_tensor turned = {
        .data = x, .dtype = MAREY_F32, .rank = 2, .sizes = sizes, .strides = strides};
    assert_int_equal(marey_tensor_gather(&turned, y), MAREY_OK);
    const struct marey_tensor plain = {.data = y, .dtype = MAREY_F32, .rank = 2, .sizes = sizes};
    const struct marey_digest a = digest_of(&turned, NULL), b = digest_of(&plain, NULL);
    assert_memory_equal(&a, &b, sizeof a);
}

static void an_empty_tensor_has_the_digest_of_nothing(void **state)
{
    (void)state;
    if (!has_digests())
        skip();
    /* XXH3-128 of no bytes, as its authors print it. */
    static const uint8_t expected[] = {0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8,
                                       0x60, 0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f};
    const int64_t n = 0;
    const struct marey_tensor t = {.dtype = MAREY_F32, .rank = 1, .sizes = &n};
    const struct marey_digest digest = digest_of(&t, NULL);
    assert_memory_equal(digest.bytes, expected, sizeof expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_in_use_is_found),
        cmocka_unit_test(what_is_no_type_is_none),
        cmocka_unit_test(what_cannot_be_read_is_refused),
        cmocka_unit_test(counts_and_bytes_of_scalars_and_of_nothing),
        cmocka_unit_test(strided_elements_come_in_row_major_order),
        cmocka_unit_test(elements_print_as_what_reads_back),
        cmocka_unit_test(statistics_count_each_kind_of_number),
        cmocka_unit_test(statistics_of_nothing_are_none),
        cmocka_unit_test(a_spread_beside_a_large_mean_is_kept),
        cmocka_unit_test(huge_numbers_do_not_overflow_the_sums),
        cmocka_unit_test(a_digest_tells_order_and_place),
        cmocka_unit_test(a_digest_is_that_of_row_major_bytes),
        cmocka_unit_test(an_empty_tensor_has_the_digest_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
