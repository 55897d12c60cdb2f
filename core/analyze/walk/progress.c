/*
 * Begin and end of iterations, epochs and phases. The log records the end of an iteration; it began
 *
 *   at its recorded begin, else
 *   where the previous one ended, or its epoch or phase began, whichever was last;
 *   for the first of the process: at its first event
 *
 * If the previous record is missing, the begin is unknown and the iteration is marked.
 *
 * If the program does not count iterations, they are steps from hints, by the log's plan (switchboard/steps.c). The first
 * begins with the first request for a batch.
 */
#include "analyze/walk/internal.h"

void marey__progress_init(struct marey__progress *progress, const struct marey_process *process,
                          uint64_t first_ns)
{
    *progress = (struct marey__progress){.begin_ns = first_ns};
    marey__step_plan_parse(&progress->plan, process->steps);
}

/* An untrusted number of samples; 0 if invalid. */
static double to_samples(uint64_t word)
{
    double samples;
    memcpy(&samples, &word, sizeof samples);
    return samples > 0 && samples < 1e18 ? samples : 0;
}

/*
 * Numbers count up; 0 is a count that was reset, which begins where the previous one ended. Any other number means that
 * one is missing.
 */
static bool begin_is_known(const struct marey__progress *progress, uint64_t number)
{
    if (progress->is_begun)
        return progress->begun_number == number;
    return number == progress->next_number || number == 0;
}

static void end_iteration(struct marey__progress *progress, uint64_t number, bool is_warmup,
                          double samples, uint64_t ns, struct marey__span *span)
{
    *span = (struct marey__span){
        .kind = MAREY__SPAN_ITERATION,
        .begin_ns = MAREY__MIN(progress->begin_ns, ns),
        .end_ns = ns,
        .number = number,
        .flags = (is_warmup ? MAREY__ITERATION_WARMUP : 0u) |
                 (begin_is_known(progress, number) ? 0u : MAREY__ITERATION_CUT),
        .samples = samples,
    };
    progress->begin_ns = ns;
    progress->next_number = number + 1;
    progress->is_begun = false;
    progress->epoch.n_iterations++;
    progress->epoch.samples += span->samples;
    progress->phase.n_iterations++;
}

/* Whether the hint ends a step. */
static bool take_hint(struct marey__progress *progress, const uint64_t *words, uint64_t ns,
                      struct marey__span *span)
{
    const bool by_batches = progress->plan.source == MAREY__STEPS_BATCHES;
    bool ends = false;
    switch (marey_record_step_hint(words[1])) {
    case MAREY_STEP_UPDATE:
        ends = marey__step_plan_ends(&progress->plan, progress->n_updates++);
        break;
    case MAREY_STEP_FETCH:
        ends = by_batches && progress->has_batch;
        /* A step of batches begins here; the first step of updates, too. */
        if (!ends && (by_batches || (progress->n_updates == 0 && !progress->has_batch)))
            progress->begin_ns = ns;
        progress->has_batch = false;
        break;
    case MAREY_STEP_BATCH:
        progress->has_batch = true;
        progress->last_loader = marey__hint_loader(words[1]) % MAREY__HINT_LOADERS;
        progress->step_samples[progress->last_loader] += to_samples(words[2]);
        break;
    default:
        break;
    }
    if (ends) {
        /* The last batch is that of the update; earlier ones may be of a validation. */
        end_iteration(progress, progress->next_number, false,
                      progress->step_samples[progress->last_loader], ns, span);
        memset(progress->step_samples, 0, sizeof progress->step_samples);
    }
    return ends;
}

/* End the span if it is open. */
static bool close_span(struct marey__span *open, uint64_t ns, struct marey__span *span)
{
    if (!open->is_open)
        return false;
    *span = *open;
    span->end_ns = MAREY__MAX(ns, open->begin_ns);
    span->is_open = false;
    open->is_open = false;
    return true;
}

static void open_span(struct marey__progress *progress, struct marey__span *open,
                      const struct marey__span *new)
{
    *open = *new;
    open->is_open = true;
    /* Steps from hints contain phases. */
    if (!progress->is_begun && progress->plan.source == MAREY__STEPS_NONE)
        progress->begin_ns = MAREY__MAX(progress->begin_ns, new->begin_ns);
}

/* A recording that starts within an epoch records it first; the program's own begin may then be a repetition. */
static bool is_said_again(const struct marey__span *epoch, const uint64_t *words)
{
    return epoch->is_open && words[2] == 1 && epoch->number == words[1] && epoch->n_iterations == 0;
}

bool marey__progress_take(struct marey__progress *progress, const uint64_t *words, uint64_t ns,
                          struct marey__span *span)
{
    bool ends = false;
    switch (marey_record_type_of(words[0])) {
    case MAREY_RECORD_ITERATION:
        end_iteration(progress, words[1], words[2] & 1, to_samples(words[3]), ns, span);
        return true;
    case MAREY_RECORD_STEP_HINT:
        return take_hint(progress, words, ns, span);
    case MAREY_RECORD_ITERATION_BEGIN:
        progress->begin_ns = ns;
        progress->begun_number = words[1];
        progress->is_begun = true;
        return false;
    case MAREY_RECORD_EPOCH:
        if (is_said_again(&progress->epoch, words))
            return false;
        ends = close_span(&progress->epoch, ns, span);
        if (words[2] == 1)
            open_span(progress, &progress->epoch,
                      &(struct marey__span){
                          .kind = MAREY__SPAN_EPOCH, .begin_ns = ns, .number = words[1]});
        return ends;
    case MAREY_RECORD_PHASE:
        ends = close_span(&progress->phase, ns, span);
        if (marey_record_site(words[1]) != 0)
            open_span(progress, &progress->phase,
                      &(struct marey__span){.kind = MAREY__SPAN_PHASE,
                                            .begin_ns = ns,
                                            .site = marey_record_site(words[1])});
        return ends;
    default:
        return false;
    }
}

bool marey__progress_finish(struct marey__progress *progress, uint64_t last_ns,
                            struct marey__span *span)
{
    const bool ends =
        close_span(&progress->phase, last_ns, span) || close_span(&progress->epoch, last_ns, span);
    span->is_open = ends;
    return ends;
}
