/*
 * marey/doctor.h: check which measurements this machine supports, their resolution and cost, and what is missing
 * (libmarey-tools).
 *
 * The result is a table of findings. Checks try the real operation where possible: they write and remove a recording, read
 * memory of another process, load and query the CUDA libraries, and read counters until their update period is known.
 * Foreign code (libraries, interpreters) runs in child processes, which may crash or hang without harm. The checks create
 * no CUDA context, work offline, and write only a temporary folder in `path`. They take well under a second, and little
 * more than `wait_ms` when something hangs.
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

MAREY_BEGIN_C

/* Zero means the default for every field. */
struct marey_doctor_options {
    const char *path; /* the intended recording: a directory, or a name in one; NULL: the current directory */
    uint32_t measure; /* non-zero: also measure the write speed there: up to 64 MiB, at most 0.3 s */
    uint32_t wait_ms; /* timeout for all libraries and interpreters together; 0: 1000. CUDA has 3 s more */
};

/*
 * Run all checks. `options` lent, may be NULL. The caller destroys `*out`. Its columns:
 *   subject  clock, machine, files, permissions, nvtx, cuda, energy, python, sampling, versions, build, launcher; grouped
 *   thing    the item checked, unique in its subject
 *   state    "ok"; "limited": works with restrictions; "missing": absent or refused; "off": present but not enabled, or
 *            nothing to check
 *   value    the result, for people
 *   amount   the result as a number; else null
 *   unit     of the amount: "ns", "Hz", "bytes", "bytes/s", "count"; null: none
 *   advice   one sentence on what to do; null: nothing to do
 * Fails only on MAREY_ENOMEM; other problems are findings. Forks, so the caller may get SIGCHLD. Does not affect an open
 * recording of this process.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_doctor_sized(const struct marey_doctor_options *options,
                                                            size_t size, marey_table **out);
static inline MAREY_WARN_UNUSED marey_status marey_doctor(const struct marey_doctor_options *options,
                                                          marey_table **out)
{
    return marey_doctor_sized(options, sizeof *options, out);
}

/* Returns 1 if a recording can be written to the checked directory, else 0. */
MAREY_API int marey_doctor_can_record(const marey_table *findings);

/* Print findings by subject, each with its advice below. Uses width and color of `options`; NULL: none. */
MAREY_API marey_status marey_doctor_text(const marey_table *findings,
                                         const struct marey_text_options *options, FILE *out);

/* One object: "version", "abi", "can_record", "findings" (a list of objects; keys are the columns above). */
MAREY_API marey_status marey_doctor_json(const marey_table *findings, FILE *out);

/*
 * The folder whose sitecustomize.py loads marey into any Python, and the parent folder of the package: from $MAREY_BOOT,
 * else relative to libmarey. "": not found. Both are buffers of PATH_MAX bytes.
 */
MAREY_API void marey_python_boot(char *boot, char *package_parent);

MAREY_END_C
#endif
