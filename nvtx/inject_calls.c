/*
 * Events: our implementations of NVTX's functions. A second tool's work is excluded from what is recorded: it gets a
 * push before the recording does, and a pop after it.
 */
#include <string.h>

#include "inject.h"

/* ---- from NVTX attributes to a site ---- */

static bool is_recording(void)
{
    return (marey_on() & MAREY_ON_RECORD) != 0;
}

/* 0x00RRGGBB would be transparent, but is meant to be opaque. */
static uint32_t color_of(const struct nvtx_event *event)
{
    if (event->color_type != NVTX_COLOR_ARGB)
        return 0;
    return event->color >> 24 != 0 ? event->color : event->color | 0xff000000u;
}

/* Looks up a name; one without varying part is cached by its address. */
__attribute__((noinline)) static struct inject_meaning
look_up(struct inject_domain *domain, const char *text, const struct nvtx_event *event)
{
    struct inject_meaning meaning = {0};
    if (text == NULL)
        text = "";
    const size_t len = strlen(text), cut = inject_text_cut(text, len);
    const struct inject_name *name = inject_name_get(domain, text, cut);
    if (name != NULL && cut == len && inject_thread.memory != NULL)
        *inject_thread_recent(text) = (struct inject_recent){text, domain, name};
    if (name != NULL && cut < len) {
        meaning.rest = text + cut + 2;
        meaning.rest_len = len - cut - 2;
    }
    if (name == NULL && (name = inject_name_folded(domain, text, cut)) != NULL) {
        meaning.rest = text;
        meaning.rest_len = len;
    }
    if (name != NULL)
        meaning.id = inject_name_site(name, event->category, color_of(event));
    return meaning;
}

/* The name of a string that this thread used recently; NULL: look it up. */
static inline const struct inject_name *recent_name(const struct inject_domain *domain,
                                                    const char *text)
{
    if (MAREY_UNLIKELY(inject_thread.memory == NULL || text == NULL))
        return NULL;
    const struct inject_recent *const recent = inject_thread_recent(text);
    if (MAREY_UNLIKELY(recent->text != text || recent->domain != domain ||
                       strcmp(recent->name->text, text) != 0))
        return NULL;
    return recent->name;
}

static struct inject_meaning text_meaning(struct inject_domain *domain, const char *text,
                                          const struct nvtx_event *event)
{
    const struct inject_name *const name = recent_name(domain, text);
    if (MAREY_UNLIKELY(name == NULL))
        return look_up(domain, text, event);
    return (struct inject_meaning){.id = inject_name_site(name, event->category, color_of(event))};
}

/* `event` comes from simple_event(). */
static inline struct inject_meaning event_meaning(struct inject_domain *domain,
                                                  const struct nvtx_event *event)
{
    if (event->text_type != NVTX_REGISTERED)
        return text_meaning(domain, event->text_type == NVTX_TEXT ? event->as.text : NULL, event);
    const struct inject_name *const name = event->as.registered;
    if (MAREY_UNLIKELY(name == NULL || name->domain != domain))
        return text_meaning(domain, name != NULL ? name->text : NULL, event);
    struct inject_meaning meaning = {.id = inject_name_site(name, event->category, color_of(event))};
    if (MAREY_UNLIKELY(name->rest != name->len)) {
        meaning.rest = name->text + name->rest;
        meaning.rest_len = name->len - name->rest;
    }
    return meaning;
}

/* ---- events of all kinds ---- */

#define TEXT_EVENT(text_) ((struct nvtx_event){.text_type = NVTX_TEXT, .as.text = (text_)})
#define WIDE_EVENT(wide_) ((struct nvtx_event){.text_type = NVTX_WIDE_TEXT, .as.wide = (wide_)})

