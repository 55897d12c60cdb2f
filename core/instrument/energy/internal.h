/*
 * energy: power, energy and utilization of GPUs and CPUs, read by one thread per machine.
 *
 *   energy.c          options, start and stop, forks; the thread
 *   energy_times.c    the available sources, and when each is read
 *   energy_lock.c     which process of a machine measures for a recording
 *   energy_gpu.c      one GPU: power, energy, clocks        energy_samples.c  the driver's samples of power and load
 *   energy_count.c    an energy counter that may wrap, restart or stop moving
 *   powercap.c        the kernel's RAPL counters            nvml.c            NVIDIA's library, opened at run time
 *   visible_devices.c which GPUs CUDA_VISIBLE_DEVICES names
 *
 * Input: counters of the machine. Output: counter records on a separate lane. Does not know ranges, epochs or joules
 * per step: analyze/energy joins them. The thread does everything that may be slow; the program waits for it only at
 * stop, for the last reading, and at fork, for a call in progress, both with a time limit.
 */
#ifndef MAREY_INSTRUMENT_ENERGY_INTERNAL_H
#define MAREY_INSTRUMENT_ENERGY_INTERNAL_H

#include <limits.h>
#include <pthread.h>

#include "base/internal.h"
#include "record/internal.h"
#include "switchboard/internal.h"
#include <marey/energy.h>

/* ---- nvml.c; the few NVIDIA types are declared here ---- */

enum {
    MAREY__NVML_UNINITIALIZED = 1,
    MAREY__NVML_NOT_SUPPORTED = 3,
    MAREY__NVML_NO_PERMISSION = 4,
    MAREY__NVML_NOT_FOUND = 6,
    MAREY__NVML_DRIVER_NOT_LOADED = 9,
    MAREY__NVML_TIMEOUT = 10,
    MAREY__NVML_FUNCTION_NOT_FOUND = 13,
    MAREY__NVML_GPU_IS_LOST = 15,
    MAREY__NVML_RESET_REQUIRED = 16,
    MAREY__NVML_ARGUMENT_VERSION = 25,
    MAREY__NVML_NO_DATA = 21,
    MAREY__NVML_NOT_READY = 27,
    MAREY__NVML_FIELD_POWER_AVERAGE = 185,
    MAREY__NVML_FIELD_POWER_INSTANT = 186,
    MAREY__NVML_POWER_SAMPLES = 0,
    MAREY__NVML_UTILIZATION_SAMPLES = 1,
    MAREY__NVML_CLOCK_SM = 1,
    MAREY__NVML_CLOCK_MEMORY = 2,
};

union marey__nvml_value {
    double as_double;
    int as_int;
    unsigned as_unsigned;
    unsigned long as_long;
    unsigned long long as_long_long;
    long long as_signed;
    unsigned short as_short;
};
struct marey__nvml_field {
    unsigned field, scope;
    long long stamp_us, latency_us;
    int type, status;
    union marey__nvml_value value;
};
struct marey__nvml_sample {
    unsigned long long stamp_us;
    union marey__nvml_value value;
};
struct marey__nvml_memory {
    unsigned long long total, free, used;
};
struct marey__nvml_utilization {
    unsigned gpu, memory;
};
struct marey__gpm_support {
    unsigned version, is_supported;
};
struct marey__gpm_metrics {
    unsigned version, n;
    void *before, *after;
    struct {
        unsigned id;
        int status;
        double value;
        char *short_name, *long_name, *unit;
    } metrics[256]; /* NVML may write all metrics of any version */
};

typedef void *marey__nvml_device;

/*
 * X(needs, field, symbol, result, arguments) of each function. Those that are not REQUIRED are NULL if this NVML lacks
 * them. Those that return an int return 0 or an error number.
 */
