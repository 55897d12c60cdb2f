/*
 * The answer of a breakdown: one line, the devices, what was asked for besides, how the rules did, what to know; for a
 * terminal and as JSON. The terminal gets a narrower table than there is, in times and shares.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/breakdown_whole.h"
#include "present/export_internal.h"
#include "present/present_internal.h"
#include "present/style.h"
#include <kymo/legacy.h>

/* Rows of one table that a screen takes in; JSON and CSV have all. How wide it must be for times and shares. */
enum { MAX_ROWS = 40, MAX_BOTH_WINDOWS = 16, WIDE = 150, NARROW = 105 };

struct answer {
    kymo_breakdown *b;
    struct kymo_text_options options;
    struct kymo__buf line;
    FILE *out;
};

static kymo_status end_line(struct answer *answer)
{
    kymo__buf_puts(&answer->line, "\n");
    return kymo__buf_to_stream(&answer->line, answer->out);
}

/* ---- the first lines ---- */

static kymo_status put_first_line(struct answer *answer)
{
    struct kymo__buf *line = &answer->line;
    const kymo_table *summary = answer->b->tables[KYMO__BROKEN_SUMMARY];
    const char *unit = answer->options.unit;
    kymo__buf_puts(line, answer->options.color ? BOLD : "");
    for (size_t row = 0; row < kymo_table_n_rows(summary); row++) {
        const struct kymo_cell share = kymo__cell_of(summary, row, "share");
        kymo__buf_printf(line, "%s%s ", row == 0 ? "" : ", ",
                         kymo__cell_of(summary, row, "part").as.text);
        if (kymo__cell_of(summary, row, "ns").is_null) {
            kymo__buf_puts(line, "unknown");
            continue;
        }
        kymo__text_duration(line, (double)kymo__cell_of(summary, row, "ns").as.u64, unit);
        kymo__buf_printf(line, "%s%s (", unit != NULL ? " " : "", unit != NULL ? unit : "");
        if (share.is_null)
            kymo__buf_puts(line, "-");
        else
            kymo__text_share(line, share.as.f64);
        kymo__buf_puts(line, ")");
    }
    kymo__buf_puts(line, answer->options.color ? PLAIN : "");
    return end_line(answer);
}

/* Of how many devices that is, and of which time. */
static kymo_status put_second_line(struct answer *answer)
{
    struct kymo__buf *line = &answer->line;
    const kymo_table *devices = answer->b->tables[KYMO__BROKEN_DEVICES];
    const char *steps = kymo__window_names[KYMO__WINDOW_STEPS];
    const bool wants_steps = answer->b->window == KYMO__WINDOW_STEPS;
    size_t n_gpus = 0, n_hosts = 0;
    for (size_t row = 0; row < kymo_table_n_rows(devices); row++) {
        const bool is_steps = strcmp(kymo__cell_of(devices, row, "window").as.text, steps) == 0;
        const bool is_host = kymo__cell_of(devices, row, "device").as.i64 < 0;
        n_gpus += is_steps == wants_steps && !is_host;
        n_hosts += is_steps == wants_steps && is_host;
    }
    kymo__text_put(line, answer->b->title, strlen(answer->b->title), 60);
    kymo__buf_puts(line, ": ");
    if (n_gpus != 0)
        kymo__text_count_of(line, n_gpus, "GPU");
    if (n_hosts != 0)
        kymo__text_count_of(line, n_hosts, "process");
    kymo__buf_puts(line, wants_steps   ? ", all steps"
                         : n_gpus != 0 ? ", first GPU work to last"
                                       : ", first event to last");
    kymo__buf_puts(line, "; other: exposed copies and idle\n");
    return end_line(answer);
}

/* ---- a table of devices, or of their parts ---- */

static const struct kymo_column drawn_columns[] = {
    {"of", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"rank", NULL, KYMO_TYPE_I64, KYMO_UNIT_NONE},
    {"device", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"window", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"span_ns", "span", KYMO_TYPE_U64, KYMO_UNIT_NS},
    {"compute_ns", "compute", KYMO_TYPE_U64, KYMO_UNIT_NS},
    {"compute_share", "%", KYMO_TYPE_F64, KYMO_UNIT_SHARE},
    {"exposed_comm_ns", "exposed comm", KYMO_TYPE_U64, KYMO_UNIT_NS},
    {"exposed_comm_share", "%", KYMO_TYPE_F64, KYMO_UNIT_SHARE},
    {"hidden_comm_ns", "hidden comm", KYMO_TYPE_U64, KYMO_UNIT_NS},
    {"exposed_mem_ns", "exposed copies", KYMO_TYPE_U64, KYMO_UNIT_NS},
    {"exposed_mem_share", "%", KYMO_TYPE_F64, KYMO_UNIT_SHARE},
    {"idle_ns", "idle", KYMO_TYPE_U64, KYMO_UNIT_NS},
    {"idle_share", "%", KYMO_TYPE_F64, KYMO_UNIT_SHARE},
    {"concurrency", NULL, KYMO_TYPE_F64, KYMO_UNIT_NONE},
};
enum { N_DRAWN = KYMO__COUNT_OF(drawn_columns) };

