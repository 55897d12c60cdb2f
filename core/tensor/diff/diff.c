/* Creating, querying and closing diffs. */
#include <assert.h>
#include <string.h>

#include "tensor/diff/internal.h"

const char *marey_diff_status_name(enum marey_diff_status status)
{
    static const char *const names[] = {"same",  "close", "noise", "unknown", "different",
                                        "dtype", "shape", "kind",  "missing", "extra"};
    static_assert(MAREY__COUNT_OF(names) == MAREY_N_DIFF_STATUSES, "one name each");
    return (unsigned)status < MAREY_N_DIFF_STATUSES ? names[status] : "?";
}

marey_status marey__diff_create(const struct marey_diff_options *options, struct marey_diff **out)
{
    struct marey_diff *diff = marey__calloc(1, sizeof *diff);
    MAREY__TRY_MEMORY(diff != NULL);
    if (options != NULL)
        diff->options = *options;
    marey_status status = MAREY_OK;
    for (size_t i = 0; status == MAREY_OK && i < MAREY__N_DIFF_TABLES; i++)
        status =
            marey_table_create(marey__diff_definitions[i].name, marey__diff_definitions[i].columns,
                               marey__diff_definitions[i].n_columns, &diff->tables[i]);
    if (status == MAREY_OK)
        *out = diff;
    else
        marey_diff_close(diff);
    return status;
}

void marey_diff_close(marey_diff *diff)
{
    if (diff == NULL)
        return;
    for (size_t i = 0; i < diff->n; i++)
        marey__free(diff->results[i].details);
    marey__free(diff->results);
    for (size_t i = 0; i < MAREY__N_DIFF_TABLES; i++)
        marey_table_destroy(diff->tables[i]);
    marey__arena_fini(&diff->texts);
    marey__free(diff);
}

void marey__diff_index_put(struct marey__buf *out, const struct marey__diff_details *details,
                           uint64_t i)
{
    uint64_t places[MAREY_MAX_RANK] = {0};
    marey__index_of(details->sizes, details->n_dims, i, places);
    marey__buf_puts(out, "[");
    for (uint32_t d = 0; d < details->n_dims; d++)
        marey__buf_printf(out, "%s%llu", d == 0 ? "" : ",", (unsigned long long)places[d]);
    marey__buf_puts(out, "]");
}

/* ---- result ---- */

bool marey__diff_counts(const struct marey_diff *diff, enum marey_diff_status status)
{
    if (status == MAREY_DIFF_MISSING)
        return !diff->options.allow_missing;
    if (status == MAREY_DIFF_EXTRA)
        return !diff->options.allow_extra;
    return status >= MAREY_DIFF_DIFFERENT;
}

int marey_diff_is_same(const marey_diff *diff)
{
    for (int status = 0; status < MAREY_N_DIFF_STATUSES; status++)
        if (diff->n_by_status[status] != 0 && marey__diff_counts(diff, (enum marey_diff_status)status))
            return 0;
    return 1;
}

int marey_diff_is_partial(const marey_diff *diff)
{
    return diff->n_by_status[MAREY_DIFF_UNKNOWN] != 0;
}

marey_table *marey_diff_table(marey_diff *diff, const char *name)
{
    for (size_t i = 0; i < MAREY__N_DIFF_TABLES; i++)
        if (diff->tables[i] != NULL && strcmp(marey_table_name(diff->tables[i]), name) == 0)
            return diff->tables[i];
    return NULL;
}
