/* Frames of foreign files: taken apart, told apart, made sites. See stack_in.h. */
#include <string.h>

#include "import/stack_in.h"

void kymo__frames_init(struct kymo__frames *frames)
{
    *frames = (struct kymo__frames){.seed = kymo__identity_random()};
}

void kymo__frames_fini(struct kymo__frames *frames)
{
    kymo__arena_fini(&frames->texts);
    kymo__free(frames->frames);
    kymo__free(frames->by_text.slots);
    kymo__free(frames->is_ambiguous);
    kymo__free(frames->sites);
    *frames = (struct kymo__frames){0};
}

/* ---- texts to frames ---- */

/* Where the blank before the last parenthesis that closes at the end is; `len` when there is none. */
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
    /* A path with one parenthesis more than it opens. */
    const char *first = memmem(text, len, " (", 2);
    return first != NULL && first != text ? (size_t)(first - text) : len;
}

/* "file:line" or "file". */
static void take_place(struct kymo__text_frame *frame, const char *text, size_t len)
{
    size_t digits = len;
    uint64_t line = 0;
    while (digits > 0 && text[digits - 1] >= '0' && text[digits - 1] <= '9')
        digits--;
    if (digits > 1 && digits < len && text[digits - 1] == ':' &&
        kymo__parse_number(text + digits, len - digits, &line) && line <= UINT32_MAX)
        len = digits - 1;
    else
        line = 0;
    frame->file = text;
    frame->file_len = len;
    frame->line = (uint32_t)line;
}

static uint32_t add(struct kymo__frames *frames, const struct kymo__text_frame *frame)
{
    if (frames->n >= KYMO__NO_FRAME - 1 ||
        !kymo__grow(&frames->frames, &frames->cap, frames->n + 1, sizeof *frames->frames))
        return KYMO__NO_FRAME;
    frames->frames[frames->n] = *frame;
    return (uint32_t)frames->n++;
}

uint32_t kymo__frames_add(struct kymo__frames *frames, const struct kymo__text_frame *frame)
{
    struct kymo__text_frame kept = *frame;
    kept.name = kymo__arena_text(&frames->texts, frame->name, frame->name_len);
    kept.file = kymo__arena_text(&frames->texts, frame->file, frame->file_len);
    return kept.name != NULL && kept.file != NULL ? add(frames, &kept) : KYMO__NO_FRAME;
}

static uint32_t hash_of(const struct kymo__frames *frames, const char *text, size_t len)
{
    return (uint32_t)kymo__sink_hash(frames->seed, text, len);
}

/* The frame with this text, or KYMO__NO_FRAME. */
static uint32_t find(const struct kymo__frames *frames, const char *text, size_t len)
{
    const uint32_t hash = hash_of(frames, text, len);
    size_t at = hash;
    for (uint32_t n; (n = kymo__sink_index_next(&frames->by_text, hash, &at)) != 0;) {
        const struct kymo__text_frame *frame = &frames->frames[n - 1];
        if (frame->text_len == len && memcmp(frame->text, text, len) == 0)
            return n - 1;
    }
    return KYMO__NO_FRAME;
}

static uint32_t add_known(struct kymo__frames *frames, const struct kymo__text_frame *frame)
{
    const uint32_t hash = hash_of(frames, frame->text, frame->text_len), number = add(frames, frame);
    if (number != KYMO__NO_FRAME && !kymo__sink_index_put(&frames->by_text, hash, number + 1))
        return KYMO__NO_FRAME;
    return number;
}

uint32_t kymo__frames_of_text(struct kymo__frames *frames, const char *text, size_t len)
{
    const uint32_t known = find(frames, text, len);
    if (known != KYMO__NO_FRAME)
        return known;
    const char *kept = kymo__arena_text(&frames->texts, text, len);
    if (kept == NULL)
        return KYMO__NO_FRAME;
    const size_t place = find_place(kept, len);
    struct kymo__text_frame frame = {
        .text = kept, .text_len = len, .name = kept, .name_len = place, .file = ""};
    if (place < len)
        take_place(&frame, kept + place + 2, len - place - 3);
    return add_known(frames, &frame);
}

/* The same texts and line give the same key, whose second half they then are. */
static void put_key(struct kymo__buf *key, const struct kymo__text_frame *frame)
{
    const uint64_t numbers[] = {frame->line, frame->name_len};
    kymo__buf_put(key, numbers, sizeof numbers);
    kymo__buf_put(key, frame->name, frame->name_len);
    kymo__buf_put(key, frame->file, frame->file_len);
}

