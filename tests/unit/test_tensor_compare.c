/* Comparing tensors: each case in which somebody's comparison was seen to be silent or wrong. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/kernels/internal.h"

static struct marey_tensor vector(enum marey_dtype dtype, const void *data, const int64_t *n)
{
    return (struct marey_tensor){.data = data, .dtype = dtype, .rank = 1, .sizes = n};
}

static struct marey_tensor_diff compare(enum marey_dtype dtype, const void *a, const void *b,
                                        int64_t n, struct marey_tolerance tolerance)
{
    const struct marey_tensor ta = vector(dtype, a, &n), tb = vector(dtype, b, &n);
    struct marey_tensor_diff diff;
    assert_int_equal(marey_tensor_compare(&ta, &tb, &tolerance, &diff), MAREY_OK);
    return diff;
}

static const struct marey_tolerance exact = {.nan_equal = 1};
static const struct marey_tolerance bitwise = {.bitwise = 1};
static const struct marey_tolerance wide = {.abs = 1e30, .rel = 1e30, .nan_equal = 1};

static void nan_against_a_number_is_wrong_whatever_the_tolerance(void **state)
{
    (void)state;
    const float a[] = {1, NAN, 3}, b[] = {1, 2, 3};
    struct marey_tensor_diff d = compare(MAREY_F32, a, b, 3, wide);
    assert_int_equal(d.n_wrong, 1);
    assert_int_equal(d.first_wrong, 1);
    assert_int_equal(d.n_nan_a, 1);
    assert_int_equal(d.n_nan_b, 0);
    assert_int_equal(d.n_nan_one, 1);
    assert_true(isinf(d.needs_abs) && isinf(d.needs_rel) && isinf(d.needs_ulp));
    d = compare(MAREY_F32, b, a, 3, wide);
    assert_int_equal(d.n_wrong, 1);
    assert_int_equal(d.n_nan_b, 1);
}

static void nan_at_the_same_place_is_as_asked(void **state)
{
    (void)state;
    const double a[] = {NAN, 2};
    struct marey_tolerance tolerance = {.nan_equal = 1};
    struct marey_tensor_diff d = compare(MAREY_F64, a, a, 2, tolerance);
    assert_int_equal(d.n_wrong, 0);
    assert_int_equal(d.n_unequal, 0);
    assert_int_equal(d.n_nan_one, 0);
    assert_true(d.needs_abs == 0);
    tolerance.nan_equal = 0;
    d = compare(MAREY_F64, a, a, 2, tolerance);
    assert_int_equal(d.n_wrong, 1);
    assert_int_equal(d.n_unequal, 0);
    assert_int_equal(d.first_wrong, 0);
}

static void infinities_agree_with_themselves_alone(void **state)
{
    (void)state;
    const float a[] = {INFINITY, INFINITY, -INFINITY, 1, INFINITY};
    const float b[] = {INFINITY, -INFINITY, -INFINITY, INFINITY, 3e38f};
    const struct marey_tensor_diff d = compare(MAREY_F32, a, b, 5, wide);
    assert_int_equal(d.n_wrong, 3);
    assert_int_equal(d.first_wrong, 1);
    assert_true(isinf(d.needs_abs));
    assert_true(d.abs.value == 0 && d.abs.index == UINT64_MAX);
}

static void zeroes_of_both_signs_agree_unless_bits_are_asked_for(void **state)
{
    (void)state;
    const float a[] = {0, -0.0f}, b[] = {-0.0f, -0.0f};
    struct marey_tensor_diff d = compare(MAREY_F32, a, b, 2, exact);
    assert_int_equal(d.n_wrong, 0);
    assert_int_equal(d.n_unequal, 0);
    assert_true(d.ulp.value == 0);
    d = compare(MAREY_F32, a, b, 2, bitwise);
    assert_int_equal(d.n_wrong, 1);
    assert_int_equal(d.first_wrong, 0);
}

static void bits_are_bits_of_nan_too(void **state)
{
    (void)state;
    uint32_t a[] = {0x7fc00000, 0x7fc00001}, b[] = {0x7fc00000, 0x7fc00002};
    const struct marey_tensor_diff d = compare(MAREY_F32, a, b, 2, bitwise);
    assert_int_equal(d.n_wrong, 1);
    assert_int_equal(d.first_wrong, 1);
}

static void swapped_rows_are_seen(void **state)
{
    (void)state;
    enum { ROWS = 100, COLUMNS = 300 };
    static float a[ROWS * COLUMNS], b[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        a[i] = b[i] = sinf((float)i);
    memcpy(&b[7 * COLUMNS], &a[70 * COLUMNS], COLUMNS * sizeof *a);
    memcpy(&b[70 * COLUMNS], &a[7 * COLUMNS], COLUMNS * sizeof *a);
    const struct marey_tensor_diff d =
        compare(MAREY_F32, a, b, ROWS * COLUMNS, marey_tolerance_default(MAREY_F32, MAREY_F32));
    assert_true(d.n_wrong > 500);
    assert_int_equal(d.first_wrong, 7 * COLUMNS);
}

static void one_sign_among_many_is_seen(void **state)
{
    (void)state;
    enum { N = 100003, AT = 99999 };
    static float a[N], b[N];
    for (int i = 0; i < N; i++)
        a[i] = b[i] = 1 + (float)i / N;
    b[AT] = -b[AT];
    const struct marey_tensor_diff d = compare(MAREY_F32, a, b, N, exact);
    assert_int_equal(d.n_wrong, 1);
    assert_int_equal(d.n_unequal, 1);
    assert_int_equal(d.first_wrong, AT);
    assert_int_equal(d.abs.index, AT);
    assert_int_equal(d.rel.index, AT);
    assert_int_equal(d.ulp.index, AT);
    assert_true(d.abs.value == 2 * (double)a[AT]);
    assert_true(d.rel.value == 2);
}

static void integers_beyond_2_to_the_53_are_exact(void **state)
{
    (void)state;
    const int64_t a[] = {(1LL << 53) + 1, INT64_MAX, INT64_MIN},
                  b[] = {1LL << 53, INT64_MAX, INT64_MAX};
    struct marey_tensor_diff d = compare(MAREY_I64, a, b, 3, exact);
    assert_int_equal(d.n_wrong, 2);
    assert_int_equal(d.first_wrong, 0);
    assert_int_equal(d.abs.index, 2);
    assert_true(d.abs.value == 0x1p64);
    const uint64_t c[] = {UINT64_MAX}, e[] = {UINT64_MAX - 1};
    d = compare(MAREY_U64, c, e, 1, exact);
    assert_int_equal(d.n_wrong, 1);
    assert_true(d.needs_abs == 1 && d.needs_ulp == 1);
    d = compare(MAREY_U64, c, e, 1, (struct marey_tolerance){.abs = 1});
    assert_int_equal(d.n_wrong, 0);
    d = compare(MAREY_U64, c, e, 1, (struct marey_tolerance){.abs = 0.99});
    assert_int_equal(d.n_wrong, 1);
}

static void any_true_is_true(void **state)
{
    (void)state;
    const uint8_t a[] = {1, 2, 0, 0}, b[] = {1, 1, 0, 1};
    const struct marey_tensor_diff d = compare(MAREY_BOOL, a, b, 4, exact);
    assert_int_equal(d.n_wrong, 1);
    assert_int_equal(d.first_wrong, 3);
    assert_int_equal(compare(MAREY_BOOL, a, b, 4, bitwise).n_wrong, 2);
}

static void complex_numbers_agree_when_both_parts_do(void **state)
{
    (void)state;
    const float a[] = {1, 2, 3, 4, 5, NAN}, b[] = {1, 2, 3, 4.5f, 5.5f, NAN};
    const struct marey_tensor_diff d = compare(MAREY_C64, a, b, 3, exact);
    assert_int_equal(d.n, 3);
    assert_int_equal(d.n_wrong, 2);
    assert_int_equal(d.n_unequal, 2);
    assert_int_equal(d.n_nan_a, 1);
    assert_int_equal(d.n_nan_one, 0);
    assert_true(d.abs.value == 0.5 && d.abs.index == 1);
    const double c[] = {1, 2}, e[] = {1, 2 + 1e-8};
    assert_int_equal(
        compare(MAREY_C128, c, e, 1, marey_tolerance_default(MAREY_C128, MAREY_C128)).n_wrong, 0);
    assert_int_equal(compare(MAREY_C128, c, e, 1, exact).n_wrong, 1);
}

static void halves_of_bytes_are_numbers(void **state)
{
    (void)state;
    const uint8_t a[] = {0x12, 0xf0}, b[] = {0x12, 0x00};
    struct marey_tensor_diff d = compare(MAREY_I4X2, a, b, 2, exact);
    assert_true(d.n == 2 && d.n_wrong == 1 && d.first_wrong == 1 && d.abs.value == 1);
    d = compare(MAREY_U4X2, a, b, 2, exact);
    assert_true(d.abs.value == 15);
    d = compare(MAREY_F4_E2M1X2, a, b, 2, exact);
    assert_true(d.abs.value == 6 && d.ulp.value == 7);
}

static void places_are_counted_through_zero(void **state)
{
    (void)state;
    const float a32[] = {1, 1e-45f, -1e-45f, 1}, b32[] = {1 + 0x1p-23f, 0, 1e-45f, 0.99999994f};
    struct marey_tensor_diff d = compare(MAREY_F32, a32, b32, 4, exact);
    assert_true(d.ulp.value == 2 && d.ulp.index == 2);
    assert_int_equal(compare(MAREY_F32, a32, b32, 4, (struct marey_tolerance){.ulp = 1}).n_wrong, 1);
    assert_int_equal(compare(MAREY_F32, a32, b32, 4, (struct marey_tolerance){.ulp = 2}).n_wrong, 0);
    const uint16_t a16[] = {0x3c00, 0x0001}, b16[] = {0x3c05, 0x8003};
    d = compare(MAREY_F16, a16, b16, 2, exact);
    assert_true(d.ulp.value == 5 && d.ulp.index == 0);
    d = compare(MAREY_BF16, a16, b16, 2, exact);
    assert_true(d.ulp.value == 5);
    const uint8_t a8[] = {0x38, 0x01}, b8[] = {0x39, 0x81};
    d = compare(MAREY_F8_E4M3FN, a8, b8, 2, exact);
    assert_true(d.ulp.value == 2 && d.ulp.index == 1 && d.abs.value == 0.125);
    const uint8_t a0[] = {0x7f}, b0[] = {0x83};
    d = compare(MAREY_F8_E8M0FNU, a0, b0, 1, exact);
    assert_true(d.ulp.value == 4 && d.abs.value == 15);
    const double a64[] = {1}, b64[] = {-1};
    d = compare(MAREY_F64, a64, b64, 1, exact);
    assert_true(d.ulp.value == 2 * (double)0x3ff0000000000000);
}

static void measures_are_what_they_say(void **state)
{
    (void)state;
    const float a[] = {1, 2, 3, 5}, b[] = {1, 2, 4, 4};
    const struct marey_tensor_diff d =
        compare(MAREY_F32, a, b, 4, (struct marey_tolerance){.abs = 1});
    assert_int_equal(d.n_wrong, 0);
    assert_int_equal(d.n_unequal, 2);
    assert_true(d.first_wrong == UINT64_MAX);
    assert_true(d.abs.value == 1 && d.abs.index == 2);
    assert_true(d.rel.value == 0.25 && d.rel.index == 2);
    assert_float_equal(d.mean_abs, 0.5, 1e-15);
    assert_float_equal(d.rmse, sqrt(0.5), 1e-15);
    assert_float_equal(d.mean_a, 2.75, 1e-15);
    assert_float_equal(d.mean_b, 2.75, 1e-15);
    assert_float_equal(d.cosine, 37 / sqrt(39.0 * 37), 1e-15);
    assert_float_equal(d.snr_db, 10 * log10(37.0 / 2), 1e-12);
    assert_true(d.max_a == 5 && d.max_b == 4);
    assert_true(d.needs_abs == 1);
    assert_int_equal(
        compare(MAREY_F32, a, b, 4, (struct marey_tolerance){.rel = d.needs_rel}).n_wrong, 0);
    assert_int_equal(compare(MAREY_F32, a, b, 4, (struct marey_tolerance){.rel = 0.2499}).n_wrong, 2);
}

static void a_reference_of_zero_has_an_infinite_relative_difference(void **state)
{
    (void)state;
    const float a[] = {3, 1e-7f, 0, 1}, b[] = {2, 0, 0, 2};
    struct marey_tensor_diff d = compare(MAREY_F32, a, b, 4, exact);
    assert_true(isinf(d.needs_rel));
    assert_true(isinf(d.rel.value) && d.rel.index == 1);
    assert_true(d.needs_abs == 1);
    const double a64[] = {0, -1e-300}, b64[] = {0, 0};
    d = compare(MAREY_F64, a64, b64, 2, exact);
    assert_true(isinf(d.rel.value) && d.rel.index == 1);
    const int64_t ai[] = {5, 1}, bi[] = {4, 0};
    d = compare(MAREY_I64, ai, bi, 2, exact);
    assert_true(isinf(d.rel.value) && d.rel.index == 1 && isinf(d.needs_rel));
    d = compare(MAREY_F32, b, b, 4, exact);
    assert_true(d.rel.value == 0 && d.needs_rel == 0);
}

static void nothing_is_rounded_before_it_is_compared(void **state)
{
    (void)state;
    const float a[] = {1.00390625f, 125.49f, -0.1f};
    const uint16_t b[] = {0x3f80, 0x42fa, 0xbdcd}; /* bfloat16: 1, 125, -0.10009766 */
    const int64_t n = 3, one = 1;
    const struct marey_tensor ta = vector(MAREY_F32, a, &n), tb = vector(MAREY_BF16, b, &n);
    struct marey_tensor_diff d;
    assert_int_equal(marey_tensor_compare(&ta, &tb, &exact, &d), MAREY_OK);
    assert_true(d.n_wrong == 3 && d.n_unequal == 3);
    assert_true(d.abs.index == 1 && d.abs.value == (double)(125.49f - 125));
    assert_true(d.ulp.value >= 1);
    const struct marey_tolerance tight = {.abs = 0.4, .rel = 1e-4};
    assert_int_equal(marey_tensor_compare(&tb, &ta, &tight, &d), MAREY_OK);
    assert_int_equal(d.n_wrong, 1);
    /* 2^53 + 1, which float64 does not hold, against 2^53 */
    const int64_t i64[] = {(INT64_C(1) << 53) + 1};
    const double f64[] = {0x1p53};
    const struct marey_tensor ti = vector(MAREY_I64, i64, &one), tf = vector(MAREY_F64, f64, &one);
    if (getenv("MAREY_VALGRIND") != NULL)
        skip(); /* its long double has 53 bits */
    assert_int_equal(marey_tensor_compare(&ti, &tf, &exact, &d), MAREY_OK);
    assert_true(d.n_wrong == 1 && d.abs.value == 1 && d.ulp.value == 1);
    assert_int_equal(marey_tensor_compare(&tf, &ti, &exact, &d), MAREY_OK);
    assert_true(d.n_wrong == 1 && d.abs.value == 1);
}

