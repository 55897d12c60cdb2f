/* Reading ahead: the visitor sees what a plain visit shows it, and either side may give up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "log_maker.h"
#include "present/export/internal.h"

/* Many parcels' worth of ranges on one lane. */
enum { LONG = 200000 };

/* A log without an end is never kept in memory. */
static marey_recording *make_recording(uint64_t n_ranges, bool has_end)
{
    struct log_maker log = {0};
    marey_recording *recording = NULL;
    log_put_preamble(&log);
    log_put_ranges(&log, n_ranges);
    if (has_end)
        log_put_end(&log, "stop");
    assert_int_equal(log_open(&log, &recording), MAREY_OK);
    log_maker_fini(&log);
    return recording;
}

/* All that a visitor is told, in one number that depends on the order. */
struct seen {
    uint64_t n_words, hash;
    uint64_t enough; /* give up after so many words */
};

static void mix(struct seen *seen, uint64_t value)
{
    seen->hash = (seen->hash ^ value) * 0x100000001b3u;
}

static marey_status see(void *ctx, const struct marey_batch *batch)
{
    struct seen *seen = ctx;
    for (size_t i = 0; i < batch->n; i++)
        mix(seen, batch->words[i]);
    mix(seen, batch->n);
    mix(seen, batch->base_ns);
    mix(seen, batch->ns_mult);
    mix(seen, (uint64_t)batch->gap);
    mix(seen, batch->lane->lane);
    seen->n_words += batch->n;
    return seen->n_words < seen->enough ? MAREY_OK : marey__fail(MAREY_EIO, "the disk is full");
}

static void the_visitor_sees_what_a_plain_visit_shows(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {0, 1, 3000, LONG};
    for (size_t i = 0; i < MAREY__COUNT_OF(lengths); i++) {
        marey_recording *recording = make_recording(lengths[i], true);
        struct seen plain = {.enough = UINT64_MAX}, ahead = plain;
        assert_int_equal(marey_recording_visit(recording, 0, see, &plain), MAREY_OK);
        assert_int_equal(marey__visit_ahead(recording, 0, see, &ahead), MAREY_OK);
        assert_int_equal(plain.n_words, 2 * lengths[i]);
        assert_int_equal(ahead.n_words, plain.n_words);
        assert_int_equal(ahead.hash, plain.hash);
        log_close(recording);
    }
}

/* At once, while the reader waits for room, and with the last word. */
static void a_visitor_may_give_up(void **state)
{
    (void)state;
    static const uint64_t enough[] = {1, LONG, 2 * LONG};
    marey_recording *recording = make_recording(LONG, true);
    for (size_t i = 0; i < MAREY__COUNT_OF(enough); i++) {
        struct seen seen = {.enough = enough[i]};
        assert_int_equal(marey__visit_ahead(recording, 0, see, &seen), MAREY_EIO);
        assert_string_equal(marey_last_error(), "the disk is full");
    }
    log_close(recording);
}

static void a_log_that_is_gone_is_reported_to_the_caller(void **state)
{
    (void)state;
    marey_recording *recording = make_recording(1, false);
    struct seen seen = {.enough = UINT64_MAX};
    const char *path = marey_recording_process(recording, 0)->log_path;
    unlink(path);
    assert_int_not_equal(marey__visit_ahead(recording, 0, see, &seen), MAREY_OK);
    assert_non_null(strstr(marey_last_error(), path));
    log_close(recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_visitor_sees_what_a_plain_visit_shows),
        cmocka_unit_test(a_visitor_may_give_up),
        cmocka_unit_test(a_log_that_is_gone_is_reported_to_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
