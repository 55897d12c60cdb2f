/*
 * Packets before the events of a Perfetto trace: the clocks, processes, threads and counters, and the interned names
 * used by events.
 */
#include "present/export/perfetto/internal.h"

/* Sequence of packets without a lane; lanes count from 2. */
#define MAIN_SEQUENCE 1u

/* The clock of the trace's times. */
static uint32_t trace_clock(const struct marey__export *x)
{
    return x->is_wall_clock ? CLOCK_BUILTIN_REALTIME : CLOCK_BUILTIN_MONOTONIC;
}

static size_t open_packet(struct marey__export *x, uint32_t sequence_id)
{
    x->texts.len = 0;
    const size_t opened = pb_open(&x->texts, TRACE_PACKET);
    pb_uint(&x->texts, PACKET_SEQUENCE_ID, sequence_id);
    return opened;
}

struct marey__perfetto_message marey__perfetto_open(struct marey__export *x, uint32_t sequence_id,
                                                    uint32_t field)
{
    const size_t packet = open_packet(x, sequence_id);
    return (struct marey__perfetto_message){packet, pb_open(&x->texts, field)};
}

struct marey__perfetto_message marey__perfetto_open_at(struct marey__export *x,
                                                       const struct sequence *sequence, uint64_t ns,
                                                       uint32_t field)
{
    const size_t packet = open_packet(x, sequence != NULL ? sequence->id : MAIN_SEQUENCE);
    if (sequence != NULL)
        pb_uint(&x->texts, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
    if (ns != MAREY__PERFETTO_NO_TIME) {
        pb_uint(&x->texts, PACKET_TIMESTAMP, ns);
        pb_uint(&x->texts, PACKET_CLOCK_ID, trace_clock(x));
    }
    return (struct marey__perfetto_message){packet, pb_open(&x->texts, field)};
}

struct marey__perfetto_message marey__perfetto_open_event(struct marey__export *x,
                                                          struct marey__export_lane *lane,
                                                          uint64_t ns, uint32_t type)
{
    struct sequence *sequence = lane->own;
    const size_t packet = open_packet(x, sequence->id);
    pb_uint(&x->texts, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
    pb_uint(&x->texts, PACKET_TIMESTAMP, ns - sequence->clock_ns);
    sequence->clock_ns = ns;
    const size_t event = pb_open(&x->texts, PACKET_TRACK_EVENT);
    pb_uint(&x->texts, EVENT_TYPE, type);
    return (struct marey__perfetto_message){packet, event};
}

void marey__perfetto_close(struct marey__export *x, struct marey__perfetto_message open)
{
    pb_close(&x->texts, open.message);
    pb_close(&x->texts, open.packet);
    marey__export_put(x, &x->texts);
}

/* ---- clocks ---- */

static void put_clock(struct marey__buf *buf, uint32_t clock_id, uint64_t ns, bool is_incremental)
{
    const size_t clock = pb_open(buf, SNAPSHOT_CLOCKS);
    pb_uint(buf, CLOCK_ID, clock_id);
    pb_uint(buf, CLOCK_TIMESTAMP, ns);
    if (is_incremental)
        pb_uint(buf, CLOCK_IS_INCREMENTAL, 1);
    pb_close(buf, clock);
}

/* Times use one clock, which this packet makes the trace's clock; also the wall clock if it is another. */
static void put_trace_clock(struct marey__export *x)
{
    const struct marey__perfetto_message snapshot =
        marey__perfetto_open(x, MAIN_SEQUENCE, PACKET_CLOCK_SNAPSHOT);
    put_clock(&x->texts, trace_clock(x), x->origin_ns, false);
    if (!x->is_wall_clock && x->origin_unix_ns > 0)
        put_clock(&x->texts, CLOCK_BUILTIN_REALTIME, (uint64_t)x->origin_unix_ns, false);
    pb_uint(&x->texts, SNAPSHOT_PRIMARY, trace_clock(x));
    marey__perfetto_close(x, snapshot);
}

void marey__perfetto_start(struct marey__export *x)
{
    put_trace_clock(x);
    /* The root track: processes in the order of our numbers, which is by rank. */
    const struct marey__perfetto_message root =
        marey__perfetto_open(x, MAIN_SEQUENCE, PACKET_TRACK_DESCRIPTOR);
    pb_uint(&x->texts, TRACK_UUID, 0);
    pb_uint(&x->texts, TRACK_PROCESS_ORDERING, ORDERING_EXPLICIT);
    marey__perfetto_close(x, root);
}

/* ---- processes and their sites ---- */

static void put_process_track(struct marey__export *x)
{
    struct marey__buf *buf = &x->texts;
    const struct marey__perfetto_message track =
        marey__perfetto_open(x, MAIN_SEQUENCE, PACKET_TRACK_DESCRIPTOR);
    pb_uint(buf, TRACK_UUID, process_uuid(x));
    pb_uint(buf, TRACK_ORDER_RANK, x->process_number);
    const size_t process = pb_open(buf, TRACK_PROCESS);
    pb_uint(buf, PROCESS_PID, (uint64_t)x->pid);
    pb_text(buf, PROCESS_COMMAND_LINE, x->process->command, strlen(x->process->command));
    pb_uint(buf, PROCESS_SORT_INDEX, x->process_number);
    const size_t name = pb_open(buf, PROCESS_NAME);
    marey__export_process_name(x, buf);
    pb_close(buf, name);
    pb_text(buf, PROCESS_LABELS, x->process->host, strlen(x->process->host));
    pb_close(buf, process);
    marey__perfetto_close(x, track);
}

/*
 * Interned numbers are the site's, so that no table is needed; slot 0 uses a number that no site has, because 0 means
 * "none".
 */
uint32_t marey__perfetto_iid(uint32_t slot)
{
    return slot != 0 ? slot : 1u << 20;
}

static void make_begin(struct site_bytes *bytes, const struct marey_site_info *site, uint32_t slot)
{
    uint8_t *p = bytes->begin + 2;
    *p++ = EVENT_TYPE << 3 | PB_VARINT;
    *p++ = TYPE_BEGIN;
    *p++ = EVENT_NAME_IID << 3 | PB_VARINT;
    p = pb_varint_at(p, marey__perfetto_iid(slot));
    if (site->category[0] != '\0') {
        *p++ = EVENT_CATEGORY_IIDS << 3 | PB_VARINT;
        p = pb_varint_at(p, marey__perfetto_iid(slot));
    }
    if (site->file[0] != '\0') {
        p = pb_varint_at(p, EVENT_LOCATION_IID << 3 | PB_VARINT);
        p = pb_varint_at(p, marey__perfetto_iid(slot));
    }
    bytes->begin[0] = PACKET_TRACK_EVENT << 3 | PB_BYTES;
    bytes->begin[1] = (uint8_t)(p - bytes->begin - 2);
    bytes->begin_len = (uint8_t)(p - bytes->begin);
    MAREY_ASSERT(bytes->begin_len <= BEGIN_ROOM);
}

marey_status marey__perfetto_process(struct marey__export *x)
{
    const uint32_t n = x->process->n_sites;
    struct site_bytes *sites = marey__calloc((size_t)n + 1, sizeof *sites);
    MAREY__TRY_MEMORY(sites != NULL);
    for (uint32_t slot = 0; slot <= n; slot++)
        make_begin(&sites[slot], marey__export_site(x, slot), slot);
    x->sites = sites;
    put_process_track(x);
    if (x->diagnosis != NULL)
        marey__perfetto_findings(x);
    return x->status;
}

/* ---- lanes ---- */

/* A thread id may be used by only one track, which is the parent of its further lanes. */
static void put_thread_track(struct marey__export *x, const struct marey__export_lane *lane)
{
    struct marey__buf *buf = &x->texts;
    const struct marey__export_lane *first = lane->first;
    const char *name = lane->stack.info->name;
    pb_uint(buf, TRACK_UUID, lane_uuid(x, lane));
    if (first != NULL) {
        pb_uint(buf, TRACK_PARENT_UUID, lane_uuid(x, first));
        pb_text(buf, TRACK_NAME, name[0] != '\0' ? name : "overlapping",
                name[0] != '\0' ? strlen(name) : 11);
        return;
    }
    pb_uint(buf, TRACK_PARENT_UUID, process_uuid(x));
    const size_t thread = pb_open(buf, TRACK_THREAD);
    pb_uint(buf, THREAD_PID, (uint64_t)x->pid);
    pb_uint(buf, THREAD_TID, (uint64_t)marey__export_tid(x, lane));
    pb_text(buf, THREAD_NAME, name, strlen(name));
    pb_close(buf, thread);
}

static void put_sequence_start(struct marey__export *x, struct marey__export_lane *lane,
                               uint32_t sequence_id)
{
    struct marey__buf *buf = &x->texts;
    const size_t packet = open_packet(x, sequence_id);
    pb_uint(buf, PACKET_SEQUENCE_FLAGS, SEQUENCE_CLEARED);
    pb_uint(buf, PACKET_FIRST_ON_SEQUENCE, 1);

    const size_t defaults = pb_open(buf, PACKET_DEFAULTS);
    pb_uint(buf, DEFAULTS_CLOCK_ID, CLOCK_OF_SEQUENCE);
    const size_t event = pb_open(buf, DEFAULTS_TRACK_EVENT);
    pb_uint(buf, EVENT_TRACK_UUID, lane_uuid(x, lane));
    pb_close(buf, event);
    pb_close(buf, defaults);

    const size_t track = pb_open(buf, PACKET_TRACK_DESCRIPTOR);
    if (lane->stack.info->kind == MAREY_LANE_GPU)
        marey__perfetto_stream_track(x, lane, 0);
    else
        put_thread_track(x, lane);
    marey__perfetto_close(x, (struct marey__perfetto_message){packet, track});
}

/*
 * The sequence's clock counts deltas from the origin. All sequences have the same origin on the trace's clock, because
 * viewers reject snapshots in which that clock goes back.
 */
static void put_sequence_clock(struct marey__export *x, uint32_t sequence_id)
{
    const struct marey__perfetto_message snapshot =
        marey__perfetto_open(x, sequence_id, PACKET_CLOCK_SNAPSHOT);
    put_clock(&x->texts, trace_clock(x), x->origin_ns, false);
    put_clock(&x->texts, CLOCK_OF_SEQUENCE, x->origin_ns, true);
    marey__perfetto_close(x, snapshot);
}

bool marey__perfetto_lane(struct marey__export *x, struct marey__export_lane *lane)
{
    struct sequence *sequence = marey__calloc(1, sizeof *sequence);
    if (sequence == NULL) {
        x->status = marey__no_memory();
        return false;
    }
    sequence->id = MAIN_SEQUENCE + 1 + x->n_lanes_before + lane->stack.info->lane;
    sequence->clock_ns = x->origin_ns;
    uint8_t *p = sequence->head;
    *p++ = PACKET_SEQUENCE_ID << 3 | PB_VARINT;
    p = pb_varint_at(p, sequence->id);
    *p++ = PACKET_SEQUENCE_FLAGS << 3 | PB_VARINT;
    *p++ = SEQUENCE_NEEDS_STATE;
    sequence->head_len = (uint8_t)(p - sequence->head);
    lane->own = sequence;
    if (lane->stack.info->kind == MAREY_LANE_GPU)
        marey__perfetto_device(x, lane->stack.info->device);
    put_sequence_start(x, lane, sequence->id);
    put_sequence_clock(x, sequence->id);
    return true;
}

/* ---- interned names ---- */

static bool make_known(struct marey__export *x, struct marey__export_lane *lane, uint32_t slot)
{
    struct sequence *sequence = lane->own;
    if (slot >= sequence->n_known) {
        /* Doubling, up to the number of sites. */
        const uint32_t want =
            MAREY__MAX(slot + 1, MAREY__MIN(2 * sequence->n_known + 256, x->process->n_sites + 1));
        const size_t n_old = (sequence->n_known + 63) / 64, n_new = (want + 63) / 64;
        sequence = marey__realloc(sequence, sizeof *sequence + n_new * sizeof sequence->known[0]);
        if (sequence == NULL) {
            x->status = marey__no_memory();
            return false;
        }
        memset(sequence->known + n_old, 0, (n_new - n_old) * sizeof sequence->known[0]);
        sequence->n_known = want;
        lane->own = sequence;
    }
    sequence->known[slot / 64] |= UINT64_C(1) << (slot % 64);
    return true;
}

static void put_interned(struct marey__buf *buf, uint32_t field, uint32_t iid, const char *text,
                         size_t len, uint32_t line)
{
    const size_t entry = pb_open(buf, field);
    pb_uint(buf, INTERNED_IID, iid);
    pb_text(buf, INTERNED_TEXT, text, len);
    if (line != 0)
        pb_uint(buf, LOCATION_LINE, line);
    pb_close(buf, entry);
}

void marey__perfetto_intern(struct marey__export *x, struct marey__export_lane *lane, uint32_t slot)
{
    const struct marey_site_info *site = marey__export_site(x, slot);
    const uint32_t iid = marey__perfetto_iid(slot);
    if (!make_known(x, lane, slot))
        return;

    struct marey__buf *buf = &x->texts;
    const struct marey__perfetto_message interned =
        marey__perfetto_open_at(x, lane->own, MAREY__PERFETTO_NO_TIME, PACKET_INTERNED_DATA);
    put_interned(buf, INTERNED_NAMES, iid, site->name, site->name_len, 0);
    if (site->category[0] != '\0')
        put_interned(buf, INTERNED_CATEGORIES, iid, site->category, strlen(site->category), 0);
    if (site->file[0] != '\0')
        put_interned(buf, INTERNED_LOCATIONS, iid, site->file, strlen(site->file), site->line);
    marey__perfetto_close(x, interned);
}

/* ---- tracks of counters and async ranges ---- */

/* FNV-1a, then mixed: the top bit distinguishes these from numbers of processes and lanes. */
static uint64_t mix_uuid(const struct marey__export *x, uint64_t hash)
{
    hash ^= process_uuid(x);
    hash = (hash ^ hash >> 31) * 0x9e3779b97f4a7c15u;
    return (hash ^ hash >> 29) | UINT64_C(1) << 63;
}

static uint64_t hash_bytes(const char *bytes, size_t len)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (uint8_t)bytes[i]) * 0x100000001b3u;
    return hash;
}

