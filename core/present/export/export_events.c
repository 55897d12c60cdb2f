/*
 * Exports events of recordings to one file, process by process in order. A format gets one process at a time with its
 * sites and lanes prepared; this file handles clocks, ids and filters for all formats.
 */
#include "analyze/samples/internal.h"
#include "present/export/export_walk.h"
#include "read/internal.h"

bool marey__export_lane_has_room(struct marey__export *x, struct marey__export_lane *lane)
{
    bool failed;
    const bool has_room = marey__stack_make_room(&x->replay, &lane->stack, &failed);
    if (failed)
        x->status = marey__no_memory();
    return has_room;
}

void marey__export_put(struct marey__export *x, const struct marey__buf *buf)
{
    if (buf->failed)
        x->status = marey__no_memory();
    else
        marey__out_put(&x->out, buf->data, buf->len);
}

void marey__export_put_last(struct marey__export *x, struct marey__buf *buf)
{
    marey__export_put(x, buf);
    marey__buf_fini(buf);
}

bool marey__export_async(struct marey__export *x, const struct marey__async_half *half,
                         struct marey__async_half *begin, struct marey__async_half *end)
{
    struct marey__async_half other;
    bool failed;
    if (!marey__async_match(&x->asyncs, half, &other, &failed)) {
        if (failed)
            x->status = marey__no_memory();
        return false;
    }
    *begin = half->is_begin ? *half : other;
    *end = half->is_begin ? other : *half;
    return true;
}

marey_status marey__export_texts(struct marey__export *x,
                                 void (*put)(struct marey__buf *buf,
                                             const struct marey_site_info *site),
                                 size_t spare)
{
    const uint32_t n = x->process->n_sites;
    struct marey__site_text *texts = marey__calloc((size_t)n + 1, sizeof *texts);
    x->sites = texts;
    for (uint32_t slot = 0; texts != NULL && slot <= n; slot++) {
        texts[slot].at = (uint32_t)x->texts.len;
        put(&x->texts, marey__export_site(x, slot));
        texts[slot].len = (uint32_t)(x->texts.len - texts[slot].at);
    }
    if (texts == NULL || marey__buf_extend(&x->texts, spare) == NULL || x->texts.len > UINT32_MAX)
        return marey__no_memory();
    return MAREY_OK;
}

/* Parse the next word of a command line, with shell quoting; returns the rest. */
static const char *take_word(const char *at, struct marey__buf *word)
{
    bool is_quoted = false;
    word->len = 0;
    for (; *at != '\0' && (is_quoted || *at != ' '); at++) {
        if (*at == '\'')
            is_quoted = !is_quoted;
        else if (*at == '\\' && !is_quoted && at[1] != '\0')
            marey__buf_put(word, ++at, 1);
        else
            marey__buf_put(word, at, 1);
    }
    return *at == ' ' ? at + 1 : at;
}

void marey__export_program(struct marey__buf *buf, const char *command)
{
    struct marey__buf word MAREY__FINALLY(marey__buf_fini) = {0};
    const char *rest = take_word(command, &word);
    const bool is_python = word.len > 0 && memmem(word.data, word.len, "python", 6) != NULL;
    if (is_python && *rest != '\0' && *rest != '-')
        take_word(rest, &word);
    if (word.len > 0) {
        const char *slash = memrchr(word.data, '/', word.len);
        const char *name = slash != NULL ? slash + 1 : word.data;
        marey__utf8_put(buf, name, word.len - (size_t)(name - word.data));
    }
}

void marey__export_process_name(const struct marey__export *x, struct marey__buf *buf)
{
    const struct marey_process *process = x->process;
    if (process->rank >= 0)
        marey__buf_printf(buf, "rank %d ", process->rank);
    if (process->worker >= 0)
        marey__buf_printf(buf, "worker %d ", process->worker);
    marey__export_program(buf, process->command);
    if (x->has_own_ids)
        marey__buf_printf(buf, " (%s, pid %lld)", process->host, (long long)process->pid);
}

/* ---- iterations, epochs, phases: not for formats that take lanes one by one ---- */

void marey__export_progress(struct marey__export *x, const uint64_t *words, uint64_t ns)
{
    struct marey__span span;
    if (marey__progress_take(&x->progress, words, ns, &span) && x->format->span != NULL)
        x->format->span(x, &span);
}

