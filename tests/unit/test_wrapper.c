/* The range wrapper, and the stacks of threads that it and the check of nesting stand on. */
#include <pthread.h>
#include <sys/wait.h>

#include "intern/intern_internal.h"
#include "scratch.h"
#include "stack/stack_internal.h"
#include <kymo/nvtx.h>

static void enable(const struct kymo_nvtx_options *options)
{
    assert_int_equal(kymo_nvtx_enable(options), KYMO_OK);
}

static const struct kymo_nvtx_options tracked = {.keep_track_of_range_order = 1};

static size_t depth(void)
{
    const struct kymo__stack *const stack = kymo__stack_get();
    return stack != NULL ? stack->depth : SIZE_MAX;
}

static void off_it_does_nothing(void **state)
{
    const struct scratch *s = *state;
    assert_false(kymo_nvtx_is_enabled());
    assert_int_equal(kymo_start(&(struct kymo_options){.path = s->path}), KYMO_OK);
    kymo_nvtx_push(KYMO_ID("push"));
    assert_int_equal(kymo_nvtx_pop("other"), KYMO_OK);
    assert_int_equal(kymo_stop(), KYMO_OK);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_BEGIN), 0);
}

static void without_a_recording_the_order_is_checked(void **state)
{
    (void)state;
    enable(&tracked);
    assert_true(kymo_nvtx_is_enabled());
    kymo_nvtx_push(KYMO_ID("outer"));
    kymo_nvtx_push(KYMO_ID("inner"));
    assert_int_equal(kymo_nvtx_pop("outer"), KYMO_EMISMATCH);
    assert_non_null(strstr(kymo_last_error(), "'outer' was popped, but 'inner' was pushed last"));
    assert_non_null(strstr(kymo_last_error(), "outer > inner"));
    assert_non_null(strstr(kymo_last_error(), "nothing was popped"));
    assert_int_equal(kymo_nvtx_pop("inner"), KYMO_OK);
    assert_int_equal(kymo_nvtx_pop(NULL), KYMO_OK);
    assert_int_equal(kymo_nvtx_pop(NULL), KYMO_EMISMATCH);
    assert_non_null(strstr(kymo_last_error(), "nothing is pushed"));
}

static void with_a_recording_the_ranges_are_in_it(void **state)
{
    const struct scratch *s = *state;
    enable(NULL);
    kymo_nvtx_push(KYMO_ID("begun before"));
    assert_int_equal(kymo_start(&(struct kymo_options){.path = s->path}), KYMO_OK);
    kymo_nvtx_push(KYMO_ID("inside"));
    assert_int_equal(kymo_nvtx_pop("a name that nobody checks"), KYMO_OK);
    assert_int_equal(kymo_nvtx_pop(NULL), KYMO_OK);
    assert_int_equal(kymo_nvtx_pop(NULL), KYMO_OK); /* nothing is left to pop */
    assert_int_equal(kymo_stop(), KYMO_OK);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_BEGIN), 1);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_END), 2);
}

static void all_ranges_of_a_thread_are_one_stack(void **state)
{
    (void)state;
    enable(&tracked);
    kymo_nvtx_push(KYMO_ID("wrapped"));
    kymo_push("plain");
    assert_int_equal(kymo_nvtx_pop("wrapped"), KYMO_EMISMATCH);
    kymo_pop();
    assert_int_equal(kymo_nvtx_pop("wrapped"), KYMO_OK);
}

static void a_pop_by_id_compares_names(void **state)
{
    (void)state;
    enable(&tracked);
    kymo_nvtx_push(KYMO_ID("a"));
    assert_int_equal(kymo_nvtx_pop_id(KYMO_ID("b")), KYMO_EMISMATCH);
    assert_non_null(strstr(kymo_last_error(), "'b' was popped, but 'a' was pushed last"));
    assert_int_equal(kymo_nvtx_pop_id(KYMO_ID("a", .category = "of another site")), KYMO_OK);
    kymo_nvtx_push(KYMO_ID("a"));
    assert_int_equal(kymo_nvtx_pop_id(0), KYMO_OK);
    assert_int_equal(kymo_nvtx_pop_id(0), KYMO_EMISMATCH);
    kymo_nvtx_disable();
    assert_int_equal(kymo_nvtx_pop_id(KYMO_ID("off")), KYMO_OK);
}

