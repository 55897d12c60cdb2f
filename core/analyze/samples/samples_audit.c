/*
 * Quality of the samplers: achieved rate, omitted samples, cost, and the distance between samples of running threads
 * and of threads stopped at random.
 *
 * The distance is half the sum of the differences of shares, over innermost functions. Two draws from one distribution
 * also have a distance, so the expected one is given as well. The interval comes from resampling the exact samples
 * (bootstrap), some hundred times.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/samples/internal.h"

/* ---- the distance ---- */

struct distance {
    bool is_known;
    double value, low, high, by_chance;
};

enum { LEAST_SAMPLES = 20, DRAWS = 200, MOST_AUDITS = 100000 };

static uint64_t sum_of(const uint64_t *counts, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += counts[i];
    return sum;
}

static double distance_of(const uint64_t *a, uint64_t n_a, const uint64_t *b, uint64_t n_b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += fabs((double)a[i] / (double)n_a - (double)b[i] / (double)n_b);
    return sum / 2;
}

/* The expected distance of two draws from one distribution, with normally distributed differences. */
static double distance_by_chance(const uint64_t *a, uint64_t n_a, const uint64_t *b, uint64_t n_b,
                                 size_t n)
{
    const double root_2_by_pi = 0.7978845608028654;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double p = (double)(a[i] + b[i]) / (double)(n_a + n_b);
        sum += sqrt(p * (1 - p) * (1 / (double)n_a + 1 / (double)n_b));
    }
    return sum * root_2_by_pi / 2;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Resample the exact samples; `drawn` gets the count of each function. */
static void draw(const uint32_t *audits, uint64_t n_audits, uint64_t *drawn, size_t n,
                 uint64_t *random)
{
    memset(drawn, 0, n * sizeof *drawn);
    for (uint64_t i = 0; i < n_audits; i++)
        drawn[audits[next_random(random) % n_audits]]++;
}

/* Returns false on out of memory. */
static bool find_interval(const uint64_t *snapshots, const uint64_t *audits, size_t n,
                          struct distance *out)
{
    const uint64_t n_snapshots = sum_of(snapshots, n), n_audits = sum_of(audits, n);
    uint32_t *const list MAREY__FREED = marey__calloc((size_t)n_audits, sizeof *list);
    uint64_t *const drawn MAREY__FREED = marey__calloc(n, sizeof *drawn);
    double values[DRAWS];
    uint64_t random =
        UINT64_C(0x2545f4914f6cdd1d); /* fixed seed: the same recording gives the same interval */
    if (list == NULL || drawn == NULL)
        return false;
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < audits[i]; k++)
            list[at++] = (uint32_t)i;
    for (size_t i = 0; i < DRAWS; i++) {
        draw(list, n_audits, drawn, n, &random);
        values[i] = distance_of(snapshots, n_snapshots, drawn, n_audits, n);
    }
    qsort(values, DRAWS, sizeof *values, marey__compare_f64);
    /* Resampling overestimates the distance; reflect the interval around the value to correct that. */
    out->low = fmax(0, 2 * out->value - values[DRAWS - 1 - DRAWS / 40]);
    out->high = fmax(out->low, 2 * out->value - values[DRAWS / 40]);
    return true;
}

static bool find_distance(const struct marey__samples_sums *sums, size_t source, struct distance *out)
{
    const size_t n = sums->n_functions;
    const uint64_t *const snapshots = sums->snapshots + source * n, *const audits =
                                                                        sums->audits + source * n;
    const uint64_t n_snapshots = sum_of(snapshots, n), n_audits = sum_of(audits, n);
    *out = (struct distance){0};
    if (n_snapshots < LEAST_SAMPLES || n_audits < LEAST_SAMPLES || n_audits > UINT32_MAX)
        return true;
    out->is_known = true;
    out->value = distance_of(snapshots, n_snapshots, audits, n_audits, n);
    out->by_chance = distance_by_chance(snapshots, n_snapshots, audits, n_audits, n);
    if (n_audits <= MOST_AUDITS)
        return find_interval(snapshots, audits, n, out);
    /* With this many samples, the normal approximation suffices. */
    const double half = 1.96 * 0.5 / sqrt((double)n_audits);
    out->low = fmax(0, out->value - half);
    out->high = out->value + half;
    return true;
}

/* ---- the table ---- */

/* Rounds of its processes, and how long these were sampled in total. */
static uint64_t sampled_ns(const struct marey__samples_report *report, size_t source,
                           uint64_t *n_rounds)
{
    uint64_t ns = 0;
    *n_rounds = 0;
    for (uint32_t i = 1; i <= marey_samples_n_processes(report->set.samples); i++) {
        const struct marey__samples_target *const t = &report->set.targets[i];
        if (t->source != source || t->n_rounds == 0)
            continue;
        ns += t->last_ns - t->first_ns;
        *n_rounds += t->n_rounds - 1;
    }
    return ns;
}

