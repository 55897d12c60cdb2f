/*
 * Rounds in order of time. A block has the rounds of each process by themselves, as changes; they are put in order within the
 * block, and each is then made of the one before. Of several logs the one whose next round is the earliest goes on.
 */
#include <string.h>

#include "analyze/samples_play.h"

enum { MAX_SAMPLES = 1 << 23 }; /* of a block; the writer ends one at half of it */

static kymo_status no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory for the samples");
}

/* ---- a block ---- */

/*
 * How many samples the rounds at hand are; more than a block may have when they are none of ours. `is_there` has room for
 * each of `n_threads` threads.
 */
static uint64_t count_samples(const struct kymo__samples_rounds *rounds, bool *is_there,
                              size_t n_threads)
{
    uint64_t n_present = 0, n_samples = 0;
    size_t event = 0;
    memset(is_there, 0, n_threads * sizeof *is_there);
    for (size_t i = 0; i < rounds->n; i++) {
        for (; event < rounds->n_events && rounds->events[event].round == i; event++) {
            const uint32_t thread = rounds->events[event].thread;
            if (thread == 0 || thread > n_threads)
                continue;
            const bool is_now = (rounds->events[event].what & 8) == 0;
            n_present += (uint64_t)is_now - (uint64_t)is_there[thread - 1];
            is_there[thread - 1] = is_now;
        }
        n_samples += n_present;
        if (n_samples > (uint64_t)MAX_SAMPLES * 64)
            break;
    }
    return n_samples;
}

static bool add_turns(struct kymo__samples_player *p, uint32_t process)
{
    const struct kymo__samples_rounds *const rounds = &p->rounds;
    if (!kymo__grow(&p->turns, &p->turns_cap, p->n_turns + rounds->n, sizeof *p->turns) ||
        !kymo__grow(&p->events, &p->events_cap, p->n_events + rounds->n_events, sizeof *p->events))
        return false;
    size_t event = 0;
    for (size_t i = 0; i < rounds->n; i++) {
        const size_t first = event;
        while (event < rounds->n_events && rounds->events[event].round == i)
            event++;
        p->turns[p->n_turns++] =
            (struct kymo__samples_turn){.at_ns = rounds->at_ns[i],
                                        .weight_ns = rounds->weights_ns[i],
                                        .process = process,
                                        .first_event = (uint32_t)(p->n_events + first),
                                        .n_events = (uint32_t)(event - first),
                                        .is_first = i == 0};
    }
    if (rounds->n_events != 0)
        memcpy(p->events + p->n_events, rounds->events, rounds->n_events * sizeof *p->events);
    p->n_events += rounds->n_events;
    return true;
}

static bool is_before(const void *a, const void *b)
{
    return ((const struct kymo__samples_turn *)a)->at_ns <
           ((const struct kymo__samples_turn *)b)->at_ns;
}

/* The A entries of a block. False when one is damaged, or without memory. */
static bool take_rounds(struct kymo__samples_player *p, struct kymo__samples_entry *entry,
                        bool *failed)
{
    const struct kymo__samples_source *const s = p->source;
    const uint64_t number = entry->numbers[0];
    const uint32_t process = number != 0 && number <= s->n_processes ? s->processes[number - 1] : 0;
    if (process == 0 || kymo__samples_rounds(entry, &p->rounds, failed) != KYMO__CALLS_ENTRY ||
        count_samples(&p->rounds, p->is_there, s->n_threads) > (uint64_t)MAX_SAMPLES * 2)
        return false;
    *failed = !add_turns(p, process);
    return !*failed;
}

static kymo_status take_block(struct kymo__samples_player *p, const void *payload, size_t len)
{
    struct kymo__samples_entry entry;
    const void *at = payload, *const end = (const char *)payload + len;
    bool failed = false, is_damaged = false;
    enum kymo__calls_step step;
    p->n_turns = p->n_events = p->next = 0;
    while ((step = kymo__samples_next(&at, end, &entry)) == KYMO__CALLS_ENTRY)
        if (entry.tag == 'A' && !take_rounds(p, &entry, &failed)) {
            is_damaged = true;
            break;
        }
    if (failed || !kymo__sort_runs(p->turns, p->n_turns, sizeof *p->turns, is_before))
        return no_memory();
    p->blocks.n_damaged += is_damaged || step == KYMO__CALLS_DAMAGED;
    return KYMO_OK;
}

