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
#include "import/chrome_internal.h"

enum { MAX_DEVICES = 256 };

/* ---- events ---- */

/* More bytes; false when there are none, or nobody wants them. */
static bool refill(void *ctx)
{
    struct kymo__chrome *chrome = ctx;
    return !chrome->has_failed && !kymo__sink_has_failed(chrome->import->sink) &&
           kymo__scan_refill(&chrome->scan);
}

static bool put(void *ctx)
{
    kymo__chrome_put(ctx);
    return true;
}

/* Behind the bracket of a list of events: up to the one that closes it. */
static void read_events(struct kymo__chrome *chrome)
{
    chrome->has_list = true;
    kymo__chrome_read_list(&(struct kymo__chrome_list){
        .scan = &chrome->scan,
        .event = &chrome->event,
        .put = put,
        .refill = refill,
        .ctx = chrome,
        .n_no_events = &chrome->n_no_events,
    });
}

/* ---- what stands around them ---- */

static bool is_text(const struct kymo__scan *scan, const char *text)
{
    return scan->text_len == strlen(text) && memcmp(scan->text, text, scan->text_len) == 0;
}

static void keep_text(struct kymo__chrome *chrome, char **field)
{
    kymo__free(*field);
    *field = kymo__strndup(chrome->scan.text, chrome->scan.text_len);
    chrome->has_failed |= *field == NULL;
}

/* Past the rest of what a token began that is not wanted. */
static void pass_by(struct kymo__chrome *chrome, enum kymo__scan_token token)
{
    if (token == KYMO__SCAN_OBJECT || token == KYMO__SCAN_ARRAY)
        kymo__scan_skip(&chrome->scan);
}

/* The value of the key that was just read: a text, an integer, or an object or list that is then open. */
static void read_text(struct kymo__chrome *chrome, char **field)
{
    const enum kymo__scan_token token = kymo__scan_next(&chrome->scan);
    if (token == KYMO__SCAN_STRING)
        keep_text(chrome, field);
    else
        pass_by(chrome, token);
}

static int64_t read_integer(struct kymo__chrome *chrome, int64_t otherwise)
{
    struct kymo__scan *scan = &chrome->scan;
    const enum kymo__scan_token token = kymo__scan_next(scan);
    int64_t number;
    if ((token == KYMO__SCAN_NUMBER || token == KYMO__SCAN_STRING) &&
        kymo__decimal(scan->text, scan->text_len, 0, &number))
        return number;
    pass_by(chrome, token);
    return otherwise;
}

static bool enter(struct kymo__chrome *chrome, enum kymo__scan_token wanted)
{
    const enum kymo__scan_token token = kymo__scan_next(&chrome->scan);
    if (token != wanted)
        pass_by(chrome, token);
    return token == wanted;
}

static int32_t read_rank(struct kymo__chrome *chrome)
{
    const int64_t number = read_integer(chrome, -1);
    return number >= 0 && number <= INT32_MAX ? (int32_t)number : -1;
}

static void read_distributed(struct kymo__chrome *chrome)
{
    struct kymo__scan *scan = &chrome->scan;
    chrome->is_kineto = true;
    if (!enter(chrome, KYMO__SCAN_OBJECT))
        return;
    while (kymo__scan_next(scan) == KYMO__SCAN_KEY) {
        if (is_text(scan, "rank"))
            chrome->rank = read_rank(chrome);
        else if (is_text(scan, "world_size"))
            chrome->world_size = read_rank(chrome);
        else if (is_text(scan, "backend"))
            read_text(chrome, &chrome->backend);
        else
            kymo__scan_skip(scan);
    }
}

static void read_device(struct kymo__chrome *chrome, struct kymo__chrome_device *device)
{
    struct kymo__scan *scan = &chrome->scan;
    while (kymo__scan_next(scan) == KYMO__SCAN_KEY) {
        if (is_text(scan, "id"))
            device->id = read_integer(chrome, -1);
        else if (is_text(scan, "name"))
            read_text(chrome, &device->name);
        else
            kymo__scan_skip(scan);
    }
}

static void read_devices(struct kymo__chrome *chrome)
{
    struct kymo__scan *scan = &chrome->scan;
    chrome->is_kineto = true;
    if (!enter(chrome, KYMO__SCAN_ARRAY))
        return;
    enum kymo__scan_token token;
    while ((token = kymo__scan_next(scan)) != KYMO__SCAN_ARRAY_END && token != KYMO__SCAN_MISTAKE &&
           token != KYMO__SCAN_END) {
        struct kymo__chrome_device device = {.id = -1};
        if (token == KYMO__SCAN_OBJECT)
            read_device(chrome, &device);
        else
            pass_by(chrome, token);
        if (chrome->n_devices < MAX_DEVICES &&
            kymo__grow(&chrome->devices, &chrome->devices_cap, chrome->n_devices + 1, sizeof device))
            chrome->devices[chrome->n_devices++] = device;
        else
            kymo__free(device.name);
    }
}

static void read_viztracer(struct kymo__chrome *chrome)
{
    struct kymo__scan *scan = &chrome->scan;
    if (!enter(chrome, KYMO__SCAN_OBJECT))
        return;
    while (kymo__scan_next(scan) == KYMO__SCAN_KEY) {
        const bool is_overflow = is_text(scan, "overflow");
        const enum kymo__scan_token token = kymo__scan_next(scan);
        chrome->has_overflown |= is_overflow && token == KYMO__SCAN_TRUE;
        pass_by(chrome, token);
    }
}

