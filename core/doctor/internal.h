/*
 * doctor: what can be measured on this machine. One file per subject; each adds findings to one table.
 *
 *   doctor.c             order of subjects, the table        doctor_text.c    text and JSON of it
 *   doctor_clock.c       which clock, its resolution, the cost of a read and of a range
 *   doctor_machine.c, doctor_files.c, doctor_permissions.c, doctor_python.c, doctor_launcher.c, doctor_versions.c
 *   doctor_cuda.c, doctor_cupti.c, doctor_nvml.c, doctor_energy.c, doctor_sampling.c
 *   doctor_trial.c       a trial recording in a child process
 *   doctor_probe.c       child processes that may crash or hang
 *   doctor_parse.c       parses /proc, cgroups and the output of other programs
 *
 * Input: the machine. Output: a table of findings. May include every other folder; none includes this one. Does not
 * know the analyses: it never reads a user's recording.
 */
#ifndef MAREY_DOCTOR_INTERNAL_H
#define MAREY_DOCTOR_INTERNAL_H

#include <limits.h>

#include "base/internal.h"
#include <marey/doctor.h>

/* ---- doctor.c: findings ---- */

enum marey__state { MAREY__STATE_OK, MAREY__STATE_LIMITED, MAREY__STATE_MISSING, MAREY__STATE_OFF };

enum { MAREY__MAX_PYTHONS = 2, MAREY__MAX_SITES = 4, MAREY__DOCTOR_MAX_GPUS = 16 };

/* What one interpreter reported about itself and the package; "" for unknown. */
struct marey__python {
    char command[16]; /* as typed by the user */
    char path[PATH_MAX], version[32], prefix[PATH_MAX], marey[32], package[PATH_MAX],
        library[PATH_MAX], error[256];
    char trouble[128];                      /* why there is no answer */
    char sites[MAREY__MAX_SITES][PATH_MAX]; /* folders with NVIDIA's Python packages */
};

/* The result of the trial recording. */
struct marey__trial {
    bool is_fine;
    char error[512]; /* the error message if not */
    char clock[16], pool[PATH_MAX];
    double range_ns, off_ns;
    double write_bytes_per_s; /* 0: not measured */
};

struct marey__doctor {
    marey_table *table;
    const char *subject; /* of the rows being added */
    char dir[PATH_MAX];  /* where recordings would go; its existing part */
    bool measure;
    uint64_t deadline_ns; /* CLOCK_MONOTONIC: when to stop waiting for children */
    struct marey__trial trial;
    struct marey__python pythons[MAREY__MAX_PYTHONS];
    size_t n_pythons;
    struct marey__doctor_gpu *gpus; /* MAREY__DOCTOR_MAX_GPUS, shared with NVML's child; NULL: out of memory */
};

/* Adds a finding. `advice` may be NULL. */
void marey__doctor_add(struct marey__doctor *doctor, const char *thing, enum marey__state state,
                       const char *advice, const char *fmt, ...) MAREY_PRINTF(5, 6);
#define MAREY__STATE_OR_LIMITED(advice) ((advice) != NULL ? MAREY__STATE_LIMITED : MAREY__STATE_OK)
/* The same by state; the value is formatted as by printf. Without advice (NULL) marey__doctor_limited adds "ok". */
#define marey__doctor_ok(doctor, thing, ...)                                                       \
    marey__doctor_add(doctor, thing, MAREY__STATE_OK, NULL, __VA_ARGS__)
#define marey__doctor_off(doctor, thing, ...)                                                      \
    marey__doctor_add(doctor, thing, MAREY__STATE_OFF, NULL, __VA_ARGS__)
#define marey__doctor_missing(doctor, thing, advice, ...)                                          \
    marey__doctor_add(doctor, thing, MAREY__STATE_MISSING, advice, __VA_ARGS__)
#define marey__doctor_limited(doctor, thing, advice, ...)                                          \
    marey__doctor_add(doctor, thing, MAREY__STATE_OR_LIMITED(advice), advice, __VA_ARGS__)
