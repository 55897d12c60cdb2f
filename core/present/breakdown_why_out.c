/* For a terminal: why devices were idle, with the operators that had most of it, and the collectives over ranks. */
#include <stdio.h>
#include <string.h>

#include "analyze/breakdown_whole.h"
#include "present/export_internal.h"
#include "present/present_internal.h"

/* Operators named for a reason, letters of a name, and rows of collectives that a screen takes in. */
enum { MAX_OPERATORS = 2, MAX_LETTERS = 32, MAX_ROWS = 20 };

static kymo_status put_line(struct kymo__buf *line, FILE *out)
{
    kymo__buf_puts(line, "\n");
    const kymo_status status = kymo__buf_to_stream(line, out);
    kymo__buf_fini(line);
    return status;
}

/* ---- idle: all devices together ---- */

/* One reason, and its operators by name. */
struct reason {
    uint64_t ns, count;
    uint64_t *by_name; /* the last is that of no operator */
};

struct reasons {
    struct reason list[KYMO__N_IDLE_REASONS];
    struct kymo__names names;
    uint64_t *sums; /* what by_name points into */
    uint64_t ns;
};

static size_t reason_of(const kymo_table *table, size_t row)
{
    const struct kymo_cell id = kymo__cell_of(table, row, "reason");
    size_t i = 0;
    while (i + 1 < KYMO__N_IDLE_REASONS && strcmp(kymo__idle_words[i].id, id.as.text) != 0)
        i++;
    return i;
}

static void add_reasons(struct reasons *reasons, const kymo_table *table)
{
    for (size_t row = 0; row < kymo_table_n_rows(table); row++) {
        struct reason *reason = &reasons->list[reason_of(table, row)];
        const uint64_t ns = kymo__cell_of(table, row, "ns").as.u64;
        reason->ns += ns;
        reason->count += kymo__cell_of(table, row, "count").as.u64;
        reasons->ns += ns;
    }
}

/* Twice over the rows: names get their numbers, then the sums their room. False without memory. */
static bool add_operators(struct reasons *reasons, const kymo_table *table)
{
    struct kymo__names *names = &reasons->names;
    for (size_t row = 0; row < kymo_table_n_rows(table); row++) {
        const struct kymo_cell name = kymo__cell_of(table, row, "operator");
        if (!name.is_null && kymo__names_number(names, name.as.text, name.len) == KYMO__NO_NAME)
            return false;
    }
    reasons->sums = kymo__calloc((names->n + 1) * KYMO__N_IDLE_REASONS, sizeof *reasons->sums);
    if (reasons->sums == NULL)
        return false;
    for (size_t i = 0; i < KYMO__N_IDLE_REASONS; i++)
        reasons->list[i].by_name = reasons->sums + i * (names->n + 1);
    for (size_t row = 0; row < kymo_table_n_rows(table); row++) {
        const struct kymo_cell name = kymo__cell_of(table, row, "operator");
        const size_t number =
            name.is_null ? names->n : kymo__names_number(names, name.as.text, name.len);
        reasons->list[reason_of(table, row)].by_name[number] +=
            kymo__cell_of(table, row, "ns").as.u64;
    }
    return true;
}

/* "aten::copy_ 41 %, forward 22 %"; the sums it names are gone afterwards. */
static void put_operators(struct kymo__buf *text, const struct reasons *reasons, struct reason *reason)
{
    const size_t n = reasons->names.n;
    for (size_t i = 0; i < MAX_OPERATORS; i++) {
        size_t most = n;
        for (size_t name = 0; name < n; name++)
            if (reason->by_name[name] > reason->by_name[most])
                most = name;
        if (reason->by_name[most] == 0)
            return;
        kymo__buf_puts(text, i == 0 ? "" : ", ");
        if (most == n)
            kymo__buf_puts(text, "(no operator)");
        else
            kymo__text_put(text, reasons->names.names[most].text, reasons->names.names[most].len,
                           MAX_LETTERS);
        kymo__buf_puts(text, " ");
        kymo__text_share(text, (double)reason->by_name[most] / (double)reason->ns);
        reason->by_name[most] = 0;
    }
}

