/* Reasons of idle time, against an independent count of each microsecond of random logs. */
#include "idle_fixture.h"

enum { LENGTH = 600, MAX_RANGES = 400, MAX_WORK = 40, N_WINDOWS = 3 };

struct model {
    struct {
        uint64_t begin, end;
        uint32_t lane, site;
    } ranges[MAX_RANGES];
    size_t n_ranges;
    struct {
        uint64_t begin, end, launch_begin, launch_end;
        uint32_t lane; /* of the launch; N_LANES: unknown */
        uint32_t around;
        uint32_t stream;
    } work[MAX_WORK];
    size_t n_work;
    struct marey__interval windows[N_WINDOWS];
};

static uint64_t seed;
static uint64_t any(uint64_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % below;
}

/* Ranges within [begin, end) of a thread, nested; a launch now and then. */
static void make_ranges(struct fixture *f, struct model *m, uint32_t lane, uint64_t begin,
                        uint64_t end, uint32_t around, int depth)
{
    static const uint32_t choice[] = {STEP, FORWARD,   ADD,  SYNC, MALLOC,
                                      DATA, OPTIMIZER, ITEM, GLOO};
    uint64_t at = begin;
    while (at + 4 < end && m->n_ranges < MAX_RANGES) {
        const uint64_t from = at + any(30), to = from + 1 + any(60);
        if (to > end)
            return;
        at = to;
        const bool launches = any(3) == 0 && m->n_work < MAX_WORK;
        const uint32_t site = launches ? LAUNCH : choice[any(MAREY__COUNT_OF(choice))];
        m->ranges[m->n_ranges].begin = from;
        m->ranges[m->n_ranges].end = to;
        m->ranges[m->n_ranges].lane = lane;
        m->ranges[m->n_ranges++].site = site;
        log_begin(&f->log, from * US, site);
        if (launches) {
            const uint64_t start = from > 20 && any(8) == 0 ? from - any(5) : from + any(60);
            log_launch(&f->log, from * US, m->n_work + 1);
            m->work[m->n_work].begin = start;
            m->work[m->n_work].end = start + 1 + any(25);
            m->work[m->n_work].launch_begin = from;
            m->work[m->n_work].launch_end = to;
            m->work[m->n_work].lane = lane;
            m->work[m->n_work].around = around;
            m->work[m->n_work++].stream = any(2) ? STREAM_7 : STREAM_20;
        } else if (depth < 4) {
            const bool is_operator = sites[site].category[0] != 'c' || sites[site].category[1] != 'u';
            make_ranges(f, m, lane, from, to, is_operator ? site : around, depth + 1);
        }
        log_end(&f->log, to * US, site);
    }
}

static void put_model_work(struct fixture *f, struct model *m)
{
    for (size_t i = 0; i < 3 && m->n_work < MAX_WORK; i++) {
        m->work[m->n_work].begin = any(LENGTH);
        m->work[m->n_work].end = m->work[m->n_work].begin + 1 + any(30);
        m->work[m->n_work].lane = N_LANES;
        m->work[m->n_work++].stream = STREAM_20;
    }
    for (uint32_t stream = STREAM_7; stream <= STREAM_20; stream++) {
        for (uint64_t t = 0; t < 2 * LENGTH; t++)
            for (size_t i = 0; i < m->n_work; i++)
                if (m->work[i].stream == stream && m->work[i].begin == t)
                    put_work(f, t, m->work[i].end, m->work[i].lane == N_LANES ? 0 : i + 1);
        log_put_words(&f->log, stream, 0);
    }
}

static bool is_busy(const struct model *m, uint64_t t)
{
    for (size_t i = 0; i < m->n_work; i++)
        if (m->work[i].begin <= t && t < m->work[i].end)
            return true;
    return false;
}

