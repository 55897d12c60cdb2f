/* The tables of a breakdown. */
#include <string.h>

#include "analyze/device/internal.h"

#define TIME MAREY__NS_COLUMN

/* Whose a row is, and what is in it: those of `devices`, and behind the first two of `by`. */
#define ROW_COLUMNS                                                                                \
    {"rank", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE},                                               \
        {"pid", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE},                                            \
        {"device", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE},                                         \
        {"window", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE}, TIME("span_ns", "span"),               \
        TIME("compute_ns", "compute"), TIME("comm_total_ns", "communication"),                     \
        TIME("exposed_comm_ns", "exposed"), TIME("hidden_comm_ns", "hidden"),                      \
        TIME("mem_total_ns", "copies"), TIME("exposed_mem_ns", "exposed copies"),                  \
        TIME("idle_ns", "idle"), TIME("busy_ns", "busy"),                                          \
        TIME("sum_of_durations_ns", "sum of durations"),                                           \
        {"concurrency", NULL, MAREY_TYPE_F64, MAREY_UNIT_NONE},                                    \
        {"overlap_ratio", "overlap", MAREY_TYPE_F64, MAREY_UNIT_SHARE},                            \
        TIME("atom_none_ns", "none"), TIME("atom_c_ns", "C"), TIME("atom_n_ns", "N"),              \
        TIME("atom_cn_ns", "C+N"), TIME("atom_m_ns", "M"), TIME("atom_cm_ns", "C+M"),              \
        TIME("atom_nm_ns", "N+M"), TIME("atom_cnm_ns", "C+N+M"),                                   \
    {                                                                                              \
        "n_work", "work", MAREY_TYPE_U64, MAREY_UNIT_COUNT                                         \
    }

