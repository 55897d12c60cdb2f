/*
 * CPU energy: the kernel exposes the RAPL counters of Intel and AMD as files of microjoules. Since 2020 they are
 * readable only by root by default. We read packages and their DRAM; cores and graphics are included in a package.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "instrument/energy/internal.h"

bool marey__zone_number(const char *text, size_t len, uint64_t *out)
{
    size_t n_digits = 0;
    while (n_digits < len && text[n_digits] >= '0' && text[n_digits] <= '9')
        n_digits++;
    const bool is_alone = n_digits == len || (n_digits + 1 == len && text[n_digits] == '\n');
    return is_alone && marey__parse_number(text, len, out);
}

/* Exactly "package-12". */
static bool is_package(const char *name)
{
    const char *digits = name + strlen("package-");
    return strncmp(name, "package-", strlen("package-")) == 0 && digits[0] != '\0' &&
           strlen(digits) < 6 && strspn(digits, "0123456789") == strlen(digits);
}

bool marey__zone_device(const char *folder, const char *name, const char *parent_name, char *out,
                        size_t size)
{
    const char *colon = strchr(folder, ':');
    if (strncmp(folder, "intel-rapl:", strlen("intel-rapl:")) != 0)
        return false;
    const bool is_part = strchr(colon + 1, ':') != NULL;
    if (!is_part && is_package(name))
        snprintf(out, size, "%s", name);
    else if (is_part && strcmp(name, "dram") == 0 && is_package(parent_name))
        snprintf(out, size, "%s-dram", parent_name);
    else
        return false;
    return true;
}

static void read_line(const char *root, const char *folder, const char *file, char *out, size_t size)
{
    char path[PATH_MAX];
    out[0] = '\0';
    if (snprintf(path, sizeof path, "%s/%s/%s", root, folder, file) < (int)sizeof path)
        marey__read_text(path, out, size);
    out[strcspn(out, "\n")] = '\0';
}

/* The current counter. False with errno set. */
static bool read_counter(const struct marey__zone *zone, uint64_t *out)
{
    char text[32];
    const int fd = open(zone->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    const ssize_t n = read(fd, text, sizeof text);
    const int error = errno;
    close(fd);
    errno = n < 0 ? error : EINVAL;
    return n > 0 && marey__zone_number(text, (size_t)n, out);
}

static void miss(struct marey__zone *zone)
{
    zone->is_missing = true;
    if (errno == EACCES || errno == EPERM)
        snprintf(zone->why, sizeof zone->why, "no permission");
    else
        snprintf(zone->why, sizeof zone->why, "%s", strerror(errno));
    if (errno == EACCES || errno == EPERM)
        marey__energy_warn("the energy of processors is not measured: no permission to read RAPL's "
                           "energy_uj; run as root, or once: sudo chmod a+r "
                           "/sys/class/powercap/intel-rapl*/energy_uj");
    else
        marey__energy_warn("the energy of %s is not measured: cannot read %s: %s", zone->device,
                           zone->path, zone->why);
}

static void open_zone(struct marey__zone *zone, const char *root, const char *folder)
{
    char text[64], name[96];
    uint64_t value;
    snprintf(zone->path, sizeof zone->path, "%s/%s/energy_uj", root, folder);
    read_line(root, folder, "max_energy_range_uj", text, sizeof text);
    zone->count = (struct marey__count){.unit_j = 1e-6};
    if (marey__zone_number(text, strlen(text), &value))
        zone->count.range = value;
    snprintf(name, sizeof name, "%s energy (J)", zone->device);
    zone->energy_site = marey__energy_site(name, zone->device, "energy");
    snprintf(name, sizeof name, "%s power (W)", zone->device);
    zone->power_site = marey__energy_site(name, zone->device, "power");
    if (!read_counter(zone, &value))
        miss(zone);
}

static bool is_known(const struct marey__zone *zones, size_t n, const char *device)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(zones[i].device, device) == 0)
            return true;
    return false;
}

size_t marey__zones_open(struct marey__zone *zones)
{
    const char *root = getenv("MAREY_POWERCAP_ROOT");
    size_t n = 0;
    if (root == NULL || root[0] == '\0')
        root = "/sys/class/powercap";
    DIR *dir = strlen(root) < PATH_MAX - NAME_MAX - 32 ? opendir(root) : NULL;
    for (const struct dirent *entry;
         dir != NULL && n < MAREY__MAX_ZONES && (entry = readdir(dir)) != NULL;) {
        char name[48], parent[NAME_MAX + 1], parent_name[48] = "";
        snprintf(parent, sizeof parent, "%s", entry->d_name);
        read_line(root, entry->d_name, "name", name, sizeof name);
        char *const last = strrchr(parent, ':');
        if (last != NULL && last != strchr(parent, ':')) {
            *last = '\0';
            read_line(root, parent, "name", parent_name, sizeof parent_name);
        }
        zones[n] = (struct marey__zone){0};
        if (marey__zone_device(entry->d_name, name, parent_name, zones[n].device,
                               sizeof zones[n].device) &&
            !is_known(zones, n, zones[n].device))
            open_zone(&zones[n++], root, entry->d_name);
    }
    if (dir != NULL)
        closedir(dir);
    return n;
}

void marey__zone_read(struct marey__zone *zone, uint64_t now_ns)
{
    const double idle_watts = 1, most_watts = 3000; /* no running package uses less, or more */
    uint64_t value;
    if (zone->is_missing)
        return;
    if (!read_counter(zone, &value)) {
        miss(zone);
        return;
    }
    const double seconds = marey__count_begin(&zone->count, now_ns, idle_watts);
    const double before_j = zone->count.joules;
    const bool was_stuck = zone->count.is_stuck;
    zone->count.most_j = most_watts * seconds;
    const enum marey__counter_event event = marey__count_take(&zone->count, value);
    if (event == MAREY__COUNT_STUCK && !was_stuck)
        marey__energy_warn("the energy counter of %s does not move: its energy is not known",
                           zone->device);
    else if (event == MAREY__COUNT_RESET)
        marey__energy_warn(
            "the energy counter of %s began again: the energy between the two readings "
            "is not known",
            zone->device);
    if (event == MAREY__COUNT_STUCK)
        return;
    marey__energy_put(zone->energy_site, zone->count.joules);
    if (seconds > 0)
        marey__energy_put(zone->power_site, (zone->count.joules - before_j) / seconds);
}

void marey__zone_describe(const struct marey__zone *zone, struct marey__buf *out)
{
    marey__buf_printf(out, "%s|RAPL|", zone->device);
    if (zone->is_missing)
        marey__buf_printf(out, "missing: power (%s), energy (%s)\n", zone->why, zone->why);
    else
        marey__buf_puts(
            out, "energy: energy_uj of powercap, every second and at epochs; power: the mean "
                 "between two such readings; missing: nothing\n");
}
