/*
 * Events as CSV (RFC 4180), one line per range, mark, counter value and loss; times are integer
 * nanoseconds.
 *
 *   kind,process,rank,pid,tid,thread,name,category,start_ns,duration_ns,depth,value,count,device,stream,correlation,bytes
 *   range,0,3,4711,4711,main,forward,model,8123456789,51234,2,,,,,,
 *   kernel,0,3,4711,,,gemm,kernel,8123459999,41234,,,,0,7,1234,
 *
 * The count is the number of calls that the range represents, if imported from a profile; empty for one. It is 0 if
 * all were counted elsewhere.
 *
 * Iterations, epochs and phases also have lines, without a thread; the value of the first two is their number, and
 * the category of a warm-up iteration is "warmup".
 *
 * A line of GPU work has its kind: kernel, copy, set, annotation, sync. Its correlation is that of the
 * launching range. The value of a range or work without a payload is its arguments, a JSON
 * object. Each end of a flow is a line with the flow's name, its id as the value and the end as the category.
 *
 * Unknown values are empty: the duration of a range left open, the rank of a process without one.
 */
#include "present/export/export_walk.h"

/* ",PROCESS,RANK,PID,TID,THREAD," of a lane, prepared because it is the same on every line. */
struct lane_text {
    uint32_t len;
    char text[];
};

static void on_start(struct marey__export *x)
{
    marey__out_puts(
        &x->out,
        "kind,process,rank,pid,tid,thread,name,category,start_ns,duration_ns,depth,value,count,"
        "device,stream,correlation,bytes\n");
}

/* "NAME,CATEGORY," */
static void put_site_text(struct marey__buf *buf, const struct marey_site_info *site)
{
    marey__csv_put(buf, site->name, site->name_len);
    marey__buf_puts(buf, ",");
    marey__csv_put(buf, site->category, strlen(site->category));
    marey__buf_puts(buf, ",");
}

static marey_status on_process(struct marey__export *x)
{
    return marey__export_texts(x, put_site_text, 0);
}

/* ",PROCESS,RANK,PID," */
static void put_process(const struct marey__export *x, struct marey__buf *buf)
{
    marey__buf_printf(buf, ",%u,", x->process_number);
    if (x->process->rank >= 0)
        marey__buf_printf(buf, "%d", x->process->rank);
    marey__buf_printf(buf, ",%lld,", (long long)x->process->pid);
}

static bool open_lane(struct marey__export *x, struct marey__export_lane *lane)
{
    struct marey__buf buf = {0};
    marey__buf_extend(&buf, sizeof(struct lane_text));
    put_process(x, &buf);
    marey__buf_printf(&buf, "%lld,", (long long)lane->stack.info->tid);
    marey__csv_put(&buf, lane->stack.info->name, strlen(lane->stack.info->name));
    marey__buf_puts(&buf, ",");
    if (buf.failed) {
        marey__buf_fini(&buf);
        x->status = marey__no_memory();
        return false;
    }
    struct lane_text *text = (struct lane_text *)buf.data; /* owned by the lane */
    text->len = (uint32_t)(buf.len - sizeof *text);
    lane->own = text;
    return true;
}

/* ---- lines ---- */

/* The end of a line without a count and without GPU columns, after the value. */
#define NO_MORE ",,,,,\n"

static const uint32_t no_depth = UINT32_MAX;
static const uint64_t no_duration = UINT64_MAX;

static void put_start(struct marey__export *x, const struct marey__export_lane *lane, const char *kind)
{
    const struct lane_text *text = lane->own;
    marey__out_puts(&x->out, kind);
    marey__out_put(&x->out, text->text, text->len);
}

/* The same for a line without a thread. */
static void put_start_of_none(struct marey__export *x, const char *kind)
{
    struct marey__buf line = {0};
    marey__buf_puts(&line, kind);
    put_process(x, &line);
    marey__buf_puts(&line, ",,");
    marey__export_put_last(x, &line);
}

static void put_site(struct marey__export *x, uint32_t site)
{
    const struct marey__site_text text = marey__site_text(x, site);
    marey__out_put(&x->out, x->texts.data + text.at, text.len);
}

/* "START,DURATION,DEPTH," */
static void put_times(struct marey__export *x, uint64_t ns, uint64_t duration_ns, uint32_t depth)
{
    char *p = marey__out_room(&x->out);
    p = marey__u64_text(p, ns);
    *p++ = ',';
    if (duration_ns != no_duration)
        p = marey__u64_text(p, duration_ns);
    *p++ = ',';
    if (depth != no_depth)
        p = marey__u64_text(p, depth);
    *p++ = ',';
    x->out.p = p;
}

