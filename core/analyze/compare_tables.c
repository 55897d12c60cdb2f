/* The tables of a comparison. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/compare_internal.h"

#define PERCENT(name, title)                                                                       \
    {                                                                                              \
        name, title, KYMO_TYPE_F64, KYMO_UNIT_NONE                                                 \
    }

static const struct kymo_column change_columns[] = {
    KYMO__NAME_COLUMN,
    {"a_ns", "A", KYMO_TYPE_F64, KYMO_UNIT_NS},
    {"b_ns", "B", KYMO_TYPE_F64, KYMO_UNIT_NS},
    PERCENT("change_percent", "change %"),
    PERCENT("low_percent", "from %"),
    PERCENT("high_percent", "to %"),
    {"verdict", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    PERCENT("effect_percent", "of the iteration %"),
    {"reason", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"n_a", NULL, KYMO_TYPE_U64, KYMO_UNIT_COUNT},
    {"n_b", NULL, KYMO_TYPE_U64, KYMO_UNIT_COUNT},
};
static const struct kymo_column only_columns[] = {
    KYMO__NAME_COLUMN,
    {"side", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"time_ns", "time", KYMO_TYPE_F64, KYMO_UNIT_NS},
};
static const struct kymo_column run_columns[] = {
    {"side", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"path", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"run_id", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"n_processes", "processes", KYMO_TYPE_U64, KYMO_UNIT_COUNT},
    {"n_iterations", "iterations", KYMO_TYPE_U64, KYMO_UNIT_COUNT},
    {"n_left_out", "left out", KYMO_TYPE_U64, KYMO_UNIT_COUNT},
};

static const struct {
    const char *name;
    const struct kymo_column *columns;
    size_t n;
} kinds[KYMO__N_COMPARED] = {
    [KYMO__COMPARED_REGIONS] = {"regions", change_columns, KYMO__COUNT_OF(change_columns)},
    [KYMO__COMPARED_ITERATION] = {"iteration", change_columns, KYMO__COUNT_OF(change_columns)},
    [KYMO__COMPARED_PROGRAM] = {"program", change_columns, KYMO__COUNT_OF(change_columns)},
    [KYMO__COMPARED_FUNCTIONS] = {"functions", change_columns, KYMO__COUNT_OF(change_columns)},
    [KYMO__COMPARED_ONLY] = {"only", only_columns, KYMO__COUNT_OF(only_columns)},
    [KYMO__COMPARED_RUNS] = {"runs", run_columns, KYMO__COUNT_OF(run_columns)},
    [KYMO__COMPARED_WARNINGS] = {"warnings", kymo__warning_columns, 1},
    [KYMO__COMPARED_QUANTILES] = {"quantiles", kymo__quantile_columns, KYMO__N_QUANTILE_COLUMNS},
};

const char *kymo_verdict_name(enum kymo_verdict verdict)
{
    static const char *const names[] = {"unsure", "same", "faster", "slower"};
    return (unsigned)verdict < KYMO__COUNT_OF(names) ? names[verdict] : "?";
}

/* ---- regions ---- */

/* What a side's runs have of one region: those that have it. */
struct picked {
    struct kymo__run_digest *runs;
    size_t n;
    double weight_ns; /* mean over all runs of the side */
};

enum kind { OF_REGIONS, OF_ITERATION, OF_WALL, OF_CPU, OF_FUNCTIONS };

static const struct kymo__run_region *region_of(const struct kymo__compared_run *run,
                                                enum kind kind, uint32_t name)
{
    switch (kind) {
    case OF_ITERATION:
        return &run->whole;
    case OF_WALL:
        return &run->wall;
    case OF_CPU:
        return &run->cpu;
    case OF_FUNCTIONS:
        return name < run->n_functions ? &run->functions[name] : NULL;
    default:
        return name < run->n_regions ? &run->regions[name] : NULL;
    }
}