#define MAREY__NVML_FUNCTIONS(X)                                                                   \
    X(REQUIRED, init, "nvmlInit_v2", int, (void))                                                  \
    X(REQUIRED, shutdown, "nvmlShutdown", int, (void))                                             \
    X(REQUIRED, count, "nvmlDeviceGetCount_v2", int, (unsigned *n))                                \
    X(REQUIRED, by_index, "nvmlDeviceGetHandleByIndex_v2", int,                                    \
      (unsigned i, marey__nvml_device *out))                                                       \
    X(REQUIRED, uuid, "nvmlDeviceGetUUID", int,                                                    \
      (marey__nvml_device device, char *out, unsigned size))                                       \
    X(OPTIONAL, driver, "nvmlSystemGetDriverVersion", int, (char *out, unsigned size))             \
    X(OPTIONAL, error_string, "nvmlErrorString", const char *, (int error))                        \
    X(OPTIONAL, name, "nvmlDeviceGetName", int,                                                    \
      (marey__nvml_device device, char *out, unsigned size))                                       \
    X(OPTIONAL, power, "nvmlDeviceGetPowerUsage", int,                                             \
      (marey__nvml_device device, unsigned *milliwatt))                                            \
    X(OPTIONAL, energy, "nvmlDeviceGetTotalEnergyConsumption", int,                                \
      (marey__nvml_device device, unsigned long long *millijoule))                                 \
    X(OPTIONAL, fields, "nvmlDeviceGetFieldValues", int,                                           \
      (marey__nvml_device device, int n, struct marey__nvml_field *fields))                        \
    X(OPTIONAL, samples, "nvmlDeviceGetSamples", int,                                              \
      (marey__nvml_device device, int type, unsigned long long last_us, int *value_type,           \
       unsigned *n, struct marey__nvml_sample *out))                                               \
    X(OPTIONAL, utilization, "nvmlDeviceGetUtilizationRates", int,                                 \
      (marey__nvml_device device, struct marey__nvml_utilization * out))                           \
    X(OPTIONAL, clock, "nvmlDeviceGetClockInfo", int,                                              \
      (marey__nvml_device device, int domain, unsigned *mhz))                                      \
    X(OPTIONAL, temperature, "nvmlDeviceGetTemperature", int,                                      \
      (marey__nvml_device device, int sensor, unsigned *celsius))                                  \
    X(OPTIONAL, throttle, "nvmlDeviceGetCurrentClocksEventReasons", int,                           \
      (marey__nvml_device device, unsigned long long *reasons))                                    \
    X(OPTIONAL, memory, "nvmlDeviceGetMemoryInfo", int,                                            \
      (marey__nvml_device device, struct marey__nvml_memory * out))                                \
    X(OPTIONAL, mig_mode, "nvmlDeviceGetMigMode", int,                                             \
      (marey__nvml_device device, unsigned *now, unsigned *later))                                 \
    X(OPTIONAL, mig_count, "nvmlDeviceGetMaxMigDeviceCount", int,                                  \
      (marey__nvml_device device, unsigned *n))                                                    \
    X(OPTIONAL, mig_by_index, "nvmlDeviceGetMigDeviceHandleByIndex", int,                          \
      (marey__nvml_device device, unsigned i, marey__nvml_device *out))                            \
    X(OPTIONAL, gpm_support, "nvmlGpmQueryDeviceSupport", int,                                     \
      (marey__nvml_device device, struct marey__gpm_support * out))                                \
    X(OPTIONAL, gpm_alloc, "nvmlGpmSampleAlloc", int, (void **sample))                             \
    X(OPTIONAL, gpm_free, "nvmlGpmSampleFree", int, (void *sample))                                \
    X(OPTIONAL, gpm_get, "nvmlGpmSampleGet", int, (marey__nvml_device device, void *sample))       \
    X(OPTIONAL, gpm_metrics, "nvmlGpmMetricsGet", int, (struct marey__gpm_metrics * metrics))

struct marey__nvml {
#define MAREY__NVML_FIELD(needs, field, symbol, result, arguments) result(*field) arguments;
    MAREY__NVML_FUNCTIONS(MAREY__NVML_FIELD)
#undef MAREY__NVML_FIELD
};

