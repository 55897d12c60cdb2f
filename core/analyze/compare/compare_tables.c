/* The tables of a comparison. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/compare/internal.h"

#define QUANTILE(name) MEAN(name, NULL)
#define PERCENT(name, title) REAL(name, title)

static const struct marey_column change_columns[] = {
    TEXT("name"),
    MEAN("a_ns", "A"),
    MEAN("b_ns", "B"),
    PERCENT("change_percent", "change %"),
    PERCENT("low_percent", "from %"),
    PERCENT("high_percent", "to %"),
    TEXT("verdict"),
    PERCENT("effect_percent", "of the iteration %"),
    TEXT("reason"),
    COUNT("n_a", NULL),
    COUNT("n_b", NULL),
};
static const struct marey_column only_columns[] = {
    TEXT("name"),
    TEXT("side"),
    MEAN("time_ns", "time"),
};
static const struct marey_column run_columns[] = {
    TEXT("side"),
    TEXT("path"),
    TEXT("run_id"),
    COUNT("n_processes", "processes"),
    COUNT("n_iterations", "iterations"),
    COUNT("n_left_out", "left out"),
};

static const struct marey_column finding_columns[] = {
    TEXT("id"),
    TEXT("change"),
    TEXT("where"),
    SHARE("a_share", "A"),
    SHARE("b_share", "B"),
    REAL("predicted", "predicted at most"),
    REAL("measured", NULL),
};

static const struct marey_column quantile_columns[] = {
    TEXT("name"),    TEXT("side"),    WHOLE("run"),    QUANTILE("q0"),  QUANTILE("q1"),
    QUANTILE("q2"),  QUANTILE("q3"),  QUANTILE("q4"),  QUANTILE("q5"),  QUANTILE("q6"),
    QUANTILE("q7"),  QUANTILE("q8"),  QUANTILE("q9"),  QUANTILE("q10"), QUANTILE("q11"),
    QUANTILE("q12"), QUANTILE("q13"), QUANTILE("q14"), QUANTILE("q15"), QUANTILE("q16"),
    QUANTILE("q17"), QUANTILE("q18"), QUANTILE("q19"), QUANTILE("q20"), QUANTILE("q21"),
    QUANTILE("q22"), QUANTILE("q23"), QUANTILE("q24"), QUANTILE("q25"), QUANTILE("q26"),
    QUANTILE("q27"), QUANTILE("q28"), QUANTILE("q29"), QUANTILE("q30"), QUANTILE("q31"),
    QUANTILE("q32")};

#define CHANGES(name, help)                                                                        \
    {                                                                                              \
        name, change_columns, MAREY__COUNT_OF(change_columns), NULL, help                          \
    }
const struct marey_table_definition marey__compare_tables[MAREY__N_COMPARED] = {
    [MAREY__COMPARED_RANGES] =
        CHANGES("ranges", "ranges of both sides; effect_percent is what the change does to the "
                          "iteration, the largest first"),
    [MAREY__COMPARED_ITERATION] = CHANGES("iteration", "the whole iteration, one row"),
    [MAREY__COMPARED_PROGRAM] =
        CHANGES("program", "wall time and CPU time of the programs that `marey run` waited for"),
    [MAREY__COMPARED_FUNCTIONS] =
        CHANGES("functions", "self times of functions, by samples or else by call profiles; "
                             "effect_percent is of the wall time"),
    [MAREY__COMPARED_ONLY] = {"only", only_columns, MAREY__COUNT_OF(only_columns), NULL,
                              "ranges that only one side has, and functions that take 1 % of its "
                              "wall time or more"},
    [MAREY__COMPARED_RUNS] = {"runs", run_columns, MAREY__COUNT_OF(run_columns), NULL,
                              "the runs that were read"},
    [MAREY__COMPARED_FINDINGS] =
        {"findings", finding_columns, MAREY__COUNT_OF(finding_columns),
         NULL, "findings of the diagnosis: gone, smaller, remains, larger or new; gains as factors of speed"},
    [MAREY__COMPARED_WARNINGS] = {"warnings", marey__warning_columns, 1, NULL,
                                  "machines that differ, drifts, single runs"},
    [MAREY__COMPARED_QUANTILES] = {"quantiles", quantile_columns, MAREY__COUNT_OF(quantile_columns),
                                   NULL,
                                   "how times are distributed in each run: the smallest, then each "
                                   "1/32 quantile, the largest; not in JSON"},
};

const char *marey_verdict_name(enum marey_verdict verdict)
{
    static const char *const names[] = {"unsure", "same", "faster", "slower"};
    return (unsigned)verdict < MAREY__COUNT_OF(names) ? names[verdict] : "?";
}

/* ---- ranges ---- */

