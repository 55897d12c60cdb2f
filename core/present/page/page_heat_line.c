/*
 * One rank's line of the heat map: its iterations one after the other, and for those that took longer than the ones
 * before what made them so. Which iterations are usual is known from those before alone, since each is seen once.
 */
#include <string.h>

#include "present/page/internal.h"

enum { LEAST_BEFORE = 3 }; /* iterations that tell what is usual */

bool marey__heat_row_cover(struct marey__heat_row *row, uint64_t first, uint64_t end)
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

/* The longer cell of each pair stays. The first pair of the row may have its second cell alone. */
void marey__heat_halve(struct marey__heat_row *row)
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
    marey__free(line->row.cells);
    marey__free(line->name_of);
    marey__free(line->sums);
    marey__free(line);
}

/* ---- what made it longer ---- */

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
 * As for outliers: of those nearly as much longer as the most, the one that usually takes least. None where half of it is
 * waiting for others: they are the cause.
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

/* Only where it is longer by a tenth; the name is the walk's, plus one. */
static uint32_t explain(const struct marey__heat_line *line, const struct marey__iteration *iteration,
                        double ns, struct marey__heat_cell *cell)
{
    if (line->n_before < LEAST_BEFORE)
        return 0;
    const double usual = line->whole_sum / (double)line->n_before;
    double extra = 0;
    if (ns < 1.1 * usual)
        return 0;
    const uint32_t name = find_longer(line, iteration, ns - usual, &extra);
    if (name == MAREY__NO_NAME)
        return 0;
    const double share = extra / ns;
    cell->extra = (uint8_t)(255 * (share < 1 ? share : 1) + 0.5);
    return name + 1;
}

/* ---- cells ---- */

/* Iterations of a process come in order, so that a line grows at its end alone. */
static bool reach(struct marey__heat_line *line, uint64_t column)
{
    const size_t before = line->row.n;
    if (!marey__heat_row_cover(&line->row, column, column + 1) ||
        !marey__grow(&line->name_of, &line->name_of_cap, line->row.n, sizeof *line->name_of))
        return false;
    memset(line->name_of + before, 0, (line->row.n - before) * sizeof *line->name_of);
    return true;
}

static void halve(struct marey__heat_line *line)
{
    const struct marey__heat_row *row = &line->row;
    const size_t is_odd = row->first % 2;
    for (size_t i = 0; i < row->n; i++) {
        const bool is_second = (i + is_odd) % 2 != 0 && i != 0;
        if (!is_second || row->cells[i].ns > row->cells[i - 1].ns)
            line->name_of[(i + is_odd) / 2] = line->name_of[i];
    }
    marey__heat_halve(&line->row);
}

bool marey__heat_line_take(struct marey__heat_line *line, const struct marey__iteration *iteration)
{
    const struct marey__span *span = &iteration->span;
    const uint64_t place = line->walk->iteration_stats.place;
    const double ns = (double)(span->end_ns - span->begin_ns);
    if (place >= UINT32_MAX)
        return true;
    while (line->row.n != 0 && (place >> line->row.bin) - line->row.first >= line->heat->max_columns)
        halve(line);
    if (!reach(line, place >> line->row.bin))
        return false;
    if (span->flags != 0) /* warm-up, or not whole: a column without a time */
        return true;
    const size_t column = (size_t)((place >> line->row.bin) - line->row.first);
    struct marey__heat_cell cell = {
        .ns = ns > 0 ? (float)ns : 1,
        .iteration = (uint32_t)place,
        .member = (uint16_t)(line->ordinal % line->heat->group),
    };
    const uint32_t name = explain(line, iteration, ns, &cell);
    if (cell.ns > line->row.cells[column].ns) {
        line->row.cells[column] = cell;
        line->name_of[column] = name;
    }
    for (size_t i = 0; i < iteration->n_ran; i++)
        line->sums[iteration->ran[i]] += (double)iteration->times[iteration->ran[i]].ns;
    line->whole_sum += ns;
    line->n_before++;
    return true;
}
