/*
 * Serializes a merge, and adds serialized merges to another one: the step of a reduction over MPI processes. Names,
 * processes and rows are renumbered. Sums are integers, so the result does not depend on the order; values that would
 * depend on it are kept as rows, which summary_order.c sorts.
 *
 * One set of functions writes and reads: each takes the address of a value and writes it, or reads into it, so that
 * both sides always agree. After a failure, the functions do nothing. Values are checked when read: a count may not
 * exceed what the remaining bytes can hold, and a number of a name, process, lane or row must exist.
 */
#include "analyze/summary/fields.h"

#define MAGIC "MAREYPRT"
enum { MAGIC_BYTES = 8, CRC_BYTES = 4, VERSION = 7 };

struct archive {
    struct marey__buf *out; /* NULL: reading */
    const uint8_t *at, *end;
    bool is_bad, has_no_memory;
    struct marey__merge *merge;
    struct marey__merge_storage *storage;
    const struct marey_lane_info *last_lane; /* of the previous row */
    /* While reading: maps numbers in the bytes to the merge's. */
    uint32_t *names, *nodes;
    size_t n_names, n_processes, n_rows;
    uint32_t first_process, first_row;
};

static bool has_failed(const struct archive *a)
{
    return a->is_bad || a->has_no_memory;
}

static bool reads(const struct archive *a)
{
    return a->out == NULL;
}

/* ---- values ---- */

static void u64(struct archive *a, uint64_t *value)
{
    if (has_failed(a))
        return;
    if (reads(a))
        a->is_bad |= !marey__take_leb128(&a->at, a->end, value);
    else
        marey__buf_put_leb128(a->out, *value);
}

/* A number below `limit`. */
static void number(struct archive *a, uint32_t *value, uint64_t limit)
{
    uint64_t wide = *value;
    u64(a, &wide);
    a->is_bad |= !has_failed(a) && wide >= limit;
    if (!has_failed(a))
        *value = (uint32_t)wide;
}

static void u32(struct archive *a, uint32_t *value)
{
    number(a, value, UINT64_C(1) << 32);
}

/* An index of `n` in the bytes, mapped by `numbers` or offset by `first`; otherwise MAREY__NO_NAME. */
static void number_of(struct archive *a, uint32_t *value, size_t n, const uint32_t *numbers,
                      uint32_t first, bool may_be_none)
{
    uint32_t above = *value + may_be_none;
    number(a, &above, reads(a) ? n + may_be_none : UINT32_MAX);
    *value = above - may_be_none;
    if (reads(a) && !has_failed(a) && above >= may_be_none)
        *value = numbers != NULL ? numbers[*value] : first + *value;
}

static void u128(struct archive *a, marey__u128 *value)
{
    uint64_t low = (uint64_t)*value, high = (uint64_t)(*value >> 64);
    u64(a, &low);
    u64(a, &high);
    *value = (marey__u128)high << 64 | low;
}

static void flag(struct archive *a, bool *value)
{
    uint32_t bit = *value;
    number(a, &bit, 2);
    *value = bit != 0;
}

static void raw(struct archive *a, void *bytes, size_t len)
{
    if (has_failed(a))
        return;
    if (!reads(a))
        marey__buf_put(a->out, bytes, len);
    else if ((size_t)(a->end - a->at) < len)
        a->is_bad = true;
    else {
        memcpy(bytes, a->at, len);
        a->at += len;
    }
}

/* The number of elements that follow, each of at least `least` bytes. */
static void count(struct archive *a, size_t *n, size_t least)
{
    uint64_t wide = *n;
    u64(a, &wide);
    if (reads(a) && !has_failed(a) && wide > (size_t)(a->end - a->at) / least)
        a->is_bad = true;
    *n = has_failed(a) ? 0 : (size_t)wide;
}

static void bytes(struct archive *a, const char **text, size_t *len)
{
    count(a, len, 1);
    if (has_failed(a))
        return;
    if (!reads(a)) {
        marey__buf_put(a->out, *text, *len);
        return;
    }
    *text = marey__arena_text(&a->storage->texts, (const char *)a->at, *len);
    a->has_no_memory |= *text == NULL;
    a->at += *len;
}

static void text(struct archive *a, const char **text)
{
    size_t len = reads(a) ? 0 : strlen(*text);
    bytes(a, text, &len);
}

static void *keep_block(struct marey__merge_storage *storage, size_t n, size_t size)
{
    if (!marey__grow(&storage->blocks, &storage->cap, storage->n + 1, sizeof *storage->blocks))
        return NULL;
    void *block = marey__calloc(n + 1, size);
    if (block != NULL)
        storage->blocks[storage->n++] = block;
    return block;
}

