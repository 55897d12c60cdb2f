/*
 * Events as Chrome JSON, for viewers without a better format: one object per range, about 90 bytes.
 *
 *   ,\n{"ph":"X","pid":7,"tid":8,"ts":    the same for all events of a lane except for the letter
 *   12.345,"dur":0.678                    microseconds since the first event of the export, so that a
 *                                         reader's double keeps every nanosecond
 *   ,"name":"forward","cat":"model"}      the same for all events of a site
 *
 * Each object starts with a comma, except for the first one, a process's name.
 */
#include "present/export/chrome_export.h"

/* Tails up to this size are copied by a fixed number of moves; x->texts is padded by as many bytes. */
#define TAIL_FAST 64

static_assert(HEAD_ROOM + TAIL_FAST + 64 <= MAREY__OUT_EVENT, "a plain range fits a reservation");

/*
 * ---- colors ----
 *
 * Chrome's format has only named colors reserved by its viewer. The nearest one
 * is used.
 */

/* As drawn by chrome://tracing; a selection of distinct ones. */
static const struct {
    const char *name;
    uint8_t red, green, blue;
} reserved[] = {
    {"black", 0, 0, 0},
    {"generic_work", 125, 125, 125},
    {"grey", 221, 221, 221},
    {"white", 255, 255, 255},
    {"terrible", 180, 0, 0},
    {"rail_animation", 244, 74, 63},
    {"cq_build_failed", 238, 136, 136},
    {"thread_state_iowait", 255, 140, 0},
    {"bad", 180, 125, 0},
    {"yellow", 255, 255, 0},
    {"cq_build_running", 255, 255, 119},
    {"olive", 100, 100, 0},
    {"good", 0, 125, 0},
    {"rail_load", 13, 168, 97},
    {"cq_build_passed", 153, 238, 102},
    {"thread_state_running", 126, 200, 148},
    {"background_memory_dump", 0, 180, 180},
    {"vsync_highlight_color", 0, 0, 255},
    {"light_memory_dump", 0, 0, 180},
    {"rail_response", 67, 135, 253},
    {"thread_state_runnable", 133, 160, 210},
    {"detailed_memory_dump", 180, 0, 180},
    {"thread_state_uninterruptible", 182, 125, 143},
};

/* Squared distance, weighted by visual perception: green counts most. */
static int32_t distance(size_t i, uint32_t argb)
{
    const int32_t red = (int32_t)(argb >> 16 & 0xff) - reserved[i].red;
    const int32_t green = (int32_t)(argb >> 8 & 0xff) - reserved[i].green;
    const int32_t blue = (int32_t)(argb & 0xff) - reserved[i].blue;
    return 2 * red * red + 4 * green * green + 3 * blue * blue;
}

const char *marey__chrome_color(uint32_t argb)
{
    size_t nearest = 0;
    for (size_t i = 1; i < MAREY__COUNT_OF(reserved); i++) {
        if (distance(i, argb) < distance(nearest, argb))
            nearest = i;
    }
    return reserved[nearest].name;
}

/* ---- objects with names ---- */

static void on_start(struct marey__export *x)
{
    struct marey__buf buf = {0};
    marey__chrome_survey(x);
    marey__buf_printf(&buf,
                      "{\"displayTimeUnit\":\"ns\",\n\"otherData\":{\"tool\":\"marey "
                      "%s\",\"origin_unix_ns\":\"%lld\","
                      "\"origin_%s_ns\":\"%llu\"},\n",
                      marey_version(), (long long)x->origin_unix_ns,
                      x->is_wall_clock ? "realtime" : "monotonic", (unsigned long long)x->origin_ns);
    if (marey__chrome_of(x)->is_kineto)
        marey__chrome_kineto_head(x, &buf);
    marey__buf_puts(&buf, "\"traceEvents\":[");
    marey__export_put_last(x, &buf);
}

void marey__chrome_finish(struct marey__export *x)
{
    marey__out_puts(&x->out, "\n]}\n");
}

