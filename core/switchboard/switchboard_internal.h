/*
 * switchboard: on and off, from one place. Options come from a struct, from MAREY_OPTIONS or from `marey run`, and all end
 * up in one struct marey__settings through one table of keys.
 */
#ifndef MAREY_SWITCHBOARD_INTERNAL_H
#define MAREY_SWITCHBOARD_INTERNAL_H

#include "record/record_internal.h"

/* ---- options.c ---- */
void marey__settings_init(struct marey__settings *s);
/* Apply "key=value,key=value"; NULL and "" are fine. MAREY_EINVAL and a sentence on the first that is wrong. */
marey_status marey__settings_parse(struct marey__settings *s, const char *text);

/* ---- switchboard.c ---- */
/* Set the range wrapper's bits; those that are set are replaced if `anew`, else false comes back. */
bool marey__wrapper_switch_on(uint32_t bits, bool anew);
void marey__wrapper_switch_off(void);

/*
 * An instrument that stands right of the switchboard tells at load what the switchboard is to call: it cannot be called
 * by name. `after_fork` runs in both processes; the enable word is as it was in the child too, but for the recording's
 * bits. Locks of instruments are taken before those of the recording. `started` and `stopping` are called without a
 * lock, and `started` only for recordings that marey_start() opens: what the environment asks for opens with its first event.
 */
struct marey__instrument {
    void (*configure)(const struct marey__settings *s); /* options were given */
    void (*started)(const struct marey__settings *s);   /* a recording was opened; may be NULL */
    void (*stopping)(void); /* it closes next, also at exit; may be NULL */
    void (*reset)(void);
    void (*before_fork)(void);
    void (*after_fork)(bool in_child);
};
/* `instrument` is lent for good. From constructors of priority MAREY__INSTRUMENT_LOAD, before options are read. */
#define MAREY__INSTRUMENT_LOAD 110
void marey__instrument_register(const struct marey__instrument *instrument);

/* Whether the process ends: libraries that others may want are being taken down. For `stopping`. */
bool marey__process_is_ending(void);

/* ---- copies.c ---- */
/* The path of a libmarey that was in this process before us; NULL when there is none. Looked up once, at load. */
const char *marey__earlier_copy(void);

#endif
