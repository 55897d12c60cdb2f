/* The page of a comparison: its tables, the sentence they come to, and how times are distributed. */
#include "analyze/compare_internal.h"
#include "present/page_internal.h"
#include "present/present_internal.h"

/* Rows that a page has of one table. The largest effects come first. */
enum { MAX_ROWS = 5000 };

static kymo_status make_index(kymo_comparison *c, const char *title, struct kymo__buf *json)
{
    struct kymo__buf sentence = {0};
    kymo__compare_sentence(c, &sentence);
    kymo__buf_put(&sentence, "", 1);
    json->failed |= sentence.failed;
    kymo__buf_puts(json, "{\"format\":1,\"kind\":\"compare\",");
    kymo__page_put_text(json, "version", kymo_version());
    kymo__page_put_text(json, "title", title);
    kymo__page_put_text(json, "summary", sentence.failed ? "" : sentence.data);
    kymo__buf_printf(json, "\"damaged\":%s,", kymo_comparison_is_damaged(c) ? "true" : "false");
    kymo__page_put_key(json, "tables");
    kymo__buf_puts(json, "[");
    for (size_t t = 0; t < KYMO__N_COMPARED; t++)
        kymo__page_table(json, c->tables[t], MAX_ROWS);
    kymo__page_close(json, "]}");
    kymo__buf_fini(&sentence);
    return json->failed ? kymo__fail(KYMO_ENOMEM, "no memory for the page's index") : KYMO_OK;
}

static kymo_status put_index(kymo_comparison *c, const char *title, int fd)
{
    struct kymo__page_packer *packer = NULL;
    struct kymo__buf json = {0};
    kymo_status status = kymo__page_packer_start(fd, 0, &packer);
    if (status == KYMO_OK)
        status = make_index(c, title, &json);
    if (status == KYMO_OK)
        status = kymo__page_packer_put(packer, "index", json.data, json.len);
    kymo__page_packer_free(packer);
    kymo__buf_fini(&json);
    return status;
}

/* "a.kymo against b.kymo" */
static void put_title(const kymo_comparison *c, struct kymo__buf *title)
{
    for (size_t s = 0; s < 2; s++) {
        const struct kymo__compared_runs *side = &c->sides[s];
        kymo__buf_puts(title, s == KYMO_A ? "" : " against ");
        kymo__buf_puts(title, side->n != 0 ? side->runs[0].path : "");
    }
    kymo__buf_put(title, "", 1);
}

static kymo_status write_page(kymo_comparison *c, const char *title, int fd)
{
    if (kymo_page_is_plain())
        return kymo__page_plain(c->tables, KYMO__N_COMPARED, title, fd);
    KYMO_TRY(kymo__page_head(fd, kymo__page_template, title));
    KYMO_TRY(put_index(c, title, fd));
    return kymo__page_tail(fd, kymo__page_template);
}

kymo_status kymo_page_compare(kymo_comparison *c, const char *title, int fd)
{
    struct kymo__buf own = {0};
    if (c->tables[KYMO__COMPARED_REGIONS] == NULL)
        return kymo__fail(KYMO_ESTATE, "nothing was compared yet");
    put_title(c, &own);
    const kymo_status status = own.failed ? kymo__fail(KYMO_ENOMEM, "no memory for the page")
                                          : write_page(c, title != NULL ? title : own.data, fd);
    kymo__buf_fini(&own);
    return status;
}
