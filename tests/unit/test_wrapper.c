/* The range wrapper, and the stacks of threads that it and the check of nesting stand on. */
#include <pthread.h>
#include <sys/wait.h>

#include "record/internal.h"
#include "scratch.h"
#include <marey/nvtx.h>

static void enable(const struct marey_nvtx_options *options)
{
    assert_int_equal(marey_nvtx_enable(options), MAREY_OK);
}

static const struct marey_nvtx_options tracked = {.keep_track_of_range_order = 1};

static size_t depth(void)
{
    const struct marey__stack *const stack = marey__stack_get();
    return stack != NULL ? stack->depth : SIZE_MAX;
}

static void off_it_does_nothing(void **state)
{
    const struct scratch *s = *state;
    assert_false(marey_nvtx_is_enabled());
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    marey_nvtx_push(MAREY_ID("push"));
    assert_int_equal(marey_nvtx_pop("other"), MAREY_OK);
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_BEGIN), 0);
}

static void without_a_recording_the_order_is_checked(void **state)
{
    (void)state;
    enable(&tracked);
    assert_true(marey_nvtx_is_enabled());
    marey_nvtx_push(MAREY_ID("outer"));
    marey_nvtx_push(MAREY_ID("inner"));
    assert_int_equal(marey_nvtx_pop("outer"), MAREY_EMISMATCH);
    assert_non_null(strstr(marey_last_error(), "'outer' was popped, but 'inner' was pushed last"));
    assert_non_null(strstr(marey_last_error(), "outer > inner"));
    assert_non_null(strstr(marey_last_error(), "nothing was popped"));
    assert_int_equal(marey_nvtx_pop("inner"), MAREY_OK);
    assert_int_equal(marey_nvtx_pop(NULL), MAREY_OK);
    assert_int_equal(marey_nvtx_pop(NULL), MAREY_EMISMATCH);
    assert_non_null(strstr(marey_last_error(), "nothing is pushed"));
}

static void with_a_recording_the_ranges_are_in_it(void **state)
{
    const struct scratch *s = *state;
    enable(NULL);
    marey_nvtx_push(MAREY_ID("begun before"));
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    marey_nvtx_push(MAREY_ID("inside"));
    assert_int_equal(marey_nvtx_pop("a name that nobody checks"), MAREY_OK);
    assert_int_equal(marey_nvtx_pop(NULL), MAREY_OK);
    assert_int_equal(marey_nvtx_pop(NULL), MAREY_OK); /* nothing is left to pop */
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_BEGIN), 1);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_END), 2);
}

static void all_ranges_of_a_thread_are_one_stack(void **state)
{
    (void)state;
    enable(&tracked);
    marey_nvtx_push(MAREY_ID("wrapped"));
    marey_push("plain");
    assert_int_equal(marey_nvtx_pop("wrapped"), MAREY_EMISMATCH);
    marey_pop();
    assert_int_equal(marey_nvtx_pop("wrapped"), MAREY_OK);
}

static void a_pop_by_id_compares_names(void **state)
{
    (void)state;
    enable(&tracked);
    marey_nvtx_push(MAREY_ID("a"));
    assert_int_equal(marey_nvtx_pop_id(MAREY_ID("b")), MAREY_EMISMATCH);
    assert_non_null(strstr(marey_last_error(), "'b' was popped, but 'a' was pushed last"));
    assert_int_equal(marey_nvtx_pop_id(MAREY_ID("a", .category = "of another site")), MAREY_OK);
    marey_nvtx_push(MAREY_ID("a"));
    assert_int_equal(marey_nvtx_pop_id(0), MAREY_OK);
    assert_int_equal(marey_nvtx_pop_id(0), MAREY_EMISMATCH);
    marey_nvtx_disable();
    assert_int_equal(marey_nvtx_pop_id(MAREY_ID("off")), MAREY_OK);
}

/* Without a check as well: what disable() ends must be the wrapper's own. */
static void a_plain_pop_ends_what_the_wrapper_pushed(void **state)
{
    const struct scratch *s = *state;
    enable(NULL);
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    marey_push("plain");
    marey_nvtx_push(MAREY_ID("wrapped"));
    marey_pop();
    assert_int_equal(depth(), 1);
    marey_nvtx_disable();
    marey_pop();
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_BEGIN), 2);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_END), 2);
}

static void a_range_from_before_the_check_is_ended_without_one(void **state)
{
    const struct scratch *s = *state;
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    marey_begin(MAREY_ID("before"));
    enable(&tracked);
    marey_nvtx_push(MAREY_ID("inside"));
    marey_end_unchecked(MAREY_ID("before"));
    assert_int_equal(depth(), 1);
    assert_int_equal(marey_nvtx_pop("inside"), MAREY_OK);
    marey_begin(MAREY_ID("after"));
    marey_end_unchecked(MAREY_ID("after"));
    assert_int_equal(depth(), 0);
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_END), 3);
}

static void a_second_enable_is_refused(void **state)
{
    (void)state;
    enable(&tracked);
    assert_int_equal(marey_nvtx_enable(&tracked), MAREY_ESTATE);
    assert_non_null(strstr(marey_last_error(), "already enabled"));
    marey_nvtx_disable();
    assert_false(marey_nvtx_is_enabled());
    enable(NULL);
    assert_int_equal(marey_on() & MAREY_ON_ORDER, 0);
}

