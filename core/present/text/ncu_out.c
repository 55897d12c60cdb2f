/*
 * The kernels that take most of a GPU's time, as command lines for Nsight Compute: which kernels, how many calls of each
 * to leave out and how many to look at, and what to measure. It runs the program anew and measures single calls, so what
 * is worth looking at has to be chosen before.
 */
#include <string.h>

#include "present/draw/internal.h"
#include "present/text/internal.h"

enum {
    MAX_KERNELS = 3,
    MAX_CALLS = 3,  /* of each: calls of one shape are much alike */
    MAX_NAME = 120, /* bytes of a name: templates may go on for kilobytes */
};

/* A pattern for the begin of the name, in a shell's quotes. */
static void put_pattern(struct marey__buf *line, const char *name, size_t len)
{
    marey__buf_puts(line, "'regex:^");
    for (size_t i = 0; i < MAREY__MIN(len, (size_t)MAX_NAME); i++) {
        char safe[8];
        const size_t n = MAREY__MAX(marey__utf8_length(name + i, len - i), (size_t)1);
        if (marey_text_escape(name + i, n, safe, sizeof safe) != n || memcmp(safe, name + i, n) != 0) {
            marey__buf_puts(line, ".*"); /* not for a terminal */
            i += n - 1;
            continue;
        }
        if (name[i] == '\'') {
            marey__buf_puts(line, "'\\''");
            continue;
        }
        if (strchr("\\.^$|()[]{}*+?", name[i]) != NULL)
            marey__buf_puts(line, "\\");
        marey__buf_put(line, &name[i], 1);
    }
    marey__buf_puts(line, len <= MAX_NAME ? "$'" : "'");
}

static marey_status put_command(const marey_table *kernels, size_t row, size_t number,
                                const struct marey__ncu *ncu, struct marey__buf *line, FILE *out)
{
    const struct marey_cell name = marey__cell_of(kernels, row, "name");
    const uint64_t calls =
        marey__cell_of(kernels, row, "count").as.u64 / MAREY__MAX(ncu->n_processes, (size_t)1);
    const bool is_mangled = name.len > 2 && memcmp(name.as.text, "_Z", 2) == 0;
    marey__buf_printf(line, "  ncu --kernel-name-base %s --kernel-name ",
                      is_mangled ? "mangled" : "demangled");
    put_pattern(line, name.as.text, name.len);
    /* The first calls meet cold caches and libraries that still choose among their kernels. */
    marey__buf_printf(line, " --launch-skip %llu --launch-count %llu", (unsigned long long)calls / 2,
                      (unsigned long long)MAREY__MAX(MAREY__MIN(calls - calls / 2, MAX_CALLS), 1));
    marey__buf_printf(
        line,
        " --section SpeedOfLight --section MemoryWorkloadAnalysis --section Occupancy "
        "--section WarpStateStats -o kernel_%zu ",
        number);
    const char *const command = ncu->command != NULL ? ncu->command : "COMMAND";
    marey__text_put(line, command, strlen(command), 0);
    marey__buf_puts(line, "\n");
    return marey__buf_to_stream(line, out);
}

marey_status marey__ncu_put(const marey_table *kernels, const struct marey__ncu *ncu,
                            struct marey__buf *line, FILE *out)
{
    size_t n = 0;
    for (size_t row = 0; row < marey_table_n_rows(kernels) && n < MAX_KERNELS; row++) {
        if (strcmp(marey__cell_of(kernels, row, "kind").as.text, "kernel") != 0)
            continue;
        if (n++ == 0) {
            marey__buf_puts(
                line, "Nsight Compute shows what limits a kernel. For those that take longest:\n");
            MAREY_TRY(marey__buf_to_stream(line, out));
        }
        MAREY_TRY(put_command(kernels, row, n, ncu, line, out));
    }
    if (n == 0)
        return MAREY_OK;
    marey__buf_puts(line, "\n");
    return marey__buf_to_stream(line, out);
}
