/* What was allocated, on the page: the tables of `kymo report --memory`, where a recording has any. */
#include <string.h>

#include "present/page_internal.h"
#include <kymo/memory_report.h>

/* Whether it is worth reading the recordings once more: memory was measured, or CUPTI told of some. */
static bool has_memory(const struct kymo__page *page)
{
    const kymo_table *const kernels = page->summary->tables[KYMO__TABLE_KERNELS];
    for (size_t row = 0; row < kymo_table_n_rows(kernels); row++)
        if (strcmp(kymo__cell_of(kernels, row, "kind").as.text, "memory") == 0)
            return true;
    for (size_t r = 0; r < page->n_recordings; r++)
        for (size_t i = 0; i < kymo_recording_n_processes(page->recordings[r]); i++)
            if (kymo_recording_process(page->recordings[r], i)->memory[0] != '\0')
                return true;
    return false;
}

kymo_status kymo__page_look_at_memory(struct kymo__page *page)
{
    if (!has_memory(page))
        return KYMO_OK;
    const kymo_status status =
        kymo_memory_report_create(page->recordings, page->n_recordings, NULL, &page->memory);
    return status == KYMO_EFORMAT ? KYMO_OK : status;
}

void kymo__page_put_memory(const struct kymo__page *page, struct kymo__buf *json)
{
    static const char *const names[] = {"stacks",  "pools",  "phases",        "categories",
                                        "modules", "growth", "fragmentation", "resident",
                                        "live",    "notes"};
    if (page->memory == NULL)
        return;
    kymo__page_put_key(json, "memory");
    kymo__buf_puts(json, "[");
    for (size_t i = 0; i < KYMO__COUNT_OF(names); i++)
        kymo__page_table(json, kymo_memory_report_table(page->memory, names[i]),
                         KYMO__PAGE_TABLE_ROWS);
    kymo__page_close(json, "],");
}