const char *marey__span_track(enum marey__span_kind kind)
{
    return kind == MAREY__SPAN_ITERATION ? "iterations"
           : kind == MAREY__SPAN_EPOCH   ? "epochs"
                                         : "phases";
}

void marey__span_name(const struct marey__export *x, struct marey__buf *buf,
                      const struct marey__span *span)
{
    if (span->kind == MAREY__SPAN_PHASE) {
        const struct marey_site_info *site = marey__export_site(x, span->site);
        marey__buf_put(buf, site->name, site->name_len);
        return;
    }
    marey__buf_printf(buf, "%s %" PRIu64, span->kind == MAREY__SPAN_EPOCH ? "epoch" : "iteration",
                      span->number);
}

bool marey__span_is_first(struct marey__export *x, enum marey__span_kind kind)
{
    const uint32_t bit = 1u << kind;
    const bool is_first = (x->span_kinds & bit) == 0;
    x->span_kinds |= bit;
    return is_first;
}

/*
 * ---- lanes that are streams of a GPU ----
 *
 * Records of work, each followed by records about it. A piece of work goes to the format at the first word that is not
 * about it. One at the end of a batch waits in the lane for the next batch:
 *
 *   lane->payloads    | struct marey__stream_work | records |
 */

enum { MAX_RECORDS = 1 << 14 }; /* limit on words about one piece; further records are dropped */

static uint64_t ns_of(const struct marey__export *x, const struct marey_batch *batch, uint64_t word)
{
    const uint64_t ns = marey_batch_ns(batch, word) + (uint64_t)x->shift_ns;
    return MAREY__MAX(ns, x->origin_ns);
}

/* The number of words from `from` on in records about work that began at `ns`; of flows, those with that timestamp. */
static size_t count_records(const struct marey__export *x, const struct marey_batch *batch,
                            size_t from, uint64_t ns)
{
    size_t i = from;
    while (i < batch->n && i - from < MAX_RECORDS) {
        const uint64_t word = batch->words[i];
        const uint32_t type = marey_record_type_of(word);
        const bool is_about_it = type >= MAREY_RECORD_LAUNCH && type <= MAREY_RECORD_ARGUMENTS;
        const bool is_flow = type == MAREY_RECORD_FLOW && ns_of(x, batch, word) == ns;
        if (marey_word_kind(word) != MAREY_KIND_RECORD || (!is_about_it && !is_flow))
            break;
        MAREY_ASSERT(marey_record_length(word) <= batch->n - i);
        i += marey_record_length(word);
    }
    return i - from;
}

static void hand_on(struct marey__export *x, struct marey__export_lane *lane,
                    struct marey__stream_work *work, const uint64_t *records, size_t n)
{
    work->payload.records = records;
    work->payload.n_words = (uint32_t)n;
    lane->stack.last_ns = MAREY__MAX(lane->stack.last_ns, work->ns + work->duration_ns);
    if (x->format->work != NULL && !marey__is_skipped(x, work->site))
        x->format->work(x, lane, work);
}

static void end_work(struct marey__export *x, struct marey__export_lane *lane)
{
    struct marey__stream_work work;
    if (lane->stack.info->kind != MAREY_LANE_GPU || lane->payloads.len < sizeof work)
        return;
    memcpy(&work, lane->payloads.data, sizeof work);
    hand_on(x, lane, &work, (const uint64_t *)(lane->payloads.data + sizeof work),
            (lane->payloads.len - sizeof work) / sizeof(uint64_t));
    lane->payloads.len = 0;
}

static void keep(struct marey__export *x, struct marey__export_lane *lane, const void *bytes, size_t n)
{
    if (lane->payloads.len + n <= 2 * MAX_RECORDS * sizeof(uint64_t))
        marey__buf_put(&lane->payloads, bytes, n);
    if (lane->payloads.failed)
        x->status = marey__no_memory();
}

static struct marey__stream_work work_of(const struct marey__export *x,
                                         const struct marey_batch *batch, const uint64_t *words)
{
    struct marey__stream_work work = {
        .ns = ns_of(x, batch, words[0]),
        .duration_ns = marey_batch_duration_ns(batch, words[2]),
        .site = marey_record_site(words[1]),
        .kind = marey_record_work_kind(words[1]),
        .correlation = words[3],
        .bytes = words[4],
        .details = marey_record_work_details(words[1]),
    };
    work.has_launch = marey_record_launch(words, &work.launch);
    return work;
}

