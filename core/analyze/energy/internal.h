/*
 * energy: converts counters of power and energy to joules per run, device, rank, epoch, step and range.
 *
 *   logs -- energy_read.c --+-- meters: readings of one device by one process -- energy_meter.c, energy_readings.c
 *                           '-- windows: times of epochs, iterations, phases, ranges -- energy_sets.c
 *   energy_users.c -- runs, and which process uses which device
 *   meter x window -- energy_measure.c -- energy_rows.c -- energy_tables.c, energy_notes.c
 *   energy_report.c -- the entry of the registry; energy_text.c -- text for a terminal
 *
 * A device's counter E is read every few seconds, its power P many times a second. Between two readings of the counter,
 * energy follows the integral I of P (linear between readings, constant outside), scaled to meet the counter:
 *
 *   E(t) = E_k + (I(t) - I_k) * (E_k+1 - E_k) / (I_k+1 - I_k)
 *
 * A window's energy is E(end) - E(start). Without a usable counter the integral is used as it is; with a counter only,
 * power is its difference quotient. Each figure has a plus_minus: the steps of the counter at the edges, the changes
 * between readings of power, and the difference of counter and power. A window shorter than two update periods of the
 * readings has no figure. Successive short windows that fill four fifths of the time are measured as one.
 *
 * Input: recordings. Output: tables. Memory: 24 bytes per reading, 16 per range, 40 per iteration. Does not read the
 * machine: a device is its counters in the log.
 */
#ifndef MAREY_ANALYZE_ENERGY_INTERNAL_H
#define MAREY_ANALYZE_ENERGY_INTERNAL_H

#include "analyze/device/internal.h"
#include "analyze/walk/internal.h"
#include "report/internal.h"

/* ---- energy_sets.c: sets of times without overlaps ---- */

/* Zero-initialized: empty. Sorted and without overlaps after settle. */
struct marey__time_set {
    struct marey__interval *parts;
    size_t n, cap;
};

/* Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__time_set_add(struct marey__time_set *set, uint64_t begin_ns,
                                           uint64_t end_ns);
MAREY_WARN_UNUSED bool marey__time_set_unite(struct marey__time_set *into,
                                             const struct marey__time_set *from);
/* Sort and remove overlaps. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__time_set_settle(struct marey__time_set *set);
/* Add `whole` minus `holes`; both are settled. */
MAREY_WARN_UNUSED bool marey__time_set_add_between(struct marey__time_set *into,
                                                   const struct marey__time_set *whole,
                                                   const struct marey__time_set *holes);
void marey__time_set_fini(struct marey__time_set *set);

/* ---- energy_readings.c ---- */

enum marey__quantity {
    MAREY__POWER,  /* W */
    MAREY__ENERGY, /* J since an arbitrary origin */
    MAREY__UTILIZATION,
    MAREY__SM_ACTIVE,
    MAREY__SM_OCCUPANCY,
    MAREY__TENSOR_ACTIVE,
    MAREY__DRAM_ACTIVE, /* these five are percent */
    MAREY__THROTTLE,    /* NVML's bits; after preparation, 100 where clocks are throttled */
    MAREY__SM_CLOCK,    /* these two MHz */
    MAREY__MEMORY_CLOCK,
    MAREY__TEMPERATURE, /* C */
    MAREY__MEMORY_USED, /* bytes */
    MAREY__N_QUANTITIES,
};
/* By the domain of a counter's site; MAREY__N_QUANTITIES if unknown. */
enum marey__quantity marey__quantity_find(const char *name);

struct marey__reading {
    uint64_t ns;
    double value;
    /* After preparation, the sum up to this reading: joules for power, value times seconds for others. */
    double sum;
};

struct marey__readings {
    struct marey__reading *at;
    size_t n, cap;
    double *cover; /* seconds covered by the readings up to each; for power the squared uncertainty */
};

enum marey__reading_interval_kind {
    MAREY__COUNTED,    /* by the counter */
    MAREY__INTEGRATED, /* by power only */
    MAREY__UNKNOWN,    /* neither */
};

/* Between two readings of the counter, before the first, or after the last. */
struct marey__reading_interval {
    uint64_t begin_ns, end_ns;
    enum marey__reading_interval_kind kind;
    double joules;    /* its whole energy */
    double integral;  /* of power over it */
    double before;    /* energy of all intervals before it; */
    double disagreed; /* likewise joules - integral */
};

