/* The results of several processes as one: what is packed comes back, adds up, and is refused when it is damaged. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "instrument/stopwatch/internal.h"

/* ---- spreads with a known answer ---- */

static double uniform(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return ((double)(*seed >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *seed)
{
    return sqrt(-2 * log(uniform(seed))) * cos(2 * M_PI * uniform(seed));
}

enum { N_DISTRIBUTIONS = 10, N = 20000 };

/* One duration in ticks of a distribution that programs have. */
static uint64_t draw(int distribution, uint64_t *seed)
{
    const double u = uniform(seed);
    switch (distribution) {
    case 0:
        return 1000;
    case 1:
        return (uint64_t)(u * 1e6);
    case 2:
        return (uint64_t)(-log(u) * 5e5);
    case 3:
        return (uint64_t)exp(12 + normal(seed));
    case 4:
        return (uint64_t)fmin(1e4 / pow(u, 0.7), 1e15);
    case 5:
        return u < 0.5 ? 2000 + (uint64_t)(u * 100) : 900000 + (uint64_t)(u * 1000);
    case 6:
        return (uint64_t)(1e7 + 1e5 * normal(seed));
    case 7:
        return (uint64_t)(u * 60);
    case 8:
        return u < 0.97 ? 50000 + (uint64_t)(u * 5000) : (uint64_t)(1e9 * u);
    default:
        return (uint64_t)1 << (10 + (int)(u * 30));
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void add(struct marey__stopwatch_sum *sum, uint64_t value)
{
    assert_true(marey__stopwatch_sum_add(sum, value, 0));
}

static void assert_near(double value, double expected, double share, const char *what, int number)
{
    if (fabs(value - expected) > share * expected + 1e-9)
        fail_msg("%s of %d is %.17g and not %.17g", what, number, value, expected);
}

static void quantiles_are_within_one_percent_on_ten_distributions(void **state)
{
    (void)state;
    static double exact[N];
    static const double asked[] = {0.01, 0.5, 0.9, 0.99, 0.999};
    const double scale = 0.41; /* nanoseconds of a tick */
    for (int d = 0; d < N_DISTRIBUTIONS; d++) {
        struct marey__stopwatch_sum sum = {0};
        struct marey__spread spread;
        uint64_t seed = 88172645463325252u + (uint64_t)d;
        for (int i = 0; i < N; i++) {
            const uint64_t value = draw(d, &seed);
            add(&sum, value);
            exact[i] = (double)value * scale;
        }
        qsort(exact, N, sizeof exact[0], by_value);
        assert_true(marey__spread_of(&sum, 0, scale, &spread));
        assert_int_equal(spread.count, N);
        for (size_t q = 0; q < MAREY__COUNT_OF(asked); q++)
            assert_near(marey__spread_quantile(&spread, asked[q]),
                        exact[(size_t)ceil(asked[q] * N) - 1], 0.01, "a quantile", d);
        marey__spread_fini(&spread);
        marey__stopwatch_sum_clear(&sum);
    }
}

static void merge_of_several_equals_the_one_of_all(void **state)
{
    (void)state;
    enum { PARTS = 7 };
    for (int d = 0; d < N_DISTRIBUTIONS; d++) {
        struct marey__stopwatch_sum all = {0}, parts[PARTS] = {0};
        struct marey__spread whole, merged = {0};
        uint64_t seed = 1234567 + (uint64_t)d;
        for (int i = 0; i < N; i++) {
            const uint64_t value = draw(d, &seed);
            add(&all, value);
            add(&parts[i % 13 < 6 ? i % 13 : 6], value);
        }
        assert_true(marey__spread_of(&all, 0, 1, &whole));
        for (int p = 0; p < PARTS; p++) {
            struct marey__spread part;
            assert_true(marey__spread_of(&parts[p], 0, 1, &part));
            assert_true(marey__spread_merge(&merged, &part));
            marey__spread_fini(&part);
            marey__stopwatch_sum_clear(&parts[p]);
        }
        assert_int_equal(merged.count, whole.count);
        assert_int_equal(merged.n, whole.n);
        for (size_t i = 0; i < whole.n; i++) {
            assert_int_equal(merged.points[i].key, whole.points[i].key);
            assert_int_equal(merged.points[i].count, whole.points[i].count);
        }
        assert_near(merged.min, whole.min, 0, "min", d);
        assert_near(merged.max, whole.max, 0, "max", d);
        assert_near(merged.total, whole.total, 1e-12, "total", d);
        assert_near(marey__spread_std(&merged), marey__spread_std(&whole), 1e-6, "std", d);
        marey__spread_fini(&merged);
        marey__spread_fini(&whole);
        marey__stopwatch_sum_clear(&all);
    }
}

static void zeros_count(void **state)
{
    (void)state;
    struct marey__stopwatch_sum sum = {0};
    struct marey__spread spread;
    add(&sum, 100);
    assert_true(marey__spread_of(&sum, 3, 2, &spread));
    assert_int_equal(spread.count, 4);
    assert_near(spread.min, 0, 0, "min", 0);
    assert_near(spread.max, 200, 0, "max", 0);
    assert_near(marey__spread_mean(&spread), 50, 1e-12, "mean", 0);
    assert_near(marey__spread_std(&spread), 100, 1e-9, "std", 0);
    assert_near(marey__spread_quantile(&spread, 0.5), 0, 0, "p50", 0);
    marey__spread_fini(&spread);
    marey__stopwatch_sum_clear(&sum);
}

static void keys_are_in_the_order_of_values(void **state)
{
    (void)state;
    double before = -1;
    for (uint32_t key = 0; key <= MAREY__POINT_MAX_KEY; key += 7) {
        const double value = marey__point_value(key);
        assert_true(value > before);
        assert_int_equal(marey__point_key(value), key);
        before = value;
    }
    assert_int_equal(marey__point_key(0), 0);
    assert_true(marey__point_key(1.8e19) <= MAREY__POINT_MAX_KEY);
}

/* ---- bytes ---- */

static marey_id id_of(const char *name)
{
    return marey_site_intern(name, strlen(name), NULL, 0, NULL, 0);
}

struct packed {
    void *data;
    size_t len;
};

/* What a rank with one name would pack. */
static struct packed pack_some(int64_t rank, const char *name)
{
    const marey_id id = id_of(name);
    struct packed p;
    assert_int_equal(marey_stopwatch_enable(NULL), MAREY_OK);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(marey_stopwatch_start(id), MAREY_OK);
        assert_int_equal(marey_stopwatch_stop(id), MAREY_OK);
        assert_int_equal(marey_stopwatch_finish_iteration(0), MAREY_OK);
    }
    assert_int_equal(marey_stopwatch_pack(rank, &p.data, &p.len), MAREY_OK);
    marey_stopwatch_disable();
    marey_iteration_reset();
    return p;
}

static marey_status try_to_add(const void *data, size_t len)
{
    marey_stopwatch_merged *merged;
    marey_table *table;
    assert_int_equal(marey_stopwatch_merged_create(&merged), MAREY_OK);
    const marey_status status = marey_stopwatch_merged_add(merged, data, len);
    assert_int_equal(marey_stopwatch_merged_table(merged, "ranks", &table), MAREY_OK);
    if (status != MAREY_OK)
        assert_int_equal(marey_table_n_rows(table), 0);
    marey_table_destroy(table);
    marey_stopwatch_merged_destroy(merged);
    return status;
}

static void what_is_packed_comes_back(void **state)
{
    (void)state;
    const struct packed a = pack_some(3, "first"), b = pack_some(5, "second");
    marey_stopwatch_merged *merged;
    marey_table *table;
    assert_int_equal(marey_stopwatch_merged_create(&merged), MAREY_OK);
    assert_int_equal(marey_stopwatch_merged_add(merged, a.data, a.len), MAREY_OK);
    assert_int_equal(marey_stopwatch_merged_add(merged, b.data, b.len), MAREY_OK);
    assert_int_equal(marey_stopwatch_merged_add(merged, a.data, a.len), MAREY_OK);
    assert_int_equal(marey_stopwatch_merged_table(merged, "intervals", &table), MAREY_OK);
    assert_int_equal(marey_table_n_rows(table), 3);
    assert_string_equal(marey_table_cell(table, 1, 0).as.text, "first");
    assert_int_equal(marey_table_cell(table, 1, 1).as.u64, 2);
    assert_int_equal(marey_table_cell(table, 1, 2).as.u64, 80);
    assert_string_equal(marey_table_cell(table, 2, 0).as.text, "second");
    marey_table_destroy(table);
    assert_int_equal(marey_stopwatch_merged_table(merged, "ranks", &table), MAREY_OK);
    assert_int_equal(marey_table_cell(table, 0, 1).as.u64, 3);
    assert_int_equal(marey_table_cell(table, 2, 5).as.i64, 5);
    marey_table_destroy(table);
    assert_int_equal(marey_stopwatch_merged_table(merged, "series", &table), MAREY_EINVAL);
    marey_stopwatch_merged_destroy(merged);
    free(a.data);
    free(b.data);
}

static void every_cut_is_refused_and_every_changed_byte_is_survived(void **state)
{
    (void)state;
    const struct packed p = pack_some(0, "name");
    unsigned char *bytes = p.data;
    assert_int_equal(try_to_add(bytes, p.len), MAREY_OK);
    for (size_t len = 0; len < p.len; len++)
        assert_int_equal(try_to_add(bytes, len), MAREY_EFORMAT);
    for (size_t at = 0; at < p.len; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes[at] ^= (unsigned char)(1u << bit);
            const marey_status status = try_to_add(bytes, p.len);
            assert_true(status == MAREY_OK || status == MAREY_EFORMAT);
            bytes[at] ^= (unsigned char)(1u << bit);
        }
    }
    free(p.data);
}

static void without_memory_nothing_is_half_made(void **state)
{
    (void)state;
    const struct packed p = pack_some(0, "name");
    marey_stopwatch_merged *merged;
    marey_status status = MAREY_ENOMEM;
    for (uint64_t n = 1; status == MAREY_ENOMEM; n++) {
        marey__alloc_fail_nth(n);
        status = marey_stopwatch_merged_create(&merged);
        if (status == MAREY_OK) {
            status = marey_stopwatch_merged_add(merged, p.data, p.len);
            marey__alloc_fail_nth(0);
            marey_stopwatch_merged_destroy(merged);
        }
    }
    marey__alloc_fail_nth(0);
    assert_int_equal(status, MAREY_OK);
    status = MAREY_ENOMEM;
    for (uint64_t n = 1; status == MAREY_ENOMEM; n++) {
        struct packed again;
        marey__alloc_fail_nth(n);
        status = marey_stopwatch_pack(0, &again.data, &again.len);
        marey__alloc_fail_nth(0);
        if (status == MAREY_OK)
            free(again.data);
    }
    assert_int_equal(status, MAREY_OK);
    free(p.data);
}

/* ---- what runs ---- */

static void what_runs_on_this_thread_is_known(void **state)
{
    (void)state;
    const marey_id id = id_of("running");
    assert_false(marey_stopwatch_is_running(id));
    assert_int_equal(marey_stopwatch_enable(NULL), MAREY_OK);
    assert_false(marey_stopwatch_is_running(id));
    assert_int_equal(marey_stopwatch_check_stopped(), MAREY_OK);
    assert_int_equal(marey_stopwatch_start(id), MAREY_OK);
    assert_true(marey_stopwatch_is_running(id));
    assert_int_equal(marey_stopwatch_check_stopped(), MAREY_ESTATE);
    assert_non_null(strstr(marey_last_error(), "running"));
    marey_stopwatch_disable();
    assert_false(marey_stopwatch_is_running(id));
    assert_int_equal(marey_stopwatch_enable(NULL), MAREY_OK);
    assert_false(marey_stopwatch_is_running(id)); /* from an earlier life */
    assert_int_equal(marey_stopwatch_check_stopped(), MAREY_OK);
    marey_stopwatch_disable();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_within_one_percent_on_ten_distributions),
        cmocka_unit_test(merge_of_several_equals_the_one_of_all),
        cmocka_unit_test(zeros_count),
        cmocka_unit_test(keys_are_in_the_order_of_values),
        cmocka_unit_test(what_is_packed_comes_back),
        cmocka_unit_test(every_cut_is_refused_and_every_changed_byte_is_survived),
        cmocka_unit_test(without_memory_nothing_is_half_made),
        cmocka_unit_test(what_runs_on_this_thread_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