/* The library's file: $MAREY_NVML_LIBRARY, else the default name for the loader. */
MAREY_PRIVATE_API const char *marey__nvml_path(void);
/* Looks up the functions of an open library. Returns the symbol of a missing required one, else NULL. */
MAREY_PRIVATE_API const char *marey__nvml_find_functions(void *library, struct marey__nvml *out);
/*
 * Opens and initializes it; each success needs a call of shutdown(). MAREY_EUNAVAILABLE with a message if the driver is
 * missing, does not respond, or is too old. The library stays loaded.
 */
MAREY_WARN_UNUSED marey_status marey__nvml_open(struct marey__nvml *out);
MAREY_PRIVATE_API const char *marey__nvml_words(const struct marey__nvml *nvml, int error);
/* `type` is NVML's type of the value. */
double marey__nvml_number(int type, const union marey__nvml_value *value);

/* ---- visible_devices.c ---- */

enum { MAREY__UUID_MAX = 96, MAREY__MODEL_MAX = 96, MAREY__MAX_SLICES = 8, MAREY__MAX_GPUS = 256 };

/* A GPU of the machine; NVML orders them by PCI address. */
struct marey__node_gpu {
    char uuid[MAREY__UUID_MAX], model[MAREY__MODEL_MAX];
    size_t n_slices; /* MIG slices */
    char slices[MAREY__MAX_SLICES][MAREY__UUID_MAX];
};
struct marey__visible_device {
    uint32_t gpu;
    int32_t slice; /* -1: the whole GPU */
};
/*
 * Which devices `text`, a CUDA_VISIBLE_DEVICES (NULL: not set), selects, in CUDA's order. Returns how many. Parsed as
 * CUDA does: numbers, or UUIDs, which may be abbreviated; an invalid entry ends the list; a duplicate makes it empty.
 * `out` has room for MAREY__MAX_GPUS.
 */
MAREY_PRIVATE_API size_t marey__visible_choose(const char *text, const struct marey__node_gpu *gpus,
                                               size_t n_gpus, struct marey__visible_device *out);
/*
 * Whether numbers (or no `text`) may mean other GPUs than NVML's: CUDA puts the fastest first unless `order` is PCI_BUS_ID.
 */
MAREY_PRIVATE_API bool marey__visible_is_ambiguous(const char *text, const char *order,
                                                   const struct marey__node_gpu *gpus, size_t n_gpus);
/* Appends comma-separated UUIDs of devices. */
MAREY_PRIVATE_API void marey__visible_put(struct marey__buf *out, const struct marey__node_gpu *gpus,
                                          const struct marey__visible_device *devices, size_t n);
/* Writes GPUs in the format of the log's text `gpus`, and parses that untrusted text. Returns how many. */
MAREY_PRIVATE_API void marey__node_gpus_put(struct marey__buf *out,
                                            const struct marey__node_gpu *gpus, size_t n);
MAREY_PRIVATE_API size_t marey__node_gpus_parse(const char *text, struct marey__node_gpu *out,
                                                size_t cap);

/* ---- energy_count.c ---- */

enum marey__counter_event {
    MAREY__COUNT_FINE,
    MAREY__COUNT_WRAPPED,
    MAREY__COUNT_RESET, /* it restarted: the energy before is taken from the expectation */
    MAREY__COUNT_STUCK, /* it does not move though it should; do not write `joules` */
};
struct marey__count {
    double unit_j;     /* joules per unit */
    uint64_t range;    /* where it may wrap; 0: never */
    uint64_t last;     /* as read */
    double joules;     /* never decreases */
    double expected_j; /* since it last moved, from other sources */
    double still_s;    /* since it last moved */
    double most_j;     /* the maximum possible since the last reading */
    uint64_t read_ns;  /* time of the last reading; 0: never */
    bool has_last, is_stuck;
};
/* Begins a reading at `now_ns`. Returns the seconds since the last one, in which at least `watts` are expected. */
double marey__count_begin(struct marey__count *count, uint64_t now_ns, double watts);
/* Adds a reading; `expected_j`, `still_s` and `most_j` must be up to date. */
enum marey__counter_event marey__count_take(struct marey__count *count, uint64_t value);

