/* Rows and tracks of the page: events go in one by one and leave in chunks. */
#include <string.h>

#include "present/page/internal.h"

/* ---- rows ---- */

static bool start_chunk(struct marey__page_row *row)
{
    struct marey__page_chunk *chunk = marey__calloc(1, sizeof *chunk);
    if (chunk == NULL)
        return false;
    if (row->last != NULL)
        row->last->next = chunk;
    else
        row->first = chunk;
    row->last = chunk;
    return true;
}

static void hand_over(struct marey__page *page, struct marey__page_row *row)
{
    struct marey__page_chunk *chunk = row->last;
    chunk->events = row->events;
    chunk->n = (uint32_t)row->n;
    chunk->values = row->values;
    chunk->first_ns = row->events[0].start_ns;
    const struct marey__page_event *last = &row->events[row->n - 1];
    const uint64_t last_end =
        last->start_ns + (row->values == MAREY__PAGE_DURATIONS ? last->value : 0);
    chunk->last_ns = MAREY__MAX(row->last_end_ns, last_end);
    row->events = NULL;
    row->n = row->cap = row->room = 0;
    marey__page_packer_take(page->packer, chunk);
}

/* A row of few events takes little, one that has filled a chunk is given the whole next one. */
bool marey__page_row_grow(struct marey__page *page, struct marey__page_row *row)
{
    if (row->n == MAREY__PAGE_CHUNK)
        hand_over(page, row);
    const bool is_next = row->n == 0 && row->first != NULL;
    if (row->n == 0 && !start_chunk(row))
        return false;
    if (is_next) {
        row->events = marey__page_packer_events(page->packer);
        row->cap = row->events != NULL ? MAREY__PAGE_CHUNK : 0;
    }
    if (!marey__grow(&row->events, &row->cap, row->n == 0 ? 8 : row->n + 1, sizeof *row->events))
        return false;
    row->room = MAREY__MIN(row->cap, (size_t)MAREY__PAGE_CHUNK);
    return true;
}

bool marey__page_row_add(struct marey__page *page, struct marey__page_row *row,
                         const struct marey__page_event *event)
{
    const uint64_t last_start_ns = row->last_start_ns;
    if (row->values == MAREY__PAGE_NUMBERS)
        row->last_start_ns = 0; /* any order will do */
    if (!marey__page_row_put(page, row, event->start_ns, event->value, event->id))
        return false;
    const uint64_t start_ns = row->last_start_ns;
    const uint64_t length = row->values == MAREY__PAGE_DURATIONS ? event->value : 0;
    row->last_start_ns = MAREY__MAX(start_ns, last_start_ns);
    row->last_end_ns = MAREY__MAX(row->last_end_ns, start_ns + length);
    return true;
}

void marey__page_row_finish(struct marey__page *page, struct marey__page_row *row)
{
    if (row->n != 0)
        hand_over(page, row);
}

void marey__page_row_fini(struct marey__page_row *row)
{
    for (struct marey__page_chunk *chunk = row->first, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        marey__free(chunk->events);
        marey__free(chunk);
    }
    marey__free(row->events);
    marey__free(row->shorts);
    *row = (struct marey__page_row){0};
}

/* ---- tracks ---- */

struct marey__page_row *marey__page_track_grow(struct marey__page_track *track, size_t i)
{
    const size_t before = track->rows_cap;
    if (!marey__grow(&track->rows, &track->rows_cap, i + 1, sizeof *track->rows))
        return NULL;
    if (track->rows_cap != before)
        memset(track->rows + before, 0, (track->rows_cap - before) * sizeof *track->rows);
    track->n_rows = i + 1;
    return &track->rows[i];
}

/* Of all that was added, also where it is still to be drawn together. */
static uint64_t end_of(const struct marey__page_row *row)
{
    const uint64_t end_ns = row->shorts != NULL && row->shorts->n != 0 ? row->shorts->end_ns : 0;
    return MAREY__MAX(row->last_end_ns, end_ns);
}

struct marey__page_row *marey__page_free_row(struct marey__page_track *track, uint64_t start_ns)
{
    size_t i = 0;
    while (i < track->n_rows && end_of(&track->rows[i]) > start_ns)
        i++;
    /* Beyond, they are drawn over one another. */
    return marey__page_track_row(track, MAREY__MIN(i, (size_t)MAREY__PAGE_DEPTH - 1));
}

void marey__page_track_finish(struct marey__page *page, struct marey__page_track *track)
{
    struct marey__page_row *const others[] = {&track->marks, &track->losses, &track->texts,
                                              &track->links, &track->flows};
    for (size_t i = 0; i < MAREY__COUNT_OF(others); i++)
        marey__page_row_finish(page, others[i]);
    for (size_t i = 0; i < track->n_rows; i++)
        marey__page_row_finish(page, &track->rows[i]);
}

void marey__page_track_fini(struct marey__page_track *track)
{
    for (size_t i = 0; i < track->n_rows; i++)
        marey__page_row_fini(&track->rows[i]);
    marey__page_row_fini(&track->marks);
    marey__page_row_fini(&track->losses);
    marey__page_row_fini(&track->texts);
    marey__page_row_fini(&track->links);
    marey__page_row_fini(&track->flows);
    marey__free(track->rows);
    marey__free(track->unfinished);
    marey__free(track->labels);
    *track = (struct marey__page_track){0};
}
