/*
 * Memory of CUDA devices as reported by CUPTI, from a recording of `marey run --gpu`: each cudaMalloc and cudaFree, and
 * other calls that allocate from the driver. The correlation of the call leads to its ranges. A caching library such as
 * torch is seen only when it requests more.
 */
#include "analyze/memory/internal.h"

enum { MAX_FRAMES = 32 };

/* An allocation or a release. */
struct operation {
    uint64_t ns, address, bytes, correlation;
    size_t number; /* in reading order, which decides at equal timestamps */
    uint32_t site;
    int32_t device;
};

struct asked {
    uint64_t correlation;
    uint32_t stack;
};

struct reading {
    struct marey__memory_report *report;
    marey_recording *recording;
    const struct marey_process *process;
    struct marey__progress progress;
    struct operation *operations;
    size_t n_operations, operations_cap;
    struct asked *asked;
    size_t n_asked, asked_cap;
    struct marey__names chains; /* frames of stacks, as bytes, each once */
    struct marey__arena chain_texts;
    uint32_t *stacks; /* by chain */
    size_t stacks_cap;
    struct marey__held_spans phases, iterations;
    uint64_t n_placeless; /* operations without an address */
};

static const struct marey_site_info *site_of(const struct reading *r, uint32_t site)
{
    return marey_recording_site(r->recording, r->process->index,
                                site <= r->process->n_sites ? site : 0);
}

/* ---- reading ---- */

static bool take_operation(struct reading *r, const struct marey_batch *batch,
                           const uint64_t *words, uint64_t ns)
{
    if (marey_record_work_kind(words[1]) != MAREY_WORK_MEMORY)
        return true;
    const uint64_t address = marey_record_length(words[0]) > 5 ? words[5] : 0;
    if (address == 0) {
        r->n_placeless++;
        return true;
    }
    const struct operation operation = {.ns = ns,
                                        .address = address,
                                        .bytes = words[4],
                                        .correlation = words[3],
                                        .number = r->n_operations,
                                        .site = marey_record_site(words[1]),
                                        .device = batch->lane->device};
    return MAREY__PUSH(r->operations, r->n_operations, r->operations_cap, operation);
}

/* The open ranges of a thread, the innermost first, as a stack of the report. */
static bool stack_of(struct reading *r, const struct marey__lane_stack *lane, uint32_t *stack)
{
    uint32_t names[MAX_FRAMES];
    const size_t n = MAREY__MIN(lane->n_open, (size_t)MAX_FRAMES), known = r->chains.n;
    for (size_t i = 0; i < n; i++) {
        const struct marey_site_info *const site = site_of(r, lane->open[lane->n_open - 1 - i].site);
        names[i] = marey__memory_frame(r->report, site->name, site->name_len, "", 0);
        if (names[i] == MAREY__NO_NAME)
            return false;
    }
    const uint32_t chain =
        marey__names_keep(&r->chains, &r->chain_texts, (const char *)names, n * sizeof *names);
    if (chain == MAREY__NO_NAME)
        return false;
    if (chain >= known) {
        if (!marey__grow(&r->stacks, &r->stacks_cap, (size_t)chain + 1, sizeof *r->stacks))
            return false;
        r->stacks[chain] = marey__memory_stack_add(r->report, names, n);
    }
    *stack = r->stacks[chain];
    return *stack != MAREY__NO_STACK;
}

static bool take_call(struct reading *r, const struct marey__lane_stack *lane, uint64_t correlation)
{
    struct asked asked = {.correlation = correlation};
    if (lane->n_open == 0)
        return true;
    return stack_of(r, lane, &asked.stack) && MAREY__PUSH(r->asked, r->n_asked, r->asked_cap, asked);
}

static bool take_span(struct reading *r, const struct marey__span *span)
{
    return marey__memory_progress_add(r->report, span, site_of(r, span->site), &r->iterations,
                                      &r->phases);
}

static bool take_record(void *ctx, struct marey__lane_stack *lane, const struct marey_batch *batch,
                        const uint64_t *words, uint64_t ns)
{
    struct reading *const r = ctx;
    struct marey__span span;
    const uint32_t type = marey_record_type_of(words[0]);
    if (type == MAREY_RECORD_GPU)
        return take_operation(r, batch, words, ns);
    if (type == MAREY_RECORD_LAUNCH)
        return !marey_record_launches_memory(words) || take_call(r, lane, words[1]);
    return !marey__is_progress(type) || !marey__progress_take(&r->progress, words, ns, &span) ||
           take_span(r, &span);
}

/* ---- blocks ---- */

MAREY__ORDER(by_place, struct operation,
             MAREY__UP(device) MAREY__UP(address) MAREY__UP(ns) MAREY__UP(number))

MAREY__ORDER(by_correlation, struct asked, MAREY__UP(correlation))

static uint32_t who_asked(const struct reading *r, uint64_t correlation)
{
    const struct asked key = {.correlation = correlation};
    const struct asked *const found =
        r->n_asked != 0 ? bsearch(&key, r->asked, r->n_asked, sizeof *r->asked, by_correlation)
                        : NULL;
    return found != NULL ? found->stack : MAREY__NO_STACK;
}

