/* Text files of stacks: lines; frames as strings, functions and sites. */
#include "import/stacks/internal.h"

enum { MAX_LINE = 16 << 20 };

/* ---- lines ---- */

struct lines {
    marey__line_taker *take;
    void *ctx;
    struct marey__buf rest; /* of a line whose end was not read yet */
    bool is_too_long;
};

static marey_status end_line(struct lines *lines, const char *bytes, size_t len)
{
    marey_status status = MAREY_OK;
    if (lines->is_too_long) {
        status = lines->take(lines->ctx, NULL, 0);
    } else if (lines->rest.len == 0) {
        status = lines->take(lines->ctx, bytes, len);
    } else {
        marey__buf_put(&lines->rest, bytes, len);
        status = lines->rest.failed ? marey__no_memory()
                                    : lines->take(lines->ctx, lines->rest.data, lines->rest.len);
    }
    lines->rest.len = 0;
    lines->is_too_long = false;
    return status;
}

static marey_status take_bytes(struct lines *lines, const char *bytes, size_t len)
{
    const char *const end = bytes + len;
    for (const char *newline; (newline = memchr(bytes, '\n', (size_t)(end - bytes))) != NULL;
         bytes = newline + 1)
        MAREY_TRY(end_line(lines, bytes, (size_t)(newline - bytes)));
    lines->is_too_long |= lines->rest.len + (size_t)(end - bytes) > MAX_LINE;
    if (!lines->is_too_long)
        marey__buf_put(&lines->rest, bytes, (size_t)(end - bytes));
    return lines->rest.failed ? marey__no_memory() : MAREY_OK;
}

marey_status marey__read_lines(marey__byte_source *source, marey__line_taker *take, void *ctx)
{
    struct lines lines = {.take = take, .ctx = ctx};
    const char *bytes = "";
    size_t len = 1;
    marey_status status = MAREY_OK;
    while (status == MAREY_OK && len != 0) {
        status = marey__bytes_next(source, &bytes, &len);
        if (status == MAREY_OK)
            status = take_bytes(&lines, bytes, len);
    }
    if (status == MAREY_OK && (lines.rest.len != 0 || lines.is_too_long))
        status = end_line(&lines, "", 0);
    marey__buf_fini(&lines.rest);
    return status;
}

/* ---- frames ---- */

void marey__frames_init(struct marey__frames *frames)
{
    *frames = (struct marey__frames){.seed = marey__identity_random()};
    frames->known.seed = frames->seed;
}

void marey__frames_fini(struct marey__frames *frames)
{
    marey__arena_fini(&frames->texts);
    marey__names_fini(&frames->known);
    MAREY__FREE_ALL(frames->frames, frames->is_ambiguous, frames->sites);
    *frames = (struct marey__frames){0};
}

/* ---- texts to frames ---- */

/* The index of the blank before the parenthesis that closes at the end; `len` if there is none. */
static size_t find_place(const char *text, size_t len)
{
    size_t depth = 0, i = len;
    if (len < 3 || text[len - 1] != ')')
        return len;
    while (i > 1) {
        i--;
        depth += text[i] == ')';
        if (text[i] == '(' && --depth == 0)
            return text[i - 1] == ' ' && i > 1 ? i - 1 : len;
    }
    /* A path with an unbalanced closing parenthesis. */
    const char *first = memmem(text, len, " (", 2);
    return first != NULL && first != text ? (size_t)(first - text) : len;
}

/* "file:line" or "file". */
static void take_place(struct marey__text_frame *frame, const char *text, size_t len)
{
    size_t digits = len;
    uint64_t line = 0;
    while (digits > 0 && text[digits - 1] >= '0' && text[digits - 1] <= '9')
        digits--;
    if (digits > 1 && digits < len && text[digits - 1] == ':' &&
        marey__parse_number(text + digits, len - digits, &line) && line <= UINT32_MAX)
        len = digits - 1;
    else
        line = 0;
    frame->file = text;
    frame->file_len = len;
    frame->line = (uint32_t)line;
}

static bool make_room(struct marey__frames *frames)
{
    return frames->n < MAREY__NO_FRAME - 1 &&
           marey__grow(&frames->frames, &frames->cap, frames->n + 1, sizeof *frames->frames);
}

uint32_t marey__frames_add(struct marey__frames *frames, const struct marey__text_frame *frame)
{
    struct marey__text_frame kept = *frame;
    kept.name = marey__arena_text(&frames->texts, frame->name, frame->name_len);
    kept.file = marey__arena_text(&frames->texts, frame->file, frame->file_len);
    if (kept.name == NULL || kept.file == NULL || !make_room(frames))
        return MAREY__NO_FRAME;
    frames->frames[frames->n] = kept;
    return (uint32_t)frames->n++;
}

/* The number of the frame made of this text; if new, the next number, for which space is allocated. */
static uint32_t number_of(struct marey__frames *frames, const char *text, size_t len)
{
    return make_room(frames) ? marey__names_keep(&frames->known, &frames->texts, text, len)
                             : MAREY__NO_FRAME;
}