static void a_real_number_is_a_complex_one(void **state)
{
    (void)state;
    const float a[] = {1, 2}, b[] = {1, 0, 2, 0.5f};
    const int64_t two = 2;
    const struct marey_tensor ta = vector(MAREY_F32, a, &two), tb = vector(MAREY_C64, b, &two);
    struct marey_tensor_diff d;
    assert_int_equal(marey_tensor_compare(&ta, &tb, &exact, &d), MAREY_OK);
    assert_true(d.n == 2 && d.n_wrong == 1 && d.first_wrong == 1 && d.abs.value == 0.5);
}

static void a_tolerance_that_passes_is_not_rounded_down(void **state)
{
    (void)state;
    const int64_t a[] = {(INT64_C(1) << 53) + 1}, b[] = {0};
    const struct marey_tensor_diff d = compare(MAREY_I64, a, b, 1, exact);
    const struct marey_tolerance least = {.abs = d.needs_abs};
    assert_int_equal(compare(MAREY_I64, a, b, 1, least).n_wrong, 0);
}

/* ---- every pair of types, against long double ---- */

enum { N_PAIRS = 600 };

static uint64_t random_bits(void)
{
    static uint64_t x = 88172645463325252;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x;
}

static long double value_at(const struct marey__dtype *type, const unsigned char *data, size_t i,
                            unsigned k)
{
    double parts[2] = {0};
    int64_t integer;
    uint64_t natural;
    data += i * type->size;
    memcpy(&integer, data, MAREY__MIN(type->size, sizeof integer));
    memcpy(&natural, data, MAREY__MIN(type->size, sizeof natural));
    if (type->part == MAREY_I64 || type->part == MAREY_U64)
        return k != 0 ? 0 : type->part == MAREY_I64 ? (long double)integer : (long double)natural;
    marey__widen_to_double((enum marey_dtype)type->part, data, type->n_parts, parts);
    return parts[k];
}

