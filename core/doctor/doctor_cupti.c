/*
 * CUPTI: whether GPU activity can be traced. Tried as a recording does it, in a child process: CUDA is started first,
 * so that a tool loaded by the driver or the environment subscribes first; then marey subscribes, enables kernel
 * records, and undoes both. No context is created. The few NVIDIA types are declared here.
 */
#include <dlfcn.h>

#include "doctor/internal.h"

enum { KIND_KERNELS = 10, ERROR_TAKEN = 39 };

/* cuptiSubscribe_v2, from CUDA 13.0 on, reports an existing subscriber. */
struct subscriber_params {
    size_t size;
    const char *name;
    char *old_name;
    size_t old_size;
};

typedef void callback(void *ctx, int domain, uint32_t id, const void *info);
typedef struct CUpti_Subscriber_st *subscriber;

struct cupti {
    int (*version)(uint32_t *);
    int (*subscribe)(subscriber *, callback *, void *);
    int (*subscribe_v2)(subscriber *, callback *, void *, struct subscriber_params *);
    int (*unsubscribe)(subscriber);
    int (*enable)(int kind);
    int (*disable)(int kind);
};

static void load_cupti(void *handle, struct cupti *cupti)
{
    *(void **)&cupti->version = dlsym(handle, "cuptiGetVersion");
    *(void **)&cupti->subscribe = dlsym(handle, "cuptiSubscribe");
    *(void **)&cupti->subscribe_v2 = dlsym(handle, "cuptiSubscribe_v2");
    *(void **)&cupti->unsubscribe = dlsym(handle, "cuptiUnsubscribe");
    *(void **)&cupti->enable = dlsym(handle, "cuptiActivityEnable");
    *(void **)&cupti->disable = dlsym(handle, "cuptiActivityDisable");
}

void marey__cupti_ask_version(const struct marey__doctor *doctor, void *handle, int fd)
{
    struct cupti cupti;
    uint32_t number = 0;
    (void)doctor;
    load_cupti(handle, &cupti);
    if (cupti.version != NULL && cupti.version(&number) == 0 && number > 0)
        dprintf(fd, "value=API version %u\n", number);
    else
        dprintf(fd, "limited=it does not report its version\n");
}

/* ---- in the child ---- */

static void ignore(void *ctx, int domain, uint32_t id, const void *info)
{
    (void)ctx;
    (void)domain;
    (void)id;
    (void)info;
}

static int subscribe(const struct cupti *cupti, subscriber *out, struct subscriber_params *params)
{
    if (cupti->subscribe_v2 != NULL)
        return cupti->subscribe_v2(out, ignore, NULL, params);
    return cupti->subscribe(out, ignore, NULL);
}

/* Starts CUDA as the program would. False if there is no driver or it does not start; then nothing can be traced. */
static bool start_cuda(const struct marey__doctor *doctor, int fd)
{
    int (*init)(unsigned) = NULL;
    void *driver = marey__library_open(doctor, MAREY__LIBRARY_DRIVER);
    if (driver != NULL)
        *(void **)&init = dlsym(driver, "cuInit");
    if (init == NULL) {
        dprintf(fd, "off=there is no driver here\n");
        return false;
    }
    const int error = init(0);
    if (error != 0)
        dprintf(fd, "off=CUDA does not start (error %d)\n", error);
    return error == 0;
}

int marey__cupti_try(void *ctx, int fd)
{
    const struct marey__doctor *doctor = ctx;
    struct cupti cupti;
    subscriber handle = NULL;
    char incumbent[128] = "";
    struct subscriber_params params = {
        .size = sizeof params, .name = "marey", .old_name = incumbent, .old_size = sizeof incumbent};
    if (!start_cuda(doctor, fd))
        return 0;
    void *library = marey__library_open(doctor, MAREY__LIBRARY_CUPTI);
    if (library == NULL) {
        dprintf(fd, "off=there is no CUPTI here\n");
        return 0;
    }
    load_cupti(library, &cupti);
    if ((cupti.subscribe == NULL && cupti.subscribe_v2 == NULL) || cupti.enable == NULL) {
        dprintf(fd, "old=1\n");
        return 0;
    }
    int error = subscribe(&cupti, &handle, &params);
    incumbent[sizeof incumbent - 1] = '\0';
    dprintf(fd, "incumbent=%s\n", incumbent);
    if (error == 0) {
        error = cupti.enable(KIND_KERNELS);
        if (error == 0 && cupti.disable != NULL)
            cupti.disable(KIND_KERNELS);
        if (cupti.unsubscribe != NULL)
            cupti.unsubscribe(handle);
    }
    dprintf(fd, "result=%d\n", error);
    return 0;
}

