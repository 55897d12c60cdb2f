/*
 * speedscope's files. The table of frames may come after the profiles, and a profile's type and unit after its events, so
 * the file is read twice. The first pass reads frames and the profiles' metadata and skips events.
 *
 *   speedscope_outline.c ── the first pass
 *   speedscope_in.c ── the second: events become ranges at once; samples once their weights are read
 *
 * A profile is a thread. py-spy's samples contain frames that name their process and thread. Times are exact to the
 * nanosecond. Without a unit, numbers are samples of 10 ms; bytes are shown as nanoseconds.
 */
#include "import/stacks/internal.h"

struct reading {
    struct marey__import *import;
    struct marey__json scan;
    struct marey__speedscope outline;
    marey__sink_process *first;   /* the first with ranges; gets the notes */
    marey__sink_process *process; /* of the current profile */
    const struct marey__speedscope_profile *profile;
    int64_t pid, ppid, tid; /* from its samples; -1: unknown */
    struct marey__text command, thread;
    uint32_t lane;
    uint64_t ns; /* of its latest event */
    uint32_t *stack; /* open frames of an evented profile, open paths of a sampled one; outermost first */
    size_t depth, stack_cap;
    struct marey__paths paths; /* of a sampled profile: the stack of each sample */
    uint32_t *samples;
    size_t n_samples, samples_cap;
    int64_t *weights;
    size_t n_weights, weights_cap;
    uint64_t n_bad; /* invalid events and samples */
};

/* Later times are invalid. */
static const int64_t latest_ns = INT64_C(1) << 62;

static void put(struct reading *r, enum marey__sink_kind kind, uint32_t frame)
{
    const struct marey__sink_event event = {
        .kind = kind,
        .lane = r->lane,
        .site = marey__frames_site(&r->outline.frames, r->process, frame),
        .ns = r->ns,
    };
    marey__sink_put(r->process, &event);
}

/* A number in the profile's unit as nanoseconds since the start of the file; false if missing or out of range. */
static bool take_ns(const struct reading *r, const struct marey__json *scan, int64_t *ns)
{
    if (!marey__decimal(scan->text, scan->text_len, r->profile->scale, ns) || *ns < -latest_ns ||
        *ns > latest_ns)
        return false;
    *ns -= r->outline.base_ns;
    return true;
}

/* ---- evented ---- */

struct event {
    char type; /* 'O', 'C', or 0 */
    bool has_frame, has_at;
    uint32_t frame;
    int64_t at_ns;
};

/* Returns false on an error in the file. */
static bool read_event(struct reading *r, struct event *event)
{
    struct marey__json *scan = &r->scan;
    enum marey__json_token token;
    int64_t number;
    *event = (struct event){0};
    while ((token = marey__json_next(scan)) == MAREY__JSON_KEY) {
        const bool is_type = marey__json_is(scan, "type"), is_frame = marey__json_is(scan, "frame"),
                   is_at = marey__json_is(scan, "at");
        if (!is_type && !is_frame && !is_at) {
            if (!marey__json_skip(scan))
                return false;
            continue;
        }
        token = marey__json_next(scan);
        if (is_type && token == MAREY__JSON_STRING && scan->text_len == 1) {
            event->type = scan->text[0];
        } else if (is_frame && token == MAREY__JSON_NUMBER) {
            event->has_frame = marey__decimal(scan->text, scan->text_len, 0, &number) &&
                               number >= 0 && (uint64_t)number < r->outline.frames.n;
            event->frame = event->has_frame ? (uint32_t)number : 0;
        } else if (is_at && token == MAREY__JSON_NUMBER) {
            event->has_at = take_ns(r, scan, &event->at_ns) && event->at_ns >= 0;
        } else if (!marey__json_skip_from(scan, token)) {
            return false;
        }
    }
    return token == MAREY__JSON_OBJECT_END;
}

/* End the topmost range of that frame, which is on top unless the file is invalid. */
static bool close_frame(struct reading *r, uint32_t frame)
{
    enum { MAX_SEARCH = 1000 };
    const size_t stop = r->depth > MAX_SEARCH ? r->depth - MAX_SEARCH : 0;
    size_t i = r->depth;
    while (i > stop && r->stack[i - 1] != frame)
        i--;
    if (i == stop)
        return false;
    memmove(r->stack + i - 1, r->stack + i, (r->depth - i) * sizeof *r->stack);
    r->depth--;
    put(r, MAREY__SINK_END, frame);
    return true;
}

