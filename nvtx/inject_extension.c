/*
 * NVTX's extension for payloads: schemas, and events that are nothing but payloads. Its functions for clocks and batches
 * of events are left out, and the other extensions too.
 */
#include "inject.h"

/* ---- what NVTX calls ---- */

/* With a second tool its numbers of schemas are everybody's. */
uint64_t inject_schema_register(void *handle, const struct nvtx_schema *schema)
{
    const struct inject_domain *const domain = inject_domain_of(handle);
    const uint64_t theirs =
        inject_next_is_there()
            ? INJECT_NEXT_OR(0, schema_register, inject_next_domain(domain), schema)
            : 0;
    return inject_schema_add(domain, schema, theirs);
}

uint64_t inject_enum_register(void *handle, const struct nvtx_enum *schema)
{
    const struct inject_domain *const domain = inject_domain_of(handle);
    const uint64_t theirs =
        inject_next_is_there() ? INJECT_NEXT_OR(0, enum_register, inject_next_domain(domain), schema)
                               : 0;
    return inject_enum_add(domain, schema, theirs);
}

/* The event that payloads stand for; its name lies in `text`. */
static struct nvtx_event event_of(const struct inject_domain *domain,
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
    const struct nvtx_event event = event_of(domain, payloads, n, text);
    inject_own_mark(domain, &event);
    if (inject_next_is_there())
        INJECT_NEXT(mark_payload, inject_next_domain(domain), payloads, n);
}

int inject_push_payload(void *handle, const struct nvtx_payload *payloads, size_t n)
{
    char text[INJECT_TEXT_MAX];
    struct inject_domain *const domain = inject_domain_of(handle);
    const struct nvtx_event event = event_of(domain, payloads, n, text);
    const int theirs =
        inject_next_is_there()
            ? INJECT_NEXT_OR(NVTX_NO_LEVEL, push_payload, inject_next_domain(domain), payloads, n)
            : 0;
    const int ours = inject_own_push(domain, &event);
    return inject_next_is_there() ? theirs : ours;
}

int inject_pop_payload(void *handle, const struct nvtx_payload *payloads, size_t n)
{
    struct inject_domain *const domain = inject_domain_of(handle);
    const int ours = inject_own_pop(domain);
    return inject_next_is_there()
               ? INJECT_NEXT_OR(ours, pop_payload, inject_next_domain(domain), payloads, n)
               : ours;
}

uint64_t inject_start_payload(void *handle, const struct nvtx_payload *payloads, size_t n)
{
    char text[INJECT_TEXT_MAX];
    struct inject_domain *const domain = inject_domain_of(handle);
    const struct nvtx_event event = event_of(domain, payloads, n, text);
    const uint64_t theirs =
        inject_next_is_there()
            ? INJECT_NEXT_OR(0, start_payload, inject_next_domain(domain), payloads, n)
            : 0;
    const uint64_t ours = inject_own_start(domain, &event);
    return inject_next_is_there() ? inject_next_started(ours, theirs) : ours;
}

void inject_end_payload(void *handle, uint64_t range, const struct nvtx_payload *payloads, size_t n)
{
    uint64_t theirs;
    marey_put_async_end(inject_next_ours(range));
    if (inject_next_is_there() && inject_next_ended(range, &theirs))
        INJECT_NEXT(end_payload, inject_next_domain(inject_domain_of(handle)), theirs, payloads, n);
}

/* ---- the way in ---- */

struct slot {
    size_t place;
    nvtx_function *ours;
    size_t next; /* offset in struct inject_next */
};
#define SLOT(place, type, name, params)                                                            \
    {(place), (nvtx_function *)inject_##name, offsetof(struct inject_next, name)},
static const struct slot slots[] = {NVTX_PAYLOADS(SLOT)};
enum { N_SLOTS = sizeof slots / sizeof slots[0], PLACE_OF_TIMESTAMP = 8 };

/*
 * Let the second tool have the places first. What it puts there besides is switched off, because it would get our
 * handles; but for one that has no handle.
 */
static void ask_next(struct nvtx_extension *extension)
{
    nvtx_initialize_extension *const initialize = inject_next_find_extension();
    const struct nvtx_segment *const segment = &extension->segments[0];
    if (initialize == NULL || initialize(extension) == 0)
        return;
    for (size_t i = 0; i < N_SLOTS; i++) {
        nvtx_function **const kept = (nvtx_function **)((char *)&inject_next + slots[i].next);
        if (slots[i].place < segment->n && segment->places[slots[i].place] > NVTX_EXTENSION_OFF &&
            *kept == NULL)
            __atomic_store_n(kept, (nvtx_function *)segment->places[slots[i].place],
                             __ATOMIC_RELAXED);
    }
    for (size_t i = N_SLOTS; i < segment->n; i++)
        if (i != PLACE_OF_TIMESTAMP)
            segment->places[i] = 0;
}

/* 0: the object makes the extension's functions empty. */
MAREY_API int InitializeInjectionNvtxExtension(struct nvtx_extension *extension);
MAREY_API int InitializeInjectionNvtxExtension(struct nvtx_extension *extension)
{
    if (extension == NULL || extension->bytes < sizeof *extension ||
        extension->module != NVTX_EXTENSION_PAYLOAD || extension->n_segments == 0 ||
        extension->segments == NULL || extension->segments[0].places == NULL)
        return 0;
    inject_entry_lock(true);
    ask_next(extension);
    for (size_t i = 0; i < N_SLOTS; i++)
        if (slots[i].place < extension->segments[0].n)
            extension->segments[0].places[slots[i].place] = (intptr_t)slots[i].ours;
    inject_entry_lock(false);
    return 1;
}
