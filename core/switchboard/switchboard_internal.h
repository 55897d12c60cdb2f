/*
 * switchboard: on and off, from one place. Options come from a struct, from KYMO_OPTIONS or from `kymo run`, and all end
 * up in one struct kymo__settings through one table of keys.
 */
#ifndef KYMO_SWITCHBOARD_INTERNAL_H
#define KYMO_SWITCHBOARD_INTERNAL_H

#include "record/record_internal.h"

/* ---- options.c ---- */
void kymo__settings_init(struct kymo__settings *s);
/* Apply "key=value,key=value"; NULL and "" are fine. KYMO_EINVAL and a sentence on the first that is wrong. */
kymo_status kymo__settings_parse(struct kymo__settings *s, const char *text);

/* ---- switchboard.c ---- */
/* Set the range wrapper's bits; those that are set are replaced if `anew`, else false comes back. */
bool kymo__wrapper_switch_on(uint32_t bits, bool anew);
void kymo__wrapper_switch_off(void);

/*
 * An instrument that stands right of the switchboard tells at load what the switchboard is to call: it cannot be called
 * by name. `after_fork` runs in both processes; the enable word is as it was in the child too, but for the recording's
 * bits. Locks of instruments are taken before those of the recording. `started` and `stopping` are called without a
 * lock, and `started` only for recordings that kymo_start() opens: what the environment asks for opens with its first event.
 */
struct kymo__instrument {
    void (*configure)(const struct kymo__settings *s); /* options were given */
    void (*started)(const struct kymo__settings *s);   /* a recording was opened; may be NULL */
    void (*stopping)(void); /* it closes next, also at exit; may be NULL */
    void (*reset)(void);
    void (*before_fork)(void);
    void (*after_fork)(bool in_child);
};
/* `instrument` is lent for good. From constructors of priority KYMO__INSTRUMENT_LOAD, before options are read. */
#define KYMO__INSTRUMENT_LOAD 110
void kymo__instrument_register(const struct kymo__instrument *instrument);

/* Whether the process ends: libraries that others may want are being taken down. For `stopping`. */
bool kymo__process_is_ending(void);

/* ---- copies.c ---- */
/* The path of a libkymo that was in this process before us; NULL when there is none. Looked up once, at load. */
const char *kymo__earlier_copy(void);

#endif
