/* The session of the energy thread, for the files that make it. */
#ifndef KYMO_ENERGY_SESSION_H
#define KYMO_ENERGY_SESSION_H

#include "energy/energy_internal.h"

#define KYMO__SECOND_NS UINT64_C(1000000000)

enum kymo__session_state { KYMO__SESSION_RUNNING, KYMO__SESSION_ENDED, KYMO__SESSION_ABANDONED };

/* What has a time of its own. */
enum kymo__due_kind {
    KYMO__DUE_POWER, /* one by one, where there is no ring */
    KYMO__DUE_COUNT,
    KYMO__DUE_UTILIZATION,
    KYMO__DUE_GPM,
    KYMO__DUE_STATE,
    KYMO__N_PACED, /* up to here the period comes from what a reading takes */
    KYMO__DUE_RING = KYMO__N_PACED,
    KYMO__DUE_CPUS,
    KYMO__DUE_LINE,
    KYMO__N_DUES,
};
struct kymo__due {
    uint64_t next_ns, period_ns;
    uint64_t read_ns;          /* the last time; not of the first readings */
    uint64_t cost_ns, n_costs; /* CPU time of a reading of one GPU, and how many it is known from */
};

/* Values that wait for older ones; not in order. */
struct kymo__energy_entry {
    uint64_t tick;
    kymo_id site;
    double value;
};
struct kymo__energy_order {
    struct kymo__energy_entry *entries;
    size_t n, cap;
};

struct kymo__energy_session {
    pthread_t thread;
    struct kymo__settings settings;
    int local_rank;
    uint32_t state;        /* enum session_state, a futex; changes under `voice` */
    bool should_end;       /* told together with the bell */
    bool is_opening;       /* NVML is being opened, which takes longer than a reading. Relaxed */
    bool is_stuck;         /* a fork has waited for it in vain; who forks has energy.lock */
    pthread_mutex_t calls; /* held by the thread while it is in foreign code; a fork waits for it */
    pthread_mutex_t voice; /* held while something is written into the recording */
    /* The rest is the thread's own. */
    struct kymo__energy_lock lock;
    size_t lock_at; /* how far its lines are read */
    bool has_nvml;
    struct kymo__nvml nvml;
    struct kymo__node_gpu *nodes; /* these three have room for n_nodes */
    kymo__nvml_device *devices;
    struct kymo__energy_gpu *gpus;
    size_t n_nodes, n_asked, n_gpus; /* that there are, that answered, that are measured */
    struct kymo__zone zones[KYMO__MAX_ZONES];
    size_t n_zones;
    struct kymo__due due[KYMO__N_DUES];
    struct kymo__energy_order order;
    size_t n_rings;   /* GPUs whose power comes from a ring */
    bool has_edges;   /* epochs are told */
    uint32_t n_edges; /* as many as are taken care of */
    uint64_t edge_ns;
    uint64_t began_ns,
        cpu_ns; /* when all was read for the first time, and the thread's CPU time then */
};

static inline uint64_t kymo__energy_now_ns(void)
{
    return kymo__clock_ns(CLOCK_MONOTONIC);
}

/* ---- energy_thread.c ---- */

/* Write what has waited for long enough, or all of it. */
void kymo__energy_write(struct kymo__energy_session *s, bool all);
/* A text about the process, into the recording unless the thread has lost its say; `text` is freed. */
void kymo__energy_put_text(const char *key, struct kymo__buf *text);

/* ---- energy_sources.c: what there is to measure ---- */

/* Open NVML and RAPL, find the GPUs and read each once. */
void kymo__energy_sources_open(struct kymo__energy_session *s);
/* Those GPUs that others who stand in line have named since the last look. */
void kymo__energy_sources_add(struct kymo__energy_session *s);
/* Read a last time, and say what was read how. */
void kymo__energy_sources_close(struct kymo__energy_session *s);

/* ---- energy_times.c: the timetable ---- */

/* Of all GPUs, one after the other; a fork may come between two. */
typedef void kymo__energy_reader(struct kymo__energy_gpu *gpu);
void kymo__energy_read_all(struct kymo__energy_session *s, kymo__energy_reader *read);
void kymo__energy_read_zones(struct kymo__energy_session *s);
kymo__energy_reader kymo__energy_read_power; /* one by one, ring or not */
/* Of all GPUs, and plan the next time by what it took. */
void kymo__energy_read_paced(struct kymo__energy_session *s, enum kymo__due_kind kind,
                             uint64_t now_ns);
/* All of one GPU, which tells what each takes. */
void kymo__energy_read_first(struct kymo__energy_session *s, struct kymo__energy_gpu *gpu);

void kymo__energy_times_init(struct kymo__energy_session *s);
/* Read what is due at `now_ns`, `n_edges` epochs having begun or ended so far; when the next reading is due. */
uint64_t kymo__energy_times_read(struct kymo__energy_session *s, uint64_t now_ns, uint32_t n_edges);

/* ---- energy_pace.c: how often ---- */

void kymo__pace_note(struct kymo__due *due, uint64_t cost_ns);
KYMO_PRIVATE_API uint64_t kymo__pace_period_ns(enum kymo__due_kind kind, uint64_t cost_ns);
/* The same by what readings have taken so far, within what the user has asked for and what buffers hold. */
uint64_t kymo__pace_plan(const struct kymo__energy_session *s, enum kymo__due_kind kind);
/* Whether a reading takes milliseconds, as some do on some drivers. */
bool kymo__pace_is_dear(const struct kymo__due *due);
/* Whether another reading stays within what measuring may take, up to now; one that is not dear does. */
bool kymo__pace_can_afford(const struct kymo__energy_session *s, enum kymo__due_kind kind,
                           uint64_t now_ns);

/* ---- energy_order.c ---- */

void kymo__energy_order_add(struct kymo__energy_order *order, const struct kymo__energy_entry *entry);
/* Write what is not after `until_tick`, in order; the rest goes on waiting. */
void kymo__energy_order_write(struct kymo__energy_order *order, uint64_t until_tick);

#endif
