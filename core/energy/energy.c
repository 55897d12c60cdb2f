/* Energy as an instrument: it starts with a recording, ends before it closes, and keeps out of forks. */
#include <unistd.h>

#include "energy/energy_internal.h"
#include "iteration/iteration_internal.h"

static struct {
    pthread_mutex_t lock; /* guards the rest */
    struct kymo__energy_session *session;
    struct kymo__energy_session *parents; /* what a forked child inherited and cannot end */
    bool is_paused;                       /* for the fork that is under way */
    int64_t owner; /* the process that has the thread; a raw clone() has not */
} energy = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct kymo__iteration_subscriber subscriber = {.epoch_edge = kymo__energy_edge};

static void stop(void)
{
    if (__atomic_load_n(&energy.owner, __ATOMIC_RELAXED) != getpid())
        return;
    pthread_mutex_lock(&energy.lock);
    struct kymo__energy_session *const session = energy.session;
    energy.session = NULL;
    if (session != NULL) {
        kymo__iteration_unsubscribe(&subscriber);
        kymo__energy_session_stop(session);
    }
    pthread_mutex_unlock(&energy.lock);
}

static void start(const struct kymo__settings *s)
{
    stop();
    struct kymo__launch launch;
    kymo__identity_launch(&launch);
    pthread_mutex_lock(&energy.lock);
    energy.session = kymo__energy_session_start(s, launch.local_rank);
    __atomic_store_n(&energy.owner, getpid(), __ATOMIC_RELAXED);
    if (energy.session != NULL)
        kymo__iteration_subscribe(&subscriber);
    pthread_mutex_unlock(&energy.lock);
}

/*
 * A library that was loaded after us ends before us: NVML must not be asked when it has ended. What is registered once it is
 * there runs before that.
 */
void kymo__energy_stop_at_exit(void)
{
    static bool is_registered;
    if (!__atomic_exchange_n(&is_registered, true, __ATOMIC_RELAXED))
        atexit(stop);
}

/* ---- what the switchboard calls ---- */

static void configure(const struct kymo__settings *s)
{
    (void)s;
}

static void started(const struct kymo__settings *s)
{
    if (s->energy.is_wanted)
        start(s);
}

static void before_fork(void)
{
    pthread_mutex_lock(&energy.lock);
    energy.is_paused = energy.session != NULL && kymo__energy_session_pause(energy.session);
}

static void after_fork(bool in_child)
{
    if (energy.session != NULL && in_child) {
        kymo__energy_session_forget(energy.session);
        energy.parents = energy.session;
        energy.session = NULL;
    } else if (energy.is_paused) {
        kymo__energy_session_resume(energy.session);
    }
    pthread_mutex_unlock(&energy.lock);
}

__attribute__((constructor(KYMO__INSTRUMENT_LOAD + 3))) static void load(void)
{
    static const struct kymo__instrument instrument = {.configure = configure,
                                                       .started = started,
                                                       .stopping = stop,
                                                       .reset = stop,
                                                       .before_fork = before_fork,
                                                       .after_fork = after_fork};
    kymo__instrument_register(&instrument);
}

/* ---- measuring others ---- */

kymo_status kymo_energy_start(const char *path, const char *options)
{
    struct kymo__settings s;
    kymo__settings_init(&s);
    KYMO_TRY(kymo__settings_parse(&s, options));
    if (path == NULL || realpath(path, s.path) == NULL) /* absolute: the thread opens it later */
        return kymo__fail_errno("find the recording %s", path != NULL ? path : "without a path");
    kymo_reset(); /* also what the environment has pending for this process */
    s.role = "energy";
    s.rank = s.world_size = -1;
    start(&s);
    return KYMO_OK;
}

void kymo_energy_stop(void)
{
    if (kymo_stop() != KYMO_OK)
        kymo__say("%s", kymo_last_error());
}

int kymo_energy_asked(const char *options)
{
    struct kymo__settings s;
    kymo__settings_init(&s);
    return kymo__settings_parse(&s, options) == KYMO_OK && s.energy.is_wanted;
}
