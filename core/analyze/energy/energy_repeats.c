/* Runs of one recording as repeats: their mean, and where it lies. They are never added up. */
#include <math.h>
#include <string.h>

#include "analyze/energy/internal.h"

/* Mean and interval over runs of the rows of one kind. */
static void put_kind(const struct marey__energy_report *report, const char *kind)
{
    const marey_table *runs = report->tables[MAREY__ENERGY_RUNS];
    marey_table *table = report->tables[MAREY__ENERGY_REPEATS];
    double n = 0, sum = 0, squares = 0, ns = 0, per_sample = 0, n_per_sample = 0;
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t row = 0; row < marey_table_n_rows(runs); row++) {
            const struct marey_cell joules = marey__cell_of(runs, row, "joules"),
                                    sample = marey__cell_of(runs, row, "joules_per_sample");
            if (joules.is_null || strcmp(marey__cell_of(runs, row, "kind").as.text, kind) != 0)
                continue;
            if (pass == 1) {
                squares += (joules.as.f64 - sum / n) * (joules.as.f64 - sum / n);
                continue;
            }
            n++;
            sum += joules.as.f64;
            ns += (double)marey__cell_of(runs, row, "duration_ns").as.u64;
            per_sample += sample.is_null ? 0 : sample.as.f64;
            n_per_sample += !sample.is_null;
        }
    if (n < 2)
        return;
    const double std = sqrt(squares / (n - 1)), half = marey__t_quantile(0.95, n - 1) * std / sqrt(n);
    marey__put_string(table, kind);
    marey_table_u64(table, (uint64_t)n);
    marey_table_f64(table, sum / n);
    marey_table_f64(table, sum / n - half);
    marey_table_f64(table, sum / n + half);
    marey_table_f64(table, std);
    marey_table_f64(table, ns / n);
    marey__put_real(table, per_sample / n, n_per_sample == n);
}

void marey__energy_put_repeats(struct marey__energy_report *report)
{
    for (size_t kind = 0; kind < MAREY__N_ENERGY_KINDS; kind++)
        put_kind(report, marey__energy_kind_names[kind]);
    put_kind(report, "all");
}