/* Adds a number, "ok" or, with advice, "limited". NaN: unknown. */
void marey__doctor_amount(struct marey__doctor *doctor, const char *thing, const char *advice,
                          double amount, const char *unit);
/* The same with the value's text formatted as by printf. */
void marey__doctor_amount_as(struct marey__doctor *doctor, const char *thing, const char *advice,
                             double amount, const char *unit, const char *fmt, ...)
    MAREY_PRINTF(6, 7);

/* The meaning of an error number of NVIDIA's libraries. */
struct marey__known_error {
    uint64_t error;
    const char *what, *advice;
};
const struct marey__known_error *marey__known_error_find(const struct marey__known_error *known,
                                                         size_t n, uint64_t error);
#define MAREY__KNOWN_ERROR(known, error)                                                           \
    marey__known_error_find((known), MAREY__COUNT_OF(known), (error))

/* "1.20 GB", in `into`. */
const char *marey__doctor_bytes(double bytes, char into[32]);

/* ---- the subjects, in the order of the table ---- */
void marey__doctor_clock(struct marey__doctor *doctor);
void marey__doctor_machine(struct marey__doctor *doctor);
void marey__doctor_files(struct marey__doctor *doctor);
void marey__doctor_permissions(struct marey__doctor *doctor);
void marey__doctor_nvtx(struct marey__doctor *doctor);
void marey__doctor_cuda(struct marey__doctor *doctor);
void marey__doctor_energy(struct marey__doctor *doctor);
void marey__doctor_python(struct marey__doctor *doctor);
void marey__doctor_sampling(struct marey__doctor *doctor);
void marey__doctor_versions(struct marey__doctor *doctor);
void marey__doctor_build(struct marey__doctor *doctor);
void marey__doctor_launcher(struct marey__doctor *doctor);

/* Fills doctor->trial; and doctor->pythons, which cuda and versions use too. */
void marey__trial_run(struct marey__doctor *doctor);
void marey__pythons_query(struct marey__doctor *doctor);
/* Whether it is older than 3.10. False if the version is unknown. */
bool marey__python_is_too_old(const struct marey__python *python);

/* ---- doctor_probe.c: children that may crash or hang ---- */

enum marey__outcome {
    MAREY__PROBE_RUNNING,
    MAREY__PROBE_DONE,    /* exited with `code` */
    MAREY__PROBE_CRASHED, /* by signal `code` */
    MAREY__PROBE_HUNG,    /* killed by us */
    MAREY__PROBE_FAILED,  /* could not be started: `code` is an errno */
};

/* One child and its output. Zero it before starting. */
struct marey__probe {
    pid_t pid;
    int fd, code;
    enum marey__outcome outcome;
    size_t len;
    char text[8192]; /* NUL-terminated; truncated */
};

/* Runs in the child, with standard streams at /dev/null; output to `fd` reaches the parent. Returns the exit status. */
typedef int marey__probe_work(void *ctx, int fd);
void marey__probe_start(struct marey__probe *probe, marey__probe_work *work, void *ctx);
/* Waits until all `n` have ended, and kills the rest at the deadline. */
void marey__probe_wait(struct marey__probe *probes, size_t n, uint64_t deadline_ns);
/* The value of its output line "key=value", into an array; as a number. */
#define MAREY__PROBE_FIELD(probe, key, array)                                                      \
    marey__parse_field((probe)->text, (probe)->len, (key), (array), sizeof(array))
bool marey__probe_number(const struct marey__probe *probe, const char *key, uint64_t *out);
/* Why it did not answer, briefly ("it crashed (Segmentation fault)"); NULL if it exited with 0. */
const char *marey__probe_trouble(const struct marey__probe *probe, char *into, size_t size);
/* Runs the program `argv[0]` with its output to `fd`, without MAREY in its environment. Returns only on failure. */
int marey__probe_exec(char *const *argv, int fd);
/* Finds a program on the PATH; false if it is missing. */
bool marey__find_program(const char *name, char *path, size_t size);

/* ---- doctor_cuda.c: libraries, in child processes ---- */

