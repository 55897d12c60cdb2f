/*
 * doctor: what can be measured here. One file for each subject; all write findings into one table.
 *
 *   doctor.c           the order of subjects, the table
 *   doctor_clock.c     which clock, how fine, what a read and a range cost
 *   doctor_machine.c   processors, memory, kernel, hypervisor
 *   doctor_files.c     a recording on trial, the pool, free space, /dev/shm
 *   doctor_permissions.c, doctor_nvtx.c, doctor_python.c, doctor_versions.c, doctor_launcher.c
 *   doctor_cuda.c      libraries of CUDA, the devices that programs see, whether GPU work can be traced
 *   doctor_energy.c    what counts energy and utilization, and how often: GPUs, processors
 *   doctor_library.c   libraries of CUDA, opened in child processes
 *   doctor_nvml.c, doctor_cupti.c   what is asked of them there
 *   doctor_pulse.c     how often a counter gets a new value
 *   doctor_trial.c     the recording on trial itself, in a child process
 *   doctor_probe.c     child processes that may crash or hang
 *   doctor_parse.c     /proc, cgroups, answers of other programs: bytes that are not ours
 *   doctor_text.c      findings for people and for programs
 *   python_boot.c      the folder by which `kymo run` enters Python
 */
#ifndef KYMO_DOCTOR_INTERNAL_H
#define KYMO_DOCTOR_INTERNAL_H

#include <limits.h>
#include <sys/types.h>

#include "base/base_internal.h"
#include <kymo/doctor.h>

/* ---- doctor.c: findings ---- */

enum kymo__state { KYMO__STATE_OK, KYMO__STATE_LIMITED, KYMO__STATE_MISSING, KYMO__STATE_OFF };

enum { KYMO__MAX_PYTHONS = 2, KYMO__MAX_SITES = 4, KYMO__MAX_GPUS = 16 };

/* What one interpreter said of itself and of the package; "" for what it did not say. */
struct kymo__python {
    char command[16]; /* as one types it */
    char path[PATH_MAX], version[32], prefix[PATH_MAX], kymo[32], package[PATH_MAX],
        library[PATH_MAX], error[256];
    char trouble[128];                     /* why it said nothing */
    char sites[KYMO__MAX_SITES][PATH_MAX]; /* folders with NVIDIA's Python packages */
};

/* What the recording on trial showed. */
struct kymo__trial {
    bool is_fine;
    char error[512]; /* the sentence when it is not */
    char clock[16], pool[PATH_MAX], note[512];
    double range_ns, off_ns;
    double write_bytes_per_s; /* 0: not measured */
};

struct kymo__doctor {
    kymo_table *table;
    const char *subject; /* of the rows that are put now */
    char dir[PATH_MAX];  /* where recordings would go, as far as it exists */
    bool measure;
    uint64_t deadline_ns; /* CLOCK_MONOTONIC: when children are not waited for any longer */
    struct kymo__trial trial;
    struct kymo__python pythons[KYMO__MAX_PYTHONS];
    size_t n_pythons;
    struct kymo__probe *nvml; /* NVML's answer, while cuda and energy are looked at; NULL: no memory for it */
};

/* Put a finding. `advice` may be NULL. */
void kymo__doctor_tell(struct kymo__doctor *doctor, const char *thing, enum kymo__state state,
                       const char *advice, const char *fmt, ...) KYMO_PRINTF(5, 6);
/* Put a number; its value is written as the unit wants it. A NaN is one that is not known. */
void kymo__doctor_amount(struct kymo__doctor *doctor, const char *thing, enum kymo__state state,
                         const char *advice, double amount, const char *unit);
/* Put a number with words of one's own. */
void kymo__doctor_amount_as(struct kymo__doctor *doctor, const char *thing, enum kymo__state state,
                            const char *advice, double amount, const char *unit, const char *fmt,
                            ...) KYMO_PRINTF(7, 8);

/* "1.20 GB", in `into`. */
const char *kymo__doctor_bytes(double bytes, char into[32]);

/* ---- the subjects, in the order of the table ---- */
void kymo__doctor_clock(struct kymo__doctor *doctor);
void kymo__doctor_machine(struct kymo__doctor *doctor);
void kymo__doctor_files(struct kymo__doctor *doctor);
void kymo__doctor_permissions(struct kymo__doctor *doctor);
void kymo__doctor_nvtx(struct kymo__doctor *doctor);
void kymo__doctor_cuda(struct kymo__doctor *doctor);
void kymo__doctor_energy(struct kymo__doctor *doctor);
void kymo__doctor_python(struct kymo__doctor *doctor);
void kymo__doctor_sampling(struct kymo__doctor *doctor);
void kymo__doctor_versions(struct kymo__doctor *doctor);
void kymo__doctor_build(struct kymo__doctor *doctor);
void kymo__doctor_launcher(struct kymo__doctor *doctor);

/* Fill doctor->trial; and doctor->pythons, which cuda and versions look at too. */
void kymo__trial_run(struct kymo__doctor *doctor);
void kymo__pythons_ask(struct kymo__doctor *doctor);

/* ---- doctor_probe.c: children that may crash or hang ---- */

enum kymo__outcome {
    KYMO__PROBE_RUNNING,
    KYMO__PROBE_DONE,    /* ended by itself, with `code` */
    KYMO__PROBE_CRASHED, /* by the signal `code` */
    KYMO__PROBE_HUNG,    /* was ended by us */
    KYMO__PROBE_FAILED,  /* could not be started: `code` is an errno */
};

/* One child and what it wrote. Zero it before it is started. */
struct kymo__probe {
    pid_t pid;
    int fd, code;
    enum kymo__outcome outcome;
    size_t len;
    char text[8192]; /* NUL-terminated; what is longer is dropped */
};

