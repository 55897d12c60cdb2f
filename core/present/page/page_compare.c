/* The page of a comparison: its tables, the sentence they come to, and how times are distributed. */
#include "analyze/compare/internal.h"
#include "present/draw/internal.h"
#include "present/page/internal.h"

/* Rows that a page has of one table. The largest effects come first. */
enum { MAX_ROWS = 5000 };

static marey_status make_index(marey_comparison *c, const char *title, struct marey__buf *json)
{
    struct marey__buf sentence = {0};
    marey__compare_sentence(c, &sentence);
    marey__buf_put(&sentence, "", 1);
    json->failed |= sentence.failed;
    marey__buf_puts(json, "{\"format\":1,\"kind\":\"compare\",");
    marey__page_put_text(json, "version", marey_version());
    marey__page_put_text(json, "title", title);
    marey__page_put_text(json, "summary", sentence.failed ? "" : sentence.data);
    marey__buf_printf(json, "\"damaged\":%s,", marey_comparison_is_damaged(c) ? "true" : "false");
    marey__page_put_key(json, "tables");
    marey__buf_puts(json, "[");
    for (size_t t = 0; t < MAREY__N_COMPARED; t++)
        marey__page_table(json, c->tables[t], MAX_ROWS);
    marey__page_close(json, "]}");
    marey__buf_fini(&sentence);
    return json->failed ? marey__no_memory() : MAREY_OK;
}

static marey_status put_index(marey_comparison *c, const char *title, int fd)
{
    struct marey__page_packer *packer = NULL;
    struct marey__buf json = {0};
    marey_status status = marey__page_packer_start(fd, 0, &packer);
    if (status == MAREY_OK)
        status = make_index(c, title, &json);
    if (status == MAREY_OK)
        status = marey__page_packer_put(packer, "index", json.data, json.len);
    marey__page_packer_free(packer);
    marey__buf_fini(&json);
    return status;
}

/* "a.marey against b.marey" */
static void put_title(const marey_comparison *c, struct marey__buf *title)
{
    for (size_t s = 0; s < 2; s++) {
        const struct marey__compared_runs *side = &c->sides[s];
        marey__buf_puts(title, s == MAREY_A ? "" : " against ");
        marey__buf_puts(title, side->n != 0 ? side->runs[0].path : "");
    }
    marey__buf_put(title, "", 1);
}

static marey_status write_page(marey_comparison *c, const char *title, int fd)
{
    MAREY_TRY(marey__page_head(fd, marey__page_template, title));
    MAREY_TRY(put_index(c, title, fd));
    return marey__page_tail(fd, marey__page_template);
}

marey_status marey_page_compare(marey_comparison *c, const char *title, int fd)
{
    struct marey__buf own = {0};
    if (c->tables[MAREY__COMPARED_REGIONS] == NULL)
        return marey__fail(MAREY_ESTATE, "nothing was compared yet");
    put_title(c, &own);
    const marey_status status =
        own.failed ? marey__no_memory() : write_page(c, title != NULL ? title : own.data, fd);
    marey__buf_fini(&own);
    return status;
}
