/*
 * A merge as bytes and back, both by the same functions (archive.h). What is read is checked where it enters: a number
 * of a name, process, lane or row must be one that there is.
 */
#include <assert.h>

#include "analyze/summary/internal.h"

#define MAGIC "MAREYPRT"
enum { MAGIC_BYTES = 8, CRC_BYTES = 4, VERSION = 5 };

static void *keep_block(struct marey__lender *lender, size_t n, size_t size)
{
    if (!marey__grow(&lender->blocks, &lender->cap, lender->n + 1, sizeof *lender->blocks))
        return NULL;
    void *block = marey__calloc(n + 1, size);
    if (block != NULL)
        lender->blocks[lender->n++] = block;
    return block;
}

void marey__lender_fini(struct marey__lender *lender)
{
    for (size_t i = 0; i < lender->n; i++)
        marey__free(lender->blocks[i]);
    marey__free(lender->blocks);
    marey__arena_fini(&lender->texts);
    *lender = (struct marey__lender){0};
}

static void name_number(struct archive *a, uint32_t *name)
{
    number(a, name, a->merge->names.n);
}

static void process_number(struct archive *a, uint32_t *process)
{
    number(a, process, a->merge->n_processes);
}

/* Who adds a field to one of these packs it here, where others need it, and makes VERSION one higher. */
#define HAS_SIZE(type, size)                                                                       \
    static_assert(sizeof(struct type) == (size), "a new field may have to be packed as well")
HAS_SIZE(marey_process, 424); /* what only runs have is not packed */
HAS_SIZE(marey_lane_info, 32);
HAS_SIZE(marey_site_info, 48);
HAS_SIZE(marey__name_stats, 112);
HAS_SIZE(marey__name_row, 40);
HAS_SIZE(marey__open_row, 24);
HAS_SIZE(marey__counter, 48);
HAS_SIZE(marey__iteration_name, 176);
HAS_SIZE(marey__iteration_row, 272);
HAS_SIZE(marey__outlier_row, 40);
HAS_SIZE(marey__span, 64);
HAS_SIZE(marey__rank_step, 24);
HAS_SIZE(marey__phase_stats, 40); /* late_ns is of the walk only */
HAS_SIZE(marey__merged_work, 120);
HAS_SIZE(marey__gpu_range, 24);
HAS_SIZE(marey__iteration_merge, 432);
HAS_SIZE(marey__gpu_merge, 80);
HAS_SIZE(marey__merge, 1024);

/* ---- sketches ---- */

static void page(struct archive *a, uint64_t **page)
{
    size_t n = 0;
    for (uint32_t b = 0; *page != NULL && b < MAREY__SKETCH_PAGE; b++)
        n += (*page)[b] != 0;
    count(a, &n, 2);
    if (reads(a) && n != 0) {
        *page = marey__calloc(MAREY__SKETCH_PAGE, sizeof **page);
        a->has_no_memory |= *page == NULL;
    }
    for (uint32_t b = 0; n != 0 && !has_failed(a); n--, b++) {
        while (!reads(a) && (*page)[b] == 0)
            b++;
        number(a, &b, MAREY__SKETCH_PAGE);
        if (!has_failed(a))
            u64(a, &(*page)[b]);
    }
}

static void pages(struct archive *a, struct marey__sketch *s)
{
    if (reads(a) && !marey__sketch_reserve(s))
        a->has_no_memory = true;
    for (uint32_t p = 0; p < MAREY__SKETCH_PAGES && !has_failed(a); p++)
        page(a, &s->pages[p]);
}

static void sketch(struct archive *a, struct marey__sketch *s)
{
    uint64_t n = s->count;
    bool has_pages = s->pages != NULL;
    u64(a, &n);
    if (n == 0 || has_failed(a))
        return;
    flag(a, &has_pages);
    u64(a, &s->sum);
    u64(a, &s->min);
    u64(a, &s->max);
    if (has_pages)
        pages(a, s);
    else if (n > MAREY__SKETCH_FEW)
        a->is_bad = true;
    for (uint64_t i = 0; !has_pages && !has_failed(a) && i < n; i++)
        u64(a, &s->few[i]);
    s->count = n;
}

