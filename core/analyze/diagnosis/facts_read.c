/* Reads steps and phases from the logs, then assigns each sample to its phase of a step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/diagnosis/internal.h"
#include "read/internal.h"

const char *const marey__fact_phase_names[MAREY__FACT_PHASES + 1] = {
    "data",       "forward",    "backward", "optimizer", "recompute",
    "evaluation", "checkpoint", "logging",  "other",     "startup"};

long marey__fact_number(const char *json, const char *key)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *const at = json != NULL ? strstr(json, quoted) : NULL;
    return at != NULL && strspn(at + strlen(quoted), " -0123456789") != 0
               ? strtol(at + strlen(quoted), NULL, 10)
               : -1;
}

/* ---- logs ---- */

struct reading {
    struct marey__trainer *trainer;
    struct marey__progress progress;
    uint64_t n_events, trained_at, evaluated_at; /* phases and hints, counted */
    bool is_fetching;                            /* the program has requested a batch */
    uint32_t fetched;                            /* from this loader */
    size_t n_labelled;                           /* phases with a loader, or of something else */
};

/* Whether the process has GPU streams. */
static bool has_streams(const struct marey__trainer *t)
{
    for (uint32_t i = 0; i < t->info->n_lanes; i++)
        if (marey_recording_lane(t->recording, t->info->index, i)->kind == MAREY_LANE_GPU)
            return true;
    return false;
}

static enum marey__fact_phase phase_of(const struct reading *r, uint32_t site)
{
    const struct marey_site_info *const info =
        marey_recording_site(r->trainer->recording, r->trainer->info->index, site);
    if (strcmp(info->name, "evaluate") == 0)
        return MAREY__FACT_EVALUATION;
    for (int i = 0; i < MAREY__FACT_OTHER; i++)
        if (strcmp(info->name, marey__fact_phase_names[i]) == 0)
            return (enum marey__fact_phase)i;
    return MAREY__FACT_OTHER;
}

static bool take_span(struct reading *r, const struct marey__span *span)
{
    struct marey__trainer *const t = r->trainer;
    if (span->kind == MAREY__SPAN_ITERATION)
        return MAREY__PUSH(t->steps, t->n_steps, t->steps_cap,
                           (struct marey__fact_step){.begin_ns = span->begin_ns,
                                                     .end_ns = span->end_ns,
                                                     .samples = span->samples});
    if (span->kind != MAREY__SPAN_PHASE || span->end_ns == span->begin_ns)
        return true;
    const enum marey__fact_phase phase = phase_of(r, span->site);
    r->n_events++;
    if (phase == MAREY__FACT_EVALUATION)
        r->evaluated_at = r->n_events;
    else if (phase >= MAREY__FACT_FORWARD && phase <= MAREY__FACT_RECOMPUTE)
        r->trained_at = r->n_events;
    return MAREY__PUSH(t->phases, t->n_phases, t->phases_cap,
                       (struct marey__fact_phase_span){span->begin_ns, span->end_ns, phase, 0, false});
}

/* ---- loaders, by hints ---- */

/* NULL on out of memory. */
static struct marey__fact_loader *loader_at(struct marey__trainer *t, uint32_t number)
{
    enum { MOST = 4096 };
    number = number < MOST ? number : 0;
    while (t->n_loaders <= number)
        if (!MAREY__PUSH(t->loaders, t->n_loaders, t->loaders_cap, (struct marey__fact_loader){0}))
            return NULL;
    return &t->loaders[number];
}

/* Count what the program did with the last batch of each loader, as far as that is known by now. */
static void judge_batches(struct reading *r, uint32_t number)
{
    if (r->progress.phase.is_open && phase_of(r, r->progress.phase.site) == MAREY__FACT_EVALUATION)
        r->evaluated_at = r->n_events;
    for (size_t i = 0; i < r->trainer->n_loaders; i++) {
        struct marey__fact_loader *const loader = &r->trainer->loaders[i];
        const bool trained = r->trained_at > loader->batch_at,
                   evaluated = r->evaluated_at > loader->batch_at && !trained;
        if (!loader->is_pending || (i != number && !evaluated))
            continue;
        loader->n_trained += trained;
        loader->n_evaluated += evaluated;
        loader->is_pending = false;
    }
}