/* Converts an event with a wide string, or NULL, to `copy` with UTF-8 in `text`; returns others unchanged. */
static const struct nvtx_event *simple_event(const struct nvtx_event *event,
                                             struct nvtx_event *copy, char text[INJECT_TEXT_MAX])
{
    if (MAREY_LIKELY(event != NULL && event->text_type != NVTX_WIDE_TEXT))
        return event;
    *copy = event != NULL ? *event : TEXT_EVENT(NULL);
    if (event != NULL) {
        inject_text_narrow(event->as.wide, text);
        copy->text_type = NVTX_TEXT;
        copy->as.text = text;
    }
    return copy;
}

/* ---- to the recording ---- */

static inline void put(const struct inject_domain *domain, enum inject_what what,
                       const struct inject_meaning *meaning, const struct nvtx_event *event)
{
    if (MAREY_UNLIKELY(meaning->rest != NULL || event->payload_type != NVTX_PAYLOAD_NONE))
        inject_event_put(domain, what, meaning, event);
    else if (what == INJECT_MARK)
        marey_put_mark(meaning->id, NULL);
    else
        marey_put_begin(meaning->id);
}

/* The rest of a push whose entry is on the stack; `entry` NULL: there was no room for it. */
__attribute__((noinline)) static int push_slowly(struct inject_domain *domain,
                                                 struct inject_entry *entry,
                                                 const struct nvtx_event *event)
{
    char text[INJECT_TEXT_MAX];
    struct nvtx_event copy;
    if (entry == NULL)
        return NVTX_NO_LEVEL;
    const int level = entry->level;
    if (!is_recording())
        return level;
    event = simple_event(event, &copy, text);
    const struct inject_meaning meaning = event_meaning(domain, event);
    entry->id = meaning.id;
    if (MAREY_LIKELY(meaning.id != 0))
        put(domain, INJECT_RANGE, &meaning, event);
    return level;
}

__attribute__((noinline)) static int push_text_slowly(struct inject_domain *domain,
                                                      struct inject_entry *entry, const char *text)
{
    return push_slowly(domain, entry, &TEXT_EVENT(text));
}

static inline int push_text(struct inject_domain *domain, const char *text)
{
    struct inject_entry *const entry = inject_thread_push(domain);
    const struct inject_name *const name =
        MAREY_LIKELY(is_recording()) ? recent_name(domain, text) : NULL;
    if (MAREY_UNLIKELY(entry == NULL || name == NULL))
        return push_text_slowly(domain, entry, text);
    const int level = entry->level;
    entry->id = inject_name_site(name, 0, 0);
    marey_put_begin(entry->id);
    return level;
}

/* Fast path: a registered string without payload, typical of performance-sensitive callers. */
__attribute__((always_inline)) static inline int push_event(struct inject_domain *domain,
                                                            const struct nvtx_event *event)
{
    const struct inject_name *const name =
        event != NULL && event->text_type == NVTX_REGISTERED ? event->as.registered : NULL;
    if (MAREY_UNLIKELY(name == NULL || event->payload_type != NVTX_PAYLOAD_NONE ||
                       name->domain != domain || name->rest != name->len || !is_recording()))
        return push_slowly(domain, inject_thread_push(domain), event);
    const marey_id id = inject_name_site(name, event->category, color_of(event));
    struct inject_entry *const entry = inject_thread_push(domain);
    if (MAREY_UNLIKELY(entry == NULL))
        return NVTX_NO_LEVEL;
    const int level = entry->level;
    entry->id = id;
    marey_put_begin(id);
    return level;
}

static int pop(const struct inject_domain *domain)
{
    bool is_top;
    const struct inject_entry *const entry = inject_thread_pop(domain, &is_top);
    if (entry == NULL)
        return NVTX_NO_LEVEL;
    const int level = entry->level;
    if (MAREY_LIKELY(entry->id != 0)) {
        if (MAREY_LIKELY(is_top))
            marey_put_end(entry->id);
        else
            marey_put_end_of(entry->id);
    }
    return level;
}

static void mark(struct inject_domain *domain, const struct nvtx_event *event)
{
    char text[INJECT_TEXT_MAX];
    struct nvtx_event copy;
    if (!is_recording())
        return;
    event = simple_event(event, &copy, text);
    const struct inject_meaning meaning = event_meaning(domain, event);
    if (meaning.id != 0)
        put(domain, INJECT_MARK, &meaning, event);
}

