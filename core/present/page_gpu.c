/* What GPUs did, who launched it and where they waited: the report of GPU work on the page. */
#include "present/page_internal.h"
#include <kymo/gpu_report.h>

kymo_status kymo__page_look_at_gpus(struct kymo__page *page)
{
    const struct kymo_gpu_report_options options = {.filter = page->options->summary.filter,
                                                    .n_jobs = page->options->summary.n_jobs};
    return kymo_gpu_report_create(page->recordings, page->n_recordings, &options, &page->gpu);
}

void kymo__page_put_gpus(const struct kymo__page *page, struct kymo__buf *json)
{
    static const char *const names[] = {"launch_bound", "devices", "kernels",    "shapes", "copies",
                                        "streams",      "ranges",  "iterations", "gaps"};
    if (kymo_table_n_rows(kymo_gpu_report_table(page->gpu, "devices")) == 0)
        return;
    kymo__page_put_key(json, "gpu");
    kymo__buf_puts(json, "[");
    for (size_t i = 0; i < KYMO__COUNT_OF(names); i++)
        kymo__page_table(json, kymo_gpu_report_table(page->gpu, names[i]), KYMO__PAGE_TABLE_ROWS);
    kymo__page_close(json, "],");
}
