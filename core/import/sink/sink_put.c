/* Events to entries of 24 bytes, with ready words for everything beyond a range or a mark. */
#include "import/sink/internal.h"

/* ---- extras ---- */

/* Records of one event being built, after a word for their number. */
struct extra {
    marey__sink_process *process;
    size_t start; /* 0: none */
};

/* Space for `n` more words; NULL on out of memory. */
static uint64_t *extend(marey__sink_process *process, size_t n)
{
    const size_t before = process->extras_cap;
    if (MAREY_UNLIKELY(process->n_extras + n > before)) {
        if (process->n_extras + n > UINT32_MAX ||
            !marey__grow(&process->extras, &process->extras_cap, process->n_extras + n,
                         sizeof *process->extras)) {
            marey__sink_fail_memory(process);
            return NULL;
        }
        process->sink->held += (process->extras_cap - before) * sizeof *process->extras;
    }
    uint64_t *at = process->extras + process->n_extras;
    process->n_extras += n;
    return at;
}

/* A record with `n` words after its header, for the caller to fill; NULL on out of memory. */
static uint64_t *add_record(struct extra *extra, enum marey_record_type type, size_t n)
{
    marey__sink_process *process = extra->process;
    if (extra->start == 0) {
        uint64_t *count = extend(process, process->n_extras == 0 ? 2 : 1); /* no offset is 0 */
        if (count == NULL)
            return NULL;
        extra->start = process->n_extras - 1;
        process->extras[extra->start] = 0;
    }
    uint64_t *record = extend(process, n + 1);
    if (record == NULL)
        return NULL;
    process->extras[extra->start] += n + 1;
    record[0] = (uint64_t)MAREY_KIND_RECORD << 20 | (uint64_t)type << 12 | (n + 1);
    return record + 1;
}

static void add_record_of(struct extra *extra, enum marey_record_type type, const uint64_t *words,
                          size_t n)
{
    uint64_t *at = add_record(extra, type, n);
    if (at != NULL)
        memcpy(at, words, n * sizeof *words);
}

static void add_communication(struct extra *extra, const struct marey_communication *c)
{
    const uint64_t words[] = {(c->group & 0xfffffu) | (uint64_t)((unsigned)c->what & 0xffu) << 20,
                              c->bytes_in, c->bytes_out, c->sequence,
                              c->group_size | (uint64_t)(uint32_t)c->peer << 32};
    add_record_of(extra, MAREY_RECORD_COMMUNICATION, words, MAREY__COUNT_OF(words));
}

static void add_arguments(struct extra *extra, const char *text, size_t len)
{
    enum { OTHERS = 24 }; /* words that may accompany them */
    if (len > (MAREY__EXTRA_WORDS_MAX - OTHERS) * sizeof(uint64_t)) {
        extra->process->n_long_arguments++;
        return;
    }
    const size_t n = (len + 7) / 8;
    uint64_t *at = add_record(extra, MAREY_RECORD_ARGUMENTS, n + 1);
    if (at == NULL)
        return;
    at[0] = len;
    at[n] = 0;
    memcpy(at + 1, text, len);
    if (n != 0)
        memset((char *)(at + 1) + len, 0, n * 8 - len);
}

static void add_details(struct extra *extra, const struct marey__sink_event *event)
{
    if (event->communication != NULL)
        add_communication(extra, event->communication);
    if (event->arguments != NULL && event->arguments_len != 0)
        add_arguments(extra, event->arguments, event->arguments_len);
}

/* ---- entries ---- */

static void add_entry(marey__sink_process *process, uint32_t number,
                      const struct marey__sink_entry *entry)
{
    marey__sink *sink = process->sink;
    struct marey__sink_lane *lane = &process->lanes[number];
    if (MAREY_UNLIKELY(lane->n == lane->cap)) {
        if (!marey__grow(&lane->entries, &lane->cap, lane->n + 1, sizeof *entry)) {
            marey__sink_fail_memory(process);
            return;
        }
        sink->held += (lane->cap - lane->n) * sizeof *entry;
    }
    if (lane->n != 0 && marey__entry_is_before(entry, &lane->entries[lane->n - 1]))
        lane->is_unsorted = true;
    lane->entries[lane->n++] = *entry;
    process->first_ns = process->n_events == 0 ? entry->ns : MAREY__MIN(process->first_ns, entry->ns);
    process->n_events++;
    sink->n_events++;
    if (MAREY_UNLIKELY(sink->held > sink->budget)) {
        const marey_status status = marey__sink_spill(sink);
        if (status != MAREY_OK)
            marey__sink_fail(sink, status);
    }
}

static uint64_t duration_of(const struct marey__sink_event *event)
{
    return MAREY__MIN(event->duration_ns, UINT64_MAX - event->ns);
}

/* Add the word of an event, or its records. */
static void put_entry(const struct marey__sink_event *event, const struct extra *extra, uint64_t ns,
                      uint64_t duration, enum marey__sink_class class, enum marey_kind kind)
{
    const uint32_t site = kind == MAREY_KIND_RECORD ? 0 : event->site;
    const struct marey__sink_entry entry = {.ns = ns,
                                            .duration = duration,
                                            .tag = (uint32_t) class << 24 | marey__tag(kind, site),
                                            .extra = (uint32_t)extra->start};
    add_entry(extra->process, event->lane, &entry);
}

