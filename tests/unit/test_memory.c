/* The memory instrument: tables of the hooks, selection of samples, the kernel's figures. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "instrument/memory/internal.h"

/* Addresses as an allocator would give them; nothing is there. */
static const void *block_at(size_t i)
{
    return (const void *)(uintptr_t)(UINT64_C(0x7f0000000000) + 16 * (uint64_t)i);
}

static int setup(void **state)
{
    (void)state;
    assert_true(marey__blocks_open() && marey__memory_queue_open() && marey__places_open());
    marey__blocks_clear();
    while (marey__memory_queue_next() != NULL)
        marey__memory_queue_release();
    return 0;
}

/* ---- tables ---- */

static void blocks_are_found_until_they_are_taken(void **state)
{
    enum { N = 100000 };
    const uint8_t *const marks = marey__blocks_marks();
    (void)state;
    for (size_t i = 0; i < N; i++)
        assert_true(marey__blocks_put(block_at(i), i + 1));
    for (size_t i = 0; i < N; i += 2)
        assert_int_equal(marey__blocks_take(block_at(i)), i + 1);
    for (size_t i = 0; i < N; i++) {
        assert_true(i % 2 == 0 || marey_memory_is_marked(marks, block_at(i)));
        assert_int_equal(marey__blocks_take(block_at(i)), i % 2 == 0 ? 0 : i + 1);
    }
    for (size_t i = 0; i < N; i++)
        assert_false(marey_memory_is_marked(marks, block_at(i)));
}

static void an_address_that_comes_again_has_the_later_number(void **state)
{
    (void)state;
    assert_true(marey__blocks_put(block_at(5), 1));
    assert_true(marey__blocks_put(block_at(5), 2));
    assert_int_equal(marey__blocks_take(block_at(5)), 2);
    assert_int_equal(marey__blocks_take(block_at(5)), 0);
}

static void a_full_table_of_blocks_refuses_and_recovers(void **state)
{
    size_t n = 0;
    (void)state;
    while (marey__blocks_put(block_at(n), n + 1))
        assert_true(++n < 2000000);
    assert_true(n > 500000);
    marey__blocks_clear();
    assert_true(marey__blocks_put(block_at(n), 1));
    assert_int_equal(marey__blocks_take(block_at(0)), 0);
}

static void the_queue_keeps_order_and_tells_when_it_is_full(void **state)
{
    uint64_t ticket, n = 0;
    struct marey__memory_entry *entry;
    (void)state;
    for (int round = 0; round < 3; round++) {
        const uint64_t first = n;
        while ((entry = marey__memory_queue_claim(&ticket)) != NULL) {
            entry->number = n++;
            marey__memory_queue_publish(ticket);
        }
        assert_true(n - first >= 1000);
        assert_true(marey__memory_queue_is_filling());
        for (uint64_t i = first; i < n; i++) {
            assert_int_equal(marey__memory_queue_next()->number, i);
            marey__memory_queue_release();
        }
        assert_null(marey__memory_queue_next());
    }
}

/* ---- samples ---- */

static double weight_of(const struct marey__memory_entry *entry)
{
    return (double)entry->bytes / -expm1(-(double)entry->bytes / (double)entry->interval);
}

/* Sizes from 8 bytes to 100 KiB: the sum of what samples stand for is the sum of all, within five deviations. */
static void samples_stand_for_all_bytes(void **state)
{
    enum { N = 400000, INTERVAL = 64 << 10 };
    struct marey_memory_thread thread = {.random = 12345};
    double all = 0, told = 0, variance = 0;
    size_t n = 0;
    (void)state;
    marey__memory_sample_start(INTERVAL);
    for (size_t i = 0; i < N; i++) {
        const size_t bytes = i % 100 == 0 ? 100 << 10 : 8 + i * 31 % 2000;
        all += (double)bytes;
        if (marey_memory_is_due(&thread, bytes) && marey_memory_wants(&thread, bytes))
            marey_memory_take(&thread, block_at(i), bytes, MAREY_MEMORY_MALLOC, NULL, 0);
        for (const struct marey__memory_entry *entry; (entry = marey__memory_queue_next()) != NULL;
             n++) {
            const double weight = weight_of(entry);
            told += weight;
            variance += weight * (weight - (double)entry->bytes);
            marey__memory_queue_release();
        }
    }
    assert_true(n > 1000 && n < N / 2);
    assert_true(fabs(told - all) < 5 * sqrt(variance));
}

