/*
 * inject_abi.h: the ABI of NVTX version 3 for tools: numbers and layouts shared by programs and tools. Each object
 * compiled with NVTX's headers has tables of function pointers, one per NVTX module; a tool gets them once for each
 * such object and stores its functions there.
 */
#ifndef MAREY_INJECT_ABI_H
#define MAREY_INJECT_ABI_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

typedef void nvtx_function(void); /* casts from other function types */

enum { NVTX_TABLE_CALLBACKS = 1 };
enum { NVTX_MODULE_CORE = 1, NVTX_MODULE_CORE2 = 5, NVTX_MODULE_SYNC = 6 };

struct nvtx_callbacks {
    size_t bytes;
    /* Returns 1, an array of pointers to function slots and its length; 0 for a missing module. */
    int (*module)(int number, nvtx_function ****places, unsigned *n);
};
typedef const void *nvtx_get_table(uint32_t number);
typedef int nvtx_initialize(nvtx_get_table *get_table);

/* The result of a push or pop if levels are not counted. */
enum { NVTX_NO_LEVEL = -2 };

enum { NVTX_COLOR_ARGB = 1 };
enum { NVTX_TEXT = 1, NVTX_WIDE_TEXT = 2, NVTX_REGISTERED = 3 };
enum {
    NVTX_PAYLOAD_NONE = 0,
    NVTX_PAYLOAD_U64 = 1,
    NVTX_PAYLOAD_I64 = 2,
    NVTX_PAYLOAD_F64 = 3,
    NVTX_PAYLOAD_U32 = 4,
    NVTX_PAYLOAD_I32 = 5,
    NVTX_PAYLOAD_F32 = 6,
    NVTX_PAYLOAD_EXTENDED = (int32_t)0xdfbd0009, /* `u64` is the address of `n_payloads` of them */
};

/* The attributes of a range or a mark. */
struct nvtx_event {
    uint16_t version, bytes;
    uint32_t category; /* 0: none */
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, n_payloads;
    union {
        uint64_t u64;
        int64_t i64;
        double f64;
        uint32_t u32;
        int32_t i32;
        float f32;
    } payload;
    int32_t text_type;
    union {
        const char *text;
        const wchar_t *wide;
        void *registered; /* a handle returned by a tool */
    } as;
};
static_assert(sizeof(struct nvtx_event) == 48, "as NVTX has it");
static_assert(offsetof(struct nvtx_event, payload) == 24, "as NVTX has it");
static_assert(offsetof(struct nvtx_event, as) == 40, "as NVTX has it");

/*
 * Functions that a tool may provide: X(index in the table, result, name, parameters). Handles of domains and strings
 * are the tool's; domain NULL is the default domain.
 */
#define NVTX_CORE(X)                                                                               \
    X(1, void, mark_event, (const struct nvtx_event *event))                                       \
    X(2, void, mark_text, (const char *text))                                                      \
    X(3, void, mark_wide, (const wchar_t *text))                                                   \
    X(4, uint64_t, start_event, (const struct nvtx_event *event))                                  \
    X(5, uint64_t, start_text, (const char *text))                                                 \
    X(6, uint64_t, start_wide, (const wchar_t *text))                                              \
    X(7, void, end, (uint64_t range))                                                              \
    X(8, int, push_event, (const struct nvtx_event *event))                                        \
    X(9, int, push_text, (const char *text))                                                       \
    X(10, int, push_wide, (const wchar_t *text))                                                   \
    X(11, int, pop, (void))                                                                        \
    X(12, void, name_category, (uint32_t category, const char *name))                              \
    X(13, void, name_category_wide, (uint32_t category, const wchar_t *name))                      \
    X(14, void, name_thread, (uint32_t tid, const char *name))                                     \
    X(15, void, name_thread_wide, (uint32_t tid, const wchar_t *name))

#define NVTX_CORE2(X)                                                                              \
    X(1, void, domain_mark, (void *domain, const struct nvtx_event *event))                        \
    X(2, uint64_t, domain_start, (void *domain, const struct nvtx_event *event))                   \
    X(3, void, domain_end, (void *domain, uint64_t range))                                         \
    X(4, int, domain_push, (void *domain, const struct nvtx_event *event))                         \
    X(5, int, domain_pop, (void *domain))                                                          \
    X(6, void *, resource_create, (void *domain, void *attributes))                                \
    X(8, void, domain_name_category, (void *domain, uint32_t category, const char *name))          \
    X(9, void, domain_name_category_wide, (void *domain, uint32_t category, const wchar_t *name))  \
    X(10, void *, domain_register, (void *domain, const char *text))                               \
    X(11, void *, domain_register_wide, (void *domain, const wchar_t *text))                       \
    X(12, void *, domain_create, (const char *name))                                               \
    X(13, void *, domain_create_wide, (const wchar_t *name))

