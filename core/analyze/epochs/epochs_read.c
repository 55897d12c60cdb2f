/* One pass over each process: its epochs, and how long each phase was open in them. */
#include <string.h>

#include "analyze/epochs/internal.h"
#include "read/internal.h"

/* A process in the reading. */
struct reading {
    struct marey__epochs *epochs;
    marey_recording *recording;
    const struct marey_process *process;
    struct marey__progress progress;
    uint64_t last_ns;  /* up to which the open phase is counted */
    uint64_t began_ns; /* the open epoch, where `is_open` */
    uint32_t run;
    bool is_open, is_first;
};

static struct marey__epoch_time *epoch_of(const struct reading *r)
{
    return &r->epochs->times[r->epochs->n_times - 1];
}

/* The open phase, in the open epoch; made when new, NULL on out of memory. */
static struct marey__epoch_part *part_of(struct reading *r, uint32_t site)
{
    struct marey__epochs *epochs = r->epochs;
    struct marey__epoch_time *epoch = epoch_of(r);
    const struct marey_site_info *info = marey_recording_site(r->recording, r->process->index, site);
    const uint32_t name = marey__names_number(&epochs->names, info->name, info->name_len);
    if (name == MAREY__NO_NAME)
        return NULL;
    for (size_t i = epoch->first_part; i < epochs->n_parts; i++)
        if (epochs->parts[i].name == name)
            return &epochs->parts[i];
    if (!marey__grow(&epochs->parts, &epochs->parts_cap, epochs->n_parts + 1, sizeof *epochs->parts))
        return NULL;
    epoch->n_parts++;
    epochs->parts[epochs->n_parts] = (struct marey__epoch_part){.name = name};
    return &epochs->parts[epochs->n_parts++];
}

/* Time goes on up to `ns`: it is that of the open phase. Returns false on out of memory. */
static bool go_on(struct reading *r, uint64_t ns)
{
    const struct marey__span *phase = &r->progress.phase;
    const uint64_t since_ns = r->last_ns;
    r->last_ns = MAREY__MAX(r->last_ns, ns);
    if (!r->is_open || !phase->is_open || phase->site > r->process->n_sites || r->last_ns == since_ns)
        return true;
    struct marey__epoch_part *part = part_of(r, phase->site);
    if (part == NULL)
        return false;
    part->ns += r->last_ns - since_ns;
    if (part->name < MAREY__PHASE_OTHER)
        epoch_of(r)->phase_ns[part->name] += r->last_ns - since_ns;
    return true;
}

static bool begin_epoch(struct reading *r)
{
    struct marey__epochs *epochs = r->epochs;
    if (!MAREY__PUSH(epochs->times, epochs->n_times, epochs->times_cap,
                     (struct marey__epoch_time){.process = r->process,
                                                .number = r->progress.epoch.number,
                                                .first_part = epochs->n_parts,
                                                .run = r->run,
                                                .flags = r->is_first ? MAREY__EPOCH_FIRST : 0u}))
        return false;
    r->began_ns = r->last_ns;
    r->is_open = true;
    r->is_first = false;
    return true;
}

static void end_epoch(struct reading *r, const struct marey__span *span)
{
    struct marey__epoch_time *epoch = epoch_of(r);
    const struct marey_process *p = r->process;
    uint64_t known_ns = 0;
    epoch->ns = r->last_ns - r->began_ns;
    epoch->n_iterations = span->n_iterations;
    epoch->samples = span->samples;
    if (span->is_open)
        epoch->flags |= MAREY__EPOCH_OPEN;
    if (p->lost_events != 0 && p->lost_first_ns <= r->last_ns && p->lost_last_ns >= r->began_ns)
        epoch->flags |= MAREY__EPOCH_CUT;
    for (size_t i = 0; i < MAREY__PHASE_OTHER; i++)
        known_ns += epoch->phase_ns[i];
    epoch->phase_ns[MAREY__PHASE_OTHER] = epoch->ns - known_ns;
    r->is_open = false;
}

static bool take_record(struct reading *r, const uint64_t *words, uint64_t ns)
{
    struct marey__span span;
    if (!go_on(r, ns))
        return false;
    if (marey__progress_take(&r->progress, words, ns, &span) && span.kind == MAREY__SPAN_EPOCH &&
        r->is_open)
        end_epoch(r, &span);
    if (r->progress.epoch.is_open && !r->is_open && !begin_epoch(r))
        return false;
    if (marey_record_type_of(words[0]) != MAREY_RECORD_PHASE || !r->progress.phase.is_open ||
        !r->is_open || r->progress.phase.site > r->process->n_sites)
        return true;
    struct marey__epoch_part *part = part_of(r, r->progress.phase.site);
    if (part != NULL)
        part->count++;
    return part != NULL;
}

static marey_status visit_batch(void *ctx, const struct marey_batch *batch)
{
    struct reading *r = ctx;
    if (batch->gap && r->is_open)
        epoch_of(r)->flags |= MAREY__EPOCH_CUT;
    const uint64_t *word = batch->words, *const end = word + batch->n;
    while (word < end) {
        const bool is_record = marey_word_kind(*word) == MAREY_KIND_RECORD;
        if (is_record && marey__is_progress(marey_record_type_of(*word)) &&
            !take_record(r, word, marey_batch_ns(batch, *word)))
            return marey__no_memory();
        word += is_record ? marey_record_length(*word) : 1;
    }
    return MAREY_OK;
}

static marey_status walk(struct reading *r)
{
    struct marey__span span;
    MAREY_TRY(marey__recording_visit_in_order(r->recording, r->process->index, visit_batch, r));
    if (r->is_open && !go_on(r, r->process->last_ns))
        return marey__no_memory();
    while (marey__progress_finish(&r->progress, r->process->last_ns, &span))
        if (span.kind == MAREY__SPAN_EPOCH && r->is_open)
            end_epoch(r, &span);
    return MAREY_OK;
}

marey_status marey__epochs_read(struct marey__epochs *epochs, marey_recording *recording)
{
    for (size_t i = 0; i < marey_recording_n_processes(recording); i++) {
        struct reading r = {.epochs = epochs,
                            .recording = recording,
                            .process = marey_recording_process(recording, i),
                            .is_first = true};
        r.last_ns = r.process->first_ns;
        MAREY__TRY_MEMORY(marey__process_runs_find(&epochs->runs, r.process, &r.run));
        marey__progress_init(&r.progress, r.process, r.process->first_ns);
        MAREY_TRY(walk(&r));
    }
    return MAREY_OK;
}
