/* The tables of a breakdown. */
#include <string.h>

#include "analyze/breakdown_whole.h"

#define TIME KYMO__NS_COLUMN

/* Whose a row is, and what is in it: those of `devices`, and behind the first two of `by`. */
#define ROW_COLUMNS                                                                                \
    {"rank", NULL, KYMO_TYPE_I64, KYMO_UNIT_NONE}, {"pid", NULL, KYMO_TYPE_I64, KYMO_UNIT_NONE},   \
        {"device", NULL, KYMO_TYPE_I64, KYMO_UNIT_NONE},                                           \
        {"window", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE}, TIME("span_ns", "span"),                 \
        TIME("compute_ns", "compute"), TIME("comm_total_ns", "communication"),                     \
        TIME("exposed_comm_ns", "exposed"), TIME("hidden_comm_ns", "hidden"),                      \
        TIME("mem_total_ns", "copies"), TIME("exposed_mem_ns", "exposed copies"),                  \
        TIME("idle_ns", "idle"), TIME("busy_ns", "busy"),                                          \
        TIME("sum_of_durations_ns", "sum of durations"),                                           \
        {"concurrency", NULL, KYMO_TYPE_F64, KYMO_UNIT_NONE},                                      \
        {"overlap_ratio", "overlap", KYMO_TYPE_F64, KYMO_UNIT_SHARE},                              \
        TIME("atom_none_ns", "none"), TIME("atom_c_ns", "C"), TIME("atom_n_ns", "N"),              \
        TIME("atom_cn_ns", "C+N"), TIME("atom_m_ns", "M"), TIME("atom_cm_ns", "C+M"),              \
        TIME("atom_nm_ns", "N+M"), TIME("atom_cnm_ns", "C+N+M"),                                   \
    {                                                                                              \
        "n_work", "work", KYMO_TYPE_U64, KYMO_UNIT_COUNT                                           \
    }