/* Behind a block that is lost, the time since the round before says nothing. */
static void forget_times(struct kymo__samples_player *p)
{
    for (uint32_t i = 0; i <= kymo_samples_n_processes(p->set->samples); i++)
        p->states[i].last_ns = 0;
}

kymo_status kymo__samples_player_ready(struct kymo__samples_player *p, bool *done)
{
    const void *payload;
    size_t len;
    *done = false;
    while (p->next == p->n_turns) {
        const size_t n_damaged = p->blocks.n_damaged;
        KYMO_TRY(kymo__samples_reader_next(&p->blocks, &payload, &len, done));
        if (*done)
            return KYMO_OK;
        if (p->blocks.has_gap || p->was_damaged)
            forget_times(p);
        p->n_turns = p->next = 0;
        if (len != 0)
            KYMO_TRY(take_block(p, payload, len));
        p->was_damaged = p->blocks.n_damaged != n_damaged;
    }
    return KYMO_OK;
}

uint64_t kymo__samples_player_time(const struct kymo__samples_player *p)
{
    return p->turns[p->next].at_ns + (uint64_t)p->to_unix_ns;
}

/* ---- a round ---- */

static void clear(struct kymo__samples_player *p, struct kymo__samples_state *state)
{
    for (size_t i = 0; i < state->n; i++)
        p->places[state->seen[i].thread] = 0;
    state->n = 0;
}

static void leave(struct kymo__samples_player *p, struct kymo__samples_state *state, uint32_t thread)
{
    const uint32_t place = p->places[thread];
    if (place == 0)
        return;
    p->places[thread] = 0;
    state->seen[place - 1] = state->seen[--state->n];
    if (place - 1 < state->n)
        p->places[state->seen[place - 1].thread] = place;
}

/* Threads that were not defined, or are another process's, are stepped over. */
static bool take_event(struct kymo__samples_player *p, struct kymo__samples_state *state,
                       uint32_t process, const struct kymo__samples_event *event)
{
    const struct kymo__samples_source *const s = p->source;
    const uint32_t thread =
        event->thread != 0 && event->thread <= s->n_threads ? s->threads[event->thread - 1] : 0;
    if (thread == 0 || kymo_samples_get_thread(p->set->samples, thread)->process != process)
        return true;
    if ((event->what & 8) != 0) {
        leave(p, state, thread);
        return true;
    }
    if (p->places[thread] == 0) {
        if (!kymo__grow(&state->seen, &state->cap, state->n + 1, sizeof *state->seen))
            return false;
        state->seen[state->n++] = (struct kymo_samples_seen){.thread = thread};
        p->places[thread] = (uint32_t)state->n;
    }
    struct kymo_samples_seen *const seen = &state->seen[p->places[thread] - 1];
    if ((event->what & 1) != 0)
        seen->stack =
            event->stack != 0 && event->stack <= s->n_stacks ? s->stacks[event->stack - 1] : 0;
    if ((event->what & 2) != 0)
        seen->flags = event->flags;
    if ((event->what & 4) != 0)
        seen->wait = event->wait;
    return true;
}

static uint64_t weight_of(const struct kymo__samples_player *p,
                          const struct kymo__samples_turn *turn, uint64_t last_ns)
{
    if (turn->weight_ns != 0)
        return turn->weight_ns;
    if (last_ns != 0)
        return turn->at_ns - KYMO__MIN(last_ns, turn->at_ns);
    return p->source->rate_hz > 0 ? (uint64_t)(1e9 / p->source->rate_hz) : 0;
}

