/* The page of a comparison: its tables, the sentence they come to, and how times are distributed. */
#include <string.h>

#include "analyze/compare/internal.h"
#include "present/draw/internal.h"
#include "present/page/internal.h"

/* Rows that a page has of one table. The largest effects come first. */
enum { MAX_ROWS = 5000 };

static marey_status make_index(const marey_report *report, const char *title, struct marey__buf *json)
{
    struct marey__buf sentence = {0};
    marey__compare_sentence(report, &sentence);
    marey__buf_put(&sentence, "", 1);
    json->failed |= sentence.failed;
    marey__buf_puts(json, "{\"format\":1,\"kind\":\"compare\",");
    marey__page_put_text(json, "version", marey_version());
    marey__page_put_text(json, "title", title);
    marey__page_put_text(json, "summary", sentence.failed ? "" : sentence.data);
    marey__buf_printf(json, "\"damaged\":%s,", report->is_damaged ? "true" : "false");
    marey__page_open(json, "tables", "[");
    for (size_t t = 0; t < MAREY__N_COMPARED; t++)
        marey__page_table(json, report->tables[t], MAX_ROWS);
    marey__page_close(json, "]}");
    marey__buf_fini(&sentence);
    return json->failed ? marey__no_memory() : MAREY_OK;
}

static marey_status put_index(const marey_report *report, const char *title, int fd)
{
    struct marey__page_packer *packer = NULL;
    struct marey__buf json = {0};
    marey_status status = marey__page_packer_start(fd, 0, &packer);
    if (status == MAREY_OK)
        status = make_index(report, title, &json);
    if (status == MAREY_OK)
        status = marey__page_packer_put(packer, "index", json.data, json.len);
    marey__page_packer_free(packer);
    marey__buf_fini(&json);
    return status;
}

static marey_status write_page(const marey_report *report, const char *title, int fd)
{
    MAREY_TRY(marey__page_head(fd, marey__page_template, title));
    MAREY_TRY(put_index(report, title, fd));
    return marey__page_tail(fd, marey__page_template);
}

marey_status marey_page_compare(const marey_report *report, const char *title, int fd)
{
    if (strcmp(report->analysis->about.name, "compare") != 0)
        return marey__fail(MAREY_EINVAL, "this is not a report of compare");
    return write_page(report, title != NULL ? title : report->title, fd);
}