bool marey__samples_put_audit(struct marey__samples_report *report)
{
    marey_table *const table = report->tables[MAREY__SAMPLES_AUDIT];
    for (size_t i = 0; i < report->set.n_sources; i++) {
        const struct marey__samples_source *const source = &report->set.sources[i];
        const struct marey_process *const log =
            marey_recording_process(source->recording, source->log);
        const struct marey_samples_counts *const c = &source->counts;
        const uint64_t seconds_ns = source->last_ns - MAREY__MIN(source->first_ns, source->last_ns);
        struct distance d;
        uint64_t n_rounds;
        const uint64_t targets_ns = sampled_ns(report, i, &n_rounds);
        if (!find_distance(&report->sums, i, &d))
            return false;
        MAREY__PUT_ROW(table, STRING(log->host), I64(log->pid), STRING(source->strategy),
                       POSITIVE(source->rate_hz),
                       POSITIVE(targets_ns != 0 ? (double)n_rounds * 1e9 / (double)targets_ns : 0),
                       F64((double)seconds_ns / 1e9), U64(source->n_rounds), U64(c->asked),
                       U64(c->missed), RATIO(c->missed, c->asked), U64(c->samples),
                       U64(c->rejected), RATIO(c->rejected, c->samples + c->rejected),
                       U64(c->unstable), RATIO(c->unstable, c->samples), U64(c->exact),
                       RATIO(c->exact, c->samples), U64(c->audit), U64(c->stops), U64(c->stop_ns),
                       U64(c->stop_max_ns), RATIO(c->stop_ns, targets_ns), U64(c->sampler_cpu_ns),
                       RATIO(c->sampler_cpu_ns, seconds_ns), U64(c->bytes_read),
                       POSITIVE(c->samples != 0 ? (double)log->log_bytes / (double)c->samples : 0),
                       U64(log->log_bytes), U64(c->skipped), U64(c->slowed), STRING(log->end),
                       KNOWN(d.is_known, FINITE(d.value)), KNOWN(d.is_known, FINITE(d.low)),
                       KNOWN(d.is_known, FINITE(d.high)), KNOWN(d.is_known, FINITE(d.by_chance)));
    }
    return true;
}

/* ---- all notes ---- */

void marey__samples_put_totals(struct marey__samples_report *report)
{
    marey_table *const table = report->tables[MAREY__SAMPLES_TOTALS];
    const struct marey__samples_sum *const whole = &report->sums.whole;
    uint64_t longest_ns = marey__samples_imported_ns(&report->set);
    for (size_t i = 0; i < report->set.n_sources; i++) {
        const struct marey__samples_source *const s = &report->set.sources[i];
        if (s->n_rounds != 0)
            longest_ns = MAREY__MAX(longest_ns, s->last_ns - s->first_ns);
    }
    MAREY__PUT_ROW(table, U64(whole->n), U64(whole->ns), F64((double)longest_ns / 1e9),
                   U64(marey_table_n_rows(report->tables[MAREY__SAMPLES_PROCESSES])),
                   U64(marey_table_n_rows(report->tables[MAREY__SAMPLES_THREADS])),
                   U64(marey_table_n_rows(report->tables[MAREY__SAMPLES_FUNCTIONS])),
                   U64(marey_table_n_rows(report->tables[MAREY__SAMPLES_STACKS])),
                   STRING(marey__samples_chosen_what(report->chosen)));
}

static void note_startup(const struct marey__samples_report *report)
{
    const double left_out = (double)report->set.startup_ns,
                 whole = left_out + (double)report->sums.whole.ns;
    if (report->set.startup_ns != 0)
        marey__put_note(
            report->tables[MAREY__SAMPLES_NOTES],
            "Left out: %.3g s of imports at start-up, %.2g %% of the time; --startup shows them.",
            left_out / 1e9, 100 * left_out / whole);
}