/* Label the next phases of data, `most` at most. Returns their number. */
static size_t label_data(struct reading *r, uint32_t loader, bool is_start_of_epoch, size_t most)
{
    struct marey__trainer *const t = r->trainer;
    size_t n = 0;
    for (; r->n_labelled < t->n_phases && n < most; r->n_labelled++) {
        struct marey__fact_phase_span *const span = &t->phases[r->n_labelled];
        if (span->phase != MAREY__FACT_DATA)
            continue;
        span->loader = loader;
        span->is_start_of_epoch = is_start_of_epoch;
        n++;
    }
    return n;
}

/*
 *   FETCH 1  data  BATCH 1  ...  FETCH 1  data  data  FETCH 2  data  BATCH 2
 *                                         |     '-- starts the workers of loader 2
 *                                         '-- the end of loader 1
 */
static bool take_hint(struct reading *r, const uint64_t *words)
{
    const uint32_t what = marey_record_step_hint(words[1]), number = marey__hint_loader(words[1]);
    r->n_events++;
    if (what == MAREY_STEP_UPDATE)
        r->trained_at = r->n_events;
    if (what != MAREY_STEP_FETCH && what != MAREY_STEP_BATCH)
        return true;
    judge_batches(r, number);
    if (what == MAREY_STEP_FETCH) {
        if (r->is_fetching) {
            label_data(r, r->fetched, true, 1);
            r->trainer->loaders[r->fetched].is_starting = true;
        }
        struct marey__fact_loader *const loader = loader_at(r->trainer, number);
        r->fetched = loader != NULL ? (uint32_t)(loader - r->trainer->loaders) : 0;
        if (number != 0 && loader != NULL && label_data(r, r->fetched, true, SIZE_MAX) != 0)
            loader->is_starting = true;
        r->is_fetching = true;
        return loader != NULL;
    }
    struct marey__fact_loader *const loader = loader_at(r->trainer, number);
    if (loader == NULL)
        return false;
    /* Lightning's loaders have no number before the first batch of an epoch. */
    loader->is_starting |= number != 0 && r->fetched == 0;
    label_data(r, (uint32_t)(loader - r->trainer->loaders), loader->is_starting, SIZE_MAX);
    loader->is_starting = r->is_fetching = false;
    loader->is_pending = true;
    loader->batch_at = r->n_events;
    return true;
}

static bool is_for_evaluation(const struct marey__fact_loader *loader)
{
    return loader->n_evaluated > loader->n_trained;
}

/* Loading for an evaluation belongs to it, unless the program does nothing else. The other loader with most time counts. */
static void choose_loader(struct marey__trainer *t)
{
    const struct marey__fact_loader *most = NULL, *first = NULL;
    bool trains = false;
    for (size_t i = 0; i < t->n_loaders; i++)
        trains |= t->loaders[i].n_trained != 0;
    for (size_t i = 0; i < t->n_phases && t->n_loaders != 0; i++) {
        struct marey__fact_phase_span *const span = &t->phases[i];
        struct marey__fact_loader *const loader = &t->loaders[span->loader];
        if (span->phase != MAREY__FACT_DATA)
            continue;
        if (trains && is_for_evaluation(loader))
            span->phase = MAREY__FACT_EVALUATION;
        else if (t->n_steps != 0 && span->begin_ns >= t->steps[0].begin_ns)
            loader->data_ns += span->end_ns - span->begin_ns;
    }
    for (size_t i = 0; i < t->n_loaders; i++) {
        const struct marey__fact_loader *const loader = &t->loaders[i];
        if (loader->text == NULL)
            continue;
        first = first == NULL ? loader : first;
        if (loader->data_ns > (most != NULL ? most->data_ns : 0))
            most = loader;
    }
    most = most != NULL ? most : first;
    t->loader = most != NULL ? most->text : NULL;
}

/* Keeps a mark's text unless one is kept already. */
static bool take_text(char **into, const char *text, size_t len)
{
    if (*into != NULL)
        return true;
    *into = marey__calloc(len + 1, 1);
    if (*into != NULL)
        memcpy(*into, text, len);
    return *into != NULL;
}

/* Begins with its number. */
static bool take_loader(struct marey__trainer *t, const char *text, size_t len)
{
    char json[64] = "";
    memcpy(json, text, MAREY__MIN(len, sizeof json - 1));
    const long number = marey__fact_number(json, "loader");
    struct marey__fact_loader *const loader = loader_at(t, number > 0 ? (uint32_t)number : 0);
    return loader != NULL && take_text(&loader->text, text, len);
}

