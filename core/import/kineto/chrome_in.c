/*
 * Kineto and Chrome traces, viztracer's among them: an object with a list "traceEvents", or that list alone. What stands
 * around the events is read by tokens, in any order; the events themselves where they lie in the window.
 *
 * A list alone may miss its end: programs that die leave it so, and the format allows it. Whatever else is cut or wrong
 * ends the reading; what came before stays, and is told.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codec/json_chars.h"
#include "import/kineto/chrome_internal.h"

enum { MAX_DEVICES = 256 };

/* ---- events ---- */

/* More bytes; false when there are none, or nobody wants them. */
static bool refill(void *ctx)
{
    struct marey__chrome *chrome = ctx;
    return !chrome->has_failed && !marey__sink_has_failed(chrome->import->sink) &&
           marey__json_refill(&chrome->scan);
}

static bool put(void *ctx)
{
    marey__chrome_put(ctx);
    return true;
}

/* Behind the bracket of a list of events: up to the one that closes it. */
static void read_events(struct marey__chrome *chrome)
{
    chrome->has_list = true;
    marey__chrome_read_list(&(struct marey__chrome_list){
        .scan = &chrome->scan,
        .event = &chrome->event,
        .put = put,
        .refill = refill,
        .ctx = chrome,
        .n_no_events = &chrome->n_no_events,
    });
}

/* ---- what stands around them ---- */

static bool is_text(const struct marey__json *scan, const char *text)
{
    return scan->text_len == strlen(text) && memcmp(scan->text, text, scan->text_len) == 0;
}

static void keep_text(struct marey__chrome *chrome, char **field)
{
    marey__free(*field);
    *field = marey__strndup(chrome->scan.text, chrome->scan.text_len);
    chrome->has_failed |= *field == NULL;
}

/* Past the rest of what a token began that is not wanted. */
static void pass_by(struct marey__chrome *chrome, enum marey__json_token token)
{
    if (token == MAREY__JSON_OBJECT || token == MAREY__JSON_ARRAY)
        marey__json_skip(&chrome->scan);
}

/* The value of the key that was just read: a text, an integer, or an object or list that is then open. */
static void read_text(struct marey__chrome *chrome, char **field)
{
    const enum marey__json_token token = marey__json_next(&chrome->scan);
    if (token == MAREY__JSON_STRING)
        keep_text(chrome, field);
    else
        pass_by(chrome, token);
}

static int64_t read_integer(struct marey__chrome *chrome, int64_t otherwise)
{
    struct marey__json *scan = &chrome->scan;
    const enum marey__json_token token = marey__json_next(scan);
    int64_t number;
    if ((token == MAREY__JSON_NUMBER || token == MAREY__JSON_STRING) &&
        marey__decimal(scan->text, scan->text_len, 0, &number))
        return number;
    pass_by(chrome, token);
    return otherwise;
}

static bool enter(struct marey__chrome *chrome, enum marey__json_token wanted)
{
    const enum marey__json_token token = marey__json_next(&chrome->scan);
    if (token != wanted)
        pass_by(chrome, token);
    return token == wanted;
}

static int32_t read_rank(struct marey__chrome *chrome)
{
    const int64_t number = read_integer(chrome, -1);
    return number >= 0 && number <= INT32_MAX ? (int32_t)number : -1;
}

static void read_distributed(struct marey__chrome *chrome)
{
    struct marey__json *scan = &chrome->scan;
    chrome->is_kineto = true;
    if (!enter(chrome, MAREY__JSON_OBJECT))
        return;
    while (marey__json_next(scan) == MAREY__JSON_KEY) {
        if (is_text(scan, "rank"))
            chrome->rank = read_rank(chrome);
        else if (is_text(scan, "world_size"))
            chrome->world_size = read_rank(chrome);
        else if (is_text(scan, "backend"))
            read_text(chrome, &chrome->backend);
        else
            marey__json_skip(scan);
    }
}

