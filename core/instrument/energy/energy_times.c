/*
 * The timetable and its sources: the RAPL zones, and those of the machine's GPUs that a process waiting for the
 * recording may use. The buffer of power samples is read before it overflows, or power itself often; everything else as
 * seldom as its cost suggests; energy counters mostly where epochs begin and end. All of it runs in the thread, with
 * readings under the lock that excludes forks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "instrument/energy/internal.h"
#include <marey/iteration.h>

/*
 * ---- how often something is read, by the cost of a reading ----
 *
 * Measuring may take 0.1 % of a core per GPU. The buffer of power samples needs about 0.03 % where drivers are slow,
 * the thread itself 0.005 %. The others share the rest, leaving some for the last readings, which cost a short run as
 * much as a long one. The first reading measures the cost, before the measured time, so that a run of seconds has the
 * right periods too.
 */
enum { SECOND_MS = 1000 };

static const struct {
    uint32_t share; /* 10^-6 of a core */
    uint32_t least_ms, most_ms;
} paces[MAREY__N_PACED] = {
    [MAREY__DUE_POWER] = {400, SECOND_MS / 20, SECOND_MS / 10},
    /* Power gives the shape in between. An expensive counter is reserved for epochs. */
    [MAREY__DUE_COUNT] = {150, 4 * SECOND_MS, 30 * SECOND_MS},
    [MAREY__DUE_UTILIZATION] = {200, SECOND_MS, 10 * SECOND_MS},
    [MAREY__DUE_GPM] = {40, SECOND_MS, 8 * SECOND_MS},
    [MAREY__DUE_STATE] = {30, SECOND_MS, 8 * SECOND_MS},
};

void marey__pace_note(struct marey__due *due, uint64_t cost_ns)
{
    /* In the first call the driver allocates. */
    due->cost_ns = due->n_costs++ < 2 ? cost_ns : (3 * due->cost_ns + cost_ns) / 4;
}

uint64_t marey__pace_period_ns(enum marey__due_kind kind, uint64_t cost_ns)
{
    const uint64_t least_ns = paces[kind].least_ms * UINT64_C(1000000),
                   most_ns = paces[kind].most_ms * UINT64_C(1000000),
                   period_ns = cost_ns * 1000000 / paces[kind].share;
    return MAREY__MIN(MAREY__MAX(period_ns, least_ns), most_ns);
}

/* The driver's utilization buffer must not overflow: leaves a quarter as reserve. */
static uint64_t longest_ns(const struct marey__energy_session *s)
{
    uint64_t most_ns = UINT64_MAX;
    for (size_t i = 0; i < s->n_gpus; i++)
        if (s->gpus[i].has_samples && s->gpus[i].kept_us > 0)
            most_ns = MAREY__MIN(most_ns, s->gpus[i].kept_us * 750);
    return MAREY__MAX(most_ns, MAREY__SECOND_NS);
}

uint64_t marey__pace_plan(const struct marey__energy_session *s, enum marey__due_kind kind)
{
    if (kind == MAREY__DUE_POWER && s->power_hz != 0)
        return MAREY__SECOND_NS / s->power_hz;
    const uint64_t period_ns = marey__pace_period_ns(kind, s->due[kind].cost_ns);
    return kind == MAREY__DUE_UTILIZATION ? MAREY__MIN(period_ns, longest_ns(s)) : period_ns;
}

/* A reading takes milliseconds, as some do with some drivers. */
static bool is_dear(const struct marey__due *due)
{
    return due->cost_ns > 1000000;
}

bool marey__pace_can_afford(const struct marey__energy_session *s, enum marey__due_kind kind,
                            uint64_t now_ns)
{
    const struct marey__due *const due = &s->due[kind];
    if (!is_dear(due))
        return true;
    const uint64_t spent_ns = marey__clock_ns(CLOCK_THREAD_CPUTIME_ID) - s->cpu_ns,
                   allowed_ns = (now_ns - s->began_ns) / 1000 * s->n_gpus;
    return spent_ns + due->cost_ns * s->n_gpus <= allowed_ns / 100 * 85;
}

/* ---- readings, and their cost ---- */

static void read_one_power(struct marey__energy_gpu *gpu)
{
    marey__energy_gpu_power(gpu, marey__energy_now_ns());
}

static void read_power(struct marey__energy_gpu *gpu)
{
    if (!gpu->ring.is_used)
        read_one_power(gpu);
}

static void read_count(struct marey__energy_gpu *gpu)
{
    marey__energy_gpu_count(gpu, marey__energy_now_ns());
}

