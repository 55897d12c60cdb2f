/* The tables of a comparison. */
#include <math.h>
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

static const struct kymo__run_region *region_of(const struct kymo__run *run, uint32_t name)
{
    if (name == KYMO__NO_NAME)
        return &run->whole;
    return name < run->n_regions ? &run->regions[name] : NULL;
}

/* `into->runs` has room for all runs of the side. KYMO__NO_NAME stands for the whole iteration. */
static void pick(struct picked *into, const struct kymo__runs *side, uint32_t name)
{
    into->n = 0;
    into->weight_ns = 0;
    for (size_t i = 0; i < side->n; i++) {
        const struct kymo__run_region *region = region_of(&side->runs[i], name);
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
    double whole_ns; /* of A; 0 without iterations */
    struct row *rows;
    size_t n_rows;
};

static kymo_status change_of(struct making *m, struct kymo_change *out)
{
    return kymo__change_of_runs(m->a.runs, m->a.n, m->b.runs, m->b.n, m->options->smallest_percent,
                                out);
}

static void put_only(struct making *m, uint32_t name)
{
    kymo_table *only = m->c->tables[KYMO__COMPARED_ONLY];
    const struct kymo__name *text = &m->c->names.names[name];
    kymo_table_text(only, text->text, text->len);
    kymo__put_string(only, m->a.n != 0 ? "A" : "B");
    kymo_table_f64(only, m->a.n != 0 ? m->a.weight_ns : m->b.weight_ns);
}

static kymo_status take_region(struct making *m, uint32_t name)
{
    pick(&m->a, &m->c->sides[KYMO_A], name);
    pick(&m->b, &m->c->sides[KYMO_B], name);
    if (m->a.n == 0 && m->b.n == 0)
        return KYMO_OK;
    if (m->a.n == 0 || m->b.n == 0) {
        put_only(m, name);
        return KYMO_OK;
    }
    struct row *row = &m->rows[m->n_rows];
    KYMO_TRY(change_of(m, &row->change));
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

static kymo_status make_regions(struct making *m)
{
    for (uint32_t name = 0; name < m->c->names.n; name++)
        KYMO_TRY(take_region(m, name));
    if (m->n_rows == 0 && m->whole_ns <= 0)
        return kymo__fail(KYMO_EMISMATCH, "no region is in both %s and %s%s%s",
                          m->c->sides[KYMO_A].runs[0].path, m->c->sides[KYMO_B].runs[0].path,
                          m->options->filter != NULL ? " and matches " : "",
                          m->options->filter != NULL ? m->options->filter : "");
    qsort(m->rows, m->n_rows, sizeof *m->rows, compare_rows);
    for (size_t i = 0; i < m->n_rows; i++) {
        const struct kymo__name *name = &m->c->names.names[m->rows[i].name];
        put_change(m->c->tables[KYMO__COMPARED_REGIONS], name->text, name->len, &m->rows[i].change,
                   m->rows[i].effect);
    }
    return KYMO_OK;
}

static kymo_status make_iteration(struct making *m)
{
    struct kymo_change change;
    pick(&m->a, &m->c->sides[KYMO_A], KYMO__NO_NAME);
    pick(&m->b, &m->c->sides[KYMO_B], KYMO__NO_NAME);
    if (m->a.n == 0 || m->b.n == 0)
        return KYMO_OK;
    KYMO_TRY(change_of(m, &change));
    m->whole_ns = m->a.weight_ns;
    put_change(m->c->tables[KYMO__COMPARED_ITERATION], KYMO__WHOLE, strlen(KYMO__WHOLE), &change,
               change.percent);
    return KYMO_OK;
}

/* ---- all tables ---- */

static void put_runs(kymo_table *table, const kymo_comparison *c)
{
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < c->sides[s].n; i++) {
            const struct kymo__run *run = &c->sides[s].runs[i];
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
    KYMO_TRY(make_iteration(m));
    KYMO_TRY(make_regions(m));
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
        .rows = kymo__calloc(c->names.n + 1, sizeof *m.rows),
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

int kymo_comparison_is_slower(const kymo_comparison *c, const char *region, double percent)
{
    const kymo_table *iteration = c->tables[KYMO__COMPARED_ITERATION],
                     *regions = c->tables[KYMO__COMPARED_REGIONS];
    if (regions == NULL)
        return kymo__fail(KYMO_ESTATE, "nothing was compared yet");
    if (kymo_table_n_rows(iteration) != 0 && (region == NULL || strcmp(region, KYMO__WHOLE) == 0))
        return row_is_slower(iteration, 0, percent);
    bool is_slower = false, is_there = region == NULL;
    for (size_t row = 0; row < kymo_table_n_rows(regions); row++) {
        const struct kymo_cell name = kymo_table_cell(regions, row, 0);
        if (region != NULL && strcmp(name.as.text, region) != 0)
            continue;
        is_there = true;
        is_slower |= row_is_slower(regions, row, percent);
    }
    if (!is_there)
        return kymo__fail(KYMO_EINVAL, "no region '%s' is on both sides", region);
    return is_slower;
}