kymo_status kymo__samples_player_turn(struct kymo__samples_player *p, struct kymo_samples_round *round)
{
    const struct kymo__samples_turn *const turn = &p->turns[p->next++];
    struct kymo__samples_state *const state = &p->states[turn->process];
    if (turn->is_first)
        clear(p, state);
    for (uint32_t i = 0; i < turn->n_events; i++)
        if (!take_event(p, state, turn->process, &p->events[turn->first_event + i]))
            return no_memory();
    *round = (struct kymo_samples_round){.process = turn->process,
                                         .at_ns = turn->at_ns,
                                         .weight_ns = weight_of(p, turn, state->last_ns),
                                         .seen = state->seen,
                                         .n_seen = state->n};
    state->last_ns = turn->at_ns;
    return KYMO_OK;
}

/* ---- a log ---- */

kymo_status kymo__samples_player_open(struct kymo__samples_player *p, struct kymo__samples_set *set,
                                      struct kymo__samples_source *source)
{
    *p = (struct kymo__samples_player){.set = set, .source = source};
    p->states = kymo__calloc((size_t)kymo_samples_n_processes(set->samples) + 1, sizeof *p->states);
    p->places = kymo__calloc((size_t)kymo_samples_n_threads(set->samples) + 1, sizeof *p->places);
    p->to_unix_ns = kymo_recording_process(source->recording, source->log)->mono_to_unix_ns;
    p->is_there = kymo__calloc(source->n_threads + 1, sizeof *p->is_there);
    if (p->states == NULL || p->places == NULL || p->is_there == NULL)
        return no_memory();
    return kymo__recording_read_samples(source->recording, source->log, &p->blocks);
}

void kymo__samples_player_close(struct kymo__samples_player *p)
{
    if (p->set == NULL)
        return;
    for (uint32_t i = 0; p->states != NULL && i <= kymo_samples_n_processes(p->set->samples); i++)
        kymo__free(p->states[i].seen);
    kymo__free(p->states);
    kymo__free(p->places);
    kymo__free(p->is_there);
    kymo__free(p->turns);
    kymo__free(p->events);
    kymo__samples_rounds_fini(&p->rounds);
    kymo__samples_reader_close(&p->blocks);
}

/* ---- all of them ---- */

struct visit {
    struct kymo__samples_set *set;
    const struct kymo__samples_chosen *chosen;
    bool with_modes; /* samples that only the mode leaves out are handed on */
    kymo__samples_visitor *visitor;
    void *ctx;
    struct kymo__samples_player *players;
    bool *is_done;
    struct kymo_samples_seen *seen; /* that count */
    size_t seen_cap;
};

static kymo_status hand_on(void *ctx, struct kymo_samples_round *round)
{
    struct visit *const v = ctx;
    size_t n = 0;
    if (v->chosen != NULL) {
        if (!kymo__grow(&v->seen, &v->seen_cap, round->n_seen, sizeof *v->seen))
            return no_memory();
        for (size_t i = 0; i < round->n_seen; i++) {
            const struct kymo_samples_seen *const seen = &round->seen[i];
            if (!kymo__samples_is_there(v->chosen, round->process, round->at_ns, seen->thread))
                continue;
            const uint64_t ns = kymo__samples_is_of_mode(v->chosen, seen) ? round->weight_ns : 0;
            const bool is_startup =
                kymo__samples_is_startup(v->chosen, round->process, round->at_ns, seen->stack);
            if (!is_startup)
                kymo__samples_note_work(v->set, round, seen);
            if (is_startup && !kymo__samples_shows_imports(v->chosen)) {
                v->set->startup_ns += ns;
            } else if (kymo__samples_is_task_wait(v->chosen, seen->stack)) {
                v->set->task_wait_ns += ns;
            } else {
                v->set->targets[round->process].counted_ns += ns;
                if (v->with_modes || kymo__samples_is_of_mode(v->chosen, seen))
                    v->seen[n++] = *seen;
            }
        }
        round->seen = v->seen;
        round->n_seen = n;
    }
    return v->visitor(v->ctx, round);
}

