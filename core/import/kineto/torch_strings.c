/* Equal texts once: the stacks of a trace are most of its bytes, and few of them differ. */
#include <string.h>

#include "import/kineto/internal.h"
#include "import/sink/internal.h"
#include "record/internal.h"

enum { FIRST_SLOTS = 1024, MAX_STRINGS = 1 << 30 };

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
    marey__free(strings->slots);
}

/* The slot of the text, or the free one where it belongs. */
static uint32_t *find_slot(const struct marey__torch_strings *strings, uint32_t hash,
                           const char *text, size_t len)
{
    for (size_t at = hash;; at++) {
        uint32_t *slot = &strings->slots[at & (strings->slots_cap - 1)];
        if (*slot == 0)
            return slot;
        const struct marey__torch_span *span = &strings->spans[*slot - 1];
        if (span->hash == hash && span->len == len &&
            memcmp(strings->bytes + span->at, text, len) == 0)
            return slot;
    }
}

static bool grow_slots(struct marey__torch_strings *strings)
{
    const size_t cap = strings->slots_cap > 0 ? 2 * strings->slots_cap : FIRST_SLOTS;
    uint32_t *slots = marey__calloc(cap, sizeof *slots);
    if (slots == NULL)
        return false;
    for (size_t i = 0; i < strings->n; i++) {
        size_t at = strings->spans[i].hash;
        while (slots[at & (cap - 1)] != 0)
            at++;
        slots[at & (cap - 1)] = (uint32_t)i + 1;
    }
    marey__free(strings->slots);
    strings->slots = slots;
    strings->slots_cap = cap;
    return true;
}

/* The text at the end of the bytes, with a NUL behind it. */
static bool append(struct marey__torch_strings *strings, uint32_t hash, const char *text, size_t len)
{
    if (strings->n >= MAX_STRINGS || len >= UINT32_MAX ||
        !marey__grow(&strings->spans, &strings->spans_cap, strings->n + 1, sizeof *strings->spans) ||
        !marey__grow(&strings->bytes, &strings->bytes_cap, strings->n_bytes + len + 1, 1))
        return false;
    strings->spans[strings->n++] =
        (struct marey__torch_span){.at = strings->n_bytes, .len = (uint32_t)len, .hash = hash};
    memcpy(strings->bytes + strings->n_bytes, text, len);
    strings->bytes[strings->n_bytes + len] = '\0';
    strings->n_bytes += len + 1;
    return true;
}

bool marey__torch_intern(struct marey__torch_strings *strings, const char *text, size_t len,
                         marey__torch_id *id)
{
    /* Half of the slots stay free, so that a search is short. */
    if (2 * (strings->n + 1) > strings->slots_cap && !grow_slots(strings))
        return false;
    const uint32_t hash = (uint32_t)marey__hash_bytes(strings->seed, text, len);
    uint32_t *slot = find_slot(strings, hash, text, len);
    if (*slot == 0) {
        if (!append(strings, hash, text, len))
            return false;
        *slot = (uint32_t)strings->n;
    }
    *id = *slot - 1;
    return true;
}

marey__torch_id marey__torch_find(const struct marey__torch_trace *trace, const char *text, size_t len)
{
    const struct marey__torch_strings *strings = &trace->strings;
    const uint32_t hash = (uint32_t)marey__hash_bytes(strings->seed, text, len);
    const uint32_t *slot = find_slot(strings, hash, text, len);
    return *slot == 0 ? 0 : *slot - 1;
}
