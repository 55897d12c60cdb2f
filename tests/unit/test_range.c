/* range: every way to record one, and the check of how they nest. */
#include "scratch.h"
#include <marey/communication.h>
#include <marey/range.h>

static void start(const struct scratch *s, const char *text)
{
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path, .text = text}), MAREY_OK);
}

static int leaves_early(int how)
{
    MAREY_SCOPE("scope");
    if (how == 0)
        return 1;
    if (how == 1)
        goto out;
    MAREY_RANGE ("block") {
        how++;
    }
out:
    return how;
}

static void a_scope_ends_however_it_is_left(void **state)
{
    const struct scratch *s = *state;
    leaves_early(0); /* off */
    start(s, NULL);
    for (int how = 0; how < 3; how++)
        leaves_early(how);
    marey_push("pushed");
    marey_pop();
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_BEGIN), 5);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_END), 5);
}

static void a_name_of_nothing_is_a_name(void **state)
{
    const struct scratch *s = *state;
    start(s, NULL);
    marey_push_at(NULL, NULL, 0);
    marey_pop();
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_BEGIN), 1);
}

static uint64_t first_record[3];

static marey_status keep_first_record(void *ctx, const struct marey_batch *batch)
{
    (void)ctx;
    for (size_t i = 0; i < batch->n; i++)
        if (marey_word_kind(batch->words[i]) == MAREY_KIND_RECORD) {
            memcpy(first_record, batch->words + i,
                   8 * MAREY__MIN(marey_record_length(batch->words[i]), 3u));
            return MAREY_EINVAL; /* enough */
        }
    return MAREY_OK;
}

static void an_empty_text_keeps_its_site(void **state)
{
    const struct scratch *s = *state;
    marey_recording *recording;
    start(s, NULL);
    const marey_id id = MAREY_ID("with an empty text");
    marey_mark_payload(id,
                       &(struct marey_payload){.type = MAREY_PAYLOAD_TEXT, .len = 0, .as.text = ""});
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_int_equal(marey_recording_open(s->path, &recording), MAREY_OK);
    assert_int_equal(marey_recording_visit(recording, 0, keep_first_record, NULL), MAREY_EINVAL);
    marey_recording_close(recording);
    assert_int_equal(marey_record_site(first_record[1]), id);
    assert_int_equal(marey_record_payload_type(first_record[1]), MAREY_PAYLOAD_TEXT);
    assert_int_equal(marey_record_text_len(first_record[1]), 0);
}

static void async_ranges_have_handles_of_their_own(void **state)
{
    const struct scratch *s = *state;
    assert_int_equal(marey_async_begin(MAREY_ID("async")), 0); /* off */
    marey_async_end(0);
    start(s, NULL);
    const marey_async a = marey_async_begin(MAREY_ID("async")),
                      b = marey_async_begin(MAREY_ID("async"));
    assert_int_not_equal(a, b);
    marey_async_end(a);
    marey_async_end(b);
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_RECORD), 4);
}

/* Recorded communication, and the number of open ranges at that time. */
static struct marey_communication told[4];
static int n_reported, n_open_then[4];

static marey_status keep_communication(void *ctx, const struct marey_batch *batch)
{
    int *n_open = ctx;
    for (size_t i = 0; i < batch->n;) {
        const uint64_t *word = &batch->words[i];
        const uint32_t kind = marey_word_kind(*word);
        *n_open += kind == MAREY_KIND_BEGIN ? 1 : kind == MAREY_KIND_END ? -1 : 0;
        if (kind == MAREY_KIND_RECORD && marey_record_type_of(*word) == MAREY_RECORD_COMMUNICATION) {
            n_open_then[n_reported] = *n_open;
            marey_record_communication(word, &told[n_reported++]);
        }
        i += kind == MAREY_KIND_RECORD ? marey_record_length(*word) : 1;
    }
    return MAREY_OK;
}