static bool take_event(struct reading *r, const struct event *event)
{
    const bool is_sound =
        (event->type == 'O' || event->type == 'C') && event->has_frame && event->has_at;
    if (!is_sound) {
        r->n_bad++;
        return true;
    }
    r->ns = MAREY__MAX(r->ns, (uint64_t)event->at_ns);
    if (event->type == 'O') {
        put(r, MAREY__SINK_BEGIN, event->frame);
        return MAREY__PUSH(r->stack, r->depth, r->stack_cap, event->frame);
    }
    r->n_bad += !close_frame(r, event->frame);
    return true;
}

/* Starts after the bracket of the list. */
static marey_status read_events(struct reading *r)
{
    enum marey__json_token token;
    struct event event;
    while ((token = marey__json_next(&r->scan)) == MAREY__JSON_OBJECT) {
        if (!read_event(r, &event))
            return MAREY_OK; /* the scan has the error */
        MAREY__TRY_MEMORY(take_event(r, &event));
    }
    if (token != MAREY__JSON_ARRAY_END)
        marey__json_fail(&r->scan, "an event that is not an object");
    return marey__sink_status(r->import->sink);
}

/* Frames still open end with the profile. */
static void end_events(struct reading *r)
{
    const int64_t end_ns = r->profile->end_ns - r->outline.base_ns;
    if (end_ns > 0)
        r->ns = MAREY__MAX(r->ns, (uint64_t)end_ns);
    r->n_bad += r->depth;
    while (r->depth > 0)
        put(r, MAREY__SINK_END, r->stack[--r->depth]);
}

/* ---- sampled ---- */

/* Use a frame that names the sampled process or thread; the innermost process counts. */
static void take_owner(struct reading *r, uint32_t number)
{
    const struct marey__text_frame *frame = &r->outline.frames.frames[number];
    const struct marey__text name = {frame->name, frame->name_len};
    int64_t pid;
    if (marey__collapsed_thread(&name, &r->tid, &r->thread))
        return;
    if (marey__collapsed_process(&name, &pid, &r->command) && pid != r->pid) {
        r->ppid = r->pid;
        r->pid = pid;
    }
}

/* One stack, frames from the outermost on. `*path` is 0 on out of memory. */
static bool read_stack(struct reading *r, uint32_t *path)
{
    enum marey__json_token token;
    int64_t frame;
    *path = 0;
    bool has_memory = true;
    while ((token = marey__json_next(&r->scan)) == MAREY__JSON_NUMBER) {
        const bool is_sound = marey__decimal(r->scan.text, r->scan.text_len, 0, &frame) &&
                              frame >= 0 && (uint64_t)frame < r->outline.frames.n;
        r->n_bad += !is_sound;
        if (!is_sound || !has_memory)
            continue;
        if (r->outline.is_owner[frame]) {
            if (r->n_samples == 0)
                take_owner(r, (uint32_t)frame);
            continue;
        }
        const uint32_t child = marey__paths_child(&r->paths, *path, (uint32_t)frame);
        has_memory = child != 0 || r->paths.n >= MAREY__MAX_PATHS;
        *path = child != 0 ? child : *path; /* beyond the limit on paths, stacks are truncated */
    }
    if (token != MAREY__JSON_ARRAY_END)
        marey__json_fail(&r->scan, "a sample that is not a list of frames");
    return has_memory;
}

static marey_status read_samples(struct reading *r)
{
    enum marey__json_token token;
    uint32_t path;
    while ((token = marey__json_next(&r->scan)) == MAREY__JSON_ARRAY) {
        MAREY__TRY_MEMORY(read_stack(r, &path) &&
                          MAREY__PUSH(r->samples, r->n_samples, r->samples_cap, path));
        if (r->scan.mistake != NULL)
            return MAREY_OK;
    }
    if (token != MAREY__JSON_ARRAY_END)
        marey__json_fail(&r->scan, "a sample that is not a list of frames");
    return MAREY_OK;
}

static marey_status read_weights(struct reading *r)
{
    enum marey__json_token token;
    while ((token = marey__json_next(&r->scan)) == MAREY__JSON_NUMBER) {
        int64_t weight;
        const bool is_sound =
            marey__decimal(r->scan.text, r->scan.text_len, r->profile->scale, &weight) &&
            weight >= 0 && weight <= latest_ns;
        r->n_bad += !is_sound;
        MAREY__TRY_MEMORY(
            MAREY__PUSH(r->weights, r->n_weights, r->weights_cap, is_sound ? weight : 0));
    }
    if (token != MAREY__JSON_ARRAY_END)
        marey__json_fail(&r->scan, "a weight that is not a number");
    return MAREY_OK;
}