/* A garbage collection is recorded when it ends. */
static bool take_collection(struct marey__trainer *t, const char *text, size_t len, uint64_t ns)
{
    char json[128] = "";
    memcpy(json, text, MAREY__MIN(len, sizeof json - 1));
    const long generation = marey__fact_number(json, "generation"),
               pause_ns = marey__fact_number(json, "pause_ns");
    return generation < 0 || generation > 2 || pause_ns <= 0 || (uint64_t)pause_ns > ns ||
           MAREY__PUSH(t->pauses, t->n_pauses, t->pauses_cap,
                       (struct marey__fact_pause){ns - (uint64_t)pause_ns, ns, (uint32_t)generation});
}

/* That its memory was used shows that the program uses a GPU, whether or not its activity was traced. */
static bool take_allocator(struct marey__trainer *t, const char *text, size_t len, uint64_t ns)
{
    char json[1024] = "";
    memcpy(json, text, MAREY__MIN(len, sizeof json - 1));
    t->has_device |= marey__fact_number(json, "allocated_peak") > 0;
    return MAREY__PUSH(
        t->allocators, t->n_allocators, t->allocators_cap,
        (struct marey__fact_allocator){.ns = ns,
                                       .device = marey__fact_number(json, "device"),
                                       .reserved = marey__fact_number(json, "reserved"),
                                       .total = marey__fact_number(json, "total"),
                                       .retries = marey__fact_number(json, "retries"),
                                       .ooms = marey__fact_number(json, "ooms")});
}

static bool take_mark(struct reading *r, const uint64_t *words, uint64_t ns)
{
    enum { TEXT = 4 };
    struct marey__trainer *const t = r->trainer;
    const uint32_t len = marey_record_text_len(words[1]), site = marey_record_site(words[1]);
    if (marey_record_payload_type(words[1]) != TEXT || site == 0)
        return true;
    const char *const name = marey_recording_site(t->recording, t->info->index, site)->name,
                      *const text = (const char *)&words[2];
    return strcmp(name, "DataLoader") == 0       ? take_loader(t, text, len)
           : strcmp(name, "torch.compile") == 0  ? take_text(&t->compiled, text, len)
           : strcmp(name, "gc") == 0             ? take_collection(t, text, len, ns)
           : strcmp(name, "cuda.allocator") == 0 ? take_allocator(t, text, len, ns)
                                                 : true;
}

static marey_status visit_batch(void *ctx, const struct marey_batch *batch)
{
    struct reading *const r = ctx;
    const uint64_t *word = batch->words, *const end = word + batch->n;
    while (word < end) {
        struct marey__span span;
        const bool is_record = marey_word_kind(*word) == MAREY_KIND_RECORD;
        const uint32_t type = is_record ? marey_record_type_of(*word) : 0;
        if (is_record && marey__is_progress(type) &&
            marey__progress_take(&r->progress, word, marey_batch_ns(batch, *word), &span)) {
            if (span.kind == MAREY__SPAN_ITERATION)
                r->trainer->tid = batch->lane->tid;
            if (!take_span(r, &span))
                return marey__no_memory();
        }
        if (type == MAREY_RECORD_STEP_HINT && !take_hint(r, word))
            return marey__no_memory();
        if (type == MAREY_RECORD_MARK && !take_mark(r, word, marey_batch_ns(batch, *word)))
            return marey__no_memory();
        word += is_record ? marey_record_length(*word) : 1;
    }
    return MAREY_OK;
}

static marey_status read_log(struct marey__trainer *trainer)
{
    struct reading r = {.trainer = trainer};
    struct marey__span span;
    marey__progress_init(&r.progress, trainer->info, trainer->info->first_ns);
    MAREY_TRY(
        marey__recording_visit_in_order(trainer->recording, trainer->info->index, visit_batch, &r));
    while (marey__progress_finish(&r.progress, trainer->info->last_ns, &span))
        MAREY__TRY_MEMORY(take_span(&r, &span));
    choose_loader(trainer);
    return MAREY_OK;
}