/* "Device" of "take Device memory"; returns true for an allocation. */
static bool read_site(const struct marey_site_info *site, const char **kind, size_t *len)
{
    static const char take[] = "take ", give[] = "give back ", memory[] = " memory";
    const bool is_taken = strncmp(site->name, take, sizeof take - 1) == 0;
    const size_t prefix = is_taken                                          ? sizeof take - 1
                          : strncmp(site->name, give, sizeof give - 1) == 0 ? sizeof give - 1
                                                                            : 0;
    const size_t rest = site->name_len - prefix;
    *kind = site->name + prefix;
    *len = rest > sizeof memory - 1 ? rest - (sizeof memory - 1) : rest;
    return is_taken;
}

/* Host memory allocated by CUDA does not count for a device. */
static bool is_host(const char *kind, size_t len)
{
    return marey__text_is(kind, len, "Pinned") || marey__text_is(kind, len, "Pageable");
}

static struct marey__memory_pool *pool_of(struct reading *r, size_t first, int32_t device,
                                          bool is_host)
{
    char name[24];
    if (is_host)
        snprintf(name, sizeof name, "host, pinned");
    else
        snprintf(name, sizeof name, "cuda:%d", (int)device);
    for (size_t i = first; i < r->report->n_pools; i++)
        if (strcmp(r->report->pools[i].device, name) == 0)
            return &r->report->pools[i];
    struct marey__memory_pool *const pool = marey__memory_pool_add(r->report);
    if (pool == NULL)
        return NULL;
    memcpy(pool->device, name, sizeof name);
    pool->source = "CUPTI's records of CUDA memory";
    pool->pid = r->process->pid;
    pool->rank = r->process->rank;
    pool->first_ns = r->process->first_ns;
    pool->last_ns = r->process->last_ns;
    return pool;
}

/* One address after another: an allocation ends at the next operation there. */
static bool add_blocks(struct reading *r, size_t first_pool)
{
    for (size_t i = 0; i < r->n_operations; i++) {
        const struct operation *const at = &r->operations[i], *const next = i + 1 < r->n_operations
                                                                                ? at + 1
                                                                                : NULL;
        const char *kind;
        size_t len;
        const bool is_taken = read_site(site_of(r, at->site), &kind, &len);
        struct marey__memory_pool *const pool =
            pool_of(r, first_pool, at->device, is_host(kind, len));
        const bool has_next =
            next != NULL && next->address == at->address && next->device == at->device;
        struct marey__held_block block = {.begin_ns = is_taken ? at->ns : r->process->first_ns,
                                          .end_ns = !is_taken  ? at->ns
                                                    : has_next ? next->ns
                                                               : MAREY__ALIVE,
                                          .bytes = (double)at->bytes,
                                          .count = 1,
                                          .stack = is_taken ? who_asked(r, at->correlation)
                                                            : MAREY__NO_STACK,
                                          .is_before = !is_taken,
                                          .category = marey__memory_name(r->report, kind, len),
                                          .module = MAREY__NO_NAME};
        if (pool == NULL || block.category == MAREY__NO_NAME ||
            !marey__memory_block_add(pool, &block))
            return false;
        i += is_taken && has_next && !read_site(site_of(r, next->site), &kind, &len);
    }
    return true;
}

static bool copy_spans(struct marey__held_spans *into, const struct marey__held_spans *from)
{
    for (size_t i = 0; i < from->n; i++)
        if (!marey__memory_span_add(into, from->at[i].begin_ns, from->at[i].end_ns, from->at[i].name))
            return false;
    return true;
}

/* ---- the process ---- */

static bool make_pools(struct reading *r)
{
    const size_t first_pool = r->report->n_pools;
    qsort(r->operations, r->n_operations, sizeof *r->operations, by_place);
    if (r->n_asked != 0)
        qsort(r->asked, r->n_asked, sizeof *r->asked, by_correlation);
    if (!add_blocks(r, first_pool))
        return false;
    for (size_t i = first_pool; i < r->report->n_pools; i++)
        if (!copy_spans(&r->report->pools[i].phases, &r->phases) ||
            !copy_spans(&r->report->pools[i].iterations, &r->iterations))
            return false;
    return true;
}

static marey_status read_process(struct reading *r)
{
    struct marey__span span;
    static const struct marey__lane_visitor visitor = {.record = take_record};
    struct marey__range_walk walk = {
        .recording = r->recording, .process = r->process, .visitor = &visitor, .ctx = r};
    marey__progress_init(&r->progress, r->process, r->process->first_ns);
    MAREY_TRY(marey__range_walk(&walk));
    while (marey__progress_finish(&r->progress, r->process->last_ns, &span))
        MAREY__TRY_MEMORY(take_span(r, &span));
    if (r->n_placeless != 0)
        marey__put_note(r->report->tables[MAREY__MEMORY_NOTES],
                        "process %lld: %llu CUDA allocations or frees are left out: the recording "
                        "has no addresses for them",
                        (long long)r->process->pid, (unsigned long long)r->n_placeless);
    return r->n_operations == 0 || make_pools(r) ? MAREY_OK : marey__no_memory();
}

static void reading_fini(struct reading *r)
{
    MAREY__FREE_ALL(r->operations, r->asked, r->stacks, r->phases.at, r->iterations.at);
    marey__names_fini(&r->chains);
    marey__arena_fini(&r->chain_texts);
}

marey_status marey__memory_read_cuda(struct marey__memory_report *report,
                                     marey_recording *recording, const struct marey_process *process)
{
    struct reading r MAREY__FINALLY(reading_fini) = {
        .report = report, .recording = recording, .process = process};
    return marey__has_streams(recording, process->index) ? read_process(&r) : MAREY_OK;
}
