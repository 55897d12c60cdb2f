/* The recording's location: can it be created, does its pool survive a kill, how much space is free. */
#include <errno.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "doctor/internal.h"
#include "record/internal.h"

enum { MOUNTS_BYTES = 1 << 20 };

static bool find_mount(const char *path, struct marey__mount *out)
{
    char *text MAREY__FREED = marey__alloc(MOUNTS_BYTES);
    if (text == NULL)
        return false;
    const size_t len = marey__read_text("/proc/self/mounts", text, MOUNTS_BYTES);
    return marey__parse_mount(text, len, path, out);
}

static void report_directory(struct marey__doctor *doctor, const char *type)
{
    if (access(doctor->dir, F_OK) != 0)
        marey__doctor_missing(doctor, "directory",
                              "create it, or choose another one with 'marey run -o'", "%s: %s",
                              doctor->dir, strerror(errno));
    else if (access(doctor->dir, W_OK | X_OK) != 0)
        marey__doctor_missing(doctor, "directory",
                              "make it writable for you, or choose another one with 'marey run -o'",
                              "%s: %s", doctor->dir, strerror(errno));
    else
        marey__doctor_ok(doctor, "directory", "%s (%s)", doctor->dir, type);
}

static void report_recording(struct marey__doctor *doctor)
{
    const struct marey__trial *trial = &doctor->trial;
    if (trial->is_fine)
        marey__doctor_ok(doctor, "recording", "one was made there, read and removed");
    else
        marey__doctor_missing(
            doctor, "recording",
            "fix what the message names, or choose another directory with 'marey run -o'", "%s",
            trial->error[0] != '\0' ? trial->error : "it failed without a message");
}

static void report_pool(struct marey__doctor *doctor, const char *type)
{
    const struct marey__trial *trial = &doctor->trial;
    if (!trial->is_fine)
        marey__doctor_off(doctor, "pool", "not tried, as no recording can be made");
    else if (strcmp(trial->pool, "directory") == 0)
        marey__doctor_ok(doctor, "pool", "kill-safe: in the recording's directory (%s)", type);
    else if (trial->pool[0] != '\0')
        marey__doctor_ok(
            doctor, "pool",
            "kill-safe: in %s, because %s cannot promise that a store into a file succeeds",
            trial->pool, type);
    else
        marey__doctor_limited(
            doctor, "pool",
            "record onto a local disk (ext4, xfs) or give /dev/shm room, and leave pool_in=auto",
            "plain memory: what is not yet written is lost by kill -9");
}

static void report_room(struct marey__doctor *doctor)
{
    enum { LITTLE_MB = 500 };
    struct statvfs fs;
    if (statvfs(doctor->dir, &fs) != 0) {
        marey__doctor_missing(doctor, "free space", NULL, "unknown: %s", strerror(errno));
        return;
    }
    const double bytes = (double)fs.f_bavail * (double)fs.f_frsize;
    const bool is_little = bytes < LITTLE_MB * 1e6;
    marey__doctor_amount(
        doctor, "free space",
        is_little ? "free some space, or record elsewhere: a process may write a tenth of it" : NULL,
        bytes, "bytes");
    marey__doctor_amount(doctor, "disk budget", NULL,
                         (double)marey__record_disk_budget(doctor->dir), "bytes");
}

static void report_shm(struct marey__doctor *doctor)
{
    enum { LITTLE_MIB = 64 };
    struct marey__mount mount;
    struct statvfs fs;
    char words[2][32];
    if (!find_mount("/dev/shm", &mount) || strcmp(mount.point, "/dev/shm") != 0 ||
        statvfs("/dev/shm", &fs) != 0) {
        marey__doctor_missing(
            doctor, "/dev/shm",
            "mount a tmpfs there; it holds the pool where the recording's file system cannot",
            "not mounted");
        return;
    }
    const double size = (double)fs.f_blocks * (double)fs.f_frsize;
    const double left = (double)fs.f_bavail * (double)fs.f_frsize;
    const bool can_write = access("/dev/shm", W_OK) == 0;
    const bool is_little = left < (double)(LITTLE_MIB + 1) * 1048576;
    const char *advice = !can_write ? "make it writable: mode 1777 is usual"
                         : is_little
                             ? "give it more: docker run --shm-size=1g, or remount it with size=1g"
                             : NULL;
    marey__doctor_amount_as(doctor, "/dev/shm", advice, left, "bytes", "%s, %s free%s%s",
                            marey__doctor_bytes(size, words[0]),
                            marey__doctor_bytes(left, words[1]), can_write ? "" : ", not writable",
                            marey__mount_has(&mount, "noexec") ? ", noexec (which does no harm)"
                                                               : "");
}

static void report_writing(struct marey__doctor *doctor)
{
    if (!doctor->measure)
        marey__doctor_off(doctor, "write speed", "measured when asked for (--measure)");
    else if (doctor->trial.write_bytes_per_s > 0)
        marey__doctor_amount(doctor, "write speed", NULL, doctor->trial.write_bytes_per_s, "bytes/s");
    else
        marey__doctor_missing(doctor, "write speed", "see 'directory' and 'free space' above",
                              "nothing could be written");
}

void marey__doctor_files(struct marey__doctor *doctor)
{
    struct marey__mount mount = {0};
    const char *type = find_mount(doctor->dir, &mount) ? mount.type : "unknown file system";
    report_directory(doctor, type);
    report_recording(doctor);
    report_pool(doctor, type);
    report_room(doctor);
    report_shm(doctor);
    report_writing(doctor);
}
