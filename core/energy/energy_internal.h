/*
 * energy: what GPUs and processors use, read beside the program by one thread per node.
 *
 *   energy.c          options, start and stop, forks
 *   energy_thread.c   the thread: waits for its turn, reads, ends
 *   energy_sources.c  what there is to measure
 *   energy_times.c    when what is read
 *   energy_pace.c     how seldom it has to be, by what a reading takes
 *   energy_order.c    values of several GPUs and of the past, in order of time
 *   energy_lock.c     whose turn it is among the processes of a recording on one machine
 *   energy_gpu.c      one GPU: what is read of it, and what is said where that fails
 *   energy_ring.c     its power, by the driver's sample buffer
 *   energy_util.c     how busy a GPU was: the driver's sample buffer, GPM
 *   energy_count.c    a counter of energy that may wrap, start again or stand still
 *   powercap.c        processors: the kernel's RAPL counters
 *   nvml.c            NVIDIA's library, opened at run time
 *   visible.c         which GPUs CUDA_VISIBLE_DEVICES means
 *
 * Everything that may be slow (opening NVML, each reading) happens in the thread. The program waits for it in two places,
 * both with an end: at stop for the last reading, at fork for a call that is under way.
 */
#ifndef KYMO_ENERGY_INTERNAL_H
#define KYMO_ENERGY_INTERNAL_H

#include <limits.h>
#include <pthread.h>

#include "base/base_internal.h"
#include "clock/clock_internal.h"
#include "switchboard/switchboard_internal.h"
#include <kymo/energy.h>

/* ---- nvml.c; the few types of NVIDIA's are declared here ---- */

enum {
    KYMO__NVML_UNINITIALIZED = 1,
    KYMO__NVML_NOT_SUPPORTED = 3,
    KYMO__NVML_NO_PERMISSION = 4,
    KYMO__NVML_NOT_FOUND = 6,
    KYMO__NVML_DRIVER_NOT_LOADED = 9,
    KYMO__NVML_TIMEOUT = 10,
    KYMO__NVML_FUNCTION_NOT_FOUND = 13,
    KYMO__NVML_GPU_IS_LOST = 15,
    KYMO__NVML_RESET_REQUIRED = 16,
    KYMO__NVML_ARGUMENT_VERSION = 25,
    KYMO__NVML_NO_DATA = 21,
    KYMO__NVML_NOT_READY = 27,
    KYMO__NVML_FIELD_POWER_INSTANT = 186,
    KYMO__NVML_POWER_SAMPLES = 0,
    KYMO__NVML_UTILIZATION_SAMPLES = 1,
    KYMO__NVML_CLOCK_SM = 1,
    KYMO__NVML_CLOCK_MEMORY = 2,
};

union kymo__nvml_value {
    double as_double;
    int as_int;
    unsigned as_unsigned;
    unsigned long as_long;
    unsigned long long as_long_long;
    long long as_signed;
    unsigned short as_short;
};
struct kymo__nvml_field {
    unsigned field, scope;
    long long stamp_us, latency_us;
    int type, status;
    union kymo__nvml_value value;
};
struct kymo__nvml_sample {
    unsigned long long stamp_us;
    union kymo__nvml_value value;
};
struct kymo__nvml_memory {
    unsigned long long total, free, used;
};
struct kymo__nvml_utilization {
    unsigned gpu, memory;
};
struct kymo__gpm_support {
    unsigned version, is_supported;
};
struct kymo__gpm_metrics {
    unsigned version, n;
    void *before, *after;
    struct {
        unsigned id;
        int status;
        double value;
        char *short_name, *long_name, *unit;
    } metrics[256]; /* as many as any version has: it may write to all of its own */
};

typedef void *kymo__nvml_device;