/* ---- energy_gpu.c and energy_samples.c ---- */

enum marey__energy_read {
    MAREY__READ_POWER,
    MAREY__READ_ENERGY,
    MAREY__READ_UTILIZATION,
    MAREY__READ_SM_ACTIVE, /* these four are read together */
    MAREY__READ_SM_OCCUPANCY,
    MAREY__READ_TENSOR_ACTIVE,
    MAREY__READ_DRAM_ACTIVE,
    MAREY__READ_SM_CLOCK,
    MAREY__READ_MEMORY_CLOCK,
    MAREY__READ_TEMPERATURE,
    MAREY__READ_THROTTLE,
    MAREY__READ_MEMORY_USED,
    MAREY__N_READ,
};

/* The driver's buffer of power samples. */
struct marey__power_ring {
    bool is_used;                /* otherwise power is read one by one */
    uint32_t n_looks;            /* attempts to detect it */
    uint64_t period_us, span_us; /* between samples, and covered by the buffer */
    uint64_t step_us, due_us;    /* between samples that are taken, and the next one */
    unsigned long long seen_us;  /* timestamp of the last sample seen, and its tick */
    uint64_t seen_tick, n_taken;
};

struct marey__energy_gpu {
    const struct marey__nvml *nvml;
    marey__nvml_device device;
    const struct marey__node_gpu *node;
    uint32_t number;                  /* NVML's */
    char label[MAREY__UUID_MAX + 24]; /* "GPU 0 (UUID)", for messages */
    bool is_lost;
    struct marey__energy_value {
        marey_id site;
        uint32_t n_failed; /* in a row */
        char missing[64];  /* why it is not read, or "" */
    } values[MAREY__N_READ];
    bool has_instant_power;
    struct marey__count count;
    uint64_t n_counts; /* readings of the counter */
    double watts;      /* the last power, its time, and its changes since the first one */
    uint64_t power_ns, first_change_ns, last_change_ns, n_changes, n_powers;
    struct marey__power_ring ring;
    unsigned long long seen_us;   /* timestamp of the last utilization sample taken */
    bool has_samples, has_looked; /* a buffer exists; it was read */
    uint64_t kept_us;             /* the time span it had then; 0: unknown */
    void *gpm[2];                 /* previous and current */
    bool has_gpm_before;
};

/*
 * Writes into the recording, unless the thread was abandoned: a counter value of now; one of the past, which may wait
 * until nothing older can come; a message, also shown to the user.
 */
void marey__energy_put(marey_id site, double value);
void marey__energy_put_at(uint64_t tick, marey_id site, double value);
void marey__energy_warn(const char *fmt, ...) MAREY_PRINTF(1, 2);
/* The site of a device's counter: display name ("GPU 0 power (W)") and "<device>|<quantity>". */
marey_id marey__energy_site(const char *name, const char *device, const char *quantity);

void marey__energy_gpu_init(struct marey__energy_gpu *gpu, const struct marey__nvml *nvml,
                            marey__nvml_device device, const struct marey__node_gpu *node,
                            uint32_t number);
void marey__energy_gpu_fini(struct marey__energy_gpu *gpu);
/* A single reading of power. */
void marey__energy_gpu_power(struct marey__energy_gpu *gpu, uint64_t now_ns);
/* Detects whether the buffer can be used for `hz` values a second (0: a sensible number); retries an empty one later. */
void marey__energy_ring_open(struct marey__energy_gpu *gpu, uint32_t hz);
/* Takes the samples since the last call. If the buffer stopped working, disables it and reads a single value. */
void marey__energy_ring_read(struct marey__energy_gpu *gpu);
/* The period of these calls. */
uint64_t marey__energy_ring_period_ns(const struct marey__power_ring *ring);
void marey__energy_gpu_count(struct marey__energy_gpu *gpu, uint64_t now_ns);
/* Reads everything that changes slowly. */
void marey__energy_gpu_state(struct marey__energy_gpu *gpu);
void marey__energy_gpu_utilization(struct marey__energy_gpu *gpu);
void marey__energy_gpu_gpm(struct marey__energy_gpu *gpu);
/* `period_ns`, indexed by enum marey__due_kind: how often each is read. */
void marey__energy_gpu_describe(const struct marey__energy_gpu *gpu, const uint64_t *period_ns,
                                struct marey__buf *out);
