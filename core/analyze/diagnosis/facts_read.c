/* Steps and phases from the logs; then samples, each put into the phase of the step that it falls into. */
#include <string.h>

#include "analyze/diagnosis/internal.h"
#include "read/internal.h"

const char *const marey__fact_phase_names[MAREY__FACT_PHASES] = {
    "data",       "forward",    "backward", "optimizer", "recompute",
    "evaluation", "checkpoint", "logging",  "other"};

/* ---- logs ---- */

struct reading {
    struct marey__trainer *trainer;
    struct marey__progress progress;
    uint32_t loader_site; /* of the mark that describes a DataLoader; 0: none yet */
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

static bool is_loader(struct reading *r, uint32_t site)
{
    if (r->loader_site == 0 && site != 0 &&
        strcmp(marey_recording_site(r->trainer->recording, r->trainer->info->index, site)->name,
               "DataLoader") == 0)
        r->loader_site = site;
    return site != 0 && site == r->loader_site;
}

/* The first DataLoader counts: programs construct that of training first. */
static bool take_mark(struct reading *r, const uint64_t *words)
{
    enum { TEXT = 4 };
    const uint32_t len = marey_record_text_len(words[1]);
    if (r->trainer->loader != NULL || marey_record_payload_type(words[1]) != TEXT ||
        !is_loader(r, marey_record_site(words[1])))
        return true;
    r->trainer->loader = marey__calloc(len + 1, 1);
    if (r->trainer->loader != NULL)
        memcpy(r->trainer->loader, &words[2], len);
    return r->trainer->loader != NULL;
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
        if (type == MAREY_RECORD_MARK && !take_mark(r, word))
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
    MAREY__FREE_ALL(trainer->steps, trainer->phases, trainer->host_gaps, trainer->waits,
                    trainer->loader);
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
    const marey_status status = read_log(&trainer);
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
static enum marey__fact_phase kind_at(struct marey__trainer *t, uint64_t ns)
{
    const struct marey__fact_step *const steps = t->steps;
    const bool is_before = t->n_steps != 0 && ns < steps[t->n_warmup].begin_ns;
    if (t->n_steps != 0 && ns >= steps[t->n_steps - 1].end_ns)
        return MAREY__FACT_KINDS;
    while (t->at_phase < t->n_phases && t->phases[t->at_phase].end_ns <= ns)
        t->at_phase++;
    if (t->at_phase < t->n_phases && t->phases[t->at_phase].begin_ns <= ns)
        return is_before ? MAREY__FACT_FIRST_STEPS : t->phases[t->at_phase].phase;
    return is_before ? MAREY__FACT_STARTUP : MAREY__FACT_OTHER;
}

/* Whether `ns` is in the list; times come in order. */
static bool is_in(const struct marey__interval *list, size_t n, size_t *at, uint64_t ns)
{
    while (*at < n && list[*at].end_ns <= ns)
        (*at)++;
    return *at < n && list[*at].begin_ns <= ns;
}

static void add_sample(struct marey__facts *facts, enum marey__fact_phase kind,
                       const struct marey_samples_round *round, const struct marey_samples_seen *seen)
{
    struct marey__fact_sum *const sums[] = {&facts->by_kind[kind],
                                            &facts->by_stack[kind][seen->stack]};
    for (size_t i = 0; i < MAREY__COUNT_OF(sums); i++) {
        sums[i]->n++;
        sums[i]->ns += round->weight_ns;
        sums[i]->gil_ns += (seen->flags & MAREY_SAMPLE_GIL) != 0 ? round->weight_ns : 0;
    }
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
    const enum marey__fact_phase kind = t != NULL ? kind_at(t, round->at_ns) : MAREY__FACT_WORKER;
    if (kind == MAREY__FACT_KINDS)
        return MAREY_OK;
    const bool is_gap =
                   t != NULL && is_in(t->host_gaps, t->n_host_gaps, &t->at_host_gap, round->at_ns),
               is_wait = t != NULL && is_in(t->waits, t->n_waits, &t->at_wait, round->at_ns);
    for (size_t i = 0; i < round->n_seen; i++) {
        if (!marey_samples_get_thread(samples, round->seen[i].thread)->is_main)
            continue;
        const bool is_import =
            t != NULL && t->n_steps == 0 &&
            marey__samples_is_startup(s->chosen, round->process, round->at_ns, round->seen[i].stack);
        add_sample(facts, is_import ? MAREY__FACT_STARTUP : kind, round, &round->seen[i]);
        if (is_gap)
            add_sample(facts, MAREY__FACT_HOST_GAP, round, &round->seen[i]);
        if (is_wait)
            add_sample(facts, MAREY__FACT_HOST_WAIT, round, &round->seen[i]);
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
static void fill_gaps(struct marey__facts *facts)
{
    enum { ENOUGH = 30 };
    if (facts->device.n_steps == 0 || facts->by_kind[MAREY__FACT_HOST_GAP].n >= ENOUGH)
        return;
    for (int kind = 0; kind < MAREY__FACT_PHASES; kind++) {
        if (kind == MAREY__FACT_DATA)
            continue;
        facts->by_kind[MAREY__FACT_HOST_GAP].n += facts->by_kind[kind].n;
        facts->by_kind[MAREY__FACT_HOST_GAP].ns += facts->by_kind[kind].ns;
        for (uint32_t i = 1; i <= facts->n_stacks; i++)
            facts->by_stack[MAREY__FACT_HOST_GAP][i].ns += facts->by_stack[kind][i].ns;
    }
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
    fill_gaps(facts);
    return MAREY_OK;
}

static marey_status read_samples(struct marey__facts *facts)
{
    const marey_samples *const samples = facts->set.samples;
    const struct marey_samples_filter filter = {.startup = 1};
    struct marey__samples_chosen *chosen = NULL;
    struct sampling s = {.facts = facts};
    bool has_room = true;
    facts->n_stacks = marey_samples_n_stacks(samples);
    for (int kind = 0; kind < MAREY__FACT_KINDS; kind++) {
        facts->by_stack[kind] =
            marey__calloc((size_t)facts->n_stacks + 1, sizeof *facts->by_stack[kind]);
        has_room &= facts->by_stack[kind] != NULL;
    }
    s.trainers = marey__calloc((size_t)marey_samples_n_processes(samples) + 1, sizeof *s.trainers);
    has_room &= s.trainers != NULL;
    marey_status status =
        has_room ? marey__samples_choose(&facts->set, &filter, false, &chosen) : marey__no_memory();
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
    MAREY__TRY_MEMORY(marey__facts_judge_steps(facts));
    MAREY_TRY(marey__facts_read_device(facts));
    marey__facts_measure_cost(facts);
    return facts->has_samples ? read_samples(facts) : MAREY_OK;
}

void marey__facts_fini(struct marey__facts *facts)
{
    for (size_t i = 0; i < facts->n_trainers; i++)
        fini_trainer(&facts->trainers[i]);
    MAREY__FREE_ALL(facts->trainers, facts->device.steps);
    for (int kind = 0; kind < MAREY__FACT_KINDS; kind++)
        marey__free(facts->by_stack[kind]);
    if (facts->has_samples)
        marey__samples_fini(&facts->set);
}