uint64_t marey__perfetto_async_uuid(const struct marey__export *x, uint64_t handle)
{
    return mix_uuid(x, hash_bytes((const char *)&handle, sizeof handle));
}

uint64_t marey__perfetto_flow_id(const struct marey__export *x, const struct marey_site_info *site,
                                 uint64_t id)
{
    const uint64_t name = site != NULL ? hash_bytes(site->name, site->name_len) : 0;
    return mix_uuid(x, name ^ hash_bytes((const char *)&id, sizeof id));
}

void marey__perfetto_child_track(struct marey__export *x, uint64_t uuid, const char *name,
                                 size_t len, bool is_counter)
{
    struct marey__buf *buf = &x->texts;
    const struct marey__perfetto_message track =
        marey__perfetto_open(x, MAIN_SEQUENCE, PACKET_TRACK_DESCRIPTOR);
    pb_uint(buf, TRACK_UUID, uuid);
    pb_uint(buf, TRACK_PARENT_UUID, process_uuid(x));
    pb_text(buf, TRACK_NAME, name, len);
    if (is_counter)
        pb_close(buf, pb_open(buf, TRACK_COUNTER));
    marey__perfetto_close(x, track);
}

uint64_t marey__perfetto_counter(struct marey__export *x, uint32_t slot)
{
    struct site_bytes *bytes = &((struct site_bytes *)x->sites)[slot];
    if (bytes->counter_uuid == 0) {
        /* By name, so that two call sites of one counter share its track. */
        const struct marey_site_info *site = marey__export_site(x, slot);
        bytes->counter_uuid = mix_uuid(x, ~hash_bytes(site->name, site->name_len));
        marey__perfetto_child_track(x, bytes->counter_uuid, site->name, site->name_len, true);
    }
    return bytes->counter_uuid;
}

