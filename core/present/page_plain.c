/* The page of a build without the viewer: the summary's tables, as they are. */
#include <string.h>

#include "present/page_internal.h"
#include "present/present_internal.h"

static const char *const style =
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:80em;padding:0 1em}"
    "table{border-collapse:collapse;margin:0 0 2em;display:block;overflow-x:auto}"
    "th,td{text-align:left;padding:.2em .8em;border-bottom:1px solid #ccc;white-space:nowrap}"
    "td.n{text-align:right;font-variant-numeric:tabular-nums}"
    "@media(prefers-color-scheme:dark){body{background:#181a1b;color:#ddd}}";

kymo_status kymo__page_plain(kymo_table *const *tables, size_t n, const char *title, int fd)
{
    struct kymo__buf html = {0};
    kymo__buf_puts(&html,
                   "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                   "style-src 'unsafe-inline'\">\n<title>");
    kymo__xml_put(&html, title, strlen(title));
    kymo__buf_printf(&html, "</title><style>%s</style></head><body>\n<h1>", style);
    kymo__xml_put(&html, title, strlen(title));
    kymo__buf_puts(
        &html,
        "</h1>\n<p>This kymo was built without Node, so its pages have tables alone. Times are "
        "those of <code>kymo report</code>.</p>\n");
    for (size_t t = 0; t < n; t++) {
        const kymo_table *table = tables[t];
        if (kymo_table_n_rows(table) == 0)
            continue;
        kymo__buf_printf(&html, "<h2>%s</h2>\n", kymo_table_name(table));
        kymo__html_table(&html, table, KYMO__PAGE_TABLE_ROWS);
    }
    kymo__buf_puts(&html, "</body></html>\n");
    kymo_status status = KYMO_OK;
    if (html.failed)
        status = kymo__fail(KYMO_ENOMEM, "no memory for the page");
    else if (!kymo__write_all(fd, html.data, html.len))
        status = kymo__fail_errno("write the page");
    kymo__buf_fini(&html);
    return status;
}
