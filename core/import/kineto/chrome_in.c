/* Kineto and Chrome traces, including viztracer's, to the sink. Events before damage are kept, with a note. */
#include "codec/json_chars.h"
#include "import/kineto/internal.h"

static bool wants_more(void *ctx)
{
    const struct marey__chrome *chrome = ctx;
    return !chrome->has_failed && chrome->import->sink->status == MAREY_OK;
}

static bool put(void *ctx)
{
    marey__chrome_put(ctx);
    return true;
}

/* ---- notes at the end ---- */

static void put_note(const struct marey__chrome *chrome, uint64_t n, const char *words)
{
    if (n > 0)
        marey__sink_note(chrome->main, "%" PRIu64 " %s", n, words);
}

static void note_phases(const struct marey__chrome *chrome)
{
    uint64_t n = 0;
    char phases[64] = "";
    size_t len = 0;
    for (unsigned c = 0; c < 256; c++) {
        n += chrome->n_phases[c];
        if (chrome->n_phases[c] > 0 && c > ' ' && c < 127 && len + 4 < sizeof phases)
            marey__append(phases, sizeof phases, &len, "%s%c", len > 0 ? ", " : "", c);
    }
    if (n > 0)
        marey__sink_note(chrome->main, "%" PRIu64 " events have an unsupported phase (%s): left out.",
                         n, len > 0 ? phases : "none");
}

static void note_all(const struct marey__chrome *chrome)
{
    put_note(chrome, chrome->file.n_no_events, "entries of the trace are not events: left out.");
    put_note(chrome, chrome->n_without_time, "events of the trace have no time: left out.");
    put_note(chrome, chrome->n_negative_times, "events of the trace have a negative time: left out.");
    put_note(chrome, chrome->n_without_duration, "events of the trace have no duration: taken as 0.");
    put_note(chrome, chrome->n_negative_durations,
             "events of the trace have a negative duration: taken as 0.");
    put_note(chrome, chrome->n_without_value,
             "values of counters in the trace are not numbers: left out.");
    note_phases(chrome);
    if (chrome->header.has_overflown)
        marey__sink_note(chrome->main,
                         "viztracer's buffer was full: its oldest events are lost; give it more by "
                         "--tracer_entries.");
}

static marey_status finish(struct marey__chrome *chrome)
{
    const struct marey__import *import = chrome->import;
    MAREY__TRY_MEMORY(!chrome->has_failed);
    MAREY_TRY(marey__sink_status(import->sink));
    struct marey__buf *damage = &chrome->text;
    damage->len = 0;
    marey__kineto_file_damage(&chrome->file, damage);
    const bool is_damaged = damage->len > 0;
    marey__buf_put(damage, "", 1);
    MAREY__TRY_MEMORY(!damage->failed);
    if (import->sink->n_events == 0) {
        if (is_damaged)
            return marey__fail(MAREY_EFORMAT, "%s; it has no events before that", damage->data);
        return marey__fail(MAREY_EFORMAT,
                           chrome->header.has_list ? "%s has no events in its list of events"
                                                   : "%s has no list of events (traceEvents)",
                           import->path);
    }
    if (is_damaged)
        marey__sink_note(chrome->main, "%s. What came before is here: %" PRIu64 " events.",
                         damage->data, chrome->n_events);
    note_all(chrome);
    marey__chrome_identify(chrome);
    return chrome->has_failed ? marey__no_memory() : MAREY_OK;
}

static marey_status read_trace(struct marey__import *import)
{
    struct marey__chrome *chrome = marey__calloc(1, sizeof *chrome);
    MAREY__TRY_MEMORY(chrome != NULL);
    chrome->import = import;
    chrome->seed = chrome->words.seed = import->sink->seed;
    chrome->file = (struct marey__kineto_file){.name = import->path,
                                               .header = &chrome->header,
                                               .put = put,
                                               .wants_more = wants_more,
                                               .ctx = chrome};
    marey_status status = marey__kineto_file_read(&chrome->file, import->bytes);
    if (status == MAREY_OK)
        status = finish(chrome);
    marey__json_fini(&chrome->file.json);
    marey__kineto_header_fini(&chrome->header);
    marey__buf_fini(&chrome->text);
    marey__chrome_free_threads(chrome);
    marey__free(chrome);
    return status;
}

/* ---- detection ---- */

/* An object with one of these keys among its first bytes, or a list whose first entry is an object with a phase. */
static bool looks_like(const char *bytes, size_t len)
{
    static const char *const keys[] = {"\"traceEvents\"",         "\"schemaVersion\"",
                                       "\"deviceProperties\"",    "\"distributedInfo\"",
                                       "\"baseTimeNanoseconds\"", "\"displayTimeUnit\""};
    size_t i = len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (i < len && json_is_blank(bytes[i]))
        i++;
    if (i == len)
        return false;
    if (bytes[i] == '[') {
        for (i++; i < len && json_is_blank(bytes[i]);)
            i++;
        return i == len || bytes[i] == ']' ||
               (bytes[i] == '{' && memmem(bytes, len, "\"ph\"", 4) != NULL);
    }
    for (size_t k = 0; bytes[i] == '{' && k < MAREY__COUNT_OF(keys); k++)
        if (memmem(bytes, len, keys[k], strlen(keys[k])) != NULL)
            return true;
    return false;
}

const struct marey__import_format marey__import_chrome = {
    .info = {.name = "kineto",
             .noun = "a Kineto or Chrome trace",
             .brief = "traces of torch.profiler (Kineto), viztracer and other Chrome traces",
             .extensions = ".json .trace .pt"},
    .looks_like = looks_like,
    .read = read_trace,
};
