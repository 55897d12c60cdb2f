/* The tables of energy. */
#include <inttypes.h>
#include <string.h>

#include "analyze/energy/internal.h"
#include "analyze/walk/internal.h"

const char *const marey__energy_kind_names[MAREY__N_ENERGY_KINDS] = {"gpu", "cpu", "dram"};

/* ---- columns ---- */

#define NUMBERS                                                                                    \
    TEXT("kind"), WHOLE("devices"), {"count", NULL, MAREY_TYPE_U64, MAREY_UNIT_COUNT},             \
        {"duration_ns", "time", MAREY_TYPE_U64, MAREY_UNIT_NS}, REAL("joules", "J"),               \
        REAL("plus_minus_j", "+/-"), REAL("mean_w", "mean W"), REAL("peak_w", "peak W"),           \
        SHARE("utilization", "util"), SHARE("sm_active", "SM active"),                             \
        SHARE("sm_occupancy", "occupancy"), SHARE("tensor_active", "tensor"),                      \
        SHARE("dram_active", "DRAM"), SHARE("throttled", NULL), REAL("samples", NULL),             \
        REAL("joules_per_sample", "J/sample"), REAL("energy_delay_js", "J*s"),                     \
        REAL("co2_g", "g CO2"), TEXT("measured_by"), TEXT("note")

static const struct marey_column run_columns[] = {WHOLE("run"), TEXT("run_id"), NUMBERS};
static const struct marey_column repeat_columns[] = {
    TEXT("kind"),
    WHOLE("runs"),
    REAL("mean_j", "mean J"),
    REAL("low_j", "from J"),
    REAL("high_j", "to J"),
    REAL("std_j", "std J"),
    {"mean_duration_ns", "time", MAREY_TYPE_F64, MAREY_UNIT_NS},
    REAL("joules_per_sample", "J/sample")};
static const struct marey_column device_columns[] = {
    WHOLE("run"),
    TEXT("host"),
    TEXT("device"),
    TEXT("name"),
    TEXT("model"),
    FLAG("used"),
    FLAG("shared"),
    TEXT("ranks"),
    NUMBERS,
    REAL("sm_clock_mhz", "SM MHz"),
    REAL("memory_clock_mhz", "memory MHz"),
    REAL("temperature_c", "max C"),
    {"memory_used_bytes", "max memory", MAREY_TYPE_F64, MAREY_UNIT_BYTES}};
static const struct marey_column rank_columns[] = {WHOLE("run"),
                                                   {"rank", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE},
                                                   TEXT("host"),
                                                   FLAG("shared"),
                                                   NUMBERS};
static const struct marey_column node_columns[] = {WHOLE("run"), TEXT("host"), NUMBERS};
static const struct marey_column epoch_columns[] = {WHOLE("run"), WHOLE("epoch"), NUMBERS};
static const struct marey_column iteration_columns[] = {WHOLE("run"), WHOLE("first"), WHOLE("last"),
                                                        NUMBERS};
static const struct marey_column named_columns[] = {WHOLE("run"), TEXT("name"), NUMBERS};

#define TABLE(name, columns) name, columns, MAREY__COUNT_OF(columns)
const struct marey_table_definition marey__energy_tables[MAREY__N_ENERGY_TABLES] = {
    [MAREY__ENERGY_RUNS] = {TABLE("runs", run_columns), "run", "processes with one run id"},
    [MAREY__ENERGY_REPEATS] = {TABLE("repeats", repeat_columns), "repeat",
                               "mean over runs, with its 95 % confidence interval"},
    [MAREY__ENERGY_DEVICES] = {TABLE("devices", device_columns), "device",
                               "each device, also those that no process uses"},
    [MAREY__ENERGY_RANKS] = {TABLE("ranks", rank_columns), "rank",
                             "the devices of each rank; shared: some are of other ranks too"},
    [MAREY__ENERGY_NODES] = {TABLE("nodes", node_columns), "node", "the devices of each host"},
    [MAREY__ENERGY_EPOCHS] = {TABLE("epochs", epoch_columns), "epoch", "epochs"},
    [MAREY__ENERGY_ITERATIONS] =
        {TABLE("iterations", iteration_columns), "iteration",
         "groups of successive iterations of all ranks, warm-up among them"},
    [MAREY__ENERGY_PHASES] = {TABLE("phases", named_columns), "phase", "phases"},
    [MAREY__ENERGY_RANGES] = {TABLE("ranges", named_columns), "range", "ranges"},
    [MAREY__ENERGY_NOTES] = {"notes", marey__warning_columns, 1, "note", "notes on the figures"},
};

/* ---- numbers ---- */

static const char *note_of(const struct marey__energy_sum *sum, const struct marey__energy_row *row)
{
    if (row->is_too_many)
        return "too many to say";
    if (sum->measured_ns == 0)
        return "not measured";
    if (sum->is_short)
        return "too short to say";
    return sum->is_partial ? "partly measured" : "";
}

static const char *measured_by(const struct marey__energy_sum *sum)
{
    if (sum->is_counted && sum->is_integrated)
        return "counter and power";
    return sum->is_counted ? "counter" : sum->is_integrated ? "power" : "";
}