/* Add records about the waiting work; returns the number of words consumed. */
static size_t take_rest(struct marey__export *x, struct marey__export_lane *lane,
                        const struct marey_batch *batch)
{
    struct marey__stream_work work;
    if (lane->payloads.len < sizeof work)
        return 0;
    memcpy(&work, lane->payloads.data, sizeof work);
    const size_t n = count_records(x, batch, 0, work.ns);
    keep(x, lane, batch->words, n * sizeof batch->words[0]);
    return n;
}

/* The record at `i`; returns the number of words consumed. */
static size_t take_record(struct marey__export *x, struct marey__export_lane *lane,
                          const struct marey_batch *batch, size_t i)
{
    const uint64_t *words = batch->words + i;
    const size_t len = MAREY__MAX(marey_record_length(words[0]), 1u);
    const uint32_t type = marey_record_type_of(words[0]);
    if (type == MAREY_RECORD_FLOW && x->format->flow != NULL &&
        !marey__is_skipped(x, marey_record_site(words[1])))
        x->format->flow(x, lane, ns_of(x, batch, words[0]), words);
    if (type != MAREY_RECORD_GPU)
        return len;
    struct marey__stream_work work = work_of(x, batch, words);
    const size_t n = count_records(x, batch, i + len, work.ns);
    if (i + len + n < batch->n) {
        hand_on(x, lane, &work, words + len, n);
    } else {
        keep(x, lane, &work, sizeof work);
        keep(x, lane, words + len, n * sizeof words[0]);
    }
    return len + n;
}

static marey_status export_work(struct marey__export *x, struct marey__export_lane *lane,
                                const struct marey_batch *batch)
{
    for (size_t i = take_rest(x, lane, batch); i < batch->n;) {
        end_work(x, lane);
        i += marey_word_kind(batch->words[i]) == MAREY_KIND_RECORD ? take_record(x, lane, batch, i)
                                                                   : 1;
    }
    return x->status != MAREY_OK ? x->status : x->out.status;
}

/* ---- survey of all recordings ---- */

/* A process that only sampled others has no events. */
static bool passes(marey_recording *recording, size_t log)
{
    return marey_recording_process(recording, log)->n_words == 0 &&
           marey__recording_has_payload(recording, log, MAREY__PAYLOAD_SAMPLES);
}

const struct marey_process *marey__export_nth(const struct marey__export *x, uint32_t number)
{
    uint32_t n = 0;
    for (size_t r = 0; r < x->n_recordings; r++)
        for (size_t i = 0; i < marey_recording_n_logs(x->recordings[r]); i++)
            if (!passes(x->recordings[r], i) && n++ == number)
                return marey_recording_process(x->recordings[r], i);
    return NULL;
}

static bool has_repeats(uint64_t *values, size_t n)
{
    qsort(values, n, sizeof values[0], marey__compare_u64);
    for (size_t i = 1; i < n; i++) {
        if (values[i] == values[i - 1])
            return true;
    }
    return false;
}

static int64_t process_shift(const struct marey__export *x, const struct marey_process *process)
{
    return x->is_wall_clock ? process->mono_to_unix_ns : 0;
}

static void survey_process(struct marey__export *x, const struct marey_process *process)
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
 * Check every process once: whether they share a machine, whether pids are distinct, the earliest begin, the total
 * size.
 */
static marey_status survey(struct marey__export *x, marey_recording *const *recordings, size_t n)
{
    size_t n_processes = 0, k = 0;
    for (size_t r = 0; r < n; r++)
        n_processes += marey_recording_n_logs(recordings[r]);
    uint64_t *pids MAREY__FREED = marey__calloc(n_processes + 1, sizeof *pids);
    MAREY__TRY_MEMORY(pids != NULL);

    const char *host = NULL;
    for (size_t r = 0; r < n; r++) {
        for (size_t i = 0; i < marey_recording_n_logs(recordings[r]); i++) {
            const struct marey_process *process = marey_recording_process(recordings[r], i);
            if (passes(recordings[r], i))
                continue;
            x->is_wall_clock |= host != NULL && strcmp(host, process->host) != 0;
            host = process->host;
            /* Samples of a process have separate tracks beside its events. */
            if (n == 1 || strcmp(process->source, MAREY__SAMPLES_SOURCE) != 0)
                pids[k++] = (uint64_t)process->pid;
        }
    }
    x->has_own_ids = has_repeats(pids, k);

    for (size_t r = 0; r < n; r++) {
        for (size_t i = 0; i < marey_recording_n_logs(recordings[r]); i++)
            survey_process(x, marey_recording_process(recordings[r], i));
    }
    return MAREY_OK;
}

