/* Computation, communication and the rest, for recordings in which they can be told apart. */
#include <string.h>

#include "present/page/internal.h"

static bool has_streams(marey_recording *recording, const struct marey_process *process)
{
    for (uint32_t i = 0; i < process->n_lanes; i++)
        if (marey_recording_lane(recording, process->index, i)->kind == MAREY_LANE_GPU)
            return true;
    return false;
}

static bool has_communication(marey_recording *recording, const struct marey_process *process)
{
    for (uint32_t site = 1; site <= process->n_sites; site++)
        if (strcmp(marey_recording_site(recording, process->index, site)->category,
                   "communication") == 0)
            return true;
    return false;
}

static bool is_worth_it(const struct marey__page *page)
{
    for (size_t r = 0; r < page->n_recordings; r++) {
        marey_recording *recording = page->recordings[r];
        for (size_t i = 0; i < marey_recording_n_processes(recording); i++) {
            const struct marey_process *process = marey_recording_process(recording, i);
            if (has_streams(recording, process) || has_communication(recording, process))
                return true;
        }
    }
    return false;
}

marey_status marey__page_break_down(struct marey__page *page)
{
    const struct marey_breakdown_options options = {.by = "step",
                                                    .n_jobs = page->options->summary.n_jobs};
    if (!is_worth_it(page))
        return MAREY_OK;
    const marey_status status =
        marey_breakdown_create(page->recordings, page->n_recordings, &options, &page->breakdown);
    /* Streams without work, or nothing that communicated, after all: the page does without. */
    if (status == MAREY_OK &&
        marey__cell_of(marey_breakdown_table(page->breakdown, "summary"), 0, "ns").is_null) {
        marey_breakdown_destroy(page->breakdown);
        page->breakdown = NULL;
    }
    return status == MAREY_EFORMAT ? MAREY_OK : status;
}

void marey__page_put_breakdown(const struct marey__page *page, struct marey__buf *json)
{
    static const char *const names[] = {
        "summary", "devices", "by", "idle", "rules", "collectives", "collective_ranks", "warnings"};
    if (page->breakdown == NULL)
        return;
    marey__page_put_key(json, "breakdown");
    marey__buf_puts(json, "[");
    for (size_t i = 0; i < MAREY__COUNT_OF(names); i++) {
        const marey_table *table = marey_breakdown_table(page->breakdown, names[i]);
        if (table != NULL)
            marey__page_table(json, table, MAREY__PAGE_TABLE_ROWS);
    }
    marey__page_close(json, "],");
}