void marey__perfetto_async(struct marey__export *x, uint32_t slot, uint64_t uuid)
{
    const struct marey_site_info *site = marey__export_site(x, slot);
    marey__perfetto_child_track(x, uuid, site->name, site->name_len, false);
}

/* ---- iterations, epochs, phases ---- */

/* Distinct from those of names and handles by the process bits. */
static uint64_t span_uuid(const struct marey__export *x, enum marey__span_kind kind)
{
    return process_uuid(x) | UINT64_C(1) << 62 | (uint64_t)kind;
}

/*
 * An edge of the span. It may be before the last event of the lanes, and deltas cannot go back, so it has a time on the
 * trace's clock.
 */
static void put_edge(struct marey__export *x, const struct marey__span *span, uint64_t ns,
                     uint32_t type)
{
    struct marey__buf *buf = &x->texts, name = {0};
    const struct marey__perfetto_message event =
        marey__perfetto_open_at(x, NULL, ns, PACKET_TRACK_EVENT);
    pb_uint(buf, EVENT_TYPE, type);
    pb_uint(buf, EVENT_TRACK_UUID, span_uuid(x, span->kind));
    if (type == TYPE_BEGIN) {
        marey__span_name(x, &name, span);
        pb_text(buf, EVENT_NAME, name.data, name.len);
        marey__buf_end(&name, buf);
    }
    if (type == TYPE_BEGIN && (span->flags & MAREY__ITERATION_WARMUP) != 0)
        marey__perfetto_annotate_true(buf, "warmup");
    if (type == TYPE_BEGIN && span->samples > 0) {
        struct marey__payload samples = {.type = MAREY_PAYLOAD_F64};
        memcpy(&samples.bits, &span->samples, sizeof samples.bits);
        marey__perfetto_annotate(buf, "samples", &samples);
    }
    marey__perfetto_close(x, event);
}

