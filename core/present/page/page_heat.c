/*
 * The heat map of the page: the duration of each iteration on each rank.
 *
 *   spans of a process --> a line: one cell per iteration, or per several successive ones
 *        --> merged into the rows of the map: a row per rank, or per several neighbors
 *        --> medians by column, planes of bytes in a block "heat", the rest in the index
 *
 * A map holds up to some million cells. With more iterations or ranks, a cell represents several of them and
 * keeps the longest, so that outliers do not vanish. docs/formats/page.md describes the bytes.
 */
#include <math.h>

#include "present/page/internal.h"

enum {
    MAREY__HEAT_SIDE = 4096,     /* maximum of rows, and of columns */
    MAREY__HEAT_CELLS = 1 << 22, /* maximum of their product */
    MAREY__HEAT_SAMPLED =
        256, /* lines that medians are taken from, where rows stand for several ranks */
    MAREY__HEAT_NAMES = 255, /* limit on names referenced by cells; later ones are dropped */
};

/* The longest of the iterations that it represents. */
struct marey__heat_cell {
    float ns;           /* 0: none */
    uint32_t iteration; /* its place */
    uint32_t name;      /* the range that explains its excess on its rank; 0: none */
    uint16_t member;    /* index of the rank within its row */
    uint8_t extra;      /* share of the range in the excess: 255 is all of it */
};

/* Cells in order, each of 1 << bin iterations; the first cell begins at iteration first << bin. */
struct marey__heat_row {
    struct marey__heat_cell *cells;
    size_t n, cap;
    uint64_t first;
    uint32_t bin;
};

struct marey__heat {
    size_t n_ranks, group; /* ranks per row; a power of two, like iterations per column */
    size_t max_columns;
    bool has_several;     /* more than one rank: several processes may be restarts of one */
    uint32_t *ordinals;   /* by process of the page: its ordinal as a rank; UINT32_MAX: none */
    uint32_t *numbers;    /* by ordinal: the process */
    pthread_mutex_t lock; /* guards the members below during the walks */
    struct marey__heat_row *rows;
    size_t n_rows;
    struct marey__heat_row *sampled; /* lines of single ranks, if `group` is more than one */
    size_t n_sampled;
    struct marey__names names; /* number 0 is none; texts borrowed from the recordings */
};

/* A process during its walk. */
struct marey__heat_line {
    struct marey__heat *heat;
    struct marey__process_walk *walk;
    uint32_t ordinal;
    struct marey__heat_row row; /* its names are those of the walk, plus one */
    double *sums;               /* of earlier iterations, by name */
    double whole_sum;
    uint64_t n_before;
};

/* ---- rows ---- */

/*
 * Extend it from cell `first` to before `end`, counted from iteration 0; new cells are empty. Returns false on out of
 * memory.
 */
static bool cover(struct marey__heat_row *row, uint64_t first, uint64_t end)
{
    if (row->n == 0)
        row->first = first;
    const uint64_t from = MAREY__MIN(first, row->first), to = MAREY__MAX(end, row->first + row->n);
    const size_t n_before = (size_t)(row->first - from), n = (size_t)(to - from);
    if (!marey__grow(&row->cells, &row->cap, n, sizeof *row->cells))
        return false;
    if (n_before != 0) {
        memmove(row->cells + n_before, row->cells, row->n * sizeof *row->cells);
        memset(row->cells, 0, n_before * sizeof *row->cells);
    }
    memset(row->cells + n_before + row->n, 0, (n - n_before - row->n) * sizeof *row->cells);
    row->first = from;
    row->n = n;
    return true;
}

/*
 * Merge pairs of cells, keeping the longer one; cells then represent twice as many iterations. The first pair may have
 * only its second cell.
 */
