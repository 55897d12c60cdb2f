/*
 * Memory of CUDA devices, from a snapshot of torch's allocator: its history of allocations, which may start late, and
 * the final segments. Blocks alive at the end without an allocation in the history were allocated before it.
 */
#include "analyze/memory/internal.h"
#include "tensor/dumpfile/internal.h"

/* Allocated blocks by address. */
struct open_blocks {
    struct {
        uint64_t address;
        size_t block; /* plus one; 0: no longer allocated */
    } * items;
    size_t n, cap;
    struct marey__key_map by_address;
};

struct reading {
    struct marey__memory_report *report;
    const struct marey__python_values *pickle;
    uint32_t *stacks; /* by number of the list of frames: the report's, plus one */
    struct open_blocks open;
    struct marey__memory_pool *pool;
    bool has_times;
};

typedef const struct marey__python_value *value;

/* ---- values of a dict ---- */

static bool get_whole(const struct marey__python_values *pickle, value dict, const char *key,
                      int64_t *out)
{
    return marey__python_whole(marey__python_get(pickle, dict, key), out);
}

static bool get_number(const struct marey__python_values *pickle, value dict, const char *key,
                       double *out)
{
    return marey__python_number(marey__python_get(pickle, dict, key), out);
}

static const char *get_text(const struct marey__python_values *pickle, value dict, const char *key,
                            size_t *len)
{
    return marey__python_text(marey__python_get(pickle, dict, key), len);
}

/* ---- addresses ---- */

/* The entry of an address: its open block, plus one; NULL on out of memory. */
static size_t *open_at(struct open_blocks *open, uint64_t address)
{
    const uint32_t number =
        MAREY__MAP_NUMBER(&open->by_address, open->items, open->n, open->cap, address);
    return number != 0 ? &open->items[number - 1].block : NULL;
}

static void free_open(struct open_blocks *open)
{
    marey__free(open->items);
    marey__key_map_fini(&open->by_address);
    *open = (struct open_blocks){0};
}

/* ---- stacks ---- */

static void put_text(struct marey__buf *buf, value text)
{
    size_t len;
    const char *const bytes = marey__python_text(text, &len);
    if (bytes != NULL)
        marey__utf8_put(buf, bytes, len);
}

static uint32_t name_frame(struct reading *r, value frame)
{
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0},
                           file MAREY__FINALLY(marey__buf_fini) = {0};
    int64_t line = 0;
    get_whole(r->pickle, frame, "line", &line);
    put_text(&text, marey__python_get(r->pickle, frame, "name"));
    put_text(&file, marey__python_get(r->pickle, frame, "filename"));
    marey__buf_put(&file, "", 1);
    return text.failed || file.failed
               ? MAREY__NO_NAME
               : marey__memory_frame(r->report, text.data != NULL ? text.data : "", text.len,
                                     file.data[0] != '?' ? file.data : "", line);
}

/* The report's number of a list of frames; MAREY__NO_STACK for none. Returns false on out of memory. */
static bool stack_of(struct reading *r, value frames, uint32_t *stack)
{
    enum { MAX_FRAMES = 128 };
    uint32_t names[MAX_FRAMES];
    const size_t n = MAREY__MIN(marey__python_length(frames), (size_t)MAX_FRAMES);
    *stack = MAREY__NO_STACK;
    if (n == 0)
        return true;
    uint32_t *const known = &r->stacks[frames - r->pickle->values];
    for (size_t i = 0; *known == 0 && i < n; i++) {
        names[i] = name_frame(r, marey__python_item(r->pickle, frames, i));
        if (names[i] == MAREY__NO_NAME)
            return false;
    }
    if (*known == 0)
        *known = marey__memory_stack_add(r->report, names, n) + 1; /* NO_STACK plus one is 0 */
    *stack = *known - 1;
    return *known != 0;
}

/* ---- the history ---- */

static bool add_block(struct reading *r, value entry, uint64_t ns, double bytes, uint64_t end_ns,
                      bool is_before)
{
    struct marey__held_block block = {.begin_ns = ns,
                                      .end_ns = end_ns,
                                      .bytes = bytes,
                                      .count = 1,
                                      .is_before = is_before,
                                      .category = MAREY__NO_NAME,
                                      .module = MAREY__NO_NAME};
    size_t len;
    const char *const category = get_text(r->pickle, entry, "category", &len);
    if (category != NULL &&
        (block.category = marey__memory_name(r->report, category, len)) == MAREY__NO_NAME)
        return false;
    return stack_of(r, marey__python_get(r->pickle, entry, "frames"), &block.stack) &&
           marey__memory_block_add(r->pool, &block);
}