/* The runs of a side that have a range. */
struct picked {
    struct marey__run_digest *runs;
    size_t n;
    double weight_ns; /* mean over all runs of the side */
};

/* `into->runs` has space for all runs of the side. */
static void pick(struct picked *into, const struct marey__compared_runs *side,
                 enum marey__comparison_table table, uint32_t name)
{
    into->n = 0;
    into->weight_ns = 0;
    for (size_t i = 0; i < side->n; i++) {
        const struct marey__run_ranges *const of = &side->runs[i].of[table];
        if (name >= of->n || of->list[name].n_processes == 0)
            continue;
        const struct marey__run_range *const range = &of->list[name];
        into->runs[into->n++] = (struct marey__run_digest){&range->digest, side->runs[i].start};
        into->weight_ns += range->weight_ns / (double)side->n;
    }
}

static void put_change(marey_table *table, const char *name, size_t len,
                       const struct marey_change *change, double effect)
{
    MAREY__PUT_ROW(table, STRING_N(name, len), FINITE(change->a), FINITE(change->b),
                   FINITE(change->percent), FINITE(change->low_percent),
                   FINITE(change->high_percent), STRING(marey_verdict_name(change->verdict)),
                   FINITE(effect), STRING(change->reason), U64(change->n_a), U64(change->n_b));
}

/* A range's row, with the effect by which rows are sorted. */
struct row {
    uint32_t name;
    double effect, order;
    struct marey_change change;
};

struct making {
    struct marey__comparison *c;
    const struct marey__compare_options *options;
    struct picked a, b;
    double whole_ns; /* of A: the iteration, or for functions the wall time; 0 unknown */
    struct row *rows;
    size_t n_rows;
};

static marey_status change_of(struct making *m, struct marey_change *out)
{
    MAREY_TRY(marey__change_of_runs(m->a.runs, m->a.n, m->b.runs, m->b.n,
                                    m->options->smallest_percent, out));
    if (out->n_a == 1 && out->n_b == 1 && isnan(out->low_percent))
        out->reason = "one run on each side gives no interval; repeat the runs";
    return MAREY_OK;
}

/* A function on one side only is reported if it takes 1 % of the program. */
static bool is_news(const struct making *m, enum marey__comparison_table table)
{
    return table == MAREY__COMPARED_RANGES ||
           (table == MAREY__COMPARED_FUNCTIONS &&
            MAREY__MAX(m->a.weight_ns, m->b.weight_ns) > m->whole_ns / 100);
}

/* The effect on the whole: on the iteration, or on the wall time. */
static double effect_of(struct making *m, enum marey__comparison_table table, const struct row *row)
{
    const bool is_first = row->name == 0;
    if (table == MAREY__COMPARED_RANGES || table == MAREY__COMPARED_FUNCTIONS)
        return m->whole_ns > 0 ? row->change.percent * m->a.weight_ns / m->whole_ns : NAN;
    m->whole_ns = is_first ? m->a.weight_ns : m->whole_ns;
    return is_first ? row->change.percent : NAN;
}

static marey_status take_name(struct making *m, enum marey__comparison_table table, uint32_t name)
{
    pick(&m->a, &m->c->sides[MAREY__A], table, name);
    pick(&m->b, &m->c->sides[MAREY__B], table, name);
    if (m->a.n == 0 && m->b.n == 0)
        return MAREY_OK;
    if (m->a.n == 0 || m->b.n == 0) {
        const struct picked *const only = m->a.n != 0 ? &m->a : &m->b;
        const struct marey__name *const its = &m->c->names[table].names[name];
        if (is_news(m, table))
            MAREY__PUT_ROW(m->c->tables[MAREY__COMPARED_ONLY], STRING_N(its->text, its->len),
                           STRING(only == &m->a ? "A" : "B"), F64(only->weight_ns));
        return MAREY_OK;
    }
    struct row *row = &m->rows[m->n_rows++];
    MAREY_TRY(change_of(m, &row->change));
    /* Runs without the function have a time of 0, which has no ratio. */
    if (table == MAREY__COMPARED_FUNCTIONS &&
        (m->a.n < m->c->sides[MAREY__A].n || m->b.n < m->c->sides[MAREY__B].n)) {
        const double percent = row->change.percent;
        marey__change_set_unknown(&row->change,
                                  "not seen in every run; longer runs have it in all");
        row->change.percent = percent;
    }
    row->name = name;
    row->order = fabs(row->change.percent) * m->a.weight_ns;
    row->effect = effect_of(m, table, row);
    return MAREY_OK;
}

/* The largest effect first; rows without one last. */
static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    const double left = isfinite(x->order) ? x->order : -1,
                 right = isfinite(y->order) ? y->order : -1;
    if (left != right)
        return left < right ? 1 : -1;
    return (x->name > y->name) - (x->name < y->name);
}

