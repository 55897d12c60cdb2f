/*
 * The memory of a trace over time: allocations with a begin, an end and a category.
 *
 *   torchtrace: [memory] events, operators, annotations, roles
 *     memory_timeline_blocks.c ── an allocation and its release become a block; roles name blocks
 *     memory_timeline_phases.c ── which phase and which operator an instant belongs to
 *     memory_timeline_rules.c  ── a block's category
 *     memory_timeline.c        ── all of it, then blocks' begins and ends in order, with the peak of each device
 *     memory_timeline_alive.c  ── what was there at one instant: by category and by stack
 *     memory_timeline_tables.c ── the same of the peaks, as tables
 *   presenters: memory_json_out.c, memory_page_out.c, memory_snapshot_out.c
 *
 * docs/internals/memory-categories.md has the rules and their limits.
 */
#ifndef MAREY_MEMORY_TIMELINE_INTERNAL_H
#define MAREY_MEMORY_TIMELINE_INTERNAL_H

#include "import/kineto/torchtrace_internal.h"
#include <marey/memory_timeline.h>
#include <marey/table.h>

/* Times of a block that was there before the first event, and of one that is there behind the last. */
#define MAREY__MEMORY_BEFORE INT64_MIN
#define MAREY__MEMORY_NEVER INT64_MAX
#define MAREY__MEMORY_NONE UINT32_MAX

struct marey__memory_block {
    int64_t made_ns, freed_ns; /* Unix time, or one of the two above */
    uint64_t address;          /* 0: what was there before and is known by the device's sum alone */
    int64_t bytes;
    marey__torch_id stack, freed_stack; /* where it was made and released */
    marey__torch_id name;               /* by a role: "fc.weight"; 0: none */
    uint32_t device;                    /* of the timeline's */
    uint32_t thread;                    /* that made it, of the trace's */
    uint32_t made_event, freed_event;   /* of the trace's memory events; NONE: no event tells it */
    uint32_t made_change, freed_change; /* of the device's changes; NONE: it was not released */
    uint32_t older;                     /* the block at the same place before it, or NONE */
    uint8_t category;                   /* enum marey_memory_category */
    uint8_t has_role;
};

/* ---- phases ---- */

enum marey__memory_phase {
    MAREY__MEMORY_IN_NONE,
    MAREY__MEMORY_IN_DATA,
    MAREY__MEMORY_IN_FORWARD,
    MAREY__MEMORY_IN_BACKWARD,
    MAREY__MEMORY_IN_STEP,   /* Optimizer.step itself */
    MAREY__MEMORY_IN_UPDATE, /* around it: clipping, zero_grad */
    MAREY__MEMORY_IN_OTHER,  /* evaluation, checkpoints, logging */
};

struct marey__memory_span {
    int64_t begin_ns, end_ns;
    uint8_t phase; /* enum marey__memory_phase */
};
/* From an instant on, until the next piece begins: the innermost span, NONE for no phase. */
struct marey__memory_piece {
    int64_t begin_ns;
    uint32_t span;
};
struct marey__memory_phases {
    struct marey__memory_span *spans; /* by begin */
    size_t n_spans, spans_cap;
    struct marey__memory_piece *pieces; /* by begin */
    size_t n_pieces, pieces_cap;
    struct marey__memory_span *operators; /* outermost ones, by thread, then begin; their phase says nothing */
    size_t n_operators, operators_cap;
    size_t *first_operator; /* by thread, and one more: where its operators begin */
};
/* ---- the timeline ---- */

/* A block begins or ends. */
struct marey__memory_change {
    uint32_t block;
    bool is_end;
};

struct marey__memory_device {
    int32_t type, id; /* as torch numbers them: 0 CPU, 1 CUDA; the CPU's id is -1 */
    struct marey__memory_change *changes; /* by time; those that were there before come first */
    size_t n_changes;
    size_t n_before;        /* of them, for blocks that were there before */
    int64_t peak_bytes;     /* the most there was at once, */
    size_t peak_change;     /* from this change on. 0 of 0 changes: none */
    int64_t reserved_bytes; /* the most that the allocator had taken, 0 where it is not told */
};

struct marey__memory_timeline {
    const struct marey__torch_trace *trace; /* lent */
    struct marey__memory_block *blocks;
    size_t n_blocks, blocks_cap;
    struct marey__memory_device *devices; /* by type, then id: the CPU first */
    size_t n_devices, devices_cap;
    struct marey__memory_change *changes; /* of all devices, in one piece */
    struct marey__memory_phases phases;
    int64_t n_bytes; /* of all blocks together: as long as it fits, every sum of some of them does */
    uint64_t n_lost; /* releases of what was never made, and blocks whose release was not recorded */
};

/* "CPU", "GPU 0", "device 20:1". */
void marey__memory_device_name(const struct marey__memory_device *device, char name[32]);
/* The device whose memory is asked for first: the first GPU, else the CPU. Only of a timeline that has devices. */
const struct marey__memory_device *
marey__memory_main_device(const struct marey__memory_timeline *timeline);
/* When a change was, MAREY__MEMORY_BEFORE for what was there before. */
int64_t marey__memory_change_ns(const struct marey__memory_timeline *timeline,
                                const struct marey__memory_change *change);

/* ---- what was there at one instant: memory_timeline_alive.c ---- */

/* Blocks of one category that were made at one place, or have one name. */
struct marey__memory_group {
    marey__torch_id stack, name;
    uint8_t category;
    int64_t bytes;
    uint64_t count;
};
struct marey__memory_alive {
    int64_t bytes, by_category[MAREY_MEMORY_N_CATEGORIES];
    uint64_t count, count_by_category[MAREY_MEMORY_N_CATEGORIES];
    struct marey__memory_group *groups; /* the largest first */
    size_t n_groups;
};
/* After change number `change` of the device; its peak_change for the peak. MAREY_ENOMEM. */
MAREY_WARN_UNUSED marey_status marey__memory_alive_init(struct marey__memory_alive *alive,
                                                        const struct marey__memory_timeline *timeline,
                                                        const struct marey__memory_device *device,
                                                        size_t change);
void marey__memory_alive_fini(struct marey__memory_alive *alive);

/* ---- inside ---- */

/* Blocks and devices of the trace's events and roles, in no order that is promised. False without memory. */
bool marey__memory_make_blocks(struct marey__memory_timeline *timeline);

/* False without memory; fini in any case. */
bool marey__memory_phases_init(struct marey__memory_phases *phases,
                               const struct marey__torch_trace *trace);
void marey__memory_phases_fini(struct marey__memory_phases *phases);
/* The span that an instant belongs to, or NULL. */
const struct marey__memory_span *marey__memory_span_at(const struct marey__memory_phases *phases,
                                                       int64_t ns);
/* The outermost operator of a thread at an instant, or NULL. */
const struct marey__memory_span *marey__memory_operator_at(const struct marey__memory_phases *phases,
                                                           uint32_t thread, int64_t ns);

/* Give each block without a role its category, by the timeline's phases. False without memory. */
bool marey__memory_classify(struct marey__memory_timeline *timeline);

#endif
