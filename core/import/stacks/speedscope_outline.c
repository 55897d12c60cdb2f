/* The first pass over a speedscope file: frames and the profiles' metadata. */
#include "import/stacks/internal.h"

struct outlining {
    struct marey__speedscope *outline;
    struct marey__json scan;
    bool has_memory;
};

void marey__speedscope_fini(struct marey__speedscope *outline)
{
    marey__frames_fini(&outline->frames);
    MAREY__FREE_ALL(outline->profiles, outline->is_owner);
    marey__arena_fini(&outline->texts);
    *outline = (struct marey__speedscope){0};
}

/* A copy of a key's value if it is a string, or a number as written; "" for anything else. */
static const char *take(struct outlining *o, enum marey__json_token wanted)
{
    const enum marey__json_token token = marey__json_next(&o->scan);
    const char *text = "";
    if (token == wanted)
        text = marey__arena_text(&o->outline->texts, o->scan.text, o->scan.text_len);
    else
        marey__json_skip_from(&o->scan, token);
    o->has_memory &= text != NULL;
    return text != NULL ? text : "";
}

/* A key of an object, and where its string or number goes. */
struct wanted {
    const char *key, **text;
    bool is_number;
};

/* Starts after the brace of the object. */
static void read_texts(struct outlining *o, const struct wanted *wanted, size_t n)
{
    while (o->has_memory && marey__json_next_key(&o->scan)) {
        size_t i = 0;
        while (i < n && !marey__json_is(&o->scan, wanted[i].key))
            i++;
        if (i < n)
            *wanted[i].text = take(o, wanted[i].is_number ? MAREY__JSON_NUMBER : MAREY__JSON_STRING);
        else if (!marey__json_skip(&o->scan))
            return; /* a truncated one counts too */
    }
}

/* Read the objects of an array. */
static void read_objects(struct outlining *o, void (*read)(struct outlining *o),
                         const char *no_array, const char *no_object)
{
    enum marey__json_token token;
    if (!marey__json_expect(&o->scan, MAREY__JSON_ARRAY, no_array))
        return;
    while (o->has_memory && (token = marey__json_next(&o->scan)) == MAREY__JSON_OBJECT)
        read(o);
    if (o->has_memory && token != MAREY__JSON_ARRAY_END)
        marey__json_fail(&o->scan, no_object);
}

/* ---- frames ---- */

static void read_frame(struct outlining *o)
{
    const char *name = "(unnamed)", *file = "", *digits = "";
    int64_t line = 0;
    read_texts(o, (struct wanted[]){{"name", &name}, {"file", &file}, {"line", &digits, true}}, 3);
    if (!marey__decimal(digits, strlen(digits), 0, &line) || line < 0 || line > UINT32_MAX)
        line = 0;
    const struct marey__text_frame frame = {.name = name,
                                            .name_len = strlen(name),
                                            .file = file,
                                            .file_len = strlen(file),
                                            .line = (uint32_t)line};
    o->has_memory &= marey__frames_add(&o->outline->frames, &frame) != MAREY__NO_FRAME;
}

static void read_shared(struct outlining *o)
{
    if (!marey__json_expect(&o->scan, MAREY__JSON_OBJECT, "\"shared\" that is not an object"))
        return;
    while (o->has_memory && marey__json_next_key(&o->scan)) {
        if (marey__json_is(&o->scan, "frames"))
            read_objects(o, read_frame, "frames that are not an array",
                         "a frame that is not an object");
        else if (!marey__json_skip(&o->scan))
            return;
    }
}

/* ---- profiles ---- */

static void set_unit(struct marey__speedscope_profile *profile, const char *unit)
{
    static const struct {
        const char *name;
        int scale;
    } units[] = {{"nanoseconds", 0}, {"microseconds", 3}, {"milliseconds", 6},
                 {"seconds", 9},     {"none", 7},         {"bytes", 0}};
    profile->unit = "none";
    profile->scale = 7; /* 10 ms */
    for (size_t i = 0; i < MAREY__COUNT_OF(units); i++)
        if (strcmp(unit, units[i].name) == 0) {
            profile->unit = units[i].name;
            profile->scale = units[i].scale;
        }
}

static int64_t to_ns(const struct marey__speedscope_profile *profile, const char *digits)
{
    static const int64_t most = INT64_C(1) << 62;
    int64_t ns;
    if (!marey__decimal(digits, strlen(digits), profile->scale, &ns))
        return 0;
    return ns < -most ? -most : MAREY__MIN(ns, most);
}

