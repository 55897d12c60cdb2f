/* Deflate streams and base64, decompressed by an independent reader written from RFC 1951. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "codec/internal.h"

/* ---- a reader of deflate, small and slow ---- */

struct reader {
    const uint8_t *bytes;
    size_t n, at; /* bits */
    struct marey__buf out;
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
        const uint32_t again = s < 16    ? 1
                               : s == 16 ? 3 + bits(r, 2)
                               : s == 17 ? 3 + bits(r, 3)
                                         : 11 + bits(r, 7);
        const uint8_t length = s < 16 ? (uint8_t)s : s == 16 ? lengths[i - 1] : 0;
        assert_true(i + again <= n_literals + n_distances);
        memset(lengths + i, length, again);
        i += again;
    }
    make_tree(literals, lengths, n_literals);
    make_tree(distances, lengths + n_literals, n_distances);
    assert_true(is_complete(literals));
}

static void fixed_lengths(struct tree *literals, struct tree *distances)
{
    uint8_t lengths[288];
    memset(lengths, 8, sizeof lengths);
    memset(lengths + 144, 9, 256 - 144);
    memset(lengths + 256, 7, 280 - 256);
    make_tree(literals, lengths, sizeof lengths);
    memset(lengths, 5, 30);
    make_tree(distances, lengths, 30);
}

/* How long a copy is: four symbols for each number of further bits, but for the first eight and the last. */
static size_t copy_length(struct reader *r, uint32_t s)
{
    if (s == 285)
        return 258;
    const uint32_t i = s - 257, n_bits = i < 8 ? 0 : i / 4 - 1;
    return 3 + (i < 8 ? i : (4 + i % 4) << n_bits) + bits(r, n_bits);
}

static size_t copy_distance(struct reader *r, uint32_t s)
{
    const uint32_t n_bits = s < 4 ? 0 : s / 2 - 1;
    return 1 + (s < 4 ? s : (2 + s % 2) << n_bits) + bits(r, n_bits);
}

static void read_coded(struct reader *r, const struct tree *literals, const struct tree *distances)
{
    for (uint32_t s; (s = symbol(r, literals)) != 256;) {
        uint8_t byte = (uint8_t)s;
        const size_t n = s < 256 ? 0 : copy_length(r, s);
        const size_t back = s < 256 ? 0 : copy_distance(r, symbol(r, distances));
        assert_true(back <= r->out.len);
        if (s < 256)
            marey__buf_put(&r->out, &byte, 1);
        for (size_t i = 0; i < n; i++) {
            byte = (uint8_t)r->out.data[r->out.len - back];
            marey__buf_put(&r->out, &byte, 1);
        }
    }
}

static void read_stored(struct reader *r)
{
    r->at = (r->at + 7) / 8 * 8;
    const uint32_t n = bits(r, 16);
    assert_int_equal(bits(r, 16), n ^ 0xffff);
    marey__buf_put(&r->out, r->bytes + r->at / 8, n);
    r->at += 8 * (size_t)n;
}

static void read_stream(struct reader *r)
{
    for (bool is_last = false; !is_last;) {
        is_last = bits(r, 1);
        const uint32_t kind = bits(r, 2);
        struct tree literals, distances;
        assert_true(kind < 3);
        if (kind == 0) {
            read_stored(r);
            continue;
        }
        if (kind == 1)
            fixed_lengths(&literals, &distances);
        else
            read_lengths(r, &literals, &distances);
        read_coded(r, &literals, &distances);
    }
    assert_int_equal((r->at + 7) / 8, r->n);
}

/* ---- there and back ---- */

/* Packed is what has become of these bytes; returns how long that is. */
static size_t expect_unpacked(struct marey__buf packed, const uint8_t *bytes, size_t n)
{
    assert_false(packed.failed);
    struct reader r = {.bytes = (const uint8_t *)packed.data, .n = packed.len};
    read_stream(&r);
    assert_int_equal(r.out.len, n);
    if (n != 0)
        assert_memory_equal(r.out.data, bytes, n);
    const size_t packed_len = packed.len;
    marey__buf_fini(&packed);
    marey__buf_fini(&r.out);
    return packed_len;
}

