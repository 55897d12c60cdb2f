/*
 * Whether a series scales, how far, and why it stops.
 *
 * Why: the steps of the last point take longer than ideal ones would. Efficiency says how long those would be, and each part
 * of the baseline's step would shrink or grow as the whole does. What a part takes beyond that is what it costs.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "present/scaling_out.h"

/* Shares of ideal that count as good, and as fair. Less loss than the last, of a step, is not worth a sentence. */
static const double good = 0.8, fair = 0.5, small_loss = 0.03;
/* An interval of efficiency as wide as this tells nothing. */
static const double too_wide = 0.5;

static const struct {
    const char *column, *name;
} parts[] = {
    {"compute_s", "computation"},
    {"communication_s", "exposed communication"},
    {"memory_s", "exposed copies"},
    {"idle_s", "idle"},
};
enum { N_PARTS = KYMO__COUNT_OF(parts) };

struct told {
    struct kymo__buf *line;
    const kymo_table *points;
    const struct kymo__scaling_line *series;
};

static double number(const struct told *told, size_t i, const char *column)
{
    return kymo__scaling_number(told->points, told->series->first + i, column);
}

static uint64_t workers(const struct told *told, size_t i)
{
    return kymo__cell_of(told->points, told->series->first + i, "workers").as.u64;
}

static bool is_kind(const struct told *told, const char *name)
{
    return strcmp(kymo__cell_of(told->points, told->series->first, "kind").as.text, name) == 0;
}

/* ---- how far ---- */

/* "8 workers are 6.1 times as fast as 1, 76.2 % of ideal (74.0 to 78.1 %)" */
static void put_point(const struct told *told, size_t i)
{
    const double low = number(told, i, "efficiency_low"), high = number(told, i, "efficiency_high");
    kymo__buf_printf(told->line,
                     is_kind(told, "weak")
                         ? "%" PRIu64 " workers do %.3g times the work of %" PRIu64
                           " in a second, %.1f %% of ideal"
                         : "%" PRIu64 " workers are %.3g times as fast as %" PRIu64
                           ", %.1f %% of ideal",
                     workers(told, i), number(told, i, "speedup"), workers(told, 0),
                     number(told, i, "efficiency") * 100);
    if (isfinite(low) && isfinite(high))
        kymo__buf_printf(told->line, " (%.1f to %.1f %%)", low * 100, high * 100);
    else if (number(told, 0, "runs") == 1 && number(told, i, "runs") == 1)
        kymo__buf_puts(told->line, " by one run each");
}

/* The last point up to which each has this share of ideal. */
static size_t reach(const struct told *told, double share)
{
    size_t i = 0;
    while (i + 1 < told->series->n && number(told, i + 1, "efficiency") >= share)
        i++;
    return i;
}

static size_t fastest(const struct told *told)
{
    size_t best = 0;
    for (size_t i = 1; i < told->series->n; i++)
        if (number(told, i, "speedup") > number(told, best, "speedup"))
            best = i;
    return best;
}

static bool is_unsure(const struct told *told)
{
    const size_t last = told->series->n - 1;
    return number(told, last, "efficiency_high") - number(told, last, "efficiency_low") > too_wide;
}

static void put_verdict(const struct told *told)
{
    const size_t last = told->series->n - 1, far = reach(told, good), less = reach(told, fair);
    const size_t best = fastest(told);
    if (is_unsure(told))
        kymo__buf_puts(told->line, "may scale or not, these runs differ too much to tell: ");
    else if (far == last)
        kymo__buf_printf(told->line, "scales to %" PRIu64 " workers, the most that were measured: ",
                         workers(told, last));
    else if (far > 0)
        kymo__buf_printf(told->line,
                         "scales well to %" PRIu64 " workers and less beyond: ", workers(told, far));
    else if (less > 0)
        kymo__buf_printf(told->line,
                         "scales moderately, to %" PRIu64 " workers: ", workers(told, less));
    else
        kymo__buf_puts(told->line, best == 0 ? "does not scale: " : "scales poorly: ");
    put_point(told, last);
    if (best != last && best != 0 && !is_unsure(told))
        kymo__buf_printf(told->line, "; more than %" PRIu64 " make it slower", workers(told, best));
    kymo__buf_puts(told->line, is_unsure(told) ? ". Repeat them, or measure more epochs." : ".");
}

/* ---- why ---- */