static void halve_row(struct marey__heat_row *row)
{
    const size_t is_odd = row->first % 2;
    for (size_t i = 0; i < row->n; i++) {
        const size_t into = (i + is_odd) / 2;
        const bool is_alone = (i + is_odd) % 2 == 0 || i == 0;
        if (is_alone || row->cells[i].ns > row->cells[into].ns)
            row->cells[into] = row->cells[i];
    }
    row->n = (row->n + is_odd + 1) / 2;
    row->first /= 2;
    row->bin++;
}

/* ---- ranks ---- */

/* Data loader workers have no row. */
static void number_ranks(struct marey__heat *heat, const struct marey__page *page)
{
    const struct marey_process *first = NULL;
    for (size_t p = 0; p < page->n_processes; p++) {
        const struct marey_process *process = marey__page_nth_process(page, p);
        heat->ordinals[p] = UINT32_MAX;
        if (p >= page->n_of_program || process->worker >= 0)
            continue;
        first = first != NULL ? first : process;
        heat->has_several |= marey__is_other_rank(process, first);
        heat->numbers[heat->n_ranks] = (uint32_t)p;
        heat->ordinals[p] = (uint32_t)heat->n_ranks++;
    }
    heat->group = 1;
    while (heat->n_ranks > heat->group * MAREY__HEAT_SIDE)
        heat->group *= 2;
    heat->n_rows = (heat->n_ranks + heat->group - 1) / heat->group;
    heat->max_columns = MAREY__MIN((size_t)MAREY__HEAT_SIDE,
                                   (size_t)MAREY__HEAT_CELLS / MAREY__MAX(heat->n_rows, 1ul));
}

bool marey__heat_create(struct marey__page *page, struct marey__heat **out)
{
    struct marey__heat *heat = marey__calloc(1, sizeof *heat);
    if (heat == NULL)
        return false;
    *out = heat;
    pthread_mutex_init(&heat->lock, NULL);
    heat->ordinals = marey__calloc(page->n_processes + 1, sizeof *heat->ordinals);
    heat->numbers = marey__calloc(page->n_processes + 1, sizeof *heat->numbers);
    if (heat->ordinals == NULL || heat->numbers == NULL)
        return false;
    number_ranks(heat, page);
    heat->rows = marey__calloc(heat->n_rows + 1, sizeof *heat->rows);
    heat->sampled = marey__calloc(MAREY__HEAT_SAMPLED, sizeof *heat->sampled);
    return heat->rows != NULL && heat->sampled != NULL &&
           marey__names_number(&heat->names, "", 0) != MAREY__NO_NAME;
}

void marey__heat_destroy(struct marey__heat *heat)
{
    if (heat == NULL)
        return;
    for (size_t i = 0; heat->rows != NULL && i < heat->n_rows; i++)
        marey__free(heat->rows[i].cells);
    for (size_t i = 0; heat->sampled != NULL && i < heat->n_sampled; i++)
        marey__free(heat->sampled[i].cells);
    marey__names_fini(&heat->names);
    pthread_mutex_destroy(&heat->lock);
    MAREY__FREE_ALL(heat->rows, heat->sampled, heat->ordinals, heat->numbers, heat);
}

/*
 * ---- one rank's line ----
 *
 * Its iterations in order, with the cause for those longer than the earlier ones. Each iteration is seen only
 * once, so typical times come from earlier iterations.
 */

enum { LEAST_BEFORE = 3 }; /* iterations needed for typical times */

bool marey__heat_line_begin(struct marey__heat *heat, struct marey__process_walk *walk,
                            size_t number, struct marey__heat_line **out)
{
    if (heat == NULL || heat->ordinals[number] == UINT32_MAX)
        return true;
    struct marey__heat_line *line = marey__calloc(1, sizeof *line);
    if (line == NULL)
        return false;
    *line = (struct marey__heat_line){
        .heat = heat,
        .walk = walk,
        .ordinal = heat->ordinals[number],
        .sums = marey__calloc(walk->names.n + 1, sizeof *line->sums),
    };
    *out = line;
    return line->sums != NULL;
}