static void read_device(struct marey__chrome *chrome, struct marey__chrome_device *device)
{
    struct marey__json *scan = &chrome->scan;
    while (marey__json_next(scan) == MAREY__JSON_KEY) {
        if (is_text(scan, "id"))
            device->id = read_integer(chrome, -1);
        else if (is_text(scan, "name"))
            read_text(chrome, &device->name);
        else
            marey__json_skip(scan);
    }
}

static void read_devices(struct marey__chrome *chrome)
{
    struct marey__json *scan = &chrome->scan;
    chrome->is_kineto = true;
    if (!enter(chrome, MAREY__JSON_ARRAY))
        return;
    enum marey__json_token token;
    while ((token = marey__json_next(scan)) != MAREY__JSON_ARRAY_END &&
           token != MAREY__JSON_MISTAKE && token != MAREY__JSON_END) {
        struct marey__chrome_device device = {.id = -1};
        if (token == MAREY__JSON_OBJECT)
            read_device(chrome, &device);
        else
            pass_by(chrome, token);
        if (chrome->n_devices < MAX_DEVICES && marey__grow(&chrome->devices, &chrome->devices_cap,
                                                           chrome->n_devices + 1, sizeof device))
            chrome->devices[chrome->n_devices++] = device;
        else
            marey__free(device.name);
    }
}

static void read_viztracer(struct marey__chrome *chrome)
{
    struct marey__json *scan = &chrome->scan;
    if (!enter(chrome, MAREY__JSON_OBJECT))
        return;
    while (marey__json_next(scan) == MAREY__JSON_KEY) {
        const bool is_overflow = is_text(scan, "overflow");
        const enum marey__json_token token = marey__json_next(scan);
        chrome->has_overflown |= is_overflow && token == MAREY__JSON_TRUE;
        pass_by(chrome, token);
    }
}

static void read_key(struct marey__chrome *chrome)
{
    static const char *const of_kineto[] = {"schemaVersion", "record_shapes", "traceName"};
    struct marey__json *scan = &chrome->scan;
    for (size_t i = 0; i < MAREY__COUNT_OF(of_kineto); i++)
        chrome->is_kineto |= is_text(scan, of_kineto[i]);
    if (is_text(scan, "traceEvents")) {
        if (enter(chrome, MAREY__JSON_ARRAY))
            read_events(chrome);
    } else if (is_text(scan, "baseTimeNanoseconds")) {
        const int64_t base = read_integer(chrome, 0);
        chrome->base_ns = base > 0 ? (uint64_t)base : 0;
    } else if (is_text(scan, "distributedInfo")) {
        read_distributed(chrome);
    } else if (is_text(scan, "deviceProperties")) {
        read_devices(chrome);
    } else if (is_text(scan, "viztracer_metadata")) {
        read_viztracer(chrome);
    } else if (is_text(scan, "host_name")) {
        read_text(chrome, &chrome->host);
    } else {
        marey__json_skip(scan);
    }
}

static void read_all(struct marey__chrome *chrome)
{
    struct marey__json *scan = &chrome->scan;
    const enum marey__json_token first = marey__json_next(scan);
    enum marey__json_token token;
    if (first == MAREY__JSON_ARRAY) {
        read_events(chrome);
    } else if (first == MAREY__JSON_OBJECT) {
        while ((token = marey__json_next(scan)) == MAREY__JSON_KEY || token == MAREY__JSON_ARRAY_END)
            if (token == MAREY__JSON_KEY)
                read_key(chrome);
    }
}

/* ---- what is told at the end ---- */

static void tell(const struct marey__chrome *chrome, uint64_t n, const char *words)
{
    if (n > 0)
        marey__sink_note(chrome->main, "%" PRIu64 " %s", n, words);
}

static void tell_phases(const struct marey__chrome *chrome)
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
        marey__sink_note(chrome->main,
                         "%" PRIu64 " events are of a phase that says nothing here (%s): left out.",
                         n, len > 0 ? phases : "none");
}