/* Seconds; what is not known takes none. */
static double part_of(const struct told *told, size_t i, size_t part)
{
    const double seconds = number(told, i, parts[part].column);
    return isfinite(seconds) ? seconds : 0;
}

/* What each part of the last point's step takes beyond ideal; false where it is not known. */
static bool find_losses(const struct told *told, double losses[N_PARTS], double *step)
{
    const size_t last = told->series->n - 1;
    const double efficiency = number(told, last, "efficiency");
    double first = 0;
    *step = 0;
    for (size_t p = 0; p < N_PARTS; p++) {
        first += part_of(told, 0, p);
        *step += part_of(told, last, p);
    }
    if (!(first > 0) || !(*step > 0) || !isfinite(efficiency))
        return false;
    const double times = *step * efficiency / first;
    for (size_t p = 0; p < N_PARTS; p++)
        losses[p] = part_of(told, last, p) - times * part_of(told, 0, p);
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

static void put_loss(const struct told *told, size_t part, double seconds)
{
    kymo__text_duration(told->line, seconds * 1e9, NULL);
    kymo__buf_printf(told->line, " %s", parts[part].name);
}

static void put_why(const struct told *told)
{
    double losses[N_PARTS], step;
    if (is_unsure(told))
        return;
    const uint64_t most_workers = workers(told, told->series->n - 1);
    const bool is_good = number(told, told->series->n - 1, "efficiency") >= good;
    if (!find_losses(told, losses, &step)) {
        if (!is_good)
            kymo__buf_puts(
                told->line,
                " What holds it back is not known: these runs do not tell what a step is made of.");
        return;
    }
    const size_t most = largest(losses);
    const double loss = losses[most];
    if (loss < small_loss * step)
        return;
    kymo__buf_printf(told->line,
                     is_good ? " What grows most is %s: of a step of "
                             : " What holds it back most is %s: of a step of ",
                     parts[most].name);
    kymo__text_duration(told->line, step * 1e9, NULL);
    kymo__buf_printf(told->line, " on %" PRIu64 " workers ", most_workers);
    put_loss(told, most, loss);
    losses[most] = 0;
    const size_t next = largest(losses);
    if (losses[next] >= small_loss * step) {
        kymo__buf_puts(told->line, " and ");
        put_loss(told, next, losses[next]);
    }
    kymo__buf_puts(told->line, " are beyond the ideal.");
}

/* By the model that knows a best count, when it lies beyond what was measured. */
static void put_outlook(const struct told *told, kymo_scaling *scaling)
{
    const kymo_table *fits = kymo_scaling_table(scaling, "fits");
    const size_t row = told->series->first;
    const struct kymo_cell experiment = kymo__cell_of(told->points, row, "experiment"),
                           strategy = kymo__cell_of(told->points, row, "strategy");
    for (size_t f = 0; f < kymo_table_n_rows(fits); f++) {
        const struct kymo_cell e = kymo__cell_of(fits, f, "experiment"),
                               s = kymo__cell_of(fits, f, "strategy");
        const double best = kymo__scaling_number(fits, f, "best_workers");
        if (strcmp(kymo__cell_of(fits, f, "model").as.text, "usl") != 0 ||
            strcmp(e.as.text, experiment.as.text) != 0 || strcmp(s.as.text, strategy.as.text) != 0)
            continue;
        if (best > (double)workers(told, told->series->n - 1))
            kymo__buf_printf(told->line, " By the fit it would be fastest with about %.0f workers.",
                             best);
    }
}

void kymo__scaling_sentence(struct kymo__buf *line, kymo_scaling *scaling,
                            const struct kymo__scaling_list *list, size_t series)
{
    const struct told told = {line, list->points, &list->series[series]};
    const char *name = told.series->name;
    const bool is_assumed = told.series->n > 1 && is_kind(&told, "unknown");
    if (is_assumed)
        kymo__buf_puts(line, "If every run does the same work, ");
    if (name[0] != '\0')
        kymo__text_put(line, name, strlen(name), 60);
    else
        kymo__buf_puts(line, is_assumed ? "it" : "It");
    kymo__buf_puts(line, " ");
    if (told.series->n == 1) {
        kymo__buf_printf(line,
                         "was measured with %" PRIu64
                         " worker%s alone: whether it scales takes runs "
                         "with other numbers of workers.",
                         workers(&told, 0), workers(&told, 0) == 1 ? "" : "s");
        return;
    }
    put_verdict(&told);
    put_why(&told);
    put_outlook(&told, scaling);
}