void marey__heat_line_destroy(struct marey__heat_line *line)
{
    if (line == NULL)
        return;
    MAREY__FREE_ALL(line->row.cells, line->sums, line);
}

/* ---- causes ---- */

static double extra_of(const struct marey__heat_line *line,
                       const struct marey__iteration *iteration, uint32_t name)
{
    return (double)iteration->times[name].ns - line->sums[name] / (double)line->n_before;
}

static bool is_wait(const struct marey__heat_line *line, uint32_t name)
{
    const struct marey__name *text = &line->walk->names.names[name];
    return marey__name_is_wait(text->text, text->len);
}

/*
 * As for outliers: among ranges within 10 % of the largest excess, choose the one with the least total. None if waiting
 * explains half of it: the others are the cause.
 */
static uint32_t find_longer(const struct marey__heat_line *line,
                            const struct marey__iteration *iteration, double by_ns, double *extra)
{
    double most = 0;
    uint32_t found = MAREY__NO_NAME;
    for (size_t i = 0; i < iteration->n_ran; i++) {
        const double one = extra_of(line, iteration, iteration->ran[i]);
        if (one <= most && one <= by_ns / 2)
            continue;
        if (!is_wait(line, iteration->ran[i]))
            most = one > most ? one : most;
        else if (one > by_ns / 2)
            return MAREY__NO_NAME;
    }
    for (size_t i = 0; most >= by_ns / 2 && i < iteration->n_ran; i++) {
        const uint32_t name = iteration->ran[i];
        const double one = extra_of(line, iteration, name);
        if (one < 0.9 * most || is_wait(line, name) ||
            (found != MAREY__NO_NAME && line->sums[name] >= line->sums[found]))
            continue;
        found = name;
        *extra = one;
    }
    return found;
}

/* Only if it is longer by a tenth; the name is the walk's, plus one. */
static void explain(const struct marey__heat_line *line, const struct marey__iteration *iteration,
                    double ns, struct marey__heat_cell *cell)
{
    if (line->n_before < LEAST_BEFORE)
        return;
    const double typical = line->whole_sum / (double)line->n_before;
    double extra = 0;
    if (ns < 1.1 * typical)
        return;
    const uint32_t name = find_longer(line, iteration, ns - typical, &extra);
    if (name == MAREY__NO_NAME)
        return;
    const double share = extra / ns;
    cell->extra = (uint8_t)(255 * (share < 1 ? share : 1) + 0.5);
    cell->name = name + 1;
}

/* ---- cells ---- */

bool marey__heat_line_take(struct marey__heat_line *line, const struct marey__iteration *iteration)
{
    const struct marey__span *span = &iteration->span;
    const uint64_t place = line->walk->iteration_stats.place;
    const double ns = (double)(span->end_ns - span->begin_ns);
    if (place >= UINT32_MAX)
        return true;
    while (line->row.n != 0 && (place >> line->row.bin) - line->row.first >= line->heat->max_columns)
        halve_row(&line->row);
    if (!cover(&line->row, place >> line->row.bin, (place >> line->row.bin) + 1))
        return false;
    if (span->flags != 0) /* warm-up, or incomplete: a column without a time */
        return true;
    const size_t column = (size_t)((place >> line->row.bin) - line->row.first);
    struct marey__heat_cell cell = {
        .ns = ns > 0 ? (float)ns : 1,
        .iteration = (uint32_t)place,
        .member = (uint16_t)(line->ordinal % line->heat->group),
    };
    explain(line, iteration, ns, &cell);
    if (cell.ns > line->row.cells[column].ns)
        line->row.cells[column] = cell;
    for (size_t i = 0; i < iteration->n_ran; i++)
        line->sums[iteration->ran[i]] += (double)iteration->times[iteration->ran[i]].ns;
    line->whole_sum += ns;
    line->n_before++;
    return true;
}

/* ---- lines merged into rows ---- */

