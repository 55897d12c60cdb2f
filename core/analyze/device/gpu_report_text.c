/*
 * The text of a GPU report: the tables, and Nsight Compute command lines for the longest kernels. Nsight Compute reruns
 * the program and measures single calls, so kernels and calls have to be selected first.
 */
#include "analyze/device/gpu_report.h"
#include "present/draw/internal.h"

enum {
    MAX_GAPS = 10, /* drawn by default */
    MAX_KERNELS = 3,
    MAX_CALLS = 3,  /* of each: calls of one grid and block size are similar */
    MAX_NAME = 120, /* bytes of a name; template arguments may take kilobytes */
};

/* ---- tables ---- */

/* Columns that do not fit on a screen, and the process if there is only one. */
static bool is_hidden(const void *ctx, const marey_table *table, size_t column)
{
    static const char *const names[] = {"rank",          "pid",          "self_launch_ns",
                                        "delay_mean_ns", "delay_max_ns", "reason_share"};
    const struct marey__gpu_program *const program = ctx;
    const char *const name = marey_table_column(table, column)->name;
    for (size_t i = program->n_processes > 1 ? 2 : 0; i < MAREY__COUNT_OF(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static marey_status put_table(struct marey__lines *lines, const marey_report *report, size_t which,
                              struct marey_write_options options)
{
    const marey_table *const table = report->tables[which];
    if (which == MAREY__GPU_GAPS && options.limit != 0)
        options.limit = MAREY__MIN(options.limit, (uint32_t)MAX_GAPS);
    const struct marey__report_view view = {.table = table,
                                            .title = marey__gpu_tables[which].help,
                                            .n_rows = marey_table_n_rows(table),
                                            .options = &options,
                                            .hides = is_hidden,
                                            .ctx = report->data};
    if (view.n_rows == 0)
        return MAREY_OK;
    MAREY_TRY(marey__report_draw(lines, &view));
    return marey__lines_end(lines);
}

/* ---- Nsight Compute ---- */

/* A shell-quoted pattern for the start of the name. */
static void put_pattern(struct marey__buf *line, const char *name, size_t len)
{
    marey__buf_puts(line, "'regex:^");
    for (size_t i = 0; i < MAREY__MIN(len, (size_t)MAX_NAME); i++) {
        char safe[8];
        const size_t n = MAREY__MAX(marey__utf8_length(name + i, len - i), (size_t)1);
        if (marey_text_escape(name + i, n, safe, sizeof safe) != n || memcmp(safe, name + i, n) != 0) {
            marey__buf_puts(line, ".*"); /* unprintable */
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

static marey_status put_command(struct marey__lines *lines, const marey_table *kernels, size_t row,
                                size_t number, const struct marey__gpu_program *program)
{
    struct marey__buf *const line = &lines->line;
    const struct marey_cell name = marey__cell_of(kernels, row, "name");
    const uint64_t calls =
        marey__cell_of(kernels, row, "count").as.u64 / MAREY__MAX(program->n_processes, (size_t)1);
    const bool is_mangled = name.len > 2 && memcmp(name.as.text, "_Z", 2) == 0;
    marey__buf_printf(line, "  ncu --kernel-name-base %s --kernel-name ",
                      is_mangled ? "mangled" : "demangled");
    put_pattern(line, name.as.text, name.len);
    /* The first calls have cold caches, and libraries still choose among their kernels. */
    marey__buf_printf(line, " --launch-skip %llu --launch-count %llu", (unsigned long long)calls / 2,
                      (unsigned long long)MAREY__MAX(MAREY__MIN(calls - calls / 2, MAX_CALLS), 1));
    marey__buf_printf(line,
                      " --section SpeedOfLight --section MemoryWorkloadAnalysis "
                      "--section Occupancy --section WarpStateStats -o kernel_%zu ",
                      number);
    const char *const command = program->command[0] != '\0' ? program->command : "COMMAND";
    marey__text_put(line, command, strlen(command), 0);
    return marey__lines_end(lines);
}

/* `kernels` is sorted, the longest first. */
static marey_status put_commands(struct marey__lines *lines, const marey_table *kernels,
                                 const struct marey__gpu_program *program)
{
    size_t n = 0;
    for (size_t row = 0; row < marey_table_n_rows(kernels) && n < MAX_KERNELS; row++) {
        if (strcmp(marey__cell_of(kernels, row, "kind").as.text, "kernel") != 0)
            continue;
        if (n++ == 0)
            marey__buf_puts(&lines->line, "Nsight Compute shows what limits a kernel. For those "
                                          "that take longest:\n");
        MAREY_TRY(put_command(lines, kernels, row, n, program));
    }
    return n != 0 ? marey__lines_end(lines) : MAREY_OK;
}

/* ---- all lines ---- */

marey_status marey__gpu_text(struct marey__report_writer *writer)
{
    const marey_report *const report = writer->report;
    struct marey__lines *const lines = &writer->lines;
    if (marey_table_n_rows(report->tables[MAREY__GPU_DEVICES]) == 0) {
        marey__buf_printf(&lines->line, "No GPU activity was recorded: %s.\n",
                          report->analysis->about.needs);
        return marey__lines_end(lines);
    }
    for (size_t t = 0; t < MAREY__GPU_WARNINGS; t++)
        MAREY_TRY(put_table(lines, report, t, *writer->options));
    MAREY_TRY(put_commands(lines, report->tables[MAREY__GPU_KERNELS], report->data));
    return marey__lines_put_notes(lines, report->tables[MAREY__GPU_WARNINGS]);
}
