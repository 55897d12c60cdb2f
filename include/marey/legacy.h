/*
 * marey/legacy.h: itwinai's computation_fraction, for whoever has old figures to compare with (libmarey-tools).
 *
 * It adds up the "self device time" of the rows of torch's key_averages() and asks which share has a name with aten::,
 * at::, c10:: or autograd:: in it. Those rows hold each kernel once, the operator that launched it with the same time,
 * and the device's copy of each annotation around it. So time counts twice and three times, libraries' kernels count as
 * "other", and what overlaps is not seen. marey_breakdown_create() has the answer; this is the old one, by its own rules.
 *
 * Its files of averages are read and written: CSV with the columns of marey_averages_create(). They do not say which rows
 * are of a device and which of the host, so that what is in such a file cannot be corrected.
 */
#ifndef MAREY_LEGACY_H
#define MAREY_LEGACY_H

#include <stdio.h>

#include <marey/recording.h>
#include <marey/report.h>
#include <marey/table.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is to be said wherever such a number is shown: one sentence, lent for ever. */
MAREY_API const char *marey_legacy_warning(void);

/*
 * The averages of `n` recordings, in a table that the caller destroys:
 *   name node_id self_cuda_time_total cuda_time_total cuda_time_total_str calls strategy num_gpus global_rank
 * Times are microseconds. A row for each name of host ranges, one for each of GPU work, one for each of the device's
 * copies of annotations. `strategy` is what the column of that name shall say, "torch-ddp"; NULL: "unknown". num_gpus
 * is the number of ranks of the job, where it is known, else of processes that are here; global_rank counts them from 0
 * where it is not known. marey_present_csv() writes the file.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_averages_create(marey_recording *const *recordings,
                                                               size_t n, const char *strategy,
                                                               marey_table **out);

/*
 * The fractions of such a table, in one that the caller destroys:
 *   strategy num_gpus rank computation_fraction computation_vs_communication rows
 * First a row for each strategy and number of GPUs, over all ranks thrown together, as itwinai does; its `rank` is null.
 * Then one for each rank. Both fractions are null where no row has a time.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_legacy_create(const marey_table *averages,
                                                             marey_table **out);

/* Where fractions come from. */
struct marey_legacy_source {
    int is_files; /* non-zero: files of averages, which cannot be corrected */
    uint64_t n_dropped; /* rows without a strategy, a number of GPUs or a time: left out, as itwinai does */
};

/*
 * The same of `n` files, plain or packed by gzip, or folders that have such files in them at any depth; `*source` may be
 * NULL. A leading column without a name, as older versions wrote, is left out. MAREY_EFORMAT for a file that is none of
 * these, and when a folder has none; in a folder, other files are passed over.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_legacy_read(const char *const *paths, size_t n,
                                                           marey_table **out,
                                                           struct marey_legacy_source *source);

/*
 * Fractions for people, with what is to be said of them; as JSON an object with `warnings` and `rows`. `source` NULL: of
 * recordings. MAREY_EIO when the stream refuses.
 */
MAREY_API marey_status marey_legacy_text(const marey_table *legacy,
                                         const struct marey_legacy_source *source,
                                         const struct marey_text_options *options, FILE *out);
MAREY_API marey_status marey_legacy_json(const marey_table *legacy,
                                         const struct marey_legacy_source *source, FILE *out);

/*
 * Energy by itwinai's files of GPU power and of epoch times (0.2 to 0.3.3; folders gpu-energy-data and epoch-time), of files
 * or of folders that have such files in them at any depth. Two tables that the caller destroys:
 *   runs     run repeat strategy num_gpus nodes measured_gpus readings interval_s real_interval_s duration_s joules
 *            plus_minus_j mean_w peak_w utilization epochs epoch_time_s joules_per_epoch itwinai_wh note
 *   repeats  strategy num_gpus runs mean_j low_j high_j itwinai_wh
 * A run is what has one folder; readings that begin anew in a file are a repeat. itwinai_wh is the old figure: watts times
 * the nominal interval, added up, in `repeats` over all runs. joules are of one run, by trapezoids; where the run's epochs
 * are in the files too, their time gives the real interval, which is longer by what reading took. `*n_dropped`: rows
 * without one of the columns. MAREY_EFORMAT when there are no such readings.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_legacy_energy_read(const char *const *paths,
                                                                  size_t n, marey_table **runs,
                                                                  marey_table **repeats,
                                                                  uint64_t *n_dropped);

/* 1 when `path` is a file that ends in .csv or .csv.gz, or a folder with such a file at any depth; else 0. */
MAREY_API int marey_legacy_is_file(const char *path);

#ifdef __cplusplus
}
#endif
#endif
