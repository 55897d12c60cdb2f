/*
 * energy: counters of power and energy to joules per run, device, rank, epoch, step and range.
 *
 *   logs -- energy_read.c --+-- meters: readings of one device by one process -- energy_meter.c, energy_readings.c
 *                           '-- windows: times of epochs, iterations, phases, ranges -- energy_sets.c
 *   energy_users.c -- runs, and which process uses which device
 *   meter x window -- energy_measure.c -- energy_rows.c -- energy_tables.c, energy_repeats.c, energy_notes.c
 *   energy_report.c -- the entry of the registry; energy_text.c -- text for a terminal
 *
 * A device's counter E is read every few seconds, its power P many times a second. Between two readings of the counter,
 * energy follows the integral I of P (linear between readings, constant outside), scaled to meet the counter:
 *
 *   E(t) = E_k + (I(t) - I_k) * (E_k+1 - E_k) / (I_k+1 - I_k)
 *
 * A window's energy is E(end) - E(start). Without a usable counter the integral is used as it is; with a counter
 * only, power is its difference quotient.
 *
 * Each figure has a plus_minus: the steps of the counter at the edges, the largest change between two readings of power,
 * and the difference of counter and power. A window shorter than twice the time in which readings change has no figure.
 * Short windows that follow one another and fill four fifths of the time are measured as one.
 *
 * Input: recordings. Output: tables. Memory: 24 bytes per reading, 16 per range, 40 per iteration.
 */
#ifndef MAREY_ANALYZE_ENERGY_INTERNAL_H
#define MAREY_ANALYZE_ENERGY_INTERNAL_H

#include "analyze/device/internal.h"
#include "analyze/walk/internal.h"
#include "report/internal.h"

/* ---- energy_sets.c: times, each moment once ---- */

/* Zeroed: empty. In order and without overlaps once it is settled. */
struct marey__time_set {
    struct marey__interval *parts;
    size_t n, cap;
};

/* Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__time_set_add(struct marey__time_set *set, uint64_t begin_ns,
                                           uint64_t end_ns);
MAREY_WARN_UNUSED bool marey__time_set_unite(struct marey__time_set *into,
                                             const struct marey__time_set *from);
/* Put it in order, each moment once. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__time_set_settle(struct marey__time_set *set);
/* Add what is in `whole` and not in `holes`; both are settled. */
MAREY_WARN_UNUSED bool marey__time_set_add_between(struct marey__time_set *into,
                                                   const struct marey__time_set *whole,
                                                   const struct marey__time_set *holes);
void marey__time_set_fini(struct marey__time_set *set);

/* ---- energy_readings.c ---- */

enum marey__quantity {
    MAREY__POWER,  /* W */
    MAREY__ENERGY, /* J since some origin */
    MAREY__UTILIZATION,
    MAREY__SM_ACTIVE,
    MAREY__SM_OCCUPANCY,
    MAREY__TENSOR_ACTIVE,
    MAREY__DRAM_ACTIVE, /* these five are percent */
    MAREY__THROTTLE,    /* bits as NVML has them; made ready, 100 where the clocks are held down */
    MAREY__SM_CLOCK,    /* these two MHz */
    MAREY__MEMORY_CLOCK,
    MAREY__TEMPERATURE, /* C */
    MAREY__MEMORY_USED, /* bytes */
    MAREY__N_QUANTITIES,
};
/* As the domain of a counter's site names it; MAREY__N_QUANTITIES when it is none of ours. */
enum marey__quantity marey__quantity_find(const char *name);

struct marey__reading {
    uint64_t ns;
    double value;
    /* Made ready, summed up to this one: of power joules; of others value times seconds. */
    double sum;
};

struct marey__readings {
    struct marey__reading *at;
    size_t n, cap;
    double *cover; /* seconds that the readings up to each speak for; of power squares of what each step may hide */
};

enum marey__stretch_kind {
    MAREY__COUNTED,    /* by the counter */
    MAREY__INTEGRATED, /* only power */
    MAREY__UNKNOWN,    /* neither */
};

/* Between two readings of the counter, before the first, behind the last. */
struct marey__stretch {
    uint64_t begin_ns, end_ns;
    enum marey__stretch_kind kind;
    double joules;    /* its whole energy */
    double integral;  /* of power over it */
    double before;    /* energy of all stretches before it; */
    double disagreed; /* likewise joules - integral */
};

/* What one process read of one device. */
struct marey__meter {
    const marey_recording *recording;
    const struct marey_process *process;
    const char *device; /* lent by the recording, `device_len` bytes */
    size_t device_len;
    const char *name; /* "GPU 0", lent, `name_len` bytes; may be empty */
    size_t name_len;
    struct marey__readings of[MAREY__N_QUANTITIES];
    struct marey__stretch *stretches;
    size_t n_stretches, stretches_cap;
    uint64_t *breaks; /* where another process went on; the counter's origin may have changed there */
    size_t n_breaks, breaks_cap;
    uint64_t power_period_ns, counter_period_ns; /* how often each changes */
    uint64_t first_ns, last_ns;     /* that it speaks for; the first behind the last: nothing */
    double integrated_j, counted_j; /* over the time in which there were both */
    uint64_t missing_ns;            /* without readings of power for longer than usual */
    uint32_t n_wraps, n_resets, n_stuck, n_bad;
    bool has_counter, has_power; /* power that was read, not derived */
    bool is_brief; /* there is a counter, and the measuring was too short for it to move */
    bool is_ready;
};

