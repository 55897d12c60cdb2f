/* Energy as an instrument: it starts with a recording, ends before it closes, and keeps out of forks. */
#include <unistd.h>

#include "instrument/energy/internal.h"
#include "switchboard/internal.h"

static struct {
    pthread_mutex_t lock; /* guards the rest */
    struct marey__energy_session *session;
    struct marey__energy_session *parents; /* what a forked child inherited and cannot end */
    bool is_paused;                        /* for the fork that is under way */
    int64_t owner; /* the process that has the thread; a raw clone() has not */
} energy = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct marey__iteration_subscriber subscriber = {.epoch_edge = marey__energy_edge};

static void stop(void)
{
    if (__atomic_load_n(&energy.owner, __ATOMIC_RELAXED) != getpid())
        return;
    pthread_mutex_lock(&energy.lock);
    struct marey__energy_session *const session = energy.session;
    energy.session = NULL;
    if (session != NULL) {
        marey__iteration_unsubscribe(&subscriber);
        marey__energy_session_stop(session);
    }
    pthread_mutex_unlock(&energy.lock);
}

static void start(const struct marey__settings *s)
{
    stop();
    struct marey__launch launch;
    marey__identity_launch(&launch);
    pthread_mutex_lock(&energy.lock);
    energy.session = marey__energy_session_start(s, launch.local_rank);
    __atomic_store_n(&energy.owner, getpid(), __ATOMIC_RELAXED);
    if (energy.session != NULL)
        marey__iteration_subscribe(&subscriber);
    pthread_mutex_unlock(&energy.lock);
}

/*
 * A library that was loaded after us ends before us: NVML must not be asked when it has ended. What is registered once it is
 * there runs before that.
 */
void marey__energy_stop_at_exit(void)
{
    static bool is_registered;
    if (!__atomic_exchange_n(&is_registered, true, __ATOMIC_RELAXED))
        atexit(stop);
}

/* ---- what the switchboard calls ---- */

static const struct marey__option options[] = {
    {"energy", "0|1", "0", "records energy, power and utilization", MAREY__OPTION_BOOL,
     MAREY__OPTION_FIELD(struct marey__energy_settings, is_wanted)},
    {"energy.hz", "N", "50, 20 without samples", "power readings per second, 1 to 100",
     MAREY__OPTION_COUNT, MAREY__OPTION_FIELD(struct marey__energy_settings, hz), .least = 1,
     .most = 100},
};

static bool is_wanted(const void *settings)
{
    return ((const struct marey__energy_settings *)settings)->is_wanted;
}

static void started(const struct marey__settings *s)
{
    if (is_wanted(marey__settings_of(s, &marey__energy_instrument)))
        start(s);
}

static void before_fork(void)
{
    pthread_mutex_lock(&energy.lock);
    energy.is_paused = energy.session != NULL && marey__energy_session_pause(energy.session);
}

static void after_fork(bool in_child)
{
    if (energy.session != NULL && in_child) {
        marey__energy_session_forget(energy.session);
        energy.parents = energy.session;
        energy.session = NULL;
    } else if (energy.is_paused) {
        marey__energy_session_resume(energy.session);
    }
    pthread_mutex_unlock(&energy.lock);
}

const struct marey__instrument marey__energy_instrument = {.options = options,
                                                           .n_options = MAREY__COUNT_OF(options),
                                                           .settings_size =
                                                               sizeof(struct marey__energy_settings),
                                                           .measures = "energy",
                                                           .ask_by = "marey run --energy",
                                                           .is_wanted = is_wanted,
                                                           .started = started,
                                                           .stopping = stop,
                                                           .reset = stop,
                                                           .before_fork = before_fork,
                                                           .after_fork = after_fork};

__attribute__((constructor(MAREY__INSTRUMENT_LOAD + 3))) static void load(void)
{
    marey__instrument_register(&marey__energy_instrument);
    marey__finalize_add_cleaner(marey__energy_lock_clean);
}

/* ---- measuring others ---- */

marey_status marey_energy_start(const char *path, const char *text)
{
    struct marey__settings s;
    marey__settings_init(&s);
    MAREY_TRY(marey__settings_parse(&s, text));
    if (path == NULL || realpath(path, s.path) == NULL) /* absolute: the thread opens it later */
        return marey__fail_errno("find the recording %s", path != NULL ? path : "without a path");
    marey_reset(); /* also what the environment has pending for this process */
    s.role = "energy";
    s.rank = s.world_size = -1;
    start(&s);
    return MAREY_OK;
}

void marey_energy_stop(void)
{
    if (marey_stop() != MAREY_OK)
        marey__say("%s", marey_last_error());
}

int marey_energy_asked(const char *text)
{
    struct marey__settings s;
    marey__settings_init(&s);
    return marey__settings_parse(&s, text) == MAREY_OK &&
           is_wanted(marey__settings_of(&s, &marey__energy_instrument));
}