/* End ranges that the next sample does not have, innermost first, then begin its new ones. */
static bool change_to(struct reading *r, uint32_t path)
{
    size_t n_new = 0, same = 0;
    for (uint32_t p = path; p != 0; p = r->paths.paths[p].parent)
        n_new++;
    /* Walk up the path's ancestors; the one at the depth of each open range shows whether that continues. */
    uint32_t p = path;
    size_t at = n_new;
    for (; at > r->depth; at--)
        p = r->paths.paths[p].parent;
    same = at;
    for (; same > 0 && r->stack[same - 1] != p; same--)
        p = r->paths.paths[p].parent;
    while (r->depth > same)
        put(r, MAREY__SINK_END, r->paths.paths[r->stack[--r->depth]].frame);
    if (!marey__grow(&r->stack, &r->stack_cap, n_new, sizeof *r->stack))
        return false;
    r->depth = n_new;
    for (p = path; n_new > same; p = r->paths.paths[p].parent)
        r->stack[--n_new] = p;
    for (size_t i = same; i < r->depth; i++)
        put(r, MAREY__SINK_BEGIN, r->paths.paths[r->stack[i]].frame);
    return true;
}

/* Create the thread of a profile, once its owner is known. */
static marey_status open_lane(struct reading *r, size_t number)
{
    const bool is_named = r->pid >= 0;
    r->process =
        marey__sink_process_get(r->import->sink, is_named ? (uint64_t)r->pid : r->import->number);
    if (r->process == NULL)
        return marey__sink_status(r->import->sink);
    r->first = r->first != NULL ? r->first : r->process;
    if (is_named) {
        char *command = marey__strndup(r->command.at, r->command.len);
        const struct marey__sink_identity identity = {
            .pid = r->pid, .ppid = r->ppid, .rank = -1, .world_size = -1, .command = command};
        marey__sink_identify(r->process, &identity);
        marey__free(command);
        MAREY__TRY_MEMORY(command != NULL);
    }
    const char *name = r->thread.len != 0 ? r->thread.at : r->profile->name;
    r->lane = marey__sink_thread(r->process, r->tid >= 0 ? r->tid : (int64_t)number + 1);
    marey__sink_name_lane(r->process, r->lane, name,
                          r->thread.len != 0 ? r->thread.len : strlen(name));
    return MAREY_OK;
}

static marey_status lay_samples(struct reading *r, size_t number)
{
    MAREY_TRY(open_lane(r, number));
    const size_t n = MAREY__MIN(r->n_samples, r->n_weights);
    r->n_bad += MAREY__MAX(r->n_samples, r->n_weights) - n;
    for (size_t i = 0; i < n; i++) {
        if (r->weights[i] == 0)
            continue;
        MAREY__TRY_MEMORY(change_to(r, r->samples[i]));
        r->ns = MAREY__MIN(r->ns + (uint64_t)r->weights[i], (uint64_t)latest_ns);
    }
    return change_to(r, 0) ? marey__sink_status(r->import->sink) : marey__no_memory();
}

/* ---- profiles ---- */

static marey_status read_list(struct reading *r, bool is_events, bool is_samples)
{
    if (!marey__json_expect(&r->scan, MAREY__JSON_ARRAY, "an array is missing"))
        return MAREY_OK;
    if (is_events)
        return read_events(r);
    return is_samples ? read_samples(r) : read_weights(r);
}

static marey_status read_keys(struct reading *r)
{
    const bool is_sampled = r->profile->type == MAREY__SPEEDSCOPE_SAMPLED;
    while (marey__json_next(&r->scan) == MAREY__JSON_KEY) {
        const bool is_events = !is_sampled && marey__json_is(&r->scan, "events"),
                   is_samples = is_sampled && marey__json_is(&r->scan, "samples"),
                   is_weights = is_sampled && marey__json_is(&r->scan, "weights");
        if (is_events || is_samples || is_weights)
            MAREY_TRY(read_list(r, is_events, is_samples));
        else if (!marey__json_skip(&r->scan))
            return MAREY_OK;
    }
    return MAREY_OK;
}