/* ---- processes and threads ---- */

enum kind { I32, U32, I64, U64, F64, TEXT };

static const struct {
    size_t offset;
    enum kind kind;
} process_fields[] = {
#define FIELD(name, kind)                                                                          \
    {                                                                                              \
        offsetof(struct marey_process, name), kind                                                 \
    }
    FIELD(index, U32),         FIELD(pid, I64),
    FIELD(ppid, I64),          FIELD(rank, I32),
    FIELD(world_size, I32),    FIELD(local_rank, I32),
    FIELD(host, TEXT),         FIELD(command, TEXT),
    FIELD(run_id, TEXT),       FIELD(log_path, TEXT),
    FIELD(end, TEXT),          FIELD(clock, TEXT),
    FIELD(note, TEXT),         FIELD(start_unix_ns, U64),
    FIELD(first_ns, U64),      FIELD(last_ns, U64),
    FIELD(n_events, U64),      FIELD(lost_events, U64),
    FIELD(lost_first_ns, U64), FIELD(lost_last_ns, U64),
    FIELD(log_bytes, U64),     FIELD(flush_cpu_ns, U64),
    FIELD(event_cost_ns, F64), FIELD(mono_to_unix_ns, I64),
    FIELD(n_sites, U32),       FIELD(n_lanes, U32),
    FIELD(version, TEXT),      FIELD(cpu, TEXT),
    FIELD(cpus, TEXT),         FIELD(governor, TEXT),
    FIELD(gpu, TEXT),          FIELD(kernel, TEXT),
    FIELD(versions, TEXT),     FIELD(load, F64),
    FIELD(source, TEXT),       FIELD(backend, TEXT),
    FIELD(n_words, U64),       FIELD(devices, TEXT),
    FIELD(role, TEXT),         FIELD(energy_sources, TEXT),
    FIELD(energy_cpu_ns, U64), FIELD(worker, I32),
    FIELD(memory, TEXT),       FIELD(memory_counts, TEXT),
    FIELD(sampling, TEXT),     FIELD(experiment, TEXT),
    FIELD(strategy, TEXT),     FIELD(start_time, U64),
    FIELD(gpu_cost, TEXT),     FIELD(calls_cost, TEXT),
    FIELD(memory_cost, TEXT),  FIELD(open_ns, U64),
    FIELD(is_cut, U32),
#undef FIELD
};

static void process(struct archive *a, struct marey_process *process)
{
    for (size_t i = 0; i < MAREY__COUNT_OF(process_fields) && !has_failed(a); i++) {
        void *field = (char *)process + process_fields[i].offset;
        switch (process_fields[i].kind) {
        case I32:
            i32(a, field);
            break;
        case U32:
            u32(a, field);
            break;
        case I64:
            i64(a, field);
            break;
        case U64:
            u64(a, field);
            break;
        case F64:
            f64(a, field);
            break;
        case TEXT:
            text(a, field);
            break;
        }
    }
}

static void processes(struct archive *a)
{
    struct marey__merge *m = a->merge;
    size_t n = m->n_processes;
    count(a, &n, MAREY__COUNT_OF(process_fields));
    struct marey_process *read = reads(a) ? keep_block(a->lender, n, sizeof *read) : NULL;
    if (reads(a) && (read == NULL || !marey__merge_grow_processes(m, n)))
        a->has_no_memory = true;
    for (size_t i = 0; i < n && !has_failed(a); i++) {
        struct marey_process copy = {0};
        if (reads(a)) {
            m->process_recordings[i] = 0;
            m->processes[i] = &read[i];
            m->n_processes = i + 1;
        } else {
            copy = *m->processes[i];
        }
        u32(a, &m->process_recordings[i]);
        process(a, reads(a) ? &read[i] : &copy);
    }
}

