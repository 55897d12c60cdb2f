/* The sweep against a count of every nanosecond, the sort it stands on, and unions of intervals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/device/internal.h"

enum { N_CASES = 4000, MAX_TIME = 200, MAX_WORK = 40, MAX_WINDOWS = 6 };

/* Numbers that are the same in every run. */
static uint64_t state_of_random = 88172645463325252u;

static uint64_t random_below(uint64_t n)
{
    state_of_random ^= state_of_random << 13;
    state_of_random ^= state_of_random >> 7;
    state_of_random ^= state_of_random << 17;
    return state_of_random % n;
}

struct item {
    uint64_t begin, end;
    uint8_t class;
};

struct example {
    struct item items[2 * MAX_WORK];
    size_t n;
    struct marey__interval windows[MAX_WINDOWS];
    size_t n_windows;
};

static bool item_is_before(const void *a, const void *b)
{
    return ((const struct item *)a)->begin < ((const struct item *)b)->begin;
}

static struct marey__atoms sweep(const struct example *e)
{
    struct item items[2 * MAX_WORK];
    memcpy(items, e->items, sizeof items);
    assert_true(marey__sort_runs(items, e->n, sizeof items[0], item_is_before));
    struct marey__sweep s;
    marey__sweep_begin(&s, e->windows, e->n_windows);
    for (size_t i = 0; i < e->n; i++)
        marey__sweep_add(&s, items[i].begin, items[i].end, items[i].class);
    marey__sweep_finish(&s);
    return s.atoms;
}

/* One nanosecond after the other. */
static struct marey__atoms count(const struct example *e)
{
    struct marey__atoms atoms = {0};
    bool is_seen[2 * MAX_WORK] = {false};
    for (size_t w = 0; w < e->n_windows; w++)
        for (uint64_t t = e->windows[w].begin_ns; t < e->windows[w].end_ns; t++) {
            unsigned mask = 0;
            for (size_t i = 0; i < e->n; i++) {
                const struct item *item = &e->items[i];
                if (item->class == 0 || t < item->begin || t >= item->end)
                    continue;
                mask |= item->class;
                atoms.sum_of_durations_ns++;
                is_seen[i] = true;
            }
            atoms.ns[mask]++;
        }
    for (size_t i = 0; i < e->n; i++)
        atoms.n_work += is_seen[i];
    return atoms;
}

static void make_example(struct example *e)
{
    static const uint8_t classes[] = {MAREY__COMPUTES, MAREY__COMMUNICATES, MAREY__COPIES,
                                      MAREY__IGNORED};
    *e = (struct example){.n = random_below(MAX_WORK + 1),
                          .n_windows = random_below(MAX_WINDOWS + 1)};
    const uint64_t longest = 1 + random_below(MAX_TIME / 2);
    for (size_t i = 0; i < e->n; i++) {
        e->items[i].begin = random_below(MAX_TIME);
        e->items[i].end = e->items[i].begin + random_below(longest + 1);
        e->items[i].class = classes[random_below(MAREY__COUNT_OF(classes))];
    }
    for (size_t i = 0; i < e->n_windows; i++) {
        e->windows[i].begin_ns = random_below(MAX_TIME);
        e->windows[i].end_ns = e->windows[i].begin_ns + random_below(MAX_TIME / 2);
    }
    assert_true(marey__intervals_unite(e->windows, &e->n_windows));
}

static uint64_t whole(const struct marey__atoms *atoms)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < MAREY__N_ATOMS; i++)
        sum += atoms->ns[i];
    return sum;
}

static void every_nanosecond_is_in_the_atom_that_a_count_finds(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_CASES; i++) {
        struct example e;
        make_example(&e);
        const struct marey__atoms swept = sweep(&e), counted = count(&e);
        assert_memory_equal(&swept, &counted, sizeof swept);
    }
}

static void the_parts_add_up_to_the_window(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_CASES; i++) {
        struct example e;
        make_example(&e);
        const struct marey__atoms a = sweep(&e);
        const uint64_t span = marey__intervals_length(e.windows, e.n_windows);
        assert_int_equal(whole(&a), span);
        assert_int_equal(marey__computing_ns(&a) + marey__exposed_comm_ns(&a) +
                             marey__exposed_mem_ns(&a) + a.ns[0],
                         span);
    }
}

static void shuffle(struct example *e)
{
    for (size_t i = e->n; i > 1; i--) {
        const size_t other = random_below(i);
        const struct item item = e->items[i - 1];
        e->items[i - 1] = e->items[other];
        e->items[other] = item;
    }
}