void marey__perfetto_span(struct marey__export *x, const struct marey__span *span)
{
    const char *track = marey__span_track(span->kind);
    if (marey__span_is_first(x, span->kind))
        marey__perfetto_child_track(x, span_uuid(x, span->kind), track, strlen(track), false);
    put_edge(x, span, span->begin_ns, TYPE_BEGIN);
    if (!span->is_open)
        put_edge(x, span, span->end_ns, TYPE_END);
}

/* ---- findings of the diagnosis ---- */

/* Distinct from those of spans by the next bit. */
static uint64_t finding_uuid(const struct marey__export *x, size_t finding)
{
    return process_uuid(x) | UINT64_C(3) << 61 | finding;
}

static void put_finding_edge(struct marey__export *x, size_t finding,
                             const struct marey_cell *claim, uint64_t ns)
{
    const struct marey__perfetto_message event =
        marey__perfetto_open_at(x, NULL, ns + (uint64_t)x->shift_ns, PACKET_TRACK_EVENT);
    pb_uint(&x->texts, EVENT_TYPE, claim != NULL ? TYPE_BEGIN : TYPE_END);
    pb_uint(&x->texts, EVENT_TRACK_UUID, finding_uuid(x, finding));
    if (claim != NULL)
        pb_text(&x->texts, EVENT_NAME, claim->as.text, claim->len);
    marey__perfetto_close(x, event);
}

