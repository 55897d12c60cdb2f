/*
 * Links calls to work and allocations: launched work by the ids in the trace, allocations by time. Like torch, adds an
 * allocation to every call that was running, on any thread.
 */
#include "analyze/operators/internal.h"

/* An id in the trace and its call. */
struct link {
    int64_t id;
    uint32_t call;
};

struct links {
    struct link *list; /* by id */
    size_t n, cap;
};

MAREY__ORDER_RUNS(link_before, struct link, MAREY__UP(id))

/* The first one with this id; MAREY__NO_OPERATOR_CALL: none. */
static uint32_t find_link(const struct links *links, int64_t id)
{
    size_t at;
    MAREY__BISECT(at, 0, links->n, links->list[at].id < id);
    return at < links->n && links->list[at].id == id ? links->list[at].call : MAREY__NO_OPERATOR_CALL;
}

static bool add_link(struct links *links, int64_t id, size_t call)
{
    if (id < 0)
        return true;
    return MAREY__PUSH(links->list, links->n, links->cap, (struct link){id, (uint32_t)call});
}

/* Operators by their own id, and runtime calls by correlation. */
static bool collect(const struct marey__operators *operators, struct links *by_id,
                    struct links *by_correlation)
{
    for (size_t i = 0; i < operators->n_calls; i++) {
        const struct marey__torch_event *event = marey__call_event(operators, &operators->calls[i]);
        if (event->kind == MAREY__TORCH_OP && !add_link(by_id, event->external_id, i))
            return false;
        if (event->kind == MAREY__TORCH_RUNTIME && !add_link(by_correlation, event->correlation, i))
            return false;
    }
    return marey__sort_runs(by_id->list, by_id->n, sizeof *by_id->list, link_before) &&
           marey__sort_runs(by_correlation->list, by_correlation->n, sizeof *by_correlation->list,
                            link_before);
}

/* The operator around a runtime call. */
static uint32_t operator_around(const struct marey__operators *operators, uint32_t call)
{
    while (call != MAREY__NO_OPERATOR_CALL &&
           marey__call_event(operators, &operators->calls[call])->kind != MAREY__TORCH_OP)
        call = operators->calls[call].parent;
    return call;
}

/*
 * The launching operator. In newer traces the work has the operator's id; in older ones that field repeats the
 * correlation, and the operator is the one around the launching call.
 */
static uint32_t launcher_of(const struct marey__operators *operators, const struct links *by_id,
                            const struct links *by_correlation, const struct marey__torch_event *work)
{
    const uint32_t call = work->correlation >= 0 ? find_link(by_correlation, work->correlation)
                                                 : MAREY__NO_OPERATOR_CALL;
    const bool has_own_id = work->external_id >= 0 && work->external_id != work->correlation;
    const uint32_t named = find_link(by_id, work->external_id);
    if (named != MAREY__NO_OPERATOR_CALL && (has_own_id || call == MAREY__NO_OPERATOR_CALL))
        return named;
    return operator_around(operators, call);
}

static bool link_work(struct marey__operators *operators)
{
    const struct marey__torch_trace *trace = operators->trace;
    struct links by_id = {0}, by_correlation = {0};
    const bool is_done = collect(operators, &by_id, &by_correlation);
    for (size_t i = 0; is_done && i < trace->n_events; i++) {
        const struct marey__torch_event *work = &trace->events[i];
        if (work->kind < MAREY__TORCH_KERNEL || work->kind > MAREY__TORCH_MEMSET)
            continue;
        const uint32_t call = launcher_of(operators, &by_id, &by_correlation, work);
        if (call != MAREY__NO_OPERATOR_CALL)
            marey__sum(&operators->calls[call].self_device_ns, work->end_ns - work->begin_ns);
    }
    MAREY__FREE_ALL(by_id.list, by_correlation.list);
    return is_done;
}

/* ---- allocations ---- */

/* Sums of all allocations before each. */
struct sums {
    int64_t cpu, device;
};

/* The first allocation at `ns` or later; with `behind`, later than it. */
static size_t find_time(const struct marey__torch_trace *trace, int64_t ns, bool behind)
{
    size_t at;
    MAREY__BISECT(at, 0, trace->n_memory,
                  trace->memory[at].ns < ns || (behind && trace->memory[at].ns == ns));
    return at;
}

static void add_up(const struct marey__torch_trace *trace, struct sums *sums)
{
    /* torch's device numbers: CPU, MKLDNN and IDEEP; CUDA, HIP, XPU and those of others. */
    const uint64_t host = 1 << 0 | 1 << 2 | 1 << 5, devices = 1 << 1 | 1 << 6 | 1 << 12 | 1 << 20;
    for (size_t i = 0; i < trace->n_memory; i++) {
        const struct marey__torch_memory *memory = &trace->memory[i];
        const uint64_t bit = memory->device_type >= 0 && memory->device_type < 64
                                 ? UINT64_C(1) << memory->device_type
                                 : 0;
        sums[i + 1] = sums[i];
        marey__sum(&sums[i + 1].cpu, (bit & host) != 0 ? memory->bytes : 0);
        marey__sum(&sums[i + 1].device, (bit & devices) != 0 ? memory->bytes : 0);
    }
}

static bool link_memory(struct marey__operators *operators)
{
    const struct marey__torch_trace *trace = operators->trace;
    if (trace->n_memory == 0)
        return true;
    struct sums *const sums MAREY__FREED = marey__calloc(trace->n_memory + 1, sizeof *sums);
    int32_t *const n_around MAREY__FREED = marey__calloc(trace->n_memory + 1, sizeof *n_around);
    operators->is_within = marey__calloc(trace->n_memory, 1);
    if (sums == NULL || n_around == NULL || operators->is_within == NULL)
        return false;
    add_up(trace, sums);
    for (size_t i = 0; i < operators->n_calls; i++) {
        struct marey__torch_call *call = &operators->calls[i];
        const struct marey__torch_event *event = marey__call_event(operators, call);
        const size_t from = find_time(trace, event->begin_ns, false),
                     to = find_time(trace, event->end_ns, true);
        call->cpu_bytes = (int64_t)((uint64_t)sums[to].cpu - (uint64_t)sums[from].cpu);
        call->device_bytes = (int64_t)((uint64_t)sums[to].device - (uint64_t)sums[from].device);
        n_around[from]++;
        n_around[to]--;
    }
    int32_t n = 0;
    for (size_t i = 0; i < trace->n_memory; i++)
        operators->is_within[i] = (n += n_around[i]) > 0;
    return true;
}

bool marey__operators_link(struct marey__operators *operators)
{
    return link_work(operators) && link_memory(operators);
}