static void draw_device(kymo_table *drawn, int64_t device)
{
    char text[32];
    snprintf(text, sizeof text, "gpu %" PRId64, device);
    kymo_table_text(drawn, device < 0 ? "cpu" : text, strlen(device < 0 ? "cpu" : text));
}

/* The first cell: a step or stream by its number, a range or group by its name. */
static void draw_label(kymo_table *drawn, const kymo_table *from, size_t row)
{
    const struct kymo_cell label = kymo_table_cell(from, row, 0);
    char text[32];
    if (kymo_table_column(from, 0)->type == KYMO_TYPE_TEXT) {
        kymo_table_text(drawn, label.as.text, label.len);
        return;
    }
    snprintf(text, sizeof text, "%" PRIu64, label.as.u64);
    kymo_table_text(drawn, text, strlen(text));
}

/* Two digits behind the point are enough for people. */
static void draw_ratio(kymo_table *drawn, const struct kymo_cell *cell)
{
    if (cell->is_null)
        kymo_table_null(drawn);
    else
        kymo_table_f64(drawn, (double)(int64_t)(cell->as.f64 * 100 + 0.5) / 100);
}

static void draw_row(kymo_table *drawn, const kymo_table *from, size_t row, bool has_label)
{
    static const struct {
        const char *column;
        bool has_share;
    } times[] = {{"compute_ns", true},
                 {"exposed_comm_ns", true},
                 {"hidden_comm_ns", false},
                 {"exposed_mem_ns", true},
                 {"idle_ns", true}};
    const struct kymo_cell rank = kymo__cell_of(from, row, "rank"),
                           window = kymo__cell_of(from, row, "window"),
                           concurrency = kymo__cell_of(from, row, "concurrency");
    const uint64_t span = kymo__cell_of(from, row, "span_ns").as.u64;
    if (has_label)
        draw_label(drawn, from, row);
    else
        kymo_table_null(drawn);
    if (rank.is_null)
        kymo_table_null(drawn);
    else
        kymo_table_i64(drawn, rank.as.i64);
    draw_device(drawn, kymo__cell_of(from, row, "device").as.i64);
    kymo_table_text(drawn, window.as.text, window.len);
    kymo_table_u64(drawn, span);
    for (size_t i = 0; i < KYMO__COUNT_OF(times); i++) {
        const struct kymo_cell ns = kymo__cell_of(from, row, times[i].column);
        if (ns.is_null)
            kymo_table_null(drawn);
        else
            kymo_table_u64(drawn, ns.as.u64);
        if (times[i].has_share)
            kymo__put_share(drawn, ns.as.u64, ns.is_null ? 0 : span);
    }
    draw_ratio(drawn, &concurrency);
}

static kymo_status put_more(struct answer *answer, size_t n_more)
{
    if (n_more == 0)
        return KYMO_OK;
    kymo__buf_printf(&answer->line, "... and %zu more; --json has them", n_more);
    return end_line(answer);
}

/*
 * Which columns there are: a terminal of usual width has either times or shares. Where shares stand alone they have the
 * titles of the times. `hide` gets their names, NULL behind the last.
 */
