/* The tables of the breakdown. */
#include "analyze/device/internal.h"

/* The columns of `devices`, which follow the first column in `by`. */
#define ROW_COLUMNS                                                                                \
    NUMBER("rank"), NUMBER("pid"), NUMBER("device"), TEXT("window"), NS("span_ns", "span"),        \
        NS("compute_ns", "compute"), NS("comm_total_ns", "communication"),                         \
        NS("exposed_comm_ns", "exposed"), NS("hidden_comm_ns", "hidden"),                          \
        NS("mem_total_ns", "copies"), NS("exposed_mem_ns", "exposed copies"),                      \
        NS("idle_ns", "idle"), NS("busy_ns", "busy"),                                              \
        NS("sum_of_durations_ns", "sum of durations"), REAL("concurrency", NULL),                  \
        SHARE("overlap_ratio", "overlap"), NS("atom_none_ns", "none"), NS("atom_c_ns", "C"),       \
        NS("atom_n_ns", "N"), NS("atom_cn_ns", "C+N"), NS("atom_m_ns", "M"),                       \
        NS("atom_cm_ns", "C+M"), NS("atom_nm_ns", "N+M"), NS("atom_cnm_ns", "C+N+M"),              \
        COUNT("n_work", "work")

static const struct marey_column summary_columns[] = {TEXT("part"), NS("ns", "time"),
                                                      SHARE("share", NULL)};
