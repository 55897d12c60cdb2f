/*
 * A real NVTX tool, for the tests: a library that NVTX_INJECTION64_PATH names. It takes the calls of NVTX's modules CORE
 * and CORE2 and writes each into the call log, with handles resolved to the texts behind them.
 *
 * MAREY_TEST_NVTX_REFUSE=1 makes it refuse, as a tool does that does not like its process.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include "call_log.h"

#define EXPORT __attribute__((visibility("default")))

/* What handles point at. Nothing is freed: a program has few. */
struct category {
    struct category *next;
    uint32_t id;
    char *name;
};
struct domain {
    struct domain *next; /* of all that were made: they stay, whoever forgets their handles */
    char *name;
    struct category *categories; /* guarded by `lock` */
};
struct text {
    struct text *next;
    char *text;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct domain default_domain, *all_domains;
static struct text *all_texts; /* and the domains: guarded by `lock` */
static _Thread_local int depth;
static _Atomic uint64_t n_ranges;

static struct domain *domain_of(nvtxDomainHandle_t handle)
{
    return handle != NULL ? (struct domain *)(void *)handle : &default_domain;
}

static void line_begin(struct call_line *line, const char *call, nvtxDomainHandle_t domain)
{
    const char *name = domain != NULL ? domain_of(domain)->name : "";
    call_line_begin(line, call);
    call_line_text(line, "domain", name, strlen(name));
}

static void log_text(const char *call, nvtxDomainHandle_t domain, const char *message)
{
    struct call_line line;
    line_begin(&line, call, domain);
    call_line_text(&line, "message", message, message != NULL ? strlen(message) : 0);
    call_line_write(&line);
}

/* ---- attributes ---- */

static void add_message(struct call_line *line, const nvtxEventAttributes_t *event)
{
    const char *message = NULL;
    if (event->messageType == NVTX_MESSAGE_TYPE_ASCII)
        message = event->message.ascii;
    else if (event->messageType == NVTX_MESSAGE_TYPE_REGISTERED && event->message.registered != NULL)
        message = ((struct text *)(void *)event->message.registered)->text;
    call_line_text(line, "message", message, message != NULL ? strlen(message) : 0);
    call_line_number(line, "registered", "%d", event->messageType == NVTX_MESSAGE_TYPE_REGISTERED);
}

static void add_category(struct call_line *line, struct domain *domain, uint32_t id)
{
    const char *name = NULL;
    pthread_mutex_lock(&lock);
    for (const struct category *c = domain->categories; c != NULL && name == NULL; c = c->next)
        if (c->id == id)
            name = c->name;
    pthread_mutex_unlock(&lock);
    if (id != 0)
        call_line_text(line, "category", name, name != NULL ? strlen(name) : 0);
}

/* A text travels as an extended payload. */
static void add_extended(struct call_line *line, const nvtxEventAttributes_t *event)
{
    const nvtxPayloadData_t *data = (const nvtxPayloadData_t *)(uintptr_t)event->payload.ullValue;
    if (event->reserved0 < 1 || data == NULL)
        return;
    call_line_number(line, "schema", "%llu", (unsigned long long)data->schemaId);
    const char *text = data->payload;
    size_t len = data->size;
    if (len == SIZE_MAX)
        len = strlen(text);
    else if (len > 0 && text[len - 1] == '\0')
        len--;
    call_line_text(line, "payload", text, len);
}

static void add_payload(struct call_line *line, const nvtxEventAttributes_t *event)
{
    switch (event->payloadType) {
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
        call_line_text(line, "payload_type", "u64", 3);
        call_line_number(line, "payload", "%llu", (unsigned long long)event->payload.ullValue);
        break;
    case NVTX_PAYLOAD_TYPE_INT64:
        call_line_text(line, "payload_type", "i64", 3);
        call_line_number(line, "payload", "%lld", (long long)event->payload.llValue);
        break;
    case NVTX_PAYLOAD_TYPE_DOUBLE:
        call_line_text(line, "payload_type", "f64", 3);
        call_line_number(line, "payload", "%.17g", event->payload.dValue);
        break;
    case NVTX_PAYLOAD_TYPE_EXT:
        call_line_text(line, "payload_type", "text", 4);
        add_extended(line, event);
        break;
    default:
        break;
    }
}

static void add_event(struct call_line *line, nvtxDomainHandle_t domain,
                      const nvtxEventAttributes_t *event)
{
    add_message(line, event);
    if (event->colorType == NVTX_COLOR_ARGB)
        call_line_number(line, "color", "%u", event->color);
    add_category(line, domain_of(domain), event->category);
    add_payload(line, event);
}

static void log_event(const char *call, nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    struct call_line line;
    line_begin(&line, call, domain);
    add_event(&line, domain, event);
    call_line_write(&line);
}

/* ---- the calls, with a domain ---- */

static void domain_mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    log_event("mark", domain, event);
}

static int domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    log_event("push", domain, event);
    return depth++;
}

static int domain_pop(nvtxDomainHandle_t domain)
{
    struct call_line line;
    line_begin(&line, "pop", domain);
    call_line_write(&line);
    return --depth;
}

static nvtxRangeId_t domain_start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    struct call_line line;
    const nvtxRangeId_t id = ++n_ranges;
    line_begin(&line, "start", domain);
    add_event(&line, domain, event);
    call_line_number(&line, "range", "%llu", (unsigned long long)id);
    call_line_write(&line);
    return id;
}

static void domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t id)
{
    struct call_line line;
    line_begin(&line, "end", domain);
    call_line_number(&line, "range", "%llu", (unsigned long long)id);
    call_line_write(&line);
}