static bool is_of_process(const struct marey__export *x, const marey_table *evidence, size_t row)
{
    const uint64_t from_ns = marey__cell_of(evidence, row, "from_ns").as.u64;
    return marey__cell_of(evidence, row, "pid").as.i64 == x->process->pid &&
           x->process->first_ns <= from_ns && from_ns <= x->process->last_ns &&
           strcmp(x->process->source, MAREY__SAMPLES_SOURCE) != 0;
}

void marey__perfetto_findings(struct marey__export *x)
{
    const marey_table *const findings = marey_report_table(x->diagnosis, "findings"),
                             *const evidence = marey_report_table(x->diagnosis, "evidence");
    size_t last = SIZE_MAX;
    for (size_t row = 0; row < marey_table_n_rows(evidence); row++) {
        const char *const id = marey__cell_of(evidence, row, "finding").as.text;
        size_t f = 0;
        while (strcmp(marey__cell_of(findings, f, "id").as.text, id) != 0)
            f++;
        if (!is_of_process(x, evidence, row))
            continue;
        if (f != last) {
            char name[64];
            snprintf(name, sizeof name, "finding: %s", id);
            marey__perfetto_child_track(x, finding_uuid(x, f), name, strlen(name), false);
        }
        last = f;
        const struct marey_cell claim = marey__cell_of(findings, f, "claim");
        put_finding_edge(x, f, &claim, marey__cell_of(evidence, row, "from_ns").as.u64);
        /* 1 ns earlier, so that no slice ends where the next one begins: rows are not in the order of time. */
        put_finding_edge(x, f, NULL, marey__cell_of(evidence, row, "to_ns").as.u64 - 1);
    }
}
