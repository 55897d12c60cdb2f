/*
 * Austin's samples as ranges. Austin records the duration of each sample and writes the threads of a round one after
 * another: a thread that appears again starts the next round, later by the duration of the last one. So files have an
 * order in time, though no timestamps, and a thread's stack is a range while it stays the same.
 */
#include "import/stacks/internal.h"

enum mode { WALL, CPU, MEMORY, FULL };

struct thread {
    struct thread_key {
        int64_t pid, tid, interpreter;
    } key;
    marey__sink_process *process;
    uint32_t lane;
    uint64_t round;  /* in which it was last seen */
    uint64_t end_ns; /* up to which the open ranges were seen */
    struct open {
        uint32_t frame;
        uint64_t begin_ns, n_samples;
    } * open; /* outermost first */
    size_t depth, open_cap;
};

struct reading {
    struct marey__import *import;
    struct marey__frames frames;
    struct marey__austin_mistakes mistakes;
    bool is_second; /* frames are known, ranges are created */
    enum mode mode;
    char version[16];
    uint64_t interval_us;
    struct thread *threads;
    size_t n_threads, threads_cap;
    struct marey__index by_thread;
    uint64_t round, round_ns; /* its number, and its duration so far */
    uint64_t now_ns;
    uint64_t n_samples, n_idle, n_empty, n_freed;
    uint32_t nothing; /* the frame of a thread without frames */
    /* Of text: */
    uint64_t n_lines;
    uint32_t *stack;
    size_t stack_cap;
};

/* Later times are invalid. */
static const uint64_t latest_ns = UINT64_C(1) << 61;

/* ---- metadata of the file ---- */

static bool take_meta(void *ctx, struct marey__text key, struct marey__text value)
{
    struct reading *r = ctx;
    if (marey__text_is(key.at, key.len, "mode"))
        r->mode = marey__text_is(value.at, value.len, "memory") ? MEMORY
                  : marey__text_is(value.at, value.len, "full") ? FULL
                  : marey__text_is(value.at, value.len, "cpu")  ? CPU
                                                                : WALL;
    else if (marey__text_is(key.at, key.len, "interval"))
        (void)marey__parse_number(value.at, value.len, &r->interval_us);
    else if (marey__text_is(key.at, key.len, "austin"))
        snprintf(r->version, sizeof r->version, "%.*s", (int)MAREY__MIN(value.len, 15), value.at);
    return true;
}

/* ---- threads ---- */

static bool start_thread(struct reading *r, struct thread *thread)
{
    const struct thread_key *key = &thread->key;
    thread->round = UINT64_MAX;
    thread->process = marey__sink_process_get(r->import->sink, (uint64_t)key->pid);
    if (thread->process == NULL)
        return false;
    /* A thread has one stack per interpreter it was in. */
    thread->lane = marey__sink_thread(thread->process, key->tid + (key->interpreter << 32));
    if (key->interpreter != 0) {
        char name[48];
        const int len = snprintf(name, sizeof name, "%lld in interpreter %lld", (long long)key->tid,
                                 (long long)key->interpreter);
        marey__sink_name_lane(thread->process, thread->lane, name, (size_t)len);
    }
    return true;
}

static struct thread *find_thread(struct reading *r, const struct marey__austin_sample *sample)
{
    const struct thread_key key = {sample->pid, sample->tid, sample->interpreter};
    const size_t n_before = r->n_threads;
    const uint32_t number = MAREY__INDEX_NUMBER(&r->by_thread, r->frames.seed, r->threads,
                                                r->n_threads, r->threads_cap, key);
    const bool is_new = r->n_threads > n_before;
    return number != 0 && (!is_new || start_thread(r, &r->threads[number - 1]))
               ? &r->threads[number - 1]
               : NULL;
}

/* ---- ranges ---- */