typedef void energy_reader(struct marey__energy_gpu *gpu);
static energy_reader *const readers[MAREY__N_PACED] = {
    [MAREY__DUE_POWER] = read_power,
    [MAREY__DUE_COUNT] = read_count,
    [MAREY__DUE_UTILIZATION] = marey__energy_gpu_utilization,
    [MAREY__DUE_GPM] = marey__energy_gpu_gpm,
    [MAREY__DUE_STATE] = marey__energy_gpu_state,
};

/* One GPU at a time, so that a fork may come between two. */
static void read_all(struct marey__energy_session *s, energy_reader *read)
{
    for (size_t i = 0; i < s->n_gpus; i++) {
        MAREY__HOLD(&s->calls);
        read(&s->gpus[i]);
    }
}

/* Reads all GPUs, and plans the next time by the cost. */
static void read_paced(struct marey__energy_session *s, enum marey__due_kind kind, uint64_t now)
{
    struct marey__due *const due = &s->due[kind];
    const uint64_t cpu_ns = marey__clock_ns(CLOCK_THREAD_CPUTIME_ID);
    due->read_ns = now;
    if (s->n_gpus == 0)
        return;
    read_all(s, readers[kind]);
    marey__pace_note(due, (marey__clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns) / s->n_gpus);
    const uint64_t period_ns = marey__pace_plan(s, kind);
    if (period_ns != due->period_ns)
        due->next_ns = now + period_ns;
    due->period_ns = period_ns;
}