static void tell_all(const struct marey__chrome *chrome)
{
    tell(chrome, chrome->n_no_events, "entries of the trace are no events: left out.");
    tell(chrome, chrome->n_without_time, "events of the trace have no time: left out.");
    tell(chrome, chrome->n_negative_times, "events of the trace have a negative time: left out.");
    tell(chrome, chrome->n_without_duration, "events of the trace have no duration: taken as 0.");
    tell(chrome, chrome->n_negative_durations,
         "events of the trace have a negative duration: taken as 0.");
    tell(chrome, chrome->n_without_value,
         "values of counters in the trace are no numbers: left out.");
    tell_phases(chrome);
    if (chrome->has_overflown)
        marey__sink_note(chrome->main,
                         "viztracer's buffer was full: its oldest events are lost; give it more by "
                         "--tracer_entries.");
}

/* What is wrong with the file, or NULL. */
static const char *find_damage(struct marey__chrome *chrome)
{
    const struct marey__json *scan = &chrome->scan;
    const char *damage = marey__bytes_damage(chrome->import->bytes);
    if (damage != NULL || scan->mistake == NULL)
        return damage;
    chrome->text.len = 0;
    marey__buf_printf(&chrome->text, "%s is %s: %s, at byte %" PRIu64, chrome->import->path,
                      scan->is_cut ? "cut off" : "damaged", scan->mistake, marey__json_offset(scan));
    marey__buf_put(&chrome->text, "", 1);
    return chrome->text.failed ? scan->mistake : chrome->text.data;
}

static marey_status finish(struct marey__chrome *chrome)
{
    const struct marey__import *import = chrome->import;
    if (chrome->scan.status == MAREY_EIO || chrome->scan.status == MAREY_ENOMEM)
        return chrome->scan.status;
    MAREY__TRY_MEMORY(!chrome->has_failed);
    MAREY_TRY(marey__sink_status(import->sink));
    const char *damage = find_damage(chrome);
    if (marey__sink_n_events(import->sink) == 0) {
        if (damage != NULL)
            return marey__fail(MAREY_EFORMAT, "%s; it has no events before that", damage);
        return marey__fail(MAREY_EFORMAT,
                           chrome->has_list ? "%s has no events in its list of events"
                                            : "%s has no list of events (traceEvents)",
                           import->path);
    }
    if (damage != NULL)
        marey__sink_note(chrome->main, "%s. What came before is here: %" PRIu64 " events.", damage,
                         chrome->n_events);
    tell_all(chrome);
    marey__chrome_identify(chrome);
    return chrome->has_failed ? marey__no_memory() : MAREY_OK;
}

static marey_status read_trace(struct marey__import *import)
{
    struct marey__chrome *chrome = marey__calloc(1, sizeof *chrome);
    MAREY__TRY_MEMORY(chrome != NULL);
    chrome->import = import;
    chrome->rank = chrome->world_size = -1;
    chrome->seed = import->sink->seed;
    marey_status status = marey__json_init(&chrome->scan, import->bytes);
    if (status == MAREY_OK) {
        read_all(chrome);
        status = finish(chrome);
    }
    for (size_t i = 0; i < chrome->n_devices; i++)
        marey__free(chrome->devices[i].name);
    marey__free(chrome->devices);
    marey__free(chrome->backend);
    marey__free(chrome->host);
    marey__buf_fini(&chrome->text);
    marey__chrome_free_threads(chrome);
    marey__json_fini(&chrome->scan);
    marey__free(chrome);
    return status;
}

/* ---- which files ---- */

/* An object that has one of these among its first bytes, or a list whose first entry is an object with a phase. */
static bool looks_like(const char *path, const char *bytes, size_t len)
{
    static const char *const keys[] = {"\"traceEvents\"",         "\"schemaVersion\"",
                                       "\"deviceProperties\"",    "\"distributedInfo\"",
                                       "\"baseTimeNanoseconds\"", "\"displayTimeUnit\""};
    (void)path;
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
    .name = "kineto",
    .words = "a Kineto or Chrome trace",
    .looks_like = looks_like,
    .read = read_trace,
};
