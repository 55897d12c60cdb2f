/* intern: equal content, equal ids, from any thread, for good; also when memory runs out. */
#include "scratch.h"

static marey_id intern_name(const char *name)
{
    return marey_site_intern(name, strlen(name), NULL, 0, NULL, 0);
}

static void equal_content_gives_equal_ids(void **state)
{
    (void)state;
    const marey_id id = intern_name("equal");
    assert_int_equal(intern_name("equal"), id);
    assert_int_not_equal(intern_name("other"), id);
    assert_int_not_equal(marey_site_intern("equal", 5, "category", 0, NULL, 0), id);
    assert_int_not_equal(marey_site_intern("equal", 5, NULL, 1, NULL, 0), id);
    assert_int_not_equal(marey_site_intern("equal", 5, NULL, 0, "file.c", 0), id);
    assert_int_not_equal(marey_site_intern("equal", 5, NULL, 0, NULL, 2), id);
}

static void any_bytes_are_a_name(void **state)
{
    (void)state;
    const marey_id zero = marey_site_intern("a\0b", 3, NULL, 0, NULL, 0);
    size_t len;
    assert_int_not_equal(zero, intern_name("a"));
    assert_memory_equal(marey_site_name(zero, &len), "a\0b", 4);
    assert_int_equal(len, 3);
    assert_int_not_equal(intern_name(""), 0);
}

static void what_is_too_long_is_cut(void **state)
{
    (void)state;
    const size_t size = MAREY__NAME_MAX + 10;
    char *name = malloc(size);
    memset(name, 'x', size);
    size_t len;
    marey_site_name(marey_site_intern(name, size, NULL, 0, NULL, 0), &len);
    assert_int_equal(len, MAREY__NAME_MAX);
    free(name);
}

static void an_id_that_was_never_given_has_no_name(void **state)
{
    (void)state;
    size_t len = 7;
    assert_string_equal(marey_site_name(0, &len), "");
    assert_int_equal(len, 0);
    assert_string_equal(marey_site_name(UINT32_MAX, NULL), "");
}

static void a_whole_site_is_interned_with_any_name(void **state)
{
    (void)state;
    const struct marey_site site = {.name = "a\0b", .category = "c", .domain = "d", .color = 3};
    const marey_id id = marey_site_intern_whole(&site, 3);
    assert_int_equal(marey_site_intern_whole(&site, 3), id);
    assert_int_not_equal(marey_site_intern_whole(&site, 1), id);
    assert_int_equal(site.id, 0);
    const struct marey__site *kept = marey__intern_get(id);
    assert_memory_equal(kept->name, "a\0b", 4);
    assert_string_equal(kept->domain, "d");
    const struct marey_site elsewhere = {.name = "a\0b", .category = "c", .color = 3};
    assert_int_not_equal(marey_site_intern_whole(&elsewhere, 3), id);
}

static void a_site_keeps_its_id(void **state)
{
    (void)state;
    static struct marey_site site = MAREY_SITE("a site", .category = "c", .domain = "d", .color = 3);
    const marey_id id = marey_site_id(&site);
    assert_int_equal(marey_site_id(&site), id);
    const struct marey__site *kept = marey__intern_get(id);
    assert_string_equal(kept->category, "c");
    assert_string_equal(kept->domain, "d");
    assert_string_equal(kept->file, __FILE__);
    assert_int_equal(kept->color, 3);
}

/* The smallest table has 256 slots; in one of them all, each look-up would walk past all the others. */
static void names_that_end_differently_spread_over_the_table(void **state)
{
    (void)state;
    static const char *const forms[] = {"block%d", "l.%d", "layer.%d.mlp", "%d of them"};
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
        bool seen[256] = {false};
        size_t n_slots = 0;
        for (int i = 0; i < 100; i++) {
            char name[32];
            snprintf(name, sizeof name, forms[f], i);
            const uint32_t slot = marey__intern_get(intern_name(name))->hash & 255;
            n_slots += !seen[slot];
            seen[slot] = true;
        }
        assert_in_range(n_slots, 65, 100); /* by chance, 83 */
    }
}

enum { N_NAMES = 5000, N_THREADS = 4 };

static void *intern_many(void *ids)
{
    for (int i = 0; i < N_NAMES; i++) {
        char name[32];
        snprintf(name, sizeof name, "shared %d", i);
        ((marey_id *)ids)[i] = intern_name(name);
    }
    return NULL;
}

static void threads_agree_about_ids(void **state)
{
    (void)state;
    static marey_id ids[N_THREADS][N_NAMES];
    pthread_t threads[N_THREADS];
    for (int t = 0; t < N_THREADS; t++)
        pthread_create(&threads[t], NULL, intern_many, ids[t]);
    for (int t = 0; t < N_THREADS; t++)
        pthread_join(threads[t], NULL);
    for (int t = 1; t < N_THREADS; t++)
        assert_memory_equal(ids[0], ids[t], sizeof ids[0]);
}

static void without_memory_a_name_is_another_and_the_next_try_works(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 20; n++) {
        char name[32];
        snprintf(name, sizeof name, "no memory %d", (int)n);
        marey__alloc_fail_nth(n);
        const marey_id first = intern_name(name);
        marey__alloc_fail_nth(0);
        const marey_id second = intern_name(name);
        assert_true(first == MAREY__SITE_OTHER || first == second);
        assert_string_equal(marey_site_name(second, NULL), name);
    }
}

static marey_id heard_last;
static size_t n_heard, n_ends;

static bool listen(const struct marey__site *site)
{
    if (site == NULL) {
        n_ends++;
        return true;
    }
    assert_int_equal(site->id, heard_last + 1);
    heard_last = site->id;
    n_heard++;
    return true;
}

static void a_listener_hears_every_site_once_and_in_order(void **state)
{
    (void)state;
    assert_true(marey__intern_listen(listen));
    assert_int_equal(n_heard, marey__intern_count());
    intern_name("heard at once");
    assert_int_equal(n_heard, marey__intern_count());
    assert_int_equal(n_ends, 1);
    assert_true(marey__intern_listen(NULL));
    intern_name("not heard");
    assert_int_equal(n_heard + 1, marey__intern_count());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_a_name_is_another_and_the_next_try_works),
        cmocka_unit_test(equal_content_gives_equal_ids),
        cmocka_unit_test(any_bytes_are_a_name),
        cmocka_unit_test(what_is_too_long_is_cut),
        cmocka_unit_test(an_id_that_was_never_given_has_no_name),
        cmocka_unit_test(a_whole_site_is_interned_with_any_name),
        cmocka_unit_test(a_site_keeps_its_id),
        cmocka_unit_test(names_that_end_differently_spread_over_the_table),
        cmocka_unit_test(threads_agree_about_ids),
        cmocka_unit_test(a_listener_hears_every_site_once_and_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
