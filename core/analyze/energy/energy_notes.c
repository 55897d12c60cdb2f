/* Notes on energy: its sources, faulty counters, devices excluded from the sums. */
#include <inttypes.h>
#include <math.h>

#include "analyze/energy/internal.h"

/* Counter and power may differ by this share without a note. */
static const double typical_difference = 0.05;
/* One in this many readings may be missing without a note, as on a busy machine. */
enum { few_missing = 20 };

/* "GPU 0 of node3": the name, or the device id if there is none. */
static const char *device_of(const struct marey__meter *meter, char into[256])
{
    const bool has_name = meter->name_len != 0;
    const char *const host = meter->process->host;
    snprintf(into, 256, "%.*s%s%s", (int)(has_name ? meter->name_len : meter->device_len),
             has_name ? meter->name : meter->device, host[0] != '\0' ? " of " : "", host);
    return into;
}

static void put_count(marey_table *notes, const char *device, uint32_t n, const char *what,
                      const char *then)
{
    if (n != 0)
        marey__put_note(notes, "%s: its energy counter %s %" PRIu32 " %s; %s", device, what, n,
                        n == 1 ? "time" : "times", then);
}

static void put_counter(marey_table *notes, const struct marey__meter *meter, const char *device)
{
    const char *then = meter->has_power ? "the integral of power is used for the time around it"
                                        : "the time around it is not measured";
    put_count(notes, device, meter->n_resets, "was reset", then);
    put_count(notes, device, meter->n_stuck, "did not move although power was drawn", then);
    put_count(notes, device, meter->n_wraps, "wrapped around", "this is corrected");
    if (meter->n_bad != 0)
        marey__put_note(notes, "%s: %" PRIu32 " impossible readings are left out", device,
                        meter->n_bad);
    if (meter->counted_j > 0 &&
        fabs(meter->counted_j - meter->integrated_j) > typical_difference * meter->counted_j)
        marey__put_note(notes,
                        "%s: its energy counter gives %.4g J and its power readings %.4g J for the "
                        "same time; the counter is used, and the difference is included in the ±",
                        device, meter->counted_j, meter->integrated_j);
}

static void put_source(marey_table *notes, const struct marey__meter *meter, const char *device)
{
    struct marey__buf missing MAREY__FINALLY(marey__buf_fini) = {0};
    if (!meter->has_counter && !meter->is_brief)
        marey__put_note(notes, "%s: %s", device,
                        meter->has_power
                            ? "no energy counter; joules are the integral of its power readings"
                            : "too few readings of power and energy; no joules");
    if (!meter->has_power || meter->missing_ns <= (meter->last_ns - meter->first_ns) / few_missing)
        return;
    marey__text_duration(&missing, (double)meter->missing_ns, NULL);
    marey__put_note(notes, "%s: power readings are missing for %.*s", device, (int)missing.len,
                    missing.data);
}

static bool put_unused(marey_table *notes, const struct marey__energy_report *report)
{
    struct marey__buf line MAREY__FINALLY(marey__buf_fini) = {0};
    char device[256];
    for (size_t i = 0; i < report->n_targets; i++)
        if (report->targets[i].n_users == 0)
            marey__buf_printf(&line, "%s%s",
                              line.len == 0 ? "not used by any process and not in the sums: " : ", ",
                              device_of(&report->meters[report->targets[i].meter], device));
    if (!line.failed && line.len != 0)
        marey_table_text(notes, line.data, line.len);
    return !line.failed;
}

static void put_uses(marey_table *notes, const struct marey__energy_report *report)
{
    bool is_shared = false;
    for (size_t i = 0; i < report->n_targets; i++)
        is_shared |= report->targets[i].kind == MAREY__OF_GPU && report->targets[i].n_users > 1;
    if (report->is_use_unknown)
        marey__put_string(
            notes, "the GPUs used by the processes are unknown: all measured GPUs are counted");
    if (report->is_place_guessed)
        marey__put_string(
            notes,
            "ranks of a host see the same GPUs: each is assumed to use the one at its local rank");
    if (is_shared && !report->is_use_unknown)
        marey__put_string(notes, "a GPU that several ranks share is counted once in a run and a "
                                 "node, and in full in each of its ranks");
}

static bool is_target(const struct marey__energy_report *report, size_t meter)
{
    for (size_t i = 0; i < report->n_targets; i++)
        if (report->targets[i].meter == meter)
            return true;
    return false;
}

bool marey__energy_put_notes(struct marey__energy_report *report)
{
    marey_table *const notes = report->tables[MAREY__ENERGY_NOTES];
    for (size_t i = 0; i < report->n_meters; i++)
        if (is_target(report, i)) {
            char text[256];
            const char *const device = device_of(&report->meters[i], text);
            put_source(notes, &report->meters[i], device);
            put_counter(notes, &report->meters[i], device);
        }
    put_uses(notes, report);
    return put_unused(notes, report);
}