/* Without a check as well: what disable() ends must be the wrapper's own. */
static void a_plain_pop_ends_what_the_wrapper_pushed(void **state)
{
    const struct scratch *s = *state;
    enable(NULL);
    assert_int_equal(kymo_start(&(struct kymo_options){.path = s->path}), KYMO_OK);
    kymo_push("plain");
    kymo_nvtx_push(KYMO_ID("wrapped"));
    kymo_pop();
    assert_int_equal(depth(), 1);
    kymo_nvtx_disable();
    kymo_pop();
    assert_int_equal(kymo_stop(), KYMO_OK);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_BEGIN), 2);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_END), 2);
}

static void a_range_from_before_the_check_is_ended_without_one(void **state)
{
    const struct scratch *s = *state;
    assert_int_equal(kymo_start(&(struct kymo_options){.path = s->path}), KYMO_OK);
    kymo_begin(KYMO_ID("before"));
    enable(&tracked);
    kymo_nvtx_push(KYMO_ID("inside"));
    kymo_end_unchecked(KYMO_ID("before"));
    assert_int_equal(depth(), 1);
    assert_int_equal(kymo_nvtx_pop("inside"), KYMO_OK);
    kymo_begin(KYMO_ID("after"));
    kymo_end_unchecked(KYMO_ID("after"));
    assert_int_equal(depth(), 0);
    assert_int_equal(kymo_stop(), KYMO_OK);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_END), 3);
}

static void a_second_enable_is_refused(void **state)
{
    (void)state;
    enable(&tracked);
    assert_int_equal(kymo_nvtx_enable(&tracked), KYMO_ESTATE);
    assert_non_null(strstr(kymo_last_error(), "already enabled"));
    kymo_nvtx_disable();
    assert_false(kymo_nvtx_is_enabled());
    enable(NULL);
    assert_int_equal(kymo_on() & KYMO_ON_ORDER, 0);
}

static void disabling_ends_what_this_thread_has_open(void **state)
{
    const struct scratch *s = *state;
    enable(NULL);
    assert_int_equal(kymo_start(&(struct kymo_options){.path = s->path}), KYMO_OK);
    kymo_nvtx_push(KYMO_ID("a"));
    kymo_nvtx_push(KYMO_ID("b"));
    kymo_nvtx_disable();
    assert_int_equal(kymo_nvtx_pop(NULL), KYMO_OK);
    assert_int_equal(kymo_stop(), KYMO_OK);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_END), 2);
}

static void options_switch_it_on(void **state)
{
    const struct scratch *s = *state;
    assert_int_equal(
        kymo_start(&(struct kymo_options){.path = s->path,
                                          .text = "nvtx.sync_on_pop=1,nvtx.sync_on_push=0,"
                                                  "nvtx.keep_track_of_range_order=yes"}),
        KYMO_OK);
    assert_int_equal(kymo_on(), KYMO_ON_RECORD | KYMO_ON_WRAPPER | KYMO_ON_ORDER | KYMO_ON_SYNC_POP);
    assert_int_equal(kymo_stop(), KYMO_OK);
    assert_true(kymo_nvtx_is_enabled());
    kymo_reset();
    assert_int_equal(kymo_on(), 0);
    assert_int_equal(kymo_options_check("nvtx.sync_on_pop=maybe"), KYMO_EINVAL);
}

/* ---- stacks ---- */

static void *push_one(void *arg)
{
    kymo_nvtx_push(KYMO_ID("of a thread"));
    *(size_t *)arg = depth();
    return NULL;
}

static void a_stack_ends_with_its_thread(void **state)
{
    (void)state;
    enable(&tracked);
    kymo_nvtx_push(KYMO_ID("mine"));
    for (int i = 0; i < 3; i++) { /* later threads get the memory, and often the id, of the one before */
        pthread_t thread;
        size_t theirs = 0;
        assert_int_equal(pthread_create(&thread, NULL, push_one, &theirs), 0);
        pthread_join(thread, NULL);
        assert_int_equal(theirs, 1);
    }
    assert_int_equal(depth(), 1);
    assert_int_equal(kymo_nvtx_pop("mine"), KYMO_OK);
}

static void a_stack_from_before_counts_as_empty(void **state)
{
    (void)state;
    enable(&tracked);
    kymo_push("never ended");
    assert_int_equal(depth(), 1);
    kymo_nvtx_disable();
    enable(&tracked);
    assert_int_equal(depth(), 0);
}

static void ends_out_of_order_take_their_own(void **state)
{
    (void)state;
    enable(&tracked);
    const kymo_id a = KYMO_ID("a"), b = KYMO_ID("b"), other_a = KYMO_ID("a");
    kymo__stack_push(a);
    kymo__stack_push(b | KYMO__ENTRY_NVTX);
    kymo__stack_push(other_a);
    assert_int_equal(kymo__stack_take(KYMO_ID("unknown")), 0);
    assert_int_equal(kymo__stack_take(b), b | KYMO__ENTRY_NVTX);
    assert_int_equal(kymo__stack_take(a), a);
    assert_int_equal(kymo__stack_take(a), other_a); /* another place, the same name */
    assert_int_equal(kymo__stack_take(0), 0);
}

