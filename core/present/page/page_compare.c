/* The page of a comparison: its tables, its sentence, and the distributions of times. */
#include "analyze/compare/internal.h"
#include "present/page/internal.h"

/* Rows of each table on the page. The largest effects come first. */
enum { MAX_ROWS = 5000 };

static marey_status make_index(void *ctx, struct marey__page_packer *packer, const char *title,
                               struct marey__buf *json)
{
    const marey_report *const report = ctx;
    struct marey__buf sentence MAREY__FINALLY(marey__buf_fini) = {0};
    (void)packer;
    marey__compare_sentence(report, &sentence);
    marey__buf_put(&sentence, "", 1);
    json->failed |= sentence.failed;
    marey__page_put_start(json, "compare", title);
    marey__page_put_text(json, "summary", sentence.failed ? "" : sentence.data);
    marey__page_put_bool(json, "damaged", report->is_damaged);
    marey__page_open(json, "tables", "[");
    for (size_t t = 0; t < MAREY__N_COMPARED; t++)
        marey__page_table(json, report->tables[t], MAX_ROWS);
    marey__page_close(json, "]}");
    return MAREY_OK;
}

marey_status marey_page_compare(const marey_report *report, const char *title, int fd)
{
    if (strcmp(report->analysis->about.name, "compare") != 0)
        return marey__fail(MAREY_EINVAL, "this is not a report of compare");
    return marey__page_put_all(fd, marey__page_template, title != NULL ? title : report->title,
                               make_index, (void *)report);
}
