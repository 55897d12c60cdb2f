/*
 * Plays rounds in order of time. A block has the rounds of each process separately, as changes; they are sorted within
 * the block, and each is then derived from the previous one. With several logs, the one with the earliest next round
 * continues.
 */
#include <string.h>

#include "analyze/samples/internal.h"

enum { MAX_SAMPLES = 1 << 23 }; /* of a block; the writer ends a block at half of it */

/* A round of the current block. */
struct turn {
    uint64_t at_ns, weight_ns; /* 0: unknown */
    uint32_t process;          /* of the store */
    uint32_t first_event, n_events;
    bool is_first; /* of its process in this block: starts without known threads */
};

/* The threads seen by the last round of a process. */
struct state {
    struct marey_samples_seen *seen;
    size_t n, cap;
    uint64_t last_ns; /* 0: none */
};

struct player {
    struct marey__samples_set *set;
    struct marey__samples_source *source;
    struct marey__payload_reader blocks;
    struct marey__samples_rounds rounds;
    struct turn *turns; /* of the block, in order of time */
    size_t n_turns, turns_cap, next;
    struct marey__samples_event *events; /* of the block, with the log's thread numbers */
    size_t n_events, events_cap;
    struct state *states; /* by process of the store */
    uint32_t *places;     /* by thread of the store: index in the state of its process, plus one */
    bool *is_there;       /* by thread of the log, while counting the samples of a block */
    bool was_damaged;     /* the previous block */
    int64_t to_unix_ns;
};

/* ---- a block ---- */

/*
 * The number of samples in the current rounds; above the limit of a block if the data is invalid. `is_there` needs
 * space for `n_threads` threads.
 */
