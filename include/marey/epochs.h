/*
 * marey/epochs.h: how long an epoch takes, on which rank, and in what (libmarey-tools).
 *
 *     marey_epoch_report *e;
 *     marey_epoch_report_create(&recording, 1, NULL, &e);
 *     marey_epoch_report_text(e, NULL, stdout);
 *
 * Epochs and phases are what the program told by <marey/iteration.h>. Each moment of an epoch belongs to the phase that
 * was open then, or to none: the times of its phases and `other` add up to the epoch, to the nanosecond. Ranks are told
 * apart, and the time of an epoch is that of its slowest rank.
 *
 * The first epoch of each process is no part of averages, because it warms up; unless there is no other. An epoch that
 * was not ended, or in which events were lost, is no part of them either.
 */
#ifndef MAREY_EPOCHS_H
#define MAREY_EPOCHS_H

#include <stdio.h>

#include <marey/report.h>
#include <marey/table.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct marey_epoch_report marey_epoch_report;

struct marey_epoch_report_options {
    int with_first; /* non-zero: first epochs count as any other */
    marey_progress *progress;
    void *progress_ctx;
};

/*
 * Read `n` recordings as one; lent until this returns. MAREY_EFORMAT when the program told of no epochs, with how to do
 * so.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_epoch_report_create(
    marey_recording *const *recordings, size_t n, const struct marey_epoch_report_options *options,
    marey_epoch_report **out);
MAREY_API void marey_epoch_report_destroy(marey_epoch_report *report);

/*
 * Its tables, lent until it goes; NULL for a name it does not have. `run` counts processes with one run id from 1, by
 * the time of their start.
 *   epochs     run epoch ranks duration_ns mean_ns shortest_ns slowest_rank behind_ns slowest_in iterations samples
 *              samples_per_s counted
 *   ranks      run epoch rank pid duration_ns data_ns forward_ns backward_ns optimizer_ns evaluate_ns checkpoint_ns
 *              logging_ns other_ns iterations samples samples_per_s counted note          (a row for each epoch and rank)
 *   averages   run rank epochs mean_ns median_ns std_ns min_ns max_ns data_ns ... other_ns samples_per_s slowest
 *   phases     run name count epochs mean_ns median_ns std_ns min_ns max_ns share
 *   notes      text
 * In `epochs`, duration_ns is that of the slowest rank, samples are those of all ranks, and the rate is one over the
 * other. slowest_rank is null where no rank stands out: one does when it takes 2 % longer than the mean of the others,
 * by behind_ns. Ranks that wait for one another take equally long; of those it is the one whose time outside backward
 * and optimizer, where they wait, does. slowest_in is the phase in which it took more than the others. The first row of
 * a run in `averages` is of no rank: for each epoch its slowest rank. Times of phases there are means. `slowest`: in how
 * many epochs it was slowest_rank. In `phases` are also names of the program's own, over the ranks and epochs that count;
 * `other` in the other tables is what is in none of those seven. note: "first", "not ended", "events lost".
 */
MAREY_API marey_table *marey_epoch_report_table(marey_epoch_report *report, const char *name);

struct marey_epoch_text_options {
    struct marey_text_options text;
    uint32_t limit; /* rows of a table at most; 0: all */
    int is_short;   /* non-zero: no rows for each epoch and rank */
};
/* For people; as JSON an object with all tables. MAREY_EIO when the stream refuses. */
MAREY_API marey_status marey_epoch_report_text(marey_epoch_report *report,
                                               const struct marey_epoch_text_options *options,
                                               FILE *out);
MAREY_API marey_status marey_epoch_report_json(marey_epoch_report *report, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
