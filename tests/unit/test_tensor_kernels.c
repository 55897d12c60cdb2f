/* The kernels for each kind of processor, held to the code that takes nothing for granted. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/kernels/internal.h"

static const char *const levels[] = {"plain", "avx2", "avx512"};

static uint64_t seed = 1;

static uint64_t random_bits(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static double random_number(void)
{
    return (double)(int64_t)random_bits() * 0x1p-63;
}

/* What numbers may be like. Each puts something into blocks that kernels have to notice. */
enum flavour { NOISE, EQUAL, ANY_BITS, TINY, HUGE_ONES, ZEROES, ONE_NAN, SAME_RATIO, N_FLAVOURS };

static double first_number(enum flavour flavour)
{
    const double x = random_number();
    switch (flavour) {
    case TINY:
        return x * 1e-24;
    case HUGE_ONES:
        return x * 1e30;
    case SAME_RATIO:
        return 7;
    case ZEROES:
        return random_bits() % 2 == 0 ? 0 : x;
    default:
        return x;
    }
}

static double second_number(enum flavour flavour, double x, size_t i)
{
    switch (flavour) {
    case EQUAL:
        return x;
    case SAME_RATIO:
        return 6;
    case ZEROES:
        return random_bits() % 4 == 0 ? 1e-6 : x;
    case ONE_NAN:
        return i % 5000 == 4321 ? NAN : x;
    default:
        return x * (1 + 1e-3 * random_number()) * (random_bits() % 1000 == 0 ? -1 : 1);
    }
}

static void put(enum marey_dtype part, void *data, size_t i, double x)
{
    if (part == MAREY_F64)
        ((double *)data)[i] = x;
    else if (part == MAREY_F32)
        ((float *)data)[i] = (float)x;
    else if (marey_dtype_size(part) == 2)
        ((uint16_t *)data)[i] = (uint16_t)marey__narrow(part, x);
    else if (part != MAREY_F4_E2M1X2)
        ((uint8_t *)data)[i] = (uint8_t)marey__narrow(part, x * 16);
    else
        ((uint8_t *)data)[i / 2] = (uint8_t)(random_bits());
}

static void fill(const struct marey__dtype *type, enum flavour flavour, size_t n, void *a, void *b)
{
    for (size_t i = 0; i < n * type->n_parts; i++) {
        const double x = first_number(flavour);
        put((enum marey_dtype)type->part, a, i, x);
        put((enum marey_dtype)type->part, b, i, second_number(flavour, x, i));
    }
    if (flavour == ANY_BITS)
        for (size_t i = 0; i < n * type->size; i++) {
            ((unsigned char *)a)[i] = (unsigned char)random_bits();
            ((unsigned char *)b)[i] = (unsigned char)random_bits();
        }
    if (flavour == EQUAL)
        memcpy(b, a, n * type->size);
}

/* Sums of a block are in float32 for a while; everything else is the same to the bit. */
static void expect_close(double got, double expected, double scale)
{
    if (isnan(expected) || isinf(expected))
        assert_true(isnan(expected) ? isnan(got) : got == expected);
    else
        assert_true(fabs(got - expected) <= 2e-6 * scale);
}

static void expect_same(const struct marey_tensor_diff *got, const struct marey_tensor_diff *expected)
{
    assert_int_equal(got->n_wrong, expected->n_wrong);
    assert_int_equal(got->n_unequal, expected->n_unequal);
    assert_int_equal(got->n_nan_a, expected->n_nan_a);
    assert_int_equal(got->n_nan_b, expected->n_nan_b);
    assert_int_equal(got->n_nan_one, expected->n_nan_one);
    assert_int_equal(got->first_wrong, expected->first_wrong);
    assert_memory_equal(&got->abs, &expected->abs, sizeof got->abs);
    assert_memory_equal(&got->rel, &expected->rel, sizeof got->rel);
    assert_memory_equal(&got->ulp, &expected->ulp, sizeof got->ulp);
    assert_true(got->max_a == expected->max_a && got->max_b == expected->max_b);
    assert_true(got->needs_abs == expected->needs_abs && got->needs_rel == expected->needs_rel &&
                got->needs_ulp == expected->needs_ulp);
    expect_close(got->mean_abs, expected->mean_abs, expected->mean_abs);
    expect_close(got->rmse, expected->rmse, expected->rmse);
    expect_close(got->mean_a, expected->mean_a, expected->max_a);
    expect_close(got->mean_b, expected->mean_b, expected->max_b);
    expect_close(got->cosine, expected->cosine, 1);
    expect_close(got->snr_db, expected->snr_db, 100);
}