void marey__chrome_meta(struct marey__buf *buf, int64_t pid, int64_t tid, const char *what,
                        const char *text, size_t len)
{
    const size_t underscore = strcspn(what, "_"); /* the argument of thread_name is "name" */
    marey__buf_puts(buf, buf->len != 0 ? "," : "");
    marey__json_printf(
        buf, "\n{'ph':'M','pid':%" PRId64 ",'tid':%" PRId64 ",'name':%s,'args':{%s:%.*s}}", pid,
        tid, what, what + underscore + 1, (int)len, text);
}

void marey__chrome_meta_index(struct marey__buf *buf, int64_t pid, int64_t tid, const char *what,
                              int64_t index)
{
    marey__buf_printf(buf,
                      "%s\n{\"ph\":\"M\",\"pid\":%lld,\"tid\":%lld,\"name\":\"%s_sort_index\","
                      "\"args\":{\"sort_index\":%lld}}",
                      buf->len != 0 ? "," : "", (long long)pid, (long long)tid, what,
                      (long long)index);
}

/* An imported trace keeps its name, unless there are several processes. */
static void put_process_name(const struct marey__export *x, struct marey__buf *name)
{
    if (x->process->source[0] != '\0' && marey__export_nth(x, 1) == NULL)
        marey__buf_puts(name, x->process->command);
    else
        marey__export_process_name(x, name);
}

static void put_process_meta(struct marey__export *x)
{
    struct marey__buf buf = {0}, name = {0};
    if (x->process_number != 0)
        marey__out_puts(&x->out, ",");
    put_process_name(x, &name);
    marey__chrome_meta(&buf, x->pid, 0, "process_name", name.data, name.len);
    marey__chrome_meta(&buf, x->pid, 0, "process_labels", x->process->host, strlen(x->process->host));
    marey__chrome_meta_index(&buf, x->pid, 0, "process", x->process_number);
    marey__buf_fini(&name);
    marey__export_put_last(x, &buf);
}

static void put_lane_meta(struct marey__export *x, const struct marey__export_lane *lane)
{
    const struct marey_lane_info *const info = lane->stack.info;
    const int64_t tid = marey__export_tid(x, lane);
    struct marey__buf buf = {0};
    marey__out_puts(&x->out, ",");
    if (info->name[0] != '\0') /* Perfetto treats an empty name as an error */
        marey__chrome_meta(&buf, x->pid, tid, "thread_name", info->name, strlen(info->name));
    marey__chrome_meta_index(&buf, x->pid, tid, "thread", info->lane);
    marey__export_put_last(x, &buf);
}

/* ,"name":"forward","cat":"model"} */
static void put_site_tail(struct marey__buf *buf, const struct marey_site_info *site)
{
    marey__json_printf(buf, ",'name':%.*s", (int)site->name_len, site->name);
    if (site->category[0] != '\0')
        marey__json_printf(buf, ",'cat':%s", site->category);
    if (site->color != 0)
        marey__json_printf(buf, ",'cname':%s", marey__chrome_color(site->color));
    marey__buf_puts(buf, "}");
}

static marey_status on_process(struct marey__export *x)
{
    MAREY_TRY(marey__export_texts(x, put_site_tail, TAIL_FAST));
    put_process_meta(x);
    return x->status;
}

bool marey__chrome_lane(struct marey__export *x, struct marey__export_lane *lane, int64_t pid,
                        int64_t tid)
{
    struct lane_head *head = marey__alloc(sizeof *head);
    if (head == NULL) {
        x->status = marey__no_memory();
        return false;
    }
    head->len =
        (uint32_t)snprintf(head->text, HEAD_ROOM,
                           HEAD_START "%lld,\"tid\":%lld,\"ts\":", (long long)pid, (long long)tid);
    lane->own = head;
    return true;
}

static bool open_lane(struct marey__export *x, struct marey__export_lane *lane)
{
    if (!marey__chrome_lane(x, lane, x->pid, marey__export_tid(x, lane)))
        return false;
    put_lane_meta(x, lane);
    return true;
}

/* ---- objects ---- */