/* `into->runs` has room for all runs of the side. */
static void pick(struct picked *into, const struct kymo__compared_runs *side, enum kind kind,
                 uint32_t name)
{
    into->n = 0;
    into->weight_ns = 0;
    for (size_t i = 0; i < side->n; i++) {
        const struct kymo__run_region *region = region_of(&side->runs[i], kind, name);
        if (region == NULL || region->n_processes == 0)
            continue;
        into->runs[into->n++] = (struct kymo__run_digest){&region->digest, side->runs[i].start};
        into->weight_ns += region->weight_ns / (double)side->n;
    }
}

static void put_number(kymo_table *table, double value)
{
    if (isfinite(value))
        kymo_table_f64(table, value);
    else
        kymo_table_null(table);
}

static void put_change(kymo_table *table, const char *name, size_t len,
                       const struct kymo_change *change, double effect)
{
    kymo_table_text(table, name, len);
    put_number(table, change->a);
    put_number(table, change->b);
    put_number(table, change->percent);
    put_number(table, change->low_percent);
    put_number(table, change->high_percent);
    kymo__put_string(table, kymo_verdict_name(change->verdict));
    put_number(table, effect);
    kymo__put_string(table, change->reason);
    kymo_table_u64(table, change->n_a);
    kymo_table_u64(table, change->n_b);
}

/* One region in the making: what it does to the whole decides its place. */
struct row {
    uint32_t name;
    double effect, order;
    struct kymo_change change;
};

struct making {
    kymo_comparison *c;
    const struct kymo_compare_options *options;
    struct picked a, b;
    double whole_ns; /* of A: the iteration, or for functions the wall time; 0 not known */
    struct row *rows;
    size_t n_rows;
};

static void pick_both(struct making *m, enum kind kind, uint32_t name)
{
    pick(&m->a, &m->c->sides[KYMO_A], kind, name);
    pick(&m->b, &m->c->sides[KYMO_B], kind, name);
}

static kymo_status change_of(struct making *m, struct kymo_change *out)
{
    KYMO_TRY(kymo__change_of_runs(m->a.runs, m->a.n, m->b.runs, m->b.n,
                                  m->options->smallest_percent, out));
    if (out->n_a == 1 && out->n_b == 1 && isnan(out->low_percent))
        out->reason = "one run on each side gives no interval; repeat the runs";
    return KYMO_OK;
}

static void put_only(struct making *m, const struct kymo__name *name)
{
    kymo_table *only = m->c->tables[KYMO__COMPARED_ONLY];
    kymo_table_text(only, name->text, name->len);
    kymo__put_string(only, m->a.n != 0 ? "A" : "B");
    kymo_table_f64(only, m->a.n != 0 ? m->a.weight_ns : m->b.weight_ns);
}

/* A function that one side alone has is news when it takes a hundredth of the program. */
static bool is_news(const struct making *m, enum kind kind)
{
    return kind == OF_REGIONS || KYMO__MAX(m->a.weight_ns, m->b.weight_ns) > m->whole_ns / 100;
}

static kymo_status take_region(struct making *m, enum kind kind, const struct kymo__names *names,
                               uint32_t name)
{
    pick_both(m, kind, name);
    if (m->a.n == 0 && m->b.n == 0)
        return KYMO_OK;
    if (m->a.n == 0 || m->b.n == 0) {
        if (is_news(m, kind))
            put_only(m, &names->names[name]);
        return KYMO_OK;
    }
    struct row *row = &m->rows[m->n_rows];
    KYMO_TRY(change_of(m, &row->change));
    /* Runs that lack the function have a time of 0, which has no ratio. */
    if (kind == OF_FUNCTIONS && (m->a.n < m->c->sides[KYMO_A].n || m->b.n < m->c->sides[KYMO_B].n)) {
        const double percent = row->change.percent;
        kymo__change_set_unknown(&row->change, "not seen in every run; longer runs have it in all");
        row->change.percent = percent;
    }
    row->name = name;
    row->order = fabs(row->change.percent) * m->a.weight_ns;
    row->effect = m->whole_ns > 0 ? row->change.percent * m->a.weight_ns / m->whole_ns : NAN;
    m->n_rows++;
    return KYMO_OK;
}

