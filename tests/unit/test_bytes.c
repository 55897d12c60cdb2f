/* Bytes of files: plain and gzip, of several members, cut off and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "codec/internal.h"

/* ---- the bytes of a source ---- */

struct taken {
    struct marey__buf bytes;
    marey_status status;
    char damage[512];
};

static void take_all(marey__byte_source *source, struct taken *taken)
{
    const char *bytes;
    size_t len;
    *taken = (struct taken){.status = MAREY_OK};
    while ((taken->status = marey__bytes_next(source, &bytes, &len)) == MAREY_OK && len > 0)
        marey__buf_put(&taken->bytes, bytes, len);
    if (marey__bytes_damage(source) != NULL)
        snprintf(taken->damage, sizeof taken->damage, "%s", marey__bytes_damage(source));
    if (taken->status == MAREY_OK)
        assert_int_equal(marey__bytes_total(source), taken->bytes.len);
}

static struct taken take_memory(const void *bytes, size_t len)
{
    marey__byte_source *source;
    struct taken taken;
    assert_int_equal(marey__bytes_open_memory(bytes, len, &source), MAREY_OK);
    take_all(source, &taken);
    marey__bytes_close(source);
    return taken;
}

static void expect_bytes(const struct taken *taken, const void *bytes, size_t len)
{
    assert_int_equal(taken->status, MAREY_OK);
    assert_int_equal(taken->bytes.len, len);
    if (len > 0)
        assert_memory_equal(taken->bytes.data, bytes, len);
}

/* ---- hand-made gzip: stored blocks ---- */

static uint32_t crc32_of(const uint8_t *bytes, size_t len)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < len; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

static void put_number(struct marey__buf *buf, uint32_t number, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++)
        marey__buf_put(buf, &(char){(char)(number >> 8 * i)}, 1);
}

static void put_content(struct marey__buf *buf, const void *bytes, size_t len)
{
    size_t at = 0;
    do {
        const size_t n = len - at < 65535 ? len - at : 65535;
        put_number(buf, at + n == len, 1);
        put_number(buf, (uint32_t)n, 2);
        put_number(buf, (uint32_t)~n & 0xffff, 2);
        marey__buf_put(buf, (const char *)bytes + at, n);
        at += n;
    } while (at < len);
    put_number(buf, crc32_of(bytes, len), 4);
    put_number(buf, (uint32_t)len, 4);
}

static void put_member(struct marey__buf *buf, const void *bytes, size_t len)
{
    static const char header[10] = {0x1f, (char)0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
    marey__buf_put(buf, header, sizeof header);
    put_content(buf, bytes, len);
}

/* With all that a header can have. Returns the length of the header. */
static size_t put_full_member(struct marey__buf *buf, const void *bytes, size_t len)
{
    static const char header[] = "\x1f\x8b\x08\x1e\0\0\0\0\0\x03\x05\0extra"
                                 "a name\0"
                                 "a comment";
    const uint32_t crc = crc32_of((const uint8_t *)header, sizeof header);
    marey__buf_put(buf, header, sizeof header);
    put_number(buf, crc & 0xffff, 2);
    put_content(buf, bytes, len);
    return sizeof header + 2;
}

static uint8_t *make_noise(size_t len)
{
    uint8_t *bytes = malloc(len);
    uint32_t x = 1;
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
    bytes[0] = '{';
    return bytes;
}

/* ---- a real file, read whole ---- */

static void read_sample(struct marey__buf *buf)
{
    FILE *file = fopen(MAREY_TEST_DATA "/kineto/rank_non_gpu.json.gz", "rb");
    assert_non_null(file);
    char part[65536];
    for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;)
        marey__buf_put(buf, part, n);
    fclose(file);
}

/* ---- plain ---- */

static void plain_bytes_come_as_they_are(void **state)
{
    (void)state;
    static const size_t lens[] = {0, 1, 2, 4096, 256 << 10, (256 << 10) + 1, 1 << 20};
    for (size_t i = 0; i < MAREY__COUNT_OF(lens); i++) {
        uint8_t *bytes = make_noise(lens[i] + 1);
        struct taken taken = take_memory(bytes, lens[i]);
        expect_bytes(&taken, bytes, lens[i]);
        assert_string_equal(taken.damage, "");
        marey__buf_fini(&taken.bytes);
        free(bytes);
    }
}

static void a_file_is_the_same_as_memory(void **state)
{
    (void)state;
    char path[] = "/tmp/marey-bytes-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    uint8_t *noise = make_noise(700000);
    assert_true(marey__write_all(fd, noise, 700000));
    close(fd);
    marey__byte_source *source;
    assert_int_equal(marey__bytes_open(path, &source), MAREY_OK);
    const char *first, *again;
    size_t n_first, n_again;
    assert_int_equal(marey__bytes_peek(source, &first, &n_first), MAREY_OK);
    assert_int_equal(marey__bytes_peek(source, &again, &n_again), MAREY_OK);
    assert_true(n_first >= 4096 && n_first == n_again && first == again);
    assert_memory_equal(first, noise, n_first);
    struct taken taken;
    take_all(source, &taken);
    expect_bytes(&taken, noise, 700000);
    assert_true(marey__bytes_share(source) == 1.0);
    marey__buf_fini(&taken.bytes);
    marey__bytes_close(source);
    unlink(path);
    free(noise);
}

