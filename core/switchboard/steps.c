/*
 * Training steps of a program that does not count them. Hooks report hints: an optimizer update, a request for a batch,
 * a batch. Each is recorded. The plan, a string in the log that is written again when it changes, defines how readers
 * derive steps:
 *
 *   updates 0:1           each update ends a step
 *   updates 0:1,40:2      from update 40 on, every second one does (two optimizers that alternate)
 *   batches               no updates: a step lasts from the request for a batch to the next request
 *   driver NAME           the program or a callback counts iterations; hints are ignored
 *
 * The period of updates is that of the sequence of optimizers. It is learned here because that needs the whole
 * sequence, and a reader sees one hint at a time.
 */
#include <pthread.h>
#include <string.h>

#include "switchboard/internal.h"

enum {
    MAX_OPTIMIZERS = 4096,
    MAX_CANDIDATES = 64,   /* periods to try at one position */
    MAX_LEARNED = 1 << 20, /* updates kept for learning */
    LEARN_ALWAYS = 512, /* below this, learn from every surprise; later only after 10 % more updates */
};

static struct {
    pthread_mutex_t lock; /* guards everything below */
    bool is_on;           /* auto=1. Atomic: read without the lock */
    uint64_t *optimizers; /* by number: their addresses */
    size_t n_optimizers, optimizers_cap;
    uint16_t *updates; /* numbers of optimizers, in order */
    size_t n_kept, updates_cap, n_learned;
    uint64_t n_updates;
    struct marey__step_plan plan;
    bool has_batch; /* delivered since the last request */
    uint64_t n_steps;
} steps = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the plan as text ---- */

static void print_plan(const struct marey__step_plan *plan, char *text, size_t size)
{
    size_t len = 0;
    marey__append(text, size, &len, "%s",
                  plan->source == MAREY__STEPS_BATCHES ? "batches" : "updates ");
    for (uint32_t i = 0; plan->source == MAREY__STEPS_UPDATES && i < plan->n; i++)
        marey__append(text, size, &len, "%s%llu:%u", i > 0 ? "," : "",
                      (unsigned long long)plan->parts[i].from, plan->parts[i].period);
}

bool marey__step_plan_ends(const struct marey__step_plan *plan, uint64_t update)
{
    uint32_t i = plan->n;
    while (i > 0 && plan->parts[i - 1].from > update)
        i--;
    return i > 0 && (update - plan->parts[i - 1].from + 1) % plan->parts[i - 1].period == 0;
}

void marey__step_plan_parse(struct marey__step_plan *plan, const char *text)
{
    static const char updates[] = "updates ";
    *plan = (struct marey__step_plan){0};
    if (strcmp(text, "batches") == 0)
        plan->source = MAREY__STEPS_BATCHES;
    if (strncmp(text, updates, sizeof updates - 1) != 0)
        return;
    text += sizeof updates - 1;
    for (unsigned long long from; plan->n < MAREY__STEP_PARTS; text++) {
        unsigned period;
        int len = 0;
        if (sscanf(text, "%19llu:%9u%n", &from, &period, &len) != 2 || period == 0)
            return;
        plan->source = MAREY__STEPS_UPDATES;
        plan->parts[plan->n].from = from;
        plan->parts[plan->n++].period = period;
        text += len;
        if (*text != ',')
            return;
    }
}

/* ---- learning the period; the lock is held ---- */

/* How many updates from `from` on repeat with `period`. */
static size_t run_of(size_t from, size_t period)
{
    const uint16_t *const u = steps.updates;
    size_t i = from + period;
    while (i < steps.n_kept && u[i] == u[i - period])
        i++;
    return MAREY__MIN(i, steps.n_kept) - from;
}

/* The period that explains most updates from `from` on, seen at least twice; else 1, valid for a single optimizer. */
static size_t best_period(size_t from, size_t *run)
{
    size_t best = 1, tried = 0;
    *run = run_of(from, 1);
    for (size_t p = 2;
         from + 2 * p <= steps.n_kept && p <= MAX_OPTIMIZERS && tried < MAX_CANDIDATES; p++) {
        if (steps.updates[from + p] != steps.updates[from])
            continue;
        const size_t r = run_of(from, p);
        tried++;
        if (r >= 2 * p && r > *run) {
            *run = r;
            best = p;
        }
    }
    return best;
}

static void learn(void)
{
    struct marey__step_plan *plan = &steps.plan;
    size_t run;
    *plan = (struct marey__step_plan){.source = MAREY__STEPS_UPDATES};
    for (size_t from = 0; from < steps.n_kept && plan->n < MAREY__STEP_PARTS; from += run) {
        plan->parts[plan->n].from = from;
        plan->parts[plan->n++].period = (uint32_t)best_period(from, &run);
    }
    steps.n_learned = steps.n_kept;
}

/* Whether the newest update matches the plan. */
static bool is_expected(void)
{
    const struct marey__step_plan *plan = &steps.plan;
    const size_t newest = steps.n_kept - 1;
    if (plan->source != MAREY__STEPS_UPDATES || plan->n == 0)
        return false;
    const uint64_t from = plan->parts[plan->n - 1].from, period = plan->parts[plan->n - 1].period;
    return newest < from + period || steps.updates[newest] == steps.updates[newest - period];
}

