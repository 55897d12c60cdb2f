/* The page of a comparison: its tables, its sentence, and the distributions of times. */
#include "analyze/compare/internal.h"
#include "present/draw/internal.h"
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
        marey__page_table(json, report, t, NULL, MAX_ROWS);
    marey__page_close(json, "]}");
    return MAREY_OK;
}

marey_status marey__page_compare(struct marey__report_writer *writer)
{
    const char *const title = writer->options->title;
    const int fd = fflush(writer->lines.out) == 0 ? fileno(writer->lines.out) : -1;
    if (fd < 0)
        return marey__fail(MAREY_EINVAL, "a page needs a stream with a file descriptor");
    return marey__page_put_all(fd, marey__page_template,
                               title != NULL ? title : writer->report->title, make_index,
                               (void *)writer->report);
}
