/* The page of a build without the viewer: the summary's tables, as they are. */
#include <string.h>

#include "codec/deflate.h"
#include "present/page_internal.h"
#include "present/present_internal.h"

/* page_plain.css and its sum, which the build turns into C. */
extern const char marey__page_plain_css[];
extern const unsigned char marey__page_plain_css_sha256[32];

/* The policy knows the style by its sum: no other one is taken, and nothing is run or fetched. */
static void put_policy(struct marey__buf *html)
{
    marey__buf_puts(html,
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                    "style-src 'sha256-");
    marey__base64_put(html, marey__page_plain_css_sha256, sizeof marey__page_plain_css_sha256);
    marey__buf_puts(html, "'; base-uri 'none'; form-action 'none'\">\n");
}

marey_status marey__page_plain(marey_table *const *tables, size_t n, const char *title, int fd)
{
    struct marey__buf html = {0};
    marey__buf_puts(&html, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    put_policy(&html);
    marey__buf_puts(&html, "<title>");
    marey__xml_put(&html, title, strlen(title));
    marey__buf_printf(&html, "</title><style>%s</style></head><body>\n<h1>", marey__page_plain_css);
    marey__xml_put(&html, title, strlen(title));
    marey__buf_puts(
        &html,
        "</h1>\n<p>This marey was built without Node, so its pages have tables alone. Times are "
        "those of <code>marey report</code>.</p>\n");
    for (size_t t = 0; t < n; t++) {
        const marey_table *table = tables[t];
        if (marey_table_n_rows(table) == 0)
            continue;
        marey__buf_printf(&html, "<h2>%s</h2>\n", marey_table_name(table));
        marey__html_table(&html, table, MAREY__PAGE_TABLE_ROWS);
    }
    marey__buf_puts(&html, "</body></html>\n");
    marey_status status = MAREY_OK;
    if (html.failed)
        status = marey__fail(MAREY_ENOMEM, "no memory for the page");
    else if (!marey__write_all(fd, html.data, html.len))
        status = marey__fail_errno("write the page");
    marey__buf_fini(&html);
    return status;
}