void marey__chrome_open_tail(struct marey__export *x, uint32_t site)
{
    const struct marey__site_text tail = marey__site_text(x, site);
    marey__out_put(&x->out, x->texts.data + tail.at, tail.len - 1);
}

static inline void put_tail(struct marey__export *x, char *p, uint32_t site)
{
    const struct marey__site_text tail = marey__site_text(x, site);
    x->out.p = p;
    if (MAREY_LIKELY(tail.len <= TAIL_FAST)) {
        memcpy(p, x->texts.data + tail.at, TAIL_FAST);
        x->out.p += tail.len;
    } else {
        marey__out_put(&x->out, x->texts.data + tail.at, tail.len);
    }
}

/* The rest of an object written up to `p`: the site's tail, and other known data. */
static void put_with_args(struct marey__export *x, char *p, uint32_t site,
                          const struct marey__payload *payload, bool is_cut)
{
    x->out.p = p;
    marey__chrome_open_tail(x, site);
    marey__chrome_args(x, payload, is_cut);
    marey__out_puts(&x->out, "}");
}

static void put_event(struct marey__export *x, char *p, uint32_t site,
                      const struct marey__payload *payload)
{
    if (payload == NULL || (payload->type == 0 && payload->repeat == 0 && payload->n_words == 0))
        put_tail(x, p, site);
    else
        put_with_args(x, p, site, payload, false);
}

static void put_range(struct marey__export *x, const struct marey__export_lane *lane,
                      uint64_t start_ns, uint64_t end_ns, uint32_t site,
                      const struct marey__payload *payload, bool is_cut)
{
    char *p = marey__chrome_head(x, lane, start_ns, 'X');
    p = marey__chrome_duration(p, end_ns - start_ns);
    if (is_cut)
        put_with_args(x, p, site, payload, true);
    else
        put_event(x, p, site, payload);
    marey__chrome_launches(x, lane, start_ns, payload);
}

/*
 * ---- ranges with the same begin and the same end ----
 *
 * Ranges are written when they end, inner before outer. Readers derive nesting from times; of two ranges with
 * equal begin and end, the first one is the outer. So such ranges are held back:
 *
 *   lane->held   | struct held | text | records |  innermost first, all with the begin and end of the first
 *
 * Traces in whole microseconds have many of them, our own recordings hardly any.
 */

struct held {
    uint64_t start_ns, end_ns;
    size_t depth;
    size_t previous; /* offset of the previous one; the first has its own offset */
    uint32_t site;
    bool is_cut;
    struct marey__payload payload;
};

static struct held held_at(const struct marey__export_lane *lane, size_t at)
{
    struct held held;
    const char *entry = lane->held.data + at;
    memcpy(&held, entry, offsetof(struct held, payload));
    held.payload = marey__payload_at(entry + offsetof(struct held, payload));
    return held;
}

/* The offset of the last one is stored at the end. */
static size_t last_of(const struct marey__export_lane *lane)
{
    size_t at;
    memcpy(&at, lane->held.data + lane->held.len - sizeof at, sizeof at);
    return at;
}

static void release(struct marey__export *x, struct marey__export_lane *lane)
{
    if (lane->held.len == 0)
        return;
    for (size_t at = last_of(lane);;) {
        const struct held held = held_at(lane, at);
        put_range(x, lane, held.start_ns, held.end_ns, held.site, &held.payload, held.is_cut);
        if (held.previous == at)
            break;
        at = held.previous;
    }
    lane->held.len = 0;
}

static void put_held(struct marey__export *x, struct marey__export_lane *lane, struct held *held)
{
    struct marey__buf *buf = &lane->held;
    held->previous = 0;
    if (buf->len != 0) {
        held->previous = last_of(lane);
        buf->len -= sizeof(size_t);
    }
    const size_t at = buf->len;
    marey__buf_put(buf, held, offsetof(struct held, payload));
    marey__payload_put(buf, &held->payload);
    marey__buf_put(buf, &at, sizeof at);
    if (buf->failed) {
        buf->len = 0;
        x->status = marey__no_memory();
    }
}

