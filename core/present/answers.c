/* A list of answers, as lines for a terminal and as one page. What is in them comes from answers_ask.c and answers_runs.c. */
#include <string.h>

#include "codec/deflate.h"
#include "present/answers_internal.h"
#include "present/present_internal.h"
#include "present/style.h"

/* answers.css and its sum, which the build turns into C. */
extern const char kymo__answers_css[];
extern const unsigned char kymo__answers_css_sha256[32];

enum { QUESTION, ANSWER, COMMAND, DETAILS, N_COLUMNS };
enum { LINK_TEXT, LINK_FILE, N_LINK_COLUMNS };

kymo_status kymo_answers_create(kymo_answers **out)
{
    static const struct kymo_column columns[N_COLUMNS] = {
        {"question", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
        {"answer", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
        {"command", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
        {"details", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    };
    static const struct kymo_column link_columns[N_LINK_COLUMNS] = {
        {"text", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
        {"file", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    };
    kymo_answers *answers = kymo__calloc(1, sizeof *answers);
    if (answers == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory for answers");
    kymo_status status = kymo_table_create("answers", columns, N_COLUMNS, &answers->table);
    if (status == KYMO_OK)
        status = kymo_table_create("links", link_columns, N_LINK_COLUMNS, &answers->links);
    if (status != KYMO_OK) {
        kymo_answers_destroy(answers);
        return status;
    }
    *out = answers;
    return KYMO_OK;
}

void kymo_answers_destroy(kymo_answers *answers)
{
    if (answers == NULL)
        return;
    kymo_table_destroy(answers->table);
    kymo_table_destroy(answers->links);
    kymo__free(answers);
}

const kymo_table *kymo_answers_table(const kymo_answers *answers)
{
    return answers->table;
}

/* ---- an answer more ---- */

static size_t line_length(const char *text, size_t len)
{
    const char *end = len == 0 ? NULL : memchr(text, '\n', len);
    return end != NULL ? (size_t)(end - text) : len;
}

kymo_status kymo__answers_put(kymo_answers *answers, const char *question,
                              const struct kymo__buf *line, const struct kymo__buf *details,
                              const struct kymo__buf *command)
{
    if (line->failed || details->failed || command->failed)
        return kymo__fail(KYMO_ENOMEM, "no memory for an answer");
    const struct kymo__buf *from = line->len != 0 ? line : details;
    kymo_table_text(answers->table, question, strlen(question));
    kymo_table_text(answers->table, from->data, line_length(from->data, from->len));
    kymo_table_text(answers->table, command->data, command->len);
    kymo_table_text(answers->table, details->data, details->len);
    return kymo_table_status(answers->table);
}

kymo_status kymo_answers_add(kymo_answers *answers, const char *question, const char *text,
                             const char *command)
{
    struct kymo__buf line = {0}, details = {0}, how = {0};
    kymo__buf_puts(&details, text);
    kymo__buf_puts(&how, command != NULL ? command : "");
    const kymo_status status = kymo__answers_put(answers, question, &line, &details, &how);
    kymo__buf_fini(&details);
    kymo__buf_fini(&how);
    return status;
}

kymo_status kymo_answers_link(kymo_answers *answers, const char *text, const char *file)
{
    kymo_table_text(answers->links, text, strlen(text));
    kymo_table_text(answers->links, file, strlen(file));
    return kymo_table_status(answers->links);
}

/* ---- for a terminal ---- */

kymo_status kymo_answers_text(const kymo_answers *answers, const struct kymo_text_options *options,
                              FILE *out)
{
    struct kymo__lines lines = {.out = out, .has_color = options != NULL && options->color};
    const size_t n = kymo_table_n_rows(answers->table);
    int widest = 0;
    for (size_t row = 0; row < n; row++)
        widest = KYMO__MAX(widest, (int)kymo_table_cell(answers->table, row, QUESTION).len);
    kymo_status status = KYMO_OK;
    for (size_t row = 0; row < n && status == KYMO_OK; row++) {
        const struct kymo_cell question = kymo_table_cell(answers->table, row, QUESTION);
        const struct kymo_cell answer = kymo_table_cell(answers->table, row, ANSWER);
        kymo__buf_printf(&lines.line, "%s%-*.*s%s  %.*s", kymo__style(&lines, BOLD), widest,
                         (int)question.len, question.as.text, kymo__style(&lines, PLAIN),
                         (int)answer.len, answer.as.text);
        status = kymo__lines_end(&lines);
    }
    return kymo__lines_close(&lines, status);
}

/* ---- as a page ---- */

static void put_text(struct kymo__buf *html, const kymo_table *table, size_t row, size_t column)
{
    const struct kymo_cell cell = kymo_table_cell(table, row, column);
    kymo__xml_put(html, cell.as.text, cell.len);
}

/* The policy knows the style by its sum: no other one is taken, and nothing is run or fetched. */
static void put_head(struct kymo__buf *html, const char *title)
{
    kymo__buf_puts(html,
                   "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                   "<meta name=\"viewport\" content=\"width=device-width\">\n"
                   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                   "style-src 'sha256-");
    kymo__base64_put(html, kymo__answers_css_sha256, sizeof kymo__answers_css_sha256);
    kymo__buf_puts(html, "'; base-uri 'none'; form-action 'none'\">\n<title>");
    kymo__xml_put(html, title, strlen(title));
    kymo__buf_printf(html, "</title><style>%s</style></head><body>\n<h1>", kymo__answers_css);
    kymo__xml_put(html, title, strlen(title));
    kymo__buf_puts(html, "</h1>\n");
}

static void put_links(struct kymo__buf *html, const kymo_table *links)
{
    const size_t n = kymo_table_n_rows(links);
    for (size_t row = 0; row < n; row++) {
        kymo__buf_puts(html, row == 0 ? "<p>See also: <a href=\"" : ", <a href=\"");
        put_text(html, links, row, LINK_FILE);
        kymo__buf_puts(html, "\">");
        put_text(html, links, row, LINK_TEXT);
        kymo__buf_puts(html, row + 1 == n ? "</a></p>\n" : "</a>");
    }
}

static void put_lines(struct kymo__buf *html, const kymo_table *table)
{
    kymo__buf_puts(html, "<nav><dl>\n");
    for (size_t row = 0; row < kymo_table_n_rows(table); row++) {
        kymo__buf_printf(html, "<dt><a href=\"#a%zu\">", row + 1);
        put_text(html, table, row, QUESTION);
        kymo__buf_puts(html, "</a></dt><dd>");
        put_text(html, table, row, ANSWER);
        kymo__buf_puts(html, "</dd>\n");
    }
    kymo__buf_puts(html, "</dl></nav>\n<main>\n");
}

static void put_details(struct kymo__buf *html, const kymo_table *table, size_t row)
{
    kymo__buf_printf(html, "<section id=\"a%zu\"><h2>", row + 1);
    put_text(html, table, row, QUESTION);
    kymo__buf_puts(html, "</h2>\n<p>");
    put_text(html, table, row, ANSWER);
    kymo__buf_puts(html, "</p>\n");
    if (kymo_table_cell(table, row, COMMAND).len != 0) {
        kymo__buf_puts(html, "<p class=\"how\"><code>");
        put_text(html, table, row, COMMAND);
        kymo__buf_puts(html, "</code></p>\n");
    }
    kymo__buf_puts(html, "<pre tabindex=\"0\">");
    put_text(html, table, row, DETAILS);
    kymo__buf_puts(html, "</pre></section>\n");
}

kymo_status kymo_answers_html(const kymo_answers *answers, const char *title, int fd)
{
    struct kymo__buf html = {0};
    put_head(&html, title != NULL ? title : "Answers");
    put_links(&html, answers->links);
    put_lines(&html, answers->table);
    for (size_t row = 0; row < kymo_table_n_rows(answers->table); row++)
        put_details(&html, answers->table, row);
    kymo__buf_puts(&html, "</main></body></html>\n");
    kymo_status status = KYMO_OK;
    if (html.failed)
        status = kymo__fail(KYMO_ENOMEM, "no memory for the page");
    else if (!kymo__write_all(fd, html.data, html.len))
        status = kymo__fail_errno("write the page");
    kymo__buf_fini(&html);
    return status;
}
