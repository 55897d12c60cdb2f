/*
 * A time window of a training in torch.profiler's format, with Kineto's names, for tools such as `marey artifacts`.
 * It is Chrome's format with rules for names, and shares that export's objects and GPU streams.
 *
 *   category of a site      category here
 *   operator                cpu_op, "Input Dims" and "Sequence number" from its payload "seq = 7, sizes = [[4, 8], []]"
 *   phase                   user_annotation, marey:NAME
 *   step                    user_annotation, NAME#PAYLOAD: ProfilerStep#8
 *   one of Kineto's         unchanged: CUDA calls, imported events
 *   anything else           user_annotation
 *
 * Ranges are numbered at their begin with Kineto's "External id"; a CUDA call has that of the operator
 * around it. With `from_ns` and `until_ns` only events in between are written: complete ranges, work by its begin, or with
 * `launched_before` also later work that was launched in time.
 * Marks, counters and unended ranges are omitted, and so are spans of iterations, which steps represent.
 */
#include "codec/internal.h"
#include "present/export/chrome_export.h"

/* ---- head and names ---- */

static void on_start(struct marey__export *x)
{
    struct marey__buf buf = {0};
    marey__chrome_survey(x);
    marey__buf_puts(&buf, "{");
    marey__chrome_kineto_head(x, &buf);
    marey__buf_puts(
        &buf, "\"deviceProperties\":[],\n\"record_shapes\":1,\n\"displayTimeUnit\":\"ms\",\n");
    if (x->options->about != NULL)
        marey__buf_printf(&buf, "\"marey\":%s,\n", x->options->about);
    marey__buf_printf(&buf, "\"traceName\":\"marey %s\",\n\"traceEvents\":[", marey_version());
    marey__export_put_last(x, &buf);
}

static bool is_category(const struct marey_site_info *site, const char *category)
{
    return strcmp(site->category, category) == 0;
}

static const char *category_of(const struct marey_site_info *site)
{
    static const char *const known[] = {
        "cpu_op",      "user_annotation",     "python_function", "cuda_runtime",
        "cuda_driver", "cuda_sync",           "kernel",          "gpu_memcpy",
        "gpu_memset",  "gpu_user_annotation", "overhead",
    };
    if (is_category(site, "operator"))
        return "cpu_op";
    for (size_t i = 0; i < MAREY__COUNT_OF(known); i++)
        if (is_category(site, known[i]))
            return known[i];
    return "user_annotation";
}

/* `,"name":"aten::mm","cat":"cpu_op"}`. Without a category, it is that of a range or of work. */
static void put_site(struct marey__buf *buf, const struct marey_site_info *site)
{
    struct marey__buf name = {0};
    if (is_category(site, "phase"))
        marey__buf_puts(&name, "marey:");
    marey__buf_put(&name, site->name, site->name_len);
    marey__json_printf(buf, ",'name':%.*s", (int)name.len, name.data);
    if (site->category[0] != '\0')
        marey__buf_printf(buf, ",\"cat\":\"%s\"", category_of(site));
    marey__buf_puts(buf, "}");
    marey__buf_end(&name, buf);
}

static marey_status on_process(struct marey__export *x)
{
    struct marey__buf buf = {0}, name = {0};
    MAREY_TRY(marey__export_texts(x, put_site, 0));
    if (x->process_number != 0)
        marey__out_puts(&x->out, ",");
    marey__export_program(&name, x->process->command);
    marey__chrome_meta(&buf, x->pid, 0, "process_name", name.data, name.len);
    marey__chrome_meta(&buf, x->pid, 0, "process_labels", "CPU", 3);
    marey__buf_end(&name, &buf);
    marey__export_put_last(x, &buf);
    return x->status;
}

static bool open_lane(struct marey__export *x, struct marey__export_lane *lane)
{
    const int64_t tid = marey__export_tid(x, lane);
    struct marey__buf buf = {0}, name = {0};
    if (!marey__chrome_lane(x, lane, x->pid, tid))
        return false;
    marey__out_puts(&x->out, ",");
    marey__buf_printf(&name, "thread %lld (%s)", (long long)tid, lane->stack.info->name);
    marey__chrome_meta(&buf, x->pid, tid, "thread_name", name.data, name.len);
    marey__buf_end(&name, &buf);
    marey__export_put_last(x, &buf);
    return x->status == MAREY_OK;
}

/* ---- the window ---- */

static bool is_begun(const struct marey__export *x, uint64_t begin_ns)
{
    const uint64_t from_ns = x->options->from_ns;
    return from_ns == 0 || begin_ns >= from_ns + (uint64_t)x->shift_ns;
}