void marey__meter_fini(struct marey__meter *meter);
/* Whether one goes on with the device where the other ended, in the same run; and take its readings over. */
bool marey__meter_is_later(const struct marey__meter *meter, const struct marey__meter *later);
MAREY_WARN_UNUSED bool marey__meter_append(struct marey__meter *meter, struct marey__meter *later);
/* How long it takes until power has a new value, as far as the process that read it says so; else 0. */
uint64_t marey__meter_stated_period(const struct marey__meter *meter);
/* Usual distances between readings, beyond which some are missing. */
enum { MAREY__MAX_GAP = 4 };
/* In order, without what cannot be, and one for each moment; sums and covers. These three false on out of memory. */
MAREY_WARN_UNUSED bool marey__readings_tidy(struct marey__meter *meter, enum marey__quantity q);
MAREY_WARN_UNUSED bool marey__readings_sum(struct marey__readings *readings, uint64_t began_ns);
/* The median distance of successive readings; 0 for fewer than two. */
MAREY_WARN_UNUSED bool marey__readings_distance(const struct marey__readings *readings,
                                                uint64_t *out);
/* Reasons for which clocks are held down as 100, others as 0. */
void marey__readings_throttled(struct marey__readings *readings);

/* ---- energy_meter.c ---- */

/* Put the readings in order and sum them up. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__meter_prepare(struct marey__meter *meter);
/* What its process says of the device in `energy_sources`: a field of "device|model|words"; "" where it says nothing. */
enum { MAREY__SOURCE_MODEL = 1, MAREY__SOURCE_WORDS = 2 };
const char *marey__meter_words(const struct marey__meter *meter, unsigned field, size_t *len);
/* The integral of power up to a moment, J; only differences count. Of a prepared meter. */
double marey__meter_integral(const struct marey__meter *meter, uint64_t ns);
/* The last reading at or before `ns`; SIZE_MAX: none. */
size_t marey__readings_find(const struct marey__readings *readings, uint64_t ns);

/* ---- energy_measure.c ---- */

/* Tables have the means of these; of the others, also the highest. */
enum { MAREY__FIRST_MEAN = MAREY__UTILIZATION, MAREY__LAST_SHARE = MAREY__THROTTLE };

struct marey__energy_sum {
    uint32_t n_devices;
    double joules, plus_minus, mean_w, peak_w;
    uint64_t ns; /* how long the window is; of several devices the longest */
    uint64_t measured_ns;
    uint64_t short_ns; /* in parts too short to say */
    double weighted[MAREY__N_QUANTITIES], weight[MAREY__N_QUANTITIES], highest[MAREY__N_QUANTITIES];
    uint64_t integrated_ns; /* of those measured, without a counter */
    bool is_counted, is_integrated, is_short, is_partial;
};

/* What a device took in a settled set. */
void marey__meter_measure(const struct marey__meter *meter, const struct marey__time_set *set,
                          struct marey__energy_sum *out);
/* Of several devices together. */
void marey__energy_sum_add(struct marey__energy_sum *into, const struct marey__energy_sum *from);

/* ---- energy_read.c ---- */

enum marey__energy_by {
    MAREY__ENERGY_RUN,
    MAREY__ENERGY_EPOCH,
    MAREY__ENERGY_ITERATION,
    MAREY__ENERGY_PHASE,
    MAREY__ENERGY_RANGE,
    MAREY__N_ENERGY_BY,
};

/* Processes of one rank on one host in one run: who uses devices. */
struct marey__energy_member {
    const marey_recording *recording;
    uint32_t run;
    int32_t rank, local_rank;
    const char *host;
    uint64_t first_ns, last_ns;
    const char *devices; /* as its processes say; "" */
    uint64_t ordinals;   /* of devices in that list that had work in the recording, a bit each */
    bool has_ordinals;   /* work was recorded at all */
    bool is_by_place; /* of its list only the device at its place on the host is its own; set by energy_users.c */
};

/* When a member was in something. */
struct marey__energy_window {
    uint32_t member;
    enum marey__energy_by by;
    uint64_t key; /* number of an epoch or group; of the name of a phase or range */
    struct marey__time_set set;
    uint64_t count;
    uint64_t first, last; /* iterations of a group */
    double samples;
    bool is_too_many; /* of its ranges not all are kept */
};

struct marey__energy_iteration {
    uint64_t begin_ns, end_ns, number;
    double samples;
    uint32_t member;
};

enum marey__energy_kind { MAREY__OF_GPU, MAREY__OF_CPU, MAREY__OF_DRAM, MAREY__N_ENERGY_KINDS };