static void put_shares(marey_table *table, const struct marey__energy_sum *sum)
{
    for (unsigned q = MAREY__FIRST_MEAN; q <= MAREY__LAST_SHARE; q++)
        marey__put_real(table, sum->weighted[q] / sum->weight[q] / 100, sum->weight[q] > 0);
}

static double co2(const struct marey__energy_report *report, double joules)
{
    return joules / 3.6e6 * report->pue * report->co2_g_per_kwh;
}

static void put_numbers(const struct marey__energy_report *report, marey_table *table,
                        const char *kind, const struct marey__energy_sum *sum,
                        const struct marey__energy_row *row)
{
    const char *note = note_of(sum, row);
    const bool is_known = sum->measured_ns != 0 && !sum->is_short && !row->is_too_many;
    marey__put_string(table, kind);
    marey_table_u64(table, sum->n_devices);
    marey__put_whole(table, row->count, row->count != 0);
    marey_table_u64(table, sum->ns);
    marey__put_real(table, sum->joules, is_known);
    marey__put_real(table, sum->plus_minus, is_known);
    marey__put_real(table, sum->mean_w, is_known);
    marey__put_real(table, sum->peak_w, is_known && sum->peak_w > 0);
    put_shares(table, sum);
    marey__put_real(table, row->samples, row->samples > 0);
    marey__put_real(table, sum->joules / row->samples, is_known && row->samples > 0);
    marey__put_real(table, sum->joules * (double)sum->ns * 1e-9, is_known);
    marey__put_real(table, co2(report, sum->joules), is_known && report->co2_g_per_kwh > 0);
    marey__put_string(table, measured_by(sum));
    marey__put_string(table, note);
}

/* Which table, and the columns before the numbers: put for each kind. */
struct target_row {
    marey_table *table;
    void (*put_whose)(const struct target_row *to);
    const struct marey__energy_report *report;
    const struct marey__energy_section *section;
    const struct marey__energy_row *row;
    const struct marey__energy_member *member;
    const char *host;
    bool is_shared;
};

static void put_row(const struct target_row *to)
{
    struct marey__energy_sum all = {0};
    size_t n = 0;
    for (size_t kind = 0; kind < MAREY__N_ENERGY_KINDS; kind++) {
        const struct marey__energy_sum *sum = &to->row->sums[kind];
        if (sum->n_devices == 0)
            continue;
        to->put_whose(to);
        put_numbers(to->report, to->table, marey__energy_kind_names[kind], sum, to->row);
        marey__energy_sum_add(&all, sum);
        n++;
    }
    if (n < 2)
        return;
    to->put_whose(to);
    put_numbers(to->report, to->table, "all", &all, to->row);
}

/* ---- whose ---- */

static void put_run(const struct target_row *to)
{
    marey_table_u64(to->table, to->section->run + 1);
}

static void put_whose_run(const struct target_row *to)
{
    put_run(to);
    marey__put_string(to->table, to->report->runs.list[to->section->run].id);
}

static void put_whose_epoch(const struct target_row *to)
{
    put_run(to);
    marey_table_u64(to->table, to->section->key);
}

static void put_whose_group(const struct target_row *to)
{
    put_run(to);
    marey_table_u64(to->table, to->row->first);
    marey_table_u64(to->table, to->row->last);
}

static void put_whose_name(const struct target_row *to)
{
    const struct marey__name *name = &to->report->names.names[to->section->key];
    put_run(to);
    marey_table_text(to->table, name->text, name->len);
}

static void put_whose_host(const struct target_row *to)
{
    put_run(to);
    marey__put_string(to->table, to->host);
}

static void put_whose_rank(const struct target_row *to)
{
    put_run(to);
    marey__put_rank(to->table, to->member->rank);
    marey__put_string(to->table, to->member->host);
    marey_table_bool(to->table, to->is_shared);
}

/* ---- devices ---- */

static bool put_ranks(const struct marey__energy_report *report, marey_table *table,
                      const struct marey__energy_target *target)
{
    struct marey__buf text = {0};
    for (size_t i = 0; i < report->n_members; i++)
        if (target->users[i] && report->members[i].rank >= 0)
            marey__buf_printf(&text, "%s%" PRId32, text.len == 0 ? "" : ",", report->members[i].rank);
    const bool is_done = !text.failed;
    if (is_done)
        marey_table_text(table, text.data != NULL ? text.data : "", text.len);
    marey__buf_fini(&text);
    return is_done;
}

