/* Computation, communication and the rest, for recordings in which they can be told apart. */
#include <string.h>

#include "present/page_internal.h"

static bool has_streams(kymo_recording *recording, const struct kymo_process *process)
{
    for (uint32_t i = 0; i < process->n_lanes; i++)
        if (kymo_recording_lane(recording, process->index, i)->kind == KYMO_LANE_GPU)
            return true;
    return false;
}

static bool has_communication(kymo_recording *recording, const struct kymo_process *process)
{
    for (uint32_t site = 1; site <= process->n_sites; site++)
        if (strcmp(kymo_recording_site(recording, process->index, site)->category,
                   "communication") == 0)
            return true;
    return false;
}

static bool is_worth_it(const struct kymo__page *page)
{
    for (size_t r = 0; r < page->n_recordings; r++) {
        kymo_recording *recording = page->recordings[r];
        for (size_t i = 0; i < kymo_recording_n_processes(recording); i++) {
            const struct kymo_process *process = kymo_recording_process(recording, i);
            if (has_streams(recording, process) || has_communication(recording, process))
                return true;
        }
    }
    return false;
}

kymo_status kymo__page_break_down(struct kymo__page *page)
{
    const struct kymo_breakdown_options options = {.by = "step",
                                                   .n_jobs = page->options->summary.n_jobs};
    if (!is_worth_it(page))
        return KYMO_OK;
    const kymo_status status =
        kymo_breakdown_create(page->recordings, page->n_recordings, &options, &page->breakdown);
    /* Streams without work, or nothing that communicated, after all: the page does without. */
    if (status == KYMO_OK &&
        kymo__cell_of(kymo_breakdown_table(page->breakdown, "summary"), 0, "ns").is_null) {
        kymo_breakdown_destroy(page->breakdown);
        page->breakdown = NULL;
    }
    return status == KYMO_EFORMAT ? KYMO_OK : status;
}

void kymo__page_put_breakdown(const struct kymo__page *page, struct kymo__buf *json)
{
    static const char *const names[] = {
        "summary", "devices", "by", "idle", "rules", "collectives", "collective_ranks", "warnings"};
    if (page->breakdown == NULL)
        return;
    kymo__page_put_key(json, "breakdown");
    kymo__buf_puts(json, "[");
    for (size_t i = 0; i < KYMO__COUNT_OF(names); i++) {
        const kymo_table *table = kymo_breakdown_table(page->breakdown, names[i]);
        if (table != NULL)
            kymo__page_table(json, table, KYMO__PAGE_TABLE_ROWS);
    }
    kymo__page_close(json, "],");
}