/* The player whose next round is the earliest; NULL when none has any. */
static struct kymo__samples_player *earliest(const struct visit *v)
{
    struct kymo__samples_player *first = NULL;
    for (size_t i = 0; i < v->set->n_sources; i++)
        if (!v->is_done[i] && (first == NULL || kymo__samples_player_time(&v->players[i]) <
                                                    kymo__samples_player_time(first)))
            first = &v->players[i];
    return first;
}

static void note_times(const struct kymo__samples_player *p, const struct kymo_samples_round *round)
{
    struct kymo__samples_source *const s = p->source;
    struct kymo__samples_target *const t = &p->set->targets[round->process];
    if (s->n_rounds++ == 0)
        s->first_ns = round->at_ns;
    s->last_ns = KYMO__MAX(s->last_ns, round->at_ns);
    if (t->n_rounds++ == 0)
        t->first_ns = round->at_ns;
    t->last_ns = KYMO__MAX(t->last_ns, round->at_ns);
}

static kymo_status play(struct visit *v)
{
    for (size_t i = 0; i < v->set->n_sources; i++)
        KYMO_TRY(kymo__samples_player_ready(&v->players[i], &v->is_done[i]));
    for (struct kymo__samples_player *p; (p = earliest(v)) != NULL;) {
        struct kymo_samples_round round;
        KYMO_TRY(kymo__samples_player_turn(p, &round));
        note_times(p, &round);
        KYMO_TRY(hand_on(v, &round));
        KYMO_TRY(kymo__samples_player_ready(p, &v->is_done[p - v->players]));
    }
    return KYMO_OK;
}

static void start_counts(struct kymo__samples_set *set, bool is_chosen)
{
    for (size_t i = 0; i < set->n_sources; i++)
        set->sources[i].n_rounds = set->sources[i].last_ns = 0;
    for (uint32_t i = 0; i <= kymo_samples_n_processes(set->samples); i++)
        set->targets[i].n_rounds = set->targets[i].last_ns = 0;
    for (uint32_t i = 0; is_chosen && i <= kymo_samples_n_processes(set->samples); i++) {
        struct kymo__samples_target *const t = &set->targets[i];
        t->known_ns = t->cpu_ns = t->counted_ns = 0;
        t->is_idle = t->is_launcher = false;
    }
}

static kymo_status visit_all(struct visit *v)
{
    struct kymo__samples_set *const set = v->set;
    v->players = kymo__calloc(set->n_sources + 1, sizeof *v->players);
    v->is_done = kymo__calloc(set->n_sources + 1, sizeof *v->is_done);
    kymo_status status = v->players != NULL && v->is_done != NULL ? KYMO_OK : no_memory();
    start_counts(set, v->chosen != NULL);
    for (size_t i = 0; i < set->n_sources && status == KYMO_OK; i++)
        status = kymo__samples_player_open(&v->players[i], set, &set->sources[i]);
    if (status == KYMO_OK)
        status = play(v);
    if (status == KYMO_OK)
        status = kymo__samples_tell(set, hand_on, v);
    if (status == KYMO_OK && v->chosen != NULL)
        kymo__samples_find_idle(set, v->chosen);
    for (size_t i = 0; v->players != NULL && i < set->n_sources; i++)
        kymo__samples_player_close(&v->players[i]);
    kymo__free(v->players);
    kymo__free(v->is_done);
    kymo__free(v->seen);
    return status;
}

kymo_status kymo__samples_visit(struct kymo__samples_set *set,
                                const struct kymo__samples_chosen *chosen,
                                kymo__samples_visitor *visitor, void *ctx)
{
    return visit_all(&(struct visit){.set = set, .chosen = chosen, .visitor = visitor, .ctx = ctx});
}

kymo_status kymo__samples_visit_modes(struct kymo__samples_set *set,
                                      const struct kymo__samples_chosen *chosen,
                                      kymo__samples_visitor *visitor, void *ctx)
{
    return visit_all(&(struct visit){
        .set = set, .chosen = chosen, .with_modes = true, .visitor = visitor, .ctx = ctx});
}
