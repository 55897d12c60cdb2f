/*
 * What there is to measure: the zones of RAPL, and of the machine's GPUs those that a process waiting for the
 * recording may use. All of it in the thread, under the lock that keeps forks away.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "instrument/energy/internal.h"

/* ---- in words ---- */

static void describe(struct marey__energy_session *s)
{
    struct marey__buf sources = {0};
    uint64_t period_ns[MAREY__N_PACED];
    for (enum marey__due_kind kind = 0; kind < MAREY__N_PACED; kind++)
        period_ns[kind] = marey__pace_plan(s, kind);
    for (size_t i = 0; i < s->n_gpus; i++)
        marey__energy_gpu_describe(&s->gpus[i], period_ns, &sources);
    for (size_t i = 0; i < s->n_zones; i++)
        marey__zone_describe(&s->zones[i], &sources);
    if (sources.len > 0)
        sources.len--; /* the last newline */
    marey__energy_put_text(MAREY__KEY_ENERGY_SOURCES, &sources);
}

static void describe_node(struct marey__energy_session *s)
{
    struct marey__buf text = {0};
    struct marey__visible_device devices[MAREY__MAX_GPUS];
    const char *visible = getenv("CUDA_VISIBLE_DEVICES"), *order = getenv("CUDA_DEVICE_ORDER");
    marey__node_gpus_put(&text, s->nodes, s->n_nodes);
    marey__energy_put_text(MAREY__KEY_GPUS, &text);
    if (s->settings.role != NULL || marey__visible_is_doubtful(visible, order, s->nodes, s->n_nodes))
        return;
    const size_t n = marey__visible_choose(visible, s->nodes, s->n_nodes, devices);
    marey__visible_put(&text, s->nodes, devices, n);
    marey__energy_put_text(MAREY__KEY_DEVICES, &text);
}

/* ---- GPUs ---- */

static void look_for_slices(struct marey__energy_session *s, size_t i)
{
    const struct marey__nvml *const nvml = &s->nvml;
    struct marey__node_gpu *const node = &s->nodes[i];
    unsigned is_on = 0, later = 0, n = 0;
    if (nvml->mig_mode == NULL || nvml->mig_count == NULL || nvml->mig_by_index == NULL ||
        nvml->mig_mode(s->devices[i], &is_on, &later) != 0 || !is_on ||
        nvml->mig_count(s->devices[i], &n) != 0)
        return;
    for (unsigned m = 0; m < n && node->n_slices < MAREY__MAX_SLICES; m++) {
        marey__nvml_device slice;
        char *const uuid = node->slices[node->n_slices];
        if (nvml->mig_by_index(s->devices[i], m, &slice) == 0 &&
            nvml->uuid(slice, uuid, MAREY__UUID_MAX) == 0 && uuid[0] != '\0')
            node->n_slices++;
        uuid[MAREY__UUID_MAX - 1] = '\0';
    }
}

/* Each GPU that can be asked at all; the others leave their number free, for CUDA counts them too. */
static void look_at_node(struct marey__energy_session *s, size_t i)
{
    struct marey__node_gpu *const node = &s->nodes[i];
    int error = s->nvml.by_index((unsigned)i, &s->devices[i]);
    if (error == 0)
        error = s->nvml.uuid(s->devices[i], node->uuid, sizeof node->uuid);
    node->uuid[sizeof node->uuid - 1] = '\0';
    if (error != 0 || node->uuid[0] == '\0') {
        node->uuid[0] = '\0';
        marey__energy_tell("GPU %zu is not measured: NVML says \"%s\" (error %d)", i,
                           marey__nvml_words(&s->nvml, error), error);
        return;
    }
    if (s->nvml.name == NULL || s->nvml.name(s->devices[i], node->model, sizeof node->model) != 0)
        snprintf(node->model, sizeof node->model, "without a name");
    node->model[sizeof node->model - 1] = '\0';
    s->n_asked++;
    look_for_slices(s, i);
}

static bool make_room(struct marey__energy_session *s, unsigned n)
{
    s->n_nodes = MAREY__MIN(n, (unsigned)MAREY__MAX_GPUS);
    s->nodes = marey__calloc(s->n_nodes, sizeof *s->nodes);
    s->devices = marey__calloc(s->n_nodes, sizeof *s->devices);
    s->gpus = marey__calloc(s->n_nodes, sizeof *s->gpus);
    if (s->nodes != NULL && s->devices != NULL && s->gpus != NULL)
        return true;
    s->n_nodes = 0;
    return false;
}

static void open_nvml(struct marey__energy_session *s)
{
    unsigned n = 0;
    if (marey__nvml_open(&s->nvml) != MAREY_OK) {
        marey__energy_tell("%s", marey_last_error());
        return;
    }
    s->has_nvml = true;
    marey__energy_stop_at_exit();
    const int error = s->nvml.count(&n);
    if (error != 0)
        marey__energy_tell("the energy of GPUs is not measured: NVML says \"%s\" (error %d)",
                           marey__nvml_words(&s->nvml, error), error);
    else if (n == 0)
        marey__energy_tell("the energy of GPUs is not measured: NVML sees no GPU");
    else if (!make_room(s, n))
        marey__energy_tell("the energy of GPUs is not measured: no memory");
    for (size_t i = 0; i < s->n_nodes; i++)
        look_at_node(s, i);
    if (s->n_nodes > 0)
        describe_node(s);
}