static nvtxStringHandle_t domain_register(nvtxDomainHandle_t domain, const char *text)
{
    struct text *copy = malloc(sizeof *copy);
    copy->text = strdup(text);
    pthread_mutex_lock(&lock);
    copy->next = all_texts;
    all_texts = copy;
    pthread_mutex_unlock(&lock);
    log_text("register", domain, text);
    return (nvtxStringHandle_t)(void *)copy;
}

static void domain_name_category(nvtxDomainHandle_t handle, uint32_t id, const char *name)
{
    struct domain *domain = domain_of(handle);
    struct category *category = malloc(sizeof *category);
    pthread_mutex_lock(&lock);
    *category = (struct category){.next = domain->categories, .id = id, .name = strdup(name)};
    domain->categories = category;
    pthread_mutex_unlock(&lock);
    log_text("name_category", handle, name);
}

static nvtxDomainHandle_t domain_create(const char *name)
{
    struct domain *domain = calloc(1, sizeof *domain);
    domain->name = strdup(name);
    pthread_mutex_lock(&lock);
    domain->next = all_domains;
    all_domains = domain;
    pthread_mutex_unlock(&lock);
    log_text("create_domain", (nvtxDomainHandle_t)(void *)domain, name);
    return (nvtxDomainHandle_t)(void *)domain;
}

/* ---- the same without one ---- */

static void plain_mark(const nvtxEventAttributes_t *event)
{
    domain_mark(NULL, event);
}

static void plain_mark_text(const char *message)
{
    log_text("mark", NULL, message);
}

static int plain_push(const nvtxEventAttributes_t *event)
{
    return domain_push(NULL, event);
}

static int plain_push_text(const char *message)
{
    log_text("push", NULL, message);
    return depth++;
}

static int plain_pop(void)
{
    return domain_pop(NULL);
}

static nvtxRangeId_t plain_start(const nvtxEventAttributes_t *event)
{
    return domain_start(NULL, event);
}

static void plain_end(nvtxRangeId_t id)
{
    domain_end(NULL, id);
}

static void plain_name_category(uint32_t id, const char *name)
{
    domain_name_category(NULL, id, name);
}

/* ---- the ways in ---- */

struct slot {
    unsigned id;
    void (*function)(void);
};
#define SLOT(id, function)                                                                         \
    {                                                                                              \
        (id), (void (*)(void))(function)                                                           \
    }

static const struct slot core[] = {
    SLOT(NVTX_CBID_CORE_MarkEx, plain_mark),
    SLOT(NVTX_CBID_CORE_MarkA, plain_mark_text),
    SLOT(NVTX_CBID_CORE_RangePushEx, plain_push),
    SLOT(NVTX_CBID_CORE_RangePushA, plain_push_text),
    SLOT(NVTX_CBID_CORE_RangePop, plain_pop),
    SLOT(NVTX_CBID_CORE_RangeStartEx, plain_start),
    SLOT(NVTX_CBID_CORE_RangeEnd, plain_end),
    SLOT(NVTX_CBID_CORE_NameCategoryA, plain_name_category),
};
static const struct slot core2[] = {
    SLOT(NVTX_CBID_CORE2_DomainMarkEx, domain_mark),
    SLOT(NVTX_CBID_CORE2_DomainRangePushEx, domain_push),
    SLOT(NVTX_CBID_CORE2_DomainRangePop, domain_pop),
    SLOT(NVTX_CBID_CORE2_DomainRangeStartEx, domain_start),
    SLOT(NVTX_CBID_CORE2_DomainRangeEnd, domain_end),
    SLOT(NVTX_CBID_CORE2_DomainRegisterStringA, domain_register),
    SLOT(NVTX_CBID_CORE2_DomainNameCategoryA, domain_name_category),
    SLOT(NVTX_CBID_CORE2_DomainCreateA, domain_create),
};

static int fill(const NvtxExportTableCallbacks *callbacks, NvtxCallbackModule module,
                const struct slot *slots, size_t n)
{
    NvtxFunctionTable table;
    unsigned size = 0;
    if (!callbacks->GetModuleFunctionTable(module, &table, &size))
        return 0;
    for (size_t i = 0; i < n; i++)
        if (slots[i].id < size)
            *table[slots[i].id] = slots[i].function;
    return 1;
}

EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    const char *refuse = getenv("MAREY_TEST_NVTX_REFUSE");
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    log_text("initialize", NULL, refuse);
    if (refuse != NULL || callbacks == NULL)
        return 0;
    return fill(callbacks, NVTX_CB_MODULE_CORE, core, sizeof core / sizeof *core) &&
           fill(callbacks, NVTX_CB_MODULE_CORE2, core2, sizeof core2 / sizeof *core2);
}

/* The payload extension: a schema is told and gets an id. Events themselves come by the calls above. */
static uint64_t schema_register(nvtxDomainHandle_t domain, const nvtxPayloadSchemaAttr_t *schema)
{
    static _Atomic uint64_t n_schemas;
    log_text("register_schema", domain, schema->name);
    return NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START + n_schemas++;
}

EXPORT int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module);
EXPORT int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module)
{
    if (getenv("MAREY_TEST_NVTX_REFUSE") != NULL || module->moduleId != NVTX_EXT_PAYLOAD_MODULEID ||
        module->segmentsCount == 0)
        return 0;
    const nvtxExtModuleSegment_t *segment = &module->segments[0];
    if (segment->slotCount > NVTX3EXT_CBID_nvtxPayloadSchemaRegister)
        segment->functionSlots[NVTX3EXT_CBID_nvtxPayloadSchemaRegister] = (intptr_t)schema_register;
    return 1;
}
