/*
 * The gate of marey scale. A point fails when its whole interval lies below what is asked for, so that chance fails no build;
 * where there is no interval, the value itself counts. A gate that has nothing to judge is an error and no success.
 */
#include <inttypes.h>

#include "scale.h"

static struct marey_cell cell_of(const marey_table *points, size_t row, const char *column)
{
    return marey_table_cell(points, row, (size_t)marey_table_find(points, column));
}

/* "torch-ddp with 8 workers", into `into`. */
static const char *name_point(const marey_table *points, size_t row, char *into, size_t size)
{
    const struct marey_cell experiment = cell_of(points, row, "experiment"),
                            strategy = cell_of(points, row, "strategy");
    snprintf(into, size, "%s%s%s%swith %" PRIu64 " workers", experiment.as.text,
             experiment.len != 0 ? " " : "", strategy.as.text, strategy.len != 0 ? " " : "",
             cell_of(points, row, "workers").as.u64);
    return into;
}

/* Whether the point fails, and that said; also when it only may. */
static bool tell_point(const marey_table *points, size_t row, double percent)
{
    char name[256];
    const struct marey_cell value = cell_of(points, row, "efficiency"),
                            low = cell_of(points, row, "efficiency_low"),
                            high = cell_of(points, row, "efficiency_high");
    const double efficiency = value.as.f64 * 100;
    const bool has_interval = !low.is_null && !high.is_null;
    if (efficiency >= percent)
        return false;
    name_point(points, row, name, sizeof name);
    if (!has_interval)
        cli_say(
            "%s: efficiency %.1f %%, %.1f below %g %%; single runs, so chance cannot be ruled out",
            name, efficiency, percent - efficiency, percent);
    else if (high.as.f64 * 100 < percent)
        cli_say("%s: efficiency %.1f %% (%.1f to %.1f %%), %.1f below %g %%", name, efficiency,
                low.as.f64 * 100, high.as.f64 * 100, percent - efficiency, percent);
    else
        cli_say(
            "%s: efficiency %.1f %% (%.1f to %.1f %%) may be below %g %%; repeat the runs to know",
            name, efficiency, low.as.f64 * 100, high.as.f64 * 100, percent);
    return !has_interval || high.as.f64 * 100 < percent;
}

int scale_check_gate(const marey_report *report, double percent)
{
    const marey_table *points = marey_report_table(report, "points");
    size_t n_judged = 0, n_failed = 0;
    for (size_t row = 0; row < marey_table_n_rows(points); row++) {
        const struct marey_cell ideal = cell_of(points, row, "ideal"),
                                efficiency = cell_of(points, row, "efficiency");
        if (ideal.is_null || efficiency.is_null || ideal.as.f64 <= 1)
            continue; /* the baseline is as efficient as itself */
        n_judged++;
        n_failed += tell_point(points, row, percent);
    }
    if (n_judged == 0)
        return cli_fail("--fail-below-efficiency needs runs with at least two numbers of workers");
    return n_failed != 0 ? CLI_NO : CLI_FINE;
}
