/* Which interpreters are on the PATH, which of them have kymo, and whether it is the same one as ours. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doctor/doctor_internal.h"

/* For any Python, 2 as well, whose answer is then that it has no kymo. The current folder is not where packages are. */
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
    "    import kymo\n"
    "    say('package', os.path.dirname(kymo.__file__))\n"
    "    say('library', os.path.join(kymo.get_library_dir(), 'libkymo.so.0'))\n"
    "    say('kymo', kymo.__version__)\n"
    "except Exception:\n"
    "    say('error', sys.exc_info()[1])\n";

/* ---- asking ---- */

static int ask(void *ctx, int fd)
{
    const struct kymo__python *python = ctx;
    /* -B: nothing is written, not even beside the modules. */
    char *argv[] = {(char *)(uintptr_t)python->path, (char *)(uintptr_t) "-B",
                    (char *)(uintptr_t) "-c", (char *)(uintptr_t)script, NULL};
    return kymo__probe_exec(argv, fd);
}

static void take_answer(struct kymo__python *python, const struct kymo__probe *probe)
{
    const char *text = probe->text;
    const size_t len = probe->len;
    kymo__probe_trouble(probe, python->trouble, sizeof python->trouble);
    kymo__parse_field(text, len, "version", python->version, sizeof python->version);
    kymo__parse_field(text, len, "prefix", python->prefix, sizeof python->prefix);
    kymo__parse_field(text, len, "kymo", python->kymo, sizeof python->kymo);
    kymo__parse_field(text, len, "package", python->package, sizeof python->package);
    kymo__parse_field(text, len, "library", python->library, sizeof python->library);
    kymo__parse_field(text, len, "error", python->error, sizeof python->error);
    for (int i = 0; i < KYMO__MAX_SITES; i++) {
        char key[16];
        snprintf(key, sizeof key, "site%d", i);
        kymo__parse_field(text, len, key, python->sites[i], sizeof python->sites[i]);
    }
}

void kymo__pythons_ask(struct kymo__doctor *doctor)
{
    static const char *const commands[KYMO__MAX_PYTHONS] = {"python3", "python"};
    struct kymo__probe *probes = kymo__calloc(KYMO__MAX_PYTHONS, sizeof *probes);
    if (probes == NULL)
        return;
    for (size_t i = 0; i < KYMO__MAX_PYTHONS; i++) {
        struct kymo__python *python = &doctor->pythons[doctor->n_pythons];
        if (!kymo__find_program(commands[i], python->path, sizeof python->path))
            continue;
        snprintf(python->command, sizeof python->command, "%s", commands[i]);
        kymo__probe_start(&probes[doctor->n_pythons++], ask, python);
    }
    kymo__probe_wait(probes, doctor->n_pythons, doctor->deadline_ns);
    for (size_t i = 0; i < doctor->n_pythons; i++)
        take_answer(&doctor->pythons[i], &probes[i]);
    /* Two names of one interpreter, by a link or by a script that chooses one. */
    const struct kymo__python *first = &doctor->pythons[0], *second = &doctor->pythons[1];
    if (doctor->n_pythons == 2 && first->version[0] != '\0' &&
        strcmp(first->version, second->version) == 0 && strcmp(first->prefix, second->prefix) == 0)
        doctor->n_pythons = 1;
    kymo__free(probes);
}

/* ---- telling ---- */

static void tell_python(struct kymo__doctor *doctor, const struct kymo__python *python)
{
    const char *install = "install kymo into that environment: pip install . in kymo's sources";
    if (python->version[0] == '\0')
        kymo__doctor_tell(doctor, python->command, KYMO__STATE_LIMITED,
                          "run it by hand; if it only was slow, try again with --wait 10", "%s: %s",
                          python->path,
                          python->trouble[0] != '\0' ? python->trouble : "it said nothing");
    else if (python->kymo[0] == '\0')
        kymo__doctor_tell(doctor, python->command, KYMO__STATE_MISSING, install,
                          "%s (%s) cannot import kymo: %s", python->path, python->version,
                          python->error[0] != '\0' ? python->error : python->trouble);
    else if (strcmp(python->kymo, kymo_version()) != 0)
        kymo__doctor_tell(doctor, python->command, KYMO__STATE_LIMITED,
                          "install the same version for the command and for Python",
                          "%s (%s) has kymo %s, and this command is %s", python->path,
                          python->version, python->kymo, kymo_version());
    else
        kymo__doctor_tell(doctor, python->command, KYMO__STATE_OK, NULL, "%s (%s), kymo %s in %s",
                          python->path, python->version, python->kymo, python->package);
}

void kymo__doctor_python(struct kymo__doctor *doctor)
{
    char boot[PATH_MAX], parent[PATH_MAX];
    for (size_t i = 0; i < doctor->n_pythons; i++)
        tell_python(doctor, &doctor->pythons[i]);
    if (doctor->n_pythons == 0)
        kymo__doctor_tell(doctor, "python3", KYMO__STATE_MISSING,
                          "install Python 3.9 or later if you measure Python programs",
                          "neither python3 nor python is on PATH");
    kymo_python_boot(boot, parent);
    if (boot[0] != '\0')
        kymo__doctor_tell(doctor, "boot folder", KYMO__STATE_OK, NULL, "%s", boot);
    else
        kymo__doctor_tell(
            doctor, "boot folder", KYMO__STATE_MISSING,
            "reinstall kymo, or set KYMO_BOOT to the folder with its sitecustomize.py",
            "not found beside %s: 'kymo run' cannot enter Python programs by itself",
            kymo_library_path());
}
