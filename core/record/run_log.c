/*
 * NAME.krun, a log with one block: what the operating system knows about a program that `kymo run` has waited for.
 * It is there for every run, also of programs that record nothing, so that any two runs can be compared.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kymo/recording.h>

#include "record/record_internal.h"

static void describe_run(struct kymo__buf *texts, const struct kymo_run_end *run)
{
    char run_id[64] = "";
    kymo__identity_describe(texts);
    if (kymo__identity_run_id(run_id, sizeof run_id))
        kymo__texts_put(texts, KYMO__KEY_RUN_ID, run_id);
    kymo__texts_put(texts, KYMO__KEY_COMMAND, run->command);
    kymo__texts_put(texts, KYMO__KEY_CLOCK, "monotonic");
    kymo__texts_put(texts, KYMO__KEY_TICK_HZ, "1000000000");
    kymo__texts_put(texts, KYMO__KEY_POOL, "");
    kymo__texts_put(texts, KYMO__KEY_ROLE, KYMO__ROLE_RUN);
    kymo__texts_printf(texts, KYMO__KEY_WALL, "%" PRIu64, run->wall_ns);
    kymo__texts_printf(texts, KYMO__KEY_RUN_CPU, "%" PRIu64, run->cpu_ns);
    if (WIFSIGNALED(run->wait_status))
        kymo__texts_printf(texts, KYMO__KEY_EXIT, "signal %d", WTERMSIG(run->wait_status));
    else
        kymo__texts_printf(texts, KYMO__KEY_EXIT, "%d", WEXITSTATUS(run->wait_status));
    kymo__machine_describe(texts);
}

static kymo_status append_all(struct kymo__log *log, const struct kymo_run_end *run)
{
    struct kymo__buf texts = {0};
    describe_run(&texts, run);
    kymo_status status = kymo__log_append_texts(log, KYMO__BLOCK_LOG, &texts);
    if (status == KYMO_OK)
        status = kymo__log_append_moment(log, false);
    texts.len = 0;
    kymo__texts_put(&texts, KYMO__KEY_END, "exit");
    if (status == KYMO_OK)
        status = kymo__log_append_texts(log, KYMO__BLOCK_END, &texts);
    kymo__buf_fini(&texts);
    return status;
}

kymo_status kymo_recording_add_run(const char *path, const struct kymo_run_end *run)
{
    struct kymo__log log = {.file.fd = -1};
    char host[128], name[256];
    kymo__identity_host(host, sizeof host);
    snprintf(name, sizeof name, "run-%s-%d-%08" PRIx32 ".krun", host, (int)getpid(),
             (uint32_t)kymo__identity_random());
    KYMO_TRY(kymo__log_create(&log, path, name));
    const kymo_status status = append_all(&log, run);
    kymo__log_close(&log);
    return status;
}
