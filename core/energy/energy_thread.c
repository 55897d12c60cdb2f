/*
 * The thread `kymo-energy`: waits for its turn, opens what there is, reads by a timetable until it is told to end.
 *
 * It sleeps until the next reading is due, by the clock and not for a time, so that what a reading takes does not add up.
 * Foreign code (NVML) may hang for good. Then stop() leaves the thread to itself: it may write nothing more, and frees the
 * session should it ever come back.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock/clock_internal.h"
#include "energy/energy_internal.h"

#define SECOND_NS UINT64_C(1000000000)

enum { DEFAULT_HZ = 20, LEAST_HZ = 10 };
enum session_state { RUNNING, ENDED, ABANDONED };

struct due {
    uint64_t next_ns, period_ns;
};

struct kymo__energy_session {
    pthread_t thread;
    struct kymo__settings settings;
    uint32_t state;        /* enum session_state, a futex; changes under `voice` */
    bool should_end;       /* told together with the bell */
    bool is_opening;       /* NVML is being opened, which takes longer than a reading. Relaxed */
    pthread_mutex_t calls; /* held by the thread while it is in foreign code; a fork waits for it */
    pthread_mutex_t voice; /* held while something is written into the recording */
    /* The rest is the thread's own. */
    struct kymo__energy_lock lock;
    size_t lock_at; /* how far its lines are read */
    bool has_nvml;
    struct kymo__nvml nvml;
    struct kymo__node_gpu *nodes; /* these three have room for n_nodes */
    kymo__nvml_device *devices;
    struct kymo__energy_gpu *gpus;
    size_t n_nodes, n_asked, n_gpus; /* that there are, that answered, that are measured */
    struct kymo__zone zones[KYMO__MAX_ZONES];
    size_t n_zones;
    struct due power, state_due, busy, count, cpus, line;
    uint32_t n_edges; /* as many as are taken care of */
    uint64_t edge_ns;
    uint64_t cpu_ns, budget_cpu_ns,
        budget_ns; /* the thread's CPU time at the first reading, and at the last look at it */
};

/* Outside of sessions, so that an epoch's edge never meets one that is just being freed. */
static uint32_t bell;    /* a futex; counts rings */
static uint32_t n_edges; /* epochs begun and ended so far */

static __thread struct kymo__energy_session *my_session; /* of the thread itself */

static uint64_t now_ns(void)
{
    return kymo__clock_ns(CLOCK_MONOTONIC);
}

