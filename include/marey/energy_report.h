/*
 * marey/energy_report.h: joules of a run, an epoch, iterations, a range, by what counters of power and energy say
 * (libmarey-tools).
 *
 *     marey_energy_report *e;
 *     marey_energy_report_create(&recording, 1, NULL, &e);
 *     marey_energy_report_text(e, NULL, stdout);
 *
 * Energy of a window is the difference of the device's energy counter at its edges. Between two readings of the counter
 * it runs as the power readings do (straight lines between them), scaled so that they add up to the counter's difference.
 * Where there is no counter, or where it was reset or stood still, the integral of power alone is told, and that it is.
 *
 * Each figure has a plus_minus: the steps of the counter at the edges, what may lie between two readings of power, and how
 * far counter and power disagree. A window shorter than twice the time in which readings change has no figure: its note is
 * "too short to say". Short ones that follow one another and fill four fifths of the time are measured as one.
 * docs/guide/energy.md has the method and its limits.
 */
#ifndef MAREY_ENERGY_REPORT_H
#define MAREY_ENERGY_REPORT_H

#include <stdio.h>

#include <marey/report.h>
#include <marey/table.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct marey_energy_report marey_energy_report;

struct marey_energy_report_options {
    const char *filter; /* of ranges, as in the summary; NULL: all */
    uint32_t group;     /* iterations in a group; 0: as many as are long enough to say something */
    double co2_g_per_kwh; /* how much carbon dioxide the electricity stands for; 0: not said */
    double pue; /* what the building takes for each watt of the machine; 0: 1. For CO2 alone: joules stay as measured */
    marey_progress *progress;
    void *progress_ctx;
};

/*
 * Read `n` recordings; lent until this returns. MAREY_EINVAL for a wrong option. MAREY_EFORMAT when no energy was recorded,
 * with how to record some.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_energy_report_create(
    marey_recording *const *recordings, size_t n, const struct marey_energy_report_options *options,
    marey_energy_report **out);
MAREY_API void marey_energy_report_destroy(marey_energy_report *report);

/* 0 when no recording has counters of power or energy; 1 when there may be readings. Reads no events. */
MAREY_API int marey_energy_is_there(marey_recording *const *recordings, size_t n);

/*
 * Its tables, lent until it goes; NULL for a name it does not have. Each begins with whose a row is:
 *   runs        run run_id                  processes with one run id; `run` counts from 1 by the time of their start
 *   devices     run host device name model used shared ranks
 *   ranks       run rank host               what the devices of the rank took; `shared`: some are of other ranks too
 *   nodes       run host
 *   epochs      run epoch
 *   iterations  run first last              a group of successive iterations of all ranks, warm-up among them
 *   phases      run name                    ranges run name
 * then the numbers, which are null where they are not known:
 *   kind devices count duration_ns joules plus_minus_j mean_w peak_w utilization sm_active sm_occupancy tensor_active
 *   dram_active throttled samples joules_per_sample energy_delay_js co2_g measured_by note
 * and of devices besides
 *   sm_clock_mhz memory_clock_mhz temperature_c memory_used_bytes, the last two the highest.
 *   repeats     kind runs mean_j low_j high_j std_j mean_duration_ns joules_per_sample: over runs, where there are several; low
 *               to high is where their mean lies with 95 % confidence. Runs are never added up.
 *   notes       text
 * `kind` is gpu, cpu (packages), dram, or all: one row for each that was measured, and `all` where there are several.
 * Devices that nobody uses are in no sum. `duration_ns` is the time in which it was under way on any thread, each moment
 * once; of several devices the longest. Mean power of several is their sum, and so is the peak, which they need not have
 * reached together. Shares are means over time and devices. energy_delay_js is joules times seconds.
 */
MAREY_API marey_table *marey_energy_report_table(marey_energy_report *report, const char *name);

struct marey_energy_text_options {
    struct marey_text_options text;
    const char *by; /* a table of those above to show alone, "epochs"; NULL: what there is, in a few rows each */
    uint32_t limit; /* rows of a table at most; 0: all */
    int is_short;   /* non-zero: a few lines for the end of another report */
};
/* For people; as JSON an object with all tables. MAREY_EIO when the stream refuses. MAREY_EINVAL for an unknown table. */
MAREY_API marey_status marey_energy_report_text(marey_energy_report *report,
                                                const struct marey_energy_text_options *options,
                                                FILE *out);
MAREY_API marey_status marey_energy_report_json(marey_energy_report *report, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
