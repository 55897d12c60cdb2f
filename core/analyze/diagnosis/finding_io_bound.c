/*
 * io-bound: the main thread waits for files, outside of the data loader.
 *
 * Counts samples off the CPU in a call that reads, writes, opens or syncs a file, or in a page
 * fault from disk. Reads from the page cache do not wait. Excludes imports, and loading data,
 * evaluation, checkpoints, logging and outlier steps, whose findings have such waits as a cause. In
 * a process that uses a GPU, a wait may be hidden and is not counted.
 * Wrong when: the wait hides another one.
 */
#include <math.h>
#include <stdio.h>

#include "analyze/diagnosis/internal.h"
#include <marey/sampler.h>

static const double least_share = 0.05; /* of steps, or of the run */
static const double least_part = 0.5;   /* of a finding that has these waits as a cause */
enum { FEWEST_SAMPLES = 50 };

void marey__finding_add_io(const struct marey__facts *facts, uint64_t io_ns, struct marey__finding *f)
{
    const struct marey__system_facts *const s = &facts->system;
    const double share = s->main_ns != 0 ? (double)io_ns / (double)s->main_ns : 0;
    if (share < least_part * f->statement.share || f->n_because == MAREY__MAX_CAUSES)
        return;
    char call[64];
    struct marey__cause *const cause = &f->because[f->n_because++];
    *cause = (struct marey__cause){.id = "io-bound", .phase = f->statement.phase, .share = share};
    snprintf(cause->claim, sizeof cause->claim,
             "the main thread waits for files %.0f %% of the time (%s).", share * 100,
             marey_sampler_wait_text(s->io_wait, call, sizeof call));
}

bool marey__find_io_bound(const struct marey__diagnosis *d, struct marey__finding *out)
{
    const struct marey__facts *const facts = &d->facts;
    const struct marey__system_facts *const s = &facts->system;
    out->statement.id = "io-bound";
    out->statement.phase = MAREY__FACT_OTHER;
    out->confidence = 0.7;
    if (s->n_main < FEWEST_SAMPLES || facts->has_device)
        return false;
    const double elsewhere =
                     marey__diagnosis_find(d, "slow-steps") != NULL ? (double)s->io_slow_ns : 0,
                 logged = (facts->claimed & MAREY__FACT_LOGS) != 0 ? (double)s->io_logged_ns : 0,
                 share = ((double)s->io_ns - elsewhere - logged) / (double)s->main_ns;
    if (share < least_share)
        return false;
    /* A waiting call also uses the CPU: in the kernel, and to prepare its data. */
    const double lines = share * fmax(1, (double)s->io_lines_ns / (double)s->io_ns);
    marey__finding_set_between(out, share, lines, sqrt(share * (1 - share) / (double)s->n_main));
    out->statement.share = share;
    out->statement.place = s->io_place;
    const double bytes = s->mean[MAREY__SYSTEM_BYTES_READ];
    char rate[32], call[64], also[48] = "";
    if (bytes >= 1e6)
        snprintf(also, sizeof also, ", %s/s from storage",
                 marey_text_number(bytes, MAREY_UNIT_BYTES, rate, sizeof rate));
    snprintf(out->statement.claim, sizeof out->statement.claim,
             "I/O-bound: the main thread waits for files %.0f %% of %s (%s%s).", share * 100,
             facts->n_steps != 0 ? "each step" : "the time",
             marey_sampler_wait_text(s->io_wait, call, sizeof call), also);
    snprintf(out->detail, sizeof out->detail, "of these waits.");
    snprintf(out->statement.action, sizeof out->statement.action,
             "Read ahead or write in another thread or process, keep files open, or move them to a "
             "faster disk.");
    return true;
}
