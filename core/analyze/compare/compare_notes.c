/* Notes on doubtful comparisons: different machines, single runs. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "analyze/compare/internal.h"

/* ---- the machines ---- */

static const struct {
    const char *what;
    size_t offset;
} texts[] = {
    {"the host", offsetof(struct marey_process, host)},
    {"the CPU", offsetof(struct marey_process, cpu)},
    {"the set of CPU cores available to the program", offsetof(struct marey_process, cpus)},
    {"the frequency governor", offsetof(struct marey_process, governor)},
    {"the GPU", offsetof(struct marey_process, gpu)},
    {"the kernel", offsetof(struct marey_process, kernel)},
    {"the set of library versions", offsetof(struct marey_process, versions)},
    {"marey's version", offsetof(struct marey_process, version)},
    {"marey's clock", offsetof(struct marey_process, clock)},
};

static const char *text_at(const struct marey_process *process, size_t offset)
{
    const char *text;
    memcpy(&text, (const char *)process + offset, sizeof text);
    return text;
}

/* The first known text of the side, and whether any other text of it differs. */
static const char *known_text(const struct marey__compared_runs *side, size_t offset,
                              const char *unlike)
{
    for (size_t i = 0; i < side->n; i++) {
        const char *text = side->runs[i].first != NULL ? text_at(side->runs[i].first, offset) : "";
        if (text[0] != '\0' && (unlike == NULL || strcmp(text, unlike) != 0))
            return text;
    }
    return NULL;
}

static void note_machines(marey_table *warnings, const struct marey__comparison *c)
{
    for (size_t t = 0; t < MAREY__COUNT_OF(texts); t++) {
        const char *a = known_text(&c->sides[MAREY__A], texts[t].offset, NULL);
        const char *b = a != NULL ? known_text(&c->sides[MAREY__B], texts[t].offset, a) : NULL;
        if (b == NULL && a != NULL)
            b = known_text(&c->sides[MAREY__A], texts[t].offset, a);
        if (b == NULL)
            continue;
        marey__put_note(warnings, "%s is not the same in all runs: %s and %s", texts[t].what, a, b);
    }
}

/* ---- how busy the machine was ---- */

static double highest_load(const struct marey__compared_runs *side)
{
    double highest = -1;
    for (size_t i = 0; i < side->n; i++)
        if (side->runs[i].first != NULL)
            highest = fmax(highest, side->runs[i].first->load);
    return highest;
}

static void note_load(marey_table *warnings, const struct marey__comparison *c)
{
    const double a = highest_load(&c->sides[MAREY__A]), b = highest_load(&c->sides[MAREY__B]);
    if (a < 0 || b < 0 || fabs(a - b) < 1)
        return;
    marey__put_note(warnings,
                    "the machine's load was %.1f at the start of A and %.1f at the start of B: "
                    "another program ran during one of them",
                    a, b);
}

/* ---- the runs ---- */

static void note_runs(marey_table *warnings, const struct marey__comparison *c)
{
    const size_t a = c->sides[MAREY__A].n, b = c->sides[MAREY__B].n;
    if (a == 1 && b == 1)
        marey__put_note(warnings, "one run on each side: the intervals do not include differences "
                                  "between runs; 'marey run --repeat 5' records several");
    else if (a < 4 || b < 4)
        marey__put_note(warnings,
                        "%zu and %zu runs are few: the intervals are wide; 5 or more on each side "
                        "make them reliable",
                        a, b);
}

static double edge(const struct marey__compared_runs *side, bool wants_last)
{
    double at = side->runs[0].start;
    for (size_t i = 0; i < side->n; i++) {
        if (side->runs[i].start == 0)
            return 0;
        at = wants_last ? fmax(at, side->runs[i].start) : fmin(at, side->runs[i].start);
    }
    return at;
}

static void note_order(marey_table *warnings, const struct marey__comparison *c)
{
    const struct marey__compared_runs *a = &c->sides[MAREY__A], *b = &c->sides[MAREY__B];
    const double last_a = edge(a, true), first_b = edge(b, false), last_b = edge(b, true),
                 first_a = edge(a, false);
    if (a->n < 2 || b->n < 2 || last_a == 0 || first_b == 0 ||
        !(last_a < first_b || last_b < first_a))
        return;
    marey__put_note(warnings,
                    "all runs of %s came before those of %s: a slowdown of the machine in between "
                    "looks like a change; run them in turns to exclude that",
                    last_a < first_b ? "A" : "B", last_a < first_b ? "B" : "A");
}