static void lane(struct archive *a, struct marey_lane_info *lane)
{
    uint32_t kind = lane->kind;
    u32(a, &lane->lane);
    number(a, &kind, 256);
    lane->kind = (enum marey_lane_kind)kind;
    i64(a, &lane->tid);
    i32(a, &lane->device);
    u32(a, &lane->stream);
    text(a, &lane->name);
}

/* Whether it is another one than that of the row before. */
static bool is_next_lane(struct archive *a, const struct marey_lane_info *lane)
{
    const bool is_next = lane != NULL && lane != a->last_lane;
    if (is_next)
        a->last_lane = lane;
    return is_next;
}

static void write_lane(struct archive *a, const struct marey_lane_info *info)
{
    struct marey_lane_info copy = *info;
    lane(a, &copy);
}

/* Threads first, then what is open, as their rows ask for them. */
static void write_lanes(struct archive *a)
{
    const struct marey__merge *m = a->merge;
    size_t n = 0;
    for (size_t i = 0; i < m->threads.n; i++)
        n += is_next_lane(a, m->threads.rows[i].lane);
    for (size_t i = 0; i < m->n_open; i++)
        n += is_next_lane(a, m->open[i].lane);
    a->last_lane = NULL;
    count(a, &n, 1);
    for (size_t i = 0; i < m->threads.n; i++)
        if (is_next_lane(a, m->threads.rows[i].lane))
            write_lane(a, m->threads.rows[i].lane);
    for (size_t i = 0; i < m->n_open; i++)
        if (is_next_lane(a, m->open[i].lane))
            write_lane(a, m->open[i].lane);
    a->last_lane = NULL;
}

static void lanes(struct archive *a)
{
    if (!reads(a)) {
        write_lanes(a);
        return;
    }
    size_t n = 0;
    count(a, &n, 6);
    a->lanes = keep_block(a->lender, n, sizeof *a->lanes);
    a->has_no_memory |= a->lanes == NULL;
    for (size_t i = 0; i < n && !has_failed(a); i++)
        lane(a, &a->lanes[i]);
    a->n_lanes = n;
}

/* Of a row that has one. */
static void row_lane(struct archive *a, const struct marey_lane_info **lane)
{
    if (!reads(a))
        a->next_lane += is_next_lane(a, *lane);
    uint32_t which = reads(a) ? 0 : (uint32_t)a->next_lane - 1;
    number(a, &which, reads(a) ? a->n_lanes : UINT32_MAX);
    if (reads(a) && !has_failed(a))
        *lane = &a->lanes[which];
}

/* ---- by name ---- */

static void names(struct archive *a)
{
    struct marey__names *names = &a->merge->names;
    size_t n = names->n;
    count(a, &n, 1);
    for (uint32_t i = 0; i < n && !has_failed(a); i++) {
        struct marey__name name = reads(a) ? (struct marey__name){0} : names->names[i];
        bytes(a, &name.text, &name.len);
        if (!reads(a) || has_failed(a))
            continue;
        const uint32_t made = marey__names_number(names, name.text, name.len);
        a->has_no_memory |= made == MAREY__NO_NAME;
        a->is_bad |= made != i; /* twice the same */
    }
}

static void stats(struct archive *a, struct marey__name_stats *stats)
{
    sketch(a, &stats->calls);
    u64(a, &stats->total_ns);
    u64(a, &stats->self_ns);
    u64(a, &stats->steady_ns);
    u32(a, &stats->n_threads);
    u32(a, &stats->n_processes);
}

