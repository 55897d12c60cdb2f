/*
 * Austin's text: a line for each thread of each sample.
 *
 *   # mode: wall                                              what is known of the whole
 *   P12;T0:13;train.py:main:3;train.py:step:9 10077           microseconds, or bytes where the mode is memory
 *   P12;T0:13;train.py:main:3;:GC: 10077,1,-4096              the mode full: microseconds, whether it idled, bytes
 *
 * Neither names nor paths are escaped: a frame ends at a semicolon, and is read from its end on, where a line and a name
 * have no colons.
 */
#include <string.h>

#include "import/stacks/internal.h"

enum { MAX_LINE = 16 << 20 };

struct reading {
    struct marey__frames *frames;
    const struct marey__austin_visitor *visitor;
    struct marey__austin_mistakes *mistakes;
    uint32_t *stack;
    size_t stack_cap;
    struct marey__buf line; /* of which the end has not come yet */
    uint64_t n_lines;
    bool skips_line;
};

/* ---- the head: who was sampled ---- */

static bool take_byte(struct marey__text *text, char c)
{
    if (text->len == 0 || text->at[0] != c)
        return false;
    text->at++;
    text->len--;
    return true;
}

static unsigned digit_of(char c)
{
    const char lower = (char)(c | 0x20);
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    return lower >= 'a' && lower <= 'f' ? (unsigned)(lower - 'a' + 10) : 16;
}

bool marey__austin_number(struct marey__text *text, unsigned base, int64_t *number)
{
    uint64_t value = 0;
    size_t i = 0;
    while (i < text->len && digit_of(text->at[i]) < base) {
        if (value > (INT64_MAX - 15) / 16)
            return false;
        value = value * base + digit_of(text->at[i++]);
    }
    *number = (int64_t)value;
    text->at += i;
    text->len -= i;
    return i != 0;
}

/* Threads of some versions are addresses: `0x7f12`. */
static bool take_id(struct marey__text *text, int64_t *number)
{
    const bool is_hex = text->len > 2 && memcmp(text->at, "0x", 2) == 0;
    if (is_hex) {
        text->at += 2;
        text->len -= 2;
    }
    return marey__austin_number(text, is_hex ? 16 : 10, number);
}

bool marey__austin_head(struct marey__text line, struct marey__austin_sample *sample,
                        struct marey__text *rest)
{
    int64_t pid, interpreter = 0, tid;
    if (!take_byte(&line, 'P') || !marey__austin_number(&line, 10, &pid) ||
        !take_byte(&line, ';') || !take_byte(&line, 'T') || !take_id(&line, &tid))
        return false;
    if (take_byte(&line, ':')) {
        interpreter = tid;
        if (!take_id(&line, &tid))
            return false;
    }
    *sample =
        (struct marey__austin_sample){.pid = pid, .tid = tid, .interpreter = (uint32_t)interpreter};
    *rest = line;
    return pid <= INT32_MAX && interpreter <= UINT32_MAX && line.len != 0 &&
           (line.at[0] == ';' || line.at[0] == ' ');
}

/* ---- the tail: what it cost ---- */

/* A number with a sign behind `text`'s begin; both are stepped over. */
static bool take_signed(struct marey__text *text, int64_t *number)
{
    const bool is_negative = take_byte(text, '-');
    if (!marey__austin_number(text, 10, number))
        return false;
    *number = is_negative ? -*number : *number;
    return true;
}

/* Take ` 10077` or ` 10077,1,-4096` off the end. */
static bool take_metrics(struct marey__text *line, struct marey__austin_sample *sample)
{
    const char *blank = memrchr(line->at, ' ', line->len);
    int64_t first, idle = 0;
    if (blank == NULL)
        return false;
    struct marey__text text = {blank + 1, line->len - (size_t)(blank + 1 - line->at)};
    if (!take_signed(&text, &first))
        return false;
    sample->bytes = first;
    if (take_byte(&text, ',') && (!take_signed(&text, &idle) || !take_byte(&text, ',') ||
                                  !take_signed(&text, &sample->bytes)))
        return false;
    sample->time_us = first > 0 ? (uint64_t)first : 0;
    sample->is_idle = idle != 0;
    line->len = (size_t)(blank - line->at);
    return text.len == 0;
}

/* ---- frames ---- */

