/* marey_export: the registry of formats, and the selection of a recording's events, calls and samples. */
#include "analyze/calls/internal.h"
#include "analyze/samples/internal.h"
#include "present/export/internal.h"

#define MAREY__FORMAT_ENTRY(name) &marey__export_##name,
static const struct marey__export_format *const formats[] = {
    MAREY__EXPORT_FORMATS(MAREY__FORMAT_ENTRY)};

const struct marey_export_format *marey_export_format_at(size_t i)
{
    return i < MAREY__COUNT_OF(formats) ? &formats[i]->info : NULL;
}

static bool is_named(const struct marey_export_format *format, uint32_t option)
{
    return format->missing == NULL && (format->takes & option) == option;
}

/* "a, b and c" into `text`: the formats of this build that take the option; all of them for 0. */
static const char *format_names(uint32_t option, char *text, size_t size)
{
    size_t len = 0, n_left = 0;
    for (size_t i = 0; i < MAREY__COUNT_OF(formats); i++)
        n_left += is_named(&formats[i]->info, option);
    for (size_t i = 0; i < MAREY__COUNT_OF(formats); i++)
        if (is_named(&formats[i]->info, option))
            marey__append(text, size, &len, "%s%s",
                          len == 0        ? ""
                          : --n_left == 1 ? " and "
                                          : ", ",
                          formats[i]->info.name);
    return text;
}

static marey_status find_format(const char *name, const struct marey__export_format **out)
{
    char known[256];
    for (size_t i = 0; i < MAREY__COUNT_OF(formats); i++)
        if (strcmp(formats[i]->info.name, name) == 0) {
            *out = formats[i];
            const char *const missing = formats[i]->info.missing;
            return missing == NULL ? MAREY_OK : marey__fail(MAREY_EUNAVAILABLE, "%s", missing);
        }
    return marey__fail(MAREY_EINVAL, "unknown export format '%s'; the formats are %s", name,
                       format_names(0, known, sizeof known));
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

static marey_status check_options(const struct marey__export_format *format,
                                  const struct marey_export_options *given)
{
    const struct {
        uint32_t option;
        bool is_given;
        const char *what;
    } options[] = {
        {MAREY_EXPORT_FILTER, given->filter != NULL, "a filter of names"},
        {MAREY_EXPORT_BY, given->by != NULL, "by"},
        {MAREY_EXPORT_BASELINE, given->n_baseline != 0, "a baseline"},
        {MAREY_EXPORT_WINDOW,
         given->from_ns != 0 || given->until_ns != 0 || given->launched_before != 0 ||
             given->about != NULL,
         "a time window"},
    };
    char names[256];
    uint32_t found;
    for (size_t i = 0; i < MAREY__COUNT_OF(options); i++)
        if (options[i].is_given && (format->info.takes & options[i].option) == 0)
            return marey__fail(MAREY_EINVAL, "%s goes with %s, not with %s", options[i].what,
                               format_names(options[i].option, names, sizeof names),
                               format->info.name);
    if (given->about != NULL &&
        !marey__arguments_look(given->about, strlen(given->about), NULL, 0, &found))
        return marey__fail(MAREY_EINVAL, "`about` is not a JSON object: %.100s", given->about);
    return MAREY_OK;
}

static marey_status diagnose(marey_recording *const *recordings, size_t n, marey_report **out)
{
    if (!marey_report_is_there("diagnosis", recordings, n))
        return MAREY_OK;
    const marey_status status = marey_report_create("diagnosis", recordings, n, NULL, out);
    return status == MAREY_EFORMAT ? MAREY_OK : status; /* it has nothing to diagnose */
}

static marey_status export_recordings(marey_recording *const *recordings, size_t n,
                                      const struct marey__export_format *format,
                                      const struct marey_export_options *options, int fd)
{
    struct marey__export x = {
        .format = format, .options = options, .recordings = recordings, .n_recordings = n};
    MAREY_TRY(marey__out_init(&x.out, fd));
    marey_status status = format->marks_findings ? diagnose(recordings, n, &x.diagnosis) : MAREY_OK;
    if (status == MAREY_OK)
        status = export_all(&x, recordings, n);
    marey_report_destroy(x.diagnosis);
    if (x.own != NULL && format->close != NULL)
        format->close(&x);
    marey__free(x.own);
    marey__buf_fini(&x.texts);
    marey__out_fini(&x.out);
    return status;
}

/* Sums of calls or samples by path, laid out as ranges. */
static marey_status export_calls(marey_recording *const *recordings, size_t n,
                                 const struct marey__export_format *format,
                                 const struct marey_export_options *options, int fd)
{
    struct marey_export_options wants = *options;
    marey_recording *laid = NULL, *before = NULL;
    MAREY_TRY(marey__calls_as_ranges(recordings, n, options, &laid));
    marey_status status = MAREY_OK;
    if (wants.n_baseline != 0)
        status = marey__calls_as_ranges(wants.baseline, wants.n_baseline, options, &before);
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

/* Samples in order of time, beside the events of the recordings or without them. */
static marey_status export_samples(marey_recording *const *recordings, size_t n,
                                   const struct marey__export_format *format,
                                   const struct marey_export_options *options, int fd)
{
    const bool is_beside = format->has_samples_beside && !marey__samples_are_all(recordings, n);
    marey_recording **const all MAREY__FREED = marey__calloc(n + 1, sizeof *all);
    marey_recording *laid = NULL;
    struct marey__samples_filter filter;
    MAREY__TRY_MEMORY(all != NULL);
    MAREY_TRY(marey__samples_filter_parse(options->samples, &filter));
    marey_status status = marey__samples_as_ranges(recordings, n, &filter, is_beside, &laid);
    if (status == MAREY_OK) {
        memcpy(all, recordings, n * sizeof *all);
        all[n] = laid;
        status = is_beside ? export_recordings(all, n + 1, format, options, fd)
                           : export_recordings(&laid, 1, format, options, fd);
        marey_recording_close(laid);
    }
    return status;
}

marey_status marey_export(marey_recording *const *recordings, size_t n, const char *name,
                          const struct marey_export_options *options, int fd)
{
    static const struct marey_export_options defaults;
    const struct marey__export_format *format = NULL;
    if (options == NULL)
        options = &defaults;
    MAREY_TRY(find_format(name, &format));
    MAREY_ASSERT(format != NULL);
    MAREY_TRY(check_options(format, options));
    MAREY_TRY(marey_report_check("samples", options->samples));
    if (options->calls && !marey__calls_are_there(recordings, n))
        return marey__fail(MAREY_EINVAL,
                           "no calls were recorded; record them with marey run --calls, "
                           "marey.start(calls=True) or marey.Profile");
    const bool is_sampled = marey__samples_are_there(recordings, n);
    if (options->samples != NULL && !is_sampled && !marey__samples_are_imported(recordings, n))
        return marey__fail(MAREY_EINVAL,
                           "nothing was sampled; sample with marey attach PID or marey "
                           "run --sample");
    if (format->reads_profiles)
        return export_recordings(recordings, n, format, options, fd);
    const bool wants_samples = options->samples != NULL || marey__samples_are_all(recordings, n);
    if (wants_samples && !options->calls && format->info.content == MAREY_EXPORT_PATHS)
        return export_calls(recordings, n, format, options, fd);
    if (!options->calls && is_sampled && (wants_samples || format->is_timeline))
        return export_samples(recordings, n, format, options, fd);
    if (options->calls || marey__calls_are_all(recordings, n))
        return export_calls(recordings, n, format, options, fd);
    return export_recordings(recordings, n, format, options, fd);
}