static void by_name(struct archive *a)
{
    struct marey__merge *m = a->merge;
    ROWS_BY_NAME(a, m->ranges, m->n_ranges, m->ranges_cap, 6);
    for (size_t i = 0; i < m->n_ranges && !has_failed(a); i++)
        stats(a, &m->ranges[i]);
    ROWS_BY_NAME(a, m->async, m->n_async, m->async_cap, 6);
    for (size_t i = 0; i < m->n_async && !has_failed(a); i++)
        stats(a, &m->async[i]);
    ROWS_BY_NAME(a, m->marks, m->n_marks, m->marks_cap, 1);
    for (size_t i = 0; i < m->n_marks && !has_failed(a); i++)
        u64(a, &m->marks[i]);
}

/* Parents come before their children; the root is not among them. Depths are as marey__tree_child makes them. */
static uint32_t add_node(struct archive *a, uint32_t parent, uint32_t name)
{
    struct marey__tree *tree = &a->merge->tree;
    const uint32_t other =
        marey__names_number(&a->merge->names, MAREY__OTHER_RANGES, strlen(MAREY__OTHER_RANGES));
    if (tree->nodes[parent].depth > MAREY__TREE_DEPTH) {
        a->is_bad = true;
        return 0;
    }
    const uint32_t made = other != MAREY__NO_NAME ? marey__tree_child(tree, parent, name, other) : 0;
    a->has_no_memory |= made == 0;
    return made;
}

static void node(struct archive *a, uint32_t i)
{
    struct marey__tree *tree = &a->merge->tree;
    struct marey__node copy = reads(a) ? (struct marey__node){0} : tree->nodes[i];
    number(a, &copy.parent, i);
    name_number(a, &copy.name);
    u64(a, &copy.count);
    u64(a, &copy.total_ns);
    u64(a, &copy.self_ns);
    if (!reads(a) || has_failed(a))
        return;
    const uint32_t made = add_node(a, copy.parent, copy.name);
    a->is_bad |= !has_failed(a) && made != i; /* twice the same */
    if (has_failed(a))
        return;
    tree->nodes[i].count = copy.count;
    tree->nodes[i].total_ns = copy.total_ns;
    tree->nodes[i].self_ns = copy.self_ns;
}

static void tree(struct archive *a)
{
    size_t n = a->merge->tree.n;
    count(a, &n, 1);
    for (uint32_t i = 1; i < n && !has_failed(a); i++)
        node(a, i);
}

/* ---- rows ---- */

static void name_rows(struct archive *a, struct marey__row_list *list, bool have_lanes)
{
    ROWS(a, list->rows, list->n, list->cap, 6);
    for (size_t i = 0; i < list->n && !has_failed(a); i++) {
        struct marey__name_row *row = &list->rows[i];
        process_number(a, &row->process);
        name_number(a, &row->name);
        u64(a, &row->count);
        u64(a, &row->total_ns);
        u64(a, &row->self_ns);
        if (have_lanes)
            row_lane(a, &row->lane);
        else
            u64(a, &row->iteration_ns);
    }
}

static void open_rows(struct archive *a)
{
    struct marey__merge *m = a->merge;
    ROWS(a, m->open, m->n_open, m->open_cap, 4);
    for (size_t i = 0; i < m->n_open && !has_failed(a); i++) {
        process_number(a, &m->open[i].process);
        name_number(a, &m->open[i].name);
        row_lane(a, &m->open[i].lane);
        u64(a, &m->open[i].since_ns);
    }
}

static void counters(struct archive *a)
{
    struct marey__merge *m = a->merge;
    ROWS(a, m->counter_rows, m->n_counter_rows, m->counter_rows_cap, 36);
    for (size_t i = 0; i < m->n_counter_rows && !has_failed(a); i++) {
        struct marey__counter *counter = &m->counter_rows[i].counter;
        process_number(a, &m->counter_rows[i].process);
        name_number(a, &m->counter_rows[i].name);
        u64(a, &counter->count);
        u64(a, &counter->last_ns);
        f64(a, &counter->min);
        f64(a, &counter->max);
        f64(a, &counter->sum);
        f64(a, &counter->last);
        a->is_bad |= counter->count == 0;
    }
}