static bool put_device(const struct marey__energy_report *report, marey_table *table,
                       const struct marey__energy_section *section,
                       const struct marey__energy_target *target)
{
    const struct marey__meter *meter = &report->meters[target->meter];
    const struct marey__energy_row row = {0};
    struct marey__energy_sum sum;
    size_t model_len;
    const char *model = marey__meter_words(meter, MAREY__SOURCE_MODEL, &model_len);
    if (!marey__energy_target_measure(target, section, report, &sum))
        return false;
    marey_table_u64(table, section->run + 1);
    marey__put_string(table, target->host);
    marey_table_text(table, meter->device, meter->device_len);
    marey_table_text(table, meter->name, meter->name_len);
    marey_table_text(table, model, model_len);
    marey_table_bool(table, target->n_users != 0);
    marey_table_bool(table, target->kind == MAREY__OF_GPU && target->n_users > 1);
    if (!put_ranks(report, table, target))
        return false;
    put_numbers(report, table, marey__energy_kind_names[target->kind], &sum, &row);
    for (unsigned q = MAREY__SM_CLOCK; q <= MAREY__MEMORY_CLOCK; q++)
        marey__put_real(table, sum.weighted[q] / sum.weight[q], sum.weight[q] > 0);
    marey__put_real(table, sum.highest[MAREY__TEMPERATURE], meter->of[MAREY__TEMPERATURE].n != 0);
    marey__put_real(table, sum.highest[MAREY__MEMORY_USED], meter->of[MAREY__MEMORY_USED].n != 0);
    return true;
}

/* ---- sections to tables ---- */

static bool shares_device(const struct marey__energy_report *report, size_t member)
{
    for (size_t i = 0; i < report->n_targets; i++)
        if (report->targets[i].kind == MAREY__OF_GPU && report->targets[i].users[member] &&
            report->targets[i].n_users > 1)
            return true;
    return false;
}

/* Of a run: its devices, its ranks, its hosts. */
static bool put_parts_of_run(struct marey__energy_report *report,
                             const struct marey__energy_section *section)
{
    struct marey__energy_row row;
    struct target_row to = {.report = report, .section = section, .row = &row};
    for (size_t i = 0; i < report->n_targets; i++)
        if (report->targets[i].run == section->run &&
            !put_device(report, report->tables[MAREY__ENERGY_DEVICES], section, &report->targets[i]))
            return false;
    for (size_t i = 0; i < section->n; i++) {
        const struct marey__energy_member *member = &report->members[section->windows[i]->member];
        struct marey__energy_section own = *section;
        own.windows += i;
        own.n = 1;
        if (!marey__energy_row_make(
                report, &own, &(struct marey__energy_scope){.member = section->windows[i]->member},
                &row))
            return false;
        to.member = member;
        to.table = report->tables[MAREY__ENERGY_RANKS];
        to.put_whose = put_whose_rank;
        to.is_shared = shares_device(report, section->windows[i]->member);
        put_row(&to);
        bool is_listed = false; /* a host is listed with the first of its ranks */
        for (size_t j = 0; j < i; j++)
            is_listed |= strcmp(report->members[section->windows[j]->member].host, member->host) == 0;
        if (is_listed)
            continue;
        const struct marey__energy_scope scope = {.member = MAREY__NO_MEMBER, .host = member->host};
        if (!marey__energy_row_make(report, section, &scope, &row))
            return false;
        to.host = member->host;
        to.table = report->tables[MAREY__ENERGY_NODES];
        to.put_whose = put_whose_host;
        row.samples = section->n == 1 ? row.samples : 0; /* they are of all hosts */
        put_row(&to);
    }
    return true;
}

static bool put_section(struct marey__energy_report *report,
                        const struct marey__energy_section *section)
{
    static const struct {
        enum marey__energy_table table;
        void (*put_whose)(const struct target_row *to);
    } of[MAREY__N_ENERGY_BY] = {
        [MAREY__ENERGY_RUN] = {MAREY__ENERGY_RUNS, put_whose_run},
        [MAREY__ENERGY_EPOCH] = {MAREY__ENERGY_EPOCHS, put_whose_epoch},
        [MAREY__ENERGY_ITERATION] = {MAREY__ENERGY_ITERATIONS, put_whose_group},
        [MAREY__ENERGY_PHASE] = {MAREY__ENERGY_PHASES, put_whose_name},
        [MAREY__ENERGY_RANGE] = {MAREY__ENERGY_RANGES, put_whose_name},
    };
    const struct marey__energy_scope everybody = {.member = MAREY__NO_MEMBER};
    struct marey__energy_row row;
    if (!marey__energy_row_make(report, section, &everybody, &row))
        return false;
    const struct target_row to = {.table = report->tables[of[section->by].table],
                                  .put_whose = of[section->by].put_whose,
                                  .report = report,
                                  .section = section,
                                  .row = &row};
    if (section->by == MAREY__ENERGY_EPOCH || section->by == MAREY__ENERGY_RUN)
        row.count = 0;
    put_row(&to);
    return section->by != MAREY__ENERGY_RUN || put_parts_of_run(report, section);
}

/* ---- all ---- */

bool marey__energy_put_tables(struct marey__energy_report *report)
{
    struct marey__energy_sections sections = {0};
    bool is_done = marey__energy_sections_make(&sections, report);
    for (size_t i = 0; is_done && i < sections.n; i++)
        is_done = put_section(report, &sections.sections[i]);
    marey__energy_sections_fini(&sections);
    if (is_done)
        marey__energy_put_repeats(report);
    return is_done;
}
