/* range: every way to record one, and the check of how they nest. */
#include "scratch.h"
#include <kymo/communication.h>
#include <kymo/range.h>

static void start(const struct scratch *s, const char *text)
{
    assert_int_equal(kymo_start(&(struct kymo_options){.path = s->path, .text = text}), KYMO_OK);
}

static int leaves_early(int how)
{
    KYMO_SCOPE("scope");
    if (how == 0)
        return 1;
    if (how == 1)
        goto out;
    KYMO_RANGE ("block") {
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
    kymo_push("pushed");
    kymo_pop();
    assert_int_equal(kymo_stop(), KYMO_OK);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_BEGIN), 5);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_END), 5);
}

static void a_name_of_nothing_is_a_name(void **state)
{
    const struct scratch *s = *state;
    start(s, NULL);
    kymo_push_at(NULL, NULL, 0);
    kymo_pop();
    assert_int_equal(kymo_stop(), KYMO_OK);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_BEGIN), 1);
}

static uint64_t first_record[3];

static kymo_status keep_first_record(void *ctx, const struct kymo_batch *batch)
{
    (void)ctx;
    for (size_t i = 0; i < batch->n; i++)
        if (kymo_word_kind(batch->words[i]) == KYMO_KIND_RECORD) {
            memcpy(first_record, batch->words + i,
                   8 * KYMO__MIN(kymo_record_length(batch->words[i]), 3u));
            return KYMO_EINVAL; /* enough */
        }
    return KYMO_OK;
}

static void an_empty_text_keeps_its_site(void **state)
{
    const struct scratch *s = *state;
    kymo_recording *recording;
    start(s, NULL);
    const kymo_id id = KYMO_ID("with an empty text");
    kymo_mark_payload(id, &(struct kymo_payload){.type = KYMO_PAYLOAD_TEXT, .len = 0, .as.text = ""});
    assert_int_equal(kymo_stop(), KYMO_OK);
    assert_int_equal(kymo_recording_open(s->path, &recording), KYMO_OK);
    assert_int_equal(kymo_recording_visit(recording, 0, keep_first_record, NULL), KYMO_EINVAL);
    kymo_recording_close(recording);
    assert_int_equal(kymo_record_site(first_record[1]), id);
    assert_int_equal(kymo_record_payload_type(first_record[1]), KYMO_PAYLOAD_TEXT);
    assert_int_equal(kymo_record_text_len(first_record[1]), 0);
}

static void async_ranges_have_handles_of_their_own(void **state)
{
    const struct scratch *s = *state;
    assert_int_equal(kymo_async_begin(KYMO_ID("async")), 0); /* off */
    kymo_async_end(0);
    start(s, NULL);
    const kymo_async a = kymo_async_begin(KYMO_ID("async")), b = kymo_async_begin(KYMO_ID("async"));
    assert_int_not_equal(a, b);
    kymo_async_end(a);
    kymo_async_end(b);
    assert_int_equal(kymo_stop(), KYMO_OK);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_RECORD), 4);
}

/* What was told of communication, and how many ranges were open at that moment. */
static struct kymo_communication told[4];
static int n_told, n_open_then[4];

static kymo_status keep_communication(void *ctx, const struct kymo_batch *batch)
{
    int *n_open = ctx;
    for (size_t i = 0; i < batch->n;) {
        const uint64_t *word = &batch->words[i];
        const uint32_t kind = kymo_word_kind(*word);
        *n_open += kind == KYMO_KIND_BEGIN ? 1 : kind == KYMO_KIND_END ? -1 : 0;
        if (kind == KYMO_KIND_RECORD && kymo_record_type_of(*word) == KYMO_RECORD_COMMUNICATION) {
            n_open_then[n_told] = *n_open;
            kymo_record_communication(word, &told[n_told++]);
        }
        i += kind == KYMO_KIND_RECORD ? kymo_record_length(*word) : 1;
    }
    return KYMO_OK;
}

