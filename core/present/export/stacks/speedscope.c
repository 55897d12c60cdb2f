/*
 * Ranges as a file for speedscope: one evented profile per thread.
 *
 *   {"$schema":...,"exporter":"marey 0.1.0","name":"train.marey","profiles":[
 *   {"type":"evented","name":"rank 0 train.py, pid 7, main 7","unit":"nanoseconds","startValue":0,"events":[
 *   {"type":"O","frame":0,"at":12},       since the first event of the export, never going back within a thread
 *   {"type":"C","frame":0,"at":34}
 *   ],"endValue":34}
 *   ],"shared":{"frames":[
 *   {"name":"forward","file":"train.py","line":7}
 *   ]}}
 *
 * A GPU stream is also a profile, whose frames are work. Speedscope requires nested frames; work that overlaps
 * other work without nesting is omitted, and the profile's name, which then comes last, has the number.
 *
 * Overlapping ranges of an imported thread are in a separate profile with a corresponding name.
 *
 * A profile is one piece of the file, so the lanes of a process come one after another. Frames are numbered at their
 * first use and written last; only they are kept in memory. Every open frame is closed:
 * by its end, by a gap, or at the end of its lane.
 */
#include "present/export/export_walk.h"

struct frames {
    struct marey__names keys; /* name, file and line as one text, stored in `texts` */
    struct marey__arena texts;
    const struct marey_site_info **sites; /* by frame; borrowed from the recordings */
    size_t cap;
    struct marey__buf key;
    uint32_t n_profiles;
    bool has_events;     /* the current profile */
    uint64_t n_left_out; /* of the current stream */
};

static marey_status no_memory(struct marey__export *x)
{
    return x->status = marey__no_memory();
}

/* ---- frames ---- */

/* The number of a site's frame; sites with equal name, file and line share one. UINT32_MAX on out of memory. */
static uint32_t number_frame(struct frames *frames, const struct marey_site_info *site)
{
    struct marey__names *keys = &frames->keys;
    struct marey__buf *key = &frames->key;
    key->len = 0;
    marey__buf_put(key, site->name, site->name_len);
    marey__buf_put(key, "", 1);
    marey__buf_puts(key, site->file);
    marey__buf_put(key, &site->line, sizeof site->line);
    if (key->failed || !marey__grow(&frames->sites, &frames->cap, keys->n + 1, sizeof *frames->sites))
        return UINT32_MAX;
    const size_t n_before = keys->n;
    const uint32_t number = marey__names_keep(keys, &frames->texts, key->data, key->len);
    if (keys->n > n_before)
        frames->sites[number] = site;
    return number;
}

/* x->sites holds frame numbers plus one; 0: not used yet in this process. */
static inline uint32_t frame_of(struct marey__export *x, uint32_t site)
{
    uint32_t *known = &((uint32_t *)x->sites)[marey__site_slot(x, site)];
    if (MAREY_UNLIKELY(*known == 0)) {
        *known = number_frame(x->own, marey__export_site(x, site)) + 1;
        if (*known == 0) {
            no_memory(x);
            return 0;
        }
    }
    return *known - 1;
}

static void put_frame(struct marey__buf *buf, const struct marey_site_info *site)
{
    const bool has_name = site->name_len != 0;
    marey__json_printf(buf, "{'name':%.*s", has_name ? (int)site->name_len : 9,
                       has_name ? site->name : "(unnamed)");
    if (site->file[0] != '\0')
        marey__json_printf(buf, ",'file':%s", site->file);
    if (site->file[0] != '\0' && site->line != 0)
        marey__json_printf(buf, ",'line':%u", site->line);
    marey__buf_puts(buf, "}");
}

/* ---- profiles ---- */

