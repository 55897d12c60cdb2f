/* pool: its location, its growth, and that its addresses remain mapped. */
#include <sys/stat.h>

#include "scratch.h"

static void make_pool(struct marey__pool *pool, const struct scratch *s,
                      enum marey__pool_place place, uint64_t bytes, struct marey__buf *note)
{
    const struct marey__settings settings = {.pool_bytes = bytes, .pool_place = place};
    struct marey__log log = {0};
    snprintf(log.path, sizeof log.path, "%s/r0-host-%d.klog", s->folder, (int)getpid());
    assert_int_equal(marey__pool_create(pool, &settings, &log, note), MAREY_OK);
}

static void every_chunk_is_given_out_once(void **state)
{
    struct marey__pool pool = {0};
    struct marey__buf note = {0};
    make_pool(&pool, *state, MAREY__POOL_AUTO, 8 << 20, &note);
    while (marey__pool_grow(&pool, UINT32_MAX))
        ;
    assert_int_equal(pool.head->n_chunks, (8 << 20) / MAREY__CHUNK_BYTES - 1);
    static bool is_seen[(8 << 20) / MAREY__CHUNK_BYTES];
    uint32_t number, n = 0;
    for (; marey__queue_take(&pool.free, &number); n++) {
        assert_false(is_seen[number]);
        is_seen[number] = true;
        struct marey__chunk_head *chunk = marey__pool_chunk(&pool, number);
        assert_int_equal(marey__pool_number(&pool, chunk), number);
        memset(chunk, 1, MAREY__CHUNK_BYTES); /* real memory, to its last byte */
    }
    assert_int_equal(n, pool.head->n_chunks);
    assert_int_equal(note.len, 0);
    marey__pool_retire(&pool, false);
    marey__buf_fini(&note);
}

static void a_retired_pool_can_still_be_written_to(void **state)
{
    struct marey__pool pool = {0};
    struct marey__buf note = {0};
    make_pool(&pool, *state, MAREY__POOL_AUTO, 1, &note); /* less than the least there is */
    struct marey__chunk_head *chunk = marey__pool_chunk(&pool, 3);
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", pool.path);
    assert_int_equal(access(path, F_OK), 0);
    marey__pool_retire(&pool, false);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_null(pool.head);
    memset(chunk, 1, MAREY__CHUNK_BYTES);
    marey__buf_fini(&note);
}

static void a_pool_in_plain_memory_says_what_that_means(void **state)
{
    struct marey__pool pool = {0};
    struct marey__buf note = {0};
    make_pool(&pool, *state, MAREY__POOL_ANONYMOUS, 4 << 20, &note);
    assert_string_equal(pool.path, "");
    assert_memory_equal(note.data, "not kill-safe", 13);
    marey__pool_retire(&pool, false);
    marey__buf_fini(&note);
}

static void a_pool_in_shared_memory_is_found_by_its_logs_name(void **state)
{
    struct marey__pool pool = {0};
    struct marey__buf note = {0};
    make_pool(&pool, *state, MAREY__POOL_SHM, 4 << 20, &note);
    assert_memory_equal(pool.path, "/dev/shm/marey-r0-host-", 23);
    marey__pool_retire(&pool, false);
    marey__buf_fini(&note);
}

static void without_memory_nothing_is_left_behind(void **state)
{
    const struct scratch *s = *state;
    const struct marey__settings settings = {.pool_bytes = 4 << 20, .pool_place = MAREY__POOL_IN_DIR};
    struct marey__log log = {0};
    char file[300];
    snprintf(log.path, sizeof log.path, "%s/x.klog", s->folder);
    snprintf(file, sizeof file, "%s/x.klog.pool", s->folder);
    for (uint64_t n = 1; n <= 2; n++) {
        struct marey__pool pool = {0};
        struct marey__buf note = {0};
        marey__alloc_fail_nth(n);
        assert_int_equal(marey__pool_create(&pool, &settings, &log, &note), MAREY_ENOMEM);
        assert_int_not_equal(access(file, F_OK), 0);
        assert_null(pool.head);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(every_chunk_is_given_out_once),
        SCRATCH_TEST(a_retired_pool_can_still_be_written_to),
        SCRATCH_TEST(a_pool_in_plain_memory_says_what_that_means),
        SCRATCH_TEST(a_pool_in_shared_memory_is_found_by_its_logs_name),
        SCRATCH_TEST(without_memory_nothing_is_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
