/*
 * The Perfetto export: perfetto.c writes events, perfetto_details.c those with more to tell than their name,
 * perfetto_gpu.c the streams of GPUs, perfetto_native.c these as events of their own kind, perfetto_tracks.c what stands before them (clocks, tracks, interned names),
 * perfetto_tar.c a trace for each process into an archive. Nothing else includes this.
 */
#ifndef KYMO_PERFETTO_INTERNAL_H
#define KYMO_PERFETTO_INTERNAL_H

/* What is said of a range right behind its begin goes into the packet of that begin. */
#define KYMO__LOOKS_AHEAD true
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
    uint32_t n_rows;  /* of a stream: tracks it has */
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
/* Its interned number. */
uint32_t kymo__perfetto_iid(uint32_t slot);
/* Put the site's name, category and place into the sequence's interned data. */
void kymo__perfetto_intern(struct kymo__export *x, struct kymo__export_lane *lane, uint32_t slot);
/* Declare the counter track of a site, once; the async track of a handle. */
uint64_t kymo__perfetto_counter(struct kymo__export *x, uint32_t slot);
void kymo__perfetto_async(struct kymo__export *x, uint32_t slot, uint64_t uuid);

/* A track below the process. */
void kymo__perfetto_child_track(struct kymo__export *x, uint64_t uuid, const char *name, size_t len,
                                bool is_counter);
/* The clock that the trace's times are on. */
uint32_t kymo__perfetto_clock(const struct kymo__export *x);
/* The number of a flow; `site` is its name, NULL for that of a launch to its work. */
uint64_t kymo__perfetto_flow_id(const struct kymo__export *x, const struct kymo_site_info *site,
                                uint64_t id);

/* ---- perfetto_gpu.c ---- */

void kymo__perfetto_work(struct kymo__export *x, struct kymo__export_lane *lane,
                         const struct kymo__stream_work *work);
void kymo__perfetto_flow(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                         const uint64_t *words);
/* The fields of a stream's track, and the track above it. */
void kymo__perfetto_stream_track(struct kymo__export *x, const struct kymo__export_lane *lane,
                                 uint32_t row);
void kymo__perfetto_device(struct kymo__export *x, int32_t device);

/* ---- perfetto_native.c ---- */

/* The field by which a range says that it launched work. */
void kymo__perfetto_submits(const struct kymo__export *x, struct kymo__buf *buf,
                            uint64_t correlation);
static inline bool kymo__perfetto_is_native(const struct kymo__export *x)
{
    return x->format == &kymo__export_perfetto_gpu;
}

/* ---- perfetto_details.c ---- */

struct kymo__perfetto_event {
    size_t packet, event;
};
/* A packet of the lane in x->texts up to its event's type; and out. */
struct kymo__perfetto_event kymo__perfetto_open(struct kymo__export *x,
                                                struct kymo__export_lane *lane, uint64_t ns,
                                                uint32_t type);
void kymo__perfetto_close(struct kymo__export *x, struct kymo__perfetto_event open);
/* The prepared fields of a site behind its type: name, category, place. */
void kymo__perfetto_site(struct kymo__export *x, uint32_t slot);
/* Annotations of the event that is open. */
void kymo__perfetto_annotate(struct kymo__buf *buf, const char *name,
                             const struct kymo__payload *payload);
void kymo__perfetto_annotate_count(struct kymo__buf *buf, const char *name, uint64_t count);
/* A JSON object: an annotation for each entry. */
void kymo__perfetto_arguments(struct kymo__buf *buf, const char *text, size_t len);
/* What the payload's records say, those from word `from` on. */
void kymo__perfetto_records(struct kymo__export *x, const struct kymo__payload *payload,
                            uint32_t from);
/* The arrow between a launch and its work; one end of a flow. */
void kymo__perfetto_arrow(const struct kymo__export *x, struct kymo__buf *buf, uint64_t correlation);
void kymo__perfetto_flow_end(struct kymo__export *x, const uint64_t *record);

/* An iteration, epoch or phase, on a track of its kind. */
void kymo__perfetto_span(struct kymo__export *x, const struct kymo__span *span);

/* A packet in x->texts: begin, fields by the caller, and out. */
size_t kymo__perfetto_packet(struct kymo__export *x, uint32_t sequence_id);
void kymo__perfetto_packet_done(struct kymo__export *x, size_t opened);

#endif