static void ring(void)
{
    __atomic_fetch_add(&bell, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &bell, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Until the futex is no longer `value`, or the monotonic clock says so. */
static void wait_until(uint32_t *futex, uint32_t value, uint64_t deadline_ns)
{
    const struct timespec until = {(time_t)(deadline_ns / SECOND_NS),
                                   (long)(deadline_ns % SECOND_NS)};
    syscall(SYS_futex, futex, FUTEX_WAIT_BITSET_PRIVATE, value, &until, NULL, FUTEX_BITSET_MATCH_ANY);
}

static bool should_end(const struct kymo__energy_session *s)
{
    return __atomic_load_n(&s->should_end, __ATOMIC_RELAXED);
}

void kymo__energy_edge(void)
{
    __atomic_fetch_add(&n_edges, 1, __ATOMIC_RELAXED);
    ring();
}

/* ---- into the recording ---- */

/* Whether this thread still has a say; then kymo__energy_silence() must follow. */
static bool may_speak(void)
{
    if (my_session == NULL)
        return true; /* a test calls from a thread of its own */
    pthread_mutex_lock(&my_session->voice);
    if (my_session->state == RUNNING)
        return true;
    pthread_mutex_unlock(&my_session->voice);
    return false;
}

static void be_silent(void)
{
    if (my_session != NULL)
        pthread_mutex_unlock(&my_session->voice);
}

void kymo__energy_put(kymo_id site, double value)
{
    if (!may_speak())
        return;
    kymo_counter(site, value);
    be_silent();
}

static void put_text(const char *key, struct kymo__buf *text)
{
    kymo__buf_put(text, "", 1);
    if (!text->failed && may_speak()) {
        if (kymo_enabled())
            kymo__record_text(key, text->data);
        be_silent();
    }
    kymo__buf_fini(text);
}

void kymo__energy_tell(const char *fmt, ...)
{
    char sentence[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    struct kymo__buf note = {0};
    kymo__buf_puts(&note, sentence);
    put_text(KYMO__KEY_NOTE, &note);
    kymo__say("%s", sentence);
}

static void describe(struct kymo__energy_session *s)
{
    struct kymo__buf sources = {0};
    for (size_t i = 0; i < s->n_gpus; i++)
        kymo__energy_gpu_describe(&s->gpus[i], &sources);
    for (size_t i = 0; i < s->n_zones; i++)
        kymo__zone_describe(&s->zones[i], &sources);
    if (sources.len > 0)
        sources.len--; /* the last newline */
    put_text(KYMO__KEY_ENERGY_SOURCES, &sources);
}

static void describe_node(struct kymo__energy_session *s)
{
    struct kymo__buf text = {0};
    struct kymo__visible_device devices[KYMO__MAX_GPUS];
    const char *visible = getenv("CUDA_VISIBLE_DEVICES"), *order = getenv("CUDA_DEVICE_ORDER");
    kymo__node_gpus_put(&text, s->nodes, s->n_nodes);
    put_text(KYMO__KEY_GPUS, &text);
    if (s->settings.role != NULL || kymo__visible_is_doubtful(visible, order, s->nodes, s->n_nodes))
        return;
    const size_t n = kymo__visible_choose(visible, s->nodes, s->n_nodes, devices);
    kymo__visible_put(&text, s->nodes, devices, n);
    put_text(KYMO__KEY_DEVICES, &text);
}

/* ---- GPUs ---- */

static void look_for_slices(struct kymo__energy_session *s, size_t i)
{
    const struct kymo__nvml *const nvml = &s->nvml;
    struct kymo__node_gpu *const node = &s->nodes[i];
    unsigned is_on = 0, later = 0, n = 0;
    if (nvml->mig_mode == NULL || nvml->mig_count == NULL || nvml->mig_by_index == NULL ||
        nvml->mig_mode(s->devices[i], &is_on, &later) != 0 || !is_on ||
        nvml->mig_count(s->devices[i], &n) != 0)
        return;
    for (unsigned m = 0; m < n && node->n_slices < KYMO__MAX_SLICES; m++) {
        kymo__nvml_device slice;
        char *const uuid = node->slices[node->n_slices];
        if (nvml->mig_by_index(s->devices[i], m, &slice) == 0 &&
            nvml->uuid(slice, uuid, KYMO__UUID_MAX) == 0 && uuid[0] != '\0')
            node->n_slices++;
        uuid[KYMO__UUID_MAX - 1] = '\0';
    }
}

/* Each GPU that can be asked at all; the others leave their number free, for CUDA counts them too. */
static void look_at_node(struct kymo__energy_session *s, size_t i)
{
    struct kymo__node_gpu *const node = &s->nodes[i];
    int error = s->nvml.by_index((unsigned)i, &s->devices[i]);
    if (error == 0)
        error = s->nvml.uuid(s->devices[i], node->uuid, sizeof node->uuid);
    node->uuid[sizeof node->uuid - 1] = '\0';
    if (error != 0 || node->uuid[0] == '\0') {
        node->uuid[0] = '\0';
        kymo__energy_tell("GPU %zu is not measured: NVML says \"%s\" (error %d)", i,
                          kymo__nvml_words(&s->nvml, error), error);
        return;
    }
    if (s->nvml.name == NULL || s->nvml.name(s->devices[i], node->model, sizeof node->model) != 0)
        snprintf(node->model, sizeof node->model, "without a name");
    node->model[sizeof node->model - 1] = '\0';
    s->n_asked++;
    look_for_slices(s, i);
}

static bool make_room(struct kymo__energy_session *s, unsigned n)
{
    s->n_nodes = KYMO__MIN(n, (unsigned)KYMO__MAX_GPUS);
    s->nodes = kymo__calloc(s->n_nodes, sizeof *s->nodes);
    s->devices = kymo__calloc(s->n_nodes, sizeof *s->devices);
    s->gpus = kymo__calloc(s->n_nodes, sizeof *s->gpus);
    if (s->nodes != NULL && s->devices != NULL && s->gpus != NULL)
        return true;
    s->n_nodes = 0;
    return false;
}

static void open_nvml(struct kymo__energy_session *s)
{
    unsigned n = 0;
    if (kymo__nvml_open(&s->nvml) != KYMO_OK) {
        kymo__energy_tell("%s", kymo_last_error());
        return;
    }
    s->has_nvml = true;
    kymo__energy_stop_at_exit();
    const int error = s->nvml.count(&n);
    if (error != 0)
        kymo__energy_tell("the energy of GPUs is not measured: NVML says \"%s\" (error %d)",
                          kymo__nvml_words(&s->nvml, error), error);
    else if (n == 0)
        kymo__energy_tell("the energy of GPUs is not measured: NVML sees no GPU");
    else if (!make_room(s, n))
        kymo__energy_tell("the energy of GPUs is not measured: no memory");
    for (size_t i = 0; i < s->n_nodes; i++)
        look_at_node(s, i);
    if (s->n_nodes > 0)
        describe_node(s);
}

static void add_gpu(struct kymo__energy_session *s, const struct kymo__visible_device *device)
{
    const struct kymo__node_gpu *const node = &s->nodes[device->gpu];
    for (size_t i = 0; i < s->n_gpus; i++)
        if (s->gpus[i].node == node)
            return;
    if (node->uuid[0] == '\0')
        return;
    struct kymo__energy_gpu *const gpu = &s->gpus[s->n_gpus++];
    kymo__energy_gpu_init(gpu, &s->nvml, s->devices[device->gpu], node, device->gpu);
    if (device->slice >= 0)
        kymo__energy_tell("%s is a slice of GPU %" PRIu32
                          " (%s): its power and energy are those of "
                          "the whole GPU",
                          node->slices[device->slice], device->gpu, node->uuid);
    kymo__energy_gpu_power(gpu, now_ns());
    kymo__energy_gpu_count(gpu, now_ns());
    kymo__energy_gpu_busy(gpu);
    kymo__energy_gpu_state(gpu);
}

/* Add the GPUs that one process may use; `visible` NULL: all. */
static void add_visible(struct kymo__energy_session *s, const char *visible)
{
    struct kymo__visible_device devices[KYMO__MAX_GPUS];
    if (kymo__visible_is_doubtful(visible, getenv("CUDA_DEVICE_ORDER"), s->nodes, s->n_nodes) &&
        visible != NULL) {
        kymo__energy_tell(
            "CUDA_VISIBLE_DEVICES=%s may mean other GPUs than NVML's numbers, as there "
            "are several models: all are measured; set CUDA_DEVICE_ORDER=PCI_BUS_ID",
            visible);
        visible = NULL;
    }
    const size_t n = kymo__visible_choose(visible, s->nodes, s->n_nodes, devices);
    for (size_t i = 0; i < n; i++)
        add_gpu(s, &devices[i]);
}

/* Those of everybody who stands in line, or has since the last look. */
static void add_lines(struct kymo__energy_session *s)
{
    char line[4200];
    bool is_set;
    const size_t n_before = s->n_gpus;
    while (s->n_nodes > 0 && kymo__energy_lock_next(&s->lock, &s->lock_at, line, sizeof line, &is_set))
        add_visible(s, is_set ? line : NULL);
    if (s->n_gpus > n_before)
        describe(s);
}

/* ---- the timetable ---- */

static bool is_due(struct due *due, uint64_t now)
{
    if (now < due->next_ns)
        return false;
    due->next_ns += due->period_ns;
    if (due->next_ns <= now) /* it overslept: what was missed stays missed */
        due->next_ns = now + due->period_ns - (now - due->next_ns) % due->period_ns;
    return true;
}

/* Readings of one kind, of all GPUs; a fork may come between two. */
typedef void read_gpu(struct kymo__energy_session *s, struct kymo__energy_gpu *gpu);
static void read_all(struct kymo__energy_session *s, read_gpu *read)
{
    for (size_t i = 0; i < s->n_gpus; i++) {
        pthread_mutex_lock(&s->calls);
        read(s, &s->gpus[i]);
        pthread_mutex_unlock(&s->calls);
    }
}

static void read_power(struct kymo__energy_session *s, struct kymo__energy_gpu *gpu)
{
    (void)s;
    kymo__energy_gpu_power(gpu, now_ns());
}

static void read_state(struct kymo__energy_session *s, struct kymo__energy_gpu *gpu)
{
    (void)s;
    kymo__energy_gpu_state(gpu);
}

static void read_busy(struct kymo__energy_session *s, struct kymo__energy_gpu *gpu)
{
    (void)s;
    kymo__energy_gpu_busy(gpu);
}

static void read_count(struct kymo__energy_session *s, struct kymo__energy_gpu *gpu)
{
    (void)s;
    kymo__energy_gpu_count(gpu, now_ns());
}

/* A reading takes the driver milliseconds: not more often than the timetable has it. */
static void read_count_if_due(struct kymo__energy_session *s, struct kymo__energy_gpu *gpu)
{
    const uint64_t now = now_ns();
    if (now >= gpu->counted_ns + s->count.period_ns - SECOND_NS / 100)
        kymo__energy_gpu_count(gpu, now);
}

static void read_zones(struct kymo__energy_session *s)
{
    for (size_t i = 0; i < s->n_zones; i++)
        kymo__zone_read(&s->zones[i], now_ns());
}

/* An epoch begins or ends: what is read there divides the energy of two epochs exactly. */
static void read_edge(struct kymo__energy_session *s, uint64_t now)
{
    const uint32_t n = __atomic_load_n(&n_edges, __ATOMIC_RELAXED);
    if (n == s->n_edges)
        return;
    s->n_edges = n;
    if (now < s->edge_ns + s->power.period_ns)
        return;
    s->edge_ns = now;
    read_zones(s);
    read_all(s, read_count_if_due);
    read_all(s, read_power);
}

/*
 * A thousandth of a core for each GPU is what measuring may take. Where the driver is slow, and the user has not asked for a
 * rate, there are fewer readings, and energy_sources tells how many there were.
 */
static void keep_within_budget(struct kymo__energy_session *s)
{
    const uint64_t now = now_ns(), cpu = kymo__clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const uint64_t allowed = (now - s->budget_ns) / 1000 * KYMO__MAX(s->n_gpus, (size_t)1);
    const bool is_over = cpu - s->budget_cpu_ns > allowed;
    s->budget_ns = now;
    s->budget_cpu_ns = cpu;
    if (!is_over || s->settings.energy.hz != 0)
        return;
    if (s->power.period_ns < SECOND_NS / LEAST_HZ) {
        s->power.period_ns = SECOND_NS / LEAST_HZ;
    } else if (s->busy.period_ns < 4 * SECOND_NS) {
        s->busy.period_ns *= 2;
        s->state_due.period_ns *= 2;
    }
}

static void read_what_is_due(struct kymo__energy_session *s, uint64_t now)
{
    read_edge(s, now);
    if (is_due(&s->power, now))
        read_all(s, read_power);
    if (is_due(&s->cpus, now))
        read_zones(s);
    if (is_due(&s->busy, now))
        read_all(s, read_busy);
    if (is_due(&s->state_due, now))
        read_all(s, read_state);
    if (is_due(&s->count, now)) {
        read_all(s, read_count_if_due);
        keep_within_budget(s);
    }
    if (is_due(&s->line, now)) {
        pthread_mutex_lock(&s->calls);
        add_lines(s);
        pthread_mutex_unlock(&s->calls);
    }
}

static uint64_t next_ns(const struct kymo__energy_session *s)
{
    const struct due *const all[] = {&s->power,     &s->cpus,  &s->busy,
                                     &s->state_due, &s->count, &s->line};
    uint64_t next = s->line.next_ns;
    for (size_t i = 0; i < KYMO__COUNT_OF(all); i++)
        if (s->n_gpus > 0 || all[i] == &s->line || (all[i] == &s->cpus && s->n_zones > 0))
            next = KYMO__MIN(next, all[i]->next_ns);
    return next;
}

/* What is slow is spread over the second, so that no reading waits for all the others. */
static void make_timetable(struct kymo__energy_session *s)
{
    const uint32_t hz = s->settings.energy.hz != 0 ? s->settings.energy.hz : DEFAULT_HZ;
    const uint64_t now = now_ns();
    s->power = (struct due){now + SECOND_NS / hz, SECOND_NS / hz};
    s->cpus = (struct due){now + SECOND_NS, SECOND_NS};
    s->busy = (struct due){now + SECOND_NS / 4, SECOND_NS};
    s->state_due = (struct due){now + SECOND_NS / 2, SECOND_NS};
    s->line = (struct due){now + SECOND_NS / 4 * 3, SECOND_NS};
    s->count = (struct due){now + 4 * SECOND_NS, 4 * SECOND_NS};
    s->n_edges = __atomic_load_n(&n_edges, __ATOMIC_RELAXED);
}

/* ---- from begin to end ---- */

static void open_sources(struct kymo__energy_session *s)
{
    pthread_mutex_lock(&s->calls);
    __atomic_store_n(&s->is_opening, true, __ATOMIC_RELAXED);
    s->n_zones = kymo__zones_open(s->zones);
    read_zones(s);
    open_nvml(s);
    __atomic_store_n(&s->is_opening, false, __ATOMIC_RELAXED);
    if (s->lock.fd >= 0)
        add_lines(s); /* our own is among them */
    else if (s->n_nodes > 0)
        add_visible(s, getenv("CUDA_VISIBLE_DEVICES"));
    pthread_mutex_unlock(&s->calls);
    if (s->n_asked > 0 && s->n_gpus == 0)
        kymo__energy_tell("no GPU is measured: CUDA_VISIBLE_DEVICES leaves the program none");
    describe(s);
}

static void close_sources(struct kymo__energy_session *s)
{
    struct kymo__buf cpu = {0};
    read_zones(s);
    read_all(s, read_power);
    read_all(s, read_count);
    read_all(s, read_busy);
    describe(s);
    kymo__buf_printf(&cpu, "%" PRIu64, kymo__clock_ns(CLOCK_THREAD_CPUTIME_ID) - s->cpu_ns);
    put_text(KYMO__KEY_ENERGY_CPU, &cpu);
    pthread_mutex_lock(&s->calls);
    for (size_t i = 0; i < s->n_gpus; i++)
        kymo__energy_gpu_fini(&s->gpus[i]);
    if (s->has_nvml)
        kymo__nvml_close(&s->nvml);
    pthread_mutex_unlock(&s->calls);
}

static void measure(struct kymo__energy_session *s)
{
    open_sources(s);
    make_timetable(s);
    s->cpu_ns = s->budget_cpu_ns = kymo__clock_ns(CLOCK_THREAD_CPUTIME_ID);
    s->budget_ns = now_ns();
    while (!should_end(s)) {
        const uint32_t heard = __atomic_load_n(&bell, __ATOMIC_ACQUIRE);
        read_what_is_due(s, now_ns());
        if (!should_end(s))
            wait_until(&bell, heard, next_ns(s));
    }
    close_sources(s);
}

/*
 * Ask once a second, which costs nothing to speak of; whoever measures may end at any time. The first time also if the
 * program has ended by then, so that the shortest one is measured too.
 */
static bool wait_for_turn(struct kymo__energy_session *s)
{
    for (;;) {
        const uint32_t heard = __atomic_load_n(&bell, __ATOMIC_ACQUIRE);
        const enum kymo__energy_turn turn = kymo__energy_lock_try(&s->lock, s->settings.path);
        if (turn == KYMO__TURN_OURS)
            return true;
        if (turn == KYMO__TURN_NEVER) {
            /* No locks on this file system: the first rank of the machine is as good as any. */
            if (s->settings.local_rank <= 0)
                kymo__say("energy: %s cannot be locked: if several processes of this machine "
                          "measure, energy is recorded several times",
                          s->lock.path);
            return s->settings.local_rank <= 0;
        }
        if (!should_end(s))
            wait_until(&bell, heard, now_ns() + SECOND_NS);
        if (should_end(s))
            return false;
    }
}

static bool open_recording(struct kymo__energy_session *s)
{
    if (s->settings.role == NULL)
        return true;
    if (kymo__record_open(&s->settings) == KYMO_OK)
        return true;
    kymo__say("energy is not recorded: %s", kymo_last_error());
    return false;
}

static void session_free(struct kymo__energy_session *s)
{
    kymo__free(s->nodes);
    kymo__free(s->devices);
    kymo__free(s->gpus);
    pthread_mutex_destroy(&s->calls);
    pthread_mutex_destroy(&s->voice);
    kymo__free(s);
}

static void *energy_main(void *arg)
{
    struct kymo__energy_session *s = arg;
    prctl(PR_SET_NAME, "kymo-energy");
    my_session = s;
    if (wait_for_turn(s) && open_recording(s))
        measure(s);
    kymo__energy_lock_release(&s->lock);
    pthread_mutex_lock(&s->voice);
    const bool is_alone = s->state == ABANDONED;
    __atomic_store_n(&s->state, is_alone ? ABANDONED : ENDED, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&s->voice);
    if (is_alone)
        session_free(s);
    else
        syscall(SYS_futex, &s->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    return NULL;
}

struct kymo__energy_session *kymo__energy_session_start(const struct kymo__settings *settings)
{
    enum { STACK_BYTES = 512 << 10 };
    struct kymo__energy_session *s = kymo__calloc(1, sizeof *s);
    sigset_t all, before;
    pthread_attr_t attr;
    int error = ENOMEM;
    if (s != NULL) {
        s->settings = *settings;
        s->lock.fd = -1;
        pthread_mutex_init(&s->calls, NULL);
        pthread_mutex_init(&s->voice, NULL);
        pthread_attr_init(&attr);
        pthread_attr_setstacksize(&attr, STACK_BYTES);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before); /* the host's signals are the host's */
        error = pthread_create(&s->thread, &attr, energy_main, s);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attr);
    }
    if (error == 0)
        return s;
    kymo__say("energy is not measured: its thread could not be started (%s)", strerror(error));
    if (s != NULL)
        session_free(s);
    return NULL;
}

void kymo__energy_session_stop(struct kymo__energy_session *s)
{
    const uint64_t deadline = now_ns() + SECOND_NS;
    __atomic_store_n(&s->should_end, true, __ATOMIC_RELAXED);
    ring();
    while (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) == RUNNING && now_ns() < deadline)
        wait_until(&s->state, RUNNING, deadline);
    const pthread_t thread = s->thread;
    pthread_mutex_lock(&s->voice);
    const bool has_ended = s->state == ENDED;
    if (!has_ended)
        s->state = ABANDONED; /* from here on it is the thread's */
    pthread_mutex_unlock(&s->voice);
    if (has_ended) {
        pthread_join(thread, NULL);
        session_free(s);
        return;
    }
    pthread_detach(thread);
    kymo__say("the last reading of energy is missing: NVML did not answer within a second");
}

/* ---- forks ---- */

bool kymo__energy_session_pause(struct kymo__energy_session *s)
{
    const bool is_opening = __atomic_load_n(&s->is_opening, __ATOMIC_RELAXED);
    const uint64_t patience = is_opening ? 2 * SECOND_NS : SECOND_NS / 100;
    const uint64_t until_ns = kymo__clock_ns(CLOCK_REALTIME) + patience;
    const struct timespec until = {(time_t)(until_ns / SECOND_NS), (long)(until_ns % SECOND_NS)};
    return pthread_mutex_timedlock(&s->calls, &until) == 0;
}

void kymo__energy_session_resume(struct kymo__energy_session *s)
{
    pthread_mutex_unlock(&s->calls);
}

void kymo__energy_session_forget(struct kymo__energy_session *s)
{
    /* The lock is the parent's, but it would last for as long as the child has the file open. */
    if (s->lock.fd >= 0)
        close(s->lock.fd);
}
