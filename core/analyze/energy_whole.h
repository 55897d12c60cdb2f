/*
 * energy: from counters of power and energy to joules.
 *
 *   logs ── energy_read.c ──┬── meters: what one process read of one device ── energy_meter.c: made ready to be asked
 *                           └── windows: when who was in which epoch, iteration, phase, range ── energy_sets.c
 *   energy_users.c ── runs, and which device is whose
 *   meter x window ── energy_measure.c ── energy_rows.c: sums of devices ── energy_tables.c, energy_notes.c
 *
 * How joules are found. A device's counter E is read every few seconds, its power P many times a second. Between two
 * readings of the counter, energy runs as the integral of P does (straight lines between its readings, held before the first and
 * behind the last), scaled so that it ends where the counter does:
 *
 *   E(t) = E_k + (I(t) - I_k) * (E_k+1 - E_k) / (I_k+1 - I_k)          I: the integral of P
 *
 * A window's energy is E(end) - E(begin). Where the counter was reset or stood still, and where there is none, the
 * integral alone has to do. A counter without power gives power by its differences.
 *
 * Memory: 24 bytes for each reading, 16 for each range, 40 for each iteration.
 */
#ifndef KYMO_ENERGY_WHOLE_H
#define KYMO_ENERGY_WHOLE_H

#include "analyze/breakdown_internal.h"
#include "analyze/process_runs.h"
#include <kymo/energy_report.h>

/* ---- energy_sets.c: times, each moment once ---- */

/* Zeroed: empty. In order and without overlaps once it is settled. */
struct kymo__time_set {
    struct kymo__interval *parts;
    size_t n, cap;
};

/* False without memory. */
KYMO_WARN_UNUSED bool kymo__time_set_add(struct kymo__time_set *set, uint64_t begin_ns,
                                         uint64_t end_ns);
KYMO_WARN_UNUSED bool kymo__time_set_unite(struct kymo__time_set *into,
                                           const struct kymo__time_set *from);
/* Put it in order, each moment once. False without memory. */
KYMO_WARN_UNUSED bool kymo__time_set_settle(struct kymo__time_set *set);
/* Add what is in `whole` and not in `holes`; both are settled. */
KYMO_WARN_UNUSED bool kymo__time_set_add_between(struct kymo__time_set *into,
                                                 const struct kymo__time_set *whole,
                                                 const struct kymo__time_set *holes);
void kymo__time_set_fini(struct kymo__time_set *set);

/* ---- energy_readings.c ---- */

enum kymo__quantity {
    KYMO__POWER,  /* W */
    KYMO__ENERGY, /* J since some origin */
    KYMO__UTILIZATION,
    KYMO__SM_ACTIVE,
    KYMO__SM_OCCUPANCY,
    KYMO__TENSOR_ACTIVE,
    KYMO__DRAM_ACTIVE, /* these five are percent */
    KYMO__THROTTLE,    /* bits as NVML has them; made ready, 100 where the clocks are held down */
    KYMO__SM_CLOCK,    /* these two MHz */
    KYMO__MEMORY_CLOCK,
    KYMO__TEMPERATURE, /* C */
    KYMO__MEMORY_USED, /* bytes */
    KYMO__N_QUANTITIES,
};
/* As the domain of a counter's site names it; KYMO__N_QUANTITIES when it is none of ours. */
enum kymo__quantity kymo__quantity_find(const char *name);

struct kymo__reading {
    uint64_t ns;
    double value;
    /* Made ready, summed up to this one: of power joules; of others value times seconds. */
    double sum;
};

struct kymo__readings {
    struct kymo__reading *at;
    size_t n, cap;
    double *cover; /* seconds that the readings up to each speak for; of power squares of what each step may hide */
};

enum kymo__stretch_kind {
    KYMO__COUNTED,    /* the counter tells */
    KYMO__INTEGRATED, /* power alone */
    KYMO__UNKNOWN,    /* neither */
};

/* Between two readings of the counter, before the first, behind the last. */
struct kymo__stretch {
    uint64_t begin_ns, end_ns;
    enum kymo__stretch_kind kind;
    double joules;    /* its whole energy */
    double integral;  /* of power over it */
    double before;    /* energy of all stretches before it; */
    double disagreed; /* likewise joules - integral */
};

