/*
 * Findings as text: a heading for each subject, a line for each finding, advice below it; and as JSON.
 *
 *   files
 *     ok       directory      /home/me/train (ext4)
 *     limited  /dev/shm       67.1 MB, 67.1 MB free
 *                             -> give it more: docker run --shm-size=1g
 */
#include "doctor/internal.h"
#include "present/draw/internal.h"

enum {
    SUBJECT,
    THING,
    STATE,
    VALUE,
    ADVICE = 6,
    STATE_WIDTH = 7,
    DEFAULT_WIDTH = 100,
    LEAST_TEXT = 24
};

struct page {
    const marey_table *findings;
    struct marey__buf buf, text;
    size_t thing_width, width;
    bool color;
};

static const struct state_look {
    const char *name, *color;
} states[] = {
    {"ok", "\033[32m"}, {"limited", "\033[33m"}, {"missing", "\033[31m"}, {"off", "\033[2m"}};

/* Lent; "" for null. */
static const char *cell(const struct page *page, size_t row, size_t column)
{
    const struct marey_cell found = marey_table_cell(page->findings, row, column);
    return found.is_null ? "" : found.as.text;
}

static void put_spaces(struct marey__buf *buf, size_t n)
{
    for (size_t i = 0; i < n; i++)
        marey__buf_put(buf, " ", 1);
}

/* Foreign text, wrapped at blanks into lines that begin at `indent`. Longer words are not split. */
static void put_wrapped(struct page *page, const char *text, size_t indent)
{
    struct marey__buf *clean = &page->text;
    const size_t room = page->width > indent + LEAST_TEXT ? page->width - indent : LEAST_TEXT;
    clean->len = 0;
    marey__text_put(clean, text, strlen(text), 0);
    size_t column = 0;
    for (size_t at = 0; !clean->failed && at < clean->len;) {
        const char *space = memchr(clean->data + at, ' ', clean->len - at);
        const size_t len = space != NULL ? (size_t)(space - (clean->data + at)) : clean->len - at;
        if (column > 0 && column + 1 + len > room) {
            marey__buf_puts(&page->buf, "\n");
            put_spaces(&page->buf, indent);
            column = 0;
        } else if (column > 0) {
            marey__buf_puts(&page->buf, " ");
            column++;
        }
        marey__buf_put(&page->buf, clean->data + at, len);
        column += len;
        at += len + 1;
    }
    marey__buf_puts(&page->buf, "\n");
    page->buf.failed |= clean->failed;
}

static const char *color_of(const struct page *page, const char *state)
{
    for (size_t i = 0; page->color && i < MAREY__COUNT_OF(states); i++)
        if (strcmp(states[i].name, state) == 0)
            return states[i].color;
    return "";
}

static void put_finding(struct page *page, size_t row)
{
    const char *state = cell(page, row, STATE), *thing = cell(page, row, THING),
               *advice = cell(page, row, ADVICE);
    const char *color = color_of(page, state), *plain = color[0] != '\0' ? PLAIN : "";
    const size_t indent = 2 + STATE_WIDTH + 2 + page->thing_width + 2;
    marey__buf_printf(&page->buf, "  %s%-*s%s  %-*s  ", color, (int)STATE_WIDTH, state, plain,
                      (int)page->thing_width, thing);
    put_wrapped(page, cell(page, row, VALUE), indent);
    if (advice[0] == '\0')
        return;
    put_spaces(&page->buf, indent);
    marey__buf_printf(&page->buf, "%s->%s ", color, plain);
    put_wrapped(page, advice, indent + 3);
}

static void put_closing(struct page *page)
{
    size_t counts[MAREY__COUNT_OF(states)] = {0};
    for (size_t row = 0; row < marey_table_n_rows(page->findings); row++)
        for (size_t i = 0; i < MAREY__COUNT_OF(states); i++)
            counts[i] += strcmp(cell(page, row, STATE), states[i].name) == 0;
    marey__buf_puts(&page->buf, "\n");
    for (size_t i = 0; i < MAREY__COUNT_OF(states); i++)
        marey__buf_printf(&page->buf, "%s%zu %s", i > 0 ? ", " : "", counts[i], states[i].name);
    marey__buf_printf(&page->buf, "; marey %s here\n",
                      marey_doctor_can_record(page->findings) ? "can record" : "cannot record");
}

static void put_page(struct page *page)
{
    const char *subject = "";
    const size_t n = marey_table_n_rows(page->findings);
    for (size_t row = 0; row < n; row++)
        page->thing_width = MAREY__MAX(page->thing_width, strlen(cell(page, row, THING)));
    for (size_t row = 0; row < n; row++) {
        if (strcmp(subject, cell(page, row, SUBJECT)) != 0) {
            subject = cell(page, row, SUBJECT);
            marey__buf_printf(&page->buf, "%s%s%s%s\n", row > 0 ? "\n" : "",
                              page->color ? BOLD : "", subject, page->color ? PLAIN : "");
        }
        put_finding(page, row);
    }
    put_closing(page);
}

marey_status marey_doctor_text(const marey_table *findings,
                               const struct marey_text_options *options, FILE *out)
{
    struct page page = {.findings = findings,
                        .width =
                            options != NULL && options->width != 0 ? options->width : DEFAULT_WIDTH,
                        .color = options != NULL && options->color != 0};
    put_page(&page);
    const marey_status st = marey__buf_to_stream(&page.buf, out);
    marey__buf_fini(&page.buf);
    marey__buf_fini(&page.text);
    return st;
}

marey_status marey_doctor_json(const marey_table *findings, FILE *out)
{
    struct marey__buf buf MAREY__FINALLY(marey__buf_fini) = {0};
    marey__json_printf(&buf, "{\n  'version': %s,\n  'abi': %d,\n  'can_record': %x,\n  'findings': ",
                       marey_version(), marey_abi(), marey_doctor_can_record(findings) != 0);
    MAREY_TRY(marey__buf_to_stream(&buf, out));
    MAREY_TRY(marey__json_rows(findings, marey_table_n_rows(findings), "  ", out));
    marey__buf_puts(&buf, "\n}\n");
    return marey__buf_to_stream(&buf, out);
}
