/*
 * Orders: a background thread takes and returns CUPTI, while the caller continues.
 *
 *   start, stop later  -- order, under gpu.lock -->  thread  -- under gpu.turn -->  CUPTI
 *
 * The thread exists while there are orders. A pending stop is done before a pending start, because it was ordered
 * first: a start while tracing is on is refused, and a stop removes a pending start.
 */
#include <sys/prctl.h>

#include "instrument/cuda/internal.h"
#include "instrument/gpu/internal.h"

static struct marey__gpu *const gpu = &marey__gpu;

/* Guarded by gpu.lock. */
static struct {
    pthread_cond_t progress;  /* signaled when an order is done or removed */
    uint64_t n_given, n_done; /* without removed ones */
    void *context;            /* the stop waits for its work */
    bool is_served;           /* the thread runs, and checks again before it ends */
    bool stops, starts;       /* pending */
    bool is_kept;             /* of the pending start */
    bool is_stopping, is_starting;
} orders = {.progress = PTHREAD_COND_INITIALIZER};

/* ---- the thread ---- */

/* Caller holds the lock, which these three release meanwhile. */
static void do_stop(void)
{
    const struct marey__gpu_ending ending = {.is_ordered = true, .context = orders.context};
    orders.stops = false;
    orders.is_stopping = true;
    pthread_mutex_unlock(&gpu->lock);
    pthread_mutex_lock(&gpu->turn);
    marey__gpu_session_stop(ending);
    pthread_mutex_unlock(&gpu->turn);
    marey__gpu_note_losses();
    pthread_mutex_lock(&gpu->lock);
    orders.is_stopping = false;
}

static void do_start(void)
{
    const bool is_kept = orders.is_kept;
    marey_status st = MAREY_OK;
    orders.starts = false;
    orders.is_starting = true;
    pthread_mutex_unlock(&gpu->lock);
    pthread_mutex_lock(&gpu->turn);
    if (!gpu->is_tracing)
        st = marey__gpu_session_start();
    pthread_mutex_unlock(&gpu->turn);
    if (st != MAREY_OK)
        marey__gpu_report_failure();
    pthread_mutex_lock(&gpu->lock);
    if (is_kept && !orders.stops)
        marey__gpu_keep();
    /* A schedule tries again later; a stop ordered meanwhile has set this already. */
    if (st != MAREY_OK && !orders.stops && !marey__gpu_has_schedule())
        gpu->is_on = false;
    orders.is_starting = false;
}

static void do_orders(void)
{
    while (orders.stops || orders.starts) {
        if (orders.stops)
            do_stop();
        else
            do_start();
        orders.n_done++;
        pthread_cond_broadcast(&orders.progress);
    }
    orders.is_served = false;
}

static void *thread_main(void *arg)
{
    prctl(PR_SET_NAME, "marey-orders");
    MAREY__HOLD(&gpu->lock);
    do_orders();
    return arg;
}

/* Starts the thread if needed. It waits for the lock, which the caller holds, and finds the order. */
static bool have_served(void)
{
    if (orders.is_served)
        return true;
    pthread_t thread;
    orders.is_served = marey__thread_create(&thread, 0, thread_main, NULL) == 0;
    if (orders.is_served)
        pthread_detach(thread);
    return orders.is_served;
}

/* ---- callers ---- */

bool marey__gpu_order_start(bool is_kept)
{
    orders.n_given += !orders.starts;
    orders.starts = true;
    orders.is_kept = is_kept;
    return have_served();
}

void marey__gpu_order_drop(void)
{
    if (!orders.starts)
        return;
    orders.starts = false;
    orders.n_given--;
    pthread_cond_broadcast(&orders.progress);
}

/* The context of the stopping thread, or if it uses no CUDA, of the one that does. */
static void *current_context(void)
{
    const struct marey__driver *const driver = marey__driver_get();
    void *context = NULL;
    if (driver == NULL || driver->ctx_get_current(&context) != 0 || context == NULL)
        context = __atomic_load_n(&gpu->context, __ATOMIC_RELAXED);
    return context;
}

bool marey__gpu_order_stop(uint64_t *bound)
{
    marey__gpu_order_drop();
    const bool is_due = (gpu->is_tracing && !orders.is_stopping) || orders.is_starting;
    *bound = is_due && !orders.stops
                 ? marey__gpu_calls_mark()
                 : (uint64_t)__atomic_load_n(&gpu->session, __ATOMIC_RELAXED) << 32;
    if (!is_due || orders.stops)
        return true;
    marey__gpu_put_traced(false);
    orders.context = current_context();
    orders.stops = true;
    orders.n_given++;
    return have_served();
}

void marey_gpu_settle(void)
{
    MAREY__HOLD(&gpu->lock);
    if (!orders.is_served) { /* the thread could not be started */
        orders.is_served = true;
        do_orders();
    }
    const uint64_t n_given = orders.n_given;
    while (orders.n_done < n_given && orders.n_done < orders.n_given)
        pthread_cond_wait(&orders.progress, &gpu->lock);
}

int marey_gpu_is_settled(void)
{
    MAREY__HOLD(&gpu->lock);
    return orders.n_done == orders.n_given;
}

bool marey__gpu_orders_forget(void)
{
    const bool had_any = orders.n_done != orders.n_given;
    pthread_cond_init(&orders.progress, NULL);
    orders.n_done = orders.n_given;
    orders.is_served = orders.stops = orders.starts = orders.is_stopping = orders.is_starting = false;
    return had_any;
}
