/* Collectives as tables, and what is to be said of them. */
#include <inttypes.h>
#include <string.h>

#include "analyze/collectives.h"

const struct kymo_column kymo__collective_columns[KYMO__N_COLLECTIVE_COLUMNS] = {
    {"group", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"what", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    KYMO__COUNT_COLUMN,
    {"bytes", NULL, KYMO_TYPE_U64, KYMO_UNIT_BYTES},
    KYMO__NS_COLUMN("transfer_ns", "transfer"),
    KYMO__NS_COLUMN("wait_ns", "wait"),
    KYMO__NS_COLUMN("skew_ns", "skew"),
    {"algorithm_bytes_per_s", "bytes/s", KYMO_TYPE_F64, KYMO_UNIT_BYTES},
    {"bus_bytes_per_s", "bus bytes/s", KYMO_TYPE_F64, KYMO_UNIT_BYTES},
    {"slowest_rank", "comes last", KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"slowest_share", "in", KYMO_TYPE_F64, KYMO_UNIT_SHARE},
    KYMO__TALLY_COLUMN("ranks", NULL),
    KYMO__TALLY_COLUMN("partial", NULL),
};

const struct kymo_column kymo__collective_rank_columns[KYMO__N_COLLECTIVE_RANK_COLUMNS] = {
    KYMO__RANK_COLUMN,
    {"group", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    KYMO__COUNT_COLUMN,
    KYMO__NS_COLUMN("ns", "time"),
    KYMO__NS_COLUMN("wait_ns", "wait"),
    KYMO__NS_COLUMN("transfer_ns", "transfer"),
    KYMO__TALLY_COLUMN("first", NULL),
    KYMO__TALLY_COLUMN("last", NULL),
    KYMO__NS_COLUMN("late_ns", "late"),
};

/* ---- rows ---- */

static void put_group(kymo_table *table, const struct kymo__collectives *all, uint32_t group)
{
    const struct kymo__name *name = &all->groups.names[group];
    if (name->len == 0)
        kymo_table_null(table);
    else
        kymo_table_text(table, name->text, name->len);
}

static void put_rate(kymo_table *table, const struct kymo__collective_kind *kind, double factor)
{
    if (kind->timed_ns == 0 || factor == 0)
        kymo_table_null(table);
    else
        kymo_table_f64(table, (double)kind->timed_bytes / (double)kind->timed_ns * 1e9 * factor);
}

/* "rank 3 (node7)". */
static void put_slowest(kymo_table *table, const struct kymo__collectives *all,
                        const struct kymo__collective_kind *kind)
{
    if (kind->slowest == KYMO__NO_INDEX) {
        kymo_table_null(table);
        return;
    }
    const struct kymo_process *process = all->members[kind->slowest].process;
    struct kymo__buf text = {0};
    if (process->rank >= 0)
        kymo__buf_printf(&text, "rank %" PRId32, process->rank);
    else
        kymo__buf_printf(&text, "pid %" PRId64, process->pid);
    if (process->host[0] != '\0')
        kymo__buf_printf(&text, " (%s)", process->host);
    if (text.failed)
        kymo_table_null(table);
    else
        kymo_table_text(table, text.data, text.len);
    kymo__buf_fini(&text);
}

static void put_known_ns(kymo_table *table, double ns, bool is_known)
{
    if (is_known)
        kymo_table_u64(table, (uint64_t)(ns + 0.5));
    else
        kymo_table_null(table);
}

void kymo__collectives_put(kymo_table *table, const struct kymo__collectives *all)
{
    for (size_t i = 0; i < all->keys.n; i++) {
        const struct kymo__collective_kind *kind = &all->kinds[i];
        const bool is_matched = kind->n_matched != 0;
        const uint32_t n_ranks = KYMO__MAX(kind->group_size, (uint32_t)kind->n_ranks);
        if (kind->is_between_two)
            continue;
        put_group(table, all, kind->group);
        kymo__put_string(table, kind->what);
        kymo_table_u64(table, kind->n_matched);
        kymo_table_u64(table, kind->bytes);
        put_known_ns(table, (double)kind->transfer_ns, is_matched);
        put_known_ns(table, kind->wait_ns, is_matched);
        put_known_ns(table, (double)kind->skew_ns / (double)KYMO__MAX(kind->n_matched, 1),
                     is_matched && all->clocks != KYMO__CLOCKS_APART);
        put_rate(table, kind, 1);
        put_rate(table, kind, kymo__bus_factor(kind->collective, n_ranks));
        put_slowest(table, all, kind);
        kymo__put_share(table, kind->n_slowest, kind->n_matched);
        kymo_table_u64(table, kind->n_ranks);
        kymo_table_u64(table, kind->n_short + kind->n_lone);
    }
    kymo_table_sort(table, (size_t)kymo_table_find(table, "transfer_ns"), 1);
}

void kymo__collectives_put_ranks(kymo_table *table, const struct kymo__collectives *all)
{
    const bool has_clocks = all->clocks != KYMO__CLOCKS_APART;
    for (size_t i = 0; i < all->n_sums; i++) {
        const struct kymo__member_sum *sum = &all->sums[i];
        const struct kymo_process *process = all->members[sum->member].process;
        const bool is_matched = sum->n_matched != 0;
        if (process->rank < 0)
            kymo_table_null(table);
        else
            kymo_table_i64(table, process->rank);
        put_group(table, all, sum->group);
        kymo_table_u64(table, sum->n_calls);
        kymo_table_u64(table, sum->ns);
        put_known_ns(table, (double)sum->wait_ns, is_matched);
        put_known_ns(table, (double)sum->transfer_ns, is_matched);
        put_known_ns(table, (double)sum->n_first, is_matched && has_clocks);
        put_known_ns(table, (double)sum->n_last, is_matched);
        put_known_ns(table, (double)sum->late_ns, is_matched && has_clocks);
    }
}

/* ---- sentences ---- */

static void put_sentence(kymo_table *table, struct kymo__buf *text)
{
    if (!text->failed)
        kymo_table_text(table, text->data, text->len);
    kymo__buf_fini(text);
}

/* "all_reduce of group 0 [0, 1]" */
static void put_kind(struct kymo__buf *text, const struct kymo__collectives *all,
                     const struct kymo__collective_kind *kind)
{
    const struct kymo__name *group = &all->groups.names[kind->group];
    kymo__buf_puts(text, kind->what);
    if (group->len != 0)
        kymo__buf_printf(text, " of group %.*s", (int)KYMO__MIN(group->len, (size_t)60), group->text);
}

static void warn_of_kind(kymo_table *table, const struct kymo__collectives *all,
                         const struct kymo__collective_kind *kind)
{
    if (kind->n_apart != 0) {
        struct kymo__buf text = {0};
        put_kind(&text, all, kind);
        kymo__buf_printf(&text,
                         ": %" PRIu64 " of %" PRIu64
                         " do not overlap in time over all ranks, so that calls are missing in "
                         "the trace or clocks differ: its wait, transfer and skew are doubtful.",
                         kind->n_apart, kind->n_matched);
        put_sentence(table, &text);
    }
    if (kind->n_matched != 0 && kind->n_short + kind->n_lone != 0) {
        struct kymo__buf text = {0};
        put_kind(&text, all, kind);
        kymo__buf_printf(&text, ": %" PRIu64 " are on some ranks only.",
                         kind->n_short + kind->n_lone);
        put_sentence(table, &text);
    }
    if (kind->n_matched != 0 && kind->group_size > kind->n_ranks) {
        struct kymo__buf text = {0};
        put_kind(&text, all, kind);
        kymo__buf_printf(
            &text,
            ": %" PRIu64 " of its %" PRIu32
            " ranks are here; a rank that is not may have been waited for, so transfer "
            "is at most what is shown.",
            kind->n_ranks, kind->group_size);
        put_sentence(table, &text);
    }
}

void kymo__collectives_put_warnings(kymo_table *table, const struct kymo__collectives *all)
{
    enum { MAX_KINDS = 8 };
    uint64_t n_between_two = 0, n_told = 0, n_more = 0;
    for (size_t i = 0; i < all->n_sums; i++)
        n_between_two += all->sums[i].n_between_two;
    for (size_t i = 0; i < all->keys.n; i++) {
        const struct kymo__collective_kind *kind = &all->kinds[i];
        const size_t before = kymo_table_n_rows(table);
        if (kind->is_between_two)
            continue;
        if (n_told < MAX_KINDS)
            warn_of_kind(table, all, kind);
        else
            n_more += kind->n_apart != 0;
        n_told += kymo_table_n_rows(table) != before;
    }
    struct kymo__buf text = {0};
    if (n_more != 0) {
        kymo__buf_printf(&text, "%" PRIu64 " more collectives are doubtful in the same way.", n_more);
        put_sentence(table, &text);
    }
    if (n_between_two != 0) {
        text = (struct kymo__buf){0};
        kymo__buf_printf(&text,
                         "%" PRIu64 " sends and receives are in the times of ranks, but are not "
                         "matched: who waits for whom in them is not told.",
                         n_between_two);
        put_sentence(table, &text);
    }
}
