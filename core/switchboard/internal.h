/*
 * switchboard: switches recording and instruments on and off.
 *
 *   switchboard.c   the enable word, start and stop, the environment, load, fork and exit
 *   options.c       "key=value" strings to the recording's settings and those of the registered instruments
 *   iteration.c     the process-wide counters of iterations, epochs and phases, and their subscribers
 *   steps.c         training steps of programs that do not count them, from hints of hooks
 *   copies.c, allow_attach.c   detecting a second libmarey; allowing a sampler to attach
 *
 * Input: options from C, Python, MAREY_OPTIONS or `marey run`; registrations of instruments at load. Output: an open
 * recording, calls to the instruments. Knows instruments only through struct marey__instrument, except nvtx/ and cuda/,
 * which stand below it.
 */
#ifndef MAREY_SWITCHBOARD_INTERNAL_H
#define MAREY_SWITCHBOARD_INTERNAL_H

#include "base/internal.h"
#include "record/internal.h"
#include <marey/iteration.h>

/* ---- options.c: "key=value" texts into settings ---- */

enum marey__option_kind {
    MAREY__OPTION_BOOL,
    MAREY__OPTION_NUMBER, /* a non-negative int */
    MAREY__OPTION_COUNT,  /* a uint64_t from `least` to `most` */
    MAREY__OPTION_SIZE,   /* the same, in bytes: "64MiB"; at least 1 */
    MAREY__OPTION_CHOICE, /* an int: the index among the words of `values` */
    MAREY__OPTION_TEXT,   /* a char array; may be empty where `least` is 0 */
    MAREY__OPTION_PARSED, /* by `parse` */
};

/* One option: its documentation, and the field of a settings struct that it sets. */
struct marey__option {
    const char *key, *values, *fallback, *meaning;
    enum marey__option_kind kind;
    size_t offset, size;  /* of the field: MAREY__OPTION_FIELD */
    uint64_t least, most; /* most 0: no limit */
    /* If not 0: set in the first field of the struct, a uint32_t, if the option is given. */
    uint32_t flag;
    bool (*parse)(void *settings, const char *text); /* false: invalid value */
};
#define MAREY__OPTION_FIELD(type, field)                                                           \
    .offset = offsetof(type, field), .size = sizeof(((type *)0)->field)

/* 0/1, false/true, no/yes, off/on. */
bool marey__option_bool(const char *text, bool *out);
/* The index of `text` among the words of "a|b|c". */
bool marey__option_choice(const char *text, const char *words, int *out);

void marey__settings_init(struct marey__settings *s);
/* Applies "key=value,key=value"; accepts NULL and "". MAREY_EINVAL with a message on the first error. */
marey_status marey__settings_parse(struct marey__settings *s, const char *text);

/* ---- switchboard.c ---- */
/* Sets the range wrapper's bits. If some are set, replaces them if `anew`, else returns false. */
bool marey__wrapper_switch_on(uint32_t bits, bool anew);
void marey__wrapper_switch_off(void);

/*
 * An instrument registers its callbacks and options at load; the switchboard contains no instrument's name or settings.
 * `after_fork` runs in both processes; in the child the enable word is as before, except for the recording's bits.
 * Instruments take their locks before the recording's. `started` and `stopping` are called without a lock, and
 * `started` only for recordings opened by marey_start(): a recording started by the environment opens with its first
 * event.
 */
struct marey__instrument {
    const struct marey__option *options; /* set fields of the instrument's settings struct */
    size_t n_options;
    const void *defaults; /* the struct before any option; NULL: zeros */
    size_t settings_size; /* of that struct; 0: none */
    /* Measures only if the user who started the recording requests it: the measurement's name, how to request it. */
    const char *measures, *ask_by;
    bool (*is_wanted)(const void *settings); /* with `measures` */

    void (*configure)(const struct marey__settings *s); /* options changed; may be NULL */
    void (*started)(const struct marey__settings *s);   /* a recording opened; may be NULL */
    void (*stopping)(void);    /* it is about to close, also at exit; may be NULL */
    void (*reset)(void);       /* may be NULL */
    void (*before_fork)(void); /* may be NULL */
    void (*after_fork)(bool in_child);
};
/* An instrument's table of options, and the struct they set. */
#define MAREY__INSTRUMENT_OPTIONS(table, settings)                                                 \
    .options = (table), .n_options = MAREY__COUNT_OF(table), .settings_size = sizeof(settings)