/* Whether the held ranges fill the ending range from its begin to its end. */
static bool is_filled(const struct marey__export_lane *lane, uint64_t ns,
                      const struct marey__frame *range)
{
    const struct held inner = held_at(lane, last_of(lane));
    return inner.start_ns == range->start_ns && inner.end_ns == ns &&
           inner.depth == lane->stack.n_open + 1;
}

static void hold(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                 const struct marey__frame *range, bool may_wait, bool is_cut)
{
    if (lane->held.len != 0 && !is_filled(lane, ns, range))
        release(x, lane);
    struct held held = {
        .start_ns = range->start_ns,
        .end_ns = ns,
        .depth = lane->stack.n_open,
        .site = range->site,
        .is_cut = is_cut,
        .payload = marey__open_payload(lane, range),
    };
    put_held(x, lane, &held);
    if (!may_wait)
        release(x, lane);
}

/* ---- events ---- */

/* A range that may end together with the one around it goes to hold(), so that the outer one is written first. */
static inline void on_end(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                          const struct marey__frame *range, bool is_cut)
{
    /* The range around it began at the same time and may end with it. */
    const bool is_tied = lane->stack.n_open > 0 &&
                         lane->stack.open[lane->stack.n_open - 1].start_ns == range->start_ns;
    if (MAREY_UNLIKELY(is_tied || lane->held.len != 0)) {
        hold(x, lane, ns, range, is_tied && !is_cut, is_cut);
        return;
    }
    if (MAREY_LIKELY(range->payload == 0 && !is_cut)) {
        char *p = marey__chrome_head(x, lane, range->start_ns, 'X');
        put_tail(x, marey__chrome_duration(p, ns - range->start_ns), range->site);
        return;
    }
    const struct marey__payload payload = marey__open_payload(lane, range);
    put_range(x, lane, range->start_ns, ns, range->site, &payload, is_cut);
}

static void on_mark(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                    uint32_t site, const struct marey__payload *payload)
{
    char *p = marey__chrome_head(x, lane, ns, 'i');
    memcpy(p, ",\"s\":\"t\"", 8);
    put_event(x, p + 8, site, payload);
}

static void on_counter(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                       uint32_t site, double value)
{
    char number[40];
    x->out.p = marey__chrome_head(x, lane, ns, 'C');
    marey__chrome_open_tail(x, site);
    marey__out_puts(&x->out, ",\"args\":{\"value\":");
    marey__out_put(&x->out, number, (size_t)(marey__chrome_double(number, value) - number));
    marey__out_puts(&x->out, "}}");
}

static void on_async(struct marey__export *x, struct marey__export_lane *lane,
                     const struct marey__async_half *half)
{
    char id[64];
    const int len =
        snprintf(id, sizeof id, ",\"id2\":{\"local\":\"0x%llx\"}", (unsigned long long)half->handle);
    x->out.p = marey__chrome_head(x, lane, half->ns, half->is_begin ? 'b' : 'e');
    marey__out_put(&x->out, id, (size_t)len);
    marey__chrome_open_tail(x, half->name);
    /* Begin and end are also matched by category; sites without one share a default. */
    marey__out_puts(&x->out, marey__export_site(x, half->name)->category[0] != '\0'
                                 ? "}"
                                 : ",\"cat\":\"async\"}");
}

static void on_lost(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                    uint64_t n_events)
{
    x->out.p = marey__chrome_head(x, lane, MAREY__MAX(ns, lane->stack.last_ns), 'i');
    marey__out_puts(&x->out, ",\"s\":\"t\",\"name\":\"marey: events lost\",\"args\":{");
    if (n_events != 0) {
        marey__out_puts(&x->out, "\"count\":");
        marey__out_put_u64(&x->out, n_events);
    }
    marey__out_puts(&x->out, "}}");
}

static const struct marey__walker walker = {
    .end = on_end, .mark = on_mark, .counter = on_counter, .async = on_async, .lost = on_lost};
MAREY__EXPORT_BATCH(open_lane);

/* ---- iterations, epochs, phases: a separate thread for each kind ---- */

/* Above Linux's thread ids. Sorted before other threads. */
static int64_t span_tid(enum marey__span_kind kind)
{
    return (INT64_C(1) << 22) + 1 + (int64_t)kind;
}