/* Kernels that refuse every block, so that all of it is done with care. */
static void refuse(const struct marey__block_pair *pair, struct marey__block_diff *out)
{
    (void)pair;
    *out = (struct marey__block_diff){.max_d = NAN};
}

static bool never_equal(const struct marey__block_pair *pair, struct marey__block_diff *out)
{
    (void)pair;
    (void)out;
    return false;
}

static bool refuse_stats(const void *from, size_t n, struct marey__block_stats *out, uint64_t *counts)
{
    (void)from;
    (void)n;
    (void)out;
    (void)counts;
    return false;
}

#define REFUSE                                                                                     \
    {                                                                                              \
        .compare = {refuse, refuse}, .equal = never_equal, .stats = refuse_stats                   \
    }
static const struct marey__kernels careful = {
    .name = "careful",
    .floats = {REFUSE, REFUSE, REFUSE, REFUSE, REFUSE},
};

static struct marey_tensor_diff compare(const struct marey_tensor *a, const struct marey_tensor *b,
                                        struct marey_tolerance tolerance, uint32_t n_threads)
{
    struct marey_tensor_diff diff;
    memset(&diff, 0, sizeof diff);
    assert_int_equal(marey_tensor_compare_with(a, b, &tolerance, n_threads, &diff), MAREY_OK);
    return diff;
}

static void try_levels(const struct marey_tensor *a, const struct marey_tensor *b,
                       struct marey_tolerance tolerance)
{
    marey__kernels_use(&careful);
    const struct marey_tensor_diff expected = compare(a, b, tolerance, 1);
    for (size_t i = 0; i < MAREY__COUNT_OF(levels); i++) {
        if (!marey__kernels_force(levels[i])) {
            print_message("[   LESS   ] this processor has no %s\n", levels[i]);
            continue;
        }
        const struct marey_tensor_diff got = compare(a, b, tolerance, 1);
        expect_same(&got, &expected);
        const struct marey_tensor_diff threads = compare(a, b, tolerance, 3);
        assert_memory_equal(&threads, &got, sizeof got);
    }
    (void)marey__kernels_force(NULL);
}

static struct marey_tensor_stats stats_of(const struct marey_tensor *t)
{
    struct marey_tensor_stats stats;
    memset(&stats, 0, sizeof stats);
    assert_int_equal(marey_tensor_stats_get(t, &stats), MAREY_OK);
    return stats;
}

static void try_stats(const struct marey_tensor *t)
{
    marey__kernels_use(&careful);
    const struct marey_tensor_stats expected = stats_of(t);
    for (size_t i = 0; i < MAREY__COUNT_OF(levels); i++) {
        if (!marey__kernels_force(levels[i]))
            continue;
        const struct marey_tensor_stats got = stats_of(t);
        assert_int_equal(got.n, expected.n);
        assert_int_equal(got.n_nan, expected.n_nan);
        assert_int_equal(got.n_pos_inf, expected.n_pos_inf);
        assert_int_equal(got.n_neg_inf, expected.n_neg_inf);
        assert_int_equal(got.n_zero, expected.n_zero);
        assert_int_equal(got.n_denormal, expected.n_denormal);
        assert_int_equal(got.n_negative, expected.n_negative);
        assert_memory_equal(got.histogram, expected.histogram, sizeof got.histogram);
        expect_close(got.min, expected.min, 0);
        expect_close(got.max, expected.max, 0);
        expect_close(got.mean, expected.mean, fabs(expected.mean) + expected.std);
        expect_close(got.std, expected.std, fabs(expected.mean) + expected.std);
        expect_close(got.l2, expected.l2, expected.l2);
    }
    (void)marey__kernels_force(NULL);
}