static void put_f64(struct marey__export *x, double value)
{
    char number[40];
    marey__out_put(&x->out, number, (size_t)(marey__put_f64_csv(number, value) - number));
}

static void put_payload(struct marey__export *x, const struct marey__payload *payload)
{
    struct marey__buf buf = {0};
    char *p = marey__out_room(&x->out);
    double value;
    switch (payload->type) {
    case MAREY_PAYLOAD_I64:
        x->out.p = marey__i64_text(p, (int64_t)payload->bits);
        break;
    case MAREY_PAYLOAD_U64:
        x->out.p = marey__u64_text(p, payload->bits);
        break;
    case MAREY_PAYLOAD_F64:
        memcpy(&value, &payload->bits, sizeof value);
        put_f64(x, value);
        break;
    case MAREY_PAYLOAD_TEXT:
        marey__csv_put(&buf, payload->text, payload->len);
        marey__export_put_last(x, &buf);
        break;
    default:
        break;
    }
}

/* The payload, or else the arguments. */
static void put_value(struct marey__export *x, const struct marey__payload *payload,
                      const struct marey__details *details)
{
    const struct marey__payload arguments = {.type = MAREY_PAYLOAD_TEXT,
                                             .text = details->arguments,
                                             .len = (uint32_t)details->arguments_len};
    if (payload->type != 0)
        put_payload(x, payload);
    else if (details->arguments != NULL)
        put_payload(x, &arguments);
}

static void put_range(struct marey__export *x, const struct marey__export_lane *lane,
                      const struct marey__frame *range, uint64_t duration_ns, uint32_t depth)
{
    put_start(x, lane, "range");
    put_site(x, range->site);
    put_times(x, range->start_ns, duration_ns, depth);
    if (MAREY_LIKELY(range->payload == 0)) {
        marey__out_puts(&x->out, NO_MORE);
        return;
    }
    const struct marey__payload payload = marey__open_payload(lane, range);
    struct marey__details details;
    marey__details_of(&payload, &details);
    put_value(x, &payload, &details);
    marey__out_puts(&x->out, ",");
    if (payload.repeat != 0)
        marey__out_put_u64(&x->out, payload.repeat - 1);
    marey__out_puts(&x->out, ",,,");
    if (details.correlation != 0)
        marey__out_put_u64(&x->out, details.correlation);
    marey__out_puts(&x->out, ",\n");
}

static inline void on_end(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                          const struct marey__frame *range, bool is_cut)
{
    put_range(x, lane, range, is_cut ? no_duration : ns - range->start_ns,
              (uint32_t)lane->stack.n_open);
}

static void on_mark(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                    uint32_t site, const struct marey__payload *payload)
{
    put_start(x, lane, "mark");
    put_site(x, site);
    put_times(x, ns, no_duration, (uint32_t)lane->stack.n_open);
    if (payload != NULL)
        put_payload(x, payload);
    marey__out_puts(&x->out, NO_MORE);
}

static void on_counter(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                       uint32_t site, double value)
{
    put_start(x, lane, "counter");
    put_site(x, site);
    put_times(x, ns, no_duration, no_depth);
    put_f64(x, value);
    marey__out_puts(&x->out, NO_MORE);
}

static void put_async(struct marey__export *x, const struct marey__async_half *begin,
                      uint64_t duration_ns)
{
    put_start(x, &x->lanes[begin->lane], "async");
    put_site(x, begin->name);
    put_times(x, begin->ns, duration_ns, no_depth);
    marey__out_puts(&x->out, NO_MORE);
}

static void on_async(struct marey__export *x, struct marey__export_lane *lane,
                     const struct marey__async_half *half)
{
    (void)lane;
    struct marey__async_half begin, end;
    if (marey__export_async(x, half, &begin, &end))
        put_async(x, &begin, end.ns > begin.ns ? end.ns - begin.ns : 0);
}

static void on_lost(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                    uint64_t n_events)
{
    put_start(x, lane, "lost");
    marey__out_puts(&x->out, ",,");
    put_times(x, MAREY__MAX(ns, lane->stack.last_ns), no_duration, no_depth);
    if (n_events != 0)
        marey__out_put_u64(&x->out, n_events);
    marey__out_puts(&x->out, NO_MORE);
}

static const struct marey__walker walker = {.end = on_end,
                                            .mark = on_mark,
                                            .counter = on_counter,
                                            .async = on_async,
                                            .lost = on_lost,
                                            .may_overlap = true};