/* From energy_gpu.c for energy_samples.c: writes a value, or records why it is missing. */
void marey__energy_gpu_take_power(struct marey__energy_gpu *gpu, double watts, uint64_t tick,
                                  uint64_t ns);
void marey__energy_gpu_put(struct marey__energy_gpu *gpu, enum marey__energy_read what, double value);
void marey__energy_gpu_fault(struct marey__energy_gpu *gpu, enum marey__energy_read what, int error);
bool marey__energy_gpu_reads(const struct marey__energy_gpu *gpu, enum marey__energy_read what);

/* ---- powercap.c ---- */

enum { MAREY__MAX_ZONES = 32 };
struct marey__zone {
    char device[48]; /* "package-0", "package-0-dram" */
    char path[PATH_MAX];
    marey_id energy_site, power_site;
    struct marey__count count;
    bool is_missing;
    char why[96];
};
/* Finds the zones below $MAREY_POWERCAP_ROOT, else /sys/class/powercap. Returns how many. Reports an unreadable zone. */
size_t marey__zones_open(struct marey__zone *zones);
void marey__zone_read(struct marey__zone *zone, uint64_t now_ns);
void marey__zone_describe(const struct marey__zone *zone, struct marey__buf *out);
/* The device of a zone, from its folder's name ("intel-rapl:0:1") and its file `name`; false if we do not read it. */
MAREY_PRIVATE_API bool marey__zone_device(const char *folder, const char *name,
                                          const char *parent_name, char *out, size_t size);
/* Parses a file that contains only a number, maybe with a newline. */
MAREY_PRIVATE_API bool marey__zone_number(const char *text, size_t len, uint64_t *out);

/* ---- energy_lock.c ---- */

struct marey__energy_lock {
    struct marey__held_file file;
    char path[PATH_MAX];
};
enum marey__energy_turn { MAREY__TURN_OURS, MAREY__TURN_LATER, MAREY__TURN_NEVER };
/* Checks whether this process measures for the recording in `folder`; never waits. The fd in `lock` is -1 at first. */
enum marey__energy_turn marey__energy_lock_try(struct marey__energy_lock *lock, const char *folder);
/* A marey__finalize_cleaner. */
void marey__energy_lock_clean(const char *path, const char *name);
/* Releases the lock and removes the file. */
void marey__energy_lock_release(struct marey__energy_lock *lock);
/* The next CUDA_VISIBLE_DEVICES of the waiting processes, from `*at` on; false at the end. */
bool marey__energy_lock_next(const struct marey__energy_lock *lock, size_t *at, char *out,
                             size_t size, bool *is_set);

/* ---- energy.c ---- */

/* NVML is loaded: makes sure that the thread ends before it is unloaded. Any thread, any number of times. */
void marey__energy_stop_at_exit(void);

struct marey__energy_settings {
    bool is_wanted;
    uint64_t hz; /* power readings per second; 0: the default */
    uint64_t after_s;
};
extern const struct marey__instrument marey__energy_instrument;

/* The state of the energy thread, for its files. */

#define MAREY__SECOND_NS UINT64_C(1000000000)

enum marey__session_state {
    MAREY__SESSION_RUNNING,
    MAREY__SESSION_ENDED,
    MAREY__SESSION_ABANDONED
};

