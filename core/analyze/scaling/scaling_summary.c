/*
 * The series of a report, and a summary of each: whether it scales, how far, and what limits it.
 *
 * The limit: the steps of the last point take longer than ideal ones. Efficiency gives the length of an ideal step, and
 * each part of the baseline's step scales with the whole. The excess of a part over that is its cost.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "analyze/scaling/internal.h"

double marey__scaling_number(const marey_table *table, size_t row, const char *column)
{
    if (column == NULL)
        return NAN;
    const size_t c = (size_t)marey_table_find(table, column);
    const struct marey_cell cell = marey_table_cell(table, row, c);
    const enum marey_type type = marey_table_column(table, c)->type;
    if (cell.is_null)
        return NAN;
    if (type == MAREY_TYPE_F64)
        return cell.as.f64;
    return type == MAREY_TYPE_I64 ? (double)cell.as.i64 : (double)cell.as.u64;
}

static bool is_same_text(const marey_table *a, size_t row_a, const marey_table *b, size_t row_b,
                         const char *column)
{
    const struct marey_cell one = marey__cell_of(a, row_a, column),
                            other = marey__cell_of(b, row_b, column);
    return one.len == other.len && memcmp(one.as.text, other.as.text, one.len) == 0;
}

bool marey__scaling_is_same_series(const marey_table *a, size_t row_a, const marey_table *b,
                                   size_t row_b)
{
    return is_same_text(a, row_a, b, row_b, "experiment") &&
           is_same_text(a, row_a, b, row_b, "strategy");
}

static bool has_several_experiments(const marey_table *points)
{
    for (size_t row = 1; row < marey_table_n_rows(points); row++)
        if (!is_same_text(points, 0, points, row, "experiment"))
            return true;
    return false;
}

static const char *name_series(struct marey__scaling_list *list, size_t row, bool has_experiments)
{
    const char *const experiment = has_experiments
                                       ? marey__cell_of(list->points, row, "experiment").as.text
                                       : "",
                      *const strategy = marey__cell_of(list->points, row, "strategy").as.text,
                      *const comma = *experiment != '\0' && *strategy != '\0' ? ", " : "";
    struct marey__buf name MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_printf(&name, "%s%s%s", experiment, comma, strategy);
    return name.failed ? NULL : marey__arena_text(&list->texts, name.data, name.len);
}

struct marey__scaling_list *marey__scaling_list_create(const marey_table *points)
{
    const size_t n_rows = marey_table_n_rows(points);
    const bool has_experiments = has_several_experiments(points);
    struct marey__scaling_list *const list =
        marey__calloc(1, sizeof *list + n_rows * sizeof *list->series);
    if (list == NULL)
        return NULL;
    list->points = points;
    for (size_t row = 0; row < n_rows; row++) {
        if (row == 0 || !marey__scaling_is_same_series(points, row - 1, points, row)) {
            const char *name = name_series(list, row, has_experiments);
            if (name == NULL) {
                marey__scaling_list_destroy(list);
                return NULL;
            }
            list->series[list->n++] = (struct marey__scaling_line){.first = row, .name = name};
        }
        list->series[list->n - 1].n++;
    }
    for (size_t s = 0; list->n > 1 && s < list->n; s++)
        if (list->series[s].name[0] == '\0')
            list->series[s].name = "(no name)";
    return list;
}

void marey__scaling_list_destroy(void *data)
{
    struct marey__scaling_list *const list = data;
    if (list != NULL)
        marey__arena_fini(&list->texts);
    marey__free(list);
}

/* ---- the summary ---- */

/* Shares of ideal that count as good and as fair; smaller losses than this share of a step are not mentioned. */
static const double good = 0.8, fair = 0.5, small_loss = 0.03;
/* With a wider interval of efficiency there is no verdict. */
static const double too_wide = 0.5;