static const struct marey_column summary_columns[] = {
    {"part", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    TIME("ns", "time"),
    {"share", NULL, MAREY_TYPE_F64, MAREY_UNIT_SHARE},
};
static const struct marey_column device_columns[] = {ROW_COLUMNS};
static const struct marey_column step_columns[] = {
    {"step", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    ROW_COLUMNS,
};
static const struct marey_column range_columns[] = {
    {"range", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    ROW_COLUMNS,
};
static const struct marey_column stream_columns[] = {
    {"stream", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    ROW_COLUMNS,
    {"stream_name", "name", MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
};
static const struct marey_column group_columns[] = {
    {"group", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    ROW_COLUMNS,
};
static const struct marey_column rule_columns[] = {
    {"rule", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"class", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"looks_at", "looks at", MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"pattern", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"count", NULL, MAREY_TYPE_U64, MAREY_UNIT_COUNT},
    TIME("ns", "time"),
};

/* ---- rows ---- */

static uint64_t sum_of(const struct marey__atoms *atoms, unsigned classes)
{
    uint64_t sum = 0;
    for (unsigned atom = 0; atom < MAREY__N_ATOMS; atom++)
        sum += (atom & classes) != 0 ? atoms->ns[atom] : 0;
    return sum;
}

static void put_whose(marey_table *table, const struct marey_process *process,
                      const struct marey__device_row *row, const char *window)
{
    marey__put_process(table, process);
    marey_table_i64(table, row->device);
    marey__put_string(table, window);
}

static void put_known(marey_table *table, bool is_known, uint64_t ns)
{
    if (is_known)
        marey_table_u64(table, ns);
    else
        marey_table_null(table);
}

/* Of a process that may communicate unrecorded, only copies and waits that were recorded are known. */
static void put_unknown(marey_table *table, const struct marey__work_set *set,
                        const struct marey__device_row *row)
{
    const uint64_t copies = sum_of(&row->atoms, MAREY__COPIES);
    const bool has_copies = copies != 0, has_waits = set->n_waits != 0;
    marey_table_u64(table, row->span_ns);
    marey_table_null(table); /* compute */
    for (size_t i = 0; i < 3; i++)
        marey_table_null(table); /* communication: total, exposed, hidden */
    put_known(table, has_copies, copies);
    put_known(table, has_copies, marey__exposed_mem_ns(&row->atoms));
    put_known(table, has_waits, row->atoms.ns[0]);
    /* Busy, sum of durations, concurrency, overlap, the atoms, n_work. */
    for (size_t i = 0; i < 4 + MAREY__N_ATOMS + 1; i++)
        marey_table_null(table);
}

static void put_numbers(marey_table *table, const struct marey__work_set *set,
                        const struct marey__device_row *row)
{
    const struct marey__atoms *atoms = &row->atoms;
    if (set->is_unknown) {
        put_unknown(table, set, row);
        return;
    }
    const uint64_t comm = sum_of(atoms, MAREY__COMMUNICATES),
                   busy = sum_of(atoms, MAREY__COMPUTES | MAREY__COMMUNICATES | MAREY__COPIES);
    marey_table_u64(table, row->span_ns);
    marey_table_u64(table, marey__computing_ns(atoms));
    marey_table_u64(table, comm);
    marey_table_u64(table, marey__exposed_comm_ns(atoms));
    marey_table_u64(table, marey__hidden_comm_ns(atoms));
    marey_table_u64(table, sum_of(atoms, MAREY__COPIES));
    marey_table_u64(table, marey__exposed_mem_ns(atoms));
    marey_table_u64(table, atoms->ns[0]);
    marey_table_u64(table, busy);
    marey_table_u64(table, atoms->sum_of_durations_ns);
    marey__put_share(table, atoms->sum_of_durations_ns, busy);
    marey__put_share(table, marey__hidden_comm_ns(atoms), comm);
    for (size_t atom = 0; atom < MAREY__N_ATOMS; atom++)
        marey_table_u64(table, atoms->ns[atom]);
    marey_table_u64(table, atoms->n_work);
}

static const char *window_of(const struct marey__device_row *row)
{
    return row->window == MAREY__WINDOW_SPAN && row->device < 0 ? "process_span"
                                                                : marey__window_names[row->window];
}

static void fill_devices(marey_table *table, const marey_breakdown *breakdown)
{
    for (size_t i = 0; i < breakdown->n_processes; i++) {
        const struct marey__process_breakdown *p = &breakdown->processes[i];
        for (size_t r = 0; !p->is_left_out && r < p->devices.n; r++) {
            put_whose(table, p->set.process, &p->devices.rows[r], window_of(&p->devices.rows[r]));
            put_numbers(table, &p->set, &p->devices.rows[r]);
        }
    }
}

static void put_by_row(marey_table *table, enum marey__by by, const struct marey__work_set *set,
                       const struct marey__device_row *row)
{
    if (by == MAREY__BY_STEP || by == MAREY__BY_STREAM)
        marey_table_u64(table, row->number);
    else
        marey_table_text(table, row->text, row->len);
    put_whose(table, set->process, row,
              by == MAREY__BY_STEP || by == MAREY__BY_RANGE ? marey__by_names[by] : window_of(row));
    put_numbers(table, set, row);
    if (by == MAREY__BY_STREAM)
        marey_table_text(table, row->text, row->len);
}

static void fill_by(marey_table *table, const marey_breakdown *breakdown)
{
    for (size_t i = 0; i < breakdown->n_processes; i++) {
        const struct marey__process_breakdown *p = &breakdown->processes[i];
        for (size_t r = 0; !p->is_left_out && r < p->by.n; r++)
            put_by_row(table, breakdown->by, &p->set, &p->by.rows[r]);
    }
}

/* ---- all devices together ---- */

static void fill_summary(marey_table *table, const marey_breakdown *breakdown)
{
    uint64_t span = 0, computation = 0, communication = 0;
    bool is_known = true, is_other_known = true;
    for (size_t i = 0; i < breakdown->n_processes; i++) {
        const struct marey__process_breakdown *p = &breakdown->processes[i];
        for (size_t r = 0; !p->is_left_out && r < p->devices.n; r++) {
            const struct marey__device_row *row = &p->devices.rows[r];
            if (row->window != breakdown->window)
                continue;
            is_known &= !p->set.is_unknown;
            is_other_known &= !p->set.is_unknown || p->set.n_waits != 0;
            span += row->span_ns;
            computation += marey__computing_ns(&row->atoms);
            communication += marey__exposed_comm_ns(&row->atoms);
        }
    }
    const struct {
        const char *part;
        uint64_t ns;
        bool is_known;
    } parts[] = {{"computation", computation, is_known},
                 {"communication", communication, is_known},
                 {"other", span - computation - communication, is_other_known}};
    for (size_t i = 0; i < MAREY__COUNT_OF(parts); i++) {
        marey__put_string(table, parts[i].part);
        put_known(table, parts[i].is_known, parts[i].ns);
        marey__put_share(table, parts[i].ns, parts[i].is_known ? span : 0);
    }
}

/* ---- rules ---- */

static void fill_rules(marey_table *table, const marey_breakdown *breakdown)
{
    for (size_t rule = 0; rule < breakdown->rules.n; rule++) {
        const struct marey__rule *what = &breakdown->rules.rules[rule];
        struct marey__caught caught = {0};
        for (size_t i = 0; i < breakdown->n_processes; i++) {
            const struct marey__process_breakdown *p = &breakdown->processes[i];
            if (p->is_left_out || p->set.caught == NULL ||
                (p->set.is_unknown && what->class == MAREY__COMPUTES))
                continue;
            caught.count += p->set.caught[rule].count;
            caught.ns += p->set.caught[rule].ns;
        }
        if (caught.count == 0)
            continue;
        marey__put_string(table, what->name);
        marey__put_string(table, marey__class_name(what->class));
        marey__put_string(table, marey__rule_look_name(what->look));
        marey__put_string(table, what->pattern);
        marey_table_u64(table, caught.count);
        marey_table_u64(table, caught.ns);
    }
}

/* ---- all of them ---- */

#define MAKE(table, name, columns)                                                                 \
    marey_table_create(name, columns, MAREY__COUNT_OF(columns), &breakdown->tables[table])

static marey_status make_by(marey_breakdown *breakdown)
{
    switch (breakdown->by) {
    case MAREY__BY_STEP:
        return MAKE(MAREY__BREAKDOWN_BY, "by", step_columns);
    case MAREY__BY_RANGE:
        return MAKE(MAREY__BREAKDOWN_BY, "by", range_columns);
    case MAREY__BY_STREAM:
        return MAKE(MAREY__BREAKDOWN_BY, "by", stream_columns);
    case MAREY__BY_GROUP:
        return MAKE(MAREY__BREAKDOWN_BY, "by", group_columns);
    case MAREY__BY_NOTHING:
        break;
    }
    return MAREY_OK;
}

static marey_status make_tables(marey_breakdown *breakdown)
{
    MAREY_TRY(MAKE(MAREY__BREAKDOWN_SUMMARY, "summary", summary_columns));
    MAREY_TRY(MAKE(MAREY__BREAKDOWN_DEVICES, "devices", device_columns));
    MAREY_TRY(make_by(breakdown));
    MAREY_TRY(MAKE(MAREY__BREAKDOWN_IDLE, "idle", marey__idle_columns));
    MAREY_TRY(MAKE(MAREY__BREAKDOWN_IDLE_OPERATORS, "idle_by_operator", marey__idle_operator_columns));
    MAREY_TRY(MAKE(MAREY__BREAKDOWN_IDLE_STEPS, "idle_by_step", marey__idle_step_columns));
    MAREY_TRY(MAKE(MAREY__BREAKDOWN_COLLECTIVES, "collectives", marey__collective_columns));
    MAREY_TRY(MAKE(MAREY__BREAKDOWN_COLLECTIVE_RANKS, "collective_ranks",
                   marey__collective_rank_columns));
    MAREY_TRY(MAKE(MAREY__BREAKDOWN_RULES, "rules", rule_columns));
    return MAKE(MAREY__BREAKDOWN_WARNINGS, "warnings", marey__warning_columns);
}

static void fill_idle(marey_table *const *tables, const marey_breakdown *breakdown)
{
    for (size_t i = 0; i < breakdown->n_processes; i++) {
        const struct marey__process_breakdown *p = &breakdown->processes[i];
        if (p->is_left_out)
            continue;
        marey__idle_put(tables[MAREY__BREAKDOWN_IDLE], &p->set, &p->idle);
        marey__idle_put_operators(tables[MAREY__BREAKDOWN_IDLE_OPERATORS], &p->set, &p->idle);
        marey__idle_put_steps(tables[MAREY__BREAKDOWN_IDLE_STEPS], &p->set, &p->idle);
    }
}

marey_status marey__breakdown_make_tables(marey_breakdown *breakdown,
                                          marey_recording *const *recordings, size_t n)
{
    marey_table **tables = breakdown->tables;
    MAREY_TRY(make_tables(breakdown));
    fill_summary(tables[MAREY__BREAKDOWN_SUMMARY], breakdown);
    fill_devices(tables[MAREY__BREAKDOWN_DEVICES], breakdown);
    if (breakdown->by != MAREY__BY_NOTHING)
        fill_by(tables[MAREY__BREAKDOWN_BY], breakdown);
    fill_idle(tables, breakdown);
    marey__collectives_put(tables[MAREY__BREAKDOWN_COLLECTIVES], &breakdown->collectives);
    marey__collectives_put_ranks(tables[MAREY__BREAKDOWN_COLLECTIVE_RANKS], &breakdown->collectives);
    fill_rules(tables[MAREY__BREAKDOWN_RULES], breakdown);
    marey__breakdown_put_warnings(tables[MAREY__BREAKDOWN_WARNINGS], breakdown, recordings, n);
    marey__collectives_put_warnings(tables[MAREY__BREAKDOWN_WARNINGS], &breakdown->collectives);
    for (size_t t = 0; t < MAREY__N_BROKEN; t++)
        if (tables[t] != NULL)
            MAREY_TRY(marey_table_status(tables[t]));
    return MAREY_OK;
}