static const struct kymo_column summary_columns[] = {
    {"part", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    TIME("ns", "time"),
    {"share", NULL, KYMO_TYPE_F64, KYMO_UNIT_SHARE},
};
static const struct kymo_column device_columns[] = {ROW_COLUMNS};
static const struct kymo_column step_columns[] = {
    {"step", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
    ROW_COLUMNS,
};
static const struct kymo_column range_columns[] = {
    {"range", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    ROW_COLUMNS,
};
static const struct kymo_column stream_columns[] = {
    {"stream", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
    ROW_COLUMNS,
    {"stream_name", "name", KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
};
static const struct kymo_column group_columns[] = {
    {"group", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    ROW_COLUMNS,
};
static const struct kymo_column rule_columns[] = {
    {"rule", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"class", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"looks_at", "looks at", KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"pattern", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"count", NULL, KYMO_TYPE_U64, KYMO_UNIT_COUNT},
    TIME("ns", "time"),
};

/* ---- rows ---- */

static uint64_t sum_of(const struct kymo__atoms *atoms, unsigned classes)
{
    uint64_t sum = 0;
    for (unsigned atom = 0; atom < KYMO__N_ATOMS; atom++)
        sum += (atom & classes) != 0 ? atoms->ns[atom] : 0;
    return sum;
}

static void put_whose(kymo_table *table, const struct kymo_process *process,
                      const struct kymo__device_row *row, const char *window)
{
    kymo__put_process(table, process);
    kymo_table_i64(table, row->device);
    kymo__put_string(table, window);
}

static void put_known(kymo_table *table, bool is_known, uint64_t ns)
{
    if (is_known)
        kymo_table_u64(table, ns);
    else
        kymo_table_null(table);
}

/* Of a process that may communicate unrecorded, only copies and waits that were recorded are known. */
static void put_unknown(kymo_table *table, const struct kymo__work_set *set,
                        const struct kymo__device_row *row)
{
    const uint64_t copies = sum_of(&row->atoms, KYMO__COPIES);
    const bool has_copies = copies != 0, has_waits = set->n_waits != 0;
    kymo_table_u64(table, row->span_ns);
    kymo_table_null(table); /* compute */
    for (size_t i = 0; i < 3; i++)
        kymo_table_null(table); /* communication: total, exposed, hidden */
    put_known(table, has_copies, copies);
    put_known(table, has_copies, kymo__exposed_mem_ns(&row->atoms));
    put_known(table, has_waits, row->atoms.ns[0]);
    /* Busy, sum of durations, concurrency, overlap, the atoms, n_work. */
    for (size_t i = 0; i < 4 + KYMO__N_ATOMS + 1; i++)
        kymo_table_null(table);
}

static void put_numbers(kymo_table *table, const struct kymo__work_set *set,
                        const struct kymo__device_row *row)
{
    const struct kymo__atoms *atoms = &row->atoms;
    if (set->is_unknown) {
        put_unknown(table, set, row);
        return;
    }
    const uint64_t comm = sum_of(atoms, KYMO__COMMUNICATES),
                   busy = sum_of(atoms, KYMO__COMPUTES | KYMO__COMMUNICATES | KYMO__COPIES);
    kymo_table_u64(table, row->span_ns);
    kymo_table_u64(table, kymo__computing_ns(atoms));
    kymo_table_u64(table, comm);
    kymo_table_u64(table, kymo__exposed_comm_ns(atoms));
    kymo_table_u64(table, kymo__hidden_comm_ns(atoms));
    kymo_table_u64(table, sum_of(atoms, KYMO__COPIES));
    kymo_table_u64(table, kymo__exposed_mem_ns(atoms));
    kymo_table_u64(table, atoms->ns[0]);
    kymo_table_u64(table, busy);
    kymo_table_u64(table, atoms->sum_of_durations_ns);
    kymo__put_share(table, atoms->sum_of_durations_ns, busy);
    kymo__put_share(table, kymo__hidden_comm_ns(atoms), comm);
    for (size_t atom = 0; atom < KYMO__N_ATOMS; atom++)
        kymo_table_u64(table, atoms->ns[atom]);
    kymo_table_u64(table, atoms->n_work);
}

static const char *window_of(const struct kymo__device_row *row)
{
    return row->window == KYMO__WINDOW_SPAN && row->device < 0 ? "process_span"
                                                               : kymo__window_names[row->window];
}

static void fill_devices(kymo_table *table, const kymo_breakdown *breakdown)
{
    for (size_t i = 0; i < breakdown->n_processes; i++) {
        const struct kymo__process_breakdown *p = &breakdown->processes[i];
        for (size_t r = 0; !p->is_left_out && r < p->devices.n; r++) {
            put_whose(table, p->set.process, &p->devices.rows[r], window_of(&p->devices.rows[r]));
            put_numbers(table, &p->set, &p->devices.rows[r]);
        }
    }
}

static void put_by_row(kymo_table *table, enum kymo__by by, const struct kymo__work_set *set,
                       const struct kymo__device_row *row)
{
    if (by == KYMO__BY_STEP || by == KYMO__BY_STREAM)
        kymo_table_u64(table, row->number);
    else
        kymo_table_text(table, row->text, row->len);
    put_whose(table, set->process, row,
              by == KYMO__BY_STEP || by == KYMO__BY_RANGE ? kymo__by_names[by] : window_of(row));
    put_numbers(table, set, row);
    if (by == KYMO__BY_STREAM)
        kymo_table_text(table, row->text, row->len);
}

static void fill_by(kymo_table *table, const kymo_breakdown *breakdown)
{
    for (size_t i = 0; i < breakdown->n_processes; i++) {
        const struct kymo__process_breakdown *p = &breakdown->processes[i];
        for (size_t r = 0; !p->is_left_out && r < p->by.n; r++)
            put_by_row(table, breakdown->by, &p->set, &p->by.rows[r]);
    }
}

/* ---- all devices together ---- */

static void fill_summary(kymo_table *table, const kymo_breakdown *breakdown)
{
    uint64_t span = 0, computation = 0, communication = 0;
    bool is_known = true, is_other_known = true;
    for (size_t i = 0; i < breakdown->n_processes; i++) {
        const struct kymo__process_breakdown *p = &breakdown->processes[i];
        for (size_t r = 0; !p->is_left_out && r < p->devices.n; r++) {
            const struct kymo__device_row *row = &p->devices.rows[r];
            if (row->window != breakdown->window)
                continue;
            is_known &= !p->set.is_unknown;
            is_other_known &= !p->set.is_unknown || p->set.n_waits != 0;
            span += row->span_ns;
            computation += kymo__computing_ns(&row->atoms);
            communication += kymo__exposed_comm_ns(&row->atoms);
        }
    }
    const struct {
        const char *part;
        uint64_t ns;
        bool is_known;
    } parts[] = {{"computation", computation, is_known},
                 {"communication", communication, is_known},
                 {"other", span - computation - communication, is_other_known}};
    for (size_t i = 0; i < KYMO__COUNT_OF(parts); i++) {
        kymo__put_string(table, parts[i].part);
        put_known(table, parts[i].is_known, parts[i].ns);
        kymo__put_share(table, parts[i].ns, parts[i].is_known ? span : 0);
    }
}

/* ---- rules ---- */

static void fill_rules(kymo_table *table, const kymo_breakdown *breakdown)
{
    for (size_t rule = 0; rule < breakdown->rules.n; rule++) {
        const struct kymo__rule *what = &breakdown->rules.rules[rule];
        struct kymo__caught caught = {0};
        for (size_t i = 0; i < breakdown->n_processes; i++) {
            const struct kymo__process_breakdown *p = &breakdown->processes[i];
            if (p->is_left_out || p->set.caught == NULL ||
                (p->set.is_unknown && what->class == KYMO__COMPUTES))
                continue;
            caught.count += p->set.caught[rule].count;
            caught.ns += p->set.caught[rule].ns;
        }
        if (caught.count == 0)
            continue;
        kymo__put_string(table, what->name);
        kymo__put_string(table, kymo__class_name(what->class));
        kymo__put_string(table, kymo__rule_look_name(what->look));
        kymo__put_string(table, what->pattern);
        kymo_table_u64(table, caught.count);
        kymo_table_u64(table, caught.ns);
    }
}

/* ---- all of them ---- */

#define MAKE(table, name, columns)                                                                 \
    kymo_table_create(name, columns, KYMO__COUNT_OF(columns), &breakdown->tables[table])

static kymo_status make_by(kymo_breakdown *breakdown)
{
    switch (breakdown->by) {
    case KYMO__BY_STEP:
        return MAKE(KYMO__BROKEN_BY, "by", step_columns);
    case KYMO__BY_RANGE:
        return MAKE(KYMO__BROKEN_BY, "by", range_columns);
    case KYMO__BY_STREAM:
        return MAKE(KYMO__BROKEN_BY, "by", stream_columns);
    case KYMO__BY_GROUP:
        return MAKE(KYMO__BROKEN_BY, "by", group_columns);
    case KYMO__BY_NOTHING:
        break;
    }
    return KYMO_OK;
}

static kymo_status make_tables(kymo_breakdown *breakdown)
{
    KYMO_TRY(MAKE(KYMO__BROKEN_SUMMARY, "summary", summary_columns));
    KYMO_TRY(MAKE(KYMO__BROKEN_DEVICES, "devices", device_columns));
    KYMO_TRY(make_by(breakdown));
    KYMO_TRY(MAKE(KYMO__BROKEN_IDLE, "idle", kymo__idle_columns));
    KYMO_TRY(MAKE(KYMO__BROKEN_IDLE_OPERATORS, "idle_by_operator", kymo__idle_operator_columns));
    KYMO_TRY(MAKE(KYMO__BROKEN_IDLE_STEPS, "idle_by_step", kymo__idle_step_columns));
    KYMO_TRY(MAKE(KYMO__BROKEN_COLLECTIVES, "collectives", kymo__collective_columns));
    KYMO_TRY(MAKE(KYMO__BROKEN_COLLECTIVE_RANKS, "collective_ranks", kymo__collective_rank_columns));
    KYMO_TRY(MAKE(KYMO__BROKEN_RULES, "rules", rule_columns));
    return MAKE(KYMO__BROKEN_WARNINGS, "warnings", kymo__warning_columns);
}

static void fill_idle(kymo_table *const *tables, const kymo_breakdown *breakdown)
{
    for (size_t i = 0; i < breakdown->n_processes; i++) {
        const struct kymo__process_breakdown *p = &breakdown->processes[i];
        if (p->is_left_out)
            continue;
        kymo__idle_put(tables[KYMO__BROKEN_IDLE], &p->set, &p->idle);
        kymo__idle_put_operators(tables[KYMO__BROKEN_IDLE_OPERATORS], &p->set, &p->idle);
        kymo__idle_put_steps(tables[KYMO__BROKEN_IDLE_STEPS], &p->set, &p->idle);
    }
}

kymo_status kymo__breakdown_make_tables(kymo_breakdown *breakdown,
                                        kymo_recording *const *recordings, size_t n)
{
    kymo_table **tables = breakdown->tables;
    KYMO_TRY(make_tables(breakdown));
    fill_summary(tables[KYMO__BROKEN_SUMMARY], breakdown);
    fill_devices(tables[KYMO__BROKEN_DEVICES], breakdown);
    if (breakdown->by != KYMO__BY_NOTHING)
        fill_by(tables[KYMO__BROKEN_BY], breakdown);
    fill_idle(tables, breakdown);
    kymo__collectives_put(tables[KYMO__BROKEN_COLLECTIVES], &breakdown->collectives);
    kymo__collectives_put_ranks(tables[KYMO__BROKEN_COLLECTIVE_RANKS], &breakdown->collectives);
    fill_rules(tables[KYMO__BROKEN_RULES], breakdown);
    kymo__breakdown_put_warnings(tables[KYMO__BROKEN_WARNINGS], breakdown, recordings, n);
    kymo__collectives_put_warnings(tables[KYMO__BROKEN_WARNINGS], &breakdown->collectives);
    for (size_t t = 0; t < KYMO__N_BROKEN; t++)
        if (tables[t] != NULL)
            KYMO_TRY(kymo_table_status(tables[t]));
    return KYMO_OK;
}