static void note_idle(const struct marey__samples_report *report)
{
    const struct marey__samples_set *const set = &report->set;
    if (set->task_wait_ns != 0)
        marey__put_note(
            report->tables[MAREY__SAMPLES_NOTES],
            "Left out: %.3g s in which workers waited for their next task; --idle shows it.",
            (double)set->task_wait_ns / 1e9);
    if (set->n_idle == 0)
        return;
    const struct marey_samples_process *const p =
        marey_samples_get_process(set->samples, set->longest_idle);
    const double left_out = (double)set->idle_ns;
    marey__put_note(report->tables[MAREY__SAMPLES_NOTES],
                    "Left out: %.3g s of %" PRIu32 " %s%s, %.2g %% of the time, %s%" PRId64
                    " (%.100s); --idle shows %s.",
                    left_out / 1e9, set->n_idle,
                    set->n_launchers == 0             ? "idle process"
                    : set->n_launchers == set->n_idle ? "launcher"
                                                      : "launcher and idle process",
                    set->n_idle == 1                  ? ""
                    : set->n_launchers == set->n_idle ? "s"
                                                      : "es",
                    100 * left_out / (left_out + (double)report->sums.whole.ns),
                    set->n_idle == 1 ? "" : "most of it in ", p->pid, p->command,
                    set->n_idle == 1 ? "it" : "them");
}

/* Returns false on out of memory, or if the rounds cannot be read again. */
static bool note_slow_steps(struct marey__samples_report *report)
{
    struct marey__slow_function slow;
    if (marey__samples_slow_function(&report->set, &slow) != MAREY_OK)
        return false;
    if (slow.function == 0)
        return true;
    const struct marey_samples_function *const f =
        marey_samples_get_function(report->set.samples, slow.function);
    marey__put_note(report->tables[MAREY__SAMPLES_NOTES],
                    "%s (%s) takes %.3g ms more in %s%" PRIu64
                    " slow step%s than in others; a slow step takes %.3g ms longer.",
                    f->name, marey__base_name(f->file), slow.extra_ns / 1e6,
                    slow.n_slow == 1 ? "the " : "each of ", slow.n_slow,
                    slow.n_slow == 1 ? "" : "s", slow.longer_ns / 1e6);
    return true;
}

/* Only if these samples are at least a hundredth of all. */
static void note_no_frames(const struct marey__samples_report *report)
{
    const marey_table *const functions = report->tables[MAREY__SAMPLES_FUNCTIONS];
    const int name = marey_table_find(functions, "function"),
              self = marey_table_find(functions, "self_ns");
    uint64_t gc_ns = 0;
    for (size_t i = 0; i < report->sums.n_cells; i++)
        if (report->sums.cells[i].is_chosen)
            gc_ns += report->sums.cells[i].gc_ns;
    for (size_t i = 0; i < marey_table_n_rows(functions); i++) {
        const uint64_t ns = marey_table_cell(functions, i, (size_t)self).as.u64;
        if (strcmp(marey_table_cell(functions, i, (size_t)name).as.text, MAREY__NO_FRAMES) != 0 ||
            ns < report->sums.whole.ns / 100)
            continue;
        const double gc = (double)gc_ns / (double)MAREY__MAX(ns, (uint64_t)1);
        if (gc > 0.5)
            marey__put_note(report->tables[MAREY__SAMPLES_NOTES],
                            MAREY__NO_FRAMES
                            ": %.0f %% of it is garbage collection outside of Python code, "
                            "as at the end of the program.",
                            100 * gc);
        else
            marey__put_note(
                report->tables[MAREY__SAMPLES_NOTES], MAREY__NO_FRAMES
                ": the thread ran no Python code then: the interpreter was starting or ending, "
                "or the thread belongs to a native library. 'marey run --sample --native' shows "
                "C and C++ functions.");
    }
}

bool marey__samples_put_notes(struct marey__samples_report *report)
{
    marey_table *const notes = report->tables[MAREY__SAMPLES_NOTES];
    if (!note_slow_steps(report))
        return false;
    note_startup(report);
    note_idle(report);
    note_no_frames(report);
    for (size_t i = 0; i < report->set.n_sources; i++) {
        const struct marey__samples_source *const s = &report->set.sources[i];
        const struct marey_process *const log = marey_recording_process(s->recording, s->log);
        if (strcmp(log->end, "unclosed") == 0)
            marey__put_note(notes,
                            "The sampler %" PRId64
                            " was killed: its last two seconds are missing, and its "
                            "counts are up to five seconds older.",
                            log->pid);
        else if (strcmp(log->end, "running") == 0)
            marey__put_note(notes, "The sampler %" PRId64 " is still running.", log->pid);
        if (s->counts.asked != 0 && s->counts.missed > s->counts.asked / 20)
            marey__put_note(
                notes,
                "%.0f %% of the rounds were missed: the sampler was late. A lower rate would be "
                "kept.",
                100 * (double)s->counts.missed / (double)s->counts.asked);
        if (s->counts.slowed != 0)
            marey__put_note(
                notes,
                "%" PRIu64
                " rounds were left out: data-loader workers share one rate, and stops of "
                "threads stay below --max-slowdown.",
                s->counts.slowed);
    }
    return true;
}