enum marey__library {
    MAREY__LIBRARY_DRIVER,
    MAREY__LIBRARY_NVML,
    MAREY__LIBRARY_RUNTIME,
    MAREY__LIBRARY_CUPTI,
    MAREY__N_LIBRARIES
};

/* NULL if it is not found. */
void *marey__library_open(const struct marey__doctor *doctor, enum marey__library library);

/* ---- doctor_nvml.c, doctor_cupti.c: in child processes ---- */
void marey__nvml_ask(const struct marey__doctor *doctor, void *handle, int fd);
void marey__cupti_ask_version(const struct marey__doctor *doctor, void *handle, int fd);
/* The work of a probe, on a struct marey__doctor: whether a process started here could trace GPU activity. */
int marey__cupti_try(void *ctx, int fd);
/* Reports the result. */
void marey__cupti_report(struct marey__doctor *doctor, const struct marey__probe *probe);

/* ---- doctor_energy.c ---- */
/* RAPL counters below `folder`, /sys/class/powercap. */
void marey__rapl_report(struct marey__doctor *doctor, const char *folder);

/* ---- doctor_energy.c: how often a counter updates ---- */

enum { MAREY__UPDATE_GAPS = 64 };

/* Zero it before the first read. */
struct marey__update_rate {
    uint64_t value, changed_ns,
        cost_ns; /* the last value; when it changed; the cost of the cheapest read */
    unsigned n_reads, n_changes;
    uint64_t gaps_ns[MAREY__UPDATE_GAPS]; /* between changes */
};
void marey__update_rate_add(struct marey__update_rate *rate, uint64_t value, uint64_t now_ns,
                            uint64_t cost_ns);
/* The median interval between changes; 0 if fewer than two were seen. Sorts the intervals. */
uint64_t marey__update_rate_period_ns(struct marey__update_rate *rate);
/* Measurements of a counter. `refusal`: why it could not be read. */
struct marey__doctor_measured {
    bool is_readable;
    double period_ns; /* 0: unknown */
    double cost_ns;   /* of a read; 0: unknown */
    uint64_t n_changes;
    char refusal[96];
};
struct marey__doctor_measured marey__update_rate_finish(struct marey__update_rate *rate,
                                                        const char *refusal);

/* A GPU as written by NVML's child process, in memory shared with the parent. */
struct marey__doctor_gpu {
    bool is_there; /* set last: the rest is complete */
    char name[96], uuid[96];
    char lost[96];   /* why it does not respond, or "" */
    char no_gpm[96]; /* why it has no GPM, or "" */
    struct marey__doctor_measured energy, instant, average, usage, samples;
    bool has_sm_clock, has_memory_clock, has_temperature, has_throttle;
    bool has_mig, is_divided;
};

/* ---- doctor_parse.c: bytes from outside. `text` need not end in a NUL; outputs of `size` bytes are cut and do ---- */

/* The value of the first line "key: value" or "key=value", without surrounding blanks. */
bool marey__parse_field(const char *text, size_t len, const char *key, char *out, size_t size);
/* The hexadecimal field `key` of /proc/PID/status. */
bool marey__parse_hex_field(const char *text, size_t len, const char *key, uint64_t *out);

struct marey__mount {
    char point[PATH_MAX], type[64], options[256];
};
/* The entry of /proc/self/mounts that contains the absolute path `path`: the longest match, of equal ones the last. */
bool marey__parse_mount(const char *text, size_t len, const char *path, struct marey__mount *out);
/* Whether the comma-separated `options` contain `word`. */
bool marey__mount_has(const struct marey__mount *mount, const char *word);

/* The path of this process in /proc/self/cgroup: of the controller (version 1), or with "" of version 2. */
bool marey__parse_cgroup(const char *text, size_t len, const char *controller, char *out,
                         size_t size);
/* cpu.max: "150000 100000" is 1.5 CPU cores. False for "max" and invalid text. */
bool marey__parse_cpu_max(const char *text, size_t len, double *out);
/* The next library called `name` in the output of `ldconfig -p`, from `*at` on. */
bool marey__parse_ldconfig(const char *text, size_t len, size_t *at, const char *name, char *path,
                           size_t size);

#endif
