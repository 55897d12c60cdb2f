/*
 * The answer of a breakdown: one line, the devices, what was asked for besides, how the rules did, what to know; for a
 * terminal and as JSON. The terminal gets a narrower table than there is, in times and shares.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/device/internal.h"
#include "present/draw/internal.h"

/* Rows of one table that a screen takes in; JSON and CSV have all. How wide it must be for times and shares. */
enum { MAX_ROWS = 40, MAX_BOTH_WINDOWS = 16, WIDE = 150, NARROW = 105 };

struct answer {
    marey_breakdown *b;
    struct marey_text_options options;
    struct marey__buf line;
    FILE *out;
};

static marey_status end_line(struct answer *answer)
{
    marey__buf_puts(&answer->line, "\n");
    return marey__buf_to_stream(&answer->line, answer->out);
}

/* ---- the first lines ---- */

static marey_status put_first_line(struct answer *answer)
{
    struct marey__buf *line = &answer->line;
    const marey_table *summary = answer->b->tables[MAREY__BREAKDOWN_SUMMARY];
    const char *unit = answer->options.unit;
    marey__buf_puts(line, answer->options.color ? BOLD : "");
    for (size_t row = 0; row < marey_table_n_rows(summary); row++) {
        const struct marey_cell share = marey__cell_of(summary, row, "share");
        marey__buf_printf(line, "%s%s ", row == 0 ? "" : ", ",
                          marey__cell_of(summary, row, "part").as.text);
        if (marey__cell_of(summary, row, "ns").is_null) {
            marey__buf_puts(line, "unknown");
            continue;
        }
        marey__text_duration(line, (double)marey__cell_of(summary, row, "ns").as.u64, unit);
        marey__buf_printf(line, "%s%s (", unit != NULL ? " " : "", unit != NULL ? unit : "");
        if (share.is_null)
            marey__buf_puts(line, "-");
        else
            marey__text_share(line, share.as.f64);
        marey__buf_puts(line, ")");
    }
    marey__buf_puts(line, answer->options.color ? PLAIN : "");
    return end_line(answer);
}

/* Of how many devices that is, and of which time. */
static marey_status put_second_line(struct answer *answer)
{
    struct marey__buf *line = &answer->line;
    const marey_table *devices = answer->b->tables[MAREY__BREAKDOWN_DEVICES];
    const char *steps = marey__window_names[MAREY__WINDOW_STEPS];
    const bool wants_steps = answer->b->window == MAREY__WINDOW_STEPS;
    size_t n_gpus = 0, n_hosts = 0;
    for (size_t row = 0; row < marey_table_n_rows(devices); row++) {
        const bool is_steps = strcmp(marey__cell_of(devices, row, "window").as.text, steps) == 0;
        const bool is_host = marey__cell_of(devices, row, "device").as.i64 < 0;
        n_gpus += is_steps == wants_steps && !is_host;
        n_hosts += is_steps == wants_steps && is_host;
    }
    marey__text_put(line, answer->b->title, strlen(answer->b->title), 60);
    marey__buf_puts(line, ": ");
    if (n_gpus != 0)
        marey__text_count_of(line, n_gpus, "GPU");
    if (n_hosts != 0)
        marey__text_count_of(line, n_hosts, "process");
    marey__buf_puts(line, wants_steps   ? ", all steps"
                          : n_gpus != 0 ? ", first GPU work to last"
                                        : ", first event to last");
    marey__buf_puts(line, "; other: exposed copies and idle\n");
    return end_line(answer);
}

/* ---- a table of devices, or of their parts ---- */

static const struct marey_column drawn_columns[] = {
    {"of", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"rank", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE},
    {"device", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"window", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"span_ns", "span", MAREY_TYPE_U64, MAREY_UNIT_NS},
    {"compute_ns", "compute", MAREY_TYPE_U64, MAREY_UNIT_NS},
    {"compute_share", "%", MAREY_TYPE_F64, MAREY_UNIT_SHARE},
    {"exposed_comm_ns", "exposed comm", MAREY_TYPE_U64, MAREY_UNIT_NS},
    {"exposed_comm_share", "%", MAREY_TYPE_F64, MAREY_UNIT_SHARE},
    {"hidden_comm_ns", "hidden comm", MAREY_TYPE_U64, MAREY_UNIT_NS},
    {"exposed_mem_ns", "exposed copies", MAREY_TYPE_U64, MAREY_UNIT_NS},
    {"exposed_mem_share", "%", MAREY_TYPE_F64, MAREY_UNIT_SHARE},
    {"idle_ns", "idle", MAREY_TYPE_U64, MAREY_UNIT_NS},
    {"idle_share", "%", MAREY_TYPE_F64, MAREY_UNIT_SHARE},
    {"concurrency", NULL, MAREY_TYPE_F64, MAREY_UNIT_NONE},
};
enum { N_DRAWN = MAREY__COUNT_OF(drawn_columns) };