static void site(struct archive *a, struct marey__site_row *row)
{
    size_t len = row->info.name_len;
    process_number(a, &row->process);
    u32(a, &row->id);
    bytes(a, &row->info.name, &len);
    text(a, &row->info.category);
    text(a, &row->info.domain);
    text(a, &row->info.file);
    u32(a, &row->info.line);
    u32(a, &row->info.color);
    row->info.name_len = (uint32_t)len;
}

static void left_out(struct archive *a, struct marey__left_out *row)
{
    size_t n = row->n_measuring;
    u32(a, &row->recording);
    u64(a, &row->n_broken);
    u64(a, &row->n_empty);
    count(a, &n, MAREY__COUNT_OF(process_fields));
    struct marey_process *read = reads(a) ? keep_block(a->lender, n, sizeof *read) : NULL;
    a->has_no_memory |= reads(a) && read == NULL;
    for (size_t i = 0; i < n && !has_failed(a); i++) {
        struct marey_process copy = reads(a) ? (struct marey_process){0} : *row->measuring[i];
        process(a, reads(a) ? &read[i] : &copy);
        if (reads(a) && !has_failed(a))
            a->has_no_memory |= !marey__left_out_add(row, &read[i]);
    }
}

static void left_outs(struct archive *a)
{
    struct marey__merge *m = a->merge;
    ROWS(a, m->left_out, m->n_left_out, m->left_out_cap, 4);
    for (size_t i = 0; i < m->n_left_out && !has_failed(a); i++)
        left_out(a, &m->left_out[i]);
}

static void told(struct archive *a)
{
    struct marey__merge *m = a->merge;
    size_t n = m->sites.n;
    count(a, &n, 8);
    for (size_t i = 0; i < n && !has_failed(a); i++) {
        struct marey__site_row row = reads(a) ? (struct marey__site_row){0} : m->sites.rows[i];
        site(a, &row);
        if (reads(a) && !has_failed(a))
            a->has_no_memory |= !marey__merge_add_site(m, &row);
    }
    ROWS(a, m->told, m->n_reported, m->told_cap, 3);
    for (size_t i = 0; i < m->n_reported && !has_failed(a); i++) {
        u32(a, &m->told[i].recording);
        flag(a, &m->told[i].is_note);
        text(a, &m->told[i].text);
    }
    left_outs(a);
}

/* ---- iterations ---- */

static void values(struct archive *a, struct marey__iteration_values *values)
{
    uint64_t low = (uint64_t)values->sum_of_squares, high = (uint64_t)(values->sum_of_squares >> 64);
    sketch(a, &values->ns);
    u64(a, &low);
    u64(a, &high);
    u64(a, &values->first_ns);
    values->sum_of_squares = (marey__u128)high << 64 | low;
}

static void iteration_names(struct archive *a)
{
    struct marey__iteration_merge *it = &a->merge->iterations;
    ROWS_BY_NAME(a, it->names, it->n_names, it->names_cap, 1);
    for (size_t i = 0; i < it->n_names && !has_failed(a); i++) {
        struct marey__iteration_name *name = &it->names[i];
        u32(a, &name->n_processes);
        if (name->n_processes == 0)
            continue;
        values(a, &name->values);
        u64(a, &name->n_iterations);
        u64(a, &name->whole_ns);
        u64(a, &name->n_first);
        u64(a, &name->first_whole_ns);
        process_number(a, &name->highest_process);
        f64(a, &name->lowest_mean_ns);
        f64(a, &name->highest_mean_ns);
        /* Iterations in which it did not run count as zeros. */
        a->is_bad |= name->values.ns.count > name->n_iterations || name->n_iterations == 0;
    }
    ROWS_BY_NAME(a, it->phases, it->n_phases, it->phases_cap, 4);
    for (size_t i = 0; i < it->n_phases && !has_failed(a); i++) {
        u64(a, &it->phases[i].count);
        u64(a, &it->phases[i].total_ns);
        u64(a, &it->phases[i].n_iterations);
        u64(a, &it->phases[i].steady_ns);
    }
    u64(a, &it->phased_ns);
    u64(a, &it->steady_ns);
    u64(a, &it->steady_phased_ns);
    values(a, &it->whole);
    values(a, &it->no_range);
    u64(a, &it->n_first);
}

