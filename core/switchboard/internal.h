/*
 * switchboard: switches recording and instruments on and off.
 *
 *   switchboard.c   the enable word, start and stop, the environment, load, fork and exit
 *   options.c       "key=value" texts into the recording's settings and those of the registered instruments
 *   iteration.c     the process-wide counters of iterations, epochs and phases, and their subscribers
 *   copies.c, allow_attach.c   a second libmarey in the process; letting a sampler attach
 *
 * Input: options from C, Python, MAREY_OPTIONS or `marey run`; registrations of instruments at load. Output: an
 * open recording, calls to the instruments. Knows instruments only through struct marey__instrument.
 */
#ifndef MAREY_SWITCHBOARD_INTERNAL_H
#define MAREY_SWITCHBOARD_INTERNAL_H

#include "base/internal.h"
#include "record/internal.h"
#include <marey/iteration.h>

/* ---- options.c: "key=value" texts into settings ---- */

enum marey__option_kind {
    MAREY__OPTION_BOOL,
    MAREY__OPTION_NUMBER, /* an int from 0 on */
    MAREY__OPTION_COUNT,  /* a uint64_t from `least` to `most` */
    MAREY__OPTION_SIZE,   /* the same, in bytes: "64MiB"; from 1 on */
    MAREY__OPTION_CHOICE, /* an int: the position among the words of `values` */
    MAREY__OPTION_TEXT,   /* a char array; may be empty where `least` is 0 */
    MAREY__OPTION_PARSED, /* by `parse` */
};

/* One option: what people read of it, and the field of a settings struct that it sets. */
struct marey__option {
    const char *key, *values, *fallback, *meaning;
    enum marey__option_kind kind;
    size_t offset, size;  /* of the field: MAREY__OPTION_FIELD */
    uint64_t least, most; /* most 0: no limit */
    /* Not 0: set in the first field of the struct, a uint32_t, when the option is given. */
    uint32_t flag;
    bool (*parse)(void *settings, const char *text); /* false: not a value of this option */
};
#define MAREY__OPTION_FIELD(type, field)                                                           \
    .offset = offsetof(type, field), .size = sizeof(((type *)0)->field)

/* 0/1, false/true, no/yes, off/on. */
bool marey__option_bool(const char *text, bool *out);
/* One of the words of "a|b|c", by position. */
bool marey__option_choice(const char *text, const char *words, int *out);

void marey__settings_init(struct marey__settings *s);
/* Apply "key=value,key=value"; NULL and "" are fine. MAREY_EINVAL and a sentence on the first that is wrong. */
marey_status marey__settings_parse(struct marey__settings *s, const char *text);

/* ---- switchboard.c ---- */
/* Set the range wrapper's bits; those that are set are replaced if `anew`, else false comes back. */
bool marey__wrapper_switch_on(uint32_t bits, bool anew);
void marey__wrapper_switch_off(void);

/*
 * An instrument registers at load what the switchboard calls and the options it has; nothing left of an instrument
 * knows its name or its settings. `after_fork` runs in both processes; in the child the enable word is as it was,
 * except for the recording's bits. Instruments take their locks before the recording's. `started` and `stopping` are
 * called without a lock, and `started` only for recordings that marey_start() opens: a recording of the environment
 * opens with its first event.
 */
struct marey__instrument {
    const struct marey__option *options; /* fields of the instrument's own settings struct */
    size_t n_options;
    const void *defaults; /* that struct before any option; NULL: zeros */
    size_t settings_size; /* of that struct; 0: none */
    /* Measures only on request of the user who started the recording: the measurement's name, how to ask. NULL: no. */
    const char *measures, *ask_by;
    bool (*is_wanted)(const void *settings); /* with `measures` */

