/* The data of a range or mark: a number, bytes with a schema, the varying part of its name. */
#include <stdio.h>
#include <string.h>

#include "inject.h"

static struct marey_payload text_payload(const char *text, size_t len)
{
    return (struct marey_payload){.type = MAREY_PAYLOAD_TEXT, .len = (uint32_t)len, .as.text = text};
}

/* The event's own payload, type 0 for none; its text is in `text`. */
static struct marey_payload payload_of(const struct inject_domain *domain,
                                       const struct nvtx_event *event, char text[INJECT_TEXT_MAX])
{
    switch (event != NULL ? event->payload_type : NVTX_PAYLOAD_NONE) {
    case NVTX_PAYLOAD_U64:
        return (struct marey_payload){.type = MAREY_PAYLOAD_U64, .as.u64 = event->payload.u64};
    case NVTX_PAYLOAD_I64:
        return (struct marey_payload){.type = MAREY_PAYLOAD_I64, .as.i64 = event->payload.i64};
    case NVTX_PAYLOAD_F64:
        return (struct marey_payload){.type = MAREY_PAYLOAD_F64, .as.f64 = event->payload.f64};
    case NVTX_PAYLOAD_U32:
        return (struct marey_payload){.type = MAREY_PAYLOAD_U64, .as.u64 = event->payload.u32};
    case NVTX_PAYLOAD_I32:
        return (struct marey_payload){.type = MAREY_PAYLOAD_I64, .as.i64 = event->payload.i32};
    case NVTX_PAYLOAD_F32:
        return (struct marey_payload){.type = MAREY_PAYLOAD_F64,
                                      .as.f64 = (double)event->payload.f32};
    case NVTX_PAYLOAD_EXTENDED: {
        const size_t n = event->n_payloads > 0 ? (size_t)event->n_payloads : 0;
        const size_t len =
            inject_payload_text(domain, (const void *)(uintptr_t)event->payload.u64, n, text);
        return len > 0 ? text_payload(text, len) : (struct marey_payload){0};
    }
    default:
        return (struct marey_payload){0};
    }
}

/* Joins the varying part of the name and the payload to one string. */
static void join(const struct inject_meaning *meaning, struct marey_payload *payload,
                 char into[INJECT_TEXT_MAX])
{
#define JOIN(format, ...)                                                                          \
    snprintf(into, INJECT_TEXT_MAX, "%.*s, " format, len, meaning->rest, __VA_ARGS__)
    const int len = (int)(meaning->rest_len < INJECT_TEXT_MAX ? meaning->rest_len : INJECT_TEXT_MAX);
    if (payload->type == MAREY_PAYLOAD_F64)
        JOIN("payload = %.17g", payload->as.f64);
    else if (payload->type == MAREY_PAYLOAD_I64)
        JOIN("payload = %lld", (long long)payload->as.i64);
    else if (payload->type == MAREY_PAYLOAD_U64)
        JOIN("payload = %llu", (unsigned long long)payload->as.u64);
    else
        JOIN("%.*s", (int)payload->len, payload->as.text);
    *payload = text_payload(into, strlen(into));
#undef JOIN
}

void inject_event_put(const struct inject_domain *domain, enum inject_what what,
                      const struct inject_meaning *meaning, const struct nvtx_event *event)
{
    char text[INJECT_TEXT_MAX], both[INJECT_TEXT_MAX];
    struct marey_payload payload = payload_of(domain, event, text);
    if (meaning->rest != NULL && payload.type != 0)
        join(meaning, &payload, both);
    else if (meaning->rest != NULL)
        payload = text_payload(meaning->rest, meaning->rest_len);
    if (what == INJECT_MARK)
        marey_put_mark(meaning->id, payload.type != 0 ? &payload : NULL);
    else if (payload.type != 0)
        marey_put_begin_payload(meaning->id, &payload);
    else
        marey_put_begin(meaning->id);
}
