/*
 * Reading a recording, the summary of `marey report`, the exports. Each job runs several times in a
 * separate process on one core; the median time and the peak memory count. Rates use CPU time, or
 * wall time for files on disk.
 *
 * Two recordings: one has the durations of a real training loop, whose low bits are noise, the most
 * expensive to decode. The other is long, to show that memory does not grow and that the disk
 * limits exports to a file: it is written and synced, compared with a plain write(2) of the same
 * size.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "sqlite_peer.h"
#include "training_trace.h"

static struct bench_args args;

/* ---- the jobs, each in a child ---- */

static uint64_t sum;

static marey_status add_batch(void *ctx, const struct marey_batch *batch)
{
    (void)ctx;
    for (size_t i = 0; i < batch->n; i++)
        sum += batch->words[i];
    return MAREY_OK;
}

static marey_status job_visit(marey_recording *recording, const char *to)
{
    (void)to;
    return marey_recording_visit(recording, 0, add_batch, NULL);
}

static marey_status job_report(marey_recording *recording, const char *to)
{
    (void)to;
    const struct marey_report_options options = {.n_jobs = 1};
    marey_report *summary;
    MAREY_TRY(marey_report_create("ranges", &recording, 1, &options, &summary));
    marey_report_destroy(summary);
    return MAREY_OK;
}

static marey_status export_to(marey_recording *recording, const char *format, const char *to)
{
    const int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        bench_die("cannot create the export", MAREY_OK);
    const struct marey_export_options options = {.filter = NULL};
    const marey_status st = marey_export(&recording, 1, format, &options, fd);
    fdatasync(fd); /* fails for /dev/null */
    close(fd);
    return st;
}

static marey_status job_perfetto(marey_recording *recording, const char *to)
{
    return export_to(recording, "perfetto", to);
}

static marey_status job_chrome(marey_recording *recording, const char *to)
{
    return export_to(recording, "chrome", to);
}

#ifdef MAREY_HAVE_SQLITE
static marey_status job_sqlite(marey_recording *recording, const char *to)
{
    return export_to(recording, "sqlite", to);
}
#endif

typedef marey_status job(marey_recording *recording, const char *to);

/* ---- running them ---- */

struct outcome {
    double seconds, cpu_seconds, rss_mb;
};

/* In the child: open, run the job, close, all timed. */
static double do_job(job *run, const char *path, const char *to, bool is_pinned)
{
    if (is_pinned)
        bench_pin(0);
    marey_recording *recording;
    const uint64_t begin = bench_ns();
    marey_status st = marey_recording_open(path, &recording);
    if (st == MAREY_OK)
        st = run(recording, to);
    if (st != MAREY_OK)
        bench_die("a job failed", st);
    marey_recording_close(recording);
    return (double)(bench_ns() - begin) / 1e9;
}

static double in_seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static struct outcome run_once(job *run, const char *path, const char *to, bool is_pinned)
{
    int ends[2];
    struct outcome out = {0};
    if (pipe(ends) != 0)
        bench_die("no pipe", MAREY_OK);
    if (strcmp(to, "/dev/null") != 0)
        unlink(to); /* the plain write also has a new file; truncating a large one takes long */
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        out.seconds = do_job(run, path, to, is_pinned);
        _exit(write(ends[1], &out.seconds, sizeof out.seconds) == sizeof out.seconds ? 0 : 1);
    }
    close(ends[1]);
    struct rusage usage;
    int status = 0;
    const bool is_read = read(ends[0], &out.seconds, sizeof out.seconds) == sizeof out.seconds;
    close(ends[0]);
    while (wait4(child, &status, 0, &usage) < 0 && errno == EINTR)
        ;
    if (!is_read || status != 0)
        bench_die("a job did not end well", MAREY_OK);
    out.rss_mb = (double)usage.ru_maxrss / 1024;
    out.cpu_seconds = in_seconds(usage.ru_utime) + in_seconds(usage.ru_stime);
    return out;
}

static struct outcome run_job(job *run, const char *path, const char *to, bool is_pinned)
{
    enum { REPEATS = 5 };
    double seconds[REPEATS], cpu_seconds[REPEATS];
    struct outcome out = {0};
    for (int i = 0; i < REPEATS; i++) {
        const struct outcome one = run_once(run, path, to, is_pinned);
        seconds[i] = one.seconds;
        cpu_seconds[i] = one.cpu_seconds;
        out.rss_mb = one.rss_mb > out.rss_mb ? one.rss_mb : out.rss_mb;
    }
    out.seconds = bench_median(seconds, REPEATS).mid;
    out.cpu_seconds = bench_median(cpu_seconds, REPEATS).mid;
    return out;
}

/* ---- results ---- */

/* `of` is "events" or "ranges", `n` their number, `bar` in millions per second. */
static void put_rate(const char *what, job *run, const char *path, uint64_t n, const char *of,
                     double bar)
{
    const struct outcome out = run_job(run, path, "/dev/null", true);
    const double per_s = (double)n / out.cpu_seconds / 1e6;
    char bar_text[64] = "";
    if (bar > 0)
        snprintf(bar_text, sizeof bar_text, ">= %.0f M %s/s", bar, of);
    bench_result(&args, what, bar_text, bar > 0 ? bench_met_if(per_s >= bar) : BENCH_NO_BAR,
                 "%.1f M %s/s, %.0f MB resident", per_s, of, out.rss_mb);
}