static void choose_columns(struct kymo_column columns[N_DRAWN], const char *hide[N_DRAWN + 1],
                           const char *label, uint32_t width)
{
    size_t n_hidden = 0;
    const bool is_narrow = width != 0 && width < WIDE;
    columns[0].title = label;
    if (label == NULL)
        hide[n_hidden++] = columns[0].name;
    for (size_t i = 1; i < N_DRAWN && is_narrow; i++)
        if (columns[i].unit == KYMO_UNIT_SHARE) {
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
static bool is_drawn(const struct answer *answer, const kymo_table *from, size_t row)
{
    const struct kymo_cell window = kymo__cell_of(from, row, "window");
    const bool is_steps = strcmp(window.as.text, kymo__window_names[KYMO__WINDOW_STEPS]) == 0;
    return from != answer->b->tables[KYMO__BROKEN_DEVICES] ||
           kymo_table_n_rows(from) <= MAX_BOTH_WINDOWS ||
           is_steps == (answer->b->window == KYMO__WINDOW_STEPS);
}

/* `label` is what the first column is called; NULL: there is none. */
static kymo_status draw_devices(struct answer *answer, const kymo_table *from, const char *label)
{
    struct kymo_column columns[N_DRAWN];
    const char *hide[N_DRAWN + 1];
    kymo_table *drawn = NULL;
    memcpy(columns, drawn_columns, sizeof columns);
    choose_columns(columns, hide, label, answer->options.width);
    KYMO_TRY(kymo_table_create("drawn", columns, N_DRAWN, &drawn));
    size_t n_more = 0;
    for (size_t row = 0; row < kymo_table_n_rows(from); row++) {
        if (!is_drawn(answer, from, row))
            continue;
        if (kymo_table_n_rows(drawn) < MAX_ROWS)
            draw_row(drawn, from, row, label != NULL);
        else
            n_more++;
    }
    kymo_status status = kymo_table_status(drawn);
    const struct kymo__text_view view = {
        .table = drawn, .options = answer->options, .n_rows = kymo_table_n_rows(drawn), .hide = hide};
    if (status == KYMO_OK)
        status = kymo__text_draw(&view, answer->out);
    kymo_table_destroy(drawn);
    KYMO_TRY(status);
    KYMO_TRY(put_more(answer, n_more));
    return end_line(answer);
}

/* ---- text ---- */

/* The first rows of a table under a heading; nothing where it has none. */
static kymo_status draw_table(struct answer *answer, enum kymo__breakdown_table which,
                              const char *heading, size_t limit)
{
    const kymo_table *table = answer->b->tables[which];
    const size_t n = kymo_table_n_rows(table), n_drawn = KYMO__MIN(n, limit);
    const struct kymo__text_view view = {
        .table = table, .options = answer->options, .n_rows = n_drawn};
    if (n == 0)
        return KYMO_OK;
    kymo__buf_printf(&answer->line, "%s%s%s", answer->options.color ? BOLD : "", heading,
                     answer->options.color ? PLAIN : "");
    KYMO_TRY(end_line(answer));
    KYMO_TRY(kymo__text_draw(&view, answer->out));
    KYMO_TRY(put_more(answer, n - n_drawn));
    return end_line(answer);
}

static kymo_status put_warnings(struct answer *answer)
{
    const kymo_table *warnings = answer->b->tables[KYMO__BROKEN_WARNINGS];
    const bool color = answer->options.color != 0;
    for (size_t row = 0; row < kymo_table_n_rows(warnings); row++) {
        const struct kymo_cell text = kymo_table_cell(warnings, row, 0);
        kymo__buf_printf(&answer->line, "%snote:%s ", color ? YELLOW : "", color ? PLAIN : "");
        kymo__text_put(&answer->line, text.as.text, text.len, 0);
        KYMO_TRY(end_line(answer));
    }
    return KYMO_OK;
}

static kymo_status put_text(struct answer *answer)
{
    kymo_table *const *tables = answer->b->tables;
    KYMO_TRY(put_first_line(answer));
    KYMO_TRY(put_second_line(answer));
    KYMO_TRY(draw_devices(answer, tables[KYMO__BROKEN_DEVICES], NULL));
    if (answer->b->by != KYMO__BY_NOTHING)
        KYMO_TRY(draw_devices(answer, tables[KYMO__BROKEN_BY],
                              kymo_table_column(tables[KYMO__BROKEN_BY], 0)->name));
    KYMO_TRY(kymo__idle_draw(answer->b, &answer->options, answer->out));
    KYMO_TRY(kymo__collectives_draw(answer->b, &answer->options, answer->out));
    KYMO_TRY(draw_table(answer, KYMO__BROKEN_RULES, "what each rule caught", MAX_ROWS));
    if (tables[KYMO__BROKEN_LEGACY] != NULL)
        KYMO_TRY(kymo_legacy_text(tables[KYMO__BROKEN_LEGACY], NULL, &answer->options, answer->out));
    return put_warnings(answer);
}

/* ---- JSON ---- */

static void put_summary(struct answer *answer)
{
    struct kymo__buf *line = &answer->line;
    const kymo_table *summary = answer->b->tables[KYMO__BROKEN_SUMMARY];
    kymo__buf_puts(line, "{\n  \"summary\": {");
    for (size_t row = 0; row < kymo_table_n_rows(summary); row++) {
        char number[40];
        const struct kymo_cell share = kymo__cell_of(summary, row, "share");
        const struct kymo_cell cell = kymo__cell_of(summary, row, "ns");
        const uint64_t ns = cell.as.u64;
        kymo__buf_printf(line, "%s\n    \"%s\": {\"ns\": ", row == 0 ? "" : ",",
                         kymo__cell_of(summary, row, "part").as.text);
        if (cell.is_null) {
            kymo__buf_puts(line, "null, \"seconds\": null, \"share\": null}");
            continue;
        }
        kymo__buf_printf(line, "%" PRIu64 ", \"seconds\": ", ns);
        kymo__buf_put(line, number, (size_t)(kymo__put_f64(number, (double)ns / 1e9) - number));
        kymo__buf_puts(line, ", \"share\": ");
        if (share.is_null)
            kymo__buf_puts(line, "null");
        else
            kymo__buf_put(line, number, (size_t)(kymo__put_f64(number, share.as.f64) - number));
        kymo__buf_puts(line, "}");
    }
    kymo__buf_printf(line, "\n  },\n  \"window\": \"%s\",\n", kymo__window_names[answer->b->window]);
}

/* A row of devices: names without their unit, and the atoms as an object of their own, as the last. */
static void put_device(struct kymo__buf *line, const kymo_table *table, size_t row)
{
    static const char prefix[] = "atom_";
    struct kymo__buf atoms = {0};
    kymo__buf_puts(line, "{");
    for (size_t c = 0; c < kymo_table_n_columns(table); c++) {
        const char *name = kymo_table_column(table, c)->name;
        const bool is_atom = strncmp(name, prefix, sizeof prefix - 1) == 0;
        struct kymo__buf *into = is_atom ? &atoms : line;
        size_t len = strlen(name);
        len -= len > 3 && strcmp(name + len - 3, "_ns") == 0 ? 3 : 0;
        const size_t from = is_atom ? sizeof prefix - 1 : 0;
        kymo__json_put(into, name + from, len - from);
        kymo__buf_puts(into, ": ");
        kymo__json_cell(into, table, row, c);
        kymo__buf_puts(into, ", ");
    }
    kymo__buf_puts(line, "\"atoms\": {");
    kymo__buf_put(line, atoms.data, atoms.len >= 2 ? atoms.len - 2 : 0);
    kymo__buf_puts(line, "}}");
    line->failed |= atoms.failed;
    kymo__buf_fini(&atoms);
}

static kymo_status put_devices(struct answer *answer, const char *key, const kymo_table *table)
{
    struct kymo__buf *line = &answer->line;
    kymo__buf_printf(line, "  \"%s\": [", key);
    for (size_t row = 0; row < kymo_table_n_rows(table); row++) {
        kymo__buf_puts(line, row == 0 ? "\n    " : ",\n    ");
        put_device(line, table, row);
        KYMO_TRY(kymo__buf_to_stream(line, answer->out));
    }
    kymo__buf_puts(line, kymo_table_n_rows(table) == 0 ? "],\n" : "\n  ],\n");
    return kymo__buf_to_stream(line, answer->out);
}

static kymo_status put_legacy(struct answer *answer)
{
    kymo__buf_puts(&answer->line, "  \"legacy\": ");
    KYMO_TRY(kymo__buf_to_stream(&answer->line, answer->out));
    KYMO_TRY(kymo_legacy_json(answer->b->tables[KYMO__BROKEN_LEGACY], NULL, answer->out));
    kymo__buf_puts(&answer->line, ",\n");
    return kymo__buf_to_stream(&answer->line, answer->out);
}

static kymo_status put_json(struct answer *answer)
{
    struct kymo__buf *line = &answer->line;
    kymo_table *const *tables = answer->b->tables;
    const kymo_table *warnings = tables[KYMO__BROKEN_WARNINGS];
    put_summary(answer);
    KYMO_TRY(put_devices(answer, "devices", tables[KYMO__BROKEN_DEVICES]));
    if (answer->b->by != KYMO__BY_NOTHING)
        KYMO_TRY(put_devices(answer, "by", tables[KYMO__BROKEN_BY]));
    for (size_t t = KYMO__BROKEN_IDLE; t <= KYMO__BROKEN_RULES; t++)
        KYMO_TRY(kymo__json_named_rows(line, tables[t], answer->out));
    if (tables[KYMO__BROKEN_LEGACY] != NULL)
        KYMO_TRY(put_legacy(answer));
    kymo__json_last_texts(line, warnings);
    return kymo__buf_to_stream(line, answer->out);
}

/* ---- both ---- */

typedef kymo_status putter(struct answer *answer);

static kymo_status put_answer(kymo_breakdown *b, const struct kymo_text_options *options, FILE *out,
                              putter *put)
{
    struct answer answer = {.b = b, .out = out};
    if (options != NULL)
        answer.options = *options;
    kymo_status status = put(&answer);
    kymo__buf_fini(&answer.line);
    if (status == KYMO_OK && fflush(out) != 0)
        status = kymo__fail_errno("write the breakdown");
    return status;
}

kymo_status kymo_breakdown_text(kymo_breakdown *breakdown, const struct kymo_text_options *options,
                                FILE *out)
{
    return put_answer(breakdown, options, out, put_text);
}

kymo_status kymo_breakdown_json(kymo_breakdown *breakdown, FILE *out)
{
    return put_answer(breakdown, NULL, out, put_json);
}