static void draw_device(marey_table *drawn, int64_t device)
{
    char text[32];
    snprintf(text, sizeof text, "gpu %" PRId64, device);
    marey_table_text(drawn, device < 0 ? "cpu" : text, strlen(device < 0 ? "cpu" : text));
}

/* The first cell: a step or stream by its number, a range or group by its name. */
static void draw_label(marey_table *drawn, const marey_table *from, size_t row)
{
    const struct marey_cell label = marey_table_cell(from, row, 0);
    char text[32];
    if (marey_table_column(from, 0)->type == MAREY_TYPE_TEXT) {
        marey_table_text(drawn, label.as.text, label.len);
        return;
    }
    snprintf(text, sizeof text, "%" PRIu64, label.as.u64);
    marey_table_text(drawn, text, strlen(text));
}

/* Two digits behind the point are enough for people. */
static void draw_ratio(marey_table *drawn, const struct marey_cell *cell)
{
    if (cell->is_null)
        marey_table_null(drawn);
    else
        marey_table_f64(drawn, (double)(int64_t)(cell->as.f64 * 100 + 0.5) / 100);
}

static void draw_row(marey_table *drawn, const marey_table *from, size_t row, bool has_label)
{
    static const struct {
        const char *column;
        bool has_share;
    } times[] = {{"compute_ns", true},
                 {"exposed_comm_ns", true},
                 {"hidden_comm_ns", false},
                 {"exposed_mem_ns", true},
                 {"idle_ns", true}};
    const struct marey_cell rank = marey__cell_of(from, row, "rank"),
                            window = marey__cell_of(from, row, "window"),
                            concurrency = marey__cell_of(from, row, "concurrency");
    const uint64_t span = marey__cell_of(from, row, "span_ns").as.u64;
    if (has_label)
        draw_label(drawn, from, row);
    else
        marey_table_null(drawn);
    if (rank.is_null)
        marey_table_null(drawn);
    else
        marey_table_i64(drawn, rank.as.i64);
    draw_device(drawn, marey__cell_of(from, row, "device").as.i64);
    marey_table_text(drawn, window.as.text, window.len);
    marey_table_u64(drawn, span);
    for (size_t i = 0; i < MAREY__COUNT_OF(times); i++) {
        const struct marey_cell ns = marey__cell_of(from, row, times[i].column);
        if (ns.is_null)
            marey_table_null(drawn);
        else
            marey_table_u64(drawn, ns.as.u64);
        if (times[i].has_share)
            marey__put_share(drawn, ns.as.u64, ns.is_null ? 0 : span);
    }
    draw_ratio(drawn, &concurrency);
}

static marey_status put_more(struct answer *answer, size_t n_more)
{
    if (n_more == 0)
        return MAREY_OK;
    marey__buf_printf(&answer->line, "... and %zu more; --json has them", n_more);
    return end_line(answer);
}

/*
 * Which columns there are: a terminal of usual width has either times or shares. Where shares stand alone they have the
 * titles of the times. `hide` gets their names, NULL behind the last.
 */
static void choose_columns(struct marey_column columns[N_DRAWN], const char *hide[N_DRAWN + 1],
                           const char *label, uint32_t width)
{
    size_t n_hidden = 0;
    const bool is_narrow = width != 0 && width < WIDE;
    columns[0].title = label;
    if (label == NULL)
        hide[n_hidden++] = columns[0].name;
    for (size_t i = 1; i < N_DRAWN && is_narrow; i++)
        if (columns[i].unit == MAREY_UNIT_SHARE) {
            columns[i].title = columns[i - 1].title;
            hide[n_hidden++] = columns[i - 1].name;
        }
    if (is_narrow && width < NARROW) {
        hide[n_hidden++] = "hidden_comm_ns";
        hide[n_hidden++] = "concurrency";
    }
    hide[n_hidden] = NULL;
}

/* With many devices the other window's rows are left to JSON and CSV. */
static bool is_drawn(const struct answer *answer, const marey_table *from, size_t row)
{
    const struct marey_cell window = marey__cell_of(from, row, "window");
    const bool is_steps = strcmp(window.as.text, marey__window_names[MAREY__WINDOW_STEPS]) == 0;
    return from != answer->b->tables[MAREY__BREAKDOWN_DEVICES] ||
           marey_table_n_rows(from) <= MAX_BOTH_WINDOWS ||
           is_steps == (answer->b->window == MAREY__WINDOW_STEPS);
}

