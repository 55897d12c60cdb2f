/*
 * core/sampler/remote over memory that was kept of real processes, one of each version (tests/fuzz/corpus/remote): Pythons that are
 * not here are read all the same, and running out of memory anywhere on the way loses a part and nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "remote_image.h"

static const char *const names[] = {"py310", "py311", "py312",  "py313",
                                    "py314", "py315", "py313t", "py314t"};

struct kept {
    struct marey__buf bytes;
    struct image image;
};

static void kept_open(const char *name, struct kept *out)
{
    char path[512], some[4096];
    *out = (struct kept){0};
    snprintf(path, sizeof path, "%s/remote/%s", MAREY_CORPUS, name);
    FILE *const file = fopen(path, "rb");
    assert_non_null(file);
    for (size_t n; (n = fread(some, 1, sizeof some, file)) > 0;)
        marey__buf_put(&out->bytes, some, n);
    fclose(file);
    assert_true(image_parse((const uint8_t *)out->bytes.data, out->bytes.len, &out->image));
}

static void kept_close(struct kept *kept)
{
    marey__free(kept->image.pieces);
    marey__buf_fini(&kept->bytes);
}

static void every_version_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAREY__COUNT_OF(names); i++) {
        struct kept kept;
        struct marey__remote *remote = NULL;
        struct marey__buf told = {0};
        kept_open(names[i], &kept);
        const struct marey__remote_memory memory = image_memory(&kept.image);
        if (marey__remote_open_image(&memory, kept.image.runtime, kept.image.version, &remote) !=
            MAREY_OK)
            fail_msg("%s: %s", names[i], marey_last_error());
        assert_int_equal(marey__remote_layout(remote)->is_free_threaded,
                         strchr(names[i], 't') != NULL);
        image_tell(remote, &told);
        if (strstr(told.data, "thread MainThread in an exception\n  caller (<string>:9)\n"
                              "  <module> (<string>:11)\n  whole\n") == NULL ||
            strstr(told.data, "thread s) \xc3\xa4\n  wait (<string>:3)\n") == NULL)
            fail_msg("%s: %s", names[i], told.data);
        marey__remote_close(remote);
        marey__buf_fini(&told);
        kept_close(&kept);
    }
}

/* A version that nobody knows yet, by the order of the newest; and what is said where that does not fit. */
static void newer_version_is_tried_and_judged(void **state)
{
    (void)state;
    struct kept kept;
    struct marey__remote *remote = NULL;
    kept_open("py315", &kept);
    const struct marey__remote_memory memory = image_memory(&kept.image);
    uint8_t *table = NULL;
    for (size_t i = 0; i < kept.image.n; i++)
        if (kept.image.pieces[i].at == kept.image.runtime)
            table = (uint8_t *)(uintptr_t)kept.image.pieces[i].bytes;
    assert_non_null(table);
    table[10] = 17; /* 3.17 */
    assert_int_equal(marey__remote_open_image(&memory, kept.image.runtime, 0x031100f0, &remote),
                     MAREY_OK);
    assert_int_equal(marey__remote_layout(remote)->version >> 16, 0x0311);
    marey__remote_close(remote);
    memset(table + 400, 0xff, 8); /* where the name of a code object is */
    assert_int_equal(marey__remote_open_image(&memory, kept.image.runtime, 0x031100f0, &remote),
                     MAREY_EUNAVAILABLE);
    assert_non_null(strstr(marey_last_error(), "runs Python 3.17"));
    assert_non_null(strstr(marey_last_error(), "code_object.qualname"));
    assert_int_equal(marey__remote_open_image(&memory, kept.image.runtime, 0x03091200, &remote),
                     MAREY_EUNAVAILABLE);
    assert_non_null(strstr(marey_last_error(), "Python 3.9 is not supported; 3.10 to 3.14 are"));
    kept_close(&kept);
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAREY__COUNT_OF(names); i++) {
        struct kept kept;
        kept_open(names[i], &kept);
        const struct marey__remote_memory memory = image_memory(&kept.image);
        bool is_done = false;
        for (uint64_t nth = 1; !is_done; nth++) {
            struct marey__remote *remote = NULL;
            struct marey__buf told = {0};
            marey__alloc_fail_nth(nth);
            const marey_status status =
                marey__remote_open_image(&memory, kept.image.runtime, kept.image.version, &remote);
            if (status == MAREY_OK)
                image_tell(remote, &told);
            marey__alloc_fail_nth(0);
            marey__remote_close(status == MAREY_OK ? remote : NULL);
            /* With the first that is beyond all of them, nothing is missing. */
            is_done =
                status == MAREY_OK && !told.failed && told.data != NULL &&
                strstr(told.data, "thread MainThread in an exception\n  caller (<string>:9)\n") !=
                    NULL &&
                strstr(told.data, "thread s) \xc3\xa4\n  wait (<string>:3)\n") != NULL && nth > 40;
            marey__buf_fini(&told);
            assert_true(nth < 2000);
        }
        kept_close(&kept);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_is_read),
        cmocka_unit_test(newer_version_is_tried_and_judged),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
