/* The sink: events in any order are read back as they were put. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "import/internal.h"
#include "read/internal.h"

/* ---- events read back: ranges, GPU activity and points with times, in a sortable form ---- */

struct fact {
    uint64_t begin, end;
    int64_t tid;
    char what[40];
};

struct facts {
    struct fact *all;
    size_t n, cap;
};

static void add_fact(struct facts *facts, struct fact fact)
{
    assert_true(marey__grow(&facts->all, &facts->cap, facts->n + 1, sizeof fact));
    facts->all[facts->n++] = fact;
}

static int by_all(const void *a, const void *b)
{
    const struct fact *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin > y->begin ? 1 : -1;
    if (x->end != y->end)
        return x->end > y->end ? 1 : -1;
    if (x->tid != y->tid)
        return x->tid > y->tid ? 1 : -1;
    return strcmp(x->what, y->what);
}

static void assert_same_facts(struct facts *a, struct facts *b)
{
    if (a->n != 0)
        qsort(a->all, a->n, sizeof *a->all, by_all);
    if (b->n != 0)
        qsort(b->all, b->n, sizeof *b->all, by_all);
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++)
        if (by_all(&a->all[i], &b->all[i]) != 0)
            fail_msg("fact %zu: %s [%llu, %llu] of %lld is not %s [%llu, %llu] of %lld", i,
                     a->all[i].what, (unsigned long long)a->all[i].begin,
                     (unsigned long long)a->all[i].end, (long long)a->all[i].tid, b->all[i].what,
                     (unsigned long long)b->all[i].begin, (unsigned long long)b->all[i].end,
                     (long long)b->all[i].tid);
}

struct reading {
    struct facts *facts;
    const marey_recording *recording;
    struct reading_lane {
        size_t *open; /* facts by number, innermost last */
        size_t depth, cap;
        uint64_t last_ns, repeat;
    } lanes[20000];
};

static size_t step_of(uint64_t word)
{
    return marey_word_kind(word) == MAREY_KIND_RECORD ? marey_record_length(word) : 1;
}

static void append(struct reading *reading, size_t i, const char *fmt, uint64_t value)
{
    struct fact *fact = &reading->facts->all[i];
    const size_t len = strlen(fact->what);
    snprintf(fact->what + len, sizeof fact->what - len, fmt, (unsigned long long)value);
}

static struct fact fact_of(const struct reading *reading, const struct marey_batch *batch,
                           uint64_t ns, uint32_t site)
{
    struct fact fact = {.begin = ns, .end = ns, .tid = batch->lane->tid};
    snprintf(fact.what, sizeof fact.what, "%s",
             marey_recording_site(reading->recording, batch->process->index, site)->name);
    return fact;
}

static void begin(struct reading *reading, const struct marey_batch *batch, uint64_t word)
{
    struct reading_lane *lane = &reading->lanes[batch->lane->lane];
    add_fact(reading->facts,
             fact_of(reading, batch, marey_batch_ns(batch, word), marey_word_id(word)));
    assert_true(marey__grow(&lane->open, &lane->cap, lane->depth + 1, sizeof *lane->open));
    lane->open[lane->depth++] = reading->facts->n - 1;
    if (lane->repeat != 0)
        append(reading, reading->facts->n - 1, " x%llu", lane->repeat);
    lane->repeat = 0;
}

static void end(struct reading *reading, const struct marey_batch *batch, uint64_t word)
{
    struct reading_lane *lane = &reading->lanes[batch->lane->lane];
    assert_true(lane->depth > 0);
    struct fact *fact = &reading->facts->all[lane->open[--lane->depth]];
    const char *name =
        marey_recording_site(reading->recording, batch->process->index, marey_word_id(word))->name;
    assert_int_equal(strncmp(fact->what, name, strlen(name)), 0);
    fact->end = marey_batch_ns(batch, word);
}

/* The owner of a detail: the innermost range of this lane, or the preceding GPU activity. */
static size_t latest(const struct reading *reading)
{
    return reading->facts->n - 1;
}