static void add_gpu(struct marey__energy_session *s, const struct marey__visible_device *device)
{
    const struct marey__node_gpu *const node = &s->nodes[device->gpu];
    for (size_t i = 0; i < s->n_gpus; i++)
        if (s->gpus[i].node == node)
            return;
    if (node->uuid[0] == '\0')
        return;
    struct marey__energy_gpu *const gpu = &s->gpus[s->n_gpus++];
    marey__energy_gpu_init(gpu, &s->nvml, s->devices[device->gpu], node, device->gpu);
    if (device->slice >= 0)
        marey__energy_tell("%s is a slice of GPU %" PRIu32
                           " (%s): its power and energy are those of "
                           "the whole GPU",
                           node->slices[device->slice], device->gpu, node->uuid);
    marey__energy_read_first(s, gpu);
}

/* Add the GPUs that one process may use; `visible` NULL: all. */
static void add_visible(struct marey__energy_session *s, const char *visible)
{
    struct marey__visible_device devices[MAREY__MAX_GPUS];
    if (marey__visible_is_doubtful(visible, getenv("CUDA_DEVICE_ORDER"), s->nodes, s->n_nodes) &&
        visible != NULL) {
        marey__energy_tell(
            "CUDA_VISIBLE_DEVICES=%s may mean other GPUs than NVML's numbers, as there "
            "are several models: all are measured; set CUDA_DEVICE_ORDER=PCI_BUS_ID",
            visible);
        visible = NULL;
    }
    const size_t n = marey__visible_choose(visible, s->nodes, s->n_nodes, devices);
    for (size_t i = 0; i < n; i++)
        add_gpu(s, &devices[i]);
}

/* GPUs of all waiting processes, or of those that came since the last call. */
void marey__energy_sources_add(struct marey__energy_session *s)
{
    char line[4200];
    bool is_set;
    const size_t n_before = s->n_gpus;
    while (s->n_nodes > 0 &&
           marey__energy_lock_next(&s->lock, &s->lock_at, line, sizeof line, &is_set))
        add_visible(s, is_set ? line : NULL);
    if (s->n_gpus > n_before)
        describe(s);
}

/* ---- begin and end ---- */

void marey__energy_sources_open(struct marey__energy_session *s)
{
    pthread_mutex_lock(&s->calls);
    __atomic_store_n(&s->is_opening, true, __ATOMIC_RELAXED);
    s->n_zones = marey__zones_open(s->zones);
    marey__energy_read_zones(s);
    open_nvml(s);
    __atomic_store_n(&s->is_opening, false, __ATOMIC_RELAXED);
    if (s->lock.file.fd >= 0)
        marey__energy_sources_add(s); /* our own is among them */
    else if (s->n_nodes > 0)
        add_visible(s, getenv("CUDA_VISIBLE_DEVICES"));
    pthread_mutex_unlock(&s->calls);
    if (s->n_asked > 0 && s->n_gpus == 0)
        marey__energy_tell("no GPU is measured: CUDA_VISIBLE_DEVICES leaves the program none");
    marey__energy_write(s, false);
    describe(s);
}

/* What is dear is not read again when that was just done, as at the end of an epoch. */
static void read_last(struct marey__energy_session *s, enum marey__due_kind kind)
{
    const uint64_t now = marey__energy_now_ns();
    if (!marey__pace_is_dear(&s->due[kind]) || now >= s->due[kind].read_ns + MAREY__SECOND_NS)
        marey__energy_read_paced(s, kind, now);
}

void marey__energy_sources_close(struct marey__energy_session *s)
{
    struct marey__buf cpu = {0};
    marey__energy_read_zones(s);
    marey__energy_read_all(s, marey__energy_ring_read);
    marey__energy_read_all(s, marey__energy_read_power);
    read_last(s, MAREY__DUE_COUNT);
    read_last(s, MAREY__DUE_UTILIZATION);
    read_last(s, MAREY__DUE_GPM);
    marey__energy_write(s, true);
    describe(s);
    marey__buf_printf(&cpu, "%" PRIu64, marey__clock_ns(CLOCK_THREAD_CPUTIME_ID) - s->cpu_ns);
    marey__energy_put_text(MAREY__KEY_ENERGY_CPU, &cpu);
    pthread_mutex_lock(&s->calls);
    for (size_t i = 0; i < s->n_gpus; i++)
        marey__energy_gpu_fini(&s->gpus[i]);
    if (s->has_nvml)
        marey__nvml_close(&s->nvml);
    pthread_mutex_unlock(&s->calls);
}