/*
 * In the child, which has no standard streams but /dev/null; what it writes to `fd` reaches the parent. Its return value,
 * 0 to 255, is its exit status.
 */
typedef int kymo__probe_work(void *ctx, int fd);
void kymo__probe_start(struct kymo__probe *probe, kymo__probe_work *work, void *ctx);
/* Wait until all `n` have ended or the deadline has passed; then none is left. */
void kymo__probe_wait(struct kymo__probe *probes, size_t n, uint64_t deadline_ns);
/* Why there is no answer, in a few words ("it crashed (Segmentation fault)"); NULL for a child that ended with 0. */
const char *kymo__probe_trouble(const struct kymo__probe *probe, char *into, size_t size);
/* Run the program `argv[0]` with its output to `fd`, without KYMO in its environment. Returns only when it cannot. */
int kymo__probe_exec(char *const *argv, int fd);
/* Find a program by PATH; false when it is not there. */
bool kymo__find_program(const char *name, char *path, size_t size);

/* ---- doctor_library.c: in child processes ---- */

enum kymo__library {
    KYMO__LIBRARY_DRIVER,
    KYMO__LIBRARY_NVML,
    KYMO__LIBRARY_RUNTIME,
    KYMO__LIBRARY_CUPTI,
    KYMO__N_LIBRARIES
};

/* Ask an open library; the answers are lines "key=value" to `fd`. */
typedef void kymo__library_ask(const struct kymo__doctor *doctor, void *handle, int fd);

struct kymo__look {
    const struct kymo__doctor *doctor;
    enum kymo__library library;
    kymo__library_ask *ask;
};
/* A probe's work, on a struct kymo__look: "path", what `ask` says, "asked=1"; or "error" when it cannot be opened. */
int kymo__library_look(void *ctx, int fd);
/* NULL when it is nowhere. */
void *kymo__library_open(const struct kymo__doctor *doctor, enum kymo__library library);
/* The first of the names that it may have. */
const char *kymo__library_name(enum kymo__library library);

/* ---- doctor_nvml.c, doctor_cupti.c: in child processes ---- */
void kymo__nvml_ask(const struct kymo__doctor *doctor, void *handle, int fd);
void kymo__cupti_ask_version(const struct kymo__doctor *doctor, void *handle, int fd);
/* A probe's work, on a struct kymo__doctor: whether GPU work could be traced in a process that is started here. */
int kymo__cupti_try(void *ctx, int fd);
/* What the trial means. */
void kymo__cupti_tell(struct kymo__doctor *doctor, const struct kymo__probe *probe);

/* ---- doctor_energy.c ---- */
/* Counters of processors below `folder`, /sys/class/powercap. */
void kymo__rapl_tell(struct kymo__doctor *doctor, const char *folder);

/* ---- doctor_pulse.c: how often a counter gets a new value ---- */

enum { KYMO__PULSE_GAPS = 64 };

/* Zero it before the first read. */
struct kymo__pulse {
    uint64_t value, changed_ns, cost_ns; /* the last one; when it came; what the cheapest read took */
    unsigned n_reads, n_changes;
    uint64_t gaps_ns[KYMO__PULSE_GAPS]; /* between changes */
};
void kymo__pulse_put(struct kymo__pulse *pulse, uint64_t value, uint64_t now_ns, uint64_t cost_ns);
/* The usual distance of two changes; 0 when fewer than two were seen. Sorts the distances. */
uint64_t kymo__pulse_period_ns(struct kymo__pulse *pulse);
/* Write the line "<key><device>=..." that kymo__parse_measured reads. `refusal` is why it was never read. */
void kymo__pulse_write(struct kymo__pulse *pulse, const char *key, unsigned device,
                       const char *refusal, int fd);

/* What a child measured. */
struct kymo__measured {
    bool is_readable;
    double period_ns; /* 0: not known */
    double cost_ns;   /* of a read; 0: not known */
    uint64_t n_changes;
    char refusal[96];
};
/* False, with `*out` zeroed, when there is no such line or it makes no sense. */
bool kymo__parse_measured(const char *text, size_t len, const char *key, struct kymo__measured *out);

/* ---- doctor_parse.c: bytes from outside. `text` need not end in a NUL; outputs of `size` bytes are cut and do ---- */

/* The next line: its start, with `*len` without the newline; NULL when there is none. `*at` goes on. */
const char *kymo__next_line(const char *text, size_t text_len, size_t *at, size_t *len);
/* The value of the first line "key: value" or "key=value", blanks around it removed. */
bool kymo__parse_field(const char *text, size_t len, const char *key, char *out, size_t size);
/* The hexadecimal field `key` of /proc/PID/status. */
bool kymo__parse_hex_field(const char *text, size_t len, const char *key, uint64_t *out);

struct kymo__mount {
    char point[PATH_MAX], type[64], options[256];
};
/* The entry of /proc/self/mounts that holds the absolute path `path`: the longest fit, and of equals the last. */
bool kymo__parse_mount(const char *text, size_t len, const char *path, struct kymo__mount *out);
/* Whether the comma separated `options` have the word `word`. */
bool kymo__mount_has(const struct kymo__mount *mount, const char *word);

/* The path of this process in /proc/self/cgroup: of the controller (version 1), or with "" of version 2. */
bool kymo__parse_cgroup(const char *text, size_t len, const char *controller, char *out, size_t size);
/* cpu.max, "150000 100000": processors, 1.5. False for "max" and for what makes no sense. */
bool kymo__parse_cpu_max(const char *text, size_t len, double *out);
/* The next library called `name` in the output of `ldconfig -p`, from `*at` on. */
bool kymo__parse_ldconfig(const char *text, size_t len, size_t *at, const char *name, char *path,
                          size_t size);

#endif