/* Functions that are NULL are not in this NVML. Each returns 0 or an error's number. */
struct kymo__nvml {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int error);
    int (*count)(unsigned *n);
    int (*by_index)(unsigned i, kymo__nvml_device *out);
    int (*uuid)(kymo__nvml_device device, char *out, unsigned size);
    int (*name)(kymo__nvml_device device, char *out, unsigned size);
    int (*power)(kymo__nvml_device device, unsigned *milliwatt);
    int (*energy)(kymo__nvml_device device, unsigned long long *millijoule);
    int (*fields)(kymo__nvml_device device, int n, struct kymo__nvml_field *fields);
    int (*samples)(kymo__nvml_device device, int type, unsigned long long last_us, int *value_type,
                   unsigned *n, struct kymo__nvml_sample *out);
    int (*utilization)(kymo__nvml_device device, struct kymo__nvml_utilization *out);
    int (*clock)(kymo__nvml_device device, int domain, unsigned *mhz);
    int (*temperature)(kymo__nvml_device device, int sensor, unsigned *celsius);
    int (*throttle)(kymo__nvml_device device, unsigned long long *reasons);
    int (*memory)(kymo__nvml_device device, struct kymo__nvml_memory *out);
    int (*mig_mode)(kymo__nvml_device device, unsigned *now, unsigned *later);
    int (*mig_count)(kymo__nvml_device device, unsigned *n);
    int (*mig_by_index)(kymo__nvml_device device, unsigned i, kymo__nvml_device *out);
    int (*gpm_support)(kymo__nvml_device device, struct kymo__gpm_support *out);
    int (*gpm_alloc)(void **sample);
    int (*gpm_free)(void *sample);
    int (*gpm_get)(kymo__nvml_device device, void *sample);
    int (*gpm_metrics)(struct kymo__gpm_metrics *metrics);
};

/* The library's file: $KYMO_NVML_LIBRARY, else the name that the loader knows. */
KYMO_PRIVATE_API const char *kymo__nvml_path(void);
/*
 * Open and initialize it; kymo__nvml_close() for each that went well. KYMO_EUNAVAILABLE with a sentence when there is no
 * driver, or one that does not answer, or is too old. The library stays loaded.
 */
KYMO_WARN_UNUSED kymo_status kymo__nvml_open(struct kymo__nvml *out);
void kymo__nvml_close(const struct kymo__nvml *nvml);
const char *kymo__nvml_words(const struct kymo__nvml *nvml, int error);
/* By the type that NVML gives with it. */
double kymo__nvml_number(int type, const union kymo__nvml_value *value);

/* ---- visible.c ---- */

enum { KYMO__UUID_MAX = 96, KYMO__MODEL_MAX = 96, KYMO__MAX_SLICES = 8, KYMO__MAX_GPUS = 256 };

/* A GPU of the machine, in NVML's order, which is that of PCI. */
struct kymo__node_gpu {
    char uuid[KYMO__UUID_MAX], model[KYMO__MODEL_MAX];
    size_t n_slices; /* of MIG */
    char slices[KYMO__MAX_SLICES][KYMO__UUID_MAX];
};
struct kymo__visible_device {
    uint32_t gpu;
    int32_t slice; /* -1: the whole GPU */
};
/*
 * Which devices `text`, a CUDA_VISIBLE_DEVICES (NULL: it is not set), means, in CUDA's order; how many. It is read as CUDA
 * reads it: numbers, or UUIDs, which may be shortened; the first that is none ends the list; one that comes twice makes it
 * empty. `out` has room for KYMO__MAX_GPUS.
 */
KYMO_PRIVATE_API size_t kymo__visible_choose(const char *text, const struct kymo__node_gpu *gpus,
                                             size_t n_gpus, struct kymo__visible_device *out);
/*
 * Whether numbers in `text` (or none at all) may mean other GPUs than NVML's: CUDA puts the fastest first unless `order` is
 * PCI_BUS_ID, which makes a difference where there are several models.
 */
KYMO_PRIVATE_API bool kymo__visible_is_doubtful(const char *text, const char *order,
                                                const struct kymo__node_gpu *gpus, size_t n_gpus);
/* UUIDs of devices with commas between. */
KYMO_PRIVATE_API void kymo__visible_put(struct kymo__buf *out, const struct kymo__node_gpu *gpus,
                                        const struct kymo__visible_device *devices, size_t n);
/* GPUs as the text `gpus` of a log has them, and back from such a text, which is not trusted; how many. */
KYMO_PRIVATE_API void kymo__node_gpus_put(struct kymo__buf *out, const struct kymo__node_gpu *gpus,
                                          size_t n);
KYMO_PRIVATE_API size_t kymo__node_gpus_parse(const char *text, struct kymo__node_gpu *out,
                                              size_t cap);

/* ---- energy_count.c ---- */

