/* base/map: elements by their first bytes, numbers by hash, and allocations that fail. */
#include "base/internal.h"
#include "scratch.h"

enum { N_KEYS = 5000 };

struct wide {
    uint32_t a, b, c;
    uint64_t sum;
};

static uint32_t random_number(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* All keys come several times, in another order than their own: each gets one element, numbered by its first. */
static void each_key_has_one_element(void **state)
{
    (void)state;
    struct {
        uint32_t first, second;
        uint64_t n;
    } *items = NULL;
    size_t n = 0, cap = 0;
    uint32_t numbers[N_KEYS] = {0};
    uint64_t counts[N_KEYS] = {0}, random = 1;
    struct marey__key_map map = {0};
    for (int i = 0; i < 4 * N_KEYS; i++) {
        const uint32_t which = random_number(&random) % N_KEYS;
        const uint64_t key = marey__pair_key(which % 7, which / 7 << 20);
        const size_t n_before = n;
        assert_int_equal(MAREY__MAP_FIND(&map, items, key), numbers[which]);
        const uint32_t number = MAREY__MAP_NUMBER(&map, items, n, cap, key);
        assert_int_equal(n, n_before + (numbers[which] == 0));
        assert_int_equal(number, numbers[which] != 0 ? numbers[which] : n);
        assert_int_equal(items[number - 1].first, which % 7);
        assert_int_equal(items[number - 1].second, which / 7 << 20);
        assert_int_equal(items[number - 1].n++, counts[which]++);
        numbers[which] = number;
    }
    free(items);
    marey__key_map_fini(&map);
    assert_null(map.slots);
}

/* A tree's root is in the array and not in the map; a key of twelve bytes is compared to its end. */
static void elements_that_were_not_added_are_not_found(void **state)
{
    (void)state;
    struct wide *items = NULL;
    size_t n = 0, cap = 0;
    struct marey__key_map map = {0};
    uint32_t key[3] = {0, 0, 0};
    assert_true(MAREY__PUSH(items, n, cap, (struct wide){0}));
    assert_int_equal(MAREY__MAP_FIND(&map, items, key), 0);
    assert_int_equal(MAREY__MAP_NUMBER(&map, items, n, cap, key), 2);
    for (uint32_t i = 1; i < 100; i++) {
        key[2] = i;
        assert_int_equal(MAREY__MAP_FIND(&map, items, key), 0);
        assert_int_equal(MAREY__MAP_NUMBER(&map, items, n, cap, key), 2 + i);
        assert_int_equal(items[1 + i].c, i);
        assert_int_equal(items[1 + i].sum, 0);
    }
    free(items);
    marey__key_map_fini(&map);
}

static void a_map_without_memory_stays_as_it_was(void **state)
{
    (void)state;
    struct wide *items = NULL;
    size_t n = 0, cap = 0, n_failed = 0;
    struct marey__key_map map = {0};
    for (uint32_t i = 0; i < 300; i++) {
        const uint32_t key[2] = {i, ~i};
        for (uint64_t nth = 1;; nth++) {
            marey__alloc_fail_nth(nth);
            const uint32_t number = MAREY__MAP_NUMBER(&map, items, n, cap, key);
            marey__alloc_fail_nth(0);
            if (number != 0)
                break;
            n_failed++;
            assert_int_equal(n, i);
            assert_int_equal(MAREY__MAP_FIND(&map, items, key), 0);
        }
        for (uint32_t k = 0; k <= i; k++) {
            const uint32_t known[2] = {k, ~k};
            assert_int_equal(MAREY__MAP_FIND(&map, items, known), k + 1);
        }
    }
    assert_true(n_failed > 10);
    free(items);
    marey__key_map_fini(&map);
}

static void an_index_gives_all_numbers_of_a_hash(void **state)
{
    (void)state;
    struct marey__index index = {0};
    uint8_t seen[1001];
    for (uint32_t i = 1; i <= 1000; i++) {
        marey__alloc_fail_nth(1);
        if (!marey__index_put(&index, i % 50, i)) {
            marey__alloc_fail_nth(0);
            assert_true(marey__index_put(&index, i % 50, i));
        }
        marey__alloc_fail_nth(0);
    }
    for (uint32_t hash = 0; hash < 60; hash++) {
        size_t at = hash, n = 0;
        memset(seen, 0, sizeof seen);
        for (uint32_t number; (number = marey__index_next(&index, hash, &at)) != 0; n++) {
            assert_int_equal(number % 50, hash);
            assert_int_equal(seen[number]++, 0);
        }
        assert_int_equal(n, hash < 50 ? 20 : 0);
    }
    marey__index_fini(&index);
    size_t at = 7;
    assert_int_equal(marey__index_next(&index, 7, &at), 0);
}

/* Each byte and the length count, from any address. */
static void hashes_see_each_byte(void **state)
{
    (void)state;
    char text[41], moved[42];
    memset(text, 'x', sizeof text);
    for (size_t len = 0; len < sizeof text; len++) {
        const uint64_t hash = marey__hash_bytes(5, text, len);
        memcpy(moved + 1, text, len);
        assert_true(hash == marey__hash_bytes(5, moved + 1, len));
        assert_true(hash != marey__hash_bytes(6, text, len));
        assert_true(hash != marey__hash_bytes(5, text, len + 1));
        for (size_t i = 0; i < len; i++) {
            text[i] = 'y';
            assert_true(hash != marey__hash_bytes(5, text, len));
            text[i] = 'x';
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_key_has_one_element),
        cmocka_unit_test(elements_that_were_not_added_are_not_found),
        cmocka_unit_test(a_map_without_memory_stays_as_it_was),
        cmocka_unit_test(an_index_gives_all_numbers_of_a_hash),
        cmocka_unit_test(hashes_see_each_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