static void take_record(struct reading *reading, const struct marey_batch *batch,
                        const uint64_t *words)
{
    const uint64_t ns = marey_batch_ns(batch, words[0]);
    struct fact fact;
    double value;
    switch (marey_record_type_of(words[0])) {
    case MAREY_RECORD_GPU:
        fact = fact_of(reading, batch, ns, marey_record_site(words[1]));
        fact.end = ns + marey_batch_duration_ns(batch, words[2]);
        add_fact(reading->facts, fact);
        append(reading, latest(reading), " k%llu", marey_record_work_kind(words[1]));
        append(reading, latest(reading), " c%llu", words[3]);
        append(reading, latest(reading), " b%llu", words[4]);
        break;
    case MAREY_RECORD_LAUNCH:
        append(reading, latest(reading), " c%llu", words[1]);
        break;
    case MAREY_RECORD_REPEAT:
        reading->lanes[batch->lane->lane].repeat = words[1];
        break;
    case MAREY_RECORD_ARGUMENTS:
        append(reading, latest(reading), " a%llu",
               marey__crc32c(0, &words[2], words[1]) % 1000 + 1000 * words[1]);
        break;
    case MAREY_RECORD_COMMUNICATION: {
        struct marey_communication c;
        marey_record_communication(words, &c);
        append(reading, latest(reading), " m%llu",
               c.bytes_in + 3 * c.bytes_out + 5 * c.sequence + 7 * c.group_size +
                   11 * (uint64_t)(uint32_t)c.peer + 13 * (unsigned)c.what);
        break;
    }
    case MAREY_RECORD_COUNTER:
        memcpy(&value, &words[2], sizeof value);
        add_fact(reading->facts, fact_of(reading, batch, ns, marey_record_site(words[1])));
        append(reading, latest(reading), " =%llu", (uint64_t)value);
        break;
    case MAREY_RECORD_FLOW:
        add_fact(reading->facts, fact_of(reading, batch, ns, marey_record_site(words[1])));
        append(reading, latest(reading), " f%llu", words[2]);
        append(reading, latest(reading), " %llu", words[3]);
        break;
    case MAREY_RECORD_ASYNC_BEGIN:
    case MAREY_RECORD_ASYNC_END:
    case MAREY_RECORD_ITERATION:
    case MAREY_RECORD_ITERATION_BEGIN:
        add_fact(reading->facts, fact_of(reading, batch, ns, 0));
        append(reading, latest(reading), "type%llu", marey_record_type_of(words[0]));
        append(reading, latest(reading), " %llu",
               marey_record_type_of(words[0]) >= MAREY_RECORD_ITERATION ? words[1] : words[2]);
        break;
    case MAREY_RECORD_COVERED: /* of self times: test_sink_order.c */
    case MAREY_RECORD_AROUND:
        break;
    default:
        fail_msg("a record of type %u", marey_record_type_of(words[0]));
    }
}

static marey_status read_batch(void *ctx, const struct marey_batch *batch)
{
    struct reading *reading = ctx;
    assert_int_equal(batch->gap, 0);
    assert_true(batch->lane->lane < MAREY__COUNT_OF(reading->lanes));
    struct reading_lane *lane = &reading->lanes[batch->lane->lane];
    for (size_t i = 0; i < batch->n; i += step_of(batch->words[i])) {
        const uint64_t word = batch->words[i];
        assert_true(marey_batch_ns(batch, word) >= lane->last_ns);
        lane->last_ns = marey_batch_ns(batch, word);
        if (marey_word_kind(word) == MAREY_KIND_RECORD)
            take_record(reading, batch, &batch->words[i]);
        else if (marey_word_kind(word) == MAREY_KIND_BEGIN)
            begin(reading, batch, word);
        else if (marey_word_kind(word) == MAREY_KIND_END)
            end(reading, batch, word);
        else
            add_fact(reading->facts,
                     fact_of(reading, batch, marey_batch_ns(batch, word), marey_word_id(word)));
    }
    return MAREY_OK;
}

static void read_facts(marey_recording *recording, struct facts *facts, size_t *n_lanes)
{
    static struct reading reading;
    memset(&reading, 0, sizeof reading);
    reading.facts = facts;
    reading.recording = recording;
    assert_null(marey_recording_warning(recording, 0));
    *n_lanes = 0;
    for (size_t p = 0; p < marey_recording_n_processes(recording); p++) {
        assert_int_equal(marey_recording_visit(recording, p, read_batch, &reading), MAREY_OK);
        *n_lanes += marey_recording_process(recording, p)->n_lanes;
    }
    for (size_t i = 0; i < MAREY__COUNT_OF(reading.lanes); i++) {
        assert_int_equal(reading.lanes[i].depth, 0);
        free(reading.lanes[i].open);
    }
}