static void put_span_thread(struct marey__export *x, enum marey__span_kind kind)
{
    const char *const track = marey__span_track(kind);
    struct marey__buf buf = {0};
    marey__out_puts(&x->out, ",");
    marey__chrome_meta(&buf, x->pid, span_tid(kind), "thread_name", track, strlen(track));
    marey__chrome_meta_index(&buf, x->pid, span_tid(kind), "thread", (int)kind - 3);
    marey__export_put_last(x, &buf);
}

static void put_span_args(struct marey__buf *buf, const struct marey__span *span)
{
    const bool is_warmup = (span->flags & MAREY__ITERATION_WARMUP) != 0;
    if (span->kind == MAREY__SPAN_PHASE)
        return;
    marey__buf_puts(buf, is_warmup ? ",\"args\":{\"warmup\":true" : ",\"args\":{");
    if (span->samples > 0)
        marey__json_printf(buf, is_warmup ? ",'samples':%f" : "'samples':%f", span->samples);
    marey__buf_puts(buf, "}");
}

/*
 * A span that the process never ended is a begin without an end, like a range. The iterations of an imported trace are
 * already ranges.
 */
static void on_span(struct marey__export *x, const struct marey__span *span)
{
    if (x->process->source[0] != '\0')
        return;
    struct marey__buf buf = {0}, name = {0};
    char number[40];
    if (marey__span_is_first(x, span->kind))
        put_span_thread(x, span->kind);
    marey__buf_printf(&buf, ",\n{\"ph\":\"%c\",\"pid\":%lld,\"tid\":%lld,\"ts\":",
                      span->is_open ? 'B' : 'X', (long long)x->pid, (long long)span_tid(span->kind));
    marey__buf_put(&buf, number,
                   (size_t)(marey__put_us(number, span->begin_ns - x->origin_ns) - number));
    if (!span->is_open) {
        marey__buf_puts(&buf, ",\"dur\":");
        marey__buf_put(&buf, number,
                       (size_t)(marey__put_us(number, span->end_ns - span->begin_ns) - number));
    }
    marey__span_name(x, &name, span);
    marey__json_printf(&buf, ",'name':%.*s", (int)name.len, name.data);
    buf.failed |= name.failed;
    put_span_args(&buf, span);
    marey__buf_puts(&buf, "}");
    marey__buf_fini(&name);
    marey__export_put_last(x, &buf);
}

/* A range left open is a begin without an end, which viewers draw to the end of the trace. */
static void put_left_open(struct marey__export *x, const struct marey__export_lane *lane,
                          const struct marey__frame *range, uint32_t depth)
{
    const struct marey__payload payload = marey__open_payload(lane, range);
    (void)depth;
    put_event(x, marey__chrome_head(x, lane, range->start_ns, 'B'), range->site, &payload);
}

static void on_process_done(struct marey__export *x)
{
    for (uint32_t i = 0; i < x->process->n_lanes; i++)
        release(x, &x->lanes[i]);
    marey__walk_left_open(x, put_left_open);
}

void marey__chrome_close(struct marey__export *x)
{
    marey__buf_fini(&marey__chrome_of(x)->text);
    marey__pairs_fini(&marey__chrome_of(x)->gpus);
}

const struct marey__export_format marey__export_chrome = {
    .info =
        {
            .name = "chrome",
            .extensions = ".json",
            .brief = "JSON timeline that many programs read",
            .details =
                "With GPU activity, or of an imported trace, it has the form that Kineto writes.",
            .next = "open it at chrome://tracing or https://ui.perfetto.dev",
            .takes = MAREY_EXPORT_FILTER,
        },
    .is_timeline = true,
    .own_size = sizeof(struct marey__chrome_export),
    .start = on_start,
    .process = on_process,
    .batch = on_batch,
    .process_done = on_process_done,
    .finish = marey__chrome_finish,
    .close = marey__chrome_close,
    .span = on_span,
    .work = marey__chrome_work,
    .flow = marey__chrome_flow,
    .has_samples_beside = true,
};
