/* itwinai's files of GPU power and epoch times, written in its folders: one for each run where there are several. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/energy/energy_whole.h"
#include "present/draw/out.h"
#include "present/draw/present_internal.h"

static marey_status make_folder(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST ? MAREY_OK : marey__fail_errno("make %s", path);
}

/* What a file may be called: anything else becomes an underscore. */
static void put_name(struct marey__buf *path, const char *text)
{
    for (; *text != '\0'; text++) {
        const bool is_plain = (*text >= '0' && *text <= '9') || (*text >= 'A' && *text <= 'Z') ||
                              (*text >= 'a' && *text <= 'z') || strchr("-_", *text) != NULL;
        marey__buf_put(path, is_plain ? text : "_", 1);
    }
}

/* Rows from `first` on that are of its run, without the two columns that say so. */
static void put_rows(struct marey__buf *line, const marey_table *table, size_t first)
{
    const size_t n = marey_table_n_columns(table);
    const uint64_t run = marey__cell_of(table, first, "run").as.u64;
    for (size_t c = 2; c < n; c++)
        marey__buf_printf(line, "%s%s", c == 2 ? "" : ",", marey_table_column(table, c)->name);
    marey__buf_puts(line, "\n");
    for (size_t row = first; row < marey_table_n_rows(table); row++) {
        if (marey__cell_of(table, row, "run").as.u64 != run)
            continue;
        for (size_t c = 2; c < n; c++) {
            const struct marey_cell cell = marey_table_cell(table, row, c);
            const enum marey_type type = marey_table_column(table, c)->type;
            marey__buf_puts(line, c == 2 ? "" : ",");
            if (cell.is_null)
                continue;
            if (type == MAREY_TYPE_TEXT)
                marey__csv_put(line, cell.as.text, cell.len);
            else if (type == MAREY_TYPE_F64)
                marey__buf_printf(line, "%.9g", cell.as.f64);
            else
                marey__buf_printf(line, "%" PRIu64, cell.as.u64);
        }
        marey__buf_puts(line, "\n");
    }
}

static marey_status write_file(const char *path, const marey_table *table, size_t first)
{
    struct marey__buf text = {0};
    put_rows(&text, table, first);
    const marey_status status =
        text.failed ? marey__no_memory() : marey__replace_file(path, text.data, text.len);
    marey__buf_fini(&text);
    return status;
}

/* One file: FOLDER[/RUN]/KIND/NAME.csv. The folders on the way are made. */
static marey_status write_run(const struct marey_energy_report *report, const char *folder,
                              const marey_table *table, size_t first, bool is_alone)
{
    const bool is_epochs = table == report->tables[MAREY__JOULES_EPOCH_TIME];
    struct marey__buf path = {0};
    marey_status status = make_folder(folder);
    marey__buf_printf(&path, "%s", folder);
    if (!is_alone) {
        marey__buf_puts(&path, "/");
        put_name(&path, marey__cell_of(table, first, "run_id").as.text);
        marey__buf_put(&path, "", 1);
        if (status == MAREY_OK)
            status = path.failed ? MAREY_ENOMEM : make_folder(path.data);
        path.len -= path.failed ? 0 : 1;
    }
    marey__buf_puts(&path, is_epochs ? "/epoch-time" : "/gpu-energy-data");
    marey__buf_put(&path, "", 1);
    if (status == MAREY_OK)
        status = path.failed ? MAREY_ENOMEM : make_folder(path.data);
    path.len -= path.failed ? 0 : 1;
    marey__buf_puts(&path, is_epochs ? "/epochtime_" : "/");
    put_name(&path, report->options.strategy);
    if (is_epochs)
        marey__buf_printf(&path, "_%" PRIu64 "N.csv", marey__cell_of(table, first, "nodes").as.u64);
    else
        marey__buf_printf(&path, "_%" PRIu64 ".csv",
                          marey__cell_of(table, first, "num_global_gpus").as.u64);
    marey__buf_put(&path, "", 1);
    if (status == MAREY_OK)
        status = path.failed ? marey__no_memory() : write_file(path.data, table, first);
    marey__buf_fini(&path);
    return status;
}

marey_status marey_energy_report_write_itwinai(marey_energy_report *report, const char *folder)
{
    const marey_table *const tables[] = {report->tables[MAREY__JOULES_GPU_DATA],
                                         report->tables[MAREY__JOULES_EPOCH_TIME]};
    if (tables[0] == NULL)
        return marey__fail(MAREY_EINVAL,
                           "itwinai's files want a strategy: it stands in their names");
    if (marey_table_n_rows(tables[0]) == 0)
        return marey__fail(MAREY_EFORMAT,
                           "%s has no energy of GPUs in use: itwinai's files are about those",
                           report->title);
    const marey_table *runs = report->tables[MAREY__JOULES_RUNS];
    const size_t n_runs = marey_table_n_rows(runs);
    const bool is_alone = n_runs == 0 || marey__cell_of(runs, n_runs - 1, "run").as.u64 == 1;
    for (size_t t = 0; t < MAREY__COUNT_OF(tables); t++) {
        uint64_t last = 0; /* rows of a run stand together */
        for (size_t row = 0; row < marey_table_n_rows(tables[t]); row++) {
            const uint64_t run = marey__cell_of(tables[t], row, "run").as.u64;
            if (run != last)
                MAREY_TRY(write_run(report, folder, tables[t], row, is_alone));
            last = run;
        }
    }
    return MAREY_OK;
}
