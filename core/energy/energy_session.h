/* The session of the energy thread, for the three files that make it. */
#ifndef KYMO_ENERGY_SESSION_H
#define KYMO_ENERGY_SESSION_H

#include "clock/clock_internal.h"
#include "energy/energy_internal.h"

#define KYMO__SECOND_NS UINT64_C(1000000000)

enum kymo__session_state { KYMO__SESSION_RUNNING, KYMO__SESSION_ENDED, KYMO__SESSION_ABANDONED };

struct kymo__due {
    uint64_t next_ns, period_ns;
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
    struct kymo__due power, state_due, busy, cpus, line, budget;
    uint64_t counted_ns,
        count_period_ns; /* the last reading of energy counters, and how long until the next */
    uint32_t n_edges;    /* as many as are taken care of */
    uint64_t edge_ns;
    uint64_t cpu_ns, budget_cpu_ns,
        budget_ns; /* the thread's CPU time at the first reading, and at the last look at it */
};

static inline uint64_t kymo__energy_now_ns(void)
{
    return kymo__clock_ns(CLOCK_MONOTONIC);
}

/* ---- energy_thread.c ---- */

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
kymo__energy_reader kymo__energy_read_power, kymo__energy_read_count;

void kymo__energy_times_init(struct kymo__energy_session *s);
/* Read what is due at `now_ns`, `n_edges` epochs having begun or ended so far; when the next reading is due. */
uint64_t kymo__energy_times_read(struct kymo__energy_session *s, uint64_t now_ns, uint32_t n_edges);

#endif
