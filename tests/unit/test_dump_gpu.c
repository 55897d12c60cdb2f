/* Tensors of a GPU, which a stand-in for CUDA's driver plays (tests/nvtx/cuda_driver.c): nothing happens before it is waited for. */
#include <dlfcn.h>
#include <sys/wait.h>

#include "instrument/dump/internal.h"
#include "scratch.h"

enum { STREAM = 301, CONTEXT = 3 };

static struct {
    int *is_capturing, *error, *no_memory;
    _Atomic int *n_clones, *n_freed, *n_waits, *n_spoiled;
    void (*set_ctx)(uintptr_t ctx);
    void (*fill)(void *to, int value, size_t len);
} driver;

static char dir[160];

static int setup(void **state)
{
    void *library = dlopen(MAREY_TEST_CUDA_DRIVER, RTLD_NOW);
    if (library == NULL || scratch_setup(state) != 0)
        return -1;
#define FIND(field, name) *(void **)&driver.field = dlsym(library, "marey_test_gpu_" name)
    FIND(is_capturing, "is_capturing");
    FIND(error, "error");
    FIND(no_memory, "no_memory");
    FIND(n_clones, "n_clones");
    FIND(n_freed, "n_freed");
    FIND(n_waits, "n_waits");
    FIND(n_spoiled, "n_spoiled");
    FIND(set_ctx, "set_ctx");
    FIND(fill, "fill");
#undef FIND
    driver.set_ctx(CONTEXT);
    const struct scratch *s = *state;
    snprintf(dir, sizeof dir, "%s/dumps", s->folder);
    return 0;
}

static void enable(struct marey_dump_options o)
{
    o.dir = dir;
    assert_int_equal(marey_dump_enable(&o), MAREY_OK);
}

static struct marey_tensor on_gpu(const float *data, uint32_t rank, const int64_t *sizes,
                                  const int64_t *strides)
{
    return (struct marey_tensor){.data = data,
                                 .dtype = MAREY_F32,
                                 .rank = rank,
                                 .sizes = sizes,
                                 .strides = strides,
                                 .memory = MAREY_MEMORY_CUDA,
                                 .stream = STREAM};
}

/* What a step's .npy holds; the caller frees it. */
static float *read_npy(const char *name, size_t n)
{
    char path[256];
    snprintf(path, sizeof path, "%s/step-00000000/%s.npy", dir, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, -(long)(n * sizeof(float)), SEEK_END);
    float *out = malloc(n * sizeof *out);
    assert_int_equal(fread(out, sizeof *out, n, f), n);
    fclose(f);
    return out;
}

static void assert_npy(const char *name, const float *expected, size_t n)
{
    float *found = read_npy(name, n);
    assert_memory_equal(found, expected, n * sizeof *found);
    free(found);
}

static void add(const char *name, struct marey_tensor t)
{
    const struct marey_dump_part part = {.key = name, .key_len = strlen(name)};
    const struct marey_dump_value value = {.tensor = t, .type = MAREY_DUMP_NPY};
    assert_int_equal(marey_dump_put(MAREY_DUMP_TENSORS, &part, 1, &value), MAREY_OK);
}

static void flush_and_wait(void)
{
    assert_int_equal(marey_dump_flush(NULL), MAREY_OK);
    assert_int_equal(marey_dump_wait(), MAREY_OK);
}

static void the_value_is_that_of_the_stream_at_the_call(void **state)
{
    (void)state;
    enable((struct marey_dump_options){0});
    float data[] = {1, 2, 3, 4, 5, 6};
    const float before[] = {1, 2, 3, 4, 5, 6}, zeros[6] = {0};
    const int64_t n = 6;
    add("before", on_gpu(data, 1, &n, NULL));
    driver.fill(data, 0, sizeof data); /* the program goes on in the same stream */
    add("after", on_gpu(data, 1, &n, NULL));
    flush_and_wait();
    assert_npy("before", before, 6);
    assert_npy("after", zeros, 6);
    assert_int_equal(marey_dump_disable(), MAREY_OK);
    assert_int_equal(*driver.n_clones, *driver.n_freed);
}