MAREY__EXPORT_BATCH(open_lane);

/* ---- streams and flows ---- */

static void put_stream(struct marey__export *x, const struct marey_lane_info *lane)
{
    char *p = marey__out_room(&x->out);
    *p++ = ',';
    *p++ = ',';
    p = marey__i64_text(p, lane->device);
    *p++ = ',';
    p = marey__i64_text(p, (int32_t)lane->stream);
    *p++ = ',';
    x->out.p = p;
}

static void on_flow(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                    const uint64_t *words)
{
    static const char *const ends[] = {"begin", "step", "end"};
    const struct marey_site_info *site = marey__export_site(x, marey_record_site(words[1]));
    const bool is_stream = lane->stack.info->kind == MAREY_LANE_GPU;
    struct marey__buf line = {0};
    if (is_stream)
        put_start_of_none(x, "flow");
    else
        put_start(x, lane, "flow");
    marey__csv_put(&line, site->name, site->name_len);
    marey__buf_printf(&line, ",%s,", words[3] < MAREY__COUNT_OF(ends) ? ends[words[3]] : "");
    marey__export_put_last(x, &line);
    put_times(x, ns, no_duration, no_depth);
    marey__out_put_u64(&x->out, words[2]);
    if (is_stream)
        put_stream(x, lane->stack.info);
    marey__out_puts(&x->out, is_stream ? ",\n" : NO_MORE);
}

static void on_work(struct marey__export *x, struct marey__export_lane *lane,
                    const struct marey__stream_work *work)
{
    struct marey__details details;
    const uint64_t *record;
    marey__work_details_of(x, work, &details);
    put_start_of_none(x, marey__work_kind_name(work->kind));
    put_site(x, work->site);
    put_times(x, work->ns, work->duration_ns, no_depth);
    put_value(x, &work->payload, &details);
    put_stream(x, lane->stack.info);
    if (work->correlation != 0)
        marey__out_put_u64(&x->out, work->correlation);
    marey__out_puts(&x->out, ",");
    if (work->bytes != 0)
        marey__out_put_u64(&x->out, work->bytes);
    marey__out_puts(&x->out, "\n");
    for (uint32_t at = 0; (record = marey__next_record(&work->payload, &at)) != NULL;)
        if (marey_record_type_of(record[0]) == MAREY_RECORD_FLOW)
            on_flow(x, lane, work->ns, record);
}

static void on_span(struct marey__export *x, const struct marey__span *span)
{
    static const char *const kinds[] = {"iteration", "epoch", "phase"};
    const bool is_phase = span->kind == MAREY__SPAN_PHASE;
    struct marey__buf line = {0};
    put_start_of_none(x, kinds[span->kind]);
    if (is_phase) {
        const struct marey_site_info *site = marey__export_site(x, span->site);
        marey__csv_put(&line, site->name, site->name_len);
    } else {
        marey__buf_puts(&line, kinds[span->kind]);
    }
    marey__buf_printf(&line, ",%s,", (span->flags & MAREY__ITERATION_WARMUP) != 0 ? "warmup" : "");
    marey__export_put_last(x, &line);
    put_times(x, span->begin_ns, span->is_open ? no_duration : span->end_ns - span->begin_ns,
              no_depth);
    if (!is_phase)
        marey__out_put_u64(&x->out, span->number);
    marey__out_puts(&x->out, NO_MORE);
}

static void put_left_open(struct marey__export *x, const struct marey__export_lane *lane,
                          const struct marey__frame *range, uint32_t depth)
{
    put_range(x, lane, range, no_duration, depth);
}

/* Ranges and async ranges that never ended. */
static void on_process_done(struct marey__export *x)
{
    marey__walk_left_open(x, put_left_open);
    for (size_t i = 0; i < x->asyncs.n_slots; i++) {
        if (x->asyncs.slots[i].handle != 0 && x->asyncs.slots[i].is_begin)
            put_async(x, &x->asyncs.slots[i], no_duration);
    }
}

const struct marey__export_format marey__export_csv = {
    .info =
        {
            .name = "csv",
            .extensions = ".csv",
            .brief = "one line per range, mark, counter value and GPU activity",
            .next = "one line per range, mark and counter value",
            .takes = MAREY_EXPORT_FILTER,
        },
    .start = on_start,
    .process = on_process,
    .batch = on_batch,
    .process_done = on_process_done,
    .span = on_span,
    .work = on_work,
    .flow = on_flow,
    .has_samples_beside = true,
};
