/* The session of the energy thread, for the files that make it. */
#ifndef MAREY_ENERGY_SESSION_H
#define MAREY_ENERGY_SESSION_H

#include "instrument/energy/energy_internal.h"

#define MAREY__SECOND_NS UINT64_C(1000000000)

enum marey__session_state {
    MAREY__SESSION_RUNNING,
    MAREY__SESSION_ENDED,
    MAREY__SESSION_ABANDONED
};

/* What has a time of its own. */
enum marey__due_kind {
    MAREY__DUE_POWER, /* one by one, where there is no ring */
    MAREY__DUE_COUNT,
    MAREY__DUE_UTILIZATION,
    MAREY__DUE_GPM,
    MAREY__DUE_STATE,
    MAREY__N_PACED, /* up to here the period comes from what a reading takes */
    MAREY__DUE_RING = MAREY__N_PACED,
    MAREY__DUE_CPUS,
    MAREY__DUE_LINE,
    MAREY__N_DUES,
};
struct marey__due {
    uint64_t next_ns, period_ns;
    uint64_t read_ns;          /* the last time; not of the first readings */
    uint64_t cost_ns, n_costs; /* CPU time of a reading of one GPU, and how many it is known from */
};

/* Values that wait for older ones; not in order. */
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
    uint64_t power_hz; /* as the options ask; 0: the default */
    int local_rank;
    uint32_t state;        /* enum session_state, a futex; changes under `voice` */
    bool should_end;       /* told together with the bell */
    bool is_opening;       /* NVML is being opened, which takes longer than a reading. Relaxed */
    bool is_stuck;         /* a fork has waited for it in vain; who forks has energy.lock */
    pthread_mutex_t calls; /* held by the thread while it is in foreign code; a fork waits for it */
    pthread_mutex_t voice; /* held while something is written into the recording */
    /* The rest is the thread's own. */
    struct marey__energy_lock lock;
    size_t lock_at; /* how far its lines are read */
    bool has_nvml;
    struct marey__nvml nvml;
    struct marey__node_gpu *nodes; /* these three have room for n_nodes */
    marey__nvml_device *devices;
    struct marey__energy_gpu *gpus;
    size_t n_nodes, n_asked, n_gpus; /* that there are, that answered, that are measured */
    struct marey__zone zones[MAREY__MAX_ZONES];
    size_t n_zones;
    struct marey__due due[MAREY__N_DUES];
    struct marey__energy_order order;
    size_t n_rings;   /* GPUs whose power comes from a ring */
    bool has_edges;   /* epochs are told */
    uint32_t n_edges; /* as many as are taken care of */
    uint64_t edge_ns;
    uint64_t began_ns,
        cpu_ns; /* when all was read for the first time, and the thread's CPU time then */
};

static inline uint64_t marey__energy_now_ns(void)
{
    return marey__clock_ns(CLOCK_MONOTONIC);
}

/* ---- energy_thread.c ---- */

/* Write what has waited for long enough, or all of it. */
void marey__energy_write(struct marey__energy_session *s, bool all);
/* A text about the process, into the recording unless the thread has lost its say; `text` is freed. */
void marey__energy_put_text(const char *key, struct marey__buf *text);

/* ---- energy_sources.c: what there is to measure ---- */

/* Open NVML and RAPL, find the GPUs and read each once. */
void marey__energy_sources_open(struct marey__energy_session *s);
/* Those GPUs that others who stand in line have named since the last look. */
void marey__energy_sources_add(struct marey__energy_session *s);
/* Read a last time, and say what was read how. */
void marey__energy_sources_close(struct marey__energy_session *s);

/* ---- energy_times.c: the timetable ---- */

/* Of all GPUs, one after the other; a fork may come between two. */
typedef void marey__energy_reader(struct marey__energy_gpu *gpu);
void marey__energy_read_all(struct marey__energy_session *s, marey__energy_reader *read);
void marey__energy_read_zones(struct marey__energy_session *s);
marey__energy_reader marey__energy_read_power; /* one by one, ring or not */
/* Of all GPUs, and plan the next time by what it took. */
void marey__energy_read_paced(struct marey__energy_session *s, enum marey__due_kind kind,
                              uint64_t now_ns);
/* All of one GPU, which tells what each takes. */
void marey__energy_read_first(struct marey__energy_session *s, struct marey__energy_gpu *gpu);

void marey__energy_times_init(struct marey__energy_session *s);
/* Read what is due at `now_ns`, `n_edges` epochs having begun or ended so far; when the next reading is due. */
uint64_t marey__energy_times_read(struct marey__energy_session *s, uint64_t now_ns, uint32_t n_edges);

/* ---- energy_pace.c: how often ---- */

void marey__pace_note(struct marey__due *due, uint64_t cost_ns);
MAREY_PRIVATE_API uint64_t marey__pace_period_ns(enum marey__due_kind kind, uint64_t cost_ns);
/* The same by what readings have taken so far, within what the user has asked for and what buffers hold. */
uint64_t marey__pace_plan(const struct marey__energy_session *s, enum marey__due_kind kind);
/* Whether a reading takes milliseconds, as some do on some drivers. */
bool marey__pace_is_dear(const struct marey__due *due);
/* Whether another reading stays within what measuring may take, up to now; one that is not dear does. */
bool marey__pace_can_afford(const struct marey__energy_session *s, enum marey__due_kind kind,
                            uint64_t now_ns);

/* ---- energy_order.c ---- */

void marey__energy_order_add(struct marey__energy_order *order,
                             const struct marey__energy_entry *entry);
/* Write what is not after `until_tick`, in order; the rest goes on waiting. */
void marey__energy_order_write(struct marey__energy_order *order, uint64_t until_tick);

#endif