static void read_profile(struct outlining *o)
{
    struct marey__speedscope *outline = o->outline;
    struct marey__speedscope_profile profile = {.name = ""};
    const char *type = "", *unit = "", *start = "", *end = "";
    const struct wanted wanted[] = {{"type", &type},
                                    {"name", &profile.name},
                                    {"unit", &unit},
                                    {"startValue", &start, true},
                                    {"endValue", &end, true}};
    read_texts(o, wanted, MAREY__COUNT_OF(wanted));
    profile.type = strcmp(type, "evented") == 0   ? MAREY__SPEEDSCOPE_EVENTED
                   : strcmp(type, "sampled") == 0 ? MAREY__SPEEDSCOPE_SAMPLED
                                                  : MAREY__SPEEDSCOPE_UNKNOWN;
    set_unit(&profile, unit);
    profile.start_ns = to_ns(&profile, start);
    profile.end_ns = to_ns(&profile, end);
    outline->base_ns = MAREY__MIN(outline->base_ns, profile.start_ns);
    outline->n_unknown += profile.type == MAREY__SPEEDSCOPE_UNKNOWN;
    o->has_memory &=
        MAREY__PUSH(outline->profiles, outline->n_profiles, outline->profiles_cap, profile);
}

/* ---- the file ---- */

static bool is_our_exporter(const char *text)
{
    return strncmp(text, "marey ", 6) == 0 ||
           strncmp(text, MAREY__OLD_EXPORTER, strlen(MAREY__OLD_EXPORTER)) == 0;
}

static void read_keys(struct outlining *o)
{
    if (!marey__json_expect(&o->scan, MAREY__JSON_OBJECT, "no object at its start"))
        return;
    while (o->has_memory && marey__json_next_key(&o->scan)) {
        if (marey__json_is(&o->scan, "shared"))
            read_shared(o);
        else if (marey__json_is(&o->scan, "profiles"))
            read_objects(o, read_profile, "profiles that are not an array",
                         "a profile that is not an object");
        else if (marey__json_is(&o->scan, "exporter"))
            o->outline->frames.names_decide = is_our_exporter(take(o, MAREY__JSON_STRING));
        else if (!marey__json_skip(&o->scan))
            return;
    }
}

static bool mark_owners(struct marey__speedscope *outline)
{
    struct marey__text text;
    int64_t id;
    outline->is_owner = marey__calloc(outline->frames.n + 1, sizeof *outline->is_owner);
    for (size_t i = 0; outline->is_owner != NULL && i < outline->frames.n; i++) {
        const struct marey__text_frame *frame = &outline->frames.frames[i];
        const struct marey__text name = {frame->name, frame->name_len};
        outline->is_owner[i] = marey__collapsed_process(&name, &id, &text) ||
                               marey__collapsed_thread(&name, &id, &text);
    }
    return outline->is_owner != NULL;
}

static marey_status check(struct outlining *o, const char *path)
{
    struct marey__speedscope *outline = o->outline;
    const struct marey__json *scan = &o->scan;
    MAREY__TRY_MEMORY(o->has_memory && marey__frames_name(&outline->frames) && mark_owners(outline));
    if (scan->status == MAREY_EIO || scan->status == MAREY_ENOMEM)
        return scan->status;
    outline->mistake = scan->mistake;
    outline->mistake_at = marey__json_offset(scan);
    const char *missing = outline->frames.n == 0     ? "frames"
                          : outline->n_profiles == 0 ? "profiles"
                                                     : NULL;
    if (missing != NULL && scan->mistake != NULL)
        return marey__fail(MAREY_EFORMAT, "%s is damaged before its %s: at byte %llu, %s", path,
                           missing, (unsigned long long)outline->mistake_at, scan->mistake);
    if (missing != NULL)
        return marey__fail(MAREY_EFORMAT, "%s is not a profile of speedscope: it has no %s", path,
                           missing);
    return MAREY_OK;
}

marey_status marey__speedscope_read_outline(struct marey__speedscope *outline,
                                            const struct marey__import *import)
{
    struct outlining o = {.outline = outline, .has_memory = true};
    marey__byte_source *bytes = NULL;
    *outline = (struct marey__speedscope){0};
    marey__frames_init(&outline->frames);
    marey_status status = marey__bytes_open_again(import->bytes, &bytes);
    if (status == MAREY_OK)
        status = marey__json_init(&o.scan, bytes);
    if (status == MAREY_OK) {
        read_keys(&o);
        status = check(&o, import->path);
    }
    marey__json_fini(&o.scan);
    marey__bytes_close(bytes);
    return status;
}

void marey__speedscope_put_notes(const struct marey__speedscope *outline,
                                 marey__sink_process *process, const char *path)
{
    bool has_none = false, has_bytes = false;
    for (size_t i = 0; i < outline->n_profiles; i++) {
        has_none |= strcmp(outline->profiles[i].unit, "none") == 0;
        has_bytes |= strcmp(outline->profiles[i].unit, "bytes") == 0;
    }
    if (has_none)
        marey__sink_note(process, "%s has numbers without a unit: each is taken as 10 ms", path);
    if (has_bytes)
        marey__sink_note(process, "%s counts bytes: each is shown as a nanosecond", path);
    if (outline->n_unknown != 0)
        marey__sink_note(process, "%s: left out %zu profiles that are neither evented nor sampled",
                         path, outline->n_unknown);
    if (outline->mistake != NULL)
        marey__sink_note(process, "%s is damaged: at byte %llu, %s; what came before is here", path,
                         (unsigned long long)outline->mistake_at, outline->mistake);
}
