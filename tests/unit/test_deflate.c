/* Deflate streams and base64: what is packed is found again by a reader written from RFC 1951 alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "codec/deflate.h"

/* ---- a reader of deflate, small and slow ---- */

struct reader {
    const uint8_t *bytes;
    size_t n, at; /* bits */
    struct kymo__buf out;
};

struct tree {
    uint32_t n_of[16];
    uint16_t symbols[320];
};

static uint32_t bits(struct reader *r, uint32_t n)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < n; i++, r->at++) {
        assert_true(r->at < r->n * 8);
        value |= (uint32_t)((r->bytes[r->at / 8] >> (r->at % 8)) & 1) << i;
    }
    return value;
}

static void make_tree(struct tree *tree, const uint8_t *lengths, size_t n)
{
    uint32_t next[16] = {0};
    memset(tree, 0, sizeof *tree);
    for (size_t i = 0; i < n; i++)
        tree->n_of[lengths[i]]++;
    tree->n_of[0] = 0;
    for (size_t l = 1; l < 15; l++)
        next[l + 1] = next[l] + tree->n_of[l];
    for (size_t i = 0; i < n; i++)
        if (lengths[i] != 0)
            tree->symbols[next[lengths[i]]++] = (uint16_t)i;
}

/* Whether every code is used, which browsers insist on. */
static bool is_complete(const struct tree *tree)
{
    uint32_t left = 1;
    for (size_t l = 1; l < 16; l++)
        left = 2 * left - tree->n_of[l];
    return left == 0;
}

static uint32_t symbol(struct reader *r, const struct tree *tree)
{
    uint32_t code = 0, first = 0, index = 0;
    for (size_t l = 1; l < 16; l++) {
        code |= bits(r, 1);
        if (code - first < tree->n_of[l])
            return tree->symbols[index + code - first];
        index += tree->n_of[l];
        first = (first + tree->n_of[l]) << 1;
        code <<= 1;
    }
    fail_msg("no such code");
    return 0;
}

static void read_lengths(struct reader *r, struct tree *literals, struct tree *distances)
{
    static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[320] = {0};
    struct tree tree;
    const uint32_t n_literals = bits(r, 5) + 257, n_distances = bits(r, 5) + 1, n = bits(r, 4) + 4;
    for (uint32_t i = 0; i < n; i++)
        lengths[order[i]] = (uint8_t)bits(r, 3);
    make_tree(&tree, lengths, 19);
    assert_true(is_complete(&tree));
    memset(lengths, 0, sizeof lengths);
    for (uint32_t i = 0; i < n_literals + n_distances;) {
        const uint32_t s = symbol(r, &tree);
        assert_true(s < 16 || s == 18); /* others are not written */
        if (s == 18)
            i += 11 + bits(r, 7);
        else
            lengths[i++] = (uint8_t)s;
    }
    make_tree(literals, lengths, n_literals);
    make_tree(distances, lengths + n_literals, n_distances);
    assert_true(is_complete(literals));
}

static void read_coded(struct reader *r)
{
    struct tree literals, distances;
    read_lengths(r, &literals, &distances);
    for (uint32_t s; (s = symbol(r, &literals)) != 256;) {
        const uint8_t byte = (uint8_t)s;
        if (s < 256) {
            kymo__buf_put(&r->out, &byte, 1);
            continue;
        }
        assert_true(s <= 264 || s == 285);
        assert_int_equal(symbol(r, &distances), 0);
        const char last = r->out.data[r->out.len - 1];
        for (size_t i = s == 285 ? 258 : s - 254; i > 0; i--)
            kymo__buf_put(&r->out, &last, 1);
    }
}

static void read_stored(struct reader *r)
{
    r->at = (r->at + 7) / 8 * 8;
    const uint32_t n = bits(r, 16);
    assert_int_equal(bits(r, 16), n ^ 0xffff);
    kymo__buf_put(&r->out, r->bytes + r->at / 8, n);
    r->at += 8 * (size_t)n;
}

static void read_stream(struct reader *r)
{
    for (bool is_last = false; !is_last;) {
        is_last = bits(r, 1);
        const uint32_t kind = bits(r, 2);
        if (kind == 0)
            read_stored(r);
        else if (kind == 2)
            read_coded(r);
        else
            assert_int_equal(bits(r, 7), 0); /* of fixed codes: nothing but an end */
    }
    assert_int_equal((r->at + 7) / 8, r->n);
}

/* ---- there and back ---- */

/* Returns how long it is packed. */
static size_t expect_same(const uint8_t *bytes, size_t n)
{
    struct kymo__buf packed = {0};
    struct kymo__deflate stream = {.out = &packed};
    kymo__deflate_bytes(&stream, bytes, n);
    kymo__deflate_finish(&stream);
    assert_false(packed.failed);
    struct reader r = {.bytes = (const uint8_t *)packed.data, .n = packed.len};
    read_stream(&r);
    assert_int_equal(r.out.len, n);
    if (n != 0)
        assert_memory_equal(r.out.data, bytes, n);
    const size_t packed_len = packed.len;
    kymo__buf_fini(&packed);
    kymo__buf_fini(&r.out);
    return packed_len;
}

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    return *state ^= *state << 5;
}

static void bytes_of_every_sort_come_back(void **state)
{
    (void)state;
    enum { MOST = 70000 };
    uint8_t *bytes = calloc(MOST, 1);
    uint32_t seed = 1;
    for (size_t round = 0; round < 300; round++) {
        const size_t n = round < 20 ? round : next_random(&seed) % (round % 10 == 0 ? MOST : 3000);
        const uint32_t n_values = 1 + next_random(&seed) % 256, rare = 1 + next_random(&seed) % 300;
        for (size_t i = 0; i < n; i++)
            bytes[i] = next_random(&seed) % rare == 0 ? (uint8_t)(next_random(&seed) % n_values) : 7;
        expect_same(bytes, n);
    }
    free(bytes);
}

static void noise_is_stored_and_runs_are_short(void **state)
{
    (void)state;
    uint8_t bytes[32768];
    uint32_t seed = 1;
    memset(bytes, 0, sizeof bytes);
    assert_true(expect_same(bytes, sizeof bytes) < 200);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)next_random(&seed);
    assert_true(expect_same(bytes, sizeof bytes) < sizeof bytes + 16);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] &= 15;
    assert_in_range(expect_same(bytes, sizeof bytes), sizeof bytes / 2, sizeof bytes / 2 + 600);
}

static void base64_is_as_others_write_it(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"\xff\xfe\xfd\xfb", "//79+w=="}};
    for (size_t i = 0; i < KYMO__COUNT_OF(pairs); i++) {
        struct kymo__buf text = {0};
        kymo__base64_put(&text, (const uint8_t *)pairs[i][0], strlen(pairs[i][0]));
        kymo__buf_put(&text, "", 1);
        assert_string_equal(text.data, pairs[i][1]);
        kymo__buf_fini(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_every_sort_come_back),
        cmocka_unit_test(noise_is_stored_and_runs_are_short),
        cmocka_unit_test(base64_is_as_others_write_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
