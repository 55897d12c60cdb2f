/* Collectives as tables, and what is to be said of them. */
#include <inttypes.h>
#include <string.h>

#include "analyze/device/internal.h"

const struct marey_column marey__collective_columns[MAREY__N_COLLECTIVE_COLUMNS] = {
    {"group", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"what", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    MAREY__COUNT_COLUMN,
    {"bytes", NULL, MAREY_TYPE_U64, MAREY_UNIT_BYTES},
    MAREY__NS_COLUMN("transfer_ns", "transfer"),
    MAREY__NS_COLUMN("wait_ns", "wait"),
    MAREY__NS_COLUMN("skew_ns", "skew"),
    {"algorithm_bytes_per_s", "bytes/s", MAREY_TYPE_F64, MAREY_UNIT_BYTES},
    {"bus_bytes_per_s", "bus bytes/s", MAREY_TYPE_F64, MAREY_UNIT_BYTES},
    {"slowest_rank", "comes last", MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"slowest_share", "in", MAREY_TYPE_F64, MAREY_UNIT_SHARE},
    MAREY__TALLY_COLUMN("ranks", NULL),
    MAREY__TALLY_COLUMN("partial", NULL),
};

const struct marey_column marey__collective_rank_columns[MAREY__N_COLLECTIVE_RANK_COLUMNS] = {
    MAREY__RANK_COLUMN,
    {"group", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    MAREY__COUNT_COLUMN,
    MAREY__NS_COLUMN("ns", "time"),
    MAREY__NS_COLUMN("wait_ns", "wait"),
    MAREY__NS_COLUMN("transfer_ns", "transfer"),
    MAREY__TALLY_COLUMN("first", NULL),
    MAREY__TALLY_COLUMN("last", NULL),
    MAREY__NS_COLUMN("late_ns", "late"),
};

/* ---- rows ---- */

static void put_group(marey_table *table, const struct marey__collectives *all, uint32_t group)
{
    const struct marey__name *name = &all->groups.names[group];
    if (name->len == 0)
        marey_table_null(table);
    else
        marey_table_text(table, name->text, name->len);
}

static void put_rate(marey_table *table, const struct marey__collective_kind *kind, double factor)
{
    if (kind->timed_ns == 0 || factor == 0)
        marey_table_null(table);
    else
        marey_table_f64(table, (double)kind->timed_bytes / (double)kind->timed_ns * 1e9 * factor);
}

/* "rank 3 (node7)". */
static void put_slowest(marey_table *table, const struct marey__collectives *all,
                        const struct marey__collective_kind *kind)
{
    if (kind->slowest == MAREY__NO_INDEX) {
        marey_table_null(table);
        return;
    }
    const struct marey_process *process = all->members[kind->slowest].process;
    struct marey__buf text = {0};
    if (process->rank >= 0)
        marey__buf_printf(&text, "rank %" PRId32, process->rank);
    else
        marey__buf_printf(&text, "pid %" PRId64, process->pid);
    if (process->host[0] != '\0')
        marey__buf_printf(&text, " (%s)", process->host);
    if (text.failed)
        marey_table_null(table);
    else
        marey_table_text(table, text.data, text.len);
    marey__buf_fini(&text);
}

static void put_known_ns(marey_table *table, double ns, bool is_known)
{
    if (is_known)
        marey_table_u64(table, (uint64_t)(ns + 0.5));
    else
        marey_table_null(table);
}

void marey__collectives_put(marey_table *table, const struct marey__collectives *all)
{
    for (size_t i = 0; i < all->keys.n; i++) {
        const struct marey__collective_kind *kind = &all->kinds[i];
        const bool is_matched = kind->n_matched != 0;
        const uint32_t n_ranks = MAREY__MAX(kind->group_size, (uint32_t)kind->n_ranks);
        if (kind->is_between_two)
            continue;
        put_group(table, all, kind->group);
        marey__put_string(table, kind->what);
        marey_table_u64(table, kind->n_matched);
        marey_table_u64(table, kind->bytes);
        put_known_ns(table, (double)kind->transfer_ns, is_matched);
        put_known_ns(table, kind->wait_ns, is_matched);
        put_known_ns(table, (double)kind->skew_ns / (double)MAREY__MAX(kind->n_matched, 1),
                     is_matched && all->clocks != MAREY__CLOCKS_APART);
        put_rate(table, kind, 1);
        put_rate(table, kind, marey__bus_factor(kind->collective, n_ranks));
        put_slowest(table, all, kind);
        marey__put_share(table, kind->n_slowest, kind->n_matched);
        marey_table_u64(table, kind->n_ranks);
        marey_table_u64(table, kind->n_short + kind->n_lone);
    }
    marey_table_sort(table, (size_t)marey_table_find(table, "transfer_ns"), 1);
}

void marey__collectives_put_ranks(marey_table *table, const struct marey__collectives *all)
{
    const bool has_clocks = all->clocks != MAREY__CLOCKS_APART;
    for (size_t i = 0; i < all->n_sums; i++) {
        const struct marey__member_sum *sum = &all->sums[i];
        const struct marey_process *process = all->members[sum->member].process;
        const bool is_matched = sum->n_matched != 0;
        if (process->rank < 0)
            marey_table_null(table);
        else
            marey_table_i64(table, process->rank);
        put_group(table, all, sum->group);
        marey_table_u64(table, sum->n_calls);
        marey_table_u64(table, sum->ns);
        put_known_ns(table, (double)sum->wait_ns, is_matched);
        put_known_ns(table, (double)sum->transfer_ns, is_matched);
        put_known_ns(table, (double)sum->n_first, is_matched && has_clocks);
        put_known_ns(table, (double)sum->n_last, is_matched);
        put_known_ns(table, (double)sum->late_ns, is_matched && has_clocks);
    }
}

/* ---- sentences ---- */

static void put_sentence(marey_table *table, struct marey__buf *text)
{
    if (!text->failed)
        marey_table_text(table, text->data, text->len);
    marey__buf_fini(text);
}

/* "all_reduce of group 0 [0, 1]" */
static void put_kind(struct marey__buf *text, const struct marey__collectives *all,
                     const struct marey__collective_kind *kind)
{
    const struct marey__name *group = &all->groups.names[kind->group];
    marey__buf_puts(text, kind->what);
    if (group->len != 0)
        marey__buf_printf(text, " of group %.*s", (int)MAREY__MIN(group->len, (size_t)60),
                          group->text);
}

static void warn_of_kind(marey_table *table, const struct marey__collectives *all,
                         const struct marey__collective_kind *kind)
{
    if (kind->n_apart != 0) {
        struct marey__buf text = {0};
        put_kind(&text, all, kind);
        marey__buf_printf(&text,
                          ": %" PRIu64 " of %" PRIu64
                          " do not overlap in time over all ranks, so that calls are missing in "
                          "the trace or clocks differ: its wait, transfer and skew are doubtful.",
                          kind->n_apart, kind->n_matched);
        put_sentence(table, &text);
    }
    if (kind->n_matched != 0 && kind->n_short + kind->n_lone != 0) {
        struct marey__buf text = {0};
        put_kind(&text, all, kind);
        marey__buf_printf(&text, ": %" PRIu64 " are on some ranks only.",
                          kind->n_short + kind->n_lone);
        put_sentence(table, &text);
    }
    if (kind->n_matched != 0 && kind->group_size > kind->n_ranks) {
        struct marey__buf text = {0};
        put_kind(&text, all, kind);
        marey__buf_printf(
            &text,
            ": %" PRIu64 " of its %" PRIu32
            " ranks are here; a rank that is not may have been waited for, so transfer "
            "is at most what is shown.",
            kind->n_ranks, kind->group_size);
        put_sentence(table, &text);
    }
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
    struct marey__buf text = {0};
    if (n_more != 0) {
        marey__buf_printf(&text, "%" PRIu64 " more collectives are doubtful in the same way.",
                          n_more);
        put_sentence(table, &text);
    }
    if (n_between_two != 0) {
        text = (struct marey__buf){0};
        marey__buf_printf(&text,
                          "%" PRIu64 " sends and receives are in the times of ranks, but are not "
                          "matched: who waits for whom in them is not told.",
                          n_between_two);
        put_sentence(table, &text);
    }
}