/* The number of the type that is next to x, or any. */
static void put_near(const struct marey__dtype *type, unsigned char *out, long double x)
{
    const int64_t integer = isfinite(x) && fabsl(x) < 0x1p63L ? (int64_t)x : 7;
    const double real = (double)x;
    const float single = (float)x;
    const uint32_t narrow = type->kind == MAREY__IS_FLOAT && type->part_bits < 32
                                ? marey__narrow((enum marey_dtype)type->part, real)
                                : 0;
    const void *from = type->kind != MAREY__IS_FLOAT ? (const void *)&integer
                       : type->part_bits == 64       ? (const void *)&real
                       : type->part_bits == 32       ? (const void *)&single
                                                     : &narrow;
    for (unsigned k = 0; k < type->n_parts; k++)
        memcpy(out + k * type->part_bits / 8, from, type->part_bits / 8);
}

static void fill_pair(const struct marey__dtype *a, const struct marey__dtype *b,
                      unsigned char *data_a, unsigned char *data_b)
{
    for (size_t i = 0; i < (size_t)N_PAIRS * 16; i++) {
        data_a[i] = (unsigned char)random_bits();
        data_b[i] = (unsigned char)random_bits();
    }
    for (size_t i = 0; i < N_PAIRS; i++) {
        if (i % 3 == 0) /* numbers that both may have */
            put_near(a, data_a + i * a->size, (int64_t)(random_bits() % 200) - 100);
        if (i % 3 != 1)
            put_near(b, data_b + i * b->size, value_at(a, data_a, i, 0));
    }
}

