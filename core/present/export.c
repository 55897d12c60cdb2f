/*
 * kymo_export: process by process, in the order of the recordings, into one file. Formats see one
 * process at a time with everything they may ask about it prepared; this file decides on clocks,
 * numbers and filters for all of them.
 */
#include "analyze/samples.h"
#include "present/calls_out.h"
#include "present/export_walk.h"
#include "present/samples_out.h"
#include "read/read_internal.h"

/* Formats that this build may lack are named only where they are there. */
#ifdef KYMO_HAVE_SQLITE
#define KYMO__SQLITE_FORMAT ",sqlite"
#else
#define KYMO__SQLITE_FORMAT ""
#endif

static const struct kymo__export_format *const formats[] = {
    &kymo__export_perfetto,   &kymo__export_chrome,       &kymo__export_csv,
    &kymo__export_sqlite,     &kymo__export_speedscope,   &kymo__export_collapsed,
    &kymo__export_flamegraph, &kymo__export_perfetto_tar, &kymo__export_perfetto_gpu,
    &kymo__export_kineto,     &kymo__export_pstats,       &kymo__export_callgrind,
    &kymo__export_pyspy,
};

const char *kymo_export_formats(void)
{
    return "perfetto,chrome,csv,kineto,perfetto-tar,perfetto-gpu" KYMO__SQLITE_FORMAT
           ",speedscope,collapsed,flamegraph,pstats,callgrind,pyspy";
}

static const struct kymo__export_format *find_format(const char *name)
{
    for (size_t i = 0; i < KYMO__COUNT_OF(formats); i++) {
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    }
    return NULL;
}

kymo_status kymo_export_check(const char *name)
{
    const struct kymo__export_format *format = find_format(name);
    if (format == NULL)
        return kymo__fail(KYMO_EINVAL, "unknown export format '%s'; it may be one of %s", name,
                          kymo_export_formats());
    return format->missing == NULL ? KYMO_OK : kymo__fail(KYMO_EUNAVAILABLE, "%s", format->missing);
}

bool kymo__export_lane_grow(struct kymo__export *x, struct kymo__export_lane *lane)
{
    if (lane->n_open >= KYMO__MAX_OPEN) {
        lane->n_too_deep++;
        if (x->options->n_too_deep != NULL)
            ++*x->options->n_too_deep;
        return false;
    }
    if (kymo__grow(&lane->open, &lane->cap_open, lane->n_open + 1, sizeof lane->open[0]))
        return true;
    x->status =
        kymo__fail(KYMO_ENOMEM, "no memory for %zu ranges within one another", lane->n_open + 1);
    return false;
}

size_t kymo__export_lane_find(const struct kymo__export *x, const struct kymo__export_lane *lane,
                              uint32_t site)
{
    const uint32_t name = x->names[kymo__site_slot(x, site)];
    const size_t stop = lane->n_open > KYMO__MAX_SEARCH ? lane->n_open - KYMO__MAX_SEARCH : 0;
    for (size_t i = lane->n_open; i-- > stop;) {
        if (x->names[kymo__site_slot(x, lane->open[i].site)] == name)
            return i;
    }
    return lane->n_open;
}

bool kymo__export_async(struct kymo__export *x, const struct kymo__async_half *half,
                        struct kymo__async_half *begin, struct kymo__async_half *end)
{
    struct kymo__async_half other;
    bool failed;
    if (!kymo__async_match(&x->asyncs, half, &other, &failed)) {
        if (failed)
            x->status = kymo__fail(KYMO_ENOMEM, "no memory for async ranges that have not ended");
        return false;
    }
    *begin = half->is_begin ? *half : other;
    *end = half->is_begin ? other : *half;
    return true;
}

kymo_status kymo__export_texts(struct kymo__export *x,
                               void (*put)(struct kymo__buf *buf, const struct kymo_site_info *site),
                               size_t spare)
{
    const uint32_t n = x->process->n_sites;
    struct kymo__site_text *texts = kymo__calloc((size_t)n + 1, sizeof *texts);
    x->sites = texts;
    for (uint32_t slot = 0; texts != NULL && slot <= n; slot++) {
        texts[slot].at = (uint32_t)x->texts.len;
        put(&x->texts, kymo__export_site(x, slot));
        texts[slot].len = (uint32_t)(x->texts.len - texts[slot].at);
    }
    if (texts == NULL || kymo__buf_extend(&x->texts, spare) == NULL || x->texts.len > UINT32_MAX)
        return kymo__fail(KYMO_ENOMEM, "no memory for %u names", n);
    return KYMO_OK;
}

