/* Payloads with schemas, as NCCL has them. */
#include "told_payload.h"

#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#include <stddef.h>
#include <string.h>

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

struct reduction {
    uint64_t communicator;
    size_t bytes;
    int operation;
    float factor;
    char label[8];
    uint16_t n;
    int16_t sizes[3];
};

enum { REDUCTION = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5, OPERATION };

static void register_schemas(nvtxDomainHandle_t domain)
{
    static const nvtxPayloadEnum_t operations[] = {{"Sum", 0, 0}, {"Product", 1, 0}};
    const nvtxPayloadEnumAttr_t operation = {.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
                                                          NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
                                                          NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE |
                                                          NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID,
                                             .entries = operations,
                                             .numEntries = 2,
                                             .sizeOfEnum = sizeof(int),
                                             .schemaId = OPERATION};
    static const nvtxPayloadSchemaEntry_t entries[] = {
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = "NCCL communicator ID"},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_SIZE, .name = "Message size [bytes]"},
        {.type = OPERATION, .name = "Reduction operation"},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_FLOAT, .name = "factor"},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, .name = "label", .arrayOrUnionDetail = 8},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT16, .flags = NVTX_PAYLOAD_ENTRY_FLAG_HIDE},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_INT16,
         .name = "sizes",
         .flags = NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX,
         .arrayOrUnionDetail = 5},
    };
    const nvtxPayloadSchemaAttr_t reduction = {
        .fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID,
        .type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
        .entries = entries,
        .numEntries = sizeof entries / sizeof entries[0],
        .payloadStaticSize = sizeof(struct reduction),
        .schemaId = REDUCTION};
    nvtxPayloadEnumRegister(domain, &operation);
    nvtxPayloadSchemaRegister(domain, &reduction);
}

/* A schema whose number the tool gives, with the event's name in it. */
static uint64_t register_named(nvtxDomainHandle_t domain)
{
    static const nvtxPayloadSchemaEntry_t entries[] = {
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE,
         .flags = NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_INT32, .name = "peer"},
    };
    const nvtxPayloadSchemaAttr_t named = {.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME |
                                                        NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                                                        NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                                                        NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                                                        NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE,
                                           .name = "named",
                                           .type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
                                           .entries = entries,
                                           .numEntries = 2,
                                           .payloadStaticSize = 16};
    return nvtxPayloadSchemaRegister(domain, &named);
}

static nvtxEventAttributes_t event(const char *name, const nvtxPayloadData_t *data)
{
    const nvtxEventAttributes_t e = {.version = NVTX_VERSION,
                                     .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                     .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                     .message.ascii = name,
                                     .payloadType = NVTX_PAYLOAD_TYPE_EXT,
                                     .reserved0 = 1,
                                     .payload.ullValue = (uint64_t)(uintptr_t)data};
    return e;
}

static void events_of_payloads(nvtxDomainHandle_t domain)
{
    const uint64_t named = register_named(domain);
    const struct {
        nvtxStringHandle_t name;
        int32_t peer;
    } send = {nvtxDomainRegisterStringA(domain, "send"), 3};
    const nvtxPayloadData_t data = {named, sizeof send, &send};
    nvtxRangePushPayload(domain, &data, 1);
    nvtxMarkPayload(domain, &data, 1);
    nvtxRangePopPayload(domain, &data, 1);
    const nvtxRangeId_t id = nvtxRangeStartPayload(domain, &data, 1);
    nvtxRangeEndPayload(domain, id, &data, 1);
}

int payloads_with_schemas(void)
{
    const nvtxDomainHandle_t domain = nvtxDomainCreateA("NCCL");
    register_schemas(domain);
    const struct reduction r = {.communicator = 77,
                                .bytes = 4096,
                                .operation = 1,
                                .factor = 0.5F,
                                .label = "grads",
                                .n = 3,
                                .sizes = {2, -3, 4}};
    nvtxPayloadData_t data = {REDUCTION, sizeof r, &r};
    nvtxEventAttributes_t e = event("ncclAllReduce", &data);
    nvtxDomainRangePushEx(domain, &e);
    nvtxDomainRangePop(domain);
    data.size = SIZE_MAX; /* as the schema says */
    e.message.ascii = "as the schema says";
    nvtxDomainMarkEx(domain, &e);
    data.size = offsetof(struct reduction, operation); /* cut */
    e.message.ascii = "cut";
    nvtxDomainMarkEx(domain, &e);
    data = (nvtxPayloadData_t){NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF8, SIZE_MAX, "just a text"};
    e.message.ascii = "text, seq = 4";
    nvtxDomainMarkEx(domain, &e);
    data = (nvtxPayloadData_t){12345, 4, &r}; /* of which nobody knows */
    e.message.ascii = "unknown";
    nvtxDomainMarkEx(domain, &e);
    events_of_payloads(domain);
    return !nvtxDomainIsEnabled(domain);
}
#else
int payloads_with_schemas(void)
{
    return 0;
}
#endif