static bool take_event(struct reading *r, value entry, uint64_t ns)
{
    int64_t address = 0;
    double bytes = 0;
    const value action = marey__python_get(r->pickle, entry, "action");
    const bool is_alloc = marey__python_is(action, "alloc");
    const bool is_free = marey__python_is(action, "free_requested") ||
                         marey__python_is(action, "free_completed") ||
                         marey__python_is(action, "free");
    if ((!is_alloc && !is_free) || !get_whole(r->pickle, entry, "addr", &address) ||
        !get_number(r->pickle, entry, "size", &bytes) || bytes < 0)
        return true;
    size_t *const open = open_at(&r->open, (uint64_t)address);
    if (open == NULL)
        return false;
    if (is_alloc) {
        if (*open != 0) /* its free is not in the history */
            r->pool->blocks[*open - 1].end_ns = ns;
        *open = r->pool->n_blocks + 1;
        return add_block(r, entry, ns, bytes, MAREY__ALIVE, false);
    }
    if (*open != 0) {
        r->pool->blocks[*open - 1].end_ns = ns;
        *open = 0;
        return true;
    }
    /* A free has two events, requested and completed: the second finds no block. */
    if (marey__python_is(action, "free_completed"))
        return true;
    return add_block(r, NULL, r->pool->first_ns, bytes, ns, true);
}

static uint64_t moment_of(const struct reading *r, value entry, size_t i)
{
    int64_t us = 0;
    if (r->has_times && get_whole(r->pickle, entry, "time_us", &us) && us > 0 && us < INT64_MAX / 1000)
        return (uint64_t)us * 1000;
    return r->has_times ? r->pool->last_ns : i + 1;
}

/* Running sums of segment allocations and releases; the last one must equal the snapshot's. */
static bool take_reserved(struct reading *r, value trace, double at_end)
{
    double change = 0, bytes;
    for (int pass = 0; pass < 2; pass++) {
        double reserved = at_end - change;
        for (size_t i = 0; i < marey__python_length(trace); i++) {
            const value entry = marey__python_item(r->pickle, trace, i),
                        action = marey__python_get(r->pickle, entry, "action");
            const bool comes = marey__python_is(action, "segment_alloc") ||
                               marey__python_is(action, "segment_map"),
                       goes = marey__python_is(action, "segment_free") ||
                              marey__python_is(action, "segment_unmap");
            if ((!comes && !goes) || !get_number(r->pickle, entry, "size", &bytes))
                continue;
            reserved += comes ? bytes : -bytes;
            change += pass == 0 ? comes ? bytes : -bytes : 0;
            if (pass == 1 &&
                !marey__memory_reading_add(&r->pool->reserved, moment_of(r, entry, i), reserved))
                return false;
        }
    }
    return marey__memory_reading_add(&r->pool->reserved, r->pool->last_ns, at_end);
}

static bool take_history(struct reading *r, value trace)
{
    const size_t n = marey__python_length(trace);
    int64_t us;
    r->has_times = n != 0;
    for (size_t i = 0; i < n; i++)
        if (!get_whole(r->pickle, marey__python_item(r->pickle, trace, i), "time_us", &us))
            r->has_times = false;
    r->pool->is_ordered = !r->has_times;
    if (n == 0)
        return true;
    r->pool->first_ns = moment_of(r, marey__python_item(r->pickle, trace, 0), 0);
    r->pool->last_ns = moment_of(r, marey__python_item(r->pickle, trace, n - 1), n - 1);
    for (size_t i = 0; i < n; i++) {
        const value entry = marey__python_item(r->pickle, trace, i);
        if (!take_event(r, entry, moment_of(r, entry, i)))
            return false;
    }
    return true;
}

/* ---- segments ---- */

/* Blocks are contiguous; older snapshots do not store addresses. */
static bool take_segment_block(struct reading *r, value block, uint64_t address)
{
    double bytes = 0;
    struct marey__memory_pool *const pool = r->pool;
    if (!get_number(r->pickle, block, "size", &bytes) || bytes < 0)
        return true;
    if (marey__python_is(marey__python_get(r->pickle, block, "state"), "inactive")) {
        pool->inactive_bytes += bytes;
        pool->n_free++;
        pool->largest_free = bytes > pool->largest_free ? bytes : pool->largest_free;
        return true;
    }
    size_t *const open = open_at(&r->open, address);
    if (open == NULL)
        return false;
    pool->allocated_bytes += bytes;
    if (*open != 0) /* known from the history */
        return true;
    *open = pool->n_blocks + 1;
    return add_block(r, block, pool->first_ns, bytes, MAREY__ALIVE, true);
}

