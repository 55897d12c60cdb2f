/*
 * text: reports as people read them in a terminal, and as JSON.
 *
 *   summary_text.c, report_*.c   the summary: text, JSON, sorting, steps, ranks
 *   diff_out.c, diff_json_out.c
 *   stacks_*_out.c, stack_groups.c   `marey stacks`          cost_text.c   lines that several reports share
 *
 * Tables are drawn by present/draw. Analyses with an entry in report/registry.c have their text in their own folder.
 *
 * Input: reports of analyze/. Output: text or JSON on a stream.
 */
#ifndef MAREY_PRESENT_TEXT_INTERNAL_H
#define MAREY_PRESENT_TEXT_INTERNAL_H

#include <stdbool.h>

#include "analyze/summary/internal.h"
#include "base/internal.h"
#include "present/draw/internal.h"
#include "tensor/diff/internal.h"
#include <marey/stacks.h>

/*
 * Sort `ranges`, `async` and, where it has the column, `kernels`; "-" before it for ascending, NULL leaves them.
 * MAREY_EINVAL lists the columns.
 */
MAREY_WARN_UNUSED marey_status marey__report_sort(marey_summary *summary, const char *sort);

/*
 * The tables called `names` (comma separated, NULL: ranges) in that order, each once, into `tables`, which has room for
 * MAREY__N_TABLES; behind `ranges` come kernels, copies, async ranges, counters and marks where there are any, behind `iterations` their ranks (where
 * there are several), epochs, phases and outliers. MAREY_EINVAL for an unknown one.
 */
MAREY_WARN_UNUSED marey_status marey__report_tables(marey_summary *summary, const char *names,
                                                    marey_table **tables, size_t *n);

/*
 * The report's lines about iterations into `out`, each through `line`, where the summary has any: how long, how many in
 * a second, what takes most of them, which were out of the ordinary, which rank is slowest.
 */
MAREY_WARN_UNUSED marey_status marey__report_iterations(marey_summary *summary,
                                                        struct marey__buf *line, FILE *out);

/* More than so many ranks are shown by exception. */
enum { MAREY__FEW_RANKS = 16, MAREY__RANK_ROWS = 10 };
bool marey__report_has_many_ranks(const marey_summary *summary);
/* Lines about many ranks, in report_ranks.c: what is usual, the slowest and the fastest, outliers, hosts that stand out. */
MAREY_WARN_UNUSED marey_status marey__report_ranks(const marey_summary *summary,
                                                   struct marey__buf *line, FILE *out);

/* One line about the workers of data loaders, where there are any: how busy they were. */
MAREY_WARN_UNUSED marey_status marey__report_workers(marey_summary *summary,
                                                     struct marey__buf *line, FILE *out);

/* ---- cost_text.c ---- */

/* The line on cost, without its end; false when there is nothing to print. */
bool marey__cost_put(struct marey__buf *line, const struct marey_cost *cost);
/* The line that lists what the cost leaves out, the same. */
bool marey__cost_put_missing(struct marey__buf *line, const struct marey_cost *cost);
/* The array of its parts. */
void marey__cost_put_json(struct marey__buf *buf, const struct marey_cost *cost);

/* Threads at one moment by equal stacks: <marey/stacks.h> from inside. */

struct marey__stack_member {
    const struct marey_samples_seen *seen;
    const struct marey_samples_thread *thread;
    const struct marey_samples_process *process;
    bool leads; /* the main thread of a rank; without ranks, of a process that none of the others started */
};

struct marey__stack_group {
    uint32_t stack, shared; /* `shared`: outer frames that the majority has as well */
    const struct marey__stack_member *members; /* those that lead first, then by rank, pid and tid */
    size_t n, n_leading;
    bool is_majority;
};

struct marey_stack_groups {
    const struct marey_sampler_stacks *stacks;
    struct marey__stack_member *members;
    size_t n_members, n_leading;
    struct marey__stack_group *groups; /* most that lead first, then most threads */
    size_t n_groups;
};

/* PY_VERSION_HEX as people write it. Of versions before 3.11 the last part is not known, nor the release level: 3.8. */
static inline void marey__put_python_version(struct marey__buf *to, uint32_t hex)
{
    marey__buf_printf(to, "%u.%u", hex >> 24, hex >> 16 & 255);
    if ((hex & 255) != 0)
        marey__buf_printf(to, ".%u", hex >> 8 & 255);
}

#endif