static void what_cannot_be_read_says_so(void **state)
{
    (void)state;
    marey__byte_source *source = NULL;
    assert_int_equal(marey__bytes_open("/nonexistent/file", &source), MAREY_EIO);
    assert_non_null(strstr(marey_last_error(), "/nonexistent/file"));
    assert_int_equal(marey__bytes_open("/", &source), MAREY_EIO);
    assert_non_null(strstr(marey_last_error(), "cannot read /"));
    assert_null(source);
    marey__bytes_close(NULL);
}

static void pieces_can_be_cut(void **state)
{
    (void)state;
    marey__byte_source *source;
    assert_int_equal(marey__bytes_open_memory("hello", 5, &source), MAREY_OK);
    marey__bytes_cut(source, 2);
    const char *bytes;
    size_t len;
    static const size_t lens[] = {2, 2, 1, 0, 0};
    for (size_t i = 0; i < MAREY__COUNT_OF(lens); i++) {
        assert_int_equal(marey__bytes_next(source, &bytes, &len), MAREY_OK);
        assert_int_equal(len, lens[i]);
    }
    marey__bytes_close(source);
}

/* ---- gzip ---- */

static void members_follow_one_another(void **state)
{
    (void)state;
    static const size_t lens[] = {1, 0, 100000, 300000, 256 << 10, 3};
    uint8_t *noise = make_noise(1 << 20);
    struct marey__buf packed = {0}, whole = {0};
    for (size_t i = 0; i < MAREY__COUNT_OF(lens); i++) {
        put_member(&packed, noise + i, lens[i]);
        marey__buf_put(&whole, noise + i, lens[i]);
    }
    struct taken taken = take_memory(packed.data, packed.len);
    expect_bytes(&taken, whole.data, whole.len);
    assert_string_equal(taken.damage, "");
    marey__buf_fini(&taken.bytes);

    put_number(&packed, 0, 4); /* filled up with zeros */
    taken = take_memory(packed.data, packed.len);
    expect_bytes(&taken, whole.data, whole.len);
    assert_string_equal(taken.damage, "");
    marey__buf_fini(&taken.bytes);

    marey__buf_puts(&packed, "other");
    taken = take_memory(packed.data, packed.len);
    expect_bytes(&taken, whole.data, whole.len);
    assert_non_null(strstr(taken.damage, "other bytes after its gzip data"));
    marey__buf_fini(&taken.bytes);
    marey__buf_fini(&packed);
    marey__buf_fini(&whole);
    free(noise);
}