/* A thread is identified as elsewhere: rank, program, pid, its name, its number. */
static void put_profile_name(struct marey__export *x, const struct marey__export_lane *lane,
                             struct marey__buf *buf)
{
    const struct marey_lane_info *info = lane->stack.info;
    const uint64_t n_left_out = ((const struct frames *)x->own)->n_left_out;
    struct marey__buf name MAREY__FINALLY(marey__buf_fini) = {0};
    marey__export_process_name(x, &name);
    if (!x->has_own_ids)
        marey__buf_printf(&name, ", pid %lld", (long long)x->process->pid);
    if (info->kind == MAREY_LANE_GPU)
        marey__buf_printf(&name, ", GPU %d stream %d", info->device, (int32_t)info->stream);
    else
        marey__buf_printf(&name, ", %s %lld", info->name[0] != '\0' ? info->name : "thread",
                          (long long)info->tid);
    if (lane->first != NULL)
        marey__buf_puts(&name, " (overlapping)");
    if (n_left_out != 0)
        marey__buf_printf(&name, " (%llu overlapping left out)", (unsigned long long)n_left_out);
    buf->failed |= name.failed;
    marey__json_put(buf, name.data, name.len);
}

static void open_profile(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns)
{
    struct frames *frames = x->own;
    struct marey__buf buf = {0};
    lane->own = marey__alloc(1); /* marks the profile as open */
    if (lane->own == NULL) {
        no_memory(x);
        return;
    }
    frames->has_events = false;
    frames->n_left_out = 0;
    marey__buf_printf(&buf, "%s\n{\"type\":\"evented\"", frames->n_profiles++ == 0 ? "" : ",");
    if (lane->stack.info->kind == MAREY_LANE_THREAD) {
        marey__buf_puts(&buf, ",\"name\":");
        put_profile_name(x, lane, &buf);
    }
    marey__buf_printf(&buf, ",\"unit\":\"nanoseconds\",\"startValue\":%llu,\"events\":[",
                      (unsigned long long)(ns - x->origin_ns));
    marey__export_put_last(x, &buf);
}

static inline void put_event(struct marey__export *x, char type, uint32_t site, uint64_t ns)
{
    static const char open[] = "\n{\"type\":\"O\",\"frame\":", at[] = ",\"at\":";
    struct frames *frames = x->own;
    const uint32_t frame = frame_of(x, site);
    char *p = marey__out_room(&x->out);
    *p = ',';
    p += frames->has_events;
    frames->has_events = true;
    memcpy(p, open, sizeof open - 1);
    p[10] = type;
    p = marey__u64_text(p + sizeof open - 1, frame);
    memcpy(p, at, sizeof at - 1);
    p = marey__u64_text(p + sizeof at - 1, ns - x->origin_ns);
    *p++ = '}';
    x->out.p = p;
}

/* End work up to `until_ns`; for open work, `start_ns` is its end. */
static void end_work(struct marey__export *x, struct marey__export_lane *lane, uint64_t until_ns)
{
    while (lane->stack.n_open > 0 && lane->stack.open[lane->stack.n_open - 1].start_ns <= until_ns) {
        const struct marey__frame *work = &lane->stack.open[--lane->stack.n_open];
        put_event(x, 'C', work->site, work->start_ns);
    }
}

static void on_lane_done(struct marey__export *x, struct marey__export_lane *lane)
{
    if (lane->own == NULL)
        return;
    if (lane->stack.info->kind == MAREY_LANE_GPU)
        end_work(x, lane, UINT64_MAX);
    while (lane->stack.n_open > 0) {
        const uint32_t site = lane->stack.open[--lane->stack.n_open].site;
        if (!marey__is_skipped(x, site))
            put_event(x, 'C', site, lane->stack.last_ns);
    }
    struct marey__buf buf = {0};
    marey__buf_printf(&buf, "\n],\"endValue\":%llu",
                      (unsigned long long)(lane->stack.last_ns - x->origin_ns));
    if (lane->stack.info->kind == MAREY_LANE_GPU) {
        marey__buf_puts(&buf, ",\"name\":");
        put_profile_name(x, lane, &buf);
    }
    marey__buf_puts(&buf, "}");
    marey__export_put_last(x, &buf);
}

