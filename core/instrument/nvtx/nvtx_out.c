/*
 * Ranges to an NVTX tool. Handles of domains, names and categories are requested once per site and kept in a table by
 * id.
 */
#include <pthread.h>
#include <string.h>

#define NVTX_AS_SYSTEM_HEADER
#include <nvtx3/nvToolsExt.h>
#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#include <nvtx3/nvToolsExtPayload.h>
#endif

#include "instrument/nvtx/internal.h"
#include "record/internal.h"

/* The tool's handles for a site. */
struct site {
    bool is_known; /* release; loaded with acquire. The other fields are constant then */
    nvtxDomainHandle_t domain; /* NULL: the default domain */
    nvtxStringHandle_t name;   /* NULL: the tool registers no strings */
    uint32_t category;         /* 0: none */
};

enum { PAGE_SITES = 1024, N_PAGES = MAREY__SITE_LIMIT / PAGE_SITES };

static struct {
    pthread_mutex_t lock;        /* guards writes to the fields below */
    struct site *pages[N_PAGES]; /* release; loaded with acquire */
    struct domain {
        const char *name; /* lent by a site */
        nvtxDomainHandle_t handle;
    } * domains;
    size_t n_domains, cap_domains;
    const char **categories; /* names, lent by sites; a category's number is its 1-based index */
    size_t n_categories, cap_categories;
} sites = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- sites ---- */

/* Caller holds the lock. NULL, the default domain, also on out of memory. */
static nvtxDomainHandle_t get_domain(const char *name)
{
    if (name[0] == '\0')
        return NULL;
    for (size_t i = 0; i < sites.n_domains; i++)
        if (strcmp(sites.domains[i].name, name) == 0)
            return sites.domains[i].handle;
    if (!marey__grow(&sites.domains, &sites.cap_domains, sites.n_domains + 1, sizeof *sites.domains))
        return NULL;
    struct domain *const domain = &sites.domains[sites.n_domains++];
    *domain = (struct domain){name, nvtxDomainCreateA(name)};
    return domain->handle;
}

/* Caller holds the lock. A category has the same number in all domains; each domain that uses it gets its name. */
static uint32_t get_category(nvtxDomainHandle_t domain, const char *name)
{
    if (name[0] == '\0')
        return 0;
    size_t i = 0;
    while (i < sites.n_categories && strcmp(sites.categories[i], name) != 0)
        i++;
    if (i == sites.n_categories &&
        !MAREY__PUSH(sites.categories, sites.n_categories, sites.cap_categories, name))
        return 0;
    if (domain != NULL)
        nvtxDomainNameCategoryA(domain, (uint32_t)i + 1, name);
    else
        nvtxNameCategoryA((uint32_t)i + 1, name);
    return (uint32_t)i + 1;
}

/* Caller holds the lock. */
static void introduce(struct site *site, const struct marey__site *known)
{
    site->domain = get_domain(known->domain);
    site->name = nvtxDomainRegisterStringA(site->domain, known->name);
    site->category = get_category(site->domain, known->category);
    __atomic_store_n(&site->is_known, true, __ATOMIC_RELEASE);
}

/* Caller holds the lock. */
static struct site *page_of(marey_id id)
{
    struct site **const page = &sites.pages[id / PAGE_SITES];
    if (*page == NULL)
        __atomic_store_n(page, marey__calloc(PAGE_SITES, sizeof **page), __ATOMIC_RELEASE);
    return *page;
}

static const struct site *introduce_new(marey_id id, const struct marey__site *known)
{
    MAREY__HOLD(&sites.lock);
    struct site *const page = page_of(id);
    struct site *const site = page != NULL ? &page[id % PAGE_SITES] : NULL;
    if (site != NULL && !site->is_known)
        introduce(site, known);
    return site;
}

/* The tool's handles for `id`; NULL for an unassigned id, or on out of memory. */
static const struct site *get_site(marey_id id, const struct marey__site *known)
{
    if (known == NULL)
        return NULL;
    const struct site *page = __atomic_load_n(&sites.pages[id / PAGE_SITES], __ATOMIC_ACQUIRE);
    if (MAREY_LIKELY(page != NULL) &&
        __atomic_load_n(&page[id % PAGE_SITES].is_known, __ATOMIC_ACQUIRE))
        return &page[id % PAGE_SITES];
    return introduce_new(id, known);
}

/* ---- events ---- */

/* An event for the tool. */
struct event {
    nvtxDomainHandle_t domain;
    nvtxEventAttributes_t attributes;
#ifdef NVTX_PAYLOAD_TYPE_EXT
    nvtxPayloadData_t text;
    char bytes[512]; /* longer text is truncated */
#endif
};