static void try_pair(enum marey_dtype dtype_a, enum marey_dtype dtype_b)
{
    static unsigned char data_a[N_PAIRS * 16], data_b[N_PAIRS * 16];
    const struct marey__dtype *a = marey__dtype_get(dtype_a), *b = marey__dtype_get(dtype_b);
    const int64_t n = N_PAIRS;
    const struct marey_tensor ta = vector(dtype_a, data_a, &n), tb = vector(dtype_b, data_b, &n);
    fill_pair(a, b, data_a, data_b);
    uint64_t n_unequal = 0, first = UINT64_MAX;
    long double largest = 0;
    for (size_t i = 0; i < N_PAIRS; i++) {
        bool differs = false;
        for (unsigned k = 0; k < MAREY__MAX(a->n_parts, b->n_parts); k++) {
            const long double x = value_at(a, data_a, i, k), y = value_at(b, data_b, i, k);
            differs |= isnan(x) || isnan(y) ? !(isnan(x) && isnan(y)) : x != y;
            if (isfinite(x) && isfinite(y))
                largest = fmaxl(largest, fabsl(x - y));
        }
        n_unequal += differs;
        if (differs && first == UINT64_MAX)
            first = i;
    }
    struct marey_tensor_diff d;
    assert_int_equal(marey_tensor_compare(&ta, &tb, &exact, &d), MAREY_OK);
    if (d.n_unequal != n_unequal || d.n_wrong != n_unequal || d.first_wrong != first)
        fail_msg("%s against %s: %d of %d", a->name, b->name, (int)d.n_wrong, (int)n_unequal);
    const bool is_rounded = fabsl(d.abs.value - largest) > 1e-6L * largest;
    if (isfinite(d.abs.value) && is_rounded)
        fail_msg("%s against %s: %g, and not %Lg", a->name, b->name, d.abs.value, largest);
}