static void fini_trainer(struct marey__trainer *trainer)
{
    for (size_t i = 0; i < trainer->n_loaders; i++)
        marey__free(trainer->loaders[i].text);
    MAREY__FREE_ALL(trainer->steps, trainer->phases, trainer->pauses, trainer->allocators,
                    trainer->host_gaps, trainer->waits, trainer->loaders, trainer->compiled);
}

static uint32_t target_of(const struct marey__facts *facts, const marey_recording *recording,
                          uint32_t log)
{
    for (uint32_t i = 1; facts->has_samples && i <= marey_samples_n_processes(facts->set.samples); i++)
        if (facts->set.targets[i].recording == recording && facts->set.targets[i].log == log)
            return i;
    return 0;
}

/* A process without steps is not a trainer. */
static marey_status read_process(struct marey__facts *facts, marey_recording *recording,
                                 const struct marey_process *info)
{
    struct marey__trainer trainer = {.info = info,
                                     .recording = recording,
                                     .target = target_of(facts, recording, info->index),
                                     .start_ns = info->first_ns,
                                     .end_ns = info->last_ns};
    marey_status status = read_log(&trainer);
    if (status == MAREY_OK && trainer.n_steps != 0 && marey__is_torch_trace(info)) {
        facts->is_imported = true;
        status = marey__facts_read_import(&trainer);
    }
    facts->has_device |= trainer.has_device || has_streams(&trainer);
    if (status == MAREY_OK && trainer.n_steps != 0 &&
        MAREY__PUSH(facts->trainers, facts->n_trainers, facts->trainers_cap, trainer))
        return MAREY_OK;
    fini_trainer(&trainer);
    return status != MAREY_OK || trainer.n_steps == 0 ? status : marey__no_memory();
}

static marey_status read_logs(struct marey__facts *facts, const struct marey__request *request)
{
    for (size_t i = 0; i < request->n; i++)
        for (size_t p = 0; p < marey_recording_n_processes(request->recordings[i]); p++) {
            const struct marey_process *const info =
                marey_recording_process(request->recordings[i], p);
            marey__cost_add(&facts->cost, info);
            if (info->role[0] == '\0' && info->worker < 0)
                MAREY_TRY(read_process(facts, request->recordings[i], info));
        }
    marey__cost_finish(&facts->cost, request->recordings, request->n);
    return MAREY_OK;
}

/* ---- samples ---- */

struct sampling {
    struct marey__facts *facts;
    const struct marey__samples_chosen *chosen;
    uint32_t *trainers;        /* by process of the set: its trainer, plus one */
    uint64_t begin_ns, end_ns; /* of steps that count, of all trainers */
    struct worker {
        uint64_t n, ns, idle_ns;
    } * workers; /* by process of the set */
};

/* The kind of a sample; MAREY__FACT_KINDS after the last step. */
static uint32_t kind_at(struct marey__trainer *t, uint64_t ns)
{
    const struct marey__fact_step *const steps = t->steps;
    const bool is_before = t->n_steps != 0 && ns < steps[t->n_warmup].begin_ns;
    if (t->n_steps != 0 && ns >= steps[t->n_steps - 1].end_ns)
        return MAREY__FACT_KINDS;
    while (t->at_phase < t->n_phases && t->phases[t->at_phase].end_ns <= ns)
        t->at_phase++;
    while (t->at_step < t->n_steps && steps[t->at_step].end_ns <= ns)
        t->at_step++;
    const bool is_phase = t->at_phase < t->n_phases && t->phases[t->at_phase].begin_ns <= ns,
               is_slow = t->at_step < t->n_steps && steps[t->at_step].is_slow;
    if (is_before)
        return is_phase ? MAREY__FACT_FIRST_STEPS : MAREY__FACT_STARTUP;
    return (is_phase ? t->phases[t->at_phase].phase : MAREY__FACT_OTHER) +
           (is_slow ? (uint32_t)MAREY__FACT_SLOW : 0);
}

/* Whether `ns` is in the list. Call with ascending times. */
static bool is_in(const struct marey__interval *list, size_t n, size_t *at, uint64_t ns)
{
    while (*at < n && list[*at].end_ns <= ns)
        (*at)++;
    return *at < n && list[*at].begin_ns <= ns;
}

