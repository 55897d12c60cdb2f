/* What goes along with a range or a mark: a number, bytes with a schema, the part of its name that varies. */
#include <stdio.h>
#include <string.h>

#include "inject.h"

static bool number_of(const struct nvtx_event *event, struct marey_payload *payload)
{
    switch (event->payload_type) {
    case NVTX_PAYLOAD_U64:
        *payload = (struct marey_payload){.type = MAREY_PAYLOAD_U64, .as.u64 = event->payload.u64};
        return true;
    case NVTX_PAYLOAD_I64:
        *payload = (struct marey_payload){.type = MAREY_PAYLOAD_I64, .as.i64 = event->payload.i64};
        return true;
    case NVTX_PAYLOAD_F64:
        *payload = (struct marey_payload){.type = MAREY_PAYLOAD_F64, .as.f64 = event->payload.f64};
        return true;
    case NVTX_PAYLOAD_U32:
        *payload = (struct marey_payload){.type = MAREY_PAYLOAD_U64, .as.u64 = event->payload.u32};
        return true;
    case NVTX_PAYLOAD_I32:
        *payload = (struct marey_payload){.type = MAREY_PAYLOAD_I64, .as.i64 = event->payload.i32};
        return true;
    case NVTX_PAYLOAD_F32:
        *payload =
            (struct marey_payload){.type = MAREY_PAYLOAD_F64, .as.f64 = (double)event->payload.f32};
        return true;
    default:
        return false;
    }
}

static struct marey_payload text_payload(const char *text, size_t len)
{
    return (struct marey_payload){.type = MAREY_PAYLOAD_TEXT, .len = (uint32_t)len, .as.text = text};
}

/* What the event itself has; a text lies in `text`. */
static bool payload_of(const struct inject_domain *domain, const struct nvtx_event *event,
                       struct marey_payload *payload, char text[INJECT_TEXT_MAX])
{
    if (event == NULL)
        return false;
    if (event->payload_type != NVTX_PAYLOAD_EXTENDED)
        return number_of(event, payload);
    const size_t n = event->n_payloads > 0 ? (size_t)event->n_payloads : 0;
    const size_t len =
        inject_payload_text(domain, (const void *)(uintptr_t)event->payload.u64, n, text);
    *payload = text_payload(text, len);
    return len > 0;
}

/* What varies of the name, and the payload behind it, as one text. */
static void join(const struct inject_meaning *meaning, struct marey_payload *payload,
                 char into[INJECT_TEXT_MAX])
{
    const int len = (int)(meaning->rest_len < INJECT_TEXT_MAX ? meaning->rest_len : INJECT_TEXT_MAX);
    switch (payload->type) {
    case MAREY_PAYLOAD_F64:
        snprintf(into, INJECT_TEXT_MAX, "%.*s, payload = %.17g", len, meaning->rest, payload->as.f64);
        break;
    case MAREY_PAYLOAD_I64:
        snprintf(into, INJECT_TEXT_MAX, "%.*s, payload = %lld", len, meaning->rest,
                 (long long)payload->as.i64);
        break;
    case MAREY_PAYLOAD_U64:
        snprintf(into, INJECT_TEXT_MAX, "%.*s, payload = %llu", len, meaning->rest,
                 (unsigned long long)payload->as.u64);
        break;
    case MAREY_PAYLOAD_TEXT:
        snprintf(into, INJECT_TEXT_MAX, "%.*s, %.*s", len, meaning->rest, (int)payload->len,
                 payload->as.text);
        break;
    }
    *payload = text_payload(into, strlen(into));
}

void inject_event_put(const struct inject_domain *domain, enum inject_what what,
                      const struct inject_meaning *meaning, const struct nvtx_event *event)
{
    char text[INJECT_TEXT_MAX], both[INJECT_TEXT_MAX];
    struct marey_payload payload = {0};
    bool has_payload = payload_of(domain, event, &payload, text);
    if (meaning->rest != NULL) {
        if (has_payload)
            join(meaning, &payload, both);
        else
            payload = text_payload(meaning->rest, meaning->rest_len);
        has_payload = true;
    }
    if (what == INJECT_MARK)
        marey_put_mark(meaning->id, has_payload ? &payload : NULL);
    else if (has_payload)
        marey_put_begin_payload(meaning->id, &payload);
    else
        marey_put_begin(meaning->id);
}