enum kymo__count_news {
    KYMO__COUNT_FINE,
    KYMO__COUNT_WRAPPED,
    KYMO__COUNT_RESET, /* it began again: what went before is taken from what was expected */
    KYMO__COUNT_STUCK, /* it does not move though it should; `joules` is not to be written */
};
struct kymo__count {
    double unit_j;     /* joules of one unit */
    uint64_t range;    /* where it may wrap; 0: it does not */
    uint64_t last;     /* as read */
    double joules;     /* never falls */
    double expected_j; /* since it last moved, by whatever else is known */
    double still_s;    /* since it last moved */
    double most_j;     /* that can have gone by since the last reading */
    bool has_last, is_stuck;
};
/* Take a reading, `expected_j`, `still_s` and `most_j` being up to date. */
enum kymo__count_news kymo__count_take(struct kymo__count *count, uint64_t value);

/* ---- energy_gpu.c, energy_ring.c and energy_util.c ---- */

enum kymo__quantity {
    KYMO__POWER,
    KYMO__ENERGY,
    KYMO__UTILIZATION,
    KYMO__SM_ACTIVE, /* these four come together */
    KYMO__SM_OCCUPANCY,
    KYMO__TENSOR_ACTIVE,
    KYMO__DRAM_ACTIVE,
    KYMO__SM_CLOCK,
    KYMO__MEMORY_CLOCK,
    KYMO__TEMPERATURE,
    KYMO__THROTTLE,
    KYMO__MEMORY_USED,
    KYMO__N_QUANTITIES,
};

/* The driver's samples of power. */
struct kymo__power_ring {
    bool is_used;                /* else power is read one by one */
    uint32_t n_looks;            /* for whether there is one */
    uint64_t period_us, span_us; /* between samples, and of all that it keeps */
    uint64_t step_us, due_us;    /* between those that are taken, and the next */
    unsigned long long seen_us;  /* stamp of the last that was looked at, and its tick */
    uint64_t seen_tick, n_taken;
};

struct kymo__energy_gpu {
    const struct kymo__nvml *nvml;
    kymo__nvml_device device;
    const struct kymo__node_gpu *node;
    uint32_t number; /* NVML's */
    bool is_lost;
    struct kymo__energy_value {
        kymo_id site;
        uint32_t n_failed; /* in a row */
        char missing[64];  /* why it is not read; "": it is */
    } values[KYMO__N_QUANTITIES];
    bool has_instant_power;
    struct kymo__count count;
    uint64_t counted_ns, n_counts; /* when the counter was read last (0 never), and how often */
    double watts; /* the last power, its time, and how often it has changed since the first change */
    uint64_t power_ns, first_change_ns, last_change_ns, n_changes, n_powers;
    struct kymo__power_ring ring;
    unsigned long long seen_us;   /* stamp of the last utilization that was taken */
    bool has_samples, has_looked; /* there is a buffer of them; it was looked at */
    uint64_t kept_us;             /* how much it had then, in time; 0 unknown */
    void *gpm[2];                 /* before, now */
    bool has_gpm_before;
};

/*
 * Into the recording, unless this thread has lost its say: a counter of now or of the past, which may wait until nothing
 * older can come; a sentence, which goes to the user as well.
 */
void kymo__energy_put(kymo_id site, double value);
void kymo__energy_put_at(uint64_t tick, kymo_id site, double value);
void kymo__energy_tell(const char *fmt, ...) KYMO_PRINTF(1, 2);
/* A counter of a device: what people read ("GPU 0 power (W)") and "<device>|<quantity>". */
kymo_id kymo__energy_site(const char *name, const char *device, const char *quantity);

void kymo__energy_gpu_init(struct kymo__energy_gpu *gpu, const struct kymo__nvml *nvml,
                           kymo__nvml_device device, const struct kymo__node_gpu *node,
                           uint32_t number);
void kymo__energy_gpu_fini(struct kymo__energy_gpu *gpu);
/* A single reading of power. */
void kymo__energy_gpu_power(struct kymo__energy_gpu *gpu, uint64_t now_ns);
/* See whether the ring can be used for `hz` values a second (0: as many as are sensible); later again if it was empty. */
void kymo__energy_ring_open(struct kymo__energy_gpu *gpu, uint32_t hz);
/* Take the samples since the last look. Where the ring no longer works, it is no longer used, and a single one is read. */
void kymo__energy_ring_read(struct kymo__energy_gpu *gpu);
/* How often to do so. */
uint64_t kymo__energy_ring_period_ns(const struct kymo__power_ring *ring);
void kymo__energy_gpu_count(struct kymo__energy_gpu *gpu, uint64_t now_ns);
/* All that changes slowly. */
void kymo__energy_gpu_state(struct kymo__energy_gpu *gpu);
void kymo__energy_gpu_utilization(struct kymo__energy_gpu *gpu);
void kymo__energy_gpu_gpm(struct kymo__energy_gpu *gpu);
/* How often each is read. */
struct kymo__energy_rates {
    uint64_t power_ns, count_ns, utilization_ns, gpm_ns, state_ns;
};
void kymo__energy_gpu_describe(const struct kymo__energy_gpu *gpu,
                               const struct kymo__energy_rates *rates, struct kymo__buf *out);
