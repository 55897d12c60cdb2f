/* The diagnosis for a pull request: the verdict, then a numbered list of findings. */
#include "analyze/diagnosis/internal.h"
#include "present/draw/internal.h"

static void put_item(struct marey__buf *out, const char *before, const char *text, const char *after)
{
    marey__buf_puts(out, before);
    marey__markdown_put(out, text, strlen(text));
    marey__buf_puts(out, after);
}

static void put_finding(struct marey__lines *lines, const struct marey__diagnosis *d, size_t i)
{
    const struct marey__finding *const f = &d->findings[i];
    struct marey__buf *const out = &lines->line;
    struct marey__buf place = {0};
    marey__buf_printf(out, "%zu. ", i + 1);
    put_item(out, "**", f->statement.claim, "**");
    marey__finding_put_gain(out, f, " At most ", "x faster.");
    marey__buf_puts(out, "\n");
    if (f->detail[0] != '\0') {
        marey__finding_put_place(&place, &d->facts, f, "", "");
        marey__buf_put(&place, "", 1);
        put_item(out, "   - ", place.failed ? "" : place.data, "\n");
        marey__buf_fini(&place);
    }
    for (size_t k = 0; k < f->n_because; k++)
        put_item(out, "   - because: ", f->because[k].claim, "\n");
    put_item(out, "   - ", f->statement.action, "");
    marey__buf_printf(out, " More: `marey explain %s`\n", f->statement.id);
}

marey_status marey__diagnosis_markdown(struct marey__report_writer *writer)
{
    const struct marey__diagnosis *const d = writer->report->data;
    struct marey__lines *const lines = &writer->lines;
    put_item(&lines->line, "", d->verdict, "\n");
    for (size_t i = 0; i < d->n_findings; i++) {
        marey__buf_puts(&lines->line, i == 0 ? "\n" : "");
        put_finding(lines, d, i);
    }
    if (d->missing[0] != '\0')
        put_item(&lines->line, "\n", d->missing, "\n");
    return marey__buf_to_stream(&lines->line, lines->out);
}