static size_t expect_same(const uint8_t *bytes, size_t n)
{
    struct marey__buf packed = {0};
    struct marey__deflate stream = {.out = &packed};
    marey__deflate_bytes(&stream, bytes, n);
    marey__deflate_finish(&stream);
    return expect_unpacked(packed, bytes, n);
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

static void texts_come_back(void **state)
{
    (void)state;
    struct marey__buf text = {0};
    uint32_t seed = 1;
    for (size_t i = 0; i < 60000; i++) {
        if (i % 6000 == 0 || i < 3) {
            struct marey__buf packed = {0};
            marey__deflate_all(&packed, text.data, text.len, MAREY__DEFLATE_SMALL);
            const size_t n = expect_unpacked(packed, (const uint8_t *)text.data, text.len);
            assert_true(i < 6000 || n < text.len * 30 / 100);
        }
        marey__buf_printf(&text, "[\"layer %u.attention\",\"\",\"model.py\",%u,0],",
                          next_random(&seed) % 100000, next_random(&seed) % 100);
    }
    marey__buf_fini(&text);
}

static void pieces_are_one_stream(void **state)
{
    (void)state;
    struct marey__buf text = {0}, packed = {0};
    uint32_t seed = 1;
    while (text.len < 300000)
        marey__buf_printf(&text, "{\"ph\": \"X\", \"ts\": %u}, ", next_random(&seed));
    marey__deflater *deflater = marey__deflater_create(MAREY__DEFLATE_SMALL);
    assert_non_null(deflater);
    for (size_t at = 0, n; at < text.len; at += n) {
        n = MAREY__MIN(next_random(&seed) % 50000, text.len - at);
        marey__deflater_put(deflater, &packed, text.data + at, n, false);
    }
    marey__deflater_put(deflater, &packed, "", 0, true);
    marey__deflater_destroy(deflater);
    expect_unpacked(packed, (const uint8_t *)text.data, text.len);
    marey__buf_fini(&text);
}

/* ---- files ---- */

/* A file of these bytes, open; its path in `path`. */
static int make_file(const void *bytes, size_t n, char path[64])
{
    snprintf(path, 64, "/tmp/marey-test-gzip-XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && marey__write_all(fd, bytes, n));
    return fd;
}

/* Packed, the file is read as these bytes again. */
static void expect_packed(const char *path, const void *bytes, size_t n)
{
    char into[64];
    const int fd = make_file("", 0, into);
    assert_int_equal(marey__gzip_file(path, fd, NULL, NULL), MAREY_OK);
    close(fd);
    marey__byte_source *source;
    struct marey__buf found = {0};
    assert_int_equal(marey__bytes_open(into, &source), MAREY_OK);
    const char *piece;
    size_t len;
    while (marey__bytes_next(source, &piece, &len) == MAREY_OK && len > 0)
        marey__buf_put(&found, piece, len);
    assert_null(marey__bytes_damage(source));
    assert_int_equal(found.len, n);
    assert_true(n == 0 || memcmp(found.data, bytes, n) == 0);
    marey__bytes_close(source);
    marey__buf_fini(&found);
    unlink(into);
}

static void files_are_packed_and_come_back(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 100, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20};
    char *bytes = malloc(3 << 20), path[64];
    uint32_t seed = 1;
    for (size_t i = 0; i < 3 << 20; i++)
        bytes[i] = (char)('a' + next_random(&seed) % 7);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        close(make_file(bytes, sizes[i], path));
        expect_packed(path, bytes, sizes[i]);
        unlink(path);
    }
    free(bytes);
}

static void what_is_packed_already_stays_as_it_is(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0x1f, 0x8b, 8, 0,
                                    1,    2,    3}; /* whether it is whole is not asked */
    char path[64], into[64];
    uint8_t found[16];
    close(make_file(bytes, sizeof bytes, path));
    const int fd = make_file("", 0, into);
    assert_int_equal(marey__gzip_file(path, fd, NULL, NULL), MAREY_OK);
    assert_int_equal(pread(fd, found, sizeof found, 0), sizeof bytes);
    assert_memory_equal(found, bytes, sizeof bytes);
    close(fd);
    unlink(path);
    unlink(into);
}

static void packing_fails_with_a_sentence(void **state)
{
    (void)state;
    char path[64];
    const int fd = make_file("text", 4, path);
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        marey__alloc_fail_nth(nth);
        status = marey__gzip_file(path, fd, NULL, NULL);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
        assert_true(nth < 100);
    }
    close(fd);
    const int full = open("/dev/full", O_WRONLY);
    assert_int_equal(marey__gzip_file(path, full, NULL, NULL), MAREY_EIO);
    close(full);
    unlink(path);
    assert_int_equal(marey__gzip_file(path, fd, NULL, NULL), MAREY_EIO);
    assert_non_null(strstr(marey_last_error(), "cannot open"));
    assert_int_equal(marey__gzip_file("/", fd, NULL, NULL), MAREY_EIO);
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
    for (size_t i = 0; i < MAREY__COUNT_OF(pairs); i++) {
        struct marey__buf text = {0};
        marey__base64_put(&text, (const uint8_t *)pairs[i][0], strlen(pairs[i][0]));
        marey__buf_put(&text, "", 1);
        assert_string_equal(text.data, pairs[i][1]);
        marey__buf_fini(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_every_sort_come_back),
        cmocka_unit_test(noise_is_stored_and_runs_are_short),
        cmocka_unit_test(texts_come_back),
        cmocka_unit_test(pieces_are_one_stream),
        cmocka_unit_test(files_are_packed_and_come_back),
        cmocka_unit_test(what_is_packed_already_stays_as_it_is),
        cmocka_unit_test(packing_fails_with_a_sentence),
        cmocka_unit_test(base64_is_as_others_write_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
