/* itwinai's fractions for a terminal and as JSON, never without what is wrong with them. */
#include <inttypes.h>
#include <string.h>

#include "present/draw/out.h"
#include "present/draw/present_internal.h"
#include <marey/legacy.h>

enum { MAX_ROWS = 40, MAX_SENTENCES = 3 };

static const char cannot_be_corrected[] = "files of averages do not say which rows are of a device "
                                          "and which of the host, so what counts twice "
                                          "in them cannot be taken out: that takes the trace";

/* What is to be said, one sentence each; how many. The last may lie in `room`. */
static size_t list_sentences(const struct marey_legacy_source *source, char *room, size_t size,
                             const char *sentences[MAX_SENTENCES])
{
    size_t n = 0;
    sentences[n++] = marey_legacy_warning();
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

static marey_status put_text(struct marey__buf *line, const marey_table *legacy,
                             const struct marey_legacy_source *source,
                             const struct marey_text_options *options, FILE *out)
{
    const char *sentences[MAX_SENTENCES];
    char room[128];
    const size_t n_sentences = list_sentences(source, room, sizeof room, sentences),
                 n = marey_table_n_rows(legacy), n_drawn = MAREY__MIN(n, (size_t)MAX_ROWS);
    const struct marey__text_view view = {.table = legacy, .options = *options, .n_rows = n_drawn};
    marey__buf_puts(line, "legacy\n");
    MAREY_TRY(marey__buf_to_stream(line, out));
    MAREY_TRY(marey__text_draw(&view, out));
    if (n > n_drawn)
        marey__buf_printf(line, "... and %zu more; --json has them\n", n - n_drawn);
    for (size_t i = 0; i < n_sentences; i++)
        marey__buf_printf(line, "note: %s\n", sentences[i]);
    return marey__buf_to_stream(line, out);
}

marey_status marey_legacy_text(const marey_table *legacy, const struct marey_legacy_source *source,
                               const struct marey_text_options *options, FILE *out)
{
    static const struct marey_text_options defaults;
    struct marey__buf line = {0};
    const marey_status status =
        put_text(&line, legacy, source, options != NULL ? options : &defaults, out);
    marey__buf_fini(&line);
    return status;
}

static marey_status put_json(struct marey__buf *line, const marey_table *legacy,
                             const struct marey_legacy_source *source, FILE *out)
{
    const char *sentences[MAX_SENTENCES];
    char room[128];
    const size_t n = list_sentences(source, room, sizeof room, sentences);
    marey__buf_puts(line, "{\"warnings\": [");
    for (size_t i = 0; i < n; i++) {
        marey__buf_puts(line, i == 0 ? "" : ", ");
        marey__json_put(line, sentences[i], strlen(sentences[i]));
    }
    marey__buf_puts(line, "], \"rows\": ");
    MAREY_TRY(marey__buf_to_stream(line, out));
    MAREY_TRY(marey__json_rows(legacy, marey_table_n_rows(legacy), "  ", out));
    marey__buf_puts(line, "}");
    return marey__buf_to_stream(line, out);
}

marey_status marey_legacy_json(const marey_table *legacy, const struct marey_legacy_source *source,
                               FILE *out)
{
    struct marey__buf line = {0};
    const marey_status status = put_json(&line, legacy, source, out);
    marey__buf_fini(&line);
    return status;
}
