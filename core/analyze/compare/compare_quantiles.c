/* How times are distributed in each run: quantiles of every region that both sides have, for pages to draw. */
#include <string.h>

#include "analyze/compare/internal.h"

#define QUANTILE(name)                                                                             \
    {                                                                                              \
        name, NULL, MAREY_TYPE_F64, MAREY_UNIT_NS                                                  \
    }

const struct marey_column marey__quantile_columns[MAREY__N_QUANTILE_COLUMNS] = {
    MAREY__NAME_COLUMN,
    {"side", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"run", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    QUANTILE("q0"),
    QUANTILE("q1"),
    QUANTILE("q2"),
    QUANTILE("q3"),
    QUANTILE("q4"),
    QUANTILE("q5"),
    QUANTILE("q6"),
    QUANTILE("q7"),
    QUANTILE("q8"),
    QUANTILE("q9"),
    QUANTILE("q10"),
    QUANTILE("q11"),
    QUANTILE("q12"),
    QUANTILE("q13"),
    QUANTILE("q14"),
    QUANTILE("q15"),
    QUANTILE("q16"),
    QUANTILE("q17"),
    QUANTILE("q18"),
    QUANTILE("q19"),
    QUANTILE("q20"),
    QUANTILE("q21"),
    QUANTILE("q22"),
    QUANTILE("q23"),
    QUANTILE("q24"),
    QUANTILE("q25"),
    QUANTILE("q26"),
    QUANTILE("q27"),
    QUANTILE("q28"),
    QUANTILE("q29"),
    QUANTILE("q30"),
    QUANTILE("q31"),
    QUANTILE("q32"),
};

static void put_region(marey_table *table, const char *name, size_t len, const char *side,
                       size_t run, const struct marey__run_region *region)
{
    if (region->n_processes == 0)
        return;
    marey_table_text(table, name, len);
    marey__put_string(table, side);
    marey_table_u64(table, run);
    for (size_t q = 0; q < MAREY__QUANTILES; q++)
        marey_table_f64(table, (double)region->digest.quantiles[q]);
}

void marey__comparison_quantiles(marey_table *table, const struct marey__comparison *c)
{
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < c->sides[s].n; i++) {
            const struct marey__compared_run *run = &c->sides[s].runs[i];
            const char *side = s == MAREY__A ? "A" : "B";
            put_region(table, MAREY__WHOLE, strlen(MAREY__WHOLE), side, i, &run->whole);
            for (size_t r = 0; r < run->n_regions; r++)
                put_region(table, c->names.names[r].text, c->names.names[r].len, side, i,
                           &run->regions[r]);
        }
}