/* The heaviest effect first; what has none last. */
static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    const double left = isfinite(x->order) ? x->order : -1,
                 right = isfinite(y->order) ? y->order : -1;
    if (left != right)
        return left < right ? 1 : -1;
    return (x->name > y->name) - (x->name < y->name);
}

static kymo_status make_rows(struct making *m, enum kind kind, const struct kymo__names *names,
                             enum kymo__comparison_table table)
{
    m->n_rows = 0;
    for (uint32_t name = 0; name < names->n; name++)
        KYMO_TRY(take_region(m, kind, names, name));
    if (m->n_rows != 0)
        qsort(m->rows, m->n_rows, sizeof *m->rows, compare_rows);
    for (size_t i = 0; i < m->n_rows; i++) {
        const struct kymo__name *name = &names->names[m->rows[i].name];
        put_change(m->c->tables[table], name->text, name->len, &m->rows[i].change, m->rows[i].effect);
    }
    return KYMO_OK;
}

/* One row, where both sides have it. `name` is the row's; the weight in A is the new whole where `is_whole`. */
static kymo_status make_one(struct making *m, enum kind kind, const char *name,
                            enum kymo__comparison_table table, bool is_whole)
{
    struct kymo_change change;
    pick_both(m, kind, 0);
    if (m->a.n == 0 || m->b.n == 0)
        return KYMO_OK;
    KYMO_TRY(change_of(m, &change));
    if (is_whole)
        m->whole_ns = m->a.weight_ns;
    put_change(m->c->tables[table], name, strlen(name), &change, is_whole ? change.percent : NAN);
    return KYMO_OK;
}

static size_t n_rows_of(const struct making *m, enum kymo__comparison_table table)
{
    return kymo_table_n_rows(m->c->tables[table]);
}

static kymo_status expect_rows(const struct making *m)
{
    if (n_rows_of(m, KYMO__COMPARED_ITERATION) + n_rows_of(m, KYMO__COMPARED_REGIONS) +
            n_rows_of(m, KYMO__COMPARED_PROGRAM) + n_rows_of(m, KYMO__COMPARED_FUNCTIONS) !=
        0)
        return KYMO_OK;
    return kymo__fail(KYMO_EMISMATCH, "no region is in both %s and %s%s%s",
                      m->c->sides[KYMO_A].runs[0].path, m->c->sides[KYMO_B].runs[0].path,
                      m->options->filter != NULL ? " and matches " : "",
                      m->options->filter != NULL ? m->options->filter : "");
}

static kymo_status make_changes(struct making *m)
{
    KYMO_TRY(make_one(m, OF_ITERATION, KYMO__WHOLE, KYMO__COMPARED_ITERATION, true));
    KYMO_TRY(make_rows(m, OF_REGIONS, &m->c->names, KYMO__COMPARED_REGIONS));
    m->whole_ns = 0;
    KYMO_TRY(make_one(m, OF_WALL, KYMO__WALL, KYMO__COMPARED_PROGRAM, true));
    KYMO_TRY(make_one(m, OF_CPU, KYMO__CPU, KYMO__COMPARED_PROGRAM, false));
    KYMO_TRY(make_rows(m, OF_FUNCTIONS, &m->c->function_names, KYMO__COMPARED_FUNCTIONS));
    return expect_rows(m);
}

/* ---- all tables ---- */

static void put_runs(kymo_table *table, const kymo_comparison *c)
{
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < c->sides[s].n; i++) {
            const struct kymo__compared_run *run = &c->sides[s].runs[i];
            kymo__put_string(table, s == KYMO_A ? "A" : "B");
            kymo__put_string(table, run->path);
            kymo__put_string(table, run->id);
            kymo_table_u64(table, run->n_processes);
            kymo_table_u64(table, run->n_iterations);
            kymo_table_u64(table, run->n_left_out);
        }
}

static kymo_status make_all(struct making *m)
{
    KYMO_TRY(make_changes(m));
    put_runs(m->c->tables[KYMO__COMPARED_RUNS], m->c);
    kymo__comparison_notes(m->c->tables[KYMO__COMPARED_WARNINGS], m->c);
    kymo__comparison_quantiles(m->c->tables[KYMO__COMPARED_QUANTILES], m->c);
    for (size_t t = 0; t < KYMO__N_COMPARED; t++)
        KYMO_TRY(kymo_table_status(m->c->tables[t]));
    return KYMO_OK;
}