static bool is_inside(const struct marey__export *x, uint64_t begin_ns, uint64_t end_ns)
{
    const uint64_t until_ns = x->options->until_ns;
    return is_begun(x, begin_ns) && (until_ns == 0 || end_ns <= until_ns + (uint64_t)x->shift_ns);
}

/* ---- numbers of ranges: a stack of open written ranges, in the lane's data of the format ---- */

struct numbered {
    size_t depth;
    uint64_t number, around; /* its own, and that of the innermost operator around it; 0: none */
    uint64_t inside;         /* `around` for ranges inside it */
};

/* The innermost one less than `height` deep; NULL: none. Deeper ones have ended. */
static const struct numbered *find_numbered(struct marey__export_lane *lane, size_t height)
{
    struct marey__buf *const stack = &lane->held;
    for (; stack->len != 0; stack->len -= sizeof(struct numbered)) {
        const struct numbered *const top = (const void *)(stack->data + stack->len - sizeof *top);
        if (top->depth < height)
            return top;
    }
    return NULL;
}

static void add_number(struct marey__export *x, struct marey__export_lane *lane, uint32_t site)
{
    const struct numbered *const outer = find_numbered(lane, lane->stack.n_open);
    struct numbered range = {.depth = lane->stack.n_open,
                             .number = ++marey__chrome_of(x)->n_ranges,
                             .around = outer != NULL ? outer->inside : 0};
    range.inside = is_category(marey__export_site(x, site), "operator") ? range.number : range.around;
    marey__buf_put(&lane->held, &range, sizeof range);
    if (lane->held.failed)
        x->status = marey__no_memory();
}

/* ---- arguments ---- */

/* The part after `key` in the payload of an operator that consists of characters of a list of numbers; "" if none. */
static const char *find_value(const struct marey__payload *payload, const char *key, size_t *len)
{
    const char *const found = memmem(payload->text, payload->len, key, strlen(key));
    *len = 0;
    if (found == NULL)
        return "";
    const char *const value = found + strlen(key), *const end = payload->text + payload->len;
    const char *at = value;
    while (at < end && memchr("0123456789[], ", *at, 14) != NULL)
        at++;
    *len = (size_t)(at - value);
    return value;
}

/* Whether it is a complete array of arrays of numbers; anything else is omitted. */
static bool is_list(const char *text, size_t len)
{
    struct marey__json json MAREY__FINALLY(marey__json_fini);
    enum marey__json_token token;
    marey__json_init_text(&json, text, len, MAREY__JSON_STRICT);
    bool is_fine = marey__json_next(&json) == MAREY__JSON_ARRAY;
    while (is_fine && (token = marey__json_next(&json)) != MAREY__JSON_END)
        is_fine = token == MAREY__JSON_ARRAY || token == MAREY__JSON_ARRAY_END ||
                  token == MAREY__JSON_NUMBER;
    return is_fine;
}

static void put_operator_args(struct marey__buf *buf, const struct marey__payload *payload)
{
    size_t len, digits = 0;
    const char *value = find_value(payload, "seq = ", &len);
    while (digits < len && digits < 18 && value[digits] >= '0' && value[digits] <= '9')
        digits++;
    if (digits > 0)
        marey__buf_printf(buf, ",\"Sequence number\":%.*s", (int)digits, value);
    value = find_value(payload, "sizes = ", &len);
    if (is_list(value, len)) {
        marey__buf_puts(buf, ",\"Input Dims\":");
        marey__buf_put(buf, value, len);
    }
}

/* ---- ranges ---- */

/* A range to be written. */
struct event {
    uint64_t start_ns, end_ns;
    uint32_t site;
    const struct marey__payload *payload;
    uint64_t number, around; /* its own, and that of the operator around it */
};

static void put_name(struct marey__export *x, const struct event *event)
{
    const struct marey_site_info *const site = marey__export_site(x, event->site);
    const bool is_step = is_category(site, "step") && (event->payload->type == MAREY_PAYLOAD_I64 ||
                                                       event->payload->type == MAREY_PAYLOAD_U64);
    if (!is_step) {
        marey__chrome_open_tail(x, event->site);
        marey__out_puts(&x->out, site->category[0] == '\0' ? ",\"cat\":\"user_annotation\"" : "");
        return;
    }
    struct marey__buf *const buf = text_of(x), name = {0};
    marey__buf_put(&name, site->name, site->name_len);
    marey__buf_printf(&name, "#%lld", (long long)event->payload->bits);
    buf->len = 0;
    marey__json_printf(buf, ",'cat':'user_annotation','name':%.*s", (int)name.len, name.data);
    marey__buf_end(&name, buf);
    marey__export_put(x, buf);
}

