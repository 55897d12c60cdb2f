/*
 * The environment a measured program starts in. KYMO and KYMO_OPTIONS switch libkymo on wherever it
 * is loaded; for Python programs that never heard of kymo, a folder with a sitecustomize.py goes to
 * the front of PYTHONPATH.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "cli.h"
#include "run.h"

/* ---- the run's name ---- */

static const char *env_text(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* As libkymo finds it where it is not told, in the same words. torchrun says "none" by default. */
bool run_launch_id(char into[RUN_ID_MAX])
{
    const char *elastic = env_text("TORCHELASTIC_RUN_ID"), *mpi = env_text("PMIX_NAMESPACE");
    const char *job = env_text("SLURM_JOB_ID"), *step = env_text("SLURM_STEP_ID");
    if (elastic != NULL && strcmp(elastic, "none") != 0)
        snprintf(into, RUN_ID_MAX, "%s", elastic);
    else if (job != NULL)
        snprintf(into, RUN_ID_MAX, "slurm-%s.%s", job, step != NULL ? step : "0");
    else if (mpi != NULL)
        snprintf(into, RUN_ID_MAX, "%s", mpi);
    else
        return false;
    return true;
}

/*
 * The program is told, so that processes that lose the launcher's variables on the way still belong
 * to the run. Inside a recorded program the run has its name already.
 */
static void set_run_id(void)
{
    char id[RUN_ID_MAX];
    if (!run_launch_id(id)) {
        uint64_t random = 0;
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
            random = (uint64_t)getpid();
        snprintf(id, sizeof id, "%016llx", (unsigned long long)random);
    }
    setenv("KYMO_RUN_ID", id, 0);
}

bool run_is_one_of_many(void)
{
    static const char *const sizes[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                        "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS"};
    static const char *const ranks[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                        "MV2_COMM_WORLD_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const char *size = env_text(sizes[i]);
        if (size != NULL && env_text(ranks[i]) != NULL && strtol(size, NULL, 10) > 1)
            return true;
    }
    return false;
}

/* ---- the way into Python ---- */

static bool has_file(const char *dir, const char *name)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path &&
           access(path, R_OK) == 0;
}

/* Where the boot folder and the package's parent may lie, seen from libkymo's directory. */
static const struct layout {
    const char *boot, *package_parent;
} layouts[] = {
    {"boot", ".."},                       /* inside the Python package */
    {"kymo/boot", "kymo/python"},         /* a prefix, all below lib/kymo */
    {"../share/kymo/boot", NULL},         /* a prefix: lib and share */
    {"../../share/kymo/boot", NULL},      /* a prefix with lib/ARCHITECTURE */
    {"../python/kymo/boot", "../python"}, /* a build tree */
};

static void prepend_python_path(const char *dir)
{
    const char *before = env_text("PYTHONPATH");
    char *path = NULL;
    if (asprintf(&path, "%s%s%s", dir, before != NULL ? ":" : "", before != NULL ? before : "") < 0)
        return;
    setenv("PYTHONPATH", path, 1);
    free(path);
}

static bool use_boot(const char *boot)
{
    if (!has_file(boot, "sitecustomize.py"))
        return false;
    prepend_python_path(boot);
    return true;
}

/*
 * For an interpreter that has no kymo of its own: ours, which serves if it was built for the same
 * Python.
 */
static void offer_package(const char *lib_dir, const char *relative)
{
    char dir[PATH_MAX], parent[PATH_MAX];
    if (relative == NULL || snprintf(dir, sizeof dir, "%s/%s", lib_dir, relative) >= (int)sizeof dir)
        return;
    if (realpath(dir, parent) != NULL && has_file(parent, "kymo/__init__.py"))
        setenv("KYMO_PACKAGE_DIR", parent, 0);
}

static void set_python_path(void)
{
    char lib[PATH_MAX], dir[PATH_MAX], boot[PATH_MAX];
    const char *wanted = env_text("KYMO_BOOT");
    if (wanted != NULL) {
        use_boot(wanted);
        return;
    }
    if (realpath(kymo_library_path(), lib) == NULL || strrchr(lib, '/') == NULL)
        return;
    *strrchr(lib, '/') = '\0';
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        if (snprintf(dir, sizeof dir, "%s/%s", lib, layouts[i].boot) < (int)sizeof dir &&
            realpath(dir, boot) != NULL && use_boot(boot)) {
            offer_package(lib, layouts[i].package_parent);
            return;
        }
    }
}

void run_environment_set(const char *recording, const char *options)
{
    setenv("KYMO", recording, 1);
    if (options[0] != '\0')
        setenv("KYMO_OPTIONS", options, 1);
    set_run_id();
    set_python_path();
}