/* Take the next word of a command line, which may be quoted as a shell does it; what follows comes back. */
static const char *take_word(const char *at, struct kymo__buf *word)
{
    bool is_quoted = false;
    word->len = 0;
    for (; *at != '\0' && (is_quoted || *at != ' '); at++) {
        if (*at == '\'')
            is_quoted = !is_quoted;
        else if (*at == '\\' && !is_quoted && at[1] != '\0')
            kymo__buf_put(word, ++at, 1);
        else
            kymo__buf_put(word, at, 1);
    }
    return *at == ' ' ? at + 1 : at;
}

void kymo__export_program(struct kymo__buf *buf, const char *command)
{
    struct kymo__buf word = {0};
    const char *rest = take_word(command, &word);
    const bool is_python = word.len > 0 && memmem(word.data, word.len, "python", 6) != NULL;
    if (is_python && *rest != '\0' && *rest != '-')
        take_word(rest, &word);
    if (word.len > 0) {
        const char *slash = memrchr(word.data, '/', word.len);
        const char *name = slash != NULL ? slash + 1 : word.data;
        kymo__utf8_put(buf, name, word.len - (size_t)(name - word.data));
    }
    kymo__buf_fini(&word);
}

void kymo__export_process_name(const struct kymo__export *x, struct kymo__buf *buf)
{
    const struct kymo_process *process = x->process;
    if (process->rank >= 0)
        kymo__buf_printf(buf, "rank %d ", process->rank);
    if (process->worker >= 0)
        kymo__buf_printf(buf, "worker %d ", process->worker);
    kymo__export_program(buf, process->command);
    if (x->has_own_ids)
        kymo__buf_printf(buf, " (%s, pid %lld)", process->host, (long long)process->pid);
}

/* ---- what holds for all recordings together ---- */

/* Whoever sampled others has no events of its own. */
static bool passes(kymo_recording *recording, size_t log)
{
    return kymo_recording_process(recording, log)->n_words == 0 &&
           kymo__recording_has_samples(recording, log);
}

const struct kymo_process *kymo__export_nth(const struct kymo__export *x, uint32_t number)
{
    uint32_t n = 0;
    for (size_t r = 0; r < x->n_recordings; r++)
        for (size_t i = 0; i < kymo_recording_n_logs(x->recordings[r]); i++)
            if (!passes(x->recordings[r], i) && n++ == number)
                return kymo_recording_process(x->recordings[r], i);
    return NULL;
}