/* End ranges from `depth` on, at `end_ns`. Of slices with equal times the outer one must come first. */
static void close_from(struct reading *r, struct thread *thread, size_t depth, uint64_t end_ns)
{
    for (size_t i = depth; i < thread->depth; i++) {
        const struct open *open = &thread->open[i];
        const struct marey__sink_event event = {
            .kind = MAREY__SINK_SLICE,
            .lane = thread->lane,
            .site = marey__frames_site(&r->frames, thread->process, open->frame),
            .ns = open->begin_ns,
            .duration_ns = end_ns - open->begin_ns,
            .repeat = open->n_samples,
        };
        marey__sink_put(thread->process, &event);
    }
    thread->depth = MAREY__MIN(thread->depth, depth);
}

/* Set the thread's stack from now on. */
static bool change_to(struct reading *r, struct thread *thread, const uint32_t *frames, size_t n,
                      uint64_t duration_ns)
{
    size_t same = 0;
    if (thread->end_ns < r->now_ns)
        close_from(r, thread, 0, thread->end_ns);
    while (same < n && same < thread->depth && thread->open[same].frame == frames[same])
        same++;
    close_from(r, thread, same, r->now_ns);
    if (!marey__grow(&thread->open, &thread->open_cap, n, sizeof *thread->open))
        return false;
    for (size_t i = same; i < n; i++)
        thread->open[i] = (struct open){frames[i], r->now_ns, 0};
    for (size_t i = 0; i < n; i++)
        thread->open[i].n_samples++;
    thread->depth = n;
    thread->end_ns = r->now_ns + duration_ns;
    return true;
}

/* The duration of a sample; bytes are shown as nanoseconds. */
static uint64_t weigh(struct reading *r, const struct marey__austin_sample *sample)
{
    const uint64_t most = latest_ns / 1000;
    if (r->mode != MEMORY)
        return MAREY__MIN(sample->time_us, most) * 1000;
    r->n_freed += sample->bytes < 0;
    return sample->bytes > 0 ? MAREY__MIN((uint64_t)sample->bytes, latest_ns) : 0;
}

static bool take_sample(void *ctx, const struct marey__austin_sample *sample)
{
    struct reading *r = ctx;
    if (!r->is_second) {
        r->n_samples++;
        r->n_idle += sample->is_idle;
        r->n_empty += sample->n_frames == 0;
        return true;
    }
    struct thread *thread = find_thread(r, sample);
    if (thread == NULL)
        return false;
    if (thread->round == r->round) {
        r->now_ns = MAREY__MIN(r->now_ns + r->round_ns, latest_ns);
        r->round++;
        r->round_ns = 0;
    }
    thread->round = r->round;
    const uint64_t duration_ns = weigh(r, sample);
    r->round_ns = MAREY__MAX(r->round_ns, duration_ns);
    return sample->n_frames != 0
               ? change_to(r, thread, sample->frames, sample->n_frames, duration_ns)
               : change_to(r, thread, &r->nothing, 1, duration_ns);
}

/*
 * ---- austin's text: one line per thread and sample ----
 *
 *   # mode: wall                                              of the whole file
 *   P12;T0:13;train.py:main:3;train.py:step:9 10077           microseconds, or bytes in mode memory
 *   P12;T0:13;train.py:main:3;:GC: 10077,1,-4096              mode full: microseconds, whether it was idle, bytes
 *
 * Names and paths are not escaped: a frame ends at a semicolon and is parsed from its end, because line numbers and names
 * contain no colons.
 */

static bool take_byte(struct marey__text *text, char c)
{
    if (text->len == 0 || text->at[0] != c)
        return false;
    text->at++;
    text->len--;
    return true;
}

bool marey__austin_number(struct marey__text *text, unsigned base, int64_t *number)
{
    uint64_t value = 0;
    size_t i = 0;
    while (i < text->len && marey__hex_value(text->at[i]) < base) {
        if (value > (INT64_MAX - 15) / 16)
            return false;
        value = value * base + marey__hex_value(text->at[i++]);
    }
    *number = (int64_t)value;
    text->at += i;
    text->len -= i;
    return i != 0;
}