void marey__merge_storage_fini(struct marey__merge_storage *storage)
{
    for (size_t i = 0; i < storage->n; i++)
        marey__free(storage->blocks[i]);
    marey__free(storage->blocks);
    marey__arena_fini(&storage->texts);
    *storage = (struct marey__merge_storage){0};
}

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
    for (uint32_t b = 0; n != 0 && *page != NULL && !has_failed(a); n--, b++) {
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

/* ---- rows ---- */

static void row_lane(struct archive *a, const struct marey_lane_info **lane);

/* Returns the size of the value. */
static size_t pack_value(struct archive *a, void *value, const struct field *field)
{
    switch (field->kind) {
    case U32:
    case U32_OR_END:
        u32(a, value);
        return sizeof(uint32_t);
    case U64:
        u64(a, value);
        return sizeof(uint64_t);
    case U128:
        u128(a, value);
        break;
    case SKETCH:
        sketch(a, value);
        break;
    case RAW:
        raw(a, value, field->size);
        break;
    case FLAG:
        flag(a, value);
        break;
    case BYTE:
        number(a, value, 256);
        break;
    case TEXT:
        text(a, value);
        return sizeof(const char *);
    case NAME:
    case NAME_OR_NONE:
        number_of(a, value, a->n_names, a->names, 0, field->kind == NAME_OR_NONE);
        break;
    case PROCESS:
        number_of(a, value, a->n_processes, NULL, a->first_process, false);
        break;
    case ITERATION_ROW_OR_NONE:
        number_of(a, value, a->n_rows, NULL, a->first_row, true);
        break;
    case LANE:
        row_lane(a, value);
        break;
    }
    return field->size;
}

static void pack_fields(struct archive *a, void *row, const struct field *fields, size_t n)
{
    for (size_t i = 0; i < n && !has_failed(a); i++) {
        void *const first = at(row, fields[i].offset);
        for (size_t done = 0; done < fields[i].size && !has_failed(a);)
            done += pack_value(a, at(first, done), &fields[i]);
        if (fields[i].kind == U32_OR_END && *(const uint32_t *)first == 0)
            return;
    }
}
#define PACK_FIELDS(a, row, fields) pack_fields((a), (row), (fields), MAREY__COUNT_OF(fields))

/* ---- sums ---- */

/* The first sketch is moved, so that it is not in memory twice. */
static bool join_sketch(struct marey__sketch *into, struct marey__sketch *from)
{
    if (into->count != 0)
        return marey__sketch_merge(into, from);
    marey__sketch_fini(into);
    *into = *from;
    *from = (struct marey__sketch){0};
    return true;
}

/* Add the numbers and sketches of a row that was read, which loses its sketches; other fields do not change. */
static bool add_fields(void *into, void *from, const struct field *fields, size_t n)
{
    bool done = true;
    for (size_t i = 0; i < n; i++) {
        void *const to = at(into, fields[i].offset), *const value = at(from, fields[i].offset);
        const enum kind kind = fields[i].kind;
        for (size_t k = 0; kind == U64 && k < fields[i].size / sizeof(uint64_t); k++)
            ((uint64_t *)to)[k] += ((uint64_t *)value)[k];
        for (size_t k = 0;
             (kind == U32 || kind == U32_OR_END) && k < fields[i].size / sizeof(uint32_t); k++)
            ((uint32_t *)to)[k] += ((uint32_t *)value)[k];
        if (kind == U128)
            *(marey__u128 *)to += *(marey__u128 *)value;
        if (kind == SKETCH) {
            done = done && join_sketch(to, value);
            marey__sketch_fini(value);
        }
    }
    return done;
}

/* Among processes with the highest mean, the first counts. */
static void join_means(const struct marey__merge *merge, struct marey__iteration_name *into,
                       const struct marey__iteration_name *from)
{
    if (from->n_processes == 0)
        return;
    if (into->n_processes == 0 || from->highest_mean_ns > into->highest_mean_ns ||
        (from->highest_mean_ns == into->highest_mean_ns &&
         marey__merge_is_before(merge, from->highest_process, into->highest_process))) {
        into->highest_mean_ns = from->highest_mean_ns;
        into->highest_process = from->highest_process;
    }
    if (into->n_processes == 0 || from->lowest_mean_ns < into->lowest_mean_ns)
        into->lowest_mean_ns = from->lowest_mean_ns;
}

/* Write the fields of `row`; or read them into a zeroed struct of `size` bytes and add them to it. */
static void pack_sums(struct archive *a, void *row, const struct field *fields, size_t n,
                      size_t size, bool (*is_valid)(const void *row))
{
    _Alignas(16) char sums[sizeof(struct marey__merge)];
    if (!reads(a)) {
        pack_fields(a, row, fields, n);
        return;
    }
    memset(sums, 0, size);
    pack_fields(a, sums, fields, n);
    a->is_bad |= !has_failed(a) && is_valid != NULL && !is_valid(sums);
    if (!has_failed(a) && fields == iteration_name_fields)
        join_means(a->merge, row, (void *)sums);
    a->has_no_memory |= !add_fields(row, sums, fields, n);
}
#define PACK_SUMS(a, row, fields)                                                                  \
    pack_sums((a), (row), (fields), MAREY__COUNT_OF(fields), sizeof *(row), NULL)

/* ---- lists ---- */

static void pack_rows(struct archive *a, const struct list *list, size_t n)
{
    struct marey__merge *m = a->merge;
    size_t *const n_rows = n_of(m, list);
    if (reads(a) && list->rows == offsetof(struct marey__merge, iterations.rows)) {
        a->first_row = (uint32_t)*n_rows;
        a->n_rows = n;
    }
    if (reads(a) &&
        !marey__extend(at(m, list->rows), n_rows, at(m, list->cap), *n_rows + n, list->size))
        a->has_no_memory = true;
    for (size_t k = *n_rows - n; k < *n_rows && !has_failed(a); k++) {
        char *const row = rows_of(m, list) + k * list->size;
        pack_fields(a, row, list->fields, list->n_fields);
        a->is_bad |= !has_failed(a) && list->is_valid != NULL && !list->is_valid(row);
    }
}

static void pack_by_name(struct archive *a, const struct list *list, size_t n)
{
    struct marey__merge *m = a->merge;
    a->is_bad |= reads(a) && n > a->n_names;
    if (reads(a) && !has_failed(a) && (n != 0 || list->kind == BY_EVERY_NAME) &&
        !marey__cover_names(&m->names, at(m, list->rows), n_of(m, list), at(m, list->cap), list->size))
        a->has_no_memory = true;
    for (size_t k = 0; k < n && !has_failed(a); k++)
        pack_sums(a, rows_of(m, list) + (reads(a) ? a->names[k] : k) * list->size, list->fields,
                  list->n_fields, list->size, list->is_valid);
}

static void pack_lists(struct archive *a)
{
    for (size_t i = 0; i < MAREY__COUNT_OF(lists) && !has_failed(a); i++) {
        const struct list *const list = &lists[i];
        size_t n = *n_of(a->merge, list);
        count(a, &n, list->fields[0].kind == U32_OR_END ? 1 : list->n_fields);
        if (!has_failed(a))
            (list->kind == ROWS ? pack_rows : pack_by_name)(a, list, n);
    }
}

/* ---- processes and threads ---- */

static void process(struct archive *a, struct marey_process *read, const struct marey_process *written)
{
    struct marey_process copy = {0};
    if (written != NULL)
        copy = *written;
    PACK_FIELDS(a, read != NULL ? read : &copy, process_fields);
}

/* Rows of a lane are adjacent; the first of them contains the lane. */
static void row_lane(struct archive *a, const struct marey_lane_info **lane)
{
    bool is_next = !reads(a) && *lane != a->last_lane;
    flag(a, &is_next);
    if (is_next && !has_failed(a)) {
        struct marey_lane_info written = {0}, *read = NULL;
        if (!reads(a))
            written = **lane;
        else if ((read = keep_block(a->storage, 1, sizeof *read)) == NULL)
            a->has_no_memory = true;
        PACK_FIELDS(a, read != NULL ? read : &written, lane_fields);
        a->last_lane = read != NULL ? read : *lane;
    }
    a->is_bad |= a->last_lane == NULL;
    if (reads(a))
        *lane = a->last_lane;
}

static void processes(struct archive *a)
{
    struct marey__merge *m = a->merge;
    size_t n = m->n_processes;
    count(a, &n, MAREY__COUNT_OF(process_fields));
    struct marey_process *read = reads(a) ? keep_block(a->storage, n, sizeof *read) : NULL;
    a->first_process = reads(a) ? (uint32_t)m->n_processes : 0;
    a->n_processes = n;
    if (reads(a) && (read == NULL || !marey__merge_grow_processes(m, m->n_processes + n)))
        a->has_no_memory = true;
    for (size_t i = 0; i < n && !has_failed(a); i++) {
        const size_t number = a->first_process + i;
        if (reads(a)) {
            m->process_recordings[number] = 0;
            m->processes[number] = &read[i];
            m->n_processes++;
        }
        u32(a, &m->process_recordings[number]);
        process(a, reads(a) ? &read[i] : NULL, m->processes[number]);
    }
}

/* A process has one row per name. */
static void rank_rows_of(struct archive *a, size_t process, uint32_t *seen)
{
    struct marey__merge *m = a->merge;
    const uint8_t *from = reads(a) ? NULL : marey__rank_rows_of(m, process), *first = from;
    struct marey__name_row row = {0};
    size_t n = 0;
    while (!reads(a) && marey__rank_row_next(m, &from, &row))
        n++;
    count(a, &n, MAREY__COUNT_OF(process_row_fields));
    for (; n > 0 && !has_failed(a); n--) {
        if (!reads(a))
            marey__rank_row_next(m, &first, &row);
        PACK_FIELDS(a, &row, process_row_fields);
        if (!reads(a) || has_failed(a))
            continue;
        a->is_bad |= seen[row.name] == process + 1;
        seen[row.name] = (uint32_t)process + 1;
        marey__rank_row_put(m, &row);
    }
}

static void rank_rows(struct archive *a)
{
    struct marey__merge *m = a->merge;
    uint32_t *const seen = reads(a) ? marey__calloc(m->names.n + 1, sizeof *seen) : NULL;
    a->has_no_memory |= reads(a) && seen == NULL;
    for (size_t i = a->first_process; i < m->n_processes && !has_failed(a); i++) {
        if (reads(a))
            m->ranks.starts[i] = m->ranks.bytes.len;
        rank_rows_of(a, i, seen);
        if (reads(a))
            marey__rank_row_put(m, NULL);
        a->has_no_memory |= m->ranks.bytes.failed;
    }
    marey__free(seen);
}

/* ---- names and tree ---- */

static void names(struct archive *a)
{
    struct marey__names *names = &a->merge->names;
    size_t n = names->n;
    count(a, &n, 1);
    a->n_names = n;
    if (reads(a) && (a->names = marey__calloc(n + 1, sizeof *a->names)) == NULL)
        a->has_no_memory = true;
    for (uint32_t i = 0; i < n && !has_failed(a); i++) {
        struct marey__name name = !reads(a) ? names->names[i] : (struct marey__name){0};
        bytes(a, &name.text, &name.len);
        if (!reads(a) || has_failed(a))
            continue;
        a->names[i] = marey__names_number(names, name.text, name.len);
        a->has_no_memory |= a->names[i] == MAREY__NO_NAME;
    }
}

/* Parents come before their children, and the root is omitted. marey__tree_child sets depths. */
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
    struct marey__node copy = !reads(a) ? tree->nodes[i] : (struct marey__node){0};
    number_of(a, &copy.parent, i, a->nodes, 0, false);
    number_of(a, &copy.name, a->n_names, a->names, 0, false);
    u64(a, &copy.count);
    u64(a, &copy.total_ns);
    u64(a, &copy.self_ns);
    if (!reads(a) || has_failed(a))
        return;
    a->nodes[i] = add_node(a, copy.parent, copy.name);
    if (has_failed(a))
        return;
    tree->nodes[a->nodes[i]].count += copy.count;
    tree->nodes[a->nodes[i]].total_ns += copy.total_ns;
    tree->nodes[a->nodes[i]].self_ns += copy.self_ns;
}