static void try_type(enum marey_dtype dtype, enum flavour flavour, int64_t n, size_t shift)
{
    const struct marey__dtype *type = marey__dtype_get(dtype);
    const size_t size = (size_t)n * type->size;
    /* From an odd address too: files are mapped as they are. */
    unsigned char *a = malloc(size + 8), *b = malloc(size + 8);
    unsigned char *aligned_a = malloc(size + 8), *aligned_b = malloc(size + 8);
    assert_true(a != NULL && b != NULL && aligned_a != NULL && aligned_b != NULL);
    fill(type, flavour, (size_t)n, aligned_a, aligned_b);
    memcpy(a + shift, aligned_a, size);
    memcpy(b + shift, aligned_b, size);
    const struct marey_tensor ta = {.data = a + shift, .dtype = dtype, .rank = 1, .sizes = &n};
    const struct marey_tensor tb = {.data = b + shift, .dtype = dtype, .rank = 1, .sizes = &n};
    try_stats(&ta);
    try_stats(&tb);
    try_levels(&ta, &tb, marey_tolerance_default(dtype, dtype));
    try_levels(&ta, &tb, (struct marey_tolerance){.rel = 5e-4});
    try_levels(&ta, &tb, (struct marey_tolerance){.abs = 1e-4, .ulp = 3, .nan_equal = 1});
    try_levels(&ta, &tb, (struct marey_tolerance){.bitwise = 1});
    free(a);
    free(b);
    free(aligned_a);
    free(aligned_b);
}

static void kernels_of_every_level_agree_with_the_careful_code(void **state)
{
    (void)state;
    if (getenv("MAREY_VALGRIND") != NULL)
        skip(); /* its long double has 64 bits, too few for sums of squares */
    static const enum marey_dtype types[] = {
        MAREY_F32,         MAREY_F64,        MAREY_F16,       MAREY_BF16,    MAREY_C32,
        MAREY_C64,         MAREY_C128,       MAREY_F8_E4M3FN, MAREY_F8_E5M2, MAREY_F8_E4M3FNUZ,
        MAREY_F8_E5M2FNUZ, MAREY_F8_E8M0FNU, MAREY_F4_E2M1X2};
    static const int64_t counts[] = {1, 7, 16, 4096, 9999};
    for (size_t t = 0; t < MAREY__COUNT_OF(types); t++)
        for (int flavour = 0; flavour < N_FLAVOURS; flavour++)
            for (size_t c = 0; c < MAREY__COUNT_OF(counts); c++)
                try_type(types[t], (enum flavour)flavour, counts[c], c % 2);
}

/* Two types: the common one is float32, float64 or none, and `b` is a rounded `a`. */
static void kernels_agree_on_pairs_of_types_too(void **state)
{
    (void)state;
    if (getenv("MAREY_VALGRIND") != NULL)
        skip();
    static const enum marey_dtype types[] = {MAREY_F32,  MAREY_F64,       MAREY_F16,
                                             MAREY_BF16, MAREY_F8_E4M3FN, MAREY_F8_E8M0FNU,
                                             MAREY_I8,   MAREY_I32,       MAREY_I64};
    enum { N = 9999 };
    static uint64_t a[N], b[N];
    const int64_t n = N;
    for (size_t t = 0; t < MAREY__COUNT_OF(types); t++)
        for (size_t u = 0; u < MAREY__COUNT_OF(types); u++) {
            const struct marey_tensor ta = {.data = a, .dtype = types[t], .rank = 1, .sizes = &n};
            const struct marey_tensor tb = {.data = b, .dtype = types[u], .rank = 1, .sizes = &n};
            for (size_t i = 0; i < N; i++) {
                const double x = first_number(NOISE);
                a[i] = b[i] = (uint64_t)(int64_t)(x * 100);
                if (marey__dtype_get(types[t])->kind == MAREY__IS_FLOAT)
                    put(types[t], a, i, x);
                if (marey__dtype_get(types[u])->kind == MAREY__IS_FLOAT)
                    put(types[u], b, i, i % 7 == 0 ? 0 : x);
            }
            try_levels(&ta, &tb, marey_tolerance_default(types[t], types[u]));
            try_levels(&ta, &tb, (struct marey_tolerance){.abs = 1e-4, .ulp = 3, .nan_equal = 1});
        }
}

