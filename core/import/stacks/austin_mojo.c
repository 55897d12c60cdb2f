/*
 * Austin's binary format MOJO, versions 1 to 3, as written by austin 3.3 to 4.0: a sequence of events.
 *
 *   "MOJ", version                      numbers: 6 bits and a sign in the first byte, 7 in each further one, the lowest
 *   1   key, value                      first; the highest bit marks a further byte. Texts end in a NUL.
 *   2   pid, interpreter, thread        a sample begins; the thread is text, in hexadecimal
 *   3   key, file, name, line, ...      defines a frame by the keys of its texts
 *   5   key                             a frame of the sample, the outermost first
 *   4, 6 name, 7                        frames that are not functions: unreadable, kernel, garbage collection
 *   8, 9 microseconds, 10 bytes         of the sample
 *   11  key, value                      defines a text
 *
 * Keys are addresses in the sampled process: a key may be redefined, and two processes may use the same one. A sample
 * ends where the next begins.
 */
#include "import/stacks/internal.h"

enum { MAX_TEXT = 1 << 20, MAX_DEPTH = 1 << 20, VERSIONS = 3 };

enum event {
    META = 1,
    STACK,
    FRAME,
    FRAME_INVALID,
    FRAME_REFERENCE,
    FRAME_KERNEL,
    GC,
    IDLE,
    TIME,
    MEMORY,
    STRING,
    STRING_REFERENCE,
};

/* Current meaning of a key of a process. */
struct meaning {
    struct meaning_key {
        uint64_t key;
        int64_t pid;
        uint64_t is_frame;
    } key;
    uint32_t frame;   /* plus one; 0: not set */
    const char *text; /* in `texts`; NULL: not set */
    size_t len;
};

struct reading {
    marey__byte_source *source;
    const char *at, *end; /* the buffered bytes */
    uint64_t offset;      /* of `end` */
    const struct marey__austin_visitor *visitor;
    struct marey__arena texts;
    struct meaning *meanings;
    size_t n_meanings, meanings_cap;
    struct marey__index by_key;
    uint64_t seed;
    unsigned version;
    struct marey__austin_sample sample;
    bool has_sample;
    uint32_t *stack;
    size_t stack_cap;
    struct marey__buf first, second; /* texts of the current event */
    marey_status status;
};

static marey_status no_memory(struct reading *r)
{
    r->status = marey__no_memory();
    return r->status;
}

/* Stop reading the file here. */
static bool stop(struct reading *r, const char *why)
{
    if (r->visitor->mistakes->ends == NULL && r->status == MAREY_OK) {
        r->visitor->mistakes->ends = why;
        r->visitor->mistakes->ends_at = r->offset - (uint64_t)(r->end - r->at);
    }
    return false;
}

/* ---- bytes ---- */

/* Read more bytes; false at the end. */
static bool fill(struct reading *r)
{
    const char *bytes;
    size_t len;
    r->status = marey__bytes_next(r->source, &bytes, &len);
    if (r->status != MAREY_OK || len == 0)
        return false;
    r->at = bytes;
    r->end = bytes + len;
    r->offset += len;
    return true;
}

static bool take_byte(struct reading *r, uint8_t *byte)
{
    if (r->at == r->end && !fill(r))
        return stop(r, "it ends within an event");
    *byte = (uint8_t)*r->at++;
    return true;
}

static bool take_number(struct reading *r, int64_t *number)
{
    uint8_t byte;
    if (!take_byte(r, &byte))
        return false;
    const bool is_negative = (byte & 0x40) != 0;
    uint64_t value = byte & 0x3f;
    for (unsigned shift = 6; (byte & 0x80) != 0; shift += 7) {
        if (!take_byte(r, &byte))
            return false;
        if (shift > 62 || ((uint64_t)(byte & 0x7f) << shift) >> shift != (byte & 0x7f))
            return stop(r, "a number has more than 64 bits");
        value |= (uint64_t)(byte & 0x7f) << shift;
    }
    if (value > INT64_MAX)
        return stop(r, "a number has more than 64 bits");
    *number = is_negative ? -(int64_t)value : (int64_t)value;
    return true;
}

