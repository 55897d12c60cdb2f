/*
 * One thread records for a minute and everything must reach the disk: at a fixed pace, then at full
 * speed; compared with the same volume by plain write(2). The recording is read back and compared
 * event by event. Finally, a trace with the durations of a real training loop measures the bytes
 * per event on disk and the compression time.
 */
#include <stdio.h>

#include "bench.h"
#include "training_trace.h"

static struct bench_args args;

/* Results of one recording. */
struct outcome {
    struct marey_counts counts;
    double seconds;
    double cpu_share; /* share in which the producer ran; less than 1 on a busy machine */
    bool is_equal;    /* read back equal to the recorded events */
};

static const char *start(void)
{
    bench_unpin(); /* the flush thread inherits the affinity, and must not share this core */
    const struct marey_options options = {.path = bench_fresh_path(&args, "stream.marey"),
                                          .disk_bytes = UINT64_C(64) << 30};
    const marey_status st = marey_start(&options);
    if (st != MAREY_OK)
        bench_die("cannot record", st);
    bench_pin(0);
    return marey_recording_path();
}

static struct outcome stream(const struct training_trace *trace, uint64_t n_events,
                             double events_per_s)
{
    struct outcome out;
    const char *path = start();
    const uint64_t begin = bench_ns(), cpu_begin = bench_thread_cpu_ns();
    training_trace_run(trace, n_events, events_per_s);
    out.seconds = (double)(bench_ns() - begin) / 1e9;
    out.cpu_share = (double)(bench_thread_cpu_ns() - cpu_begin) / 1e9 / out.seconds;
    if (marey_stop() != MAREY_OK)
        bench_die("cannot stop", MAREY_EIO);
    marey_counts_get(&out.counts);
    out.is_equal = training_trace_check(trace, path, n_events);
    bench_remove(path);
    return out;
}

static void put_stream(const char *what, const struct outcome *out, double bar_per_s)
{
    const double n = (double)out->counts.events + (double)out->counts.lost_events,
                 per_s = n / out->seconds;
    const double mb = (double)out->counts.log_bytes / 1e6;
    const double plain = bench_write_mb_s(&args, out->counts.log_bytes);
    const bool is_whole = out->counts.lost_events == 0 && out->is_equal;
    char bar[64] = "";
    if (bar_per_s > 0)
        snprintf(bar, sizeof bar, ">= %.0f M events/s, none lost", bar_per_s / 1e6);
    /* The producer keeps its pace to within 0.1 %. */
    bench_result(&args, what, bar,
                 bar_per_s > 0 ? bench_met_if(is_whole && per_s >= 0.999 * bar_per_s) : BENCH_NO_BAR,
                 "%.1f M events/s for %.1f s (%.0f%% on its processor), %llu lost, re-read %s",
                 per_s / 1e6, out->seconds, 100 * out->cpu_share,
                 (unsigned long long)out->counts.lost_events, out->is_equal ? "equal" : "NOT equal");
    bench_result(&args, "  to disk", "", BENCH_NO_BAR,
                 "%.0f MB at %.0f MB/s, %.2f B/event; plain write(2) %.0f MB/s", mb,
                 mb / out->seconds, (double)out->counts.log_bytes / (double)out->counts.events,
                 plain);
}

/* CPU time of the flush thread, from the recording. */
static uint64_t flush_cpu_ns(const char *path)
{
    marey_recording *recording;
    const marey_status st = marey_recording_open(path, &recording);
    if (st != MAREY_OK)
        bench_die("cannot open the recording", st);
    const uint64_t ns = marey_recording_process(recording, 0)->flush_cpu_ns;
    marey_recording_close(recording);
    return ns;
}

/*
 * Real durations: some microseconds between events, varying by 3 %. Their low bits are noise, which
 * takes space on disk and time to compress; the short durations of the streams above have almost
 * none.
 */
static void put_real_durations(const struct training_trace *trace)
{
    const uint64_t n_events = args.quick ? 400000 : 2000000;
    const char *path = start();
    training_trace_run_like(trace, n_events, 5000);
    if (marey_stop() != MAREY_OK)
        bench_die("cannot stop", MAREY_EIO);
    struct marey_counts counts;
    marey_counts_get(&counts);
    const double bytes = (double)counts.log_bytes / (double)counts.events;
    if (!training_trace_check(trace, path, n_events))
        bench_die("the training-like trace differs when read back", MAREY_OK);
    const double flush_ns = (double)flush_cpu_ns(path) / (double)n_events;
    bench_remove(path);
    bench_result(&args, "Bytes on disk, training-like trace", "<= 2.5 B/event",
                 bench_met_if(bytes <= 2.5), "%.2f B/event", bytes);
    bench_result(&args, "  flush thread's time for it", "<= 25 ns/event",
                 bench_met_if(flush_ns <= 25), "%.1f ns/event, %.0f M events/s", flush_ns,
                 1e3 / flush_ns);
}

int main(int argc, char **argv)
{
    args = bench_parse(argc, argv);
    const double seconds = args.quick ? 4 : 60, pace = 40e6;
    struct training_trace trace;
    training_trace_init(&trace);

    struct outcome out = stream(&trace, (uint64_t)(pace * seconds), pace);
    put_stream("Streaming, one producer, paced", &out, pace);
    /* This includes reading back; both must fit. */
    const double rss = bench_max_rss_mb();
    bench_result(&args, "  resident memory at its highest", "<= 64 MB", bench_met_if(rss <= 64),
                 "%.1f MB", rss);
    out = stream(&trace, (uint64_t)(90e6 * seconds / 4), 0);
    put_stream("Streaming, one producer, unthrottled", &out, 0);
    put_real_durations(&trace);
    return 0;
}
