/*
 * The breakdown as text and JSON: one line, the devices, the selected `by`, why devices were idle, collectives, rules,
 * notes. Tables for a terminal are narrower: times, shares, or both, depending on its width.
 */
#include <inttypes.h>
#include <math.h>

#include "analyze/device/internal.h"
#include "present/draw/internal.h"

enum {
    MAX_ROWS = 40, /* of a table in a terminal; JSON and CSV have all */
    MAX_COLLECTIVES = 20,
    MAX_BOTH_WINDOWS = 16, /* maximum rows of devices for showing both windows */
    WIDE = 150,            /* terminal columns needed for times and shares */
    NARROW = 105,
    MAX_OPERATORS = 2, /* listed per reason */
    MAX_LETTERS = 32,  /* of an operator's name */
};

static const struct marey__breakdown_facts *facts_of(const struct marey__report_writer *writer)
{
    return writer->report->data;
}

static const marey_table *table_of(const struct marey__report_writer *writer,
                                   enum marey__breakdown_table which)
{
    return writer->report->tables[which];
}

/* Whether a row of devices has the window of the first line. */
static bool is_of_window(const struct marey__report_writer *writer, const marey_table *devices,
                         size_t row)
{
    const char *const steps = marey__window_names[MAREY__WINDOW_STEPS];
    const bool is_steps = strcmp(marey__cell_of(devices, row, "window").as.text, steps) == 0;
    return is_steps == (facts_of(writer)->window == MAREY__WINDOW_STEPS);
}

static marey_status draw(struct marey__report_writer *writer, const struct marey__text_view *view)
{
    MAREY_TRY(marey__text_draw(view, writer->lines.out));
    return marey__lines_end(&writer->lines);
}

/* ---- the first lines ---- */

static marey_status put_first_line(struct marey__report_writer *writer)
{
    struct marey__buf *const line = &writer->lines.line;
    const marey_table *const summary = table_of(writer, MAREY__BREAKDOWN_SUMMARY);
    const char *const unit = writer->options->text.unit;
    marey__buf_puts(line, marey__style(&writer->lines, BOLD));
    for (size_t row = 0; row < marey_table_n_rows(summary); row++) {
        const struct marey_cell share = marey__cell_of(summary, row, "share"),
                                ns = marey__cell_of(summary, row, "ns");
        marey__buf_printf(line, "%s%s ", row == 0 ? "" : ", ",
                          marey__cell_of(summary, row, "part").as.text);
        if (ns.is_null) {
            marey__buf_puts(line, "unknown");
            continue;
        }
        marey__text_duration(line, (double)ns.as.u64, unit);
        marey__buf_printf(line, "%s%s (", unit != NULL ? " " : "", unit != NULL ? unit : "");
        if (share.is_null)
            marey__buf_puts(line, "-");
        else
            marey__text_share(line, share.as.f64);
        marey__buf_puts(line, ")");
    }
    marey__buf_puts(line, marey__style(&writer->lines, PLAIN));
    return marey__lines_end(&writer->lines);
}

/* The number of devices, and the window. */
static marey_status put_second_line(struct marey__report_writer *writer)
{
    struct marey__buf *const line = &writer->lines.line;
    const marey_table *const devices = table_of(writer, MAREY__BREAKDOWN_DEVICES);
    size_t n_gpus = 0, n_hosts = 0;
    for (size_t row = 0; row < marey_table_n_rows(devices); row++)
        if (is_of_window(writer, devices, row))
            ++*(marey__cell_of(devices, row, "device").as.i64 < 0 ? &n_hosts : &n_gpus);
    marey__text_put(line, writer->report->title, strlen(writer->report->title), 60);
    marey__buf_puts(line, ": ");
    if (n_gpus != 0)
        marey__text_count_of(line, n_gpus, "GPU");
    if (n_hosts != 0)
        marey__text_count_of(line, n_hosts, "process");
    marey__buf_puts(line, facts_of(writer)->window == MAREY__WINDOW_STEPS ? ", all steps"
                          : n_gpus != 0 ? ", first GPU activity to last"
                                        : ", first event to last");
    marey__buf_puts(line, "; other: exposed copies and idle\n");
    return marey__lines_end(&writer->lines);
}

/* ---- tables of devices and their parts ---- */