/* Each event once more, or cut in two that touch. */
static void double_or_split(struct example *e, bool splits)
{
    const size_t n = e->n;
    for (size_t i = 0; i < n; i++) {
        struct item *item = &e->items[i], *other = &e->items[e->n];
        *other = *item;
        if (splits && item->end <= item->begin + 1)
            continue;
        if (splits)
            item->end = other->begin = item->begin + 1 + random_below(item->end - item->begin - 1);
        e->n++;
    }
}

static void order_splits_and_doubles_change_no_union(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_CASES; i++) {
        struct example e;
        make_example(&e);
        const struct marey__atoms before = sweep(&e);
        shuffle(&e);
        const struct marey__atoms shuffled = sweep(&e);
        assert_memory_equal(&before, &shuffled, sizeof before);
        double_or_split(&e, i % 2 == 0);
        shuffle(&e);
        const struct marey__atoms after = sweep(&e);
        assert_memory_equal(before.ns, after.ns, sizeof before.ns);
        assert_int_equal(after.sum_of_durations_ns,
                         before.sum_of_durations_ns * (i % 2 == 0 ? 1 : 2));
    }
}

/* Far from zero nothing is different. */
static void a_later_clock_changes_nothing(void **state)
{
    (void)state;
    const uint64_t offset = UINT64_C(1712195495505582988);
    for (size_t i = 0; i < 200; i++) {
        struct example e;
        make_example(&e);
        const struct marey__atoms before = sweep(&e);
        for (size_t w = 0; w < e.n_windows; w++) {
            e.windows[w].begin_ns += offset;
            e.windows[w].end_ns += offset;
        }
        for (size_t k = 0; k < e.n; k++) {
            e.items[k].begin += offset;
            e.items[k].end += offset;
        }
        const struct marey__atoms after = sweep(&e);
        assert_memory_equal(&before, &after, sizeof before);
    }
}

static void unions_are_what_a_count_finds(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_CASES; i++) {
        struct marey__interval intervals[MAX_WORK];
        bool is_in[2 * MAX_TIME] = {false};
        size_t n = random_below(MAX_WORK + 1);
        for (size_t k = 0; k < n; k++) {
            intervals[k].begin_ns = random_below(MAX_TIME);
            intervals[k].end_ns = intervals[k].begin_ns + random_below(20);
            for (uint64_t t = intervals[k].begin_ns; t < intervals[k].end_ns; t++)
                is_in[t] = true;
        }
        assert_true(marey__intervals_unite(intervals, &n));
        uint64_t length = 0;
        for (size_t t = 0; t < MAREY__COUNT_OF(is_in); t++)
            length += is_in[t];
        assert_int_equal(marey__intervals_length(intervals, n), length);
        for (size_t k = 1; k < n; k++)
            assert_true(intervals[k - 1].end_ns < intervals[k].begin_ns);
    }
}

/* ---- the sort ---- */

struct numbered {
    uint32_t key, number;
};

static bool key_is_less(const void *a, const void *b)
{
    return ((const struct numbered *)a)->key < ((const struct numbered *)b)->key;
}

static void the_sort_is_stable_for_any_input(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 300; n++) {
        struct numbered list[300];
        const uint64_t n_keys = 1 + random_below(n + 1), run = 1 + random_below(50);
        for (uint32_t i = 0; i < n; i++)
            list[i] = (struct numbered){(uint32_t)(n % 2 == 0 ? random_below(n_keys) : i % run), i};
        assert_true(marey__sort_runs(list, n, sizeof list[0], key_is_less));
        for (uint32_t i = 1; i < n; i++) {
            assert_true(list[i - 1].key <= list[i].key);
            if (list[i - 1].key == list[i].key)
                assert_true(list[i - 1].number < list[i].number);
        }
    }
}

static void a_sort_without_memory_moves_nothing(void **state)
{
    (void)state;
    uint64_t list[] = {3, 1, 2};
    marey__alloc_fail_nth(1);
    assert_false(marey__sort_runs(list, 3, sizeof list[0], key_is_less));
    marey__alloc_fail_nth(0);
    assert_int_equal(list[0], 3);
    assert_int_equal(list[2], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_nanosecond_is_in_the_atom_that_a_count_finds),
        cmocka_unit_test(the_parts_add_up_to_the_window),
        cmocka_unit_test(order_splits_and_doubles_change_no_union),
        cmocka_unit_test(a_later_clock_changes_nothing),
        cmocka_unit_test(unions_are_what_a_count_finds),
        cmocka_unit_test(the_sort_is_stable_for_any_input),
        cmocka_unit_test(a_sort_without_memory_moves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
