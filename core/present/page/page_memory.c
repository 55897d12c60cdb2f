/* What was allocated, on the page: the tables of `marey report --memory`, where a recording has any. */
#include <string.h>

#include "present/page/page_internal.h"
#include <marey/memory_report.h>

/* Whether it is worth reading the recordings once more: memory was measured, or CUPTI told of some. */
static bool has_memory(const struct marey__page *page)
{
    const marey_table *const kernels = page->summary->tables[MAREY__TABLE_KERNELS];
    for (size_t row = 0; row < marey_table_n_rows(kernels); row++)
        if (strcmp(marey__cell_of(kernels, row, "kind").as.text, "memory") == 0)
            return true;
    for (size_t r = 0; r < page->n_recordings; r++)
        for (size_t i = 0; i < marey_recording_n_processes(page->recordings[r]); i++)
            if (marey_recording_process(page->recordings[r], i)->memory[0] != '\0')
                return true;
    return false;
}

marey_status marey__page_look_at_memory(struct marey__page *page)
{
    if (!has_memory(page))
        return MAREY_OK;
    const marey_status status =
        marey_memory_report_create(page->recordings, page->n_recordings, NULL, &page->memory);
    return status == MAREY_EFORMAT ? MAREY_OK : status;
}

void marey__page_put_memory(const struct marey__page *page, struct marey__buf *json)
{
    static const char *const names[] = {"stacks",  "pools",  "phases",        "categories",
                                        "modules", "growth", "fragmentation", "resident",
                                        "live",    "notes"};
    if (page->memory == NULL)
        return;
    marey__page_put_key(json, "memory");
    marey__buf_puts(json, "[");
    for (size_t i = 0; i < MAREY__COUNT_OF(names); i++)
        marey__page_table(json, marey_memory_report_table(page->memory, names[i]),
                          MAREY__PAGE_TABLE_ROWS);
    marey__page_close(json, "],");
}
