/* Collectives as tables, and notes on them. */
#include <inttypes.h>

#include "analyze/device/internal.h"

#define RATE(name, title) COLUMN(name, title, MAREY_TYPE_F64, MAREY_UNIT_BYTES)

const struct marey_column marey__collective_columns[MAREY__N_COLLECTIVE_COLUMNS] = {
    TEXT("group"),
    TEXT("what"),
    COUNT("count", NULL),
    COLUMN("bytes", NULL, MAREY_TYPE_U64, MAREY_UNIT_BYTES),
    NS("transfer_ns", "transfer"),
    NS("wait_ns", "wait"),
    NS("skew_ns", "skew"),
    RATE("algorithm_bytes_per_s", "bytes/s"),
    RATE("bus_bytes_per_s", "bus bytes/s"),
    COLUMN("slowest_rank", "straggler", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
    SHARE("slowest_share", "in"),
    COUNT("ranks", NULL),
    COUNT("partial", NULL),
};

const struct marey_column marey__collective_rank_columns[MAREY__N_COLLECTIVE_RANK_COLUMNS] = {
    NUMBER("rank"),       TEXT("group"),         COUNT("count", NULL),
    NS("ns", "time"),     NS("wait_ns", "wait"), NS("transfer_ns", "transfer"),
    COUNT("first", NULL), COUNT("last", NULL),   NS("late_ns", "late"),
};

/* ---- rows ---- */

#define GROUP_OF(name) KNOWN((name).len != 0, STRING_N((name).text, (name).len))

static struct marey__cell rate_of(const struct marey__collective_kind *kind, double factor)
{
    return KNOWN(kind->timed_ns != 0 && factor != 0,
                 FINITE((double)kind->timed_bytes / (double)kind->timed_ns * 1e9 * factor));
}

/* "rank 3 (node7)". */
static struct marey__cell slowest_of(const struct marey__collectives *all,
                                     const struct marey__collective_kind *kind, char who[1024])
{
    if (kind->slowest == MAREY__NO_INDEX)
        return NO_CELL;
    const struct marey_process *process = all->members[kind->slowest].process;
    const bool has_rank = process->rank >= 0, has_host = process->host[0] != '\0';
    snprintf(who, 1024, "%s %" PRId64 "%s%s%s", has_rank ? "rank" : "pid",
             has_rank ? process->rank : process->pid, has_host ? " (" : "", process->host,
             has_host ? ")" : "");
    return STRING(who);
}

void marey__collectives_put(marey_table *table, const struct marey__collectives *all)
{
    for (size_t i = 0; i < all->keys.n; i++) {
        const struct marey__collective_kind *kind = &all->kinds[i];
        const bool is_matched = kind->n_matched != 0;
        char who[1024];
        const uint32_t n_ranks = MAREY__MAX(kind->group_size, (uint32_t)kind->n_ranks);
        if (kind->is_between_two)
            continue;
        const double skew_ns = (double)kind->skew_ns / (double)MAREY__MAX(kind->n_matched, 1);
        MAREY__PUT_ROW(
            table, GROUP_OF(all->groups.names[kind->group]), STRING(kind->what),
            U64(kind->n_matched), U64(kind->bytes), KNOWN(is_matched, U64(kind->transfer_ns)),
            KNOWN(is_matched, U64((uint64_t)(kind->wait_ns + 0.5))),
            KNOWN(is_matched && all->clocks != MAREY__CLOCKS_APART, U64((uint64_t)(skew_ns + 0.5))),
            rate_of(kind, 1), rate_of(kind, marey__bus_factor(kind->collective, n_ranks)),
            slowest_of(all, kind, who), RATIO(kind->n_slowest, kind->n_matched), U64(kind->n_ranks),
            U64(kind->n_short + kind->n_lone));
    }
    MAREY__SORT_BY(table, "-transfer_ns");
}

void marey__collectives_put_ranks(marey_table *table, const struct marey__collectives *all)
{
    const bool has_clocks = all->clocks != MAREY__CLOCKS_APART;
    for (size_t i = 0; i < all->n_sums; i++) {
        const struct marey__member_sum *sum = &all->sums[i];
        const bool is_matched = sum->n_matched != 0;
        MAREY__PUT_ROW(table, RANK_OF(all->members[sum->member].process->rank),
                       GROUP_OF(all->groups.names[sum->group]), U64(sum->n_calls), U64(sum->ns),
                       KNOWN(is_matched, U64(sum->wait_ns)), KNOWN(is_matched, U64(sum->transfer_ns)),
                       KNOWN(is_matched && has_clocks, U64(sum->n_first)),
                       KNOWN(is_matched, U64(sum->n_last)),
                       KNOWN(is_matched && has_clocks, U64(sum->late_ns)));
    }
}

/* ---- notes ---- */

static void warn_of_kind(marey_table *table, const struct marey__collectives *all,
                         const struct marey__collective_kind *kind)
{
    const struct marey__name *const group = &all->groups.names[kind->group];
    const uint64_t n_partial = kind->n_short + kind->n_lone;
    char name[256]; /* "all_reduce of group 0 [0, 1]" */
    snprintf(name, sizeof name, "%s%s%.*s", kind->what, group->len != 0 ? " of group " : "",
             (int)MAREY__MIN(group->len, (size_t)60), group->text);
    if (kind->n_apart != 0)
        marey__put_note(table,
                        "%s: %" PRIu64 " of %" PRIu64
                        " do not overlap in time over all ranks, so calls are missing in the trace "
                        "or clocks differ: its wait, transfer and skew are doubtful.",
                        name, kind->n_apart, kind->n_matched);
    if (kind->n_matched != 0 && n_partial != 0)
        marey__put_note(table, "%s: %" PRIu64 " were found on some ranks only.", name, n_partial);
    if (kind->n_matched != 0 && kind->group_size > kind->n_ranks)
        marey__put_note(table,
                        "%s: %" PRIu64 " of its %" PRIu32
                        " ranks are here; a missing rank may have been waited for, so transfer is "
                        "at most what is shown.",
                        name, kind->n_ranks, kind->group_size);
}

void marey__collectives_put_warnings(marey_table *table, const struct marey__collectives *all)
{
    enum { MAX_KINDS = 8 };
    uint64_t n_between_two = 0, n_reported = 0, n_more = 0;
    for (size_t i = 0; i < all->n_sums; i++)
        n_between_two += all->sums[i].n_between_two;
    for (size_t i = 0; i < all->keys.n; i++) {
        const struct marey__collective_kind *kind = &all->kinds[i];
        const size_t before = marey_table_n_rows(table);
        if (kind->is_between_two)
            continue;
        if (n_reported < MAX_KINDS)
            warn_of_kind(table, all, kind);
        else
            n_more += kind->n_apart != 0;
        n_reported += marey_table_n_rows(table) != before;
    }
    if (n_more != 0)
        marey__put_note(table, "%" PRIu64 " more collectives are doubtful in the same way.", n_more);
    if (n_between_two != 0)
        marey__put_note(table,
                        "%" PRIu64 " sends and receives are in the times of ranks, but are not "
                        "matched: their waits are unknown.",
                        n_between_two);
}