/* Map names of the walk to the map's. */
static bool name_cells(struct marey__heat *heat, struct marey__heat_line *line)
{
    for (size_t i = 0; i < line->row.n; i++) {
        struct marey__heat_cell *const cell = &line->row.cells[i];
        if (cell->name == 0)
            continue;
        const struct marey__name *name = &line->walk->names.names[cell->name - 1];
        const uint32_t number = marey__names_number(&heat->names, name->text, name->len);
        if (number == MAREY__NO_NAME)
            return false;
        cell->name = number <= MAREY__HEAT_NAMES ? number : 0;
    }
    return true;
}

/* Keep the longer one in every cell. */
static bool merge(struct marey__heat_row *into, struct marey__heat_row *from)
{
    while (into->bin < from->bin)
        halve_row(into);
    while (from->bin < into->bin)
        halve_row(from);
    if (!cover(into, from->first, from->first + from->n))
        return false;
    struct marey__heat_cell *const cells = into->cells + (from->first - into->first);
    for (size_t i = 0; i < from->n; i++)
        if (from->cells[i].ns > cells[i].ns)
            cells[i] = from->cells[i];
    return true;
}

/* If rows represent several ranks, keep some single ranks, evenly spaced, because medians are those of single ranks. */
static bool sample(struct marey__heat *heat, const struct marey__heat_line *line)
{
    const size_t stride = (heat->n_ranks + MAREY__HEAT_SAMPLED - 1) / MAREY__HEAT_SAMPLED;
    if (heat->group == 1 || line->ordinal % stride != 0)
        return true;
    struct marey__heat_row *row = &heat->sampled[heat->n_sampled++];
    row->bin = line->row.bin;
    if (!cover(row, line->row.first, line->row.first + line->row.n))
        return false;
    memcpy(row->cells, line->row.cells, line->row.n * sizeof *row->cells);
    return true;
}

bool marey__heat_line_end(struct marey__heat_line *line)
{
    struct marey__heat *heat = line->heat;
    if (line->row.n == 0)
        return true;
    MAREY__HOLD(&heat->lock);
    return name_cells(heat, line) && sample(heat, line) &&
           merge(&heat->rows[line->ordinal / heat->group], &line->row);
}

/*
 * ---- the map as bytes ----
 *
 * One plane per byte of a cell's numbers, because planes of similar bytes compress well. Times are relative to the median
 * of their column, in steps of a hundredth.
 */

#define STEPS 100.0 /* per factor e */
enum { MIDDLE = 32768 };

struct planes {
    size_t n_rows, n_columns, n_cells;
    size_t member_width, iteration_width;
    uint8_t *bytes; /* n_cells per plane: code low, code high, name, extra, member, iteration */
};

static size_t n_filled_rows(const struct marey__heat *heat)
{
    size_t n = 0;
    for (size_t i = 0; i < heat->n_rows; i++)
        n += heat->rows[i].n != 0;
    return n;
}

static bool is_worth_it(const struct marey__heat *heat)
{
    if (heat == NULL || !heat->has_several)
        return false;
    size_t n_ranks = 0;
    for (size_t i = 0; i < heat->n_rows; i++)
        n_ranks += heat->rows[i].n != 0 ? heat->group : 0;
    return n_ranks >= 2;
}

/* Give all rows the same number of iterations per cell. */
static void align(struct marey__heat_row *rows, size_t n, uint32_t bin)
{
    for (size_t i = 0; i < n; i++)
        while (rows[i].n != 0 && rows[i].bin < bin)
            halve_row(&rows[i]);
}

/* The number of columns from the first to the last used one. */
static size_t count_columns(const struct marey__heat *heat, uint64_t *first)
{
    uint64_t end = 0;
    *first = UINT64_MAX;
    for (size_t i = 0; i < heat->n_rows; i++) {
        const struct marey__heat_row *row = &heat->rows[i];
        *first = row->n != 0 ? MAREY__MIN(*first, row->first) : *first;
        end = row->n != 0 ? MAREY__MAX(end, row->first + row->n) : end;
    }
    return (size_t)(end - *first);
}

