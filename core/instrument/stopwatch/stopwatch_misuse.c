/* Misuse has no effect, except that it is counted, reported once per name, and returned as a status. */
#include "instrument/stopwatch/internal.h"

static const struct {
    const char *text;     /* for the table */
    const char *sentence; /* contains the name */
} misuses[MAREY__STOPWATCH_N_MISUSES] = {
    [MAREY__STOPWATCH_STARTED_TWICE] =
        {"started while it ran",
         "stopwatch: '%s' is already running; the second start is ignored: stop it first"},
    [MAREY__STOPWATCH_NOT_STARTED] =
        {"stopped without a start",
         "stopwatch: '%s' is not running; the stop is ignored: start it first"},
    [MAREY__STOPWATCH_RUNS_ON] =
        {"still ran at the end of an iteration",
         "stopwatch: '%s' still runs at the end of an iteration; its time will count for the "
         "iteration in which it stops"},
    [MAREY__STOPWATCH_THREAD_ENDED] = {"still ran when its thread ended",
                                       "stopwatch: '%s' still ran when its thread ended"},
    [MAREY__STOPWATCH_ONCE_TWICE] =
        {"started twice as a one-time measurement",
         "stopwatch: the one-time measurement '%s' was started before; the "
         "second start is ignored: give it a different name"},
    [MAREY__STOPWATCH_ONCE_NOT_STARTED] =
        {"stopped without a start as a one-time measurement",
         "stopwatch: the one-time measurement '%s' is not running; "
         "the stop is ignored: start it first"},
};

const char *marey__stopwatch_misuse_text(enum marey__stopwatch_misuse what)
{
    return misuses[what].text;
}

marey_status marey__stopwatch_misused(marey_id id, enum marey__stopwatch_misuse what)
{
    struct marey__stopwatch_slot *const slot = marey__stopwatch_slot_get(id);
    if (slot != NULL) {
        MAREY__STOPWATCH_HOLD();
        slot->misuses[what]++;
    }
    /* Literals with one %s each. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    const marey_status st =
        marey__fail(MAREY_ESTATE, misuses[what].sentence, marey_site_name(id, NULL));
#pragma GCC diagnostic pop
    marey__say("%s", marey_last_error());
    return st;
}

marey_status marey__stopwatch_no_memory(marey_id id)
{
    marey__stopwatch_lock();
    marey__stopwatch_state.n_lost++;
    marey__stopwatch_unlock();
    const marey_status st =
        marey__fail(MAREY_ENOMEM, "stopwatch: out of memory for '%s'", marey_site_name(id, NULL));
    marey__say("%s", marey_last_error());
    return st;
}