/* What a thread did at `t`; false when it had no range open. Ranges are in the order in which they were begun. */
static bool look_at_thread(const struct model *m, uint32_t lane, uint64_t t, uint32_t *reason,
                           uint32_t *site_around)
{
    static const uint32_t order[] = {SYNC, MALLOC, DATA, GLOO, OPTIMIZER, ITEM};
    bool is_open = false;
    size_t rank = MAREY__COUNT_OF(order);
    *reason = MAREY__IDLE_HOST;
    *site_around = 0;
    for (size_t i = 0; i < m->n_ranges; i++) {
        const uint32_t site = m->ranges[i].site;
        if (m->ranges[i].lane != lane || t < m->ranges[i].begin || t >= m->ranges[i].end)
            continue;
        is_open = true;
        if (site != STEP && site != LAUNCH && site != SYNC && site != MALLOC)
            *site_around = site;
        for (size_t j = 0; j < rank; j++)
            if (order[j] == site) {
                rank = j;
                *reason = sites[site].reason;
            }
    }
    return is_open;
}

struct counted {
    uint64_t by_reason[MAREY__N_IDLE_REASONS];
    uint64_t by_operator[MAREY__N_IDLE_REASONS][N_SITES];
    uint64_t by_step[N_WINDOWS][MAREY__N_IDLE_REASONS];
};

static bool is_launched_before(const struct model *m, size_t a, size_t b)
{
    if (m->work[a].lane == N_LANES || m->work[b].lane == N_LANES)
        return m->work[a].lane != N_LANES;
    return m->work[a].launch_begin != m->work[b].launch_begin
               ? m->work[a].launch_begin < m->work[b].launch_begin
               : m->work[a].lane < m->work[b].lane;
}

/* The reason of an idle microsecond, by the definitions alone. */
static void judge(const struct model *m, uint64_t t, uint64_t low, uint64_t high, uint32_t *reason,
                  uint32_t *site_around)
{
    uint64_t begin = t, end = t + 1;
    while (begin > low && !is_busy(m, begin - 1))
        begin--;
    while (end < high && !is_busy(m, end))
        end++;
    size_t next = MAX_WORK, last = MAX_WORK;
    for (size_t i = 0; i < m->n_work; i++) {
        if (m->work[i].begin == end && (next == MAX_WORK || is_launched_before(m, i, next)))
            next = i;
        if (m->work[i].end == begin && (last == MAX_WORK || is_launched_before(m, i, last)))
            last = i;
    }
    const size_t who = next != MAX_WORK ? next : last;
    *site_around = 0;
    *reason = MAREY__IDLE_UNKNOWN;
    if (who == MAX_WORK || m->work[who].lane == N_LANES)
        return;
    const uint64_t launch = m->work[who].launch_begin;
    if (next == MAX_WORK || t < launch) {
        if (!look_at_thread(m, m->work[who].lane, t, reason, site_around) && last != MAX_WORK &&
            m->work[last].lane != N_LANES && m->work[last].lane != m->work[who].lane)
            look_at_thread(m, m->work[last].lane, t, reason, site_around);
        return;
    }
    const uint64_t start = MAREY__MAX(begin, launch),
                   soon = MAREY__MAX(start, launch + MAREY__LAUNCH_LATENCY_NS / US),
                   rest = MAREY__MAX(soon, m->work[who].launch_end);
    const bool is_short = rest >= end || end - rest <= MAREY__KERNEL_GAP_NS / US;
    *site_around = m->work[who].around != STEP ? m->work[who].around : 0; /* a step names nothing */
    *reason = t < soon          ? MAREY__IDLE_LATENCY
              : t < rest        ? MAREY__IDLE_LAUNCH_CALL
              : !is_short       ? MAREY__IDLE_QUEUED
              : launch <= begin ? MAREY__IDLE_KERNEL_GAP
                                : MAREY__IDLE_LATENCY;
}