/* ---- a sink over a temporary store ---- */

struct fixture {
    struct marey__log_store *store;
    marey__sink *sink;
    marey__sink_process *process;
};

static void open_sink(struct fixture *f, uint64_t memory_bytes)
{
    assert_int_equal(marey__log_store_open(NULL, &f->store), MAREY_OK);
    const struct marey__sink_options options = {.store = f->store,
                                                .memory_bytes = memory_bytes,
                                                .command = "trace.json",
                                                .source = "test",
                                                .run_id = "r"};
    assert_int_equal(marey__sink_create(&options, &f->sink), MAREY_OK);
    f->process = marey__sink_process_get(f->sink, 42);
    assert_non_null(f->process);
}

static marey_recording *close_sink(struct fixture *f)
{
    marey_recording *recording = NULL;
    assert_int_equal(marey__sink_finish(f->sink), MAREY_OK);
    assert_int_equal(marey__log_store_read(f->store, "trace.json", &recording), MAREY_OK);
    marey__sink_destroy(f->sink);
    marey__log_store_close(f->store);
    return recording;
}

static uint32_t site(struct fixture *f, const char *name)
{
    return marey__sink_site(f->process,
                            &(struct marey__sink_site){.name = name, .name_len = strlen(name)});
}

/* ---- random events ---- */

static uint64_t random_state;

static uint64_t next_random(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 33;
}

static const struct marey_communication some_communication = {.what = MAREY_COLLECTIVE_ALL_REDUCE,
                                                              .bytes_in = 100,
                                                              .bytes_out = 200,
                                                              .sequence = 7,
                                                              .group_size = 2,
                                                              .peer = -1};
static char arguments[200];

static struct marey__sink_event random_event(uint64_t span, const uint32_t *sites,
                                             const uint32_t *lanes)
{
    static const enum marey__sink_kind kinds[] = {
        MAREY__SINK_SLICE, MAREY__SINK_SLICE,   MAREY__SINK_SLICE,
        MAREY__SINK_SLICE, MAREY__SINK_GPU,     MAREY__SINK_MARK,
        MAREY__SINK_FLOW,  MAREY__SINK_COUNTER, MAREY__SINK_ASYNC_BEGIN};
    struct marey__sink_event event = {.kind = kinds[next_random() % MAREY__COUNT_OF(kinds)],
                                      .site = sites[next_random() % 5],
                                      .lane = lanes[next_random() % 3],
                                      .ns = 1700000000000000000u + next_random() % span,
                                      .duration_ns = next_random() % (1 + span / 4),
                                      .id = next_random() % 100,
                                      .value = (double)(next_random() % 50),
                                      .work_kind = MAREY_WORK_KERNEL,
                                      .bytes = next_random() % 1000};
    if (event.kind == MAREY__SINK_GPU) {
        event.lane = lanes[3 + next_random() % 2];
        event.correlation = next_random() % 1000;
    }
    if (event.kind == MAREY__SINK_SLICE && next_random() % 4 == 0)
        event.correlation = 1 + next_random() % 1000;
    if (event.kind == MAREY__SINK_SLICE && next_random() % 4 == 0)
        event.repeat = 2 + next_random() % 10;
    if (next_random() % 4 == 0)
        event.communication = &some_communication;
    if (next_random() % 4 == 0) {
        event.arguments = arguments;
        event.arguments_len = next_random() % sizeof arguments;
    }
    return event;
}

static const char *const names[] = {"forward", "backward", "step", "load", "loss"};

