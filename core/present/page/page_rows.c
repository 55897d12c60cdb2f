/* Rows and tracks of the page: events are added one by one and leave in chunks. */
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

/* Start small; a row that has filled a chunk gets a full-size next one. */
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
        row->last_start_ns = 0; /* any order is allowed */
    if (!marey__page_row_put(page, row, event->start_ns, event->value, event->id))
        return false;
    const uint64_t start_ns = row->last_start_ns;
    const uint64_t length = row->values == MAREY__PAGE_DURATIONS ? event->value : 0;
    row->last_start_ns = MAREY__MAX(start_ns, last_start_ns);
    row->last_end_ns = MAREY__MAX(row->last_end_ns, start_ns + length);
    return true;
}

/* Queue the remaining events. */
static void finish_row(struct marey__page *page, struct marey__page_row *row)
{
    if (row->n != 0)
        hand_over(page, row);
}

static void fini_row(struct marey__page_row *row)
{
    for (struct marey__page_chunk *chunk = row->first, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        MAREY__FREE_ALL(chunk->events, chunk);
    }
    MAREY__FREE_ALL(row->events, row->shorts);
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

/* Of everything added, including ranges still to be merged. */
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
    /* Deeper ones are drawn over one another. */
    return marey__page_track_row(track, MAREY__MIN(i, (size_t)MAREY__PAGE_DEPTH - 1));
}

/* Rows of a track besides those of its ranges. */
#define OTHER_ROWS(track)                                                                          \
    {                                                                                              \
        &(track)->marks, &(track)->losses, &(track)->texts, &(track)->links, &(track)->flows       \
    }

void marey__page_track_finish(struct marey__page *page, struct marey__page_track *track)
{
    struct marey__page_row *const others[] = OTHER_ROWS(track);
    for (size_t i = 0; i < MAREY__COUNT_OF(others); i++)
        finish_row(page, others[i]);
    for (size_t i = 0; i < track->n_rows; i++)
        finish_row(page, &track->rows[i]);
}

void marey__page_track_fini(struct marey__page_track *track)
{
    struct marey__page_row *const others[] = OTHER_ROWS(track);
    for (size_t i = 0; i < MAREY__COUNT_OF(others); i++)
        fini_row(others[i]);
    for (size_t i = 0; i < track->n_rows; i++)
        fini_row(&track->rows[i]);
    MAREY__FREE_ALL(track->rows, track->unfinished, track->labels);
    *track = (struct marey__page_track){0};
}

/*
 * ---- short ranges merged ----
 *
 * For recordings with more ranges than a browser can handle. Successive short ranges of a
 * thread, or work of a stream, become one event, whose id is the number of sites plus the number of ranges. They
 * look different only after zooming in far, and then the page shows their number.
 */

enum {
    DEFAULT_MOST = 10000000,
    LOOK_EVERY = 1 << 12, /* words */
    FIRST_BOUND_NS = 1,
    WORDS_OF_RANGE = 2, /* begin and end; work has more */
};
#define LAST_BOUND_NS (UINT64_C(1) << 50) /* two weeks */

static uint64_t words_of(const struct marey__page *page)
{
    uint64_t n = 0;
    for (size_t i = 0; i < page->n_chosen; i++)
        n += page->processes[page->chosen[i]].info->n_words;
    for (size_t r = 0; page->n_chosen == 0 && r < page->n_recordings; r++)
        for (size_t i = 0; i < marey_recording_n_logs(page->recordings[r]); i++)
            n += marey_recording_process(page->recordings[r], i)->n_words;
    return n;
}

void marey__page_thin_init(struct marey__page_process *process)
{
    const uint64_t wanted = process->page->options->max_ranges;
    const uint64_t most = wanted != 0 ? wanted : DEFAULT_MOST, n_words = words_of(process->page);
    struct marey__page_thinning *thin = &process->thin;
    thin->next_look = UINT64_MAX;
    if (n_words / WORDS_OF_RANGE <= most)
        return;
    thin->n_expected = process->info->n_words + 1;
    thin->n_most = (uint64_t)((double)most * (double)process->info->n_words / (double)n_words);
    thin->below_ns = FIRST_BOUND_NS;
    thin->next_look = LOOK_EVERY;
}

/* Check how many were kept, and adapt the bound. */
static void look(struct marey__page_thinning *thin)
{
    const double due = (double)LOOK_EVERY * (double)thin->n_most / (double)thin->n_expected;
    const double kept = (double)(thin->n_kept - thin->n_kept_before);
    if (kept > due && thin->below_ns < LAST_BOUND_NS)
        thin->below_ns *= 2;
    else if (kept < due / 2 && thin->below_ns > 1)
        thin->below_ns /= 2;
    thin->n_kept_before = thin->n_kept;
    thin->next_look = thin->n_seen + LOOK_EVERY;
}

bool marey__page_thin_flush(struct marey__page_process *process, struct marey__page_row *row)
{
    struct marey__page_short *shorts = row->shorts;
    if (shorts == NULL || shorts->n == 0)
        return true;
    if (shorts->n > 1) {
        process->thin.n_merged += shorts->n;
        shorts->first.value = shorts->end_ns - shorts->first.start_ns;
        shorts->first.id = process->info->n_sites + shorts->n;
    }
    shorts->n = 0;
    process->thin.n_kept++;
    return marey__page_row_add(process->page, row, &shorts->first);
}

/* Merge one below the bound. */
static bool merge(struct marey__page_process *process, struct marey__page_row *row,
                  const struct marey__page_event *event)
{
    if (row->shorts == NULL && (row->shorts = marey__calloc(1, sizeof *row->shorts)) == NULL)
        return false;
    struct marey__page_short *shorts = row->shorts;
    const uint64_t end_ns = event->start_ns + event->value;
    const bool follows = shorts->n != 0 && event->start_ns >= shorts->first.start_ns &&
                         event->start_ns - shorts->first.start_ns < process->thin.below_ns;
    if (follows) {
        shorts->n++;
        shorts->end_ns = MAREY__MAX(shorts->end_ns, end_ns);
        return true;
    }
    if (!marey__page_thin_flush(process, row))
        return false;
    *shorts = (struct marey__page_short){.first = *event, .end_ns = end_ns, .n = 1};
    return true;
}

bool marey__page_thin_add(struct marey__page_process *process, struct marey__page_row *row,
                          const struct marey__page_event *event, size_t n_words)
{
    struct marey__page_thinning *thin = &process->thin;
    thin->n_seen += n_words;
    if (thin->n_seen >= thin->next_look)
        look(thin);
    if (event->value < thin->below_ns)
        return merge(process, row, event);
    thin->n_kept++;
    return marey__page_thin_flush(process, row) && marey__page_row_add(process->page, row, event);
}