/* Reads everything of one GPU once, to measure the cost. */
static void read_first(struct marey__energy_session *s, struct marey__energy_gpu *gpu)
{
    for (enum marey__due_kind kind = 0; kind < MAREY__N_PACED; kind++) {
        const uint64_t cpu_ns = marey__clock_ns(CLOCK_THREAD_CPUTIME_ID);
        readers[kind](gpu);
        marey__pace_note(&s->due[kind], marey__clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
    }
    marey__energy_ring_open(gpu, s->power_hz);
}

static void read_zones(struct marey__energy_session *s)
{
    for (size_t i = 0; i < s->n_zones; i++)
        marey__zone_read(&s->zones[i], marey__energy_now_ns());
}

static void read_rings(struct marey__energy_session *s, uint64_t now)
{
    read_all(s, marey__energy_ring_read);
    s->due[MAREY__DUE_RING].next_ns = now + s->due[MAREY__DUE_RING].period_ns;
}

/* The counter is compared with the integral of power up to here. */
static void read_counts(struct marey__energy_session *s, uint64_t now)
{
    read_rings(s, now);
    read_paced(s, MAREY__DUE_COUNT, now);
}

/* ---- descriptions ---- */

static void describe(struct marey__energy_session *s)
{
    struct marey__buf sources = {0};
    uint64_t period_ns[MAREY__N_PACED];
    for (enum marey__due_kind kind = 0; kind < MAREY__N_PACED; kind++)
        period_ns[kind] = marey__pace_plan(s, kind);
    for (size_t i = 0; i < s->n_gpus; i++)
        marey__energy_gpu_describe(&s->gpus[i], period_ns, &sources);
    for (size_t i = 0; i < s->n_zones; i++)
        marey__zone_describe(&s->zones[i], &sources);
    if (sources.len > 0)
        sources.len--; /* the last newline */
    marey__energy_put_text(MAREY__KEY_ENERGY_SOURCES, &sources);
}

static void describe_node(struct marey__energy_session *s)
{
    struct marey__buf text = {0};
    struct marey__visible_device devices[MAREY__MAX_GPUS];
    const char *visible = getenv("CUDA_VISIBLE_DEVICES"), *order = getenv("CUDA_DEVICE_ORDER");
    marey__node_gpus_put(&text, s->nodes, s->n_nodes);
    marey__energy_put_text(MAREY__KEY_GPUS, &text);
    if (s->settings.role != NULL || marey__visible_is_ambiguous(visible, order, s->nodes, s->n_nodes))
        return;
    const size_t n = marey__visible_choose(visible, s->nodes, s->n_nodes, devices);
    marey__visible_put(&text, s->nodes, devices, n);
    marey__energy_put_text(MAREY__KEY_DEVICES, &text);
}

/* ---- GPUs ---- */

static void look_for_slices(struct marey__energy_session *s, size_t i)
{
    const struct marey__nvml *const nvml = &s->nvml;
    struct marey__node_gpu *const node = &s->nodes[i];
    unsigned is_on = 0, later = 0, n = 0;
    if (nvml->mig_mode == NULL || nvml->mig_count == NULL || nvml->mig_by_index == NULL ||
        nvml->mig_mode(s->devices[i], &is_on, &later) != 0 || !is_on ||
        nvml->mig_count(s->devices[i], &n) != 0)
        return;
    for (unsigned m = 0; m < n && node->n_slices < MAREY__MAX_SLICES; m++) {
        marey__nvml_device slice;
        char *const uuid = node->slices[node->n_slices];
        if (nvml->mig_by_index(s->devices[i], m, &slice) == 0 &&
            nvml->uuid(slice, uuid, MAREY__UUID_MAX) == 0 && uuid[0] != '\0')
            node->n_slices++;
        uuid[MAREY__UUID_MAX - 1] = '\0';
    }
}

/* Opens each usable GPU; the others keep their number, because CUDA counts them too. */
static void look_at_node(struct marey__energy_session *s, size_t i)
{
    struct marey__node_gpu *const node = &s->nodes[i];
    int error = s->nvml.by_index((unsigned)i, &s->devices[i]);
    if (error == 0)
        error = s->nvml.uuid(s->devices[i], node->uuid, sizeof node->uuid);
    node->uuid[sizeof node->uuid - 1] = '\0';
    if (error != 0 || node->uuid[0] == '\0') {
        node->uuid[0] = '\0';
        marey__energy_warn("GPU %zu is not measured: NVML says \"%s\" (error %d)", i,
                           marey__nvml_words(&s->nvml, error), error);
        return;
    }
    if (s->nvml.name == NULL || s->nvml.name(s->devices[i], node->model, sizeof node->model) != 0)
        snprintf(node->model, sizeof node->model, "without a name");
    node->model[sizeof node->model - 1] = '\0';
    s->n_asked++;
    look_for_slices(s, i);
}

static bool make_room(struct marey__energy_session *s, unsigned n)
{
    s->n_nodes = MAREY__MIN(n, (unsigned)MAREY__MAX_GPUS);
    s->nodes = marey__calloc(s->n_nodes, sizeof *s->nodes);
    s->devices = marey__calloc(s->n_nodes, sizeof *s->devices);
    s->gpus = marey__calloc(s->n_nodes, sizeof *s->gpus);
    if (s->nodes != NULL && s->devices != NULL && s->gpus != NULL)
        return true;
    s->n_nodes = 0;
    return false;
}

static void open_nvml(struct marey__energy_session *s)
{
    unsigned n = 0;
    if (marey__nvml_open(&s->nvml) != MAREY_OK) {
        marey__energy_warn("%s", marey_last_error());
        return;
    }
    s->has_nvml = true;
    marey__energy_stop_at_exit();
    const int error = s->nvml.count(&n);
    if (error != 0)
        marey__energy_warn("the energy of GPUs is not measured: NVML says \"%s\" (error %d)",
                           marey__nvml_words(&s->nvml, error), error);
    else if (n == 0)
        marey__energy_warn("the energy of GPUs is not measured: NVML sees no GPU");
    else if (!make_room(s, n))
        marey__energy_warn("the energy of GPUs is not measured: no memory");
    for (size_t i = 0; i < s->n_nodes; i++)
        look_at_node(s, i);
    if (s->n_nodes > 0)
        describe_node(s);
}

static void add_gpu(struct marey__energy_session *s, const struct marey__visible_device *device)
{
    const struct marey__node_gpu *const node = &s->nodes[device->gpu];
    for (size_t i = 0; i < s->n_gpus; i++)
        if (s->gpus[i].node == node)
            return;
    if (node->uuid[0] == '\0')
        return;
    struct marey__energy_gpu *const gpu = &s->gpus[s->n_gpus++];
    marey__energy_gpu_init(gpu, &s->nvml, s->devices[device->gpu], node, device->gpu);
    if (device->slice >= 0)
        marey__energy_warn("%s is a slice of GPU %" PRIu32
                           " (%s): its power and energy are those of "
                           "the whole GPU",
                           node->slices[device->slice], device->gpu, node->uuid);
    read_first(s, gpu);
}

/* Adds the GPUs that one process may use; `visible` NULL: all. */
static void add_visible(struct marey__energy_session *s, const char *visible)
{
    struct marey__visible_device devices[MAREY__MAX_GPUS];
    if (marey__visible_is_ambiguous(visible, getenv("CUDA_DEVICE_ORDER"), s->nodes, s->n_nodes) &&
        visible != NULL) {
        marey__energy_warn(
            "CUDA_VISIBLE_DEVICES=%s may mean other GPUs than NVML's numbers, as there "
            "are several models: all are measured; set CUDA_DEVICE_ORDER=PCI_BUS_ID",
            visible);
        visible = NULL;
    }
    const size_t n = marey__visible_choose(visible, s->nodes, s->n_nodes, devices);
    for (size_t i = 0; i < n; i++)
        add_gpu(s, &devices[i]);
}

/* Adds the GPUs of all waiting processes, or of those that came since the last call. */
static void sources_add(struct marey__energy_session *s)
{
    char line[4200];
    bool is_set;
    const size_t n_before = s->n_gpus;
    while (s->n_nodes > 0 &&
           marey__energy_lock_next(&s->lock, &s->lock_at, line, sizeof line, &is_set))
        add_visible(s, is_set ? line : NULL);
    if (s->n_gpus > n_before)
        describe(s);
}

/* ---- open and close ---- */

void marey__energy_sources_open(struct marey__energy_session *s)
{
    pthread_mutex_lock(&s->calls);
    __atomic_store_n(&s->is_opening, true, __ATOMIC_RELAXED);
    s->n_zones = marey__zones_open(s->zones);
    read_zones(s);
    open_nvml(s);
    __atomic_store_n(&s->is_opening, false, __ATOMIC_RELAXED);
    if (s->lock.file.fd >= 0)
        sources_add(s); /* including our own */
    else if (s->n_nodes > 0)
        add_visible(s, getenv("CUDA_VISIBLE_DEVICES"));
    pthread_mutex_unlock(&s->calls);
    if (s->n_asked > 0 && s->n_gpus == 0)
        marey__energy_warn("no GPU is measured: CUDA_VISIBLE_DEVICES leaves the program none");
    marey__energy_write(s, false);
    describe(s);
}

/* Skips an expensive reading that was just made, as at the end of an epoch. */
static void read_last(struct marey__energy_session *s, enum marey__due_kind kind)
{
    const uint64_t now = marey__energy_now_ns();
    if (!is_dear(&s->due[kind]) || now >= s->due[kind].read_ns + MAREY__SECOND_NS)
        read_paced(s, kind, now);
}

void marey__energy_sources_close(struct marey__energy_session *s)
{
    struct marey__buf cpu = {0};
    read_zones(s);
    read_all(s, marey__energy_ring_read);
    read_all(s, read_one_power);
    read_last(s, MAREY__DUE_COUNT);
    read_last(s, MAREY__DUE_UTILIZATION);
    read_last(s, MAREY__DUE_GPM);
    marey__energy_write(s, true);
    describe(s);
    marey__buf_printf(&cpu, "%" PRIu64, marey__clock_ns(CLOCK_THREAD_CPUTIME_ID) - s->cpu_ns);
    marey__energy_put_text(MAREY__KEY_ENERGY_CPU, &cpu);
    MAREY__HOLD(&s->calls);
    for (size_t i = 0; i < s->n_gpus; i++)
        marey__energy_gpu_fini(&s->gpus[i]);
    if (s->has_nvml)
        s->nvml.shutdown();
}

/* ---- the timetable ---- */

/*
 * Between readings of the energy counters: the minimum; and the maximum if there are epochs, whose edges have priority.
 */
#define COUNT_NS (4 * MAREY__SECOND_NS)
#define COUNT_BETWEEN_EDGES_NS (30 * MAREY__SECOND_NS)

/* Anything due within `early_ns` is read too, because a wakeup costs as much as a reading. */
static bool is_due(struct marey__due *due, uint64_t now, uint64_t early_ns)
{
    if (now + early_ns < due->next_ns)
        return false;
    due->next_ns += due->period_ns;
    if (due->next_ns <= now) /* it overslept: missed readings are skipped */
        due->next_ns = now + due->period_ns - (now - due->next_ns) % due->period_ns;
    return true;
}

/*
 * An epoch begins or ends: a reading here divides the energy of two epochs exactly. If the counter is too expensive for
 * all edges, skipped ones are interpolated by power, scaled to the counter on both sides.
 */
static void read_edge(struct marey__energy_session *s, uint64_t now, uint32_t n)
{
    if (n == s->n_edges)
        return;
    s->n_edges = n;
    s->has_edges = true; /* a reading in between would prevent the one at the next edge */
    if (now < s->edge_ns + MAREY__SECOND_NS / 20)
        return;
    s->edge_ns = now;
    if (now >= s->due[MAREY__DUE_COUNT].read_ns + COUNT_NS &&
        marey__pace_can_afford(s, MAREY__DUE_COUNT, now))
        read_counts(s, now);
    read_zones(s);
    read_all(s, read_power); /* the buffer has samples on both sides */
}

static uint64_t next_count_ns(const struct marey__energy_session *s)
{
    const struct marey__due *const due = &s->due[MAREY__DUE_COUNT];
    return due->read_ns + (s->has_edges ? COUNT_BETWEEN_EDGES_NS : due->period_ns);
}

static void look_at_rings(struct marey__energy_session *s)
{
    uint64_t period_ns = UINT64_MAX;
    s->n_rings = 0;
    for (size_t i = 0; i < s->n_gpus; i++) {
        if (!s->gpus[i].ring.is_used || s->gpus[i].is_lost)
            continue;
        s->n_rings++;
        period_ns = MAREY__MIN(period_ns, marey__energy_ring_period_ns(&s->gpus[i].ring));
    }
    struct marey__due *const due = &s->due[MAREY__DUE_RING];
    if (s->n_rings > 0 && period_ns != due->period_ns)
        *due = (struct marey__due){marey__energy_now_ns() + period_ns, period_ns, 0, 0, 0};
}

/* Adds processes that came later, and tries buffers again that were empty. */
static void look_around(struct marey__energy_session *s)
{
    MAREY__HOLD(&s->calls);
    sources_add(s);
    for (size_t i = 0; i < s->n_gpus; i++)
        marey__energy_ring_open(&s->gpus[i], s->power_hz);
}

/* Slow readings are spread over the second, so that no reading waits for all others. */
void marey__energy_times_init(struct marey__energy_session *s)
{
    const uint64_t now = marey__energy_now_ns(), quarter = MAREY__SECOND_NS / 4;
    struct marey_progress_counts counts;
    marey_iteration_counts(&counts);
    s->has_edges = counts.in_epoch || counts.epochs > 0;
    for (enum marey__due_kind kind = 0; kind < MAREY__N_PACED; kind++) {
        s->due[kind].period_ns = marey__pace_plan(s, kind);
        s->due[kind].next_ns = now + s->due[kind].period_ns;
    }
    s->due[MAREY__DUE_UTILIZATION].next_ns -= 3 * quarter;
    s->due[MAREY__DUE_GPM].next_ns -= 3 * quarter;
    s->due[MAREY__DUE_STATE].next_ns -= 2 * quarter;
    s->due[MAREY__DUE_COUNT].read_ns = now;
    s->due[MAREY__DUE_CPUS] =
        (struct marey__due){.next_ns = now + 4 * quarter, .period_ns = 4 * quarter};
    s->due[MAREY__DUE_LINE] =
        (struct marey__due){.next_ns = now + 3 * quarter, .period_ns = 16 * quarter};
    look_at_rings(s);
    s->began_ns = now;
    s->cpu_ns = marey__clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static uint64_t next_ns(const struct marey__energy_session *s)
{
    uint64_t next = s->due[MAREY__DUE_LINE].next_ns;
    if (s->n_zones > 0)
        next = MAREY__MIN(next, s->due[MAREY__DUE_CPUS].next_ns);
    if (s->n_gpus == 0)
        return next;
    next = MAREY__MIN(next, next_count_ns(s));
    if (s->n_rings > 0)
        next = MAREY__MIN(next, s->due[MAREY__DUE_RING].next_ns);
    if (s->n_rings < s->n_gpus)
        next = MAREY__MIN(next, s->due[MAREY__DUE_POWER].next_ns);
    for (enum marey__due_kind kind = MAREY__DUE_UTILIZATION; kind < MAREY__N_PACED; kind++)
        next = MAREY__MIN(next, s->due[kind].next_ns);
    return next;
}

uint64_t marey__energy_times_read(struct marey__energy_session *s, uint64_t now, uint32_t n_edges)
{
    read_edge(s, now, n_edges);
    uint64_t early_ns = 0;
    if (s->n_rings > 0 && now >= s->due[MAREY__DUE_RING].next_ns) {
        read_rings(s, now);
        early_ns = s->due[MAREY__DUE_RING].period_ns / 2;
    }
    if (s->n_rings < MAREY__MAX(s->n_gpus, (size_t)1) && is_due(&s->due[MAREY__DUE_POWER], now, 0))
        read_paced(s, MAREY__DUE_POWER, now);
    if (is_due(&s->due[MAREY__DUE_CPUS], now, 0))
        read_zones(s);
    for (enum marey__due_kind kind = MAREY__DUE_UTILIZATION; kind < MAREY__N_PACED; kind++)
        if (is_due(&s->due[kind], now, MAREY__MIN(early_ns, s->due[kind].period_ns / 4)))
            read_paced(s, kind, now);
    if (now >= next_count_ns(s))
        read_counts(s, now);
    if (is_due(&s->due[MAREY__DUE_LINE], now, early_ns))
        look_around(s);
    look_at_rings(s);
    marey__energy_write(s, false);
    return next_ns(s);
}
