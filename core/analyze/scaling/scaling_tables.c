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

static const struct marey__table_definition definitions[MAREY__N_SCALING_TABLES] = {
    DEFINED("points", point_columns),      DEFINED("fits", fit_columns),
    DEFINED("forecast", forecast_columns), DEFINED("best", best_columns),
    DEFINED("runs", run_columns),          DEFINED("notes", note_columns),
};

marey_status marey__scaling_make_tables(struct marey_scaling *scaling)
{
    for (size_t i = 0; i < MAREY__N_SCALING_TABLES; i++)
        MAREY_TRY(marey_table_create(definitions[i].name, definitions[i].columns, definitions[i].n,
                                     &scaling->tables[i]));
    return MAREY_OK;
}
