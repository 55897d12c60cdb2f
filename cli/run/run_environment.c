/*
 * The environment of a measured program. MAREY and MAREY_OPTIONS enable libmarey wherever it is loaded; for Python
 * programs that do not use marey, a folder with a sitecustomize.py is put first in PYTHONPATH.
 */
#include <limits.h>
#include <sys/random.h>
#include <unistd.h>

#include "run/run.h"

/* ---- the run's name ---- */

/* The same as libmarey's, with the same strings. torchrun's default is "none". */
bool run_launch_id(char into[RUN_ID_MAX])
{
    const char *elastic = cli_env("TORCHELASTIC_RUN_ID"), *mpi = cli_env("PMIX_NAMESPACE");
    const char *job = cli_env("SLURM_JOB_ID"), *step = cli_env("SLURM_STEP_ID");
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

/* A launcher without a name for the launch has started all its ranks on this machine itself. */
static void name_by_parent(char into[RUN_ID_MAX])
{
    char path[64], text[1024] = "", host[32] = "";
    unsigned long long start = 0;
    const int parent = (int)getppid();
    snprintf(path, sizeof path, "/proc/%d/stat", parent);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        const size_t n = fread(text, 1, sizeof text - 1, file);
        text[n] = '\0';
        fclose(file);
    }
    /* Counted from the end of the program's name, which may contain anything, the start time is the 20th word. */
    const char *word = strrchr(text, ')');
    for (int i = 0; i < 20 && word != NULL; i++)
        word = strchr(word + 1, ' ');
    if (word != NULL)
        start = strtoull(word, NULL, 10);
    gethostname(host, sizeof host - 1);
    snprintf(into, RUN_ID_MAX, "%s-%d-%llu", host, parent, start);
}

/*
 * Set for the program, so that processes that lose the launcher's variables still belong to the run. Inside a recorded
 * program the run already has its name.
 */
static void set_run_id(void)
{
    char id[RUN_ID_MAX];
    if (run_launch_id(id)) {
        /* the launcher's name */
    } else if (run_is_one_of_many()) {
        name_by_parent(id);
    } else {
        uint64_t random = 0;
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
            random = (uint64_t)getpid();
        snprintf(id, sizeof id, "%016llx", (unsigned long long)random);
    }
    setenv("MAREY_RUN_ID", id, 0);
}

/* Appends numbers to one name: ranks of a launcher, each with its own 'marey run', get the same names. */
void run_environment_repeat(uint32_t repeat)
{
    static char base[RUN_ID_MAX - 12]; /* libmarey keeps RUN_ID_MAX - 1 bytes */
    char id[RUN_ID_MAX];
    const char *given = cli_env("MAREY_RUN_ID");
    if (base[0] == '\0')
        snprintf(base, sizeof base, "%s", given != NULL ? given : "run");
    snprintf(id, sizeof id, "%s-%u", base, repeat);
    setenv("MAREY_RUN_ID", id, 1);
}

/* Our rank among several; -1 if we are the only one. */
static long rank_of_many(void)
{
    static const char *const sizes[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                        "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS"};
    static const char *const ranks[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                        "MV2_COMM_WORLD_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const char *size = cli_env(sizes[i]), *rank = cli_env(ranks[i]);
        if (size != NULL && rank != NULL && strtol(size, NULL, 10) > 1)
            return strtol(rank, NULL, 10);
    }
    return -1;
}

bool run_is_one_of_many(void)
{
    return rank_of_many() >= 0;
}

bool run_is_a_later_rank(void)
{
    return rank_of_many() > 0;
}

/* ---- loading into Python ---- */

static void prepend_python_path(const char *dir)
{
    const char *before = cli_env("PYTHONPATH");
    char *path CLI_FREED = NULL;
    if (asprintf(&path, "%s%s%s", dir, before != NULL ? ":" : "", before != NULL ? before : "") < 0)
        return;
    setenv("PYTHONPATH", path, 1);
}

/* For an interpreter without marey, adds the package beside the folder, which works if it was built for the same Python. */
static void set_python_path(void)
{
    char boot[PATH_MAX], package_parent[PATH_MAX];
    marey_python_boot(boot, package_parent);
    if (boot[0] != '\0')
        prepend_python_path(boot);
    if (package_parent[0] != '\0')
        setenv("MAREY_PACKAGE_DIR", package_parent, 0);
}

void run_environment_set(const char *recording, const char *options)
{
    setenv("MAREY", recording, 1);
    if (options[0] != '\0')
        setenv("MAREY_OPTIONS", options, 1);
    set_run_id();
    set_python_path();
}