static void tree(struct archive *a)
{
    size_t n = a->merge->tree.n;
    count(a, &n, 1);
    if (reads(a) && (a->nodes = marey__calloc(n + 1, sizeof *a->nodes)) == NULL)
        a->has_no_memory = true;
    for (uint32_t i = 1; i < n && !has_failed(a); i++)
        node(a, i);
}

/* ---- sites, logs, ranks and GPU work ---- */

static void sites(struct archive *a)
{
    struct marey__merge *m = a->merge;
    size_t n = m->sites.n;
    count(a, &n, MAREY__COUNT_OF(site_fields) + 1);
    for (size_t i = 0; i < n && !has_failed(a); i++) {
        struct marey__site_row row = !reads(a) ? m->sites.rows[i] : (struct marey__site_row){0};
        size_t len = row.info.name_len;
        bytes(a, &row.info.name, &len);
        row.info.name_len = (uint32_t)len;
        PACK_FIELDS(a, &row, site_fields);
        if (reads(a) && !has_failed(a))
            a->has_no_memory |= !marey__merge_add_site(m, &row);
    }
}

static void exclusions(struct archive *a, struct marey__exclusions *written)
{
    struct marey__exclusions row = reads(a) ? (struct marey__exclusions){0} : *written;
    size_t n = row.n_measuring;
    PACK_FIELDS(a, &row, left_out_fields);
    count(a, &n, MAREY__COUNT_OF(process_fields));
    struct marey_process *read = reads(a) ? keep_block(a->storage, n, sizeof *read) : NULL;
    struct marey__exclusions *const into =
        reads(a) && !has_failed(a) ? marey__merge_exclusions(a->merge, row.recording) : NULL;
    a->has_no_memory |= reads(a) && !a->is_bad && (read == NULL || into == NULL);
    if (into != NULL) {
        into->n_broken += row.n_broken;
        into->n_empty += row.n_empty;
    }
    for (size_t i = 0; i < n && !has_failed(a); i++) {
        process(a, reads(a) ? &read[i] : NULL, reads(a) ? NULL : row.measuring[i]);
        if (reads(a) && !has_failed(a))
            a->has_no_memory |= !marey__exclusions_add(into, &read[i]);
    }
}