static bool take_segment(struct reading *r, value segment)
{
    const value blocks = marey__python_get(r->pickle, segment, "blocks");
    int64_t address = 0;
    double bytes = 0;
    get_whole(r->pickle, segment, "address", &address);
    if (get_number(r->pickle, segment, "total_size", &bytes) && bytes > 0)
        r->pool->segment_bytes += bytes;
    r->pool->n_segments++;
    r->pool->has_segments = true;
    uint64_t at = (uint64_t)address;
    const double allocated = r->pool->allocated_bytes, inactive = r->pool->inactive_bytes;
    for (size_t i = 0; i < marey__python_length(blocks); i++) {
        const value block = marey__python_item(r->pickle, blocks, i);
        int64_t own = 0, size = 0;
        if (get_whole(r->pickle, block, "address", &own))
            at = (uint64_t)own;
        if (!take_segment_block(r, block, at))
            return false;
        get_whole(r->pickle, block, "size", &size);
        at += (uint64_t)size;
    }
    if (r->pool->allocated_bytes == allocated)
        r->pool->whole_bytes += r->pool->inactive_bytes - inactive;
    return true;
}

static bool take_segments(struct reading *r, value segments, size_t device)
{
    for (size_t i = 0; i < marey__python_length(segments); i++) {
        const value segment = marey__python_item(r->pickle, segments, i);
        int64_t of = 0;
        get_whole(r->pickle, segment, "device", &of);
        if (of == (int64_t)device && !take_segment(r, segment))
            return false;
    }
    return true;
}

/*
 * ---- phases and iterations ----
 *
 * Phases and iterations are annotations in the snapshot's history. An optimizer's step is always annotated,
 * so every training has iterations.
 */

enum { MAX_OPEN = 64 };

struct marks {
    struct marey__memory_report *report;
    const struct marey__python_values *pickle;
    struct marey__memory_pool *pool;
    struct begun {
        uint64_t ns;
        const char *name;
        size_t len;
    } begun[MAX_OPEN];
    size_t n_begun;
    struct begun step;     /* name of the iterations, once known */
    bool has_profiler;     /* iterations are those of torch.profiler */
    uint64_t last_step_ns; /* end of the last iteration */
};

static bool begins(const struct begun *mark, const char *text)
{
    return marey__starts_with(mark->name, mark->len, text) && mark->len > strlen(text);
}

static bool is_equal(const struct begun *a, const struct begun *b)
{
    return a->len == b->len && memcmp(a->name, b->name, a->len) == 0;
}

/* An iteration ends with the step of the first optimizer found. */
static bool take_step(struct marks *marks, const struct begun *mark, uint64_t end_ns)
{
    if (marks->step.name == NULL)
        marks->step = *mark;
    if (!is_equal(&marks->step, mark))
        return true;
    const uint64_t begin_ns = MAREY__MIN(marks->last_step_ns, end_ns);
    marks->last_step_ns = end_ns;
    return marey__memory_span_add(&marks->pool->iterations, begin_ns, end_ns, MAREY__NO_NAME);
}

static bool take_span(struct marks *marks, const struct begun *mark, uint64_t end_ns)
{
    const size_t skipped = marey__phase_prefix(mark->name, mark->len);
    if (begins(mark, "ProfilerStep#"))
        return marey__memory_span_add(&marks->pool->iterations, mark->ns, end_ns, MAREY__NO_NAME);
    if (!marks->has_profiler && begins(mark, "Optimizer.step#") && !take_step(marks, mark, end_ns))
        return false;
    const uint32_t name =
        marey__memory_name(marks->report, mark->name + skipped, mark->len - skipped);
    return name != MAREY__NO_NAME &&
           marey__memory_span_add(&marks->pool->phases, mark->ns, end_ns, name);
}

static bool take_mark(struct marks *marks, value entry)
{
    int64_t us = 0;
    struct begun mark = {0};
    const value stage = marey__python_get(marks->pickle, entry, "stage");
    mark.name = get_text(marks->pickle, entry, "name", &mark.len);
    if (mark.name == NULL || !get_whole(marks->pickle, entry, "time_us", &us) || us <= 0 ||
        us >= INT64_MAX / 1000)
        return true;
    mark.ns = (uint64_t)us * 1000;
    if (marey__python_is(stage, "START")) {
        if (marks->n_begun < MAX_OPEN)
            marks->begun[marks->n_begun++] = mark;
        return true;
    }
    /* Threads share one list: use the last entry of that name. */
    for (size_t i = marks->n_begun; i-- > 0;) {
        if (!is_equal(&marks->begun[i], &mark))
            continue;
        const struct begun begun = marks->begun[i];
        marks->n_begun--;
        memmove(&marks->begun[i], &marks->begun[i + 1], (marks->n_begun - i) * sizeof *marks->begun);
        return take_span(marks, &begun, MAREY__MAX(mark.ns, begun.ns));
    }
    return true;
}