uint32_t kymo__frames_of_function(struct kymo__frames *frames, const struct kymo__text_frame *frame)
{
    struct kymo__buf key = {0};
    put_key(&key, frame);
    uint32_t number = key.failed ? KYMO__NO_FRAME : find(frames, key.data, key.len);
    if (number == KYMO__NO_FRAME && !key.failed) {
        struct kymo__text_frame kept = *frame;
        kept.text = kymo__arena_text(&frames->texts, key.data, key.len);
        kept.text_len = key.len;
        kept.file = kept.text + key.len - frame->file_len;
        kept.name = kept.file - frame->name_len;
        number = kept.text != NULL ? add_known(frames, &kept) : KYMO__NO_FRAME;
    }
    kymo__buf_fini(&key);
    return number;
}

/* ---- names ---- */

static bool is_same_text(const char *a, size_t a_len, const char *b, size_t b_len)
{
    return a_len == b_len && memcmp(a, b, a_len) == 0;
}

static bool is_same_function(const struct kymo__frames *frames, const struct kymo__text_frame *a,
                             const struct kymo__text_frame *b)
{
    return is_same_text(a->file, a->file_len, b->file, b->file_len) &&
           (!frames->names_lines || a->line == b->line);
}

/*
 * All frames of one name meet at the first of them, which is in the index. One that is another function makes that name
 * ambiguous, for all of them: the marks of the first are copied to the others at the end.
 */
static bool mark_ambiguous(struct kymo__frames *frames, struct kymo__sink_index *by_name,
                           uint32_t *firsts)
{
    for (size_t i = 0; i < frames->n; i++) {
        const struct kymo__text_frame *frame = &frames->frames[i];
        const uint32_t hash = (uint32_t)kymo__sink_hash(frames->seed, frame->name, frame->name_len);
        size_t at = hash;
        uint32_t n;
        firsts[i] = (uint32_t)i;
        while ((n = kymo__sink_index_next(by_name, hash, &at)) != 0) {
            const struct kymo__text_frame *first = &frames->frames[n - 1];
            if (!is_same_text(first->name, first->name_len, frame->name, frame->name_len))
                continue;
            firsts[i] = n - 1;
            frames->is_ambiguous[n - 1] |= !is_same_function(frames, first, frame);
            break;
        }
        if (n == 0 && !kymo__sink_index_put(by_name, hash, (uint32_t)i + 1))
            return false;
    }
    for (size_t i = 0; i < frames->n; i++)
        frames->is_ambiguous[i] = frames->is_ambiguous[firsts[i]];
    return true;
}

bool kymo__frames_name(struct kymo__frames *frames)
{
    struct kymo__sink_index by_name = {0};
    uint32_t *firsts = kymo__calloc(frames->n + 1, sizeof *firsts);
    frames->is_ambiguous = kymo__calloc(frames->n + 1, sizeof *frames->is_ambiguous);
    frames->sites = kymo__calloc(frames->n + 1, sizeof *frames->sites);
    const bool done = firsts != NULL && frames->is_ambiguous != NULL && frames->sites != NULL &&
                      (frames->names_decide || mark_ambiguous(frames, &by_name, firsts));
    kymo__free(firsts);
    kymo__free(by_name.slots);
    return done;
}

/* What of a path tells where a module is: all behind the folder that packages, or Python's own modules, are in. */
static size_t skip_folders(const char *file, size_t len)
{
    static const char *const folders[] = {"/site-packages/", "/dist-packages/", "/lib/python3."};
    for (size_t i = 0; i < KYMO__COUNT_OF(folders); i++) {
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
static void put_long_name(const struct kymo__frames *frames, struct kymo__buf *buf,
                          const struct kymo__text_frame *frame)
{
    const size_t skip = skip_folders(frame->file, frame->file_len);
    kymo__buf_put(buf, frame->name, frame->name_len);
    kymo__buf_puts(buf, " (");
    kymo__buf_put(buf, frame->file + skip, frame->file_len - skip);
    if (frames->names_lines && frame->line != 0)
        kymo__buf_printf(buf, ":%u", frame->line);
    kymo__buf_puts(buf, ")");
}

uint32_t kymo__frames_site(struct kymo__frames *frames, kymo__sink_process *process, uint32_t number)
{
    const struct kymo__text_frame *frame = &frames->frames[number];
    if (frames->sites_of != process) {
        memset(frames->sites, 0, frames->n * sizeof *frames->sites);
        frames->sites_of = process;
    }
    if (frames->sites[number] != 0)
        return frames->sites[number];
    struct kymo__buf name = {0};
    const bool is_long = frames->is_ambiguous[number] && frame->file_len != 0;
    if (is_long)
        put_long_name(frames, &name, frame);
    const struct kymo__sink_site site = {.name = is_long ? name.data : frame->name,
                                         .name_len = is_long ? name.len : frame->name_len,
                                         .file = frame->file,
                                         .file_len = frame->file_len,
                                         .line = frame->line};
    frames->sites[number] = name.failed ? 0 : kymo__sink_site(process, &site);
    if (name.failed)
        kymo__sink_fail(process->sink,
                        kymo__fail(KYMO_ENOMEM, "no memory for the names of a profile"));
    kymo__buf_fini(&name);
    return frames->sites[number];
}