static void count_model(const struct fixture *f, const struct model *m, struct counted *counted)
{
    uint64_t low = f->spans[0].begin_ns / US, high = f->spans[0].end_ns / US;
    for (size_t i = 0; i < N_WINDOWS; i++) {
        low = MAREY__MIN(low, m->windows[i].begin_ns / US);
        high = MAREY__MAX(high, m->windows[i].end_ns / US);
    }
    for (uint64_t t = low; t < high; t++) {
        uint32_t reason, site_around;
        if (is_busy(m, t))
            continue;
        judge(m, t, low, high, &reason, &site_around);
        if (t >= f->spans[0].begin_ns / US && t < f->spans[0].end_ns / US) {
            counted->by_reason[reason]++;
            counted->by_operator[reason][site_around]++;
        }
        for (size_t i = 0; i < N_WINDOWS; i++)
            counted->by_step[i][reason] +=
                t >= m->windows[i].begin_ns / US && t < m->windows[i].end_ns / US;
    }
}

static void make_model(struct fixture *f, struct model *m)
{
    *m = (struct model){0};
    for (uint32_t lane = MAIN; lane <= BACKWARD; lane++) {
        for (uint64_t i = 0; lane == MAIN && i < N_WINDOWS; i++)
            log_iteration_begin(&f->log, 0, i), log_iteration(&f->log, 0, i, false, 0);
        make_ranges(f, m, lane, lane == MAIN ? 0 : 150, LENGTH, 0, 0);
        log_put_words(&f->log, lane, 0);
    }
    put_model_work(f, m);
    uint64_t at = 0;
    for (size_t i = 0; i < N_WINDOWS; i++) {
        m->windows[i].begin_ns = at * US;
        at += any(250);
        m->windows[i].end_ns = (at + any(100)) * US; /* beyond the next one's begin */
    }
}

static void reasons_are_those_of_each_microsecond(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < 300; round++) {
        void *own;
        seed = round;
        assert_int_equal(setup(&own), 0);
        struct fixture *f = own;
        struct model m;
        struct counted counted = {0};
        make_model(f, &m);
        read_set(f);
        f->steps = calloc(N_WINDOWS, sizeof *f->steps);
        memcpy(f->steps, m.windows, sizeof m.windows);
        assert_int_equal(f->set.n_steps, N_WINDOWS);
        const struct marey__idle_device *device = find(f);
        count_model(f, &m, &counted);
        expect_reasons(device, counted.by_reason);
        uint64_t sum = 0, atoms = 0;
        for (size_t i = 0; i < MAREY__N_IDLE_REASONS; i++) {
            sum += device->ns[i];
            for (size_t w = 0; w < N_WINDOWS; w++)
                assert_int_equal(device->step_ns[w * MAREY__N_IDLE_REASONS + i],
                                 counted.by_step[w][i] * US);
            for (uint32_t site = 0; site < N_SITES; site++)
                assert_int_equal(operator_us(f, 0, (enum marey__idle_reason)i,
                                             site == 0 ? "" : sites[site].name),
                                 counted.by_operator[i][site]);
        }
        struct marey__sweep sweep;
        marey__sweep_begin(&sweep, f->spans, 1);
        for (size_t i = 0; i < f->set.devices[0].n_work; i++) {
            const struct marey__work *work = &f->set.devices[0].work[i];
            marey__sweep_add(&sweep, work->begin_ns, work->end_ns, work->class);
        }
        marey__sweep_finish(&sweep);
        atoms = sweep.atoms.ns[0];
        assert_int_equal(sum, atoms);
        teardown(&own);
    }
}

static void every_failed_allocation_is_reported(void **state)
{
    struct fixture *f = *state;
    struct model m;
    seed = 5;
    make_model(f, &m);
    read_set(f);
    f->steps = calloc(N_WINDOWS, sizeof *f->steps);
    memcpy(f->steps, m.windows, sizeof m.windows);
    const struct marey__idle_windows windows = {.whole = f->spans, .stride = 1, .steps = f->steps};
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        marey__alloc_fail_nth(nth);
        status = marey__idle_find(&f->idle, &f->set, &f->rules, &windows);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || (status == MAREY_ENOMEM && f->idle.devices == NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reasons_are_those_of_each_microsecond),
        cmocka_unit_test_setup_teardown(every_failed_allocation_is_reported, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
