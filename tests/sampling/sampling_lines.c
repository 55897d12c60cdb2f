/*
 * Compares our reading of tables of lines with what an interpreter says of them. line_oracle.py, run by any CPython, writes
 * code objects to our standard input, each as words of 32 bits in the machine's order:
 *
 *   the format (enum marey__remote_line_format), the first line, the table's length, the table (filled up to whole words),
 *   the number of instructions, and for each its offset in bytes and its line, 0 for none
 *
 * Says how many instructions were looked at and how many have another line here; the first ones of these are shown.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sampler/remote/internal.h"

enum { N_SHOWN = 5 };

static uint64_t n_codes, n_checked, n_wrong;

static bool take(void *to, size_t n_bytes)
{
    return n_bytes == 0 || fread(to, n_bytes, 1, stdin) == 1;
}

static void check(const struct marey__remote_line_run *runs, size_t n, const uint32_t *pair)
{
    const uint32_t line = marey__remote_lines_at(runs, n, pair[0]);
    n_checked++;
    if (line == pair[1])
        return;
    if (n_wrong++ < N_SHOWN)
        printf("code %" PRIu64 ", offset %" PRIu32 ": line %" PRIu32 ", not %" PRIu32 "\n", n_codes,
               pair[0], pair[1], line);
}

static bool check_code(const uint32_t head[3])
{
    struct marey__remote_line_run *runs = NULL;
    size_t n = 0;
    uint32_t n_pairs, pair[2];
    uint8_t *const table = malloc((size_t)head[2] + 4);
    bool is_fine = table != NULL && take(table, ((size_t)head[2] + 3) / 4 * 4) &&
                   marey__remote_lines_decode((enum marey__remote_line_format)head[0], table,
                                              head[2], head[1], &runs, &n) &&
                   take(&n_pairs, sizeof n_pairs);
    for (uint32_t i = 0; is_fine && i < n_pairs; i++) {
        is_fine = take(pair, sizeof pair);
        if (is_fine)
            check(runs, n, pair);
    }
    marey__free(runs);
    free(table);
    n_codes++;
    return is_fine;
}

int main(void)
{
    uint32_t head[3];
    while (take(head, sizeof head))
        if (!check_code(head)) {
            fputs("sampling_lines: the input is cut\n", stderr);
            return 2;
        }
    printf("%" PRIu64 " code objects, %" PRIu64 " instructions, %" PRIu64 " wrong\n", n_codes,
           n_checked, n_wrong);
    return n_wrong == 0 ? 0 : 1;
}
