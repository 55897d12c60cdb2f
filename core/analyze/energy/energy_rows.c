/* Windows of one epoch, group, phase or range over all ranks, and the energy of their devices. */
#include "analyze/energy/internal.h"

/* ---- sections ---- */

MAREY__ORDER_RUNS(window_is_before, struct marey__energy_window *const,
                  MAREY__UP_BY((*x)->by, (*y)->by) MAREY__UP_BY((*x)->key, (*y)->key)
                      MAREY__UP_BY((*x)->member, (*y)->member))

/* Numbers ascend; names are sorted by time. */
static bool section_is_before(const void *a, const void *b)
{
    const struct marey__energy_section *x = a, *y = b;
    if (x->run != y->run)
        return x->run < y->run;
    if (x->by != y->by)
        return x->by < y->by;
    if (x->by == MAREY__ENERGY_PHASE || x->by == MAREY__ENERGY_RANGE)
        return x->longest_ns > y->longest_ns;
    return x->key < y->key;
}

static bool add_section(struct marey__energy_sections *s, uint32_t run,
                        const struct marey__energy_window **windows)
{
    const uint64_t ns = marey__intervals_length(windows[0]->set.parts, windows[0]->set.n);
    struct marey__energy_section *last = s->n > 0 ? &s->sections[s->n - 1] : NULL;
    if (last != NULL && last->run == run && last->by == windows[0]->by &&
        last->key == windows[0]->key) {
        last->n++;
        last->longest_ns = MAREY__MAX(last->longest_ns, ns);
        return true;
    }
    return MAREY__PUSH(s->sections, s->n, s->cap,
                       (struct marey__energy_section){.run = run,
                                                      .by = windows[0]->by,
                                                      .key = windows[0]->key,
                                                      .windows = windows,
                                                      .n = 1,
                                                      .longest_ns = ns});
}

bool marey__energy_sections_make(struct marey__energy_sections *s,
                                 const struct marey__energy_report *report)
{
    size_t n = 0;
    s->windows = marey__calloc(report->n_windows + 1, sizeof *s->windows);
    if (s->windows == NULL)
        return false;
    /* Run by run, so that the windows of a section are adjacent. */
    for (uint32_t run = 0; run < report->runs.n; run++) {
        const size_t first = n;
        for (size_t i = 0; i < report->n_windows; i++)
            if (report->members[report->windows[i].member].run == run)
                s->windows[n++] = &report->windows[i];
        if (!marey__sort_runs(s->windows + first, n - first, sizeof *s->windows, window_is_before))
            return false;
        for (size_t i = first; i < n; i++)
            if (!add_section(s, run, &s->windows[i]))
                return false;
    }
    return marey__sort_runs(s->sections, s->n, sizeof *s->sections, section_is_before);
}

void marey__energy_sections_fini(struct marey__energy_sections *s)
{
    MAREY__FREE_ALL(s->windows, s->sections);
    *s = (struct marey__energy_sections){0};
}

/* ---- devices ---- */

static bool is_in(const struct marey__energy_report *report,
                  const struct marey__energy_target *target,
                  const struct marey__energy_window *window)
{
    return target->n_users != 0 ? target->users[window->member] != 0
                                : strcmp(report->members[window->member].host, target->host) == 0;
}

bool marey__energy_target_measure(const struct marey__energy_target *target,
                                  const struct marey__energy_section *section,
                                  const struct marey__energy_report *report,
                                  struct marey__energy_sum *out)
{
    struct marey__time_set united MAREY__FINALLY(marey__time_set_fini) = {0};
    const struct marey__time_set *set = &united;
    bool is_done = true;
    size_t n = 0;
    for (size_t i = 0; i < section->n; i++)
        if (is_in(report, target, section->windows[i])) {
            set = &section->windows[i]->set;
            n++;
        }
    if (n > 1) {
        for (size_t i = 0; is_done && i < section->n; i++)
            is_done = !is_in(report, target, section->windows[i]) ||
                      marey__time_set_unite(&united, &section->windows[i]->set);
        is_done = is_done && marey__time_set_settle(&united);
        set = &united;
    }
    if (is_done)
        marey__meter_measure(&report->meters[target->meter], set, out);
    return is_done;
}

/* ---- a row ---- */

static bool is_wanted(const struct marey__energy_target *target,
                      const struct marey__energy_section *section,
                      const struct marey__energy_scope *scope)
{
    return target->run == section->run && target->n_users != 0 &&
           (scope->host == NULL || strcmp(scope->host, target->host) == 0) &&
           (scope->member == MAREY__NO_MEMBER ||
            (target->kind == MAREY__OF_GPU && target->users[scope->member] != 0));
}

static void count_windows(const struct marey__energy_section *section, struct marey__energy_row *row)
{
    const bool is_named = section->by == MAREY__ENERGY_PHASE || section->by == MAREY__ENERGY_RANGE;
    row->first = section->windows[0]->first;
    row->last = section->windows[0]->last;
    for (size_t i = 0; i < section->n; i++) {
        const struct marey__energy_window *window = section->windows[i];
        row->count = is_named ? row->count + window->count : MAREY__MAX(row->count, window->count);
        row->samples += window->samples;
        row->is_too_many |= window->is_too_many;
    }
}

bool marey__energy_row_make(const struct marey__energy_report *report,
                            const struct marey__energy_section *section,
                            const struct marey__energy_scope *scope, struct marey__energy_row *row)
{
    *row = (struct marey__energy_row){0};
    count_windows(section, row);
    for (size_t i = 0; i < report->n_targets; i++) {
        const struct marey__energy_target *target = &report->targets[i];
        struct marey__energy_sum sum;
        if (!is_wanted(target, section, scope))
            continue;
        if (!marey__energy_target_measure(target, section, report, &sum))
            return false;
        if (sum.ns != 0)
            marey__energy_sum_add(&row->sums[target->kind], &sum);
    }
    return true;
}
