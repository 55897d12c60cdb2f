/*
 * Evidence: the times at which a finding was observed, longest first. For JSON, and for marks in
 * exports.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/diagnosis/internal.h"

enum { MOST = 500 }; /* per finding */

struct span {
    uint64_t begin_ns, end_ns;
    const struct marey__trainer *trainer;
};

struct spans {
    struct span *list;
    size_t n, cap;
    bool failed; /* out of memory */
    const struct marey__trainer *trainer;
};

/* Only times within steps after warm-up. */
static void add(struct spans *s, uint64_t begin_ns, uint64_t end_ns)
{
    const struct marey__trainer *const t = s->trainer;
    if (begin_ns >= t->steps[t->n_warmup].begin_ns && end_ns <= t->steps[t->n_steps - 1].end_ns)
        s->failed |= !MAREY__PUSH(s->list, s->n, s->cap, (struct span){begin_ns, end_ns, t});
}

static void add_phases(struct spans *s, enum marey__fact_phase phase)
{
    const struct marey__trainer *const t = s->trainer;
    for (size_t i = 0; i < t->n_phases; i++)
        if (t->phases[i].phase == phase && phase != MAREY__FACT_OTHER)
            add(s, t->phases[i].begin_ns, t->phases[i].end_ns);
}

static void add_intervals(struct spans *s, const struct marey__interval *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add(s, list[i].begin_ns, list[i].end_ns);
}

/* Adds the phases that cause them; without such phases, the steps. */
static void add_slow_steps(struct spans *s, const struct marey__finding *f)
{
    const struct marey__trainer *const t = s->trainer;
    const size_t n = s->n;
    for (size_t i = 0; i < f->n_because; i++)
        add_phases(s, f->because[i].phase);
    const bool has_phases = s->n != n;
    for (size_t i = t->n_warmup; i < t->n_steps && !has_phases; i++)
        if (t->steps[i].is_slow)
            add(s, t->steps[i].begin_ns, t->steps[i].end_ns);
}

static void add_finding(struct spans *s, const struct marey__finding *f)
{
    const struct marey__trainer *const t = s->trainer;
    if (strcmp(f->statement.id, "sync-bound") == 0)
        add_intervals(s, t->waits, t->n_waits);
    else if (strcmp(f->statement.id, "host-bound") == 0)
        add_intervals(s, t->host_gaps, t->n_host_gaps);
    else if (strcmp(f->statement.id, "slow-steps") == 0)
        add_slow_steps(s, f);
    else if (strcmp(f->statement.id, "gc-pauses") == 0)
        for (size_t i = 0; i < t->n_pauses; i++)
            add(s, t->pauses[i].begin_ns, t->pauses[i].end_ns);
    else if (!f->is_risk) /* whose phase is only that of its peak */
        add_phases(s, f->statement.phase);
}

static int compare_lengths(const void *a, const void *b)
{
    const struct span *const x = a, *const y = b;
    const uint64_t left = x->end_ns - x->begin_ns, right = y->end_ns - y->begin_ns;
    return left != right ? (left < right) - (left > right)
                         : (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

bool marey__diagnosis_put_evidence(const struct marey__diagnosis *d, marey_table *table)
{
    bool done = true;
    for (size_t i = 0; i < d->n_findings; i++) {
        struct spans s = {0};
        for (size_t t = 0; t < d->facts.n_trainers; t++) {
            s.trainer = &d->facts.trainers[t];
            if (s.trainer->n_steps > s.trainer->n_warmup)
                add_finding(&s, &d->findings[i]);
        }
        if (s.n != 0)
            qsort(s.list, s.n, sizeof *s.list, compare_lengths);
        for (size_t k = 0; k < s.n && k < MOST; k++)
            MAREY__PUT_ROW(table, STRING(d->findings[i].statement.id),
                           PROCESS_OF(s.list[k].trainer->info), U64(s.list[k].begin_ns),
                           U64(s.list[k].end_ns));
        done &= !s.failed;
        marey__free(s.list);
    }
    return done;
}
