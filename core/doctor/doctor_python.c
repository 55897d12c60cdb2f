/* Python interpreters on the PATH, which of them have marey, and whether it has the same version; the boot folder. */
#include <unistd.h>

#include "doctor/internal.h"

/* For any Python, even 2, which then reports that it has no marey. Ignores the current directory. */
static const char script[] =
    "import os, sys\n"
    "sys.path = [p for p in sys.path if p]\n"
    "def say(key, value):\n"
    "    sys.stdout.write('%s=%s\\n' % (key, str(value).replace('\\n', ' ')))\n"
    "say('version', '%d.%d.%d' % tuple(sys.version_info[:3]))\n"
    "say('prefix', sys.prefix)\n"
    "sites = [p for p in sys.path if os.path.isdir(os.path.join(p, 'nvidia'))]\n"
    "for i, p in enumerate(sites[:4]):\n"
    "    say('site%d' % i, p)\n"
    "try:\n"
    "    import marey\n"
    "    say('package', os.path.dirname(marey.__file__))\n"
    "    say('library', os.path.join(marey.get_library_dir(), 'libmarey.so.0'))\n"
    "    say('marey', marey.__version__)\n"
    "except Exception:\n"
    "    say('error', sys.exc_info()[1])\n";

/* ---- querying interpreters ---- */

static int ask(void *ctx, int fd)
{
    const struct marey__python *python = ctx;
    /* -B: writes nothing, not even bytecode beside the modules. */
    char *argv[] = {(char *)(uintptr_t)python->path, (char *)(uintptr_t) "-B",
                    (char *)(uintptr_t) "-c", (char *)(uintptr_t)script, NULL};
    return marey__probe_exec(argv, fd);
}

static void take_answer(struct marey__python *python, const struct marey__probe *probe)
{
    marey__probe_trouble(probe, python->trouble, sizeof python->trouble);
    MAREY__PROBE_FIELD(probe, "version", python->version);
    MAREY__PROBE_FIELD(probe, "prefix", python->prefix);
    MAREY__PROBE_FIELD(probe, "marey", python->marey);
    MAREY__PROBE_FIELD(probe, "package", python->package);
    MAREY__PROBE_FIELD(probe, "library", python->library);
    MAREY__PROBE_FIELD(probe, "error", python->error);
    for (int i = 0; i < MAREY__MAX_SITES; i++) {
        char key[16];
        snprintf(key, sizeof key, "site%d", i);
        MAREY__PROBE_FIELD(probe, key, python->sites[i]);
    }
}

void marey__pythons_query(struct marey__doctor *doctor)
{
    static const char *const commands[MAREY__MAX_PYTHONS] = {"python3", "python"};
    struct marey__probe *probes MAREY__FREED = marey__calloc(MAREY__MAX_PYTHONS, sizeof *probes);
    if (probes == NULL)
        return;
    for (size_t i = 0; i < MAREY__MAX_PYTHONS; i++) {
        struct marey__python *python = &doctor->pythons[doctor->n_pythons];
        if (!marey__find_program(commands[i], python->path, sizeof python->path))
            continue;
        snprintf(python->command, sizeof python->command, "%s", commands[i]);
        marey__probe_start(&probes[doctor->n_pythons++], ask, python);
    }
    marey__probe_wait(probes, doctor->n_pythons, doctor->deadline_ns);
    for (size_t i = 0; i < doctor->n_pythons; i++)
        take_answer(&doctor->pythons[i], &probes[i]);
    /* Two names of one interpreter, by a link or a selecting script. */
    const struct marey__python *first = &doctor->pythons[0], *second = &doctor->pythons[1];
    if (doctor->n_pythons == 2 && first->version[0] != '\0' &&
        strcmp(first->version, second->version) == 0 && strcmp(first->prefix, second->prefix) == 0)
        doctor->n_pythons = 1;
}

/* ---- findings ---- */

bool marey__python_is_too_old(const struct marey__python *python)
{
    char *dot, *end;
    const unsigned long major = strtoul(python->version, &dot, 10);
    if (dot == python->version || *dot != '.')
        return false;
    const unsigned long minor = strtoul(dot + 1, &end, 10);
    return end != dot + 1 && (major < 3 || (major == 3 && minor < 10));
}