/* ---- one process ---- */

static marey_status prepare_sites(struct marey__export *x)
{
    const uint32_t n = x->process->n_sites;
    const char *filter = x->options->filter;
    struct marey__names names = {0};

    x->skip = filter != NULL ? marey__calloc((size_t)n + 1, 1) : NULL;
    const bool is_complete = marey__replay_init(&x->replay, x->recording, x->process->index, &names) &&
                             (filter == NULL || x->skip != NULL);
    marey__names_fini(&names);
    if (!is_complete)
        return marey__fail(MAREY_ENOMEM, "no memory for %u names", n);
    for (uint32_t slot = 1; filter != NULL && slot <= n; slot++) {
        const struct marey_site_info *site = marey__export_site(x, slot);
        x->skip[slot] = !marey__name_matches(filter, site->name, site->name_len);
    }
    return MAREY_OK;
}

MAREY__ORDER_RUNS(lane_is_before, struct marey__export_lane *const,
                  MAREY__UP_BY((*x)->stack.info->tid, (*y)->stack.info->tid)
                      MAREY__UP_BY((*x)->stack.info->lane, (*y)->stack.info->lane))

/* In an imported trace, lanes with one tid belong to one thread; in a recording, a tid may have been reused. */
static bool find_first_lanes(struct marey__export *x)
{
    if (x->process->source[0] == '\0')
        return true;
    struct marey__export_lane **lanes MAREY__FREED =
        marey__calloc((size_t)x->process->n_lanes + 1, sizeof *lanes);
    size_t n = 0;
    for (uint32_t i = 0; lanes != NULL && i < x->process->n_lanes; i++)
        if (x->lanes[i].stack.info->kind == MAREY_LANE_THREAD)
            lanes[n++] = &x->lanes[i];
    const bool done = lanes != NULL && marey__sort_runs(lanes, n, sizeof *lanes, lane_is_before);
    for (size_t i = 1; done && i < n; i++)
        if (lanes[i]->stack.info->tid == lanes[i - 1]->stack.info->tid)
            lanes[i]->first = lanes[i - 1]->first != NULL ? lanes[i - 1]->first : lanes[i - 1];
    return done;
}

static marey_status prepare_lanes(struct marey__export *x)
{
    const uint32_t n = x->process->n_lanes;
    x->lanes = marey__calloc((size_t)n + 1, sizeof x->lanes[0]);
    MAREY__TRY_MEMORY(x->lanes != NULL);
    for (uint32_t i = 0; i < n; i++) {
        x->lanes[i].stack.info = marey_recording_lane(x->recording, x->process->index, i);
        x->lanes[i].stack.last_ns =
            x->origin_ns; /* so that no event, whatever its timestamp, is before the origin */
    }
    return find_first_lanes(x) ? MAREY_OK : marey__no_memory();
}

static void forget_process(struct marey__export *x)
{
    for (uint32_t i = 0; x->lanes != NULL && i < x->process->n_lanes; i++) {
        marey__stack_fini(&x->lanes[i].stack);
        marey__free(x->lanes[i].own);
        marey__buf_fini(&x->lanes[i].payloads);
        marey__buf_fini(&x->lanes[i].held);
    }
    MAREY__FREE_ALL(x->lanes, x->skip, x->replay.site_names, x->sites);
    marey__buf_fini(&x->texts);
    if (x->options->n_unmatched != NULL)
        *x->options->n_unmatched += x->asyncs.n_dropped;
    if (x->options->n_too_deep != NULL)
        *x->options->n_too_deep += x->replay.n_too_deep;
    marey__async_match_fini(&x->asyncs);
    x->lanes = NULL;
    x->skip = NULL;
    x->replay = (struct marey__replay){0};
    x->sites = NULL;
    x->n_lanes_before += x->process->n_lanes;
    x->process_number++;
}

