/* What each table of a scaling report has in it. */
#include "analyze/scaling/internal.h"
#include "analyze/walk/internal.h"

#define SERIES TEXT("experiment"), TEXT("strategy")
#define WORKERS COUNT("workers", NULL)
#define INTERVAL(name, low, high) REAL(name, NULL), REAL(low, NULL), REAL(high, NULL)
#define SHARE_INTERVAL(name, low, high) SHARE(name, NULL), SHARE(low, NULL), SHARE(high, NULL)

static const struct marey_column point_columns[] = {
    SERIES,
    WORKERS,
    COUNT("nodes", NULL),
    COUNT("runs", NULL),
    COUNT("epochs", NULL),
    TEXT("kind"),
    INTERVAL("time_s", "low_s", "high_s"),
    INTERVAL("step_s", "step_low_s", "step_high_s"),
    REAL("throughput", "samples/s"),
    INTERVAL("speedup", "speedup_low", "speedup_high"),
    REAL("ideal", NULL),
    SHARE_INTERVAL("efficiency", "efficiency_low", "efficiency_high"),
    SHARE("karp_flatt", "Karp-Flatt"),
    REAL("compute_s", NULL),
    REAL("communication_s", NULL),
    REAL("memory_s", NULL),
    REAL("idle_s", NULL),
    INTERVAL("joules_per_epoch", "joules_low", "joules_high"),
    REAL("joules_per_sample", NULL),
    SHARE("energy_efficiency", NULL),
    REAL("energy_delay", NULL),
    REAL("worker_hours", NULL),
    SHARE("utilization", NULL),
    SHARE("computation_fraction", NULL),
    SHARE("computation_vs_communication", NULL),
    SHARE("spread", NULL),
    FLAG("disagrees"),
    TEXT("measure"),
    REAL("samples", NULL),
};
static const struct marey_column fit_columns[] = {
    SERIES,
    TEXT("model"),
    SHARE_INTERVAL("serial", "serial_low", "serial_high"),
    INTERVAL("contention", "contention_low", "contention_high"),
    INTERVAL("coherency", "coherency_low", "coherency_high"),
    COUNT("points", NULL),
    SHARE("residual", NULL),
    INTERVAL("best_workers", "best_low", "best_high"),
    TEXT("note"),
    REAL("time_one_s", NULL),
};
static const struct marey_column forecast_columns[] = {
    SERIES,
    TEXT("model"),
    WORKERS,
    INTERVAL("time_s", "low_s", "high_s"),
    SHARE("efficiency", NULL),
    REAL("speedup", NULL),
};
static const struct marey_column best_columns[] = {SERIES, TEXT("for"), WORKERS,
                                                   REAL("value", NULL), FLAG("measured")};
static const struct marey_column run_columns[] = {SERIES,
                                                  WORKERS,
                                                  TEXT("run"),
                                                  COUNT("epochs", NULL),
                                                  REAL("median_epoch_s", NULL),
                                                  REAL("median_step_s", NULL),
                                                  REAL("joules", NULL),
                                                  FLAG("partial")};
static const struct marey_column note_columns[] = {TEXT("text")};

/*
 * points: time_s is that of `measure` ("epoch" or "step"); `samples` are those of such a one, `throughput` samples in a
 * second. kind: "strong" when every point does the same work, "weak" when work grows as workers do, "mixed" when it
 * changes in another way, "unknown" when samples are not known: the work is then assumed to be the same. `speedup` is how
 * much more work is done in a second than at the baseline: T(n0) / T(n) where the work is the same, and that times n / n0 in
 * weak scaling. `ideal` is n / n0, `efficiency` one over the other. karp_flatt is the serial share (1/S - 1/p) / (1 - 1/p),
 * p = n / n0; null in a series of two points. Intervals are null in a series without repeats: a single run does not show
 * how much runs differ. energy_efficiency: the baseline's joules for the same work over this point's. energy_delay: joules
 * times seconds of an epoch. worker_hours: workers times time_s. `spread` is the largest minus the smallest of the runs'
 * medians, over the point's.
 *
 * fits: `model` is "amdahl", T(n) = T(1) (serial + (1 - serial) / n), or "usl", T(n) = T(1) (1 + contention (n - 1) +
 * coherency n (n - 1)) / n, of the time for the baseline's work. No parameter is negative. time_one_s is T(1). residual is
 * the root mean square of the points' relative distances. best_workers is where more workers are no longer faster; null
 * where that never happens, or may never happen: best_low is then the least it may be. A model that cannot be fitted has a
 * row with its reason in `note`.
 *
 * best: `for` is "time" (value: seconds for the baseline's work), "energy" (joules) or "energy_delay" (their product).
 * `measured`: the best of the points; else by the fit of "usl".
 */
#define TABLE(name, columns, help)                                                                 \
    {                                                                                              \
        name, columns, MAREY__COUNT_OF(columns), NULL, help                                        \
    }
const struct marey_table_definition marey__scaling_tables[MAREY__N_SCALING_TABLES] = {
    TABLE("points", point_columns, "time, speedup, efficiency and energy of each number of workers"),
    TABLE("fits", fit_columns, "Amdahl's law and the universal scalability law for each series"),
    TABLE("forecast", forecast_columns,
          "time and efficiency of other numbers of workers, by the fits"),
    TABLE("best", best_columns, "the best number of workers for time, energy and their product"),
    TABLE("runs", run_columns, "the runs that were read"),
    TABLE("notes", note_columns, "what was left out or assumed"),
};