static void put_slice(marey__sink_process *process, const struct marey__sink_event *event)
{
    struct extra extra = {.process = process};
    const uint64_t repeat = event->repeat != MAREY__SINK_NO_CALL ? event->repeat : 0;
    if (event->repeat > 1)
        add_record_of(&extra, MAREY_RECORD_REPEAT, &repeat, 1);
    if (event->correlation != 0)
        add_record_of(&extra, MAREY_RECORD_LAUNCH, &event->correlation, 1);
    add_details(&extra, event);
    if (event->kind == MAREY__SINK_BEGIN)
        put_entry(event, &extra, event->ns, 0, MAREY__CLASS_EDGE, MAREY_KIND_BEGIN);
    else
        put_entry(event, &extra, event->ns, duration_of(event), MAREY__CLASS_SLICE, MAREY_KIND_BEGIN);
}

static void put_gpu(marey__sink_process *process, const struct marey__sink_event *event)
{
    struct extra extra = {.process = process};
    const enum marey_work_kind kind =
        event->kind == MAREY__SINK_GPU ? event->work_kind : MAREY_WORK_ANNOTATION;
    const uint64_t words[] = {(event->site & 0xfffffu) | (uint64_t)((unsigned)kind & 0xffu) << 20,
                              duration_of(event), event->correlation, event->bytes};
    add_record_of(&extra, MAREY_RECORD_GPU, words, MAREY__COUNT_OF(words));
    add_details(&extra, event);
    put_entry(event, &extra, event->ns, words[1], MAREY__CLASS_SLICE, MAREY_KIND_RECORD);
}

static void put_record(marey__sink_process *process, const struct marey__sink_event *event,
                       enum marey_record_type type, const uint64_t *words, size_t n)
{
    struct extra extra = {.process = process};
    add_record_of(&extra, type, words, n);
    put_entry(event, &extra, event->ns, 0, MAREY__CLASS_POINT, MAREY_KIND_RECORD);
}

/* Its begin and its end; at the same timestamp, one iteration ends before the next begins. */
static void put_iteration(marey__sink_process *process, const struct marey__sink_event *event)
{
    const uint64_t end_words[] = {event->id, 0, 0};
    struct extra begin = {.process = process}, end = {.process = process};
    add_record_of(&begin, MAREY_RECORD_ITERATION_BEGIN, &event->id, 1);
    put_entry(event, &begin, event->ns, event->id * 2, MAREY__CLASS_ITERATION, MAREY_KIND_RECORD);
    add_record_of(&end, MAREY_RECORD_ITERATION, end_words, 3);
    put_entry(event, &end, event->ns + duration_of(event), event->id * 2 + 1,
              MAREY__CLASS_ITERATION, MAREY_KIND_RECORD);
    process->n_events--; /* one event in two entries */
    process->sink->n_events--;
}

/* Streams have work and flows; a range there is the extent of some work. */
static void put_on_stream(marey__sink_process *process, const struct marey__sink_event *event)
{
    const uint64_t flow[] = {event->site & 0xfffffu, event->id, (uint64_t)event->flow_end};
    if (event->kind == MAREY__SINK_GPU || event->kind == MAREY__SINK_SLICE)
        put_gpu(process, event);
    else if (event->kind == MAREY__SINK_FLOW)
        put_record(process, event, MAREY_RECORD_FLOW, flow, MAREY__COUNT_OF(flow));
    else
        process->n_misplaced++;
}

static void put_on_thread(marey__sink_process *process, const struct marey__sink_event *event)
{
    const struct extra none = {.process = process};
    uint64_t words[] = {event->site & 0xfffffu, event->id, (uint64_t)event->flow_end};
    switch (event->kind) {
    case MAREY__SINK_SLICE:
    case MAREY__SINK_BEGIN:
    case MAREY__SINK_GPU:
        put_slice(process, event);
        break;
    case MAREY__SINK_END:
        put_entry(event, &none, event->ns, 0, MAREY__CLASS_EDGE, MAREY_KIND_END);
        break;
    case MAREY__SINK_MARK:
        put_entry(event, &none, event->ns, 0, MAREY__CLASS_POINT, MAREY_KIND_MARK);
        break;
    case MAREY__SINK_COUNTER:
        memcpy(&words[1], &event->value, sizeof event->value);
        put_record(process, event, MAREY_RECORD_COUNTER, words, 2);
        break;
    case MAREY__SINK_FLOW:
        put_record(process, event, MAREY_RECORD_FLOW, words, 3);
        break;
    case MAREY__SINK_ASYNC_BEGIN:
        put_record(process, event, MAREY_RECORD_ASYNC_BEGIN, words, 2);
        break;
    case MAREY__SINK_ASYNC_END:
        put_record(process, event, MAREY_RECORD_ASYNC_END, words, 2);
        break;
    case MAREY__SINK_ITERATION:
        put_iteration(process, event);
        break;
    }
}

void marey__sink_put(marey__sink_process *process, const struct marey__sink_event *event)
{
    if (MAREY_UNLIKELY(process->sink->status != MAREY_OK || event->lane >= process->n_lanes))
        return;
    if (process->lanes[event->lane].kind == MAREY_LANE_GPU)
        put_on_stream(process, event);
    else
        put_on_thread(process, event);
    const marey__sink *sink = process->sink;
    if (MAREY_UNLIKELY(sink->n_events % MAREY__TICK_EVENTS == 0) && sink->options.tick != NULL)
        sink->options.tick(sink->options.tick_ctx, 0);
}
