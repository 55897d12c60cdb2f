/* Steps and phases from the logs; then samples, each put into the phase of the step that it falls into. */
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
};

/* Whether the process has streams of a GPU. */
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
    return MAREY__PUSH(
        t->phases, t->n_phases, t->phases_cap,
        (struct marey__fact_phase_span){span->begin_ns, span->end_ns, phase_of(r, span->site)});
}

/* Keep a mark's text, unless there is one already. */
static bool take_text(char **into, const char *text, size_t len)
{
    if (*into != NULL)
        return true;
    *into = marey__calloc(len + 1, 1);
    if (*into != NULL)
        memcpy(*into, text, len);
    return *into != NULL;
}

/* Garbage collections are recorded when they end. */
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

static bool take_allocator(struct marey__trainer *t, const char *text, size_t len, uint64_t ns)
{
    char json[1024] = "";
    memcpy(json, text, MAREY__MIN(len, sizeof json - 1));
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
    /* The first DataLoader counts: programs construct that of training first. */
    return strcmp(name, "DataLoader") == 0       ? take_text(&t->loader, text, len)
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
            marey__progress_take(&r->progress, word, marey_batch_ns(batch, *word), &span) &&
            !take_span(r, &span))
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
    return MAREY_OK;
}

static void fini_trainer(struct marey__trainer *trainer)
{
    MAREY__FREE_ALL(trainer->steps, trainer->phases, trainer->pauses, trainer->allocators,
                    trainer->host_gaps, trainer->waits, trainer->loader, trainer->compiled);
}

static uint32_t target_of(const struct marey__facts *facts, const marey_recording *recording,
                          uint32_t log)
{
    for (uint32_t i = 1; facts->has_samples && i <= marey_samples_n_processes(facts->set.samples); i++)
        if (facts->set.targets[i].recording == recording && facts->set.targets[i].log == log)
            return i;
    return 0;
}

/* Processes without steps are no trainers. */
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
    facts->has_device |= has_streams(&trainer);
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
};

/* MAREY__FACT_KINDS after the last step. */
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

/* Whether `ns` is in the list; times come in order. */
static bool is_in(const struct marey__interval *list, size_t n, size_t *at, uint64_t ns)
{
    while (*at < n && list[*at].end_ns <= ns)
        (*at)++;
    return *at < n && list[*at].begin_ns <= ns;
}

static void add_sums(struct marey__fact_sum *sum, const struct marey__fact_sum *more)
{
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
    const uint32_t number =
        MAREY__MAP_NUMBER(&facts->buckets_by_key, facts->buckets, facts->n_buckets, facts->buckets_cap, key);
    if (number != 0)
        add_sums(&facts->buckets[number - 1].sum, more);
    return number != 0;
}

/* Of a step that counts, where there are several trainers. */
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

/* Of a trainer, in a step that counts. Where another thread holds the interpreter lock, the main thread may wait for it. */
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
    return MAREY__PUSH(
        facts->slow_samples, facts->n_slow_samples, facts->slow_samples_cap,
        (struct marey__fact_slow_sample){(uint32_t)t->at_step, seen->stack, round->weight_ns});
}

