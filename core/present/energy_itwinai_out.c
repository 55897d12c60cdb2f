/* itwinai's files of GPU power and epoch times, written in its folders: one for each run where there are several. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/energy_whole.h"
#include "present/export_internal.h"
#include "present/present_internal.h"

static kymo_status make_folder(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST ? KYMO_OK : kymo__fail_errno("make %s", path);
}

/* What a file may be called: anything else becomes an underscore. */
static void put_name(struct kymo__buf *path, const char *text)
{
    for (; *text != '\0'; text++) {
        const bool is_plain = (*text >= '0' && *text <= '9') || (*text >= 'A' && *text <= 'Z') ||
                              (*text >= 'a' && *text <= 'z') || strchr("-_", *text) != NULL;
        kymo__buf_put(path, is_plain ? text : "_", 1);
    }
}

/* Rows from `first` on that are of its run, without the two columns that say so. */
static void put_rows(struct kymo__buf *line, const kymo_table *table, size_t first)
{
    const size_t n = kymo_table_n_columns(table);
    const uint64_t run = kymo__cell_of(table, first, "run").as.u64;
    for (size_t c = 2; c < n; c++)
        kymo__buf_printf(line, "%s%s", c == 2 ? "" : ",", kymo_table_column(table, c)->name);
    kymo__buf_puts(line, "\n");
    for (size_t row = first; row < kymo_table_n_rows(table); row++) {
        if (kymo__cell_of(table, row, "run").as.u64 != run)
            continue;
        for (size_t c = 2; c < n; c++) {
            const struct kymo_cell cell = kymo_table_cell(table, row, c);
            const enum kymo_type type = kymo_table_column(table, c)->type;
            kymo__buf_puts(line, c == 2 ? "" : ",");
            if (cell.is_null)
                continue;
            if (type == KYMO_TYPE_TEXT)
                kymo__csv_put(line, cell.as.text, cell.len);
            else if (type == KYMO_TYPE_F64)
                kymo__buf_printf(line, "%.9g", cell.as.f64);
            else
                kymo__buf_printf(line, "%" PRIu64, cell.as.u64);
        }
        kymo__buf_puts(line, "\n");
    }
}

static kymo_status write_file(const char *path, const kymo_table *table, size_t first)
{
    struct kymo__buf text = {0};
    put_rows(&text, table, first);
    const kymo_status status = text.failed ? kymo__fail(KYMO_ENOMEM, "out of memory for %s", path)
                                           : kymo__replace_file(path, text.data, text.len);
    kymo__buf_fini(&text);
    return status;
}

/* One file: FOLDER[/RUN]/KIND/NAME.csv. The folders on the way are made. */
static kymo_status write_run(const struct kymo_energy_report *report, const char *folder,
                             const kymo_table *table, size_t first, bool is_alone)
{
    const bool is_epochs = table == report->tables[KYMO__JOULES_EPOCH_TIME];
    struct kymo__buf path = {0};
    kymo_status status = make_folder(folder);
    kymo__buf_printf(&path, "%s", folder);
    if (!is_alone) {
        kymo__buf_puts(&path, "/");
        put_name(&path, kymo__cell_of(table, first, "run_id").as.text);
        kymo__buf_put(&path, "", 1);
        if (status == KYMO_OK)
            status = path.failed ? KYMO_ENOMEM : make_folder(path.data);
        path.len -= path.failed ? 0 : 1;
    }
    kymo__buf_puts(&path, is_epochs ? "/epoch-time" : "/gpu-energy-data");
    kymo__buf_put(&path, "", 1);
    if (status == KYMO_OK)
        status = path.failed ? KYMO_ENOMEM : make_folder(path.data);
    path.len -= path.failed ? 0 : 1;
    kymo__buf_puts(&path, is_epochs ? "/epochtime_" : "/");
    put_name(&path, report->options.strategy);
    if (is_epochs)
        kymo__buf_printf(&path, "_%" PRIu64 "N.csv", kymo__cell_of(table, first, "nodes").as.u64);
    else
        kymo__buf_printf(&path, "_%" PRIu64 ".csv",
                         kymo__cell_of(table, first, "num_global_gpus").as.u64);
    kymo__buf_put(&path, "", 1);
    if (status == KYMO_OK)
        status = path.failed ? kymo__fail(KYMO_ENOMEM, "no memory for a path")
                             : write_file(path.data, table, first);
    kymo__buf_fini(&path);
    return status;
}

kymo_status kymo_energy_report_write_itwinai(kymo_energy_report *report, const char *folder)
{
    const kymo_table *const tables[] = {report->tables[KYMO__JOULES_GPU_DATA],
                                        report->tables[KYMO__JOULES_EPOCH_TIME]};
    if (tables[0] == NULL)
        return kymo__fail(KYMO_EINVAL, "itwinai's files want a strategy: it stands in their names");
    if (kymo_table_n_rows(tables[0]) == 0)
        return kymo__fail(KYMO_EFORMAT,
                          "%s has no energy of GPUs in use: itwinai's files are about those",
                          report->title);
    const kymo_table *runs = report->tables[KYMO__JOULES_RUNS];
    const size_t n_runs = kymo_table_n_rows(runs);
    const bool is_alone = n_runs == 0 || kymo__cell_of(runs, n_runs - 1, "run").as.u64 == 1;
    for (size_t t = 0; t < KYMO__COUNT_OF(tables); t++) {
        uint64_t last = 0; /* rows of a run stand together */
        for (size_t row = 0; row < kymo_table_n_rows(tables[t]); row++) {
            const uint64_t run = kymo__cell_of(tables[t], row, "run").as.u64;
            if (run != last)
                KYMO_TRY(write_run(report, folder, tables[t], row, is_alone));
            last = run;
        }
    }
    return KYMO_OK;
}
