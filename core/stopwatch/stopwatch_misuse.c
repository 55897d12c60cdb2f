/* Used wrongly: nothing happens but that it is counted, said once for each name, and returned as a status. */
#include "stopwatch/stopwatch_internal.h"

static const struct {
    const char *text;     /* in the table */
    const char *sentence; /* with the name in it */
} misuses[KYMO__WATCH_N_MISUSES] = {
    [KYMO__WATCH_STARTED_TWICE] =
        {"started while it ran",
         "stopwatch: '%s' is already running; the second start is ignored: stop it first"},
    [KYMO__WATCH_NOT_STARTED] =
        {"stopped without a start",
         "stopwatch: '%s' is not running; the stop is ignored: start it first"},
    [KYMO__WATCH_RUNS_ON] =
        {"still ran at the end of an iteration",
         "stopwatch: '%s' still runs at the end of an iteration; its time will count for the "
         "iteration in which it stops"},
    [KYMO__WATCH_THREAD_ENDED] = {"still ran when its thread ended",
                                  "stopwatch: '%s' still ran when its thread ended"},
    [KYMO__WATCH_ONCE_TWICE] = {"started twice as a one-time measurement",
                                "stopwatch: the one-time measurement '%s' was started before; the "
                                "second start is ignored: give it a name of its own"},
    [KYMO__WATCH_ONCE_NOT_STARTED] = {"stopped without a start as a one-time measurement",
                                      "stopwatch: the one-time measurement '%s' is not running; "
                                      "the stop is ignored: start it first"},
};

const char *kymo__watch_misuse_text(enum kymo__watch_misuse what)
{
    return misuses[what].text;
}

kymo_status kymo__watch_misused(kymo_id id, enum kymo__watch_misuse what)
{
    struct kymo__watch_slot *const slot = kymo__watch_slot_get(id);
    if (slot != NULL) {
        kymo__watch_lock();
        slot->misuses[what]++;
        kymo__watch_unlock();
    }
    /* A table of literals, each with one %s. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    const kymo_status st = kymo__fail(KYMO_ESTATE, misuses[what].sentence, kymo_site_name(id, NULL));
#pragma GCC diagnostic pop
    kymo__say("%s", kymo_last_error());
    return st;
}

kymo_status kymo__watch_no_memory(kymo_id id)
{
    kymo__watch_lock();
    kymo__watch.n_lost++;
    kymo__watch_unlock();
    const kymo_status st =
        kymo__fail(KYMO_ENOMEM, "stopwatch: no memory to measure '%s'", kymo_site_name(id, NULL));
    kymo__say("%s", kymo_last_error());
    return st;
}