static void iteration_row(struct archive *a, struct marey__iteration_row *row)
{
    process_number(a, &row->process);
    u32(a, &row->recording);
    u64(a, &row->n_iterations);
    u64(a, &row->n_warmup);
    u64(a, &row->n_cut);
    u64(a, &row->n_counted);
    u64(a, &row->sum_ns);
    u64(a, &row->p50_ns);
    u64(a, &row->p99_ns);
    f64(a, &row->std_ns);
    f64(a, &row->samples);
    u64(a, &row->samples_ns);
    flag(a, &row->has_data);
    u64(a, &row->data_ns);
    u64(a, &row->data_whole_ns);
    raw(a, row->quantiles, sizeof row->quantiles);
}

static void span(struct archive *a, struct marey__span *span)
{
    uint32_t kind = span->kind;
    number(a, &kind, MAREY__SPAN_PHASE + 1);
    span->kind = (enum marey__span_kind)kind;
    u64(a, &span->begin_ns);
    u64(a, &span->end_ns);
    u64(a, &span->number);
    u32(a, &span->site);
    u32(a, &span->flags);
    f64(a, &span->samples);
    u64(a, &span->n_iterations);
    flag(a, &span->is_open);
}

static void race(struct archive *a, struct marey__rank_step *race)
{
    u32(a, &race->n);
    if (race->n == 0)
        return;
    raw(a, &race->slowest_ns, sizeof race->slowest_ns);
    number_or_none(a, &race->slowest, a->merge->iterations.n_rows);
    u64(a, &race->sum_ns);
    a->is_bad |= !(race->slowest_ns >= 0);
}

static void courses(struct archive *a)
{
    struct marey__iteration_merge *it = &a->merge->iterations;
    ROWS(a, it->courses, it->n_courses, it->courses_cap, 2);
    for (size_t c = 0; c < it->n_courses && !has_failed(a); c++) {
        struct marey__rank_steps *course = &it->courses[c];
        u32(a, &course->recording);
        ROWS(a, course->races, course->n, course->cap, 1);
        for (size_t i = 0; i < course->n && !has_failed(a); i++)
            race(a, &course->races[i]);
    }
}

static void iterations(struct archive *a)
{
    struct marey__iteration_merge *it = &a->merge->iterations;
    iteration_names(a);
    ROWS(a, it->rows, it->n_rows, it->rows_cap, 28 + sizeof it->rows->quantiles);
    for (size_t i = 0; i < it->n_rows && !has_failed(a); i++)
        iteration_row(a, &it->rows[i]);
    ROWS(a, it->outliers, it->n_outliers, it->outliers_cap, 6);
    for (size_t i = 0; i < it->n_outliers && !has_failed(a); i++) {
        struct marey__outlier_row *row = &it->outliers[i];
        process_number(a, &row->process);
        number_or_none(a, &row->name, a->merge->names.n);
        u64(a, &row->number);
        u64(a, &row->ns);
        u64(a, &row->usual_ns);
        u64(a, &row->extra_ns);
    }
    ROWS(a, it->epochs, it->n_epochs, it->epochs_cap, 17);
    for (size_t i = 0; i < it->n_epochs && !has_failed(a); i++) {
        process_number(a, &it->epochs[i].process);
        span(a, &it->epochs[i].span);
    }
    courses(a);
}

/* ---- work of GPUs ---- */

static void work(struct archive *a, struct marey__merged_work *work)
{
    sketch(a, &work->calls);
    u64(a, &work->bytes);
    u64(a, &work->bytes_ns);
    u32(a, &work->n_streams);
    u32(a, &work->n_devices);
    u32(a, &work->n_processes);
    a->is_bad |= work->calls.count == 0;
}

