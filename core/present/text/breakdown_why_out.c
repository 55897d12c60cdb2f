/* For a terminal: why devices were idle, with the operators that had most of it, and the collectives over ranks. */
#include <stdio.h>
#include <string.h>

#include "analyze/device/internal.h"
#include "present/draw/internal.h"

/* Operators named for a reason, letters of a name, and rows of collectives that a screen takes in. */
enum { MAX_OPERATORS = 2, MAX_LETTERS = 32, MAX_ROWS = 20 };

static marey_status put_line(struct marey__buf *line, FILE *out)
{
    marey__buf_puts(line, "\n");
    const marey_status status = marey__buf_to_stream(line, out);
    marey__buf_fini(line);
    return status;
}

/* ---- idle: all devices together ---- */

/* One reason, and its operators by name. */
struct reason {
    uint64_t ns, count;
    uint64_t *by_name; /* the last is that of no operator */
};

struct reasons {
    struct reason list[MAREY__N_IDLE_REASONS];
    struct marey__names names;
    uint64_t *sums; /* what by_name points into */
    uint64_t ns;
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
        struct reason *reason = &reasons->list[reason_of(table, row)];
        const uint64_t ns = marey__cell_of(table, row, "ns").as.u64;
        reason->ns += ns;
        reason->count += marey__cell_of(table, row, "count").as.u64;
        reasons->ns += ns;
    }
}

/* Twice over the rows: names get their numbers, then the sums their room. False without memory. */
static bool add_operators(struct reasons *reasons, const marey_table *table)
{
    struct marey__names *names = &reasons->names;
    for (size_t row = 0; row < marey_table_n_rows(table); row++) {
        const struct marey_cell name = marey__cell_of(table, row, "operator");
        if (!name.is_null && marey__names_number(names, name.as.text, name.len) == MAREY__NO_NAME)
            return false;
    }
    reasons->sums = marey__calloc((names->n + 1) * MAREY__N_IDLE_REASONS, sizeof *reasons->sums);
    if (reasons->sums == NULL)
        return false;
    for (size_t i = 0; i < MAREY__N_IDLE_REASONS; i++)
        reasons->list[i].by_name = reasons->sums + i * (names->n + 1);
    for (size_t row = 0; row < marey_table_n_rows(table); row++) {
        const struct marey_cell name = marey__cell_of(table, row, "operator");
        const size_t number =
            name.is_null ? names->n : marey__names_number(names, name.as.text, name.len);
        reasons->list[reason_of(table, row)].by_name[number] +=
            marey__cell_of(table, row, "ns").as.u64;
    }
    return true;
}

/* "aten::copy_ 41 %, forward 22 %"; the sums it names are gone afterwards. */
static void put_operators(struct marey__buf *text, const struct reasons *reasons,
                          struct reason *reason)
{
    const size_t n = reasons->names.n;
    for (size_t i = 0; i < MAX_OPERATORS; i++) {
        size_t most = n;
        for (size_t name = 0; name < n; name++)
            if (reason->by_name[name] > reason->by_name[most])
                most = name;
        if (reason->by_name[most] == 0)
            return;
        marey__buf_puts(text, i == 0 ? "" : ", ");
        if (most == n)
            marey__buf_puts(text, "(no operator)");
        else
            marey__text_put(text, reasons->names.names[most].text, reasons->names.names[most].len,
                            MAX_LETTERS);
        marey__buf_puts(text, " ");
        marey__text_share(text, (double)reason->by_name[most] / (double)reason->ns);
        reason->by_name[most] = 0;
    }
}