/* Of energy_gpu.c for the two others: write a value, or take note of why there is none. */
void kymo__energy_gpu_take_power(struct kymo__energy_gpu *gpu, double watts, uint64_t tick,
                                 uint64_t ns);
void kymo__energy_gpu_put(struct kymo__energy_gpu *gpu, enum kymo__quantity what, double value);
void kymo__energy_gpu_fault(struct kymo__energy_gpu *gpu, enum kymo__quantity what, int error);
bool kymo__energy_gpu_reads(const struct kymo__energy_gpu *gpu, enum kymo__quantity what);

/* ---- powercap.c ---- */

enum { KYMO__MAX_ZONES = 32 };
struct kymo__zone {
    char device[48]; /* "package-0", "package-0-dram" */
    char path[PATH_MAX];
    kymo_id energy_site, power_site;
    struct kymo__count count;
    uint64_t read_ns;
    bool is_missing;
    char why[96];
};
/* Find the zones below $KYMO_POWERCAP_ROOT, else /sys/class/powercap; how many. One that may not be read is told. */
size_t kymo__zones_open(struct kymo__zone *zones);
void kymo__zone_read(struct kymo__zone *zone, uint64_t now_ns);
void kymo__zone_describe(const struct kymo__zone *zone, struct kymo__buf *out);
/* The device of a zone by the names of its folder ("intel-rapl:0:1") and in its file `name`; false: none of ours. */
KYMO_PRIVATE_API bool kymo__zone_device(const char *folder, const char *name,
                                        const char *parent_name, char *out, size_t size);
/* A number alone in a file, maybe with a newline. */
KYMO_PRIVATE_API bool kymo__zone_number(const char *text, size_t len, uint64_t *out);

/* ---- energy_lock.c ---- */

struct kymo__energy_lock {
    struct kymo__held_file file;
    char path[PATH_MAX];
};
enum kymo__energy_turn { KYMO__TURN_OURS, KYMO__TURN_LATER, KYMO__TURN_NEVER };
/* Ask whether it is our turn for the recording in `folder`, in storage with fd -1 at first; never waits. */
enum kymo__energy_turn kymo__energy_lock_try(struct kymo__energy_lock *lock, const char *folder);
/* Give the turn back, and take the file away. */
void kymo__energy_lock_release(struct kymo__energy_lock *lock);
/* The next CUDA_VISIBLE_DEVICES of those who stand in line, from `*at` on; false when there are no more. */
bool kymo__energy_lock_next(const struct kymo__energy_lock *lock, size_t *at, char *out,
                            size_t size, bool *is_set);

/* ---- energy.c ---- */

/* NVML is loaded: the thread must end before it does. Any thread, any number of times. */
void kymo__energy_stop_at_exit(void);

/* ---- energy_thread.c ---- */

struct kymo__energy_session;
/*
 * Measure into the recording that is open, or, with a role in the settings, into one that the thread opens. `local_rank` (-1:
 * unknown) decides where files cannot be locked. NULL: it did not start, which is told.
 */
struct kymo__energy_session *kymo__energy_session_start(const struct kymo__settings *settings,
                                                        int local_rank);
/* End it, with a last reading; waits a second at most. Frees it. */
void kymo__energy_session_stop(struct kymo__energy_session *session);
/* Somebody wants the counters read now: an epoch begins or ends. Any thread, also without a session. */
void kymo__energy_edge(void);
/* Keep the thread out of foreign code for a while, if that comes about soon; false: it is still in there. */
bool kymo__energy_session_pause(struct kymo__energy_session *session);
void kymo__energy_session_resume(struct kymo__energy_session *session);
/* In a forked child: give up what it inherited. */
void kymo__energy_session_forget(struct kymo__energy_session *session);

#endif