/* `label` is what the first column is called; NULL: there is none. */
static marey_status draw_devices(struct answer *answer, const marey_table *from, const char *label)
{
    struct marey_column columns[N_DRAWN];
    const char *hide[N_DRAWN + 1];
    marey_table *drawn = NULL;
    memcpy(columns, drawn_columns, sizeof columns);
    choose_columns(columns, hide, label, answer->options.width);
    MAREY_TRY(marey_table_create("drawn", columns, N_DRAWN, &drawn));
    size_t n_more = 0;
    for (size_t row = 0; row < marey_table_n_rows(from); row++) {
        if (!is_drawn(answer, from, row))
            continue;
        if (marey_table_n_rows(drawn) < MAX_ROWS)
            draw_row(drawn, from, row, label != NULL);
        else
            n_more++;
    }
    marey_status status = marey_table_status(drawn);
    const struct marey__text_view view = {
        .table = drawn, .options = answer->options, .n_rows = marey_table_n_rows(drawn), .hide = hide};
    if (status == MAREY_OK)
        status = marey__text_draw(&view, answer->out);
    marey_table_destroy(drawn);
    MAREY_TRY(status);
    MAREY_TRY(put_more(answer, n_more));
    return end_line(answer);
}

/* ---- text ---- */

/* The first rows of a table under a heading; nothing where it has none. */
static marey_status draw_table(struct answer *answer, enum marey__breakdown_table which,
                               const char *heading, size_t limit)
{
    const marey_table *table = answer->b->tables[which];
    const size_t n = marey_table_n_rows(table), n_drawn = MAREY__MIN(n, limit);
    const struct marey__text_view view = {
        .table = table, .options = answer->options, .n_rows = n_drawn};
    if (n == 0)
        return MAREY_OK;
    marey__buf_printf(&answer->line, "%s%s%s", answer->options.color ? BOLD : "", heading,
                      answer->options.color ? PLAIN : "");
    MAREY_TRY(end_line(answer));
    MAREY_TRY(marey__text_draw(&view, answer->out));
    MAREY_TRY(put_more(answer, n - n_drawn));
    return end_line(answer);
}

static marey_status put_warnings(struct answer *answer)
{
    const marey_table *warnings = answer->b->tables[MAREY__BREAKDOWN_WARNINGS];
    const bool color = answer->options.color != 0;
    for (size_t row = 0; row < marey_table_n_rows(warnings); row++) {
        const struct marey_cell text = marey_table_cell(warnings, row, 0);
        marey__buf_printf(&answer->line, "%snote:%s ", color ? YELLOW : "", color ? PLAIN : "");
        marey__text_put(&answer->line, text.as.text, text.len, 0);
        MAREY_TRY(end_line(answer));
    }
    return MAREY_OK;
}

static marey_status put_text(struct answer *answer)
{
    marey_table *const *tables = answer->b->tables;
    MAREY_TRY(put_first_line(answer));
    MAREY_TRY(put_second_line(answer));
    MAREY_TRY(draw_devices(answer, tables[MAREY__BREAKDOWN_DEVICES], NULL));
    if (answer->b->by != MAREY__BY_NOTHING)
        MAREY_TRY(draw_devices(answer, tables[MAREY__BREAKDOWN_BY],
                               marey_table_column(tables[MAREY__BREAKDOWN_BY], 0)->name));
    MAREY_TRY(marey__idle_draw(answer->b, &answer->options, answer->out));
    MAREY_TRY(marey__collectives_draw(answer->b, &answer->options, answer->out));
    MAREY_TRY(draw_table(answer, MAREY__BREAKDOWN_RULES, "what each rule caught", MAX_ROWS));
    return put_warnings(answer);
}

/* ---- JSON ---- */

