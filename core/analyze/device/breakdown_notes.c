/* Notes of the breakdown: missing, inferred or doubtful data. */
#include <inttypes.h>

#include "analyze/device/internal.h"

/* ---- notes about several processes ---- */

/* The processes of a note: a thousand ranks share one note. */
struct tally {
    size_t n_processes;
    char first[48];     /* "rank 3" */
    uint64_t n, of, ns; /* sums */
};

static void count(struct tally *tally, const struct marey__process_breakdown *p, uint64_t n,
                  uint64_t of, uint64_t ns)
{
    const struct marey_process *process = p->set.process;
    if (tally->n_processes++ == 0 && process->rank >= 0)
        snprintf(tally->first, sizeof tally->first, "rank %d", process->rank);
    else if (tally->n_processes == 1)
        snprintf(tally->first, sizeof tally->first, "process %" PRId64, process->pid);
    tally->n += n;
    tally->of += of;
    tally->ns += ns;
}

/* "rank 3", "rank 3 and 1 other", "rank 3 and 12 others". */
static void whose(const struct tally *tally, char *into, size_t size)
{
    const size_t n = tally->n_processes;
    if (n > 1)
        snprintf(into, size, "%s and %zu other%s", tally->first, n - 1, n == 2 ? "" : "s");
    else
        snprintf(into, size, "%s", tally->first);
}

enum {
    LOST,
    TOO_DEEP,
    UNMATCHED,
    NEGATIVE,
    STEPLESS,
    UNLINKED,
    OUTSIDE,
    FULL,
    UNKNOWN,
    REST,
    N_TALLIES
};

static void count_process(struct tally tallies[N_TALLIES], const struct marey__process_breakdown *p)
{
    const struct marey__work_set *const set = &p->set;
    uint64_t n_unlinked = 0, full_ns = 0;
    for (size_t d = 0; d < set->n_devices; d++)
        n_unlinked += set->devices[d].device >= 0 ? set->devices[d].n_unlinked : 0;
    for (size_t d = 0; d < p->idle.n_devices; d++)
        full_ns += p->idle.devices[d].queue_full_ns;
    const struct {
        bool is_there;
        uint64_t n, of, ns;
    } found[N_TALLIES] = {
        [LOST] = {set->process->lost_events != 0, set->process->lost_events},
        [TOO_DEEP] = {set->n_too_deep != 0, set->n_too_deep},
        [UNMATCHED] = {set->n_unmatched != 0, set->n_unmatched},
        [NEGATIVE] = {set->n_negative != 0, set->n_negative},
        [STEPLESS] = {set->n_steps == 0},
        [UNLINKED] = {n_unlinked != 0, n_unlinked, p->n_work},
        [OUTSIDE] = {set->n_steps != 0 && p->n_outside != 0, p->n_outside, 0, p->outside_ns},
        [FULL] = {full_ns != 0, 0, 0, full_ns},
        [UNKNOWN] = {set->is_unknown},
        [REST] = {!set->is_unknown && p->devices.rows[0].device < 0 &&
                  set->process->source[0] == '\0'},
    };
    for (size_t i = 0; i < N_TALLIES; i++)
        if (found[i].is_there)
            count(&tallies[i], p, found[i].n, found[i].of, found[i].ns);
}

static void put_tallies(marey_table *table, const struct marey__breakdown *breakdown,
                        const struct tally tallies[N_TALLIES])
{
    static const char *const dropped[] = {
        [TOO_DEEP] = "Ranges nested too deep",
        [UNMATCHED] = "Async events while too many async ranges were in flight",
        [NEGATIVE] = "GPU events that end before they begin",
    };
    const bool by_range = breakdown->facts->by == MAREY__BY_RANGE,
               needs_steps = breakdown->facts->by == MAREY__BY_STEP ||
                             breakdown->facts->window == MAREY__WINDOW_STEPS;
    for (size_t i = 0; i < N_TALLIES; i++) {
        const struct tally *const t = &tallies[i];
        const double seconds = (double)t->ns / 1e9;
        char who[96];
        if (t->n_processes == 0)
            continue;
        whose(t, who, sizeof who);
        if (i == LOST)
            marey__put_note(table, "Lost events: %" PRIu64 " of %s; the times do not include them.",
                            t->n, who);
        else if (i == TOO_DEEP || i == UNMATCHED || i == NEGATIVE)
            marey__put_note(table, "%s: %" PRIu64 " of %s, left out.", dropped[i], t->n, who);
        else if (i == STEPLESS && needs_steps)
            marey__put_note(table, "%s: no steps, so not in the table by step.", who);
        else if (i == UNLINKED && (needs_steps || by_range))
            marey__put_note(table,
                            "GPU events whose launch is not in the trace: %" PRIu64 " of %" PRIu64
                            " of %s; %s.",
                            t->n, t->of, who,
                            needs_steps ? "they count for the step in which they began"
                                        : "they are in no range");
        else if (i == OUTSIDE && needs_steps)
            marey__put_note(table,
                            "GPU events launched outside of all steps: %" PRIu64 " of %s (%.6f s).",
                            t->n, who, seconds);
        else if (i == FULL)
            marey__put_note(table,
                            "A stream of %s had %d launches waiting for %.6f s: then the call that "
                            "launches blocks, and the GPU is the bottleneck.",
                            who, MAREY__LAUNCH_QUEUE, seconds);
        else if (i == UNKNOWN)
            marey__put_note(
                table,
                "Computation and communication are unknown for %s: no GPU activity, operator or "
                "range that communicates was recorded. 'marey run --gpu', 'marey run --mpi' and "
                "marey.torch (trace_distributed, trace_ddp) record them.",
                who);
        else if (i == REST)
            marey__put_note(
                table,
                "Computation of %s is the time of the main thread outside the ranges that "
                "communicate, copy or wait; communication that no range covers is part of it.",
                who);
    }
}

