/*
 * What there is to measure: the zones of RAPL, and of the machine's GPUs those that somebody who stands in line for the
 * recording may use. All of it in the thread, under the lock that keeps forks away.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "energy/energy_session.h"

/* ---- in words ---- */

static void describe(struct kymo__energy_session *s)
{
    struct kymo__buf sources = {0};
    const struct kymo__energy_rates rates = {.power_ns = kymo__pace_plan(s, KYMO__DUE_POWER),
                                             .count_ns = kymo__pace_plan(s, KYMO__DUE_COUNT),
                                             .utilization_ns =
                                                 kymo__pace_plan(s, KYMO__DUE_UTILIZATION),
                                             .gpm_ns = kymo__pace_plan(s, KYMO__DUE_GPM),
                                             .state_ns = kymo__pace_plan(s, KYMO__DUE_STATE)};
    for (size_t i = 0; i < s->n_gpus; i++)
        kymo__energy_gpu_describe(&s->gpus[i], &rates, &sources);
    for (size_t i = 0; i < s->n_zones; i++)
        kymo__zone_describe(&s->zones[i], &sources);
    if (sources.len > 0)
        sources.len--; /* the last newline */
    kymo__energy_put_text(KYMO__KEY_ENERGY_SOURCES, &sources);
}

static void describe_node(struct kymo__energy_session *s)
{
    struct kymo__buf text = {0};
    struct kymo__visible_device devices[KYMO__MAX_GPUS];
    const char *visible = getenv("CUDA_VISIBLE_DEVICES"), *order = getenv("CUDA_DEVICE_ORDER");
    kymo__node_gpus_put(&text, s->nodes, s->n_nodes);
    kymo__energy_put_text(KYMO__KEY_GPUS, &text);
    if (s->settings.role != NULL || kymo__visible_is_doubtful(visible, order, s->nodes, s->n_nodes))
        return;
    const size_t n = kymo__visible_choose(visible, s->nodes, s->n_nodes, devices);
    kymo__visible_put(&text, s->nodes, devices, n);
    kymo__energy_put_text(KYMO__KEY_DEVICES, &text);
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
    kymo__energy_read_first(s, gpu);
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
void kymo__energy_sources_add(struct kymo__energy_session *s)
{
    char line[4200];
    bool is_set;
    const size_t n_before = s->n_gpus;
    while (s->n_nodes > 0 && kymo__energy_lock_next(&s->lock, &s->lock_at, line, sizeof line, &is_set))
        add_visible(s, is_set ? line : NULL);
    if (s->n_gpus > n_before)
        describe(s);
}

/* ---- begin and end ---- */

void kymo__energy_sources_open(struct kymo__energy_session *s)
{
    pthread_mutex_lock(&s->calls);
    __atomic_store_n(&s->is_opening, true, __ATOMIC_RELAXED);
    s->n_zones = kymo__zones_open(s->zones);
    kymo__energy_read_zones(s);
    open_nvml(s);
    __atomic_store_n(&s->is_opening, false, __ATOMIC_RELAXED);
    if (s->lock.file.fd >= 0)
        kymo__energy_sources_add(s); /* our own is among them */
    else if (s->n_nodes > 0)
        add_visible(s, getenv("CUDA_VISIBLE_DEVICES"));
    pthread_mutex_unlock(&s->calls);
    if (s->n_asked > 0 && s->n_gpus == 0)
        kymo__energy_tell("no GPU is measured: CUDA_VISIBLE_DEVICES leaves the program none");
    kymo__energy_write(s, false);
    describe(s);
}

/* What is dear is not read again when that was just done, as at the end of an epoch. */
static void read_last(struct kymo__energy_session *s, enum kymo__due_kind kind)
{
    const uint64_t now = kymo__energy_now_ns();
    if (!kymo__pace_is_dear(&s->due[kind]) || now >= s->due[kind].read_ns + KYMO__SECOND_NS)
        kymo__energy_read_paced(s, kind, now);
}

void kymo__energy_sources_close(struct kymo__energy_session *s)
{
    struct kymo__buf cpu = {0};
    kymo__energy_read_zones(s);
    kymo__energy_read_all(s, kymo__energy_ring_read);
    kymo__energy_read_all(s, kymo__energy_read_power);
    read_last(s, KYMO__DUE_COUNT);
    read_last(s, KYMO__DUE_UTILIZATION);
    read_last(s, KYMO__DUE_GPM);
    kymo__energy_write(s, true);
    describe(s);
    kymo__buf_printf(&cpu, "%" PRIu64, kymo__clock_ns(CLOCK_THREAD_CPUTIME_ID) - s->cpu_ns);
    kymo__energy_put_text(KYMO__KEY_ENERGY_CPU, &cpu);
    pthread_mutex_lock(&s->calls);
    for (size_t i = 0; i < s->n_gpus; i++)
        kymo__energy_gpu_fini(&s->gpus[i]);
    if (s->has_nvml)
        kymo__nvml_close(&s->nvml);
    pthread_mutex_unlock(&s->calls);
}