/* What one process read of one device. */
struct kymo__meter {
    const kymo_recording *recording;
    const struct kymo_process *process;
    const char *device; /* lent by the recording, `device_len` bytes */
    size_t device_len;
    const char *name; /* "GPU 0", lent, `name_len` bytes; may be empty */
    size_t name_len;
    struct kymo__readings of[KYMO__N_QUANTITIES];
    struct kymo__stretch *stretches;
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

void kymo__meter_fini(struct kymo__meter *meter);
/* Whether one goes on with the device where the other ended, in the same run; and take its readings over. */
bool kymo__meter_is_later(const struct kymo__meter *meter, const struct kymo__meter *later);
KYMO_WARN_UNUSED bool kymo__meter_append(struct kymo__meter *meter, struct kymo__meter *later);
/* How long it takes until power has a new value, as far as the process that read it says so; else 0. */
uint64_t kymo__meter_stated_period(const struct kymo__meter *meter);
/* Usual distances between readings, beyond which some are missing. */
enum { KYMO__MAX_GAP = 4 };
/* In order, without what cannot be, and one for each moment; sums and covers. These three false without memory. */
KYMO_WARN_UNUSED bool kymo__readings_tidy(struct kymo__meter *meter, enum kymo__quantity q);
KYMO_WARN_UNUSED bool kymo__readings_sum(struct kymo__readings *readings, uint64_t began_ns);
/* The median distance of successive readings; 0 for fewer than two. */
KYMO_WARN_UNUSED bool kymo__readings_distance(const struct kymo__readings *readings, uint64_t *out);
/* Reasons for which clocks are held down as 100, others as 0. */
void kymo__readings_throttled(struct kymo__readings *readings);

/* ---- energy_meter.c ---- */

/* Put the readings in order and sum them up. False without memory. */
KYMO_WARN_UNUSED bool kymo__meter_prepare(struct kymo__meter *meter);
/* What its process says of the device in `energy_sources`: a field of "device|model|words"; "" where it says nothing. */
enum { KYMO__SOURCE_MODEL = 1, KYMO__SOURCE_WORDS = 2 };
const char *kymo__meter_words(const struct kymo__meter *meter, unsigned field, size_t *len);
/* The integral of power up to a moment, J; only differences count. Of a prepared meter. */
double kymo__meter_integral(const struct kymo__meter *meter, uint64_t ns);
/* The last reading at or before `ns`; SIZE_MAX: none. */
size_t kymo__readings_find(const struct kymo__readings *readings, uint64_t ns);

/* ---- energy_measure.c ---- */

/* Means of these are told; of the others with them the highest. */
enum { KYMO__FIRST_MEAN = KYMO__UTILIZATION, KYMO__LAST_SHARE = KYMO__THROTTLE };

struct kymo__energy_sum {
    uint32_t n_devices;
    double joules, plus_minus, mean_w, peak_w;
    uint64_t ns; /* how long the window is; of several devices the longest */
    uint64_t measured_ns;
    uint64_t short_ns; /* in parts too short to say */
    double weighted[KYMO__N_QUANTITIES], weight[KYMO__N_QUANTITIES], highest[KYMO__N_QUANTITIES];
    uint64_t integrated_ns; /* of those measured, without a counter */
    bool is_counted, is_integrated, is_short, is_partial;
};

/* What a device took in a settled set. */
void kymo__meter_measure(const struct kymo__meter *meter, const struct kymo__time_set *set,
                         struct kymo__energy_sum *out);
/* Of several devices together. */
void kymo__energy_sum_add(struct kymo__energy_sum *into, const struct kymo__energy_sum *from);

/* ---- energy_read.c ---- */

enum kymo__energy_by {
    KYMO__ENERGY_RUN,
    KYMO__ENERGY_EPOCH,
    KYMO__ENERGY_ITERATION,
    KYMO__ENERGY_PHASE,
    KYMO__ENERGY_RANGE,
    KYMO__N_ENERGY_BY,
};

/* Processes of one rank on one host in one run: who uses devices. */
struct kymo__energy_member {
    const kymo_recording *recording;
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
struct kymo__energy_window {
    uint32_t member;
    enum kymo__energy_by by;
    uint64_t key; /* number of an epoch or group; of the name of a phase or range */
    struct kymo__time_set set;
    uint64_t count;
    uint64_t first, last; /* iterations of a group */
    double samples;
    bool is_too_many; /* of its ranges not all are kept */
};

struct kymo__energy_iteration {
    uint64_t begin_ns, end_ns, number;
    double samples;
    uint32_t member;
};

enum kymo__energy_kind { KYMO__OF_GPU, KYMO__OF_CPU, KYMO__OF_DRAM, KYMO__N_ENERGY_KINDS };

/* A device on a host during a run. */
struct kymo__energy_target {
    uint32_t run, meter;
    const char *host;
    enum kymo__energy_kind kind;
    uint8_t *users; /* by member: 1 when it uses the device */
    uint32_t n_users;
};

enum kymo__energy_table {
    KYMO__JOULES_RUNS,
    KYMO__JOULES_REPEATS,
    KYMO__JOULES_DEVICES,
    KYMO__JOULES_RANKS,
    KYMO__JOULES_NODES,
    KYMO__JOULES_EPOCHS,
    KYMO__JOULES_ITERATIONS,
    KYMO__JOULES_PHASES,
    KYMO__JOULES_RANGES,
    KYMO__JOULES_NOTES,
    KYMO__JOULES_GPU_DATA, /* these two as itwinai has them, where a strategy was named; else NULL */
    KYMO__JOULES_EPOCH_TIME,
    KYMO__N_JOULES,
};

struct kymo_energy_report {
    kymo_table *tables[KYMO__N_JOULES];
    char *title;
    struct kymo_energy_report_options options;
    /* What follows is gone once the tables are made. */
    struct kymo__meter *meters;
    size_t n_meters, meters_cap;
    struct kymo__process_runs runs;
    struct kymo__energy_member *members;
    size_t n_members, members_cap;
    struct kymo__energy_window *windows;
    size_t n_windows, windows_cap;
    struct kymo__names window_keys, names;
    struct kymo__arena texts;
    struct kymo__energy_iteration *iterations;
    size_t n_iterations, iterations_cap;
    struct kymo__energy_target *targets;
    size_t n_targets, targets_cap;
    uint64_t n_parts; /* of all windows of ranges */
    uint64_t group;   /* iterations in a group */
    bool is_place_guessed, is_use_unknown;
};

/* All processes of a recording. */
KYMO_WARN_UNUSED kymo_status kymo__energy_read(struct kymo_energy_report *report,
                                               kymo_recording *recording);
/* The window of a member, made when new; NULL without memory. */
struct kymo__energy_window *kymo__energy_window(struct kymo_energy_report *report, uint32_t member,
                                                enum kymo__energy_by by, uint64_t key);

/* energy_users.c: runs in order of time, devices and who uses them; groups of iterations. False without memory. */
void kymo__energy_order_runs(struct kymo_energy_report *report);
KYMO_WARN_UNUSED bool kymo__energy_find_users(struct kymo_energy_report *report);
KYMO_WARN_UNUSED bool kymo__energy_group_iterations(struct kymo_energy_report *report);

/* ---- energy_rows.c ---- */

/* Windows of the same thing, one for each member that was in it. */
struct kymo__energy_section {
    uint32_t run;
    enum kymo__energy_by by;
    uint64_t key;
    const struct kymo__energy_window **windows;
    size_t n;
    uint64_t longest_ns;
};

/* Whose devices: all of the section's run, those of one host, or of one member. */
struct kymo__energy_scope {
    uint32_t member;  /* KYMO__NO_MEMBER: of all */
    const char *host; /* NULL: all */
};
#define KYMO__NO_MEMBER UINT32_MAX

struct kymo__energy_row {
    struct kymo__energy_sum sums[KYMO__N_ENERGY_KINDS]; /* without devices: that kind was not measured */
    uint64_t count, first, last;
    double samples;
    bool is_too_many;
};

/* What the devices that are used took in a section. False without memory. */
KYMO_WARN_UNUSED bool kymo__energy_row_make(const struct kymo_energy_report *report,
                                            const struct kymo__energy_section *section,
                                            const struct kymo__energy_scope *scope,
                                            struct kymo__energy_row *row);
/* What one device took in it; one that nobody uses while anybody on its host was in it. */
KYMO_WARN_UNUSED bool kymo__energy_target_measure(const struct kymo__energy_target *target,
                                                  const struct kymo__energy_section *section,
                                                  const struct kymo_energy_report *report,
                                                  struct kymo__energy_sum *out);

/* All sections: by run, by what they are of, and by number, or the longest first. `windows` is what they point into. */
struct kymo__energy_sections {
    const struct kymo__energy_window **windows;
    struct kymo__energy_section *sections;
    size_t n, cap;
};
KYMO_WARN_UNUSED bool kymo__energy_sections_make(struct kymo__energy_sections *sections,
                                                 const struct kymo_energy_report *report);
void kymo__energy_sections_fini(struct kymo__energy_sections *sections);

/* ---- energy_tables.c, energy_notes.c ---- */

KYMO_WARN_UNUSED kymo_status kymo__energy_make_tables(struct kymo_energy_report *report);
KYMO_WARN_UNUSED kymo_status kymo__energy_make_notes(struct kymo_energy_report *report);
/* Into the table `repeats`, from `runs`. In energy_repeats.c. */
void kymo__energy_put_repeats(struct kymo_energy_report *report);
/* energy_itwinai.c */
KYMO_WARN_UNUSED kymo_status kymo__energy_make_itwinai(struct kymo_energy_report *report);
extern const char *const kymo__energy_kind_names[KYMO__N_ENERGY_KINDS];

#endif