/* The expected form of the event. */
static struct fact expected_fact(const struct marey__sink_event *event, const uint32_t *sites,
                                 const int64_t *tids)
{
    struct fact fact = {.begin = event->ns, .end = event->ns, .tid = tids[event->lane]};
    char *at = fact.what, *const stop = fact.what + sizeof fact.what;
    const bool is_range = event->kind == MAREY__SINK_SLICE || event->kind == MAREY__SINK_GPU;
    size_t name = 0;
    while (sites[name] != event->site)
        name++;
    if (event->kind == MAREY__SINK_ASYNC_BEGIN) {
        snprintf(at, sizeof fact.what, "type4 %llu", (unsigned long long)event->id);
        return fact;
    }
#define PUT(...) (at += snprintf(at, (size_t)(stop - at), __VA_ARGS__))
    PUT("%s", names[name]);
    if (is_range)
        fact.end = event->ns + event->duration_ns;
    if (event->kind == MAREY__SINK_SLICE && event->repeat != 0)
        PUT(" x%llu", (unsigned long long)event->repeat);
    if (event->kind == MAREY__SINK_GPU)
        PUT(" k1 c%llu b%llu", (unsigned long long)event->correlation,
            (unsigned long long)event->bytes);
    else if (is_range && event->correlation != 0)
        PUT(" c%llu", (unsigned long long)event->correlation);
    if (is_range && event->communication != NULL)
        PUT(" m%llu", 100 + 600 + 35 + 14 + 11 * (unsigned long long)UINT32_MAX + 13);
    if (is_range && event->arguments_len != 0)
        PUT(" a%llu", marey__crc32c(0, arguments, event->arguments_len) % 1000 +
                          1000 * (unsigned long long)event->arguments_len);
    if (event->kind == MAREY__SINK_COUNTER)
        PUT(" =%llu", (unsigned long long)event->value);
    if (event->kind == MAREY__SINK_FLOW)
        PUT(" f%llu 0", (unsigned long long)event->id);
#undef PUT
    return fact;
}

static void random_events_come_back(uint64_t seed, size_t n, uint64_t span, uint64_t memory_bytes)
{
    struct fixture f;
    struct facts expected = {0}, got = {0};
    uint32_t sites[5], lanes[5];
    size_t n_lanes;
    random_state = seed;
    open_sink(&f, memory_bytes);
    for (size_t i = 0; i < 5; i++)
        sites[i] = site(&f, names[i]);
    for (size_t i = 0; i < 3; i++)
        lanes[i] = marey__sink_thread(f.process, 100 + (int64_t)i);
    lanes[3] = marey__sink_stream(f.process, 1, 7);
    lanes[4] = marey__sink_stream(f.process, 0, 9);
    const int64_t tids[] = {100, 101, 102, (INT64_C(1) << 32) + 7, 9};
    for (size_t i = 0; i < n; i++) {
        const struct marey__sink_event event = random_event(span, sites, lanes);
        marey__sink_put(f.process, &event);
        add_fact(&expected, expected_fact(&event, sites, tids));
    }
    assert_int_equal(f.sink->n_events, n);
    marey_recording *recording = close_sink(&f);
    read_facts(recording, &got, &n_lanes);
    assert_same_facts(&expected, &got);
    marey_recording_close(recording);
    free(expected.all);
    free(got.all);
}

static void what_is_put_in_any_order_is_read_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof arguments; i++)
        arguments[i] = (char)('a' + i % 26);
    for (uint64_t seed = 1; seed <= 30; seed++)
        random_events_come_back(seed, 40, 1 + seed * seed * seed, 0);
    random_events_come_back(99, 20000, UINT64_C(1) << 44, 0);
}

static void what_does_not_fit_is_sorted_on_disk(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++)
        random_events_come_back(seed, 300, 5000, 4096 << (seed % 4));
    random_events_come_back(7, 20000, 1000000000, 64 << 10);
}

static void times_may_be_shifted_once_all_is_put(void **state)
{
    (void)state;
    struct fixture f;
    struct facts got = {0};
    size_t n_lanes;
    open_sink(&f, 0);
    const struct marey__sink_event event = {.kind = MAREY__SINK_SLICE,
                                            .lane = marey__sink_thread(f.process, 1),
                                            .site = site(&f, "step"),
                                            .ns = 4458676983543183,
                                            .duration_ns = 1001};
    marey__sink_put(f.process, &event);
    f.process->shift_ns = 1719853884000000000;
    marey_recording *recording = close_sink(&f);
    read_facts(recording, &got, &n_lanes);
    assert_int_equal(got.n, 1);
    assert_int_equal(got.all[0].begin, 1724312560983543183);
    assert_int_equal(got.all[0].end, 1724312560983544184);
    marey_recording_close(recording);
    free(got.all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_in_any_order_is_read_back),
        cmocka_unit_test(what_does_not_fit_is_sorted_on_disk),
        cmocka_unit_test(times_may_be_shifted_once_all_is_put),
    };
    return cmocka_run_group_tests_name("sink", tests, NULL, NULL);
}