/* Readings of one device by one process. */
struct marey__meter {
    const marey_recording *recording;
    const struct marey_process *process;
    const char *device; /* borrowed from the recording, `device_len` bytes */
    size_t device_len;
    const char *name; /* "GPU 0", borrowed, `name_len` bytes; may be empty */
    size_t name_len;
    struct marey__readings of[MAREY__N_QUANTITIES];
    struct marey__reading_interval *intervals;
    size_t n_intervals, intervals_cap;
    uint64_t *breaks; /* where another process continued; the counter's origin may have changed there */
    size_t n_breaks, breaks_cap;
    uint64_t power_period_ns, counter_period_ns; /* update periods */
    uint64_t first_ns, last_ns;                  /* valid time; first after last: none */
    double integrated_j, counted_j;              /* over the time with both */
    uint64_t missing_ns;                         /* gaps in power readings longer than typical */
    uint32_t n_wraps, n_resets, n_stuck, n_bad;
    bool has_counter, has_power; /* power was read, not derived */
    bool is_brief; /* there is a counter, but it did not move in the short measurement */
    bool is_ready;
};

void marey__meter_fini(struct marey__meter *meter);
/* Whether `later` continues after `meter` ended, for the same device and run; and append its readings. */
bool marey__meter_is_later(const struct marey__meter *meter, const struct marey__meter *later);
MAREY_WARN_UNUSED bool marey__meter_append(struct marey__meter *meter, struct marey__meter *later);
/* The update period of power recorded by the process; 0 if unknown. */
uint64_t marey__meter_stated_period(const struct marey__meter *meter);
/* Typical distances between readings, beyond which some are missing. */
enum { MAREY__MAX_GAP = 4 };
/* Sort, remove invalid readings and duplicates; compute sums and covers. These three return false on out of memory. */
MAREY_WARN_UNUSED bool marey__readings_tidy(struct marey__meter *meter, enum marey__quantity q);
MAREY_WARN_UNUSED bool marey__readings_sum(struct marey__readings *readings, uint64_t began_ns);
/* The median distance of successive readings; 0 for fewer than two. */
MAREY_WARN_UNUSED bool marey__readings_distance(const struct marey__readings *readings,
                                                uint64_t *out);
/* Map throttle reasons to 100, others to 0. */
void marey__readings_throttled(struct marey__readings *readings);

/* ---- energy_meter.c ---- */

/* Sort and sum up the readings. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__meter_prepare(struct marey__meter *meter);
/* The process's description of the device in `energy_sources`: a field of "device|model|words"; "" if missing. */
enum { MAREY__SOURCE_MODEL = 1, MAREY__SOURCE_WORDS = 2 };
const char *marey__meter_source_field(const struct marey__meter *meter, unsigned field, size_t *len);
/* The integral of power up to `ns`, in J; only differences are meaningful. The meter must be prepared. */
double marey__meter_integral(const struct marey__meter *meter, uint64_t ns);
/* The last reading at or before `ns`; SIZE_MAX: none. */
size_t marey__readings_find(const struct marey__readings *readings, uint64_t ns);

/* ---- energy_measure.c ---- */

/* Tables have the means of these quantities; of others, also the maximum. */
enum { MAREY__FIRST_MEAN = MAREY__UTILIZATION, MAREY__LAST_SHARE = MAREY__THROTTLE };

struct marey__energy_sum {
    uint32_t n_devices;
    double joules, plus_minus, mean_w, peak_w;
    uint64_t ns; /* length of the window; for several devices the longest */
    uint64_t measured_ns;
    uint64_t short_ns; /* in parts too short to measure */
    double weighted[MAREY__N_QUANTITIES], weight[MAREY__N_QUANTITIES], highest[MAREY__N_QUANTITIES];
    uint64_t integrated_ns; /* of the measured time, without a counter */
    bool is_counted, is_integrated, is_short, is_partial;
};

/* The energy of a device in a settled set. */
void marey__meter_measure(const struct marey__meter *meter, const struct marey__time_set *set,
                          struct marey__energy_sum *out);
/* Add the sums of another device. */
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