static bool take_text(struct reading *r, struct marey__buf *text)
{
    text->len = 0;
    for (;;) {
        if (r->at == r->end && !fill(r))
            return stop(r, "it ends within a text");
        const char *nul = memchr(r->at, '\0', (size_t)(r->end - r->at));
        const char *stops = nul != NULL ? nul : r->end;
        if (text->len + (size_t)(stops - r->at) > MAX_TEXT)
            return stop(r, "a text is longer than any name");
        marey__buf_put(text, r->at, (size_t)(stops - r->at));
        r->at = nul != NULL ? nul + 1 : r->end;
        if (text->failed)
            return no_memory(r) == MAREY_OK;
        if (nul != NULL)
            return true;
    }
}

static struct marey__text text_of(const struct marey__buf *buf)
{
    return (struct marey__text){buf->len != 0 ? buf->data : "", buf->len};
}

/* ---- keys ---- */

/* The meaning of a key, created if needed. NULL on out of memory. */
static struct meaning *meaning_of(struct reading *r, uint64_t of, bool is_frame)
{
    const struct meaning_key key = {of, r->sample.pid, is_frame};
    const uint32_t number =
        MAREY__INDEX_NUMBER(&r->by_key, r->seed, r->meanings, r->n_meanings, r->meanings_cap, key);
    if (number == 0)
        no_memory(r);
    return number != 0 ? &r->meanings[number - 1] : NULL;
}

static bool define_text(struct reading *r, uint64_t key)
{
    struct meaning *meaning = meaning_of(r, key, false);
    const struct marey__text text = text_of(&r->first);
    if (meaning == NULL)
        return false;
    if (meaning->text != NULL && meaning->len == text.len &&
        memcmp(meaning->text, text.at, text.len) == 0)
        return true;
    meaning->text = marey__arena_text(&r->texts, text.at, text.len);
    meaning->len = text.len;
    return meaning->text != NULL || no_memory(r) == MAREY_OK;
}

static void count_bad(struct reading *r)
{
    if (r->visitor->mistakes->n_bad++ == 0)
        r->visitor->mistakes->first_bad = r->offset - (uint64_t)(r->end - r->at);
}

/* ---- events ---- */

static bool push(struct reading *r, uint32_t frame)
{
    struct marey__austin_sample *sample = &r->sample;
    if (frame == MAREY__NO_FRAME)
        return no_memory(r) == MAREY_OK;
    if (!r->has_sample || sample->n_frames >= MAX_DEPTH) {
        count_bad(r);
        return true;
    }
    if (!MAREY__PUSH(r->stack, sample->n_frames, r->stack_cap, frame))
        return no_memory(r) == MAREY_OK;
    return true;
}

static bool push_named(struct reading *r, struct marey__text name)
{
    const struct marey__text_frame frame = {.name = name.at, .name_len = name.len, .file = ""};
    return push(r, marey__frames_of_function(r->visitor->frames, &frame));
}

static bool end_sample(struct reading *r)
{
    if (!r->has_sample)
        return true;
    r->has_sample = false;
    r->sample.frames = r->stack;
    return r->visitor->sample(r->visitor->ctx, &r->sample) || no_memory(r) == MAREY_OK;
}

static bool take_stack(struct reading *r)
{
    int64_t pid, interpreter = 0, tid = 0;
    if (!end_sample(r) || !take_number(r, &pid) ||
        (r->version >= 3 && !take_number(r, &interpreter)) || !take_text(r, &r->first))
        return false;
    struct marey__text text = text_of(&r->first);
    (void)marey__austin_number(&text, 16, &tid);
    if (pid < 0 || pid > INT32_MAX || interpreter < 0 || interpreter > UINT32_MAX)
        return stop(r, "a sample is of no process");
    r->sample =
        (struct marey__austin_sample){.pid = pid, .tid = tid, .interpreter = (uint32_t)interpreter};
    r->has_sample = true;
    return true;
}