static struct marey__fact_sum sum_of(const struct marey_samples_round *round,
                                     const struct marey_samples_seen *seen)
{
    const uint64_t ns = round->weight_ns;
    return (struct marey__fact_sum){.n = 1,
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

/* Who holds the interpreter lock while the main thread waits for it in a step. */
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

static marey_status take_round(void *ctx, const struct marey_samples_round *round)
{
    struct sampling *const s = ctx;
    struct marey__facts *const facts = s->facts;
    const marey_samples *const samples = facts->set.samples;
    const uint32_t number = s->trainers[round->process];
    const bool is_worker = marey_samples_get_process(samples, round->process)->worker >= 0 &&
                           round->at_ns >= s->begin_ns && round->at_ns < s->end_ns;
    if (number == 0 && !is_worker)
        return MAREY_OK;
    struct marey__trainer *const t = number != 0 ? &facts->trainers[number - 1] : NULL;
    const uint32_t kind = t != NULL ? kind_at(t, round->at_ns) : (uint32_t)MAREY__FACT_WORKER;
    if (kind == MAREY__FACT_KINDS)
        return MAREY_OK;
    const bool is_gap =
                   t != NULL && is_in(t->host_gaps, t->n_host_gaps, &t->at_host_gap, round->at_ns),
               is_wait = t != NULL && is_in(t->waits, t->n_waits, &t->at_wait, round->at_ns);
    for (size_t i = 0; i < round->n_seen; i++) {
        const struct marey_samples_seen *const seen = &round->seen[i];
        if (!marey_samples_get_thread(samples, seen->thread)->is_main)
            continue;
        const bool is_import =
            t != NULL && t->n_steps == 0 &&
            marey__samples_is_startup(s->chosen, round->process, round->at_ns, seen->stack);
        const struct marey__fact_sum sum = sum_of(round, seen);
        MAREY__TRY_MEMORY(
            add_to_rank(facts, number, kind, seen->stack, &sum) &&
            add_sample(facts, is_import ? (uint32_t)MAREY__FACT_STARTUP : kind, round, seen) &&
            add_slow_sample(facts, t, kind, round, seen) && add_holder(facts, kind, round, seen) &&
            (!is_gap || add_sample(facts, MAREY__FACT_HOST_GAP, round, seen)) &&
            (!is_wait || add_sample(facts, MAREY__FACT_HOST_WAIT, round, seen)));
    }
    return MAREY_OK;
}

/* Without steps, the program is what was sampled the longest. */
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

/* Where few samples fall into gaps, those of all steps stand for them: idle time outside of data. */
static bool fill_gaps(struct marey__facts *facts)
{
    enum { ENOUGH = 30 };
    const uint64_t kinds =
        (MAREY__FACT_TYPICAL_STEPS | MAREY__FACT_SLOW_STEPS) & ~MAREY__FACT_BOTH(MAREY__FACT_DATA);
    if (facts->device.n_steps == 0 ||
        marey__facts_sum(facts, MAREY__FACT_ONLY(MAREY__FACT_HOST_GAP)).n >= ENOUGH)
        return true;
    for (size_t i = 0, n = facts->n_buckets; i < n; i++) {
        const struct marey__sample_bucket bucket = facts->buckets[i];
        if (marey__sample_bucket_has_kind(&bucket, kinds) &&
            !add_to_bucket(facts, MAREY__FACT_HOST_GAP, marey__sample_bucket_stack(&bucket), &bucket.sum))
            return false;
    }
    return true;
}

static marey_status visit_samples(struct sampling *s)
{
    struct marey__facts *const facts = s->facts;
    if (facts->n_trainers == 0) { /* which one it is, is known after a first visit */
        MAREY_TRY(marey__samples_visit(&facts->set, s->chosen, ignore_round, NULL));
        MAREY__TRY_MEMORY(take_longest(facts));
    }
    s->begin_ns = UINT64_MAX;
    for (size_t i = 0; i < facts->n_trainers; i++) {
        const struct marey__trainer *const t = &facts->trainers[i];
        s->trainers[t->target] = (uint32_t)i + 1;
        if (t->n_steps == 0)
            continue;
        s->begin_ns = MAREY__MIN(s->begin_ns, t->steps[t->n_warmup].begin_ns);
        s->end_ns = MAREY__MAX(s->end_ns, t->steps[t->n_steps - 1].end_ns);
    }
    s->trainers[0] = 0;
    MAREY_TRY(marey__samples_visit(&facts->set, s->chosen, take_round, s));
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
    marey_status status = s.trainers != NULL
                              ? marey__samples_choose(&facts->set, &filter, false, &chosen)
                              : marey__no_memory();
    s.chosen = chosen;
    if (status == MAREY_OK)
        status = visit_samples(&s);
    marey__samples_chosen_destroy(chosen);
    marey__free(s.trainers);
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
    MAREY__FREE_ALL(facts->trainers, facts->gpus, facts->device.steps, facts->buckets,
                    facts->rank_buckets, facts->slow_samples, facts->stack_flags);
    marey__key_map_fini(&facts->buckets_by_key);
    marey__key_map_fini(&facts->rank_buckets_by_key);
    if (facts->has_samples)
        marey__samples_fini(&facts->set);
}
