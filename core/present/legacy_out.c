/* itwinai's fractions for a terminal and as JSON, never without what is wrong with them. */
#include <inttypes.h>
#include <string.h>

#include "present/export_internal.h"
#include "present/present_internal.h"
#include <kymo/legacy.h>

enum { MAX_ROWS = 40, MAX_SENTENCES = 3 };

static const char cannot_be_corrected[] = "files of averages do not say which rows are of a device "
                                          "and which of the host, so what counts twice "
                                          "in them cannot be taken out: that takes the trace";

/* What is to be said, one sentence each; how many. The last may lie in `room`. */
static size_t list_sentences(const struct kymo_legacy_source *source, char *room, size_t size,
                             const char *sentences[MAX_SENTENCES])
{
    size_t n = 0;
    sentences[n++] = kymo_legacy_warning();
    if (source == NULL || !source->is_files)
        return n;
    sentences[n++] = cannot_be_corrected;
    if (source->n_dropped != 0) {
        snprintf(room, size,
                 "%" PRIu64 " rows without a strategy, a number of GPUs or a time are left out",
                 source->n_dropped);
        sentences[n++] = room;
    }
    return n;
}

static kymo_status put_text(struct kymo__buf *line, const kymo_table *legacy,
                            const struct kymo_legacy_source *source,
                            const struct kymo_text_options *options, FILE *out)
{
    const char *sentences[MAX_SENTENCES];
    char room[128];
    const size_t n_sentences = list_sentences(source, room, sizeof room, sentences),
                 n = kymo_table_n_rows(legacy), n_drawn = KYMO__MIN(n, (size_t)MAX_ROWS);
    const struct kymo__text_view view = {.table = legacy, .options = *options, .n_rows = n_drawn};
    kymo__buf_puts(line, "legacy\n");
    KYMO_TRY(kymo__buf_to_stream(line, out));
    KYMO_TRY(kymo__text_draw(&view, out));
    if (n > n_drawn)
        kymo__buf_printf(line, "... and %zu more; --json has them\n", n - n_drawn);
    for (size_t i = 0; i < n_sentences; i++)
        kymo__buf_printf(line, "note: %s\n", sentences[i]);
    return kymo__buf_to_stream(line, out);
}

kymo_status kymo_legacy_text(const kymo_table *legacy, const struct kymo_legacy_source *source,
                             const struct kymo_text_options *options, FILE *out)
{
    static const struct kymo_text_options defaults;
    struct kymo__buf line = {0};
    const kymo_status status =
        put_text(&line, legacy, source, options != NULL ? options : &defaults, out);
    kymo__buf_fini(&line);
    return status;
}

static kymo_status put_json(struct kymo__buf *line, const kymo_table *legacy,
                            const struct kymo_legacy_source *source, FILE *out)
{
    const char *sentences[MAX_SENTENCES];
    char room[128];
    const size_t n = list_sentences(source, room, sizeof room, sentences);
    kymo__buf_puts(line, "{\"warnings\": [");
    for (size_t i = 0; i < n; i++) {
        kymo__buf_puts(line, i == 0 ? "" : ", ");
        kymo__json_put(line, sentences[i], strlen(sentences[i]));
    }
    kymo__buf_puts(line, "], \"rows\": ");
    KYMO_TRY(kymo__buf_to_stream(line, out));
    KYMO_TRY(kymo__json_rows(legacy, kymo_table_n_rows(legacy), "  ", out));
    kymo__buf_puts(line, "}");
    return kymo__buf_to_stream(line, out);
}

kymo_status kymo_legacy_json(const kymo_table *legacy, const struct kymo_legacy_source *source,
                             FILE *out)
{
    struct kymo__buf line = {0};
    const kymo_status status = put_json(&line, legacy, source, out);
    kymo__buf_fini(&line);
    return status;
}
