/* One profile goes into the recording: differences, written by the flush thread some seconds apart and when it stops. */
#include <string.h>

#include "calls/calls_internal.h"

#define PERIOD_NS UINT64_C(5000000000) /* between two times */

static struct {
    pthread_mutex_t lock;     /* guards all */
    struct kymo_calls *calls; /* NULL: none */
    uint64_t written_ns;
    bool is_asked; /* by options, for a profile that goes into the recording */
    struct kymo__calls_settings asked;
    uint32_t turn; /* odd while there is one, another for each. Written under the lock, loaded anywhere */
} recorded = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The calling thread in the profile of that turn. */
static __thread struct {
    struct kymo_calls_thread *thread;
    uint32_t turn;
} self __attribute__((tls_model("initial-exec")));

/* The lock is held. */
static void set_recorded(struct kymo_calls *calls)
{
    if (recorded.calls != calls)
        __atomic_fetch_add(&recorded.turn, 1, __ATOMIC_RELAXED);
    recorded.calls = calls;
}

/* The lock is held. */
static void write_cost(struct kymo_calls *calls)
{
    const uint64_t cost_ps = __atomic_load_n(&calls->cost_ps, __ATOMIC_RELAXED);
    pthread_mutex_lock(&calls->write_lock);
    const uint64_t n = calls->recorded.calls;
    pthread_mutex_unlock(&calls->write_lock);
    if (cost_ps != 0 && n != 0)
        kymo__record_cost(KYMO__KEY_CALLS_COST, n, cost_ps, cost_ps);
    else
        kymo__record_text(KYMO__KEY_CALLS_COST, KYMO__COST_UNKNOWN);
}

/* The lock is held. */
static void write_now(void)
{
    if (__atomic_load_n(&kymo__record.state, __ATOMIC_ACQUIRE) != KYMO__RECORD_OPEN ||
        kymo__record_is_foreign() || kymo__log_is_broken(&kymo__record.log))
        return;
    if (kymo__calls_append(recorded.calls, &kymo__record.log, true, 0) != KYMO_OK)
        kymo__record_failed(kymo_last_error());
    else
        write_cost(recorded.calls);
    recorded.written_ns = kymo__clock_ns(CLOCK_MONOTONIC);
}

/* By the flush thread, which goes by when somebody else is at it. */
static void visit(void)
{
    if (pthread_mutex_trylock(&recorded.lock) != 0)
        return;
    if (recorded.calls != NULL && kymo__clock_ns(CLOCK_MONOTONIC) - recorded.written_ns >= PERIOD_NS)
        write_now();
    pthread_mutex_unlock(&recorded.lock);
}

kymo_status kymo_calls_record(struct kymo_calls *calls)
{
    if (__atomic_load_n(&kymo__record.state, __ATOMIC_ACQUIRE) == KYMO__RECORD_PENDING)
        kymo__record_open_pending();
    if (!kymo_enabled())
        return kymo__fail(KYMO_ESTATE, "a call profile goes into a recording, and none is open");
    pthread_mutex_lock(&recorded.lock);
    const bool is_free = recorded.calls == NULL || recorded.calls == calls;
    if (is_free) {
        kymo__calls_append_reset(calls);
        set_recorded(calls);
        write_now(); /* whoever reads the log of a process that is killed soon knows what is missing */
    }
    pthread_mutex_unlock(&recorded.lock);
    if (!is_free)
        return kymo__fail(KYMO_ESTATE, "another call profile goes into this recording");
    kymo__flush_add_visitor(visit, UINT64_C(1000000000));
    return KYMO_OK;
}

void kymo_calls_unrecord(struct kymo_calls *calls)
{
    pthread_mutex_lock(&recorded.lock);
    if (recorded.calls == calls && calls != NULL) {
        write_now();
        set_recorded(NULL);
    }
    pthread_mutex_unlock(&recorded.lock);
}

void kymo__calls_record_forget(struct kymo_calls *calls)
{
    pthread_mutex_lock(&recorded.lock);
    if (recorded.calls == calls)
        set_recorded(NULL);
    pthread_mutex_unlock(&recorded.lock);
}

void kymo__calls_record_stop(void)
{
    pthread_mutex_lock(&recorded.lock);
    if (recorded.calls != NULL)
        write_now();
    pthread_mutex_unlock(&recorded.lock);
}

/* ---- what options ask for ---- */

void kymo__calls_record_configure(const struct kymo__settings *s)
{
    pthread_mutex_lock(&recorded.lock);
    recorded.is_asked = s->calls.is_wanted;
    recorded.asked = s->calls;
    pthread_mutex_unlock(&recorded.lock);
}

int kymo_calls_asked_get(struct kymo_calls_asked *out)
{
    pthread_mutex_lock(&recorded.lock);
    const bool is_asked = recorded.is_asked && kymo_enabled();
    if (is_asked) {
        *out = (struct kymo_calls_asked){.signatures = recorded.asked.signatures,
                                         .builtins = !recorded.asked.no_builtins,
                                         .memory_bytes = recorded.asked.memory_bytes};
        memcpy(out->modules, recorded.asked.modules, sizeof out->modules);
    }
    pthread_mutex_unlock(&recorded.lock);
    return is_asked;
}

/* ---- the calling thread ---- */

void kymo__calls_record_thread(struct kymo_calls_thread *thread)
{
    pthread_mutex_lock(&recorded.lock);
    if (recorded.calls == thread->calls) {
        self.thread = thread;
        self.turn = recorded.turn;
    }
    pthread_mutex_unlock(&recorded.lock);
}

int kymo_calls_current(uint32_t *profile, uint32_t *node)
{
    if (self.turn % 2 == 0 || self.turn != __atomic_load_n(&recorded.turn, __ATOMIC_RELAXED))
        return 0;
    *profile = 0;
    *node = self.thread->top->node->number;
    return *node != 0;
}

/* The child's log has nothing of the profile; it is opened when somebody asks for it, or with an event. */
void kymo__calls_record_after_fork(bool in_child)
{
    if (in_child)
        pthread_mutex_init(&recorded.lock, NULL);
}