static void start_profile(struct reading *r, size_t number)
{
    const struct marey__speedscope_profile *profile = &r->outline.profiles[number];
    r->profile = profile;
    r->pid = r->ppid = r->tid = -1;
    r->command = r->thread = (struct marey__text){"", 0};
    r->ns = profile->start_ns > r->outline.base_ns
                ? (uint64_t)(profile->start_ns - r->outline.base_ns)
                : 0;
    r->depth = r->n_samples = r->n_weights = 0;
}

static marey_status read_profile(struct reading *r, size_t number)
{
    const bool is_sampled = r->outline.profiles[number].type == MAREY__SPEEDSCOPE_SAMPLED;
    start_profile(r, number);
    marey__paths_fini(&r->paths);
    MAREY__TRY_MEMORY(marey__paths_init(&r->paths));
    if (!is_sampled)
        MAREY_TRY(open_lane(r, number));
    MAREY_TRY(read_keys(r));
    if (is_sampled)
        return lay_samples(r, number);
    end_events(r);
    return marey__sink_status(r->import->sink);
}

/* Starts after the bracket of the list of profiles. Profiles of unknown type are skipped. */
static marey_status read_profiles(struct reading *r)
{
    size_t number = 0;
    while (number < r->outline.n_profiles && marey__json_next(&r->scan) == MAREY__JSON_OBJECT) {
        if (r->outline.profiles[number].type == MAREY__SPEEDSCOPE_UNKNOWN) {
            if (!marey__json_skip(&r->scan))
                return MAREY_OK;
        } else {
            MAREY_TRY(read_profile(r, number));
        }
        number++;
    }
    return MAREY_OK;
}

static marey_status read_second(struct reading *r)
{
    MAREY_TRY(marey__json_init(&r->scan, r->import->bytes));
    if (marey__json_next(&r->scan) != MAREY__JSON_OBJECT)
        return MAREY_OK;
    while (marey__json_next(&r->scan) == MAREY__JSON_KEY) {
        if (marey__json_is(&r->scan, "profiles"))
            return marey__json_next(&r->scan) == MAREY__JSON_ARRAY ? read_profiles(r) : MAREY_OK;
        if (!marey__json_skip(&r->scan))
            return MAREY_OK;
    }
    return MAREY_OK;
}

/* ---- the file ---- */

static void put_notes(const struct reading *r)
{
    const char *path = r->import->path;
    marey__speedscope_put_notes(&r->outline, r->first, path);
    if (r->n_bad != 0)
        marey__sink_note(
            r->first,
            "%s: %llu events or samples have no place, no time or no frame: left out or "
            "ended with their profile",
            path, (unsigned long long)r->n_bad);
}

static marey_status read_all(struct reading *r)
{
    MAREY_TRY(marey__speedscope_read_outline(&r->outline, r->import));
    const marey_status status = read_second(r);
    if (r->scan.status == MAREY_EIO || r->scan.status == MAREY_ENOMEM)
        return r->scan.status;
    if (status == MAREY_OK && r->first != NULL)
        put_notes(r);
    return status;
}

static marey_status read_speedscope(struct marey__import *import)
{
    struct reading r = {.import = import};
    const marey_status status = read_all(&r);
    marey__json_fini(&r.scan);
    marey__speedscope_fini(&r.outline);
    marey__paths_fini(&r.paths);
    MAREY__FREE_ALL(r.stack, r.samples, r.weights);
    return status;
}

/* By the schema, or by the required keys. */
static bool looks_like_speedscope(const char *bytes, size_t len)
{
    size_t i = 0;
    while (i < len && strchr(" \t\r\n\xef\xbb\xbf", bytes[i]) != NULL && bytes[i] != '\0')
        i++;
    if (i == len || bytes[i] != '{')
        return false;
#define HAS(word) (memmem(bytes, len, word, strlen(word)) != NULL)
    return HAS("speedscope.app/file-format-schema") ||
           (HAS("\"profiles\"") && (HAS("\"evented\"") || HAS("\"sampled\"")));
#undef HAS
}

const struct marey__import_format marey__import_speedscope = {
    .info = {.name = "speedscope",
             .noun = "a profile of speedscope",
             .brief = "profiles of speedscope",
             .extensions = ".speedscope .json",
             .has_samples = 1},
    .looks_like = looks_like_speedscope,
    .read = read_speedscope,
};