static void add_sums(struct marey__fact_sum *sum, const struct marey__fact_sum *more)
{
    sum->process = marey__fact_process_of(sum->n == 0, sum->process, more->process);
    sum->n += more->n;
    sum->ns += more->ns;
    sum->gil_ns += more->gil_ns;
    sum->gc_ns += more->gc_ns;
    sum->wants_ns += more->wants_ns;
    sum->off_ns += more->off_ns;
}

static bool add_to_bucket(struct marey__facts *facts, uint32_t kind, uint32_t stack,
                          const struct marey__fact_sum *more)
{
    const uint64_t key = (uint64_t)kind << 32 | stack;
    const uint32_t number = MAREY__MAP_NUMBER(&facts->buckets_by_key, facts->buckets,
                                              facts->n_buckets, facts->buckets_cap, key);
    if (number != 0)
        add_sums(&facts->buckets[number - 1].sum, more);
    return number != 0;
}

/* Only for steps after warm-up, and with several trainers. */
static bool add_to_rank(struct marey__facts *facts, uint32_t trainer, uint32_t kind, uint32_t stack,
                        const struct marey__fact_sum *more)
{
    enum { MOST_RANKS = 1024 };
    const uint64_t key = (uint64_t)trainer << 40 | (uint64_t)kind << 32 | stack;
    if (facts->n_trainers < 2 || facts->n_trainers > MOST_RANKS ||
        (MAREY__FACT_STEPS >> kind & 1) == 0)
        return true;
    const uint32_t number = MAREY__MAP_NUMBER(&facts->rank_buckets_by_key, facts->rank_buckets,
                                              facts->n_rank_buckets, facts->rank_buckets_cap, key);
    if (number != 0)
        add_sums(&facts->rank_buckets[number - 1].sum, more);
    return number != 0;
}

const struct marey_samples_seen *marey__facts_find_training(const struct marey__facts *facts,
                                                            const struct marey__trainer *trainer,
                                                            const struct marey_samples_round *round)
{
    const struct marey_samples_seen *main = NULL;
    for (size_t i = 0; i < round->n_seen; i++) {
        const struct marey_samples_seen *const seen = &round->seen[i];
        if (trainer != NULL && trainer->thread != 0 && seen->thread == trainer->thread)
            return seen;
        if (marey_samples_get_thread(facts->set.samples, seen->thread)->is_main)
            main = seen;
    }
    /* Before the thread starts, the main thread imports. */
    const bool is_late =
        trainer != NULL && trainer->thread != 0 && round->at_ns >= trainer->steps[0].begin_ns;
    return is_late ? NULL : main;
}

/*
 * Skips samples while another thread holds the interpreter lock: the main thread may wait for it.
 */
static bool add_slow_sample(struct marey__facts *facts, const struct marey__trainer *t,
                            uint32_t kind, const struct marey_samples_round *round,
                            const struct marey_samples_seen *seen)
{
    const uint64_t kinds = MAREY__FACT_SLOW_STEPS & ~MAREY__FACT_KNOWN;
    if ((kinds >> kind & 1) == 0 || (seen->flags & MAREY_SAMPLE_GC) != 0)
        return true;
    for (size_t i = 0; i < round->n_seen; i++)
        if (&round->seen[i] != seen && (round->seen[i].flags & MAREY_SAMPLE_GIL) != 0)
            return true;
    return MAREY__PUSH(facts->slow_samples, facts->n_slow_samples, facts->slow_samples_cap,
                       (struct marey__fact_slow_sample){(uint32_t)(t - facts->trainers),
                                                        (uint32_t)t->at_step, seen->stack,
                                                        round->weight_ns});
}

/* Of a trainer, inside the compiler in a step that counts. */
static void add_compiling(struct marey__facts *facts, const struct marey__trainer *t, uint32_t kind,
                          const struct marey_samples_round *round, uint32_t stack)
{
    const uint64_t step = (uint64_t)(t - facts->trainers) << 32 | t->at_step;
    if ((facts->stack_flags[stack] & MAREY__FACT_COMPILES) == 0 ||
        (MAREY__FACT_STEPS >> kind & 1) == 0)
        return;
    if (facts->compiling.n == 0 || step != facts->compiling.step) {
        facts->compiling.squares += (double)facts->compiling.ns * (double)facts->compiling.ns;
        facts->compiling.n++;
        facts->compiling.ns = 0;
        facts->compiling.step = step;
    }
    facts->compiling.ns += round->weight_ns;
}