static const struct marey_column drawn_columns[] = {
    TEXT("of"),
    NUMBER("rank"),
    TEXT("device"),
    TEXT("window"),
    NS("span_ns", "span"),
    NS("compute_ns", "compute"),
    SHARE("compute_share", "%"),
    NS("exposed_comm_ns", "exposed comm"),
    SHARE("exposed_comm_share", "%"),
    NS("hidden_comm_ns", "hidden comm"),
    NS("exposed_mem_ns", "exposed copies"),
    SHARE("exposed_mem_share", "%"),
    NS("idle_ns", "idle"),
    SHARE("idle_share", "%"),
    REAL("concurrency", NULL),
};
enum { N_DRAWN = MAREY__COUNT_OF(drawn_columns), FIRST_TIME = 5 };

/* The first cell: a step or stream by its number, a range or group by its name. */
static void draw_label(marey_table *drawn, const marey_table *from, size_t row, bool has_label)
{
    const struct marey_cell label = marey_table_cell(from, row, 0);
    char text[32];
    if (!has_label) {
        marey_table_null(drawn);
    } else if (marey_table_column(from, 0)->type == MAREY_TYPE_TEXT) {
        marey_table_text(drawn, label.as.text, label.len);
    } else {
        snprintf(text, sizeof text, "%" PRIu64, label.as.u64);
        marey__put_string(drawn, text);
    }
}

static void draw_row(marey_table *drawn, const marey_table *from, size_t row, bool has_label)
{
    const struct marey_cell rank = marey__cell_of(from, row, "rank"),
                            device = marey__cell_of(from, row, "device"),
                            concurrency = marey__cell_of(from, row, "concurrency");
    const uint64_t span = marey__cell_of(from, row, "span_ns").as.u64;
    struct marey_cell ns = {0};
    char text[32];
    draw_label(drawn, from, row, has_label);
    marey__put_rank(drawn, rank.is_null ? -1 : rank.as.i64);
    snprintf(text, sizeof text, "gpu %" PRId64, device.as.i64);
    MAREY__PUT_ROW(drawn, STRING(device.as.i64 < 0 ? "cpu" : text),
                   STRING(marey__cell_of(from, row, "window").as.text), U64(span));
    for (size_t c = FIRST_TIME; c + 1 < N_DRAWN; c++) {
        if (drawn_columns[c].unit == MAREY_UNIT_SHARE) { /* of the time before it */
            marey__put_share(drawn, ns.as.u64, ns.is_null ? 0 : span);
            continue;
        }
        ns = marey__cell_of(from, row, drawn_columns[c].name);
        marey__put_u64_or_null(drawn, ns.as.u64, !ns.is_null);
    }
    /* Rounded to two decimals. */
    marey__put_real(drawn, (double)(int64_t)(concurrency.as.f64 * 100 + 0.5) / 100,
                    !concurrency.is_null);
}

static marey_status put_more(struct marey__report_writer *writer, size_t n_more)
{
    if (n_more == 0)
        return MAREY_OK;
    marey__buf_printf(&writer->lines.line, "... and %zu more; --json has them", n_more);
    return marey__lines_end(&writer->lines);
}

/*
 * A terminal of normal width shows either times or shares; shares without times use the titles of times. `hide` gets
 * the names of the other columns, NULL after the last.
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

/* `label`: the title of the first column; NULL: no such column. With many devices only one window is drawn. */
static marey_status draw_devices(struct marey__report_writer *writer, const marey_table *from,
                                 const char *label)
{
    struct marey_column columns[N_DRAWN];
    const char *hide[N_DRAWN + 1];
    marey_table *drawn MAREY__FINALLY(marey__table_end) = NULL;
    const bool has_all = label != NULL || marey_table_n_rows(from) <= MAX_BOTH_WINDOWS;
    size_t n_more = 0;
    memcpy(columns, drawn_columns, sizeof columns);
    choose_columns(columns, hide, label, writer->options->text.width);
    MAREY_TRY(marey_table_create("drawn", columns, N_DRAWN, &drawn));
    for (size_t row = 0; row < marey_table_n_rows(from); row++) {
        if (!has_all && !is_of_window(writer, from, row))
            continue;
        if (marey_table_n_rows(drawn) < MAX_ROWS)
            draw_row(drawn, from, row, label != NULL);
        else
            n_more++;
    }
    MAREY_TRY(marey_table_status(drawn));
    const struct marey__text_view view = {.table = drawn,
                                          .options = writer->options->text,
                                          .n_rows = marey_table_n_rows(drawn),
                                          .hide = hide};
    MAREY_TRY(marey__text_draw(&view, writer->lines.out));
    MAREY_TRY(put_more(writer, n_more));
    return marey__lines_end(&writer->lines);
}