/* Readings with separate periods. */
enum marey__due_kind {
    MAREY__DUE_POWER, /* single readings, without a buffer */
    MAREY__DUE_COUNT,
    MAREY__DUE_UTILIZATION,
    MAREY__DUE_GPM,
    MAREY__DUE_STATE,
    MAREY__N_PACED, /* below: the period depends on the cost of a reading */
    MAREY__DUE_RING = MAREY__N_PACED,
    MAREY__DUE_CPUS,
    MAREY__DUE_LINE,
    MAREY__N_DUES,
};
struct marey__due {
    uint64_t next_ns, period_ns;
    uint64_t read_ns;          /* the last time, not counting first readings */
    uint64_t cost_ns, n_costs; /* CPU time of a reading of one GPU, and the number of measurements */
};

/* Values that wait for older ones; unsorted. */
struct marey__energy_entry {
    uint64_t tick;
    marey_id site;
    double value;
};
struct marey__energy_order {
    struct marey__energy_entry *entries;
    size_t n, cap;
};

struct marey__energy_session {
    pthread_t thread;
    struct marey__settings settings;
    uint64_t power_hz; /* from the options; 0: default */
    int local_rank;
    uint32_t state;  /* enum session_state, a futex; changes under `write_lock` */
    bool should_end; /* set before the bell rings */
    bool is_opening; /* NVML is being opened, which takes longer than a reading. Relaxed */
    bool is_stuck;   /* a fork has waited for it in vain; the forking thread holds energy.lock */
    pthread_mutex_t calls;      /* held by the thread during foreign code; a fork waits for it */
    pthread_mutex_t write_lock; /* held while writing into the recording */
    /* The rest is used only by the thread. */
    struct marey__energy_lock lock;
    size_t lock_at; /* position up to which its lines are read */
    bool has_nvml;
    struct marey__nvml nvml;
    struct marey__node_gpu *nodes; /* these three have room for n_nodes */
    marey__nvml_device *devices;
    struct marey__energy_gpu *gpus;
    size_t n_nodes, n_asked, n_gpus; /* existing, responding, measured */
    struct marey__zone zones[MAREY__MAX_ZONES];
    size_t n_zones;
    struct marey__due due[MAREY__N_DUES];
    struct marey__energy_order order;
    size_t n_rings;   /* GPUs whose power comes from a buffer */
    bool has_edges;   /* there are epochs */
    uint32_t n_edges; /* edges handled so far */
    uint64_t edge_ns;
    uint64_t began_ns, cpu_ns; /* time of the first complete reading, and the thread's CPU time then */
};

static inline uint64_t marey__energy_now_ns(void)
{
    return marey__clock_ns(CLOCK_MONOTONIC);
}

/* Writes values that have waited long enough, or all. */
void marey__energy_write(struct marey__energy_session *s, bool all);
/* Writes a text about the process into the recording, unless the thread was abandoned; frees `text`. */
void marey__energy_put_text(const char *key, struct marey__buf *text);

/* ---- energy_times.c ---- */

/* Opens NVML and RAPL, finds the GPUs and reads each once. */
void marey__energy_sources_open(struct marey__energy_session *s);
/* Reads a last time, and describes how each source was read. */
void marey__energy_sources_close(struct marey__energy_session *s);
void marey__energy_times_init(struct marey__energy_session *s);
/* Reads what is due at `now_ns`; `n_edges` is the number of epoch edges so far. Returns the time of the next reading. */
uint64_t marey__energy_times_read(struct marey__energy_session *s, uint64_t now_ns, uint32_t n_edges);

/* Updates the cost of a reading; computes its period from the cost. */
void marey__pace_note(struct marey__due *due, uint64_t cost_ns);
MAREY_PRIVATE_API uint64_t marey__pace_period_ns(enum marey__due_kind kind, uint64_t cost_ns);
/* The period by the measured cost, within the user's options and the capacity of buffers. */
uint64_t marey__pace_plan(const struct marey__energy_session *s, enum marey__due_kind kind);
/* Whether another reading now stays within the budget for measuring; a cheap one always does. */
bool marey__pace_can_afford(const struct marey__energy_session *s, enum marey__due_kind kind,
                            uint64_t now_ns);

#endif
