/*
 * Finds the GPUs that each process may use. A process that measures energy lists the GPUs of its machine; the others
 * record only CUDA_VISIBLE_DEVICES, because querying the driver would cost each of them a tenth of a second.
 */
#include "instrument/energy/internal.h"
#include "read/internal.h"

/* The logs that list their machine's GPUs, the first of each host. */
struct gpu_sources {
    struct marey__log_file **logs;
    size_t n;
};

static int by_host(const void *a, const void *b)
{
    const struct marey__log_file *x = *(struct marey__log_file *const *)a,
                                 *y = *(struct marey__log_file *const *)b;
    const int order = strcmp(x->info.host, y->info.host);
    return order != 0 ? order : (x->info.index > y->info.index) - (x->info.index < y->info.index);
}

static bool find_sources(struct gpu_sources *sources, struct marey__log_file *const *logs, size_t n)
{
    size_t n_sources = 0;
    for (size_t i = 0; i < n; i++)
        n_sources += logs[i]->gpus != NULL;
    if (n_sources == 0)
        return true;
    sources->logs = marey__calloc(n_sources, sizeof(struct marey__log_file *));
    if (sources->logs == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        if (logs[i]->gpus != NULL)
            sources->logs[sources->n++] = logs[i];
    qsort(sources->logs, sources->n, sizeof(struct marey__log_file *), by_host);
    return true;
}

static const char *gpus_of_host(const struct gpu_sources *sources, const char *host)
{
    size_t at;
    MAREY__BISECT(at, 0, sources->n, strcmp(sources->logs[at]->info.host, host) < 0);
    return at < sources->n && strcmp(sources->logs[at]->info.host, host) == 0
               ? sources->logs[at]->gpus
               : NULL;
}

static bool find_devices(struct marey__log_file *log, const char *text, struct marey__node_gpu *gpus)
{
    struct marey__visible_device devices[MAREY__MAX_GPUS];
    struct marey__buf out MAREY__FINALLY(marey__buf_fini) = {0};
    const size_t n_gpus = marey__node_gpus_parse(text, gpus, MAREY__MAX_GPUS);
    if (marey__visible_is_ambiguous(log->visible, log->device_order, gpus, n_gpus))
        return true;
    marey__visible_put(&out, gpus, devices,
                       marey__visible_choose(log->visible, gpus, n_gpus, devices));
    const char *kept = out.failed ? NULL : marey__log_text(log->texts, out.data, out.len);
    if (kept != NULL)
        log->info.devices = kept;
    return kept != NULL;
}

bool marey__log_devices_find(struct marey__log_file *const *logs, size_t n)
{
    struct gpu_sources sources = {0};
    struct marey__node_gpu *gpus = NULL;
    bool done = find_sources(&sources, logs, n);
    for (size_t i = 0; i < n && done && sources.n != 0; i++) {
        const char *text = gpus_of_host(&sources, logs[i]->info.host);
        if (text == NULL || logs[i]->info.devices[0] != '\0' || logs[i]->info.role[0] != '\0')
            continue;
        if (gpus == NULL)
            gpus = marey__calloc(MAREY__MAX_GPUS, sizeof *gpus);
        done = gpus != NULL && find_devices(logs[i], text, gpus);
    }
    MAREY__FREE_ALL(gpus, sources.logs);
    return done;
}