static void small_members_end_at_any_byte(void **state)
{
    (void)state;
    struct marey__buf packed = {0}, whole = {0};
    for (size_t i = 0; i < 40; i++) {
        put_member(&packed, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz", i);
        marey__buf_put(&whole, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz", i);
    }
    struct taken taken = take_memory(packed.data, packed.len);
    expect_bytes(&taken, whole.data, whole.len);
    marey__buf_fini(&taken.bytes);
    marey__buf_fini(&packed);
    marey__buf_fini(&whole);
}

/* The bytes come in pieces of 256 KiB; the first of them ends at each place of a header. */
static void a_header_may_be_cut_by_a_piece(void **state)
{
    (void)state;
    enum { PIECE_BYTES = 256 << 10, MOST_SHIFT = 60 };
    static const size_t n = PIECE_BYTES - 120;
    uint8_t *noise = make_noise(PIECE_BYTES);
    struct marey__buf first = {0};
    put_member(&first, noise, n);
    size_t n_cut = 0;
    for (size_t shift = 0; shift <= MOST_SHIFT; shift++) {
        struct marey__buf packed = {0}, whole = {0};
        marey__buf_put(&packed, first.data, first.len);
        put_member(&packed, noise, shift);
        const size_t begin = packed.len;
        const size_t len = put_full_member(&packed, "and the rest", 12);
        n_cut += begin < PIECE_BYTES && PIECE_BYTES < begin + len;
        marey__buf_put(&whole, noise, n);
        marey__buf_put(&whole, noise, shift);
        marey__buf_puts(&whole, "and the rest");
        struct taken taken = take_memory(packed.data, packed.len);
        assert_string_equal(taken.damage, "");
        expect_bytes(&taken, whole.data, whole.len);
        marey__buf_fini(&taken.bytes);
        marey__buf_fini(&packed);
        marey__buf_fini(&whole);
    }
    assert_int_equal(n_cut, 35);
    marey__buf_fini(&first);
    free(noise);
}

static void a_real_file_is_unpacked(void **state)
{
    (void)state;
    struct marey__buf packed = {0};
    read_sample(&packed);
    marey__byte_source *source;
    struct taken taken;
    assert_int_equal(marey__bytes_open(MAREY_TEST_DATA "/kineto/rank_non_gpu.json.gz", &source),
                     MAREY_OK);
    take_all(source, &taken);
    marey__bytes_close(source);
    assert_int_equal(taken.status, MAREY_OK);
    assert_string_equal(taken.damage, "");
    const uint8_t *trailer = (const uint8_t *)packed.data + packed.len - 8;
    const uint32_t crc = trailer[0] | trailer[1] << 8 | trailer[2] << 16 | (uint32_t)trailer[3] << 24;
    assert_int_equal(crc32_of((const uint8_t *)taken.bytes.data, taken.bytes.len), crc);
    marey__buf_fini(&taken.bytes);
    marey__buf_fini(&packed);
}

/* Truncated anywhere, the bytes before are returned, and the damage is reported. */
static void gzip_that_is_cut_off_gives_what_it_has(void **state)
{
    (void)state;
    struct marey__buf packed = {0};
    read_sample(&packed);
    struct taken whole = take_memory(packed.data, packed.len);
    for (size_t len = 2; len < packed.len; len += len < 100 || len + 50 > packed.len ? 1 : 997) {
        struct taken taken = take_memory(packed.data, len);
        assert_int_equal(taken.status, MAREY_OK);
        assert_non_null(strstr(taken.damage, "is cut off: its gzip data ends after "));
        assert_true(taken.bytes.len <= whole.bytes.len);
        if (taken.bytes.len > 0)
            assert_memory_equal(taken.bytes.data, whole.bytes.data, taken.bytes.len);
        if (len + 8 >= packed.len) /* the trailer alone is missing */
            assert_int_equal(taken.bytes.len, whole.bytes.len);
        marey__buf_fini(&taken.bytes);
    }
    marey__buf_fini(&whole.bytes);
    marey__buf_fini(&packed);
}

/* Any wrong byte is reported, unless it is irrelevant, like the name in the header, and all bytes
 * are correct. */
static void gzip_that_is_damaged_says_so(void **state)
{
    (void)state;
    struct marey__buf packed = {0};
    read_sample(&packed);
    struct taken whole = take_memory(packed.data, packed.len);
    for (size_t at = 2; at < packed.len; at += at < 40 || at + 20 > packed.len ? 1 : 1009) {
        packed.data[at] ^= 0x55;
        struct taken taken = take_memory(packed.data, packed.len);
        assert_int_equal(taken.status, MAREY_OK);
        if (taken.damage[0] == '\0')
            expect_bytes(&taken, whole.bytes.data, whole.bytes.len);
        marey__buf_fini(&taken.bytes);
        packed.data[at] ^= 0x55;
    }
    packed.data[packed.len - 6] ^= 1; /* of the checksum */
    struct taken taken = take_memory(packed.data, packed.len);
    assert_non_null(strstr(taken.damage, "is damaged"));
    assert_true(taken.bytes.len > 0);
    marey__buf_fini(&taken.bytes);
    marey__buf_fini(&whole.bytes);
    marey__buf_fini(&packed);
}

/* The thread that unpacks ahead ends with its source. */
static void a_source_may_be_closed_at_any_time(void **state)
{
    (void)state;
    uint8_t *noise = make_noise(4 << 20);
    struct marey__buf packed = {0};
    put_member(&packed, noise, 4 << 20);
    for (size_t n_pieces = 0; n_pieces < 20; n_pieces++) {
        marey__byte_source *source;
        assert_int_equal(marey__bytes_open_memory(packed.data, packed.len, &source), MAREY_OK);
        for (size_t i = 0; i < n_pieces; i++) {
            const char *bytes;
            size_t len;
            assert_int_equal(marey__bytes_next(source, &bytes, &len), MAREY_OK);
        }
        marey__bytes_close(source);
    }
    marey__buf_fini(&packed);
    free(noise);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    marey_status status = MAREY_ENOMEM;
    uint64_t n = 0;
    while (status != MAREY_OK) {
        marey__byte_source *source = NULL;
        marey__alloc_fail_nth(++n);
        status = marey__bytes_open(MAREY_TEST_DATA "/kineto/triton_example.json.gz", &source);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK ? source != NULL : status == MAREY_ENOMEM && source == NULL);
        marey__bytes_close(source);
    }
    assert_true(n > 6);
}

int main(void)
{
    static const struct CMUnitTest plain[] = {
        cmocka_unit_test(plain_bytes_come_as_they_are),
        cmocka_unit_test(a_file_is_the_same_as_memory),
        cmocka_unit_test(what_cannot_be_read_says_so),
        cmocka_unit_test(pieces_can_be_cut),
    };
    static const struct CMUnitTest gzip[] = {
        cmocka_unit_test(members_follow_one_another),
        cmocka_unit_test(small_members_end_at_any_byte),
        cmocka_unit_test(a_header_may_be_cut_by_a_piece),
        cmocka_unit_test(a_real_file_is_unpacked),
        cmocka_unit_test(gzip_that_is_cut_off_gives_what_it_has),
        cmocka_unit_test(gzip_that_is_damaged_says_so),
        cmocka_unit_test(a_source_may_be_closed_at_any_time),
        cmocka_unit_test(every_allocation_may_fail),
    };
    const int failed = cmocka_run_group_tests(plain, NULL, NULL);
    return failed + cmocka_run_group_tests(gzip, NULL, NULL);
}
