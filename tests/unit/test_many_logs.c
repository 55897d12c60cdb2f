/* Optimizations for reports over many logs do not change results: the fast loop, shared tables of
 * sites. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/summary/internal.h"
#include "log_maker.h"
#include "read/internal.h"
#include <marey/report.h>

/* ---- the fast loop ---- */

enum { N_WORDS = 3000, N_SITES = 12 };

/* A walk with a tap does not take the shortcut of lane_plain.c. */
static bool hear_call(void *ctx, const struct marey__lane_walk *lane,
                      const struct marey__frame *frame, uint64_t end_ns)
{
    (void)ctx, (void)lane, (void)frame, (void)end_ns;
    return true;
}

static marey_status listen(void *ctx, struct marey__process_walk *walk, size_t number)
{
    static const struct marey__walk_tap tap = {.call = hear_call};
    (void)ctx, (void)number;
    walk->tap = &tap;
    return MAREY_OK;
}

static marey_status leave(void *ctx, struct marey__process_walk *walk, size_t number)
{
    (void)ctx, (void)walk, (void)number;
    return MAREY_OK;
}

static uint32_t draw(uint64_t *random, uint32_t n)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*random >> 33) % n;
}

/* Begins and ends that nest as a rule; now and then an end of another name, an orphan, an unknown site, a mark, an iteration. */
static void put_program(struct log_maker *log, uint64_t seed, uint32_t deepest)
{
    uint64_t random = seed, tick = 0, n_iterations = 0;
    uint32_t stack[1024];
    size_t depth = 0;
    for (int i = 0; i < N_WORDS; i++) {
        const uint32_t what = draw(&random, 100), site = 1 + draw(&random, N_SITES);
        tick += draw(&random, 2) != 0 ? draw(&random, 50) : draw(&random, 1 << 20);
        if (what < 2) {
            log_end(log, tick, 1 + draw(&random, N_SITES + 3));
            depth = 0; /* what is open is no longer known; ends may be orphans from here on */
        } else if (what < 3) {
            log_iteration(log, tick, n_iterations++, false, 0);
        } else if (depth < deepest && (depth == 0 || what < 53 + 22 * (deepest > 400))) {
            stack[depth++] = site;
            log_begin(log, tick, site);
        } else {
            log_end(log, tick, what % 7 == 0 ? 0 : stack[depth - 1]);
            depth--;
        }
    }
}

static char *all_tables(marey_recording *recording, const struct marey__summary_tap *tap)
{
    static const char *const names[] = {"ranges",  "tree",  "threads",    "ranks",
                                        "open",    "marks", "iterations", "iteration_ranks",
                                        "warnings"};
    marey_report *summary = NULL;
    const struct marey_report_options options = {0};
    const struct marey__request request = {.recordings = &recording,
                                           .n = 1,
                                           .input = &(struct marey__summary_input){.tap = tap},
                                           .options = &options};
    assert_int_equal(marey__report_make("ranges", &request, &summary), MAREY_OK);
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(marey_present_csv(marey_report_table(summary, names[i]), out), MAREY_OK);
    fclose(out);
    marey_report_destroy(summary);
    return text;
}

static void what_is_usual_gives_the_same_answer_by_itself(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct log_maker log = {0};
        log_put_preamble(&log);
        for (uint32_t site = 4; site <= N_SITES; site++) {
            char name[16];
            snprintf(name, sizeof name, "site %u", site % 10); /* some names have two sites */
            log_put_site(&log, site, name);
        }
        put_program(&log, seed, seed % 4 == 0 ? 600 : 8);
        log_put_words(&log, 0, 0);
        log_put_end(&log, "stop");
        marey_recording *recording = NULL;
        assert_int_equal(log_open(&log, &recording), MAREY_OK);
        const struct marey__summary_tap tap = {.begin = listen, .end = leave};
        char *quick = all_tables(recording, NULL), *slow = all_tables(recording, &tap);
        assert_string_equal(quick, slow);
        assert_true(strlen(quick) > 500);
        free(quick);
        free(slow);
        log_close(recording);
        log_maker_fini(&log);
    }
}

/* ---- tables of sites ---- */

static struct marey__site_table *make_table(const char *first, const char *second, uint32_t line)
{
    const char *const names[] = {first, second};
    struct marey__site_table *table = NULL;
    assert_non_null(marey__site_table_make(&table));
    for (uint32_t i = 0; i < 2; i++) {
        const struct marey__site_entry entry = {
            .id = 20 * i + 1, .line = line, .name_len = (uint32_t)strlen(names[i])};
        assert_true(marey__site_table_add(table, &entry, names[i]));
    }
    return table;
}

static void equal_tables_become_one(void **state)
{
    (void)state;
    struct marey__site_tables tables;
    struct marey__site_table *a = make_table("x", "y", 7), *b = make_table("x", "y", 7),
                             *other_line = make_table("x", "y", 8),
                             *other_name = make_table("x", "z", 7), *none = NULL;
    marey__site_tables_init(&tables);
    marey__site_tables_share(&tables, &a);
    marey__site_tables_share(&tables, &b);
    marey__site_tables_share(&tables, &other_line);
    marey__site_tables_share(&tables, &other_name);
    marey__site_tables_share(&tables, &none);
    marey__site_tables_fini(&tables);
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a, other_line);
    assert_ptr_not_equal(a, other_name);
    assert_null(none);
    marey__site_table_release(a);
    assert_string_equal(marey__site_table_get(b, 21)->name, "y");
    assert_null(marey__site_table_get(b, 2));
    marey__site_table_release(b);
    marey__site_table_release(other_line);
    marey__site_table_release(other_name);
}

static void more_tables_than_are_shared_stay_with_their_logs(void **state)
{
    (void)state;
    enum { N = 2 * MAREY__MAX_SHARED_TABLES };
    struct marey__site_tables tables;
    struct marey__site_table *all[N];
    marey__site_tables_init(&tables);
    for (uint32_t i = 0; i < N; i++) {
        all[i] = make_table("x", "y", i);
        marey__site_tables_share(&tables, &all[i]);
    }
    marey__site_tables_fini(&tables);
    for (uint32_t i = 0; i < N; i++) {
        assert_int_equal(marey__site_table_get(all[i], 1)->line, i);
        marey__site_table_release(all[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_usual_gives_the_same_answer_by_itself),
        cmocka_unit_test(equal_tables_become_one),
        cmocka_unit_test(more_tables_than_are_shared_stay_with_their_logs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
