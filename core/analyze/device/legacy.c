/* Which names itwinai calls what, and its two fractions. */
#include <stdio.h>
#include <string.h>

#include "analyze/device/legacy_internal.h"

const char *marey_legacy_warning(void)
{
    return "computation_fraction is itwinai's old measure: an approximation that is blind to "
           "overlap, counts "
           "time two and three times, and cannot be compared across frameworks or strategies";
}

/* ---- names ---- */

static bool has(const char *name, size_t len, const char *part)
{
    return memmem(name, len, part, strlen(part)) != NULL;
}

/* at:: behind a blank, so that the template of a kernel has it and not the end of another word. */
static bool has_at(const char *name, size_t len)
{
    static const char part[] = "at::";
    for (size_t i = 0; i + sizeof part <= len; i++)
        if (strchr(" \t\n\v\f\r", name[i]) != NULL && name[i] != '\0' &&
            memcmp(name + i + 1, part, sizeof part - 1) == 0)
            return true;
    return false;
}

unsigned marey__legacy_class(const char *name, size_t len)
{
    static const char *const computes[] = {"aten::", "c10::", "autograd::"};
    static const char *const communicates[] = {
        "nccl:all_reduce", "nccl:broadcast",      "nccl:reduce",         "nccl:all_gather",
        "nccl:gather",     "nccl:reduce_scatter", "cudaStreamWaitEvent", "cudaStreamSynchronize",
    };
    static const char profiler[] = "ProfilerStep*";
    unsigned class = MAREY__LEGACY_OTHER;
    if (has_at(name, len))
        class |= MAREY__LEGACY_COMPUTATION;
    for (size_t i = 0; i < MAREY__COUNT_OF(computes); i++)
        if (has(name, len, computes[i]))
            class |= MAREY__LEGACY_COMPUTATION;
    for (size_t i = 0; i < MAREY__COUNT_OF(communicates); i++)
        if (has(name, len, communicates[i]))
            class |= MAREY__LEGACY_COMMUNICATION;
    if (len == sizeof profiler - 1 && memcmp(name, profiler, len) == 0)
        class |= MAREY__LEGACY_PROFILER;
    return class;
}

/* ---- sums ---- */

/* The group of that strategy, number and rank, made when new; NULL without memory. */
static struct marey__legacy_group *find_group(struct marey__legacy *legacy,
                                              const struct marey__legacy_row *row, int64_t rank)
{
    struct marey__buf key = {0};
    struct marey__legacy_group *group = NULL;
    marey__buf_printf(&key, "%llu %lld ", (unsigned long long)row->num_gpus, (long long)rank);
    const size_t skip = key.len;
    marey__buf_put(&key, row->strategy, row->strategy_len);
    const size_t n = legacy->keys.n;
    const uint32_t number =
        key.failed ? MAREY__NO_NAME : marey__names_number(&legacy->keys, key.data, key.len);
    if (number == n) {
        const char *text = marey__arena_text(&legacy->texts, key.data, key.len);
        if (text == NULL ||
            !marey__grow(&legacy->groups, &legacy->groups_cap, n + 1, sizeof *legacy->groups)) {
            legacy->keys.n--; /* it is never looked up again: the caller gives up */
        } else {
            legacy->keys.names[number].text = text;
            legacy->groups[number] = (struct marey__legacy_group){
                .strategy = text + skip, .num_gpus = row->num_gpus, .rank = rank};
            group = &legacy->groups[number];
        }
    } else if (number != MAREY__NO_NAME) {
        group = &legacy->groups[number];
    }
    marey__buf_fini(&key);
    return group;
}

static void add(struct marey__legacy_group *group, unsigned class, double us)
{
    group->n_rows++;
    group->total += us;
    group->computation += (class & MAREY__LEGACY_COMPUTATION) != 0 ? us : 0;
    group->communication += (class & MAREY__LEGACY_COMMUNICATION) != 0 ? us : 0;
    group->profiler += (class & MAREY__LEGACY_PROFILER) != 0 ? us : 0;
}