static struct marey__fact_sum sum_of(const struct marey_samples_round *round,
                                     const struct marey_samples_seen *seen)
{
    const uint64_t ns = round->weight_ns;
    return (struct marey__fact_sum){.n = 1,
                                    .process = round->process,
                                    .ns = ns,
                                    .gil_ns = (seen->flags & MAREY_SAMPLE_GIL) != 0 ? ns : 0,
                                    .gc_ns = (seen->flags & MAREY_SAMPLE_GC) != 0 ? ns : 0,
                                    .wants_ns = (seen->flags & MAREY_SAMPLE_WANTS_GIL) != 0 ? ns : 0,
                                    .off_ns = (seen->flags & MAREY_SAMPLE_OFF_CPU) != 0 ? ns : 0};
}

static bool add_sample(struct marey__facts *facts, uint32_t kind,
                       const struct marey_samples_round *round, const struct marey_samples_seen *seen)
{
    const struct marey__fact_sum sum = sum_of(round, seen);
    return add_to_bucket(facts, kind, seen->stack, &sum);
}

/* Adds the thread that holds the interpreter lock while the main thread waits for it in a step. */
static bool add_holder(struct marey__facts *facts, uint32_t kind,
                       const struct marey_samples_round *round, const struct marey_samples_seen *main)
{
    if ((main->flags & MAREY_SAMPLE_WANTS_GIL) == 0 ||
        ((MAREY__FACT_STEPS & ~MAREY__FACT_KNOWN) >> kind & 1) == 0)
        return true;
    for (size_t i = 0; i < round->n_seen; i++) {
        const struct marey_samples_seen *const seen = &round->seen[i];
        const struct marey__fact_sum sum = {.n = 1, .ns = round->weight_ns};
        if ((seen->flags & MAREY_SAMPLE_GIL) != 0)
            return add_sample(facts, MAREY__FACT_HOLDER, round, seen) &&
                   add_to_bucket(facts, MAREY__FACT_HOLDER_THREAD, seen->thread, &sum);
    }
    return true;
}

static void add_worker(struct worker *worker, uint64_t ns, bool is_idle)
{
    worker->n++;
    worker->ns += ns;
    worker->idle_ns += is_idle ? ns : 0;
}

/*
 * Of the busiest process: workers of another loader may be idle for good reasons. Those with few samples, such as workers
 * that live for one epoch, count together.
 */
static void judge_workers(const struct sampling *s)
{
    enum { ENOUGH = 20 };
    struct marey__facts *const facts = s->facts;
    struct worker rest = {0};
    facts->workers_idle = -1;
    for (uint32_t i = 0; i <= marey_samples_n_processes(facts->set.samples) + 1; i++) {
        const bool is_last = i > marey_samples_n_processes(facts->set.samples);
        const struct worker *const worker = is_last ? &rest : &s->workers[i];
        facts->has_workers |= worker->n != 0;
        if (worker->n >= ENOUGH) {
            const double idle = (double)worker->idle_ns / (double)worker->ns;
            if (facts->workers_idle < 0 || idle < facts->workers_idle)
                facts->workers_idle = idle;
        } else if (!is_last) {
            rest.n += worker->n;
            rest.ns += worker->ns;
            rest.idle_ns += worker->idle_ns;
        }
    }
}

