/*
 * The Perfetto export in three files: perfetto.c writes events, perfetto_tracks.c what stands before
 * them (clocks, tracks, interned names), perfetto_tar.c a trace for each process into an archive.
 * Nothing else includes this.
 */
#ifndef KYMO_PERFETTO_INTERNAL_H
#define KYMO_PERFETTO_INTERNAL_H

#include "present/export_walk.h"
#include "present/perfetto_proto.h"

/* A site's begin as it goes into a packet: a whole track_event field, copied with three moves. */
#define BEGIN_ROOM 24
struct site_bytes {
    uint8_t begin[BEGIN_ROOM];
    uint64_t counter_uuid; /* of the counter track of this name; 0: not declared yet */
    uint8_t begin_len;
};

/* Where the event type stands in `begin`: behind the field's tag and length and its own tag. */
#define BEGIN_TYPE_AT 3

/*
 * A lane writes a packet sequence of its own: deltas of time and interned names hold within a
 * sequence. Grows with the sites the lane meets, hence one block that kymo__realloc may move.
 */
#define HEAD_ROOM 8
struct sequence {
    uint64_t clock_ns;       /* of the packet written last */
    uint8_t head[HEAD_ROOM]; /* sequence id and flags, the same in every packet */
    uint8_t head_len;
    uint32_t id;
    uint32_t n_known; /* sites that have a bit in `known` */
    uint64_t known[]; /* by site: its name is in this sequence's interned data */
};

static inline bool sequence_knows(const struct sequence *sequence, uint32_t slot)
{
    return slot < sequence->n_known && (sequence->known[slot / 64] >> (slot % 64) & 1) != 0;
}

/* Unique among the tracks of the file. A handle or a name is mixed with its process. */
static inline uint64_t process_uuid(const struct kymo__export *x)
{
    return ((uint64_t)x->process_number + 1) << 32;
}

static inline uint64_t lane_uuid(const struct kymo__export *x, const struct kymo__export_lane *lane)
{
    return process_uuid(x) + 1 + lane->info->lane;
}

uint64_t kymo__perfetto_async_uuid(const struct kymo__export *x, uint64_t handle);

void kymo__perfetto_start(struct kymo__export *x);
kymo_status kymo__perfetto_process(struct kymo__export *x);
kymo_status kymo__perfetto_batch(struct kymo__export *x, struct kymo__export_lane *lane,
                                 const struct kymo_batch *batch);
/* Begin the lane's sequence; false when there is no memory. */
bool kymo__perfetto_lane(struct kymo__export *x, struct kymo__export_lane *lane);
/* Put the site's name, category and place into the sequence's interned data. */
void kymo__perfetto_intern(struct kymo__export *x, struct kymo__export_lane *lane, uint32_t slot);
/* Declare the counter track of a site, once; the async track of a handle. */
uint64_t kymo__perfetto_counter(struct kymo__export *x, uint32_t slot);
void kymo__perfetto_async(struct kymo__export *x, uint32_t slot, uint64_t uuid);

/* An iteration, epoch or phase, on a track of its kind. */
void kymo__perfetto_span(struct kymo__export *x, const struct kymo__span *span);

/* A packet in x->texts: begin, fields by the caller, and out. */
size_t kymo__perfetto_packet(struct kymo__export *x, uint32_t sequence_id);
void kymo__perfetto_packet_done(struct kymo__export *x, size_t opened);

#endif