/* Processes of one rank on one host in one run, as users of devices. */
struct marey__energy_member {
    const marey_recording *recording;
    uint32_t run;
    int32_t rank, local_rank;
    const char *host;
    uint64_t first_ns, last_ns;
    const char *devices; /* as recorded by its processes; "" */
    uint64_t ordinals;   /* bits: devices in that list with work in the recording */
    bool has_ordinals;   /* any work was recorded */
    bool is_by_place; /* uses only the device at its local rank in the list; set by energy_users.c */
};

/* Times of a member in something. */
struct marey__energy_window {
    uint32_t member; /* these three are the key */
    enum marey__energy_by by;
    uint64_t key; /* number of an epoch or group; of the name of a phase or range */
    struct marey__time_set set;
    uint64_t count;
    uint64_t first, last; /* iterations of a group */
    double samples;
    bool is_too_many; /* not all of its ranges are kept */
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
    uint8_t *users; /* by member: 1 if it uses the device */
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

/* Input of the tables. */
struct marey__energy_report {
    marey_table **tables;  /* of the report */
    const char *filter;    /* of ranges; NULL: all */
    uint32_t wanted_group; /* iterations in a group; 0: enough to be measurable */
    double co2_g_per_kwh;  /* 0: unknown */
    double pue;            /* multiplies only CO2: joules stay as measured */
    struct marey__meter *meters;
    size_t n_meters, meters_cap;
    struct marey__process_runs runs;
    struct marey__energy_member *members;
    size_t n_members, members_cap;
    struct marey__energy_window *windows;
    size_t n_windows, windows_cap;
    struct marey__key_map by_id; /* windows */
    struct marey__names names;
    struct marey__energy_iteration *iterations;
    size_t n_iterations, iterations_cap;
    struct marey__energy_target *targets;
    size_t n_targets, targets_cap;
    uint64_t n_parts; /* of all windows of ranges */
    uint64_t group;   /* iterations in a group */
    bool is_place_guessed, is_use_unknown;
};

/* Read all processes of a recording. */
MAREY_WARN_UNUSED marey_status marey__energy_read(struct marey__energy_report *report,
                                                  marey_recording *recording);
/* The window of a member, created if needed; NULL on out of memory. */
struct marey__energy_window *marey__energy_window(struct marey__energy_report *report,
                                                  uint32_t member, enum marey__energy_by by,
                                                  uint64_t key);

/*
 * energy_users.c: runs in order of time, devices and their users; groups of iterations. Returns false on out of memory.
 */
void marey__energy_order_runs(struct marey__energy_report *report);
MAREY_WARN_UNUSED bool marey__energy_find_users(struct marey__energy_report *report);
MAREY_WARN_UNUSED bool marey__energy_group_iterations(struct marey__energy_report *report);

/* ---- energy_rows.c ---- */

/* Windows of one item, one per member with it. */
struct marey__energy_section {
    uint32_t run;
    enum marey__energy_by by;
    uint64_t key;
    const struct marey__energy_window **windows;
    size_t n;
    uint64_t longest_ns;
};

/* Which devices: all of the section's run, those of one host, or of one member. */
struct marey__energy_scope {
    uint32_t member;  /* MAREY__NO_MEMBER: all */
    const char *host; /* NULL: all */
};
#define MAREY__NO_MEMBER UINT32_MAX

struct marey__energy_row {
    struct marey__energy_sum sums[MAREY__N_ENERGY_KINDS]; /* without devices: the kind was not measured */
    uint64_t count, first, last;
    double samples;
    bool is_too_many;
};

/* The energy of used devices in a section. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__energy_row_make(const struct marey__energy_report *report,
                                              const struct marey__energy_section *section,
                                              const struct marey__energy_scope *scope,
                                              struct marey__energy_row *row);
/* The energy of one device in a section; a device without users counts while any member on its host was in it. */
MAREY_WARN_UNUSED bool marey__energy_target_measure(const struct marey__energy_target *target,
                                                    const struct marey__energy_section *section,
                                                    const struct marey__energy_report *report,
                                                    struct marey__energy_sum *out);

/* All sections: by run, kind, and number, or the longest first. They point into `windows`. */
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
extern const char *const marey__energy_kind_names[MAREY__N_ENERGY_KINDS];

#endif