static void report_progress(struct marey__export *x, size_t n_words)
{
    x->n_done += n_words;
    if (x->options->progress == NULL || (x->n_done - x->n_reported) * 200 < x->n_total)
        return;
    x->n_reported = x->n_done;
    x->options->progress(x->options->progress_ctx,
                         MAREY__MIN((double)x->n_done / (double)x->n_total, 1.0));
}

static marey_status visit_batch(void *ctx, const struct marey_batch *batch)
{
    struct marey__export *x = ctx;
    /* A recording that still grows may have lanes opened since then. */
    if (batch->lane->lane >= x->process->n_lanes)
        return MAREY_OK;
    struct marey__export_lane *lane = &x->lanes[batch->lane->lane];
    if (MAREY_LIKELY(batch->lane->kind == MAREY_LANE_THREAD))
        MAREY_TRY(x->format->batch(x, lane, batch));
    else if (batch->lane->kind == MAREY_LANE_GPU)
        MAREY_TRY(export_work(x, lane, batch));
    report_progress(x, batch->n);
    return MAREY_OK;
}

static marey_status visit_lane_by_lane(struct marey__export *x)
{
    const size_t process = x->process->index;
    for (uint32_t i = 0; i < x->process->n_lanes; i++) {
        MAREY_TRY(marey__recording_visit_lane(x->recording, process, i, visit_batch, x));
        end_work(x, &x->lanes[i]);
        x->format->lane_done(x, &x->lanes[i]);
    }
    return MAREY_OK;
}

/* With a separate writer thread, a reader thread pays off as well, from some number of events on. */
static marey_status visit_events(struct marey__export *x)
{
    enum { WORTH_A_THREAD = 100000 };
    if (x->format->lane_done != NULL)
        return visit_lane_by_lane(x);
    if (x->out.other != NULL && x->process->n_words >= WORTH_A_THREAD)
        return marey__visit_ahead(x->recording, x->process->index, visit_batch, x);
    return marey__recording_visit_in_order(x->recording, x->process->index, visit_batch, x);
}

static void start_progress(struct marey__export *x)
{
    const uint64_t first_ns = x->process->first_ns + (uint64_t)x->shift_ns;
    marey__progress_init(&x->progress, x->process, MAREY__MAX(first_ns, x->origin_ns));
    x->span_kinds = 0;
}

static void end_progress(struct marey__export *x)
{
    struct marey__span span;
    while (marey__progress_finish(&x->progress, x->process->last_ns + (uint64_t)x->shift_ns, &span))
        if (x->format->span != NULL)
            x->format->span(x, &span);
}

static marey_status export_events(struct marey__export *x)
{
    MAREY_TRY(prepare_sites(x));
    MAREY_TRY(prepare_lanes(x));
    start_progress(x);
    MAREY_TRY(x->format->process(x));
    MAREY_TRY(visit_events(x));
    for (uint32_t i = 0; i < x->process->n_lanes; i++)
        end_work(x, &x->lanes[i]);
    if (x->format->lane_done == NULL)
        end_progress(x);
    if (x->format->process_done != NULL)
        x->format->process_done(x);
    return x->status != MAREY_OK ? x->status : x->out.status;
}

static marey_status export_process(struct marey__export *x, marey_recording *recording, size_t i)
{
    x->recording = recording;
    x->process = marey_recording_process(recording, i);
    x->pid = x->has_own_ids ? (int64_t)x->process_number + 1 : x->process->pid;
    x->shift_ns = process_shift(x, x->process);
    const marey_status status = export_events(x);
    forget_process(x);
    return status;
}

marey_status marey__export_events(struct marey__export *x, marey_recording *const *recordings,
                                  size_t n)
{
    MAREY_TRY(survey(x, recordings, n));
    if (x->format->own_size != 0) {
        x->own = marey__calloc(1, x->format->own_size);
        MAREY__TRY_MEMORY(x->own != NULL);
    }
    x->format->start(x);
    MAREY_TRY(x->status);
    for (size_t r = 0; r < n; r++) {
        for (size_t i = 0; i < marey_recording_n_logs(recordings[r]); i++)
            if (!passes(recordings[r], i))
                MAREY_TRY(export_process(x, recordings[r], i));
    }
    if (x->format->finish != NULL)
        x->format->finish(x);
    return x->status;
}