/* Returns the number of the range; with a second tool, its number `theirs` is stored beside it. */
static uint64_t start(struct inject_domain *domain, const struct nvtx_event *event, uint64_t theirs)
{
    char text[INJECT_TEXT_MAX];
    struct nvtx_event copy;
    uint64_t ours = 0;
    if (is_recording())
        ours = marey_put_async_begin(event_meaning(domain, simple_event(event, &copy, text)).id);
    return inject_next_is_there() ? inject_next_started(ours, theirs) : ours;
}

/* Ends our range; returns whether the second tool has one as well, and its number. */
static bool end(uint64_t range, uint64_t *theirs)
{
    marey_put_async_end(range >> 63 != 0 ? 0 : range); /* see inject_next_started() */
    return inject_next_is_there() && inject_next_ended(range, theirs);
}

/* ---- functions called by NVTX, for the second tool and us ---- */

/* Functions for a mark and for the start of a range, for an event in a domain; `...` are the second tool's arguments. */
#define MARK_AND_START(mark_, start_, params, domain_, event_, ...)                                \
    void inject_##mark_ params                                                                     \
    {                                                                                              \
        struct nvtx_event copy;                                                                    \
        mark(domain_, event_);                                                                     \
        INJECT_NEXT(mark_, __VA_ARGS__);                                                           \
        (void)copy;                                                                                \
    }                                                                                              \
    uint64_t inject_##start_ params                                                                \
    {                                                                                              \
        struct nvtx_event copy;                                                                    \
        const uint64_t theirs = INJECT_NEXT_OR(0, start_, __VA_ARGS__);                            \
        (void)copy;                                                                                \
        return start(domain_, event_, theirs);                                                     \
    }

MARK_AND_START(mark_event, start_event, (const struct nvtx_event *event), &inject_default_domain,
               event, inject_next_event(event, &copy))
MARK_AND_START(mark_text, start_text, (const char *text), &inject_default_domain, &TEXT_EVENT(text),
               text)
MARK_AND_START(mark_wide, start_wide, (const wchar_t *text), &inject_default_domain,
               &WIDE_EVENT(text), text)
MARK_AND_START(domain_mark, domain_start, (void *handle, const struct nvtx_event *event),
               inject_domain_of(handle), event, inject_next_domain(inject_domain_of(handle)),
               inject_next_event(event, &copy))

/* A push with a second tool: its result is returned. */
#define PUSHED(theirs, ours)                                                                       \
    do {                                                                                           \
        if (!inject_next_is_there())                                                               \
            return (ours);                                                                         \
        const int level_ = (theirs);                                                               \
        (void)(ours);                                                                              \
        return level_;                                                                             \
    } while (0)

int inject_push_event(const struct nvtx_event *event)
{
    struct nvtx_event copy;
    PUSHED(INJECT_NEXT_OR(NVTX_NO_LEVEL, push_event, inject_next_event(event, &copy)),
           push_event(&inject_default_domain, event));
}

int inject_push_text(const char *text)
{
    PUSHED(INJECT_NEXT_OR(NVTX_NO_LEVEL, push_text, text), push_text(&inject_default_domain, text));
}

int inject_push_wide(const wchar_t *text)
{
    PUSHED(INJECT_NEXT_OR(NVTX_NO_LEVEL, push_wide, text),
           push_slowly(&inject_default_domain, inject_thread_push(&inject_default_domain),
                       &WIDE_EVENT(text)));
}

int inject_domain_push(void *handle, const struct nvtx_event *event)
{
    struct inject_domain *const domain = inject_domain_of(handle);
    struct nvtx_event copy;
    PUSHED(INJECT_NEXT_OR(NVTX_NO_LEVEL, domain_push, inject_next_domain(domain),
                          inject_next_event(event, &copy)),
           push_event(domain, event));
}