static uint64_t count_samples(const struct marey__samples_rounds *rounds, bool *is_there,
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

static bool add_turns(struct player *p, uint32_t process)
{
    const struct marey__samples_rounds *const rounds = &p->rounds;
    if (!marey__grow(&p->turns, &p->turns_cap, p->n_turns + rounds->n, sizeof *p->turns) ||
        !marey__grow(&p->events, &p->events_cap, p->n_events + rounds->n_events, sizeof *p->events))
        return false;
    size_t event = 0;
    for (size_t i = 0; i < rounds->n; i++) {
        const size_t first = event;
        while (event < rounds->n_events && rounds->events[event].round == i)
            event++;
        p->turns[p->n_turns++] = (struct turn){.at_ns = rounds->at_ns[i],
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

MAREY__ORDER_RUNS(is_before, struct turn, MAREY__UP(at_ns))

/* Read the A entries of a block. Returns false if one is damaged, or on out of memory. */
static bool take_rounds(struct player *p, struct marey__payload_entry *entry, bool *failed)
{
    const struct marey__samples_source *const s = p->source;
    const uint32_t process = marey__samples_number(&s->processes, entry->numbers[0]);
    if (process == 0 || marey__samples_rounds(entry, &p->rounds, failed) != MAREY__ENTRY_TAKEN ||
        count_samples(&p->rounds, p->is_there, s->threads.n) > (uint64_t)MAX_SAMPLES * 2)
        return false;
    *failed = !add_turns(p, process);
    return !*failed;
}

static marey_status take_block(struct player *p, const void *payload, size_t len)
{
    struct marey__payload_entry entry;
    const void *at = payload, *const end = (const char *)payload + len;
    bool failed = false, is_damaged = false;
    enum marey__entry_step step;
    p->n_turns = p->n_events = p->next = 0;
    while ((step = marey__samples_next(&at, end, &entry)) == MAREY__ENTRY_TAKEN)
        if (entry.tag == 'A' && !take_rounds(p, &entry, &failed)) {
            is_damaged = true;
            break;
        }
    MAREY__TRY_MEMORY(!failed && marey__sort_runs(p->turns, p->n_turns, sizeof *p->turns, is_before));
    p->blocks.n_damaged += is_damaged || step == MAREY__ENTRY_DAMAGED;
    return MAREY_OK;
}

/* After a lost block, the time since the previous round is meaningless. */
static void forget_times(struct player *p)
{
    for (uint32_t i = 0; i <= marey_samples_n_processes(p->set->samples); i++)
        p->states[i].last_ns = 0;
}

/* Load the next turn; `*done` at the end. */
static marey_status player_ready(struct player *p, bool *done)
{
    const void *payload;
    size_t len;
    *done = false;
    while (p->next == p->n_turns) {
        const size_t n_damaged = p->blocks.n_damaged;
        MAREY_TRY(marey__payload_reader_next(&p->blocks, &payload, &len, done));
        if (*done)
            return MAREY_OK;
        if (p->blocks.has_gap || p->was_damaged)
            forget_times(p);
        p->n_turns = p->next = 0;
        if (len != 0)
            MAREY_TRY(take_block(p, payload, len));
        p->was_damaged = p->blocks.n_damaged != n_damaged;
    }
    return MAREY_OK;
}

/* The time of the next turn, by the wall clock. */
static uint64_t player_time(const struct player *p)
{
    return p->turns[p->next].at_ns + (uint64_t)p->to_unix_ns;
}

/* ---- a round ---- */

static void clear(struct player *p, struct state *state)
{
    for (size_t i = 0; i < state->n; i++)
        p->places[state->seen[i].thread] = 0;
    state->n = 0;
}

static void leave(struct player *p, struct state *state, uint32_t thread)
{
    const uint32_t place = p->places[thread];
    if (place == 0)
        return;
    p->places[thread] = 0;
    state->seen[place - 1] = state->seen[--state->n];
    if (place - 1 < state->n)
        p->places[state->seen[place - 1].thread] = place;
}

/* Skips threads that are undefined or belong to another process. */
static bool take_event(struct player *p, struct state *state, uint32_t process,
                       const struct marey__samples_event *event)
{
    const struct marey__samples_source *const s = p->source;
    const uint32_t thread = marey__samples_number(&s->threads, event->thread);
    if (thread == 0 || marey_samples_get_thread(p->set->samples, thread)->process != process)
        return true;
    if ((event->what & 8) != 0) {
        leave(p, state, thread);
        return true;
    }
    if (p->places[thread] == 0) {
        if (!MAREY__PUSH(state->seen, state->n, state->cap,
                         (struct marey_samples_seen){.thread = thread}))
            return false;
        p->places[thread] = (uint32_t)state->n;
    }
    struct marey_samples_seen *const seen = &state->seen[p->places[thread] - 1];
    if ((event->what & 1) != 0)
        seen->stack = marey__samples_number(&s->stacks, event->stack);
    if ((event->what & 2) != 0)
        seen->flags = event->flags;
    if ((event->what & 4) != 0)
        seen->wait = event->wait;
    return true;
}

static uint64_t weight_of(const struct player *p, const struct turn *turn, uint64_t last_ns)
{
    if (turn->weight_ns != 0)
        return turn->weight_ns;
    if (last_ns != 0)
        return turn->at_ns - MAREY__MIN(last_ns, turn->at_ns);
    return p->source->rate_hz > 0 ? (uint64_t)(1e9 / p->source->rate_hz) : 0;
}

/* The next round. `seen` belongs to the player and is valid until the next call. */
static marey_status player_turn(struct player *p, struct marey_samples_round *round)
{
    const struct turn *const turn = &p->turns[p->next++];
    struct state *const state = &p->states[turn->process];
    if (turn->is_first)
        clear(p, state);
    for (uint32_t i = 0; i < turn->n_events; i++)
        MAREY__TRY_MEMORY(take_event(p, state, turn->process, &p->events[turn->first_event + i]));
    *round = (struct marey_samples_round){.process = turn->process,
                                          .at_ns = turn->at_ns,
                                          .weight_ns = weight_of(p, turn, state->last_ns),
                                          .seen = state->seen,
                                          .n_seen = state->n};
    state->last_ns = turn->at_ns;
    return MAREY_OK;
}

/* ---- a log ---- */

static marey_status player_open(struct player *p, struct marey__samples_set *set,
                                struct marey__samples_source *source)
{
    *p = (struct player){.set = set, .source = source};
    p->states = marey__calloc((size_t)marey_samples_n_processes(set->samples) + 1, sizeof *p->states);
    p->places = marey__calloc((size_t)marey_samples_n_threads(set->samples) + 1, sizeof *p->places);
    p->to_unix_ns = marey_recording_process(source->recording, source->log)->mono_to_unix_ns;
    p->is_there = marey__calloc(source->threads.n + 1, sizeof *p->is_there);
    MAREY__TRY_MEMORY(p->states != NULL && p->places != NULL && p->is_there != NULL);
    return marey__recording_read_payload(source->recording, source->log, MAREY__PAYLOAD_SAMPLES,
                                         &p->blocks);
}

static void player_close(struct player *p)
{
    if (p->set == NULL)
        return;
    for (uint32_t i = 0; p->states != NULL && i <= marey_samples_n_processes(p->set->samples); i++)
        marey__free(p->states[i].seen);
    MAREY__FREE_ALL(p->states, p->places, p->is_there, p->turns, p->events);
    marey__samples_rounds_fini(&p->rounds);
    marey__payload_reader_close(&p->blocks);
}

/* ---- all logs ---- */

struct visit {
    struct marey__samples_set *set;
    const struct marey__samples_chosen *chosen;
    bool with_modes; /* samples that only the mode excludes are passed on */
    bool with_waits; /* so are workers that wait for a task */
    marey__samples_visitor *visitor;
    void *ctx;
    struct player *players;
    bool *is_done;
    struct marey_samples_seen *seen; /* those that count */
    size_t seen_cap;
};

static marey_status hand_on(void *ctx, struct marey_samples_round *round)
{
    struct visit *const v = ctx;
    size_t n = 0;
    if (v->chosen != NULL) {
        MAREY__TRY_MEMORY(marey__grow(&v->seen, &v->seen_cap, round->n_seen, sizeof *v->seen));
        for (size_t i = 0; i < round->n_seen; i++) {
            const struct marey_samples_seen *const seen = &round->seen[i];
            if (!marey__samples_matches(v->chosen, round->process, round->at_ns, seen->thread))
                continue;
            const uint64_t ns = marey__samples_is_of_mode(v->chosen, seen) ? round->weight_ns : 0;
            const bool is_startup =
                marey__samples_is_startup(v->chosen, round->process, round->at_ns, seen->stack);
            if (!is_startup)
                marey__samples_note_work(v->set, round, seen);
            if (is_startup && !marey__samples_shows_imports(v->chosen)) {
                v->set->startup_ns += ns;
            } else if (marey__samples_is_task_wait(v->chosen, seen->stack)) {
                v->set->task_wait_ns += ns;
                if (v->with_waits)
                    v->seen[n++] = *seen;
            } else {
                v->set->targets[round->process].counted_ns += ns;
                if (v->with_modes || marey__samples_is_of_mode(v->chosen, seen))
                    v->seen[n++] = *seen;
            }
        }
        round->seen = v->seen;
        round->n_seen = n;
    }
    return v->visitor(v->ctx, round);
}

/* The player with the earliest next round; NULL at the end. */
static struct player *earliest(const struct visit *v)
{
    struct player *first = NULL;
    for (size_t i = 0; i < v->set->n_sources; i++)
        if (!v->is_done[i] && (first == NULL || player_time(&v->players[i]) < player_time(first)))
            first = &v->players[i];
    return first;
}

static void note_times(const struct player *p, const struct marey_samples_round *round)
{
    struct marey__samples_source *const s = p->source;
    struct marey__samples_target *const t = &p->set->targets[round->process];
    if (s->n_rounds++ == 0)
        s->first_ns = round->at_ns;
    s->last_ns = MAREY__MAX(s->last_ns, round->at_ns);
    if (t->n_rounds++ == 0)
        t->first_ns = round->at_ns;
    t->last_ns = MAREY__MAX(t->last_ns, round->at_ns);
}

static marey_status play(struct visit *v)
{
    for (size_t i = 0; i < v->set->n_sources; i++)
        MAREY_TRY(player_ready(&v->players[i], &v->is_done[i]));
    for (struct player *p; (p = earliest(v)) != NULL;) {
        struct marey_samples_round round;
        MAREY_TRY(player_turn(p, &round));
        note_times(p, &round);
        MAREY_TRY(hand_on(v, &round));
        MAREY_TRY(player_ready(p, &v->is_done[p - v->players]));
    }
    return MAREY_OK;
}

static void start_counts(struct marey__samples_set *set, bool is_chosen)
{
    for (size_t i = 0; i < set->n_sources; i++)
        set->sources[i].n_rounds = set->sources[i].last_ns = 0;
    for (uint32_t i = 0; i <= marey_samples_n_processes(set->samples); i++)
        set->targets[i].n_rounds = set->targets[i].last_ns = 0;
    for (uint32_t i = 0; is_chosen && i <= marey_samples_n_processes(set->samples); i++) {
        struct marey__samples_target *const t = &set->targets[i];
        t->known_ns = t->cpu_ns = t->counted_ns = 0;
        t->is_idle = t->is_launcher = false;
    }
}

static marey_status visit_all(struct visit *v)
{
    struct marey__samples_set *const set = v->set;
    v->players = marey__calloc(set->n_sources + 1, sizeof *v->players);
    v->is_done = marey__calloc(set->n_sources + 1, sizeof *v->is_done);
    marey_status status = v->players != NULL && v->is_done != NULL ? MAREY_OK : marey__no_memory();
    start_counts(set, v->chosen != NULL);
    for (size_t i = 0; i < set->n_sources && status == MAREY_OK; i++)
        status = player_open(&v->players[i], set, &set->sources[i]);
    if (status == MAREY_OK)
        status = play(v);
    if (status == MAREY_OK)
        status = marey__samples_visit_imported(set, hand_on, v);
    if (status == MAREY_OK && v->chosen != NULL)
        marey__samples_find_idle(set, v->chosen);
    for (size_t i = 0; v->players != NULL && i < set->n_sources; i++)
        player_close(&v->players[i]);
    MAREY__FREE_ALL(v->players, v->is_done, v->seen);
    return status;
}

marey_status marey__samples_visit(struct marey__samples_set *set,
                                  const struct marey__samples_chosen *chosen,
                                  marey__samples_visitor *visitor, void *ctx)
{
    return visit_all(&(struct visit){.set = set, .chosen = chosen, .visitor = visitor, .ctx = ctx});
}

marey_status marey__samples_visit_modes(struct marey__samples_set *set,
                                        const struct marey__samples_chosen *chosen,
                                        marey__samples_visitor *visitor, void *ctx)
{
    return visit_all(&(struct visit){
        .set = set, .chosen = chosen, .with_modes = true, .visitor = visitor, .ctx = ctx});
}

marey_status marey__samples_visit_waits(struct marey__samples_set *set,
                                        const struct marey__samples_chosen *chosen,
                                        marey__samples_visitor *visitor, void *ctx)
{
    return visit_all(&(struct visit){.set = set,
                                     .chosen = chosen,
                                     .with_modes = true,
                                     .with_waits = true,
                                     .visitor = visitor,
                                     .ctx = ctx});
}