static marey_status take_round(void *ctx, const struct marey_samples_round *round)
{
    struct sampling *const s = ctx;
    struct marey__facts *const facts = s->facts;
    const uint32_t number = s->trainers[round->process];
    if (number == 0 && (round->at_ns < s->begin_ns || round->at_ns >= s->end_ns))
        return MAREY_OK;
    struct marey__trainer *const t = number != 0 ? &facts->trainers[number - 1] : NULL;
    const uint32_t kind = t != NULL ? kind_at(t, round->at_ns) : (uint32_t)MAREY__FACT_WORKER;
    if (kind == MAREY__FACT_KINDS)
        return MAREY_OK;
    const bool is_gap =
                   t != NULL && is_in(t->host_gaps, t->n_host_gaps, &t->at_host_gap, round->at_ns),
               is_wait = t != NULL && is_in(t->waits, t->n_waits, &t->at_wait, round->at_ns);
    const struct marey_samples_seen *const seen = marey__facts_find_training(facts, t, round);
    if (seen == NULL)
        return MAREY_OK;
    const bool is_idle = marey__samples_is_task_wait(s->chosen, seen->stack),
               is_worker = (facts->stack_flags[seen->stack] & MAREY__FACT_IN_WORKER) != 0;
    if (t == NULL && is_worker)
        add_worker(&s->workers[round->process], round->weight_ns, is_idle);
    if (is_idle || (t == NULL && !is_worker))
        return MAREY_OK;
    const bool is_import =
        t != NULL && t->n_steps == 0 &&
        marey__samples_is_startup(s->chosen, round->process, round->at_ns, seen->stack);
    const struct marey__fact_sum sum = sum_of(round, seen);
    if (t != NULL)
        add_compiling(facts, t, kind, round, seen->stack);
    MAREY__TRY_MEMORY(
        add_to_rank(facts, number, kind, seen->stack, &sum) &&
        add_sample(facts, is_import ? (uint32_t)MAREY__FACT_STARTUP : kind, round, seen) &&
        add_slow_sample(facts, t, kind, round, seen) && add_holder(facts, kind, round, seen) &&
        (!is_gap || add_sample(facts, MAREY__FACT_HOST_GAP, round, seen)) &&
        (!is_wait || add_sample(facts, MAREY__FACT_HOST_WAIT, round, seen)));
    return MAREY_OK;
}

/* The thread that ends steps, if it is not the main one. */
static void find_thread(const struct marey__facts *facts, struct marey__trainer *t)
{
    for (uint32_t i = 1; t->tid != 0 && i <= marey_samples_n_threads(facts->set.samples); i++) {
        const struct marey_samples_thread *const thread =
            marey_samples_get_thread(facts->set.samples, i);
        if (thread->process == t->target && thread->tid == t->tid && !thread->is_main)
            t->thread = i;
    }
}

/* Without steps, the trainer is the process that was sampled the longest. */
static bool take_longest(struct marey__facts *facts)
{
    uint32_t longest = 0;
    uint64_t longest_ns = 0;
    for (uint32_t i = 1; i <= marey_samples_n_processes(facts->set.samples); i++) {
        const struct marey__samples_target *const t = &facts->set.targets[i];
        if (!t->is_idle && !t->is_launcher && t->counted_ns > longest_ns) {
            longest_ns = t->counted_ns;
            longest = i;
        }
    }
    if (longest == 0)
        return true;
    const struct marey__samples_target *const t = &facts->set.targets[longest];
    return MAREY__PUSH(facts->trainers, facts->n_trainers, facts->trainers_cap,
                       (struct marey__trainer){.target = longest,
                                               .recording = t->recording,
                                               .start_ns = t->first_ns,
                                               .end_ns = t->last_ns});
}

static marey_status ignore_round(void *ctx, const struct marey_samples_round *round)
{
    (void)ctx;
    (void)round;
    return MAREY_OK;
}

/* Of the innermost frame. */
static uint32_t location_of(const struct marey__facts *facts,
                            const struct marey__sample_bucket *bucket)
{
    return marey_samples_get_stack(facts->set.samples, marey__sample_bucket_stack(bucket)).location;
}

/*
 * If few samples fall into gaps, use all samples of steps outside of data instead, except those at lines that wait for
 * the device: it is busy then.
 */
static bool fill_gaps(struct marey__facts *facts)
{
    enum { ENOUGH = 30 };
    const uint64_t kinds =
        (MAREY__FACT_TYPICAL_STEPS | MAREY__FACT_SLOW_STEPS) & ~MAREY__FACT_BOTH(MAREY__FACT_DATA);
    if (facts->device.n_steps == 0 ||
        marey__facts_sum(facts, MAREY__FACT_ONLY(MAREY__FACT_HOST_GAP)).n >= ENOUGH)
        return true;
    const marey_samples *const samples = facts->set.samples;
    bool *const waits MAREY__FREED =
        marey__calloc((size_t)marey_samples_n_locations(samples) + 1, sizeof *waits);
    for (size_t i = 0; waits != NULL && i < facts->n_buckets; i++)
        if (marey__sample_bucket_has_kind(&facts->buckets[i], MAREY__FACT_ONLY(MAREY__FACT_HOST_WAIT)))
            waits[location_of(facts, &facts->buckets[i])] = true;
    for (size_t i = 0, n = facts->n_buckets; waits != NULL && i < n; i++) {
        const struct marey__sample_bucket bucket = facts->buckets[i];
        if (marey__sample_bucket_has_kind(&bucket, kinds) && !waits[location_of(facts, &bucket)] &&
            !add_to_bucket(facts, MAREY__FACT_HOST_GAP, marey__sample_bucket_stack(&bucket),
                           &bucket.sum))
            return false;
    }
    return waits != NULL;
}