/* `file:name:line`; `:GC:` and its like have neither file nor line. */
static uint32_t frame_of(struct marey__frames *frames, struct marey__text text)
{
    struct marey__text_frame frame = {.name = text.at, .name_len = text.len, .file = ""};
    const char *line = memrchr(text.at, ':', text.len);
    const char *name = line != NULL ? memrchr(text.at, ':', (size_t)(line - text.at)) : NULL;
    const size_t n_digits = line != NULL ? (size_t)(text.at + text.len - line) - 1 : 0;
    uint64_t number = 0;
    if (name != NULL && name + 1 < line &&
        (n_digits == 0 || (marey__parse_number(line + 1, n_digits, &number) && number <= INT32_MAX))) {
        frame.name = name + 1;
        frame.name_len = (size_t)(line - name) - 1;
        frame.file = text.at;
        frame.file_len = (size_t)(name - text.at);
        frame.line = (uint32_t)number;
    }
    return marey__frames_of_function(frames, &frame);
}

static bool take_frames(struct reading *r, struct marey__text rest,
                        struct marey__austin_sample *sample)
{
    struct marey__text frame;
    while (marey__collapsed_frame(&rest, &frame)) {
        const uint32_t number = frame_of(r->frames, frame);
        if (number == MAREY__NO_FRAME ||
            !marey__grow(&r->stack, &r->stack_cap, sample->n_frames + 1, sizeof *r->stack))
            return false;
        r->stack[sample->n_frames++] = number;
    }
    sample->frames = r->stack;
    return true;
}

/* ---- lines ---- */

static void note_bad(struct reading *r)
{
    if (r->mistakes->n_bad++ == 0)
        r->mistakes->first_bad = r->n_lines;
}

/* `# key: value` */
static bool take_meta(const struct reading *r, struct marey__text line)
{
    const char *colon = memchr(line.at, ':', line.len);
    if (colon == NULL || line.len < 3 || line.at[1] != ' ' || colon + 2 > line.at + line.len)
        return true;
    const struct marey__text key = {line.at + 2, (size_t)(colon - line.at) - 2};
    const struct marey__text value = {colon + 2, line.len - (size_t)(colon + 2 - line.at)};
    return r->visitor->meta(r->visitor->ctx, key, value);
}

static marey_status take_line(struct reading *r, const char *at, size_t len)
{
    struct marey__text line = {at, len}, rest;
    struct marey__austin_sample sample;
    r->n_lines++;
    if (line.len != 0 && line.at[line.len - 1] == '\r')
        line.len--;
    if (line.len == 0)
        return MAREY_OK;
    if (line.at[0] == '#')
        return take_meta(r, line) ? MAREY_OK : marey__no_memory();
    if (!marey__austin_head(line, &sample, &rest) || !take_metrics(&rest, &sample)) {
        note_bad(r);
        return MAREY_OK;
    }
    return take_frames(r, rest, &sample) && r->visitor->sample(r->visitor->ctx, &sample)
               ? MAREY_OK
               : marey__no_memory();
}

static marey_status end_line(struct reading *r, const char *rest, size_t len)
{
    marey_status status = MAREY_OK;
    if (r->skips_line) {
        r->n_lines++;
        note_bad(r);
    } else if (r->line.len == 0) {
        status = take_line(r, rest, len);
    } else {
        marey__buf_put(&r->line, rest, len);
        status = r->line.failed ? marey__no_memory() : take_line(r, r->line.data, r->line.len);
    }
    r->line.len = 0;
    r->skips_line = false;
    return status;
}

static marey_status take_bytes(struct reading *r, const char *bytes, size_t len)
{
    const char *const end = bytes + len;
    for (const char *newline; (newline = memchr(bytes, '\n', (size_t)(end - bytes))) != NULL;
         bytes = newline + 1)
        MAREY_TRY(end_line(r, bytes, (size_t)(newline - bytes)));
    r->skips_line |= r->line.len + (size_t)(end - bytes) > MAX_LINE;
    if (!r->skips_line)
        marey__buf_put(&r->line, bytes, (size_t)(end - bytes));
    return r->line.failed ? marey__no_memory() : MAREY_OK;
}

static marey_status read_lines(struct reading *r, marey__byte_source *source)
{
    const char *bytes;
    size_t len;
    for (;;) {
        MAREY_TRY(marey__bytes_next(source, &bytes, &len));
        if (len == 0)
            return r->line.len != 0 || r->skips_line ? end_line(r, "", 0) : MAREY_OK;
        MAREY_TRY(take_bytes(r, bytes, len));
    }
}

marey_status marey__austin_text(marey__byte_source *bytes, struct marey__frames *frames,
                                const struct marey__austin_visitor *visitor,
                                struct marey__austin_mistakes *mistakes)
{
    struct reading r = {.frames = frames, .visitor = visitor, .mistakes = mistakes};
    const marey_status status = read_lines(&r, bytes);
    marey__free(r.stack);
    marey__buf_fini(&r.line);
    return status;
}
