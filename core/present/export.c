/*
 * marey_export: the list of formats, and which of a recording's events, calls and samples a format gets.
 */
#include "analyze/samples/samples.h"
#include "present/export/export_internal.h"
#include "present/export/stacks/calls_out.h"
#include "present/export/stacks/samples_out.h"

/* Formats that this build may lack are named only where they are there. */
#ifdef MAREY_HAVE_SQLITE
#define MAREY__SQLITE_FORMAT ",sqlite"
#else
#define MAREY__SQLITE_FORMAT ""
#endif

static const struct marey__export_format *const formats[] = {
    &marey__export_perfetto,   &marey__export_chrome,       &marey__export_csv,
    &marey__export_sqlite,     &marey__export_speedscope,   &marey__export_collapsed,
    &marey__export_flamegraph, &marey__export_perfetto_tar, &marey__export_perfetto_gpu,
    &marey__export_kineto,     &marey__export_pstats,       &marey__export_callgrind,
    &marey__export_pyspy,
};

const char *marey_export_formats(void)
{
    return "perfetto,chrome,csv,kineto,perfetto-tar,perfetto-gpu" MAREY__SQLITE_FORMAT
           ",speedscope,collapsed,flamegraph,pstats,callgrind,pyspy";
}

static const struct marey__export_format *find_format(const char *name)
{
    for (size_t i = 0; i < MAREY__COUNT_OF(formats); i++) {
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    }
    return NULL;
}

marey_status marey_export_check(const char *name)
{
    const struct marey__export_format *format = find_format(name);
    if (format == NULL)
        return marey__fail(MAREY_EINVAL, "unknown export format '%s'; it may be one of %s", name,
                           marey_export_formats());
    return format->missing == NULL ? MAREY_OK
                                   : marey__fail(MAREY_EUNAVAILABLE, "%s", format->missing);
}

static marey_status export_all(struct marey__export *x, marey_recording *const *recordings, size_t n)
{
    MAREY_TRY(x->format->whole != NULL ? x->format->whole(x, recordings, n)
                                       : marey__export_events(x, recordings, n));
    marey__out_finish(&x->out);
    const marey_status status = x->status != MAREY_OK ? x->status : x->out.status;
    if (x->options->progress != NULL && status == MAREY_OK)
        x->options->progress(x->options->progress_ctx, 1.0);
    return status;
}

/* Options that the format does not know are a mistake of who asks. */
static marey_status check_options(const struct marey__export *x)
{
    const struct marey_export_options *wants = x->options;
    uint32_t found;
    if (!x->format->adds_up && (wants->by != NULL || wants->n_baseline != 0))
        return marey__fail(
            MAREY_EINVAL,
            "%s goes with collapsed and flamegraph, which add times up; %s has single events",
            wants->by != NULL ? "by" : "a baseline", x->format->name);
    if (!x->format->takes_window && (wants->from_ns != 0 || wants->until_ns != 0 ||
                                     wants->launched_before != 0 || wants->about != NULL))
        return marey__fail(MAREY_EINVAL, "a window goes with kineto; %s has all events",
                           x->format->name);
    if (wants->about != NULL &&
        !marey__arguments_look(wants->about, strlen(wants->about), NULL, 0, &found))
        return marey__fail(MAREY_EINVAL, "what is said about the window is no JSON object: %.100s",
                           wants->about);
    return MAREY_OK;
}

static marey_status export_recordings(marey_recording *const *recordings, size_t n,
                                      const char *format,
                                      const struct marey_export_options *options, int fd)
{
    static const struct marey_export_options defaults;
    struct marey__export x = {
        .format = find_format(format),
        .options = options != NULL ? options : &defaults,
        .recordings = recordings,
        .n_recordings = n,
    };
    if (x.format == NULL || x.format->missing != NULL)
        return marey_export_check(format);
    MAREY_TRY(check_options(&x));
    MAREY_TRY(marey__out_init(&x.out, fd));
    const marey_status status = export_all(&x, recordings, n);
    if (x.format->close != NULL)
        x.format->close(&x);
    marey__buf_fini(&x.texts);
    marey__out_fini(&x.out);
    return status;
}

/* Sums by path, of calls or of samples, laid out as ranges. */
static marey_status export_calls(marey_recording *const *recordings, size_t n, const char *format,
                                 const struct marey_export_options *options, int fd)
{
    struct marey_export_options wants = *options;
    marey_recording *laid = NULL, *before = NULL;
    MAREY_TRY(marey__calls_lay(recordings, n, options, &laid));
    marey_status status = MAREY_OK;
    if (wants.n_baseline != 0)
        status = marey__calls_lay(wants.baseline, wants.n_baseline, options, &before);
    if (before != NULL) {
        wants.baseline = &before;
        wants.n_baseline = 1;
    }
    if (status == MAREY_OK)
        status = export_recordings(&laid, 1, format, &wants, fd);
    marey_recording_close(laid);
    marey_recording_close(before);
    return status;
}

/* Samples in order of time; beside the events of the recordings, or alone. */
static marey_status export_samples(marey_recording *const *recordings, size_t n,
                                   const struct marey__export_format *format,
                                   const struct marey_export_options *options, int fd)
{
    const bool is_beside = format->draws_time && !marey__samples_are_all(recordings, n);
    marey_recording **const all = marey__calloc(n + 1, sizeof *all);
    marey_recording *laid = NULL;
    MAREY__TRY_MEMORY(all != NULL);
    marey_status status = marey__samples_lay(recordings, n, options->samples, is_beside, &laid);
    if (status == MAREY_OK) {
        memcpy(all, recordings, n * sizeof *all);
        all[n] = laid;
        status = is_beside ? export_recordings(all, n + 1, format->name, options, fd)
                           : export_recordings(&laid, 1, format->name, options, fd);
        marey_recording_close(laid);
    }
    marey__free(all);
    return status;
}

marey_status marey_export(marey_recording *const *recordings, size_t n, const char *format,
                          const struct marey_export_options *options, int fd)
{
    static const struct marey_export_options defaults;
    const struct marey__export_format *const found = find_format(format);
    if (options == NULL)
        options = &defaults;
    if (options->calls && !marey__calls_are_there(recordings, n))
        return marey__fail(MAREY_EINVAL,
                           "no calls were recorded; record them with marey run --calls, "
                           "marey.start(calls=True) or marey.Profile");
    const bool is_sampled = marey_samples_are_there(recordings, n);
    if (options->samples != NULL && !is_sampled && !marey__samples_are_imported(recordings, n))
        return marey__fail(MAREY_EINVAL,
                           "nothing was sampled; sample with marey attach PID or marey "
                           "run --sample");
    if (found == NULL || found->missing != NULL || found->has_calls)
        return export_recordings(recordings, n, format, options, fd);
    const bool wants_samples = options->samples != NULL || marey__samples_are_all(recordings, n);
    if (wants_samples && !options->calls && found->adds_up)
        return export_calls(recordings, n, format, options, fd);
    if (!options->calls && is_sampled && (wants_samples || found->is_timeline))
        return export_samples(recordings, n, found, options, fd);
    if (options->calls || marey__calls_are_all(recordings, n))
        return export_calls(recordings, n, format, options, fd);
    return export_recordings(recordings, n, format, options, fd);
}