static void any_strides_come_out_row_major(void **state)
{
    (void)state;
    enable((struct marey_dump_options){0});
    static float data[2000 * 1000];
    for (int i = 0; i < 12; i++)
        data[i] = (float)i;
    const int64_t sizes[] = {3, 4}, transposed[] = {4, 3}, by_columns[] = {1, 4}, none[] = {0, 1};
    const int64_t backwards[] = {-4, 1}, column[] = {2000, 1}, far[] = {1000, 1};
    const float t[] = {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11};
    const float e[] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
    const float b[] = {8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3};
    add("transposed", on_gpu(data, 2, transposed, by_columns));
    add("expanded", on_gpu(data, 2, sizes, none));
    add("backwards", on_gpu(data + 8, 2, sizes, backwards));
    add("column", on_gpu(data, 2, column, far));
    const int64_t empty[] = {3, 0};
    add("empty", on_gpu(NULL, 2, empty, NULL));
    flush_and_wait();
    assert_npy("transposed", t, 12);
    assert_npy("expanded", e, 12);
    assert_npy("backwards", b, 12);
    float *found = read_npy("column", 2000);
    for (int i = 0; i < 2000; i++)
        assert_true(found[i] == data[i * 1000]);
    free(found);
}

static void default_streams_are_those_of_the_tensor_s_device(void **state)
{
    (void)state;
    enable((struct marey_dump_options){0});
    const float data[] = {1, 2, 3, 4, 5, 6};
    const int64_t n = 6;
    struct marey_tensor t = on_gpu(data, 1, &n, NULL);
    t.stream = 0;
    t.device = CONTEXT;
    add("current", t);
    t.device = 5;
    add("another", t);
    driver.set_ctx(0); /* a thread that has used no CUDA */
    add("none", t);
    driver.set_ctx(CONTEXT);
    flush_and_wait();
    assert_npy("current", data, 6);
    assert_npy("another", data, 6);
    assert_npy("none", data, 6);
}

static void one_that_is_larger_than_the_ring_is_whole(void **state)
{
    (void)state;
    enable((struct marey_dump_options){0});
    const int64_t n = (90 << 20) / (int64_t)sizeof(float) + 17;
    float *data = malloc((size_t)n * sizeof *data);
    for (int64_t i = 0; i < n; i++)
        data[i] = (float)(i % 1000003);
    add("large", on_gpu(data, 1, &n, NULL));
    driver.fill(data, 0, 1 << 20);
    flush_and_wait();
    float *found = read_npy("large", (size_t)n);
    int64_t n_wrong = 0;
    for (int64_t i = 0; i < n; i++)
        n_wrong += found[i] != (float)(i % 1000003);
    assert_int_equal(n_wrong, 0);
    free(found);
    free(data);
}

static void statistics_are_made_of_what_was_brought(void **state)
{
    (void)state;
    enable((struct marey_dump_options){.mode = MAREY_DUMP_STATS});
    const float data[] = {1, 2, 3, -4, 5, 6};
    const int64_t n = 6;
    const struct marey_tensor t = on_gpu(data, 1, &n, NULL);
    assert_int_equal(marey_dump_add("a", &t), MAREY_OK);
    flush_and_wait();
    char path[256], text[4096];
    snprintf(path, sizeof path, "%s/step-00000000.jsonl", dir);
    text[marey__read_text(path, text, sizeof text)] = '\0';
    assert_non_null(strstr(text, "\"negative\":1,\"min\":-4"));
    assert_null(strstr(text, "\"offset\""));
}

