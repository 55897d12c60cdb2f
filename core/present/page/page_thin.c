/*
 * A page of a recording with more ranges than a browser opens. Short ones that follow one another on a row, ranges of a
 * thread or work of a stream, become one event, whose id is beyond those of sites by as many as it stands for. Nobody can tell them apart before zooming in
 * far; whoever does sees that they are many.
 */
#include "present/page/internal.h"

enum {
    DEFAULT_MOST = 10000000,
    LOOK_EVERY = 1 << 12, /* words */
    FIRST_BOUND_NS = 1,
    WORDS_OF_RANGE = 2, /* its begin and end; of work there are more */
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

/* Look at how many were kept, and move the bound. */
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

/* One below the bound. */
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
