/*
 * One Perfetto trace per process, in a TAR archive, which viewers open as one timeline:
 *
 *   perfetto_manifest.json             each trace's machine, and the common clock
 *   0000-rank-0-node1-4711.pftrace     a complete trace: clocks, tracks, names, events
 *   0001-rank-1-node2-4711.pftrace
 *
 * All traces use one clock with the same origin, and the numbers of tracks and
 * sequences are unique over all traces. So a viewer that ignores the manifest shows the same
 * timeline; with the manifest, processes are listed below their machines.
 */
#include "present/export/perfetto/internal.h"
#include "present/export/perfetto/tar_internal.h"

#define MANIFEST "perfetto_manifest.json"

/* Repeated exports of one recording are identical. */
static uint64_t mtime_of(const struct marey_process *process)
{
    return process != NULL ? process->start_unix_ns / 1000000000 : 0;
}

/* ---- the manifest ---- */

/*
 * Replace everything except letters and digits by a dash, so that the name is valid on any file
 * system.
 */
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

/* The number at the start makes names unique and sorts them like the processes. */
static void entry_name(char name[MAREY__TAR_NAME], const struct marey_process *process,
                       uint32_t number)
{
    char host[41], rank[24] = "";
    put_host(host, sizeof host, process->host);
    if (process->rank >= 0)
        snprintf(rank, sizeof rank, "rank-%d-", process->rank);
    snprintf(name, MAREY__TAR_NAME, "%04u-%s%s-%lld.pftrace", number, rank, host,
             (long long)process->pid);
}

static void put_file(struct marey__buf *buf, const struct marey_process *process, uint32_t number)
{
    char name[MAREY__TAR_NAME];
    entry_name(name, process, number);
    marey__buf_puts(buf, number != 0 ? "," : "");
    marey__json_printf(buf, "\n{'path':%s", name);
    if (process->host[0] != '\0')
        marey__json_printf(buf, ",'machine':{'name':%s}", process->host);
    marey__buf_puts(buf, "}");
}

/* The first process's clock is the timeline's; it is the same in all files. */
static void put_trace_time(struct marey__buf *buf, const struct marey__export *x)
{
    char name[MAREY__TAR_NAME];
    const struct marey_process *first = marey__export_nth(x, 0);
    if (first == NULL)
        return;
    entry_name(name, first, 0);
    marey__buf_printf(buf, "\"trace_time\":{\"clock\":\"%s\",\"file\":\"%s\"},\n",
                      x->is_wall_clock ? "REALTIME" : "MONOTONIC", name);
}

static void put_manifest(struct marey__export *x, struct marey__tar *tar)
{
    struct marey__buf buf MAREY__FINALLY(marey__buf_fini) = {0};
    const struct marey_process *process;
    marey__buf_puts(&buf, "{\"perfetto_manifest\":{\"version\":1,\n");
    put_trace_time(&buf, x);
    marey__buf_puts(&buf, "\"files\":[");
    for (uint32_t i = 0; (process = marey__export_nth(x, i)) != NULL; i++)
        put_file(&buf, process, i);
    marey__buf_puts(&buf, "]}}\n");
    if (buf.failed)
        x->status = marey__no_memory();
    else
        marey__tar_put(tar, MANIFEST, mtime_of(marey__export_nth(x, 0)), buf.data, buf.len);
}

/* ---- the traces ---- */

static void on_start(struct marey__export *x)
{
    x->status = marey__tar_init(x->own, &x->out);
    if (x->status == MAREY_OK)
        put_manifest(x, x->own);
}

static marey_status on_process(struct marey__export *x)
{
    char name[MAREY__TAR_NAME];
    entry_name(name, x->process, x->process_number);
    MAREY_TRY(marey__tar_open(x->own, name, mtime_of(x->process)));
    marey__perfetto_start(x);
    return marey__perfetto_process(x);
}

static void on_process_done(struct marey__export *x)
{
    const marey_status status = marey__tar_close(x->own);
    if (x->status == MAREY_OK)
        x->status = status;
}

static void on_finish(struct marey__export *x)
{
    marey__tar_finish(x->own);
}

static void on_close(struct marey__export *x)
{
    marey__tar_fini(x->own);
}

const struct marey__export_format marey__export_perfetto_tar = {
    .info =
        {
            .name = "perfetto-tar",
            .extensions = ".tar",
            .brief = "a Perfetto trace for each process and a manifest, in one TAR",
            .details =
                "Into a pipe, each trace goes through a temporary file (in TMPDIR, else /var/tmp).",
            .next = "open it at https://ui.perfetto.dev as it is: one timeline of all processes",
            .split = "perfetto-tar",
            .takes = MAREY_EXPORT_FILTER,
            .is_binary = true,
        },
    .own_size = sizeof(struct marey__tar),
    .start = on_start,
    .marks_findings = true,
    .process = on_process,
    .batch = marey__perfetto_batch,
    .span = marey__perfetto_span,
    .work = marey__perfetto_work,
    .flow = marey__perfetto_flow,
    .process_done = on_process_done,
    .finish = on_finish,
    .close = on_close,
};
