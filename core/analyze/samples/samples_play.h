/* The rounds of one sampler's log, one after the other (samples_play.c). */
#ifndef MAREY_SAMPLES_PLAY_H
#define MAREY_SAMPLES_PLAY_H

#include "analyze/samples/samples.h"
#include "read/read_internal.h"

/* A round of the block at hand. */
struct marey__samples_turn {
    uint64_t at_ns, weight_ns; /* 0: not said */
    uint32_t process;          /* of the store */
    uint32_t first_event, n_events;
    bool is_first; /* of its process in this block: nothing is known of its threads */
};

/* The threads that the last round of a process saw. */
struct marey__samples_state {
    struct marey_samples_seen *seen;
    size_t n, cap;
    uint64_t last_ns; /* 0: there was none */
};

struct marey__samples_player {
    struct marey__samples_set *set;
    struct marey__samples_source *source;
    struct marey__samples_reader blocks;
    struct marey__samples_rounds rounds;
    struct marey__samples_turn *turns; /* of the block, in order of time */
    size_t n_turns, turns_cap, next;
    struct marey__samples_event *events; /* of the block; threads are numbers of the log */
    size_t n_events, events_cap;
    struct marey__samples_state *states; /* by process of the store */
    uint32_t *places; /* by thread of the store: its place in the state of its process, plus one */
    bool *is_there;   /* by thread of the log, while the samples of a block are counted */
    bool was_damaged; /* the block before this one */
    int64_t to_unix_ns;
};

MAREY_WARN_UNUSED marey_status marey__samples_player_open(struct marey__samples_player *player,
                                                          struct marey__samples_set *set,
                                                          struct marey__samples_source *source);
void marey__samples_player_close(struct marey__samples_player *player);
/* Make sure that there is a next turn; `*done` when all have been. */
MAREY_WARN_UNUSED marey_status marey__samples_player_ready(struct marey__samples_player *player,
                                                           bool *done);
/* When the next turn is, by the wall clock. */
uint64_t marey__samples_player_time(const struct marey__samples_player *player);
/* Make it: `seen` of the round is the player's, for reading, until the next one. */
MAREY_WARN_UNUSED marey_status marey__samples_player_turn(struct marey__samples_player *player,
                                                          struct marey_samples_round *round);

#endif
