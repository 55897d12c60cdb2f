/*
 * The heat map as bytes: a plane for each byte of a cell's numbers, so that planes of bytes that are alike compress well.
 * Times are told against the median of their column, in steps of a hundredth.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "present/page/internal.h"

#define STEPS 100.0 /* of e */
enum { MIDDLE = 32768 };

struct planes {
    size_t n_rows, n_columns, n_cells;
    size_t member_width, iteration_width;
    uint8_t *bytes; /* n_cells of each plane: code low, code high, name, extra, member, iteration */
};

static size_t n_filled_rows(const struct marey__heat *heat)
{
    size_t n = 0;
    for (size_t i = 0; i < heat->n_rows; i++)
        n += heat->rows[i].n != 0;
    return n;
}

bool marey__heat_is_worth_it(const struct marey__heat *heat)
{
    if (heat == NULL || !heat->has_several)
        return false;
    size_t n_ranks = 0;
    for (size_t i = 0; i < heat->n_rows; i++)
        n_ranks += heat->rows[i].n != 0 ? heat->group : 0;
    return n_ranks >= 2;
}

/* Give all rows cells for as many iterations. */
static void align(struct marey__heat_row *rows, size_t n, uint32_t bin)
{
    for (size_t i = 0; i < n; i++)
        while (rows[i].n != 0 && rows[i].bin < bin)
            marey__heat_halve(&rows[i]);
}

/* From the first column that a row has to the last one. */
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

/* All rows from one column to one, of as many iterations each. False without memory. */
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
        done = heat->rows[i].n == 0 || marey__heat_row_cover(&heat->rows[i], *first, *first + 1);
    for (size_t i = 0; done && i < heat->n_sampled; i++)
        done = marey__heat_row_cover(&heat->sampled[i], *first, *first + 1);
    return done;
}

/* ---- medians ---- */

static int by_number(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Of each column, over single ranks; 0 where it is empty. False without memory. */
static bool find_medians(const struct marey__heat *heat, size_t n_columns, float *medians)
{
    const bool is_sampled = heat->group > 1;
    const struct marey__heat_row *rows = is_sampled ? heat->sampled : heat->rows;
    const size_t n_rows = is_sampled ? heat->n_sampled : heat->n_rows;
    float *values = marey__calloc(MAREY__MAX(n_rows, heat->n_rows) + 1, sizeof *values);
    if (values == NULL)
        return false;
    for (size_t c = 0; c < n_columns; c++) {
        size_t n = 0;
        for (size_t r = 0; r < n_rows; r++)
            if (c < rows[r].n && rows[r].cells[c].ns > 0)
                values[n++] = rows[r].cells[c].ns;
        for (size_t r = 0; n == 0 && r < heat->n_rows; r++) /* nobody that was sampled has it */
            if (c < heat->rows[r].n && heat->rows[r].cells[c].ns > 0)
                values[n++] = heat->rows[r].cells[c].ns;
        qsort(values, n, sizeof *values, by_number);
        medians[c] = n == 0 ? 0 : (values[(n - 1) / 2] + values[n / 2]) / 2;
    }
    marey__free(values);
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
    planes->bytes[2 * n + at] = cell->name;
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
    marey__page_put_key(json, "processes");
    marey__buf_puts(json, "[");
    for (size_t r = 0; r < heat->n_rows; r++)
        for (size_t k = 0; heat->rows[r].n != 0 && k < heat->group; k++) {
            const size_t ordinal = r * heat->group + k;
            marey__page_put_i64(json, ordinal < heat->n_ranks ? (int64_t)heat->numbers[ordinal] : -1);
            marey__buf_puts(json, ",");
        }
    marey__page_close(json, "],");
}

static void put_names(struct marey__buf *json, const struct marey__heat *heat)
{
    marey__page_put_key(json, "names");
    marey__buf_puts(json, "[");
    for (size_t i = 0; i < heat->names.n && i <= MAREY__HEAT_NAMES; i++) {
        marey__json_put(json, heat->names.names[i].text, heat->names.names[i].len);
        marey__buf_puts(json, ",");
    }
    marey__page_close(json, "],");
}

static void put_index(struct marey__page *page, const struct planes *planes, const float *medians,
                      uint64_t first, uint32_t bin)
{
    struct marey__buf *json = &page->heat_index;
    marey__page_put_key(json, "heat");
    marey__buf_puts(json, "{");
    marey__page_put_number(json, "rows", planes->n_rows);
    marey__page_put_number(json, "columns", planes->n_columns);
    marey__page_put_number(json, "first", first << bin);
    marey__page_put_number(json, "ranks", page->heat->group);
    marey__page_put_number(json, "iterations", UINT64_C(1) << bin);
    marey__page_put_number(json, "rank_width", planes->member_width);
    marey__page_put_number(json, "iteration_width", planes->iteration_width);
    put_list(json, page->heat);
    put_names(json, page->heat);
    marey__page_put_key(json, "medians");
    marey__buf_puts(json, "[");
    for (size_t c = 0; c < planes->n_columns; c++) {
        marey__page_put_u64(json, (uint64_t)medians[c]);
        marey__buf_puts(json, ",");
    }
    marey__page_close(json, "]},");
}

marey_status marey__page_put_heat_block(struct marey__page *page)
{
    struct marey__heat *heat = page->heat;
    if (!marey__heat_is_worth_it(heat))
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
    float *medians = marey__calloc(planes.n_columns + 1, sizeof *medians);
    marey_status status = MAREY_ENOMEM;
    if (medians == NULL || !find_medians(heat, planes.n_columns, medians))
        status = marey__no_memory();
    else
        status = put_planes(page, &planes, medians, bin);
    if (status == MAREY_OK)
        put_index(page, &planes, medians, first, bin);
    marey__free(medians);
    return status;
}

void marey__page_put_heat(const struct marey__page *page, struct marey__buf *json)
{
    if (page->heat_index.len != 0)
        marey__buf_put(json, page->heat_index.data, page->heat_index.len);
    json->failed |= page->heat_index.failed;
}
