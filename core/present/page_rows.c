/* Rows and tracks of the page: events go in one by one and leave in chunks. */
#include <string.h>

#include "present/page_internal.h"

/* ---- rows ---- */

static bool start_chunk(struct kymo__page_row *row)
{
    struct kymo__page_chunk *chunk = kymo__calloc(1, sizeof *chunk);
    if (chunk == NULL)
        return false;
    if (row->last != NULL)
        row->last->next = chunk;
    else
        row->first = chunk;
    row->last = chunk;
    return true;
}

static void hand_over(struct kymo__page *page, struct kymo__page_row *row)
{
    struct kymo__page_chunk *chunk = row->last;
    chunk->events = row->events;
    chunk->n = (uint32_t)row->n;
    chunk->values = row->values;
    chunk->first_ns = row->events[0].start_ns;
    chunk->last_ns = row->last_end_ns;
    row->events = NULL;
    row->n = row->cap = 0;
    kymo__page_packer_take(page->packer, chunk);
}

/* Room for one more event. A row of few events takes little, one that has filled a chunk is given the whole next one. */
static bool make_room(struct kymo__page *page, struct kymo__page_row *row)
{
    if (row->n == KYMO__PAGE_CHUNK)
        hand_over(page, row);
    const bool is_first = row->n == 0;
    const size_t want = !is_first ? row->n + 1 : row->first != NULL ? KYMO__PAGE_CHUNK : 8;
    if (is_first && !start_chunk(row))
        return false;
    return kymo__grow(&row->events, &row->cap, want, sizeof *row->events);
}

bool kymo__page_row_add(struct kymo__page *page, struct kymo__page_row *row,
                        const struct kymo__page_event *event)
{
    if (KYMO_UNLIKELY(row->n == row->cap || row->n == KYMO__PAGE_CHUNK) && !make_room(page, row))
        return false;
    struct kymo__page_event *to = &row->events[row->n++];
    *to = *event;
    if (row->values != KYMO__PAGE_NUMBERS)
        to->start_ns = KYMO__MAX(event->start_ns, row->last_start_ns);
    row->last_start_ns = to->start_ns;
    const uint64_t end_ns = to->start_ns + (row->values == KYMO__PAGE_DURATIONS ? event->value : 0);
    row->last_end_ns = KYMO__MAX(row->last_end_ns, end_ns);
    return true;
}

void kymo__page_row_finish(struct kymo__page *page, struct kymo__page_row *row)
{
    if (row->n != 0)
        hand_over(page, row);
}

void kymo__page_row_fini(struct kymo__page_row *row)
{
    for (struct kymo__page_chunk *chunk = row->first, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        kymo__free(chunk->events);
        kymo__free(chunk);
    }
    kymo__free(row->events);
    *row = (struct kymo__page_row){0};
}

/* ---- tracks ---- */

struct kymo__page_row *kymo__page_track_row(struct kymo__page_track *track, size_t i)
{
    if (KYMO_UNLIKELY(i >= track->n_rows)) {
        const size_t before = track->rows_cap;
        if (!kymo__grow(&track->rows, &track->rows_cap, i + 1, sizeof *track->rows))
            return NULL;
        if (track->rows_cap != before)
            memset(track->rows + before, 0, (track->rows_cap - before) * sizeof *track->rows);
        track->n_rows = i + 1;
    }
    return &track->rows[i];
}

struct kymo__page_row *kymo__page_free_row(struct kymo__page_track *track, uint64_t start_ns)
{
    size_t i = 0;
    while (i < track->n_rows && track->rows[i].last_end_ns > start_ns)
        i++;
    /* Beyond, they are drawn over one another. */
    return kymo__page_track_row(track, KYMO__MIN(i, (size_t)KYMO__PAGE_DEPTH - 1));
}

void kymo__page_track_finish(struct kymo__page *page, struct kymo__page_track *track)
{
    struct kymo__page_row *const others[] = {&track->marks, &track->losses, &track->texts,
                                             &track->links, &track->flows};
    for (size_t i = 0; i < KYMO__COUNT_OF(others); i++)
        kymo__page_row_finish(page, others[i]);
    for (size_t i = 0; i < track->n_rows; i++)
        kymo__page_row_finish(page, &track->rows[i]);
}

void kymo__page_track_fini(struct kymo__page_track *track)
{
    for (size_t i = 0; i < track->n_rows; i++)
        kymo__page_row_fini(&track->rows[i]);
    kymo__page_row_fini(&track->marks);
    kymo__page_row_fini(&track->losses);
    kymo__page_row_fini(&track->texts);
    kymo__page_row_fini(&track->links);
    kymo__page_row_fini(&track->flows);
    kymo__free(track->rows);
    kymo__free(track->unfinished);
    kymo__free(track->labels);
    *track = (struct kymo__page_track){0};
}