static void left_outs(struct archive *a)
{
    struct marey__merge *m = a->merge;
    size_t n = m->n_exclusions;
    count(a, &n, 4);
    for (size_t i = 0; i < n && !has_failed(a); i++)
        exclusions(a, reads(a) ? NULL : &m->exclusions[i]);
}

static void rank_step(struct archive *a, struct marey__rank_step *step)
{
    struct marey__rank_step read = reads(a) ? (struct marey__rank_step){0} : *step;
    PACK_FIELDS(a, &read, rank_step_fields);
    a->is_bad |= !(read.slowest_ns >= 0);
    if (reads(a) && !has_failed(a) && read.n != 0)
        marey__rank_step_add(step, &read);
}

static void rank_steps(struct archive *a)
{
    struct marey__iteration_merge *it = &a->merge->iterations;
    size_t n = it->n_rank_steps;
    count(a, &n, 2);
    for (size_t r = 0; r < n && !has_failed(a); r++) {
        struct marey__rank_steps *steps = reads(a) ? NULL : &it->rank_steps[r];
        uint32_t recording = reads(a) ? 0 : steps->recording;
        size_t n_steps = reads(a) ? 0 : steps->n;
        u32(a, &recording);
        count(a, &n_steps, 1);
        if (reads(a) && !has_failed(a)) {
            steps = marey__rank_steps_of(it, recording, n_steps);
            a->has_no_memory |= steps == NULL;
        }
        for (size_t i = 0; i < n_steps && !has_failed(a); i++)
            rank_step(a, &steps->steps[i]);
    }
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
        number_of(a, &name, a->n_names, a->names, 0, false);
        number(a, &kind, 256);
        if (has_failed(a))
            return;
        struct marey__merged_work *work =
            reads(a) ? marey__gpu_merge_work(gpu, name, kind) : &gpu->works[i];
        a->has_no_memory |= work == NULL;
        if (has_failed(a))
            return;
        PACK_SUMS(a, work, work_fields);
        a->is_bad |= work->calls.count == 0;
    }
}