    void (*configure)(const struct marey__settings *s); /* options were given; may be NULL */
    void (*started)(const struct marey__settings *s);   /* a recording was opened; may be NULL */
    void (*stopping)(void);    /* it closes next, also at exit; may be NULL */
    void (*reset)(void);       /* may be NULL */
    void (*before_fork)(void); /* may be NULL */
    void (*after_fork)(bool in_child);
};
/* Its table of options, and the struct that they set. */
#define MAREY__INSTRUMENT_OPTIONS(table, settings)                                                 \
    .options = (table), .n_options = MAREY__COUNT_OF(table), .settings_size = sizeof(settings)
/* `instrument` is lent for good. From constructors of priority MAREY__INSTRUMENT_LOAD, before options are read. */
#define MAREY__INSTRUMENT_LOAD 110
void marey__instrument_register(const struct marey__instrument *instrument);
/* Register it at load, in this order among the others. */
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

/* Whether the process ends: libraries that others may want are being taken down. For `stopping`. */
bool marey__process_is_ending(void);

/* ---- copies.c ---- */
/* MAREY_EDUPLICATE if another libmarey was in this process before us. Looked up once, at load. */
marey_status marey__copies_check(void);

/* ==== iteration ==== */

/* iteration: the one count of iterations in a process, its driver, epochs and phases; and its subscribers. */

/* What a subscriber learns of an iteration that ended. */
struct marey__iteration_event {
    uint64_t number; /* from 0 */
    bool is_warmup;
    bool next_is_warmup; /* the one that begins now */
    bool has_begin;      /* it is known when it began; else `duration_ns` is 0 */
    uint64_t duration_ns;
    double samples; /* 0: not known */
};

/*
 * Somebody who works by iterations. `finished` is called at each iteration that counts, on the thread that ended it;
 * `warmup_set` when it changes whether the iteration that runs is warm-up; `epoch_edge` where an epoch begins or ends; `step`
 * when the n-th training step ends that hints show (steps.c). No lock is held. Each may be NULL.
 */
struct marey__iteration_subscriber {
    void (*finished)(const struct marey__iteration_event *iteration);
    void (*warmup_set)(bool in_warmup);
    void (*epoch_edge)(void);
    void (*step)(uint64_t n);
};

/* False when the small table is full; adds nobody twice. `subscriber` is lent for good. An iteration begins now if none has. */
bool marey__iteration_subscribe(const struct marey__iteration_subscriber *subscriber);
void marey__iteration_unsubscribe(const struct marey__iteration_subscriber *subscriber);

/* Who counts iterations; NULL before the first. */
marey_driver marey__iteration_driver(void);
/* A step that nobody counts has ended, the n-th: tell subscribers. */
void marey__iteration_tell_step(uint64_t n);

/* ---- steps.c: training steps of a program that counts none ---- */

enum marey__step_source { MAREY__STEPS_NONE, MAREY__STEPS_UPDATES, MAREY__STEPS_BATCHES };
enum { MAREY__STEP_PARTS = 16 };
/* How steps follow from hints: the text of the key "steps". */
struct marey__step_plan {
    enum marey__step_source source;
    uint32_t n; /* parts */
    struct {
        uint64_t from;   /* update, from 0 */
        uint32_t period; /* in updates */
    } parts[MAREY__STEP_PARTS];
};
/* A text that is no plan gives MAREY__STEPS_NONE. */
MAREY_PRIVATE_API void marey__step_plan_parse(struct marey__step_plan *plan, const char *text);
/* Whether this update, from 0, ends a step. */
MAREY_PRIVATE_API bool marey__step_plan_ends(const struct marey__step_plan *plan, uint64_t update);
/* `driver` has finished its first iteration. */
void marey__steps_counted_by(marey_driver driver);

/* How many iterations are finished, and how many from the first on are warm-up. */
struct marey__iteration_place {
    uint64_t n_finished, warmup_end;
};
struct marey__iteration_place marey__iteration_place(void);
/* The next `n` iterations are warm-up, besides those that are already. */
void marey__iteration_more_warmup(uint64_t n);

#endif