static void put_summary(struct answer *answer)
{
    struct marey__buf *line = &answer->line;
    const marey_table *summary = answer->b->tables[MAREY__BREAKDOWN_SUMMARY];
    marey__buf_puts(line, "{\n  \"summary\": {");
    for (size_t row = 0; row < marey_table_n_rows(summary); row++) {
        char number[40];
        const struct marey_cell share = marey__cell_of(summary, row, "share");
        const struct marey_cell cell = marey__cell_of(summary, row, "ns");
        const uint64_t ns = cell.as.u64;
        marey__buf_printf(line, "%s\n    \"%s\": {\"ns\": ", row == 0 ? "" : ",",
                          marey__cell_of(summary, row, "part").as.text);
        if (cell.is_null) {
            marey__buf_puts(line, "null, \"seconds\": null, \"share\": null}");
            continue;
        }
        marey__buf_printf(line, "%" PRIu64 ", \"seconds\": ", ns);
        marey__buf_put(line, number, (size_t)(marey__put_f64(number, (double)ns / 1e9) - number));
        marey__buf_puts(line, ", \"share\": ");
        if (share.is_null)
            marey__buf_puts(line, "null");
        else
            marey__buf_put(line, number, (size_t)(marey__put_f64(number, share.as.f64) - number));
        marey__buf_puts(line, "}");
    }
    marey__buf_printf(line, "\n  },\n  \"window\": \"%s\",\n",
                      marey__window_names[answer->b->window]);
}

/* A row of devices: names without their unit, and the atoms as an object of their own, as the last. */
static void put_device(struct marey__buf *line, const marey_table *table, size_t row)
{
    static const char prefix[] = "atom_";
    struct marey__buf atoms = {0};
    marey__buf_puts(line, "{");
    for (size_t c = 0; c < marey_table_n_columns(table); c++) {
        const char *name = marey_table_column(table, c)->name;
        const bool is_atom = strncmp(name, prefix, sizeof prefix - 1) == 0;
        struct marey__buf *into = is_atom ? &atoms : line;
        size_t len = strlen(name);
        len -= len > 3 && strcmp(name + len - 3, "_ns") == 0 ? 3 : 0;
        const size_t from = is_atom ? sizeof prefix - 1 : 0;
        marey__json_put(into, name + from, len - from);
        marey__buf_puts(into, ": ");
        marey__json_cell(into, table, row, c);
        marey__buf_puts(into, ", ");
    }
    marey__buf_puts(line, "\"atoms\": {");
    marey__buf_put(line, atoms.data, atoms.len >= 2 ? atoms.len - 2 : 0);
    marey__buf_puts(line, "}}");
    line->failed |= atoms.failed;
    marey__buf_fini(&atoms);
}

static marey_status put_devices(struct answer *answer, const char *key, const marey_table *table)
{
    struct marey__buf *line = &answer->line;
    marey__buf_printf(line, "  \"%s\": [", key);
    for (size_t row = 0; row < marey_table_n_rows(table); row++) {
        marey__buf_puts(line, row == 0 ? "\n    " : ",\n    ");
        put_device(line, table, row);
        MAREY_TRY(marey__buf_to_stream(line, answer->out));
    }
    marey__buf_puts(line, marey_table_n_rows(table) == 0 ? "],\n" : "\n  ],\n");
    return marey__buf_to_stream(line, answer->out);
}

static marey_status put_json(struct answer *answer)
{
    struct marey__buf *line = &answer->line;
    marey_table *const *tables = answer->b->tables;
    const marey_table *warnings = tables[MAREY__BREAKDOWN_WARNINGS];
    put_summary(answer);
    MAREY_TRY(put_devices(answer, "devices", tables[MAREY__BREAKDOWN_DEVICES]));
    if (answer->b->by != MAREY__BY_NOTHING)
        MAREY_TRY(put_devices(answer, "by", tables[MAREY__BREAKDOWN_BY]));
    for (size_t t = MAREY__BREAKDOWN_IDLE; t <= MAREY__BREAKDOWN_RULES; t++)
        MAREY_TRY(marey__json_named_rows(line, tables[t], answer->out));
    marey__json_last_texts(line, warnings);
    return marey__buf_to_stream(line, answer->out);
}

/* ---- both ---- */

typedef marey_status putter(struct answer *answer);

static marey_status put_answer(marey_breakdown *b, const struct marey_text_options *options,
                               FILE *out, putter *put)
{
    struct answer answer = {.b = b, .out = out};
    if (options != NULL)
        answer.options = *options;
    marey_status status = put(&answer);
    marey__buf_fini(&answer.line);
    if (status == MAREY_OK && fflush(out) != 0)
        status = marey__fail_errno("write the breakdown");
    return status;
}

marey_status marey_breakdown_text(marey_breakdown *breakdown,
                                  const struct marey_text_options *options, FILE *out)
{
    return put_answer(breakdown, options, out, put_text);
}

marey_status marey_breakdown_json(marey_breakdown *breakdown, FILE *out)
{
    return put_answer(breakdown, NULL, out, put_json);
}
