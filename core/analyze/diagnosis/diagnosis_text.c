/* The diagnosis for a terminal: the verdict, then the findings by number. */
#include <string.h>

#include "analyze/diagnosis/internal.h"
#include "present/draw/internal.h"

void marey__finding_put_place(struct marey__buf *line, const struct marey__facts *facts,
                              const struct marey__finding *f, const char *bold, const char *plain)
{
    const struct marey_samples_function *const function =
        facts->has_samples
            ? marey_samples_get_function(facts->set.samples, f->statement.place.function)
            : NULL;
    const bool is_unknown = f->statement.place.function == 0 && f->statement.place.is_unknown;
    if (f->statement.place.function != 0 &&
        f->statement.place.line == 0) /* native, without debug information */
        marey__buf_printf(line, "%s%s (%s)%s is %.0f %% ", bold, function->name, function->module,
                          plain, f->statement.place.share * 100);
    else if (f->statement.place.function != 0) {
        const struct marey__fact_place *const place = &f->statement.place;
        const struct marey_samples_function *const caller =
            marey_samples_get_function(facts->set.samples, place->caller);
        marey__buf_printf(line, "%s%s (%s:%u)%s", bold, function->name,
                          marey__base_name(function->file), place->line, plain);
        if (place->caller != 0)
            marey__buf_printf(line, ", called by %s (%s:%u),", caller->name,
                              marey__base_name(caller->file), place->caller_line);
        marey__buf_printf(line, " is %.0f %% ", place->share * 100);
    } else if (facts->has_samples && !is_unknown)
        marey__buf_puts(line, "No function is half ");
    else if (facts->has_samples)
        marey__buf_puts(line, "The function is unknown: too few samples were taken at these times");
    else
        marey__buf_puts(line, "No stacks were recorded, so the function is unknown");
    marey__buf_puts(line, facts->has_samples && !is_unknown ? f->detail : ".");
}

void marey__finding_put_gain(struct marey__buf *line, const struct marey__finding *f,
                             const char *before, const char *after)
{
    if (!f->is_risk && f->at_most > 100)
        marey__buf_printf(line, "%*s>100%s", (int)strspn(before, " "), "", after);
    else if (!f->is_risk)
        marey__buf_printf(line, "%s%.*f%s", before,
                          f->at_most < 1.1  ? 2
                          : f->at_most < 10 ? 1
                                            : 0,
                          f->at_most, after);
}

static marey_status put_finding(struct marey__lines *lines, const struct marey__diagnosis *d, size_t i)
{
    const struct marey__finding *const f = &d->findings[i];
    marey__buf_printf(&lines->line, "  %zu  %s%s%s", i + 1, marey__style(lines, BOLD),
                      f->statement.claim, marey__style(lines, PLAIN));
    marey__finding_put_gain(&lines->line, f, "  at most ", "x faster");
    MAREY_TRY(marey__lines_end(lines));
    if (f->detail[0] != '\0') {
        marey__buf_puts(&lines->line, "     ");
        marey__finding_put_place(&lines->line, &d->facts, f, marey__style(lines, BOLD),
                                 marey__style(lines, PLAIN));
        MAREY_TRY(marey__lines_end(lines));
    }
    for (size_t k = 0; k < f->n_because; k++) {
        marey__buf_printf(&lines->line, "     because: %s", f->because[k].claim);
        MAREY_TRY(marey__lines_end(lines));
    }
    marey__buf_printf(&lines->line, "     %s", f->statement.action);
    return marey__lines_end(lines);
}

/* If the interval includes zero, only its upper end is informative. */
static marey_status put_cost(struct marey__lines *lines, const struct marey__facts *f)
{
    struct marey__buf *const line = &lines->line;
    marey__buf_printf(line, "  %srecording cost ", marey__style(lines, DIM));
    if (!f->is_cost_measured)
        marey__buf_printf(line, "about %.1f %% (estimated; too few even steps to measure it)",
                          f->cost_share * 100);
    else if (f->cost_low <= 0)
        marey__buf_printf(line, "less than %.1f %% (measured)", f->cost_high * 100);
    else
        marey__buf_printf(line, "%.1f %% (%.1f to %.1f %%, measured)", f->cost_share * 100,
                          f->cost_low * 100, f->cost_high * 100);
    marey__buf_puts(line, marey__style(lines, PLAIN));
    return marey__lines_end(lines);
}

/* The largest parts of start-up. */
static marey_status put_startup(struct marey__lines *lines, const marey_table *table)
{
    enum { MOST = 3 };
    const double least = 0.05;
    for (size_t i = 0; i < MOST && i < marey_table_n_rows(table); i++) {
        const double share = marey_table_cell(table, i, 2).as.f64;
        if (share >= least)
            marey__buf_printf(&lines->line, "%s%s %.0f %%", i == 0 ? "  start-up: " : ", ",
                              marey_table_cell(table, i, 0).as.text, share * 100);
    }
    return lines->line.len != 0 ? marey__lines_end(lines) : MAREY_OK;
}

marey_status marey__diagnosis_text(struct marey__report_writer *writer)
{
    const struct marey__diagnosis *const d = writer->report->data;
    struct marey__lines *const lines = &writer->lines;
    marey__buf_printf(&lines->line, "%s%s", writer->options->is_short ? "marey: " : "", d->verdict);
    MAREY_TRY(marey__lines_end(lines));
    for (size_t i = 0; i < d->n_findings; i++)
        MAREY_TRY(put_finding(lines, d, i));
    if (!writer->options->is_short)
        MAREY_TRY(put_startup(lines, writer->report->tables[MAREY__STARTUP_TABLE]));
    if (d->missing[0] != '\0') {
        marey__buf_printf(&lines->line, "  %s%s%s", marey__style(lines, DIM), d->missing,
                          marey__style(lines, PLAIN));
        return marey__lines_end(lines);
    }
    return d->facts.n_steps != 0 ? put_cost(lines, &d->facts) : MAREY_OK;
}
