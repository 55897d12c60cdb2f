/*
 * core/remote: the line of every instruction of the standard library, of each Python here, held against what that Python
 * says itself (remote_lines.py). With KYMO_LONG=1 all files, else a share of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "pythons.h"
#include "remote/remote_internal.h"

static struct python pythons[PYTHONS_MAX];
static size_t n_pythons;

static char *read_whole(const char *path)
{
    struct kymo__buf text = {0};
    FILE *const file = fopen(path, "rb");
    assert_non_null(file);
    char some[4096];
    for (size_t n; (n = fread(some, 1, sizeof some, file)) > 0;)
        kymo__buf_put(&text, some, n);
    kymo__buf_put(&text, "", 1);
    fclose(file);
    return text.data;
}

static uint32_t take_u32(FILE *in)
{
    uint32_t value;
    assert_int_equal(fread(&value, sizeof value, 1, in), 1);
    return value;
}

/* One code object: how many instructions were compared, and how many differ. */
static uint64_t compare_one(FILE *in, uint32_t first_line, enum kymo__remote_line_format format,
                            uint64_t *n_wrong)
{
    struct kymo__remote_line_run *runs = NULL;
    size_t n = 0;
    const uint32_t n_table = take_u32(in);
    uint8_t *const table = malloc(n_table + 1u);
    assert_int_equal(fread(table, 1, n_table, in), n_table);
    assert_true(kymo__remote_lines_decode(format, table, n_table, first_line, &runs, &n));
    const uint32_t n_bytes = take_u32(in), n_expected = take_u32(in);
    uint32_t offset = 0;
    for (uint32_t i = 0; i < n_expected; i++) {
        const uint32_t length = take_u32(in), line = take_u32(in);
        for (const uint32_t end = offset + length; offset < end; offset += 2)
            *n_wrong += kymo__remote_lines_at(runs, n, offset) != line;
    }
    assert_int_equal(offset, n_bytes);
    free(table);
    kymo__free(runs);
    return n_bytes / 2;
}

static void every_instruction_has_the_line_that_python_gives_it(void **state)
{
    (void)state;
    char *const script = read_whole(KYMO_TEST_SOURCES "/remote_lines.py");
    const char *const step = getenv("KYMO_LONG") != NULL ? "1" : "150";
    for (size_t i = 0; i < n_pythons; i++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        const pid_t pid = fork();
        if (pid == 0) {
            dup2(ends[1], STDOUT_FILENO);
            close(ends[0]);
            close(ends[1]);
            unsetenv("PYTHONPATH");
            execl(pythons[i].path, pythons[i].path, "-S", "-c", script, step, (char *)NULL);
            _exit(127);
        }
        close(ends[1]);
        FILE *const in = fdopen(ends[0], "rb");
        const enum kymo__remote_line_format format =
            pythons[i].minor <= 9    ? KYMO__REMOTE_LINES_LNOTAB
            : pythons[i].minor == 10 ? KYMO__REMOTE_LINES_LINETABLE
                                     : KYMO__REMOTE_LINES_LOCATIONS;
        uint64_t n_codes = 0, n_instructions = 0, n_wrong = 0;
        for (uint32_t first_line; fread(&first_line, sizeof first_line, 1, in) == 1; n_codes++)
            n_instructions += compare_one(in, first_line, format, &n_wrong);
        fclose(in);
        int status;
        waitpid(pid, &status, 0);
        print_message("%s: %llu instructions of %llu code objects, %llu with another line\n",
                      pythons[i].path, (unsigned long long)n_instructions,
                      (unsigned long long)n_codes, (unsigned long long)n_wrong);
        assert_int_equal(status, 0);
        assert_true(n_instructions > 1000);
        assert_int_equal(n_wrong, 0);
    }
    kymo__free(script);
}

static int find_pythons(void **state)
{
    (void)state;
    n_pythons = pythons_find(pythons, PYTHONS_MAX);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_has_the_line_that_python_gives_it)};
    return cmocka_run_group_tests(tests, find_pythons, NULL);
}
