/* CUPTI's records of CUDA memory: blocks by address, allocation sites, each allocation failing
 * once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/memory/internal.h"
#include "log_maker.h"
#include "table_view.h"

enum { OUTER = 1, INNER = 2, TAKE = 4, GIVE = 5, MALLOC = 6, FREE = 7, PINNED = 8 };

static int setup(void **state)
{
    struct log_maker *log = *state = calloc(1, sizeof *log);
    if (log == NULL)
        return 1;
    log_put_preamble(log);
    log_put_site_of(log, TAKE, "take Device memory", "cuda_memory", "");
    log_put_site_of(log, GIVE, "give back Device memory", "cuda_memory", "");
    log_put_site_of(log, MALLOC, "cudaMalloc", "cuda_runtime", "");
    log_put_site_of(log, FREE, "cudaFree", "cuda_runtime", "");
    log_put_site_of(log, PINNED, "take Pinned memory", "cuda_memory", "");
    log_put_stream(log, 1, 0, 7, "");
    log_put_stream(log, 2, 1, 7, "");
    return 0;
}

static int teardown(void **state)
{
    log_maker_fini(*state);
    free(*state);
    return 0;
}

static void call(struct log_maker *log, uint64_t tick, uint32_t site, uint64_t correlation)
{
    const uint64_t words[] = {correlation, MAREY_WORK_MEMORY};
    log_begin(log, tick, site);
    log_record(log, tick, MAREY_RECORD_LAUNCH, words, 2);
    log_end(log, tick + 10, site);
}

static void memory(struct log_maker *log, uint64_t tick, uint32_t site, uint64_t correlation,
                   uint64_t bytes, uint64_t address)
{
    const uint64_t words[] = {site | (uint64_t)MAREY_WORK_MEMORY << 20, 0, correlation, bytes,
                              address};
    log_record(log, tick, MAREY_RECORD_GPU, words, address != 0 ? 5 : 4);
}

/* Two blocks at one address, one after the other; one that stays; one on another device; one whose address is missing. */
static void put_program(struct log_maker *log)
{
    log_begin(log, 0, OUTER);
    call(log, 1000, MALLOC, 1);
    log_begin(log, 2000, INNER);
    call(log, 2100, MALLOC, 2);
    log_end(log, 2500, INNER);
    call(log, 3000, FREE, 3);
    call(log, 4000, MALLOC, 4);
    call(log, 5000, MALLOC, 5);
    log_end(log, 9000, OUTER);
    log_put_words(log, 0, 0);
    memory(log, 1005, TAKE, 1, 100, 4096);
    memory(log, 2105, TAKE, 2, 1000, 8192);
    memory(log, 3005, GIVE, 3, 100, 4096);
    memory(log, 4005, TAKE, 4, 300, 4096);
    memory(log, 4500, GIVE, 0, 7, 512); /* of before */
    memory(log, 4600, TAKE, 0, 9, 0);
    log_put_words(log, 1, 0);
    memory(log, 5005, TAKE, 5, 5000, 4096);
    memory(log, 5100, PINNED, 0, 40, 64);
    log_put_words(log, 2, 0);
    log_put_end(log, "stop");
}

static size_t row_of(marey_report *report, const char *table, const char *column, const char *value)
{
    return table_row(marey_report_table(report, table), column, value);
}

static double bytes_of(marey_report *report, const char *table, size_t row, const char *column)
{
    return table_cell(marey_report_table(report, table), row, column).as.f64;
}

static void blocks_are_reported_by_address_and_by_who_asked(void **state)
{
    marey_recording *recording = NULL;
    marey_report *report = NULL;
    put_program(*state);
    assert_int_equal(log_open(*state, &recording), MAREY_OK);
    assert_int_equal(marey_report_create("memory", &recording, 1, NULL, &report), MAREY_OK);
    assert_int_equal(marey_table_n_rows(marey_report_table(report, "pools")), 3);
    const size_t first = row_of(report, "pools", "device", "cuda:0"),
                 second = row_of(report, "pools", "device", "cuda:1");
    assert_true(bytes_of(report, "pools", first, "peak_bytes") == 1307);
    assert_true(bytes_of(report, "pools", first, "end_bytes") == 1300);
    assert_true(bytes_of(report, "pools", second, "peak_bytes") == 5000);
    const size_t inner = row_of(report, "stacks", "where", "cudaMalloc < inner < outer");
    assert_true(bytes_of(report, "stacks", inner, "bytes") == 1000);
    assert_true(bytes_of(report, "stacks",
                         row_of(report, "stacks", "where", "(allocated before recording)"),
                         "bytes") == 7);
    assert_true(
        bytes_of(report, "stacks", row_of(report, "stacks", "where", "(no stack)"), "bytes") == 40);
    const struct marey_cell note = table_cell(marey_report_table(report, "notes"), 0, "text");
    assert_non_null(strstr(note.as.text, "1 CUDA allocations or frees"));
    marey_report_destroy(report);
    log_close(recording);
}

static void a_lack_of_memory_leaves_nothing_behind(void **state)
{
    marey_recording *recording = NULL;
    put_program(*state);
    assert_int_equal(log_open(*state, &recording), MAREY_OK);
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        marey_report *report = NULL;
        marey__alloc_fail_nth(nth);
        status = marey_report_create("memory", &recording, 1, NULL, &report);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || (status == MAREY_ENOMEM && report == NULL));
        marey_report_destroy(report);
        assert_true(nth < 10000);
    }
    log_close(recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(blocks_are_reported_by_address_and_by_who_asked, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_lack_of_memory_leaves_nothing_behind, setup, teardown),
    };
    return cmocka_run_group_tests_name("memory_cuda", tests, NULL, NULL);
}