static void set_text(struct event *event, const struct marey_payload *payload)
{
#ifdef NVTX_PAYLOAD_TYPE_EXT
    const size_t len = MAREY__MIN((size_t)payload->len, sizeof event->bytes - 1);
    if (len > 0)
        memcpy(event->bytes, payload->as.text, len);
    event->bytes[len] = '\0';
    event->text = (nvtxPayloadData_t){NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF8, len + 1, event->bytes};
    event->attributes.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    event->attributes.reserved0 = 1; /* their count */
    event->attributes.payload.ullValue = (uint64_t)(uintptr_t)&event->text;
#else
    (void)event; /* older NVTX headers support only numbers */
    (void)payload;
#endif
}

static void set_payload(struct event *event, const struct marey_payload *payload)
{
    nvtxEventAttributes_t *const a = &event->attributes;
    switch (payload->type) {
    case MAREY_PAYLOAD_I64:
        a->payloadType = NVTX_PAYLOAD_TYPE_INT64;
        a->payload.llValue = payload->as.i64;
        break;
    case MAREY_PAYLOAD_U64:
        a->payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
        a->payload.ullValue = payload->as.u64;
        break;
    case MAREY_PAYLOAD_F64:
        a->payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
        a->payload.dValue = payload->as.f64;
        break;
    case MAREY_PAYLOAD_TEXT:
        set_text(event, payload);
        break;
    }
}

/* False if no tool listens or `id` is unknown. */
static bool event_init(struct event *event, marey_id id, const struct marey_payload *payload)
{
    if (!marey__nvtx_is_listening())
        return false;
    const struct marey__site *const known = marey__intern_get(id);
    const struct site *const site = get_site(id, known);
    if (site == NULL)
        return false;
    nvtxEventAttributes_t *const a = &event->attributes;
    *a = (nvtxEventAttributes_t){
        .version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE, .category = site->category};
    if (known->color != 0) {
        a->colorType = NVTX_COLOR_ARGB;
        a->color = known->color;
    }
    if (site->name != NULL) {
        a->messageType = NVTX_MESSAGE_TYPE_REGISTERED;
        a->message.registered = site->name;
    } else {
        a->messageType = NVTX_MESSAGE_TYPE_ASCII;
        a->message.ascii = known->name;
    }
    if (payload != NULL)
        set_payload(event, payload);
    event->domain = site->domain;
    return true;
}

bool marey__nvtx_push(marey_id id, const struct marey_payload *payload)
{
    struct event event;
    if (!event_init(&event, id, payload))
        return false;
    if (event.domain != NULL)
        nvtxDomainRangePushEx(event.domain, &event.attributes);
    else
        nvtxRangePushEx(&event.attributes);
    return true;
}

void marey__nvtx_pop(marey_id id)
{
    const struct site *const site = get_site(id, marey__intern_get(id));
    if (site != NULL && site->domain != NULL)
        nvtxDomainRangePop(site->domain);
    else
        nvtxRangePop();
}

void marey__nvtx_mark(marey_id id, const struct marey_payload *payload)
{
    struct event event;
    if (!event_init(&event, id, payload))
        return;
    if (event.domain != NULL)
        nvtxDomainMarkEx(event.domain, &event.attributes);
    else
        nvtxMarkEx(&event.attributes);
}

/* ---- async ranges: the tool has its own numbers for them ---- */

/* Open ones, by our number. There are few at a time, so a list suffices; searched newest first. */
static struct {
    pthread_mutex_t lock; /* guards the fields below */
    struct open_async {
        marey_async range;
        nvtxRangeId_t number;
        nvtxDomainHandle_t domain;
    } * open;
    size_t n, cap;
} asyncs = {.lock = PTHREAD_MUTEX_INITIALIZER};

void marey__nvtx_async_begin(marey_async range)
{
    struct event event;
    if (!event_init(&event, (marey_id)(range & (MAREY__SITE_LIMIT - 1)), NULL))
        return;
    MAREY__HOLD(&asyncs.lock);
    if (!marey__grow(&asyncs.open, &asyncs.cap, asyncs.n + 1, sizeof *asyncs.open))
        return;
    const nvtxRangeId_t number = event.domain != NULL
                                     ? nvtxDomainRangeStartEx(event.domain, &event.attributes)
                                     : nvtxRangeStartEx(&event.attributes);
    asyncs.open[asyncs.n++] = (struct open_async){range, number, event.domain};
}

static bool take_async(marey_async range, struct open_async *out)
{
    MAREY__HOLD(&asyncs.lock);
    for (size_t i = asyncs.n; i-- > 0;) {
        if (asyncs.open[i].range != range)
            continue;
        *out = asyncs.open[i];
        asyncs.open[i] = asyncs.open[--asyncs.n];
        return true;
    }
    return false;
}

void marey__nvtx_async_end(marey_async range)
{
    struct open_async open;
    if (!take_async(range, &open))
        return;
    if (open.domain != NULL)
        nvtxDomainRangeEnd(open.domain, open.number);
    else
        nvtxRangeEnd(open.number);
}

void marey__nvtx_out_after_fork(void)
{
    pthread_mutex_init(&sites.lock, NULL);
    pthread_mutex_init(&asyncs.lock, NULL);
}