static marey_status make_rows(struct making *m, enum marey__comparison_table table)
{
    const struct marey__names *const names = &m->c->names[table];
    m->n_rows = 0;
    for (uint32_t name = 0; name < names->n; name++)
        MAREY_TRY(take_name(m, table, name));
    if (m->n_rows != 0 && table != MAREY__COMPARED_PROGRAM)
        qsort(m->rows, m->n_rows, sizeof *m->rows, compare_rows);
    for (size_t i = 0; i < m->n_rows; i++) {
        const struct marey__name *name = &names->names[m->rows[i].name];
        put_change(m->c->tables[table], name->text, name->len, &m->rows[i].change, m->rows[i].effect);
    }
    return MAREY_OK;
}

static marey_status make_changes(struct making *m)
{
    size_t n_rows = 0;
    MAREY_TRY(make_rows(m, MAREY__COMPARED_ITERATION));
    MAREY_TRY(make_rows(m, MAREY__COMPARED_RANGES));
    m->whole_ns = 0;
    MAREY_TRY(make_rows(m, MAREY__COMPARED_PROGRAM));
    MAREY_TRY(make_rows(m, MAREY__COMPARED_FUNCTIONS));
    for (size_t table = 0; table < MAREY__COMPARED_ONLY; table++)
        n_rows += marey_table_n_rows(m->c->tables[table]);
    if (n_rows != 0)
        return MAREY_OK;
    return marey__fail(MAREY_EMISMATCH, "no range is in both %s and %s%s%s",
                       m->c->sides[MAREY__A].runs[0].path, m->c->sides[MAREY__B].runs[0].path,
                       m->options->filter != NULL ? " and matches " : "",
                       m->options->filter != NULL ? m->options->filter : "");
}

/* ---- the distribution of times in each run, for the page ---- */

static void put_ranges(marey_table *table, const char *side, size_t run,
                       const struct marey__names *names, const struct marey__run_ranges *of)
{
    for (size_t r = 0; r < of->n; r++) {
        if (of->list[r].n_processes == 0)
            continue;
        MAREY__PUT_ROW(table, STRING_N(names->names[r].text, names->names[r].len), STRING(side),
                       U64(run));
        for (size_t q = 0; q < MAREY__QUANTILES; q++)
            marey_table_f64(table, (double)of->list[r].digest.quantiles[q]);
    }
}

static void put_quantiles(marey_table *table, const struct marey__comparison *c)
{
    static const enum marey__comparison_table kinds[] = {MAREY__COMPARED_ITERATION,
                                                         MAREY__COMPARED_RANGES};
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < c->sides[s].n; i++)
            for (size_t k = 0; k < MAREY__COUNT_OF(kinds); k++)
                put_ranges(table, s == MAREY__A ? "A" : "B", i, &c->names[kinds[k]],
                           &c->sides[s].runs[i].of[kinds[k]]);
}

/* ---- all tables ---- */

static void put_runs(marey_table *table, const struct marey__comparison *c)
{
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < c->sides[s].n; i++) {
            const struct marey__compared_run *run = &c->sides[s].runs[i];
            MAREY__PUT_ROW(table, STRING(s == MAREY__A ? "A" : "B"), STRING(run->path),
                           STRING(run->id), U64(run->n_processes), U64(run->n_iterations),
                           U64(run->n_left_out));
        }
}

static void making_fini(struct making *m)
{
    MAREY__FREE_ALL(m->a.runs, m->b.runs, m->rows);
}

marey_status marey__comparison_make_tables(struct marey__comparison *c,
                                           const struct marey__compare_options *options)
{
    struct making m MAREY__FINALLY(making_fini) = {
        .c = c,
        .options = options,
        .a.runs = marey__calloc(c->sides[MAREY__A].n, sizeof *m.a.runs),
        .b.runs = marey__calloc(c->sides[MAREY__B].n, sizeof *m.b.runs),
    };
    size_t most = 1;
    for (size_t table = 0; table < MAREY__COMPARED_ONLY; table++)
        most = MAREY__MAX(most, c->names[table].n);
    m.rows = marey__calloc(most, sizeof *m.rows);
    MAREY__TRY_MEMORY(m.a.runs != NULL && m.b.runs != NULL && m.rows != NULL);
    MAREY_TRY(make_changes(&m));
    put_runs(c->tables[MAREY__COMPARED_RUNS], c);
    marey__comparison_notes(c->tables[MAREY__COMPARED_WARNINGS], c);
    put_quantiles(c->tables[MAREY__COMPARED_QUANTILES], c);
    return marey__compare_findings(c);
}