static bool take_marks(struct marey__memory_report *report, const struct marey__python_values *pickle,
                       struct marey__memory_pool *pool, value annotations, size_t device)
{
    struct marks marks = {
        .report = report, .pickle = pickle, .pool = pool, .last_step_ns = pool->first_ns};
    const size_t n = marey__python_length(annotations);
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < n; i++) {
            const value entry = marey__python_item(pickle, annotations, i),
                        name = marey__python_get(pickle, entry, "name");
            int64_t of = 0;
            size_t len = 0;
            const char *const text = marey__python_text(name, &len);
            const struct begun mark = {.name = text, .len = len};
            get_whole(pickle, entry, "device", &of);
            if (of != (int64_t)device)
                continue;
            if (pass == 0)
                marks.has_profiler |= text != NULL && begins(&mark, "ProfilerStep#");
            else if (!take_mark(&marks, entry))
                return false;
        }
    return true;
}

/* ---- devices ---- */

static bool take_device(struct reading *r, value segments, value trace, value annotations,
                        size_t device)
{
    r->pool = marey__memory_pool_add(r->report);
    if (r->pool == NULL)
        return false;
    snprintf(r->pool->device, sizeof r->pool->device, "cuda:%zu", device);
    r->pool->source = "a snapshot of torch's CUDA allocator";
    const bool done =
        take_history(r, trace) && take_segments(r, segments, device) &&
        (!r->has_times || take_marks(r->report, r->pickle, r->pool, annotations, device)) &&
        take_reserved(r, trace, r->pool->segment_bytes);
    if (r->pool->n_blocks == 0 && !r->pool->has_segments && done) {
        MAREY__FREE_ALL(r->pool->reserved.at, r->pool->phases.at, r->pool->iterations.at);
        r->report->n_pools--; /* an unused device */
    }
    free_open(&r->open);
    return done;
}

static size_t count_devices(const struct reading *r, value segments, value traces)
{
    enum { MAX_DEVICES = 1024 };
    size_t n = marey__python_length(traces);
    for (size_t i = 0; i < marey__python_length(segments); i++) {
        int64_t device = 0;
        get_whole(r->pickle, marey__python_item(r->pickle, segments, i), "device", &device);
        if (device >= 0 && device < MAX_DEVICES && (size_t)device + 1 > n)
            n = (size_t)device + 1;
    }
    return MAREY__MIN(n, (size_t)MAX_DEVICES);
}

static marey_status take_snapshot(struct reading *r, const char *name)
{
    const value top = &r->pickle->values[r->pickle->top],
                segments = marey__python_get(r->pickle, top, "segments"),
                traces = marey__python_get(r->pickle, top, "device_traces"),
                annotations = marey__python_get(r->pickle, top, "external_annotations");
    const size_t before = r->report->n_pools;
    if (segments == NULL || segments->type != MAREY__PYTHON_LIST)
        return marey__fail(
            MAREY_EFORMAT,
            "%s is not a snapshot of torch's CUDA allocator: it has no list of segments", name);
    r->stacks = marey__calloc(r->pickle->n, sizeof *r->stacks);
    MAREY__TRY_MEMORY(r->stacks != NULL);
    for (size_t i = 0, n = count_devices(r, segments, traces); i < n; i++)
        MAREY__TRY_MEMORY(
            take_device(r, segments, marey__python_item(r->pickle, traces, i), annotations, i));
    return r->report->n_pools != before
               ? MAREY_OK
               : marey__fail(MAREY_EFORMAT, "%s contains no allocations", name);
}

marey_status marey__memory_take_snapshot(struct marey__memory_report *report, const char *name,
                                         const void *bytes, size_t len)
{
    struct marey__python_values pickle;
    struct reading r = {.report = report, .pickle = &pickle};
    marey_status status;
    if (marey__unpickle(&pickle, bytes, len))
        status = take_snapshot(&r, name);
    else if (pickle.mistake != NULL)
        status = marey__fail(MAREY_EFORMAT,
                             "%s is not a snapshot of torch's CUDA allocator: at byte %zu %s", name,
                             pickle.offset, pickle.mistake);
    else
        status = marey__no_memory();
    marey__free(r.stacks);
    free_open(&r.open);
    marey__python_values_fini(&pickle);
    return status;
}

marey_status marey__memory_read_snapshot(struct marey__memory_report *report, const char *path)
{
    struct marey__map map MAREY__FINALLY(marey__map_close) = {0};
    MAREY_TRY(marey__map_open(path, &map));
    return marey__memory_take_snapshot(report, path, map.data, map.len);
}
