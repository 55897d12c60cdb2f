/*
 * Events: what NVTX calls instead of its own empty functions. A second tool's own work stays outside of what is recorded: it
 * hears of a push before the recording does, and of a pop after it.
 */
#include <string.h>

#include "inject.h"

/* ---- from what the program says to a site ---- */

static bool is_recording(void)
{
    return (marey_on() & MAREY_ON_RECORD) != 0;
}

/* One that nobody could see, 0x00RRGGBB, is meant to be seen. */
static uint32_t color_of(const struct nvtx_event *event)
{
    if (event->color_type != NVTX_COLOR_ARGB)
        return 0;
    return event->color >> 24 != 0 ? event->color : event->color | 0xff000000u;
}

/* A name that is looked up; one whose text is the whole of it is remembered by its address. */
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
        meaning.id = inject_name_site(name, event != NULL ? event->category : 0,
                                      event != NULL ? color_of(event) : 0);
    return meaning;
}

/* The name of a text that this thread used lately; NULL: look it up. */
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
    return (struct inject_meaning){event == NULL
                                       ? inject_name_site(name, 0, 0)
                                       : inject_name_site(name, event->category, color_of(event)),
                                   NULL, 0};
}

static inline struct inject_meaning registered_meaning(struct inject_domain *domain,
                                                       const struct nvtx_event *event)
{
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

/* `event` has no wide text. */
static inline struct inject_meaning event_meaning(struct inject_domain *domain,
                                                  const struct nvtx_event *event)
{
    if (event->text_type == NVTX_REGISTERED)
        return registered_meaning(domain, event);
    return text_meaning(domain, event->text_type == NVTX_TEXT ? event->as.text : NULL, event);
}

/* ---- from there to the recording ---- */

static inline void put(const struct inject_domain *domain, enum inject_what what,
                       const struct inject_meaning *meaning, const struct nvtx_event *event)
{
    if (MAREY_UNLIKELY(meaning->rest != NULL ||
                      (event != NULL && event->payload_type != NVTX_PAYLOAD_NONE)))
        inject_event_put(domain, what, meaning, event);
    else if (what == INJECT_MARK)
        marey_put_mark(meaning->id, NULL);
    else
        marey_put_begin(meaning->id);
}

static int push_meaning(struct inject_entry *entry, const struct inject_meaning *meaning,
                        const struct nvtx_event *event)
{
    entry->id = meaning->id;
    if (MAREY_LIKELY(meaning->id != 0))
        put(entry->domain, INJECT_RANGE, meaning, event);
    return entry->level;
}

__attribute__((noinline)) static int push_text_slowly(struct inject_domain *domain,
                                                      const char *text, struct inject_entry *entry)
{
    if (entry == NULL)
        return NVTX_NO_LEVEL;
    if (!is_recording())
        return entry->level;
    const struct inject_meaning meaning = text_meaning(domain, text, NULL);
    return push_meaning(entry, &meaning, NULL);
}

static inline int push_text(struct inject_domain *domain, const char *text)
{
    struct inject_entry *const entry = inject_thread_push(domain);
    const struct inject_name *const name =
        MAREY_LIKELY(is_recording()) ? recent_name(domain, text) : NULL;
    if (MAREY_UNLIKELY(entry == NULL || name == NULL))
        return push_text_slowly(domain, text, entry);
    const int level = entry->level;
    entry->id = inject_name_site(name, 0, 0);
    marey_put_begin(entry->id);
    return level;
}

__attribute__((noinline)) static int push_wide(struct inject_domain *domain, const wchar_t *wide)
{
    char text[INJECT_TEXT_MAX];
    inject_text_narrow(wide, text);
    return push_text(domain, text);
}

/* The event with its wide text as UTF-8, which lies in `text`. */
static struct nvtx_event narrow(const struct nvtx_event *event, char text[INJECT_TEXT_MAX])
{
    struct nvtx_event narrow = *event;
    inject_text_narrow(event->as.wide, text);
    narrow.text_type = NVTX_TEXT;
    narrow.as.text = text;
    return narrow;
}

static bool is_wide(const struct nvtx_event *event)
{
    return MAREY_UNLIKELY(event->text_type == NVTX_WIDE_TEXT);
}

static int push_event_slowly(struct inject_domain *domain, const struct nvtx_event *event);

__attribute__((noinline)) static int push_wide_event(struct inject_domain *domain,
                                                     const struct nvtx_event *event)
{
    char text[INJECT_TEXT_MAX];
    const struct nvtx_event plain = narrow(event, text);
    return push_event_slowly(domain, &plain);
}

__attribute__((noinline)) static int push_event_slowly(struct inject_domain *domain,
                                                       const struct nvtx_event *event)
{
    if (event == NULL)
        return push_text(domain, NULL);
    if (event->text_type == NVTX_WIDE_TEXT)
        return push_wide_event(domain, event);
    struct inject_entry *const entry = inject_thread_push(domain);
    if (entry == NULL)
        return NVTX_NO_LEVEL;
    if (!is_recording())
        return entry->level;
    const struct inject_meaning meaning = event_meaning(domain, event);
    return push_meaning(entry, &meaning, event);
}

/* A registered string and nothing that goes along is the usual case of those who care for speed. */
static inline int push_event(struct inject_domain *domain, const struct nvtx_event *event)
{
    const struct inject_name *const name =
        event != NULL && event->text_type == NVTX_REGISTERED ? event->as.registered : NULL;
    if (MAREY_UNLIKELY(name == NULL || event->payload_type != NVTX_PAYLOAD_NONE ||
                      name->domain != domain || name->rest != name->len || !is_recording()))
        return push_event_slowly(domain, event);
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

static void mark_text(struct inject_domain *domain, const char *text)
{
    if (!is_recording())
        return;
    const struct inject_meaning meaning = text_meaning(domain, text, NULL);
    if (meaning.id != 0)
        put(domain, INJECT_MARK, &meaning, NULL);
}

static void mark_wide(struct inject_domain *domain, const wchar_t *wide)
{
    char text[INJECT_TEXT_MAX];
    inject_text_narrow(wide, text);
    mark_text(domain, text);
}

static void mark_event(struct inject_domain *domain, const struct nvtx_event *event)
{
    char text[INJECT_TEXT_MAX];
    struct nvtx_event plain;
    if (!is_recording())
        return;
    if (event != NULL && is_wide(event)) {
        plain = narrow(event, text);
        event = &plain;
    }
    const struct inject_meaning meaning =
        event != NULL ? event_meaning(domain, event) : text_meaning(domain, NULL, NULL);
    if (meaning.id != 0)
        put(domain, INJECT_MARK, &meaning, event);
}

static uint64_t start_text(struct inject_domain *domain, const char *text)
{
    return is_recording() ? marey_put_async_begin(text_meaning(domain, text, NULL).id) : 0;
}

static uint64_t start_wide(struct inject_domain *domain, const wchar_t *wide)
{
    char text[INJECT_TEXT_MAX];
    inject_text_narrow(wide, text);
    return start_text(domain, text);
}

static uint64_t start_event(struct inject_domain *domain, const struct nvtx_event *event)
{
    char text[INJECT_TEXT_MAX];
    struct nvtx_event plain;
    if (event == NULL || !is_recording())
        return event == NULL ? start_text(domain, NULL) : 0;
    if (is_wide(event)) {
        plain = narrow(event, text);
        event = &plain;
    }
    return marey_put_async_begin(event_meaning(domain, event).id);
}

/* For the extension. */
int inject_own_push(struct inject_domain *domain, const struct nvtx_event *event)
{
    return push_event_slowly(domain, event);
}

int inject_own_pop(const struct inject_domain *domain)
{
    return pop(domain);
}

void inject_own_mark(struct inject_domain *domain, const struct nvtx_event *event)
{
    mark_event(domain, event);
}

uint64_t inject_own_start(struct inject_domain *domain, const struct nvtx_event *event)
{
    return start_event(domain, event);
}

/* ---- what NVTX calls: a second tool's, and ours ---- */

void inject_mark_event(const struct nvtx_event *event)
{
    struct nvtx_event copy;
    mark_event(&inject_default_domain, event);
    if (inject_next_is_there())
        INJECT_NEXT(mark_event, inject_next_event(event, &copy));
}

void inject_mark_text(const char *text)
{
    mark_text(&inject_default_domain, text);
    if (inject_next_is_there())
        INJECT_NEXT(mark_text, text);
}

void inject_mark_wide(const wchar_t *text)
{
    mark_wide(&inject_default_domain, text);
    if (inject_next_is_there())
        INJECT_NEXT(mark_wide, text);
}

void inject_domain_mark(void *handle, const struct nvtx_event *event)
{
    struct inject_domain *const domain = inject_domain_of(handle);
    struct nvtx_event copy;
    mark_event(domain, event);
    if (inject_next_is_there())
        INJECT_NEXT(domain_mark, inject_next_domain(domain), inject_next_event(event, &copy));
}

/* A push with a second tool: what it returns counts. */
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
    PUSHED(INJECT_NEXT_OR(NVTX_NO_LEVEL, push_wide, text), push_wide(&inject_default_domain, text));
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
    return inject_next_is_there() ? INJECT_NEXT_OR(level, pop) : level;
}

int inject_domain_pop(void *handle)
{
    struct inject_domain *const domain = inject_domain_of(handle);
    const int level = pop(domain);
    return inject_next_is_there() ? INJECT_NEXT_OR(level, domain_pop, inject_next_domain(domain))
                                  : level;
}

/* The second tool's number of a range is kept beside ours. */
static uint64_t started(uint64_t ours, uint64_t theirs)
{
    return inject_next_is_there() ? inject_next_started(ours, theirs) : ours;
}

uint64_t inject_start_event(const struct nvtx_event *event)
{
    struct nvtx_event copy;
    const uint64_t theirs =
        inject_next_is_there() ? INJECT_NEXT_OR(0, start_event, inject_next_event(event, &copy)) : 0;
    return started(start_event(&inject_default_domain, event), theirs);
}

uint64_t inject_start_text(const char *text)
{
    const uint64_t theirs = inject_next_is_there() ? INJECT_NEXT_OR(0, start_text, text) : 0;
    return started(start_text(&inject_default_domain, text), theirs);
}

uint64_t inject_start_wide(const wchar_t *text)
{
    const uint64_t theirs = inject_next_is_there() ? INJECT_NEXT_OR(0, start_wide, text) : 0;
    return started(start_wide(&inject_default_domain, text), theirs);
}

uint64_t inject_domain_start(void *handle, const struct nvtx_event *event)
{
    struct inject_domain *const domain = inject_domain_of(handle);
    struct nvtx_event copy;
    const uint64_t theirs = inject_next_is_there()
                                ? INJECT_NEXT_OR(0, domain_start, inject_next_domain(domain),
                                                 inject_next_event(event, &copy))
                                : 0;
    return started(start_event(domain, event), theirs);
}

void inject_end(uint64_t range)
{
    uint64_t theirs;
    marey_put_async_end(inject_next_ours(range));
    if (inject_next_is_there() && inject_next_ended(range, &theirs))
        INJECT_NEXT(end, theirs);
}

void inject_domain_end(void *handle, uint64_t range)
{
    uint64_t theirs;
    marey_put_async_end(inject_next_ours(range));
    if (inject_next_is_there() && inject_next_ended(range, &theirs))
        INJECT_NEXT(domain_end, inject_next_domain(inject_domain_of(handle)), theirs);
}