/* Thread ids of some versions are addresses: `0x7f12`. */
static bool take_id(struct marey__text *text, int64_t *number)
{
    const bool is_hex = text->len > 2 && memcmp(text->at, "0x", 2) == 0;
    if (is_hex) {
        text->at += 2;
        text->len -= 2;
    }
    return marey__austin_number(text, is_hex ? 16 : 10, number);
}

static bool take_head(struct marey__text line, struct marey__austin_sample *sample,
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

/* Parse and skip a signed number at the start of `text`. */
static bool take_signed(struct marey__text *text, int64_t *number)
{
    const bool is_negative = take_byte(text, '-');
    if (!marey__austin_number(text, 10, number))
        return false;
    *number = is_negative ? -*number : *number;
    return true;
}

/* Remove ` 10077` or ` 10077,1,-4096` from the end. */
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

/* `file:name:line`; `:GC:` and similar frames have neither file nor line. */
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
        const uint32_t number = frame_of(&r->frames, frame);
        if (number == MAREY__NO_FRAME ||
            !MAREY__PUSH(r->stack, sample->n_frames, r->stack_cap, number))
            return false;
    }
    sample->frames = r->stack;
    return true;
}

static void note_bad(struct reading *r)
{
    if (r->mistakes.n_bad++ == 0)
        r->mistakes.first_bad = r->n_lines;
}

/* `# key: value` */
static bool take_remark(struct reading *r, struct marey__text line)
{
    const char *colon = memchr(line.at, ':', line.len);
    if (colon == NULL || line.len < 3 || line.at[1] != ' ' || colon + 2 > line.at + line.len)
        return true;
    const struct marey__text key = {line.at + 2, (size_t)(colon - line.at) - 2};
    const struct marey__text value = {colon + 2, line.len - (size_t)(colon + 2 - line.at)};
    return take_meta(r, key, value);
}

static marey_status take_line(void *ctx, const char *at, size_t len)
{
    struct reading *r = ctx;
    struct marey__text line = {at, len}, rest;
    struct marey__austin_sample sample;
    r->n_lines++;
    if (at == NULL) {
        note_bad(r);
        return MAREY_OK;
    }
    if (line.len != 0 && line.at[line.len - 1] == '\r')
        line.len--;
    if (line.len == 0)
        return MAREY_OK;
    if (line.at[0] == '#')
        return take_remark(r, line) ? MAREY_OK : marey__no_memory();
    if (!take_head(line, &sample, &rest) || !take_metrics(&rest, &sample)) {
        note_bad(r);
        return MAREY_OK;
    }
    return take_frames(r, rest, &sample) && take_sample(r, &sample) ? MAREY_OK : marey__no_memory();
}

/* ---- the file ---- */

static bool is_mojo(const char *bytes, size_t len)
{
    return len >= 4 && memcmp(bytes, "MOJ", 3) == 0 && bytes[3] >= 1 && bytes[3] < 32;
}

static marey_status read_once(struct reading *r, marey__byte_source *source)
{
    const struct marey__austin_visitor visitor = {take_meta, take_sample, r, &r->frames,
                                                  &r->mistakes};
    const char *bytes;
    size_t len;
    r->mistakes = (struct marey__austin_mistakes){0};
    MAREY_TRY(marey__bytes_peek(source, &bytes, &len));
    r->n_lines = 0;
    return is_mojo(bytes, len) ? marey__austin_mojo(source, &visitor)
                               : marey__read_lines(source, take_line, r);
}