static const struct {
    const char *column, *name;
} parts[] = {
    {"compute_s", "computation"},
    {"communication_s", "exposed communication"},
    {"memory_s", "exposed copies"},
    {"idle_s", "idle"},
};
enum { N_PARTS = MAREY__COUNT_OF(parts) };

struct summary {
    struct marey__buf *line;
    const marey_table *points;
    const struct marey__scaling_line *series;
};

static double number(const struct summary *s, size_t i, const char *column)
{
    return marey__scaling_number(s->points, s->series->first + i, column);
}

static uint64_t workers(const struct summary *s, size_t i)
{
    return marey__cell_of(s->points, s->series->first + i, "workers").as.u64;
}

static bool is_kind(const struct summary *s, const char *name)
{
    return strcmp(marey__cell_of(s->points, s->series->first, "kind").as.text, name) == 0;
}

/* ---- range ---- */

/* "8 workers are 6.1 times as fast as 1, 76.2 % of ideal (74.0 to 78.1 %)" */
static void put_point(const struct summary *s, size_t i)
{
    const double low = number(s, i, "efficiency_low"), high = number(s, i, "efficiency_high");
    marey__buf_printf(s->line,
                      is_kind(s, "weak") ? "%" PRIu64 " workers do %.3g times the work of %" PRIu64
                                           " in a second, %.1f %% of ideal"
                                         : "%" PRIu64 " workers are %.3g times as fast as %" PRIu64
                                           ", %.1f %% of ideal",
                      workers(s, i), number(s, i, "speedup"), workers(s, 0),
                      number(s, i, "efficiency") * 100);
    if (isfinite(low) && isfinite(high))
        marey__buf_printf(s->line, " (%.1f to %.1f %%)", low * 100, high * 100);
    else if (number(s, 0, "runs") == 1 && number(s, i, "runs") == 1)
        marey__buf_puts(s->line, " by one run each");
}

/* The last point up to which all have this share of ideal. */
static size_t reach(const struct summary *s, double share)
{
    size_t i = 0;
    while (i + 1 < s->series->n && number(s, i + 1, "efficiency") >= share)
        i++;
    return i;
}

static size_t fastest(const struct summary *s)
{
    size_t best = 0;
    for (size_t i = 1; i < s->series->n; i++)
        if (number(s, i, "speedup") > number(s, best, "speedup"))
            best = i;
    return best;
}

static bool is_unsure(const struct summary *s)
{
    const size_t last = s->series->n - 1;
    return number(s, last, "efficiency_high") - number(s, last, "efficiency_low") > too_wide;
}

static void put_verdict(const struct summary *s)
{
    const size_t last = s->series->n - 1, far = reach(s, good), less = reach(s, fair);
    const size_t best = fastest(s);
    if (is_unsure(s))
        marey__buf_puts(s->line, "may scale or not, these runs differ too much to tell: ");
    else if (far == last)
        marey__buf_printf(s->line, "scales to %" PRIu64 " workers, the most that were measured: ",
                          workers(s, last));
    else if (far > 0)
        marey__buf_printf(s->line,
                          "scales well to %" PRIu64 " workers and less beyond: ", workers(s, far));
    else if (less > 0)
        marey__buf_printf(s->line, "scales moderately, to %" PRIu64 " workers: ", workers(s, less));
    else
        marey__buf_puts(s->line, best == 0 ? "does not scale: " : "scales poorly: ");
    put_point(s, last);
    if (best != last && best != 0 && !is_unsure(s))
        marey__buf_printf(s->line, "; more than %" PRIu64 " make it slower", workers(s, best));
    marey__buf_puts(s->line, is_unsure(s) ? ". Repeat them, or measure more epochs." : ".");
}

/* ---- limits ---- */

/* Seconds; 0 if unknown. */
static double part_of(const struct summary *s, size_t i, size_t part)
{
    const double seconds = number(s, i, parts[part].column);
    return isfinite(seconds) ? seconds : 0;
}