int inject_pop(void)
{
    const int level = pop(&inject_default_domain);
    return INJECT_NEXT_OR(level, pop);
}

int inject_domain_pop(void *handle)
{
    struct inject_domain *const domain = inject_domain_of(handle);
    const int level = pop(domain);
    return INJECT_NEXT_OR(level, domain_pop, inject_next_domain(domain));
}

void inject_end(uint64_t range)
{
    uint64_t theirs;
    if (end(range, &theirs))
        INJECT_NEXT(end, theirs);
}

void inject_domain_end(void *handle, uint64_t range)
{
    uint64_t theirs;
    if (end(range, &theirs))
        INJECT_NEXT(domain_end, inject_next_domain(inject_domain_of(handle)), theirs);
}

/* ---- the payload extension: schemas, and events that consist only of payloads ---- */

/* With a second tool, its schema numbers are used everywhere. */
uint64_t inject_schema_register(void *handle, const struct nvtx_schema *schema)
{
    const struct inject_domain *const domain = inject_domain_of(handle);
    return inject_schema_add(domain, schema,
                             INJECT_NEXT_OR(0, schema_register, inject_next_domain(domain), schema));
}

uint64_t inject_enum_register(void *handle, const struct nvtx_enum *schema)
{
    const struct inject_domain *const domain = inject_domain_of(handle);
    return inject_enum_add(domain, schema,
                           INJECT_NEXT_OR(0, enum_register, inject_next_domain(domain), schema));
}

/* The event for these payloads; its name is in `text`. */
static struct nvtx_event payload_event(const struct inject_domain *domain,
                                       const struct nvtx_payload *payloads, size_t n,
                                       char text[INJECT_TEXT_MAX])
{
    inject_payload_message(domain, payloads, n, text);
    return (struct nvtx_event){.bytes = sizeof(struct nvtx_event),
                               .payload_type = NVTX_PAYLOAD_EXTENDED,
                               .n_payloads = n < INT32_MAX ? (int32_t)n : INT32_MAX,
                               .payload.u64 = (uintptr_t)payloads,
                               .text_type = NVTX_TEXT,
                               .as.text = text};
}

void inject_mark_payload(void *handle, const struct nvtx_payload *payloads, size_t n)
{
    char text[INJECT_TEXT_MAX];
    struct inject_domain *const domain = inject_domain_of(handle);
    const struct nvtx_event event = payload_event(domain, payloads, n, text);
    mark(domain, &event);
    INJECT_NEXT(mark_payload, inject_next_domain(domain), payloads, n);
}

int inject_push_payload(void *handle, const struct nvtx_payload *payloads, size_t n)
{
    char text[INJECT_TEXT_MAX];
    struct inject_domain *const domain = inject_domain_of(handle);
    const struct nvtx_event event = payload_event(domain, payloads, n, text);
    PUSHED(INJECT_NEXT_OR(NVTX_NO_LEVEL, push_payload, inject_next_domain(domain), payloads, n),
           push_slowly(domain, inject_thread_push(domain), &event));
}

int inject_pop_payload(void *handle, const struct nvtx_payload *payloads, size_t n)
{
    struct inject_domain *const domain = inject_domain_of(handle);
    const int level = pop(domain);
    return INJECT_NEXT_OR(level, pop_payload, inject_next_domain(domain), payloads, n);
}

uint64_t inject_start_payload(void *handle, const struct nvtx_payload *payloads, size_t n)
{
    char text[INJECT_TEXT_MAX];
    struct inject_domain *const domain = inject_domain_of(handle);
    const struct nvtx_event event = payload_event(domain, payloads, n, text);
    const uint64_t theirs = INJECT_NEXT_OR(0, start_payload, inject_next_domain(domain), payloads, n);
    return start(domain, &event, theirs);
}

void inject_end_payload(void *handle, uint64_t range, const struct nvtx_payload *payloads, size_t n)
{
    uint64_t theirs;
    if (end(range, &theirs))
        INJECT_NEXT(end_payload, inject_next_domain(inject_domain_of(handle)), theirs, payloads, n);
}