static bool take_frame(struct reading *r)
{
    const unsigned n = r->version >= 2 ? 7 : 4; /* later versions also have the end line and columns */
    int64_t numbers[7];
    for (unsigned i = 0; i < n; i++)
        if (!take_number(r, &numbers[i]))
            return false;
    struct meaning texts[2]; /* file and name; copies, because creating a meaning moves the others */
    for (unsigned i = 0; i < 2; i++) {
        const struct meaning *text = meaning_of(r, (uint64_t)numbers[i + 1], false);
        if (text == NULL)
            return false;
        texts[i] = *text;
    }
    if (texts[0].text == NULL || texts[1].text == NULL) {
        count_bad(r);
        return true;
    }
    const struct marey__text_frame frame = {
        .name = texts[1].text,
        .name_len = texts[1].len,
        .file = texts[0].text,
        .file_len = texts[0].len,
        .line = numbers[3] > 0 && numbers[3] <= INT32_MAX ? (uint32_t)numbers[3] : 0};
    const uint32_t number = marey__frames_of_function(r->visitor->frames, &frame);
    struct meaning *meaning = meaning_of(r, (uint64_t)numbers[0], true);
    if (number == MAREY__NO_FRAME || meaning == NULL)
        return no_memory(r) == MAREY_OK;
    meaning->frame = number + 1;
    return true;
}

static bool take_reference(struct reading *r)
{
    int64_t key;
    if (!take_number(r, &key))
        return false;
    const struct meaning *meaning = meaning_of(r, (uint64_t)key, true);
    if (meaning == NULL)
        return false;
    if (meaning->frame != 0)
        return push(r, meaning->frame - 1);
    count_bad(r);
    return push_named(r, (struct marey__text){"(unknown)", strlen("(unknown)")});
}

static bool take_meta(struct reading *r)
{
    if (!take_text(r, &r->first) || !take_text(r, &r->second))
        return false;
    return r->visitor->meta(r->visitor->ctx, text_of(&r->first), text_of(&r->second)) ||
           no_memory(r) == MAREY_OK;
}

static bool take_metric(struct reading *r, enum event event)
{
    int64_t number;
    if (!take_number(r, &number))
        return false;
    if (event == TIME)
        r->sample.time_us = number > 0 ? (uint64_t)number : 0;
    else
        r->sample.bytes = number;
    return true;
}

static bool take_event(struct reading *r, uint8_t event)
{
    int64_t number;
    switch (event) {
    case META:
        return take_meta(r);
    case STACK:
        return take_stack(r);
    case FRAME:
        return take_frame(r);
    case FRAME_INVALID:
        return push_named(r, (struct marey__text){"INVALID", strlen("INVALID")});
    case FRAME_REFERENCE:
        return take_reference(r);
    case FRAME_KERNEL:
        return take_text(r, &r->first) && push_named(r, text_of(&r->first));
    case GC:
        return push_named(r, (struct marey__text){"GC", strlen("GC")});
    case IDLE:
        r->sample.is_idle = true;
        return true;
    case TIME:
    case MEMORY:
        return take_metric(r, event);
    case STRING:
        return take_number(r, &number) && take_text(r, &r->first) && define_text(r, (uint64_t)number);
    case STRING_REFERENCE: /* only valid within another event */
        return take_number(r, &number);
    default:
        return stop(r, "an event is of no known kind");
    }
}

static void read_events(struct reading *r)
{
    uint8_t bytes[3];
    int64_t version;
    if (!take_byte(r, &bytes[0]) || !take_byte(r, &bytes[1]) || !take_byte(r, &bytes[2]) ||
        !take_number(r, &version))
        return;
    /* A later version is tried as the newest known: its events are checked one by one. */
    r->version = version >= 1 && version <= VERSIONS ? (unsigned)version : VERSIONS;
    while (r->at < r->end || fill(r)) {
        const uint8_t event = (uint8_t)*r->at++;
        if (!take_event(r, event))
            return; /* the current sample is incomplete */
    }
    if (r->status == MAREY_OK)
        (void)end_sample(r);
}

marey_status marey__austin_mojo(marey__byte_source *bytes, const struct marey__austin_visitor *visitor)
{
    struct reading r = {
        .source = bytes, .visitor = visitor, .seed = visitor->frames->seed, .sample = {.pid = -1}};
    read_events(&r);
    marey__arena_fini(&r.texts);
    marey__free(r.meanings);
    marey__index_fini(&r.by_key);
    marey__free(r.stack);
    marey__buf_fini(&r.first);
    marey__buf_fini(&r.second);
    return r.status;
}
