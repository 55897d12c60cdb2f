/*
 * marey/doctor.h: what can be measured on this machine, how finely, at what cost, and what is missing (libmarey-tools).
 *
 * The answer is a table of findings. Nothing is guessed that can be tried: a recording is made and removed again, memory
 * of another process is read, libraries of CUDA are opened and asked, counters are read until their period shows. What
 * belongs to others (libraries, interpreters) is tried in child processes that may crash or hang without harm. No CUDA
 * context is made, no network is used, and nothing is written but a temporary folder in the directory asked about. It
 * takes well under a second, and little more than `wait_ms` when something hangs.
 *
 *     marey_table *findings;
 *     if (marey_doctor(NULL, &findings) == MAREY_OK) {
 *         marey_doctor_text(findings, NULL, stdout);
 *         marey_table_destroy(findings);
 *     }
 */
#ifndef MAREY_DOCTOR_H
#define MAREY_DOCTOR_H

#include <marey/report.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means the default for every field. */
struct marey_doctor_options {
    const char *path; /* where a recording shall go: a directory, or a name in one; NULL: the current directory */
    uint32_t measure; /* non-zero: also write up to 64 MiB there, for 0.3 s at most, and tell how fast that went */
    uint32_t wait_ms; /* how long libraries and interpreters, all together, may take to answer; 0: 1000. CUDA has 3 s more */
};

/*
 * Look at everything. `options` lent, may be NULL. `*out` is the caller's; its columns:
 *   subject  clock, machine, files, permissions, nvtx, cuda, energy, python, sampling, versions, build, launcher; rows of one stand together
 *   thing    what was looked at, unique in its subject
 *   state    "ok"; "limited": it works, and not as well as it could; "missing": not there, or refused; "off": there
 *            and not switched on, or nothing to look at
 *   value    what was found, for people
 *   amount   the same as a number, where it is one; else null
 *   unit     of the amount: "ns", "Hz", "bytes", "bytes/s", "count"; null without one
 *   advice   one sentence on what to do; null where there is nothing to do
 * MAREY_ENOMEM is the only failure of note: what goes wrong elsewhere is a finding. Forks; so call it from a thread
 * that may, and expect SIGCHLD. A recording that is open in this process goes on undisturbed.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_doctor_sized(const struct marey_doctor_options *options,
                                                            size_t size, marey_table **out);
static inline MAREY_WARN_UNUSED marey_status marey_doctor(const struct marey_doctor_options *options,
                                                          marey_table **out)
{
    return marey_doctor_sized(options, sizeof *options, out);
}

/* 1 when a recording could be made in the directory asked about, else 0. */
MAREY_API int marey_doctor_can_record(const marey_table *findings);

/* Findings for people, by subject, advice below what it is about. Of `options`, width and color are used; NULL: none. */
MAREY_API marey_status marey_doctor_text(const marey_table *findings,
                                         const struct marey_text_options *options, FILE *out);

/* One object: "version", "abi", "can_record", "findings", a list of objects whose keys are the columns above. */
MAREY_API marey_status marey_doctor_json(const marey_table *findings, FILE *out);

/*
 * The folder whose sitecustomize.py takes marey into any Python, and the folder that holds the package beside it: $MAREY_BOOT,
 * else found from libmarey's own place. Each is "" when there is none. Both PATH_MAX bytes long, the caller's.
 */
MAREY_API void marey_python_boot(char *boot, char *package_parent);

#ifdef __cplusplus
}
#endif
#endif