/* ---- idle: sums over all devices ---- */

/* Sums by reason and operator; the last operator stands for none. */
struct reasons {
    uint64_t ns[MAREY__N_IDLE_REASONS], count[MAREY__N_IDLE_REASONS], all_ns;
    struct marey__names names;
    uint64_t *by_name; /* [reason * (names.n + 1) + name] */
};

static size_t reason_of(const marey_table *table, size_t row)
{
    const struct marey_cell id = marey__cell_of(table, row, "reason");
    size_t i = 0;
    while (i + 1 < MAREY__N_IDLE_REASONS && strcmp(marey__idle_words[i].id, id.as.text) != 0)
        i++;
    return i;
}

static void add_reasons(struct reasons *reasons, const marey_table *table)
{
    for (size_t row = 0; row < marey_table_n_rows(table); row++) {
        const size_t reason = reason_of(table, row);
        const uint64_t ns = marey__cell_of(table, row, "ns").as.u64;
        reasons->ns[reason] += ns;
        reasons->count[reason] += marey__cell_of(table, row, "count").as.u64;
        reasons->all_ns += ns;
    }
}

/* Two passes over the rows: number the names, then allocate and fill the sums. Returns false on out of memory. */
static bool add_operators(struct reasons *reasons, const marey_table *table)
{
    struct marey__names *const names = &reasons->names;
    for (size_t row = 0; row < marey_table_n_rows(table); row++) {
        const struct marey_cell name = marey__cell_of(table, row, "operator");
        if (!name.is_null && marey__names_number(names, name.as.text, name.len) == MAREY__NO_NAME)
            return false;
    }
    reasons->by_name =
        marey__calloc((names->n + 1) * MAREY__N_IDLE_REASONS, sizeof *reasons->by_name);
    if (reasons->by_name == NULL)
        return false;
    for (size_t row = 0; row < marey_table_n_rows(table); row++) {
        const struct marey_cell name = marey__cell_of(table, row, "operator");
        const size_t number =
            name.is_null ? names->n : marey__names_number(names, name.as.text, name.len);
        reasons->by_name[reason_of(table, row) * (names->n + 1) + number] +=
            marey__cell_of(table, row, "ns").as.u64;
    }
    return true;
}

/* "aten::copy_ 41 %, forward 22 %"; clears the sums it prints. */
static void put_operators(struct marey__buf *text, const struct reasons *reasons, size_t reason)
{
    const size_t n = reasons->names.n;
    uint64_t *const by_name = reasons->by_name + reason * (n + 1);
    for (size_t i = 0; i < MAX_OPERATORS; i++) {
        size_t most = n;
        for (size_t name = 0; name < n; name++)
            if (by_name[name] > by_name[most])
                most = name;
        if (by_name[most] == 0)
            return;
        marey__buf_puts(text, i == 0 ? "" : ", ");
        if (most == n)
            marey__buf_puts(text, "(no operator)");
        else
            marey__text_put(text, reasons->names.names[most].text, reasons->names.names[most].len,
                            MAX_LETTERS);
        marey__buf_puts(text, " ");
        marey__text_share(text, (double)by_name[most] / (double)reasons->ns[reason]);
        by_name[most] = 0;
    }
}