static const struct kymo_column idle_columns[] = {
    {"reason", "why idle", KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"count", "gaps", KYMO_TYPE_U64, KYMO_UNIT_COUNT},
    {"ns", "time", KYMO_TYPE_U64, KYMO_UNIT_NS},
    {"share", "of idle", KYMO_TYPE_F64, KYMO_UNIT_SHARE},
    {"operators", "mostly in", KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
};

static void fill_idle(kymo_table *table, struct reasons *reasons)
{
    for (size_t i = 0; i < KYMO__N_IDLE_REASONS; i++) {
        struct reason *reason = &reasons->list[i];
        struct kymo__buf text = {0};
        if (reason->ns == 0)
            continue;
        kymo_table_text(table, kymo__idle_words[i].title, strlen(kymo__idle_words[i].title));
        kymo_table_u64(table, reason->count);
        kymo_table_u64(table, reason->ns);
        kymo_table_f64(table, (double)reason->ns / (double)reasons->ns);
        put_operators(&text, reasons, reason);
        kymo_table_text(table, text.data != NULL ? text.data : "", text.len);
        kymo__buf_fini(&text);
    }
    kymo_table_sort(table, 2, 1);
}

static kymo_status draw_idle(struct reasons *reasons, const struct kymo_breakdown *b,
                             const struct kymo_text_options *options, FILE *out)
{
    struct kymo__buf line = {0};
    kymo_table *table = NULL;
    add_reasons(reasons, b->tables[KYMO__BROKEN_IDLE]);
    if (reasons->ns == 0)
        return KYMO_OK;
    if (!add_operators(reasons, b->tables[KYMO__BROKEN_IDLE_OPERATORS]))
        return kymo__fail(KYMO_ENOMEM, "no memory to show why devices were idle");
    KYMO_TRY(kymo_table_create("idle", idle_columns, KYMO__COUNT_OF(idle_columns), &table));
    fill_idle(table, reasons);
    const struct kymo__text_view view = {
        .table = table, .options = *options, .n_rows = kymo_table_n_rows(table)};
    kymo_status status = kymo_table_status(table);
    if (status == KYMO_OK)
        status = kymo__text_draw(&view, out);
    kymo_table_destroy(table);
    return status == KYMO_OK ? put_line(&line, out) : status;
}

kymo_status kymo__idle_draw(const struct kymo_breakdown *b, const struct kymo_text_options *options,
                            FILE *out)
{
    struct reasons reasons = {0};
    const kymo_status status = draw_idle(&reasons, b, options, out);
    kymo__names_fini(&reasons.names);
    kymo__free(reasons.sums);
    return status;
}

/* ---- collectives ---- */

static void put_alignment(struct kymo__buf *line, const struct kymo_breakdown *b)
{
    kymo__buf_put_u64(line, b->n_nodes);
    kymo__buf_puts(line, " nodes, aligned to +-");
    kymo__text_duration(line, (double)b->clocks_within_ns, NULL);
    kymo__buf_puts(line, " by ");
    kymo__buf_put_u64(line, b->n_aligned_by);
    kymo__buf_puts(line, b->clocks_drift ? " collectives; clocks drifted meanwhile" : " collectives");
}

kymo_status kymo__collectives_draw(const struct kymo_breakdown *b,
                                   const struct kymo_text_options *options, FILE *out)
{
    static const char *const hidden[] = {"bytes", "algorithm_bytes_per_s", "ranks", "partial", NULL};
    static const char *const clocks[] = {
        [KYMO__CLOCKS_APART] = "the clocks of the ranks do not relate, so there is no skew",
        [KYMO__CLOCKS_WALL] = "skew by the time of day of each host, whose clocks are not aligned",
        [KYMO__CLOCKS_ALIGNED] = "skew by clocks of ",
        [KYMO__CLOCKS_SAME] = "skew by the one clock of all",
    };
    const kymo_table *table = b->tables[KYMO__BROKEN_COLLECTIVES];
    struct kymo__buf line = {0};
    size_t n_matched = 0;
    for (size_t row = 0; row < kymo_table_n_rows(table); row++)
        n_matched += kymo__cell_of(table, row, "count").as.u64 != 0;
    if (kymo_table_n_rows(table) == 0)
        return KYMO_OK;
    if (n_matched == 0) {
        kymo__buf_puts(&line, "Collectives are not told as wait and transfer: that takes the same "
                              "ones of two ranks.\n");
        return put_line(&line, out);
    }
    const struct kymo__text_view view = {.table = table,
                                         .options = *options,
                                         .n_rows = KYMO__MIN(n_matched, (size_t)MAX_ROWS),
                                         .hide = hidden};
    kymo__buf_printf(&line, "collectives: of a rank on average, all calls added up; %s",
                     clocks[b->clocks]);
    if (b->clocks == KYMO__CLOCKS_ALIGNED)
        put_alignment(&line, b);
    KYMO_TRY(put_line(&line, out));
    KYMO_TRY(kymo__text_draw(&view, out));
    return put_line(&line, out);
}