/* ---- in the parent ---- */

static const struct marey__known_error failures[] = {
    {15, "CUPTI does not start", "install the CUPTI of the driver's CUDA version, or a newer driver"},
    {33, "this virtual GPU allows no tracing",
     "ask the administrator of the hypervisor for profiling rights"},
    {35, "the driver keeps tracing to administrators",
     "as root: echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' > "
     "/etc/modprobe.d/marey.conf, and restart; in a container also docker run --cap-add=SYS_ADMIN"},
    {38, "this CUPTI does not know this GPU", "install the CUPTI of a newer CUDA"},
    {ERROR_TAKEN, "another tool traces programs that are started here",
     "record without that tool (nsys, ncu, a debugger), or without --gpu and import its trace"},
    {40, "this virtual GPU keeps tracing to administrators",
     "ask the administrator of the hypervisor for profiling rights"},
    {41, "the GPU computes confidentially, and then allows no tracing",
     "switch confidential computing off, or record without --gpu"},
    {42, "this GPU is of a kind that allows no tracing", "record without --gpu"},
    {43, "a share of a GPU (MIG) allows no tracing with this driver",
     "install a newer driver, or use a whole GPU"},
    {45, "WSL allows no tracing with this driver", "install a newer driver for Windows"},
};

static void report_failure(struct marey__doctor *doctor, const struct marey__probe *probe,
                           uint64_t code)
{
    char incumbent[128] = "";
    const struct marey__known_error *const known = MAREY__KNOWN_ERROR(failures, code);
    MAREY__PROBE_FIELD(probe, "incumbent", incumbent);
    const bool has_name = code == ERROR_TAKEN && incumbent[0] != '\0';
    if (known != NULL)
        marey__doctor_missing(doctor, "GPU tracing", known->advice, "%s%s%s (CUPTI's error %d)",
                              known->what, has_name ? ": " : "", has_name ? incumbent : "",
                              (int)code);
    else
        marey__doctor_missing(
            doctor, "GPU tracing",
            "look the number up in CUPTI's manual; marey records all but the GPU's work",
            "refused with CUPTI's error %llu", (unsigned long long)code);
}

void marey__cupti_report(struct marey__doctor *doctor, const struct marey__probe *probe)
{
    char value[128], trouble[128];
    uint64_t code = UINT64_MAX;
    const char *reason = marey__probe_trouble(probe, trouble, sizeof trouble);
    if (MAREY__PROBE_FIELD(probe, "off", value))
        marey__doctor_off(doctor, "GPU tracing", "not tried: %s", value);
    else if (MAREY__PROBE_FIELD(probe, "old", value))
        marey__doctor_missing(doctor, "GPU tracing", "install the CUPTI of CUDA 12.0 or later",
                              "this CUPTI has no subscriptions");
    else if (marey__probe_number(probe, "result", &code) && code != 0)
        report_failure(doctor, probe, code);
    else if (reason != NULL)
        marey__doctor_limited(
            doctor, "GPU tracing",
            "try again with --wait 10; if it fails again, reinstall matching driver and CUPTI",
            "tried in a child process: %s", reason);
    else if (code == 0)
        marey__doctor_ok(doctor, "GPU tracing",
                         "tried: CUPTI takes marey's subscription, and gives records of kernels");
    else
        marey__doctor_limited(doctor, "GPU tracing", "try again with --wait 10",
                              "it was tried, and said nothing");
}
