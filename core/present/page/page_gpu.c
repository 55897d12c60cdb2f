/* What GPUs did, who launched it and where they waited: the report of GPU work on the page. */
#include "present/page/internal.h"
#include <marey/gpu_report.h>

marey_status marey__page_look_at_gpus(struct marey__page *page)
{
    const struct marey_gpu_report_options options = {.filter = page->options->summary.filter,
                                                     .n_jobs = page->options->summary.n_jobs};
    return marey_gpu_report_create(page->recordings, page->n_recordings, &options, &page->gpu);
}

void marey__page_put_gpus(const struct marey__page *page, struct marey__buf *json)
{
    static const char *const names[] = {"launch_bound", "devices", "kernels",    "shapes", "copies",
                                        "streams",      "ranges",  "iterations", "gaps"};
    if (marey_table_n_rows(marey_gpu_report_table(page->gpu, "devices")) == 0)
        return;
    marey__page_put_key(json, "gpu");
    marey__buf_puts(json, "[");
    for (size_t i = 0; i < MAREY__COUNT_OF(names); i++)
        marey__page_table(json, marey_gpu_report_table(page->gpu, names[i]), MAREY__PAGE_TABLE_ROWS);
    marey__page_close(json, "],");
}
