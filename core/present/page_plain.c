/* The page of a build without the viewer: the summary's tables, as they are. */
#include <string.h>

#include "codec/deflate.h"
#include "present/page_internal.h"
#include "present/present_internal.h"

/* page_plain.css and its sum, which the build turns into C. */
extern const char kymo__page_plain_css[];
extern const unsigned char kymo__page_plain_css_sha256[32];

/* The policy knows the style by its sum: no other one is taken, and nothing is run or fetched. */
static void put_policy(struct kymo__buf *html)
{
    kymo__buf_puts(html,
                   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                   "style-src 'sha256-");
    kymo__base64_put(html, kymo__page_plain_css_sha256, sizeof kymo__page_plain_css_sha256);
    kymo__buf_puts(html, "'; base-uri 'none'; form-action 'none'\">\n");
}

kymo_status kymo__page_plain(kymo_table *const *tables, size_t n, const char *title, int fd)
{
    struct kymo__buf html = {0};
    kymo__buf_puts(&html, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    put_policy(&html);
    kymo__buf_puts(&html, "<title>");
    kymo__xml_put(&html, title, strlen(title));
    kymo__buf_printf(&html, "</title><style>%s</style></head><body>\n<h1>", kymo__page_plain_css);
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
