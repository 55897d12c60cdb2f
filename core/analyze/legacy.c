/* Which names itwinai calls what, and its two fractions. */
#include <stdio.h>
#include <string.h>

#include "analyze/legacy_internal.h"

const char *kymo_legacy_warning(void)
{
    return "computation_fraction is itwinai's old measure: an approximation that is blind to "
           "overlap, counts "
           "time two and three times, and cannot be compared across frameworks or strategies";
}

static kymo_status no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory for averages");
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

unsigned kymo__legacy_class(const char *name, size_t len)
{
    static const char *const computes[] = {"aten::", "c10::", "autograd::"};
    static const char *const communicates[] = {
        "nccl:all_reduce", "nccl:broadcast",      "nccl:reduce",         "nccl:all_gather",
        "nccl:gather",     "nccl:reduce_scatter", "cudaStreamWaitEvent", "cudaStreamSynchronize",
    };
    static const char profiler[] = "ProfilerStep*";
    unsigned class = KYMO__LEGACY_OTHER;
    if (has_at(name, len))
        class |= KYMO__LEGACY_COMPUTATION;
    for (size_t i = 0; i < KYMO__COUNT_OF(computes); i++)
        if (has(name, len, computes[i]))
            class |= KYMO__LEGACY_COMPUTATION;
    for (size_t i = 0; i < KYMO__COUNT_OF(communicates); i++)
        if (has(name, len, communicates[i]))
            class |= KYMO__LEGACY_COMMUNICATION;
    if (len == sizeof profiler - 1 && memcmp(name, profiler, len) == 0)
        class |= KYMO__LEGACY_PROFILER;
    return class;
}

/* ---- sums ---- */

/* The group of that strategy, number and rank, made when new; NULL without memory. */
static struct kymo__legacy_group *find_group(struct kymo__legacy *legacy,
                                             const struct kymo__legacy_row *row, int64_t rank)
{
    struct kymo__buf key = {0};
    struct kymo__legacy_group *group = NULL;
    kymo__buf_printf(&key, "%llu %lld ", (unsigned long long)row->num_gpus, (long long)rank);
    const size_t skip = key.len;
    kymo__buf_put(&key, row->strategy, row->strategy_len);
    const size_t n = legacy->keys.n;
    const uint32_t number =
        key.failed ? KYMO__NO_NAME : kymo__names_number(&legacy->keys, key.data, key.len);
    if (number == n) {
        const char *text = kymo__arena_text(&legacy->texts, key.data, key.len);
        if (text == NULL ||
            !kymo__grow(&legacy->groups, &legacy->groups_cap, n + 1, sizeof *legacy->groups)) {
            legacy->keys.n--; /* it is never looked up again: the caller gives up */
        } else {
            legacy->keys.names[number].text = text;
            legacy->groups[number] = (struct kymo__legacy_group){
                .strategy = text + skip, .num_gpus = row->num_gpus, .rank = rank};
            group = &legacy->groups[number];
        }
    } else if (number != KYMO__NO_NAME) {
        group = &legacy->groups[number];
    }
    kymo__buf_fini(&key);
    return group;
}

static void add(struct kymo__legacy_group *group, unsigned class, double us)
{
    group->n_rows++;
    group->total += us;
    group->computation += (class & KYMO__LEGACY_COMPUTATION) != 0 ? us : 0;
    group->communication += (class & KYMO__LEGACY_COMMUNICATION) != 0 ? us : 0;
    group->profiler += (class & KYMO__LEGACY_PROFILER) != 0 ? us : 0;
}

bool kymo__legacy_take(struct kymo__legacy *legacy, const struct kymo__legacy_row *row)
{
    const unsigned class = kymo__legacy_class(row->name, row->name_len);
    struct kymo__legacy_group *group = find_group(legacy, row, -1);
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

void kymo__legacy_fini(struct kymo__legacy *legacy)
{
    kymo__names_fini(&legacy->keys);
    kymo__arena_fini(&legacy->texts);
    kymo__free(legacy->groups);
    *legacy = (struct kymo__legacy){0};
}

/* ---- the table ---- */

static const struct kymo_column columns[] = {
    {"strategy", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"num_gpus", NULL, KYMO_TYPE_U64, KYMO_UNIT_COUNT},
    KYMO__RANK_COLUMN,
    {"computation_fraction", NULL, KYMO_TYPE_F64, KYMO_UNIT_SHARE},
    {"computation_vs_communication", NULL, KYMO_TYPE_F64, KYMO_UNIT_SHARE},
    KYMO__TALLY_COLUMN("rows", NULL),
};

/* Upstream adds this so as not to divide by zero. */
static const double nothing = 1e-10;

static void put_group(kymo_table *table, const struct kymo__legacy_group *group)
{
    kymo__put_string(table, group->strategy);
    kymo_table_u64(table, group->num_gpus);
    if (group->rank < 0)
        kymo_table_null(table);
    else
        kymo_table_i64(table, group->rank);
    if (group->total > 0) {
        kymo_table_f64(table, group->computation / (group->total - group->profiler + nothing));
        kymo_table_f64(table,
                       group->computation / (group->computation + group->communication + nothing));
    } else {
        kymo_table_null(table);
        kymo_table_null(table);
    }
    kymo_table_u64(table, group->n_rows);
}

kymo_status kymo__legacy_table(const struct kymo__legacy *legacy, kymo_table **out)
{
    kymo_table *table = NULL;
    KYMO_TRY(kymo_table_create("legacy", columns, KYMO__COUNT_OF(columns), &table));
    for (int alone = 0; alone <= 1; alone++)
        for (size_t i = 0; i < legacy->keys.n; i++)
            if ((legacy->groups[i].rank >= 0) == (alone != 0))
                put_group(table, &legacy->groups[i]);
    const kymo_status status = kymo_table_status(table);
    if (status != KYMO_OK) {
        kymo_table_destroy(table);
        return status;
    }
    *out = table;
    return KYMO_OK;
}

/* ---- of a table of averages ---- */

static struct kymo_cell cell(const kymo_table *table, size_t row, const char *column)
{
    const int c = kymo_table_find(table, column);
    return c >= 0 ? kymo_table_cell(table, row, (size_t)c) : (struct kymo_cell){.is_null = 1};
}

kymo_status kymo_legacy_create(const kymo_table *averages, kymo_table **out)
{
    struct kymo__legacy legacy = {0};
    bool is_done = true;
    for (size_t i = 0; is_done && i < kymo_table_n_rows(averages); i++) {
        const struct kymo_cell name = cell(averages, i, "name"),
                               strategy = cell(averages, i, "strategy"),
                               time = cell(averages, i, "self_cuda_time_total");
        const struct kymo__legacy_row row = {
            .name = name.is_null ? "" : name.as.text,
            .name_len = name.len,
            .strategy = strategy.is_null ? "" : strategy.as.text,
            .strategy_len = strategy.len,
            .num_gpus = cell(averages, i, "num_gpus").as.u64,
            .rank = cell(averages, i, "global_rank").as.i64,
            .self_us = time.as.f64,
        };
        is_done = kymo__legacy_take(&legacy, &row);
    }
    const kymo_status status = is_done ? kymo__legacy_table(&legacy, out) : no_memory();
    kymo__legacy_fini(&legacy);
    return status;
}
