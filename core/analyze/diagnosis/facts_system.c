/*
 * Facts from the system, for steps after warm-up, or without steps for the whole run: counters of
 * the process tree, and waits of main threads for files, with their place in the user's code.
 */
#include <stdio.h>
#include <string.h>

#include "analyze/diagnosis/internal.h"
#include "read/internal.h"
#include <marey/sampler.h>

struct reading {
    struct marey__facts *facts;
    marey_recording *recording;
    const struct marey_process *info;
    uint64_t begin_ns, end_ns;
    uint64_t at_ns, before_ns; /* of the current and of the previous values; 0: none */
    double sums[MAREY__SYSTEM_COUNTERS],
        all_ns; /* values weighted by the time since the previous ones */
    uint32_t n_anonymous[MAREY__MEMORY_PARTS];
    double group_limit, machine_memory;
    uint32_t *trainers; /* by process of the set: its trainer, plus one */
    uint64_t *io_by_location, *io_by_function, *io_by_wait;
    uint64_t *all_by_location; /* of main threads, at the innermost line of the user's code */
    struct marey__samples_chosen *chosen;
};

/* ---- counters ---- */

static int counter_of(const struct reading *r, uint32_t number)
{
    const struct marey_site_info *const site =
        marey_recording_site(r->recording, r->info->index, number);
    if (strcmp(site->category, MAREY__SYSTEM_CATEGORY) != 0)
        return -1;
    for (int i = 0; i < MAREY__SYSTEM_COUNTERS; i++)
        if (strcmp(site->domain, marey__system_counter_names[i].key) == 0)
            return i;
    return -1;
}

static void add_anonymous(struct reading *r, uint64_t ns, double value)
{
    if (r->begin_ns == 0 || r->end_ns <= r->begin_ns) /* no steps */
        return;
    const double part = (double)(ns - r->begin_ns) / (double)(r->end_ns - r->begin_ns);
    const size_t i = (size_t)(part * MAREY__MEMORY_PARTS);
    if (i < MAREY__MEMORY_PARTS) {
        double *const mean = &r->facts->system.anonymous[i];
        *mean += (value - *mean) / ++r->n_anonymous[i];
    }
}

/* At any time: a program that ends in start-up for lack of memory has no steps. The limits come before what is used. */
static void add_memory(struct reading *r, int counter, uint64_t ns, double value)
{
    struct marey__fact_memory *const m = &r->facts->system.memory;
    const double limit = r->group_limit > 0 ? r->group_limit : r->machine_memory;
    if (counter == MAREY__SYSTEM_GROUP_LIMIT)
        r->group_limit = value;
    else if (counter == MAREY__SYSTEM_MACHINE_MEMORY)
        r->machine_memory = value;
    else if (counter == MAREY__SYSTEM_UNIQUE && limit > 0 &&
             (m->limit <= 0 || value / limit > m->peak / m->limit))
        *m = (struct marey__fact_memory){value, limit, r->group_limit > 0, ns};
}

static marey_status visit_batch(void *ctx, const struct marey_batch *batch)
{
    struct reading *const r = ctx;
    for (const uint64_t *word = batch->words, *end = word + batch->n; word < end;
         word += marey_word_kind(*word) == MAREY_KIND_RECORD ? marey_record_length(*word) : 1) {
        const uint64_t ns = marey_batch_ns(batch, *word);
        if (marey_word_kind(*word) != MAREY_KIND_RECORD ||
            marey_record_type_of(*word) != MAREY_RECORD_COUNTER)
            continue;
        double value;
        const int counter = counter_of(r, marey_record_site(word[1]));
        memcpy(&value, &word[2], sizeof value);
        add_memory(r, counter, ns, value);
        if (counter < 0 || ns < r->begin_ns || ns > r->end_ns)
            continue;
        if (counter == MAREY__SYSTEM_ANONYMOUS)
            add_anonymous(r, ns, value);
        if (ns != r->at_ns) { /* with many threads, readings are less frequent */
            r->before_ns = r->at_ns;
            r->at_ns = ns;
            r->facts->system.n_values++;
            r->all_ns += r->before_ns != 0 ? (double)(ns - r->before_ns) : 0;
        }
        r->sums[counter] += r->before_ns != 0 ? value * (double)(ns - r->before_ns) : 0;
    }
    return MAREY_OK;
}

