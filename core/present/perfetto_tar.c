/*
 * A Perfetto trace for each process, in one TAR, which viewers open as one timeline:
 *
 *   perfetto_manifest.json             which machine each trace is from, which clock is everybody's
 *   0000-rank-0-node1-4711.pftrace     a whole trace: clocks, tracks, names, events
 *   0001-rank-1-node2-4711.pftrace
 *
 * All traces are on one clock and name the same moment of it, and the numbers of tracks and
 * sequences are unique over all of them. So a viewer that does not know the manifest gets the same
 * timeline; with it, processes are listed below the names of their machines.
 */
#include "present/perfetto_internal.h"
#include "present/tar_internal.h"

#include <stdio.h>

#define MANIFEST "perfetto_manifest.json"

/* An archive of one recording is the same whenever it is made. */
static uint64_t mtime_of(const struct kymo_process *process)
{
    return process != NULL ? process->start_unix_ns / 1000000000 : 0;
}

/* ---- the manifest ---- */

/* What is neither a letter nor a digit becomes a dash, so that a name is one on any file system. */
static void put_host(char *to, size_t room, const char *host)
{
    size_t n = 0;
    for (; host[n] != '\0' && n + 1 < room; n++) {
        const char c = host[n];
        const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9') || c == '.' || c == '_';
        to[n] = c;
        if (!is_plain)
            to[n] = '-';
    }
    to[n] = '\0';
}

/* The number in front makes names unique, and their order that of the processes. */
static void entry_name(char name[KYMO__TAR_NAME], const struct kymo_process *process, uint32_t number)
{
    char host[41], rank[24] = "";
    put_host(host, sizeof host, process->host);
    if (process->rank >= 0)
        snprintf(rank, sizeof rank, "rank-%d-", process->rank);
    snprintf(name, KYMO__TAR_NAME, "%04u-%s%s-%lld.pftrace", number, rank, host,
             (long long)process->pid);
}

static void put_file(struct kymo__buf *buf, const struct kymo_process *process, uint32_t number)
{
    char name[KYMO__TAR_NAME];
    entry_name(name, process, number);
    kymo__buf_printf(buf, "%s\n{\"path\":\"%s\"", number != 0 ? "," : "", name);
    if (process->host[0] != '\0') {
        kymo__buf_puts(buf, ",\"machine\":{\"name\":");
        kymo__json_put(buf, process->host, strlen(process->host));
        kymo__buf_puts(buf, "}");
    }
    kymo__buf_puts(buf, "}");
}

/* The first process's clock is the timeline's; it is the same one in all files. */
static void put_trace_time(struct kymo__buf *buf, const struct kymo__export *x)
{
    char name[KYMO__TAR_NAME];
    const struct kymo_process *first = kymo__export_nth(x, 0);
    if (first == NULL)
        return;
    entry_name(name, first, 0);
    kymo__buf_printf(buf, "\"trace_time\":{\"clock\":\"%s\",\"file\":\"%s\"},\n",
                     x->is_wall_clock ? "REALTIME" : "MONOTONIC", name);
}

static void put_manifest(struct kymo__export *x, struct kymo__tar *tar)
{
    struct kymo__buf buf = {0};
    const struct kymo_process *process;
    kymo__buf_puts(&buf, "{\"perfetto_manifest\":{\"version\":1,\n");
    put_trace_time(&buf, x);
    kymo__buf_puts(&buf, "\"files\":[");
    for (uint32_t i = 0; (process = kymo__export_nth(x, i)) != NULL; i++)
        put_file(&buf, process, i);
    kymo__buf_puts(&buf, "]}}\n");
    if (buf.failed)
        x->status = kymo__fail(KYMO_ENOMEM, "no memory for the manifest of the archive");
    else
        kymo__tar_put(tar, MANIFEST, mtime_of(kymo__export_nth(x, 0)), buf.data, buf.len);
    kymo__buf_fini(&buf);
}

/* ---- the traces ---- */

static void on_start(struct kymo__export *x)
{
    struct kymo__tar *tar = kymo__calloc(1, sizeof *tar);
    if (tar == NULL) {
        x->status = kymo__fail(KYMO_ENOMEM, "no memory for an archive");
        return;
    }
    x->own = tar;
    x->status = kymo__tar_init(tar, &x->out);
    if (x->status == KYMO_OK)
        put_manifest(x, tar);
}

static kymo_status on_process(struct kymo__export *x)
{
    char name[KYMO__TAR_NAME];
    entry_name(name, x->process, x->process_number);
    KYMO_TRY(kymo__tar_open(x->own, name, mtime_of(x->process)));
    kymo__perfetto_start(x);
    return kymo__perfetto_process(x);
}

static void on_process_done(struct kymo__export *x)
{
    const kymo_status status = kymo__tar_close(x->own);
    if (x->status == KYMO_OK)
        x->status = status;
}

static void on_finish(struct kymo__export *x)
{
    kymo__tar_finish(x->own);
}

static void on_close(struct kymo__export *x)
{
    if (x->own != NULL)
        kymo__tar_fini(x->own);
    kymo__free(x->own);
}

const struct kymo__export_format kymo__export_perfetto_tar = {
    .name = "perfetto-tar",
    .start = on_start,
    .process = on_process,
    .batch = kymo__perfetto_batch,
    .span = kymo__perfetto_span,
    .work = kymo__perfetto_work,
    .flow = kymo__perfetto_flow,
    .process_done = on_process_done,
    .finish = on_finish,
    .close = on_close,
};
