/* Diffs: made, asked and closed. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "diff/diff_internal.h"

const char *kymo_diff_status_name(enum kymo_diff_status status)
{
    static const char *const names[] = {"same",  "close", "noise", "unknown", "different",
                                        "dtype", "shape", "kind",  "missing", "extra"};
    static_assert(KYMO__COUNT_OF(names) == KYMO_N_DIFF_STATUSES, "one name each");
    return (unsigned)status < KYMO_N_DIFF_STATUSES ? names[status] : "?";
}

kymo_status kymo__diff_create(const struct kymo_diff_options *options, struct kymo_diff **out)
{
    static const struct kymo_column text = {"text", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE};
    struct kymo_diff *diff = kymo__calloc(1, sizeof *diff);
    if (diff == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory to compare dumps");
    if (options != NULL)
        diff->options = *options;
    const kymo_status status =
        kymo_table_create("warnings", &text, 1, &diff->tables[KYMO__DIFF_WARNINGS]);
    if (status != KYMO_OK) {
        kymo_diff_close(diff);
        return status;
    }
    *out = diff;
    return KYMO_OK;
}

void kymo_diff_close(kymo_diff *diff)
{
    if (diff == NULL)
        return;
    for (size_t i = 0; i < diff->n; i++)
        kymo__free(diff->results[i].details);
    kymo__free(diff->results);
    for (size_t i = 0; i < KYMO__N_DIFF_TABLES; i++)
        kymo_table_destroy(diff->tables[i]);
    kymo__arena_fini(&diff->texts);
    kymo__free(diff);
}

void kymo__diff_warn(struct kymo_diff *diff, const char *fmt, ...)
{
    char sentence[1024];
    va_list args;
    va_start(args, fmt);
    const int len = vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    kymo_table_text(diff->tables[KYMO__DIFF_WARNINGS], sentence,
                    KYMO__MIN((size_t)KYMO__MAX(len, 0), sizeof sentence - 1));
}

const char *kymo__diff_text(struct kymo_diff *diff, const char *text)
{
    return kymo__arena_text(&diff->texts, text, strlen(text));
}

void kymo__diff_index_put(struct kymo__buf *out, const struct kymo__diff_details *details, uint64_t i)
{
    uint64_t places[KYMO_MAX_RANK];
    for (uint32_t d = details->n_dims; d-- > 0;) {
        const uint64_t size = (uint64_t)KYMO__MAX(details->sizes[d], 1);
        places[d] = i % size;
        i /= size;
    }
    kymo__buf_puts(out, "[");
    for (uint32_t d = 0; d < details->n_dims; d++)
        kymo__buf_printf(out, "%s%llu", d == 0 ? "" : ",", (unsigned long long)places[d]);
    kymo__buf_puts(out, "]");
}

/* ---- the answer ---- */

bool kymo__diff_counts(const struct kymo_diff *diff, enum kymo_diff_status status)
{
    if (status == KYMO_DIFF_MISSING)
        return !diff->options.allow_missing;
    if (status == KYMO_DIFF_EXTRA)
        return !diff->options.allow_extra;
    return status >= KYMO_DIFF_DIFFERENT;
}

int kymo_diff_is_same(const kymo_diff *diff)
{
    for (int status = 0; status < KYMO_N_DIFF_STATUSES; status++)
        if (diff->n_by_status[status] != 0 && kymo__diff_counts(diff, (enum kymo_diff_status)status))
            return 0;
    return 1;
}

int kymo_diff_is_partial(const kymo_diff *diff)
{
    return diff->n_by_status[KYMO_DIFF_UNKNOWN] != 0;
}

kymo_table *kymo_diff_table(kymo_diff *diff, const char *name)
{
    for (size_t i = 0; i < KYMO__N_DIFF_TABLES; i++)
        if (diff->tables[i] != NULL && strcmp(kymo_table_name(diff->tables[i]), name) == 0)
            return diff->tables[i];
    return NULL;
}
