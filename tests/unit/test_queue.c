/* queue: bounded, in order, nothing lost or duplicated with any putters and takers. */
#include <sched.h>

#include "scratch.h"

static void what_goes_in_comes_out_in_order(void **state)
{
    (void)state;
    struct marey__queue queue;
    uint32_t value;
    assert_true(marey__queue_init(&queue, 3)); /* rounded up to 4 */
    assert_false(marey__queue_take(&queue, &value));
    for (uint32_t round = 0; round < 10; round++) {
        for (uint32_t i = 0; i < 4; i++)
            assert_true(marey__queue_put(&queue, round * 10 + i));
        assert_false(marey__queue_put(&queue, 99));
        assert_int_equal(marey__queue_length(&queue), 4);
        for (uint32_t i = 0; i < 4; i++) {
            assert_true(marey__queue_take(&queue, &value));
            assert_int_equal(value, round * 10 + i);
        }
        assert_false(marey__queue_take(&queue, &value));
    }
    marey__queue_fini(&queue);
}

static void without_memory_there_is_no_queue(void **state)
{
    (void)state;
    struct marey__queue queue;
    marey__alloc_fail_nth(1);
    assert_false(marey__queue_init(&queue, 8));
    marey__queue_fini(&queue);
}

enum { N_EACH = 20000, N_PUTTERS = 3, N_TAKERS = 3, N_ALL = N_EACH * N_PUTTERS };

static struct marey__queue shared;
static uint8_t n_taken_of[N_ALL];
static uint32_t n_taken, n_out_of_order;

static void *put_many(void *first)
{
    for (uint32_t i = 0; i < N_EACH; i++)
        while (!marey__queue_put(&shared, *(const uint32_t *)first + i))
            sched_yield();
    return NULL;
}

/* One putter's values reach one taker in the order in which they were put. */
static void *take_many(void *arg)
{
    (void)arg;
    uint32_t last[N_PUTTERS] = {0};
    while (__atomic_load_n(&n_taken, __ATOMIC_RELAXED) < N_ALL) {
        uint32_t value;
        if (!marey__queue_take(&shared, &value)) {
            sched_yield();
            continue;
        }
        __atomic_fetch_add(&n_taken_of[value], 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&n_taken, 1, __ATOMIC_RELAXED);
        const uint32_t putter = value / N_EACH;
        if (value + 1 < last[putter])
            __atomic_fetch_add(&n_out_of_order, 1, __ATOMIC_RELAXED);
        last[putter] = value + 1;
    }
    return NULL;
}

static void many_threads_lose_and_double_nothing(void **state)
{
    (void)state;
    pthread_t putters[N_PUTTERS], takers[N_TAKERS];
    uint32_t firsts[N_PUTTERS];
    assert_true(marey__queue_init(&shared, 64));
    for (uint32_t i = 0; i < N_PUTTERS; i++) {
        firsts[i] = i * N_EACH;
        pthread_create(&putters[i], NULL, put_many, &firsts[i]);
    }
    for (int i = 0; i < N_TAKERS; i++)
        pthread_create(&takers[i], NULL, take_many, NULL);
    for (int i = 0; i < N_PUTTERS; i++)
        pthread_join(putters[i], NULL);
    for (int i = 0; i < N_TAKERS; i++)
        pthread_join(takers[i], NULL);
    for (int i = 0; i < N_ALL; i++)
        assert_int_equal(n_taken_of[i], 1);
    assert_int_equal(n_out_of_order, 0);
    marey__queue_fini(&shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_in_comes_out_in_order),
        cmocka_unit_test(without_memory_there_is_no_queue),
        cmocka_unit_test(many_threads_lose_and_double_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
