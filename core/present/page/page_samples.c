/*
 * What samplers saw, on the page: the tree of their samples, drawn as calls are, and the tables of `marey report --samples`,
 * with the audit among them. Which samples count is what counts by default.
 */
#include "analyze/calls/internal.h"
#include "analyze/samples/internal.h"
#include "present/page/internal.h"

static const char *const tables[] = {"lines", "functions", "threads", "waits",  "processes",
                                     "ranks", "files",     "modules", "stacks", "gil",
                                     "audit", "totals",    "notes"};

marey_status marey__page_sample(struct marey__page *page)
{
    if (!marey__samples_are_there(page->recordings, page->n_recordings))
        return MAREY_OK;
    page->samples = marey__calloc(1, sizeof *page->samples);
    MAREY__TRY_MEMORY(page->samples != NULL);
    MAREY_TRY(marey__calls_read_samples(page->samples, page->recordings, page->n_recordings, NULL,
                                        false));
    MAREY_TRY(marey__page_put_nodes(page->packer, page->samples, "samples-0"));
    const marey_status status =
        marey_report_create("samples", page->recordings, page->n_recordings, NULL, &page->sampled);
    /* A sampler that saw nothing: the page does without. */
    return status == MAREY_EFORMAT ? MAREY_OK : status;
}

void marey__page_put_samples(const struct marey__page *page, struct marey__buf *json)
{
    if (page->sampled == NULL)
        return;
    marey__page_open(json, "samples", "{");
    marey__page_open(json, "calls", "[");
    marey__page_put_profile(json, page->samples, page->summary->title);
    marey__page_close(json, "],");
    marey__page_open(json, "tables", "[");
    for (size_t i = 0; i < MAREY__COUNT_OF(tables); i++)
        marey__page_table(json, marey_report_table(page->sampled, tables[i]), MAREY__PAGE_TABLE_ROWS);
    marey__page_close(json, "]},");
}

void marey__page_free_samples(struct marey__page *page)
{
    if (page->samples != NULL)
        marey__calls_fini(page->samples);
    marey__free(page->samples);
    marey_report_destroy(page->sampled);
}