/* ---- events ---- */

static inline void on_begin(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                            uint32_t site, const struct marey__payload *payload)
{
    (void)payload;
    if (MAREY_UNLIKELY(lane->own == NULL))
        open_profile(x, lane, ns);
    put_event(x, 'O', site, ns);
}

static inline void on_end(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                          const struct marey__frame *range, bool is_cut)
{
    (void)lane, (void)is_cut;
    put_event(x, 'C', range->site, ns);
}

/* Only ranges have a place in a stack. */
static const struct marey__walker walker = {.begin = on_begin, .end = on_end};

static marey_status on_batch(struct marey__export *x, struct marey__export_lane *lane,
                             const struct marey_batch *batch)
{
    return marey__walk(x, lane, batch, &walker);
}

/* Of work that begins together, the longer comes first, so that nested work comes after it. */
static void on_work(struct marey__export *x, struct marey__export_lane *lane,
                    const struct marey__stream_work *work)
{
    const uint64_t end_ns = work->ns + work->duration_ns;
    if (lane->own == NULL)
        open_profile(x, lane, work->ns);
    end_work(x, lane, work->ns);
    if (lane->stack.n_open > 0 && lane->stack.open[lane->stack.n_open - 1].start_ns < end_ns) {
        ((struct frames *)x->own)->n_left_out++;
        return;
    }
    if (!marey__export_lane_has_room(x, lane))
        return;
    put_event(x, 'O', work->site, work->ns);
    lane->stack.open[lane->stack.n_open++] =
        (struct marey__frame){.start_ns = end_ns, .site = work->site};
}

/* ---- the file ---- */

static void on_start(struct marey__export *x)
{
    struct marey__buf buf = {0};
    marey__buf_printf(&buf,
                      "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
                      "\"exporter\":\"marey %s\",\"profiles\":[",
                      marey_version());
    marey__export_put_last(x, &buf);
}

static marey_status on_process(struct marey__export *x)
{
    x->sites = marey__calloc((size_t)x->process->n_sites + 1, sizeof(uint32_t));
    return x->sites == NULL ? no_memory(x) : x->status;
}

static void on_finish(struct marey__export *x)
{
    const struct frames *frames = x->own;
    if (frames->n_profiles == 0) /* speedscope requires at least one profile */
        marey__out_puts(&x->out, "\n{\"type\":\"evented\",\"name\":\"no ranges\",\"unit\":"
                                 "\"nanoseconds\",\"startValue\":0,\"events\":[],\"endValue\":0}");
    marey__out_puts(&x->out, "\n],\"shared\":{\"frames\":[");
    for (size_t i = 0; i < frames->keys.n; i++) {
        struct marey__buf buf = {0};
        marey__buf_puts(&buf, i == 0 ? "\n" : ",\n");
        put_frame(&buf, frames->sites[i]);
        marey__export_put_last(x, &buf);
    }
    marey__out_puts(&x->out, "\n]}}\n");
}

static void on_close(struct marey__export *x)
{
    struct frames *frames = x->own;
    marey__names_fini(&frames->keys);
    marey__arena_fini(&frames->texts);
    marey__free(frames->sites);
    marey__buf_fini(&frames->key);
}

const struct marey__export_format marey__export_speedscope = {
    .info =
        {
            .name = "speedscope",
            .extensions = ".speedscope.json",
            .brief = "JSON for speedscope.app, a profile per thread",
            .details = "Ranges only. A range without an end is closed at the last event of its "
                       "thread. Reads the log of "
                       "a process once for each of its threads. Time of ranges that a filter "
                       "removes counts as time of "
                       "the range around them.",
            .next = "open it at https://www.speedscope.app; it stays in your browser",
            .takes = MAREY_EXPORT_FILTER,
        },
    .own_size = sizeof(struct frames),
    .start = on_start,
    .process = on_process,
    .batch = on_batch,
    .finish = on_finish,
    .close = on_close,
    .lane_done = on_lane_done,
    .work = on_work,
};
