/* Files and folders of other tools: selection, ranks, and cleanup after failures. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "import/internal.h"

/* ---- a folder of its own ---- */

struct folder {
    char path[64];
};

static int setup(void **state)
{
    struct folder *folder = calloc(1, sizeof *folder);
    snprintf(folder->path, sizeof folder->path, "/tmp/marey-import-XXXXXX");
    *state = folder;
    return mkdtemp(folder->path) == NULL;
}

static size_t count_entries(const char *path)
{
    size_t n = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static int teardown(void **state)
{
    struct folder *folder = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder->path);
    const int rc = system(command);
    free(folder);
    return rc;
}

static const char *write_file(const struct folder *folder, const char *name, const char *text)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return path;
}

#define TRACE(name)                                                                                \
    "{\"traceEvents\": [{\"ph\": \"X\", \"name\": \"" name                                         \
    "\", \"ts\": 1, \"dur\": 2, \"pid\": 1, \"tid\": 1}]}"

/* ---- ranks by name ---- */

static void a_rank_is_in_the_name(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int32_t alone, among_others;
    } cases[] = {
        {"rank-3.json", 3, 3},
        {"runs/rank_12/trace.json", -1, -1},
        {"Rank7.pt.trace.json.gz", 7, 7},
        {"sampled_rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", 34, 34},
        {"worker0.1714.pt.trace.json", 0, 0},
        {"trace_3.json.gz", -1, 3},
        {"trace-15.folded", -1, 15},
        {"trace.2.prof", -1, 2},
        {"trace3.json", -1, -1},
        {"trace_20241115.json", -1, -1},                   /* a date */
        {"host_4711.1700000000123.pt.trace.json", -1, -1}, /* a process and a time */
        {"rank.json", -1, -1},
        {"rank-99999999999.json", -1, -1},
        {"5", -1, -1},
        {"", -1, -1},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(cases); i++) {
        assert_int_equal(marey__import_rank_of_name(cases[i].name, false), cases[i].alone);
        assert_int_equal(marey__import_rank_of_name(cases[i].name, true), cases[i].among_others);
    }
}

/* ---- folders ---- */

static size_t list(const struct folder *folder, struct marey__import_files *files)
{
    const char *const paths[] = {folder->path};
    *files = (struct marey__import_files){0};
    assert_int_equal(marey__import_files_list(files, paths, 1, NULL), MAREY_OK);
    return files->n;
}

static void a_folder_gives_files_of_one_format_in_order(void **state)
{
    struct marey__import_files files;
    write_file(*state, "t10.json", TRACE("a"));
    write_file(*state, "t9.json", TRACE("a"));
    write_file(*state, "notes.txt", "main;step 12\n");
    write_file(*state, "more.txt", "main;step 12\n");
    write_file(*state, "third.txt", "main;step 12\n");
    write_file(*state, "README.md", "# Notes\n");
    write_file(*state, ".hidden.json", TRACE("a"));
    write_file(*state, "empty.json", "");
    assert_int_equal(list(*state, &files), 2);
    assert_non_null(strstr(files.all[0].path, "/t9.json"));
    assert_non_null(strstr(files.all[1].path, "/t10.json"));
    assert_true(files.is_numbered);
    assert_string_equal(files.all[0].format->info.name, "kineto");
    marey__import_files_fini(&files);
}

static void stacks_count_where_there_is_nothing_else(void **state)
{
    struct marey__import_files files;
    write_file(*state, "a.folded", "main;step 12\n");
    write_file(*state, "README.md", "# Notes\n");
    assert_int_equal(list(*state, &files), 1);
    assert_string_equal(files.all[0].format->info.name, "collapsed");
    marey__import_files_fini(&files);
}

static void every_format_has_a_name_to_ask_for(void **state)
{
    (void)state;
    static const char *const names[] = {"speedscope", "pstats", "kineto", "austin", "collapsed"};
    for (size_t i = 0; i < MAREY__COUNT_OF(names); i++)
        assert_string_equal(marey_import_format_at(i)->name, names[i]);
    assert_null(marey_import_format_at(MAREY__COUNT_OF(names)));
}

/* ---- whole imports ---- */

static double told;
static size_t n_reported;

static void tell(void *ctx, double share)
{
    (void)ctx;
    assert_true(share >= 0 && share <= 1);
    told = share;
    n_reported++;
}

static void progress_ends_at_the_end(void **state)
{
    const struct folder *folder = *state;
    marey_recording *recording = NULL;
    for (int i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "rank%d.json", i);
        write_file(folder, name, TRACE("a"));
    }
    const struct marey_import_options wants = {.n_jobs = 1, .progress = tell};
    told = 0;
    n_reported = 0;
    assert_int_equal(marey_open(folder->path, &wants, &recording), MAREY_OK);
    assert_int_equal(marey_recording_n_processes(recording), 5);
    assert_true(n_reported >= 5);
    assert_true(told > 0.99);
    marey_recording_close(recording);
}

static void a_recording_is_opened_as_it_is(void **state)
{
    const struct folder *folder = *state;
    char into[128];
    snprintf(into, sizeof into, "%s/run.marey", folder->path);
    const char *const paths[] = {write_file(folder, "a.json", TRACE("a"))};
    struct marey_import_result result;
    assert_int_equal(marey_import(paths, 1, into, NULL, &result), MAREY_OK);
    assert_int_equal(result.n_events, 1);
    assert_int_equal(result.n_files, 1);
    assert_string_equal(result.format, "kineto");
    marey_recording *recording = NULL;
    assert_int_equal(marey_open(into, NULL, &recording), MAREY_OK);
    assert_string_equal(marey_recording_name(recording), "run.marey");
    assert_int_equal(marey_recording_process(recording, 0)->n_events, 1);
    assert_string_equal(marey_recording_process(recording, 0)->command, "a.json");
    marey_recording_close(recording);
    const char *const own[] = {into};
    assert_int_equal(marey_import(own, 1, "/tmp/never.marey", NULL, NULL), MAREY_EINVAL);
}

static void each_failing_allocation_leaves_nothing(void **state)
{
    const struct folder *folder = *state;
    char into[128];
    snprintf(into, sizeof into, "%s/run.marey", folder->path);
    write_file(folder, "rank0.json", TRACE("a"));
    write_file(folder, "rank1.json", TRACE("b"));
    const char *const paths[] = {folder->path};
    const struct marey_import_options wants = {.n_jobs = 1};
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        marey_recording *recording = NULL;
        marey__alloc_fail_nth(nth);
        status = marey_open(folder->path, &wants, &recording);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || (status == MAREY_ENOMEM && recording == NULL));
        marey_recording_close(recording);
    }
    status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        marey__alloc_fail_nth(nth);
        status = marey_import(paths, 1, into, &wants, NULL);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
        assert_int_equal(count_entries(folder->path), status == MAREY_OK ? 3 : 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_is_in_the_name),
        cmocka_unit_test_setup_teardown(a_folder_gives_files_of_one_format_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(stacks_count_where_there_is_nothing_else, setup, teardown),
        cmocka_unit_test(every_format_has_a_name_to_ask_for),
        cmocka_unit_test_setup_teardown(progress_ends_at_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(a_recording_is_opened_as_it_is, setup, teardown),
        cmocka_unit_test_setup_teardown(each_failing_allocation_leaves_nothing, setup, teardown),
    };
    return cmocka_run_group_tests_name("import", tests, NULL, NULL);
}
