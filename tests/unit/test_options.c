/* options: valid MAREY_OPTIONS, and messages for invalid ones. */
#include "scratch.h"
#include "switchboard/internal.h"

static struct marey__settings parse(const char *text)
{
    struct marey__settings s;
    marey__settings_init(&s);
    assert_int_equal(marey__settings_parse(&s, text), MAREY_OK);
    return s;
}

static void assert_refused(const char *text, const char *because)
{
    assert_int_equal(marey_options_check(text), MAREY_EINVAL);
    if (strstr(marey_last_error(), because) == NULL)
        fail_msg("'%s' is refused with: %s", text, marey_last_error());
}

static void nothing_means_the_defaults(void **state)
{
    (void)state;
    const char *const nothing[] = {NULL, "", ",", ",,"};
    for (size_t i = 0; i < MAREY__COUNT_OF(nothing); i++) {
        const struct marey__settings s = parse(nothing[i]);
        assert_int_equal(s.pool_bytes, 32 << 20);
        assert_int_equal(s.rank, -1);
        assert_true(s.follow_fork);
    }
}

static void every_key_is_read(void **state)
{
    (void)state;
    const struct marey__settings s =
        parse("pool=64MiB,disk=1g,policy=Keep-Newest,clock=monotonic,check=yes,children=off,"
              "rank=3,world_size=8,run_id=abc,pool_in=shm");
    assert_int_equal(s.pool_bytes, 64 << 20);
    assert_int_equal(s.disk_bytes, 1 << 30);
    assert_int_equal(s.policy, MAREY_KEEP_NEWEST);
    assert_int_equal(s.clock, MAREY_CLOCK_MONOTONIC);
    assert_true(s.check_nesting);
    assert_false(s.follow_fork);
    assert_int_equal(s.rank, 3);
    assert_int_equal(s.world_size, 8);
    assert_string_equal(s.run_id, "abc");
    assert_int_equal(s.pool_place, MAREY__POOL_SHM);
}

static void sizes_come_in_many_shapes(void **state)
{
    (void)state;
    assert_int_equal(parse("pool=4096").pool_bytes, 4096);
    assert_int_equal(parse("pool=4k").pool_bytes, 4096);
    assert_int_equal(parse("pool=4KB").pool_bytes, 4096);
    assert_int_equal(parse("pool=4KiB").pool_bytes, 4096);
    assert_int_equal(parse("disk=2T").disk_bytes, UINT64_C(2) << 40);
}

static void what_is_wrong_is_reported(void **state)
{
    (void)state;
    assert_refused("pol=1", "policy"); /* the sentence lists the keys there are */
    assert_refused("pool", "pool=VALUE");
    assert_refused("pool=", "SIZE");
    assert_refused("pool=0", "SIZE");
    assert_refused("pool=-1", "SIZE");
    assert_refused("disk= -1", "SIZE");
    assert_refused("pool=1x", "SIZE");
    assert_refused("pool=1kk", "SIZE");
    assert_refused("pool=99999999999999999999", "SIZE");
    assert_refused("disk=99999999999T", "SIZE");
    assert_refused("policy=newest", "keep-newest");
    assert_refused("check=maybe", "0|1");
    assert_refused("rank=-2", "N");
    assert_refused("rank=1x", "N");
    assert_refused("run_id=", "TEXT");
    char text[700] = "run_id=";
    memset(text + 7, 'x', 80);
    assert_refused(text, "TEXT");
    memset(text + 7, 'x', sizeof text - 8);
    assert_refused(text, "too long");
}

static void the_help_has_a_line_for_each_key(void **state)
{
    (void)state;
    const char *help = marey_options_help();
    const char *const keys[] = {
        "pool=", "disk=", "policy=", "clock=", "check=", "children=", "rank=", "pool_in="};
    for (size_t i = 0; i < MAREY__COUNT_OF(keys); i++)
        assert_non_null(strstr(help, keys[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_means_the_defaults),
        cmocka_unit_test(every_key_is_read),
        cmocka_unit_test(sizes_come_in_many_shapes),
        cmocka_unit_test(what_is_wrong_is_reported),
        cmocka_unit_test(the_help_has_a_line_for_each_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
