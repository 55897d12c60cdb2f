/*
 * NAME.krun, a log with one block: what the operating system reports about a program that `marey run` has waited for.
 * Every run has one, even of programs that record nothing, so that any two runs can be compared.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <marey/recording.h>

#include "record/internal.h"

static void describe_run(struct marey__buf *texts, const struct marey_run_end *run)
{
    char run_id[64] = "";
    marey__identity_describe(texts);
    if (marey__identity_run_id(run_id, sizeof run_id))
        marey__texts_put(texts, MAREY__KEY_RUN_ID, run_id);
    marey__texts_put(texts, MAREY__KEY_COMMAND, run->command);
    marey__texts_put(texts, MAREY__KEY_CLOCK, "monotonic");
    marey__texts_put(texts, MAREY__KEY_TICK_HZ, "1000000000");
    marey__texts_put(texts, MAREY__KEY_POOL, "");
    marey__texts_put(texts, MAREY__KEY_ROLE, MAREY__ROLE_RUN);
    marey__texts_printf(texts, MAREY__KEY_WALL, "%" PRIu64, run->wall_ns);
    marey__texts_printf(texts, MAREY__KEY_RUN_CPU, "%" PRIu64, run->cpu_ns);
    if (WIFSIGNALED(run->wait_status))
        marey__texts_printf(texts, MAREY__KEY_EXIT, "signal %d", WTERMSIG(run->wait_status));
    else
        marey__texts_printf(texts, MAREY__KEY_EXIT, "%d", WEXITSTATUS(run->wait_status));
    marey__machine_describe(texts);
}

static marey_status append_all(struct marey__log *log, const struct marey_run_end *run)
{
    struct marey__buf texts MAREY__FINALLY(marey__buf_fini) = {0};
    describe_run(&texts, run);
    MAREY_TRY(marey__log_append_texts(log, MAREY__BLOCK_LOG, &texts));
    MAREY_TRY(marey__log_append_moment(log, false));
    texts.len = 0;
    marey__texts_put(&texts, MAREY__KEY_END, "exit");
    return marey__log_append_texts(log, MAREY__BLOCK_END, &texts);
}

marey_status marey_recording_add_run(const char *path, const struct marey_run_end *run)
{
    struct marey__log log = {.file.fd = -1};
    char host[128], name[256];
    marey__identity_host(host, sizeof host);
    snprintf(name, sizeof name, "run-%s-%d-%08" PRIx32 ".krun", host, (int)getpid(),
             (uint32_t)marey__identity_random());
    MAREY_TRY(marey__log_create(&log, path, name));
    const marey_status status = append_all(&log, run);
    marey__log_close(&log);
    return status;
}