/* A device on a host during a run. */
struct marey__energy_target {
    uint32_t run, meter;
    const char *host;
    enum marey__energy_kind kind;
    uint8_t *users; /* by member: 1 when it uses the device */
    uint32_t n_users;
};

enum marey__energy_table {
    MAREY__ENERGY_RUNS,
    MAREY__ENERGY_REPEATS,
    MAREY__ENERGY_DEVICES,
    MAREY__ENERGY_RANKS,
    MAREY__ENERGY_NODES,
    MAREY__ENERGY_EPOCHS,
    MAREY__ENERGY_ITERATIONS,
    MAREY__ENERGY_PHASES,
    MAREY__ENERGY_RANGES,
    MAREY__ENERGY_NOTES,
    MAREY__N_ENERGY_TABLES,
};

/* What the tables are made from. */
struct marey__energy_report {
    marey_table **tables;  /* of the report */
    const char *filter;    /* of ranges; NULL: all */
    uint32_t wanted_group; /* iterations in a group; 0: as many as are long enough to measure */
    double co2_g_per_kwh;  /* 0: unknown */
    double pue;            /* multiplies CO2 only: joules stay as measured */
    struct marey__meter *meters;
    size_t n_meters, meters_cap;
    struct marey__process_runs runs;
    struct marey__energy_member *members;
    size_t n_members, members_cap;
    struct marey__energy_window *windows;
    size_t n_windows, windows_cap;
    struct marey__names window_keys, names;
    struct marey__arena texts;
    struct marey__energy_iteration *iterations;
    size_t n_iterations, iterations_cap;
    struct marey__energy_target *targets;
    size_t n_targets, targets_cap;
    uint64_t n_parts; /* of all windows of ranges */
    uint64_t group;   /* iterations in a group */
    bool is_place_guessed, is_use_unknown;
};

/* All processes of a recording. */
MAREY_WARN_UNUSED marey_status marey__energy_read(struct marey__energy_report *report,
                                                  marey_recording *recording);
/* The window of a member, made when new; NULL on out of memory. */
struct marey__energy_window *marey__energy_window(struct marey__energy_report *report,
                                                  uint32_t member, enum marey__energy_by by,
                                                  uint64_t key);

/* energy_users.c: runs in order of time, devices and who uses them; groups of iterations. Returns false on out of memory. */
void marey__energy_order_runs(struct marey__energy_report *report);
MAREY_WARN_UNUSED bool marey__energy_find_users(struct marey__energy_report *report);
MAREY_WARN_UNUSED bool marey__energy_group_iterations(struct marey__energy_report *report);

/* ---- energy_rows.c ---- */

/* Windows of the same thing, one for each member that was in it. */
struct marey__energy_section {
    uint32_t run;
    enum marey__energy_by by;
    uint64_t key;
    const struct marey__energy_window **windows;
    size_t n;
    uint64_t longest_ns;
};

/* Whose devices: all of the section's run, those of one host, or of one member. */
struct marey__energy_scope {
    uint32_t member;  /* MAREY__NO_MEMBER: of all */
    const char *host; /* NULL: all */
};
#define MAREY__NO_MEMBER UINT32_MAX

struct marey__energy_row {
    struct marey__energy_sum sums[MAREY__N_ENERGY_KINDS]; /* without devices: that kind was not measured */
    uint64_t count, first, last;
    double samples;
    bool is_too_many;
};

/* What the devices that are used took in a section. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__energy_row_make(const struct marey__energy_report *report,
                                              const struct marey__energy_section *section,
                                              const struct marey__energy_scope *scope,
                                              struct marey__energy_row *row);
/* What one device took in it; one that nobody uses while anybody on its host was in it. */
MAREY_WARN_UNUSED bool marey__energy_target_measure(const struct marey__energy_target *target,
                                                    const struct marey__energy_section *section,
                                                    const struct marey__energy_report *report,
                                                    struct marey__energy_sum *out);

/* All sections: by run, by what they are of, and by number, or the longest first. `windows` is what they point into. */
struct marey__energy_sections {
    const struct marey__energy_window **windows;
    struct marey__energy_section *sections;
    size_t n, cap;
};
MAREY_WARN_UNUSED bool marey__energy_sections_make(struct marey__energy_sections *sections,
                                                   const struct marey__energy_report *report);
void marey__energy_sections_fini(struct marey__energy_sections *sections);

/* ---- energy_tables.c, energy_notes.c, energy_text.c ---- */

extern const struct marey_table_definition marey__energy_tables[MAREY__N_ENERGY_TABLES];
/* These two return false on out of memory. */
MAREY_WARN_UNUSED bool marey__energy_put_tables(struct marey__energy_report *report);
MAREY_WARN_UNUSED bool marey__energy_put_notes(struct marey__energy_report *report);
marey__put_answer marey__energy_text;
/* Into the table `repeats`, from `runs`. In energy_repeats.c. */
void marey__energy_put_repeats(struct marey__energy_report *report);
extern const char *const marey__energy_kind_names[MAREY__N_ENERGY_KINDS];

#endif