static void communication_is_reported_within_its_range(void **state)
{
    const struct scratch *s = *state;
    marey_recording *recording;
    int n_open = 0;
    const marey_id id = MAREY_ID("exchange", .category = MAREY_COMMUNICATION);
    const marey_id group = marey_communication_group("pair", "0,3");
    assert_int_equal(group, marey_communication_group("pair", "0,3"));
    assert_int_not_equal(group, marey_communication_group("pair", "0,2"));
    const struct marey_communication sent = {.group = group,
                                             .what = MAREY_COLLECTIVE_SEND,
                                             .bytes_in = UINT64_MAX,
                                             .sequence = UINT64_MAX,
                                             .group_size = 2,
                                             .peer = 3};
    const struct marey_communication got = {
        .what = MAREY_COLLECTIVE_OTHER, .bytes_out = 5, .sequence = 7, .peer = -1};
    marey_communication_begin(id, &sent); /* off */
    marey_communication_tell(&got);
    start(s, NULL);
    marey_communication_begin(id, &sent);
    marey_end(id);
    marey_begin(id);
    marey_communication_tell(&got);
    marey_end(id);
    assert_int_equal(marey_stop(), MAREY_OK);

    assert_int_equal(marey_recording_open(s->path, &recording), MAREY_OK);
    assert_int_equal(marey_recording_visit(recording, 0, keep_communication, &n_open), MAREY_OK);
    const struct marey_site_info *site = marey_recording_site(recording, 0, told[0].group);
    assert_string_equal(site->name, "pair");
    assert_string_equal(site->domain, "0,3");
    assert_string_equal(marey_recording_site(recording, 0, id)->category, "communication");
    marey_recording_close(recording);
    assert_int_equal(n_reported, 2);
    assert_int_equal(n_open_then[0], 1);
    assert_int_equal(n_open_then[1], 1);
    assert_memory_equal(&told[0], &sent, sizeof sent);
    assert_memory_equal(&told[1], &got, sizeof got);
}

static void a_mismatch_names_both_and_pops_nothing(void **state)
{
    const struct scratch *s = *state;
    start(s, "check=1");
    marey_push("outer");
    marey_push("inner");
    assert_int_equal(marey_pop_checked("outer"), MAREY_EMISMATCH);
    const char *sentence = marey_last_error();
    assert_non_null(strstr(sentence, "'outer' was popped, but 'inner' was pushed last"));
    assert_non_null(strstr(sentence, "outer > inner"));
    assert_non_null(strstr(sentence, __FILE__));
    assert_int_equal(marey_pop_checked("inner"), MAREY_OK);
    assert_int_equal(marey_pop_checked(NULL), MAREY_OK);
    assert_int_equal(marey_pop_checked("outer"), MAREY_EMISMATCH);
    assert_non_null(strstr(marey_last_error(), "nothing is pushed"));
    struct marey_counts counts;
    marey_counts_get(&counts);
    assert_int_equal(counts.nesting_errors, 2);
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_END), 2);
}

static char heard[4096];

static void remember(void *ctx, const char *sentence)
{
    (void)ctx;
    snprintf(heard + strlen(heard), sizeof heard - strlen(heard), "%s\n", sentence);
}

static void ranges_left_open_are_reported_at_the_end(void **state)
{
    const struct scratch *s = *state;
    heard[0] = '\0';
    marey_set_sink(remember, NULL);
    start(s, "check=1");
    for (int i = 0; i < 100; i++) /* deeper than is told */
        marey_push(i == 0 ? "outermost" : "deeper");
    assert_int_equal(marey_stop(), MAREY_OK);
    marey_set_sink(NULL, NULL);
    assert_non_null(strstr(heard, "left 100 ranges open: outermost > deeper"));
}

static void without_memory_for_the_stack_it_goes_on(void **state)
{
    const struct scratch *s = *state;
    heard[0] = '\0';
    marey_set_sink(remember, NULL);
    start(s, "check=1");
    for (int i = 0; i < 1000; i++) {
        marey__alloc_fail_nth(i % 2);
        marey_begin(MAREY_ID("deep"));
    }
    marey__alloc_fail_nth(0);
    assert_int_equal(marey_stop(), MAREY_OK);
    marey_set_sink(NULL, NULL);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_BEGIN), 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(a_scope_ends_however_it_is_left),
        SCRATCH_TEST(a_name_of_nothing_is_a_name),
        SCRATCH_TEST(an_empty_text_keeps_its_site),
        SCRATCH_TEST(async_ranges_have_handles_of_their_own),
        SCRATCH_TEST(communication_is_reported_within_its_range),
        SCRATCH_TEST(a_mismatch_names_both_and_pops_nothing),
        SCRATCH_TEST(ranges_left_open_are_reported_at_the_end),
        SCRATCH_TEST(without_memory_for_the_stack_it_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
