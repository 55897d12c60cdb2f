/*
 * Converts an event by its phase and category.
 *
 *   X       a slice; GPU work by its category; a mark for the category Trace: how long Kineto recorded
 *   B E     begin and end                 i I R n   marks; Kineto's [memory] is counters
 *   C       a counter for each argument   b e       async ranges        s t f   flows        M   names
 *
 * Flows between a launch and its work (ac2g) are skipped: both carry the same correlation.
 */
#include "import/kineto/internal.h"

/* ---- slices ---- */

static void put_iteration(marey__sink_process *process, const struct marey__sink_event *slice,
                          const struct marey__chrome_value *name)
{
    static const char steps[] = "ProfilerStep#";
    uint64_t number;
    const size_t len = sizeof steps - 1;
    if (name->len <= len || memcmp(name->at, steps, len) != 0 ||
        !marey__parse_number(name->at + len, name->len - len, &number))
        return;
    const struct marey__sink_event event = {.kind = MAREY__SINK_ITERATION,
                                            .lane = slice->lane,
                                            .ns = slice->ns,
                                            .duration_ns = slice->duration_ns,
                                            .id = number};
    marey__sink_put(process, &event);
}

/* A flow that a slice itself begins or ends. */
static void put_bound_flow(struct marey__chrome *chrome, marey__sink_process *process,
                           const struct marey__sink_event *slice)
{
    const struct marey__chrome_event *event = &chrome->file.event;
    const bool is_in = marey__chrome_is(&event->flow_in, "true");
    const bool is_out = marey__chrome_is(&event->flow_out, "true");
    if (event->bind_id.kind == MAREY__CHROME_NONE || (!is_in && !is_out))
        return;
    const struct marey__sink_event flow = {.kind = MAREY__SINK_FLOW,
                                           .lane = slice->lane,
                                           .site = slice->site,
                                           .ns = slice->ns,
                                           .id = marey__chrome_id(&event->bind_id),
                                           .flow_end = is_in && is_out ? MAREY_FLOW_STEP
                                                       : is_in         ? MAREY_FLOW_END
                                                                       : MAREY_FLOW_BEGIN};
    marey__sink_put(process, &flow);
}

/* torch's name for its communication on the host. */
static bool is_communication(const struct marey__chrome_value *name)
{
    static const char *const names[] = {
        "record_param_comms", "nccl:", "gloo:", "ucc:", "mpi:", "rccl:", "xccl:"};
    if (name->len < 4)
        return false;
    for (size_t i = 0; i < MAREY__COUNT_OF(names); i++)
        if (marey__chrome_begins(name, names[i]))
            return true;
    return false;
}

static void put_slice(struct marey__chrome *chrome, struct marey__sink_event *out, bool launches)
{
    const struct marey__chrome_event *event = &chrome->file.event;
    struct marey__chrome_thread *thread = marey__chrome_thread(chrome, &event->pid, &event->tid);
    if (thread == NULL || !marey__chrome_as_thread(chrome, thread))
        return;
    struct marey__chrome_args args;
    int64_t correlation;
    out->lane = thread->lane;
    out->site = marey__chrome_site(chrome, thread->process);
    if (launches) {
        marey__chrome_parse_args(&args, &event->args);
        if (marey__chrome_integer(&args.correlation, &correlation) && correlation > 0)
            out->correlation = (uint64_t)correlation;
    } else if (is_communication(&event->name)) {
        marey__chrome_parse_args(&args, &event->args);
        if (marey__chrome_communication(thread->process, &event->name, &args, &chrome->communication))
            out->communication = &chrome->communication;
    }
    marey__sink_put(thread->process, out);
    if (event->name.len > 12 && event->name.at[0] == 'P')
        put_iteration(thread->process, out, &event->name);
    if (MAREY_UNLIKELY(event->bind_id.kind != MAREY__CHROME_NONE))
        put_bound_flow(chrome, thread->process, out);
}

static void put_simple(struct marey__chrome *chrome, struct marey__sink_event *out)
{
    struct marey__chrome_thread *thread =
        marey__chrome_thread(chrome, &chrome->file.event.pid, &chrome->file.event.tid);
    if (thread == NULL || !marey__chrome_as_thread(chrome, thread))
        return;
    out->lane = thread->lane;
    if (chrome->file.event.name.kind != MAREY__CHROME_NONE)
        out->site = marey__chrome_site(chrome, thread->process);
    marey__sink_put(thread->process, out);
}

