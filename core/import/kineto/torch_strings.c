/* Equal texts once: the stacks of a trace are most of its bytes, and few of them differ. */
#include <string.h>

#include "import/kineto/internal.h"
#include "import/sink/internal.h"
#include "record/internal.h"

enum { MAX_STRINGS = 1 << 30 };

bool marey__torch_strings_init(struct marey__torch_strings *strings)
{
    marey__torch_id empty;
    strings->seed = marey__identity_random();
    return marey__torch_intern(strings, "", 0, &empty);
}

void marey__torch_strings_fini(struct marey__torch_strings *strings)
{
    marey__free(strings->bytes);
    marey__free(strings->spans);
    marey__index_fini(&strings->by_hash);
}

/* The id of the text plus 1; 0 when it has none. */
static uint32_t find(const struct marey__torch_strings *strings, uint32_t hash, const char *text,
                     size_t len)
{
    uint32_t number;
    for (size_t at = hash; (number = marey__index_next(&strings->by_hash, hash, &at)) != 0;) {
        const struct marey__torch_span *span = &strings->spans[number - 1];
        if (span->len == len && memcmp(strings->bytes + span->at, text, len) == 0)
            break;
    }
    return number;
}

/* The text at the end of the bytes, with a NUL behind it. */
static bool append(struct marey__torch_strings *strings, uint32_t hash, const char *text, size_t len)
{
    if (strings->n >= MAX_STRINGS || len >= UINT32_MAX ||
        !marey__grow(&strings->spans, &strings->spans_cap, strings->n + 1, sizeof *strings->spans) ||
        !marey__grow(&strings->bytes, &strings->bytes_cap, strings->n_bytes + len + 1, 1) ||
        !marey__index_put(&strings->by_hash, hash, (uint32_t)strings->n + 1))
        return false;
    strings->spans[strings->n++] =
        (struct marey__torch_span){.at = strings->n_bytes, .len = (uint32_t)len};
    memcpy(strings->bytes + strings->n_bytes, text, len);
    strings->bytes[strings->n_bytes + len] = '\0';
    strings->n_bytes += len + 1;
    return true;
}

bool marey__torch_intern(struct marey__torch_strings *strings, const char *text, size_t len,
                         marey__torch_id *id)
{
    const uint32_t hash = (uint32_t)marey__hash_bytes(strings->seed, text, len);
    const uint32_t number = find(strings, hash, text, len);
    if (number == 0 && !append(strings, hash, text, len))
        return false;
    *id = number != 0 ? number - 1 : (uint32_t)strings->n - 1;
    return true;
}

marey__torch_id marey__torch_find(const struct marey__torch_trace *trace, const char *text, size_t len)
{
    const struct marey__torch_strings *strings = &trace->strings;
    const uint32_t hash = (uint32_t)marey__hash_bytes(strings->seed, text, len);
    const uint32_t number = find(strings, hash, text, len);
    return number != 0 ? number - 1 : 0;
}