kymo_status kymo__comparison_make_tables(kymo_comparison *c,
                                         const struct kymo_compare_options *options)
{
    for (size_t t = 0; t < KYMO__N_COMPARED; t++)
        KYMO_TRY(kymo_table_create(kinds[t].name, kinds[t].columns, kinds[t].n, &c->tables[t]));
    struct making m = {
        .c = c,
        .options = options,
        .a.runs = kymo__calloc(c->sides[KYMO_A].n, sizeof *m.a.runs),
        .b.runs = kymo__calloc(c->sides[KYMO_B].n, sizeof *m.b.runs),
        .rows = kymo__calloc(KYMO__MAX(c->names.n, c->function_names.n) + 1, sizeof *m.rows),
    };
    const kymo_status status = m.a.runs == NULL || m.b.runs == NULL || m.rows == NULL
                                   ? kymo__fail(KYMO_ENOMEM, "no memory to compare")
                                   : make_all(&m);
    kymo__free(m.a.runs);
    kymo__free(m.b.runs);
    kymo__free(m.rows);
    return status;
}

/* ---- the gate ---- */

static bool row_is_slower(const kymo_table *table, size_t row, double percent)
{
    const struct kymo_cell verdict =
        kymo_table_cell(table, row, (size_t)kymo_table_find(table, "verdict"));
    const struct kymo_cell low =
        kymo_table_cell(table, row, (size_t)kymo_table_find(table, "low_percent"));
    return !low.is_null && low.as.f64 > percent && strcmp(verdict.as.text, "slower") == 0;
}

/* A gate that has no interval could never fail, which nobody would notice. */
static int wall_is_slower(const kymo_table *program, double percent)
{
    if (kymo_table_cell(program, 0, (size_t)kymo_table_find(program, "low_percent")).is_null)
        return kymo__fail(KYMO_EMISMATCH,
                          "one run on each side gives no interval of the wall time to judge by; "
                          "record several with 'kymo run --repeat 5'");
    return row_is_slower(program, 0, percent);
}

/* 1 slower, 0 not, -1 no such row. */
static int find_slower(const kymo_table *table, const char *region, double percent)
{
    int found = -1;
    for (size_t row = 0; row < kymo_table_n_rows(table); row++)
        if (region == NULL || strcmp(kymo_table_cell(table, row, 0).as.text, region) == 0)
            found = KYMO__MAX(found, (int)row_is_slower(table, row, percent));
    return found;
}

int kymo_comparison_is_slower(const kymo_comparison *c, const char *region, double percent)
{
    const kymo_table *const iteration = c->tables[KYMO__COMPARED_ITERATION],
                            *const regions = c->tables[KYMO__COMPARED_REGIONS],
                            *const program = c->tables[KYMO__COMPARED_PROGRAM];
    if (regions == NULL)
        return kymo__fail(KYMO_ESTATE, "nothing was compared yet");
    if (kymo_table_n_rows(iteration) != 0 && (region == NULL || strcmp(region, KYMO__WHOLE) == 0))
        return row_is_slower(iteration, 0, percent);
    const bool is_wall =
        region != NULL ? strcmp(region, KYMO__WALL) == 0 : kymo_table_n_rows(regions) == 0;
    if (is_wall && kymo_table_n_rows(program) != 0)
        return wall_is_slower(program, percent);
    const kymo_table *const tables[] = {regions, program, c->tables[KYMO__COMPARED_FUNCTIONS]};
    int found = -1;
    for (size_t t = 0; t < (region != NULL ? KYMO__COUNT_OF(tables) : 1); t++)
        found = KYMO__MAX(found, find_slower(tables[t], region, percent));
    if (found < 0 && region != NULL)
        return kymo__fail(KYMO_EINVAL, "no region '%s' is on both sides", region);
    return found > 0;
}
