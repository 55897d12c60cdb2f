/*
 * breakdown: from recordings to computation, communication and other.
 *
 *   a process's log ── work.c: GPU work, launches, steps, host ranges ──> struct kymo__work_set
 *                        rules.c: which class a name is
 *   work set ── sweep.c: atoms within a window ──┬── breakdown.c, breakdown_tables.c
 *            ── idle.c: why nothing ran ─────────┤
 *            ── collectives.c: over all ranks ───┘
 *
 * Memory grows with GPU work, steps and the ranges that are asked for, not with the log.
 */
#ifndef KYMO_BREAKDOWN_INTERNAL_H
#define KYMO_BREAKDOWN_INTERNAL_H

#include "analyze/analyze_internal.h"
#include <kymo/breakdown.h>

/* Bits of an atom. */
enum kymo__work_class { KYMO__COMPUTES = 1, KYMO__COMMUNICATES = 2, KYMO__COPIES = 4 };
enum { KYMO__N_ATOMS = 8 };

/* ---- sweep.c ---- */

/* Half open. Those of zero length count for nothing. */
struct kymo__interval {
    uint64_t begin_ns, end_ns;
};

struct kymo__atoms {
    uint64_t ns[KYMO__N_ATOMS]; /* by the classes under way; [0]: none */
    uint64_t sum_of_durations_ns;
    uint64_t n_work;
};

/* ---- work.c ---- */

#define KYMO__NO_INDEX UINT32_MAX

/* Something a device did. 40 bytes. */
struct kymo__work {
    uint64_t begin_ns, end_ns;
    uint32_t site;
    uint32_t lane;       /* its stream */
    uint32_t launch;     /* in kymo__work_set.launches, or KYMO__NO_INDEX */
    uint32_t collective; /* in kymo__work_set.collectives, or KYMO__NO_INDEX */
    uint16_t rule;       /* that decided */
    uint8_t class;       /* enum kymo__work_class */
    uint8_t kind;        /* enum kymo_work_kind */
};

/* A call on the host that launched work. */
struct kymo__launch_call {
    uint64_t begin_ns, end_ns;
    uint64_t correlation;
    uint32_t lane; /* its thread */
    uint32_t site; /* cudaLaunchKernel */
    uint32_t around; /* site of the innermost range around it that is no runtime call: the operator; 0: none */
};

struct kymo__collective_call {
    struct kymo_communication what;
    uint64_t begin_ns, end_ns; /* of the work, or of the range on the host */
    uint32_t site;
    bool is_on_host;
};

/* A device of one process, or its host. Work is in order of begin. */
struct kymo__device_work {
    int32_t device; /* -1: the process itself, which has no GPU work */
    struct kymo__work *work;
    size_t n_work, work_cap;
    uint64_t n_zero, n_negative; /* left out: no length, an end before the begin */
};

/* An iteration of the process: ProfilerStep#n of torch, kymo.iteration(). */
struct kymo__step {
    uint64_t begin_ns, end_ns; /* on the host */
    uint64_t number;
};

struct kymo__work_set {
    kymo_recording *recording;
    const struct kymo_process *process;
    struct kymo__device_work *devices; /* by device */
    size_t n_devices, devices_cap;
    struct kymo__launch_call *launches; /* in order of begin */
    size_t n_launches, launches_cap;
    struct kymo__collective_call *collectives;
    size_t n_collectives, collectives_cap;
    struct kymo__step *steps; /* in order */
    size_t n_steps, steps_cap;
};

#endif