static const struct marey_column idle_columns[] = {
    COLUMN("reason", "why idle", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
    COUNT("count", "gaps"),
    NS("ns", "time"),
    SHARE("share", "of idle"),
    COLUMN("operators", "mostly in", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
};

static void fill_idle(marey_table *table, const struct reasons *reasons)
{
    for (size_t i = 0; i < MAREY__N_IDLE_REASONS; i++) {
        struct marey__buf text = {0};
        if (reasons->ns[i] == 0)
            continue;
        MAREY__PUT_ROW(table, STRING(marey__idle_words[i].title), U64(reasons->count[i]),
                       U64(reasons->ns[i]), RATIO(reasons->ns[i], reasons->all_ns));
        put_operators(&text, reasons, i);
        marey_table_text(table, text.data != NULL ? text.data : "", text.len);
        marey__buf_fini(&text);
    }
    MAREY__SORT_BY(table, "-ns");
}

static void reasons_fini(struct reasons *reasons)
{
    marey__names_fini(&reasons->names);
    marey__free(reasons->by_name);
}

static marey_status draw_idle(struct marey__report_writer *writer)
{
    struct reasons reasons MAREY__FINALLY(reasons_fini) = {0};
    marey_table *table MAREY__FINALLY(marey__table_end) = NULL;
    add_reasons(&reasons, table_of(writer, MAREY__BREAKDOWN_IDLE));
    if (reasons.all_ns == 0)
        return MAREY_OK;
    MAREY__TRY_MEMORY(add_operators(&reasons, table_of(writer, MAREY__BREAKDOWN_IDLE_OPERATORS)));
    MAREY_TRY(marey_table_create("idle", idle_columns, MAREY__COUNT_OF(idle_columns), &table));
    fill_idle(table, &reasons);
    const struct marey__text_view view = {
        .table = table, .options = writer->options->text, .n_rows = marey_table_n_rows(table)};
    MAREY_TRY(marey_table_status(table));
    return draw(writer, &view);
}

/* ---- collectives ---- */

static void put_clocks(struct marey__buf *line, const struct marey__breakdown_facts *facts)
{
    static const char *const clocks[] = {
        [MAREY__CLOCKS_APART] = "the clocks of the ranks are unrelated, so there is no skew",
        [MAREY__CLOCKS_WALL] = "skew by the time of day of each host, whose clocks are not aligned",
        [MAREY__CLOCKS_ALIGNED] = "skew by clocks of ",
        [MAREY__CLOCKS_SAME] = "skew by one common clock",
    };
    marey__buf_puts(line, clocks[facts->clocks]);
    if (facts->clocks != MAREY__CLOCKS_ALIGNED)
        return;
    marey__buf_printf(line, "%" PRIu64 " nodes, aligned to +-", facts->alignment.n_nodes);
    marey__text_duration(line, (double)facts->alignment.uncertainty_ns, NULL);
    marey__buf_printf(line, " by %" PRIu64 " collectives%s", facts->alignment.n_aligned_by,
                      facts->alignment.has_drifted ? "; clocks drifted meanwhile" : "");
}

static marey_status draw_collectives(struct marey__report_writer *writer)
{
    static const char *const hidden[] = {"bytes", "algorithm_bytes_per_s", "ranks", "partial", NULL};
    const marey_table *const table = table_of(writer, MAREY__BREAKDOWN_COLLECTIVES);
    struct marey__buf *const line = &writer->lines.line;
    size_t n_matched = 0;
    for (size_t row = 0; row < marey_table_n_rows(table); row++)
        n_matched += marey__cell_of(table, row, "count").as.u64 != 0;
    if (marey_table_n_rows(table) == 0)
        return MAREY_OK;
    if (n_matched == 0) {
        marey__buf_puts(line, "Wait and transfer of collectives are unknown: no collective has "
                              "calls of two ranks.\n");
        return marey__lines_end(&writer->lines);
    }
    const struct marey__text_view view = {.table = table,
                                          .options = writer->options->text,
                                          .n_rows = MAREY__MIN(n_matched, (size_t)MAX_COLLECTIVES),
                                          .hide = hidden};
    marey__buf_puts(line, "collectives: mean per rank, summed over calls; ");
    put_clocks(line, facts_of(writer));
    MAREY_TRY(marey__lines_end(&writer->lines));
    return draw(writer, &view);
}

/* ---- text ---- */

static marey_status draw_rules(struct marey__report_writer *writer)
{
    const marey_table *const rules = table_of(writer, MAREY__BREAKDOWN_RULES);
    const size_t n = marey_table_n_rows(rules), n_drawn = MAREY__MIN(n, (size_t)MAX_ROWS);
    const struct marey__text_view view = {
        .table = rules, .options = writer->options->text, .n_rows = n_drawn};
    if (n == 0)
        return MAREY_OK;
    marey__buf_printf(&writer->lines.line, "%s%s%s", marey__style(&writer->lines, BOLD),
                      marey__breakdown_tables[MAREY__BREAKDOWN_RULES].help,
                      marey__style(&writer->lines, PLAIN));
    MAREY_TRY(marey__lines_end(&writer->lines));
    MAREY_TRY(marey__text_draw(&view, writer->lines.out));
    MAREY_TRY(put_more(writer, n - n_drawn));
    return marey__lines_end(&writer->lines);
}

marey_status marey__breakdown_text(struct marey__report_writer *writer)
{
    const marey_table *const by = table_of(writer, MAREY__BREAKDOWN_BY);
    MAREY_TRY(put_first_line(writer));
    MAREY_TRY(put_second_line(writer));
    MAREY_TRY(draw_devices(writer, table_of(writer, MAREY__BREAKDOWN_DEVICES), NULL));
    if (by != NULL)
        MAREY_TRY(draw_devices(writer, by, marey_table_column(by, 0)->name));
    MAREY_TRY(draw_idle(writer));
    MAREY_TRY(draw_collectives(writer));
    MAREY_TRY(draw_rules(writer));
    return marey__lines_put_notes(&writer->lines, table_of(writer, MAREY__BREAKDOWN_WARNINGS));
}

/* ---- JSON ---- */

static void put_summary(struct marey__buf *line, const marey_table *summary)
{
    marey__buf_puts(line, "{\n  \"summary\": {");
    for (size_t row = 0; row < marey_table_n_rows(summary); row++) {
        const struct marey_cell share = marey__cell_of(summary, row, "share"),
                                ns = marey__cell_of(summary, row, "ns");
        marey__buf_puts(line, row == 0 ? "\n    " : ",\n    ");
        marey__json_printf(line, "%s: {'ns': ", marey__cell_of(summary, row, "part").as.text);
        marey__json_cell(line, summary, row, (size_t)marey_table_find(summary, "ns"));
        marey__json_printf(line, ", 'seconds': %f, 'share': %f}",
                           ns.is_null ? NAN : (double)ns.as.u64 / 1e9,
                           share.is_null ? NAN : share.as.f64);
    }
}

/* A row of devices: names without their unit, then the atoms as an object. */
static void put_device(struct marey__buf *line, const marey_table *table, size_t row)
{
    static const char prefix[] = "atom_";
    struct marey__buf atoms = {0};
    marey__buf_puts(line, "{");
    for (size_t c = 0; c < marey_table_n_columns(table); c++) {
        const char *name = marey_table_column(table, c)->name;
        const bool is_atom = strncmp(name, prefix, sizeof prefix - 1) == 0;
        struct marey__buf *const into = is_atom ? &atoms : line;
        name += is_atom ? sizeof prefix - 1 : 0;
        const size_t len = strlen(name);
        marey__json_put(into, name, len > 3 && strcmp(name + len - 3, "_ns") == 0 ? len - 3 : len);
        marey__buf_puts(into, ": ");
        marey__json_cell(into, table, row, c);
        marey__buf_puts(into, ", ");
    }
    marey__buf_puts(line, "\"atoms\": {");
    marey__buf_put(line, atoms.data, atoms.len >= 2 ? atoms.len - 2 : 0);
    marey__buf_puts(line, "}}");
    marey__buf_end(&atoms, line);
}

static marey_status put_devices(struct marey__report_writer *writer, const marey_table *table)
{
    struct marey__buf *const line = &writer->lines.line;
    marey__buf_printf(line, "  \"%s\": [", marey_table_name(table));
    for (size_t row = 0; row < marey_table_n_rows(table); row++) {
        marey__buf_puts(line, row == 0 ? "\n    " : ",\n    ");
        put_device(line, table, row);
        MAREY_TRY(marey__buf_to_stream(line, writer->lines.out));
    }
    marey__buf_puts(line, marey_table_n_rows(table) == 0 ? "],\n" : "\n  ],\n");
    return MAREY_OK;
}

marey_status marey__breakdown_json(struct marey__report_writer *writer)
{
    struct marey__buf *const line = &writer->lines.line;
    put_summary(line, table_of(writer, MAREY__BREAKDOWN_SUMMARY));
    marey__buf_printf(line, "\n  },\n  \"window\": \"%s\",\n",
                      marey__window_names[facts_of(writer)->window]);
    for (size_t t = MAREY__BREAKDOWN_DEVICES; t <= MAREY__BREAKDOWN_BY; t++)
        if (writer->report->tables[t] != NULL)
            MAREY_TRY(put_devices(writer, writer->report->tables[t]));
    for (size_t t = MAREY__BREAKDOWN_IDLE; t <= MAREY__BREAKDOWN_RULES; t++)
        MAREY_TRY(marey__json_named_rows(line, writer->report->tables[t], writer->lines.out));
    marey__json_last_texts(line, table_of(writer, MAREY__BREAKDOWN_WARNINGS));
    return marey__buf_to_stream(line, writer->lines.out);
}