static void statistics_of_integers_agree_too(void **state)
{
    (void)state;
    static const enum marey_dtype types[] = {MAREY_BOOL, MAREY_U8,   MAREY_I8,  MAREY_U16,
                                             MAREY_I16,  MAREY_U32,  MAREY_I32, MAREY_U64,
                                             MAREY_I64,  MAREY_I4X2, MAREY_U4X2};
    const int64_t n = 5001;
    uint64_t data[5001];
    for (size_t i = 0; i < MAREY__COUNT_OF(data); i++)
        data[i] = random_bits() >> random_bits() % 64;
    for (size_t i = 0; i < MAREY__COUNT_OF(types); i++) {
        const struct marey_tensor t = {.data = data, .dtype = types[i], .rank = 1, .sizes = &n};
        try_stats(&t);
    }
}

/* Bytes of many blocks and of few, whole and gathered. */
static void digests_are_the_same_on_every_level(void **state)
{
    (void)state;
    if (marey__kernels_get()->hash == NULL)
        skip(); /* a build without xxHash */
    static unsigned char bytes[3 << 20];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)random_bits();
    static const int64_t counts[] = {0,   1,    3,      17,      200,           239,
                                     241, 1000, 100000, 1 << 20, (1 << 20) + 1, 3 << 20};
    for (size_t c = 0; c < MAREY__COUNT_OF(counts); c++) {
        const int64_t sizes[] = {counts[c] / 2, 2}, strides[] = {1, counts[c] / 2};
        const struct marey_tensor whole = {
            .data = bytes, .dtype = MAREY_U8, .rank = 1, .sizes = &counts[c]};
        const struct marey_tensor turned = {
            .data = bytes, .dtype = MAREY_U8, .rank = 2, .sizes = sizes, .strides = strides};
        struct marey_digest expected[2] = {{{0}}}, got[2];
        for (size_t i = 0; i < MAREY__COUNT_OF(levels); i++) {
            if (!marey__kernels_force(levels[i]))
                continue;
            assert_int_equal(marey_tensor_digest(&whole, &got[0], NULL), MAREY_OK);
            assert_int_equal(marey_tensor_digest(&turned, &got[1], NULL), MAREY_OK);
            if (i > 0)
                assert_memory_equal(got, expected, sizeof got);
            memcpy(expected, got, sizeof got);
        }
    }
    (void)marey__kernels_force(NULL);
}

static void any_number_of_threads_gives_the_same_digits(void **state)
{
    (void)state;
    const int64_t n = 3 * 64 * 4096 + 777;
    float *a = malloc((size_t)n * sizeof *a), *b = malloc((size_t)n * sizeof *b);
    assert_true(a != NULL && b != NULL);
    fill(marey__dtype_get(MAREY_F32), NOISE, (size_t)n, a, b);
    const struct marey_tensor ta = {.data = a, .dtype = MAREY_F32, .rank = 1, .sizes = &n};
    const struct marey_tensor tb = {.data = b, .dtype = MAREY_F32, .rank = 1, .sizes = &n};
    const struct marey_tensor_diff one = compare(&ta, &tb, (struct marey_tolerance){.rel = 1e-4}, 1);
    for (uint32_t threads = 0; threads < 9; threads++) {
        const struct marey_tensor_diff many =
            compare(&ta, &tb, (struct marey_tolerance){.rel = 1e-4}, threads);
        assert_memory_equal(&many, &one, sizeof one);
    }
    free(a);
    free(b);
}

static void a_forced_level_is_one_that_exists(void **state)
{
    (void)state;
    assert_false(marey__kernels_force("abacus"));
    assert_true(marey__kernels_force("plain"));
    assert_string_equal(marey__kernels_get()->name, "plain");
    assert_true(marey__kernels_force(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_of_every_level_agree_with_the_careful_code),
        cmocka_unit_test(kernels_agree_on_pairs_of_types_too),
        cmocka_unit_test(statistics_of_integers_agree_too),
        cmocka_unit_test(digests_are_the_same_on_every_level),
        cmocka_unit_test(any_number_of_threads_gives_the_same_digits),
        cmocka_unit_test(a_forced_level_is_one_that_exists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
