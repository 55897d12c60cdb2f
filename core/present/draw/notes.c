/* Notes of a report below its tables. */
#include "present/draw/internal.h"

marey_status marey__lines_put_notes(struct marey__lines *lines, const marey_table *notes)
{
    for (size_t row = 0; row < marey_table_n_rows(notes); row++) {
        const struct marey_cell text = marey_table_cell(notes, row, 0);
        marey__buf_printf(&lines->line, "%snote:%s ", marey__style(lines, YELLOW),
                          marey__style(lines, PLAIN));
        marey__text_put(&lines->line, text.as.text, text.len, 0);
        MAREY_TRY(marey__lines_end(lines));
    }
    return MAREY_OK;
}

marey_status marey__lines_put_notes_apart(struct marey__lines *lines, const marey_table *notes)
{
    if (marey_table_n_rows(notes) != 0)
        MAREY_TRY(marey__lines_end(lines));
    return marey__lines_put_notes(lines, notes);
}
