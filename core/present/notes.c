/* Notes of a report below its tables. */
#include "present/present_internal.h"
#include "present/style.h"

kymo_status kymo__lines_put_notes(struct kymo__lines *lines, const kymo_table *notes)
{
    for (size_t row = 0; row < kymo_table_n_rows(notes); row++) {
        const struct kymo_cell text = kymo_table_cell(notes, row, 0);
        kymo__buf_printf(&lines->line, "%snote:%s ", kymo__style(lines, YELLOW),
                         kymo__style(lines, PLAIN));
        kymo__text_put(&lines->line, text.as.text, text.len, 0);
        KYMO_TRY(kymo__lines_end(lines));
    }
    return KYMO_OK;
}

kymo_status kymo__lines_put_notes_apart(struct kymo__lines *lines, const kymo_table *notes)
{
    if (kymo_table_n_rows(notes) != 0)
        KYMO_TRY(kymo__lines_end(lines));
    return kymo__lines_put_notes(lines, notes);
}
