/* pack: words survive compression and decompression, and a chunk's words end at the right place. */
#include <zstd.h>

#include "read/internal.h"
#include "scratch.h"

static void assert_packs(marey__packer *packer, const uint64_t *words, size_t n)
{
    static uint8_t planes[MAREY__CHUNK_BYTES];
    static uint64_t back[MAREY__CHUNK_WORDS];
    struct marey__block block = {0};
    const void *bytes = marey__pack_words(packer, words, n, &block);
    assert_int_equal(block.raw_len, n * 8);
    assert_true(block.packed_len <= block.raw_len);
    if (block.flags & MAREY__FLAG_ZSTD)
        assert_int_equal(ZSTD_decompress(planes, sizeof planes, bytes, block.packed_len), n * 8);
    else
        memcpy(planes, bytes, block.packed_len);
    marey__unpack_words(planes, back, n);
    assert_memory_equal(back, words, n * 8);
}

static void words_come_back_as_they_were(void **state)
{
    (void)state;
    static uint64_t words[MAREY__CHUNK_WORDS];
    marey__packer *packer = marey__packer_create();
    uint64_t noise = 1;
    for (size_t i = 0; i < MAREY__CHUNK_WORDS; i++) {
        noise = noise * 6364136223846793005u + 1442695040888963407u;
        words[i] = noise;
    }
    const size_t lengths[] = {1, 7, 8, 9, 15, 16, 17, 1000, MAREY__CHUNK_WORDS};
    for (size_t i = 0; i < MAREY__COUNT_OF(lengths); i++)
        assert_packs(packer, words, lengths[i]); /* noise does not shrink */
    for (size_t i = 0; i < MAREY__CHUNK_WORDS; i++)
        words[i] = (i * 100) << 24 |
                   marey__tag(i % 2 ? MAREY_KIND_END : MAREY_KIND_BEGIN, (uint32_t)(i / 2 % 5));
    for (size_t i = 0; i < MAREY__COUNT_OF(lengths); i++)
        assert_packs(packer, words, lengths[i]);
    marey__packer_destroy(packer);
}

static struct marey__chunk_head *make_chunk(void)
{
    static uint64_t storage[MAREY__CHUNK_BYTES / 8];
    memset(storage, 0, sizeof storage);
    return (struct marey__chunk_head *)storage;
}

static uint64_t record_header(uint64_t ticks, enum marey_record_type type, uint32_t length)
{
    return ticks << 24 | marey__tag(MAREY_KIND_RECORD, (uint32_t)type << 12 | length);
}

static void words_end_at_the_first_zero(void **state)
{
    (void)state;
    struct marey__chunk_head *chunk = make_chunk();
    uint64_t *words = (uint64_t *)(chunk + 1);
    assert_int_equal(marey__chunk_extent(chunk).n_words, 0);
    words[0] = UINT64_C(5) << 24 | marey__tag(MAREY_KIND_BEGIN, 1);
    words[1] = record_header(9, MAREY_RECORD_COUNTER, 3); /* whose own zeros end nothing */
    words[4] = UINT64_C(12) << 24 | marey__tag(MAREY_KIND_END, 1);
    words[6] = 1; /* behind the end: left over from another time */
    const struct marey__extent extent = marey__chunk_extent(chunk);
    assert_int_equal(extent.n_words, 5);
    assert_int_equal(extent.n_events, 3);
    assert_int_equal(extent.last_ticks, 12);
}

static void a_full_chunk_needs_no_zero(void **state)
{
    (void)state;
    struct marey__chunk_head *chunk = make_chunk();
    uint64_t *words = (uint64_t *)(chunk + 1);
    for (size_t i = 0; i < MAREY__CHUNK_WORDS; i++)
        words[i] = marey__tag(MAREY_KIND_MARK, 1);
    assert_int_equal(marey__chunk_extent(chunk).n_words, MAREY__CHUNK_WORDS);
}

static void a_record_that_claims_too_much_ends_the_chunk(void **state)
{
    (void)state;
    struct marey__chunk_head *chunk = make_chunk();
    uint64_t *words = (uint64_t *)(chunk + 1);
    words[0] = marey__tag(MAREY_KIND_MARK, 1);
    words[1] = record_header(1, MAREY_RECORD_MARK, 0);
    assert_int_equal(marey__chunk_extent(chunk).n_words, 1);
    for (size_t i = 0; i < MAREY__CHUNK_WORDS; i++)
        words[i] = marey__tag(MAREY_KIND_MARK, 1);
    words[MAREY__CHUNK_WORDS - 2] = record_header(1, MAREY_RECORD_MARK, 3);
    assert_int_equal(marey__chunk_extent(chunk).n_words, MAREY__CHUNK_WORDS - 2);
}

static void a_gap_is_no_event(void **state)
{
    (void)state;
    struct marey__chunk_head *chunk = make_chunk();
    uint64_t *words = (uint64_t *)(chunk + 1);
    words[0] = record_header(1, MAREY_RECORD_GAP, 3);
    words[3] = marey__tag(MAREY_KIND_MARK, 1);
    assert_int_equal(marey__chunk_extent(chunk).n_words, 4);
    assert_int_equal(marey__chunk_extent(chunk).n_events, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_come_back_as_they_were),
        cmocka_unit_test(words_end_at_the_first_zero),
        cmocka_unit_test(a_full_chunk_needs_no_zero),
        cmocka_unit_test(a_record_that_claims_too_much_ends_the_chunk),
        cmocka_unit_test(a_gap_is_no_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
