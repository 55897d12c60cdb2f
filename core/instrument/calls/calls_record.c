/* One profile goes into the recording: differences, written by the flush thread some seconds apart and when it stops. */
#include <string.h>

#include "instrument/calls/internal.h"

#define PERIOD_NS UINT64_C(5000000000) /* between two times */

static struct {
    pthread_mutex_t lock;      /* guards all */
    struct marey_calls *calls; /* NULL: none */
    uint64_t written_ns;
    struct marey__calls_settings asked; /* by options, for a profile that goes into the recording */
    uint32_t turn; /* odd while there is one, another for each. Written under the lock, loaded anywhere */
} recorded = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The calling thread in the profile of that turn. */
static __thread struct {
    struct marey_calls_thread *thread;
    uint32_t turn;
} self __attribute__((tls_model("initial-exec")));

/* The lock is held. */
static void set_recorded(struct marey_calls *calls)
{
    if (recorded.calls != calls)
        __atomic_fetch_add(&recorded.turn, 1, __ATOMIC_RELAXED);
    recorded.calls = calls;
}

/* The lock is held. */
static void write_cost(struct marey_calls *calls)
{
    const uint64_t cost_ps = __atomic_load_n(&calls->cost_ps, __ATOMIC_RELAXED);
    pthread_mutex_lock(&calls->write_lock);
    const uint64_t n = calls->recorded.calls;
    pthread_mutex_unlock(&calls->write_lock);
    if (cost_ps != 0 && n != 0)
        marey__record_cost(MAREY__KEY_CALLS_COST, n, cost_ps, cost_ps);
    else
        marey__record_text(MAREY__KEY_CALLS_COST, MAREY__COST_UNKNOWN);
}

/* The lock is held. */
static void write_now(void)
{
    if (__atomic_load_n(&marey__record.state, __ATOMIC_ACQUIRE) != MAREY__RECORD_OPEN ||
        marey__record_is_foreign() || marey__log_is_broken(&marey__record.log))
        return;
    if (marey__calls_append(recorded.calls, &marey__record.log, true, 0) != MAREY_OK)
        marey__record_failed(marey_last_error());
    else
        write_cost(recorded.calls);
    recorded.written_ns = marey__clock_ns(CLOCK_MONOTONIC);
}

/* By the flush thread, which goes by when somebody else is at it. */
static void visit(void)
{
    if (pthread_mutex_trylock(&recorded.lock) != 0)
        return;
    if (recorded.calls != NULL && marey__clock_ns(CLOCK_MONOTONIC) - recorded.written_ns >= PERIOD_NS)
        write_now();
    pthread_mutex_unlock(&recorded.lock);
}

marey_status marey_calls_record(struct marey_calls *calls)
{
    if (__atomic_load_n(&marey__record.state, __ATOMIC_ACQUIRE) == MAREY__RECORD_PENDING)
        marey__record_open_pending();
    if (!marey_enabled())
        return marey__fail(MAREY_ESTATE, "a call profile goes into a recording, and none is open");
    pthread_mutex_lock(&recorded.lock);
    const bool is_free = recorded.calls == NULL || recorded.calls == calls;
    if (is_free) {
        marey__calls_append_reset(calls);
        set_recorded(calls);
        write_now(); /* so that a reader of the log of a process that is killed soon knows what is missing */
    }
    pthread_mutex_unlock(&recorded.lock);
    if (!is_free)
        return marey__fail(MAREY_ESTATE, "another call profile goes into this recording");
    marey__flush_add_visitor(visit, UINT64_C(1000000000));
    return MAREY_OK;
}

void marey_calls_unrecord(struct marey_calls *calls)
{
    pthread_mutex_lock(&recorded.lock);
    if (recorded.calls == calls && calls != NULL) {
        write_now();
        set_recorded(NULL);
    }
    pthread_mutex_unlock(&recorded.lock);
}

void marey__calls_record_forget(struct marey_calls *calls)
{
    pthread_mutex_lock(&recorded.lock);
    if (recorded.calls == calls)
        set_recorded(NULL);
    pthread_mutex_unlock(&recorded.lock);
}

void marey__calls_record_stop(void)
{
    pthread_mutex_lock(&recorded.lock);
    if (recorded.calls != NULL)
        write_now();
    pthread_mutex_unlock(&recorded.lock);
}

/* ---- what options ask for ---- */

void marey__calls_record_configure(const struct marey__settings *s)
{
    pthread_mutex_lock(&recorded.lock);
    recorded.asked =
        *(const struct marey__calls_settings *)marey__settings_of(s, &marey__calls_instrument);
    pthread_mutex_unlock(&recorded.lock);
}

int marey_calls_asked_get(struct marey_calls_asked *out)
{
    pthread_mutex_lock(&recorded.lock);
    const bool is_asked = recorded.asked.is_wanted && marey_enabled();
    if (is_asked) {
        *out = (struct marey_calls_asked){.signatures = recorded.asked.signatures,
                                          .builtins = recorded.asked.builtins,
                                          .memory_bytes = recorded.asked.memory_bytes};
        memcpy(out->modules, recorded.asked.modules, sizeof out->modules);
    }
    pthread_mutex_unlock(&recorded.lock);
    return is_asked;
}

/* ---- the calling thread ---- */

void marey__calls_record_thread(struct marey_calls_thread *thread)
{
    pthread_mutex_lock(&recorded.lock);
    if (recorded.calls == thread->calls) {
        self.thread = thread;
        self.turn = recorded.turn;
    }
    pthread_mutex_unlock(&recorded.lock);
}

int marey_calls_current(uint32_t *profile, uint32_t *node)
{
    if (self.turn % 2 == 0 || self.turn != __atomic_load_n(&recorded.turn, __ATOMIC_RELAXED))
        return 0;
    *profile = 0;
    *node = self.thread->top->node->number;
    return *node != 0;
}

/* The child's log has nothing of the profile; it is opened when somebody asks for it, or with an event. */
void marey__calls_record_after_fork(bool in_child)
{
    if (in_child)
        pthread_mutex_init(&recorded.lock, NULL);
}