static void an_interval_of_one_tells_every_allocation_and_free(void **state)
{
    struct marey_memory_thread thread = {0};
    struct marey__memory_counts counts;
    (void)state;
    marey__memory_sample_start(1);
    __atomic_fetch_or(&marey_switch[0], MAREY_ON_MEMORY, __ATOMIC_RELAXED);
    for (size_t i = 0; i < 100; i++) {
        assert_true(marey_memory_is_due(&thread, 8) && marey_memory_wants(&thread, 8));
        marey_memory_take(&thread, block_at(i), 8, MAREY_MEMORY_MALLOC, NULL, 0);
        marey_memory_give(block_at(i));
        marey_memory_give(block_at(i)); /* a free of something that is not known says nothing */
    }
    __atomic_fetch_and(&marey_switch[0], ~(uint32_t)MAREY_ON_MEMORY, __ATOMIC_RELAXED);
    marey__memory_counts_get(&counts);
    assert_int_equal(counts.n_reported, 100);
    for (size_t i = 0; i < 200; i++) {
        assert_int_equal(marey__memory_queue_next()->kind,
                         i % 2 == 0 ? MAREY__MEMORY_TAKE : MAREY__MEMORY_GIVE);
        marey__memory_queue_release();
    }
    assert_null(marey__memory_queue_next());
}

static void the_default_interval_doubles_where_too_many_are_reported(void **state)
{
    struct marey_memory_thread thread = {0};
    (void)state;
    marey__memory_sample_start(0);
    assert_int_equal(marey__memory_interval(), MAREY__MEMORY_INTERVAL);
    for (size_t i = 0; i < 3000; i++)
        if (marey_memory_is_due(&thread, 64 << 20) && marey_memory_wants(&thread, 64 << 20))
            marey_memory_take(&thread, block_at(i), 64 << 20, MAREY_MEMORY_MALLOC, NULL, 0);
    marey__memory_adapt(1000000000);
    assert_int_equal(marey__memory_interval(), 2 * MAREY__MEMORY_INTERVAL);
    marey__memory_adapt(1000000000);
    assert_int_equal(marey__memory_interval(), 2 * MAREY__MEMORY_INTERVAL);
}

/* ---- the kernel's figures ---- */

static void files_of_the_kernel_are_read(void **state)
{
    static const char status[] = "Name:\tx\nVmPeak:\t  9 kB\nVmHWM:\t    1234 kB\nThreads:\t1\n";
    static const char groups[] = "12:cpu:/a\n0::/user.slice/b c\n";
    char path[64], small[4];
    (void)state;
    assert_int_equal(marey__memory_status_bytes(status, sizeof status - 1, "VmHWM:"), 1234 << 10);
    assert_int_equal(marey__memory_status_bytes(status, 30, "VmHWM:"), 0);
    assert_int_equal(marey__memory_status_bytes("VmHWM:", 6, "VmHWM:"), 0);
    assert_true(marey__memory_cgroup(groups, sizeof groups - 1, path, sizeof path));
    assert_string_equal(path, "/user.slice/b c");
    assert_false(marey__memory_cgroup(groups, 9, path, sizeof path));
    assert_false(marey__memory_cgroup(groups, sizeof groups - 1, small, sizeof small));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        TEST(blocks_are_found_until_they_are_taken),
        TEST(an_address_that_comes_again_has_the_later_number),
        TEST(a_full_table_of_blocks_refuses_and_recovers),
        TEST(the_queue_keeps_order_and_tells_when_it_is_full),
        TEST(samples_stand_for_all_bytes),
        TEST(an_interval_of_one_tells_every_allocation_and_free),
        TEST(the_default_interval_doubles_where_too_many_are_reported),
        TEST(files_of_the_kernel_are_read),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
