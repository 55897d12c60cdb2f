/* Cells and rows common to the tables of many analyses. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/internal.h"

void marey__put_string(marey_table *table, const char *text)
{
    marey_table_text(table, text, strlen(text));
}

struct marey__cell marey__finite_cell(double value)
{
    return KNOWN(isfinite(value), F64(value));
}

struct marey__cell marey__positive_cell(double value)
{
    return KNOWN(value > 0, FINITE(value));
}

void marey__put_cells(marey_table *table, const struct marey__cell *cells, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct marey__cell *const cell = &cells[i];
        if (cell->type == MAREY_TYPE_TEXT && cell->text != NULL)
            marey_table_text(table, cell->text, cell->len);
        else if (cell->type == MAREY_TYPE_U64)
            marey_table_u64(table, cell->u64);
        else if (cell->type == MAREY_TYPE_I64)
            marey_table_i64(table, cell->i64);
        else if (cell->type == MAREY_TYPE_F64)
            marey_table_f64(table, cell->f64);
        else if (cell->type == MAREY_TYPE_BOOL)
            marey_table_bool(table, cell->u64 != 0);
        else
            marey_table_null(table);
    }
}

void marey__put_note(marey_table *table, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    marey__put_string(table, text);
}

void marey__put_real(marey_table *table, double value, bool is_known)
{
    if (is_known && isfinite(value))
        marey_table_f64(table, value);
    else
        marey_table_null(table);
}

void marey__put_u64_or_null(marey_table *table, uint64_t value, bool is_known)
{
    if (is_known)
        marey_table_u64(table, value);
    else
        marey_table_null(table);
}

void marey__put_rank(marey_table *table, int64_t rank)
{
    if (rank >= 0)
        marey_table_i64(table, rank);
    else
        marey_table_null(table);
}

void marey__put_process(marey_table *table, const struct marey_process *process)
{
    marey__put_rank(table, process->rank);
    marey_table_i64(table, process->pid);
}

void marey__put_share(marey_table *table, uint64_t part_ns, uint64_t whole_ns)
{
    marey__put_real(table, (double)part_ns / (double)whole_ns, whole_ns != 0);
}

void marey__sort_by(marey_table *table, const char *const *columns, size_t n)
{
    while (n-- > 0) {
        const bool is_reversed = columns[n][0] == '-';
        marey_table_sort(table, (size_t)marey_table_find(table, columns[n] + is_reversed),
                         is_reversed);
    }
}

static const struct marey__table_order *find_order(const struct marey__table_order *orders,
                                                   const char *name)
{
    while (orders->name != NULL && strcmp(orders->name, name) != 0)
        orders++;
    return orders;
}

bool marey__table_order_is_known(const struct marey__table_order *orders, const char *how)
{
    return find_order(orders, how + (how[0] == '-'))->name != NULL;
}

void marey__table_order(marey_table *table, const struct marey__table_order *orders, const char *how)
{
    const bool is_reversed = how[0] == '-';
    const struct marey__table_order *const order = find_order(orders, how + is_reversed);
    for (size_t i = 0; i < MAREY__COUNT_OF(order->columns) && order->columns[i] != NULL; i++) {
        const int column = marey_table_find(table, order->columns[i]);
        if (column < 0)
            continue;
        const bool is_text = marey_table_column(table, (size_t)column)->type == MAREY_TYPE_TEXT;
        marey_table_sort(table, (size_t)column, is_text == is_reversed);
        return;
    }
}

const struct marey_column marey__warning_columns[1] = {
    {"text", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE}};

void marey__put_notes(marey_table *table, const struct marey_process *process, bool is_alone)
{
    for (const char *line = process->note; *line != '\0';) {
        const size_t len = strcspn(line, "\n");
        struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
        if (!is_alone)
            marey__buf_printf(&text, "Process %" PRId64 ": ", process->pid);
        marey__buf_put(&text, line, len);
        if (len != 0)
            marey_table_text(table, text.failed ? line : text.data, text.failed ? len : text.len);
        line += len + (line[len] == '\n');
    }
}

bool marey__has_streams(const marey_recording *recording, size_t process)
{
    const uint32_t n = marey_recording_process(recording, process)->n_lanes;
    for (uint32_t i = 0; i < n; i++)
        if (marey_recording_lane(recording, process, i)->kind == MAREY_LANE_GPU)
            return true;
    return false;
}

char *marey__recordings_title(marey_recording *const *recordings, size_t n)
{
    struct marey__buf title = {0};
    if (n > 0)
        marey__buf_puts(&title, marey_recording_name(recordings[0]));
    if (n == 2)
        marey__buf_printf(&title, " and %s", marey_recording_name(recordings[1]));
    else if (n > 2)
        marey__buf_printf(&title, " and %zu more", n - 1);
    marey__buf_put(&title, "", 1);
    if (title.failed)
        marey__buf_fini(&title);
    return title.data;
}