static void what_the_gpu_refuses_is_missing_and_counted(void **state)
{
    (void)state;
    enable((struct marey_dump_options){0});
    const float data[] = {1, 2, 3, 4, 5, 6};
    const int64_t n = 6;
    struct marey_dump_counts counts;
    *driver.no_memory = 1; /* the second try has it */
    add("a", on_gpu(data, 1, &n, NULL));
    marey_dump_counts_get(&counts);
    assert_int_equal(counts.n_failed, 0);
    *driver.no_memory = 2;
    add("b", on_gpu(data, 1, &n, NULL));
    *driver.no_memory = 0;
    driver.is_capturing[STREAM] = 1;
    add("c", on_gpu(data, 1, &n, NULL));
    driver.is_capturing[STREAM] = 0;
    marey_dump_counts_get(&counts);
    assert_int_equal(counts.n_failed, 2);
    assert_int_equal(*driver.n_spoiled, 0);
    flush_and_wait();
    assert_npy("a", data, 6);
    char path[256], text[4096];
    snprintf(path, sizeof path, "%s/step-00000000.jsonl", dir);
    text[marey__read_text(path, text, sizeof text)] = '\0';
    const char *missing = strstr(text, "\"missing\":\"gpu\"");
    assert_non_null(missing);
    assert_non_null(strstr(missing + 1, "\"missing\":\"gpu\""));
}

static int see(void *ctx, const struct marey_dump_entry *entry)
{
    *(float *)ctx = ((const float *)entry->value.tensor.data)[1];
    return 1;
}

static void what_waits_is_on_the_host_when_it_is_looked_at(void **state)
{
    (void)state;
    enable((struct marey_dump_options){0});
    const float data[] = {1, 2, 3, 4, 5, 6};
    const int64_t n = 6;
    float second = 0;
    add("a", on_gpu(data, 1, &n, NULL));
    assert_int_equal(marey_dump_visit_pending(see, &second), MAREY_OK);
    assert_true(second == 2);
    marey_dump_clear(MAREY_DUMP_TENSORS);
    add("a", on_gpu(data, 1, &n, NULL));
    const struct marey_dump_part part = {.key = "a", .key_len = 1};
    assert_int_equal(marey_dump_put(MAREY_DUMP_TENSORS, &part, 1,
                                    &(struct marey_dump_value){.tensor = on_gpu(data, 1, &n, NULL)}),
                     MAREY_ESTATE);
    assert_int_equal(marey_dump_disable(), MAREY_OK);
    assert_int_equal(*driver.n_clones, *driver.n_freed);
}

static void a_failed_allocation_loses_a_tensor_at_most(void **state)
{
    (void)state;
    const float data[] = {1, 2, 3, 4, 5, 6};
    const int64_t sizes[] = {2, 3}, strides[] = {1, 2};
    for (uint64_t nth = 1; nth < 60; nth++) {
        enable((struct marey_dump_options){0});
        marey__alloc_fail_nth(nth);
        const struct marey_tensor t = on_gpu(data, 2, sizes, strides);
        assert_int_equal(marey_dump_add("a", &t), MAREY_OK);
        marey_dump_flush(NULL);
        marey_dump_wait();
        marey__alloc_fail_nth(0);
        marey_dump_disable();
        assert_int_equal(*driver.n_clones, *driver.n_freed);
    }
}

#define GPU_TEST(name) cmocka_unit_test_setup_teardown(name, setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        GPU_TEST(the_value_is_that_of_the_stream_at_the_call),
        GPU_TEST(any_strides_come_out_row_major),
        GPU_TEST(default_streams_are_those_of_the_tensor_s_device),
        GPU_TEST(one_that_is_larger_than_the_ring_is_whole),
        GPU_TEST(statistics_are_made_of_what_was_brought),
        GPU_TEST(what_the_gpu_refuses_is_missing_and_counted),
        GPU_TEST(what_waits_is_on_the_host_when_it_is_looked_at),
        GPU_TEST(a_failed_allocation_loses_a_tensor_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