static void note_iterations(marey_table *warnings, const struct marey__comparison *c)
{
    if (c->names[MAREY__COMPARED_RANGES].n == 0)
        return;
    const bool a = c->sides[MAREY__A].runs[0].n_iterations != 0,
               b = c->sides[MAREY__B].runs[0].n_iterations != 0;
    if (a == b)
        return;
    marey__put_note(warnings,
                    "side %s counts iterations and side %s does not: times per iteration are "
                    "compared with times of single calls",
                    a ? "A" : "B", a ? "B" : "A");
}

static void note_sums(marey_table *warnings, const struct marey__comparison *c)
{
    const bool a = c->sides[MAREY__A].runs[0].has_sums, b = c->sides[MAREY__B].runs[0].has_sums;
    if (!a && !b)
        return;
    if (a && b)
        marey__put_note(warnings, "both sides are profiles, which have sums instead of single "
                                  "calls: total times per run are compared");
    else
        marey__put_note(warnings,
                        "side %s is a profile, which has sums instead of single calls, and side %s "
                        "is not: total times per run are compared with single times",
                        a ? "A" : "B", a ? "B" : "A");
}

static void note_loss(marey_table *warnings, const struct marey__comparison *c)
{
    for (size_t i = 0; i < c->n_sources; i++) {
        marey_recording *recording = c->sources[i].recording;
        uint64_t n_lost = 0;
        for (size_t p = 0; recording != NULL && p < marey_recording_n_processes(recording); p++)
            n_lost += marey_recording_process(recording, p)->lost_events;
        if (n_lost != 0) {
            marey__put_note(warnings, "%s lost %llu events; iterations around there are left out",
                            c->sources[i].path, (unsigned long long)n_lost);
        }
        if (recording != NULL && marey_recording_is_damaged(recording)) {
            marey__put_note(warnings, "%s is damaged; this is what could be read of it",
                            c->sources[i].path);
        }
    }
}

/* A failed run may have stopped early and then looks fast. */
static void note_failed(marey_table *warnings, const struct marey__comparison *c)
{
    for (size_t s = 0; s < 2; s++) {
        const struct marey__compared_run *failed = NULL;
        size_t n = 0;
        for (size_t i = 0; i < c->sides[s].n; i++)
            if (c->sides[s].runs[i].exit_status[0] != '\0') {
                failed = &c->sides[s].runs[i];
                n++;
            }
        if (failed == NULL)
            continue;
        marey__put_note(warnings,
                        "%zu of %zu runs of %s failed (%s: %s%s): they may have done less work", n,
                        c->sides[s].n, s == MAREY__A ? "A" : "B", failed->path,
                        failed->exit_status[0] == 's' ? "" : "exit status ", failed->exit_status);
    }
}

static void note_functions(marey_table *warnings, const struct marey__comparison *c)
{
    const struct marey__compared_run *const a = &c->sides[MAREY__A].runs[0], *const b =
                                                                                 &c->sides[MAREY__B]
                                                                                      .runs[0];
    if (!(a->has_samples && b->has_calls) && !(a->has_calls && b->has_samples))
        return;
    marey__put_note(warnings,
                    "functions of %s are sampled and those of %s are from a call profile, which "
                    "slows calls down: record both sides the same way",
                    a->has_samples ? "A" : "B", a->has_samples ? "B" : "A");
}

/* Mean per run: sides may have different numbers of runs. */
static double left_out_s(const struct marey__compared_runs *side, size_t offset)
{
    double ns = 0;
    for (size_t i = 0; i < side->n; i++) {
        uint64_t one;
        memcpy(&one, (const char *)&side->runs[i] + offset, sizeof one);
        ns += (double)one;
    }
    return side->n != 0 ? ns / (double)side->n / 1e9 : 0;
}

static void note_left_out(marey_table *warnings, const struct marey__comparison *c)
{
    static const struct {
        const char *what, *option;
        size_t offset;
    } kinds[] = {
        {"imports at start-up", "--startup", offsetof(struct marey__compared_run, startup_ns)},
        {"idle processes and workers", "--idle", offsetof(struct marey__compared_run, idle_ns)},
    };
    for (size_t k = 0; k < MAREY__COUNT_OF(kinds); k++) {
        const double a = left_out_s(&c->sides[MAREY__A], kinds[k].offset),
                     b = left_out_s(&c->sides[MAREY__B], kinds[k].offset);
        if (a <= 0 && b <= 0)
            continue;
        marey__put_note(warnings,
                        "functions exclude %s, %.3g s per run of A and %.3g s of B; %s shows them",
                        kinds[k].what, a, b, kinds[k].option);
    }
}

void marey__comparison_notes(marey_table *warnings, const struct marey__comparison *c)
{
    note_runs(warnings, c);
    note_order(warnings, c);
    note_iterations(warnings, c);
    note_sums(warnings, c);
    note_failed(warnings, c);
    note_functions(warnings, c);
    note_left_out(warnings, c);
    note_machines(warnings, c);
    note_load(warnings, c);
    note_loss(warnings, c);
}