static void communication_is_told_within_its_range(void **state)
{
    const struct scratch *s = *state;
    kymo_recording *recording;
    int n_open = 0;
    const kymo_id id = KYMO_ID("exchange", .category = KYMO_COMMUNICATION);
    const kymo_id group = kymo_communication_group("pair", "0,3");
    assert_int_equal(group, kymo_communication_group("pair", "0,3"));
    assert_int_not_equal(group, kymo_communication_group("pair", "0,2"));
    const struct kymo_communication sent = {.group = group,
                                            .what = KYMO_COLLECTIVE_SEND,
                                            .bytes_in = UINT64_MAX,
                                            .sequence = UINT64_MAX,
                                            .group_size = 2,
                                            .peer = 3};
    const struct kymo_communication got = {
        .what = KYMO_COLLECTIVE_OTHER, .bytes_out = 5, .sequence = 7, .peer = -1};
    kymo_communication_begin(id, &sent); /* off */
    kymo_communication_tell(&got);
    start(s, NULL);
    kymo_communication_begin(id, &sent);
    kymo_end(id);
    kymo_begin(id);
    kymo_communication_tell(&got);
    kymo_end(id);
    assert_int_equal(kymo_stop(), KYMO_OK);

    assert_int_equal(kymo_recording_open(s->path, &recording), KYMO_OK);
    assert_int_equal(kymo_recording_visit(recording, 0, keep_communication, &n_open), KYMO_OK);
    const struct kymo_site_info *site = kymo_recording_site(recording, 0, told[0].group);
    assert_string_equal(site->name, "pair");
    assert_string_equal(site->domain, "0,3");
    assert_string_equal(kymo_recording_site(recording, 0, id)->category, "communication");
    kymo_recording_close(recording);
    assert_int_equal(n_told, 2);
    assert_int_equal(n_open_then[0], 1);
    assert_int_equal(n_open_then[1], 1);
    assert_memory_equal(&told[0], &sent, sizeof sent);
    assert_memory_equal(&told[1], &got, sizeof got);
}

static void a_mismatch_names_both_and_pops_nothing(void **state)
{
    const struct scratch *s = *state;
    start(s, "check=1");
    kymo_push("outer");
    kymo_push("inner");
    assert_int_equal(kymo_pop_checked("outer"), KYMO_EMISMATCH);
    const char *sentence = kymo_last_error();
    assert_non_null(strstr(sentence, "'outer' was popped, but 'inner' was pushed last"));
    assert_non_null(strstr(sentence, "outer > inner"));
    assert_non_null(strstr(sentence, __FILE__));
    assert_int_equal(kymo_pop_checked("inner"), KYMO_OK);
    assert_int_equal(kymo_pop_checked(NULL), KYMO_OK);
    assert_int_equal(kymo_pop_checked("outer"), KYMO_EMISMATCH);
    assert_non_null(strstr(kymo_last_error(), "nothing is pushed"));
    struct kymo_counts counts;
    kymo_counts_get(&counts);
    assert_int_equal(counts.nesting_errors, 2);
    assert_int_equal(kymo_stop(), KYMO_OK);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_END), 2);
}

static char heard[4096];

static void remember(void *ctx, const char *sentence)
{
    (void)ctx;
    snprintf(heard + strlen(heard), sizeof heard - strlen(heard), "%s\n", sentence);
}

static void ranges_left_open_are_told_at_the_end(void **state)
{
    const struct scratch *s = *state;
    heard[0] = '\0';
    kymo_set_sink(remember, NULL);
    start(s, "check=1");
    for (int i = 0; i < 100; i++) /* deeper than is told */
        kymo_push(i == 0 ? "outermost" : "deeper");
    assert_int_equal(kymo_stop(), KYMO_OK);
    kymo_set_sink(NULL, NULL);
    assert_non_null(strstr(heard, "left 100 ranges open: outermost > deeper"));
}

static void without_memory_for_the_stack_it_goes_on(void **state)
{
    const struct scratch *s = *state;
    heard[0] = '\0';
    kymo_set_sink(remember, NULL);
    start(s, "check=1");
    for (int i = 0; i < 1000; i++) {
        kymo__alloc_fail_nth(i % 2);
        kymo_begin(KYMO_ID("deep"));
    }
    kymo__alloc_fail_nth(0);
    assert_int_equal(kymo_stop(), KYMO_OK);
    kymo_set_sink(NULL, NULL);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_BEGIN), 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(a_scope_ends_however_it_is_left),
        SCRATCH_TEST(a_name_of_nothing_is_a_name),
        SCRATCH_TEST(an_empty_text_keeps_its_site),
        SCRATCH_TEST(async_ranges_have_handles_of_their_own),
        SCRATCH_TEST(communication_is_told_within_its_range),
        SCRATCH_TEST(a_mismatch_names_both_and_pops_nothing),
        SCRATCH_TEST(ranges_left_open_are_told_at_the_end),
        SCRATCH_TEST(without_memory_for_the_stack_it_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