static uint64_t duration_of(struct marey__chrome *chrome)
{
    int64_t ns;
    if (!marey__chrome_ns(&chrome->file.event.dur, &ns)) {
        chrome->n_without_duration++;
        return 0;
    }
    if (ns < 0) {
        chrome->n_negative_durations++;
        return 0;
    }
    return (uint64_t)ns;
}

/* The kind of GPU work of a category, in current and old traces; 0: none. */
static enum marey_work_kind work_kind_of(const struct marey__chrome_value *category)
{
    static const struct {
        const char *name;
        enum marey_work_kind kind;
    } kinds[] = {
        {"kernel", MAREY_WORK_KERNEL},
        {"Kernel", MAREY_WORK_KERNEL},
        {"gpu_memcpy", MAREY_WORK_COPY},
        {"Memcpy", MAREY_WORK_COPY},
        {"gpu_memset", MAREY_WORK_SET},
        {"Memset", MAREY_WORK_SET},
        {"gpu_user_annotation", MAREY_WORK_ANNOTATION},
        {"cuda_sync", MAREY_WORK_SYNC},
        {"gpu_memory", MAREY_WORK_MEMORY}, /* as in our own exports */
    };
    if (category->len < 6 || strchr("kKgMc", category->at[0]) == NULL)
        return 0;
    for (size_t i = 0; i < MAREY__COUNT_OF(kinds); i++)
        if (marey__chrome_is(category, kinds[i].name))
            return kinds[i].kind;
    return 0;
}

static void put_complete(struct marey__chrome *chrome, struct marey__sink_event *out)
{
    const struct marey__chrome_value *category = &chrome->file.event.category;
    const enum marey_work_kind kind = work_kind_of(category);
    out->kind = MAREY__SINK_SLICE;
    out->duration_ns = duration_of(chrome);
    if (chrome->import->options->keep_arguments &&
        chrome->file.event.args.kind == MAREY__CHROME_NESTED && chrome->file.event.args.at[0] == '{') {
        out->arguments = chrome->file.event.args.at;
        out->arguments_len = chrome->file.event.args.len;
    }
    if (kind != 0) {
        marey__chrome_put_work(chrome, out, kind);
    } else if (marey__chrome_is(category, "Trace")) {
        out->kind = MAREY__SINK_MARK;
        out->duration_ns = 0;
        chrome->header.is_kineto = true;
        put_simple(chrome, out);
    } else {
        chrome->header.is_kineto |= marey__chrome_is(category, "cpu_op");
        put_slice(chrome, out,
                  marey__chrome_ends(category, "_runtime") ||
                      marey__chrome_ends(category, "_driver") ||
                      marey__chrome_is(category, "Runtime"));
    }
}

/* ---- counters ---- */

static void put_value(struct marey__chrome *chrome, struct marey__sink_event *out, const char *name,
                      size_t len, const struct marey__chrome_value *value)
{
    struct marey__chrome_thread *thread =
        marey__chrome_thread(chrome, &chrome->file.event.pid, &chrome->file.event.tid);
    const bool is_number = value->kind == MAREY__CHROME_NUMBER || value->kind == MAREY__CHROME_STRING;
    if (!is_number || !marey__decimal_double(value->at, value->len, &out->value)) {
        chrome->n_without_value++;
        return;
    }
    if (thread == NULL || !marey__chrome_as_thread(chrome, thread))
        return;
    out->kind = MAREY__SINK_COUNTER;
    out->lane = thread->lane;
    out->site = marey__chrome_site_named(chrome, thread->process, name, len);
    marey__sink_put(thread->process, out);
}

/* One counter per argument, named after both; after the first only if there is a single argument. */
static void put_counters(struct marey__chrome *chrome, struct marey__sink_event *out)
{
    const struct marey__chrome_event *event = &chrome->file.event;
    struct marey__chrome_value key, value, ignored;
    if (event->args.kind != MAREY__CHROME_NESTED || event->args.at[0] != '{') {
        chrome->n_without_value++;
        return;
    }
    const char *p = event->args.at, *end = p + event->args.len;
    bool is_first = true;
    for (p++; (p = marey__chrome_next_key(p, end, &key, &value)) != NULL; is_first = false) {
        const bool is_alone = is_first && marey__chrome_next_key(p, end, &ignored, &ignored) == NULL;
        chrome->text.len = 0;
        marey__json_decode(&chrome->text, event->name.at, event->name.len, 0);
        if (!(is_alone && marey__chrome_is(&key, "value"))) {
            marey__buf_put(&chrome->text, " ", event->name.len > 0);
            marey__json_decode(&chrome->text, key.at, key.len, 0);
        }
        chrome->has_failed |= chrome->text.failed;
        put_value(chrome, out, chrome->text.data, chrome->text.len, &value);
    }
}

