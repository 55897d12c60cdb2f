/* One pass over each process: the ends of its steps, and the number of epochs begun. */
#include <math.h>
#include <string.h>

#include "analyze/scaling/internal.h"
#include "read/internal.h"

struct reading {
    struct marey__scaling_steps *steps;
    const struct marey_process *process;
    struct marey__progress progress;
    uint64_t n_seen;   /* ended, including warm-up and cut ones */
    uint64_t last_key; /* of the last step, if any */
    bool is_cut;       /* words are missing in the current step */
};

/* Numbers ascend; after a reset, keys continue from the last. */
static uint64_t key_of(const struct reading *r, uint64_t number)
{
    return r->n_seen == 0 || number > r->last_key ? number : r->last_key + 1;
}

static bool is_cut(const struct reading *r, const struct marey__span *span)
{
    const struct marey_process *p = r->process;
    return r->is_cut || (span->flags & MAREY__ITERATION_CUT) != 0 ||
           (p->lost_events != 0 && p->lost_first_ns <= span->end_ns &&
            p->lost_last_ns >= span->begin_ns);
}

static bool end_step(struct reading *r, const struct marey__span *span)
{
    struct marey__scaling_steps *steps = r->steps;
    const uint64_t key = key_of(r, span->number);
    const bool is_whole = !is_cut(r, span) && span->end_ns > span->begin_ns;
    r->last_key = key;
    r->n_seen++;
    r->is_cut = false;
    if ((span->flags & MAREY__ITERATION_WARMUP) != 0) {
        steps->n_warmup++;
        return true;
    }
    if (!is_whole)
        return true;
    return MAREY__PUSH(steps->list, steps->n, steps->cap,
                       (struct marey__scaling_step){.key = key,
                                                    .s = (double)(span->end_ns - span->begin_ns) * 1e-9,
                                                    .samples = span->samples,
                                                    .n = 1});
}

static marey_status visit_batch(void *ctx, const struct marey_batch *batch)
{
    struct reading *r = ctx;
    const uint64_t *word = batch->words, *const end = word + batch->n;
    r->is_cut |= batch->gap != 0;
    while (word < end) {
        const bool is_record = marey_word_kind(*word) == MAREY_KIND_RECORD;
        if (is_record && marey__is_progress(marey_record_type_of(*word))) {
            struct marey__span span;
            const bool was_open = r->progress.epoch.is_open;
            const uint64_t number = r->progress.epoch.number;
            const bool ends =
                marey__progress_take(&r->progress, word, marey_batch_ns(batch, *word), &span);
            if (ends && span.kind == MAREY__SPAN_ITERATION && !end_step(r, &span))
                return marey__no_memory();
            r->steps->n_epochs +=
                r->progress.epoch.is_open && (!was_open || r->progress.epoch.number != number);
        }
        word += is_record ? marey_record_length(*word) : 1;
    }
    return MAREY_OK;
}

marey_status marey__scaling_steps_read(struct marey__scaling_steps *steps,
                                       marey_recording *recording, size_t process)
{
    struct reading r = {.steps = steps, .process = marey_recording_process(recording, process)};
    marey__progress_init(&r.progress, r.process, r.process->first_ns);
    MAREY_TRY(marey__recording_visit_in_order(recording, process, visit_batch, &r));
    steps->has_open_epoch = r.progress.epoch.is_open;
    steps->n_seen = r.n_seen;
    /* Without marked warm-up, the first step is warm-up. */
    if (steps->n_warmup == 0 && steps->n > 1 && r.n_seen > 1) {
        memmove(steps->list, steps->list + 1, --steps->n * sizeof *steps->list);
        steps->n_warmup = 1;
    }
    return MAREY_OK;
}

bool marey__scaling_steps_merge(struct marey__scaling_steps *steps,
                                const struct marey__scaling_steps *other)
{
    struct marey__scaling_steps sum = {0};
    size_t i = 0, j = 0;
    if (!marey__grow(&sum.list, &sum.cap, steps->n + other->n + 1, sizeof *sum.list))
        return false;
    while (i < steps->n || j < other->n) {
        const struct marey__scaling_step *a = i < steps->n ? &steps->list[i] : NULL,
                                         *b = j < other->n ? &other->list[j] : NULL;
        const bool takes_a = a != NULL && (b == NULL || a->key <= b->key),
                   takes_b = b != NULL && (a == NULL || b->key <= a->key);
        struct marey__scaling_step *to = &sum.list[sum.n++];
        const struct marey__scaling_step *const from = takes_a ? a : b;
        MAREY_ASSERT(from != NULL);
        *to = *from;
        if (takes_a && takes_b) {
            to->s = fmax(a->s, b->s);
            to->samples += b->samples;
            to->n += b->n;
        }
        i += takes_a;
        j += takes_b;
    }
    marey__free(steps->list);
    steps->list = sum.list;
    steps->n = sum.n;
    steps->cap = sum.cap;
    return true;
}

void marey__scaling_steps_fini(struct marey__scaling_steps *steps)
{
    marey__free(steps->list);
    *steps = (struct marey__scaling_steps){0};
}

/* ---- parts of a step, from the breakdown ---- */

static void add_row(struct marey__scaling_parts *parts, const struct marey__device_row *row)
{
    const struct marey__atoms *atoms = &row->atoms;
    const uint64_t compute = marey__computing_ns(atoms), comm = marey__exposed_comm_ns(atoms),
                   memory = marey__exposed_mem_ns(atoms);
    parts->ns[0] += (double)compute;
    parts->ns[1] += (double)comm;
    parts->ns[2] += (double)memory;
    parts->ns[3] += (double)(row->span_ns - compute - comm - memory);
    parts->n_steps++;
    parts->has_device |= row->device >= 0;
}

/* Rows are ordered by device, then step. */
static void add_rows(struct marey__scaling_parts *parts, const struct marey__device_rows *rows,
                     uint64_t n_warmup)
{
    uint64_t n_of_device = 0;
    for (size_t i = 0; i < rows->n; i++) {
        n_of_device = i > 0 && rows->rows[i].device == rows->rows[i - 1].device ? n_of_device + 1 : 0;
        if (n_of_device >= n_warmup)
            add_row(parts, &rows->rows[i]);
    }
}

marey_status marey__scaling_parts_read(struct marey__scaling_parts *parts,
                                       marey_recording *recording, size_t process,
                                       const struct marey__rules *rules, uint64_t n_warmup)
{
    struct marey__work_set set MAREY__FINALLY(marey__work_set_fini) = {0};
    struct marey__device_windows windows MAREY__FINALLY(marey__device_windows_fini) = {0};
    struct marey__device_rows rows MAREY__FINALLY(marey__device_rows_fini) = {0};
    const struct marey__work_options options = {.rules = rules};
    MAREY_TRY(marey__work_set_read(&set, recording, process, &options));
    MAREY__TRY_MEMORY(marey__device_windows_make(&windows, &set) &&
                      marey__by_rows_make(&rows, &set, &windows, MAREY__BY_STEP, MAREY__WINDOW_STEPS));
    /* One worker does not communicate; with several, unrecorded communication is unknown. */
    if (!set.is_unknown || set.process->world_size <= 1)
        add_rows(parts, &rows, n_warmup);
    return MAREY_OK;
}