static uint16_t number_of(uint64_t who)
{
    for (size_t i = steps.n_optimizers; i-- > 0;)
        if (steps.optimizers[i] == who)
            return (uint16_t)i;
    if (steps.n_optimizers == MAX_OPTIMIZERS ||
        !MAREY__PUSH(steps.optimizers, steps.n_optimizers, steps.optimizers_cap, who))
        return 0;
    return (uint16_t)(steps.n_optimizers - 1);
}

/* True if the plan has changed. */
static bool take_update(uint64_t who)
{
    const struct marey__step_plan before = steps.plan;
    if (steps.n_kept < MAX_LEARNED &&
        MAREY__PUSH(steps.updates, steps.n_kept, steps.updates_cap, number_of(who)) &&
        !is_expected() &&
        (steps.n_kept < LEARN_ALWAYS || steps.n_kept > steps.n_learned + steps.n_learned / 10))
        learn();
    return memcmp(&before, &steps.plan, sizeof before) != 0;
}

/* ---- hints ---- */

/* Whether a step ends with this hint, according to the current plan. Caller holds the lock. */
static bool take_hint(enum marey_step_hint what, uint64_t who, bool *plan_changed)
{
    bool ends = false;
    switch (what) {
    case MAREY_STEP_UPDATE:
        *plan_changed = take_update(who);
        ends = marey__step_plan_ends(&steps.plan, steps.n_updates++);
        break;
    case MAREY_STEP_FETCH:
        ends = steps.plan.source == MAREY__STEPS_BATCHES && steps.has_batch;
        steps.has_batch = false;
        break;
    case MAREY_STEP_BATCH:
        steps.has_batch = true;
        *plan_changed = steps.plan.source == MAREY__STEPS_NONE;
        if (*plan_changed)
            steps.plan.source = MAREY__STEPS_BATCHES;
        break;
    }
    steps.n_steps += ends;
    return ends;
}

void marey_step_hint(enum marey_step_hint what, uint64_t who, double samples)
{
    if (!marey_enabled() || marey__iteration_driver() != NULL)
        return;
    char text[MAREY__STEP_PARTS * 32] = "";
    bool plan_changed = false;
    pthread_mutex_lock(&steps.lock);
    const bool ends = take_hint(what, who, &plan_changed);
    const uint64_t n_steps = steps.n_steps;
    if (plan_changed)
        print_plan(&steps.plan, text, sizeof text);
    pthread_mutex_unlock(&steps.lock);
    const uint64_t loader = what != MAREY_STEP_UPDATE ? who << 32 : 0;
    uint64_t words[] = {loader | (uint64_t)what << 20, 0};
    memcpy(&words[1], &samples, sizeof samples);
    marey__lane_put_record(MAREY_RECORD_STEP_HINT, words, MAREY__COUNT_OF(words));
    if (text[0] != '\0')
        marey__record_text(MAREY__KEY_STEPS, text);
    if (ends)
        marey__iteration_tell_step(n_steps);
}

void marey__steps_counted_by(marey_driver driver)
{
    char text[128];
    if (!marey_auto_is_on())
        return;
    snprintf(text, sizeof text, "driver %s", driver);
    marey__record_text(MAREY__KEY_STEPS, text);
}

int marey_auto_is_on(void)
{
    return __atomic_load_n(&steps.is_on, __ATOMIC_RELAXED);
}

/* ---- instrument callbacks ---- */

static void forget(void)
{
    steps.n_optimizers = steps.n_kept = steps.n_learned = 0;
    steps.n_updates = steps.n_steps = 0;
    steps.plan = (struct marey__step_plan){0};
    steps.has_batch = false;
}

static void reset(void)
{
    MAREY__HOLD(&steps.lock);
    forget();
}

static void before_fork(void)
{
    pthread_mutex_lock(&steps.lock);
}

static void after_fork(bool in_child)
{
    if (in_child)
        forget();
    pthread_mutex_unlock(&steps.lock);
}

struct steps_settings {
    bool is_on;
};
static const struct marey__option options[] = {
    {"auto", "0|1", "0", "records what a diagnosis needs: steps, phases, garbage collections",
     MAREY__OPTION_BOOL, MAREY__OPTION_FIELD(struct steps_settings, is_on)},
};
static void configure(const struct marey__settings *s);
static const struct marey__instrument instrument = {
    MAREY__INSTRUMENT_OPTIONS(options, struct steps_settings),
    .configure = configure,
    .stopping = reset,
    .reset = reset,
    .before_fork = before_fork,
    .after_fork = after_fork};

static void configure(const struct marey__settings *s)
{
    const struct steps_settings *const own = marey__settings_of(s, &instrument);
    __atomic_store_n(&steps.is_on, own->is_on, __ATOMIC_RELAXED);
}

MAREY__INSTRUMENT_AT_LOAD(1, instrument)