/* An export to a file has several threads and may use all cores. */
static void put_file(const char *what, job *run, const char *path)
{
    char to[4096];
    snprintf(to, sizeof to, "%s", bench_fresh_path(&args, "export.out"));
    struct stat st;
    const struct outcome out = run_job(run, path, to, false);
    if (stat(to, &st) != 0)
        bench_die("the export is not there", MAREY_OK);
    const double mb_s = (double)st.st_size / 1e6 / out.seconds;
    bench_remove(to);
    const double plain = bench_write_mb_s(&args, (uint64_t)st.st_size);
    bench_result(&args, what, ">= 70% of write(2)", bench_met_if(mb_s >= 0.7 * plain),
                 "%.0f MB/s, %.0f%% of write(2) at %.0f MB/s", mb_s, 100 * mb_s / plain, plain);
}

#ifdef MAREY_HAVE_SQLITE
/* Alternating with a program that inserts row by row; to files, because SQLite needs them. */
static void put_sqlite(const char *path, uint64_t n_ranges)
{
    enum { REPEATS = 5 };
    double ours[REPEATS], peers[REPEATS], rss_mb = 0;
    char to[4096];
    snprintf(to, sizeof to, "%s", bench_fresh_path(&args, "export.db"));
    for (int i = 0; i < REPEATS; i++) {
        const struct outcome one = run_once(job_sqlite, path, to, true);
        ours[i] = one.cpu_seconds;
        rss_mb = one.rss_mb > rss_mb ? one.rss_mb : rss_mb;
        peers[i] = run_once(sqlite_peer_export, path, to, true).cpu_seconds;
    }
    bench_remove(to);
    const double rate = (double)n_ranges / bench_median(ours, REPEATS).mid / 1e6,
                 peer_rate = (double)n_ranges / bench_median(peers, REPEATS).mid / 1e6;
    bench_result(&args, "Export to SQLite, a file", ">= 1 M ranges/s", bench_met_if(rate >= 1),
                 "%.2f M ranges/s, %.0f MB resident; INSERT by INSERT %.2f M", rate, rss_mb,
                 peer_rate);
}

/* Once, for the memory. */
static void put_long_sqlite(const char *path, uint64_t n_ranges)
{
    char to[4096];
    snprintf(to, sizeof to, "%s", bench_fresh_path(&args, "export.db"));
    const struct outcome out = run_once(job_sqlite, path, to, true);
    bench_remove(to);
    const double rate = (double)n_ranges / out.cpu_seconds / 1e6;
    bench_result(&args, "Export to SQLite, a long recording", ">= 1 M ranges/s",
                 bench_met_if(rate >= 1), "%.2f M ranges/s, %.0f MB resident", rate, out.rss_mb);
}
#endif

/* Long and dense, or with real durations. */
static uint64_t record(const struct training_trace *trace, const char *path, bool is_long)
{
    const uint64_t n_events =
        is_long ? (args.quick ? 20000000 : 100000000) : (args.quick ? 500000 : 4000000);
    const struct marey_options options = {
        .path = path, .policy = MAREY_BLOCK, .disk_bytes = UINT64_C(64) << 30};
    const marey_status st = marey_start(&options);
    if (st != MAREY_OK)
        bench_die("cannot record", st);
    if (is_long)
        training_trace_run(trace, n_events, 40e6);
    else
        training_trace_run_like(trace, n_events, 5000);
    if (marey_stop() != MAREY_OK)
        bench_die("cannot stop", MAREY_EIO);
    return n_events;
}

int main(int argc, char **argv)
{
    args = bench_parse(argc, argv);
    struct training_trace trace;
    training_trace_init(&trace);
    char path[4096];
    snprintf(path, sizeof path, "%s", bench_fresh_path(&args, "read.marey"));
    uint64_t n = record(&trace, path, false);
    put_rate("Reading back, one core", job_visit, path, n, "events", 0);
    put_rate("Report, one core", job_report, path, n, "events", 50);
    put_rate("Export to Perfetto, /dev/null", job_perfetto, path, n, "events", 60);
    put_rate("Export to Chrome JSON, /dev/null", job_chrome, path, n / 2, "ranges", 25);
#ifdef MAREY_HAVE_SQLITE
    put_sqlite(path, n / 2);
#endif
    bench_remove(path);
    n = record(&trace, path, true);
    put_rate("Report, one core, a long recording", job_report, path, n, "events", 50);
    put_rate("Export to Perfetto, a long recording", job_perfetto, path, n, "events", 60);
    put_rate("Export to Chrome JSON, a long recording", job_chrome, path, n / 2, "ranges", 25);
    put_file("Export to Perfetto, a file", job_perfetto, path);
    put_file("Export to Chrome JSON, a file", job_chrome, path);
#ifdef MAREY_HAVE_SQLITE
    put_long_sqlite(path, n / 2);
#endif
    bench_remove(path);
    return sum == 1; /* never true; prevents optimizing the sum away */
}