uint32_t marey__frames_of_text(struct marey__frames *frames, const char *text, size_t len)
{
    const uint32_t number = number_of(frames, text, len);
    if (number != frames->n)
        return number;
    const char *kept = frames->known.names[number].text;
    const size_t place = find_place(kept, len);
    struct marey__text_frame *frame = &frames->frames[frames->n++];
    *frame = (struct marey__text_frame){.name = kept, .name_len = place, .file = ""};
    if (place < len)
        take_place(frame, kept + place + 2, len - place - 3);
    return number;
}

/* Equal texts and lines give equal keys. */
static void put_key(struct marey__buf *key, const struct marey__text_frame *frame)
{
    const uint64_t numbers[] = {frame->line, frame->name_len};
    marey__buf_put(key, numbers, sizeof numbers);
    marey__buf_put(key, frame->name, frame->name_len);
    marey__buf_put(key, frame->file, frame->file_len);
}

uint32_t marey__frames_of_function(struct marey__frames *frames, const struct marey__text_frame *frame)
{
    struct marey__buf key MAREY__FINALLY(marey__buf_fini) = {0};
    put_key(&key, frame);
    const uint32_t number = key.failed ? MAREY__NO_FRAME : number_of(frames, key.data, key.len);
    if (number == frames->n) {
        struct marey__text_frame *kept = &frames->frames[frames->n++];
        *kept = *frame;
        kept->file = frames->known.names[number].text + key.len - frame->file_len;
        kept->name = kept->file - frame->name_len;
    }
    return number;
}

/* ---- names ---- */

static bool is_same_function(const struct marey__frames *frames, const struct marey__text_frame *a,
                             const struct marey__text_frame *b)
{
    return a->file_len == b->file_len && memcmp(a->file, b->file, a->file_len) == 0 &&
           (!frames->names_lines || a->line == b->line);
}

/* Compares all frames of a name with its first one. A different function makes the name ambiguous. */
static bool mark_ambiguous(struct marey__frames *frames, struct marey__names *names, uint32_t *firsts)
{
    for (size_t i = 0; i < frames->n; i++) {
        struct marey__text_frame *frame = &frames->frames[i];
        const size_t n_before = names->n;
        const uint32_t number = marey__names_number(names, frame->name, frame->name_len);
        if (number == MAREY__NO_NAME)
            return false;
        if (names->n > n_before)
            firsts[number] = (uint32_t)i;
        frame->name_number = number;
        frames->is_ambiguous[number] |=
            !is_same_function(frames, &frames->frames[firsts[number]], frame);
    }
    return true;
}

bool marey__frames_name(struct marey__frames *frames)
{
    struct marey__names names MAREY__FINALLY(marey__names_fini) = {.seed = frames->seed};
    uint32_t *firsts MAREY__FREED = marey__calloc(frames->n + 1, sizeof *firsts);
    frames->is_ambiguous = marey__calloc(frames->n + 1, sizeof *frames->is_ambiguous);
    frames->sites = marey__calloc(frames->n + 1, sizeof *frames->sites);
    return firsts != NULL && frames->is_ambiguous != NULL && frames->sites != NULL &&
           (frames->names_decide || mark_ambiguous(frames, &names, firsts));
}

/* The part of a path after the folder of packages, or of Python's own modules. */
static size_t skip_folders(const char *file, size_t len)
{
    static const char *const folders[] = {"/site-packages/", "/dist-packages/", "/lib/python3."};
    for (size_t i = 0; i < MAREY__COUNT_OF(folders); i++) {
        const size_t n = strlen(folders[i]);
        const char *found = memmem(file, len, folders[i], n);
        if (found == NULL)
            continue;
        const char *slash = memchr(found + n - 1, '/', len - (size_t)(found - file) - n + 1);
        return slash != NULL ? (size_t)(slash + 1 - file) : 0;
    }
    return 0;
}

/* "forward (model.py)", "forward (model.py:12)" */
static void put_long_name(const struct marey__frames *frames, struct marey__buf *buf,
                          const struct marey__text_frame *frame)
{
    const size_t skip = skip_folders(frame->file, frame->file_len);
    marey__buf_put(buf, frame->name, frame->name_len);
    marey__buf_puts(buf, " (");
    marey__buf_put(buf, frame->file + skip, frame->file_len - skip);
    if (frames->names_lines && frame->line != 0)
        marey__buf_printf(buf, ":%u", frame->line);
    marey__buf_puts(buf, ")");
}

uint32_t marey__frames_site(struct marey__frames *frames, marey__sink_process *process,
                            uint32_t number)
{
    const struct marey__text_frame *frame = &frames->frames[number];
    if (frames->sites_of != process) {
        memset(frames->sites, 0, frames->n * sizeof *frames->sites);
        frames->sites_of = process;
    }
    if (frames->sites[number] != 0)
        return frames->sites[number];
    struct marey__buf name MAREY__FINALLY(marey__buf_fini) = {0};
    const bool is_long = frames->is_ambiguous[frame->name_number] && frame->file_len != 0;
    if (is_long)
        put_long_name(frames, &name, frame);
    const struct marey__sink_site site = {.name = is_long ? name.data : frame->name,
                                          .name_len = is_long ? name.len : frame->name_len,
                                          .file = frame->file,
                                          .file_len = frame->file_len,
                                          .line = frame->line};
    frames->sites[number] = name.failed ? 0 : marey__sink_site(process, &site);
    if (name.failed)
        marey__sink_fail(process->sink, marey__no_memory());
    return frames->sites[number];
}