static void every_pair_of_types_is_compared_exactly(void **state)
{
    (void)state;
    if (getenv("MAREY_VALGRIND") != NULL)
        skip(); /* its long double has 53 bits */
    static const char *const levels[] = {"plain", "avx2", "avx512"};
    for (size_t level = 0; level < MAREY__COUNT_OF(levels); level++) {
        if (!marey__kernels_force(levels[level]))
            continue;
        for (int a = MAREY_BOOL; a < MAREY_F4_E2M1X2; a++)
            for (int b = MAREY_BOOL; b < MAREY_F4_E2M1X2; b++)
                try_pair((enum marey_dtype)a, (enum marey_dtype)b);
    }
    (void)marey__kernels_force(NULL);
}

#ifdef __x86_64__
/* torch.set_flush_denormal() and -ffast-math leave the processor so. */
static void a_host_that_flushes_denormals_changes_nothing(void **state)
{
    (void)state;
    if (getenv("MAREY_VALGRIND") != NULL)
        skip(); /* its processor does not flush */
    const float a[] = {1e-40f, 1}, b[] = {2e-40f, 1};
    const unsigned before = __builtin_ia32_stmxcsr(), flushing = before | 0x8040;
    __builtin_ia32_ldmxcsr(flushing);
    const struct marey_tensor_diff d = compare(MAREY_F32, a, b, 2, exact);
    const unsigned after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before);
    assert_int_equal(d.n_wrong, 1);
    assert_true(d.abs.value > 0);
    assert_int_equal(after & 0x8040, 0x8040);
}
#endif

