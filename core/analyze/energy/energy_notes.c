/* What a reader of joules ought to know: where they come from, what was wrong with counters, what is not in the sums. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "analyze/energy/internal.h"

/* A share by which counter and power may differ without a note. */
static const double usual_difference = 0.05;
/* One in so many readings may be missing without a note: a busy machine does that. */
enum { few_missing = 20 };

struct notes {
    struct marey__energy_report *report;
    marey_table *table;
    struct marey__buf line;
};

static void end_note(struct notes *notes)
{
    if (!notes->line.failed)
        marey_table_text(notes->table, notes->line.data, notes->line.len);
    notes->line.len = 0;
}

/* "GPU 0 of node3": the name for people, else the device. */
static void put_device(struct notes *notes, const struct marey__meter *meter)
{
    const bool has_name = meter->name_len != 0;
    marey__buf_put(&notes->line, has_name ? meter->name : meter->device,
                   has_name ? meter->name_len : meter->device_len);
    if (meter->process->host[0] != '\0')
        marey__buf_printf(&notes->line, " of %s", meter->process->host);
}

static void tell_count(struct notes *notes, const struct marey__meter *meter, uint32_t n,
                       const char *what, const char *then)
{
    if (n == 0)
        return;
    put_device(notes, meter);
    marey__buf_printf(&notes->line, ": its energy counter %s %" PRIu32 " %s; %s", what, n,
                      n == 1 ? "time" : "times", then);
    end_note(notes);
}

static void tell_counter(struct notes *notes, const struct marey__meter *meter)
{
    const char *then = meter->has_power ? "the integral of power is used for the time around it"
                                        : "the time around it is not measured";
    tell_count(notes, meter, meter->n_resets, "was reset", then);
    tell_count(notes, meter, meter->n_stuck, "stood still while power flowed", then);
    tell_count(notes, meter, meter->n_wraps, "went over its end", "that is accounted for");
    if (meter->n_bad == 0)
        return;
    put_device(notes, meter);
    marey__buf_printf(&notes->line, ": %" PRIu32 " readings that cannot be are left out",
                      meter->n_bad);
    end_note(notes);
}

static void tell_agreement(struct notes *notes, const struct marey__meter *meter)
{
    const double difference = meter->counted_j - meter->integrated_j;
    if (!(meter->counted_j > 0) || fabs(difference) <= usual_difference * meter->counted_j)
        return;
    put_device(notes, meter);
    marey__buf_printf(&notes->line,
                      ": its energy counter says %.4g J and its power readings %.4g J for the same "
                      "time; the counter is taken, and the difference is in the ±",
                      meter->counted_j, meter->integrated_j);
    end_note(notes);
}

static void tell_source(struct notes *notes, const struct marey__meter *meter)
{
    if (!meter->has_counter && !meter->is_brief) {
        put_device(notes, meter);
        marey__buf_puts(&notes->line, meter->has_power
                                          ? ": no energy counter; joules are the integral of its "
                                            "power readings"
                                          : ": too few readings of power and energy; no joules");
        end_note(notes);
    }
    if (meter->has_power && meter->missing_ns > (meter->last_ns - meter->first_ns) / few_missing) {
        put_device(notes, meter);
        marey__buf_puts(&notes->line, ": no readings of power for ");
        marey__text_duration(&notes->line, (double)meter->missing_ns, NULL);
        marey__buf_puts(&notes->line, " in which there should be some");
        end_note(notes);
    }
}

static void tell_unused(struct notes *notes)
{
    const struct marey__energy_report *report = notes->report;
    size_t n = 0;
    for (size_t i = 0; i < report->n_targets; i++)
        n += report->targets[i].n_users == 0;
    if (n == 0)
        return;
    marey__buf_puts(&notes->line, "used by no process and in no sum: ");
    for (size_t i = 0; i < report->n_targets; i++) {
        if (report->targets[i].n_users != 0)
            continue;
        put_device(notes, &report->meters[report->targets[i].meter]);
        marey__buf_puts(&notes->line, --n == 0 ? "" : ", ");
    }
    end_note(notes);
}

static void tell_uses(struct notes *notes)
{
    const struct marey__energy_report *report = notes->report;
    bool is_shared = false;
    for (size_t i = 0; i < report->n_targets; i++)
        is_shared |= report->targets[i].kind == MAREY__OF_GPU && report->targets[i].n_users > 1;
    if (report->is_use_unknown) {
        marey__buf_puts(&notes->line,
                        "which GPUs the processes used is not known: all that were measured "
                        "are counted");
        end_note(notes);
    }
    if (report->is_place_guessed) {
        marey__buf_puts(&notes->line, "ranks of a host see the same GPUs: each is taken to use the "
                                      "one at its local rank");
        end_note(notes);
    }
    if (is_shared && !report->is_use_unknown) {
        marey__buf_puts(&notes->line, "a GPU that several ranks share is counted once in a run and "
                                      "a node, and in full in each of its ranks");
        end_note(notes);
    }
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
    struct notes notes = {.report = report, .table = report->tables[MAREY__ENERGY_NOTES]};
    for (size_t i = 0; i < report->n_meters; i++)
        if (is_target(report, i)) {
            tell_source(&notes, &report->meters[i]);
            tell_counter(&notes, &report->meters[i]);
            tell_agreement(&notes, &report->meters[i]);
        }
    tell_uses(&notes);
    tell_unused(&notes);
    const bool has_failed = notes.line.failed;
    marey__buf_fini(&notes.line);
    return !has_failed;
}
