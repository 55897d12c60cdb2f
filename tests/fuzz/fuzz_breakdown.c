/*
 * Any bytes as a log: broken down, one way or another, printed and as JSON; and the report of its GPU work. The parts
 * must add up whatever it holds.
 */
#include <stdio.h>

#include "base/base_internal.h"
#include "fuzz.h"
#include <kymo/breakdown.h>
#include <kymo/gpu_report.h>

static uint64_t number(const kymo_table *table, size_t row, const char *column)
{
    return kymo_table_cell(table, row, (size_t)kymo_table_find(table, column)).as.u64;
}

/* Rows whose computation is unknown have nothing to add up. */
static bool is_known(const kymo_table *table, size_t row)
{
    return !kymo_table_cell(table, row, (size_t)kymo_table_find(table, "compute_ns")).is_null;
}

static void check(const kymo_table *table)
{
    for (size_t row = 0; table != NULL && row < kymo_table_n_rows(table); row++)
        KYMO_ASSERT(!is_known(table, row) ||
                    number(table, row, "compute_ns") + number(table, row, "exposed_comm_ns") +
                            number(table, row, "exposed_mem_ns") + number(table, row, "idle_ns") ==
                        number(table, row, "span_ns"));
}

static void break_down(kymo_recording *recording, unsigned which)
{
    static const char *const bys[] = {NULL, "step", "range", "stream", "process-group"};
    static const char *const windows[] = {"gpu_span", "steps"};
    const struct kymo_breakdown_options options = {
        .by = bys[which % 5], .window = windows[which / 5 % 2], .n_jobs = 1};
    kymo_breakdown *breakdown = NULL;
    FILE *out = fopen("/dev/null", "w");
    if (out != NULL && kymo_breakdown_create(&recording, 1, &options, &breakdown) == KYMO_OK) {
        check(kymo_breakdown_table(breakdown, "devices"));
        check(kymo_breakdown_table(breakdown, "by"));
        (void)kymo_breakdown_text(breakdown, NULL, out);
        (void)kymo_breakdown_json(breakdown, out);
        kymo_breakdown_destroy(breakdown);
    }
    if (out != NULL)
        fclose(out);
}

static void report_gpus(kymo_recording *recording)
{
    kymo_gpu_report *report = NULL;
    FILE *out = fopen("/dev/null", "w");
    if (out != NULL && kymo_gpu_report_create(&recording, 1, NULL, &report) == KYMO_OK) {
        const kymo_table *devices = kymo_gpu_report_table(report, "devices");
        for (size_t row = 0; row < kymo_table_n_rows(devices); row++)
            KYMO_ASSERT(number(devices, row, "busy_ns") + number(devices, row, "launch_wait_ns") +
                            number(devices, row, "host_wait_ns") <=
                        number(devices, row, "span_ns"));
        (void)kymo_gpu_report_json(report, out);
        kymo_gpu_report_destroy(report);
    }
    if (out != NULL)
        fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kymo_recording *recording = fuzz_open_log(data, size);
    if (recording == NULL)
        return 0;
    break_down(recording, kymo__crc32c(0, data, size));
    report_gpus(recording);
    kymo_recording_close(recording);
    return 0;
}