static void a_child_ends_what_its_parent_began(void **state)
{
    (void)state;
    enable(&tracked);
    kymo_nvtx_push(KYMO_ID("across a fork"));
    const pid_t child = fork();
    if (child == 0)
        _exit(kymo_nvtx_is_enabled() && kymo_nvtx_pop("across a fork") == KYMO_OK &&
                      kymo_nvtx_pop(NULL) == KYMO_EMISMATCH
                  ? 0
                  : 1);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(kymo_nvtx_pop("across a fork"), KYMO_OK);
}

static void hear_nothing(void *ctx, const char *sentence)
{
    (void)sentence;
    ++*(int *)ctx;
}

static void without_memory_it_says_so_and_goes_on(void **state)
{
    (void)state;
    int n_heard = 0;
    kymo_set_sink(hear_nothing, &n_heard);
    enable(&tracked);
    const kymo_id deep = KYMO_ID("deep");
    kymo__alloc_fail_nth(1); /* the next time the stack grows */
    for (int i = 0; i < 10000; i++)
        kymo_begin(deep);
    kymo__alloc_fail_nth(0);
    assert_int_equal(n_heard, 1);
    assert_int_equal(kymo_pop_checked("deep"), KYMO_OK);
    kymo_set_sink(NULL, NULL);
}

/* ---- handles ---- */

static void a_handle_is_made_of_the_name(void **state)
{
    const struct scratch *s = *state;
    const uint64_t one = kymo_nvtx_register("one", 3);
    /* As it was and will be: compiled code keeps it on disk. */
    assert_int_equal(one, UINT64_C(0x1a08aa1921ca5caf));
    for (int i = 0; i < 1000; i++) {
        char name[32];
        const int len = snprintf(name, sizeof name, "name %d", i);
        const uint64_t handle = kymo_nvtx_register(name, (size_t)len);
        assert_int_equal(handle, kymo_nvtx_register(name, (size_t)len));
        assert_string_equal(kymo_site_name(kymo__handle_id(handle), NULL), name);
    }
    assert_string_equal(kymo_site_name(kymo__handle_id(one), NULL), "one");
    assert_int_equal(kymo__handle_id(0), 0);
    assert_int_equal(kymo_start(&(struct kymo_options){.path = s->path}), KYMO_OK);
    kymo_nvtx_push_handle(one);
    kymo_nvtx_push_handle(12345); /* nobody's */
    kymo_nvtx_pop_handle();
    kymo_nvtx_pop_handle();
    assert_int_equal(kymo_stop(), KYMO_OK);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_BEGIN), 2);
    assert_int_equal(scratch_count(s->path, KYMO_KIND_END), 2);
}

static void an_allocation_that_fails_leaves_handles_whole(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 20; n++) {
        char name[32];
        const int len = snprintf(name, sizeof name, "failing %d", (int)n);
        kymo__alloc_fail_nth(n);
        const uint64_t handle = kymo_nvtx_register(name, (size_t)len);
        kymo__alloc_fail_nth(0);
        assert_int_not_equal(handle, 0);
        assert_int_equal(kymo_nvtx_register(name, (size_t)len), handle);
        assert_int_not_equal(kymo__handle_id(handle), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(off_it_does_nothing),
        SCRATCH_TEST(without_a_recording_the_order_is_checked),
        SCRATCH_TEST(with_a_recording_the_ranges_are_in_it),
        SCRATCH_TEST(all_ranges_of_a_thread_are_one_stack),
        SCRATCH_TEST(a_pop_by_id_compares_names),
        SCRATCH_TEST(a_plain_pop_ends_what_the_wrapper_pushed),
        SCRATCH_TEST(a_range_from_before_the_check_is_ended_without_one),
        SCRATCH_TEST(a_second_enable_is_refused),
        SCRATCH_TEST(disabling_ends_what_this_thread_has_open),
        SCRATCH_TEST(options_switch_it_on),
        SCRATCH_TEST(a_stack_ends_with_its_thread),
        SCRATCH_TEST(a_stack_from_before_counts_as_empty),
        SCRATCH_TEST(ends_out_of_order_take_their_own),
        SCRATCH_TEST(a_child_ends_what_its_parent_began),
        SCRATCH_TEST(without_memory_it_says_so_and_goes_on),
        SCRATCH_TEST(a_handle_is_made_of_the_name),
        SCRATCH_TEST(an_allocation_that_fails_leaves_handles_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