static void put_notes(const struct reading *r, bool is_bytes)
{
    static const char *const modes[] = {"wall time", "CPU time",
                                        "memory: bytes are shown as nanoseconds", "wall time"};
    const char *path = r->import->path;
    const struct marey__austin_mistakes *mistakes = &r->mistakes;
    marey__sink_process *first = marey__sink_process_at(r->import->sink, 0);
    if (first == NULL)
        return;
    marey__sink_note(first, "%llu samples of austin %s, of %s, one each %g ms; %llu idle",
                     (unsigned long long)r->n_samples, r->version, modes[r->mode],
                     (double)r->interval_us / 1000, (unsigned long long)r->n_idle);
    if (r->n_empty != 0)
        marey__sink_note(first, "%s: %llu samples have no frames", path,
                         (unsigned long long)r->n_empty);
    if (r->n_freed != 0)
        marey__sink_note(first, "%s: %llu samples released memory and have no duration", path,
                         (unsigned long long)r->n_freed);
    if (mistakes->n_bad != 0)
        marey__sink_note(first, "%s: left out %llu %s; the first is at %s %llu", path,
                         (unsigned long long)mistakes->n_bad,
                         is_bytes ? "undefined frames" : "lines that are not samples",
                         is_bytes ? "byte" : "line", (unsigned long long)mistakes->first_bad);
    if (mistakes->ends != NULL)
        marey__sink_note(first, "%s cannot be read from byte %llu on: %s", path,
                         (unsigned long long)mistakes->ends_at, mistakes->ends);
    if (marey__bytes_damage(r->import->bytes) != NULL)
        marey__sink_note(first, "%s", marey__bytes_damage(r->import->bytes));
}

static marey_status read_first(struct reading *r)
{
    static const char nothing[] = "(no frames)";
    const struct marey__text_frame none = {.name = nothing, .name_len = strlen(nothing), .file = ""};
    marey__byte_source *source = NULL;
    r->nothing = marey__frames_of_function(&r->frames, &none);
    if (r->nothing == MAREY__NO_FRAME)
        return marey__no_memory();
    MAREY_TRY(marey__bytes_open_again(r->import->bytes, &source));
    const marey_status status = read_once(r, source);
    marey__bytes_close(source);
    return status;
}

static marey_status read_all(struct reading *r)
{
    const char *bytes;
    size_t len;
    MAREY_TRY(read_first(r));
    if (r->n_samples == 0)
        return marey__fail(MAREY_EFORMAT, "%s has no samples in it", r->import->path);
    MAREY__TRY_MEMORY(marey__frames_name(&r->frames));
    MAREY_TRY(marey__bytes_peek(r->import->bytes, &bytes, &len));
    const bool is_bytes = is_mojo(bytes, len);
    r->is_second = true;
    MAREY_TRY(read_once(r, r->import->bytes));
    for (size_t i = 0; i < r->n_threads; i++)
        close_from(r, &r->threads[i], 0, r->threads[i].end_ns);
    put_notes(r, is_bytes);
    return marey__sink_status(r->import->sink);
}

static marey_status read_austin(struct marey__import *import)
{
    struct reading r = {.import = import};
    marey__frames_init(&r.frames);
    const marey_status status = read_all(&r);
    for (size_t i = 0; i < r.n_threads; i++)
        marey__free(r.threads[i].open);
    marey__frames_fini(&r.frames);
    MAREY__FREE_ALL(r.threads, r.stack);
    marey__index_fini(&r.by_thread);
    return status;
}

/* By its first line that is not a comment. */
static bool looks_like_austin(const char *bytes, size_t len)
{
    if (is_mojo(bytes, len) || marey__starts_with(bytes, len, "# austin: "))
        return true;
    while (len > 0 && (bytes[0] == '#' || bytes[0] == '\n')) {
        const char *newline = memchr(bytes, '\n', len);
        const size_t n = newline != NULL ? (size_t)(newline + 1 - bytes) : len;
        bytes += n;
        len -= n;
    }
    struct marey__austin_sample sample;
    struct marey__text rest;
    return take_head((struct marey__text){bytes, len}, &sample, &rest);
}

const struct marey__import_format marey__import_austin = {
    .info = {.name = "austin",
             .noun = "a profile of austin",
             .brief = "profiles of austin, text and binary",
             .extensions = ".austin .mojo",
             .has_samples = 1},
    .looks_like = looks_like_austin,
    .read = read_austin,
};