/* `instrument` is lent forever. Call from constructors of priority MAREY__INSTRUMENT_LOAD, before options are read. */
#define MAREY__INSTRUMENT_LOAD 110
void marey__instrument_register(const struct marey__instrument *instrument);
/* Registers at load, in this order among the instruments. */
#define MAREY__INSTRUMENT_AT_LOAD(order, instrument)                                               \
    __attribute__((constructor(MAREY__INSTRUMENT_LOAD + (order)))) static void load(void)          \
    {                                                                                              \
        marey__instrument_register(&(instrument));                                                 \
    }
/* The i-th registered instrument; NULL past the last. */
const struct marey__instrument *marey__instrument_at(size_t i);
/* The instrument's own settings inside `s`. */
const void *marey__settings_of(const struct marey__settings *s,
                               const struct marey__instrument *instrument);

/* Whether the process is exiting: other libraries are being unloaded. For `stopping`. */
bool marey__process_is_ending(void);

/* ---- copies.c ---- */
/* MAREY_EDUPLICATE if another libmarey was loaded before this one. Checked once, at load. */
marey_status marey__copies_check(void);

/* ==== iteration ==== */

/* iteration: the process-wide count of iterations, its driver, epochs and phases; and its subscribers. */

/* An iteration that ended, for subscribers. */
struct marey__iteration_event {
    uint64_t number; /* from 0 */
    bool is_warmup;
    bool next_is_warmup; /* the one that begins now is warm-up */
    bool has_begin;      /* its start is known; else `duration_ns` is 0 */
    uint64_t duration_ns;
    double samples; /* 0: unknown */
};

/*
 * Callbacks of instruments that work by iterations. `finished` is called at each counted iteration, on the thread that
 * ended it; `warmup_set` when the running iteration becomes or stops being warm-up; `epoch_edge` where an epoch begins
 * or ends; `step` when the n-th training step derived from hints ends (steps.c). No lock is held. Each may be NULL.
 */
struct marey__iteration_subscriber {
    void (*finished)(const struct marey__iteration_event *iteration);
    void (*warmup_set)(bool in_warmup);
    void (*epoch_edge)(void);
    void (*step)(uint64_t n);
};

/*
 * Returns false if the small table is full; adding twice has no effect. `subscriber` is lent forever. Begins an
 * iteration if none is running.
 */
bool marey__iteration_subscribe(const struct marey__iteration_subscriber *subscriber);
void marey__iteration_unsubscribe(const struct marey__iteration_subscriber *subscriber);

/* The current driver; NULL before the first iteration. */
marey_driver marey__iteration_driver(void);
/* Notifies subscribers that the n-th uncounted step has ended. */
void marey__iteration_tell_step(uint64_t n);

/* ---- steps.c: training steps of a program that does not count them ---- */

enum marey__step_source { MAREY__STEPS_NONE, MAREY__STEPS_UPDATES, MAREY__STEPS_BATCHES };
enum { MAREY__STEP_PARTS = 16 };
/* How steps follow from hints, parsed from the key "steps". */
struct marey__step_plan {
    enum marey__step_source source;
    uint32_t n; /* parts */
    struct {
        uint64_t from;   /* update, from 0 */
        uint32_t period; /* in updates */
    } parts[MAREY__STEP_PARTS];
};
/* Invalid text gives MAREY__STEPS_NONE. */
MAREY_PRIVATE_API void marey__step_plan_parse(struct marey__step_plan *plan, const char *text);
/* Whether this update, from 0, ends a step. */
MAREY_PRIVATE_API bool marey__step_plan_ends(const struct marey__step_plan *plan, uint64_t update);
/* `driver` has finished its first iteration. */
void marey__steps_counted_by(marey_driver driver);

/* The number of finished iterations, and of initial ones that are warm-up. */
struct marey__iteration_place {
    uint64_t n_finished, warmup_end;
};
struct marey__iteration_place marey__iteration_place(void);
/* Marks the next `n` iterations as warm-up, in addition to earlier ones. */
void marey__iteration_more_warmup(uint64_t n);

#endif