/* The allocator's totals after each allocation, of the host or a device. */
static void put_memory(struct marey__chrome *chrome, struct marey__sink_event *out)
{
    struct marey__chrome_args args;
    marey__chrome_parse_args(&args, &chrome->file.event.args);
    int64_t type = 0, id = 0;
    const bool is_device = marey__chrome_integer(&args.device_type, &type) && type != 0;
    const bool has_id = marey__chrome_integer(&args.device_id, &id) && is_device;
    const struct marey__chrome_value *const values[] = {&args.allocated, &args.reserved};
    static const char *const words[] = {"allocated", "reserved"};
    for (size_t i = 0; i < 2; i++) {
        char name[64];
        if (values[i]->kind == MAREY__CHROME_NONE)
            continue;
        int len = snprintf(name, sizeof name, "memory %s %s", words[i], is_device ? "GPU" : "CPU");
        if (has_id)
            len = snprintf(name, sizeof name, "memory %s GPU %lld", words[i], (long long)id);
        put_value(chrome, out, name, (size_t)len, values[i]);
    }
}

/* ---- metadata ---- */

static void take_metadata(struct marey__chrome *chrome)
{
    const struct marey__chrome_value *what = &chrome->file.event.name;
    const bool is_label = marey__chrome_is(what, "process_labels");
    const bool is_process = is_label || marey__chrome_is(what, "process_name");
    struct marey__chrome_args args;
    if (!is_process && !marey__chrome_is(what, "thread_name"))
        return;
    marey__chrome_parse_args(&args, &chrome->file.event.args);
    const struct marey__chrome_value name =
        marey__chrome_text(chrome, is_label ? &args.labels : &args.name);
    if (name.kind != MAREY__CHROME_STRING)
        return;
    if (is_process)
        marey__chrome_name_process(chrome, name.at, name.len, is_label);
    else
        marey__chrome_name_thread(chrome, name.at, name.len);
}

/* ---- all events ---- */

static void put_flow(struct marey__chrome *chrome, struct marey__sink_event *out, char phase)
{
    static const char *const implied[] = {"ac2g", "async_gpu", "async_cpu_to_gpu"};
    for (size_t i = 0; i < MAREY__COUNT_OF(implied); i++)
        if (marey__chrome_is(&chrome->file.event.category, implied[i]))
            return;
    out->kind = MAREY__SINK_FLOW;
    out->id = marey__chrome_id(&chrome->file.event.id);
    out->flow_end = phase == 's'   ? MAREY_FLOW_BEGIN
                    : phase == 't' ? MAREY_FLOW_STEP
                                   : MAREY_FLOW_END;
    put_simple(chrome, out);
}

static void put_timed(struct marey__chrome *chrome, struct marey__sink_event *out, char phase)
{
    switch (phase) {
    case 'X':
        put_complete(chrome, out);
        break;
    case 'B':
    case 'E':
        out->kind = phase == 'B' ? MAREY__SINK_BEGIN : MAREY__SINK_END;
        put_simple(chrome, out);
        break;
    case 'C':
        put_counters(chrome, out);
        break;
    case 'b':
    case 'e':
        out->kind = phase == 'b' ? MAREY__SINK_ASYNC_BEGIN : MAREY__SINK_ASYNC_END;
        out->id = marey__chrome_async_id(&chrome->file.event);
        put_simple(chrome, out);
        break;
    case 's':
    case 't':
    case 'f':
        put_flow(chrome, out, phase);
        break;
    default:
        if (marey__chrome_is(&chrome->file.event.name, "[memory]")) {
            put_memory(chrome, out);
        } else {
            out->kind = MAREY__SINK_MARK;
            put_simple(chrome, out);
        }
    }
}

void marey__chrome_put(struct marey__chrome *chrome)
{
    const struct marey__chrome_event *event = &chrome->file.event;
    const char phase = event->phase.len == 1 ? event->phase.at[0] : '\0';
    chrome->n_events++;
    if (phase == 'M') {
        take_metadata(chrome);
        return;
    }
    if (phase == '\0' || strchr("XBECbestfniIR", phase) == NULL) {
        chrome->n_phases[(unsigned char)phase]++;
        return;
    }
    struct marey__sink_event out = {0};
    int64_t ns;
    if (!marey__chrome_ns(&event->ts, &ns)) {
        chrome->n_without_time++;
    } else if (ns < 0) {
        chrome->n_negative_times++;
    } else {
        out.ns = (uint64_t)ns;
        put_timed(chrome, &out, phase);
    }
}