/* ---- the merge ---- */

static void content(struct archive *a)
{
    names(a);
    processes(a);
    rank_rows(a);
    tree(a);
    pack_lists(a);
    sites(a);
    left_outs(a);
    PACK_SUMS(a, a->merge, total_fields);
    rank_steps(a);
    works(a);
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

marey_status marey__merge_unpack(struct marey__merge *merge, struct marey__merge_storage *storage,
                                 const void *packed, size_t len)
{
    const uint8_t *at = packed;
    uint64_t version = 0;
    uint32_t crc;
    if (len < MAGIC_BYTES + CRC_BYTES + 1 || memcmp(at, MAGIC, MAGIC_BYTES) != 0)
        return bad("is none");
    struct archive a = {
        .at = at + MAGIC_BYTES, .end = at + len - CRC_BYTES, .merge = merge, .storage = storage};
    u64(&a, &version);
    if (version != VERSION)
        return bad("is from another version of marey; run the same version in all processes");
    memcpy(&crc, a.end, sizeof crc);
    if (crc != marey__crc32c(0, packed, len - CRC_BYTES))
        return bad("was corrupted in transfer");
    merge->iterations.keeps_rank_steps = true;
    content(&a);
    MAREY__FREE_ALL(a.names, a.nodes);
    MAREY__TRY_MEMORY(!a.has_no_memory);
    return a.is_bad || a.at != a.end ? bad("is inconsistent") : MAREY_OK;
}