static int compare_i64(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool has_repeats(int64_t *values, size_t n)
{
    qsort(values, n, sizeof values[0], compare_i64);
    for (size_t i = 1; i < n; i++) {
        if (values[i] == values[i - 1])
            return true;
    }
    return false;
}

static int64_t process_shift(const struct kymo__export *x, const struct kymo_process *process)
{
    return x->is_wall_clock ? process->mono_to_unix_ns : 0;
}

static void survey_process(struct kymo__export *x, const struct kymo_process *process)
{
    x->n_total += process->n_words;
    if (process->n_words == 0)
        return;
    const uint64_t first_ns = process->first_ns + (uint64_t)process_shift(x, process);
    if (!x->has_origin || first_ns < x->origin_ns) {
        x->has_origin = true;
        x->origin_ns = first_ns;
        x->origin_unix_ns = (int64_t)(process->first_ns + (uint64_t)process->mono_to_unix_ns);
    }
}

/*
 * Look at every process once: do they share a machine, are their pids distinct, when does it begin,
 * how much is it?
 */
static kymo_status survey(struct kymo__export *x, kymo_recording *const *recordings, size_t n)
{
    size_t n_processes = 0, k = 0;
    for (size_t r = 0; r < n; r++)
        n_processes += kymo_recording_n_logs(recordings[r]);
    int64_t *pids = kymo__calloc(n_processes + 1, sizeof *pids);
    if (pids == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory for %zu processes", n_processes);

    const char *host = NULL;
    for (size_t r = 0; r < n; r++) {
        for (size_t i = 0; i < kymo_recording_n_logs(recordings[r]); i++) {
            const struct kymo_process *process = kymo_recording_process(recordings[r], i);
            if (passes(recordings[r], i))
                continue;
            x->is_wall_clock |= host != NULL && strcmp(host, process->host) != 0;
            host = process->host;
            /* Samples of a process lie on tracks of their own, beside its events. */
            if (n == 1 || strcmp(process->source, KYMO__SAMPLES_SOURCE) != 0)
                pids[k++] = process->pid;
        }
    }
    x->has_own_ids = has_repeats(pids, k);
    kymo__free(pids);

    for (size_t r = 0; r < n; r++) {
        for (size_t i = 0; i < kymo_recording_n_logs(recordings[r]); i++)
            survey_process(x, kymo_recording_process(recordings[r], i));
    }
    return KYMO_OK;
}

/* ---- one process ---- */

static kymo_status prepare_sites(struct kymo__export *x)
{
    const uint32_t n = x->process->n_sites;
    const char *filter = x->options->filter;
    struct kymo__names names = {0};

    x->names = kymo__calloc((size_t)n + 1, sizeof x->names[0]);
    x->skip = filter != NULL ? kymo__calloc((size_t)n + 1, 1) : NULL;
    bool is_complete = x->names != NULL && (filter == NULL || x->skip != NULL);
    for (uint32_t slot = 0; is_complete && slot <= n; slot++) {
        const struct kymo_site_info *site = kymo__export_site(x, slot);
        x->names[slot] = kymo__names_number(&names, site->name, site->name_len);
        is_complete = x->names[slot] != KYMO__NO_NAME;
        if (filter != NULL && slot != 0)
            x->skip[slot] = !kymo__name_matches(filter, site->name, site->name_len);
    }
    kymo__names_fini(&names);
    return is_complete ? KYMO_OK : kymo__fail(KYMO_ENOMEM, "no memory for %u names", n);
}

static bool lane_is_before(const void *a, const void *b)
{
    const struct kymo_lane_info *x = (*(struct kymo__export_lane *const *)a)->info,
                                *y = (*(struct kymo__export_lane *const *)b)->info;
    return x->tid != y->tid ? x->tid < y->tid : x->lane < y->lane;
}

/* In an imported trace, lanes with one tid are of one thread; in a recording, a tid may have been given again. */
static bool find_first_lanes(struct kymo__export *x)
{
    if (x->process->source[0] == '\0')
        return true;
    struct kymo__export_lane **lanes = kymo__calloc((size_t)x->process->n_lanes + 1, sizeof *lanes);
    size_t n = 0;
    for (uint32_t i = 0; lanes != NULL && i < x->process->n_lanes; i++)
        if (x->lanes[i].info->kind == KYMO_LANE_THREAD)
            lanes[n++] = &x->lanes[i];
    const bool done = lanes != NULL && kymo__sort_runs(lanes, n, sizeof *lanes, lane_is_before);
    for (size_t i = 1; done && i < n; i++)
        if (lanes[i]->info->tid == lanes[i - 1]->info->tid)
            lanes[i]->first = lanes[i - 1]->first != NULL ? lanes[i - 1]->first : lanes[i - 1];
    kymo__free(lanes);
    return done;
}

static kymo_status prepare_lanes(struct kymo__export *x)
{
    const uint32_t n = x->process->n_lanes;
    x->lanes = kymo__calloc((size_t)n + 1, sizeof x->lanes[0]);
    if (x->lanes == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory for %u threads", n);
    for (uint32_t i = 0; i < n; i++) {
        x->lanes[i].info = kymo_recording_lane(x->recording, x->process->index, i);
        x->lanes[i].last_ns =
            x->origin_ns; /* so that no event, whatever its stamp, lies before the origin */
    }
    return find_first_lanes(x) ? KYMO_OK : kymo__fail(KYMO_ENOMEM, "no memory for %u threads", n);
}

static void forget_process(struct kymo__export *x)
{
    for (uint32_t i = 0; x->lanes != NULL && i < x->process->n_lanes; i++) {
        kymo__free(x->lanes[i].open);
        kymo__free(x->lanes[i].own);
        kymo__buf_fini(&x->lanes[i].payloads);
        kymo__buf_fini(&x->lanes[i].held);
    }
    kymo__free(x->lanes);
    kymo__free(x->skip);
    kymo__free(x->names);
    kymo__free(x->sites);
    kymo__buf_fini(&x->texts);
    if (x->options->n_unmatched != NULL)
        *x->options->n_unmatched += x->asyncs.n_dropped;
    kymo__async_match_fini(&x->asyncs);
    x->lanes = NULL;
    x->skip = NULL;
    x->names = NULL;
    x->sites = NULL;
    x->n_lanes_before += x->process->n_lanes;
    x->process_number++;
}

static void tell_progress(struct kymo__export *x, size_t n_words)
{
    x->n_done += n_words;
    if (x->options->progress == NULL || (x->n_done - x->n_told) * 200 < x->n_total)
        return;
    x->n_told = x->n_done;
    x->options->progress(x->options->progress_ctx,
                         KYMO__MIN((double)x->n_done / (double)x->n_total, 1.0));
}

static kymo_status visit_batch(void *ctx, const struct kymo_batch *batch)
{
    struct kymo__export *x = ctx;
    /* A recording that still grows may show a lane that opened after we looked. */
    if (batch->lane->lane >= x->process->n_lanes)
        return KYMO_OK;
    struct kymo__export_lane *lane = &x->lanes[batch->lane->lane];
    if (KYMO_LIKELY(batch->lane->kind == KYMO_LANE_THREAD))
        KYMO_TRY(x->format->batch(x, lane, batch));
    else if (batch->lane->kind == KYMO_LANE_GPU)
        KYMO_TRY(kymo__export_work(x, lane, batch));
    tell_progress(x, batch->n);
    return KYMO_OK;
}

static kymo_status visit_lane_by_lane(struct kymo__export *x)
{
    const size_t process = x->process->index;
    for (uint32_t i = 0; i < x->process->n_lanes; i++) {
        KYMO_TRY(kymo__recording_visit_lane(x->recording, process, i, visit_batch, x));
        kymo__export_work_end(x, &x->lanes[i]);
        x->format->lane_done(x, &x->lanes[i]);
    }
    return KYMO_OK;
}

/* Where a thread of its own writes, another may read; it pays from some events on. */
static kymo_status visit_events(struct kymo__export *x)
{
    enum { WORTH_A_THREAD = 100000 };
    if (x->format->lane_done != NULL)
        return visit_lane_by_lane(x);
    if (x->out.other != NULL && x->process->n_words >= WORTH_A_THREAD)
        return kymo__visit_ahead(x->recording, x->process->index, visit_batch, x);
    return kymo__recording_visit_in_order(x->recording, x->process->index, visit_batch, x);
}

static kymo_status export_events(struct kymo__export *x)
{
    KYMO_TRY(prepare_sites(x));
    KYMO_TRY(prepare_lanes(x));
    kymo__export_progress_start(x);
    KYMO_TRY(x->format->process(x));
    KYMO_TRY(visit_events(x));
    for (uint32_t i = 0; i < x->process->n_lanes; i++)
        kymo__export_work_end(x, &x->lanes[i]);
    if (x->format->lane_done == NULL)
        kymo__export_progress_end(x);
    if (x->format->process_done != NULL)
        x->format->process_done(x);
    return x->status != KYMO_OK ? x->status : x->out.status;
}

static kymo_status export_process(struct kymo__export *x, kymo_recording *recording, size_t i)
{
    x->recording = recording;
    x->process = kymo_recording_process(recording, i);
    x->pid = x->has_own_ids ? (int64_t)x->process_number + 1 : x->process->pid;
    x->shift_ns = process_shift(x, x->process);
    const kymo_status status = export_events(x);
    forget_process(x);
    return status;
}

static kymo_status export_by_events(struct kymo__export *x, kymo_recording *const *recordings,
                                    size_t n)
{
    KYMO_TRY(survey(x, recordings, n));
    x->format->start(x);
    KYMO_TRY(x->status);
    for (size_t r = 0; r < n; r++) {
        for (size_t i = 0; i < kymo_recording_n_logs(recordings[r]); i++)
            if (!passes(recordings[r], i))
                KYMO_TRY(export_process(x, recordings[r], i));
    }
    if (x->format->finish != NULL)
        x->format->finish(x);
    return x->status;
}

static kymo_status export_all(struct kymo__export *x, kymo_recording *const *recordings, size_t n)
{
    KYMO_TRY(x->format->whole != NULL ? x->format->whole(x, recordings, n)
                                      : export_by_events(x, recordings, n));
    kymo__out_finish(&x->out);
    const kymo_status status = x->status != KYMO_OK ? x->status : x->out.status;
    if (x->options->progress != NULL && status == KYMO_OK)
        x->options->progress(x->options->progress_ctx, 1.0);
    return status;
}

/* Options that the format does not know are a mistake of who asks. */
static kymo_status check_options(const struct kymo__export *x)
{
    const struct kymo_export_options *wants = x->options;
    uint32_t found;
    if (!x->format->adds_up && (wants->by != NULL || wants->n_baseline != 0))
        return kymo__fail(
            KYMO_EINVAL,
            "%s goes with collapsed and flamegraph, which add times up; %s has single events",
            wants->by != NULL ? "by" : "a baseline", x->format->name);
    if (!x->format->takes_window && (wants->from_ns != 0 || wants->until_ns != 0 ||
                                     wants->launched_before != 0 || wants->about != NULL))
        return kymo__fail(KYMO_EINVAL, "a window goes with kineto; %s has all events",
                          x->format->name);
    if (wants->about != NULL &&
        !kymo__arguments_look(wants->about, strlen(wants->about), NULL, 0, &found))
        return kymo__fail(KYMO_EINVAL, "what is said about the window is no JSON object: %.100s",
                          wants->about);
    return KYMO_OK;
}

static kymo_status export_recordings(kymo_recording *const *recordings, size_t n, const char *format,
                                     const struct kymo_export_options *options, int fd)
{
    static const struct kymo_export_options defaults;
    struct kymo__export x = {
        .format = find_format(format),
        .options = options != NULL ? options : &defaults,
        .recordings = recordings,
        .n_recordings = n,
    };
    if (x.format == NULL || x.format->missing != NULL)
        return kymo_export_check(format);
    KYMO_TRY(check_options(&x));
    KYMO_TRY(kymo__out_init(&x.out, fd));
    const kymo_status status = export_all(&x, recordings, n);
    if (x.format->close != NULL)
        x.format->close(&x);
    kymo__buf_fini(&x.texts);
    kymo__out_fini(&x.out);
    return status;
}

/* Sums by path, of calls or of samples, laid out as ranges. */
static kymo_status export_calls(kymo_recording *const *recordings, size_t n, const char *format,
                                const struct kymo_export_options *options, int fd)
{
    struct kymo_export_options wants = *options;
    kymo_recording *laid = NULL, *before = NULL;
    KYMO_TRY(kymo__calls_lay(recordings, n, options, &laid));
    kymo_status status = KYMO_OK;
    if (wants.n_baseline != 0)
        status = kymo__calls_lay(wants.baseline, wants.n_baseline, options, &before);
    if (before != NULL) {
        wants.baseline = &before;
        wants.n_baseline = 1;
    }
    if (status == KYMO_OK)
        status = export_recordings(&laid, 1, format, &wants, fd);
    kymo_recording_close(laid);
    kymo_recording_close(before);
    return status;
}

/* Samples in order of time; beside the events of the recordings, or alone. */
static kymo_status export_samples(kymo_recording *const *recordings, size_t n,
                                  const struct kymo__export_format *format,
                                  const struct kymo_export_options *options, int fd)
{
    const bool is_beside = format->draws_time && !kymo__samples_are_all(recordings, n);
    kymo_recording **const all = kymo__calloc(n + 1, sizeof *all);
    kymo_recording *laid = NULL;
    if (all == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory for the export");
    kymo_status status = kymo__samples_lay(recordings, n, options->samples, is_beside, &laid);
    if (status == KYMO_OK) {
        memcpy(all, recordings, n * sizeof *all);
        all[n] = laid;
        status = is_beside ? export_recordings(all, n + 1, format->name, options, fd)
                           : export_recordings(&laid, 1, format->name, options, fd);
        kymo_recording_close(laid);
    }
    kymo__free(all);
    return status;
}

kymo_status kymo_export(kymo_recording *const *recordings, size_t n, const char *format,
                        const struct kymo_export_options *options, int fd)
{
    static const struct kymo_export_options defaults;
    const struct kymo__export_format *const found = find_format(format);
    if (options == NULL)
        options = &defaults;
    if (options->calls && !kymo__calls_are_there(recordings, n))
        return kymo__fail(KYMO_EINVAL, "no calls were recorded; record them with kymo run --calls, "
                                       "kymo.start(calls=True) or kymo.Profile");
    const bool is_sampled = kymo_samples_are_there(recordings, n);
    if (options->samples != NULL && !is_sampled && !kymo__samples_are_imported(recordings, n))
        return kymo__fail(KYMO_EINVAL, "nothing was sampled; sample with kymo attach PID or kymo "
                                       "run --sample");
    if (found == NULL || found->missing != NULL || found->has_calls)
        return export_recordings(recordings, n, format, options, fd);
    const bool wants_samples = options->samples != NULL || kymo__samples_are_all(recordings, n);
    if (wants_samples && !options->calls && found->adds_up)
        return export_calls(recordings, n, format, options, fd);
    if (!options->calls && is_sampled && (wants_samples || found->is_timeline))
        return export_samples(recordings, n, found, options, fd);
    if (options->calls || kymo__calls_are_all(recordings, n))
        return export_calls(recordings, n, format, options, fd);
    return export_recordings(recordings, n, format, options, fd);
}