/* ---- all notes ---- */

static bool communicates(const struct marey__breakdown *breakdown)
{
    for (size_t i = 0; i < breakdown->n_processes; i++) {
        const struct marey__process_breakdown *p = &breakdown->processes[i];
        for (size_t r = 0; p->set.matches != NULL && r < breakdown->rules.n; r++)
            if (p->set.matches[r].count != 0 && breakdown->rules.rules[r].class == MAREY__COMMUNICATES)
                return true;
    }
    return false;
}

static void put_ranks(marey_table *table, const struct marey__breakdown *breakdown)
{
    int32_t world_size = 1, first_rank = -1;
    size_t n_ranks = 0;
    bool has_several = false, is_unknown = false;
    for (size_t i = 0; i < breakdown->n_processes; i++) {
        const struct marey__process_breakdown *p = &breakdown->processes[i];
        if (p->is_left_out || p->devices.n == 0)
            continue;
        const struct marey_process *process = p->set.process;
        is_unknown |= p->set.is_unknown;
        world_size = MAREY__MAX(world_size, process->world_size);
        n_ranks += process->rank >= 0;
        has_several |= first_rank >= 0 && process->rank >= 0 && process->rank != first_rank;
        first_rank = process->rank >= 0 ? process->rank : first_rank;
    }
    if ((world_size > 1 || has_several) && !is_unknown && !communicates(breakdown))
        marey__put_note(table,
                        "There are several ranks, but no communication was found: perhaps no rule "
                        "matches the names of their kernels. Find the names with marey report, and "
                        "add a rule (--rules FILE; --print-rules prints the existing ones).");
    if (n_ranks != 0 && (size_t)world_size > n_ranks)
        marey__put_note(table, "%zu of %d ranks %s recorded here.", n_ranks, world_size,
                        n_ranks == 1 ? "is" : "are");
}

static void put_left_out(marey_table *table, const struct marey__breakdown *breakdown)
{
    size_t n = 0;
    for (size_t i = 0; i < breakdown->n_processes; i++)
        n += breakdown->processes[i].is_left_out;
    if (n == 1)
        marey__put_note(table, "One process is left out, because it neither uses a GPU nor has "
                               "steps nor communicates, while others do.");
    else if (n > 1)
        marey__put_note(table,
                        "%zu processes are left out, because they neither use a GPU nor have steps "
                        "nor communicate, while others do.",
                        n);
}

void marey__breakdown_put_warnings(marey_table *table, const struct marey__breakdown *breakdown,
                                   const struct marey__request *request)
{
    struct tally tallies[N_TALLIES] = {0};
    for (size_t r = 0; r < request->n; r++) {
        const char *sentence;
        for (size_t i = 0; (sentence = marey_recording_warning(request->recordings[r], i)) != NULL;
             i++)
            marey__put_string(table, sentence);
    }
    for (size_t i = 0; i < breakdown->n_processes; i++) {
        const struct marey__process_breakdown *p = &breakdown->processes[i];
        if (p->is_left_out || p->devices.n == 0)
            continue;
        marey__put_notes(table, p->set.process, breakdown->n_processes == 1);
        count_process(tallies, p);
    }
    put_ranks(table, breakdown);
    put_tallies(table, breakdown, tallies);
    put_left_out(table, breakdown);
}
