/* The tables of energy. */
#include <inttypes.h>
#include <math.h>

#include "analyze/energy/internal.h"

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
    [MAREY__ENERGY_RUNS] =
        {TABLE("runs", run_columns), "run",
         "joules and watts of each run (processes with one run id), of the devices that it used"},
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
    [MAREY__ENERGY_RANGES] =
        {TABLE("ranges", named_columns), "range",
         "ranges, in host time: synchronize with the GPU at the start and end of a range"},
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
    const bool is_known = sum->measured_ns != 0 && !sum->is_short && !row->is_too_many;
    MAREY__PUT_ROW(table, STRING(kind), U64(sum->n_devices), KNOWN(row->count != 0, U64(row->count)),
                   U64(sum->ns), KNOWN(is_known, FINITE(sum->joules)),
                   KNOWN(is_known, FINITE(sum->plus_minus)), KNOWN(is_known, FINITE(sum->mean_w)),
                   KNOWN(is_known && sum->peak_w > 0, FINITE(sum->peak_w)));
    put_shares(table, sum);
    MAREY__PUT_ROW(table, KNOWN(row->samples > 0, FINITE(row->samples)),
                   KNOWN(is_known && row->samples > 0, FINITE(sum->joules / row->samples)),
                   KNOWN(is_known, FINITE(sum->joules * (double)sum->ns * 1e-9)),
                   KNOWN(is_known && report->co2_g_per_kwh > 0, FINITE(co2(report, sum->joules))),
                   STRING(measured_by(sum)), STRING(note_of(sum, row)));
}

/* The table, and a function for the cells before the numbers. */
struct target_row {
    marey_table *table;
    const struct marey__energy_report *report;
    const struct marey__energy_row *row;
    struct marey__cell whose[4];
    size_t n_whose;
};

static void put_row(const struct target_row *to)
{
    struct marey__energy_sum all = {0};
    size_t n = 0;
    for (size_t kind = 0; kind < MAREY__N_ENERGY_KINDS; kind++) {
        const struct marey__energy_sum *sum = &to->row->sums[kind];
        if (sum->n_devices == 0)
            continue;
        marey__put_cells(to->table, to->whose, to->n_whose);
        put_numbers(to->report, to->table, marey__energy_kind_names[kind], sum, to->row);
        marey__energy_sum_add(&all, sum);
        n++;
    }
    if (n < 2)
        return;
    marey__put_cells(to->table, to->whose, to->n_whose);
    put_numbers(to->report, to->table, "all", &all, to->row);
}

/* ---- devices ---- */

static bool put_device(const struct marey__energy_report *report, marey_table *table,
                       const struct marey__energy_section *section,
                       const struct marey__energy_target *target)
{
    const struct marey__meter *meter = &report->meters[target->meter];
    const struct marey__energy_row row = {0};
    struct marey__energy_sum sum;
    size_t model_len;
    const char *model = marey__meter_source_field(meter, MAREY__SOURCE_MODEL, &model_len);
    if (!marey__energy_target_measure(target, section, report, &sum))
        return false;
    struct marey__buf ranks MAREY__FINALLY(marey__buf_fini) = {0};
    for (size_t i = 0; i < report->n_members; i++)
        if (target->users[i] && report->members[i].rank >= 0)
            marey__buf_printf(&ranks, "%s%" PRId32, ranks.len == 0 ? "" : ",",
                              report->members[i].rank);
    MAREY__PUT_ROW(table, U64(section->run + 1), STRING(target->host),
                   STRING_N(meter->device, meter->device_len), STRING_N(meter->name, meter->name_len),
                   STRING_N(model, model_len), TRUTH(target->n_users != 0),
                   TRUTH(target->kind == MAREY__OF_GPU && target->n_users > 1),
                   STRING_N(ranks.data != NULL ? ranks.data : "", ranks.len));
    put_numbers(report, table, marey__energy_kind_names[target->kind], &sum, &row);
    for (unsigned q = MAREY__SM_CLOCK; q <= MAREY__MEMORY_CLOCK; q++)
        marey__put_real(table, sum.weighted[q] / sum.weight[q], sum.weight[q] > 0);
    MAREY__PUT_ROW(
        table, KNOWN(meter->of[MAREY__TEMPERATURE].n != 0, FINITE(sum.highest[MAREY__TEMPERATURE])),
        KNOWN(meter->of[MAREY__MEMORY_USED].n != 0, FINITE(sum.highest[MAREY__MEMORY_USED])));
    return !ranks.failed;
}

/* ---- tables of sections ---- */

static bool shares_device(const struct marey__energy_report *report, size_t member)
{
    for (size_t i = 0; i < report->n_targets; i++)
        if (report->targets[i].kind == MAREY__OF_GPU && report->targets[i].users[member] &&
            report->targets[i].n_users > 1)
            return true;
    return false;
}