static void works(struct archive *a)
{
    struct marey__gpu_merge *gpu = &a->merge->gpu;
    size_t n = gpu->n_works;
    count(a, &n, 8);
    if (reads(a) && n != 0 && !marey__gpu_merge_cover(a->merge))
        a->has_no_memory = true;
    for (size_t i = 0; i < n && !has_failed(a); i++) {
        uint32_t name = reads(a) ? 0 : gpu->works[i].name, kind = reads(a) ? 0 : gpu->works[i].kind;
        name_number(a, &name);
        number(a, &kind, 256);
        if (has_failed(a))
            return;
        struct marey__merged_work *made =
            reads(a) ? marey__gpu_merge_work(gpu, name, kind) : &gpu->works[i];
        a->has_no_memory |= made == NULL;
        a->is_bad |= reads(a) && gpu->n_works != i + 1; /* twice the same */
        if (!has_failed(a))
            work(a, made);
    }
}

static void gpu(struct archive *a)
{
    struct marey__gpu_merge *gpu = &a->merge->gpu;
    works(a);
    ROWS_BY_NAME(a, gpu->ranges, gpu->n_ranges, gpu->ranges_cap, 3);
    for (size_t i = 0; i < gpu->n_ranges && !has_failed(a); i++) {
        u64(a, &gpu->ranges[i].count);
        u64(a, &gpu->ranges[i].total_ns);
        u64(a, &gpu->ranges[i].self_ns);
    }
    u64(a, &gpu->work_ns);
}

/* ---- the whole ---- */

static void content(struct archive *a)
{
    struct marey__merge *m = a->merge;
    names(a);
    processes(a);
    lanes(a);
    by_name(a);
    tree(a);
    name_rows(a, &m->threads, true);
    name_rows(a, &m->ranks, false);
    open_rows(a);
    counters(a);
    told(a);
    u64(a, &m->n_threads);
    u64(a, &m->n_orphans);
    u64(a, &m->n_cut_off);
    u64(a, &m->n_unwound);
    u64(a, &m->n_async_dropped);
    u64(a, &m->n_overlapping);
    u64(a, &m->n_too_deep);
    iterations(a);
    gpu(a);
}

void marey__merge_pack(struct marey__merge *merge, struct marey__buf *out)
{
    struct archive a = {.out = out, .merge = merge};
    const size_t first = out->len;
    marey__buf_put(out, MAGIC, MAGIC_BYTES);
    marey__buf_put_leb128(out, VERSION);
    content(&a);
    if (out->failed)
        return;
    const uint32_t crc = marey__crc32c(0, out->data + first, out->len - first);
    marey__buf_put(out, &crc, sizeof crc);
}

static marey_status bad(const char *why)
{
    return marey__fail(MAREY_EFORMAT, "a part of the summary that another process made %s", why);
}

marey_status marey__merge_unpack(struct marey__merge *merge, struct marey__lender *lender,
                                 const void *packed, size_t len)
{
    const uint8_t *at = packed;
    uint64_t version = 0;
    uint32_t crc;
    if (len < MAGIC_BYTES + CRC_BYTES + 1 || memcmp(at, MAGIC, MAGIC_BYTES) != 0)
        return bad("is none");
    struct archive a = {
        .at = at + MAGIC_BYTES, .end = at + len - CRC_BYTES, .merge = merge, .lender = lender};
    u64(&a, &version);
    if (version != VERSION)
        return bad("is of another version of marey; run the same one in all processes");
    memcpy(&crc, a.end, sizeof crc);
    if (crc != marey__crc32c(0, packed, len - CRC_BYTES))
        return bad("has changed on its way");
    merge->iterations.keeps_courses = true;
    content(&a);
    MAREY__TRY_MEMORY(!a.has_no_memory);
    return a.is_bad || a.at != a.end ? bad("says what cannot be") : MAREY_OK;
}