bool marey__legacy_take(struct marey__legacy *legacy, const struct marey__legacy_row *row)
{
    const unsigned class = marey__legacy_class(row->name, row->name_len);
    struct marey__legacy_group *group = find_group(legacy, row, -1);
    if (group == NULL)
        return false;
    add(group, class, row->self_us);
    if (row->rank < 0)
        return true;
    group = find_group(legacy, row, row->rank);
    if (group == NULL)
        return false;
    add(group, class, row->self_us);
    return true;
}

void marey__legacy_fini(struct marey__legacy *legacy)
{
    marey__names_fini(&legacy->keys);
    marey__arena_fini(&legacy->texts);
    marey__free(legacy->groups);
    *legacy = (struct marey__legacy){0};
}

/* ---- the table ---- */

static const struct marey_column columns[] = {
    {"strategy", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"num_gpus", NULL, MAREY_TYPE_U64, MAREY_UNIT_COUNT},
    MAREY__RANK_COLUMN,
    {"computation_fraction", NULL, MAREY_TYPE_F64, MAREY_UNIT_SHARE},
    {"computation_vs_communication", NULL, MAREY_TYPE_F64, MAREY_UNIT_SHARE},
    MAREY__TALLY_COLUMN("rows", NULL),
};

/* Upstream adds this so as not to divide by zero. */
static const double nothing = 1e-10;

static void put_group(marey_table *table, const struct marey__legacy_group *group)
{
    marey__put_string(table, group->strategy);
    marey_table_u64(table, group->num_gpus);
    if (group->rank < 0)
        marey_table_null(table);
    else
        marey_table_i64(table, group->rank);
    if (group->total > 0) {
        marey_table_f64(table, group->computation / (group->total - group->profiler + nothing));
        marey_table_f64(table,
                        group->computation / (group->computation + group->communication + nothing));
    } else {
        marey_table_null(table);
        marey_table_null(table);
    }
    marey_table_u64(table, group->n_rows);
}

marey_status marey__legacy_table(const struct marey__legacy *legacy, marey_table **out)
{
    marey_table *table = NULL;
    MAREY_TRY(marey_table_create("legacy", columns, MAREY__COUNT_OF(columns), &table));
    for (int alone = 0; alone <= 1; alone++)
        for (size_t i = 0; i < legacy->keys.n; i++)
            if ((legacy->groups[i].rank >= 0) == (alone != 0))
                put_group(table, &legacy->groups[i]);
    const marey_status status = marey_table_status(table);
    if (status != MAREY_OK) {
        marey_table_destroy(table);
        return status;
    }
    *out = table;
    return MAREY_OK;
}

/* ---- of a table of averages ---- */

static struct marey_cell cell(const marey_table *table, size_t row, const char *column)
{
    const int c = marey_table_find(table, column);
    return c >= 0 ? marey_table_cell(table, row, (size_t)c) : (struct marey_cell){.is_null = 1};
}

marey_status marey_legacy_create(const marey_table *averages, marey_table **out)
{
    struct marey__legacy legacy = {0};
    bool is_done = true;
    for (size_t i = 0; is_done && i < marey_table_n_rows(averages); i++) {
        const struct marey_cell name = cell(averages, i, "name"),
                                strategy = cell(averages, i, "strategy"),
                                time = cell(averages, i, "self_cuda_time_total");
        const struct marey__legacy_row row = {
            .name = name.is_null ? "" : name.as.text,
            .name_len = name.len,
            .strategy = strategy.is_null ? "" : strategy.as.text,
            .strategy_len = strategy.len,
            .num_gpus = cell(averages, i, "num_gpus").as.u64,
            .rank = cell(averages, i, "global_rank").as.i64,
            .self_us = time.as.f64,
        };
        is_done = marey__legacy_take(&legacy, &row);
    }
    const marey_status status = is_done ? marey__legacy_table(&legacy, out) : marey__no_memory();
    marey__legacy_fini(&legacy);
    return status;
}