/* Give all rows the same columns. Returns false on out of memory. */
static bool align_all(struct marey__heat *heat, uint32_t *bin, uint64_t *first, size_t *n_columns)
{
    *bin = 0;
    for (size_t i = 0; i < heat->n_rows; i++)
        *bin = MAREY__MAX(*bin, heat->rows[i].bin);
    for (;; ++*bin) { /* ranks may have begun far apart */
        align(heat->rows, heat->n_rows, *bin);
        *n_columns = count_columns(heat, first);
        if (*n_columns <= heat->max_columns)
            break;
    }
    align(heat->sampled, heat->n_sampled, *bin);
    bool done = true;
    for (size_t i = 0; done && i < heat->n_rows; i++)
        done = heat->rows[i].n == 0 || cover(&heat->rows[i], *first, *first + 1);
    for (size_t i = 0; done && i < heat->n_sampled; i++)
        done = cover(&heat->sampled[i], *first, *first + 1);
    return done;
}

/* ---- medians ---- */

MAREY__ORDER(by_number, float, MAREY__UP_BY(*x, *y))

/* Of each column, over single ranks; 0 if empty. Returns false on out of memory. */
static bool find_medians(const struct marey__heat *heat, size_t n_columns, float *medians)
{
    const bool is_sampled = heat->group > 1;
    const struct marey__heat_row *rows = is_sampled ? heat->sampled : heat->rows;
    const size_t n_rows = is_sampled ? heat->n_sampled : heat->n_rows;
    float *values MAREY__FREED = marey__calloc(MAREY__MAX(n_rows, heat->n_rows) + 1, sizeof *values);
    if (values == NULL)
        return false;
    for (size_t c = 0; c < n_columns; c++) {
        size_t n = 0;
        for (size_t r = 0; r < n_rows; r++)
            if (c < rows[r].n && rows[r].cells[c].ns > 0)
                values[n++] = rows[r].cells[c].ns;
        for (size_t r = 0; n == 0 && r < heat->n_rows; r++) /* no sampled rank has it */
            if (c < heat->rows[r].n && heat->rows[r].cells[c].ns > 0)
                values[n++] = heat->rows[r].cells[c].ns;
        qsort(values, n, sizeof *values, by_number);
        medians[c] = n == 0 ? 0 : (values[(n - 1) / 2] + values[n / 2]) / 2;
    }
    return true;
}

/* ---- planes ---- */

static size_t width_of(size_t n)
{
    return n <= 1 ? 0 : n <= 1u << 8 ? 1 : n <= 1u << 16 ? 2 : 4;
}

static void put_number(uint8_t *plane, size_t n_cells, size_t at, size_t width, uint32_t value)
{
    for (size_t k = 0; k < width; k++)
        plane[k * n_cells + at] = (uint8_t)(value >> 8 * k);
}

static void put_cell(const struct planes *planes, size_t at, const struct marey__heat_cell *cell,
                     float median, uint32_t bin)
{
    const size_t n = planes->n_cells;
    if (!(cell->ns > 0) || !(median > 0))
        return;
    const double code = MIDDLE + floor(STEPS * log((double)cell->ns / (double)median) + 0.5);
    put_number(planes->bytes, n, at, 2, code < 1 ? 1 : code > 65535 ? 65535 : (uint32_t)code);
    planes->bytes[2 * n + at] = (uint8_t)cell->name;
    planes->bytes[3 * n + at] = cell->extra;
    put_number(planes->bytes + 4 * n, n, at, planes->member_width, cell->member);
    put_number(planes->bytes + (4 + planes->member_width) * n, n, at, planes->iteration_width,
               cell->iteration & ((1u << bin) - 1));
}