/* Reads the counters that `marey run` recorded on the first trainer's machine. */
static marey_status read_counters(struct reading *r)
{
    struct marey__system_facts *const s = &r->facts->system;
    for (size_t i = 0; i < marey_recording_n_logs(r->recording) && s->n_values == 0; i++) {
        r->info = marey_recording_process(r->recording, i);
        if (strcmp(r->info->role, MAREY__ROLE_SAMPLER) == 0 && r->info->n_sites != 0)
            MAREY_TRY(marey__recording_visit_in_order(r->recording, i, visit_batch, r));
    }
    for (int i = 0; i < MAREY__SYSTEM_COUNTERS; i++)
        s->mean[i] = r->all_ns > 0 ? r->sums[i] / r->all_ns : 0;
    s->counted_ns = r->all_ns;
    return MAREY_OK;
}

/* ---- waits for files ---- */

static bool is_file_wait(uint32_t wait)
{
    static const char *const waits[] = {"read file",   "write file",          "sync to disk",
                                        "open a file", "file system",         "page fault",
                                        "disk",        "network file system", "copy between files"};
    char text[64];
    const char *const name = marey_sampler_wait_text(wait, text, sizeof text);
    for (size_t i = 0; i < MAREY__COUNT_OF(waits); i++)
        if (strncmp(name, waits[i], strlen(waits[i])) == 0)
            return true;
    return false;
}

/* Whether it is after warm-up. `is_slow`: in an outlier step; `is_elsewhere`: in a phase that has its own finding. */
static bool is_counted(const struct marey__trainer *t, uint64_t ns, bool *is_slow, bool *is_elsewhere)
{
    size_t at;
    *is_slow = *is_elsewhere = false;
    if (t->n_steps == 0)
        return true;
    if (ns < t->steps[t->n_warmup].begin_ns || ns >= t->steps[t->n_steps - 1].end_ns)
        return false;
    MAREY__BISECT(at, 0, t->n_steps, t->steps[at].end_ns <= ns);
    *is_slow = t->steps[at].is_slow;
    MAREY__BISECT(at, 0, t->n_phases, t->phases[at].end_ns <= ns);
    *is_elsewhere = at < t->n_phases && t->phases[at].begin_ns <= ns &&
                    (MAREY__FACT_KNOWN >> t->phases[at].phase & 1) != 0;
    return true;
}

/* The innermost location of the user's code, else the innermost one. */
static uint32_t place_of(const struct marey__facts *facts, uint32_t stack, bool is_native)
{
    const marey_samples *const samples = facts->set.samples;
    for (uint32_t at = stack; at != 0;) {
        const struct marey_samples_stack frame = marey_samples_get_stack(samples, at);
        const uint32_t function = marey_samples_get_location(samples, frame.location).function;
        const struct marey_samples_function *const f = marey_samples_get_function(samples, function);
        if (is_native ? marey__native_is_users(f) : marey__facts_is_users(facts, f))
            return frame.location;
        at = frame.parent;
    }
    return marey_samples_get_stack(samples, stack).location;
}

static marey_status take_round(void *ctx, const struct marey_samples_round *round)
{
    struct reading *const r = ctx;
    struct marey__system_facts *const s = &r->facts->system;
    const marey_samples *const samples = r->facts->set.samples;
    const uint32_t number = r->trainers[round->process];
    bool is_slow, is_elsewhere;
    if (number == 0 ||
        !is_counted(&r->facts->trainers[number - 1], round->at_ns, &is_slow, &is_elsewhere))
        return MAREY_OK;
    const struct marey_samples_seen *const seen =
        marey__facts_find_training(r->facts, &r->facts->trainers[number - 1], round);
    if (seen != NULL) {
        s->n_main++;
        s->main_ns += round->weight_ns;
        if (is_elsewhere ||
            (r->facts->trainers[number - 1].n_steps == 0 &&
             marey__samples_is_startup(r->chosen, round->process, round->at_ns, seen->stack)))
            return MAREY_OK;
        const uint32_t location = place_of(
            r->facts, seen->stack, marey_samples_get_process(samples, round->process)->python == 0);
        const bool is_waiting = (seen->flags & MAREY_SAMPLE_OFF_CPU) != 0 && is_file_wait(seen->wait);
        if (is_waiting) {
            const bool is_logged = (r->facts->stack_flags[seen->stack] & MAREY__FACT_LOGS) != 0;
            s->io_ns += round->weight_ns;
            *(is_slow ? &s->io_slow_ns : &s->io_logged_ns) +=
                is_slow || is_logged ? round->weight_ns : 0;
        }
        r->all_by_location[location] += round->weight_ns;
        if (!is_waiting || (seen->flags & MAREY_SAMPLE_UNSTABLE) != 0)
            return MAREY_OK;
        r->io_by_location[location] += round->weight_ns;
        r->io_by_function[marey_samples_get_location(samples, location).function] += round->weight_ns;
        r->io_by_wait[seen->wait & 0xff] += round->weight_ns;
        if (r->io_by_wait[seen->wait & 0xff] >= r->io_by_wait[s->io_wait & 0xff])
            s->io_wait = seen->wait;
    }
    return MAREY_OK;
}

