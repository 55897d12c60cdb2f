/* Diffs: made, asked and closed. */
#include <assert.h>

#include "base/base_internal.h"
#include <kymo/diff.h>

const char *kymo_diff_status_name(enum kymo_diff_status status)
{
    static const char *const names[] = {"same",  "close", "noise", "unknown", "different",
                                        "dtype", "shape", "kind",  "missing", "extra"};
    static_assert(KYMO__COUNT_OF(names) == KYMO_N_DIFF_STATUSES, "one name each");
    return (unsigned)status < KYMO_N_DIFF_STATUSES ? names[status] : "?";
}

static kymo_status not_yet(void)
{
    return kymo__fail(KYMO_EUNAVAILABLE, "dumps cannot be compared yet");
}

kymo_status kymo_diff_open(const char *a, const char *b, const struct kymo_diff_options *options,
                           kymo_diff **out)
{
    (void)a;
    (void)b;
    (void)options;
    (void)out;
    return not_yet();
}

kymo_status kymo_diff_ranks(const char *dump, const struct kymo_diff_options *options, kymo_diff **out)
{
    (void)dump;
    (void)options;
    (void)out;
    return not_yet();
}

kymo_status kymo_diff_pending(const char *dir, uint64_t step,
                              const struct kymo_diff_pending_options *options, kymo_diff **out)
{
    (void)dir;
    (void)step;
    (void)options;
    (void)out;
    return not_yet();
}

kymo_status kymo_diff_pending_text(kymo_diff *diff, FILE *out)
{
    (void)diff;
    (void)out;
    return not_yet();
}

void kymo_diff_close(kymo_diff *diff)
{
    (void)diff;
}

int kymo_diff_is_same(const kymo_diff *diff)
{
    (void)diff;
    return 0;
}

int kymo_diff_is_partial(const kymo_diff *diff)
{
    (void)diff;
    return 0;
}

kymo_table *kymo_diff_table(kymo_diff *diff, const char *name)
{
    (void)diff;
    (void)name;
    return NULL;
}