static marey_status put_planes(struct marey__page *page, struct planes *planes,
                               const float *medians, uint32_t bin)
{
    const struct marey__heat *heat = page->heat;
    const size_t n_planes = 4 + planes->member_width + planes->iteration_width;
    planes->bytes = marey__calloc(planes->n_cells * n_planes + 1, 1);
    MAREY__TRY_MEMORY(planes->bytes != NULL);
    for (size_t r = 0, at = 0; r < heat->n_rows; r++) {
        if (heat->rows[r].n == 0)
            continue;
        for (size_t c = 0; c < heat->rows[r].n; c++)
            put_cell(planes, at + c, &heat->rows[r].cells[c], medians[c], bin);
        at += planes->n_columns;
    }
    const marey_status status = marey__page_packer_put(
        page->packer, "heat", (const char *)planes->bytes, planes->n_cells * n_planes);
    marey__free(planes->bytes);
    return status;
}

/* ---- the index ---- */

static void put_list(struct marey__buf *json, const struct marey__heat *heat)
{
    marey__page_open(json, "processes", "[");
    for (size_t r = 0; r < heat->n_rows; r++)
        for (size_t k = 0; heat->rows[r].n != 0 && k < heat->group; k++) {
            const size_t ordinal = r * heat->group + k;
            marey__json_printf(json, "%d,",
                               ordinal < heat->n_ranks ? (int)heat->numbers[ordinal] : -1);
        }
    marey__page_close(json, "],");
}

static void put_names(struct marey__buf *json, const struct marey__heat *heat)
{
    marey__page_open(json, "names", "[");
    for (size_t i = 0; i < heat->names.n && i <= MAREY__HEAT_NAMES; i++)
        marey__json_printf(json, "%.*s,", (int)heat->names.names[i].len, heat->names.names[i].text);
    marey__page_close(json, "],");
}

static void put_index(struct marey__page *page, const struct planes *planes, const float *medians,
                      uint64_t first, uint32_t bin)
{
    struct marey__buf *json = &page->heat_index;
    marey__script_printf(json,
                         "'heat':{'rows':%zu,'columns':%zu,'first':%" PRIu64
                         ",'ranks':%zu,'iterations':%" PRIu64
                         ",'rank_width':%zu,'iteration_width':%zu,",
                         planes->n_rows, planes->n_columns, first << bin, page->heat->group,
                         UINT64_C(1) << bin, planes->member_width, planes->iteration_width);
    put_list(json, page->heat);
    put_names(json, page->heat);
    marey__page_open(json, "medians", "[");
    for (size_t c = 0; c < planes->n_columns; c++)
        marey__script_printf(json, "%" PRIu64 ",", (uint64_t)medians[c]);
    marey__page_close(json, "]},");
}

marey_status marey__page_put_heat_block(struct marey__page *page)
{
    struct marey__heat *heat = page->heat;
    if (!is_worth_it(heat))
        return MAREY_OK;
    uint32_t bin;
    uint64_t first;
    size_t n_columns;
    MAREY__TRY_MEMORY(align_all(heat, &bin, &first, &n_columns));
    struct planes planes = {
        .n_rows = n_filled_rows(heat),
        .n_columns = n_columns,
        .member_width = width_of(heat->group),
        .iteration_width = width_of((size_t)1 << bin),
    };
    planes.n_cells = planes.n_rows * planes.n_columns;
    float *medians MAREY__FREED = marey__calloc(planes.n_columns + 1, sizeof *medians);
    marey_status status = MAREY_ENOMEM;
    if (medians == NULL || !find_medians(heat, planes.n_columns, medians))
        status = marey__no_memory();
    else
        status = put_planes(page, &planes, medians, bin);
    if (status == MAREY_OK)
        put_index(page, &planes, medians, first, bin);
    return status;
}

void marey__page_put_heat(const struct marey__page *page, struct marey__buf *json)
{
    if (page->heat_index.len != 0)
        marey__buf_put(json, page->heat_index.data, page->heat_index.len);
    json->failed |= page->heat_index.failed;
}