static const struct marey_column device_columns[] = {ROW_COLUMNS};
static const struct marey_column step_columns[] = {WHOLE("step"), ROW_COLUMNS};
static const struct marey_column range_columns[] = {TEXT("range"), ROW_COLUMNS};
static const struct marey_column stream_columns[] = {
    WHOLE("stream"),
    ROW_COLUMNS,
    COLUMN("stream_name", "name", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
};
static const struct marey_column group_columns[] = {TEXT("group"), ROW_COLUMNS};
static const struct marey_column rule_columns[] = {
    TEXT("rule"),
    TEXT("class"),
    COLUMN("looks_at", "looks at", MAREY_TYPE_TEXT, MAREY_UNIT_NONE),
    TEXT("pattern"),
    COUNT("count", NULL),
    NS("ns", "time"),
};

const struct marey_table_definition marey__breakdown_tables[MAREY__N_BREAKDOWN_TABLES] = {
    [MAREY__BREAKDOWN_SUMMARY] = TABLE_OF("summary", summary_columns, "all devices"),
    [MAREY__BREAKDOWN_DEVICES] =
        TABLE_OF("devices", device_columns, "a row for each device and window"),
    [MAREY__BREAKDOWN_BY] =
        {"by", NULL, 0, NULL,
         "a row for each step, range, stream or process group: its name, then as "
         "devices"},
    [MAREY__BREAKDOWN_IDLE] = TABLE_OF("idle", marey__idle_columns, "why devices were idle"),
    [MAREY__BREAKDOWN_IDLE_OPERATORS] = TABLE_OF("idle_by_operator", marey__idle_operator_columns,
                                                 "the same by the operator that was open"),
    [MAREY__BREAKDOWN_IDLE_STEPS] =
        TABLE_OF("idle_by_step", marey__idle_step_columns, "the same by step"),
    [MAREY__BREAKDOWN_COLLECTIVES] = TABLE_OF("collectives", marey__collective_columns,
                                              "wait, transfer and bandwidth of collectives"),
    [MAREY__BREAKDOWN_COLLECTIVE_RANKS] =
        TABLE_OF("collective_ranks", marey__collective_rank_columns, "the same by rank"),
    [MAREY__BREAKDOWN_RULES] = TABLE_OF("rules", rule_columns, "what each rule matched"),
    [MAREY__BREAKDOWN_WARNINGS] =
        TABLE_OF("warnings", marey__warning_columns, "notes on the figures"),
};

/* ---- rows ---- */

static uint64_t sum_of(const struct marey__atoms *atoms, unsigned classes)
{
    uint64_t sum = 0;
    for (unsigned atom = 0; atom < MAREY__N_ATOMS; atom++)
        sum += (atom & classes) != 0 ? atoms->ns[atom] : 0;
    return sum;
}

/* For a process that may communicate unrecorded, only recorded copies and waits are known. */
static void put_numbers(marey_table *table, const struct marey__work_set *set,
                        const struct marey__device_row *row, const char *window)
{
    const struct marey__atoms *const atoms = &row->atoms;
    const uint64_t comm = sum_of(atoms, MAREY__COMMUNICATES), copies = sum_of(atoms, MAREY__COPIES),
                   busy = sum_of(atoms, MAREY__COMPUTES | MAREY__COMMUNICATES | MAREY__COPIES);
    const bool is_known = !set->is_unknown, has_copies = is_known || copies != 0;
    MAREY__PUT_ROW(table, PROCESS_OF(set->process), I64(row->device), STRING(window),
                   U64(row->span_ns), KNOWN(is_known, U64(marey__computing_ns(atoms))),
                   KNOWN(is_known, U64(comm)), KNOWN(is_known, U64(marey__exposed_comm_ns(atoms))),
                   KNOWN(is_known, U64(marey__hidden_comm_ns(atoms))), KNOWN(has_copies, U64(copies)),
                   KNOWN(has_copies, U64(marey__exposed_mem_ns(atoms))),
                   KNOWN(is_known || set->n_waits != 0, U64(atoms->ns[0])),
                   KNOWN(is_known, U64(busy)), KNOWN(is_known, U64(atoms->sum_of_durations_ns)),
                   RATIO(atoms->sum_of_durations_ns, is_known ? busy : 0),
                   RATIO(marey__hidden_comm_ns(atoms), is_known ? comm : 0));
    for (size_t atom = 0; atom < MAREY__N_ATOMS; atom++)
        marey__put_u64_or_null(table, atoms->ns[atom], is_known);
    marey__put_u64_or_null(table, atoms->n_work, is_known);
}

static const char *window_of(const struct marey__device_row *row)
{
    return row->window == MAREY__WINDOW_SPAN && row->device < 0 ? "process_span"
                                                                : marey__window_names[row->window];
}

static void fill_devices(marey_table *table, const struct marey__breakdown *breakdown)
{
    for (size_t i = 0; i < breakdown->n_processes; i++) {
        const struct marey__process_breakdown *p = &breakdown->processes[i];
        for (size_t r = 0; !p->is_left_out && r < p->devices.n; r++) {
            const struct marey__device_row *const row = &p->devices.rows[r];
            put_numbers(table, &p->set, row, window_of(row));
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
    put_numbers(table, set, row,
                by == MAREY__BY_STEP || by == MAREY__BY_RANGE ? marey__by_names[by] : window_of(row));
    if (by == MAREY__BY_STREAM)
        marey_table_text(table, row->text, row->len);
}

static void fill_by(marey_table *table, const struct marey__breakdown *breakdown)
{
    for (size_t i = 0; i < breakdown->n_processes; i++) {
        const struct marey__process_breakdown *p = &breakdown->processes[i];
        for (size_t r = 0; !p->is_left_out && r < p->by.n; r++)
            put_by_row(table, breakdown->facts->by, &p->set, &p->by.rows[r]);
    }
}

/* ---- summary over all devices ---- */

static void fill_summary(marey_table *table, const struct marey__breakdown *breakdown)
{
    uint64_t span = 0, computation = 0, communication = 0;
    bool is_known = true, is_other_known = true;
    for (size_t i = 0; i < breakdown->n_processes; i++) {
        const struct marey__process_breakdown *p = &breakdown->processes[i];
        for (size_t r = 0; !p->is_left_out && r < p->devices.n; r++) {
            const struct marey__device_row *row = &p->devices.rows[r];
            if (row->window != breakdown->facts->window)
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
        MAREY__PUT_ROW(table, STRING(parts[i].part), KNOWN(parts[i].is_known, U64(parts[i].ns)),
                       RATIO(parts[i].ns, parts[i].is_known ? span : 0));
    }
}

/* ---- rules ---- */

static void fill_rules(marey_table *table, const struct marey__breakdown *breakdown)
{
    for (size_t rule = 0; rule < breakdown->rules.n; rule++) {
        const struct marey__rule *what = &breakdown->rules.rules[rule];
        struct marey__rule_matches matches = {0};
        for (size_t i = 0; i < breakdown->n_processes; i++) {
            const struct marey__process_breakdown *p = &breakdown->processes[i];
            if (p->is_left_out || p->set.matches == NULL ||
                (p->set.is_unknown && what->class == MAREY__COMPUTES))
                continue;
            matches.count += p->set.matches[rule].count;
            matches.ns += p->set.matches[rule].ns;
        }
        if (matches.count == 0)
            continue;
        MAREY__PUT_ROW(table, STRING(what->name), STRING(marey__class_name(what->class)),
                       STRING(marey__rule_look_name(what->look)), STRING(what->pattern),
                       U64(matches.count), U64(matches.ns));
    }
}

/* ---- all tables ---- */

static marey_status create_by(enum marey__by by, marey_table **out)
{
    static const struct {
        const struct marey_column *columns;
        size_t n;
    } tables[] = {
        [MAREY__BY_STEP] = {step_columns, MAREY__COUNT_OF(step_columns)},
        [MAREY__BY_RANGE] = {range_columns, MAREY__COUNT_OF(range_columns)},
        [MAREY__BY_STREAM] = {stream_columns, MAREY__COUNT_OF(stream_columns)},
        [MAREY__BY_GROUP] = {group_columns, MAREY__COUNT_OF(group_columns)},
    };
    return marey_table_create("by", tables[by].columns, tables[by].n, out);
}

static void fill_idle(marey_table *const *tables, const struct marey__breakdown *breakdown)
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

marey_status marey__breakdown_fill_tables(marey_table **tables,
                                          const struct marey__breakdown *breakdown,
                                          const struct marey__request *request)
{
    fill_summary(tables[MAREY__BREAKDOWN_SUMMARY], breakdown);
    fill_devices(tables[MAREY__BREAKDOWN_DEVICES], breakdown);
    if (breakdown->facts->by != MAREY__BY_NOTHING) {
        MAREY_TRY(create_by(breakdown->facts->by, &tables[MAREY__BREAKDOWN_BY]));
        fill_by(tables[MAREY__BREAKDOWN_BY], breakdown);
    }
    fill_idle(tables, breakdown);
    marey__collectives_put(tables[MAREY__BREAKDOWN_COLLECTIVES], &breakdown->collectives);
    marey__collectives_put_ranks(tables[MAREY__BREAKDOWN_COLLECTIVE_RANKS], &breakdown->collectives);
    fill_rules(tables[MAREY__BREAKDOWN_RULES], breakdown);
    marey__breakdown_put_warnings(tables[MAREY__BREAKDOWN_WARNINGS], breakdown, request);
    marey__collectives_put_warnings(tables[MAREY__BREAKDOWN_WARNINGS], &breakdown->collectives);
    return MAREY_OK;
}