static marey_status visit_samples(struct sampling *s)
{
    struct marey__facts *const facts = s->facts;
    if (facts->n_trainers == 0) { /* a first visit finds the process sampled the longest */
        MAREY_TRY(marey__samples_visit(&facts->set, s->chosen, ignore_round, NULL));
        MAREY__TRY_MEMORY(take_longest(facts));
    }
    s->begin_ns = UINT64_MAX;
    for (size_t i = 0; i < facts->n_trainers; i++) {
        struct marey__trainer *const t = &facts->trainers[i];
        s->trainers[t->target] = (uint32_t)i + 1;
        if (t->n_steps == 0)
            continue;
        find_thread(facts, t);
        s->begin_ns = MAREY__MIN(s->begin_ns, t->steps[t->n_warmup].begin_ns);
        s->end_ns = MAREY__MAX(s->end_ns, t->steps[t->n_steps - 1].end_ns);
    }
    s->trainers[0] = 0;
    MAREY__TRY_MEMORY(marey__facts_flag_stacks(facts));
    MAREY_TRY(marey__samples_visit_waits(&facts->set, s->chosen, take_round, s));
    judge_workers(s);
    /* Samples show which package the program is, and its code is the user's. */
    MAREY__TRY_MEMORY(fill_gaps(facts) && marey__facts_flag_stacks(facts));
    return MAREY_OK;
}

static marey_status read_samples(struct marey__facts *facts)
{
    const marey_samples *const samples = facts->set.samples;
    const struct marey__samples_filter filter = {.startup = 1};
    struct marey__samples_chosen *chosen = NULL;
    struct sampling s = {.facts = facts};
    facts->n_stacks = marey_samples_n_stacks(samples);
    s.trainers = marey__calloc((size_t)marey_samples_n_processes(samples) + 1, sizeof *s.trainers);
    s.workers = marey__calloc((size_t)marey_samples_n_processes(samples) + 1, sizeof *s.workers);
    marey_status status = s.trainers != NULL && s.workers != NULL
                              ? marey__samples_choose(&facts->set, &filter, false, &chosen)
                              : marey__no_memory();
    s.chosen = chosen;
    if (status == MAREY_OK)
        status = visit_samples(&s);
    marey__samples_chosen_destroy(chosen);
    MAREY__FREE_ALL(s.trainers, s.workers);
    return status;
}

/* ---- all ---- */

marey_status marey__facts_read(struct marey__facts *facts, const struct marey__request *request)
{
    facts->has_samples = marey__samples_are_there(request->recordings, request->n);
    if (facts->has_samples)
        MAREY_TRY(marey__samples_open(&facts->set, request->recordings, request->n));
    MAREY_TRY(read_logs(facts, request));
    MAREY__TRY_MEMORY(marey__facts_summarize_steps(facts));
    MAREY_TRY(marey__facts_read_device(facts));
    MAREY__TRY_MEMORY(marey__facts_find_slow(facts));
    if (facts->has_samples) {
        MAREY_TRY(read_samples(facts));
        MAREY_TRY(marey__facts_read_system(facts));
    }
    MAREY_TRY(marey__facts_read_gpus(facts, request));
    marey__facts_measure_cost(facts);
    return MAREY_OK;
}

void marey__facts_fini(struct marey__facts *facts)
{
    for (size_t i = 0; i < facts->n_trainers; i++)
        fini_trainer(&facts->trainers[i]);
    for (size_t i = 0; i < facts->n_gpus; i++)
        marey__free(facts->gpus[i].clocks);
    MAREY__FREE_ALL(facts->trainers, facts->gpus, facts->joint, facts->device.steps, facts->buckets,
                    facts->rank_buckets, facts->slow_samples, facts->stack_flags);
    marey__key_map_fini(&facts->buckets_by_key);
    marey__key_map_fini(&facts->rank_buckets_by_key);
    if (facts->has_samples)
        marey__samples_fini(&facts->set);
}
