/* What the figures of a run depend on besides the program: CPU, clocks, GPU, kernel, load. */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "record/internal.h"

/* The value of "name : value" in such a file, "" if missing. Searches the first `size` bytes. */
static void read_field(const char *path, const char *name, char *out, size_t size)
{
    char text[4096];
    out[0] = '\0';
    marey__read_text(path, text, sizeof text);
    const size_t len = strlen(name);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *colon = strchr(line, ':');
        if (colon == NULL || strncmp(line, name, len) != 0 ||
            strspn(line + len, " \t") != (size_t)(colon - line) - len)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(out, size, "%.*s", (int)strcspn(colon, "\n"), colon);
        return;
    }
}

static void put_cpus(struct marey__buf *texts)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        marey__texts_printf(texts, MAREY__KEY_CPUS, "%d", CPU_COUNT(&set));
}

/* Each model once, in the order of the folders; from the driver's files, so that no library is needed. */
static void put_gpus(struct marey__buf *texts)
{
    static const char folder[] = "/proc/driver/nvidia/gpus";
    char path[512], model[128], all[512] = "";
    size_t len = 0;
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s/information", folder, entry->d_name);
        read_field(path, "Model", model, sizeof model);
        if (model[0] != '\0' && strstr(all, model) == NULL && len + strlen(model) + 3 < sizeof all)
            marey__append(all, sizeof all, &len, "%s%s", len > 0 ? ", " : "", model);
    }
    closedir(dir);
    marey__texts_put(texts, MAREY__KEY_GPU, all);
}

static void put_load(struct marey__buf *texts)
{
    double load;
    if (getloadavg(&load, 1) == 1)
        marey__texts_printf(texts, MAREY__KEY_LOAD, "%d", (int)(load * 100));
}

void marey__machine_describe_devices(struct marey__buf *texts)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES"), *order = getenv("CUDA_DEVICE_ORDER");
    if (visible != NULL) /* "" means no device */
        marey__texts_put(texts, MAREY__KEY_VISIBLE, visible);
    if (order != NULL)
        marey__texts_put(texts, MAREY__KEY_DEVICE_ORDER, order);
}

void marey__machine_describe(struct marey__buf *texts)
{
    char text[128];
    struct utsname names;
    read_field("/proc/cpuinfo", "model name", text, sizeof text);
    marey__texts_put(texts, MAREY__KEY_CPU, text);
    put_cpus(texts);
    marey__read_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", text, sizeof text);
    text[strcspn(text, "\n")] = '\0';
    marey__texts_put(texts, MAREY__KEY_GOVERNOR, text);
    if (uname(&names) == 0)
        marey__texts_put(texts, MAREY__KEY_KERNEL, names.release);
    put_gpus(texts);
    put_load(texts);
}