static void scalars_and_nothing_compare(void **state)
{
    (void)state;
    const float x = 1, y = 2;
    const struct marey_tensor a = {.data = &x, .dtype = MAREY_F32},
                              b = {.data = &y, .dtype = MAREY_F32};
    struct marey_tensor_diff d;
    assert_int_equal(marey_tensor_compare(&a, &b, &exact, &d), MAREY_OK);
    assert_true(d.n == 1 && d.n_wrong == 1 && d.abs.value == 1);
    d = compare(MAREY_F32, NULL, NULL, 0, exact);
    assert_true(d.n == 0 && d.n_wrong == 0 && isnan(d.rmse) && isnan(d.cosine) && d.needs_abs == 0);
}

static void what_cannot_be_compared_is_refused(void **state)
{
    (void)state;
    const float x[4] = {0};
    const int64_t two = 2, four = 4;
    struct marey_tensor a = vector(MAREY_F32, x, &two), b = vector(MAREY_F32, x, &four);
    struct marey_tensor_diff d;
    assert_int_equal(marey_tensor_compare(&a, &b, &exact, &d), MAREY_EINVAL);
    b.rank = 0;
    assert_int_equal(marey_tensor_compare(&a, &b, &exact, &d), MAREY_EINVAL);
    b = vector(MAREY_I4X2, x, &two);
    assert_int_equal(marey_tensor_compare(&a, &b, &exact, &d), MAREY_EINVAL);
    b = a;
    const struct marey_tolerance negative = {.abs = -1}, none = {.rel = NAN};
    assert_int_equal(marey_tensor_compare(&a, &b, &negative, &d), MAREY_EINVAL);
    assert_int_equal(marey_tensor_compare(&a, &b, &none, &d), MAREY_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nan_against_a_number_is_wrong_whatever_the_tolerance),
        cmocka_unit_test(nan_at_the_same_place_is_as_asked),
        cmocka_unit_test(infinities_agree_with_themselves_alone),
        cmocka_unit_test(zeroes_of_both_signs_agree_unless_bits_are_asked_for),
        cmocka_unit_test(bits_are_bits_of_nan_too),
        cmocka_unit_test(swapped_rows_are_seen),
        cmocka_unit_test(one_sign_among_many_is_seen),
        cmocka_unit_test(integers_beyond_2_to_the_53_are_exact),
        cmocka_unit_test(any_true_is_true),
        cmocka_unit_test(complex_numbers_agree_when_both_parts_do),
        cmocka_unit_test(halves_of_bytes_are_numbers),
        cmocka_unit_test(places_are_counted_through_zero),
        cmocka_unit_test(measures_are_what_they_say),
        cmocka_unit_test(a_reference_of_zero_has_an_infinite_relative_difference),
        cmocka_unit_test(nothing_is_rounded_before_it_is_compared),
        cmocka_unit_test(a_real_number_is_a_complex_one),
        cmocka_unit_test(a_tolerance_that_passes_is_not_rounded_down),
        cmocka_unit_test(every_pair_of_types_is_compared_exactly),
#ifdef __x86_64__
        cmocka_unit_test(a_host_that_flushes_denormals_changes_nothing),
#endif
        cmocka_unit_test(scalars_and_nothing_compare),
        cmocka_unit_test(what_cannot_be_compared_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