/* The cost of each part of the last point's step. Returns false if unknown. */
static bool compute_losses(const struct summary *s, double losses[N_PARTS], double *step)
{
    const size_t last = s->series->n - 1;
    const double efficiency = number(s, last, "efficiency");
    double first = 0;
    *step = 0;
    for (size_t p = 0; p < N_PARTS; p++) {
        first += part_of(s, 0, p);
        *step += part_of(s, last, p);
    }
    if (!(first > 0) || !(*step > 0) || !isfinite(efficiency))
        return false;
    const double times = *step * efficiency / first;
    for (size_t p = 0; p < N_PARTS; p++)
        losses[p] = part_of(s, last, p) - times * part_of(s, 0, p);
    return true;
}

static size_t largest(const double losses[N_PARTS])
{
    size_t most = 0;
    for (size_t p = 1; p < N_PARTS; p++)
        if (losses[p] > losses[most])
            most = p;
    return most;
}

static void put_loss(const struct summary *s, size_t part, double seconds)
{
    marey__text_duration(s->line, seconds * 1e9, NULL);
    marey__buf_printf(s->line, " %s", parts[part].name);
}

static void put_limit(const struct summary *s)
{
    double losses[N_PARTS], step;
    if (is_unsure(s))
        return;
    const uint64_t most_workers = workers(s, s->series->n - 1);
    const bool is_good = number(s, s->series->n - 1, "efficiency") >= good;
    if (!compute_losses(s, losses, &step)) {
        if (!is_good)
            marey__buf_puts(
                s->line,
                " What holds it back is not known: these runs do not record the parts of a step.");
        return;
    }
    const size_t most = largest(losses);
    const double loss = losses[most];
    if (loss < small_loss * step)
        return;
    marey__buf_printf(s->line,
                      is_good ? " What grows most is %s: of a step of "
                              : " What holds it back most is %s: of a step of ",
                      parts[most].name);
    marey__text_duration(s->line, step * 1e9, NULL);
    marey__buf_printf(s->line, " on %" PRIu64 " workers ", most_workers);
    put_loss(s, most, loss);
    losses[most] = 0;
    const size_t next = largest(losses);
    if (losses[next] >= small_loss * step) {
        marey__buf_puts(s->line, " and ");
        put_loss(s, next, losses[next]);
    }
    marey__buf_puts(s->line, " are beyond the ideal.");
}

/* The best number of workers by the fit, if it is beyond the measured ones. */
static void put_outlook(const struct summary *s, const marey_report *report)
{
    const marey_table *fits = marey_report_table(report, "fits");
    for (size_t f = 0; f < marey_table_n_rows(fits); f++) {
        const double best = marey__scaling_number(fits, f, "best_workers");
        if (strcmp(marey__cell_of(fits, f, "model").as.text, "usl") == 0 &&
            marey__scaling_is_same_series(fits, f, s->points, s->series->first) &&
            best > (double)workers(s, s->series->n - 1))
            marey__buf_printf(s->line, " By the fit it would be fastest with about %.0f workers.",
                              best);
    }
}

void marey__scaling_summary(struct marey__buf *line, const marey_report *report, size_t series)
{
    const struct marey__scaling_list *const list = report->data;
    const struct summary s = {line, list->points, &list->series[series]};
    const char *name = s.series->name;
    const bool is_assumed = s.series->n > 1 && is_kind(&s, "unknown");
    if (is_assumed)
        marey__buf_puts(line, "If every run does the same work, ");
    if (name[0] != '\0')
        marey__text_put(line, name, strlen(name), 60);
    else
        marey__buf_puts(line, is_assumed ? "it" : "It");
    marey__buf_puts(line, " ");
    if (s.series->n == 1) {
        marey__buf_printf(line,
                          "was measured with %" PRIu64
                          " worker%s only. Add runs with other numbers of workers "
                          "to see how it scales.",
                          workers(&s, 0), workers(&s, 0) == 1 ? "" : "s");
        return;
    }
    put_verdict(&s);
    put_limit(&s);
    put_outlook(&s, report);
}
