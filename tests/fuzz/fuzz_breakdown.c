/*
 * Any bytes as a log: broken down, one way or another, printed and as JSON; the report of its GPU work; and its critical
 * path. The parts must add up whatever it holds.
 */
#include <stdio.h>

#include "base/internal.h"
#include "fuzz.h"
#include <marey/report.h>

static uint64_t number(const marey_table *table, size_t row, const char *column)
{
    return marey_table_cell(table, row, (size_t)marey_table_find(table, column)).as.u64;
}

/* Rows whose computation is unknown have nothing to add up. */
static bool is_known(const marey_table *table, size_t row)
{
    return !marey_table_cell(table, row, (size_t)marey_table_find(table, "compute_ns")).is_null;
}

static void check(const marey_table *table)
{
    for (size_t row = 0; table != NULL && row < marey_table_n_rows(table); row++)
        MAREY_ASSERT(!is_known(table, row) ||
                     number(table, row, "compute_ns") + number(table, row, "exposed_comm_ns") +
                             number(table, row, "exposed_mem_ns") + number(table, row, "idle_ns") ==
                         number(table, row, "span_ns"));
}

static void break_down(marey_recording *recording, unsigned which)
{
    static const char *const bys[] = {NULL, "by=step", "by=range", "by=stream", "by=process-group"};
    static const char *const windows[] = {"window=gpu_span", "window=steps"};
    const char *const settings[] = {windows[which / 5 % 2], bys[which % 5], NULL};
    const struct marey_report_options options = {.settings = settings, .n_jobs = 1};
    marey_report *breakdown = NULL;
    FILE *out = fopen("/dev/null", "w");
    if (out != NULL &&
        marey_report_create("breakdown", &recording, 1, &options, &breakdown) == MAREY_OK) {
        check(marey_report_table(breakdown, "devices"));
        check(marey_report_table(breakdown, "by"));
        (void)!marey_report_write(breakdown, "text", NULL, out);
        (void)!marey_report_write(breakdown, "json", NULL, out);
        marey_report_destroy(breakdown);
    }
    if (out != NULL)
        fclose(out);
}

static void report_gpus(marey_recording *recording)
{
    marey_report *report = NULL;
    FILE *out = fopen("/dev/null", "w");
    if (out != NULL && marey_report_create("gpu", &recording, 1, NULL, &report) == MAREY_OK) {
        const marey_table *devices = marey_report_table(report, "devices");
        for (size_t row = 0; row < marey_table_n_rows(devices); row++)
            MAREY_ASSERT(number(devices, row, "busy_ns") + number(devices, row, "launch_wait_ns") +
                             number(devices, row, "host_wait_ns") <=
                         number(devices, row, "span_ns"));
        (void)!marey_report_write(report, "text", NULL, out);
        (void)!marey_report_write(report, "json", NULL, out);
        marey_report_destroy(report);
    }
    if (out != NULL)
        fclose(out);
}

/* That each step adds up is asserted by the analysis itself; here, that its host time is divided without a rest. */
static void find_path(marey_recording *recording)
{
    marey_report *report = NULL;
    uint64_t length_ns = 0, ns = 0;
    if (marey_report_create("path", &recording, 1, NULL, &report) != MAREY_OK)
        return;
    const marey_table *steps = marey_report_table(report, "steps"),
                      *parts = marey_report_table(report, "parts");
    for (size_t row = 0; row < marey_table_n_rows(steps); row++)
        length_ns += number(steps, row, "length_ns");
    for (size_t row = 0; row < marey_table_n_rows(parts); row++)
        ns += number(parts, row, "ns");
    MAREY_ASSERT(ns == length_ns);
    marey_report_destroy(report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    marey_recording *recording = fuzz_open_log(data, size);
    if (recording == NULL)
        return 0;
    break_down(recording, marey__crc32c(0, data, size));
    report_gpus(recording);
    find_path(recording);
    marey_recording_close(recording);
    return 0;
}