static void read_key(struct kymo__chrome *chrome)
{
    static const char *const of_kineto[] = {"schemaVersion", "record_shapes", "traceName"};
    struct kymo__scan *scan = &chrome->scan;
    for (size_t i = 0; i < KYMO__COUNT_OF(of_kineto); i++)
        chrome->is_kineto |= is_text(scan, of_kineto[i]);
    if (is_text(scan, "traceEvents")) {
        if (enter(chrome, KYMO__SCAN_ARRAY))
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
        kymo__scan_skip(scan);
    }
}

static void read_all(struct kymo__chrome *chrome)
{
    struct kymo__scan *scan = &chrome->scan;
    const enum kymo__scan_token first = kymo__scan_next(scan);
    enum kymo__scan_token token;
    if (first == KYMO__SCAN_ARRAY) {
        read_events(chrome);
    } else if (first == KYMO__SCAN_OBJECT) {
        while ((token = kymo__scan_next(scan)) == KYMO__SCAN_KEY || token == KYMO__SCAN_ARRAY_END)
            if (token == KYMO__SCAN_KEY)
                read_key(chrome);
    }
}

/* ---- what is told at the end ---- */

static void tell(const struct kymo__chrome *chrome, uint64_t n, const char *words)
{
    if (n > 0)
        kymo__sink_note(chrome->main, "%" PRIu64 " %s", n, words);
}

static void tell_phases(const struct kymo__chrome *chrome)
{
    uint64_t n = 0;
    char phases[64] = "";
    size_t len = 0;
    for (unsigned c = 0; c < 256; c++) {
        n += chrome->n_phases[c];
        if (chrome->n_phases[c] > 0 && c > ' ' && c < 127 && len + 4 < sizeof phases)
            kymo__append(phases, sizeof phases, &len, "%s%c", len > 0 ? ", " : "", c);
    }
    if (n > 0)
        kymo__sink_note(chrome->main,
                        "%" PRIu64 " events are of a phase that says nothing here (%s): left out.",
                        n, len > 0 ? phases : "none");
}

static void tell_all(const struct kymo__chrome *chrome)
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
        kymo__sink_note(chrome->main,
                        "viztracer's buffer was full: its oldest events are lost; give it more by "
                        "--tracer_entries.");
}

/* What is wrong with the file, or NULL. */
static const char *find_damage(struct kymo__chrome *chrome)
{
    const struct kymo__scan *scan = &chrome->scan;
    const char *damage = kymo__bytes_damage(chrome->import->bytes);
    if (damage != NULL || scan->mistake == NULL)
        return damage;
    chrome->text.len = 0;
    kymo__buf_printf(&chrome->text, "%s is %s: %s, at byte %" PRIu64, chrome->import->path,
                     scan->is_cut ? "cut off" : "damaged", scan->mistake, kymo__scan_offset(scan));
    kymo__buf_put(&chrome->text, "", 1);
    return chrome->text.failed ? scan->mistake : chrome->text.data;
}

static kymo_status finish(struct kymo__chrome *chrome)
{
    const struct kymo__import *import = chrome->import;
    if (chrome->scan.status == KYMO_EIO || chrome->scan.status == KYMO_ENOMEM)
        return chrome->scan.status;
    if (chrome->has_failed)
        return kymo__fail(KYMO_ENOMEM, "no memory to read %s", import->path);
    KYMO_TRY(kymo__sink_status(import->sink));
    const char *damage = find_damage(chrome);
    if (kymo__sink_n_events(import->sink) == 0) {
        if (damage != NULL)
            return kymo__fail(KYMO_EFORMAT, "%s; it has no events before that", damage);
        return kymo__fail(KYMO_EFORMAT,
                          chrome->has_list ? "%s has no events in its list of events"
                                           : "%s has no list of events (traceEvents)",
                          import->path);
    }
    if (damage != NULL)
        kymo__sink_note(chrome->main, "%s. What came before is here: %" PRIu64 " events.", damage,
                        chrome->n_events);
    tell_all(chrome);
    kymo__chrome_identify(chrome);
    return chrome->has_failed ? kymo__fail(KYMO_ENOMEM, "no memory to read %s", import->path)
                              : KYMO_OK;
}

static kymo_status read_trace(struct kymo__import *import)
{
    struct kymo__chrome *chrome = kymo__calloc(1, sizeof *chrome);
    if (chrome == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory to read %s", import->path);
    chrome->import = import;
    chrome->rank = chrome->world_size = -1;
    chrome->seed = import->sink->seed;
    kymo_status status = kymo__scan_init(&chrome->scan, import->bytes);
    if (status == KYMO_OK) {
        read_all(chrome);
        status = finish(chrome);
    }
    for (size_t i = 0; i < chrome->n_devices; i++)
        kymo__free(chrome->devices[i].name);
    kymo__free(chrome->devices);
    kymo__free(chrome->backend);
    kymo__free(chrome->host);
    kymo__buf_fini(&chrome->text);
    kymo__chrome_free_threads(chrome);
    kymo__scan_fini(&chrome->scan);
    kymo__free(chrome);
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
    for (size_t k = 0; bytes[i] == '{' && k < KYMO__COUNT_OF(keys); k++)
        if (memmem(bytes, len, keys[k], strlen(keys[k])) != NULL)
            return true;
    return false;
}

const struct kymo__import_format kymo__import_chrome = {
    .name = "kineto",
    .words = "a Kineto or Chrome trace",
    .looks_like = looks_like,
    .read = read_trace,
};