static void disabling_ends_what_this_thread_has_open(void **state)
{
    const struct scratch *s = *state;
    enable(NULL);
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    marey_nvtx_push(MAREY_ID("a"));
    marey_nvtx_push(MAREY_ID("b"));
    marey_nvtx_disable();
    assert_int_equal(marey_nvtx_pop(NULL), MAREY_OK);
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_END), 2);
}

static void options_switch_it_on(void **state)
{
    const struct scratch *s = *state;
    assert_int_equal(
        marey_start(&(struct marey_options){.path = s->path,
                                            .text = "nvtx.sync_on_pop=1,nvtx.sync_on_push=0,"
                                                    "nvtx.keep_track_of_range_order=yes"}),
        MAREY_OK);
    assert_int_equal(marey_on(),
                     MAREY_ON_RECORD | MAREY_ON_WRAPPER | MAREY_ON_ORDER | MAREY_ON_SYNC_POP);
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_true(marey_nvtx_is_enabled());
    marey_reset();
    assert_int_equal(marey_on(), 0);
    assert_int_equal(marey_options_check("nvtx.sync_on_pop=maybe"), MAREY_EINVAL);
}

/* ---- stacks ---- */

static void *push_one(void *arg)
{
    marey_nvtx_push(MAREY_ID("of a thread"));
    *(size_t *)arg = depth();
    return NULL;
}

static void a_stack_ends_with_its_thread(void **state)
{
    (void)state;
    enable(&tracked);
    marey_nvtx_push(MAREY_ID("mine"));
    for (int i = 0; i < 3; i++) { /* later threads get the memory, and often the id, of the one before */
        pthread_t thread;
        size_t theirs = 0;
        assert_int_equal(pthread_create(&thread, NULL, push_one, &theirs), 0);
        pthread_join(thread, NULL);
        assert_int_equal(theirs, 1);
    }
    assert_int_equal(depth(), 1);
    assert_int_equal(marey_nvtx_pop("mine"), MAREY_OK);
}

static void a_stack_from_before_counts_as_empty(void **state)
{
    (void)state;
    enable(&tracked);
    marey_push("never ended");
    assert_int_equal(depth(), 1);
    marey_nvtx_disable();
    enable(&tracked);
    assert_int_equal(depth(), 0);
}

static void ends_out_of_order_take_their_own(void **state)
{
    (void)state;
    enable(&tracked);
    const marey_id a = MAREY_ID("a"), b = MAREY_ID("b"), other_a = MAREY_ID("a");
    marey__stack_push(a);
    marey__stack_push(b | MAREY__ENTRY_NVTX);
    marey__stack_push(other_a);
    assert_int_equal(marey__stack_take(MAREY_ID("unknown")), 0);
    assert_int_equal(marey__stack_take(b), b | MAREY__ENTRY_NVTX);
    assert_int_equal(marey__stack_take(a), a);
    assert_int_equal(marey__stack_take(a), other_a); /* another place, the same name */
    assert_int_equal(marey__stack_take(0), 0);
}

static void a_child_ends_what_its_parent_began(void **state)
{
    (void)state;
    enable(&tracked);
    marey_nvtx_push(MAREY_ID("across a fork"));
    const pid_t child = fork();
    if (child == 0)
        _exit(marey_nvtx_is_enabled() && marey_nvtx_pop("across a fork") == MAREY_OK &&
                      marey_nvtx_pop(NULL) == MAREY_EMISMATCH
                  ? 0
                  : 1);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(marey_nvtx_pop("across a fork"), MAREY_OK);
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
    marey_set_sink(hear_nothing, &n_heard);
    enable(&tracked);
    const marey_id deep = MAREY_ID("deep");
    marey__alloc_fail_nth(1); /* the next time the stack grows */
    for (int i = 0; i < 10000; i++)
        marey_begin(deep);
    marey__alloc_fail_nth(0);
    assert_int_equal(n_heard, 1);
    assert_int_equal(marey_pop_checked("deep"), MAREY_OK);
    marey_set_sink(NULL, NULL);
}

/* ---- handles ---- */

static void a_handle_is_made_of_the_name(void **state)
{
    const struct scratch *s = *state;
    const uint64_t one = marey_nvtx_register("one", 3);
    /* As it was and will be: compiled code keeps it on disk. */
    assert_int_equal(one, UINT64_C(0x1a08aa1921ca5caf));
    for (int i = 0; i < 1000; i++) {
        char name[32];
        const int len = snprintf(name, sizeof name, "name %d", i);
        const uint64_t handle = marey_nvtx_register(name, (size_t)len);
        assert_int_equal(handle, marey_nvtx_register(name, (size_t)len));
        assert_string_equal(marey_site_name(marey__handle_id(handle), NULL), name);
    }
    assert_string_equal(marey_site_name(marey__handle_id(one), NULL), "one");
    assert_int_equal(marey__handle_id(0), 0);
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    marey_nvtx_push_handle(one);
    marey_nvtx_push_handle(12345); /* nobody's */
    marey_nvtx_pop_handle();
    marey_nvtx_pop_handle();
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_BEGIN), 2);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_END), 2);
}

static void an_allocation_that_fails_leaves_handles_whole(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 20; n++) {
        char name[32];
        const int len = snprintf(name, sizeof name, "failing %d", (int)n);
        marey__alloc_fail_nth(n);
        const uint64_t handle = marey_nvtx_register(name, (size_t)len);
        marey__alloc_fail_nth(0);
        assert_int_not_equal(handle, 0);
        assert_int_equal(marey_nvtx_register(name, (size_t)len), handle);
        assert_int_not_equal(marey__handle_id(handle), 0);
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