/* Rows of a run's devices, ranks and hosts. */
static bool put_parts_of_run(struct marey__energy_report *report,
                             const struct marey__energy_section *section)
{
    const struct marey__cell run = U64(section->run + 1);
    struct marey__energy_row row;
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
        put_row(&(struct target_row){
            .table = report->tables[MAREY__ENERGY_RANKS],
            .report = report,
            .row = &row,
            .whose = {run, RANK_OF(member->rank), STRING(member->host),
                      TRUTH(shares_device(report, section->windows[i]->member))},
            .n_whose = 4});
        bool is_listed = false; /* a host is listed with the first of its ranks */
        for (size_t j = 0; j < i; j++)
            is_listed |= strcmp(report->members[section->windows[j]->member].host, member->host) == 0;
        if (is_listed)
            continue;
        const struct marey__energy_scope scope = {.member = MAREY__NO_MEMBER, .host = member->host};
        if (!marey__energy_row_make(report, section, &scope, &row))
            return false;
        row.samples = section->n == 1 ? row.samples : 0; /* they are of all hosts */
        put_row(&(struct target_row){.table = report->tables[MAREY__ENERGY_NODES],
                                     .report = report,
                                     .row = &row,
                                     .whose = {run, STRING(member->host)},
                                     .n_whose = 2});
    }
    return true;
}

static bool put_section(struct marey__energy_report *report,
                        const struct marey__energy_section *section)
{
    static const enum marey__energy_table tables[MAREY__N_ENERGY_BY] = {
        [MAREY__ENERGY_RUN] = MAREY__ENERGY_RUNS,
        [MAREY__ENERGY_EPOCH] = MAREY__ENERGY_EPOCHS,
        [MAREY__ENERGY_ITERATION] = MAREY__ENERGY_ITERATIONS,
        [MAREY__ENERGY_PHASE] = MAREY__ENERGY_PHASES,
        [MAREY__ENERGY_RANGE] = MAREY__ENERGY_RANGES,
    };
    const struct marey__energy_scope everybody = {.member = MAREY__NO_MEMBER};
    const bool is_run = section->by == MAREY__ENERGY_RUN;
    struct marey__energy_row row;
    if (!marey__energy_row_make(report, section, &everybody, &row))
        return false;
    struct target_row to = {.table = report->tables[tables[section->by]],
                            .report = report,
                            .row = &row,
                            .whose = {U64(section->run + 1), U64(section->key)},
                            .n_whose = 2};
    if (is_run) {
        to.whose[1] = STRING(report->runs.list[section->run].id);
    } else if (section->by == MAREY__ENERGY_ITERATION) {
        to.whose[1] = U64(row.first);
        to.whose[to.n_whose++] = U64(row.last);
    } else if (section->by != MAREY__ENERGY_EPOCH) {
        const struct marey__name *const name = &report->names.names[section->key];
        to.whose[1] = STRING_N(name->text, name->len);
    }
    if (section->by == MAREY__ENERGY_EPOCH || is_run)
        row.count = 0;
    put_row(&to);
    return !is_run || put_parts_of_run(report, section);
}

/* ---- runs of one recording as repeats: mean and confidence interval, never sums ---- */

/* Mean and interval over runs for rows of one kind. */
static void put_kind(const struct marey__energy_report *report, const char *kind)
{
    const marey_table *runs = report->tables[MAREY__ENERGY_RUNS];
    marey_table *table = report->tables[MAREY__ENERGY_REPEATS];
    double n = 0, sum = 0, squares = 0, ns = 0, per_sample = 0, n_per_sample = 0;
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t row = 0; row < marey_table_n_rows(runs); row++) {
            const struct marey_cell joules = marey__cell_of(runs, row, "joules"),
                                    sample = marey__cell_of(runs, row, "joules_per_sample");
            if (joules.is_null || strcmp(marey__cell_of(runs, row, "kind").as.text, kind) != 0)
                continue;
            if (pass == 1) {
                squares += (joules.as.f64 - sum / n) * (joules.as.f64 - sum / n);
                continue;
            }
            n++;
            sum += joules.as.f64;
            ns += (double)marey__cell_of(runs, row, "duration_ns").as.u64;
            per_sample += sample.is_null ? 0 : sample.as.f64;
            n_per_sample += !sample.is_null;
        }
    if (n < 2)
        return;
    const double std = sqrt(squares / (n - 1)), half = marey__t_quantile(0.95, n - 1) * std / sqrt(n);
    MAREY__PUT_ROW(table, STRING(kind), U64((uint64_t)n), F64(sum / n), F64(sum / n - half),
                   F64(sum / n + half), F64(std), F64(ns / n),
                   KNOWN(n_per_sample == n, FINITE(per_sample / n)));
}

static void put_repeats(struct marey__energy_report *report)
{
    for (size_t kind = 0; kind < MAREY__N_ENERGY_KINDS; kind++)
        put_kind(report, marey__energy_kind_names[kind]);
    put_kind(report, "all");
}

/* ---- all tables ---- */

bool marey__energy_put_tables(struct marey__energy_report *report)
{
    struct marey__energy_sections sections MAREY__FINALLY(marey__energy_sections_fini) = {0};
    bool is_done = marey__energy_sections_make(&sections, report);
    for (size_t i = 0; is_done && i < sections.n; i++)
        is_done = put_section(report, &sections.sections[i]);
    if (is_done)
        put_repeats(report);
    return is_done;
}
