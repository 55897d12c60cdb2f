/*
 * perfetto: Perfetto traces as protobuf.
 *
 *   perfetto.c           events                       perfetto_details.c   events with payloads
 *   perfetto_gpu.c       streams of GPUs, as slices or as GPU render stages
 *   perfetto_tracks.c    packets, clocks, tracks, interned names
 *   perfetto_tar.c, tar.c   one trace per process in an archive
 *
 * Input: events through present/export. Output: a file. perfetto_proto.h has the field numbers. Does not know log files
 * or other formats.
 */
#ifndef MAREY_PRESENT_EXPORT_PERFETTO_INTERNAL_H
#define MAREY_PRESENT_EXPORT_PERFETTO_INTERNAL_H

#include "present/export/export_walk.h"
#include "present/export/perfetto/perfetto_proto.h"

/* A site's begin as a complete track_event field of a packet, copied with three moves. */
#define BEGIN_ROOM 24
struct site_bytes {
    uint8_t begin[BEGIN_ROOM];
    uint64_t counter_uuid; /* of the counter track with this name; 0: not declared yet */
    uint8_t begin_len;
};

/* Offset of the event type in `begin`: after the field's tag, its length and its own tag. */
#define BEGIN_TYPE_AT 3

/*
 * Each lane writes its own packet sequence: time deltas and interned names are valid within a
 * sequence. Grows with the lane's sites, so it is one block that marey__realloc may move.
 */
#define HEAD_ROOM 8
struct sequence {
    uint64_t clock_ns;       /* of the last packet */
    uint8_t head[HEAD_ROOM]; /* sequence id and flags, the same in every packet */
    uint8_t head_len;
    uint32_t id;
    uint32_t n_rows;  /* tracks of a stream */
    uint32_t n_known; /* sites with a bit in `known` */
    uint64_t known[]; /* by site: its name is in this sequence's interned data */
};

static inline bool sequence_knows(const struct sequence *sequence, uint32_t slot)
{
    return slot < sequence->n_known && (sequence->known[slot / 64] >> (slot % 64) & 1) != 0;
}

/* Unique among the tracks of the file. A handle or name is hashed with its process. */
static inline uint64_t process_uuid(const struct marey__export *x)
{
    return ((uint64_t)x->process_number + 1) << 32;
}

static inline uint64_t lane_uuid(const struct marey__export *x, const struct marey__export_lane *lane)
{
    return process_uuid(x) + 1 + lane->stack.info->lane;
}

uint64_t marey__perfetto_async_uuid(const struct marey__export *x, uint64_t handle);

/* ---- perfetto_tracks.c ---- */

/* A packet with one message, built in x->texts; closing writes it. */
struct marey__perfetto_message {
    size_t packet, message;
};
struct marey__perfetto_message marey__perfetto_open(struct marey__export *x, uint32_t sequence_id,
                                                    uint32_t field);
/* With `ns` on the trace's clock, for messages that use names of the sequence; NULL: no lane. */
#define MAREY__PERFETTO_NO_TIME UINT64_MAX
struct marey__perfetto_message marey__perfetto_open_at(struct marey__export *x,
                                                       const struct sequence *sequence, uint64_t ns,
                                                       uint32_t field);
/* An event of the lane after its last one, up to its type. */
struct marey__perfetto_message marey__perfetto_open_event(struct marey__export *x,
                                                          struct marey__export_lane *lane,
                                                          uint64_t ns, uint32_t type);
void marey__perfetto_close(struct marey__export *x, struct marey__perfetto_message open);

void marey__perfetto_start(struct marey__export *x);
marey_status marey__perfetto_process(struct marey__export *x);
marey_status marey__perfetto_batch(struct marey__export *x, struct marey__export_lane *lane,
                                   const struct marey_batch *batch);
/* Begin the lane's sequence; false on out of memory. */
bool marey__perfetto_lane(struct marey__export *x, struct marey__export_lane *lane);
/* Its interned number. */
uint32_t marey__perfetto_iid(uint32_t slot);
/* Add the site's name, category and place to the sequence's interned data. */
void marey__perfetto_intern(struct marey__export *x, struct marey__export_lane *lane, uint32_t slot);
/* Declare the counter track of a site, once; or the async track of a handle. */
uint64_t marey__perfetto_counter(struct marey__export *x, uint32_t slot);
void marey__perfetto_async(struct marey__export *x, uint32_t slot, uint64_t uuid);

/* A track below the process. */
void marey__perfetto_child_track(struct marey__export *x, uint64_t uuid, const char *name,
                                 size_t len, bool is_counter);
/* The number of a flow; `site` is its name, NULL for a launch and its work. */
uint64_t marey__perfetto_flow_id(const struct marey__export *x, const struct marey_site_info *site,
                                 uint64_t id);

/* ---- perfetto_gpu.c ---- */

void marey__perfetto_work(struct marey__export *x, struct marey__export_lane *lane,
                          const struct marey__stream_work *work);
void marey__perfetto_flow(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                          const uint64_t *words);
/* The fields of a stream's track, and its parent track. */
void marey__perfetto_stream_track(struct marey__export *x, const struct marey__export_lane *lane,
                                  uint32_t row);
void marey__perfetto_device(struct marey__export *x, int32_t device);

/* The field that marks a range as having launched work. */
void marey__perfetto_submits(const struct marey__export *x, struct marey__buf *buf,
                             uint64_t correlation);
static inline bool marey__perfetto_is_native(const struct marey__export *x)
{
    return x->format == &marey__export_perfetto_gpu;
}

/* ---- perfetto_details.c ---- */

/* The prepared fields of a site after its type: name, category, place. */
void marey__perfetto_site(struct marey__export *x, uint32_t slot);
/* Annotations of the open event. */
void marey__perfetto_annotate(struct marey__buf *buf, const char *name,
                              const struct marey__payload *payload);
void marey__perfetto_annotate_true(struct marey__buf *buf, const char *name);
void marey__perfetto_annotate_count(struct marey__buf *buf, const char *name, uint64_t count);
/* A JSON object: an annotation for each member. */
void marey__perfetto_arguments(struct marey__buf *buf, const char *text, size_t len);
/* Annotations from the payload's records, from word `from` on. */
void marey__perfetto_records(struct marey__export *x, const struct marey__payload *payload,
                             uint32_t from);
/* The arrow between a launch and its work; one end of a flow. */
void marey__perfetto_arrow(const struct marey__export *x, struct marey__buf *buf,
                           uint64_t correlation);
void marey__perfetto_flow_end(struct marey__export *x, const uint64_t *record);

/* An iteration, epoch or phase, on a track of its kind. */
/* Slices in which findings of the diagnosis were seen, a track for each finding. */
void marey__perfetto_findings(struct marey__export *x);
void marey__perfetto_span(struct marey__export *x, const struct marey__span *span);

#endif
