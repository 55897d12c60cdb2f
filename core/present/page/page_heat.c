/* The rows of the heat map: which rank is in which, and lines merged into them. */
#include <string.h>

#include "present/page/internal.h"

/* ---- who is in it ---- */

static const struct marey_process *process_of(const struct marey__page *page, size_t number)
{
    for (size_t r = 0; r < page->n_recordings; r++) {
        const size_t n = marey_recording_n_processes(page->recordings[r]);
        if (number < n)
            return marey_recording_process(page->recordings[r], number);
        number -= n;
    }
    return NULL; /* one that measured others */
}

/* Processes that load data for others have no row. */
static void number_ranks(struct marey__heat *heat, const struct marey__page *page)
{
    const struct marey_process *first = NULL;
    for (size_t p = 0; p < page->n_processes; p++) {
        const struct marey_process *process = process_of(page, p);
        heat->ordinals[p] = UINT32_MAX;
        if (process == NULL || process->worker >= 0)
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
    marey__free(heat->rows);
    marey__free(heat->sampled);
    marey__free(heat->ordinals);
    marey__free(heat->numbers);
    marey__free(heat);
}

/* ---- lines ---- */

/* Names of the walk as the map numbers them. */
static bool name_cells(struct marey__heat *heat, struct marey__heat_line *line)
{
    for (size_t i = 0; i < line->row.n; i++) {
        if (line->name_of[i] == 0)
            continue;
        const struct marey__name *name = &line->walk->names.names[line->name_of[i] - 1];
        const uint32_t number = marey__names_number(&heat->names, name->text, name->len);
        if (number == MAREY__NO_NAME)
            return false;
        line->row.cells[i].name = number <= MAREY__HEAT_NAMES ? (uint8_t)number : 0;
    }
    return true;
}

/* The longer of both, in every cell. */
static bool merge(struct marey__heat_row *into, struct marey__heat_row *from)
{
    while (into->bin < from->bin)
        marey__heat_halve(into);
    while (from->bin < into->bin)
        marey__heat_halve(from);
    if (!marey__heat_row_cover(into, from->first, from->first + from->n))
        return false;
    struct marey__heat_cell *const cells = into->cells + (from->first - into->first);
    for (size_t i = 0; i < from->n; i++)
        if (from->cells[i].ns > cells[i].ns)
            cells[i] = from->cells[i];
    return true;
}

/* Of rows that stand for several ranks, some single ranks besides, evenly spread: medians are those of single ones. */
static bool sample(struct marey__heat *heat, const struct marey__heat_line *line)
{
    const size_t stride = (heat->n_ranks + MAREY__HEAT_SAMPLED - 1) / MAREY__HEAT_SAMPLED;
    if (heat->group == 1 || line->ordinal % stride != 0)
        return true;
    struct marey__heat_row *row = &heat->sampled[heat->n_sampled++];
    row->bin = line->row.bin;
    if (!marey__heat_row_cover(row, line->row.first, line->row.first + line->row.n))
        return false;
    memcpy(row->cells, line->row.cells, line->row.n * sizeof *row->cells);
    return true;
}

bool marey__heat_line_end(struct marey__heat_line *line)
{
    struct marey__heat *heat = line->heat;
    if (line->row.n == 0)
        return true;
    pthread_mutex_lock(&heat->lock);
    const bool done = name_cells(heat, line) && sample(heat, line) &&
                      merge(&heat->rows[line->ordinal / heat->group], &line->row);
    pthread_mutex_unlock(&heat->lock);
    return done;
}
