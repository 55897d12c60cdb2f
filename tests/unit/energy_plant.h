/* Recordings with planted power, for tests of energy. Times are seconds; logs have nanoseconds. */
#ifndef MAREY_TEST_ENERGY_PLANT_H
#define MAREY_TEST_ENERGY_PLANT_H

#include <math.h>

#include "log_maker.h"
#include "scratch.h"
#include <marey/report.h>

/* Power at a time, and the energy since 0. */
struct curve {
    double (*power)(double t);
    double (*energy)(double t);
};

/* One process in the making. Sites 1 to 9 are ranges and phases "one" to "nine"; devices have theirs from 10 on. */
struct plant {
    struct log_maker log;
    uint32_t next_site, sequence[2];
};

/* `pairs`: additional properties of the process, NULL-terminated; NULL: none. */
void plant_begin(struct plant *plant, const char *const *pairs);
/* The site of a quantity of a device, created on first use. */
uint32_t plant_site(struct plant *plant, const char *device, const char *quantity);
void plant_reading(struct plant *plant, uint32_t site, double t, double value);
/* Power at `hz` from `from` to `to`, and the counter each `step` seconds, at the end too (0: none). */
void plant_power(struct plant *plant, const char *device, const struct curve *curve, double from,
                 double to, double hz);
void plant_counter(struct plant *plant, const char *device, const struct curve *curve, double from,
                   double to, double step);
/* Words of the program's thread go into lane 0; readings into lane 1. Write them as a block of either. */
void plant_words(struct plant *plant, uint32_t lane);
void plant_range(struct plant *plant, double from, double to, uint32_t site);
void plant_epoch(struct plant *plant, double at, uint64_t number, bool begins);
/* Write the log to `folder` as `name`.klog, and reset. */
void plant_finish(struct plant *plant, const char *folder, const char *name);

/* ---- looking into tables ---- */

/* `settings` may be NULL. */
marey_status create_energy(marey_recording *recording, const char *const *settings,
                           marey_report **out);
marey_report *report_of(const char *folder, const char *const *settings);
struct marey_cell cell_in(marey_report *report, const char *table, size_t row, const char *column);
double number_in(marey_report *report, const char *table, size_t row, const char *column);
const char *text_in(marey_report *report, const char *table, size_t row, const char *column);
size_t rows_in(marey_report *report, const char *table);
/* The row with this string in `column`. */
size_t row_named(marey_report *report, const char *table, const char *column, const char *text);
/* A note that has `part` in it. */
bool has_note(marey_report *report, const char *part);

#endif
