/*
 * marey/memory_report.h: what a program held, when it held most and what that was, and what becomes more (libmarey-tools).
 *
 *     marey_memory_report *m;
 *     marey_memory_report_create(&recording, 1, NULL, &m);
 *     marey_memory_report_text(m, NULL, stdout);
 *
 * Four sources, which the table `pools` names: samples of allocations in a recording of `marey run --memory` (estimates, with
 * what they may be off by), CUDA's memory as CUPTI tells it in one of `marey run --gpu`, the events of allocators in a trace of
 * torch.profiler with profile_memory, and a snapshot of torch's CUDA allocator (torch.cuda.memory._dump_snapshot), both exact.
 * Resident memory comes with a recording.
 */
#ifndef MAREY_MEMORY_REPORT_H
#define MAREY_MEMORY_REPORT_H

#include <stdio.h>

#include <marey/report.h>
#include <marey/table.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct marey_memory_report marey_memory_report;

struct marey_memory_report_options {
    const char *filter; /* of stacks by any of their frames, as names in the summary; NULL: all */
    uint32_t n_stacks;  /* rows of `stacks` and of `growth` for each pool; 0: 20 */
};

/*
 * Read `n` recordings; lent until this returns. MAREY_EFORMAT when nothing about memory was recorded, with how to record it.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_memory_report_create(
    marey_recording *const *recordings, size_t n, const struct marey_memory_report_options *options,
    marey_memory_report **out);
/*
 * The same of files: snapshots and traces. MAREY_EFORMAT for a file that is neither or has nothing about memory, MAREY_EIO.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_memory_report_files(
    const char *const *paths, size_t n, const struct marey_memory_report_options *options,
    marey_memory_report **out);
/* 1 when `path` is a file of one of these kinds by its first bytes; a trace only when `path` ends as one. */
MAREY_API int marey_memory_is_file(const char *path);
MAREY_API void marey_memory_report_destroy(marey_memory_report *report);

/*
 * Its tables, lent until it goes; NULL for a name it does not have. Each begins with whose a row is: rank pid device, where
 * device is "host", "cpu", "cuda:0" or "host, pinned".
 *   pools          source span_ns interval_bytes samples dropped cost_ns peak_bytes plus_minus_bytes peak_at_ns end_bytes
 *                  peak_resident_bytes end_resident_bytes limit_bytes peak_reserved_bytes
 *   phases         phase count peak_bytes peak_resident_bytes                    the highest while the phase was under way
 *   categories     category bytes share blocks                                   these three: alive at the peak
 *   modules        module bytes share blocks
 *   stacks         bytes plus_minus_bytes share blocks where stack
 *   growth         what per slope_bytes low_bytes high_bytes total_bytes points is_suspected where stack
 *   fragmentation  reserved_bytes allocated_bytes inactive_bytes whole_bytes split_bytes split_share largest_free_bytes
 *                  free_blocks segments
 *   resident       at_ns bytes                                                   every reading
 *   live           at_ns bytes                                                   the most alive since the row before, 500 rows at most
 *   notes          text
 *
 * A sampled block of s bytes stands for s / (1 - exp(-s / interval)) bytes, so sums are right on average; plus_minus_bytes is
 * twice their standard deviation. Times count from the begin of the process. Stacks begin with the innermost frame.
 *
 * Blocks are grouped by `where`: of a stack that has Python's functions up to three of them, the innermost ones and the first
 * that is not of an installed package; of others compiled functions, without those of the allocator. `stack` is the whole
 * stack of the largest block in the group, null where there is none: "(allocated before recording)", "(no stack)".
 *
 * Growth: live bytes at the end of each iteration (per "iteration"), or at fifty even times if nothing counts iterations and
 * the recording has a second or more (per "second"), and of `resident` the last reading before. Warm-up is left out: the first
 * fifth, and by time also imports. The slope is the median of the slopes between any two points, low to high its interval of
 * 95 %, the error of samples included. A leak is suspected where low is above 0, growth goes on to the end (the second half's
 * interval is above 0, its lowest point is above that of the first half, the last quarter grows, too), and the growth in all
 * is above 1 MiB, three standard deviations of the samples, and a fiftieth of the peak. Rows are of everything alive ("live"),
 * of resident memory, and of the stacks whose live bytes grew most.
 *
 * Fragmentation, of the state a snapshot ends with: of what torch has from CUDA (reserved), what is in blocks that are in use,
 * and what is free. Of that, whole_bytes lie in segments that nothing else is in, which torch.cuda.empty_cache() gives back;
 * split_bytes lie between blocks in use, good for later blocks that fit in and for nothing else. split_share is their share of
 * what is reserved.
 */
MAREY_API marey_table *marey_memory_report_table(marey_memory_report *report, const char *name);

struct marey_memory_text_options {
    struct marey_text_options text;
    uint32_t limit; /* rows of a table at most; 0: all */
};
/* For people; as JSON an object with all tables. MAREY_EIO when the stream refuses. */
MAREY_API marey_status marey_memory_report_text(marey_memory_report *report,
                                                const struct marey_memory_text_options *options,
                                                FILE *out);
MAREY_API marey_status marey_memory_report_json(marey_memory_report *report, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