static void report_python(struct marey__doctor *doctor, const struct marey__python *python)
{
    const char *install =
        marey__python_is_too_old(python)
            ? "use Python 3.10 to 3.13"
            : "install marey into that environment: pip install . in marey's sources";
    if (python->version[0] == '\0')
        marey__doctor_limited(doctor, python->command,
                              "run it by hand; if it only was slow, try again with --wait 10",
                              "%s: %s", python->path,
                              python->trouble[0] != '\0' ? python->trouble : "it said nothing");
    else if (python->marey[0] == '\0')
        marey__doctor_missing(doctor, python->command, install, "%s (%s) cannot import marey: %s",
                              python->path, python->version,
                              python->error[0] != '\0' ? python->error : python->trouble);
    else if (strcmp(python->marey, marey_version()) != 0)
        marey__doctor_limited(doctor, python->command,
                              "install the same version for the command and for Python",
                              "%s (%s) has marey %s, and this command is %s", python->path,
                              python->version, python->marey, marey_version());
    else
        marey__doctor_ok(doctor, python->command, "%s (%s), marey %s in %s", python->path,
                         python->version, python->marey, python->package);
}

void marey__doctor_python(struct marey__doctor *doctor)
{
    char boot[PATH_MAX], parent[PATH_MAX];
    for (size_t i = 0; i < doctor->n_pythons; i++)
        report_python(doctor, &doctor->pythons[i]);
    if (doctor->n_pythons == 0)
        marey__doctor_missing(doctor, "python3",
                              "install Python 3.10 or later if you measure Python programs",
                              "neither python3 nor python is on PATH");
    marey_python_boot(boot, parent);
    if (boot[0] != '\0')
        marey__doctor_ok(doctor, "boot folder", "%s", boot);
    else
        marey__doctor_missing(
            doctor, "boot folder",
            "reinstall marey, or set MAREY_BOOT to the folder with its sitecustomize.py",
            "not found beside %s: 'marey run' cannot enter Python programs by itself",
            marey_library_path());
}

/* ---- the folder with our sitecustomize.py, used by `marey run`, and the package beside it ---- */

/* Relative to libmarey's directory. */
static const struct layout {
    const char *boot, *package_parent;
} layouts[] = {
    {"boot", ".."},                        /* inside the Python package */
    {"marey/boot", "marey/python"},        /* a prefix with everything below lib/marey */
    {"../share/marey/boot", NULL},         /* a prefix with lib and share */
    {"../../share/marey/boot", NULL},      /* a prefix with lib/ARCHITECTURE */
    {"../python/marey/boot", "../python"}, /* a build tree */
};

/* `dir`/`relative` as an absolute path if it contains the file `name`; else "". */
static bool find_folder(const char *dir, const char *relative, const char *name, char *out)
{
    char path[PATH_MAX];
    out[0] = '\0';
    if (relative == NULL || snprintf(path, sizeof path, "%s/%s", dir, relative) >= (int)sizeof path ||
        realpath(path, out) == NULL ||
        snprintf(path, sizeof path, "%s/%s", out, name) >= (int)sizeof path ||
        access(path, R_OK) != 0) {
        out[0] = '\0';
        return false;
    }
    return true;
}

void marey_python_boot(char *boot, char *package_parent)
{
    char lib[PATH_MAX];
    const char *wanted = getenv("MAREY_BOOT");
    boot[0] = package_parent[0] = '\0';
    if (wanted != NULL && wanted[0] != '\0') {
        find_folder(wanted, ".", "sitecustomize.py", boot);
        return;
    }
    if (realpath(marey_library_path(), lib) == NULL || strrchr(lib, '/') == NULL)
        return;
    *strrchr(lib, '/') = '\0';
    for (size_t i = 0; i < MAREY__COUNT_OF(layouts); i++) {
        if (find_folder(lib, layouts[i].boot, "sitecustomize.py", boot)) {
            find_folder(lib, layouts[i].package_parent, "marey/__init__.py", package_parent);
            return;
        }
    }
}