static void put_args(struct marey__export *x, const struct event *event)
{
    struct marey__buf *const buf = text_of(x);
    const char *const category = category_of(marey__export_site(x, event->site));
    const bool is_operator = strcmp(category, "cpu_op") == 0;
    if (!is_operator && strcmp(category, "user_annotation") != 0) {
        marey__chrome_of(x)->around = event->around; /* a CUDA call, or an imported event */
        marey__chrome_args(x, event->payload, false);
        return;
    }
    buf->len = 0;
    marey__buf_printf(buf, ",\"args\":{\"External id\":%llu,\"Record function id\":0,\"Ev Idx\":%llu",
                      (unsigned long long)event->number, (unsigned long long)event->number - 1);
    if (is_operator && event->payload->type == MAREY_PAYLOAD_TEXT)
        put_operator_args(buf, event->payload);
    marey__buf_puts(buf, "}");
    marey__export_put(x, buf);
}

static void put_event(struct marey__export *x, const struct marey__export_lane *lane,
                      const struct event *event)
{
    x->out.p = marey__chrome_duration(marey__chrome_head(x, lane, event->start_ns, 'X'),
                                      event->end_ns - event->start_ns);
    put_name(x, event);
    put_args(x, event);
    marey__out_puts(&x->out, "}");
    marey__chrome_launches(x, lane, event->start_ns, event->payload);
}

static void on_begin(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                     uint32_t site, const struct marey__payload *payload)
{
    (void)ns, (void)payload;
    add_number(x, lane, site);
}

static inline void on_end(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                          const struct marey__frame *range, bool is_cut)
{
    const struct numbered *const numbered = find_numbered(lane, lane->stack.n_open + 1);
    if (is_cut || numbered == NULL || x->status != MAREY_OK || !is_inside(x, range->start_ns, ns))
        return;
    const struct marey__payload payload = marey__open_payload(lane, range);
    const struct event event = {range->start_ns, ns, range->site, &payload, numbered->number,
                                numbered->around};
    put_event(x, lane, &event);
}

static void on_async(struct marey__export *x, struct marey__export_lane *lane,
                     const struct marey__async_half *half)
{
    static const struct marey__payload nothing;
    (void)lane;
    struct marey__async_half begin, end;
    if (!marey__export_async(x, half, &begin, &end) || !is_inside(x, begin.ns, end.ns))
        return;
    const struct event event = {
        .start_ns = begin.ns,
        .end_ns = MAREY__MAX(begin.ns, end.ns),
        .site = begin.name,
        .payload = &nothing,
        .number = ++marey__chrome_of(x)->n_ranges,
    };
    put_event(x, &x->lanes[begin.lane], &event);
}

static const struct marey__walker walker = {.begin = on_begin, .end = on_end, .async = on_async};
MAREY__EXPORT_BATCH(open_lane);

/* ---- GPU work ---- */

/* The upper half numbers CUPTI sessions, the lower half the calls of a session, and may wrap. */
static bool is_launched_before(uint64_t correlation, uint64_t bound)
{
    return correlation >> 32 == bound >> 32 ? (int32_t)((uint32_t)correlation - (uint32_t)bound) < 0
                                            : correlation < bound;
}

static void on_work(struct marey__export *x, struct marey__export_lane *lane,
                    const struct marey__stream_work *work)
{
    const uint64_t bound = x->options->launched_before;
    const bool is_wanted =
        bound != 0 ? is_begun(x, work->ns) && is_launched_before(work->correlation, bound)
                   : is_inside(x, work->ns, work->ns);
    if (is_wanted)
        marey__chrome_work(x, lane, work);
}

const struct marey__export_format marey__export_kineto = {
    .info =
        {
            .name = "kineto",
            .extensions = ".pt.trace.json",
            .brief = "JSON as torch.profiler writes it, or a time window of it",
            .details = "Holds ranges and GPU activity.",
            .next = "as torch.profiler writes it; 'marey artifacts' makes tables of it",
            .takes = MAREY_EXPORT_FILTER | MAREY_EXPORT_WINDOW,
        },
    .own_size = sizeof(struct marey__chrome_export),
    .start = on_start,
    .process = on_process,
    .batch = on_batch,
    .finish = marey__chrome_finish,
    .close = marey__chrome_close,
    .work = on_work,
};
