/*
 * Which GPUs each process may use. A process that measures energy knows the GPUs of its machine; the others only say what
 * CUDA_VISIBLE_DEVICES was, since asking the driver would cost each of them a tenth of a second.
 */
#include <string.h>

#include "energy/energy_internal.h"
#include "read/read_internal.h"

static const char *gpus_of_host(struct kymo__log_file *const *logs, size_t n, const char *host)
{
    for (size_t i = 0; i < n; i++)
        if (logs[i]->gpus != NULL && strcmp(logs[i]->info.host, host) == 0)
            return logs[i]->gpus;
    return NULL;
}

static bool find_devices(struct kymo__log_file *log, const char *text, struct kymo__node_gpu *gpus)
{
    struct kymo__visible_device devices[KYMO__MAX_GPUS];
    struct kymo__buf out = {0};
    const size_t n_gpus = kymo__node_gpus_parse(text, gpus, KYMO__MAX_GPUS);
    if (kymo__visible_is_doubtful(log->visible, log->device_order, gpus, n_gpus))
        return true;
    kymo__visible_put(&out, gpus, devices, kymo__visible_choose(log->visible, gpus, n_gpus, devices));
    const char *kept =
        out.failed ? NULL : kymo__arena_text(&log->texts, out.len > 0 ? out.data : "", out.len);
    if (kept != NULL)
        log->info.devices = kept;
    kymo__buf_fini(&out);
    return kept != NULL;
}

bool kymo__log_devices_find(struct kymo__log_file *const *logs, size_t n)
{
    struct kymo__node_gpu *gpus = NULL;
    bool done = true;
    for (size_t i = 0; i < n && done; i++) {
        const char *text = gpus_of_host(logs, n, logs[i]->info.host);
        if (text == NULL || logs[i]->info.devices[0] != '\0' || logs[i]->info.role[0] != '\0')
            continue;
        if (gpus == NULL)
            gpus = kymo__calloc(KYMO__MAX_GPUS, sizeof *gpus);
        done = gpus != NULL && find_devices(logs[i], text, gpus);
    }
    kymo__free(gpus);
    return done;
}