/* In this module, only the function with a domain handle. */
#define NVTX_SYNC(X) X(1, void *, sync_user_create, (void *domain, const void *attributes))

/*
 * The payload extension, a module with its functions in one segment of slots. A slot with value 1 is disabled; NVTX
 * stores that in slots that a tool leaves at 0.
 */
enum { NVTX_EXTENSION_PAYLOAD = 2, NVTX_EXTENSION_OFF = 1 };

struct nvtx_segment {
    size_t id, n;
    intptr_t *places;
};
struct nvtx_extension {
    uint16_t version, bytes, module, compatibility;
    size_t n_segments;
    struct nvtx_segment *segments;
    intptr_t (*get_export)(uint32_t number);
    const void *information;
};
typedef int nvtx_initialize_extension(struct nvtx_extension *extension);

/* Bytes, and the number of their schema: a registered one, or an entry type. */
struct nvtx_payload {
    uint64_t schema;
    size_t bytes; /* SIZE_MAX: as defined by the schema */
    const void *data;
};

enum {
    NVTX_FLAG_REMOTE = 7 << 1, /* the value is an address or offset of the data */
    NVTX_FLAG_ARRAY = 7 << 4,
    NVTX_FLAG_ARRAY_FIXED = 1 << 4,  /* `detail` is the length */
    NVTX_FLAG_ARRAY_LENGTH = 3 << 4, /* `detail` is the index of the entry with the length */
    NVTX_FLAG_HIDDEN = 1 << 9,
    NVTX_FLAG_MESSAGE = 1 << 10, /* it is the event's name */
};
struct nvtx_schema_entry {
    uint64_t flags, type; /* NVTX_TYPE_..., or a schema's number */
    const char *name, *description;
    uint64_t detail, offset; /* 0, except for the first entry: after the previous one, aligned */
    const void *semantics, *reserved;
};
static_assert(sizeof(struct nvtx_schema_entry) == 64, "as NVTX has it");

enum {
    NVTX_SCHEMA_HAS_NAME = 1 << 1,
    NVTX_SCHEMA_HAS_ENTRIES = 3 << 4,
    NVTX_SCHEMA_HAS_BYTES = 1 << 6,
    NVTX_SCHEMA_HAS_ALIGNMENT = 1 << 7,
    NVTX_SCHEMA_HAS_ID = 1 << 8,
};
struct nvtx_schema {
    uint64_t fields; /* which of the fields below are valid: NVTX_SCHEMA_HAS_... */
    const char *name;
    uint64_t type, flags;
    const struct nvtx_schema_entry *entries;
    size_t n_entries, bytes, alignment;
    uint64_t id;
    void *extension;
};

enum { NVTX_ENUM_HAS_ENTRIES = 3 << 2, NVTX_ENUM_HAS_BYTES = 1 << 4, NVTX_ENUM_HAS_ID = 1 << 5 };
struct nvtx_enum_entry {
    const char *name;
    uint64_t value;
    int8_t is_flag;
};
struct nvtx_enum {
    uint64_t fields; /* which of the fields below are valid: NVTX_ENUM_HAS_... */
    const char *name;
    const struct nvtx_enum_entry *entries;
    size_t n_entries, bytes;
    uint64_t id;
    void *extension;
};

/* Entry types that are not plain numbers. Those of others are in inject_payload.c, with their sizes. */
enum { NVTX_TYPE_STRING_HANDLE = 80, NVTX_TYPE_END = 81 };
/* Schema numbers from here on are chosen by programs, and from there on assigned by tools. */
#define NVTX_SCHEMA_DYNAMIC (UINT64_C(1) << 32)

#define NVTX_PAYLOADS(X)                                                                           \
    X(0, uint64_t, schema_register, (void *domain, const struct nvtx_schema *schema))              \
    X(1, uint64_t, enum_register, (void *domain, const struct nvtx_enum *schema))                  \
    X(2, void, mark_payload, (void *domain, const struct nvtx_payload *payloads, size_t n))        \
    X(3, int, push_payload, (void *domain, const struct nvtx_payload *payloads, size_t n))         \
    X(4, int, pop_payload, (void *domain, const struct nvtx_payload *payloads, size_t n))          \
    X(5, uint64_t, start_payload, (void *domain, const struct nvtx_payload *payloads, size_t n))   \
    X(6, void, end_payload,                                                                        \
      (void *domain, uint64_t range, const struct nvtx_payload *payloads, size_t n))

#define NVTX_FUNCTIONS(X) NVTX_CORE(X) NVTX_CORE2(X) NVTX_SYNC(X) NVTX_PAYLOADS(X)

#endif
