/*
 * Runs the doctor: finds the directory, makes the trial recording, then adds the findings of each subject to one table.
 */
#include <errno.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "doctor/internal.h"
#include "record/internal.h"

enum { WAIT_MS = 1000, MEASURE_MS = 500, VALUE_BYTES = 3 * PATH_MAX };

/* ---- findings ---- */

static void put_row(struct marey__doctor *doctor, const char *thing, enum marey__state state,
                    const char *advice, double amount, const char *unit, const char *fmt,
                    va_list args)
{
    static const char *const states[] = {"ok", "limited", "missing", "off"};
    char value[VALUE_BYTES];
    vsnprintf(value, sizeof value, fmt, args);
    MAREY__PUT_TEXTS(doctor->table, doctor->subject, thing, states[state], value);
    MAREY__PUT_REALS(doctor->table, isfinite(amount) ? amount : NAN);
    MAREY__PUT_TEXTS(doctor->table, unit, advice);
}

void marey__doctor_add(struct marey__doctor *doctor, const char *thing, enum marey__state state,
                       const char *advice, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    put_row(doctor, thing, state, advice, NAN, NULL, fmt, args);
    va_end(args);
}

void marey__doctor_amount_as(struct marey__doctor *doctor, const char *thing, const char *advice,
                             double amount, const char *unit, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    put_row(doctor, thing, MAREY__STATE_OR_LIMITED(advice), advice, amount, unit, fmt, args);
    va_end(args);
}

static void put_amount(struct marey__buf *value, double amount, const char *unit)
{
    if (!isfinite(amount))
        marey__buf_puts(value, "unknown");
    else if (strcmp(unit, "Hz") == 0)
        marey__buf_printf(value, "%.3f GHz", amount / 1e9);
    else if (strcmp(unit, "ns") == 0 && amount < 100)
        marey__buf_printf(value, "%.*f ns", amount < 10 ? 2 : 1, amount);
    else if (strcmp(unit, "ns") == 0)
        marey__text_duration(value, amount, NULL);
    else if (strcmp(unit, "count") == 0)
        marey__text_real(value, amount);
    else
        marey__text_bytes(value, amount);
    marey__buf_puts(value, strcmp(unit, "bytes/s") == 0 ? "/s" : "");
    marey__buf_put(value, "", 1);
}

void marey__doctor_amount(struct marey__doctor *doctor, const char *thing, const char *advice,
                          double amount, const char *unit)
{
    struct marey__buf value MAREY__FINALLY(marey__buf_fini) = {0};
    put_amount(&value, amount, unit);
    marey__doctor_amount_as(doctor, thing, advice, amount, unit, "%s",
                            value.failed ? "" : value.data);
}

const char *marey__doctor_bytes(double bytes, char into[32])
{
    struct marey__buf value MAREY__FINALLY(marey__buf_fini) = {0};
    put_amount(&value, bytes, "bytes");
    snprintf(into, 32, "%s", value.failed ? "?" : value.data);
    return into;
}

/* ---- where to look ---- */

/* The directory itself, or if it does not exist, the one that it would be created in. */
static void find_directory(const char *path, char *out, size_t size)
{
    struct stat st;
    char real[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (stat(path, &st) == 0 || errno != ENOENT)
        snprintf(out, size, "%s", path);
    else if (slash == NULL)
        snprintf(out, size, ".");
    else
        snprintf(out, size, "%.*s", slash > path ? (int)(slash - path) : 1, path);
    if (realpath(out, real) != NULL)
        snprintf(out, size, "%s", real);
}

/* ---- the whole report ---- */

static const struct {
    const char *name;
    void (*look)(struct marey__doctor *doctor);
} subjects[] = {
    {"clock", marey__doctor_clock},       {"machine", marey__doctor_machine},
    {"files", marey__doctor_files},       {"permissions", marey__doctor_permissions},
    {"nvtx", marey__doctor_nvtx},         {"cuda", marey__doctor_cuda},
    {"energy", marey__doctor_energy},     {"python", marey__doctor_python},
    {"sampling", marey__doctor_sampling}, {"versions", marey__doctor_versions},
    {"build", marey__doctor_build},       {"launcher", marey__doctor_launcher},
};

static void look_at_all(struct marey__doctor *doctor, uint32_t wait_ms)
{
    /* The trial measures, so nothing runs in parallel; writing 64 MiB has extra time. */
    const uint64_t start_ns = marey__clock_ns(CLOCK_MONOTONIC);
    const uint64_t wait_ns = (uint64_t)(wait_ms != 0 ? wait_ms : WAIT_MS) * 1000000u;
    doctor->deadline_ns = start_ns + wait_ns + (doctor->measure ? MEASURE_MS * UINT64_C(1000000) : 0);
    marey__trial_run(doctor);
    marey__pythons_query(doctor);
    const size_t size = MAREY__DOCTOR_MAX_GPUS * sizeof *doctor->gpus;
    void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    doctor->gpus = shared != MAP_FAILED ? shared : NULL;
    for (size_t i = 0; i < MAREY__COUNT_OF(subjects); i++) {
        doctor->subject = subjects[i].name;
        subjects[i].look(doctor);
    }
    if (doctor->gpus != NULL)
        munmap(doctor->gpus, size);
}

marey_status marey_doctor_sized(const struct marey_doctor_options *options, size_t size,
                                marey_table **out)
{
    static const struct marey_column columns[] = {
        MAREY__COLUMN("subject", NULL, TEXT, NONE), MAREY__COLUMN("thing", NULL, TEXT, NONE),
        MAREY__COLUMN("state", NULL, TEXT, NONE),   MAREY__COLUMN("value", NULL, TEXT, NONE),
        MAREY__COLUMN("amount", NULL, F64, NONE),   MAREY__COLUMN("unit", NULL, TEXT, NONE),
        MAREY__COLUMN("advice", NULL, TEXT, NONE),
    };
    struct marey_doctor_options o = {0};
    if (options != NULL)
        memcpy(&o, options, MAREY__MIN(size, sizeof o));
    struct marey__doctor *doctor MAREY__FREED = marey__calloc(1, sizeof *doctor);
    MAREY__TRY_MEMORY(doctor != NULL);
    doctor->measure = o.measure != 0;
    find_directory(o.path != NULL && o.path[0] != '\0' ? o.path : ".", doctor->dir,
                   sizeof doctor->dir);
    MAREY_TRY(marey_table_create("doctor", columns, MAREY__COUNT_OF(columns), &doctor->table));
    look_at_all(doctor, o.wait_ms);
    const marey_status st = marey_table_status(doctor->table);
    if (st == MAREY_OK)
        *out = doctor->table;
    else
        marey_table_destroy(doctor->table);
    return st;
}

int marey_doctor_can_record(const marey_table *findings)
{
    const size_t n = marey_table_n_rows(findings);
    for (size_t row = 0; row < n && marey_table_n_columns(findings) >= 3; row++) {
        const struct marey_cell subject = marey_table_cell(findings, row, 0),
                                thing = marey_table_cell(findings, row, 1),
                                state = marey_table_cell(findings, row, 2);
        if (strcmp(subject.as.text, "files") == 0 && strcmp(thing.as.text, "recording") == 0)
            return strcmp(state.as.text, "ok") == 0;
    }
    return 0;
}