static marey_status read_waits(struct reading *r)
{
    /*
     * A line with more than this share of stable wait samples, 1 in 20, counts as waiting in all.
     */
    enum { PART_OF_LINE = 20 };
    struct marey__facts *const facts = r->facts;
    const marey_samples *const samples = facts->set.samples;
    r->trainers = marey__calloc((size_t)marey_samples_n_processes(samples) + 1, sizeof *r->trainers);
    r->io_by_location =
        marey__calloc((size_t)marey_samples_n_locations(samples) + 1, sizeof *r->io_by_location);
    r->io_by_function =
        marey__calloc((size_t)marey_samples_n_functions(samples) + 1, sizeof *r->io_by_function);
    r->all_by_location =
        marey__calloc((size_t)marey_samples_n_locations(samples) + 1, sizeof *r->all_by_location);
    r->io_by_wait = marey__calloc(256, sizeof *r->io_by_wait);
    MAREY__TRY_MEMORY(r->trainers != NULL && r->io_by_location != NULL && r->all_by_location != NULL &&
                      r->io_by_function != NULL && r->io_by_wait != NULL);
    for (size_t i = 0; i < facts->n_trainers; i++)
        r->trainers[facts->trainers[i].target] = (uint32_t)i + 1;
    r->trainers[0] = 0;
    const struct marey__samples_filter filter = {.startup = 1};
    MAREY_TRY(marey__samples_choose(&facts->set, &filter, false, &r->chosen));
    MAREY_TRY(marey__samples_visit(&facts->set, NULL, take_round, r));
    marey__place_find_heaviest(samples, r->io_by_function, r->io_by_location,
                               &facts->system.io_place);
    uint32_t most = 0; /* always counts, even below that share: short waits are seldom stable */
    for (uint32_t i = 1; i <= marey_samples_n_locations(samples); i++)
        most = r->io_by_location[i] > r->io_by_location[most] ? i : most;
    for (uint32_t i = 1; i <= marey_samples_n_locations(samples); i++)
        if (i == most || r->io_by_location[i] * PART_OF_LINE > r->all_by_location[i])
            facts->system.io_lines_ns += r->all_by_location[i];
    uint64_t placed_ns = 0;
    for (uint32_t i = 1; i <= marey_samples_n_functions(samples); i++)
        placed_ns += r->io_by_function[i];
    if (placed_ns != 0)
        facts->system.io_place.share = (double)facts->system.io_place.ns / (double)placed_ns;
    return MAREY_OK;
}

marey_status marey__facts_read_system(struct marey__facts *facts)
{
    struct reading r = {.facts = facts, .end_ns = UINT64_MAX};
    if (facts->n_trainers == 0 || facts->trainers[0].recording == NULL)
        return MAREY_OK;
    const struct marey__trainer *const t = &facts->trainers[0];
    r.recording = t->recording;
    if (t->n_steps != 0) {
        r.begin_ns = t->steps[t->n_warmup].begin_ns;
        r.end_ns = t->steps[t->n_steps - 1].end_ns;
    }
    marey_status status = read_counters(&r);
    if (status == MAREY_OK)
        status = read_waits(&r);
    marey__samples_chosen_destroy(r.chosen);
    MAREY__FREE_ALL(r.trainers, r.io_by_location, r.io_by_function, r.io_by_wait, r.all_by_location);
    return status;
}