static const struct marey_column idle_columns[] = {
    {"reason", "why idle", MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"count", "gaps", MAREY_TYPE_U64, MAREY_UNIT_COUNT},
    {"ns", "time", MAREY_TYPE_U64, MAREY_UNIT_NS},
    {"share", "of idle", MAREY_TYPE_F64, MAREY_UNIT_SHARE},
    {"operators", "mostly in", MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
};

static void fill_idle(marey_table *table, struct reasons *reasons)
{
    for (size_t i = 0; i < MAREY__N_IDLE_REASONS; i++) {
        struct reason *reason = &reasons->list[i];
        struct marey__buf text = {0};
        if (reason->ns == 0)
            continue;
        marey_table_text(table, marey__idle_words[i].title, strlen(marey__idle_words[i].title));
        marey_table_u64(table, reason->count);
        marey_table_u64(table, reason->ns);
        marey_table_f64(table, (double)reason->ns / (double)reasons->ns);
        put_operators(&text, reasons, reason);
        marey_table_text(table, text.data != NULL ? text.data : "", text.len);
        marey__buf_fini(&text);
    }
    marey_table_sort(table, 2, 1);
}

static marey_status draw_idle(struct reasons *reasons, const struct marey_breakdown *b,
                              const struct marey_text_options *options, FILE *out)
{
    struct marey__buf line = {0};
    marey_table *table = NULL;
    add_reasons(reasons, b->tables[MAREY__BREAKDOWN_IDLE]);
    if (reasons->ns == 0)
        return MAREY_OK;
    MAREY__TRY_MEMORY(add_operators(reasons, b->tables[MAREY__BREAKDOWN_IDLE_OPERATORS]));
    MAREY_TRY(marey_table_create("idle", idle_columns, MAREY__COUNT_OF(idle_columns), &table));
    fill_idle(table, reasons);
    const struct marey__text_view view = {
        .table = table, .options = *options, .n_rows = marey_table_n_rows(table)};
    marey_status status = marey_table_status(table);
    if (status == MAREY_OK)
        status = marey__text_draw(&view, out);
    marey_table_destroy(table);
    return status == MAREY_OK ? put_line(&line, out) : status;
}

marey_status marey__idle_draw(const struct marey_breakdown *b,
                              const struct marey_text_options *options, FILE *out)
{
    struct reasons reasons = {0};
    const marey_status status = draw_idle(&reasons, b, options, out);
    marey__names_fini(&reasons.names);
    marey__free(reasons.sums);
    return status;
}

/* ---- collectives ---- */

static void put_alignment(struct marey__buf *line, const struct marey_breakdown *b)
{
    marey__buf_put_u64(line, b->n_nodes);
    marey__buf_puts(line, " nodes, aligned to +-");
    marey__text_duration(line, (double)b->clocks_within_ns, NULL);
    marey__buf_puts(line, " by ");
    marey__buf_put_u64(line, b->n_aligned_by);
    marey__buf_puts(line,
                    b->clocks_drift ? " collectives; clocks drifted meanwhile" : " collectives");
}

marey_status marey__collectives_draw(const struct marey_breakdown *b,
                                     const struct marey_text_options *options, FILE *out)
{
    static const char *const hidden[] = {"bytes", "algorithm_bytes_per_s", "ranks", "partial", NULL};
    static const char *const clocks[] = {
        [MAREY__CLOCKS_APART] = "the clocks of the ranks do not relate, so there is no skew",
        [MAREY__CLOCKS_WALL] = "skew by the time of day of each host, whose clocks are not aligned",
        [MAREY__CLOCKS_ALIGNED] = "skew by clocks of ",
        [MAREY__CLOCKS_SAME] = "skew by the one clock of all",
    };
    const marey_table *table = b->tables[MAREY__BREAKDOWN_COLLECTIVES];
    struct marey__buf line = {0};
    size_t n_matched = 0;
    for (size_t row = 0; row < marey_table_n_rows(table); row++)
        n_matched += marey__cell_of(table, row, "count").as.u64 != 0;
    if (marey_table_n_rows(table) == 0)
        return MAREY_OK;
    if (n_matched == 0) {
        marey__buf_puts(&line, "Collectives are not told as wait and transfer: that takes the same "
                               "ones of two ranks.\n");
        return put_line(&line, out);
    }
    const struct marey__text_view view = {.table = table,
                                          .options = *options,
                                          .n_rows = MAREY__MIN(n_matched, (size_t)MAX_ROWS),
                                          .hide = hidden};
    marey__buf_printf(&line, "collectives: of a rank on average, all calls added up; %s",
                      clocks[b->clocks]);
    if (b->clocks == MAREY__CLOCKS_ALIGNED)
        put_alignment(&line, b);
    MAREY_TRY(put_line(&line, out));
    MAREY_TRY(marey__text_draw(&view, out));
    return put_line(&line, out);
}
