/* Identity of this process: rank, run, host, command, boot; from the launcher's variables and from /proc. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/internal.h"

/* torchrun and similar, Open MPI, MPICH and Intel MPI, PMIx, MVAPICH, Slurm: the first that is a number wins. */
const char *const marey__rank_variables[] = {"RANK",      "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                             "PMIX_RANK", "MV2_COMM_WORLD_RANK",  "SLURM_PROCID",
                                             NULL};
static const char *const world_names[] = {"WORLD_SIZE",          "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                          "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS",         NULL};
static const char *const local_names[] = {"LOCAL_RANK",      "OMPI_COMM_WORLD_LOCAL_RANK",
                                          "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK",
                                          "SLURM_LOCALID",   NULL};

/* `which` gets the name of the variable, NULL for none. */
static int first_number(const char *const *names, const char **which)
{
    *which = NULL;
    for (; *names != NULL; names++) {
        const char *text = getenv(*names);
        if (text == NULL || !isdigit((unsigned char)text[0]))
            continue;
        char *end;
        const long value = strtol(text, &end, 10);
        if (*end == '\0' && value <= INT32_MAX) {
            *which = *names;
            return (int)value;
        }
    }
    return -1;
}

/*
 * Without a name, torchrun calls a run "none". Its workers on one machine are children of one process; on several
 * machines they share the rendezvous address, which the next run may reuse: still better than a different id for each
 * rank.
 */
static bool unnamed_torchrun(char *out, size_t size)
{
    const char *address = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT"),
               *nodes = getenv("GROUP_WORLD_SIZE");
    if (address == NULL || port == NULL || nodes == NULL)
        return false;
    const int64_t agent = getppid();
    if (strcmp(nodes, "1") == 0)
        snprintf(out, size, "torchrun-%" PRId64 ".%" PRIu64, agent,
                 marey__identity_start_time(agent));
    else
        snprintf(out, size, "torchrun-%s.%s", address, port);
    return true;
}

bool marey__identity_run_id(char *out, size_t size)
{
    const char *given = getenv("MAREY_RUN_ID");
    if (given == NULL || given[0] == '\0')
        given = getenv("TORCHELASTIC_RUN_ID");
    const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID"),
               *mpi = getenv("PMIX_NAMESPACE");
    if (given != NULL && given[0] != '\0' && strcmp(given, "none") != 0)
        snprintf(out, size, "%s", given);
    else if (job != NULL)
        snprintf(out, size, "slurm-%s.%s", job, step != NULL ? step : "0");
    else if (mpi != NULL && mpi[0] != '\0')
        snprintf(out, size, "%s", mpi);
    else
        return given != NULL && strcmp(given, "none") == 0 && unnamed_torchrun(out, size);
    return true;
}

void marey__identity_launch(struct marey__launch *out)
{
    out->rank = first_number(marey__rank_variables, &out->rank_from);
    out->world_size = first_number(world_names, &out->world_from);
    out->local_rank = first_number(local_names, &out->local_from);
}

void marey__identity_fill(struct marey__settings *s)
{
    struct marey__launch launch;
    marey__identity_launch(&launch);
    if (s->role != NULL)
        launch = (struct marey__launch){.rank = -1, .world_size = -1, .local_rank = -1};
    if (s->rank < 0)
        s->rank = launch.rank;
    if (s->world_size < 0)
        s->world_size = launch.world_size;
    if (s->local_rank < 0)
        s->local_rank = launch.local_rank;
    if (s->run_id[0] == '\0' && !marey__identity_run_id(s->run_id, sizeof s->run_id))
        snprintf(s->run_id, sizeof s->run_id, "%016" PRIx64, marey__identity_random());
}

uint64_t marey__identity_random(void)
{
    uint64_t value;
    if (getrandom(&value, sizeof value, GRND_NONBLOCK) != (ssize_t)sizeof value)
        value = marey__clock_ns(CLOCK_MONOTONIC) * 0x9e3779b97f4a7c15u ^ (uint64_t)getpid();
    return value;
}

/* One argument in shell syntax: single-quoted unless it is plain. */
static void put_argument(struct marey__buf *out, const char *argument)
{
    if (argument[0] != '\0' && strpbrk(argument, " \t\n'\"\\") == NULL) {
        marey__buf_puts(out, argument);
        return;
    }
    marey__buf_puts(out, "'");
    for (; *argument != '\0'; argument++) {
        if (*argument == '\'')
            marey__buf_puts(out, "'\\''");
        else
            marey__buf_put(out, argument, 1);
    }
    marey__buf_puts(out, "'");
}

void marey__identity_command(struct marey__buf *out)
{
    char text[4096];
    const size_t n = marey__read_text("/proc/self/cmdline", text, sizeof text);
    for (size_t at = 0; at < n; at += strlen(text + at) + 1) {
        marey__buf_puts(out, at > 0 ? " " : "");
        put_argument(out, text + at);
    }
}

void marey__identity_host(char *out, size_t size)
{
    if (gethostname(out, size) != 0)
        snprintf(out, size, "host");
    out[size - 1] = '\0';
    for (char *c = out; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && *c != '.' && *c != '_')
            *c = '_';
}

uint64_t marey__identity_start_time(int64_t pid)
{
    struct marey__process_stat stat;
    return marey__read_process_stat(pid, 0, &stat) ? stat.start_time : 0;
}

void marey__identity_boot_id(char *out, size_t size)
{
    marey__read_line("/proc/sys/kernel/random/boot_id", out, size);
}

uint64_t marey__identity_pid_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

void marey__identity_describe(struct marey__buf *texts)
{
    char host[256], boot[64] = "";
    marey__identity_host(host, sizeof host);
    marey__identity_boot_id(boot, sizeof boot);
    marey__texts_put(texts, MAREY__KEY_VERSION, MAREY_VERSION);
    marey__texts_printf(texts, MAREY__KEY_PID, "%d", (int)getpid());
    marey__texts_printf(texts, MAREY__KEY_PPID, "%d", (int)getppid());
    marey__texts_printf(texts, MAREY__KEY_START_TIME, "%" PRIu64,
                        marey__identity_start_time(getpid()));
    marey__texts_printf(texts, MAREY__KEY_PID_NS, "%" PRIu64, marey__identity_pid_namespace());
    marey__texts_put(texts, MAREY__KEY_BOOT_ID, boot);
    marey__texts_put(texts, MAREY__KEY_HOST, host);
}
